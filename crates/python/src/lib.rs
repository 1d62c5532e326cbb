//! The native half of the Python package `millpond`: scenarios, runs and tables.
//!
//! Results cross the border as JSON texts and as Arrow streams; Python makes its objects of them.
//!
//! Invariant: everything that runs is a call of the façade crate, so that Python and the command
//! have the same results. No call holds the interpreter while a run makes progress.

mod convert;
mod error;
mod flows;
mod groups;
mod run;
mod scenario;
mod table;
mod watch;

use pyo3::prelude::*;

/// The module that `import millpond` loads; private to that package.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::flows::rows;
    #[pymodule_export]
    use super::run::{compare, papers, reproduce, run, sweep, sweep_runs};
    #[pymodule_export]
    use super::run::{read_compare, read_run, read_sweep};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::table::Table;
}
