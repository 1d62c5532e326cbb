//! The folder that a switch keeps its state in, and its locks.
//!
//! | file | what it is |
//! |---|---|
//! | `config.toml` | the switch that was applied last |
//! | `taps` | the interfaces that it made: a line each of namespace, name, address, identity |
//! | `lock` | held by the process that moves frames, with its number in it |
//! | `apply.lock` | held while the switch is changed, started or removed |
//! | `control.sock` | where the process is asked |
//! | `log` | the output of a process that `apply` started |
//!
//! Invariant: an interface is in `taps` before it is made and until it is gone, so whatever is
//! killed, `remove --all` finds it. Files are replaced whole, but for `taps`, which lines are added
//! to. The folder is removed by whoever holds `apply.lock`, which goes last; a lock of a folder
//! that is gone is nobody's.

use super::Error;
use crate::dataplane::frame::Mac;
use millpond_worlds::namespace::Identity;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The note of a switch whose state folder has no copy of its configuration.
pub const UNSAVED: &str = "the configuration is not saved, so `remove NAME`, `connect` and a \
                           restart without a file take an earlier one";

/// The most bytes of a process's number.
const NUMBER_MAX: u64 = 16;
/// How long a change waits for another.
const PATIENCE: Duration = Duration::from_secs(10);

/// An interface that a switch has made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Made {
    /// Where; `None`: the switch's own namespace.
    pub namespace: Option<String>,
    pub device: String,
}

/// The record of an interface that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name when it was made, and its place.
    pub made: Made,
    pub address: Option<Mac>,
    /// Which namespace it is in, whatever that is called and whoever asks. An earlier version did
    /// not note it.
    pub home: Option<Identity>,
    /// Its number there; `None`: it was about to be made.
    pub index: Option<i32>,
}

impl Record {
    fn to_line(&self) -> String {
        let home = self.home.map_or(String::new(), |(device, inode)| format!("{device}:{inode}"));
        let namespace = self.made.namespace.as_deref().unwrap_or("");
        let address = self.address.map_or(String::new(), |mac| mac.to_string());
        let index = self.index.map_or(String::new(), |index| index.to_string());
        format!("{namespace}\t{}\t{address}\t{home}\t{index}\n", self.made.device)
    }
    fn of_line(line: &str) -> Option<Record> {
        let mut fields = line.split('\t');
        let (namespace, device) = (fields.next()?, fields.next()?.to_string());
        let namespace = (!namespace.is_empty()).then(|| namespace.to_string());
        let mut next = || fields.next().unwrap_or("");
        let address = next().parse().ok();
        let home =
            next().split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        Some(Record { made: Made { namespace, device }, address, home, index: next().parse().ok() })
    }
}

#[derive(Clone, Debug)]
pub struct State {
    folder: PathBuf,
}

