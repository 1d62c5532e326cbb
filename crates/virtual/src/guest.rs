//! A guest: one Linux kernel as a process, with its clock and its two network interfaces.
//!
//! Its command line names no path, since it feeds the kernel's random numbers: the guest runs in a
//! folder of its own, in which sockets and image have the same names for every guest.
//!
//! Invariant: a guest either waits, or runs and is waited for; [`Guest::next`] returns which, and
//! gives up on a guest that does neither within [`PATIENCE`] of the wall clock.

use crate::device::{Device, PATIENCE, Received, Settings};
use crate::error::Error;
use crate::schedule::{Message, Schedule};
use millpond_worlds::World;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// The interface of the scenario's link.
pub const LINK: usize = 0;
/// The interface of orders and reports.
pub const CONTROL: usize = 1;

/// Lines of a console that an error shows.
const LINES: usize = 15;
const CONSOLE: &str = "console";

/// The parts and settings of a guest.
pub struct Boot<'a> {
    pub host: u32,
    pub kernel: &'a Path,
    /// The library that seeds its random numbers.
    pub seeded: &'a Path,
    pub image: &'a Path,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Its memory in MB; it costs what is touched.
    pub memory: u64,
    pub devices: [Settings; 2],
}

/// The reason why a running guest stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has kicked an interface's ring, and stands still until that is answered.
    Kick(usize, usize),
    Waits,
}

pub struct Guest {
    host: u32,
    folder: PathBuf,
    process: Child,
    pub schedule: Schedule,
    pub devices: [Device; 2],
}

impl Guest {
    /// Starts a kernel in a folder of its own, and lets it run until it waits for the first time.
    pub fn boot(world: &World, boot: &Boot<'_>) -> Result<Guest, Error> {
        let folder = world.folder().join(format!("host{}", boot.host));
        let failed = |e| Error::system(folder.display().to_string(), e);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        std::os::unix::fs::symlink(boot.image, folder.join("image")).map_err(failed)?;
        let time = UnixListener::bind(folder.join("time")).map_err(failed)?;
        let device = |name: &str, at: usize| Device::new(&folder.join(name), boot.devices[at]);
        let devices = [device("link", LINK)?, device("control", CONTROL)?];
        let console = File::create(folder.join(CONSOLE)).map_err(failed)?;
        let other = console.try_clone().map_err(failed)?;
        // Without randomised addresses, which would be an input.
        let mut process = world.command("setarch");
        process.arg("-R").arg(boot.kernel);
        process.args([
            &format!("mem={}M", boot.memory),
            "time-travel=ext:1:time",
            "virtio_uml.device=link:1",
            "virtio_uml.device=control:1",
            "initrd=image",
            "rdinit=/init",
            "con=null",
            "con0=null,fd:1",
            "console=tty0",
            "quiet",
            "random.trust_cpu=on",
            "panic=-1",
        ]);
        process
            .current_dir(&folder)
            .env("MILLPOND_SEED", boot.seed.to_string())
            .env("LD_PRELOAD", boot.seeded)
            .env("HOME", &folder)
            .env("TMPDIR", "/dev/shm")
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(other)
            .process_group(0);
        let started = process.spawn();
        let mut process = started.map_err(|e| Error::Kernel {
            path: boot.kernel.into(),
            reason: format!("it cannot be started by setarch: {e}"),
        })?;
        let socket = match ready(&[&time]) {
            Ok(_) => time.accept().map(|(socket, _)| socket).map_err(failed),
            Err(error) => Err(error),
        };
        let schedule = socket.and_then(|socket| {
            let timeout = socket.set_read_timeout(Some(PATIENCE));
            timeout.map_err(|e| Error::system("a guest's socket", e))?;
            Schedule::new(socket)
        });
        match schedule {
            Ok(schedule) => Ok(Guest { host: boot.host, folder, process, schedule, devices }),
            Err(error) => {
                let ended = end(&mut process);
                let why = format!("{} does not start: {error}{ended}", boot.kernel.display());
                Err(Error::Guest { host: boot.host, reason: why, console: last_lines(&folder) })
            }
        }
    }

    pub fn next(&mut self) -> Result<Stop, Error> {
        loop {
            // Interfaces first: a kick is answered before the guest can wait.
            let unread = self.devices.iter().position(Device::has_unread);
            let at = match unread {
                Some(at) => at,
                None => {
                    let [link, control] = &self.devices;
                    let all: [&dyn AsFd; 3] = [&link.fd(), &control.fd(), &self.schedule.fd()];
                    ready(&all).map_err(|e| self.fails(e.to_string()))?
                }
            };
            let received = match self.devices.get_mut(at) {
                Some(device) => match device.receive() {
                    Ok(Received::Kick(ring)) => return Ok(Stop::Kick(at, ring)),
                    Ok(received) => received,
                    Err(error) => return Err(self.fails(error.to_string())),
                },
                None => match self.schedule.receive() {
                    Ok(Message::Waits) => return Ok(Stop::Waits),
                    Ok(Message::Gone) => Received::Gone,
                    Ok(Message::Other) => Received::Nothing,
                    Err(error) => return Err(self.fails(error.to_string())),
                },
            };
            if received == Received::Gone {
                let ended = end(&mut self.process);
                return Err(self.fails(format!("its kernel has ended{ended}")));
            }
        }
    }

    /// An error of this guest, with the last lines of its console.
    pub fn fails(&self, reason: impl Into<String>) -> Error {
        Error::Guest { host: self.host, reason: reason.into(), console: self.console() }
    }

    /// The last lines of its console.
    pub fn console(&self) -> String {
        last_lines(&self.folder)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// The first of some guests that [stops](Guest::next).
pub fn first<'a>(guests: impl Iterator<Item = &'a Guest> + Clone) -> Result<usize, Error> {
    if let Some(at) = guests.clone().position(|guest| guest.devices.iter().any(Device::has_unread))
    {
        return Ok(at);
    }
    let fds: Vec<_> = guests
        .flat_map(|it| [it.devices[LINK].fd(), it.devices[CONTROL].fd(), it.schedule.fd()])
        .collect();
    let all: Vec<&dyn AsFd> = fds.iter().map(|fd| fd as &dyn AsFd).collect();
    Ok(ready(&all)? / 3)
}

/// Ends a guest's processes. Returns how its kernel had ended, if it had.
fn end(process: &mut Child) -> String {
    let ended = process.try_wait().ok().flatten().map_or(String::new(), |it| format!(": {it}"));
    // A kernel has a process for each address space of its programs.
    if let Some(group) = Pid::from_raw(process.id() as i32) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = process.wait();
    ended
}

/// The first of these that can be read.
fn ready(all: &[&dyn AsFd]) -> Result<usize, Error> {
    let mut fds: Vec<_> =
        all.iter().map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)).collect();
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    loop {
        match poll(&mut fds, Some(&patience)) {
            Ok(0) => {
                let reason = format!(
                    "virtual time stands still: within {} s the kernel neither waited nor sent; \
                     does a program compute for so long, or wait for itself without a system call?",
                    PATIENCE.as_secs()
                );
                return Err(Error::Protocol(reason));
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(Error::system("waiting for a guest", error)),
        }
        if let Some(at) = fds.iter().position(|fd| !fd.revents().is_empty()) {
            return Ok(at);
        }
    }
}

/// The last lines of a console.
fn last_lines(folder: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(folder.join(CONSOLE))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(8192)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
