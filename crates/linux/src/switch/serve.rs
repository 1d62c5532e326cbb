//! `millpond switch serve`: the process that moves frames, in the foreground.
//!
//! It runs what was applied last. If another process does, this one asks it to end and takes its
//! place; interfaces stay, and senders send again what was on its way. So it fits a service of
//! systemd, whose restarts and upgrades lose no connection.
//!
//! It begins as a change of the switch, under the same lock, which it holds until it answers:
//! nobody changes or removes what is half open.
//!
//! Invariant: one process a state folder; its end, however it comes, leaves interfaces and
//! connections.

use super::apply;
use super::config::Config;
use super::control::{self, Asking};
use super::error::Error;
use super::journal;
use super::run::Switch;
use super::scheduling;
use super::state::{State, UNSAVED};
use super::supervise;
use crate::dataplane::fault;
use crate::metrics;
use log::LevelFilter;
use std::net::SocketAddr;

/// Serves until a request stops it, or until it is killed. `config` replaces the configuration that
/// was applied last. Logs events to standard error, down to `level`.
///
/// # Errors
/// [`Error::Busy`] if another process changes the switch, [`Error::File`] if the state cannot be
/// read or written, [`Error::Config`] if the last configuration has errors, [`Error::Kernel`] if it
/// cannot listen on the address, and the errors of stopping the process that runs.
pub fn serve(
    state: &State,
    config: Option<Config>,
    listen: Option<SocketAddr>,
    level: LevelFilter,
) -> Result<(), Error> {
    journal::start(level);
    fault::install();
    let restarts = supervise::restarts();
    if apply::is_started() && restarts.is_none() {
        return supervise::supervise(apply::starts);
    }
    let is_restarted = restarts.is_some_and(|restarts| restarts.count > 0);
    allow_descriptors();
    let changing = match apply::is_started() {
        // An interrupt of the terminal's command does not interrupt the switch.
        true => {
            scheduling::lead();
            None
        }
        false => Some(state.lock_changes()?),
    };
    let mut unsaved = None;
    let applied = match config {
        Some(config) => {
            // The copy is for others. A full disk is no reason to leave everybody without frames.
            unsaved = state.write("config.toml", &config.to_text()).err().map(|e| e.to_string());
            config
        }
        None => match apply::installed(state)? {
            // It was removed while its supervisor waited.
            None if is_restarted => return Ok(()),
            installed => installed.unwrap_or_default(),
        },
    };
    if let Some(reason) = &unsaved {
        log::warn!("{UNSAVED}: {reason}");
    }
    let _lock = loop {
        match state.lock_frames()? {
            Some(lock) => break lock,
            // Another was started while its supervisor waited.
            None if is_restarted => return Ok(()),
            None => {
                let pid = state.process();
                // Else somebody just looked whether there is one.
                if apply::stop(state)?
                    && let Some(pid) = pid
                {
                    log::info!("took over from process {pid}");
                }
            }
        }
    };
    log::info!(
        "process {}: {} ports, {} paths",
        std::process::id(),
        applied.ports.len(),
        applied.paths.len()
    );
    let (asking, requests, wake) = Asking::new()?;
    if let Some(address) = listen {
        let asking = asking.clone();
        let page = move || {
            asking.show().map(|reading| reading.prometheus()).map_err(|error| error.to_string())
        };
        metrics::serve(address, page)
            .map_err(|e| Error::kernel(format!("listening on {address}"), e))?;
        log::info!("metrics at http://{address}/metrics");
    }
    warn_of_open_peers(&applied);
    let mut switch = Switch::with_workers(state.clone(), applied, &asking, requests, wake)?;
    switch.unsaved = unsaved;
    control::listen(state, asking)?;
    drop(changing);
    switch.run()
}

fn warn_of_open_peers(config: &Config) {
    let peers = config.peers();
    for peer in peers.iter().map(|name| config.peer(name)).filter(|peer| peer.key.is_none()) {
        log::warn!(
            "NOT AUTHENTICATED: paths to {} have no key, and are trusted as wires are",
            peer.name
        );
    }
}

/// A port takes three descriptors, and a shell allows a process 1,024.
fn allow_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused, opening a port beyond the limit is an error.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::show;
    use std::time::{Duration, Instant};

    #[test]
    fn it_begins_when_no_change_is_under_way_and_is_one_until_it_answers() {
        let state = State::scratch("serve");
        let lock = state.lock_changes().unwrap();
        let its = state.clone();
        let serving = std::thread::spawn(move || {
            serve(&its, Some(Config::default()), None, LevelFilter::Off)
        });
        std::thread::sleep(Duration::from_millis(200));
        assert!(!state.file("config.toml").exists() && state.process().is_none());
        // A removal, after which the folder is another.
        state.erase().unwrap();
        drop(lock);
        let start = Instant::now();
        while show::read(&state).is_err() {
            assert!(start.elapsed() < Duration::from_secs(10), "it does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(state.process(), Some(std::process::id()));
        drop(state.lock_changes().unwrap());
        control::ask::<()>(&state, "stop", "").unwrap().unwrap();
        serving.join().unwrap().unwrap();
        state.erase().unwrap();
        assert!(!state.folder().exists());
    }

    /// Files of the state folder lead to a device that is full.
    #[test]
    fn it_starts_on_a_full_disk_and_reports_what_is_not_saved() {
        let state = State::scratch("full");
        state.create().unwrap();
        for name in ["config.toml.new", "lock", "taps"] {
            std::os::unix::fs::symlink("/dev/full", state.file(name)).unwrap();
        }
        let its = state.clone();
        let text = "[[port]]\nname = \"a\"\nkind = \"pcap\"\nwrite = \"/dev/null\"\n";
        let config = Config::parse("test", text).unwrap();
        let serving = std::thread::spawn(move || serve(&its, Some(config), None, LevelFilter::Off));
        let start = Instant::now();
        let reading = loop {
            match show::read(&state) {
                Ok(reading) => break reading,
                Err(_) => {
                    assert!(start.elapsed() < Duration::from_secs(10) && !serving.is_finished())
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(reading.ports.len(), 1);
        let reason = reading.unsaved.clone().unwrap();
        assert!(reason.contains("No space left") && reading.table(None).contains(&reason));
        assert_eq!(state.process(), Some(std::process::id()), "by its socket");
        // Half a line is not left either.
        std::fs::remove_file(state.file("taps")).unwrap();
        assert!(state.write("taps", "").is_ok() && state.records().unwrap().is_empty());
        assert!(apply::remove_all(&state).unwrap() && !state.folder().exists());
        serving.join().unwrap().unwrap();
    }
}
