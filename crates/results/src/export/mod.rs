//! Tables of a results folder in the formats of other programs.

pub(crate) mod csv;
pub(crate) mod fct;
