//! `millpond reproduce`: runs a paper's experiments and says which of its claims hold here.
//!
//! A paper is a table of experiments and a table of claims, in a file of its own (`canary.rs`, `nrm.rs`, `presto.rs`). Each experiment is a sweep in
//! a subfolder of the results, so runs that were made are never made again; the claims are decided anew from what is there.

mod canary;
mod claim;
mod counts;
mod emulated;
mod experiment;
mod measure;
mod nrm;
mod presto;
mod statistic;
#[cfg(test)]
mod tests;
mod tlt;

use crate::args::ReproduceArgs;
use crate::failure::Failure;
use crate::runs::{Running, estimate, run_all, span};
use crate::say;
use crate::watch::catch_interrupts;
use counts::Counts;
use emulated::Emulated;
use experiment::{Effort, Experiment, Found, Paper, Prepared};
use millpond_results::{
    Claim as Judged, Error, Experiment as Shown, Manifest, Point, REPRODUCTION, Reproduction, Status, Sweep,
    SweepFolder, SweepRun, Verdict, claims_json, finish_sweep, reproduction_table,
};
use millpond_scenario::nearest;
use std::path::{Path, PathBuf};

/// The papers whose tables are written.
const BUILT: [&Paper; 4] = [&presto::PRESTO, &nrm::NRM, &tlt::TLT, &canary::CANARY];
/// Every name that the command takes for a paper, in the order of their years.
pub const PAPERS: [&str; 5] = ["presto", "nrm", "tlt", "backdraft", "canary"];
/// All that are built.
pub const ALL: &str = "all";
/// In a results folder of this command from its start on.
const MARK: &str = ".millpond-reproduce";

/// Reproduces.
pub fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let Some(name) = args.paper.as_deref() else {
        check_alone(args)?;
        return list(args);
    };
    let papers: Vec<&'static Paper> = BUILT.into_iter().filter(|paper| name == ALL || paper.name == name).collect();
    if papers.is_empty() {
        let built: Vec<&str> = BUILT.iter().map(|paper| paper.name).collect();
        let text = format!("reproduce {name} is not built yet; there is: {}", built.join(", "));
        return Err(Failure::Usage(text));
    }
    if name == ALL && !args.quiet {
        let missing: Vec<&str> = PAPERS.into_iter().filter(|name| BUILT.iter().all(|p| p.name != *name)).collect();
        if !missing.is_empty() {
            eprintln!("not built yet, and left out: {}", missing.join(", "));
        }
    }
    let mut jobs = Vec::new();
    for paper in papers {
        jobs.push(Job { paper, args, out: out_of(args, paper, name == ALL), chosen: Chosen::of(paper, &args.only)? });
    }
    if args.dry_run {
        return dry_run(args, &jobs);
    }
    let mut ended = Ended::default();
    for job in &jobs {
        ended.add(job.run()?);
    }
    if args.json {
        say(&claims_json(&ended.claims));
    }
    ended.result(args.strict)
}

/// Where a paper's results go.
fn out_of(args: &ReproduceArgs, paper: &Paper, of_several: bool) -> PathBuf {
    let quick = if args.quick { "-quick" } else { "" };
    match &args.out {
        Some(out) if of_several => out.join(paper.name),
        Some(out) => out.clone(),
        None => Path::new("out").join(format!("reproduce-{}{quick}", paper.name)),
    }
}

/// Without a paper nothing is run, so nothing can be said of how.
fn check_alone(args: &ReproduceArgs) -> Result<(), Failure> {
    let options = [
        ("--quick", args.quick),
        ("--strict", args.strict),
        ("--only", !args.only.is_empty()),
        ("--seeds", args.seeds.range.is_some()),
        ("--threads", args.threads.given.is_some()),
        ("--dry-run", args.dry_run),
        ("--vm", !args.vm.is_empty()),
        ("--out", args.out.is_some()),
        ("--force", args.force),
    ];
    let Some((option, _)) = options.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    let built: Vec<&str> = BUILT.iter().map(|paper| paper.name).collect();
    Err(Failure::Usage(format!("reproduce {option}: of which paper? There is: {}, {ALL}", built.join(", "))))
}

