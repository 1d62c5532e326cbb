//! The page of a paper: its claims beside what the last full run measured.
//!
//! The page is generated from `paper.toml` and `results.json`, and holds nothing else; a test fails
//! where it differs from them. Longer analyses are written by hand in `docs/`.

use crate::error::Error;
use crate::experiment::Effort;
use crate::file::{PAPER, built_file, papers, read_paper};
use crate::paper::Paper;
use crate::reproducing::Ended;
use millpond_results::{
    Absolute, Claim, ClaimKind, KindCounts, Manifest, Noise, Verdict, kind_counts,
};
use millpond_scenario::folder_of;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

/// Beside `paper.toml`: what was measured.
pub const RESULTS: &str = "results.json";
/// Beside `paper.toml`: the page.
pub const PAGE: &str = "page.md";

/// The measurements of a run of a paper, as its folder keeps them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub version: String,
    /// The revision that it was built from.
    pub revision: String,
    /// The day of the run, `2026-11-25`.
    pub date: String,
    /// `full` or `quick`.
    pub effort: String,
    pub claims: Vec<Claim>,
}

impl Recorded {
    /// Of a reproduction that has ended now; `manifest` is of this program.
    pub fn of(ended: &Ended, effort: Effort, manifest: &Manifest) -> Recorded {
        let date = manifest.started_at.chars().take_while(|c| *c != 'T').collect();
        let (version, revision) = (manifest.version.clone(), manifest.revision.clone());
        let claims = ended.reproduction.claims.clone();
        Recorded { version, revision, date, effort: effort.name().to_string(), claims }
    }

    /// Reads the `results.json` of a paper's folder.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is no such file.
    pub fn read(folder: &Path) -> Result<Recorded, Error> {
        let path = folder.join(RESULTS);
        let wrong = |e: String| Error::Usage(format!("{}: {e}", path.display()));
        let text = std::fs::read(&path).map_err(|e| wrong(e.to_string()))?;
        serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))
    }

    /// The record of a paper: compiled in, or in the folder by whose name it was found.
    ///
    /// # Errors
    ///
    /// If there is no record, or if it cannot be read.
    pub fn find(paper: &Paper, name: &str) -> Result<Recorded, Error> {
        let is_built_in = papers().iter().any(|built| built.name == paper.name);
        if !is_built_in {
            let path = Path::new(name);
            let is_file = path.ends_with(PAPER);
            return Recorded::read(if is_file { folder_of(path) } else { path });
        }
        let wrong = |e: String| Error::Usage(format!("papers/{}/{RESULTS}: {e}", paper.name));
        let text = built_file(paper, RESULTS).ok_or_else(|| wrong("is not there".to_string()))?;
        serde_json::from_str(text).map_err(|e| wrong(e.to_string()))
    }

    /// The run in words: `full run of 2026-11-25, revision 28e457c7c6f2`.
    pub(crate) fn run(&self) -> String {
        format!("{} run of {}, revision {}", self.effort, self.date, self.revision)
    }

    /// Whether a run of a paper may replace the record of a folder; to be asked before the run.
    ///
    /// # Errors
    ///
    /// If the folder has another paper; if it has a full run, this one is quick, and `force` is
    /// off.
    pub fn may_replace(
        paper: &Paper,
        effort: Effort,
        folder: &Path,
        force: bool,
    ) -> Result<(), Error> {
        let at = folder.display();
        if folder.join(PAPER).is_file() && read_paper(folder)?.name != paper.name {
            return Err(Error::Usage(format!(
                "{at} is the folder of another paper than {}",
                paper.name
            )));
        }
        let has_full = Recorded::read(folder).is_ok_and(|old| old.effort == Effort::Full.name());
        if effort == Effort::Quick && has_full && !force {
            let text = format!(
                "{at} has the results of a full run; --force replaces them by those of --quick"
            );
            return Err(Error::Usage(text));
        }
        Ok(())
    }

    /// Writes `results.json` and `page.md` into a paper's folder.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn write(&self, paper: &Paper, folder: &Path) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).map_err(|e| Error::Runs(e.to_string()))?;
        for (name, text) in [(RESULTS, text + "\n"), (PAGE, page(paper, self))] {
            let path = folder.join(name);
            std::fs::write(&path, text)
                .map_err(|e| Error::Runs(format!("cannot write {}: {e}", path.display())))?;
        }
        Ok(())
    }
}

