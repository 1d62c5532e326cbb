//! Which program this is: its version and the revision that it was built from.
//!
//! The revision is told in `manifest.json` and by `--version` alone, since all other files are the
//! same for any build of a version.

use millpond_results::Manifest;

/// The version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, with `-dirty` where the sources differed from it; `unknown` outside of a repository.
pub const REVISION: &str = env!("MILLPOND_REVISION");
/// Both.
pub const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (revision ", env!("MILLPOND_REVISION"), ")");

/// A manifest of this program, for what is run of this scenario.
pub fn manifest(scenario: impl Into<String>) -> Manifest {
    Manifest { revision: REVISION.to_string(), ..Manifest::new(VERSION, scenario) }
}
