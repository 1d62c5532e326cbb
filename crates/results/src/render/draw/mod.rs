//! Drawings as SVG: charts, forests, heat maps and rows of bars over time.
//!
//! Invariant: a drawing depends on its numbers alone, and reads nothing else.

pub(crate) mod axis;
pub(crate) mod chart;
pub(crate) mod forest;
pub(crate) mod gantt;
pub(crate) mod heat;
pub(crate) mod number;
pub(crate) mod series;
pub(crate) mod svg;
pub(crate) mod ticks;
pub(crate) mod unit;
