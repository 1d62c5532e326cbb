//! Makes limits take effect, all at once.
//!
//! Order is what keeps the invariant. New attachments come first; their programs find no scopes
//! yet, so packets pass. Then everything is written into the bank that is not in force. Then one
//! word turns the banks over. Attachments that nobody needs any more go last; their programs find
//! no scopes either. A program that is already attached is replaced in its link, so no packet goes
//! by in between.
//!
//! Invariant: killed at any instant, what is in force is the old or the new, whole.

use super::Error;
use super::cgroup::{Cgroup, Hierarchy};
use super::config::{Config, FloorParams, Limit, Target};
use super::congestion;
use super::departure;
use super::exclusive;
use super::folder::Locked;
use super::install::{Programs, attach, detach, follows_sockets, write};
use super::layout::{Head, LAYOUT};
use super::mount;
use super::numbers::Installed;
use super::pace::{self, Paces};
use super::plan::{self, Plan};
use super::store::{self, Source, Store};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The installed limits, while nobody else changes them.
pub struct Session {
    bpffs: PathBuf,
    hierarchy: Hierarchy,
    store: Option<Store>,
    pub sources: Vec<Source>,
    /// Notes for the user on what was done.
    pub notes: Vec<String>,
    lock: Option<Locked>,
    /// Loaded by an earlier session, or by this one.
    pub(super) programs: Option<Programs>,
}

#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Limits that are in force; those that wait are not.
    pub limits: usize,
    pub cgroups: usize,
    /// Limits whose cgroups are not there, and why.
    pub waiting: Vec<(String, String)>,
    /// Requests beside the limits that could not be met.
    pub notes: Vec<String>,
}

impl Session {
    /// Takes the lock and reads the installed limits. Mounts a bpf file system if there is none.
    ///
    /// # Errors
    /// [`Error::NoCgroups`] if no cgroup v2 is mounted, [`Error::Privilege`] or [`Error::Kernel`]
    /// if the bpf file system cannot be mounted, [`Error::Busy`] if another process holds the lock,
    /// [`Error::Foreign`] if another user owns the folder or may write it.
    pub fn open(bpffs: &Path) -> Result<Session, Error> {
        Session::open_noting(bpffs, &|_| {})
    }

