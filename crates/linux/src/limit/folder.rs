//! Our folder below a bpf file system, its lock, and that nobody else has a hand in it.
//!
//! ```text
//! <bpffs>/millpond            mode 0700; whoever changes limits holds a lock on it
//! <bpffs>/millpond/maps       pins of maps
//! <bpffs>/millpond/links      pins of attachments
//! ```
//!
//! A bpf file system of mode 1777, which `mount -t bpf` makes, lets every local user make files: a
//! folder of our name before we do, a symbolic link out of it, a map of theirs in our map's place.
//! And whoever may open a folder may lock it. So each step down from the mount is opened without
//! following a link, and must be a folder of a bpf file system that belongs to root, or to whoever
//! asks, and that no other user may write to.
//!
//! Invariant: what another user has made is neither read, followed nor removed; it is refused. A
//! folder that is empty when its lock is given back is removed.

use super::Error;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const FOLDER: &str = "millpond";
const PARTS: [&str; 2] = ["maps", "links"];
/// How long one holder of the lock may keep others waiting; a new holder has as long again.
const PATIENCE: Duration = Duration::from_secs(60);
/// When a waiting command names the holder, and how often again.
const FIRST_NOTE: Duration = Duration::from_secs(1);
const NOTES: Duration = Duration::from_secs(10);
const OPEN: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The bits by which others than its owner may write.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Whether a bpf file system is mounted at `path`.
pub fn is_bpffs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|s| is_bpf(&s))
}

fn is_bpf(of: &rustix::fs::StatFs) -> bool {
    const MAGIC: u64 = 0xcafe_4a11;
    of.f_type as u64 == MAGIC
}

/// Whether other users may make files at the mount's top, before we do.
pub fn is_open_to_all(bpffs: &Path) -> bool {
    rustix::fs::stat(bpffs).is_ok_and(|stat| stat.st_mode & OTHERS_WRITE != 0)
}

/// Our folder, checked, with its parts.
pub struct Folder {
    path: PathBuf,
    mount: OwnedFd,
    own: OwnedFd,
}

fn foreign(path: &Path, reason: String) -> Error {
    Error::Foreign { path: path.to_path_buf(), reason }
}

fn failed(path: &Path, e: Errno) -> Error {
    let what = || format!("opening {}", path.display());
    match e {
        Errno::ACCESS => Error::Privilege { what: what(), capability: "CAP_DAC_OVERRIDE".into() },
        e => Error::file(path, e),
    }
}

/// The state of an open folder, if it may be trusted. With the sticky bit nobody can take away what
/// is another's, which is enough for the mount's top.
fn check(fd: &OwnedFd, path: &Path, is_top: bool) -> Result<Stat, Error> {
    let (stat, system) = (rustix::fs::fstat(fd), rustix::fs::fstatfs(fd));
    let (stat, system) = (stat.map_err(|e| failed(path, e))?, system.map_err(|e| failed(path, e))?);
    if !is_bpf(&system) {
        return Err(foreign(path, "is not on a bpf file system".into()));
    }
    let us = rustix::process::geteuid().as_raw();
    if stat.st_uid != 0 && stat.st_uid != us {
        let reason = format!("belongs to user {}, not to root", stat.st_uid);
        return Err(foreign(path, reason));
    }
    let mode = stat.st_mode & 0o7777;
    if mode & OTHERS_WRITE != 0 && !(is_top && mode & STICKY != 0) {
        let reason = format!("may be written to by other users (its mode is {mode:04o})");
        return Err(foreign(path, reason));
    }
    Ok(stat)
}

