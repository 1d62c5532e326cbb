//! A caller's flows, from columns or from an Arrow stream, as the `rows` of a scenario.
//!
//! Invariant: a row that the text contains has whole numbers in their ranges; whether its hosts
//! exist, the scenario decides.

use crate::error::in_data;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::fmt::Write;
use std::ops::RangeInclusive;

/// The name of the data in errors.
const FILE: &str = "flows";
/// The largest flow, 2^48 bytes, as the scenario has it.
const BYTES_MAX: f64 = (1_u64 << 48) as f64;
/// The latest start, as the scenario has it.
const START_US_MAX: f64 = 1e12;

/// The columns; `None` in the place of a missing value.
#[derive(Default)]
struct Columns {
    start_us: Vec<Option<f64>>,
    src: Vec<Option<f64>>,
    dst: Vec<Option<f64>>,
    bytes: Vec<Option<f64>>,
    class: Option<Vec<Option<String>>>,
    id: Option<Vec<Option<String>>>,
    after: Option<Vec<Option<String>>>,
}

const NEEDED: [&str; 4] = ["start_us", "src", "dst", "bytes"];
const OPTIONAL: [&str; 3] = ["class", "id", "after"];

/// The flows as a TOML array. `source` is a dictionary of columns, or has `__arrow_c_stream__`.
#[pyfunction]
pub fn rows(source: &Bound<'_, PyAny>) -> PyResult<String> {
    let columns = match source.cast::<PyDict>() {
        Ok(columns) => of_columns(columns)?,
        Err(_) => of_stream(source)?,
    };
    columns.text(source.py())
}

/// An error of a row, or of all: row 0.
fn problem(py: Python<'_>, row: usize, key: &str, near: Option<String>, text: String) -> PyErr {
    in_data(py, (FILE.into(), row, 1, Some(key.into()), near, text))
}

/// Checks that the needed columns are there.
fn check_names(py: Python<'_>, names: &[String]) -> PyResult<()> {
    for needed in NEEDED {
        if names.iter().any(|name| name == needed) {
            continue;
        }
        let near = py.import("difflib")?.getattr("get_close_matches")?.call1((needed, names, 1))?;
        let near = near.extract::<Vec<String>>()?.pop();
        let hint = near
            .as_ref()
            .map_or(String::new(), |near| format!("; {near:?} is near: rename it to {needed:?}"));
        let text = format!("there is no column {needed:?}; there are {}{hint}", names.join(", "));
        return Err(problem(py, 0, needed, near, text));
    }
    Ok(())
}

fn of_columns(columns: &Bound<'_, PyDict>) -> PyResult<Columns> {
    let py = columns.py();
    check_names(py, &columns.keys().extract::<Vec<String>>()?)?;
    let numbers = |name: &str| -> PyResult<Vec<Option<f64>>> {
        let column = columns.get_item(name)?;
        let wrong = |error: PyErr| problem(py, 0, name, None, format!("`{name}`: {error}"));
        column.map_or(Ok(Vec::new()), |column| column.extract().map_err(wrong))
    };
    let texts = |name: &str| -> PyResult<Option<Vec<Option<String>>>> {
        let column = columns.get_item(name)?;
        let wrong = |error: PyErr| problem(py, 0, name, None, format!("`{name}`: {error}"));
        column.map(|column| column.extract().map_err(wrong)).transpose()
    };
    let [start_us, src, dst, bytes] = NEEDED.map(numbers);
    let [class, id, after] = OPTIONAL.map(texts);
    let columns = Columns {
        start_us: start_us?,
        src: src?,
        dst: dst?,
        bytes: bytes?,
        class: class?,
        id: id?,
        after: after?,
    };
    columns.check_lengths(py)?;
    Ok(columns)
}

fn of_stream(source: &Bound<'_, PyAny>) -> PyResult<Columns> {
    let py = source.py();
    let wrong = |error: arrow_schema::ArrowError| problem(py, 0, "flows", None, error.to_string());
    let capsule = source.call_method0("__arrow_c_stream__").map_err(|_| {
        let text = "flows come as an iterable of rows, a dict of columns, or a table with the \
                    Arrow PyCapsule interface (polars, pandas, pyarrow, DuckDB)";
        PyTypeError::new_err(text)
    })?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: by its name the capsule points to such a stream, which lives as long as the
    // capsule; taking it over leaves a released one in its place, as the interface asks.
    #[allow(unsafe_code)]
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    let reader = RecordBatchStreamReader::try_new(stream).map_err(wrong)?;
    let names: Vec<String> =
        reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    check_names(py, &names)?;
    let mut columns = Columns::default();
    for batch in reader {
        columns.append(py, &batch.map_err(wrong)?)?;
    }
    Ok(columns)
}

/// The numbers of an array; `None` if it has none.
fn numbers(array: &ArrayRef) -> Option<Vec<Option<f64>>> {
    macro_rules! of {
        ($($kind:ident $type:ident),*) => {
            match array.data_type() {
                $(DataType::$kind => {
                    let values = array.as_primitive::<$type>();
                    Some(values.iter().map(|value| value.map(|value| value as f64)).collect())
                })*
                _ => None,
            }
        };
    }
    of!(
        Int8 Int8Type, Int16 Int16Type, Int32 Int32Type, Int64 Int64Type,
        UInt8 UInt8Type, UInt16 UInt16Type, UInt32 UInt32Type, UInt64 UInt64Type,
        Float32 Float32Type, Float64 Float64Type
    )
}

