//! A port as an application has it: attached, or about to be again.
//!
//! The switch's end shows at the socket. It is looked at where the application would sleep, and now
//! and then by one that polls: each call that found nothing counts.
//!
//! Invariant: the two file descriptors that applications wait for stay the same, whatever happens
//! to the switch; no call blocks but [`Port::attach`] and [`Port::wait`].

use crate::attached::Attached;
use crate::channel;
use crate::layout::Hello;
use crate::{Error, Frame, Unsent};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long [`Port::attach`] waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is tried to attach again.
const RETRY: Duration = Duration::from_millis(50);
/// Calls that found nothing, after which the switch is looked for.
const LOOK_EVERY: u32 = 1024;

#[derive(Debug)]
enum State {
    Attached(Box<Attached>),
    /// Waiting for the switch's hello, since then.
    Asking(OwnedFd, Instant),
    Away,
}

#[derive(Debug)]
pub struct Port {
    path: PathBuf,
    state: State,
    /// The descriptors that applications wait for: of each kind an epoll of the switch's pipe, the
    /// socket, and the timer of trying again.
    readable: OwnedFd,
    writable: OwnedFd,
    timer: OwnedFd,
    tried: Instant,
    idle_calls: u32,
    attachments: u64,
}

fn system(what: &'static str) -> impl Fn(Errno) -> Error {
    move |e| Error::System { what, reason: e.to_string() }
}

