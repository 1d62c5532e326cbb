//! Elements of drawings.
//!
//! Invariant: a place is written to a tenth where [`t`] wraps it, and in full otherwise.

use std::fmt::{Display, Formatter, Result, Write};

/// A number that is written to a tenth.
pub(crate) struct Tenth(f64);

pub(crate) fn t(number: f64) -> Tenth {
    Tenth(number)
}

impl Display for Tenth {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:.1}", self.0)
    }
}

/// ` name="value"`, or nothing without a value.
pub(crate) fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{value}\"") }
}

/// A drawing that elements are added to. Texts are markup.
pub(crate) trait Draw: Write {
    /// A text at a place; without a class or an anchor if they are empty.
    fn text(&mut self, class: &str, x: impl Display, y: impl Display, anchor: &str, text: &str) {
        let (class, anchor) = (attribute("class", class), attribute("text-anchor", anchor));
        let _ = write!(self, "<text{class} x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>");
    }

    fn path(&mut self, class: &str, way: impl Display) {
        let _ = write!(self, "<path class=\"{class}\" d=\"{way}\"/>");
    }

    /// A rectangle: `look` is its attributes, `x`, `y`, `width` and `height` its place.
    fn rect(&mut self, look: &str, place: [&dyn Display; 4]) {
        let [x, y, width, height] = place;
        let place = format_args!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
        let _ = write!(self, "<rect {look} {place}/>");
    }
}

impl Draw for String {}
