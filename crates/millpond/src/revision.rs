//! Which program this is: its version and the revision that it was built from.
//!
//! `manifest.json` and `--version` alone record the revision, since all other files are the same
//! for any build of a version.

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
