//! Tests of the shim: a network that drops unimportant packets, a model of TCP, and single packets.
//!
//! | file | what it tests |
//! |---|---|
//! | `frames` | builds and reads the frames of the other files |
//! | `kernel` | a model of a kernel's TCP: one end sends, the other receives |
//! | `network` | two hosts, their shims, and a network with an adversary |
//! | `loss` | streams under loss: no timeout, no corruption |
//! | `bench` | one shim, packet by packet |
//! | `oracles` | the rules of a sender on single packets |
//! | `echoes` | the rules of a receiver on single packets |
//! | `anything` | arbitrary frames |

mod anything;
mod bench;
mod echoes;
mod frames;
mod kernel;
mod loss;
mod network;
mod oracles;
