//! The tests of the command with kernels, real networks and the service manager.

mod common;

mod kernels;
mod lab;
mod lab_captures;
mod lab_programs;
mod limit;
mod limit_guide;
mod switch;
mod units;
