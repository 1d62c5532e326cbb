//! `millpond limit`: calls `millpond_linux` by the arguments, and prints the results.

use super::{examined, follow};
use crate::args::linux::{LimitAction, LimitArgs, LimitFileArgs, ShowArgs};
use crate::eprint;
use crate::failure::Failure;
use crate::print;
use millpond_linux::limit::apply::{self, Done, Session};
use millpond_linux::limit::cgroup::Hierarchy;
use millpond_linux::limit::plan::Plan;
use millpond_linux::limit::store::Source;
use millpond_linux::limit::{Error, check, doctor, pods, serve, show};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Does what `args` asks for.
pub fn limit(args: &LimitArgs) -> Result<(), Failure> {
    let bpffs = args.bpffs.as_path();
    match &args.action {
        LimitAction::Apply(file) => apply(bpffs, file, false),
        LimitAction::Check { files } => check_files(files),
        LimitAction::Run { name, command, watch: None } => run(bpffs, name, command),
        LimitAction::Run { name, watch: Some(process), .. } => {
            watch(bpffs, name, *process);
            Ok(())
        }
        LimitAction::Observe { what } => observe(bpffs, what),
        LimitAction::Show(how) => show_limits(bpffs, how),
        LimitAction::Set { name, keys } => {
            let mut session = Session::existing(bpffs, &note)?;
            let sources = session.set(name, keys)?;
            done(&session.install(sources, true)?);
            let has = |s: &&Source| s.config.limits.iter().any(|l| l.name() == *name);
            if let Some(source) = session.sources.iter().find(has) {
                eprint(format_args!(
                    "note: {} is not changed: its next apply, as at a start of the service, brings \
                     its own values back",
                    source.file
                ));
            }
            Ok(())
        }
        LimitAction::Pods { file } => pods(file),
        LimitAction::Doctor(how) => {
            examined(&doctor::examine(bpffs), how.json, "limits cannot work on this host")
        }
        LimitAction::Serve { metrics } => {
            serve::serve(bpffs, *metrics, &|text| eprint(text))?;
            Ok(())
        }
        LimitAction::Remove { name, .. } => match name {
            None => {
                let removed = apply::remove_all(bpffs)?;
                let is_removed = removed.is_some();
                let notes = [removed.unwrap_or_default(), apply::cgroups_left()].concat();
                match (is_removed, notes.is_empty()) {
                    (true, true) => print("all limits are removed; nothing of them is left"),
                    (true, false) => print("all limits are removed"),
                    (false, _) => none_installed("no limits are installed")?,
                }
                notes.iter().for_each(|text| note(text));
                Ok(())
            }
            Some(name) => {
                let mut session = Session::existing(bpffs, &note)?;
                let sources = session.without(name)?;
                done(&session.install(sources, true)?);
                session.left().iter().for_each(|text| note(text));
                Ok(())
            }
        },
    }
}

/// Prints a note for the user.
fn note(text: &str) {
    eprint(format_args!("note: {text}"));
}

fn open(bpffs: &Path) -> Result<Session, Failure> {
    let session = Session::open_noting(bpffs, &note)?;
    session.notes.iter().for_each(|text| note(text));
    Ok(session)
}

fn apply(bpffs: &Path, args: &LimitFileArgs, observe: bool) -> Result<(), Failure> {
    // Before anything is touched: errors of the file need no privilege to be found.
    let session = Session::look(bpffs)?;
    let source = session.read(&args.file, observe)?;
    source.config.notes().iter().for_each(|text| note(text));
    if args.dry_run {
        let sources = session.with(source);
        let plan = session.plan(&sources)?;
        print(&planned(&session.sources, &sources, &plan));
        // As apply would.
        session.check(&plan, args.wait)?;
        return Ok(());
    }
    let mut session = open(bpffs)?;
    let source = session.read(&args.file, observe)?;
    if args.create {
        for folder in session.make_cgroups(&source)? {
            eprint(format_args!("note: made the cgroup {}", folder.display()));
        }
    }
    let sources = session.with(source);
    done(&session.install(sources, args.wait)?);
    if let Ok(mut reading) = show::read(bpffs, None) {
        reading.find_foreign_sockets();
        reading.notes().iter().for_each(|text| note(text));
    }
    Ok(())
}

/// Prints the limits of files, or their errors.
fn check_files(files: &[PathBuf]) -> Result<(), Failure> {
    for source in check::check(files)? {
        let config = &source.config;
        print(&format!(
            "{}: no errors in {} and {}",
            source.file,
            plural(config.limits.len(), "limit"),
            plural(config.floors.len(), "floor")
        ));
        config.notes().iter().for_each(|text| note(text));
    }
    Ok(())
}

