//! A world and its namespaces.
//!
//! Invariant: a world's names are its own: label, process and a number that this process gives
//! once.

use crate::journal::{Journal, Made};
use crate::process::MARK;
use crate::{Error, ip, journal, namespace};
use rustix::mount::{MountFlags, mount};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

static SERIAL: AtomicU32 = AtomicU32::new(0);
/// Those that an interruption has to end.
static LIVING: Mutex<Vec<Weak<Mutex<Inner>>>> = Mutex::new(Vec::new());
static FIRST: Once = Once::new();

/// The action to take before a world's things are taken away.
type AtEnd = Box<dyn FnOnce() + Send>;

struct Inner {
    journal: Journal,
    at_end: Vec<AtEnd>,
    is_over: bool,
}

/// Namespaces, cgroups, mounts and a folder that end with it.
pub struct World {
    name: String,
    folder: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

/// A network namespace of a world, which has its loopback interface up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: String,
    world: String,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a world, once: the latest closure first, then what it has made.
fn end(inner: &Mutex<Inner>) {
    let at_end = {
        let mut inner = locked(inner);
        if std::mem::replace(&mut inner.is_over, true) {
            return;
        }
        std::mem::take(&mut inner.at_end)
    };
    at_end.into_iter().rev().for_each(|work| work());
    locked(inner).journal.end();
}

/// Sweeps, and ends worlds when the process is interrupted or terminated. A program that handles
/// that itself keeps its handler, and ends its worlds by dropping them. So does one that was
/// started with SIGINT ignored, as a job in the background: if a signal ends it, the next world
/// sweeps.
fn prepare() {
    FIRST.call_once(|| {
        let _ = journal::sweep();
        let _ = ctrlc::try_set_handler(|| {
            let living: Vec<_> = locked(&LIVING).iter().filter_map(Weak::upgrade).collect();
            living.iter().for_each(|inner| end(inner));
            // As a shell reports SIGINT.
            std::process::exit(130);
        });
    });
}

/// The label as a name of the kernel's can have it.
fn plain(label: &str) -> String {
    label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

impl World {
    /// A world without namespaces. The first of a process sweeps what killed processes have left.
    ///
    /// # Errors
    /// If the process is not root's, or files cannot be made.
    pub fn new(label: &str) -> Result<World, Error> {
        if !rustix::process::geteuid().is_root() {
            let reason = io::Error::new(io::ErrorKind::PermissionDenied, "it needs root");
            return Err(Error::new("making network namespaces", reason));
        }
        World::of_processes(label)
    }

    /// A world of processes and files alone, which needs no root.
    ///
    /// # Errors
    /// If files cannot be made.
    pub fn of_processes(label: &str) -> Result<World, Error> {
        prepare();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("mp-{}-{}-{serial}", plain(label), std::process::id());
        let mut journal = Journal::create(&name)?;
        let folder = std::env::temp_dir().join(&name);
        journal.note(&Made::Folder(folder.clone()))?;
        let made = fs::create_dir(&folder);
        let inner = Inner { journal, at_end: Vec::new(), is_over: false };
        let world = World { name, folder, inner: Arc::new(Mutex::new(inner)) };
        made.map_err(|e| Error::new(world.folder.display().to_string(), e))?;
        let mut living = locked(&LIVING);
        living.retain(|inner| inner.strong_count() > 0);
        living.push(Arc::downgrade(&world.inner));
        drop(living);
        Ok(world)
    }

    /// Its name, by which nothing else on the host goes.
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn note(&self, made: &Made) -> Result<(), Error> {
        let mut inner = locked(&self.inner);
        match inner.is_over {
            true => Err(Error::new(&self.name, io::Error::other("the world has ended"))),
            false => inner.journal.note(made),
        }
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// If `ip` cannot, or there is one with this label.
    pub fn namespace(&self, label: &str) -> Result<Namespace, Error> {
        Ok(self.namespaces(&[label])?.remove(0))
    }

    /// Makes a namespace for each label, all in one go.
    ///
    /// # Errors
    /// As [`World::namespace`].
    pub fn namespaces(&self, labels: &[impl AsRef<str>]) -> Result<Vec<Namespace>, Error> {
        let name = |label: &str| format!("{}-{}", self.name, plain(label));
        let names: Vec<String> = labels.iter().map(|label| name(label.as_ref())).collect();
        names.iter().try_for_each(|name| self.note(&Made::Namespace(name.clone())))?;
        let lines: String = names.iter().map(|name| format!("netns add {name}\n")).collect();
        ip::batch(None, &lines)?;
        let world = &self.name;
        let made: Vec<_> =
            names.into_iter().map(|name| Namespace { name, world: world.clone() }).collect();
        made.iter().try_for_each(|namespace| namespace.ip("link set lo up"))?;
        Ok(made)
    }

    /// Makes veth pairs: for each, two namespaces and the names of the interfaces in them. All are
    /// down.
    ///
    /// # Errors
    /// If `ip` cannot.
    pub fn veths(&self, pairs: &[[(&Namespace, &str); 2]]) -> Result<(), Error> {
        let line = |[(a, one), (b, other)]: &[(&Namespace, &str); 2]| {
            let (a, b) = (a.name(), b.name());
            format!("link add {one} netns {a} type veth peer name {other} netns {b}\n")
        };
        ip::batch(None, &pairs.iter().map(line).collect::<String>())
    }

    /// Makes a cgroup, which ends with those below it and their processes.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn cgroup(&self, path: &Path) -> Result<(), Error> {
        self.note(&Made::Cgroup(path.to_path_buf()))?;
        fs::create_dir(path).map_err(|e| Error::new(path.display().to_string(), e))
    }

    /// Mounts a bpf file system on a new folder.
    ///
    /// # Errors
    /// If the folder cannot be made, or the kernel refuses.
    pub fn bpffs(&self, label: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(plain(label));
        self.note(&Made::Mount(path.clone()))?;
        let failed =
            |e: io::Error| Error::new(format!("a bpf file system at {}", path.display()), e);
        fs::create_dir(&path).map_err(failed)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("bpf", &path, "bpf", flags, c"mode=0700").map_err(|e| failed(e.into()))?;
        Ok(path)
    }

    /// Does `work` when the world ends, before its things are taken away; the latest first. An
    /// interruption does it on another thread.
    pub fn at_end(&self, work: impl FnOnce() + Send + 'static) {
        locked(&self.inner).at_end.push(Box::new(work));
    }

    /// A command whose process ends with the world, and with it those that it starts.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env(MARK, &self.name);
        command
    }
}

impl Drop for World {
    fn drop(&mut self) {
        end(&self.inner);
    }
}

impl Namespace {
    /// Its name, as `ip netns` has it.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Does `work` in it, on a thread of its own.
    ///
    /// # Errors
    /// If it cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        namespace::within(Some(&self.name), work)
    }
    /// Starts a process in it, which ends with the world.
    ///
    /// # Errors
    /// If it cannot be entered, or the program not be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.env(MARK, &self.world);
        self.run(|| command.spawn())?
    }
    /// Runs lines of `ip` in it, in one process.
    ///
    /// # Errors
    /// If a line fails.
    pub fn ip(&self, lines: &str) -> Result<(), Error> {
        ip::batch(Some(&self.name), lines)
    }
    /// Writes a key below `/proc/sys/net`, such as `ipv4/tcp_no_metrics_save`.
    ///
    /// # Errors
    /// If there is no such key, or it does not take the value.
    pub fn set(&self, key: &str, value: &str) -> Result<(), Error> {
        let path = format!("/proc/sys/net/{key}");
        let written = self.run(|| fs::write(&path, value)).and_then(|done| done);
        written.map_err(|e| Error::new(format!("setting {path} in {}", self.name), e))
    }
}
