//! `millpond limit serve`: what has to go on while limits hold. Answers Prometheus, puts limits and
//! floors back on cgroups that were made anew (when the kernel reports cgroups, or limits have
//! changed), and runs the kick and the notifications where a file asks for them.
//!
//! Invariant: limits hold without it; its end, however it comes, changes none.

use super::Error;
use super::apply::Session;
use super::cgroup::Hierarchy;
use super::config::{FloorParams, Limit};
use super::install::Programs;
use super::kick::Kick;
use super::layout::Label;
use super::notify::{Counters, Notify};
use super::plan::{floor_label, floor_name};
use super::show;
use super::store::{Known, Source, Store};
use super::watch::Watch;
use crate::metrics;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often what is installed is looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Serves until it is killed. Calls `log` with each event.
///
/// # Errors
/// [`Error::NoCgroups`] if no cgroup v2 is mounted, [`Error::Kernel`] if it cannot listen on the
/// address.
pub fn serve(bpffs: &Path, listen: Option<SocketAddr>, log: &dyn Fn(&str)) -> Result<(), Error> {
    // Before anybody can ask: who asks often enough leaves no file for it.
    let mut watch = Watch::new(Hierarchy::find()?.root);
    let mut notify = Notify::default();
    if let Some(address) = listen {
        let (bpffs, notified) = (bpffs.to_path_buf(), notify.counters.clone());
        metrics::serve(address, move || page(&bpffs, &notified)).map_err(|e| Error::Kernel {
            what: format!("listening on {address}"),
            reason: e.to_string(),
        })?;
        log(&format!("metrics at http://{address}/metrics"));
    }
    let kicked = bpffs.to_path_buf();
    std::thread::spawn(move || kick(&kicked));
    let (mut news, mut known, mut programs) = (News::default(), Known::default(), None);
    if watch.is_blind() {
        log("the kernel has no more watches (fs.inotify.max_user_watches): cgroups that are made \
             anew are looked for once a second");
    }
    loop {
        notify.follow(bpffs, log);
        news.print(log);
        let (cgroups, limits) = (watch.wait(PERIOD), known.look(bpffs).1);
        if !cgroups && !limits {
            continue;
        }
        match restore(bpffs, &mut programs, limits) {
            Ok(None) => {}
            Ok(Some(change)) => news.add(change),
            Err(error) => news.failed = Some(error.to_string()),
        }
    }
}

/// The changes by an application of installed limits, by the names of limits and floors.
struct Change {
    /// They were missing on cgroups that are there, or in force on cgroups that are gone.
    lost: Vec<String>,
    /// They wait for their cgroups now.
    waiting: Vec<String>,
}

/// Changes that the log does not have yet: at most one line a second.
#[derive(Default)]
struct News {
    printed: Option<Instant>,
    again: BTreeSet<String>,
    waiting: BTreeSet<String>,
    failed: Option<String>,
}

impl News {
    fn add(&mut self, change: Change) {
        let waits = |name: &String| change.waiting.contains(name);
        let (waiting, again): (Vec<_>, Vec<_>) = change.lost.into_iter().partition(waits);
        self.waiting.retain(|name| !again.contains(name));
        self.again.retain(|name| !waiting.contains(name));
        self.waiting.extend(waiting);
        self.again.extend(again);
        self.failed = None;
    }

    fn print(&mut self, log: &dyn Fn(&str)) {
        if self.printed.is_some_and(|at| at.elapsed() < PERIOD) {
            return;
        }
        let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        let (again, waiting) = (std::mem::take(&mut self.again), std::mem::take(&mut self.waiting));
        if !again.is_empty() {
            parts.push(format!("in force on cgroups that were made: {}", list(again)));
        }
        if !waiting.is_empty() {
            parts.push(format!("waiting for cgroups that are gone: {}", list(waiting)));
        }
        parts.extend(self.failed.take().map(|e| format!("limits could not be applied again: {e}")));
        if !parts.is_empty() {
            self.printed = Some(Instant::now());
            log(&parts.join("; "));
        }
    }
}

/// Applies the installed limits again if a cgroup was made or removed. `programs` are kept for the
/// next time, since loading them takes longer than all the rest; if the limits `are_new`, they are
/// loaded before they are needed.
fn restore(
    bpffs: &Path,
    programs: &mut Option<Programs>,
    are_new: bool,
) -> Result<Option<Change>, Error> {
    let Some(store) = Store::open(bpffs)? else { return Ok(None) };
    let hierarchy = Hierarchy::find()?;
    let bank = store.bank()?;
    let labels = store.labels(bank)?;
    // A link reports that its cgroup is gone some time after that.
    let (attached, there) = (store.live(), hierarchy.ids());
    let live = |cgroup: u64| attached.contains(&cgroup) && there.contains(&cgroup);
    let lost = lost(&hierarchy, &store.sources(bank)?, &labels, &live);
    if lost.is_empty() && !are_new {
        return Ok(None);
    }
    let mut session = Session::open(bpffs)?;
    session.programs = programs.take();
    if lost.is_empty() {
        session.prepare()?;
        *programs = session.programs.take();
        return Ok(None);
    }
    let sources = session.sources.clone();
    let done = session.install(sources, true);
    *programs = session.programs.take();
    Ok(Some(Change { lost, waiting: done?.waiting.into_iter().map(|(name, _)| name).collect() }))
}