/// The papers, without running anything.
fn list(args: &ReproduceArgs) -> Result<(), Failure> {
    let built = |name: &str| BUILT.iter().find(|paper| paper.name == name);
    if args.json {
        let paper = |name: &str| {
            let paper = built(name);
            serde_json::json!({
                "paper": name, "built": paper.is_some(), "title": paper.map(|p| p.title),
                "experiments": paper.map(|p| p.experiments.iter().map(|e| e.name).collect::<Vec<_>>()),
                "claims": paper.map(|p| p.claims.iter().map(|c| format!("{}-{}", p.name, c.id)).collect::<Vec<_>>()),
                "emulated": paper.map(|p| emulated_claims(p).map(|id| format!("{}-{id}", p.name)).collect::<Vec<_>>()),
            })
        };
        let all: Vec<_> = PAPERS.into_iter().map(paper).collect();
        say(&serde_json::Value::from(all).to_string());
        return Ok(());
    }
    for name in PAPERS {
        match built(name) {
            Some(paper) => {
                let experiments: Vec<&str> = paper.experiments.iter().map(|e| e.name).collect();
                let emulated = match emulated_claims(paper).count() {
                    0 => String::new(),
                    n => format!(", {n} of them of emulated Linux"),
                };
                say(&format!("{name:<10} {}: {} claims{emulated}", paper.title, all_claims(paper).count()));
                say(&format!("{:<10} experiments: {}", "", experiments.join(", ")));
            }
            None => say(&format!("{name:<10} not built yet")),
        }
    }
    say("\nmillpond reproduce PAPER --dry-run tells what would be run");
    Ok(())
}

/// What `--only` picks.
#[derive(Debug)]
struct Chosen {
    experiments: Vec<&'static str>,
    /// Claims' names, without the paper's.
    claims: Vec<String>,
}

impl Chosen {
    /// Claims by name or by group (`S1` is S1a, S1b, …), with the experiments that they need; experiments with the claims
    /// that they decide; all claims of emulated Linux, for which nothing is run here. All without `--only`.
    fn of(paper: &'static Paper, only: &[String]) -> Result<Chosen, Failure> {
        let mut chosen = Chosen { experiments: Vec::new(), claims: Vec::new() };
        for word in only.iter().map(|word| word.trim()) {
            let plain = word.strip_prefix(paper.name).and_then(|rest| rest.strip_prefix('-')).unwrap_or(word);
            let named = |claim: &&claim::Claim| {
                let (id, plain) = (claim.id.to_lowercase(), plain.to_lowercase());
                let rest = id.strip_prefix(&plain);
                !plain.is_empty() && rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_lowercase()))
            };
            if plain == emulated::ALL && !paper.emulated.is_empty() {
                chosen.claims.extend(emulated_claims(paper));
                continue;
            }
            let before = chosen.claims.len();
            chosen.claims.extend(emulated_claims(paper).filter(|id| id.eq_ignore_ascii_case(plain)));
            if chosen.claims.len() > before {
                continue;
            }
            let is_experiment = paper.experiments.iter().any(|experiment| experiment.name == word);
            let claims = paper.claims.iter().filter(|c| if is_experiment { c.experiment() == word } else { named(c) });
            for claim in claims {
                chosen.claims.push(claim.id.to_string());
                chosen
                    .claims
                    .extend(emulated_claims(paper).filter(|id| id.strip_suffix(emulated::SUFFIX) == Some(claim.id)));
                chosen.experiments.push(claim.experiment());
            }
            if is_experiment {
                chosen.experiments.extend(paper.experiments.iter().map(|e| e.name).filter(|name| *name == word));
            } else if chosen.claims.len() == before {
                let claims = paper.claims.iter().map(|claim| claim.id);
                let all: Vec<&str> = paper.experiments.iter().map(|e| e.name).chain(claims).collect();
                let meant = nearest(plain, all.iter().copied());
                let help =
                    meant.map_or(format!("there are: {}", all.join(", ")), |best| format!("did you mean `{best}`?"));
                let text = format!("--only {word}: {} has no such experiment or claim; {help}", paper.name);
                return Err(Failure::Usage(text));
            }
        }
        if only.is_empty() {
            chosen.experiments = paper.experiments.iter().map(|experiment| experiment.name).collect();
            chosen.claims = all_claims(paper).collect();
        }
        Ok(chosen)
    }
}

/// The names of the claims that emulated Linux can decide, too.
fn emulated_claims(paper: &'static Paper) -> impl Iterator<Item = String> {
    let claims = paper.claims.iter().filter(|claim| !emulated::needed(paper, claim).is_empty());
    claims.map(|claim| format!("{}{}", claim.id, emulated::SUFFIX))
}

