//! A reproduction as text: the claims, then our curves beside the published ones, at most 100
//! columns wide.
//!
//! Invariant: a mean never stands without the share of the queries that it is a mean of.

use crate::model::{Claim, Experiment, FEW, Reproduction, clean};
use crate::render::claims::{
    ANYWAY, about, absolutes, accepted, best_of, causes_text, completed, failing, measured,
    short_id, tally, value, within, worlds,
};
use crate::render::experiments::{Row, text_rows};
use crate::render::format::{digits, time};
use crate::render::text::layout::{WIDTH, filled, fitted, wrapped};

/// Columns of a claim's name and statement together, and of a name at least.
const WORDS: usize = 53;
const NAME: usize = 8;

/// How these are shared out: no name touches its statement.
#[derive(Clone, Copy)]
struct Columns {
    name: usize,
    statement: usize,
}

impl Columns {
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Columns {
        let longest = names.map(|name| name.chars().count() + 1).max().unwrap_or(0);
        let name = longest.clamp(NAME, WORDS / 2);
        Columns { name, statement: WORDS - name }
    }

    fn row(self, [name, statement, paper, measured, accept, status]: [&str; 6]) -> String {
        let Columns { name: id, statement: words } = self;
        let line = format!(
            "{name:<id$}{statement:<words$} {paper:>9} {measured:>9} {accept:>11}  {status}"
        );
        line.trim_end().to_string()
    }
}

/// The claims that `shown` picks, and what was run for them.
pub fn reproduction_table(of: &Reproduction, shown: impl Fn(&Claim) -> bool) -> String {
    let claims: Vec<&Claim> = of.claims.iter().filter(|claim| shown(claim)).collect();
    let mut lines = vec![
        format!("{} · {} · {}", clean(&of.title), clean(&of.effort), worlds(&claims)),
        String::new(),
    ];
    if !of.reading.is_empty() {
        lines.extend(broken(&clean(&of.reading), WIDTH - 1));
        lines.push(String::new());
    }
    let columns = Columns::of(claims.iter().map(|claim| short_id(of, claim)));
    lines.push(columns.row(["", "claim", "paper", "measured", "accepted", "status"]));
    for claim in &claims {
        lines.extend(claim_lines(columns, of, claim));
    }
    lines.push(String::new());
    lines.extend(tally(&claims));
    let failing = failing(&of.paper, &claims, &of.causes);
    if !failing.is_empty() {
        lines.push(causes_text(&failing));
    }
    for group in &failing {
        let ids: Vec<&str> = group.claims.iter().map(|claim| short_id(of, claim)).collect();
        lines.extend(wrapped("", &clean(&format!("{}: {}", group.title(), ids.join(", ")))));
    }
    for group in claims.chunk_by(|a, b| a.note == b.note).filter(|group| !group[0].note.is_empty())
    {
        let name = match group {
            [only] => short_id(of, only).to_string(),
            _ => format!("{}-{}", short_id(of, group[0]), short_id(of, group[group.len() - 1])),
        };
        lines.extend(wrapped(&name, &clean(&group[0].note)));
    }
    for experiment in &of.experiments {
        let is_shown = claims.iter().any(|claim| claim.scenario == experiment.scenario);
        if is_shown && experiment.rows().next().is_some() {
            lines.push(String::new());
            lines.extend(experiment_lines(experiment));
        }
    }
    lines.join("\n") + "\n"
}

fn claim_lines(columns: Columns, of: &Reproduction, claim: &Claim) -> Vec<String> {
    let mut statement = broken(&clean(&claim.statement), columns.statement);
    let (kind, rows) = (claim.kind.note().unwrap_or_default(), clean(&about(claim)));
    let anyway = if claim.holds_anyway() { ANYWAY } else { "" };
    let (best, open, spread) = (best_of(claim), completed(claim), within(claim));
    let words = [kind, &rows, &best, &open, &spread, anyway]
        .into_iter()
        .filter(|words| !words.is_empty())
        .map(|words| format!("· {words}"));
    statement.extend(broken(&words.collect::<Vec<_>>().join(" "), columns.statement));
    let (theirs, ours) = absolutes(claim);
    let first = columns.row([
        short_id(of, claim),
        statement.first().map_or("", String::as_str),
        &value(claim.paper, &claim.unit),
        &measured(claim, claim.measured),
        &accepted(claim),
        claim.status.name(),
    ]);
    let line = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_default();
    let more = (statement.len().saturating_sub(1)).max(theirs.len()).max(ours.len());
    let rest = (0..more).map(|at| {
        columns.row(["", &line(&statement, at + 1), &line(&theirs, at), &line(&ours, at), "", ""])
    });
    std::iter::once(first).chain(rest).collect()
}

/// Lines of at most so many columns; none without a word.
fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines = filled("", "", text.split_whitespace(), columns);
    lines.retain(|line| !line.is_empty());
    lines
}

