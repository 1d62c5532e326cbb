//! Which program this is: its version and the revision that it was built from.
//!
//! `manifest.json` and `--version` alone record the revision, since all other files are the same
//! for any build of a version.

use millpond_core::RESULTS;
use millpond_results::Manifest;

/// The version, which all crates of the workspace share.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, with `-dirty-` and a hash of the sources where they differed from it; `unknown`
/// outside of a repository.
pub(crate) const REVISION: &str = env!("MILLPOND_REVISION");
/// Both.
pub const LONG_VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (revision ", env!("MILLPOND_REVISION"), ")");

/// A manifest of this program, for what is run of this scenario.
pub fn manifest(scenario: impl Into<String>) -> Manifest {
    Manifest { revision: REVISION.to_string(), ..Manifest::new(VERSION, scenario) }
}

/// Whether this program would make a finished run of the same scenario and seed as it is. A build
/// of sources that no commit has takes its own alone, since their results may have changed and the
/// number not yet.
pub(crate) fn makes_again(manifest: &Manifest) -> bool {
    let is_of_commit = |revision: &str| !revision.contains("-dirty-");
    let is_known = is_of_commit(REVISION) && is_of_commit(&manifest.revision);
    manifest.results == RESULTS && (is_known || manifest.revision == REVISION)
}
