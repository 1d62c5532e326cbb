//! `millpond run`: one scenario, one folder.

use crate::args::{Overrides, RunArgs, WorldName};
use crate::failure::Failure;
use crate::huge_pages::start_again;
use crate::print;
use crate::stderr::{keep_new, warn};
use crate::watch::{Terminal, catch_interrupts};
use crate::worlds::{with_console, world_name, worlds};
use millpond::{Options, Scenario, Status, run_into};
use millpond_results::{about_text, folder_name, run_table};
use std::path::{Path, PathBuf};

/// Reads a scenario: a TOML file, standard input (`-`), or the scenario in a run's manifest; and
/// changes it.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Scenario, Failure> {
    let scenario = if path == Path::new("-") {
        let text = std::io::read_to_string(std::io::stdin()).map_err(|e| {
            Failure::Usage(format!("the scenario on standard input cannot be read: {e}"))
        })?;
        Scenario::parse("stdin", &text)?
    } else {
        Scenario::open(path)?
    };
    Ok(overrides.set.iter().fold(scenario, |scenario, (key, value)| scenario.set(key, value)))
}

/// Where results go by default: `out/<name>`, and after it what distinguishes the
/// command's results from others of the same scenario.
pub fn default_out(out: &Option<PathBuf>, name: &str, suffix: Option<&str>) -> PathBuf {
    let name = suffix.map_or(name.to_string(), |suffix| format!("{name}-{suffix}"));
    out.clone().unwrap_or_else(|| Path::new("out").join(folder_name(&name)))
}

/// Prints what a scenario and its variants are about.
pub fn introduce<'a>(scenario: &str, about: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let text = about_text(scenario, about);
    if !text.is_empty() {
        print(&text);
        print("");
    }
}

/// Suffix of a run's results folder: its variant, and its world if that is not the simulator.
fn world_suffix(world: WorldName, variant: Option<&str>) -> Option<String> {
    let world = (world != WorldName::Sim).then(|| world_name(world));
    let parts: Vec<&str> = variant.into_iter().chain(world).collect();
    (!parts.is_empty()).then(|| parts.join("-"))
}

pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut scenario = load(&args.scenario, &args.overrides)?.shows(&args.shows.names);
    if let Some(seed) = args.seed {
        scenario = scenario.seed(seed);
    }
    let plan = scenario.plan(args.variant.as_deref())?;
    let quiet = args.output.quiet;
    // Standard input cannot be read twice, and other worlds start programs of their own.
    if args.world == WorldName::Sim && args.scenario != Path::new("-") {
        start_again(plan.hosts());
    }
    if !quiet {
        let warnings = [scenario.idle(), plan.warnings().to_vec()].concat();
        warn(&warnings, args.output.warnings());
    }
    if !quiet && !args.output.json {
        introduce(plan.about(), [(plan.variant().unwrap_or(""), plan.variant_about())]);
    }
    let world = match args.console {
        None => worlds(&[args.world], args.scale.factor)?.remove(0),
        Some(at) if args.world == WorldName::Virtual => with_console(at)?,
        Some(_) => return Err(Failure::Usage("--console needs --world virtual".into())),
    };
    let suffix = world_suffix(args.world, plan.variant());
    let out = default_out(&args.output.out, plan.name(), suffix.as_deref());
    let terminal = Terminal::new(quiet || args.console.is_some(), plan.name());
    catch_interrupts();
    let options = Options {
        world: &*world,
        threads: args.threads.given,
        force: args.output.force,
        control: &terminal,
        ..Options::default()
    };
    let done = run_into(&plan, &out, &options);
    terminal.close();
    let mut written = done?;
    if args.output.json {
        print(&written.summary.to_json());
    } else if !quiet {
        keep_new(&mut written.summary.warnings, plan.warnings());
        print(&run_table(&written.summary, args.output.warnings()));
        print(&format!("results: {}", written.folder.display()));
    }
    match written.summary.status {
        Status::Complete => Ok(()),
        Status::Stalled => Err(Failure::Stalled(
            "stalled: no open flow can end any more; the results are written".into(),
        )),
        Status::Invalid => {
            let mut warnings = written.summary.warnings.iter();
            let why = warnings.find(|warning| warning.starts_with("invalid"));
            Err(Failure::invalid(why.map_or("invalid", String::as_str)))
        }
        Status::Interrupted if written.kept_older => Err(Failure::Stopped(format!(
            "what there was is in {}; {} still holds the complete result of before",
            written.folder.display(),
            out.display()
        ))),
        Status::Interrupted => Err(Failure::Interrupted),
        Status::Failed => Err(Failure::Audit(format!("{:?}", written.summary.audit))),
    }
}