fn experiment_lines(of: &Experiment) -> Vec<String> {
    let mut lines = wrapped(&of.name, &clean(&of.title));
    let about = match of {
        of if of.has_bounds() => OF_BOUNDS,
        of if !of.numbers().is_empty() => " of the number before it",
        of if of.has_calls() => "; a percentile is shown only where ten calls exceed it",
        _ => {
            "; “open at horizon” is the mean where an open query counts as if it ended with the run"
        }
    };
    lines.extend(fitted(rows(of)));
    let text = format!(
        "load: {};{} ± is half of the 95 % interval over seeds, below {FEW} of their range{about}",
        clean(&of.load_axis),
        simulated(of)
    );
    lines.extend(wrapped("note", &text));
    if !of.note.is_empty() {
        lines.extend(wrapped("note", &clean(&of.note)));
    }
    let mut sources: Vec<&str> =
        of.published.iter().map(|published| published.source.as_str()).collect();
    sources.dedup();
    for source in sources {
        lines.extend(wrapped("paper's", &clean(source)));
    }
    lines
}

fn rows(of: &Experiment) -> Vec<Vec<String>> {
    let has_load = of.has_loads() || of.numbers().is_empty();
    let first = |scheme: String, load: String| {
        std::iter::once(scheme).chain(has_load.then_some(load)).collect()
    };
    let heads =
        [["", ""], ["scheme", "load"]].map(|[scheme, load]| first(scheme.into(), load.into()));
    let cells = |row: &Row<'_>| first(clean(&row.scheme.label), digits(row.point.load));
    text_rows(of, heads, cells)
}

/// The note on a table with bounds.
const OF_BOUNDS: &str = " of the number before it; ≥ is a lower bound: flows were open at the end";

