//! Worlds of network namespaces: made fast, and taken away however their process ends.
//!
//! ```no_run
//! # fn main() -> Result<(), millpond_worlds::Error> {
//! let world = millpond_worlds::World::new("two")?;
//! let [a, b] = [world.namespace("a")?, world.namespace("b")?];
//! world.veths(&[[(&a, "eth0"), (&b, "eth0")]])?;
//! a.ip("addr add 10.0.0.1/24 dev eth0\nlink set eth0 up")?;
//! b.ip("addr add 10.0.0.2/24 dev eth0\nlink set eth0 up")?;
//! let listener = b.run(|| std::net::TcpListener::bind("10.0.0.2:80"));
//! # let _ = listener; Ok(()) }
//! ```
//!
//! | module | content |
//! |---|---|
//! | `world` | [`World`] and its [`Namespace`]s |
//! | `namespace` | entering, naming and finding namespaces |
//! | `journal` | what each world has made, on disk; the sweeper |
//! | `process` | finding and killing the processes of a world |
//! | `ip` | `ip`, one command or a batch |
//! | `skip` | [`needs!`]: tests that name what they lack, and fail where they must run |
//!
//! Invariant: what a world makes is in its journal before it is made, so it goes when the world is
//! dropped, when its process is interrupted, or when a later world sweeps.

#[cfg(target_os = "linux")]
pub mod ip;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(target_os = "linux")]
mod process;
pub mod skip;
#[cfg(target_os = "linux")]
mod world;

#[cfg(target_os = "linux")]
pub use journal::sweep;
#[cfg(target_os = "linux")]
pub use world::{Namespace, World};

/// An action that a world could not take.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct Error {
    pub what: String,
    pub source: std::io::Error,
}

impl Error {
    #[cfg(target_os = "linux")]
    fn new(what: impl Into<String>, source: impl Into<std::io::Error>) -> Error {
        Error { what: what.into(), source: source.into() }
    }
}