/// The texts of an array; `None` if it has none.
fn texts(array: &ArrayRef) -> Option<Vec<Option<String>>> {
    let own = |text: Option<&str>| text.map(String::from);
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().iter().map(own).collect()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().iter().map(own).collect()),
        DataType::Utf8View => Some(array.as_string_view().iter().map(own).collect()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let (keys, values) = (dictionary.normalized_keys(), texts(dictionary.values())?);
            let text = |(row, key): (usize, &usize)| {
                if array.is_null(row) { None } else { values.get(*key)?.clone() }
            };
            Some(keys.iter().enumerate().map(text).collect())
        }
        DataType::Null => Some(vec![None; array.len()]),
        _ => None,
    }
}

impl Columns {
    fn append(&mut self, py: Python<'_>, batch: &RecordBatch) -> PyResult<()> {
        let wrong = |name: &str, array: &ArrayRef, what: &str| {
            let text = format!("`{name}`: {} is no column of {what}", array.data_type());
            problem(py, 0, name, None, text)
        };
        let needed = [&mut self.start_us, &mut self.src, &mut self.dst, &mut self.bytes];
        for (name, column) in NEEDED.into_iter().zip(needed) {
            let Some(array) = batch.column_by_name(name) else { continue };
            column.extend(numbers(array).ok_or_else(|| wrong(name, array, "numbers"))?);
        }
        let optional = [&mut self.class, &mut self.id, &mut self.after];
        for (name, column) in OPTIONAL.into_iter().zip(optional) {
            let Some(array) = batch.column_by_name(name) else { continue };
            let texts = texts(array).ok_or_else(|| wrong(name, array, "texts"))?;
            column.get_or_insert_default().extend(texts);
        }
        Ok(())
    }

    fn check_lengths(&self, py: Python<'_>) -> PyResult<()> {
        let all = self.start_us.len();
        let needed = [&self.start_us, &self.src, &self.dst, &self.bytes].map(|column| column.len());
        let optional = [&self.class, &self.id, &self.after]
            .map(|column| column.as_ref().map_or(all, Vec::len));
        let lengths = needed.into_iter().chain(optional);
        match NEEDED.into_iter().chain(OPTIONAL).zip(lengths).find(|(_, length)| *length != all) {
            None => Ok(()),
            Some((name, length)) => {
                let text = format!("`{name}` has {length} values, and `start_us` has {all}");
                Err(problem(py, 0, name, None, text))
            }
        }
    }

    /// A TOML array of the rows: arrays, or tables if any flow has an id or waits for others.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let host = f64::from(u32::MAX);
        let mut out = String::from("[");
        for row in 0..self.start_us.len() {
            let number = |name, column: &[Option<f64>], range: RangeInclusive<f64>| {
                within(column[row], range, name != "start_us")
                    .map_err(|text| problem(py, row + 1, name, None, format!("`{name}`: {text}")))
            };
            let start_us = number("start_us", &self.start_us, 0.0..=START_US_MAX)?;
            let src = number("src", &self.src, 0.0..=host)?;
            let dst = number("dst", &self.dst, 0.0..=host)?;
            let bytes = number("bytes", &self.bytes, 1.0..=BYTES_MAX)?;
            let start_ps = (start_us * 1e6).round();
            // Writing to a text cannot fail.
            let _ = if self.id.is_none() && self.after.is_none() {
                let class = named(&self.class, row)
                    .map_or(String::new(), |class| format!(",{}", quoted(class)));
                write!(out, "[\"{start_ps}ps\",{src},{dst},{bytes}{class}],")
            } else {
                let (hosts, names) = (format!("src = {src}, dst = {dst}"), self.names(row));
                write!(out, "{{ start = \"{start_ps}ps\", {hosts}, bytes = {bytes}{names} }},")
            };
        }
        out.push(']');
        Ok(out)
    }

    /// A row's class, id and those that it waits for, as far as it has them.
    fn names(&self, row: usize) -> String {
        let mut out = String::new();
        for (key, column) in [("class", &self.class), ("id", &self.id)] {
            if let Some(text) = named(column, row) {
                let _ = write!(out, ", {key} = {}", quoted(text));
            }
        }
        if let Some(after) = named(&self.after, row) {
            let ids: Vec<String> = after.split_whitespace().map(quoted).collect();
            let _ = write!(out, ", after = [{}]", ids.join(", "));
        }
        out
    }
}

/// The value, if it is in the range; else what is expected.
fn within(value: Option<f64>, range: RangeInclusive<f64>, is_whole: bool) -> Result<f64, String> {
    let fits = |value: &f64| range.contains(value) && (!is_whole || value.fract() == 0.0);
    value.filter(fits).ok_or_else(|| {
        let got = value.map_or("nothing".to_string(), |value| value.to_string());
        let kind = if is_whole { "a whole number" } else { "a number" };
        format!("expected {kind} from {} to {}, got {got}", range.start(), range.end())
    })
}

/// A row's text of a column, unless it has none or an empty one.
fn named(column: &Option<Vec<Option<String>>>, row: usize) -> Option<&str> {
    column.as_ref()?[row].as_deref().filter(|text| !text.is_empty())
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