pub fn page(paper: &Paper, recorded: &Recorded) -> String {
    let mut page = format!("# {}\n\n", paper.title);
    let claims = &recorded.claims;
    let of = |status: Verdict| claims.iter().filter(move |claim| claim.status == status);
    let (hold, fail) = (of(Verdict::Holds).count(), of(Verdict::Fails).count());
    // Other papers may be in any folder.
    let is_built_in = papers().iter().any(|built| built.name == paper.name);
    let name = if is_built_in { paper.name.as_str() } else { "FOLDER" };
    let _ = write!(
        page,
        "{hold} of {} claims hold, {fail} fail. `millpond reproduce {name}` runs the experiments \
         and decides the claims; this page is generated from [paper.toml](paper.toml) and \
         [results.json](results.json) ({run}).\n\n",
        claims.len(),
        run = recorded.run()
    );
    page += "| kind | claims | hold | fail | not evaluated | hold without the mechanism, too \
             |\n|---|---|---|---|---|---|\n";
    for of in kind_counts(&claims.iter().collect::<Vec<_>>()) {
        let KindCounts { kind, all, verdicts: [hold, fail, open], anyway, .. } = of;
        let _ = writeln!(page, "| {} | {all} | {hold} | {fail} | {open} | {anyway} |", kind.name());
    }
    let failing: Vec<&Claim> = of(Verdict::Fails).collect();
    table(&mut page, paper, "Claims that fail", &failing);
    let holding: Vec<&Claim> = of(Verdict::Holds).collect();
    table(&mut page, paper, "Claims that hold", &holding);
    let open: Vec<&Claim> = of(Verdict::NotEvaluated).collect();
    not_evaluated(&mut page, paper, &open);
    page
}

/// The claims that no run decided, by reason in the order of the first claim of each.
fn not_evaluated(page: &mut String, paper: &Paper, claims: &[&Claim]) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for claim in claims {
        let name = short(paper, claim);
        match reasons.iter_mut().find(|(note, _)| *note == claim.note) {
            Some((_, names)) => names.push(name),
            None => reasons.push((&claim.note, vec![name])),
        }
    }
    if !reasons.is_empty() {
        *page += "\n## Claims that are not evaluated\n\n| claims | reason |\n|---|---|\n";
    }
    for (note, names) in reasons {
        let _ = writeln!(page, "| {} | {} |", names.join(", "), cell(note));
    }
}

/// Setting, question and number of a statement `SETTING: QUESTION is NUMBER UNIT`; empty parts are
/// not there.
fn parts(claim: &Claim) -> [&str; 3] {
    let (setting, rest) = claim.statement.rsplit_once(": ").unwrap_or(("", &claim.statement));
    let is_number =
        |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) && text.split(' ').count() == 2;
    match rest.rsplit_once(" is ") {
        Some((question, number)) if is_number(number) => [setting, question, number],
        _ => [setting, rest, ""],
    }
}

/// A table of claims. Those that ask the same in several settings follow the others, below a row
/// with their question.
fn table(page: &mut String, paper: &Paper, title: &str, claims: &[&Claim]) {
    let mut asked: Vec<Vec<&Claim>> = Vec::new();
    for &claim in claims {
        let key = |of: &Claim| (parts(of)[1].to_string(), of.accept);
        match asked.iter_mut().find(|of| key(of[0]) == key(claim)) {
            Some(of) => of.push(claim),
            None => asked.push(vec![claim]),
        }
    }
    asked.sort_by_key(|claims| claims.len() > 1);
    if !asked.is_empty() {
        let _ = write!(
            page,
            "\n## {title}\n\n| claim | statement | published | accepted | measured | |\n\
             |---|---|---|---|---|---|\n"
        );
    }
    for claims in asked {
        let is_shared = claims.len() > 1;
        if is_shared {
            let whole = if is_of_published(claims[0]) { " of published" } else { "" };
            let (question, accepted) = (cell(parts(claims[0])[1]), accepted(claims[0]));
            let _ = writeln!(page, "| | **{question}** | | {accepted}{whole} | | |");
        }
        for claim in claims {
            let [setting, _, number] = parts(claim);
            let statement = cell(if is_shared { setting } else { &claim.statement });
            let has_number = is_shared && !number.is_empty();
            let published = if has_number { number.to_string() } else { published(claim) };
            let accepted = if is_shared { String::new() } else { accepted(claim) + " " };
            let (name, measured, remarks) = (short(paper, claim), measured(claim), remarks(claim));
            let _ = writeln!(
                page,
                "| {name} | {statement} | {published} | {accepted}| {measured} | {remarks}|"
            );
        }
    }
}

/// Whether the claim's number is the share of a published one.
fn is_of_published(claim: &Claim) -> bool {
    claim.unit == "percent" && claim.paper == Some(100.0)
}

fn published(claim: &Claim) -> String {
    let number = claim.paper.map(|value| format!("{}{}", plain(value), unit(&claim.unit)));
    match (absolute(claim, |a| a.paper), number) {
        (Some(absolute), Some(_)) if is_of_published(claim) => absolute,
        (Some(absolute), Some(number)) => format!("{number}, {absolute}"),
        (_, number) => number.unwrap_or("–".to_string()),
    }
}

/// The claim's number. If it fails, a spread over seeds of more than a percent follows.
fn measured(claim: &Claim) -> String {
    let Some(value) = claim.measured else { return "–".to_string() };
    let wide = |[low, high]: &[f64; 2]| high - low > value.abs() / 100.0;
    let spread = claim.interval.filter(|ends| claim.status == Verdict::Fails && wide(ends));
    let spread = spread.map(|ends| ends.map(plain));
    let spread = spread.map_or(String::new(), |[low, high]| format!(" ({low} to {high})"));
    let ours = absolute(claim, |a| Some(a.measured)).map_or(String::new(), |a| format!(", {a}"));
    let number = || format!("{}{}{spread}{ours}", plain(value), unit(&claim.unit));
    claim.held(value).unwrap_or_else(number)
}

