//! Losses, why and where; what became of the packets; what the mechanisms counted.
//!
//! Invariant: zero drops are said in words; a place or reason without drops takes no room.

use indexmap::IndexMap;
use std::fmt::Write;

use super::number::{count, percent};
use super::page::{empty, end, escape, note, section, table};
use super::series::swatch;
use super::{Variant, keys};

/// Places that are listed.
const PLACES: usize = 12;

/// The section.
pub(crate) fn losses(page: &mut String, variants: &[Variant]) {
    section(page, "drops", "Drops");
    let mut reasons = keys(variants, &["packets", "dropped_by"]);
    reasons.retain(|reason| variants.iter().any(|variant| dropped_by(variant, reason) > 0.0));
    if reasons.is_empty() {
        empty(page, "No packet was dropped.");
    } else {
        by_reason(page, variants, &reasons);
        by_place(page, variants);
        if variants.iter().any(|variant| variant.runs.len() > 1) {
            note(page, "Means over the seeds.");
        }
    }
    end(page);
    section(page, "packets", "Packets and mechanisms");
    packets(page, variants);
    end(page);
}

fn dropped_by(variant: &Variant, reason: &str) -> f64 {
    variant.number(&["packets", "dropped_by", reason]).unwrap_or(0.0)
}

fn by_reason(page: &mut String, variants: &[Variant], reasons: &[String]) {
    let total =
        |variant: &Variant| reasons.iter().map(|reason| dropped_by(variant, reason)).sum::<f64>();
    let most = variants.iter().map(total).fold(0.0, f64::max);
    page.push_str("<div class=\"reasons\">");
    for (at, variant) in variants.iter().enumerate() {
        let sent = variant.number(&["packets", "sent"]).filter(|sent| *sent > 0.0);
        let share = percent(sent.map(|sent| total(variant) / sent));
        let _ = write!(
            page,
            "<div data-v=\"{at}\"><span class=\"name\">{}{}</span><span class=\"total\">{} \
             packets, {share} of sent</span><span class=\"stack\">",
            swatch(at),
            escape(&variant.result.variant),
            count(Some(total(variant)))
        );
        for (number, reason) in reasons.iter().enumerate() {
            let n = dropped_by(variant, reason);
            if n > 0.0 {
                let (n, width) = (count(Some(n)), n / most * 100.0);
                let reason = escape(reason);
                let _ = write!(
                    page,
                    "<i class=\"r{}\" style=\"width:{width:.2}%\" title=\"{reason}: {n}\"></i>",
                    number % 8
                );
            }
        }
        page.push_str("</span></div>");
    }
    page.push_str("</div>\n");
    let head: Vec<String> = std::iter::once("reason".to_string()).chain(names(variants)).collect();
    let row = |(number, reason): (usize, &String)| {
        let key = format!("<i class=\"chip r{}\"></i>{}", number % 8, escape(reason));
        std::iter::once(key)
            .chain(variants.iter().map(|v| count(Some(dropped_by(v, reason)))))
            .collect()
    };
    table(page, "", &head, &reasons.iter().enumerate().map(row).collect::<Vec<_>>());
}

/// The heads of columns.
fn names(variants: &[Variant]) -> impl Iterator<Item = String> {
    let one = variants.len() == 1;
    variants.iter().enumerate().map(move |(at, variant)| {
        if one {
            "packets".to_string()
        } else {
            format!("{}{}", swatch(at), escape(&variant.result.variant))
        }
    })
}

fn by_place(page: &mut String, variants: &[Variant]) {
    let mut most_at = IndexMap::<&str, f64>::new();
    for (place, n) in variants.iter().flat_map(|variant| &variant.places) {
        let most = most_at.entry(place).or_insert(*n);
        *most = n.max(*most);
    }
    let mut places: Vec<(&str, f64)> = most_at.into_iter().collect();
    places.retain(|(_, n)| *n > 0.0);
    if places.is_empty() {
        return;
    }
    places.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let most = places[0].1;
    let of = |variant: &Variant, place: &str| {
        variant.places.iter().find(|(p, _)| p == place).map_or(0.0, |(_, n)| *n)
    };
    let bar = |n: f64| {
        let width = n / most * 100.0;
        format!("<td class=\"bar\"><i style=\"width:{width:.1}%\"></i>{}</td>", count(Some(n)))
    };
    let row = |place: &str| {
        std::iter::once(escape(place))
            .chain(variants.iter().map(|variant| bar(of(variant, place))))
            .collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> =
        places.iter().take(PLACES).map(|(place, _)| row(place)).collect();
    if places.len() > PLACES {
        let shown: Vec<&str> = places[..PLACES].iter().map(|(place, _)| *place).collect();
        let is_rest = |(place, _): &&(String, f64)| !shown.contains(&place.as_str());
        let rest =
            |variant: &Variant| variant.places.iter().filter(is_rest).map(|(_, n)| n).sum::<f64>();
        let others = format!("{} more places", places.len() - PLACES);
        rows.push(
            std::iter::once(others)
                .chain(variants.iter().map(|variant| count(Some(rest(variant)))))
                .collect(),
        );
    }
    page.push_str("<h3>By place</h3>\n");
    let head: Vec<String> = std::iter::once("place".to_string()).chain(names(variants)).collect();
    table(page, "", &head, &rows);
}

/// The outcome of the packets, and the counters of mechanisms.
fn packets(page: &mut String, variants: &[Variant]) {
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
    let mut rows = Vec::new();
    let mut push = |name: String, path: &[&str]| {
        rows.push(
            std::iter::once(name)
                .chain(variants.iter().map(|v| count(v.number(path))))
                .collect::<Vec<_>>(),
        );
    };
    for (name, path) in COUNTERS {
        push(name.into(), path);
    }
    for mechanism in keys(variants, &["mechanisms"]) {
        for counter in keys(variants, &["mechanisms", &mechanism]) {
            push(
                format!("{}: {}", escape(&mechanism), escape(&counter)),
                &["mechanisms", &mechanism, &counter],
            );
        }
    }
    let fairness = variants.iter().map(|v| super::number::ratio(v.number(&["fairness_jain"])));
    rows.push(std::iter::once("fairness (Jain)".to_string()).chain(fairness).collect());
    let head: Vec<String> = std::iter::once("counter".to_string()).chain(names(variants)).collect();
    table(page, "", &head, &rows);
}
