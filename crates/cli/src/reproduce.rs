//! `millpond reproduce`: runs a paper's experiments and prints which of its claims hold here.

#[cfg(test)]
mod tests;

use crate::args::{Format, ReproduceArgs, WorldName};
use crate::eprint;
use crate::failure::Failure;
use crate::pages::located;
use crate::print;
use crate::span::span;
use crate::watch::{Terminal, catch_interrupts};
use crate::worlds::worlds;
use millpond::command::{all_cores, check_ledger, estimate, manifest, reproduce_paper};
use millpond::{Estimate, Options, World, WorldKind};
use millpond_claims::{
    Chosen, Effort, Ended, Experiment, Kinds, Paper, Prepared, Recorded, Recording, Reproducing,
    all_claims, find_paper, is_of, papers, write_gallery,
};
use millpond_results::{
    Claim, Verdict, claims_json, claims_junit, claims_markdown, reproduction_table,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

pub const ALL: &str = "all";
pub fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let Some(name) = args.paper.as_deref() else {
        check_alone(args)?;
        return list(args);
    };
    let mut jobs = Vec::new();
    let chosen = if name == ALL { papers().to_vec() } else { vec![find_paper(name)?] };
    if args.recorded {
        return recorded(args, name, &chosen);
    }
    let page_of_one = args.page.as_deref().filter(|_| name != ALL);
    for paper in &chosen {
        let job = job(args, paper, out_of(args, paper, name == ALL))?;
        if let Some(folder) = page_of_one {
            Recorded::may_replace(paper, job.effort, folder, args.force)?;
        }
        jobs.push(job);
    }
    if args.dry_run {
        return dry_run(args, &jobs);
    }
    catch_interrupts();
    if let Some(n) = args.check {
        return check(args, &jobs, n);
    }
    let mut total = Total::default();
    let terminal = Terminal::new(args.quiet, "");
    // Each by itself: kernels run their networks unslowed beside a lab's.
    let worlds = others(args).map(|(name, _)| worlds(&[name], Some(1)));
    let worlds: Vec<_> = worlds.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let beside: Vec<&dyn World> = worlds.iter().map(|world| &**world).collect();
    let mut exhibits = Vec::new();
    for job in &jobs {
        let options = Options { beside: &beside, ..options(args, &terminal) };
        let ended = reproduce_paper(job, &options)?;
        let measured = || Recorded::of(&ended, job, &manifest(""));
        match page_of_one {
            Some(folder) => measured().write(&job.paper, folder)?,
            None if args.page.is_none() => {}
            None => exhibits.push(measured().exhibit(&job.paper, Some(&ended.reproduction))),
        }
        if !args.quiet && !args.json && args.format.name.is_none() {
            print(&reproduction_table(&ended.reproduction, |claim| job.shows(claim)));
            if !args.from_ledger {
                print(&format!(
                    "runs:    {} of {} complete",
                    ended.runs - ended.failed,
                    ended.runs
                ));
                print(&format!(
                    "results: {}\nreport:  {}",
                    job.out.display(),
                    job.out.join("report.html").display()
                ));
            }
            pages(&job.paper);
        }
        total.add(ended);
    }
    if let Some(folder) = args.page.as_deref().filter(|_| name == ALL) {
        written(args, &write_gallery(&exhibits, folder)?);
    }
    if args.json {
        print(&claims_json(&total.claims));
    }
    match args.format.name {
        Some(Format::Junit) => print(&claims_junit(&total.claims)),
        Some(Format::Markdown) => print(&claims_markdown(&total.claims)),
        None => {}
    }
    total.result(args.strict)
}

/// Names the pages of the book on a paper that is built in.
fn pages(paper: &Paper) {
    let Paper { name, .. } = paper;
    if papers().iter().any(|built| built.name == *name) {
        print(&located(&format!(
            "pages:   docs/reproduce-{name}.md (analysis), papers/{name}/page.md of the repository \
             (claims)"
        )));
    }
}

