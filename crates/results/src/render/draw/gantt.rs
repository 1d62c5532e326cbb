//! Rows of bars over time: when each rank computes, and when its messages are under way.
//!
//! Invariant: the drawing's size has a bound, whatever the run's: time is cut into [`STRETCHES`],
//! and more than [`ROWS`] ranks share rows.

use super::axis::Axis;
use super::chart::{RIGHT, WIDTH, brief, labelled, letters};
use super::series::colour;
use super::svg::{Draw, t};
use super::unit::Unit;
use std::fmt::Write;

pub(crate) const ROWS: u32 = 64;
/// Steps of a row that are bars of their own; more of them are drawn without gaps.
const STEPS: usize = STRETCHES / 4;
/// Stretches of time; each is a bar's or not.
pub(crate) const STRETCHES: usize = 240;
/// The height of a row, where there are few and where there are many.
const HEIGHTS: [f64; 2] = [18.0, 7.0];
/// The height of all rows, if they are neither few nor many.
const HEIGHT: f64 = 330.0;
/// The height of a name, as large as the style sheet has it on a phone.
const NAME: f64 = 17.0;
/// Between bars that follow each other at once.
const GAP: f64 = 0.6;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 48.0;

/// Ranks between two times, in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Gantt {
    from: f64,
    to: f64,
    ranks: u32,
    /// By row: stretches in which a rank computes, in which a message is under way, and in which
    /// a rank sends the first packet of one.
    rows: Vec<[Vec<bool>; 3]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    Computes,
    /// A message from or to it is under way.
    Sends,
    /// It begins to send a message.
    Begins,
}

/// Ranks of a row, if so many have rows.
fn of_row(ranks: u32) -> u32 {
    ranks.div_ceil(ROWS).max(1)
}

impl Gantt {
    pub fn new(ranks: u32, from: f64, to: f64) -> Gantt {
        let none = || [0; 3].map(|_| vec![false; STRETCHES]);
        let rows = (0..ranks.div_ceil(of_row(ranks))).map(|_| none()).collect();
        Gantt { from, to, ranks, rows }
    }

    /// Marks a time of a rank, in microseconds, and at least a stretch of it. Times outside of the
    /// drawing are cut off.
    pub fn mark(&mut self, rank: u32, bar: Bar, from: f64, to: f64) {
        let width = (self.to - self.from) / STRETCHES as f64;
        let row = self.rows.get_mut((rank / of_row(self.ranks)) as usize);
        let Some(row) = row.filter(|_| width > 0.0 && to > self.from && from < self.to) else {
            return;
        };
        let first = (((from - self.from).max(0.0) / width) as usize).min(STRETCHES - 1);
        let last = ((to - self.from) / width).ceil() as usize;
        row[bar as usize][first..last.clamp(first + 1, STRETCHES)].fill(true);
    }

    /// Ranks of each row but the last.
    pub fn of_row(&self) -> u32 {
        of_row(self.ranks)
    }

    fn name(&self, row: usize) -> String {
        let first = row as u32 * self.of_row();
        match (first + self.of_row()).min(self.ranks) - 1 {
            last if last > first => format!("{first}–{last}"),
            _ => first.to_string(),
        }
    }

    /// Whether a row's bar ends where a rank begins to send.
    fn ends_with_steps(&self, row: usize, bar: Bar) -> bool {
        let begins = self.rows[row][Bar::Begins as usize].iter().filter(|it| **it).count();
        bar == Bar::Sends && self.of_row() == 1 && begins <= STEPS
    }

    /// The bars of a row, as times in microseconds.
    fn bars(&self, row: usize, bar: Bar) -> Vec<(f64, f64)> {
        let stretches = &self.rows[row][bar as usize];
        let width = (self.to - self.from) / STRETCHES as f64;
        let at = |stretch: usize| self.from + stretch as f64 * width;
        let has_steps = self.ends_with_steps(row, bar);
        let begins = &self.rows[row][Bar::Begins as usize];
        let mut bars: Vec<(usize, usize)> = Vec::new();
        for stretch in (0..STRETCHES).filter(|stretch| stretches[*stretch]) {
            match bars.last_mut() {
                Some((_, end)) if *end == stretch && !(has_steps && begins[stretch]) => *end += 1,
                _ => bars.push((stretch, stretch + 1)),
            }
        }
        bars.into_iter().map(|(first, end)| (at(first), at(end))).collect()
    }

