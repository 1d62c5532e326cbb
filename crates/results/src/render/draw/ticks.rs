//! Which numbers an axis names, and how they are written.
//!
//! Invariant: ticks lie inside the axis, rise, and are written in full: a label read back is its
//! number, so no two labels are alike.

use super::unit::Unit;

/// Between a number and its unit: narrow, and no place to break a line.
const SPACE: char = '\u{202f}';
/// Fewer ticks than this leave a reader without a scale.
const LEAST: usize = 4;
/// More ticks than this on a logarithmic axis crowd it.
const MOST: usize = 7;
/// Digits behind the point that a label has at most.
const DECIMALS: usize = 12;

/// Units of one kind, each with what one of it is in the axis' own: ascending.
fn scales(unit: Unit) -> &'static [(f64, &'static str)] {
    match unit {
        Unit::Time => &[(1e-3, "ns"), (1.0, "µs"), (1e3, "ms"), (1e6, "s")],
        Unit::Bytes => &[(1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")],
        Unit::Rate => &[(1e-6, "kb/s"), (1e-3, "Mb/s"), (1.0, "Gb/s"), (1e3, "Tb/s")],
        Unit::Count => &[(1.0, ""), (1e6, "million")],
        Unit::Percent => &[(1.0, "%")],
        Unit::Ratio | Unit::Share | Unit::Name => &[(1.0, "")],
    }
}

/// The largest unit of which the value is at least one.
fn scale_of(unit: Unit, value: f64) -> (f64, &'static str) {
    let all = scales(unit);
    // A value that is computed for a power of ten may lie just below it.
    all.iter()
        .rev()
        .find(|(one, _)| value.abs() >= one * (1.0 - 1e-9))
        .or(all.first())
        .copied()
        .unwrap_or((1.0, ""))
}

/// Digits behind the point that write `value` in full, as far as doubles go.
fn decimals(value: f64) -> usize {
    let is_whole = |digits: &usize| {
        let shifted = value.abs() * libm::pow(10.0, *digits as f64);
        libm::fabs(shifted - libm::round(shifted)) <= 1e-7 * shifted.max(1e-3)
    };
    (0..DECIMALS).find(is_whole).unwrap_or(DECIMALS)
}

/// A number with its thousands apart and a typographic minus.
fn written(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (at, c) in whole.chars().enumerate() {
        // Four digits are read at a glance.
        if at > 0 && (whole.len() - at) % 3 == 0 && whole.len() > 4 {
            grouped.push(',');
        }
        grouped.push(c);
    }
    let is_zero = text.chars().all(|c| matches!(c, '0' | '.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

/// One number by itself, with its unit.
pub(crate) fn label(unit: Unit, value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let (one, name) = scale_of(unit, value);
    let number = written(value / one, decimals(value / one));
    if name.is_empty() { number } else { format!("{number}{SPACE}{name}") }
}

/// Multiples of a step of 1, 2 or 5 times a power of ten: the largest step that gives at least
/// [`LEAST`] of them.
fn multiples(from: f64, to: f64) -> (f64, Vec<f64>) {
    let top = libm::floor(libm::log10(to - from)) as i32 + 1;
    let steps = (-2..=1)
        .rev()
        .flat_map(|down| [5.0, 2.0, 1.0].map(|s| s * libm::pow(10.0, f64::from(top + down))));
    let mut found = (to - from, Vec::new());
    for step in steps {
        let slack = (to - from) * 1e-9;
        let (first, last) = (libm::ceil((from - slack) / step), libm::floor((to + slack) / step));
        let count = (last - first) as i64 + 1;
        let tick = |n: i64| ((first + n as f64) * step).clamp(from, to);
        found = (step, (0..count.max(0)).map(tick).collect());
        if found.1.len() >= LEAST {
            break;
        }
    }
    found
}

/// Ticks of an even axis and the unit that all of them share; it stands once, beside the axis.
pub(crate) fn even(from: f64, to: f64, unit: Unit) -> (Vec<(f64, String)>, &'static str) {
    let (step, ticks) = multiples(from, to);
    let most = ticks.iter().fold(0.0_f64, |most, tick| most.max(tick.abs()));
    let (one, name) = scale_of(unit, most);
    let digits = decimals(step / one);
    // A clamped end differs from its multiple by rounding alone.
    (ticks.into_iter().map(|tick| (tick, written(tick / one, digits))).collect(), name)
}

/// Ticks of a logarithmic axis between two positive numbers: 1, 2 and 5 of each decade; fewer where
/// those would crowd it, and multiples of a step where the axis is too short for them.
pub(crate) fn by_decades(from: f64, to: f64, unit: Unit) -> Vec<(f64, String)> {
    let (low, high) = (libm::log10(from), libm::log10(to));
    let decades = libm::floor(low) as i32..=libm::ceil(high) as i32;
    let inside = |steps: &[f64], every: i32| {
        let decades = decades.clone().filter(|d| d.rem_euclid(every) == 0);
        let all =
            decades.flat_map(|d| steps.iter().map(move |s| s * libm::pow(10.0, f64::from(d))));
        all.filter(|&t| (low - 1e-9..=high + 1e-9).contains(&libm::log10(t))).collect::<Vec<f64>>()
    };
    let mut ticks = [inside(&[1.0, 2.0, 5.0], 1), inside(&[1.0, 3.0], 1), inside(&[1.0], 1)]
        .into_iter()
        .find(|ticks| ticks.len() <= MOST)
        .or_else(|| (2..).map(|every| inside(&[1.0], every)).find(|ticks| ticks.len() <= MOST))
        .unwrap_or_default();
    if ticks.len() < LEAST - 1 {
        ticks = multiples(from, to).1;
    }
    ticks.into_iter().map(|tick| (tick, label(unit, tick))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNITS: [Unit; 6] =
        [Unit::Time, Unit::Bytes, Unit::Rate, Unit::Ratio, Unit::Percent, Unit::Count];

    /// A label's number in the axis' own unit.
    fn read(text: &str, unit: Unit, shared: &str) -> f64 {
        let (number, own) = text.split_once(SPACE).unwrap_or((text, shared));
        let (one, _) =
            scales(unit).iter().find(|(_, name)| *name == own).copied().unwrap_or((1.0, ""));
        number.replace('−', "-").replace(',', "").parse::<f64>().unwrap() * one
    }

    #[track_caller]
    fn are_sound(ticks: &[(f64, String)], from: f64, to: f64, unit: Unit, shared: &str) {
        assert!((2..=10).contains(&ticks.len()), "{ticks:?} of {from} to {to}");
        assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0), "{ticks:?}");
        assert!(
            ticks.iter().all(|(tick, _)| (from..=to).contains(tick)),
            "{ticks:?} of {from} to {to}"
        );
        for (at, (tick, name)) in ticks.iter().enumerate() {
            let off = (read(name, unit, shared) - tick).abs();
            assert!(off <= (to - from) * 1e-5, "{name} {shared} stands for {tick}");
            assert!(
                ticks[..at].iter().all(|(_, other)| other != name),
                "{name} twice in {ticks:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn even_ticks_are_inside_distinct_and_true(
            from in prop_oneof![Just(0.0), -1e6..1e6f64, 99.0..100.0f64],
            decade in -4..8i32,
            part in 1.0..10.0f64,
            unit in 0..6usize,
        ) {
            let to = from + part * libm::pow(10.0, f64::from(decade));
            let (ticks, shared) = even(from, to, UNITS[unit]);
            prop_assert!(ticks.len() >= LEAST, "{:?}", ticks);
            are_sound(&ticks, from, to, UNITS[unit], shared);
        }

        #[test]
        fn logarithmic_ticks_are_inside_distinct_and_true(
            decade in -3..7i32,
            part in 1.0..10.0f64,
            span in 1.01..1e6f64,
            unit in 0..6usize,
        ) {
            let from = part * libm::pow(10.0, f64::from(decade));
            let ticks = by_decades(from * (1.0 - 1e-12), from * span * (1.0 + 1e-12), UNITS[unit]);
            prop_assert!(ticks.len() >= LEAST - 1, "{:?}", ticks);
            let slack = from * span * 1e-8;
            are_sound(&ticks, from - slack, from * span + slack, UNITS[unit], "");
        }
    }

    fn names(ticks: &[(f64, String)]) -> Vec<&str> {
        ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn a_narrow_range_has_digits_enough() {
        let (ticks, shared) = even(99.0, 100.0, Unit::Percent);
        assert_eq!(
            (names(&ticks), shared),
            (vec!["99.0", "99.2", "99.4", "99.6", "99.8", "100.0"], "%")
        );
        let (ticks, shared) = even(0.0, 312_000.0, Unit::Bytes);
        assert_eq!((names(&ticks), shared), (vec!["0", "100", "200", "300"], "KB"));
        let (ticks, shared) = even(0.0, 1200.0, Unit::Time);
        assert_eq!(
            (names(&ticks), shared),
            (vec!["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2"], "ms")
        );
    }

    #[test]
    fn a_short_logarithmic_axis_has_more_than_one_tick() {
        assert_eq!(names(&by_decades(42.0, 88.0, Unit::Ratio)), ["50", "60", "70", "80"]);
        assert!(by_decades(50.0, 50.9, Unit::Time).len() >= LEAST);
        assert_eq!(names(&by_decades(1.0, 1e5, Unit::Time)).len(), 6);
    }

    #[test]
    fn numbers_are_written_in_full() {
        let all = [
            (Unit::Time, 1250.0),
            (Unit::Count, 12_000.0),
            (Unit::Count, 2.5e6),
            (Unit::Rate, 0.2),
        ];
        let names: Vec<String> = all.into_iter().map(|(unit, value)| label(unit, value)).collect();
        assert_eq!(names, ["1.25\u{202f}ms", "12,000", "2.5\u{202f}million", "200\u{202f}Mb/s"]);
        assert_eq!(label(Unit::Ratio, -0.5), "−0.5");
    }
}
