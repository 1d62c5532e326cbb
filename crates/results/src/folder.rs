//! The results folder on disk: written as `OUT.partial`, renamed to `OUT` when whole.
//!
//! While a run lasts, `OUT.partial/progress.json` says how far it is. A lock on a file in `OUT.partial` keeps a second run
//! out; the system drops it when the process ends in whatever way, so what a killed run leaves is taken over by the next.
//!
//! Invariant: `OUT` is always either what it was before or a whole new result. For the instant of the exchange an older
//! result is moved into `OUT.partial`; should the process die right then, the next run puts it back before anything else.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use millpond_core::random::hash_name;
use serde::{Deserialize, Serialize};

use crate::error::{At, Error, Result};
use crate::manifest::{MANIFEST, is_result};

pub(crate) const LOCK: &str = ".millpond-lock";
/// The older result, during and after the exchange.
const REPLACED: &str = ".replaced";
const PROGRESS: &str = "progress.json";
const PROGRESS_NEXT: &str = ".progress.json";

/// How far a run is: `progress.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds of virtual time passed.
    pub simulated_s: f64,
    /// Seconds of virtual time to reach; `None` if the run ends with its flows.
    pub horizon_s: Option<f64>,
    /// From 0 to 1, where it is known.
    pub fraction: Option<f64>,
    /// Packet-hops made.
    pub packet_hops: u64,
    /// Packet-hops a second of the wall clock.
    pub packet_hops_per_s: f64,
    /// Flows started.
    pub flows_started: u64,
    /// Flows completed.
    pub flows_completed: u64,
    /// Seconds by the wall clock.
    pub wall_s: f64,
    /// Seconds that remain, where they can be told.
    pub eta_s: Option<f64>,
    /// What is going on: `running`, `writing` and the like.
    pub status: String,
}

/// A results folder that is being written. Dropped without [`Folder::commit`], it removes what it wrote.
#[derive(Debug)]
pub struct Folder {
    out: PathBuf,
    partial: PathBuf,
    force: bool,
    /// Held for as long as the folder is written.
    _lock: File,
    committed: bool,
}

impl Folder {
    /// Prepares to write `out`: checks that it may be replaced, makes its parent folders and `OUT.partial`.
    pub fn create(out: &Path, force: bool) -> Result<Folder> {
        let out = &plain(out);
        // A link to a folder is followed, so that the temporary folder is on the same file system as the result.
        let is_link = fs::symlink_metadata(out).is_ok_and(|meta| meta.is_symlink());
        let out = if is_link { fs::canonicalize(out).at("follow the link", out)? } else { out.to_path_buf() };
        if out.file_name().is_none() {
            return Err(Error::BadName(out));
        }
        check_target(&out, force)?;
        if let Some(parent) = out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        let partial = beside(&out, ".partial");
        let lock = acquire(&partial)?;
        // From here on, dropping the folder cleans up.
        let folder = Folder { out, partial, force, _lock: lock, committed: false };
        folder.clear()?;
        check_target(&folder.out, force)?;
        Ok(folder)
    }

    /// Where files are written until the commit: `OUT.partial`.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// What the folder will be called.
    pub fn target(&self) -> &Path {
        &self.out
    }

    /// Makes a folder within, one level a part, each named by [`folder_name`]: `["ecmp", "seed-1"]`.
    pub fn subfolder(&self, parts: &[&str]) -> Result<PathBuf> {
        let path = parts.iter().fold(self.partial.clone(), |path, part| path.join(folder_name(part)));
        fs::create_dir_all(&path).at("create", &path)?;
        Ok(path)
    }

    /// Replaces `OUT.partial/progress.json`; a reader sees the old or the new one, never a part.
    pub fn progress(&self, progress: &Progress) -> Result<()> {
        let (next, path) = (self.partial.join(PROGRESS_NEXT), self.partial.join(PROGRESS));
        let mut text = serde_json::to_string(progress).map_err(io::Error::from).at("write", &path)?;
        text.push('\n');
        fs::write(&next, text).at("write", &next)?;
        fs::rename(&next, &path).at("replace", &path)
    }

