//! `report.html`: one page without scripts that needs nothing but itself.
//!
//! Invariant: the bytes depend on results that are identical from run to run: no wall-clock time, date or machine. Names
//! and texts from a scenario are escaped. The page asks the network for nothing, and says so to the browser.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cdf::Cdf;
use crate::chart;
use crate::compare::{VariantResult, grouped_warnings, read_compare, run_folder};
use crate::error::{At, Result};
use crate::format::{bytes, change, count, digits, percent, ratio, time, whole};
use crate::manifest::{Kind, Manifest};
use crate::summary::{Ordered, Status, Summary};
use crate::table::{FIGURES, Figure, completed};

const STYLE: &str = include_str!("page.css");

/// One of a variant's distributions.
type Pick = fn(&Cdf) -> &[(f64, f64)];

/// What a class' row shows of its FCT: head, field, form.
const FCT_FIELDS: [(&str, &str); 7] = [
    ("mean", "mean"),
    ("mean, open at horizon", "mean_restricted"),
    ("p50", "p50"),
    ("p90", "p90"),
    ("p99", "p99"),
    ("p99.9", "p999"),
    ("max", "max"),
];

/// Makes `DIR/report.html` again from the other files of a results folder, of a run or of a compare.
pub fn write_report(dir: &Path) -> Result<()> {
    let manifest = Manifest::read(dir)?;
    match manifest.kind {
        Kind::Run => write_run(dir, &Summary::read(dir)?, &manifest),
        Kind::Compare | Kind::Sweep => write_compare(dir, &read_compare(dir)?, &manifest),
    }
}

/// The page of one run whose Parquet files are in `dir`.
pub(crate) fn write_run(dir: &Path, summary: &Summary, manifest: &Manifest) -> Result<()> {
    let name = summary.variant.clone().unwrap_or_else(|| summary.name.clone());
    let cdfs = [(name, Cdf::read(&[dir.to_path_buf()], dir)?)];
    let mut page = String::new();
    let variant = summary.variant.as_ref().map_or(String::new(), |v| format!("variant {}, ", escape(v)));
    page_head(&mut page, &summary.name, &format!("{variant}seed {}", summary.seed));
    warnings(&mut page, &summary.warnings);
    run_verdict(&mut page, summary);
    run_classes(&mut page, summary);
    charts(&mut page, &cdfs);
    run_drops(&mut page, summary);
    run_mechanisms(&mut page, summary);
    page_foot(&mut page, manifest);
    replace(dir, &page)
}

/// The page of a compare whose runs are below `dir`.
pub(crate) fn write_compare(dir: &Path, results: &[VariantResult], manifest: &Manifest) -> Result<()> {
    let mut cdfs = Vec::new();
    for result in results {
        cdfs.push((result.variant.clone(), Cdf::read(&runs_of(dir, result), dir)?));
    }
    let mut page = String::new();
    let seeds = results.first().map_or(0, |first| first.seeds.len());
    let seeds = if seeds == 1 { "one seed".to_string() } else { format!("means over {seeds} seeds") };
    page_head(&mut page, &manifest.name, &format!("{} variants, {seeds}", results.len()));
    let ended = results.iter().filter(|result| result.status != Status::Complete);
    let ended = ended.map(|result| format!("{}: {}", result.variant, result.status.name()));
    warnings(&mut page, &ended.chain(grouped_warnings(results)).collect::<Vec<_>>());
    compare_verdict(&mut page, results);
    charts(&mut page, &cdfs);
    compare_classes(&mut page, results);
    compare_drops(&mut page, results);
    page_foot(&mut page, manifest);
    replace(dir, &page)
}

/// Where a variant's runs are.
fn runs_of(root: &Path, result: &VariantResult) -> Vec<PathBuf> {
    let folder = |seed: u64, several: bool| run_folder(root, &result.variant, seed, several);
    let several = !folder(0, false).join("summary.json").exists();
    result.seeds.iter().map(|&seed| folder(seed, several)).collect()
}

