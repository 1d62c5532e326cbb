//! The page of a paper: its claims beside what the last full run measured.
//!
//! The page is generated from `paper.toml` and `results.json`, and holds nothing else; a test fails
//! where it differs from them. Longer analyses are written by hand in `docs/`.

use crate::error::Error;
use crate::experiment::Effort;
use crate::file::{PAPER, built_file, papers, read_paper};
use crate::paper::Paper;
use crate::reproducing::{Ended, Recording, Reproducing};
use millpond_results::{
    Absolute, Claim, ClaimKind, KindCounts, Manifest, Noise, Verdict, World, causes_text, failing,
    kind_counts,
};
use millpond_scenario::folder_of;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

/// Beside `paper.toml`: what was measured.
pub const RESULTS: &str = "results.json";
/// The effort of a record that the ledger decided.
const LEDGER_DECIDES: &str = "ledger";
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
    /// `full`, `quick`, or `ledger`: then the ledger's runs decided, and there is no one run with
    /// a day and a revision.
    pub effort: String,
    /// The runs of the ledger that decided.
    #[serde(default, skip_serializing_if = "is_none")]
    pub runs: usize,
    pub claims: Vec<Claim>,
}

fn is_none(runs: &usize) -> bool {
    *runs == 0
}

impl Recorded {
    /// Of a reproduction that has ended now; `manifest` is of this program.
    pub fn of(ended: &Ended, job: &Reproducing, manifest: &Manifest) -> Recorded {
        // Causes are the paper's, beside the record.
        let bare = |claim: &Claim| Claim { cause: String::new(), ..claim.clone() };
        let claims = ended.reproduction.claims.iter().map(bare).collect();
        let version = manifest.version.clone();
        if job.recording == Recording::Decide {
            let effort = LEDGER_DECIDES.to_string();
            return Recorded { version, effort, runs: ended.runs, claims, ..Recorded::default() };
        }
        let date = manifest.started_at.chars().take_while(|c| *c != 'T').collect();
        let (revision, effort) = (manifest.revision.clone(), job.effort.name().to_string());
        Recorded { version, revision, date, effort, claims, runs: 0 }
    }