    /// Gives the folder its name, in place of an older result. Returns the name.
    ///
    /// Fails without touching the target if there is no manifest, which is written last.
    pub fn commit(mut self) -> Result<PathBuf> {
        if !is_result(&self.partial) {
            let reason = "is missing or not whole, so the results are not either".to_string();
            return Err(Error::Malformed { path: self.partial.join(MANIFEST), reason });
        }
        for name in [PROGRESS, PROGRESS_NEXT] {
            remove_if_there(&self.partial.join(name))?;
        }
        check_target(&self.out, self.force)?;
        let replaced = self.partial.join(REPLACED);
        if self.out.exists() {
            fs::rename(&self.out, &replaced).at("move aside", &self.out)?;
        }
        // If this fails, dropping the folder moves the older result back.
        fs::rename(&self.partial, &self.out).at("rename", &self.partial)?;
        self.committed = true;
        // The new result stands. What cannot be tidied up now goes with it when it is replaced itself.
        let _ = fs::remove_dir_all(self.out.join(REPLACED));
        let _ = fs::remove_file(self.out.join(LOCK));
        Ok(self.out.clone())
    }

    /// Puts back an older result that an exchange cut short left here, then removes everything but the lock.
    fn clear(&self) -> Result<()> {
        let replaced = self.partial.join(REPLACED);
        if fs::symlink_metadata(&replaced).is_ok() && fs::symlink_metadata(&self.out).is_err() {
            fs::rename(&replaced, &self.out).at("move back", &replaced)?;
        }
        for entry in fs::read_dir(&self.partial).at("read", &self.partial)? {
            let entry = entry.at("read", &self.partial)?;
            let path = entry.path();
            if entry.file_name() == LOCK {
                continue;
            }
            let is_dir = entry.file_type().at("look at", &path)?.is_dir();
            if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.at("remove", &path)?;
        }
        Ok(())
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.partial
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.committed {
            // The lock goes last but for the folder itself: whoever finds a folder without it finds it empty.
            if self.clear().is_ok() {
                let _ = fs::remove_file(self.partial.join(LOCK));
                let _ = fs::remove_dir(&self.partial);
            }
        }
    }
}

/// Longest name of a folder in bytes.
const NAME_MAX: usize = 180;

/// A name for a folder: letters, digits and `-_=+,@` and inner dots stay, anything else becomes `%XX`, so that no name
/// leaves the folder or hides, and different names stay different. What is too long for a file system (they take 255 bytes)
/// is cut, and ends with a hash of the whole.
pub fn folder_name(name: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::new();
    for (at, byte) in name.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-_=+,@".contains(&byte) || (byte == b'.' && at > 0);
        if plain {
            encoded.push(byte as char);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    let reserved = [MANIFEST, PROGRESS, "compare.json", "report.html", "summary.json"];
    if encoded.is_empty() || reserved.contains(&encoded.as_str()) {
        encoded.push('%');
    }
    if encoded.len() > NAME_MAX {
        encoded.truncate(NAME_MAX - 17);
        let _ = write!(encoded, "-{:016x}", hash_name(name));
    }
    encoded
}

/// The path without parts that mean nothing, such as the dot of `OUT/.`, by which no folder can be
/// renamed.
pub(crate) fn plain(out: &Path) -> PathBuf {
    out.components().collect()
}

/// `OUT` with something appended to its last part.
fn beside(out: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(out.file_name().unwrap_or_default());
    name.push(suffix);
    out.with_file_name(name)
}

/// Whether `out` is free or may be replaced.
pub(crate) fn check_target(out: &Path, force: bool) -> Result<()> {
    let meta = match fs::symlink_metadata(out) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).at("look at", out),
    };
    if !meta.is_dir() {
        return Err(Error::IsFile(out.to_path_buf()));
    }
    if is_result(out) {
        return Ok(());
    }
    // By force, but not the ground under one's feet.
    let holds_us = match (std::env::current_dir(), fs::canonicalize(out)) {
        (Ok(here), Ok(out)) => here.starts_with(out),
        _ => false,
    };
    if force && !holds_us { Ok(()) } else { Err(Error::NotAResult(out.to_path_buf())) }
}

/// Makes `OUT.partial` if need be and locks it. What a dead run left there is taken over.
fn acquire(partial: &Path) -> Result<File> {
    let lock_path = partial.join(LOCK);
    // A run that ends at this moment may take the folder away under us: try again.
    for _ in 0..16 {
        match fs::create_dir(partial) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_leftover(partial)?,
            Err(error) => return Err(error).at("create", partial),
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&lock_path);
        let mut file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.at("create", &lock_path)?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                return Err(Error::Busy { path: partial.to_path_buf(), holder: text.trim().parse().ok() });
            }
            // A file system without locks: its users must take care themselves.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error).at("lock", &lock_path),
        }
        if same_file(&file, &lock_path) {
            let signed = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            if let Err(error) = signed {
                let _ = fs::remove_file(&lock_path);
                let _ = fs::remove_dir(partial);
                return Err(error).at("write", &lock_path);
            }
            return Ok(file);
        }
    }
    Err(Error::Busy { path: partial.to_path_buf(), holder: None })
}