/// The page in place of an older one, at once.
fn replace(dir: &Path, page: &str) -> Result<()> {
    let (next, path) = (dir.join(".report.html"), dir.join("report.html"));
    crate::write_file(&next, page.as_bytes())?;
    fs::rename(&next, &path).at("replace", &path)
}

/// Text for the page: markup becomes text, control characters vanish.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}

fn page_head(page: &mut String, name: &str, what: &str) {
    let name = escape(name);
    // The policy forbids every request; the empty icon keeps browsers from asking for one.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline';img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{name} · millpond</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<header>\n<h1>{name}</h1>\n<p class=\"faint\">{what}</p>\n</header>\n"
    );
}

fn page_foot(page: &mut String, manifest: &Manifest) {
    let overrides = manifest.overrides.iter().map(|o| format!("<li><code>{}</code></li>", escape(o)));
    let overrides = overrides.collect::<String>();
    if !overrides.is_empty() {
        let _ = writeln!(page, "<h2>Overrides</h2>\n<ul>{overrides}</ul>");
    }
    if !manifest.scenario.is_empty() {
        let text = escape(&manifest.scenario);
        let _ = writeln!(page, "<h2>Scenario</h2>\n<details><summary>As resolved</summary><pre>{text}</pre></details>");
    }
    page.push_str(
        "<footer>\n<p>FCT: from a flow's start to its last byte delivered in order. QCT: from a query's start to its last \
         response complete. Slowdown: FCT over that of the same flow alone in the empty network. Percentiles are exact; \
         unfinished (open) flows are counted, not averaged. Statistics of nothing are –.</p>\n<p>Made by millpond.</p>\n\
         </footer>\n</main>\n</body>\n</html>\n",
    );
}

fn warnings(page: &mut String, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    let items: String = warnings.iter().map(|warning| format!("<li>{}</li>", escape(warning))).collect();
    let _ = writeln!(page, "<div class=\"warnings\"><strong>Warnings</strong><ul>{items}</ul></div>");
}

