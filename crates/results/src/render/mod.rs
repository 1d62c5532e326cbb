//! Results for readers: text for terminals, HTML for browsers.
//!
//! Invariant: nothing below this module renders.

pub(crate) mod best;
pub(crate) mod claims;
pub(crate) mod document;
pub(crate) mod draw;
pub(crate) mod exchange;
pub(crate) mod experiments;
pub(crate) mod format;
pub(crate) mod html;
pub(crate) mod markup;
pub(crate) mod text;
pub(crate) mod words;