/// The names of all of them.
fn all_claims(paper: &'static Paper) -> impl Iterator<Item = String> {
    paper.claims.iter().map(|claim| claim.id.to_string()).chain(emulated_claims(paper))
}

/// An experiment that is ready to run, or why it is left out.
type Planned = (&'static Experiment, Result<Prepared, &'static str>);

/// One paper to reproduce.
struct Job<'a> {
    paper: &'static Paper,
    args: &'a ReproduceArgs,
    out: PathBuf,
    chosen: Chosen,
}

/// How the papers ended.
#[derive(Debug, Default)]
struct Ended {
    /// The chosen ones.
    claims: Vec<Judged>,
    /// Runs that failed, and of how many.
    failed: usize,
    runs: usize,
}

impl Ended {
    fn add(&mut self, other: Ended) {
        self.claims.extend(other.claims);
        self.failed += other.failed;
        self.runs += other.runs;
    }

    fn result(&self, strict: bool) -> Result<(), Failure> {
        if self.failed > 0 {
            return Err(Failure::Runs(format!("{} of {} runs failed", self.failed, self.runs)));
        }
        let failing: Vec<&str> =
            self.claims.iter().filter(|claim| claim.status == Verdict::Fails).map(|claim| claim.id.as_str()).collect();
        if strict && !failing.is_empty() {
            let s = if failing.len() == 1 { "claim fails" } else { "claims fail" };
            return Err(Failure::Runs(format!("--strict: {} {s}: {}", failing.len(), failing.join(", "))));
        }
        Ok(())
    }
}

