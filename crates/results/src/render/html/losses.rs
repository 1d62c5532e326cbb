//! Losses, why and where; what became of the packets; what the mechanisms counted.
//!
//! Invariant: a sentence reports zero drops; a place or reason without drops takes no room.

use indexmap::IndexMap;

use super::{Variant, has_seeds, keys};
use crate::render::document::{Block, Part, Stack, empty, note, row, section, table};
use crate::render::draw::number::{count, percent, ratio};
use crate::render::markup::escape;

const PLACES: usize = 12;

pub(crate) fn losses(variants: &[Variant]) -> [Block; 2] {
    let mut reasons = keys(variants, &["packets", "dropped_by"]);
    reasons.retain(|reason| variants.iter().any(|variant| dropped_by(variant, reason) > 0.0));
    let mut blocks = Vec::new();
    if reasons.is_empty() {
        blocks.push(empty("No packet was dropped."));
    } else {
        blocks.extend(by_reason(variants, &reasons));
        blocks.extend(by_place(variants).into_iter().flatten());
        blocks.extend(has_seeds(variants).then(|| note("Means over the seeds.")));
    }
    let packets = section("packets", "Packets and mechanisms", vec![packets(variants)]);
    [section("drops", "Drops", blocks), packets]
}

fn dropped_by(variant: &Variant, reason: &str) -> f64 {
    variant.number(&["packets", "dropped_by", reason]).unwrap_or(0.0)
}

/// The parts of a bar: of each reason as many packets, where the longest bar has `most`.
pub(crate) fn parts<'a>(
    reasons: impl IntoIterator<Item = (&'a str, Option<f64>)>,
    most: f64,
) -> Vec<Part> {
    let part = |(look, (reason, n)): (usize, (&str, Option<f64>))| {
        let title = format!("{}: {}", escape(reason), count(n));
        Some(Part { look, percent: n? / most * 100.0, title })
    };
    reasons.into_iter().enumerate().filter_map(part).collect()
}

/// A reason with the colour of its parts.
pub(crate) fn chip(number: usize, reason: &str) -> String {
    format!("<i class=\"chip r{}\"></i>{}", number % 8, escape(reason))
}

fn by_reason(variants: &[Variant], reasons: &[String]) -> [Block; 2] {
    let total =
        |variant: &Variant| reasons.iter().map(|reason| dropped_by(variant, reason)).sum::<f64>();
    let most = variants.iter().map(total).fold(0.0, f64::max);
    let stack = |(series, variant): (usize, &Variant)| {
        let sent = variant.number(&["packets", "sent"]).filter(|sent| *sent > 0.0);
        let share = percent(sent.map(|sent| total(variant) / sent));
        let words = format!("{} packets, {share} of sent", count(Some(total(variant))));
        let of = |reason: &String| Some(dropped_by(variant, reason)).filter(|n| *n > 0.0);
        let parts = parts(reasons.iter().map(|reason| (reason.as_str(), of(reason))), most);
        Stack { series, name: variant.marked(series), words, parts }
    };
    let cells = |(number, reason): (usize, &String)| {
        let of = |variant| count(Some(dropped_by(variant, reason)));
        row(chip(number, reason), variants.iter().map(of))
    };
    let rows = reasons.iter().enumerate().map(cells).collect();
    let stacks = Block::Stacks(variants.iter().enumerate().map(stack).collect());
    [stacks, table("", head("reason", variants), rows)]
}

/// The heads of a column and of one for each variant.
fn head(first: &str, variants: &[Variant]) -> Vec<String> {
    match variants {
        [_] => row(first, ["packets".to_string()]),
        _ => row(first, variants.iter().enumerate().map(|(at, variant)| variant.marked(at))),
    }
}

fn by_place(variants: &[Variant]) -> Option<[Block; 2]> {
    let mut most_at = IndexMap::<&str, f64>::new();
    for (place, n) in variants.iter().flat_map(|variant| &variant.places) {
        let most = most_at.entry(place).or_insert(*n);
        *most = n.max(*most);
    }
    let mut places: Vec<(&str, f64)> = most_at.into_iter().filter(|(_, n)| *n > 0.0).collect();
    places.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let most = places.first()?.1;
    let (shown, others) = places.split_at(places.len().min(PLACES));
    let of = |variant: &Variant, of: &[(&str, f64)]| {
        let own = variant.places.iter().filter(|(place, _)| of.iter().any(|(it, _)| it == place));
        own.map(|(_, n)| n).sum::<f64>()
    };
    let bar = |n: f64| {
        let width = n / most * 100.0;
        format!("<td class=\"bar\"><i style=\"width:{width:.1}%\"></i>{}</td>", count(Some(n)))
    };
    let cells = |place: &(&str, f64)| {
        let all = std::slice::from_ref(place);
        row(escape(place.0), variants.iter().map(|variant| bar(of(variant, all))))
    };
    let mut rows: Vec<Vec<String>> = shown.iter().map(cells).collect();
    if !others.is_empty() {
        let rest = variants.iter().map(|variant| count(Some(of(variant, others))));
        rows.push(row(format!("{} more places", others.len()), rest));
    }
    Some([Block::Heading("By place".into()), table("", head("place", variants), rows)])
}

/// The outcome of the packets, and the counters of mechanisms.
fn packets(variants: &[Variant]) -> Block {
    const COUNTERS: [(&str, &[&str]); 10] = [
        ("sent", &["packets", "sent"]),
        ("delivered", &["packets", "delivered"]),
        ("dropped", &["packets", "dropped"]),
        ("marked (ECN)", &["packets", "ecn_marked"]),
        ("deflected", &["packets", "deflected"]),
        ("sent again", &["packets", "retransmitted"]),
        ("out of order", &["packets", "out_of_order"]),
        ("timeouts", &["timeouts"]),
        ("PAUSE frames", &["pause_frames"]),
        ("overlay pauses", &["overlay_pauses"]),
    ];
    let of = |name: String, path: &[&str], form: fn(Option<f64>) -> String| {
        row(name, variants.iter().map(|variant| form(variant.number(path))))
    };
    let mut rows: Vec<_> =
        COUNTERS.iter().map(|(name, path)| of(name.to_string(), path, count)).collect();
    for mechanism in keys(variants, &["mechanisms"]) {
        for counter in keys(variants, &["mechanisms", &mechanism]) {
            let name = format!("{}: {}", escape(&mechanism), escape(&counter));
            rows.push(of(name, &["mechanisms", &mechanism, &counter], count));
        }
    }
    rows.push(of("fairness (Jain)".into(), &["fairness_jain"], ratio));
    table("", head("counter", variants), rows)
}