    /// With the values that an older record has of claims of other worlds than the simulator which
    /// were not measured now, each with its day: not every machine has these worlds.
    fn keeping(mut self, old: &Recorded) -> Recorded {
        let is_open =
            |of: &&mut Claim| of.status == Verdict::NotEvaluated && of.world != World::Sim;
        for claim in self.claims.iter_mut().filter(is_open) {
            let is_same = |of: &&Claim| of.id == claim.id && of.accept == claim.accept;
            let measured = |of: &&Claim| of.status != Verdict::NotEvaluated;
            let Some(of) = old.claims.iter().find(is_same).filter(measured) else { continue };
            let Claim { source, statement, kind, paper, .. } = claim.clone();
            let date = if of.date.is_empty() { &old.date } else { &of.date }.clone();
            *claim = Claim { source, statement, kind, paper, date, ..of.clone() };
        }
        self
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

    /// The run in words: `full run of 2026-11-25, revision 28e457c7c6f2`; or the ledger's.
    pub(crate) fn run(&self) -> String {
        if self.effort == LEDGER_DECIDES {
            return format!("by the {} runs of its ledger", self.runs);
        }
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
        let has_full = Recorded::read(folder).is_ok_and(|old| old.effort != Effort::Quick.name());
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
        let old = Recorded::read(folder).unwrap_or_default();
        let recorded = self.clone().keeping(&old);
        let text =
            serde_json::to_string_pretty(&recorded).map_err(|e| Error::Runs(e.to_string()))?;
        for (name, text) in [(RESULTS, text + "\n"), (PAGE, page(paper, &recorded))] {
            let path = folder.join(name);
            std::fs::write(&path, text)
                .map_err(|e| Error::Runs(format!("cannot write {}: {e}", path.display())))?;
        }
        Ok(())
    }
}

pub fn page(paper: &Paper, recorded: &Recorded) -> String {
    let mut page = format!("# {}\n\n", paper.title);
    if !paper.reading.is_empty() {
        let _ = writeln!(page, "{}\n", paper.reading);
    }
    let claims: Vec<&Claim> = recorded.claims.iter().collect();
    let of = |status: Verdict| -> Vec<&Claim> {
        claims.iter().copied().filter(|claim| claim.status == status).collect()
    };
    let [hold, fail, open] = [Verdict::Holds, Verdict::Fails, Verdict::NotEvaluated].map(of);
    let failing = failing(&paper.name, &fail, &paper.causes);
    // Other papers may be in any folder.
    let is_built_in = papers().iter().any(|built| built.name == paper.name);
    let name = if is_built_in { paper.name.as_str() } else { "FOLDER" };
    let usual = usual(&claims);
    let seeds = usual.map_or(String::new(), |(seeds, results)| {
        format!("; each claim by {}, version {results} of results", of_seeds(seeds))
    });
    let _ = write!(
        page,
        "{} of {} claims hold, {} are not evaluated. {}. `millpond reproduce {name}` runs the \
         experiments and decides the claims; this page is generated from [paper.toml](paper.toml) \
         and [results.json](results.json) ({run}{seeds}).\n\n",
        hold.len(),
        claims.len(),
        open.len(),
        causes_text(&failing),
        run = recorded.run()
    );
    page += "| kind | claims | hold | fail | not evaluated | hold without the mechanism, too \
             |\n|---|---|---|---|---|---|\n";
    for of in kind_counts(&claims) {
        let KindCounts { kind, all, verdicts: [hold, fail, open], anyway, .. } = of;
        let _ = writeln!(page, "| {} | {all} | {hold} | {fail} | {open} | {anyway} |", kind.name());
    }
    if !failing.is_empty() {
        page += "\n## Claims that fail\n";
    }
    for group in failing {
        let _ = write!(page, "\n### {}\n\n", group.title());
        if let Some(cause) = group.cause {
            let text: Vec<&str> = cause.text.split_whitespace().collect();
            let _ = writeln!(page, "{}\n", text.join(" "));
        }
        table(&mut page, paper, usual, &group.claims);
    }
    if !hold.is_empty() {
        page += "\n## Claims that hold\n\n";
        table(&mut page, paper, usual, &hold);
    }
    not_evaluated(&mut page, paper, &open);
    page
}

/// The seeds and the version of results that most claims are by; `None` before there were versions.
fn usual(claims: &[&Claim]) -> Option<(u32, u32)> {
    let all: Vec<(u32, u32)> = claims.iter().filter_map(|of| of.seeds.zip(of.results)).collect();
    let count = |one: &(u32, u32)| all.iter().filter(|other| *other == one).count();
    all.iter().copied().max_by_key(|one| (count(one), *one))
}

fn of_seeds(seeds: u32) -> String {
    if seeds == 1 { "1 seed".into() } else { format!("{seeds} seeds") }
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
fn table(page: &mut String, paper: &Paper, usual: Option<(u32, u32)>, claims: &[&Claim]) {
    let mut asked: Vec<Vec<&Claim>> = Vec::new();
    for &claim in claims {
        let key = |of: &Claim| (parts(of)[1].to_string(), of.accept);
        match asked.iter_mut().find(|of| key(of[0]) == key(claim)) {
            Some(of) => of.push(claim),
            None => asked.push(vec![claim]),
        }
    }
    asked.sort_by_key(|claims| claims.len() > 1);
    *page += "| claim | statement | published | accepted | measured | |\n\
              |---|---|---|---|---|---|\n";
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
            let (name, measured) = (short(paper, claim), measured(claim));
            let remarks = remarks(claim, usual);
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

/// The claim's kind, unless it is published, what its verdict is worth, and what it is by where
/// that is not as usual.
fn remarks(claim: &Claim, usual: Option<(u32, u32)>) -> String {
    let mut remarks: Vec<String> = Vec::new();
    if claim.kind != ClaimKind::Published {
        remarks.push(claim.kind.name().into());
    }
    let open =
        claim.completed_percent().map(|percent| format!("only {} % completed", plain(percent)));
    remarks.extend(open);
    if claim.noise == Noise::Within {
        remarks.push("within the noise".into());
    }
    if claim.holds_anyway() {
        remarks.push("also without it".into());
    }
    let own =
        |of: fn((u32, u32)) -> u32, own: Option<u32>| own.filter(|own| usual.map(of) != Some(*own));
    remarks.extend(own(|(seeds, _)| seeds, claim.seeds).map(of_seeds));
    remarks.extend(own(|(_, results)| results, claim.results).map(|of| format!("results {of}")));
    if !claim.date.is_empty() {
        remarks.push(format!("of {}", claim.date));
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
    use crate::chosen::Chosen;
    use crate::design::Design;
    use crate::experiment::Prepared;
    use crate::ledger::LEDGER;
    use crate::reproducing::Runner;
    use millpond_results::{Cause, Lies, SweepFolder};
    use std::sync::Arc;

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

    struct NoRunner;

    impl Runner for NoRunner {
        fn manifest(&self, _: &str) -> Manifest {
            Manifest { version: env!("CARGO_PKG_VERSION").into(), ..Manifest::default() }
        }

        fn print(&self, _: &str) {}

        fn run(
            &self,
            _: &Prepared<'_>,
            _: &Design,
            _: &SweepFolder,
        ) -> Result<Vec<(u32, String)>, Error> {
            Err(Error::Usage("the ledger makes no run".into()))
        }
    }

    /// MILLPOND_BLESS=1 writes records and pages.
    #[test]
    fn records_are_what_ledgers_decide() {
        for paper in papers() {
            let folder =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers").join(&paper.name);
            if !folder.join(LEDGER).is_file() {
                continue;
            }
            // As built in: its scenarios have their path in the repository.
            let job = Reproducing {
                effort: Effort::Full,
                seeds: None,
                force: false,
                out: folder.join("no results"),
                chosen: Chosen::of(paper, &[]).unwrap(),
                recording: Recording::Decide,
                paper: Arc::clone(paper),
            };
            let ended = job.run(&NoRunner).unwrap_or_else(|e| panic!("{e}"));
            let now = Recorded::of(&ended, &job, &NoRunner.manifest(""));
            if std::env::var_os("MILLPOND_BLESS").is_some() {
                now.write(paper, &folder).unwrap();
            }
            let recorded = Recorded::read(&folder).unwrap();
            assert!(
                now.keeping(&recorded) == recorded,
                "papers/{0}/{RESULTS} differs from its ledger: `millpond reproduce papers/{0} \
                 --from-ledger --page papers/{0}` writes it",
                paper.name
            );
        }
    }

    /// README's cells of a paper: verdicts of its published claims, and causes of failures.
    fn cells_of(paper: &Paper, recorded: &Recorded, mark: &str) -> [String; 2] {
        let is_published = |of: &&Claim| of.kind == ClaimKind::Published;
        let claims: Vec<&Claim> = recorded.claims.iter().filter(is_published).collect();
        let n = |status| claims.iter().filter(|of| of.status == status).count();
        let [hold, fail, open] = [Verdict::Holds, Verdict::Fails, Verdict::NotEvaluated].map(n);
        if recorded.effort == Effort::Quick.name() {
            return [format!("[full runs not yet recorded][{mark}]"), "–".into()];
        }
        let text = causes_text(&failing(&paper.name, &claims, &paper.causes));
        let causes = text.split_once(", by ").map_or("not yet found", |(_, causes)| causes);
        let causes = if fail == 0 { "–" } else { causes };
        [format!("[{hold} hold, {fail} fail, {open} open][{mark}]"), causes.to_string()]
    }

    #[test]
    fn the_readmes_table_is_what_is_recorded() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        let readme = std::fs::read_to_string(&path).unwrap();
        let mut rows = 0;
        let row = |line: &str| {
            let name = line.strip_prefix("| [").and_then(|rest| rest.split_once("] |"))?.0;
            let paper = papers().iter().find(|of| of.name == name.to_lowercase())?;
            let recorded =
                Recorded::read(&path.with_file_name("papers").join(&paper.name)).unwrap();
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
            let [judged, causes] = cells_of(paper, &recorded, &paper.name[..1]);
            Some(format!("|{} | {judged} | {causes} |", cells[..cells.len() - 2].join(" | ")))
        };
        let mut lines: Vec<String> = readme.lines().map(String::from).collect();
        for line in &mut lines {
            if let Some(now) = row(line) {
                *line = now;
                rows += 1;
            }
        }
        let now = lines.join("\n") + "\n";
        if std::env::var_os("MILLPOND_BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        assert_eq!(rows, 5);
        assert!(
            std::fs::read_to_string(&path).unwrap() == now,
            "README's table differs from papers/: MILLPOND_BLESS=1 cargo test -p millpond-claims \
             --lib page:: writes it"
        );
    }

    /// A cause that no claim fails by any more is to be removed; a quick run decides too little.
    #[test]
    fn every_cause_of_a_paper_has_a_claim_that_fails() {
        for paper in papers() {
            let recorded = Recorded::find(paper, &paper.name).unwrap();
            let holds = |name: &String| {
                let id = format!("{}-{name}", paper.name);
                recorded.claims.iter().any(|of| of.id == id && of.status == Verdict::Holds)
            };
            let is_quick = recorded.effort == Effort::Quick.name();
            for cause in paper.causes.iter().filter(|_| !is_quick) {
                assert!(!cause.claims.iter().all(holds), "{}: {}", paper.name, cause.name);
            }
        }
    }

    #[test]
    fn failing_claims_are_grouped_by_cause() {
        let claim = |id: &str, status, seeds| Claim {
            id: format!("p-{id}"),
            status,
            statement: format!("statement {id}"),
            seeds: Some(seeds),
            results: Some(1),
            ..Claim::default()
        };
        let cause = |name: &str, claims: &[&str], lies| Cause {
            name: name.into(),
            title: format!("Title of {name}"),
            claims: claims.iter().map(ToString::to_string).collect(),
            lies,
            text: format!("Text of {name}."),
        };
        let paper = Paper {
            name: "p".into(),
            title: "P".into(),
            reading: "What holds.".into(),
            causes: vec![cause("a", &["A1", "A2"], Lies::Ours), cause("b", &["B1"], Lies::Open)],
            ..Paper::default()
        };
        let claims = vec![
            claim("B1", Verdict::Holds, 5),
            claim("A1", Verdict::Fails, 5),
            claim("C1", Verdict::Fails, 5),
            Claim { date: "2026-11-25".into(), ..claim("A2", Verdict::Fails, 3) },
        ];
        let text = page(&paper, &Recorded { claims, ..Recorded::default() });
        for part in [
            "# P\n\nWhat holds.\n\n1 of 4 claims hold, 0 are not evaluated. 3 claims fail, by 1 \
             cause: 1 ours; the cause of 1 is not yet found. ",
            "; each claim by 5 seeds, version 1 of results).",
            "## Claims that fail\n\n### Title of a (ours, 2 claims)\n\nText of a.\n\n| claim ",
            "| A2 | statement A2 | – | – | – | 3 seeds, of 2026-11-25 |\n",
            "\n### Cause not yet found (1 claim)\n\n| claim ",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("Title of b"), "{text}");
    }

    #[test]
    fn claims_of_other_worlds_keep_their_last_values_with_their_day() {
        let claim = |id: &str, world, measured| {
            let mut claim = Claim { id: id.into(), world, ..Claim::default() };
            claim.accept = [None, Some(1.0)];
            claim.judge(measured);
            claim
        };
        let of = |date: &str, claims| Recorded { date: date.into(), claims, ..Recorded::default() };
        let changed = Claim { accept: [None, Some(2.0)], ..claim("d", World::Lab, 0.5) };
        let old = [World::Lab, World::Sim, World::Virtual].map(|world| claim("x", world, 0.5));
        let old =
            old.into_iter().zip(["a", "b", "c"]).map(|(of, id)| Claim { id: id.into(), ..of });
        let old = of("2026-11-25", old.chain([changed]).collect());
        let now = [
            claim("a", World::Lab, f64::NAN),
            claim("b", World::Sim, f64::NAN),
            claim("c", World::Virtual, 0.7),
            claim("d", World::Lab, f64::NAN),
        ];
        let kept = of("", now.to_vec()).keeping(&old);
        let all: Vec<_> = kept.claims.iter().map(|of| (of.measured, of.date.as_str())).collect();
        let expected = [(Some(0.5), "2026-11-25"), (None, ""), (Some(0.7), ""), (None, "")];
        assert_eq!(all, expected);
        assert_eq!(of("", now.to_vec()).keeping(&kept).claims, kept.claims, "the day stays");
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