impl Job<'_> {
    fn effort(&self) -> Effort {
        if self.args.quick { Effort::Quick } else { Effort::Full }
    }

    fn is_chosen(&self, experiment: &Experiment) -> bool {
        self.chosen.experiments.contains(&experiment.name)
    }

    /// Runs what is chosen and not finished; then decides all claims by all that is there.
    fn run(&self) -> Result<Ended, Failure> {
        self.take_folder()?;
        let emulated = Emulated::open(&self.args.vm, &self.out)?;
        let version = env!("CARGO_PKG_VERSION");
        let manifest = Manifest::new(version, String::new());
        let mut of = Reproduction::new(self.paper.name, self.paper.title, version, self.effort().name());
        let (mut ended, mut all_found) = (Ended::default(), Vec::new());
        let prepared = self.prepare(false)?;
        if !self.args.quiet {
            eprintln!("{}: {}", self.paper.name, self.counts(&prepared));
        }
        for (experiment, prepared) in prepared {
            let (found, failures, note) = match prepared {
                Ok(prepared) => {
                    if self.is_chosen(experiment) {
                        let (failed, all) = self.run_one(&prepared)?;
                        ended.failed += failed;
                        ended.runs += all;
                    }
                    let folder = self.folder_of(experiment);
                    (prepared.found(&folder)?, prepared.failures(&folder), prepared.runs.note.to_string())
                }
                Err(why) => {
                    let found = Found { name: experiment.name, left_out: Some(why), arms: Vec::new() };
                    (found, Vec::new(), format!("left out by --quick: {why}"))
                }
            };
            of.experiments.push(Shown { failures, ..experiment.shown(self.paper.claims, &found, &note) });
            all_found.push((experiment, found));
        }
        for claim in self.paper.claims {
            let found = all_found.iter().find(|(experiment, _)| experiment.name == claim.experiment());
            if let Some((experiment, found)) = found {
                of.claims.push(claim.judge(self.paper.name, experiment, found, self.effort()));
            }
        }
        for claim in self.paper.claims.iter().filter(|claim| !emulated::needed(self.paper, claim).is_empty()) {
            if let Some((experiment, _)) = all_found.iter().find(|(e, _)| e.name == claim.experiment()) {
                of.claims.push(claim.judge_emulated(self.paper, experiment, &emulated));
            }
        }
        let status = if ended.failed > 0 { Status::Failed } else { Status::Complete };
        of.write(&self.out, Manifest { status, ..manifest })?;
        let shown = |claim: &Judged| {
            let id = claim.id.strip_prefix(self.paper.name).and_then(|id| id.strip_prefix('-'));
            id.is_some_and(|id| self.is_shown(id))
        };
        if !self.args.quiet && !self.args.json {
            say(&reproduction_table(&of, shown));
            say(&format!("runs:    {} of {} complete", ended.runs - ended.failed, ended.runs));
            say(&format!("results: {}\nreport:  {}", self.out.display(), self.out.join("report.html").display()));
        }
        ended.claims = of.claims.into_iter().filter(shown).collect();
        Ok(ended)
    }

    fn is_shown(&self, claim: &str) -> bool {
        self.chosen.claims.iter().any(|chosen| chosen == claim)
    }

    /// All experiments, planned; those that this effort leaves out with the reason.
    fn prepare(&self, estimate: bool) -> Result<Vec<Planned>, Failure> {
        let plan = |experiment: &'static Experiment| {
            let prepared = match experiment.runs(self.effort()) {
                Ok(runs) => Ok(experiment.prepare(runs, self.args.seeds.range, estimate)?),
                Err(why) => Err(why),
            };
            Ok((experiment, prepared))
        };
        self.paper.experiments.iter().map(plan).collect()
    }

    /// What is chosen, of what was planned.
    fn counts(&self, prepared: &[Planned]) -> Counts {
        let claims = all_claims(self.paper).filter(|id| self.is_shown(id)).count();
        let mut counts = Counts { claims, ..Counts::default() };
        let chosen = prepared.iter().filter(|(experiment, _)| self.is_chosen(experiment));
        for (experiment, prepared) in chosen.filter_map(|(e, prepared)| Some((e, prepared.as_ref().ok()?))) {
            let out = self.folder_of(experiment);
            let design = prepared.design.grown(&out);
            let goes_on = is_of(&design.sweep, &out);
            counts.experiments += 1;
            counts.runs += design.sweep.runs().count();
            counts.finished += design.sweep.runs().filter(|(_, run)| goes_on && run.finished(&out).is_some()).count();
        }
        counts
    }

    fn folder_of(&self, experiment: &Experiment) -> PathBuf {
        self.out.join(experiment.name)
    }

    /// Makes the results folder, or goes on in it; refuses what is none of this command's.
    fn take_folder(&self) -> Result<(), Failure> {
        let out = &self.out;
        let cannot = |e: std::io::Error| Failure::Runs(format!("cannot create {}: {e}", out.display()));
        let is_ours = out.join(MARK).is_file();
        let is_empty = std::fs::read_dir(out).map_or(true, |mut entries| entries.next().is_none());
        if !is_ours && !is_empty && !self.args.force {
            return Err(Error::NotAResult(out.clone()).into());
        }
        if out.join(REPRODUCTION).is_file() {
            let old = Reproduction::read(out)?;
            let (was, is) = ((old.paper.as_str(), old.effort.as_str()), (self.paper.name, self.effort().name()));
            if was != is && !self.args.force {
                let text = format!(
                    "{} holds {} ({}); choose another --out, or replace it with --force",
                    out.display(),
                    was.0,
                    was.1
                );
                return Err(Failure::Usage(text));
            }
        }
        let scenarios = out.join("scenarios");
        std::fs::create_dir_all(&scenarios).map_err(cannot)?;
        std::fs::write(out.join(MARK), "").map_err(cannot)?;
        for experiment in self.paper.experiments {
            std::fs::write(scenarios.join(format!("{}.toml", experiment.name)), experiment.text).map_err(cannot)?;
        }
        Ok(())
    }

    /// Runs what is not finished of one experiment. Gives the number of failed runs, and of all.
    fn run_one(&self, prepared: &Prepared) -> Result<(usize, usize), Failure> {
        let (experiment, out) = (prepared.of, self.folder_of(prepared.of));
        if !self.args.quiet {
            prepared.design.warnings.iter().for_each(|warning| eprintln!("warning: {}: {warning}", experiment.name));
        }
        let design = prepared.design.grown(&out);
        self.check_losses(&design.sweep, &out)?;
        // By force, since the plan may have grown; what would be lost by it has just been checked.
        let folder = SweepFolder::open(&out, &design.sweep, Sweep::read(&out).is_ok())?;
        let manifest = Manifest {
            name: design.sweep.name.clone(),
            seed: design.sweep.seeds.first().copied().unwrap_or_default(),
            overrides: design.sweep.overrides.clone(),
            ..Manifest::new(env!("CARGO_PKG_VERSION"), experiment.text)
        };
        catch_interrupts();
        let running = Running {
            label: experiment.name,
            threads: self.args.threads.count(),
            quiet: self.args.quiet,
            keep: experiment.keep,
        };
        let failures = run_all(&running, &prepared.scenario, &design, &folder).map_err(|failure| match failure {
            Failure::Stopped(text) => Failure::Stopped(format!("{}: {text}", experiment.name)),
            other => other,
        })?;
        let sweep = finish_sweep(&folder, &design.sweep, &failures, manifest)?;
        let failed = sweep.runs().filter(|(_, run)| run.status != Some(Status::Complete)).count();
        Ok((failed, sweep.runs().count()))
    }

    /// Finished runs of a changed scenario or of another version make way only with `--force`.
    fn check_losses(&self, sweep: &Sweep, out: &Path) -> Result<(), Failure> {
        let Ok(old) = Sweep::read(out) else { return Ok(()) };
        let stays = |point: &Point, run: &SweepRun| {
            old.version == sweep.version
                && sweep.runs().any(|(p, r)| p.identity == point.identity && r.folder == run.folder)
        };
        let lost = old.runs().filter(|(point, run)| !stays(point, run) && run.finished(out).is_some()).count();
        if lost == 0 || self.args.force {
            return Ok(());
        }
        let text = format!(
            "{} holds {lost} finished runs of another version of the experiment; choose another --out, or replace them with \
             --force",
            out.display()
        );
        Err(Failure::Runs(text))
    }
}