/// A table in a box that scrolls by itself. The cells are markup.
fn table(page: &mut String, class: &str, head: &[String], rows: &[Vec<String>]) {
    let _ = write!(page, "<div class=\"box\"><table class=\"{class}\"><thead><tr>");
    for cell in head {
        let _ = write!(page, "<th scope=\"col\">{cell}</th>");
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            match at {
                0 => drop(write!(page, "<th scope=\"row\">{cell}</th>")),
                _ if cell.starts_with("<td") => page.push_str(cell),
                _ => drop(write!(page, "<td>{cell}</td>")),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn texts<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

/// `✓ yes` or `✗ no`.
fn sign(good: bool, yes: &str, no: &str) -> String {
    if good { format!("<span class=\"good\">✓ {yes}</span>") } else { format!("<span class=\"bad\">✗ {no}</span>") }
}

fn run_verdict(page: &mut String, summary: &Summary) {
    let audit = &summary.audit;
    let sums = format!(
        "{} packets injected = {} delivered + {} dropped + {} in flight",
        audit.injected.packets, audit.delivered.packets, audit.dropped.packets, audit.in_flight.packets
    );
    let mut rows = vec![
        vec!["Run".into(), sign(summary.status == Status::Complete, "complete", summary.status.name()), String::new()],
        vec!["Audit".into(), sign(audit.conserved, "conserved", "not conserved"), sums],
    ];
    rows.extend(completion_rows(summary));
    rows.extend(packet_rows(summary));
    page.push_str("<h2>Verdict</h2>\n");
    table(page, "words", &texts(["", "", ""]), &rows);
}

fn share(part: u64, of: u64) -> String {
    percent((of > 0).then(|| part as f64 / of as f64))
}

/// What completed: flows, and queries if there are any.
fn completion_rows(summary: &Summary) -> Vec<Vec<String>> {
    let (flows, qct) = (&summary.flows, &summary.qct_us);
    let of_flows = format!(
        "{} of {} completed ({}); {} delivered{}",
        whole(flows.completed),
        whole(flows.started),
        share(flows.completed, flows.started),
        bytes(flows.bytes_delivered),
        flows.goodput_gbps.map_or(String::new(), |g| format!(", goodput {} Gb/s", digits(g)))
    );
    let all = |completed, started| sign(completed == started, "all completed", "some unfinished");
    let mut rows = vec![vec!["Flows".into(), all(flows.completed, flows.started), of_flows]];
    if qct.started > 0 {
        let of_queries = format!(
            "{} of {} completed ({}); QCT mean {}, p99 {}",
            whole(qct.completed),
            whole(qct.started),
            percent(qct.completed_fraction),
            time(qct.mean),
            time(qct.p99)
        );
        rows.push(vec!["Queries".into(), all(qct.completed, qct.started), of_queries]);
    }
    rows
}

/// What became of the packets.
fn packet_rows(summary: &Summary) -> Vec<Vec<String>> {
    let packets = &summary.packets;
    let losses = format!(
        "{} dropped, {} sent ({}); {} data packets sent again; {} timeouts",
        whole(packets.dropped),
        whole(packets.sent),
        share(packets.dropped, packets.sent),
        whole(packets.retransmitted),
        whole(summary.timeouts)
    );
    let signals = format!(
        "{} packets marked, {} deflected, {} out of order; {} PAUSE frames, {} overlay pauses; fairness (Jain) {}",
        whole(packets.ecn_marked),
        whole(packets.deflected),
        whole(packets.out_of_order),
        whole(summary.pause_frames),
        whole(summary.overlay_pauses),
        ratio(summary.fairness_jain)
    );
    vec![
        vec!["Losses".into(), sign(packets.dropped == 0, "none", "drops"), losses],
        vec!["Signals".into(), String::new(), signals],
    ]
}

fn run_classes(page: &mut String, summary: &Summary) {
    let mut head = texts(["class", "flows", "open"]);
    head.extend(FCT_FIELDS.map(|(name, _)| name.to_string()));
    head.extend(texts(["slowdown p50", "p99", "p99.9"]));
    let mut rows = Vec::new();
    for (class, fct) in summary.fct_us.iter() {
        let mut row = vec![escape(class), whole(fct.count), whole(fct.unfinished)];
        row.extend([fct.mean, fct.mean_restricted, fct.p50, fct.p90, fct.p99, fct.p999, fct.max].map(time));
        let slowdown = summary.slowdown.get(class);
        row.extend(
            [slowdown.and_then(|s| s.p50), slowdown.and_then(|s| s.p99), slowdown.and_then(|s| s.p999)].map(ratio),
        );
        rows.push(row);
    }
    page.push_str("<h2>Flow completion times by class</h2>\n");
    table(page, "", &head, &rows);
}

fn run_drops(page: &mut String, summary: &Summary) {
    page.push_str("<h2>Drops by reason</h2>\n");
    let packets = &summary.packets;
    if packets.dropped == 0 {
        page.push_str("<p>No packet was dropped.</p>\n");
        return;
    }
    let mut rows = Vec::new();
    for (reason, &n) in packets.dropped_by.iter().filter(|(_, n)| **n > 0) {
        let share = n as f64 / packets.dropped as f64;
        let bar = format!("<td class=\"bars\"><span class=\"bar\" style=\"width:{:.1}%\"></span></td>", share * 100.0);
        rows.push(vec![escape(reason), whole(n), percent(Some(share)), bar]);
    }
    table(page, "", &texts(["reason", "packets", "share", ""]), &rows);
}

fn run_mechanisms(page: &mut String, summary: &Summary) {
    let counters = summary.mechanisms.iter().flat_map(|(name, counters)| counters.iter().map(move |c| (name, c)));
    let rows: Vec<_> = counters.map(|(name, (counter, n))| vec![escape(name), escape(counter), whole(*n)]).collect();
    if !rows.is_empty() {
        page.push_str("<h2>Mechanisms</h2>\n");
        table(page, "", &texts(["mechanism", "counter", ""]), &rows);
    }
}

/// A figure's name in one line.
fn figure_name(figure: &Figure) -> String {
    let name = match figure.head {
        ["eleph.", rest] => format!("elephants {rest}"),
        ["time-", "outs"] => "timeouts".into(),
        [first, second] => format!("{first} {second}"),
    };
    name.trim().to_string()
}

fn compare_verdict(page: &mut String, results: &[VariantResult]) {
    page.push_str("<h2>Verdict</h2>\n");
    let Some((first, others)) = results.split_first() else { return };
    if !others.is_empty() {
        let _ = writeln!(page, "<p>Against {}, paired by seed:</p>\n<ul class=\"verdict\">", escape(&first.variant));
        for result in others {
            let _ = writeln!(page, "<li><strong>{}</strong>: {}</li>", escape(&result.variant), changes(result));
        }
        page.push_str("</ul>\n");
    }
    let mut head = texts(["variant", "flows done"]);
    head.extend(FIGURES.iter().map(figure_name));
    let best: Vec<Option<f64>> = FIGURES.iter().map(|figure| best_of(results, figure)).collect();
    let mut rows = Vec::new();
    for result in results {
        let mut row = vec![escape(&result.variant), percent(completed(result))];
        for (figure, best) in FIGURES.iter().zip(&best) {
            let value = result.statistics.leaf(figure.path).and_then(|estimate| estimate.mean);
            let class = if value.is_some() && value == *best { " class=\"best\"" } else { "" };
            let difference = result.differences.as_ref().and_then(|tree| tree.leaf(figure.path));
            let small = difference.map_or(String::new(), |d| match d.mean {
                Some(0.0) => "<small>0%</small>".into(),
                _ => format!("<small>{}</small>", change(d.relative)),
            });
            row.push(format!("<td{class}>{}{small}</td>", (figure.form)(value)));
        }
        rows.push(row);
    }
    table(page, "", &head, &rows);
    page.push_str(
        "<p class=\"faint\">Times are FCT unless QCT is said. The best of a column is bold; below a number is its \
                   change against the first variant.</p>\n",
    );
}

/// What changed for the better or worse by at least one percent, in words.
fn changes(result: &VariantResult) -> String {
    let mut parts = Vec::new();
    for figure in &FIGURES {
        let Some(less_is_better) = figure.less_is_better else { continue };
        let Some(difference) = result.differences.as_ref().and_then(|tree| tree.leaf(figure.path)) else { continue };
        let Some(mean) = difference.mean.filter(|mean| *mean != 0.0) else { continue };
        if difference.relative.is_some_and(|relative| relative.abs() < 0.01) {
            continue;
        }
        let better = (mean < 0.0) == less_is_better;
        let (class, sign) = if better { ("good", '▲') } else { ("bad", '▼') };
        // From zero there is no percentage: the number itself is said.
        let by = difference.relative.map_or_else(|| format!("0 → {}", (figure.form)(Some(mean))), |r| change(Some(r)));
        parts.push(format!("<span class=\"{class}\">{sign} {} {by}</span>", figure_name(figure)));
    }
    if parts.is_empty() { "no change of one percent or more".into() } else { parts.join(", ") }
}

/// The best value of a figure, if variants differ in it.
fn best_of(results: &[VariantResult], figure: &Figure) -> Option<f64> {
    let values: Vec<f64> = results.iter().filter_map(|r| r.statistics.leaf(figure.path)?.mean).collect();
    let (least, most) =
        (values.iter().copied().min_by(f64::total_cmp)?, values.iter().copied().max_by(f64::total_cmp)?);
    let best = if figure.less_is_better? { least } else { most };
    (least != most).then_some(best)
}

/// The keys of an object of the statistics, over all variants, each once.
fn keys(results: &[VariantResult], object: &[&str]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for (key, _) in results.iter().filter_map(|result| result.statistics.branch(object)).flat_map(Ordered::iter) {
        if !keys.iter().any(|other| other == key) {
            keys.push(key.to_string());
        }
    }
    keys
}

fn compare_classes(page: &mut String, results: &[VariantResult]) {
    page.push_str("<h2>Flow completion times by class</h2>\n");
    let mut head = texts(["variant", "flows", "open"]);
    head.extend(FCT_FIELDS.map(|(name, _)| name.to_string()));
    head.extend(texts(["slowdown p50", "p99", "p99.9"]));
    for class in keys(results, &["fct_us"]) {
        let mut rows = Vec::new();
        for result in results {
            let of = |object: &str, field: &str| result.statistics.leaf(&[object, &class, field]).and_then(|e| e.mean);
            let mut row =
                vec![escape(&result.variant), count(of("fct_us", "count")), count(of("fct_us", "unfinished"))];
            row.extend(FCT_FIELDS.map(|(_, field)| time(of("fct_us", field))));
            row.extend(["p50", "p99", "p999"].map(|field| ratio(of("slowdown", field))));
            rows.push(row);
        }
        let _ = writeln!(page, "<h3>{}</h3>", escape(&class));
        table(page, "", &head, &rows);
    }
}

fn compare_drops(page: &mut String, results: &[VariantResult]) {
    page.push_str("<h2>Drops by reason</h2>\n");
    let of = |result: &VariantResult, reason: &str| {
        result.statistics.leaf(&["packets", "dropped_by", reason]).and_then(|estimate| estimate.mean)
    };
    let mut reasons = keys(results, &["packets", "dropped_by"]);
    reasons.retain(|reason| results.iter().any(|result| of(result, reason).is_some_and(|n| n > 0.0)));
    if reasons.is_empty() {
        page.push_str("<p>No packet was dropped.</p>\n");
        return;
    }
    let mut head = vec!["variant".to_string(), "all".to_string()];
    head.extend(reasons.iter().map(|reason| escape(reason)));
    let mut rows = Vec::new();
    for result in results {
        let all = result.statistics.leaf(&["packets", "dropped"]).and_then(|estimate| estimate.mean);
        let mut row = vec![escape(&result.variant), count(all)];
        row.extend(reasons.iter().map(|reason| count(of(result, reason))));
        rows.push(row);
    }
    table(page, "", &head, &rows);
}

/// The distributions, all variants in one chart each.
fn charts(page: &mut String, cdfs: &[(String, Cdf)]) {
    let kinds: [(&str, Pick); 4] = [
        ("All flows, FCT", |cdf| &cdf.all),
        ("Mice, FCT", |cdf| &cdf.mice),
        ("Elephants, FCT", |cdf| &cdf.elephants),
        ("Queries, QCT", |cdf| &cdf.queries),
    ];
    page.push_str("<h2>Distributions</h2>\n");
    if cdfs.len() > 1 {
        page.push_str("<ul class=\"legend\">\n");
        for (number, (name, _)) in cdfs.iter().enumerate() {
            let line = format!(
                "<svg viewBox=\"0 0 30 8\"><path class=\"line {}\" d=\"M0 4H30\"/></svg>",
                chart::class(number)
            );
            let _ = writeln!(page, "<li>{line}{}</li>", escape(name));
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<div class=\"charts\">\n");
    let mut any = false;
    for (caption, points) in kinds {
        let series: Vec<_> = cdfs.iter().enumerate().map(|(number, (_, cdf))| (number, points(cdf))).collect();
        let svg = chart::cdf(&series, &format!("{caption}: share of those completed, over time"));
        if !svg.is_empty() {
            any = true;
            let _ = writeln!(page, "<figure>{svg}<figcaption>{caption}</figcaption></figure>");
        }
    }
    page.push_str("</div>\n");
    page.push_str(if any {
        "<p class=\"faint\">Share of the completed ones that took at most this long; the axis of time is logarithmic.</p>\n"
    } else {
        "<p>Nothing completed.</p>\n"
    });
}
