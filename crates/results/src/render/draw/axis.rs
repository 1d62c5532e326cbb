//! The axes of charts: how a number becomes a place.
//!
//! An axis ends at its data, or at the bounds that its caller gives: room around the first and the
//! last value is room in the drawing, and no number lies in it.
//!
//! Invariant: the same numbers give the same axis on every machine; logarithms are `libm`'s.

use super::unit::Unit;
use super::{number, ticks};

/// Values that have a tick each at most; more of them have round numbers.
const EXACT: usize = 12;
/// The part of an axis that stays free at each end where marks lie on its first and its last value.
const PAD: f64 = 0.06;
/// Neighbouring doubles are no range.
const THIN: f64 = 1e-9;

/// How an axis spreads its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Evenly.
    Linear,
    /// Each decade alike.
    Log,
    /// Of shares that remain: 1, 0.1, 0.01 … rise by equal steps, so that the tail has room.
    Tail,
}

/// One axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// How numbers are spread.
    pub scale: Scale,
    /// Their unit.
    pub unit: Unit,
    /// The quantity that the axis shows, written beside it. Markup.
    pub title: String,
    /// The unit of all ticks, once behind the title; empty if each tick has its own.
    pub shared: &'static str,
    /// Ends, after the scale's transformation.
    pub from: f64,
    /// See `from`.
    pub to: f64,
    /// The part of the axis' length beyond each end.
    pub pad: f64,
    /// Round numbers and their names.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From zero on, and without room beyond its ends.
    pub fn new(scale: Scale, unit: Unit, title: &str, to: f64, ticks: Vec<(f64, String)>) -> Axis {
        Axis { scale, unit, title: title.into(), shared: "", from: 0.0, to, pad: 0.0, ticks }
    }

    /// A logarithmic axis that spans all positive values; `None` if there is none.
    pub fn log(values: impl IntoIterator<Item = f64>, unit: Unit, title: &str) -> Option<Axis> {
        let positive = values.into_iter().filter(|v| *v > 0.0 && v.is_finite());
        let (mut least, mut most) = number::extent(positive)?;
        if most < least * 1.01 {
            (least, most) = (least / 1.5, most * 1.5);
        }
        let (from, to) = (libm::log10(least), libm::log10(most));
        let ticks = ticks::by_decades(least, most, unit);
        Some(Axis { from, pad: 0.02, ..Axis::new(Scale::Log, unit, title, to, ticks) })
    }

    /// A linear axis between two numbers. Where they are one number, the axis reaches from there to
    /// zero. Shares of a whole lie between nothing and the whole.
    pub fn linear(from: f64, to: f64, unit: Unit, title: &str) -> Axis {
        let (from, to) = match unit {
            Unit::Percent => (from.clamp(0.0, 100.0), to.clamp(0.0, 100.0)),
            _ => (from, to),
        };
        let thin = from.abs().max(to.abs()) * THIN;
        let (from, to) = match to {
            to if to - from > thin => (from, to),
            to if to > 0.0 => (0.0, to),
            to if to < 0.0 => (to, 0.0),
            _ => (0.0, 1.0),
        };
        let (ticks, shared) = ticks::even(from, to, unit);
        Axis { shared, from, ..Axis::new(Scale::Linear, unit, title, to, ticks) }
    }

    /// An axis with a tick at each of these values, if they are few: evenly spread, or by decades
    /// if that sets them further apart. Many values have round ticks. `None` without values.
    pub fn points(values: &[f64], unit: Unit, title: &str) -> Option<Axis> {
        let mut values: Vec<f64> =
            values.iter().copied().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (least, most) = (*values.first()?, *values.last()?);
        let gap = |at: fn(f64) -> f64| {
            let gaps =
                values.windows(2).map(|pair| (at(pair[1]) - at(pair[0])) / (at(most) - at(least)));
            gaps.fold(f64::INFINITY, f64::min)
        };
        let by_decades = least > 0.0 && gap(libm::log10) > gap(|value| value) * 1.001;
        let mut axis = if by_decades {
            Axis::log(values.iter().copied(), unit, title)?
        } else {
            Axis::linear(least, most, unit, title)
        };
        if values.len() <= EXACT {
            axis.shared = "";
            axis.ticks = values.iter().map(|&value| (value, ticks::label(unit, value))).collect();
        }
        // One value alone stands in the middle.
        (axis.from, axis.to) =
            if least < most { (axis.from, axis.to) } else { (axis.of(least), axis.of(least)) };
        Some(Axis { pad: PAD, ..axis })
    }

    /// Names side by side, in their order. They are markup.
    pub fn names(names: &[String], title: &str) -> Axis {
        let ticks =
            names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect();
        let to = names.len() as f64 - 0.5;
        Axis { from: -0.5, ..Axis::new(Scale::Linear, Unit::Name, title, to, ticks) }
    }

    /// The axis of percentiles, up to where a share of `least` remains.
    pub fn tail(least: f64, title: &str) -> Axis {
        let to = -libm::log10(least.clamp(1e-9, 0.5));
        let shares = [1.0, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];
        let ticks = shares.into_iter().filter(|s| -libm::log10(*s) <= to + 1e-9);
        let ticks = ticks.map(|s| (s, number::percentile(s))).collect();
        Axis::new(Scale::Tail, Unit::Share, title, to, ticks)
    }

    /// The title with what the numbers are in and how they are spread.
    pub fn heading(&self) -> String {
        let log = if self.scale == Scale::Log { ", logarithmic" } else { "" };
        let unit =
            if self.shared.is_empty() { String::new() } else { format!(", {}", self.shared) };
        format!("{}{log}{unit}", self.title)
    }

    /// The title as the head of a column of numbers.
    pub fn column(&self) -> String {
        let symbol = self.unit.symbol();
        if symbol.is_empty() { self.title.clone() } else { format!("{} ({symbol})", self.title) }
    }

    /// A number after the scale's transformation.
    fn of(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log if value > 0.0 => libm::log10(value),
            Scale::Tail if value > 0.0 => -libm::log10(value),
            Scale::Log => self.from,
            Scale::Tail => self.to,
        }
    }

    /// Where a number is, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        if self.to <= self.from {
            return 0.5;
        }
        let part = ((self.of(value) - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.pad + part * (1.0 - 2.0 * self.pad)
    }

    /// For the page's script: scale, the numbers at both ends of the drawing, unit.
    pub fn data(&self) -> String {
        let scale = match self.scale {
            Scale::Linear => "linear",
            Scale::Log => "log",
            Scale::Tail => "tail",
        };
        let room = if self.to > self.from {
            (self.to - self.from) * self.pad / (1.0 - 2.0 * self.pad)
        } else {
            0.5
        };
        format!("{scale} {} {} {}", self.from - room, self.to + room, self.unit.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        let log = |values: &[f64]| Axis::log(values.iter().copied(), Unit::Time, "").unwrap();
        assert_eq!(
            names(&log(&[95.0, 1200.0])),
            ["100\u{202f}µs", "200\u{202f}µs", "500\u{202f}µs", "1\u{202f}ms"]
        );
        assert!(names(&log(&[50.0])).contains(&"50\u{202f}µs"));
        assert!(Axis::log([0.0, -1.0].into_iter(), Unit::Time, "").is_none());
        assert_eq!(Axis::linear(0.0, 312_000.0, Unit::Bytes, "waiting").heading(), "waiting, KB");
        let tail = Axis::tail(1e-3, "");
        assert_eq!(
            names(&tail),
            ["0", "50", "90", "99", "99.9"].map(|p| if p == "0" {
                "min".into()
            } else {
                format!("p{p}")
            })
        );
        assert_eq!((tail.place(1.0), tail.place(1e-3)), (0.0, 1.0));
    }

    #[test]
    fn few_points_have_a_tick_each_and_the_axis_ends_at_them() {
        let axis = |values: &[f64]| Axis::points(values, Unit::Ratio, "").unwrap();
        assert_eq!(names(&axis(&[16.0, 32.0])), ["16", "32"]);
        let loads = axis(&[0.1, 0.3, 0.5, 0.7, 0.9]);
        assert_eq!(
            (loads.scale, names(&loads)),
            (Scale::Linear, vec!["0.1", "0.3", "0.5", "0.7", "0.9"])
        );
        assert_eq!(
            (axis(&[1.0, 2.0, 4.0, 8.0]).scale, axis(&[0.0, 1.0, 100.0]).scale),
            (Scale::Log, Scale::Linear)
        );
        let one = axis(&[0.0]);
        assert_eq!((names(&one), one.place(0.0), one.from, one.to), (vec!["0"], 0.5, 0.0, 0.0));
        let many: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(axis(&many).ticks.len() < 10);
        assert!(Axis::points(&[], Unit::Ratio, "").is_none());
    }

    #[test]
    fn shares_never_exceed_the_whole_and_one_value_has_an_axis_from_zero() {
        let ends = |from, to, unit| {
            let axis = Axis::linear(from, to, unit, "");
            (axis.from, axis.to)
        };
        assert_eq!(ends(100.0, 100.0, Unit::Percent), (0.0, 100.0));
        assert_eq!(ends(98.0, 103.5, Unit::Percent), (98.0, 100.0));
        assert_eq!(ends(-2.0, 40.0, Unit::Percent), (0.0, 40.0));
        assert_eq!(ends(0.0, 0.0, Unit::Percent), (0.0, 1.0));
        assert_eq!(ends(44.0, 44.0, Unit::Count), (0.0, 44.0));
        assert_eq!(ends(-3.0, -3.0, Unit::Ratio), (-3.0, 0.0));
        let axis = Axis::linear(100.0, 100.0, Unit::Percent, "");
        assert!(axis.ticks.iter().all(|(tick, _)| *tick <= 100.0), "{:?}", axis.ticks);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place_and_no_tick_lies_outside(
            values in proptest::collection::vec(prop_oneof![0.0..100.0f64, 1e-3..1e9f64], 1..30),
        ) {
            let axis = Axis::points(&values, Unit::Ratio, "").unwrap();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for &value in &values {
                prop_assert!((0.0..=1.0).contains(&axis.place(value)));
            }
            prop_assert!(axis.place(least) <= axis.place(most));
            // Beyond the data there are no numbers, negative loads least of all.
            prop_assert!(
                axis.ticks
                    .iter()
                    .all(|(tick, _)| (least * (1.0 - 1e-9)..=most * (1.0 + 1e-9)).contains(tick))
            );
            let mut labels = names(&axis);
            labels.sort_unstable();
            prop_assert!(labels.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", labels);
        }

        #[test]
        fn linear_axes_begin_and_end_where_they_are_told(
            from in 0.0..1e6f64,
            span in 1e-3..1e6f64,
        ) {
            let axis = Axis::linear(from, from + span, Unit::Time, "");
            prop_assert_eq!((axis.from, axis.to, axis.place(from)), (from, from + span, 0.0));
        }
    }
}
