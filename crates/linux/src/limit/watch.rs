//! When cgroups are made or removed: told by the kernel, so that nothing has to be looked at while
//! none is.
//!
//! Invariant: what changes is seen, at the latest after [`AT_LEAST`]; where the kernel tells
//! nothing (watches have run out), all is looked at each time.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use std::fs;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often all is looked at even if nothing was told.
const AT_LEAST: Duration = Duration::from_secs(30);
/// Cgroups come and go in numbers: so long others are waited for, and so long from one look to the
/// next.
const SETTLING: Duration = Duration::from_millis(100);
const APART: Duration = Duration::from_secs(1);

/// All folders of a hierarchy.
pub(super) struct Watch {
    root: PathBuf,
    /// `None`: the kernel tells nothing.
    told: Option<OwnedFd>,
    looked: Instant,
}

impl Watch {
    pub(super) fn new(root: PathBuf) -> Watch {
        let told = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok();
        let mut watch = Watch { root, told, looked: Instant::now() };
        watch.add_all();
        watch
    }

    /// Watches every folder that there is; those that are watched already stay so.
    fn add_all(&mut self) {
        let Some(told) = &self.told else { return };
        let flags =
            WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::ONLYDIR;
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            match inotify::add_watch(told, &folder, flags) {
                Ok(_) => {}
                // It went meanwhile.
                Err(rustix::io::Errno::NOENT) => continue,
                Err(_) => {
                    self.told = None;
                    return;
                }
            }
            // After its watch, so that nothing comes in between.
            let below = fs::read_dir(&folder).into_iter().flatten().flatten();
            open.extend(
                below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()),
            );
        }
    }

    /// Waits so long, or until cgroups have changed; whether to look at them.
    pub(super) fn wait(&mut self, most: Duration) -> bool {
        let Some(told) = &self.told else {
            std::thread::sleep(most);
            return true;
        };
        let timeout =
            Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        let mut fds = [PollFd::new(told, PollFlags::IN)];
        let has_changed = poll(&mut fds, Some(&timeout)).is_ok_and(|n| n > 0);
        if has_changed {
            std::thread::sleep(APART.saturating_sub(self.looked.elapsed()).max(SETTLING));
            if self.drain() {
                self.add_all();
            }
        }
        let is_due = has_changed || self.looked.elapsed() >= AT_LEAST;
        if is_due {
            self.looked = Instant::now();
        }
        is_due
    }

    /// Takes what was told; whether there may be folders that are not watched.
    fn drain(&self) -> bool {
        let Some(told) = &self.told else { return false };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(told, &mut buffer);
        let mut has_more = false;
        while let Ok(event) = reader.next() {
            has_more |= event
                .events()
                .intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO | ReadFlags::QUEUE_OVERFLOW);
        }
        has_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_below_what_was_made_is_seen() {
        let root = std::env::temp_dir().join(format!("millpond-watch-{}", std::process::id()));
        fs::create_dir_all(root.join("a")).unwrap();
        let mut watch = Watch::new(root.clone());
        let (long, short) = (Duration::from_secs(10), Duration::from_millis(10));
        assert!(watch.told.is_some() && !watch.wait(short), "nothing has changed");
        for path in ["a/b", "a/b/c", "a/b/c/d"] {
            fs::create_dir(root.join(path)).unwrap();
            let start = Instant::now();
            assert!(watch.wait(long) && start.elapsed() < long / 2, "{path} was made");
            assert!(!watch.wait(short), "and no more");
        }
        fs::remove_dir(root.join("a/b/c/d")).unwrap();
        assert!(watch.wait(long), "one was removed");
        assert!(!watch.wait(short));
        watch.looked -= AT_LEAST;
        assert!(watch.wait(short) && !watch.wait(short), "after a while in any case");
        watch.told = None;
        assert!(watch.wait(short), "and always, where nothing is told");
        fs::remove_dir_all(&root).unwrap();
    }
}