/// One step down; `None`: there is nothing.
fn step(at: &OwnedFd, name: &CStr, path: &Path) -> Result<Option<OwnedFd>, Error> {
    match rustix::fs::openat(at, name, OPEN, Mode::empty()) {
        Ok(fd) => check(&fd, path, false).map(|_| Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        // Which of the two a symbolic link gives depends on the kernel.
        Err(Errno::LOOP | Errno::NOTDIR) => Err(foreign(path, "is no folder".into())),
        Err(e) => Err(failed(path, e)),
    }
}

fn name_of(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

impl Folder {
    /// Opens the folder below `bpffs`. Returns `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Foreign`] if it is on another file system, or another user owns it or may write it.
    /// [`Error::File`] or [`Error::Privilege`] if it cannot be opened.
    pub fn find(bpffs: &Path) -> Result<Option<Folder>, Error> {
        if !is_bpffs(bpffs) {
            return Ok(None);
        }
        let mount = rustix::fs::open(bpffs, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let mount = mount.map_err(|e| failed(bpffs, e))?;
        check(&mount, bpffs, true)?;
        let path = bpffs.join(FOLDER);
        let Some(own) = step(&mount, &name_of(FOLDER), &path)? else { return Ok(None) };
        for part in PARTS {
            step(&own, &name_of(part), &path.join(part))?;
        }
        Ok(Some(Folder { path, mount, own }))
    }

    /// As `find`; makes it if it is not there, and closes one of an earlier version to all others.
    /// `None`: it was there, and its lock's owner has just removed it.
    fn make(bpffs: &Path) -> Result<Option<Folder>, Error> {
        if Folder::find(bpffs)?.is_none() {
            if !is_bpffs(bpffs) {
                return Err(Error::file(bpffs, "is no bpf file system"));
            }
            make_folder(&bpffs.join(FOLDER))?;
        }
        // Whoever has made it in between is seen here.
        let folder = Folder::find(bpffs)?;
        if let Some(folder) = &folder {
            rustix::fs::fchmod(&folder.own, Mode::RWXU).map_err(|e| failed(&folder.path, e))?;
        }
        Ok(folder)
    }

    /// Whether its name still means it.
    fn is_there(&self) -> bool {
        let named = rustix::fs::statat(&self.mount, FOLDER, AtFlags::SYMLINK_NOFOLLOW);
        match (named, rustix::fs::fstat(&self.own)) {
            (Ok(named), Ok(own)) => named.st_ino == own.st_ino,
            _ => false,
        }
    }
}

fn make_folder(path: &Path) -> Result<(), Error> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::ACCESS) => Err(failed(path, Errno::ACCESS)),
        Err(e) => Err(Error::file(path, e)),
    }
}

/// Our folder, while no other copy changes anything in it.
pub struct Locked(Folder);

impl Locked {
    /// Makes the folder if it is missing, and waits for its lock. Calls `note` with the process
    /// that holds it.
    ///
    /// # Errors
    /// [`Error::Busy`] if one process holds the lock for too long, and the errors of
    /// [`Folder::find`].
    pub fn make(bpffs: &Path, note: &dyn Fn(&str)) -> Result<Locked, Error> {
        let mut wait = Wait::new(note);
        loop {
            if let Some(folder) = Folder::make(bpffs)?
                && let Some(locked) = Locked::take(folder, &mut wait)?
            {
                return Ok(locked);
            }
        }
    }

    /// Waits for the lock of the folder. Returns `None` if there is no folder.
    ///
    /// # Errors
    /// As [`Locked::make`].
    pub fn find(bpffs: &Path, note: &dyn Fn(&str)) -> Result<Option<Locked>, Error> {
        let mut wait = Wait::new(note);
        while let Some(folder) = Folder::find(bpffs)? {
            if let Some(locked) = Locked::take(folder, &mut wait)? {
                return Ok(Some(locked));
            }
        }
        Ok(None)
    }

    /// `None`: who had the lock has removed the folder.
    fn take(folder: Folder, wait: &mut Wait<'_>) -> Result<Option<Locked>, Error> {
        loop {
            match rustix::fs::flock(&folder.own, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    // The time of the last access is when the lock was taken, for those who wait.
                    let now = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
                    let times = Timestamps {
                        last_access: now(rustix::fs::UTIME_NOW),
                        last_modification: now(rustix::fs::UTIME_OMIT),
                    };
                    let _ = rustix::fs::futimens(&folder.own, &times);
                    return Ok(folder.is_there().then_some(Locked(folder)));
                }
                Err(Errno::WOULDBLOCK) => wait.on(&folder)?,
                Err(e) => return Err(failed(&folder.path, e)),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Makes the parts that are missing.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Privilege`] if a folder cannot be made.
    pub fn make_parts(&self) -> Result<(), Error> {
        PARTS.iter().try_for_each(|part| make_folder(&self.path().join(part)))
    }

    /// Removes a part with all that is in it.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Privilege`] if a pin cannot be removed, [`Error::Foreign`] if
    /// another user owns the part or may write it.
    pub fn clear_part(&self, part: &str) -> Result<(), Error> {
        let (path, name) = (self.path().join(part), name_of(part));
        let Some(fd) = step(&self.0.own, &name, &path)? else { return Ok(()) };
        clear(&fd, &path)?;
        rustix::fs::unlinkat(&self.0.own, &name, AtFlags::REMOVEDIR).map_err(|e| failed(&path, e))
    }

    /// Removes all that is in the folder, links first, whatever version made it.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Privilege`] if a pin cannot be removed.
    pub fn clear(&self) -> Result<(), Error> {
        clear(&self.0.own, &self.0.path)
    }
}

struct Wait<'a> {
    note: &'a dyn Fn(&str),
    /// The process that holds it, and since when this one waits for that one.
    holder: Option<u32>,
    since: Instant,
    next_note: Duration,
}