/// Becomes the command, in the limit's cgroup.
fn run(bpffs: &Path, name: &str, command: &[OsString]) -> Result<(), Failure> {
    let cgroup = Session::look(bpffs)?.cgroup_of(name)?;
    // The watcher's parent ends at once: the command gets no child that it has not started.
    if let Ok(mut parent) = watcher(bpffs, name, std::process::id()) {
        let _ = parent.wait();
    }
    cgroup.enter()?;
    let [program, arguments @ ..] = command else { return Ok(()) };
    let error = Command::new(program).args(arguments).exec();
    Err(Error::file(Path::new(program), error).into())
}

fn watcher(bpffs: &Path, name: &str, process: u32) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["limit", "run", name, "--watch", &process.to_string(), "--bpffs"]).arg(bpffs);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
}

/// A child of the process that it watches starts another watcher and ends.
fn watch(bpffs: &Path, name: &str, process: u32) {
    if std::os::unix::process::parent_id() == process {
        let _ = watcher(bpffs, name, process);
    } else if let Some(hint) = show::hint_of_process(bpffs, name, process) {
        eprint(format_args!("note: {hint}"));
    }
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn observe(bpffs: &Path, what: &str) -> Result<(), Failure> {
    let session = Session::look(bpffs)?;
    let installed = session.sources.iter().flat_map(|s| &s.config.limits).any(|l| l.name() == what);
    if !installed && Path::new(what).exists() {
        let file = LimitFileArgs { file: what.into(), dry_run: false, wait: false, create: false };
        return apply(bpffs, &file, true);
    }
    let mut session = Session::existing(bpffs, &note)?;
    let sources = session.set(what, &[("observe".to_string(), "true".to_string())])?;
    done(&session.install(sources, true)?);
    Ok(())
}

fn pods(file: &Path) -> Result<(), Failure> {
    let text = match file == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let (config, notes) =
        pods::config(&file.to_string_lossy(), &text.map_err(|e| Error::file(file, e))?)?;
    print(config.to_text().trim_start());
    notes.iter().for_each(|text| note(text));
    Ok(())
}

fn done(done: &Done) {
    print(&format!(
        "{} in force, {} with programs",
        plural(done.limits, "limit"),
        plural(done.cgroups, "cgroup")
    ));
    done.notes.iter().for_each(|text| note(text));
    for (limit, reason) in &done.waiting {
        eprint(format_args!("note: limit \"{limit}\" waits for its cgroup: {reason}"));
    }
}

/// The changes that an apply would make.
fn planned(old: &[Source], new: &[Source], plan: &Plan) -> String {
    let limits = |sources: &[Source]| -> Vec<_> {
        sources.iter().flat_map(|s| s.config.limits.clone()).collect()
    };
    let (old, new) = (limits(old), limits(new));
    let mut lines = Vec::new();
    for limit in &new {
        let rate = limit.queue.rate;
        match old.iter().find(|l| l.name() == limit.name()) {
            None => lines.push(format!("+ {} at {rate}", limit.name())),
            Some(before) if before == limit => lines.push(format!("= {} at {rate}", limit.name())),
            Some(before) => {
                lines.push(format!("~ {} at {rate} (was {})", limit.name(), before.queue.rate))
            }
        }
    }
    let gone = old.iter().filter(|l| !new.iter().any(|n| n.name() == l.name()));
    lines.extend(gone.map(|l| format!("- {}", l.name())));
    for hook in &plan.hooks {
        let counts = hook.chain.map(|c| c.count);
        lines.push(format!(
            "{}: {} egress and {} ingress scopes",
            hook.cgroup.path.display(),
            counts[0],
            counts[1]
        ));
    }
    lines
        .extend(plan.waiting.iter().map(|(limit, reason)| format!("{limit} would wait: {reason}")));
    lines.join("\n")
}

fn show_limits(bpffs: &Path, args: &ShowArgs) -> Result<(), Failure> {
    let first = match show::read(bpffs, None) {
        Err(Error::Nothing) => {
            let text = if args.json { "{\"limits\": []}" } else { "no limits are installed" };
            return none_installed(text);
        }
        other => other?,
    };
    let read = |before: &show::Reading| {
        let mut now = show::read(bpffs, Some(before))?;
        now.find_foreign_sockets();
        Ok(now)
    };
    follow(args, first, read, |now, _| now.table())
}

/// Prints that there are no limits, where they could be seen: a network namespace made by `ip`
/// hides cgroups and limits alike.
fn none_installed(text: &str) -> Result<(), Failure> {
    Hierarchy::find()?;
    print(text);
    Ok(())
}
