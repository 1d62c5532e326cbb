//! A table of a results folder, which Arrow consumers read by the PyCapsule interface.
//!
//! Invariant: a consumer gets the buffers that the decoder filled; nothing is copied for it.

use crate::error::in_file;
use crate::groups::Groups;
use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};
use std::path::PathBuf;

/// A Parquet file of a results folder.
#[pyclass(frozen, module = "millpond")]
pub struct Table {
    path: PathBuf,
    groups: Groups,
}

#[pymethods]
impl Table {
    /// Opens the file.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
        match py.detach(|| Groups::open(&path)) {
            Ok(groups) => Ok(Table { path, groups }),
            Err(error) => Err(in_file(py, &path, &error.to_string())),
        }
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.groups.schema().fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The columns with their meanings and units.
    #[getter]
    fn meanings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let meaning = |name| self.groups.note(&format!("millpond.column.{name}")).unwrap_or("");
        let meanings = PyDict::new(py);
        self.columns().into_iter().try_for_each(|name| meanings.set_item(name, meaning(name)))?;
        Ok(meanings)
    }

    fn __len__(&self) -> usize {
        self.groups.rows()
    }

    fn __repr__(&self) -> String {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let columns = self.columns().join(", ");
        format!("<table {name}: {} rows of {columns}>", self.groups.rows())
    }

    /// A column: an `array` of doubles, NaN where there is no value, or a list of texts.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if !self.columns().contains(&name) {
            let columns = self.columns().join(", ");
            let text = format!("there is no column {name:?}; there are {columns}");
            return Err(PyKeyError::new_err(text));
        }
        let arrays: Result<Vec<ArrayRef>, _> = py.detach(|| {
            self.groups.batches(Some(name)).map(|batch| Ok(batch?.column(0).clone())).collect()
        });
        let arrays = arrays.map_err(|error: arrow_schema::ArrowError| {
            in_file(py, &self.path, &error.to_string())
        })?;
        if arrays.iter().any(|array| array.data_type() == &DataType::Utf8) {
            let texts = arrays.iter().flat_map(|array| array.as_string::<i32>().iter());
            return Ok(PyList::new(py, texts.collect::<Vec<_>>())?.into_any());
        }
        let bytes: Vec<u8> =
            py.detach(|| arrays.iter().flat_map(doubles).flat_map(f64::to_ne_bytes).collect());
        py.import("array")?.getattr("array")?.call1(("d", PyBytes::new(py, &bytes)))
    }

    /// The schema, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.groups.schema().as_ref())
            .map_err(|error| in_file(py, &self.path, &error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// All rows, by the Arrow PyCapsule interface. The file's types are the only ones offered.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(Box::new(self.groups.batches(None)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The numbers of an array, NaN where there is none.
fn doubles(array: &ArrayRef) -> Vec<f64> {
    macro_rules! of {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>();
            values.iter().map(|value| value.map_or(f64::NAN, |value| value as f64)).collect()
        }};
    }
    match array.data_type() {
        DataType::Float64 => of!(Float64Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        // Results have no other numbers.
        _ => vec![f64::NAN; array.len()],
    }
}
