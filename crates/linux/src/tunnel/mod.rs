//! The tunnel between two switches: which datagrams count, and what the two ends report to each
//! other.
//!
//! | file | what it does |
//! |---|---|
//! | `probe` | the datagrams by which ends find out which paths work, and greet each other |
//! | `secret` | the key file that two switches share, and what is derived from it |
//! | `session` | frames that are sealed for one peer, and opened once |
//!
//! Without a key a tunnel is trusted as a wire is: who can forge a peer's address and port can send
//! frames. With one, a datagram that the peer has not made, or that has come before, goes no
//! further.
//!
//! Two ends agree on a session by probes alone: each has drawn 16 random bytes when it started, and
//! sends them in every probe. A key for each direction follows from the shared secret and both
//! ends' bytes, so what was sealed for a process that has ended opens for no other.
//!
//! Frames are encrypted as well as authenticated (AES-128-GCM): with the library that is used, that
//! costs a fifth of authenticating them alone.
//!
//! Invariant: whatever the bytes, reading them ends with what somebody with the key has written, or
//! with a reason that is counted.

pub mod probe;
pub mod secret;
pub mod sent;
pub mod session;

pub use probe::Probe;
pub use secret::{Secret, Secrets};
pub use session::Session;
