//! How the world of kernels in virtual time speaks with the agent of each host.

pub mod wire;