impl Port {
    /// Attaches to the port whose socket is at `path`.
    ///
    /// # Errors
    /// The socket cannot be reached, the switch does not answer in time, it has another application
    /// at the port, denies this user or has another version, or the kernel refuses a timer, an
    /// epoll or the mapping.
    pub fn attach(path: impl AsRef<Path>) -> Result<Port, Error> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(system("a timer"))?;
        let waits = || {
            let fd = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("an epoll"))?;
            add(&fd, timer.as_fd()).map_err(system("an epoll of a timer"))?;
            Ok(fd)
        };
        let (readable, writable) = (waits()?, waits()?);
        let (path, tried) = (path.as_ref().to_path_buf(), Instant::now());
        let mut port = Port {
            path,
            state: State::Away,
            readable,
            writable,
            timer,
            tried,
            idle_calls: 0,
            attachments: 0,
        };
        let socket = port.call()?;
        let ready = &mut [PollFd::new(&socket, PollFlags::IN)];
        let patience = timespec(PATIENCE);
        if poll(ready, Some(&patience)).map_err(system("waiting for the switch"))? == 0 {
            return Err(Error::Protocol("the switch does not answer".into()));
        }
        port.meet(socket)?;
        Ok(port)
    }

    /// Sends a frame in a flow of [`Port::flows`]. Frames of a flow arrive in order.
    ///
    /// # Errors
    /// [`Unsent::WouldBlock`] if the flow's ring or its share of the buffers is full, or no switch
    /// is there. [`Unsent::TooLong`] if the frame is longer than a buffer, [`Unsent::NoSuchFlow`]
    /// if the port has fewer flows.
    #[inline]
    pub fn try_send(&mut self, flow: u32, frame: &[u8]) -> Result<(), Unsent> {
        let attached = self.attached().ok_or(Unsent::WouldBlock);
        let sent = attached.and_then(|attached| attached.send(flow, frame));
        if sent == Err(Unsent::WouldBlock) {
            self.idle();
        }
        sent
    }
    /// Sends frames of one flow, as many as the flow takes now. Returns their number. The switch
    /// sees them together, which costs less than one by one.
    ///
    /// # Errors
    /// The reason why the first frame was not sent, as of [`Port::try_send`].
    pub fn try_send_all(&mut self, flow: u32, frames: &[&[u8]]) -> Result<usize, Unsent> {
        let attached = self.attached().ok_or(Unsent::WouldBlock);
        let sent = attached.and_then(|attached| attached.send_all(flow, frames));
        if sent == Err(Unsent::WouldBlock) {
            self.idle();
        }
        sent
    }
    /// Receives as many frames as there are, and as there is room for; how many.
    #[inline]
    pub fn recv(&mut self, frames: &mut [Frame]) -> usize {
        let count = self.attached().map_or(0, |attached| attached.receive(frames));
        if count == 0 {
            self.idle();
        }
        count
    }
    #[inline]
    fn attached(&mut self) -> Option<&mut Attached> {
        if let State::Attached(attached) = &mut self.state { Some(attached) } else { None }
    }
    /// Whether the switch has paused a flow: its receiver is slow. It may still have credits.
    pub fn paused(&self, flow: u32) -> bool {
        matches!(&self.state, State::Attached(attached) if attached.is_paused(flow))
    }
    /// How many frames of a flow would be taken now.
    pub fn credits(&mut self, flow: u32) -> u32 {
        self.attached().map_or(0, |attached| attached.credits(flow))
    }
    /// Frames that were sent and have not left the switch.
    pub fn in_flight(&mut self) -> usize {
        self.attached().map_or(0, |attached| attached.in_flight())
    }
    /// How many flows there are: 0 to one less.
    pub fn flows(&self) -> u32 {
        self.sizes(|sizes| sizes.flows)
    }
    pub fn frame_max(&self) -> usize {
        self.sizes(|sizes| sizes.buffer_bytes.min(u16::MAX.into())) as usize
    }
    fn sizes(&self, of: impl Fn(&crate::layout::Sizes) -> u32) -> u32 {
        match &self.state {
            State::Attached(attached) => of(&attached.sizes),
            _ => 0,
        }
    }
    /// Whether a switch is there, as far as is known.
    pub fn is_attached(&self) -> bool {
        matches!(self.state, State::Attached(_))
    }
    /// How often it was attached: what was under way when this number changes is lost.
    pub fn attachments(&self) -> u64 {
        self.attachments
    }

    /// Readable when there may be frames, after [`Port::arm_readable`].
    pub fn readable_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
    /// Readable when frames may be sent that could not be, after [`Port::arm_writable`].
    pub fn writable_fd(&self) -> BorrowedFd<'_> {
        self.writable.as_fd()
    }
    /// Requests a wake-up. `false`: there are frames already, and no wake-up follows.
    pub fn arm_readable(&mut self) -> bool {
        self.look();
        self.attached().is_none_or(|attached| attached.arm_readable())
    }
    /// Asks to be woken when buffers come back. `false`: some have just.
    pub fn arm_writable(&mut self) -> bool {
        self.look();
        self.attached().is_none_or(|attached| attached.arm_writable())
    }
    /// Sleeps until there are frames, or buffers have come back, or the time is over.
    pub fn wait(&mut self, timeout: Duration) {
        if !self.arm_readable() | !self.arm_writable() {
            return;
        }
        let fds = &mut [
            PollFd::new(&self.readable, PollFlags::IN),
            PollFd::new(&self.writable, PollFlags::IN),
        ];
        let _ = poll(fds, Some(&timespec(timeout)));
    }

    #[inline]
    fn idle(&mut self) {
        self.idle_calls += 1;
        if self.idle_calls >= LOOK_EVERY || !self.is_attached() {
            self.look();
        }
    }
    /// Looks whether the switch is there, and attaches again if it has come back.
    #[cold]
    fn look(&mut self) {
        self.idle_calls = 0;
        if let State::Attached(attached) = &self.state {
            let fds = &mut [PollFd::new(&attached.socket, PollFlags::IN)];
            // The switch sends nothing more: the socket is readable when it ends.
            if matches!(poll(fds, Some(&timespec(Duration::ZERO))), Ok(0) | Err(_)) {
                return;
            }
            self.state = State::Away;
            self.set_timer(RETRY);
        } else if self.tried.elapsed() < RETRY {
            return;
        }
        self.tried = Instant::now();
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        match std::mem::replace(&mut self.state, State::Away) {
            State::Asking(socket, since) => {
                let fds = &mut [PollFd::new(&socket, PollFlags::IN)];
                match poll(fds, Some(&timespec(Duration::ZERO))) {
                    Ok(1..) => drop(self.meet(socket)),
                    _ if since.elapsed() < PATIENCE => self.state = State::Asking(socket, since),
                    _ => {}
                }
            }
            _ => {
                if let Ok(socket) = self.call() {
                    self.state = State::Asking(socket, Instant::now());
                }
            }
        }
    }

    fn call(&self) -> Result<OwnedFd, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let socket = socket.map_err(system("a socket"))?;
        let absent = |e: Errno| Error::Absent {
            path: self.path.display().to_string(),
            reason: e.to_string(),
        };
        let address = SocketAddrUnix::new(&self.path).map_err(absent)?;
        connect(&socket, &address).map_err(absent)?;
        Ok(socket)
    }

    fn meet(&mut self, socket: OwnedFd) -> Result<(), Error> {
        let (sizes, parts) = match channel::receive(&socket).map_err(Error::Protocol)? {
            Some((Hello::Welcome(sizes), Some(parts))) => (sizes, parts),
            Some((Hello::Welcome(_), None)) => {
                return Err(Error::Protocol("a welcome without memory".into()));
            }
            Some((Hello::Busy, _)) => return Err(Error::Busy),
            Some((Hello::Denied, _)) => return Err(Error::Denied),
            None => return Err(Error::Protocol("the switch has ended the connection".into())),
        };
        let attached = Attached::new(socket, sizes, parts)?;
        let waits = [(&self.readable, attached.readable()), (&self.writable, attached.writable())];
        for (wait, sleeper) in waits {
            add(wait, sleeper.fd())
                .and_then(|()| add(wait, attached.socket.as_fd()))
                .map_err(system("an epoll"))?;
        }
        self.state = State::Attached(Box::new(attached));
        self.attachments += 1;
        self.set_timer(Duration::ZERO);
        Ok(())
    }

    /// Wakes whoever waits for the port each `period`; zero: no more.
    fn set_timer(&self, period: Duration) {
        let period = timespec(period);
        let times = Itimerspec { it_interval: period, it_value: period };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times);
    }
}

fn add(wait: &OwnedFd, fd: BorrowedFd<'_>) -> Result<(), Errno> {
    epoll::add(wait, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}
