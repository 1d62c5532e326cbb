//! `millpond switch`: calls `millpond_linux` by the arguments, and prints the results.

use super::{examined, follow, needs_reader};
use crate::args::linux::{ShowArgs, SwitchAction, SwitchArgs};
use crate::eprint;
use crate::failure::Failure;
use crate::print;
use millpond_linux::switch::config::Config;
use millpond_linux::switch::control::Done;
use millpond_linux::switch::reading::Reading;
use millpond_linux::switch::state::State;
use millpond_linux::switch::{apply, cni, connect, control, doctor, serve, show};
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// Does what `args` asks for.
pub fn switch(args: &SwitchArgs) -> Result<(), Failure> {
    let state = State::at(&args.state);
    let program = || {
        // This very program, though it may have been replaced on disk since.
        let mut command = Command::new("/proc/self/exe");
        command.args(["switch", "serve", "--state"]).arg(&args.state);
        command
    };
    match &args.action {
        SwitchAction::Apply { file, dry_run } => {
            let config = apply::read(file)?;
            let came = match dry_run {
                true => {
                    print(&format!("{}: {} ports, no errors", file.display(), config.ports.len()));
                    None
                }
                false => Some(apply::apply(&state, &config, &program)?),
            };
            routes(&config).iter().for_each(|line| print(line));
            came.iter().try_for_each(done)?;
        }
        SwitchAction::Connect { namespaces, subnet, no_source_guard } => {
            let guards = !no_source_guard;
            let (came, ends) = connect::connect(&state, namespaces, *subnet, guards, &program)?;
            for end in &ends {
                print(&format!("{} {} {}", end.namespace, connect::DEVICE, end.address));
            }
            done(&came)?;
        }
        SwitchAction::Show { show, addresses: true, .. } => {
            let addresses = show::read_addresses(&state)?;
            print_value(show.json, &addresses, || show::address_table(&addresses))?;
        }
        SwitchAction::Show { show, flows: true, .. } => {
            let flows = show::read_flows(&state)?;
            print_value(show.json, &flows, || show::flow_table(&flows))?;
        }
        SwitchAction::Show { show, .. } => show_switch(&state, show)?,
        SwitchAction::Remove { name: Some(name), .. } => {
            done(&apply::remove(&state, name, &program)?)?;
        }
        SwitchAction::Remove { name: None, .. } => print(&match apply::remove_all(&state)? {
            true => "the switch is removed; nothing of it is left".to_string(),
            false => format!("no switch is here ({})", args.state.display()),
        }),
        SwitchAction::Doctor(how) => examine(&state, how.json)?,
        SwitchAction::Serve { config, metrics, log } => {
            let config = config.as_deref().map(apply::read).transpose()?;
            serve::serve(&state, config, *metrics, *log)?;
        }
        SwitchAction::Mirror { name, write } => mirror(&state, name, write.as_deref())?,
        SwitchAction::Cni => answer_runtime(&state, &program)?,
    }
    Ok(())
}

/// Prints what the kernel offers for a switch; an error if a switch cannot work.
fn examine(state: &State, json: bool) -> Result<(), Failure> {
    let mut findings = doctor::examine();
    if let Some(config) = apply::installed(state)? {
        findings.extend(doctor::examine_config(&config));
    }
    findings.extend(state.process().and_then(doctor::examine_process));
    if let Ok(reading) = show::read(state) {
        findings.push(doctor::examine_ports(&reading));
        findings.extend(doctor::examine_restarts(&reading));
    }
    examined(&findings, json, "a switch cannot work on this host")
}

/// Writes the frames of a port to a file or to standard output.
fn mirror(state: &State, name: &str, file: Option<&Path>) -> Result<(), Failure> {
    match file {
        Some(path) => {
            let failed = |e| millpond_linux::switch::Error::file(path, e);
            control::mirror(state, name, &mut std::fs::File::create(path).map_err(failed)?)?;
        }
        None => {
            needs_reader()?;
            control::mirror(state, name, &mut std::io::stdout().lock())?;
        }
    }
    Ok(())
}

/// Does what a container runtime asks by CNI, and prints the result for it.
fn answer_runtime(state: &State, program: &dyn Fn() -> Command) -> Result<(), Failure> {
    let mut input = String::new();
    std::io::stdin()
        .read_to_string(&mut input)
        .map_err(|e| Failure::Usage(format!("standard input: {e}")))?;
    let variable = |name: &str| std::env::var(name).ok();
    let call = cni::Call { variable: &variable, input: &input, state, program };
    match call.run() {
        Ok(result) => result.iter().for_each(|result| print(&result.to_string())),
        Err(problem) => {
            // A runtime reads it there.
            print(&problem.to_json().to_string());
            return Err(Failure::Runs(format!("{}: {}", problem.msg, problem.details)));
        }
    }
    Ok(())
}

fn print_value<T: serde::Serialize>(
    json: bool,
    value: &T,
    table: impl Fn() -> String,
) -> Result<(), Failure> {
    let text = match json {
        true => serde_json::to_string(value)?,
        false => table().trim_end().to_string(),
    };
    print(&text);
    Ok(())
}

/// A line for each peer: its paths, by their addresses.
fn routes(config: &Config) -> Vec<String> {
    let mut peers: Vec<&str> = config.paths.iter().map(|path| path.peer.as_str()).collect();
    peers.sort_unstable();
    peers.dedup();
    let line = |peer: &str| {
        let paths = config.paths.iter().filter(|path| path.peer == peer);
        let ends: Vec<String> =
            paths.map(|path| format!("{} to {}", path.local, path.remote)).collect();
        let noun = if ends.len() == 1 { "path" } else { "paths" };
        format!("{} {noun} to {peer}: {}", ends.len(), ends.join(", "))
    };
    peers.into_iter().map(line).collect()
}

fn done(done: &Done) -> Result<(), Failure> {
    print(&format!("{} of {} ports open", done.open, done.open + done.waiting.len()));
    done.notes.iter().for_each(|note| eprint(format_args!("note: {note}")));
    done.waiting.iter().for_each(|(_, reason)| eprint(format_args!("waits: {reason}")));
    match done.waiting.len() {
        0 => Ok(()),
        n => {
            Err(Failure::Runs(format!("{n} of the ports wait; the switch tries them every second")))
        }
    }
}

fn show_switch(state: &State, args: &ShowArgs) -> Result<(), Failure> {
    let table = |now: &Reading, before: &Reading| now.table(Some(before));
    follow(args, show::read(state)?, |_| Ok(show::read(state)?), table)
}