/// Whether what is in `out` is of this sweep, if perhaps of fewer points or seeds.
fn is_of(sweep: &Sweep, out: &Path) -> bool {
    let Ok(old) = Sweep::read(out) else { return false };
    let same = |point: &Point| {
        old.points.iter().filter(|other| other.values == point.values).all(|other| other.identity == point.identity)
    };
    old.version == sweep.version && sweep.points.iter().all(same)
}

/// Says what would be run, and how long it may take.
fn dry_run(args: &ReproduceArgs, jobs: &[Job]) -> Result<(), Failure> {
    let cores = args.threads.count();
    let (mut total, mut rows, mut papers) = (Some(0.0), Vec::new(), Vec::new());
    for job in jobs {
        let prepared = job.prepare(true)?;
        let counts = job.counts(&prepared);
        papers.push(serde_json::json!({
            "paper": job.paper.name, "claims": counts.claims, "experiments": counts.experiments, "runs": counts.runs,
            "finished": counts.finished,
        }));
        if !args.json {
            say(&format!("{}: {counts}", job.paper.name));
        }
        for (experiment, prepared) in prepared.iter().filter(|(experiment, _)| job.is_chosen(experiment)) {
            let prepared = match prepared {
                Ok(prepared) => prepared,
                Err(why) => {
                    if !args.json {
                        say(&format!("{:<10} left out by --quick: {why}", experiment.name));
                    }
                    continue;
                }
            };
            let out = job.folder_of(experiment);
            let design = prepared.design.grown(&out);
            let (all, seeds) = (design.sweep.runs().count(), design.sweep.seeds.len());
            let estimate = estimate(&design, is_of(&design.sweep, &out).then_some(out.as_path()), cores);
            total = total.zip(estimate.seconds).map(|(a, b)| a + b);
            if !args.json {
                let time = estimate.seconds.map_or("unknown".to_string(), span);
                say(&format!(
                    "{:<10} {} schemes × {} loads × {seeds} seeds = {all} runs, {} to do: {time} ({})",
                    experiment.name,
                    experiment.schemes.len(),
                    prepared.runs.loads.len(),
                    estimate.left.len(),
                    estimate.basis
                ));
            }
            rows.push(serde_json::json!({
                "paper": job.paper.name, "experiment": experiment.name, "out": out, "runs": all,
                "left": estimate.left.len(), "estimate_s": estimate.seconds, "estimate_basis": estimate.basis,
            }));
        }
        if !args.json {
            say(&format!("results would go to {}", job.out.display()));
        }
    }
    if args.json {
        say(&serde_json::json!({ "papers": papers, "experiments": rows, "estimate_s": total, "threads": cores })
            .to_string());
    } else {
        say(&format!("in all: {}, {cores} at a time", total.map_or("unknown".to_string(), span)));
    }
    Ok(())
}
