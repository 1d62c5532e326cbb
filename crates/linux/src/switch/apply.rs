//! Makes a file's switch run: changes the one that runs, or starts one. Takes all of it away.
//!
//! Whoever changes, starts or removes holds the lock of changes from before it looks at what there
//! is. A process that is started here does not take it: its starter has it until the process
//! answers.
//!
//! Invariant: killed at any instant, the interfaces that were made are on record, and the next
//! apply or remove goes on from there.

use super::config::{Config, PortKind, PortParams};
use super::control::{self, Done};
use super::error::Error;
use super::ports;
use super::reading::PortReading;
use super::show;
use super::state::{Made, Record, State};
use crate::dataplane::port;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a switch may take to start and to end, and for each of its interfaces.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_A_PORT: Duration = Duration::from_millis(50);
/// How long the probes of a port that was opened take to find a loop.
const LOOPS: Duration = Duration::from_millis(400);
/// The variable that names a process's starter, which has the lock of changes.
const STARTER: &str = "MILLPOND_SWITCH_STARTER";

/// Reads the configuration in a file.
///
/// # Errors
/// [`Error::File`] if the file cannot be read, [`Error::Config`] if it has errors.
pub fn read(file: &Path) -> Result<Config, Error> {
    let text = fs::read_to_string(file).map_err(|e| Error::file(file, e))?;
    Ok(Config::parse(&file.to_string_lossy(), &text)?)
}

/// Returns the configuration that was applied last, or `None` if there is none.
///
/// # Errors
/// As [`read`].
pub fn installed(state: &State) -> Result<Option<Config>, Error> {
    match state.has("config.toml")? {
        true => read(&state.file("config.toml")).map(Some),
        false => Ok(None),
    }
}

/// Changes the running switch, or starts one. `program` starts `millpond switch serve` for the
/// state folder.
///
/// # Errors
/// [`Error::Busy`] if another process changes the switch, [`Error::Port`] if an interface of the
/// earlier switch cannot be removed, [`Error::Start`] if the switch does not start,
/// [`Error::Refused`] if it refuses the configuration, [`Error::File`] if the state cannot be
/// written. A port that cannot be opened is no error: the switch tries again.
pub fn apply(state: &State, config: &Config, program: &dyn Fn() -> Command) -> Result<Done, Error> {
    let _lock = state.lock_changes()?;
    let mut done = change(state, config, program)?;
    // A cable may make a loop, which a switch finds by probes that it sends when it opens a port.
    if config.ports.iter().any(|port| port.kind == PortKind::AfPacket) {
        std::thread::sleep(LOOPS);
        let reading = show::read(state)?;
        let notes = reading.ports.iter().filter_map(PortReading::loop_note);
        let new: Vec<String> = notes.filter(|note| !done.notes.contains(note)).collect();
        done.notes.extend(new);
    }
    Ok(done)
}

/// As `apply`, for who has the lock.
fn change(state: &State, config: &Config, program: &dyn Fn() -> Command) -> Result<Done, Error> {
    let text = config.to_text();
    state.write("config.toml", &text)?;
    match control::ask(state, "apply", &text) {
        Ok(Some(done)) => return Ok(done),
        Ok(None) => {}
        // Another version's process need not understand the text that this program has read. It
        // makes way; interfaces stay, and their connections.
        Err(Error::Refused(_)) => drop(stop(state)?),
        Err(other) => return Err(other),
    }
    strike_strangers(state, config)?;
    start(state, program, PATIENCE + PATIENCE_A_PORT * config.ports.len() as u32)?;
    // Once more, which changes nothing, and reports how it stands.
    control::ask(state, "apply", &text)?.ok_or_else(|| Error::Start(last_words(state)))
}

/// Removes interfaces that an earlier switch had made and this one does not name.
fn strike_strangers(state: &State, config: &Config) -> Result<(), Error> {
    let stays = |made: &Made| {
        config
            .ports
            .iter()
            .any(|port| port.device() == made.device && port.namespace == made.namespace)
    };
    unmake(state, state.records()?.into_iter().filter(|record| !stays(&record.made)).collect())
}

/// Removes interfaces; those that cannot be removed stay on record; the error is that of the first.
fn unmake(state: &State, records: Vec<Record>) -> Result<(), Error> {
    let (gone, failed) = unmake_all(records);
    if !gone.is_empty() {
        state.strike(&gone)?;
    }
    failed.map_or(Ok(()), Err)
}

