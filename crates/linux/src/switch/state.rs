//! The folder that a switch keeps its state in, and its locks.
//!
//! | file | what it is |
//! |---|---|
//! | `config.toml` | the switch that was applied last |
//! | `taps` | the interfaces that it has made: a line each, namespace, name and address |
//! | `lock` | held by the process that moves frames, with its number in it |
//! | `apply.lock` | held while the switch is changed, started or removed |
//! | `control.sock` | where the process is asked |
//! | `log` | what a process that `apply` started has said |
//!
//! Invariant: an interface is in `taps` before it is made and until it is gone, so whatever is killed, `remove --all` finds it. Files are replaced
//! whole. The folder is removed by whoever holds `apply.lock`, which goes last; a lock of a folder that is gone is nobody's.

use super::Error;
use crate::frame::Mac;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a change waits for another.
const PATIENCE: Duration = Duration::from_secs(10);

/// An interface that a switch has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Where; `None`: the switch's own namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub device: String,
}

/// The folder.
#[derive(Clone, Debug)]
pub struct State {
    folder: PathBuf,
}

impl State {
    /// Of this folder, which need not be there yet.
    pub fn at(folder: &Path) -> State {
        State { folder: folder.to_path_buf() }
    }
    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// One of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
    fn make(&self, is_recursive: bool) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        // Whoever may enter can change the switch.
        fs::DirBuilder::new().recursive(is_recursive).mode(0o700).create(&self.folder)
    }
    /// Makes the folder.
    pub fn create(&self) -> Result<(), Error> {
        self.make(true).map_err(|e| Error::file(&self.folder, e))
    }
    /// Makes the folder, which must not be there: not as somebody's link either.
    pub fn create_new(&self) -> Result<(), Error> {
        self.make(false).map_err(|e| Error::file(&self.folder, e))
    }

    /// Locks one of the files. `None`: another process has it, or has removed the folder meanwhile.
    fn lock(&self, name: &str) -> Result<Option<File>, Error> {
        use std::os::unix::fs::MetadataExt;
        let path = self.file(name);
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = match self.make(true).and_then(|()| open()) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::file(&path, e)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(e) => return Err(Error::file(&path, e)),
        }
        let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let locked = file.metadata().map(identity).map_err(|e| Error::file(&path, e))?;
        let is_there = fs::metadata(&path).is_ok_and(|named| identity(named) == locked);
        Ok(is_there.then_some(file))
    }

    /// Waits until nobody else changes the switch.
    pub fn lock_changes(&self) -> Result<File, Error> {
        let start = Instant::now();
        loop {
            match self.lock("apply.lock")? {
                Some(file) => return Ok(file),
                None if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
                None => return Err(Error::Busy(PATIENCE.as_secs())),
            }
        }
    }

    /// Becomes the process that moves frames; `None`: another is. The kernel frees the lock when the process ends, however.
    pub fn lock_frames(&self) -> Result<Option<File>, Error> {
        let Some(mut file) = self.lock("lock")? else { return Ok(None) };
        let number = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.write_all(number.as_bytes()))
            .map_err(|e| Error::file(&self.file("lock"), e))?;
        Ok(Some(file))
    }

    /// The process that moves frames, if there is one.
    pub fn process(&self) -> Option<u32> {
        let mut file = File::open(self.file("lock")).ok()?;
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            return None;
        }
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// Writes a file whole, or not at all.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        self.create()?;
        let (path, new) = (self.file(name), self.file(&format!("{name}.new")));
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(|e| Error::file(&path, e))
    }

    fn records(&self) -> Result<Vec<(Made, String)>, Error> {
        let path = self.file("taps");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::file(&path, e)),
        };
        let record = |line: &str| {
            let mut fields = line.split('\t');
            let (namespace, device) = (fields.next()?, fields.next()?.to_string());
            let namespace = (!namespace.is_empty()).then(|| namespace.to_string());
            Some((Made { namespace, device }, fields.next().unwrap_or("").to_string()))
        };
        Ok(text.lines().filter_map(record).collect())
    }
    fn write_records(&self, records: &[(Made, String)]) -> Result<(), Error> {
        let line =
            |(m, mac): &(Made, String)| format!("{}\t{}\t{mac}\n", m.namespace.as_deref().unwrap_or(""), m.device);
        self.write("taps", &records.iter().map(line).collect::<String>())
    }
    /// The interfaces that were made and are not known to be gone.
    pub fn made(&self) -> Result<Vec<Made>, Error> {
        Ok(self.records()?.into_iter().map(|(made, _)| made).collect())
    }
    /// The address that one had.
    pub fn address(&self, made: &Made) -> Result<Option<Mac>, Error> {
        let records = self.records()?;
        Ok(records.iter().find(|(m, _)| m == made).and_then(|(_, mac)| mac.parse().ok()))
    }
    /// Notes that one is about to be made.
    pub fn note(&self, made: &Made) -> Result<(), Error> {
        let mut records = self.records()?;
        if !records.iter().any(|(m, _)| m == made) {
            records.push((made.clone(), String::new()));
            self.write_records(&records)?;
        }
        Ok(())
    }
    /// Notes the address of one that was made; of others none is kept.
    pub fn note_address(&self, made: &Made, address: Mac) -> Result<(), Error> {
        let (mut records, text) = (self.records()?, address.to_string());
        match records.iter_mut().find(|(m, _)| m == made) {
            Some((_, mac)) if *mac != text => *mac = text,
            _ => return Ok(()),
        }
        self.write_records(&records)
    }
    /// Notes that one is gone.
    pub fn strike(&self, made: &Made) -> Result<(), Error> {
        let mut records = self.records()?;
        records.retain(|(m, _)| m != made);
        self.write_records(&records)
    }
    /// Removes the folder with what it holds; not a file that is not the switch's.
    pub fn erase(&self) -> Result<(), Error> {
        for name in ["config.toml", "taps", "lock", "control.sock", "log", "config.toml.new", "taps.new", "apply.lock"]
        {
            let _ = fs::remove_file(self.file(name));
        }
        match fs::remove_dir(&self.folder) {
            // Somebody who has waited for the lock begins anew.
            Err(_) if self.file("apply.lock").exists() => Ok(()),
            Err(e) if self.folder.exists() => Err(Error::file(&self.folder, e)),
            _ => {
                // The folder around it, if it was millpond's and nothing else is in it.
                if let Some(around) = self.folder.parent().filter(|p| p.ends_with("millpond")) {
                    let _ = fs::remove_dir(around);
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
impl State {
    /// A test's own folder, which is not there yet.
    pub(crate) fn scratch(name: &str) -> State {
        State::at(&std::env::temp_dir().join(format!("millpond-{name}-{}", std::process::id())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_and_notes() {
        let state = State::scratch("state");
        assert!(state.process().is_none() && state.made().unwrap().is_empty());
        let lock = state.lock_frames().unwrap().unwrap();
        assert!(state.lock_frames().unwrap().is_none());
        assert_eq!(state.process(), Some(std::process::id()));
        drop(lock);
        assert_eq!(state.process(), None);
        let [a, b] = [Some("x".to_string()), None].map(|namespace| Made { namespace, device: "tap0".into() });
        [&a, &b, &a].iter().for_each(|m| state.note(m).unwrap());
        assert_eq!(state.made().unwrap(), [a.clone(), b.clone()]);
        let mac = Mac([2, 0, 0xab, 0, 0, 1]);
        assert_eq!(state.address(&a).unwrap(), None);
        state.note_address(&a, mac).unwrap();
        state.note(&a).unwrap();
        assert_eq!((state.address(&a).unwrap(), state.address(&b).unwrap()), (Some(mac), None));
        state.strike(&a).unwrap();
        assert_eq!(state.made().unwrap(), [b]);
        state.erase().unwrap();
        assert!(!state.folder().exists());
    }

    #[test]
    fn who_waits_for_the_lock_of_a_folder_that_is_removed_gets_one_that_holds() {
        let state = State::scratch("lock");
        let first = state.lock_changes().unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| state.lock_changes().unwrap());
            std::thread::sleep(Duration::from_millis(200));
            state.erase().unwrap();
            drop(first);
            let second = second.join().unwrap();
            assert!(state.lock("apply.lock").unwrap().is_none(), "it is the one that others meet");
            drop(second);
            drop(state.lock_changes().unwrap());
        });
        state.erase().unwrap();
        assert!(!state.folder().exists());
    }

    #[test]
    fn a_new_folder_is_nobody_elses() {
        use std::os::unix::fs::MetadataExt;
        let state = State::scratch("new");
        let folder = state.folder().to_path_buf();
        state.create_new().unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert!(state.create_new().is_err(), "it is there");
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(std::env::temp_dir(), &folder).unwrap();
        assert!(state.create_new().is_err() && state.create().is_ok(), "it leads elsewhere");
        fs::remove_file(&folder).unwrap();
    }
}
