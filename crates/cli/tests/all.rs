//! The tests of the command, as one program; `linux.rs` has those with kernels.

mod common;

mod bad_input;
mod captures;
mod censoring;
mod ci;
mod compare;
mod damage;
mod docs;
mod editors;
mod extremes;
mod golden;
mod identity;
mod import;
mod import_cases;
mod inputs;
mod json;
mod keeping;
mod new;
mod notes;
mod plot;
mod random_scenarios;
mod report;
mod reproduce;
mod results;
mod scale;
mod shards;
mod shows;
mod stalled;
mod sweep;
mod unchanged;
mod versions;