/// How long runs are: one time, or the shortest and the longest; nothing of a ledger's.
fn simulated(of: &Experiment) -> String {
    let points = of.rows().map(|(_, point)| point);
    let mut times: Vec<f64> = points.map(|point| point.simulated_s * 1e6).collect();
    times.sort_by(f64::total_cmp);
    match times.as_slice() {
        [.., 0.0] => String::new(),
        [first, .., last] if first != last => {
            format!(" each run simulates {} to {};", time(Some(*first)), time(Some(*last)))
        }
        all => format!(" each run simulates {};", time(all.first().copied())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::claim::Absolute;
    use crate::model::{
        ClaimKind, Estimate, Interval, IntervalKind, LoadPoint, Published, Scheme, Verdict,
    };
    use crate::render::format::NONE;

    #[test]
    fn the_table_fits_and_says_what_is_not_there() {
        let mut held = Claim {
            id: "canary-S1a".into(),
            statement: "a statement that is far too long for a single line of this table, so it \
                        is broken"
                .into(),
            paper: Some(-58.41),
            accept: [None, Some(-40.0)],
            unit: "percent".into(),
            note: "a note".into(),
            ..Claim::default()
        };
        held.judge(-61.23);
        let open =
            Claim { id: "canary-S2".into(), accept: [Some(-55.0), Some(-15.0)], ..held.clone() };
        let open = Claim { measured: None, status: Verdict::NotEvaluated, paper: None, ..open };
        let (mean, interval) = (Some(123_456_789.0), Some([1e6, 9e8]));
        let big = Estimate { mean, interval, n: 3, ..Estimate::default() };
        let point = LoadPoint {
            load: 95.0,
            runs: 3,
            planned: 5,
            mean_us: big,
            p99_us: big,
            ..LoadPoint::default()
        };
        let point = LoadPoint { mean_restricted_us: big, dropped: big, deflected: big, ..point };
        let scheme = Scheme {
            variant: "x".into(),
            label: "a scheme of a long name".into(),
            points: vec![point],
        };
        let published = Published {
            variant: "x".into(),
            loads: vec![95.0],
            mean_us: vec![2e6],
            p99_us: vec![3e6],
            ..Published::default()
        };
        let of = Reproduction {
            claims: vec![held, open],
            experiments: vec![Experiment {
                name: "headline".into(),
                schemes: vec![scheme],
                published: vec![published],
                ..Experiment::default()
            }],
            ..Reproduction::new("canary", "Canary", "0", "full")
        };
        let text = reproduction_table(&of, |_| true);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for part in [
            "-58.4%",
            "-61.2%",
            "≤ -40%",
            "holds",
            "-55…-15%",
            "not-evaluated",
            "published 2: 1 hold, 0 fail, 1 not evaluated",
            "2.00s",
            "3/5",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!reproduction_table(&of, |claim| claim.id.ends_with("S2")).contains("holds"));
    }

    #[test]
    fn a_long_name_does_not_touch_its_statement() {
        let claim = |id: &str| Claim {
            id: id.into(),
            statement: "a statement ".repeat(9),
            ..Claim::default()
        };
        let claims = vec![claim("canary-S1a"), claim("canary-V55-vertigo")];
        let text = reproduction_table(
            &Reproduction { claims, ..Reproduction::new("canary", "C", "0", "full") },
            |_| true,
        );
        assert!(
            text.contains("\nV55-vertigo a statement")
                && text.contains("\nS1a         a statement"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn a_doubtful_verdict_and_the_best_of_a_sweep_are_told() {
        let mut claim = Claim {
            id: "tlt-5".into(),
            accept: [None, Some(-40.0)],
            unit: "percent".into(),
            ..Claim::default()
        };
        claim.judge(-43.0);
        claim.spread(Some(Interval { ends: [-50.0, -38.5], kind: IntervalKind::Range }));
        claim.best_of = Some(12);
        let of =
            Reproduction { claims: vec![claim], ..Reproduction::new("tlt", "TLT", "0", "full") };
        let text =
            reproduction_table(&of, |_| true).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("· the best of 12 points · within the noise:"), "{text}");
        assert!(text.contains("range of the seeds -50.0% to -38.5%"), "{text}");
        assert!(text.contains("1 hold, 0 fail, 0 not evaluated; 1 within the noise"), "{text}");
    }

    #[test]
    fn counts_have_no_unit() {
        let accept = [None, Some(0.0)];
        let mut claim =
            Claim { id: "nrm-T5d5".into(), unit: "count".into(), accept, ..Claim::default() };
        claim.judge(597.0);
        let of =
            Reproduction { claims: vec![claim], ..Reproduction::new("nrm", "NRM", "0", "full") };
        let text = reproduction_table(&of, |_| true);
        let line = text.lines().find(|line| line.starts_with("T5d5")).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            ["T5d5", "–", "597", "≤", "0", "fails"],
            "{text}"
        );
    }

    #[test]
    fn a_relative_number_stands_beside_what_it_is_of_and_a_claim_names_its_rows() {
        let absolute =
            Absolute { unit: "us".into(), paper: Some(12_400.0), measured: 6140.0, against: None };
        let mut claim = Claim {
            id: "tlt-R2".into(),
            statement: "Baseline: foreground p99.9".into(),
            paper: Some(100.0),
            accept: [Some(85.0), Some(115.0)],
            unit: "percent".into(),
            experiment: "released".into(),
            schemes: vec!["DCTCP+TLT as released, and a name that goes on".into()],
            absolute: Some(absolute.clone()),
            ..Claim::default()
        };
        claim.judge(49.5);
        let against = Some(Absolute {
            unit: "Gb/s".into(),
            paper: None,
            measured: 123.0,
            against: Some(9.41),
        });
        let other = Claim {
            id: "tlt-R3".into(),
            absolute: against,
            kind: ClaimKind::Remembered,
            ..claim.clone()
        };
        let of = Reproduction {
            claims: vec![claim, other],
            ..Reproduction::new("tlt", "TLT", "0", "full")
        };
        let text = reproduction_table(&of, |_| true);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].contains("100.0%") && lines[3].contains("49.5%"), "{text}");
        assert!(
            lines[4].contains("· released: DCTCP+TLT as released")
                && lines[4].ends_with("12.4ms    6.14ms"),
            "{text}"
        );
        assert!(text.contains("123 Gb/s") && text.contains("vs 9.41 Gb/s"), "{text}");
        assert_eq!(text.matches("· remembered · released: DCTCP+TLT").count(), 1, "{text}");
        assert!(
            text.contains("\npublished 1: 0 hold, 1 fail, 0 not evaluated\nremembered 1: 0 hold"),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn other_numbers_have_their_columns_and_the_first_its_interval() {
        let point = |rate: f64| {
            let mut point = LoadPoint { runs: 2, planned: 2, ..LoadPoint::default() };
            point.add("goodput", "Gb/s", &[(1, rate - 1.0), (2, rate + 1.0)]);
            point.add("RTT p99.9", "us", &[(1, 250.0)]);
            point.add("share", "percent", &[]);
            point
        };
        let scheme = |label: &str, rate| Scheme {
            label: label.into(),
            points: vec![point(rate)],
            ..Scheme::default()
        };
        let schemes = vec![scheme("one", 5.0), scheme("other", 7.0)];
        let of = Experiment { schemes, ..Experiment::default() };
        let text = fitted(rows(&of)).join("\n");
        let words: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["goodput", "RTT"]);
        assert_eq!(words[1], ["scheme", "runs", "Gb/s", "±", "p99.9", "share"]);
        assert_eq!(
            (words[2][..3].join(" "), words[3][..3].join(" ")),
            ("one 2/2 5.00".into(), "other 2/2 7.00".into())
        );
        assert_eq!((words[2][4], words[2][5]), ("250us", NONE));
    }
}