    /// As [`Session::open`]. Calls `note` with the process that holds the lock, while it waits.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_noting(bpffs: &Path, note: &dyn Fn(&str)) -> Result<Session, Error> {
        let hierarchy = Hierarchy::find()?;
        let mut notes = Vec::new();
        if mount::mount_bpffs(bpffs)? {
            notes.push(format!(
                "mounted a bpf file system at {}, where the limits are kept",
                bpffs.display()
            ));
        }
        let lock = Some(Locked::make(bpffs, note)?);
        Session::of(bpffs, hierarchy, notes, lock)
    }

    /// Opens the installed limits for a change. Mounts nothing if there are none.
    ///
    /// # Errors
    /// [`Error::Nothing`] if no limits are installed, and the errors of [`Session::open`].
    pub fn existing(bpffs: &Path, note: &dyn Fn(&str)) -> Result<Session, Error> {
        let seen = Session::look(bpffs)?;
        if seen.store.is_none() {
            return Err(Error::Nothing);
        }
        Session::open_noting(bpffs, note)
    }

    /// Reads the installed limits, to report what a plan would change: mounts nothing and locks
    /// nothing.
    ///
    /// # Errors
    /// [`Error::NoCgroups`] if no cgroup v2 is mounted, [`Error::Foreign`] if another user owns the
    /// folder or may write it, [`Error::Kernel`] if a map cannot be read.
    pub fn look(bpffs: &Path) -> Result<Session, Error> {
        Session::of(bpffs, Hierarchy::find()?, Vec::new(), None)
    }

    fn of(
        bpffs: &Path,
        hierarchy: Hierarchy,
        notes: Vec<String>,
        lock: Option<Locked>,
    ) -> Result<Session, Error> {
        let store = Store::open(bpffs)?;
        let sources = match &store {
            Some(store) => store.sources(store.bank()?)?,
            None => Vec::new(),
        };
        Ok(Session {
            bpffs: bpffs.to_path_buf(),
            hierarchy,
            store,
            sources,
            notes,
            lock,
            programs: None,
        })
    }

    /// Reads a file; its scopes may name limits that are installed from other files. With
    /// `observe`, its limits only count.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, [`Error::Config`] if it has errors,
    /// [`Error::Cgroup`] if a process that it names has no cgroup.
    pub fn read(&self, file: &Path, observe: bool) -> Result<Source, Error> {
        let text = fs::read_to_string(file).map_err(|e| Error::file(file, e))?;
        let name = self.name_of(file).map_err(|e| Error::file(file, e))?;
        let others: Vec<&str> = self
            .limits()
            .filter(|(s, _)| !is_same_file(&s.file, &name))
            .map(|(_, l)| l.name())
            .collect();
        let mut config = Config::parse(&file.to_string_lossy(), &text, &others)?;
        config.limits.iter_mut().for_each(|l| l.queue.observe |= observe);
        for limit in &mut config.limits {
            // A process goes; its cgroup is what is meant.
            if let Some(pid) = limit.target.pid.take() {
                let found = self.hierarchy.resolve(&super::config::Target::Pid(pid));
                let found =
                    found.map_err(|reason| Error::Cgroup { limit: limit.name().into(), reason })?;
                limit.target.cgroup = Some(found.path.to_string_lossy().into_owned());
            }
        }
        Ok(Source { file: name, config })
    }

    /// The name of a file: the path that it is named by. Symbolic links in it stay what they are,
    /// since they may be made to lead elsewhere (a ConfigMap's do with every change). Where another
    /// path to the same file is known, that.
    fn name_of(&self, file: &Path) -> Result<String, std::io::Error> {
        let mut path = std::path::absolute(file)?;
        if path.components().any(|part| part == Component::ParentDir) {
            path = fs::canonicalize(&path)?;
        }
        let real = fs::canonicalize(&path)?;
        let name = path.to_string_lossy().into_owned();
        // A path by way of a link outlasts the file that it leads to now.
        let known =
            self.sources.iter().map(|source| &source.file).find(|known| is_same_file(known, &name));
        Ok(known.filter(|known| Path::new(known) != real).cloned().unwrap_or(name))
    }

    /// The lock; a session that only looked takes it now.
    fn locked(&mut self) -> Result<&Locked, Error> {
        if self.lock.is_none() {
            self.lock = Some(Locked::make(&self.bpffs, &|_| {})?);
        }
        self.lock.as_ref().ok_or(Error::Nothing)
    }

    /// Does what an installation would take long for, before it is urgent.
    pub(super) fn prepare(&mut self) -> Result<(), Error> {
        // Where windows cannot be let go, the installation has a note of it.
        let _ = pace::can_let_go();
        self.load()
    }

    /// Loads the programs, unless those are at hand that were loaded over the same maps.
    fn load(&mut self) -> Result<(), Error> {
        let programs = self.programs.take();
        let locked = self.locked()?;
        let current = programs.filter(|programs| programs.are_current(locked));
        let programs = current.map_or_else(|| Programs::load(locked), Ok)?;
        self.programs = Some(programs);
        Ok(())
    }

    fn limits(&self) -> impl Iterator<Item = (&Source, &Limit)> {
        self.sources.iter().flat_map(|s| s.config.limits.iter().map(move |l| (s, l)))
    }

    /// Makes the cgroups that a source names by their paths and that are not there. Returns their
    /// folders.
    ///
    /// # Errors
    /// [`Error::File`] if a folder cannot be made.
    pub fn make_cgroups(&self, source: &Source) -> Result<Vec<PathBuf>, Error> {
        let limits = source.config.limits.iter().filter_map(Limit::cgroup);
        let floors = source.config.floors.iter().filter_map(FloorParams::target);
        let mut made = Vec::new();
        for target in limits.chain(floors) {
            if let (Target::Path(path), Err(_)) = (&target, self.hierarchy.resolve(&target)) {
                made.extend(self.hierarchy.make(path)?);
            }
        }
        Ok(made)
    }

    /// Returns a sentence for each thing that stays of removed limits, with its removal: cgroups
    /// that [`Session::make_cgroups`] has made and no limit names, and after the last limit the bpf
    /// file system.
    pub fn left(&self) -> Vec<String> {
        let limits = self.limits().filter_map(|(_, limit)| limit.cgroup());
        let floors = self.sources.iter().flat_map(|source| &source.config.floors);
        let targets = limits.chain(floors.filter_map(FloorParams::target));
        let used: Vec<PathBuf> = targets
            .filter_map(|target| self.hierarchy.resolve(&target).ok())
            .map(|cgroup| cgroup.path)
            .collect();
        // Those below others first, as rmdir takes them.
        let made = self.hierarchy.made().into_iter().rev();
        let unused = made.filter(|folder| !used.iter().any(|used| used.starts_with(folder)));
        let mut notes: Vec<String> = unused
            .map(|folder| {
                let folder = folder.display();
                format!("the cgroup {folder} stays, which apply --create has made: rmdir {folder}")
            })
            .collect();
        if self.sources.is_empty() && mount::is_mount_of_ours(&self.bpffs) {
            notes.push(format!(
                "the bpf file system at {} stays: limit remove --all unmounts it",
                self.bpffs.display()
            ));
        }
        notes
    }

    /// Returns the cgroup of an installed limit.
    ///
    /// # Errors
    /// [`Error::Nothing`] or [`Error::Request`] if no such limit is installed, or it has no cgroup;
    /// [`Error::Cgroup`] if its cgroup is not there.
    pub fn cgroup_of(&self, name: &str) -> Result<Cgroup, Error> {
        let (_, limit) =
            self.limits().find(|(_, l)| l.name() == name).ok_or_else(|| self.unknown(name))?;
        let target = limit.cgroup().ok_or_else(|| {
            Error::Request(format!("limit \"{name}\" has no cgroup: other limits name it"))
        })?;
        let failed = |reason| Error::Cgroup { limit: name.into(), reason };
        self.hierarchy.resolve(&target).map_err(failed)
    }

    /// Puts `source` in the place of the former content of its file.
    pub fn with(&self, source: Source) -> Vec<Source> {
        let mut sources = self.sources.clone();
        match sources.iter_mut().find(|s| is_same_file(&s.file, &source.file)) {
            Some(old) => *old = source,
            None => sources.push(source),
        }
        sources
    }

    /// Returns the sources with changed keys of an installed limit.
    ///
    /// # Errors
    /// [`Error::Nothing`] or [`Error::Request`] if no such limit is installed, [`Error::Config`] if
    /// a key is unknown or fixed, or a value is wrong.
    pub fn set(&self, name: &str, pairs: &[(String, String)]) -> Result<Vec<Source>, Error> {
        let mut sources = self.sources.clone();
        let limit =
            sources.iter_mut().flat_map(|s| &mut s.config.limits).find(|l| l.name() == name);
        limit.ok_or_else(|| self.unknown(name))?.set(pairs)?;
        Ok(sources)
    }

    /// Returns the sources without one limit.
    ///
    /// # Errors
    /// [`Error::Nothing`] or [`Error::Request`] if no such limit is installed.
    pub fn without(&self, name: &str) -> Result<Vec<Source>, Error> {
        if !self.limits().any(|(_, l)| l.name() == name) {
            return Err(self.unknown(name));
        }
        let mut sources = self.sources.clone();
        sources.iter_mut().for_each(|s| s.config.limits.retain(|l| l.name() != name));
        sources.retain(|s| !s.config.is_empty());
        Ok(sources)
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.limits().map(|(_, l)| l.name()).collect();
        match names.is_empty() {
            true => Error::Nothing,
            false => Error::Request(format!(
                "there is no limit \"{name}\"; installed: {}",
                names.join(", ")
            )),
        }
    }

    /// Returns the plan that would put `sources` in force.
    ///
    /// # Errors
    /// [`Error::Kernel`] if a map cannot be read, and the errors of [`plan`](plan::plan).
    pub fn plan(&self, sources: &[Source]) -> Result<Plan, Error> {
        let installed: Installed = match &self.store {
            Some(store) => {
                let bank = store.bank()?;
                let scope = |(id, label)| Ok((id, label, store.form(bank, id)?));
                store.labels(bank)?.into_iter().map(scope).collect::<Result<_, Error>>()?
            }
            None => Vec::new(),
        };
        plan::plan(sources, &installed, &|target| self.hierarchy.resolve(target))
    }

    /// Checks that a plan can be installed.
    ///
    /// # Errors
    /// [`Error::Cgroup`] if a cgroup is missing and `patient` is off, if a cgroup has programs that
    /// allow no others beside them, or if packets would get departure times and an interface does
    /// not keep them.
    pub fn check(&self, plan: &Plan, patient: bool) -> Result<(), Error> {
        if let (false, Some((limit, reason))) = (patient, plan.waiting.first()) {
            return Err(Error::Cgroup { limit: limit.clone(), reason: reason.clone() });
        }
        for hook in &plan.hooks {
            let sockets = follows_sockets(hook) || hook.congestion.is_some();
            let hooks = exclusive::hooks(hook.chain.map(|chain| chain.count > 0), sockets);
            if let Some(reason) = exclusive::in_the_way(&hook.cgroup, &hooks) {
                return Err(Error::Cgroup { limit: hook.limit.clone(), reason });
            }
            // Where it holds already, `install` has a note of it.
            let holds = self.limits().any(|(_, l)| l.name() == hook.limit && l.waits(0));
            if plan.waits(hook)
                && !holds
                && let Some(reason) = departure::lacking(&hook.cgroup)
            {
                return Err(Error::Cgroup { limit: hook.limit.clone(), reason });
            }
        }
        Ok(())
    }

    /// Puts `sources` in force. If `patient`, limits whose cgroups are missing wait for them.
    ///
    /// # Errors
    /// As [`Session::plan`] and [`Session::check`]; [`Error::Privilege`] or [`Error::Kernel`] if
    /// the kernel refuses a program, a map or an attachment. The old limits stay in force then.
    pub fn install(&mut self, sources: Vec<Source>, patient: bool) -> Result<Done, Error> {
        if sources.is_empty() {
            let notes = self.remove_all()?;
            return Ok(Done { notes, ..Done::default() });
        }
        let mut plan = self.plan(&sources)?;
        // A window that cannot be let go would stay small when its limit is gone.
        let unheld = if plan.holds_windows() { pace::can_let_go().err() } else { None };
        if unheld.is_some() {
            plan.hold_no_windows();
        }
        self.check(&plan, patient)?;
        self.load()?;
        let programs = self.programs.as_ref().ok_or(Error::Nothing)?;
        let store = Store::adopt(store::folder(&self.bpffs))?;
        let mut head = store.head()?;
        let is_first = head.layout == 0;
        // New maps are all zero, so bank 0 is in force in them, with nothing in it.
        let bank = 1 - (head.bank & 1);
        attach(&store, programs, &plan, bank)?;
        write(&store, &plan, &sources, bank)?;
        head.flags[bank as usize] = plan.flags;
        store.put_head(head)?;
        store.put_head(Head { layout: LAYOUT, bank, ..head })?;
        plan.scopes
            .iter()
            .filter(|scope| scope.late)
            .try_for_each(|scope| store.reset(scope.id))?;
        detach(&store, &plan)?;
        let mut notes: Vec<String> = unheld.iter().map(Error::to_string).collect();
        notes.extend(beside(&store, &plan, &sources, is_first));
        let all = sources.iter().flat_map(|s| &s.config.limits);
        let done = Done {
            limits: all.filter(|l| plan.waiting.iter().all(|(name, _)| name != l.name())).count(),
            cgroups: plan.hooks.len(),
            waiting: plan.waiting,
            notes,
        };
        self.store = Some(store);
        self.sources = sources;
        Ok(done)
    }

    /// Removes every limit and every trace. Returns notes on what could not be undone besides.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Privilege`] if a pin cannot be removed, [`Error::Busy`] if
    /// another process holds the lock.
    pub fn remove_all(&mut self) -> Result<Vec<String>, Error> {
        self.store = None;
        self.sources.clear();
        lift(self.locked()?)
    }
}

