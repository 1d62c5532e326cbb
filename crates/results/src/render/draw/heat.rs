//! A heat map: a number for each pair of two keys' values, as cells that are the darker the worse
//! it is.
//!
//! Invariant: every cell shows its number, in the drawing or under the pointer; a pair without one
//! stays empty.

use std::fmt::Write;

use super::number::extent;
use super::svg::{Draw, t};
use super::unit::Unit;

const WIDTH: f64 = 480.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 48.0;
const CELL: f64 = 36.0;
/// Of a letter, as large as the style sheet has it on a phone.
const LETTER: f64 = 9.4;
/// Values that span more than this are distinguished by their logarithms.
const WIDE: f64 = 20.0;
/// Colours of the least, the middle and the most.
const RAMP: [[f64; 3]; 3] = [[236.0, 243.0, 248.0], [107.0, 168.0, 206.0], [8.0, 52.0, 96.0]];

/// A heat map. Its texts are markup.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    /// The key of the columns, and its values.
    pub x: (String, Vec<String>),
    /// The key of the rows, and its values, the lowest row first.
    pub y: (String, Vec<String>),
    pub cells: Vec<Vec<Option<f64>>>,
    pub unit: Unit,
    /// Whether less of it is better: then more is darker, else less is.
    pub less_is_better: bool,
    /// For those who do not see it.
    pub label: String,
}

impl Heat {
    pub fn svg(&self) -> String {
        let longest = self.y.1.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
        let left = (longest * LETTER + 12.0).min(170.0);
        let width = (WIDTH - left - 4.0) / self.x.1.len().max(1) as f64;
        let bottom = TOP + CELL * self.y.1.len() as f64;
        let (height, label, csv) = (bottom + BOTTOM, &self.label, self.csv());
        let size = format!("viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"");
        let mut svg =
            format!("<svg class=\"heat\" {size} aria-label=\"{label}\" data-csv=\"{csv}\">");
        svg.text("title", 4, 13, "", &self.y.0);
        for (row, name) in self.y.1.iter().enumerate() {
            let top = bottom - CELL * (row + 1) as f64;
            svg.text("", left - 8.0, top + CELL / 2.0 + 4.0, "end", name);
            for column in 0..self.x.1.len() {
                let value = self.cells.get(row).and_then(|cells| *cells.get(column)?);
                self.cell(&mut svg, left + width * column as f64, top, width, value);
            }
        }
        for (column, name) in self.x.1.iter().enumerate() {
            let x = left + width * (column as f64 + 0.5);
            let every = (name.chars().count() as f64 * LETTER / width).ceil().max(1.0) as usize;
            if column % every == 0 {
                svg.text("", t(x), bottom + 18.0, "middle", name);
            }
        }
        svg.text("title", WIDTH - 4.0, bottom + BOTTOM - 8.0, "end", &self.x.0);
        svg + "</svg>"
    }

    fn cell(&self, svg: &mut String, x: f64, y: f64, width: f64, value: Option<f64>) {
        let (wide, high) = (width - 2.0, CELL - 2.0);
        let place =
            format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high}\" rx=\"2\"");
        let Some(value) = value else {
            let _ = write!(svg, "<rect class=\"empty-cell\" {place}/>");
            return;
        };
        let (depth, text) = (self.depth(value), self.unit.text(value));
        let [red, green, blue] = colour(depth);
        let colour = format!("#{red:02x}{green:02x}{blue:02x}");
        let _ = write!(svg, "<g><title>{text}</title><rect {place} fill=\"{colour}\"/>");
        let room = text.chars().count() as f64 * LETTER;
        if room * 0.68 < wide {
            let tone = if depth > 0.55 { "on-dark" } else { "on-light" };
            let class = format!("{tone}{}", if room < wide { "" } else { " wide" });
            svg.text(&class, t(x + wide / 2.0), t(y + high / 2.0 + 4.0), "middle", &text);
        }
        svg.push_str("</g>");
    }

    /// How dark a number is, from 0 (the best) to 1 (the worst).
    fn depth(&self, value: f64) -> f64 {
        let all = self.cells.iter().flatten().flatten().copied();
        let (least, most) = extent(all).unwrap_or((value, value));
        let part = if least > 0.0 && most / least > WIDE {
            libm::log10(value / least) / libm::log10(most / least)
        } else {
            (value - least) / (most - least)
        };
        match most > least {
            true if self.less_is_better => part.clamp(0.0, 1.0),
            true => 1.0 - part.clamp(0.0, 1.0),
            false => 0.5,
        }
    }

    /// A line a pair; the page's script hands it out.
    fn csv(&self) -> String {
        let quoted = |name: &str| format!("&quot;{}&quot;", name.replace("&quot;", "&quot;&quot;"));
        let symbol = self.unit.symbol();
        let value =
            if symbol.is_empty() { "value".to_string() } else { format!("value ({symbol})") };
        let mut csv = format!("{},{},{value}&#10;", quoted(&self.x.0), quoted(&self.y.0));
        for (row, cells) in self.y.1.iter().zip(&self.cells) {
            for (column, cell) in self.x.1.iter().zip(cells) {
                let number = cell.map_or(String::new(), |value| format!("{value}"));
                let _ = write!(csv, "{},{},{number}&#10;", quoted(column), quoted(row));
            }
        }
        csv
    }
}

fn colour(depth: f64) -> [u8; 3] {
    let (from, to, part) = if depth < 0.5 {
        (RAMP[0], RAMP[1], depth * 2.0)
    } else {
        (RAMP[1], RAMP[2], depth * 2.0 - 1.0)
    };
    [0, 1, 2].map(|at| libm::round(from[at] + (to[at] - from[at]) * part) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_their_numbers_and_worse_is_darker() {
        let names = |all: &[&str]| all.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let heat = Heat {
            x: ("load".into(), names(&["0.2", "0.8"])),
            y: ("a&quot;b".into(), names(&["50KB", "1MB"])),
            cells: vec![vec![Some(1000.0), Some(2500.0)], vec![None, Some(90_000.0)]],
            unit: Unit::Time,
            less_is_better: true,
            label: "x".into(),
        };
        let svg = heat.svg();
        assert_eq!((svg.matches("<g>").count(), svg.matches("empty-cell").count()), (3, 1));
        assert!(
            svg.contains(">2.5\u{202f}ms</text>") && svg.contains(">90\u{202f}ms</text>"),
            "{svg}"
        );
        assert!(svg.contains("fill=\"#ecf3f8\"") && svg.contains("fill=\"#083460\""));
        assert!(
            svg.contains("&quot;0.8&quot;,&quot;1MB&quot;,90000&#10;")
                && svg.contains("&quot;0.2&quot;,&quot;1MB&quot;,&#10;")
        );
        // Beyond a factor of 20 a decade is a step, so the middle is not lost at the bottom.
        assert!(heat.depth(2500.0) > 0.15 && heat.depth(2500.0) < 0.3);
        assert_eq!(Heat { cells: vec![vec![Some(3.0)]], ..heat.clone() }.depth(3.0), 0.5);
        // Of a goodput the least is the worst.
        let goodput = Heat { unit: Unit::Rate, less_is_better: false, ..heat };
        assert_eq!((goodput.depth(1000.0), goodput.depth(90_000.0)), (1.0, 0.0));
    }
}