/// The claim's kind, unless it is published, and what its verdict is worth.
fn remarks(claim: &Claim) -> String {
    let mut remarks: Vec<&str> = Vec::new();
    if claim.kind != ClaimKind::Published {
        remarks.push(claim.kind.name());
    }
    let open =
        claim.completed_percent().map(|percent| format!("only {} % completed", plain(percent)));
    remarks.extend(open.as_deref());
    if claim.noise == Noise::Within {
        remarks.push("within the noise");
    }
    if claim.holds_anyway() {
        remarks.push("also without it");
    }
    let text = remarks.join(", ");
    if text.is_empty() { text } else { text + " " }
}

/// The claim's name without the paper's.
fn short<'a>(paper: &Paper, claim: &'a Claim) -> &'a str {
    claim
        .id
        .strip_prefix(paper.name.as_str())
        .and_then(|id| id.strip_prefix('-'))
        .unwrap_or(&claim.id)
}

/// The number that a relative one stands for.
fn absolute(claim: &Claim, of: impl Fn(&Absolute) -> Option<f64>) -> Option<String> {
    let absolute = claim.absolute.as_ref()?;
    let value = of(absolute)?;
    match absolute.unit.as_str() {
        "us" => Some(time(value)),
        unit if unit == claim.unit => None,
        "Gb/s" => Some(format!("{} Gb/s", plain(value))),
        _ => Some(plain(value)),
    }
}

fn unit(unit: &str) -> &'static str {
    match unit {
        "percent" => " %",
        "us" => " µs",
        _ => "",
    }
}

fn accepted(claim: &Claim) -> String {
    if let Some(least) = claim.least() {
        return least;
    }
    let unit = unit(&claim.unit);
    match claim.accept {
        [Some(low), Some(high)] => format!("{} to {}{unit}", plain(low), plain(high)),
        [Some(low), None] => format!("≥ {}{unit}", plain(low)),
        [None, Some(high)] => format!("≤ {}{unit}", plain(high)),
        [None, None] => "–".to_string(),
    }
}

fn time(us: f64) -> String {
    match us.abs() {
        us if us >= 1e6 => format!("{} s", plain(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", plain(us / 1e3)),
        us => format!("{} µs", plain(us)),
    }
}

/// Three significant digits, and all digits of larger whole numbers.
fn plain(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_string() } else { text.replacen('-', "−", 1) }
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_what_their_data_give() {
        for paper in papers() {
            let folder =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers").join(&paper.name);
            let recorded = Recorded::read(&folder).unwrap_or_else(|e| panic!("{e}"));
            if std::env::var_os("MILLPOND_BLESS").is_some() {
                std::fs::write(folder.join(PAGE), page(paper, &recorded)).unwrap();
            }
            let text = std::fs::read_to_string(folder.join(PAGE)).unwrap_or_default();
            assert!(
                text == page(paper, &recorded),
                "papers/{0}/{PAGE} differs from its data: `millpond reproduce {0} --page \
                 papers/{0}` writes it",
                paper.name
            );
        }
    }

    /// Data that know a claim that is gone, or miss a new one, are of another paper.toml.
    #[test]
    fn recorded_claims_are_the_papers() {
        for paper in papers() {
            let folder =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers").join(&paper.name);
            let recorded = Recorded::read(&folder).unwrap_or_else(|e| panic!("{e}"));
            let known: Vec<String> =
                crate::all_claims(paper).map(|(id, _)| format!("{}-{id}", paper.name)).collect();
            let there: Vec<&str> = recorded.claims.iter().map(|claim| claim.id.as_str()).collect();
            assert_eq!(there, known, "{}", paper.name);
            for claim in &paper.claims {
                let id = format!("{}-{}", paper.name, claim.id);
                let Some(of) = recorded.claims.iter().find(|of| of.id == id) else {
                    panic!("{id}")
                };
                assert_eq!((of.accept, of.paper), (claim.accept(), claim.paper), "{id}");
            }
        }
    }

    #[test]
    fn a_page_is_not_written_into_another_papers_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/hpcc");
        let other = papers().iter().find(|paper| paper.name != "hpcc").unwrap();
        let error =
            Recorded::may_replace(other, Effort::Full, &folder, true).unwrap_err().to_string();
        assert!(error.contains("is the folder of another paper"), "{error}");
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.001, "0"),
            (-73.51, "−73.5"),
            (1425.2, "1425"),
            (2.0, "2"),
            (9.996, "10"),
        ] {
            assert_eq!(plain(value), text);
        }
        assert_eq!([time(12_333.0), time(431.0), time(2.5e6)], ["12.3 ms", "431 µs", "2.5 s"]);
    }
}