/// Makes the gallery of what is recorded.
fn recorded(args: &ReproduceArgs, name: &str, papers: &[Arc<Paper>]) -> Result<(), Failure> {
    let Some(folder) = &args.page else { return check_alone(args) };
    let mut exhibits = Vec::new();
    for paper in papers {
        match Recorded::find(paper, name) {
            Ok(recorded) => exhibits.push(recorded.exhibit(paper, None)),
            Err(error) if name == ALL => eprint(format_args!("warning: left out: {error}")),
            Err(error) => return Err(error.into()),
        }
    }
    written(args, &write_gallery(&exhibits, folder)?);
    Ok(())
}

fn written(args: &ReproduceArgs, page: &Path) {
    if !args.quiet && !args.json && args.format.name.is_none() {
        print(&format!("gallery: {}", page.display()));
    }
}

/// The names of those that are built in, and of all.
fn built() -> Vec<&'static str> {
    papers().iter().map(|paper| paper.name.as_str()).chain([ALL]).collect()
}

/// The worlds that are asked for beside the simulator.
fn others(args: &ReproduceArgs) -> impl Iterator<Item = (WorldName, WorldKind)> {
    let lab = args.lab.then_some((WorldName::Lab, WorldKind::Lab));
    lab.into_iter().chain(args.kernels.then_some((WorldName::Virtual, WorldKind::Virtual)))
}

/// The part of a paper that is asked for.
fn job(args: &ReproduceArgs, paper: &Arc<Paper>, out: PathBuf) -> Result<Reproducing, Failure> {
    let others = others(args).map(|(_, kind)| kind);
    let kinds: Vec<WorldKind> = std::iter::once(WorldKind::Sim).chain(others).collect();
    Ok(Reproducing {
        paper: Arc::clone(paper),
        effort: if args.quick { Effort::Quick } else { Effort::Full },
        seeds: args.seeds.range,
        force: args.force,
        out,
        chosen: Chosen::of(paper, &args.only)?.only_in(paper, &kinds),
        recording: recording(args, paper),
    })
}

/// The use of the paper's ledger. Where no folder is given, what is run is added to that of the
/// repository, or to that of the paper's own folder.
fn recording(args: &ReproduceArgs, paper: &Paper) -> Recording {
    let own = || paper.folder.clone().unwrap_or_else(|| Path::new("papers").join(&paper.name));
    match &args.record {
        _ if args.from_ledger => Recording::Decide,
        Some(folder) => Recording::Add(folder.clone().unwrap_or_else(own)),
        None => Recording::None,
    }
}

/// Repeats runs of ledgers, and prints whether they are the same; an error if one is not.
fn check(args: &ReproduceArgs, jobs: &[Reproducing], n: usize) -> Result<(), Failure> {
    let terminal = Terminal::new(args.quiet || args.json, "");
    let worlds = others(args).map(|(name, _)| worlds(&[name], Some(1)));
    let worlds: Vec<_> = worlds.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let beside: Vec<&dyn World> = worlds.iter().map(|world| &**world).collect();
    let draw = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut rows, mut others) = (Vec::new(), 0);
    for job in jobs {
        let options = Options { beside: &beside, ..options(args, &terminal) };
        for run in check_ledger(job, n, draw, &options)? {
            others += usize::from(!run.is_same());
            if !args.json && !args.quiet {
                let mark = if run.is_same() { "✓ same " } else { "✗ other" };
                let found = run.found.as_deref().unwrap_or_else(|why| why);
                let found = if run.is_same() { String::new() } else { format!(", now {found}") };
                print(&format!("{mark} {} {} {}{found}", run.recorded, job.paper.name, run.run));
            }
            rows.push(serde_json::json!({
                "paper": job.paper.name, "run": run.run, "same": run.is_same(),
                "recorded": run.recorded, "found": run.found.as_ref().ok(),
            }));
        }
    }
    let all = rows.len();
    if args.json {
        print(&serde_json::Value::from(rows).to_string());
    }
    match (all, others) {
        (0, _) => Err(Failure::Usage("no ledger has a run of what is asked for".into())),
        (_, 0) => Ok(()),
        _ => Err(Failure::Runs(format!("{others} of {all} runs have another digest"))),
    }
}

