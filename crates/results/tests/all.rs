//! The tests of results, as one program.

mod common;
#[path = "../../scenario/tests/cost.rs"]
mod cost;
mod damage;
mod folder;
mod jobs;