/// `OUT.partial` exists: fine if a run made it, which has a lock in it or died before it had anything.
fn check_leftover(partial: &Path) -> Result<()> {
    let meta = match fs::symlink_metadata(partial) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).at("look at", partial),
    };
    let ours = meta.is_dir()
        && (partial.join(LOCK).exists() || fs::read_dir(partial).is_ok_and(|mut entries| entries.next().is_none()));
    // It may have gone, or got its lock, in between.
    if ours || !partial.exists() || partial.join(LOCK).exists() {
        return Ok(());
    }
    Err(Error::InTheWay(partial.to_path_buf()))
}

/// Whether the path still leads to this open file.
#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_file(_file: &File, path: &Path) -> bool {
    path.exists()
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("remove", path),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_dir;

    #[test]
    fn names_stay_inside_and_apart() {
        assert_eq!(folder_name("ecmp-2.5"), "ecmp-2.5");
        assert_eq!(folder_name(".."), "%2E.");
        assert_eq!(folder_name("a/b\\c"), "a%2Fb%5Cc");
        assert_eq!(folder_name(""), "%");
        assert_eq!(folder_name("report.html"), "report.html%");
        assert_eq!(folder_name("é%"), "%C3%A9%25");
    }

    #[test]
    fn odd_targets_are_refused() {
        let dir = test_dir("odd-targets");
        assert!(matches!(Folder::create(Path::new(".."), true), Err(Error::BadName(_))));
        assert!(matches!(Folder::create(Path::new("/"), true), Err(Error::BadName(_))));
        let file = dir.join("file");
        fs::write(&file, "x").unwrap();
        assert!(matches!(Folder::create(&file, true), Err(Error::IsFile(_))));
        assert!(matches!(Folder::create(&file.join("below"), false), Err(Error::Io { .. })));
        fs::create_dir(dir.join("x.partial")).unwrap();
        fs::write(dir.join("x.partial/mine"), "").unwrap();
        assert!(matches!(Folder::create(&dir.join("x"), true), Err(Error::InTheWay(_))));
        assert!(dir.join("x.partial/mine").exists());
    }

    #[test]
    fn a_second_run_is_kept_out_and_a_dropped_one_leaves_nothing() {
        let dir = test_dir("second-run");
        let out = dir.join("deep/x");
        let folder = Folder::create(&out, false).unwrap();
        folder.progress(&Progress::default()).unwrap();
        let read = || serde_json::from_slice::<Progress>(&fs::read(dir.join("deep/x.partial/progress.json")).unwrap());
        assert_eq!(read().unwrap(), Progress::default());
        let Err(Error::Busy { holder, .. }) = Folder::create(&out, true) else { panic!("not kept out") };
        assert_eq!(holder, Some(std::process::id()));
        assert!(matches!(folder.commit(), Err(Error::Malformed { .. })));
        assert_eq!(fs::read_dir(dir.join("deep")).unwrap().count(), 0);
        Folder::create(&out, false).unwrap();
    }

    #[test]
    fn an_exchange_cut_short_is_undone_by_the_next_run() {
        let dir = test_dir("cut-short");
        let out = dir.join("x");
        let old = dir.join("x.partial").join(REPLACED);
        fs::create_dir_all(&old).unwrap();
        fs::write(dir.join("x.partial").join(LOCK), "1").unwrap();
        fs::write(old.join(MANIFEST), r#"{"millpond":"0","schema":1}"#).unwrap();
        drop(Folder::create(&out, false).unwrap());
        assert!(is_result(&out) && !dir.join("x.partial").exists());
    }

    #[test]
    fn a_rename_that_fails_keeps_the_older_result() {
        let dir = test_dir("rename-fails");
        let out = dir.join("x");
        fs::create_dir(&out).unwrap();
        fs::write(out.join(MANIFEST), r#"{"millpond":"0","schema":1}"#).unwrap();
        let folder = Folder::create(&out, false).unwrap();
        fs::write(folder.path().join(MANIFEST), r#"{"millpond":"1","schema":1}"#).unwrap();
        // Something in the place of the older result: moving it aside fails.
        fs::create_dir(folder.path().join(REPLACED)).unwrap();
        fs::write(folder.path().join(REPLACED).join("full"), "").unwrap();
        assert!(matches!(folder.commit(), Err(Error::Io { doing: "move aside", .. })));
        assert_eq!(fs::read_to_string(out.join(MANIFEST)).unwrap(), r#"{"millpond":"0","schema":1}"#);
        assert_eq!(fs::read_dir(&*dir).unwrap().count(), 1);
    }
}
