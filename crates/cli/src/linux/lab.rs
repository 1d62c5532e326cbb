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
        Some(LabCommand::Doctor(args)) => doctor::doctor(args.json),
        Some(LabCommand::Up(args)) => standing::up(args),
        Some(LabCommand::Down(which)) => standing::down(which),
        Some(LabCommand::List { json }) => standing::list(*json),
        Some(LabCommand::Shell { host, which }) => standing::shell(host, which),
        Some(LabCommand::Exec { host, which, command }) => standing::exec(host, which, command),
        Some(LabCommand::Capture { place, which, write, seconds }) => {
            standing::capture(place, which, write.as_deref(), *seconds)
        }
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
    let (overrides, shows, output) =
        (args.overrides.clone(), args.shows.clone(), args.output.clone());
    let (scale, threads) = (args.scale, Threads::default());
    if is_one && args.seeds.range.is_none() {
        let (variant, world) = (args.variant.clone(), WorldName::Lab);
        let (scenario, seed, console) = (path, None, None);
        return run::run(&RunArgs {
            scenario,
            overrides,
            shows,
            variant,
            seed,
            world,
            console,
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
        scenario: path,
        overrides,
        variants: Vec::new(),
        vary: Vec::new(),
        shows,
        by_size: false,
        worlds: vec![WorldName::Lab],
        scale,
        seeds: args.seeds.clone(),
        threads,
        judging: Judging::default(),
        format: FormatArgs::default(),
        output,
    })
}
