//! When cgroups are made or removed: the kernel reports it (inotify), so that nothing is examined
//! while nothing changes.
//!
//! A cgroup that is made may be one that was limited before, so it is examined at once. A cgroup
//! that was removed leaves only what can be cleared away later.
//!
//! Invariant: each change is examined, at the latest after [`AT_LEAST`]; where the kernel reports
//! nothing (watches have run out), the hierarchy is examined at each call. Examinations take no
//! more than 1 / ([`DEAR`] + 1) of a core beyond [`CREDIT`], however often cgroups come and go.

use super::cgroup::below;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the hierarchy is examined even if no change was reported.
const AT_LEAST: Duration = Duration::from_secs(30);
const LATER: Duration = Duration::from_secs(1);
/// How many times as long as an examination takes the next one waits, beyond the credit.
const DEAR: u32 = 4;
const CREDIT: Duration = Duration::from_secs(10);

pub(super) struct Watch {
    root: PathBuf,
    /// `None`: the kernel reports nothing.
    inotify_fd: Option<OwnedFd>,
    /// When the last examination began; whether it was this call's answer.
    looked: Instant,
    is_looking: bool,
    /// Whether a change has not been examined yet.
    is_pending: bool,
    /// Until when the examinations so far have used their part of a core.
    used_until: Instant,
    /// Since when a cgroup is gone.
    gone: Option<Instant>,
}

impl Watch {
    pub(super) fn new(root: PathBuf) -> Watch {
        let inotify_fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok();
        let now = Instant::now();
        let mut watch = Watch {
            root,
            inotify_fd,
            looked: now,
            is_looking: false,
            is_pending: false,
            used_until: now,
            gone: None,
        };
        watch.add_all();
        watch
    }

    /// Whether the kernel reports nothing, so that changes are seen late.
    pub(super) fn is_blind(&self) -> bool {
        self.inotify_fd.is_none()
    }

    /// Watches every folder that there is; those that are watched already stay so.
    fn add_all(&mut self) {
        let Some(inotify_fd) = &self.inotify_fd else { return };
        let flags =
            WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::ONLYDIR;
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            match inotify::add_watch(inotify_fd, &folder, flags) {
                Ok(_) => {}
                // It went meanwhile.
                Err(rustix::io::Errno::NOENT) => continue,
                Err(_) => {
                    self.inotify_fd = None;
                    return;
                }
            }
            // After its watch, so that nothing comes in between.
            open.extend(below(&folder).map(|entry| entry.path()));
        }
    }

    /// Waits for a change, at most so long. Returns whether the caller has to examine the
    /// hierarchy; its next call ends that.
    pub(super) fn wait(&mut self, most: Duration) -> bool {
        if std::mem::take(&mut self.is_looking) {
            let used = DEAR * self.looked.elapsed();
            self.used_until = self.used_until.max(self.looked) + used;
        }
        if !self.is_pending {
            self.is_pending = self.has_changed(most);
        } else {
            std::thread::sleep(self.dear().min(most));
        }
        self.is_looking = self.is_pending && self.dear().is_zero();
        if self.is_looking {
            (self.looked, self.is_pending) = (Instant::now(), false);
            self.gone = self.gone.filter(|since| since.elapsed() < LATER);
        }
        self.is_looking
    }

    /// How long the next examination has to wait.
    fn dear(&self) -> Duration {
        self.used_until.saturating_duration_since(Instant::now()).saturating_sub(CREDIT)
    }

    fn has_changed(&mut self, most: Duration) -> bool {
        let Some(inotify_fd) = &self.inotify_fd else {
            std::thread::sleep(most);
            return true;
        };
        let later = self.gone.map(|since| LATER.saturating_sub(since.elapsed()));
        let most = later.map_or(most, |later| most.min(later));
        let timeout =
            Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        let mut fds = [PollFd::new(inotify_fd, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).is_ok_and(|n| n > 0) {
            let (was_made, was_removed) = self.drain();
            if was_removed {
                self.gone.get_or_insert_with(Instant::now);
            }
            if was_made {
                self.add_all();
                return true;
            }
        }
        self.gone.is_some_and(|since| since.elapsed() >= LATER) || self.looked.elapsed() >= AT_LEAST
    }

    /// Reads what was reported. Returns whether there may be folders that are not watched, and
    /// whether one is gone.
    fn drain(&self) -> (bool, bool) {
        const MADE: ReadFlags =
            ReadFlags::CREATE.union(ReadFlags::MOVED_TO).union(ReadFlags::QUEUE_OVERFLOW);
        let Some(inotify_fd) = &self.inotify_fd else { return (false, false) };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(inotify_fd, &mut buffer);
        let mut all = ReadFlags::empty();
        while let Ok(event) = reader.next() {
            all |= event.events();
        }
        (all.intersects(MADE), all.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_that_is_made_is_seen_at_once_and_a_removal_later() {
        let root = std::env::temp_dir().join(format!("millpond-watch-{}", std::process::id()));
        fs::create_dir_all(root.join("a")).unwrap();
        let mut watch = Watch::new(root.clone());
        let (long, short) = (Duration::from_secs(10), Duration::from_millis(10));
        assert!(!watch.is_blind() && !watch.wait(short), "nothing has changed");
        for path in ["a/b", "a/b/c", "a/b/c/d"] {
            fs::create_dir(root.join(path)).unwrap();
            let start = Instant::now();
            assert!(watch.wait(long) && start.elapsed() < LATER / 2, "{path} was made");
            assert!(!watch.wait(short), "and no more");
        }
        fs::remove_dir(root.join("a/b/c/d")).unwrap();
        let start = Instant::now();
        assert!(!watch.wait(short), "a removal can wait");
        while !watch.wait(long) {}
        assert!((LATER / 2..long / 2).contains(&start.elapsed()), "{:?}", start.elapsed());
        fs::create_dir(root.join("a/b/c/d")).unwrap();
        assert!(watch.wait(long) && !watch.wait(short));
        watch.looked -= AT_LEAST;
        assert!(watch.wait(short) && !watch.wait(short), "after a while in any case");
        watch.inotify_fd = None;
        assert!(watch.wait(short), "and always, where nothing is reported");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn examinations_that_take_long_are_spaced() {
        let root = std::env::temp_dir().join(format!("millpond-dear-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let mut watch = Watch::new(root.clone());
        let (short, took) = (Duration::from_millis(10), Duration::from_millis(100));
        fs::create_dir(root.join("a")).unwrap();
        assert!(watch.wait(short));
        std::thread::sleep(took);
        // Nearly all of the credit is gone when this one ends.
        watch.used_until = watch.looked + CREDIT;
        let start = Instant::now();
        fs::create_dir(root.join("b")).unwrap();
        assert!(!watch.wait(short) && !watch.wait(short), "nobody waits for it longer than asked");
        while !watch.wait(short) {
            assert!(start.elapsed() < Duration::from_secs(10), "it goes on");
        }
        assert!(start.elapsed() >= (DEAR - 1) * took, "{:?}", start.elapsed());
        fs::remove_dir_all(&root).unwrap();
    }
}