fn options<'a>(args: &ReproduceArgs, terminal: &'a Terminal) -> Options<'a> {
    Options {
        threads: args.threads.given,
        force: args.force,
        control: terminal,
        ..Options::default()
    }
}

fn out_of(args: &ReproduceArgs, paper: &Paper, of_several: bool) -> PathBuf {
    let quick = match args.check {
        Some(_) => "-check",
        None if args.quick => "-quick",
        None => "",
    };
    match &args.out {
        Some(out) if of_several => out.join(&paper.name),
        Some(out) => out.clone(),
        None => Path::new("out").join(format!("reproduce-{}{quick}", paper.name)),
    }
}

/// Without a paper nothing is run, so options of a run are errors.
fn check_alone(args: &ReproduceArgs) -> Result<(), Failure> {
    let options = [
        ("--quick", args.quick),
        ("--strict", args.strict),
        ("--only", !args.only.is_empty()),
        ("--seeds", args.seeds.range.is_some()),
        ("--threads", args.threads.given.is_some()),
        ("--dry-run", args.dry_run),
        ("--lab", args.lab),
        ("--virtual", args.kernels),
        ("--out", args.out.is_some()),
        ("--page", args.page.is_some()),
        ("--from-ledger", args.from_ledger),
        ("--record", args.record.is_some()),
        ("--check", args.check.is_some()),
        ("--force", args.force),
    ];
    let Some((option, _)) = options.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    Err(Failure::Usage(format!(
        "reproduce {option}: of which paper? There is: {}",
        built().join(", ")
    )))
}

/// All claims of a paper, by kind.
fn kinds(paper: &Paper) -> Kinds {
    Kinds::of(all_claims(paper).map(|(_, kind)| kind))
}

fn kinds_json(kinds: Kinds) -> serde_json::Value {
    kinds.iter().map(|(kind, n)| (kind.name().to_string(), serde_json::Value::from(n))).collect()
}

fn list(args: &ReproduceArgs) -> Result<(), Failure> {
    if args.json {
        let paper = |paper: &Arc<Paper>| {
            let name = |id: &str| format!("{}-{id}", paper.name);
            serde_json::json!({
                "paper": paper.name, "built": true, "title": paper.title,
                "experiments": paper.experiments.iter().map(|e| &e.name).collect::<Vec<_>>(),
                "kinds": kinds_json(kinds(paper)),
                "claims": paper.claims.iter().map(|claim| name(&claim.id)).collect::<Vec<_>>(),
            })
        };
        let all: Vec<_> = papers().iter().map(paper).collect();
        print(&serde_json::Value::from(all).to_string());
        return Ok(());
    }
    for paper in papers() {
        let experiments: Vec<&str> = paper.experiments.iter().map(|e| e.name.as_str()).collect();
        let kinds = kinds(paper);
        print(&format!("{:<10} {}: {} claims", paper.name, paper.title, kinds.all()));
        print(&format!("{:<10} claims: {kinds}", ""));
        print(&format!("{:<10} experiments: {}", "", experiments.join(", ")));
    }
    print("\nmillpond reproduce PAPER --dry-run prints what would be run");
    Ok(())
}

#[derive(Debug, Default)]
struct Total {
    claims: Vec<Claim>,
    /// Runs that failed, that stalled, and all.
    failed: usize,
    stalled: usize,
    runs: usize,
}

impl Total {
    fn add(&mut self, ended: Ended) {
        self.claims.extend(ended.claims);
        self.failed += ended.failed;
        self.stalled += ended.stalled;
        self.runs += ended.runs;
    }

