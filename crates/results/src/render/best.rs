//! The best point of a sweep, in a sentence.

use crate::model::{Estimate, Point, Sweep, Tree, clean};
use crate::render::format;
use crate::statistics::censoring::shown;
use crate::statistics::points::columns_of;
use crate::statistics::shows::Column;
use crate::statistics::subject::Bound;

/// The number by which points are ranked: the one that is asked for, or the first one shown.
fn ranked(sweep: &Sweep) -> Option<Column> {
    let columns = columns_of(sweep);
    let trees: Vec<_> = sweep.points.iter().filter_map(|p| p.statistics.as_ref()).collect();
    let asked_for = sweep.best.as_ref().and_then(|name| Column::of(name, &trees));
    asked_for.or_else(|| columns.into_iter().find(|column| column.less_is_better.is_some()))
}

/// A sentence with the best point, and how many points are within the bounds; `None` if nothing was
/// asked.
pub(crate) fn verdict(sweep: &Sweep) -> Option<String> {
    if sweep.subject.is_empty() && sweep.best.is_none() {
        return None;
    }
    let column = ranked(sweep)?;
    let bounds: Vec<Bound> =
        sweep.subject.iter().filter_map(|text| Bound::parse(text).ok()).collect();
    let measured: Vec<(&Point, &Tree<Estimate>)> =
        sweep.points.iter().filter_map(|p| Some((p, p.statistics.as_ref()?))).collect();
    let (base, first) = *measured.first()?;
    let is_within =
        |tree: &Tree<Estimate>| bounds.iter().all(|of| of.holds(tree, first) == Some(true));
    let within: Vec<_> = measured.iter().filter(|(_, tree)| is_within(tree)).collect();
    let name = |point: &Point| {
        let values = point.values.iter().map(|(key, value)| format!("{key}={value}"));
        clean(&values.collect::<Vec<_>>().join(" "))
    };
    let texts: Vec<&str> = bounds.iter().map(|bound| bound.text.as_str()).collect();
    let of_first = match bounds.iter().any(|bound| bound.is_share) {
        true => format!(" (of {})", name(base)),
        false => String::new(),
    };
    let bounds = match texts.is_empty() {
        true => String::new(),
        false => format!(" with {}{of_first}", texts.join(" and ")),
    };
    let less = column.less_is_better.unwrap_or(true);
    let value = |tree: &Tree<Estimate>| shown(tree, &column.path);
    let best = within
        .iter()
        .filter_map(|(point, tree)| Some((point, value(tree), value(tree).estimate.mean?)))
        .min_by(|a, b| if less { a.2.total_cmp(&b.2) } else { b.2.total_cmp(&a.2) });
    let (n, all) = (within.len(), measured.len());
    Some(match best {
        Some((point, shown, _)) => format!(
            "{} {} at {}, the {} of {n} points of {all}{bounds}",
            clean(&column.caption),
            shown.text(|value| format::of(column.form, value)),
            name(point),
            if less { "least" } else { "most" },
        ),
        None => format!("none of {all} points is one{bounds}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::summary::{Fct, Summary};
    use crate::model::{Axis, Ordered};
    use crate::statistics::numbers::statistics;

    /// Three points with these means of mice and of elephants, and timeouts.
    fn sweep(points: [(f64, f64, u64); 3]) -> Sweep {
        let values = ["a", "b", "c"].map(String::from);
        let axis = Axis { key: "variant".into(), values: values.to_vec() };
        let plan = values.map(|value| (vec![value], Ok(String::new()))).to_vec();
        let mut sweep = Sweep::new("s", "1", vec![axis], vec![1], plan);
        for (point, (mice, elephants, timeouts)) in sweep.points.iter_mut().zip(points) {
            let fct = |mean| Fct { count: 1, mean: Some(mean), p99: Some(mean), ..Fct::default() };
            let fct_us = Ordered::from(vec![
                ("mice".into(), fct(mice)),
                ("elephants".into(), fct(elephants)),
            ]);
            point.statistics =
                Some(statistics(&Summary { fct_us, timeouts, ..Summary::default() }));
        }
        sweep
    }

    fn verdict_of(best: &str, subject: &[&str]) -> Option<String> {
        let mut sweep = sweep([(900.0, 1000.0, 9), (300.0, 1060.0, 0), (500.0, 1040.0, 4)]);
        sweep.best = (!best.is_empty()).then(|| best.to_string());
        sweep.subject = subject.iter().map(|text| text.to_string()).collect();
        verdict(&sweep)
    }

    #[test]
    fn best_point_is_the_best_of_those_within_the_bounds() {
        let best = |subject: &[&str]| verdict_of("mice.fct.mean", subject).unwrap();
        assert!(
            best(&[]).contains("300us at variant=b, the least of 3 points of 3"),
            "{}",
            best(&[])
        );
        let within = best(&["elephants.fct.mean <= 105 %"]);
        assert!(within.contains("500us at variant=c, the least of 2 points of 3"), "{within}");
        assert!(within.ends_with("with elephants.fct.mean <= 105 % (of variant=a)"), "{within}");
        let both = best(&["elephants.fct.mean <= 105 %", "timeouts <= 3"]);
        assert!(both.starts_with("none of 3 points"), "{both}");
        assert!(best(&["elephants.fct.mean <= 1.05ms"]).contains("500us at variant=c"));
        assert!(best(&["mice.fct.mean >= 0.8ms"]).contains("900us at variant=a, the least of 1"));
        assert_eq!(verdict_of("", &[]), None);
    }
}
