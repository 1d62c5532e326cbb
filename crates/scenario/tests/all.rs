//! The tests of scenarios' texts, as one program.

mod arrivals;
mod bent;
mod bounds;
mod cost;
mod errors;
mod growth;
mod jobs;
mod network;
mod plans;
mod ports;
mod programs;
mod robust;
mod signals;