    fn result(&self, strict: bool) -> Result<(), Failure> {
        if self.failed > 0 {
            return Err(Failure::Runs(format!("{} of {} runs failed", self.failed, self.runs)));
        }
        if self.stalled > 0 {
            let text =
                format!("{} of {} runs stalled, so they decide no claim", self.stalled, self.runs);
            return Err(Failure::Stalled(text));
        }
        let failing: Vec<&str> = self
            .claims
            .iter()
            .filter(|claim| claim.status == Verdict::Fails)
            .map(|claim| claim.id.as_str())
            .collect();
        if strict && !failing.is_empty() {
            let s = if failing.len() == 1 { "claim fails" } else { "claims fail" };
            return Err(Failure::Runs(format!(
                "--strict: {} {s}: {}",
                failing.len(),
                failing.join(", ")
            )));
        }
        Ok(())
    }
}

/// An experiment whose time can be estimated, or the note in its place.
fn simulated<'a>(
    experiment: &Experiment,
    prepared: &'a Result<Prepared<'a>, &str>,
) -> Result<&'a Prepared<'a>, String> {
    let prepared = prepared.as_ref().map_err(|why| format!("left out by --quick: {why}"))?;
    let runs = prepared.design.sweep.runs().count();
    match experiment.world {
        WorldKind::Lab => Err(format!("{runs} runs in the lab")),
        WorldKind::Virtual => Err(format!("{runs} runs of real kernels")),
        _ => Ok(prepared),
    }
}

/// Prints the runs, and how long they may take.
fn dry_run(args: &ReproduceArgs, jobs: &[Reproducing]) -> Result<(), Failure> {
    let cores = args.threads.given.unwrap_or_else(all_cores);
    let terminal = Terminal::new(args.quiet || args.json, "");
    let (mut total, mut rows, mut papers) = (Some(0.0), Vec::new(), Vec::new());
    let line = |text: String| {
        if !args.json {
            print(&text);
        }
    };
    let time = |seconds: Option<f64>| seconds.map_or("unknown".to_string(), span);
    catch_interrupts();
    for job in jobs {
        let prepared = job.prepare(true)?;
        let counts = job.counts(&prepared);
        papers.push(serde_json::json!({
            "paper": job.paper.name,
            "claims": counts.claims.all(), "kinds": kinds_json(counts.claims),
            "experiments": counts.experiments, "runs": counts.runs, "finished": counts.finished,
        }));
        line(format!("{}: {counts}", job.paper.name));
        let chosen = prepared.iter().filter(|(experiment, _)| job.is_chosen(experiment));
        for (experiment, prepared) in chosen {
            let name = &experiment.name;
            let prepared = match simulated(experiment, prepared) {
                Ok(prepared) => prepared,
                Err(why) => {
                    line(format!("{name:<10} {why}"));
                    continue;
                }
            };
            let out = job.folder_of(experiment);
            let design = prepared.design.grown(&out);
            let (all, seeds) = (design.sweep.runs().count(), design.sweep.seeds.len());
            let resumes = is_of(&design.sweep, &out).then_some(out.as_path());
            let Estimate { left, seconds, basis, .. } =
                estimate(&prepared.scenario, &design, resumes, &options(args, &terminal))?;
            total = total.zip(seconds).map(|(a, b)| a + b);
            let (schemes, loads) = (experiment.schemes.len(), prepared.runs.loads.len());
            line(format!(
                "{name:<10} {schemes} schemes × {loads} loads × {seeds} seeds = {all} runs, {} to \
                 do: {} ({basis})",
                left.len(),
                time(seconds)
            ));
            if let Err(why) = experiment.enough(seeds, job.effort) {
                line(format!("{:<10} {why}: its claims would not be decided", ""));
            }
            rows.push(serde_json::json!({
                "paper": job.paper.name, "experiment": name, "out": out, "runs": all,
                "left": left.len(), "estimate_s": seconds, "estimate_basis": basis,
            }));
        }
        line(format!("results would go to {}", job.out.display()));
    }
    if args.json {
        let estimate = serde_json::json!({
            "papers": papers, "experiments": rows, "estimate_s": total, "threads": cores,
        });
        print(&estimate.to_string());
    }
    line(format!("in all: {}, {cores} at a time", time(total)));
    Ok(())
}
