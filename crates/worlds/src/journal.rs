//! The things that a world has made, in a file that its process holds locked; and the sweeper,
//! which removes what files list that nobody holds. The files are in `/run/millpond-worlds`, or for
//! another user than root in a folder of that user's among temporary files.
//!
//! A file has a line for each thing: its kind, a tab, its name. The kernel lets go of the lock when
//! the process ends, however it ends.
//!
//! Invariant: a thing is in the journal before it is made, and until it is gone.

use crate::{Error, ip, process};
use rustix::fs::{FlockOperation, flock};
use rustix::mount::{UnmountFlags, unmount};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where root's journals are: root's alone, since what they name is removed.
const FOLDER: &str = "/run/millpond-worlds";
/// How long the kernel may take for a cgroup whose processes have just ended.
const PATIENCE: Duration = Duration::from_secs(3);

/// A thing that a world has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// A network namespace, by its name.
    Namespace(String),
    /// A cgroup and those below it.
    Cgroup(PathBuf),
    /// A mount, and the folder that it is on.
    Mount(PathBuf),
    /// A folder with all in it.
    Folder(PathBuf),
}

impl Made {
    fn line(&self) -> String {
        let (kind, name) = match self {
            Made::Namespace(name) => ("namespace", name.clone()),
            Made::Cgroup(path) => ("cgroup", path.display().to_string()),
            Made::Mount(path) => ("mount", path.display().to_string()),
            Made::Folder(path) => ("folder", path.display().to_string()),
        };
        format!("{kind}\t{name}\n")
    }
    fn parse(line: &str) -> Option<Made> {
        let (kind, name) = line.split_once('\t').filter(|(_, name)| !name.is_empty())?;
        match kind {
            "namespace" => Some(Made::Namespace(name.into())),
            "cgroup" => Some(Made::Cgroup(name.into())),
            "mount" => Some(Made::Mount(name.into())),
            "folder" => Some(Made::Folder(name.into())),
            _ => None,
        }
    }
    /// Takes it away, if it is there; namespaces go together.
    fn undo(&self) {
        match self {
            Made::Namespace(_) => {}
            Made::Cgroup(path) => remove_cgroup(path),
            Made::Mount(path) => {
                let _ = unmount(path, UnmountFlags::DETACH);
                let _ = fs::remove_dir(path);
            }
            Made::Folder(path) => drop(fs::remove_dir_all(path)),
        }
    }
}

fn remove_cgroup(path: &Path) {
    let _ = fs::write(path.join("cgroup.kill"), "1");
    let start = Instant::now();
    while path.exists() && start.elapsed() < PATIENCE {
        remove_below(path);
        if fs::remove_dir(path).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The files of a cgroup cannot be removed, and need not.
fn remove_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Takes away what a journal names, the latest first, and the processes of its world.
fn undo(world: &str, text: &str) {
    process::kill_all(world);
    let made: Vec<Made> = text.lines().filter_map(Made::parse).collect();
    let delete = |it: &Made| match it {
        Made::Namespace(name) => Some(format!("netns del {name}\n")),
        _ => None,
    };
    let namespaces: String = made.iter().filter_map(delete).collect();
    if !namespaces.is_empty() {
        // One that was not made, or is gone, is an error of its line.
        let _ = ip::batch_of_all(&namespaces);
    }
    made.iter().rev().for_each(Made::undo);
}

pub struct Journal {
    world: String,
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Of a world that has made nothing yet.
    pub fn create(world: &str) -> Result<Journal, Error> {
        let folder = folder()?;
        let (path, new) = (folder.join(world), folder.join(format!(".{world}")));
        let make = || -> io::Result<File> {
            let file = OpenOptions::new().create_new(true).append(true).read(true).open(&new)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // Under its name it is locked already: no sweeper takes it for one that is left.
            fs::rename(&new, &path)?;
            Ok(file)
        };
        let file = make().map_err(|e| Error::new(path.display().to_string(), e))?;
        Ok(Journal { world: world.into(), path, file })
    }
    /// Notes a thing that is about to be made.
    pub fn note(&mut self, made: &Made) -> Result<(), Error> {
        let failed = |e| Error::new(self.path.display().to_string(), e);
        let line = made.line();
        if line.matches('\n').count() > 1 {
            return Err(failed(io::Error::other("a name with a line end")));
        }
        self.file.write_all(line.as_bytes()).map_err(failed)
    }
    /// Takes everything away, and the journal.
    pub fn end(&mut self) {
        undo(&self.world, &fs::read_to_string(&self.path).unwrap_or_default());
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder of this user's journals, which is made if it is not there.
fn folder() -> Result<PathBuf, Error> {
    let own = rustix::process::geteuid();
    let folder = match own.is_root() {
        true => PathBuf::from(FOLDER),
        false => std::env::temp_dir().join(format!("millpond-worlds-{}", own.as_raw())),
    };
    let failed = |e| Error::new(folder.display().to_string(), e);
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
        _ => {}
    }
    let meta = fs::symlink_metadata(&folder).map_err(failed)?;
    match meta.is_dir() && meta.uid() == own.as_raw() && meta.mode() & 0o077 == 0 {
        true => Ok(folder),
        false => Err(failed(io::Error::other("it is not a folder of this user alone"))),
    }
}

/// Takes away what worlds have left whose processes were killed; their names.
///
/// # Errors
/// If the folder of journals cannot be used.
pub fn sweep() -> Result<Vec<String>, Error> {
    let folder = folder()?;
    let mut swept = Vec::new();
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let Ok(mut file) = File::open(entry.path()) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        // Another sweeper may have been faster, and the name another world's now.
        let is_it = |meta: fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == meta.ino());
        if !fs::metadata(entry.path()).is_ok_and(is_it) {
            continue;
        }
        let mut text = String::new();
        if file.read_to_string(&mut text).is_ok() {
            undo(&name, &text);
            let _ = fs::remove_file(entry.path());
            swept.push(name);
        }
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for made in [
            Made::Namespace("a".into()),
            Made::Cgroup("/sys/fs/cgroup/a b".into()),
            Made::Mount("/tmp/m".into()),
            Made::Folder("/tmp/f".into()),
        ] {
            assert_eq!(Made::parse(made.line().trim_end_matches('\n')), Some(made));
        }
        for other in ["", "folder", "folder\t", "disk\t/"] {
            assert_eq!(Made::parse(other), None);
        }
    }
}
