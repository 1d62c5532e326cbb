//! A connection's two ends, a folder a family. TCP is one.

pub mod tcp;

pub use tcp::*;
