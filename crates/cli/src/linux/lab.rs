//! `millpond lab`: a run or a compare under real kernel TCP, or a lab that stays.

use super::{doctor, standing};
use crate::args::linux::{AskArgs, AskRequest, LabCommand};
use crate::args::{CompareArgs, FormatArgs, Judging, LabArgs, RunArgs, Threads, WorldName};
use crate::failure::Failure;
use crate::run::load;
use crate::worlds::need_root;
use crate::{compare, run};
use millpond_core::Time;
use millpond_lab::ask::{Asking, Request};
use std::io::Write;

pub fn lab(args: &LabArgs) -> Result<(), Failure> {
    if !matches!(args.command, Some(LabCommand::Ask(_) | LabCommand::Doctor(_))) {
        need_root()?;
    }
    match &args.command {
        Some(LabCommand::Doctor(args)) => doctor::doctor(args),
        Some(LabCommand::Up(args)) => standing::up(args),
        Some(LabCommand::Down(which)) => standing::down(which),
        Some(LabCommand::List(args)) => standing::list(args),
        Some(LabCommand::Shell(args)) => standing::shell(args),
        Some(LabCommand::Exec(args)) => standing::exec(args),
        Some(LabCommand::Capture(args)) => standing::capture(args),
        Some(LabCommand::Ask(args)) => ask(args),
        None => run_scenario(args),
    }
}

/// Asks a server, and prints a response time a line.
fn ask(args: &AskArgs) -> Result<(), Failure> {
    let duration = Time::to_duration;
    let asking = Asking {
        request: match args.request {
            AskRequest::MemcachedGet => Request::MemcachedGet,
            AskRequest::RedisGet => Request::RedisGet,
            AskRequest::RedisSet => Request::RedisSet,
        },
        server: args.server,
        connections: args.connections as usize,
        size: args.size.get() as usize,
        period: args.period.map(duration),
        lasts: duration(args.lasts),
    };
    if args.period == Some(Time::ZERO) {
        return Err(Failure::Usage("--period must be more than 0 (got 0)".into()));
    }
    let mut out = std::io::stdout().lock();
    millpond_lab::ask::ask(&asking, &mut |time| {
        writeln!(out, "{:.1}", time.as_nanos() as f64 / 1000.0)
    })
    .map_err(|error| Failure::Runs(format!("{}: {error}", args.server)))
}

/// Runs a scenario in the lab: one variant or seed as `run` does, several as `compare` does.
fn run_scenario(args: &LabArgs) -> Result<(), Failure> {
    let path = args.scenario.clone().unwrap_or_default();
    let scenario = load(&path, &args.overrides)?;
    let is_one = args.variant.is_some() || scenario.variants().is_empty();
    let (scenario, overrides, shows, scale) =
        (path, args.overrides.clone(), args.shows.clone(), args.scale);
    let (output, seeds, threads) = (args.output.clone(), args.seeds.clone(), Threads::default());
    if is_one && seeds.range.is_none() {
        let (variant, seed, world) = (args.variant.clone(), None, WorldName::Lab);
        return run::run(&RunArgs {
            scenario,
            overrides,
            shows,
            variant,
            seed,
            world,
            console: None,
            scale,
            threads,
            output,
        });
    }
    if args.variant.is_some() {
        let text = "--seeds compares all variants: leave out --variant, or --seeds";
        return Err(Failure::Usage(text.into()));
    }
    compare::compare(&CompareArgs {
        scenario,
        overrides,
        variants: Vec::new(),
        vary: Vec::new(),
        shows,
        by_size: false,
        worlds: vec![WorldName::Lab],
        scale,
        seeds,
        threads,
        judging: Judging::default(),
        format: FormatArgs::default(),
        output,
    })
}