/// The limits and floors that are missing where their cgroups are now, or in force where none is
/// any more.
fn lost(
    hierarchy: &Hierarchy,
    sources: &[Source],
    labels: &[(u16, Label)],
    live: &dyn Fn(u64) -> bool,
) -> Vec<String> {
    let is_lost = |limit: &&Limit| {
        let installed =
            labels.iter().find(|(_, l)| l.name == limit.name()).map_or(0, |(_, l)| l.cgroup);
        limit.cgroup().is_some_and(|target| match installed {
            0 => hierarchy.resolve(&target).is_ok(),
            id => !live(id),
        })
    };
    let of_floors = labels.iter().filter(|(_, l)| l.name == floor_label(l.cgroup));
    let mut placed: Vec<u64> = of_floors.map(|(_, l)| l.cgroup).collect();
    placed.sort_unstable();
    placed.dedup();
    // A floor that no limit is above has no scope.
    let is_missing = |floor: &&FloorParams| {
        let found = floor.target().and_then(|target| hierarchy.resolve(&target).ok());
        found.is_some_and(|cgroup| {
            let is_limited =
                || cgroup.lineage().any(|id| labels.iter().any(|(_, l)| l.cgroup == id));
            !placed.contains(&cgroup.id) && is_limited()
        })
    };
    let floors = || sources.iter().flat_map(|s| &s.config.floors);
    let limits = sources.iter().flat_map(|s| &s.config.limits).filter(is_lost);
    let mut lost: Vec<String> = limits.map(|limit| limit.name().to_string()).collect();
    if floors().count() > placed.len() {
        let missing = floors().filter(is_missing).filter_map(FloorParams::target);
        lost.extend(missing.map(|target| floor_name(&target)));
    }
    if lost.is_empty() && placed.iter().any(|id| !live(*id)) {
        lost.push("a floor".into());
    }
    lost
}

/// The numbers now; nothing where nothing is installed.
fn page(bpffs: &Path, notified: &Counters) -> Result<String, String> {
    match show::read(bpffs, None) {
        Ok(reading) => Ok(reading.prometheus() + &notified.prometheus()),
        Err(Error::Nothing) => Ok(String::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// The paths of limited cgroups, and how often to kick; `None`: nobody asks for it.
fn kicked(bpffs: &Path, known: &mut Known) -> Option<(Vec<PathBuf>, Duration)> {
    let sources = known.look(bpffs).0;
    let every = sources.iter().filter_map(|s| s.config.host.kick).min()?;
    let every = every.to_duration().clamp(Duration::from_millis(1), Duration::from_secs(10));
    let hierarchy = Hierarchy::find().ok()?;
    let targets = sources.iter().flat_map(|s| &s.config.limits).filter_map(|l| l.cgroup());
    Some((targets.filter_map(|t| hierarchy.resolve(&t).ok()).map(|c| c.path).collect(), every))
}

fn kick(bpffs: &Path) {
    let (mut loaded, mut every): (Option<Kick>, Duration) = (None, PERIOD);
    let (mut looked, mut known): (Option<Instant>, Known) = (None, Known::default());
    loop {
        if looked.is_none_or(|at| at.elapsed() >= PERIOD) {
            looked = Some(Instant::now());
            match kicked(bpffs, &mut known) {
                None => (loaded, every) = (None, PERIOD),
                Some((cgroups, period)) => {
                    loaded = loaded.filter(|kick| kick.is_current(bpffs));
                    if loaded.is_none() {
                        loaded =
                            Kick::load(bpffs).map_err(|error| eprintln!("no kick: {error}")).ok();
                    }
                    every = if loaded.is_some() { period } else { Duration::from_secs(60) };
                    loaded.iter_mut().for_each(|kick| kick.find_namespaces(&cgroups));
                }
            }
        }
        if let Some(kick) = &mut loaded {
            kick.run();
        }
        std::thread::sleep(every);
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::super::plan::plan;
    use super::*;
    use std::fs;

    #[test]
    fn floors_are_missed_as_limits_are() {
        let root = std::env::temp_dir().join(format!("millpond-restore-{}", std::process::id()));
        let inner = root.join("slice/ssh");
        fs::create_dir_all(root.join("slice")).unwrap();
        let hierarchy = Hierarchy { root: root.clone() };
        let text = "[[limit]]\nname = \"a\"\ncgroup = \"slice\"\n[[floor]]\ncgroup = \
                    \"slice/ssh\"\n[[floor]]\ncgroup = \"other\"\n";
        let sources =
            [Source { file: "a.toml".into(), config: Config::parse("a.toml", text, &[]).unwrap() }];
        let applied = || -> Vec<(u16, Label)> {
            let plan = plan(&sources, &Vec::new(), &|target| hierarchy.resolve(target)).unwrap();
            plan.scopes.into_iter().map(|s| (s.id, s.label)).collect()
        };
        let changed = |labels: &[(u16, Label)], gone: u64| {
            !lost(&hierarchy, &sources, labels, &|id| id != gone).is_empty()
        };
        let without = applied();
        assert!(!changed(&without, 0), "both wait");
        fs::create_dir(&inner).unwrap();
        assert!(changed(&without, 0), "its cgroup has come");
        let with = applied();
        assert_eq!((without.len(), with.len()), (1, 2));
        assert!(!changed(&with, 0), "it is in force");
        assert!(changed(&with, with[1].1.cgroup), "its cgroup went");
        assert!(changed(&with, with[0].1.cgroup), "the limit's went");
        fs::create_dir(root.join("other")).unwrap();
        assert!(!changed(&with, 0), "there is no limit to protect it from");
        fs::remove_dir_all(&root).unwrap();
    }
}