/// Does what is wanted beside the limits, and must not keep them from holding. Returns notes on
/// what could not be had.
fn beside(store: &Store, plan: &Plan, sources: &[Source], is_first: bool) -> Vec<String> {
    let wanted = sources.iter().any(|s| s.config.wants_dctcp());
    let registered = congestion::register(store.folder(), wanted);
    let paced = Paces::of(plan).give(store.folder());
    let deaf = paced.as_ref().ok().filter(|n| **n > 0).map(|n| {
        format!(
            "connections older than their limits, which follow no share (that needs Linux 6.12): \
             {n}"
        )
    });
    // Before the first nobody had a pace that could be wrong now.
    let unpaced = paced.err().filter(|_| !is_first);
    let mut notes: Vec<String> =
        [registered.err(), unpaced].into_iter().flatten().map(|e| e.to_string()).collect();
    notes.extend(deaf);
    let waiting = plan.hooks.iter().filter(|hook| plan.waits(hook));
    notes.extend(waiting.filter_map(|hook| {
        departure::lacking(&hook.cgroup).map(|why| format!("limit \"{}\": {why}", hook.limit))
    }));
    notes.extend(congestion::choose(store.folder(), plan).unwrap_or_else(|e| vec![e.to_string()]));
    notes
}

/// Whether two paths lead to one file.
fn is_same_file(one: &str, other: &str) -> bool {
    one == other
        || fs::canonicalize(one)
            .is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// Removes every limit and every trace, of whatever version: also the cgroups and the mount that an
/// apply has made, if nobody uses them. Returns notes on what could not be undone besides; `None`
/// if nothing was installed.
///
/// # Errors
/// [`Error::Busy`] if another process holds the lock, [`Error::Foreign`] if another user owns the
/// folder or may write it, [`Error::File`] or [`Error::Privilege`] if a pin cannot be removed.
pub fn remove_all(bpffs: &Path) -> Result<Option<Vec<String>>, Error> {
    let lifted = Locked::find(bpffs, &|_| {})?.map(|locked| lift(&locked)).transpose()?;
    if let Ok(hierarchy) = Hierarchy::find() {
        hierarchy.remove_made();
    }
    mount::unmount_bpffs(bpffs);
    Ok(lifted)
}

/// Returns a sentence for each cgroup that an apply has made and [`remove_all`] has left.
pub fn cgroups_left() -> Vec<String> {
    let made = Hierarchy::find().map(|hierarchy| hierarchy.made()).unwrap_or_default();
    let note = |folder: &PathBuf| {
        format!(
            "the cgroup {} stays, since programs run in it: end them, and repeat limit remove \
             --all",
            folder.display()
        )
    };
    made.iter().map(note).collect()
}

/// Takes the pace off connections when no more are paced, and while it is known which they are.
fn lift(locked: &Locked) -> Result<Vec<String>, Error> {
    locked.clear_part("links")?;
    let notes = Paces::default().give(locked.path()).err().map(|e| e.to_string());
    locked.clear()?;
    Ok(notes.into_iter().collect())
}