impl Wait<'_> {
    fn new(note: &dyn Fn(&str)) -> Wait<'_> {
        Wait { note, holder: None, since: Instant::now(), next_note: FIRST_NOTE }
    }

    /// Waits a moment for the holder of a folder's lock.
    fn on(&mut self, folder: &Folder) -> Result<(), Error> {
        let holder = folder.holder();
        if holder != self.holder {
            (self.holder, self.since, self.next_note) = (holder, Instant::now(), FIRST_NOTE);
        }
        let waited = self.since.elapsed();
        if waited > PATIENCE {
            return Err(Error::Busy(folder.described(holder)));
        }
        if waited > self.next_note {
            (self.note)(&format!("waiting: {}", folder.described(holder)));
            self.next_note += NOTES;
        }
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    }
}

impl Folder {
    /// The process that holds its lock, by /proc/locks; `None`: it is in another pid namespace, or
    /// gone.
    fn holder(&self) -> Option<u32> {
        let stat = rustix::fs::fstat(&self.own).ok()?;
        let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        let file = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        // NUMBER: FLOCK ADVISORY WRITE PID DEVICE:INODE 0 EOF
        let words = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut held = words.filter(|words| words.get(1) == Some(&"FLOCK"));
        let of = held.find(|words| words.get(5) == Some(&file.as_str()))?;
        of[4].parse().ok().filter(|pid| *pid != 0)
    }

    /// The process that changes the limits, and its time so far.
    fn described(&self, holder: Option<u32>) -> String {
        let who = holder.map_or("another millpond".to_string(), |pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            format!("process {pid} ({})", line.trim())
        });
        let taken = rustix::fs::fstat(&self.own).map_or(0, |stat| stat.st_atime);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seconds = now.map_or(0, |now| (now.as_secs() as i64).saturating_sub(taken));
        format!("{who} has been changing the limits for {seconds} s")
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Refused, as it should be, where there is something in it.
        let _ = rustix::fs::unlinkat(&self.0.mount, FOLDER, AtFlags::REMOVEDIR);
    }
}

/// Removes what is in a folder. A symbolic link is removed itself, not what it leads to.
fn clear(fd: &OwnedFd, path: &Path) -> Result<(), Error> {
    let listed = Dir::read_from(fd).and_then(|dir| dir.collect::<Result<Vec<_>, _>>());
    let mut entries = listed.map_err(|e| failed(path, e))?;
    // Programs before the maps that they read.
    entries.sort_by_key(|entry| (entry.file_name() != c"links", entry.file_name().to_owned()));
    for entry in entries.iter().filter(|entry| ![c".", c".."].contains(&entry.file_name())) {
        let name = entry.file_name();
        let below = path.join(name.to_string_lossy().as_ref());
        let flags = match entry.file_type() {
            FileType::Directory => {
                if let Some(fd) = step(fd, name, &below)? {
                    clear(&fd, &below)?;
                }
                AtFlags::REMOVEDIR
            }
            _ => AtFlags::empty(),
        };
        rustix::fs::unlinkat(fd, name, flags).map_err(|e| failed(&below, e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The demands on a folder, on a file system that is none of bpf's.
    #[test]
    fn another_file_system_is_none_of_ours() {
        let path = std::env::temp_dir().join(format!("millpond-folder-{}", std::process::id()));
        std::fs::create_dir_all(path.join(FOLDER)).unwrap();
        assert!(!is_bpffs(&path) && Folder::find(&path).unwrap().is_none());
        let fd = rustix::fs::open(&path, OPEN, Mode::empty()).unwrap();
        let said = step(&fd, &name_of(FOLDER), &path.join(FOLDER)).err().unwrap().to_string();
        assert!(said.contains("is not on a bpf file system"), "{said}");
        std::fs::remove_dir_all(&path).unwrap();
    }
}
