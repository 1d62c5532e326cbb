//! A scenario's hosts as real Linux kernels in virtual time.

pub mod calendar;
pub mod device;
mod error;
pub mod guest;
pub mod schedule;
pub mod site;

pub use error::Error;
