//! The axes of charts: how a number becomes a place, and which round numbers are named beside it.
//!
//! Invariant: the same numbers give the same axis on every machine; logarithms are `libm`'s.

use super::number;

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

/// What an axis' numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Microseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Gb/s.
    Rate,
    /// A ratio.
    Ratio,
    /// The share that takes longer, named by the percentile.
    Share,
    /// Of a hundred.
    Percent,
    /// How many.
    Count,
    /// A place among names, which stand beside the axis.
    Name,
}

impl Unit {
    /// The name that the page's script knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Time => "time",
            Unit::Bytes => "bytes",
            Unit::Rate => "rate",
            Unit::Ratio => "ratio",
            Unit::Share => "share",
            Unit::Percent => "percent",
            Unit::Count => "count",
            Unit::Name => "name",
        }
    }

    fn tick(self, value: f64) -> String {
        match self {
            Unit::Time => number::short(number::time(Some(value))),
            Unit::Bytes => number::short(number::bytes(value)),
            Unit::Rate => number::short(number::gbps(Some(value))),
            Unit::Ratio => number::short(number::ratio(Some(value))),
            Unit::Share => number::percentile(value),
            Unit::Percent => format!("{value:.0}\u{202f}%"),
            Unit::Count => number::short(number::count(Some(value))),
            Unit::Name => String::new(),
        }
    }
}

/// One axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// How numbers are spread.
    pub scale: Scale,
    /// What they are.
    pub unit: Unit,
    /// What the axis shows, said beside it.
    pub title: String,
    /// Ends, after the scale's transformation.
    pub from: f64,
    /// See `from`.
    pub to: f64,
    /// Round numbers and their names.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A logarithmic axis that spans all positive values; `None` if there is none.
    pub fn log(values: impl Iterator<Item = f64> + Clone, unit: Unit, title: &str) -> Option<Axis> {
        let positive = values.filter(|v| *v > 0.0 && v.is_finite());
        let least = libm::log10(positive.clone().min_by(f64::total_cmp)?);
        let most = libm::log10(positive.max_by(f64::total_cmp)?);
        let space = if most - least < 0.3 { 0.2 } else { (most - least) * 0.02 };
        let mut axis = Axis {
            scale: Scale::Log,
            unit,
            title: title.into(),
            from: least - space,
            to: most + space,
            ticks: Vec::new(),
        };
        axis.ticks = axis.round_ticks().into_iter().map(|t| (t, unit.tick(t))).collect();
        Some(axis)
    }

    /// A linear axis between two numbers.
    pub fn linear(from: f64, to: f64, unit: Unit, title: &str) -> Axis {
        let to = if to > from { to } else { from + 1.0 };
        let rough = (to - from) / 5.0;
        let decade = libm::pow(10.0, libm::floor(libm::log10(rough)));
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * decade).into_iter().find(|s| *s >= rough).unwrap_or(rough);
        let first = libm::ceil(from / step) as i64;
        let last = libm::floor(to / step + 1e-9) as i64;
        let ticks = (first..=last).map(|n| n as f64 * step).map(|t| (t, unit.tick(t))).collect();
        Axis { scale: Scale::Linear, unit, title: title.into(), from, to, ticks }
    }

    /// The axis of percentiles, up to where a share of `least` remains.
    pub fn tail(least: f64, title: &str) -> Axis {
        let to = -libm::log10(least.clamp(1e-9, 0.5));
        let shares = [1.0, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];
        let ticks = shares.into_iter().filter(|s| -libm::log10(*s) <= to + 1e-9);
        let ticks = ticks.map(|s| (s, Unit::Share.tick(s))).collect();
        Axis { scale: Scale::Tail, unit: Unit::Share, title: title.into(), from: 0.0, to, ticks }
    }

    /// Where a number is, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let at = match self.scale {
            Scale::Linear => value,
            Scale::Log if value > 0.0 => libm::log10(value),
            Scale::Tail if value > 0.0 => -libm::log10(value),
            Scale::Log => self.from,
            Scale::Tail => self.to,
        };
        ((at - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// For the page's script: scale, ends, unit.
    pub fn data(&self) -> String {
        let scale = match self.scale {
            Scale::Linear => "linear",
            Scale::Log => "log",
            Scale::Tail => "tail",
        };
        format!("{scale} {} {} {}", self.from, self.to, self.unit.name())
    }

    /// 1, 2 and 5 of each decade; 1 of each, or of every second one, where those would be too many.
    fn round_ticks(&self) -> Vec<f64> {
        let decades = libm::floor(self.from) as i32..=libm::ceil(self.to) as i32;
        let inside = |steps: &[f64], every: i32| {
            let decades = decades.clone().filter(|d| d.rem_euclid(every) == 0);
            let all = decades.flat_map(|d| steps.iter().map(move |s| s * libm::pow(10.0, f64::from(d))));
            let (from, to) = (self.from - 1e-9, self.to + 1e-9);
            all.filter(|&t| (from..=to).contains(&libm::log10(t))).collect::<Vec<f64>>()
        };
        let choices = [inside(&[1.0, 2.0, 5.0], 1), inside(&[1.0, 3.0], 1), inside(&[1.0], 1), inside(&[1.0], 2)];
        choices.into_iter().find(|ticks| ticks.len() <= 7).unwrap_or_else(|| inside(&[1.0], 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        let log = |values: &[f64]| Axis::log(values.iter().copied(), Unit::Time, "").unwrap();
        assert_eq!(names(&log(&[95.0, 1200.0])), ["100\u{202f}µs", "200\u{202f}µs", "500\u{202f}µs", "1\u{202f}ms"]);
        assert_eq!(names(&log(&[1.0, 1e5])).len(), 6);
        assert_eq!(names(&log(&[50.0])), ["50\u{202f}µs"]);
        assert!(Axis::log([0.0, -1.0].into_iter(), Unit::Time, "").is_none());
        let linear = Axis::linear(0.0, 312_000.0, Unit::Bytes, "");
        assert_eq!(names(&linear), ["0", "100\u{202f}KB", "200\u{202f}KB", "300\u{202f}KB"]);
        let tail = Axis::tail(1e-3, "");
        assert_eq!(
            names(&tail),
            ["0", "50", "90", "99", "99.9"].map(|p| if p == "0" { "min".into() } else { format!("p{p}") })
        );
        assert_eq!((tail.place(1.0), tail.place(1e-3)), (0.0, 1.0));
    }
}