impl State {
    /// Of this folder, which need not be there yet.
    pub fn at(folder: &Path) -> State {
        State { folder: folder.to_path_buf() }
    }
    /// The error of a switch that is not here.
    pub fn absent(&self) -> Error {
        Error::NotRunning(self.folder.clone())
    }
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
    /// Whether one of its files is there.
    ///
    /// # Errors
    /// [`Error::Forbidden`] if this user may not look.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        let path = self.file(name);
        path.try_exists().map_err(|_| Error::Forbidden(path))
    }
    fn make(&self, is_recursive: bool) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        // Whoever may enter can change the switch.
        fs::DirBuilder::new().recursive(is_recursive).mode(0o700).create(&self.folder)
    }
    /// Makes the folder, if it is missing.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be made.
    pub fn create(&self) -> Result<(), Error> {
        self.make(true).map_err(|e| Error::file(&self.folder, e))
    }
    /// Makes the folder, which must be missing: a link of that name is an error, too.
    ///
    /// # Errors
    /// [`Error::File`] if it is there or cannot be made.
    pub fn create_new(&self) -> Result<(), Error> {
        self.make(false).map_err(|e| Error::file(&self.folder, e))
    }

    /// Locks one of the files. `None`: another process has it, or has removed the folder meanwhile.
    fn lock(&self, name: &str) -> Result<Option<File>, Error> {
        use std::os::unix::fs::MetadataExt;
        let path = self.file(name);
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
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

    /// Waits until no other process changes the switch. The lock holds until the file is dropped.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process changes it for too long, [`Error::File`] if the lock
    /// cannot be opened.
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

    /// Makes this process the one that moves frames. Returns `None` if another process is. The
    /// kernel frees the lock when the process ends in any way.
    ///
    /// # Errors
    /// [`Error::File`] if the lock cannot be opened or written.
    pub fn lock_frames(&self) -> Result<Option<File>, Error> {
        let Some(mut file) = self.lock("lock")? else { return Ok(None) };
        // It is written over the former one, for which there is room on a full disk. Others find
        // the process by its socket otherwise ([`State::process`]).
        let number = format!("{:<10}\n", std::process::id());
        if let Err(e) = file.write_all(number.as_bytes()) {
            log::warn!("{}", Error::file(&self.file("lock"), e));
        }
        Ok(Some(file))
    }

    /// The process that moves frames, if there is one: by its lock, or by its socket.
    pub fn process(&self) -> Option<u32> {
        let file = File::open(self.file("lock")).ok()?;
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            return None;
        }
        let mut text = String::new();
        file.take(NUMBER_MAX).read_to_string(&mut text).ok()?;
        let listener = || {
            let stream = UnixStream::connect(self.file("control.sock")).ok()?;
            let listener = rustix::net::sockopt::socket_peercred(&stream).ok()?;
            Some(listener.pid.as_raw_nonzero().get().cast_unsigned())
        };
        text.trim().parse().ok().or_else(listener)
    }

    /// Writes a file whole, or not at all.
    ///
    /// # Errors
    /// [`Error::File`] if the file or its folder cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        self.create()?;
        let (path, new) = (self.file(name), self.file(&format!("{name}.new")));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|e| {
            let _ = fs::remove_file(&new);
            Error::file(&path, e)
        })
    }

    /// Returns the interfaces that were made and whose end is not recorded. The last record of an
    /// interface counts.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read.
    pub fn records(&self) -> Result<Vec<Record>, Error> {
        let path = self.file("taps");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::file(&path, e)),
        };
        let (mut records, mut places) = (Vec::new(), HashMap::new());
        for record in text.lines().filter_map(Record::of_line) {
            match places.get(&record.made) {
                Some(at) => records[*at] = record,
                None => {
                    places.insert(record.made.clone(), records.len());
                    records.push(record);
                }
            }
        }
        Ok(records)
    }
    /// Notes one more; a file of a thousand is not written anew for each.
    fn add_record(&self, record: &Record) -> Result<(), Error> {
        self.create()?;
        let path = self.file("taps");
        let append = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
            let length = file.metadata()?.len();
            // Half a line, on a full disk, would spoil the next one.
            file.write_all(record.to_line().as_bytes()).inspect_err(|_| drop(file.set_len(length)))
        };
        append().map_err(|e| Error::file(&path, e))
    }
    fn write_records(&self, records: &[Record]) -> Result<(), Error> {
        self.write("taps", &records.iter().map(Record::to_line).collect::<String>())
    }
    /// Returns the record of one interface.
    ///
    /// # Errors
    /// As [`State::records`].
    pub fn record(&self, made: &Made) -> Result<Option<Record>, Error> {
        Ok(self.records()?.into_iter().find(|record| record.made == *made))
    }
    /// Records that an interface is about to be made in this namespace. Its address stays on
    /// record.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read or written.
    pub fn note(&self, made: &Made, home: Option<Identity>) -> Result<(), Error> {
        let before = self.record(made)?;
        let address = before.as_ref().and_then(|record| record.address);
        let now = Record { made: made.clone(), address, home, index: None };
        if before.as_ref() == Some(&now) { Ok(()) } else { self.add_record(&now) }
    }
    /// Records the index and the address of an interface that was made. Ignores interfaces that are
    /// not on record.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read or written.
    pub fn note_made(
        &self,
        made: &Made,
        address: Option<Mac>,
        home: Option<Identity>,
        index: i32,
    ) -> Result<(), Error> {
        let Some(before) = self.record(made)? else { return Ok(()) };
        let now = Record {
            made: made.clone(),
            address: address.or(before.address),
            home,
            index: Some(index),
        };
        if before == now { Ok(()) } else { self.add_record(&now) }
    }
    /// Removes the records of interfaces that are gone.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read or written.
    pub fn strike(&self, gone: &[Made]) -> Result<(), Error> {
        let mut records = self.records()?;
        records.retain(|record| !gone.contains(&record.made));
        self.write_records(&records)
    }
    /// Removes the folder with the switch's files; other files stay.
    ///
    /// # Errors
    /// [`Error::File`] if the folder cannot be removed, such as for a file that is not the
    /// switch's.
    pub fn erase(&self) -> Result<(), Error> {
        for name in [
            "config.toml",
            "taps",
            "lock",
            "control.sock",
            "log",
            "config.toml.new",
            "taps.new",
            "apply.lock",
        ] {
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
        assert!(state.process().is_none() && state.records().unwrap().is_empty());
        let lock = state.lock_frames().unwrap().unwrap();
        assert!(state.lock_frames().unwrap().is_none());
        assert_eq!(state.process(), Some(std::process::id()));
        drop(lock);
        assert_eq!(state.process(), None);
        let [a, b] = [Some("x".to_string()), None]
            .map(|namespace| Made { namespace, device: "tap0".into() });
        [&a, &b, &a].iter().for_each(|m| state.note(m, Some((4, 99))).unwrap());
        let made =
            || state.records().unwrap().into_iter().map(|record| record.made).collect::<Vec<_>>();
        assert_eq!(made(), [a.clone(), b.clone()]);
        let mac = Mac([2, 0, 0xab, 0, 0, 1]);
        state.note_made(&a, Some(mac), Some((4, 99)), 7).unwrap();
        let known =
            Record { made: a.clone(), address: Some(mac), home: Some((4, 99)), index: Some(7) };
        assert_eq!(state.record(&a).unwrap(), Some(known.clone()));
        // It is to be made anew: its address stays.
        state.note(&a, Some((4, 100))).unwrap();
        let anew = Record { home: Some((4, 100)), index: None, ..known };
        assert_eq!(state.record(&a).unwrap(), Some(anew));
        assert_eq!(state.record(&b).unwrap().unwrap().address, None);
        state.strike(&[a]).unwrap();
        assert_eq!(made(), [b]);
        assert_eq!(fs::read_to_string(state.file("taps")).unwrap().lines().count(), 1);
        // An earlier version's.
        state.write("taps", "\ttap0\nx\ttap1\t02:00:00:00:00:01\n").unwrap();
        let records = state.records().unwrap();
        assert_eq!((records.len(), records[1].index, records[1].home), (2, None, None));
        assert_eq!(records[1].address, Some(Mac([2, 0, 0, 0, 0, 1])));
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