/// Returns the interfaces that were removed, and the first error.
fn unmake_all(records: Vec<Record>) -> (Vec<Made>, Option<Error>) {
    let (mut gone, mut failed) = (Vec::new(), None);
    for record in records {
        match ports::unmake(&record) {
            Ok(()) => gone.push(record.made),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    (gone, failed)
}

fn last_words(state: &State) -> String {
    let log = fs::read_to_string(state.file("log")).unwrap_or_default();
    let last: Vec<&str> = log.lines().rev().take(3).collect();
    match last.is_empty() {
        true => format!("it said nothing in {}", state.file("log").display()),
        false => last.into_iter().rev().collect::<Vec<_>>().join("; "),
    }
}

fn start(state: &State, program: &dyn Fn() -> Command, patience: Duration) -> Result<(), Error> {
    let path = state.file("log");
    let log = fs::File::create(&path).map_err(|e| Error::file(&path, e))?;
    let errors = log.try_clone().map_err(|e| Error::file(&path, e))?;
    let mut command = program();
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    starts(&mut command);
    let mut child = command.spawn().map_err(|e| Error::kernel("starting the switch", e))?;
    let began = Instant::now();
    while control::ask::<super::reading::Reading>(state, "show", "").ok().flatten().is_none() {
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err(Error::Start(last_words(state)));
        }
        if began.elapsed() > patience {
            return Err(Error::Start(format!("it does not answer; {}", last_words(state))));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Names this process to the one that it starts, and that begins under its lock.
pub(super) fn starts(command: &mut Command) {
    command.env(STARTER, std::process::id().to_string());
}

/// Whether who has started this process holds the lock of changes for it.
pub(super) fn is_started() -> bool {
    let parent = std::os::unix::process::parent_id().to_string();
    std::env::var(STARTER).is_ok_and(|starter| starter == parent)
}

/// Ends the running switch, and waits for its end; its interfaces stay. Returns whether one ran.
///
/// # Errors
/// [`Error::Kernel`] if it does not answer and cannot be killed, [`Error::Start`] if it does not
/// end in time, [`Error::File`] if the state cannot be read.
pub fn stop(state: &State) -> Result<bool, Error> {
    let Some(pid) = state.process() else { return Ok(false) };
    let asked = control::ask::<()>(state, "stop", "");
    if !matches!(asked, Ok(Some(()))) {
        // It does not answer; it holds the lock, so it is ours and no other's.
        let process = rustix::process::Pid::from_raw(pid as i32);
        let killed =
            process.map(|p| rustix::process::kill_process(p, rustix::process::Signal::KILL));
        if let Some(Err(e)) = killed.filter(|done| *done != Err(rustix::io::Errno::SRCH)) {
            return Err(Error::kernel(format!("ending process {pid}"), e));
        }
    }
    let (began, ports) = (Instant::now(), state.records()?.len() as u32);
    while state.process() == Some(pid) {
        if began.elapsed() > PATIENCE + PATIENCE_A_PORT * ports {
            return Err(Error::Start(format!("process {pid} does not end")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}

/// Ends the switch, and removes every interface that was made for it, and its state. Returns
/// whether there was anything.
///
/// # Errors
/// [`Error::Busy`] if another process changes the switch, [`Error::Port`] if an interface cannot be
/// removed, [`Error::File`] if the state cannot be, and the errors of [`stop`].
pub fn remove_all(state: &State) -> Result<bool, Error> {
    if !state.has("")? {
        return Ok(false);
    }
    let _lock = state.lock_changes()?;
    let ran = stop(state)?;
    let made = state.records()?;
    let there = ran || !made.is_empty() || state.file("config.toml").exists();
    // The record goes with the folder: there may be no room to write it anew.
    let (gone, failed) = unmake_all(made);
    if let Some(error) = failed {
        state.strike(&gone)?;
        return Err(error);
    }
    // A file that another version has written may be none of this one's.
    let config = installed(state).ok().flatten().unwrap_or_default();
    config.ports.iter().for_each(ports::forget);
    port::sweep_claims();
    state.erase()?;
    Ok(there)
}

/// Adds the ports that `new` returns for the configuration that was applied last, to the switch
/// that runs or to a new one.
///
/// # Errors
/// [`Error::Config`] if the ports do not fit the switch, the errors of `new`, and those of
/// [`apply`].
pub fn add(
    state: &State,
    new: impl FnOnce(&Config) -> Result<Vec<PortParams>, Error>,
    program: &dyn Fn() -> Command,
) -> Result<Done, Error> {
    let _lock = state.lock_changes()?;
    let mut config = installed(state)?.unwrap_or_default();
    let ports = new(&config)?;
    config.ports.extend(ports);
    // Errors in them name a file that contains them.
    let config = Config::parse("the switch with more ports", &config.to_text())?;
    change(state, &config, program)
}

/// Removes one port from the switch.
///
/// # Errors
/// [`Error::NotRunning`] if there is no switch, [`Error::Refused`] if it has no such port, and the
/// errors of [`apply`].
pub fn remove(state: &State, name: &str, program: &dyn Fn() -> Command) -> Result<Done, Error> {
    if !state.has("")? {
        return Err(state.absent());
    }
    let _lock = state.lock_changes()?;
    let mut config = installed(state)?.ok_or_else(|| state.absent())?;
    let names: Vec<String> = config.ports.iter().map(|p| p.name.clone()).collect();
    config.ports.retain(|p| p.name != name);
    match config.ports.len() == names.len() {
        true => Err(Error::Refused(format!(
            "there is no port \"{name}\"; there are: {}",
            names.join(", ")
        ))),
        false => change(state, &config, program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_knows_what_another_has_removed() {
        let state = State::scratch("remove");
        let none = || Command::new("true");
        assert!(
            matches!(remove(&state, "a", &none), Err(Error::NotRunning(_)))
                && !state.folder().exists()
        );
        let port = |name: &str| {
            format!("[[port]]\nname = \"{name}\"\nkind = \"pcap\"\nwrite = \"{name}.pcap\"\n")
        };
        state.write("config.toml", &["a", "b", "c"].map(port).concat()).unwrap();
        // One that is under way has the lock.
        let lock = state.lock_changes().unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| remove(&state, "b", &none));
            std::thread::sleep(Duration::from_millis(200));
            state.write("config.toml", &["b", "c"].map(port).concat()).unwrap();
            drop(lock);
            assert!(matches!(other.join().unwrap(), Err(Error::Start(_))), "`true` is no switch");
        });
        let left: Vec<String> =
            installed(&state).unwrap().unwrap().ports.into_iter().map(|p| p.name).collect();
        assert_eq!(left, ["c"]);
        state.erase().unwrap();
    }
}
