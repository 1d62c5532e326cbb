//! A scenario with its overrides, as Python holds it.

use crate::error::raise;
use pyo3::prelude::*;
use std::path::PathBuf;

/// The façade's scenario. Methods that change it return another one.
#[pyclass(frozen, module = "millpond._native")]
#[derive(Clone)]
pub struct Scenario(pub millpond::Scenario);

#[pymethods]
impl Scenario {
    /// Reads a TOML file, or the scenario of a run's results folder.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Scenario> {
        Ok(Scenario(millpond::Scenario::open(path).map_err(|error| raise(py, error))?))
    }

    /// Reads a text, which errors call `name`.
    #[staticmethod]
    fn parse(py: Python<'_>, name: &str, text: &str) -> PyResult<Scenario> {
        Ok(Scenario(millpond::Scenario::parse(name, text).map_err(|error| raise(py, error))?))
    }

    /// Overrides keys, each with a TOML value.
    fn set(&self, overrides: Vec<(String, String)>) -> Scenario {
        let set = |scenario: millpond::Scenario, (key, value)| scenario.set(key, value);
        Scenario(overrides.into_iter().fold(self.0.clone(), set))
    }

    /// Sets the seed.
    fn seed(&self, seed: u64) -> Scenario {
        Scenario(self.0.clone().seed(seed))
    }

    /// Chooses the numbers that tables and reports show.
    fn shows(&self, names: Vec<String>) -> Scenario {
        Scenario(self.0.clone().shows(names))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    #[getter]
    fn variants(&self) -> Vec<&str> {
        self.0.variants()
    }

    /// A variant as TOML with every default, and its warnings.
    fn plan(&self, py: Python<'_>, variant: Option<&str>) -> PyResult<(String, Vec<String>)> {
        let plan = self.0.plan(variant).map_err(|error| raise(py, error))?;
        let warnings = self.0.idle().into_iter().chain(plan.warnings().iter().cloned());
        Ok((plan.resolved().to_string(), warnings.collect()))
    }
}