    /// The drawing, in the colour of a series. `label` is for those who do not see it.
    pub fn svg(&self, series: usize, label: &str) -> String {
        let axis = Axis::linear(self.from, self.to, Unit::Time, "time since the start");
        let names: Vec<String> = (0..self.rows.len()).map(|row| self.name(row)).collect();
        let longest = names.iter().map(|name| letters(name)).fold(0.0, f64::max);
        let left = longest * super::chart::LETTER_ON_PHONE + 12.0;
        let height = (HEIGHT / names.len().max(1) as f64).clamp(HEIGHTS[1], HEIGHTS[0]);
        let bottom = TOP + height * names.len() as f64;
        let place = |time: f64| left + axis.place(time) * (WIDTH - RIGHT - left);
        let (end, csv) = (bottom + BOTTOM, self.csv(&names));
        let size = format!("viewBox=\"0 0 {WIDTH} {end:.1}\" role=\"img\"");
        let mut svg =
            format!("<svg class=\"gantt\" {size} aria-label=\"{label}\" data-csv=\"{csv}\">");
        for (x, name, class) in labelled(&axis, place) {
            svg.path("grid", format_args!("M{x:.1} {TOP}V{bottom:.1}"));
            let Some(class) = class else { continue };
            svg.text(class, t(x), t(bottom + 18.0), "middle", name);
        }
        svg.text("title", WIDTH - RIGHT, t(end - 8.0), "end", &axis.heading());
        let every = (NAME / height).ceil() as usize;
        for (row, name) in names.iter().enumerate().step_by(every) {
            let y = TOP + height * (row as f64 + 0.5) + 4.0;
            svg.text("", t(left - 6.0), t(y), "end", name);
        }
        let _ = write!(svg, "<g data-v=\"{series}\" class=\"{}\">", colour(series));
        for (bar, class, part) in [(Bar::Computes, "computes", 0.06), (Bar::Sends, "sends", 0.5)] {
            let mut path = String::new();
            for row in 0..names.len() {
                let (y, high) = (TOP + height * (row as f64 + part), height * 0.42);
                for (from, to) in self.bars(row, bar) {
                    let (x, end) = (place(from), place(to) - GAP);
                    let _ = write!(path, "M{x:.1} {y:.1}H{end:.1}v{high:.1}H{x:.1}Z");
                }
            }
            svg.path(class, path);
        }
        svg + "</g></svg>"
    }

    /// The bars as they are drawn; lines end as in an attribute.
    fn csv(&self, names: &[String]) -> String {
        let mut csv = "ranks,does,from (us),to (us)&#10;".to_string();
        for (row, name) in names.iter().enumerate() {
            for (bar, does) in [(Bar::Computes, "computes"), (Bar::Sends, "sends")] {
                for (from, to) in self.bars(row, bar) {
                    let _ = write!(csv, "{name},{does},{},{}&#10;", brief(from), brief(to));
                }
            }
        }
        csv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_where_a_rank_is_busy() {
        let mut gantt = Gantt::new(4, 100.0, 340.0);
        gantt.mark(1, Bar::Computes, 100.0, 102.5);
        gantt.mark(1, Bar::Computes, 102.0, 104.0);
        gantt.mark(1, Bar::Sends, 90.0, 101.0);
        gantt.mark(3, Bar::Sends, 339.9, 900.0);
        gantt.mark(2, Bar::Sends, 20.0, 100.0);
        gantt.mark(9, Bar::Sends, 100.0, 200.0);
        assert_eq!(gantt.bars(1, Bar::Computes), [(100.0, 104.0)]);
        assert_eq!(gantt.bars(1, Bar::Sends), [(100.0, 101.0)]);
        assert_eq!(gantt.bars(3, Bar::Sends), [(339.0, 340.0)]);
        assert!(gantt.bars(2, Bar::Sends).is_empty(), "it ended before");
        gantt.mark(0, Bar::Sends, 200.0, 230.0);
        gantt.mark(0, Bar::Begins, 200.0, 200.0);
        gantt.mark(0, Bar::Begins, 210.0, 210.0);
        assert_eq!(gantt.bars(0, Bar::Sends), [(200.0, 210.0), (210.0, 230.0)], "two steps");
        let svg = gantt.svg(2, "ranks");
        assert!(svg.contains("data-v=\"2\" class=\"s2\""), "{svg}");
        assert!(svg.contains(
            "0,sends,210,230&#10;1,computes,100,104&#10;1,sends,100,101&#10;3,sends,339,340&#10;"
        ));
        assert_eq!((svg.matches('M').count(), svg.matches("</text>").count()), (5 + 5, 4 + 6));
    }

    #[test]
    fn more_ranks_than_rows_share_them() {
        let mut gantt = Gantt::new(1_000, 0.0, 10.0);
        assert_eq!((gantt.rows.len(), gantt.of_row()), (63, 16));
        gantt.mark(999, Bar::Computes, 0.0, 10.0);
        gantt.mark(17, Bar::Computes, 0.0, 5.0);
        assert_eq!(gantt.bars(62, Bar::Computes), [(0.0, 10.0)]);
        assert_eq!(gantt.bars(1, Bar::Computes), [(0.0, 5.0)]);
        assert_eq!((gantt.name(1).as_str(), gantt.name(62).as_str()), ("16–31", "992–999"));
        assert_eq!(Gantt::new(64, 0.0, 1.0).name(63), "63");
        assert!(gantt.svg(0, "").len() < 20_000);
    }
}
