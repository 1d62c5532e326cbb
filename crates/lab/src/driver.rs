//! The thread that moves packets: it reads hosts' TAPs, advances the fabric to the clock, and hands
//! over what has arrived.
//!
//! A round advances the fabric, delivers, asks which TAPs have frames, and reads a burst from each.
//! With nothing to do it sleeps until a frame comes or the next departure is near, and spins for
//! the rest, since a wake-up is later than a link of 100 Mb/s is long.
//!
//! Invariant: a packet is delivered no earlier than its schedule has it; how much later is counted.

use crate::Error;
use crate::host::Host;
use crate::lateness::Lateness;
use crate::record::Recorder;
use crate::state::{Counted, State};
use crate::urgent::{Role, prepare};
use millpond_core::Time;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Instant;

/// Frames that a host may hand over before others, and departures, have their turn.
const BURST: usize = 8;
/// The least time that is worth a sleep.
const NAP: Time = Time::from_us(80);
/// A sleep ends this long before the next departure.
const EARLY: Time = Time::from_us(60);
/// The longest sleep: so long may a request to stop wait.
const PATIENCE: Time = Time::from_ms(20);

/// State that the thread shares with its lab.
#[derive(Default)]
pub struct Shared {
    pub stop: AtomicBool,
    /// Packet-hops so far.
    pub hops: AtomicU64,
}

pub enum Order {
    /// Forget what it has counted of lateness.
    Measure,
    Record(Box<Recorder>),
}

struct Driver {
    state: State,
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    epoll: OwnedFd,
    began: Instant,
    late: Lateness,
    round: Lateness,
    /// Hosts that got something in this round.
    touched: Vec<u32>,
}

/// Starts the thread, whose clock is zero at `began`.
pub fn start(
    began: Instant,
    state: State,
    shared: Arc<Shared>,
    orders: Receiver<Order>,
) -> Result<JoinHandle<Counted>, Error> {
    let failed = |e: rustix::io::Errno| Error::system("watching the hosts' ports", e);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
    for (host, it) in state.hosts.iter().enumerate() {
        if let Some(fd) = it.slot.port.as_ref().and_then(|port| port.fd()) {
            let data = epoll::EventData::new_u64(host as u64);
            epoll::add(&epoll, fd, data, epoll::EventFlags::IN).map_err(failed)?;
        }
    }
    let driver = Driver {
        state,
        shared,
        orders,
        epoll,
        began,
        late: Lateness::default(),
        round: Lateness::default(),
        touched: Vec::new(),
    };
    let thread = std::thread::Builder::new().name("lab-fabric".into());
    thread.spawn(move || driver.run()).map_err(|e| Error::system("starting a thread", e))
}

fn since(began: Instant) -> Time {
    Time::from_ns(began.elapsed().as_nanos() as u64)
}

impl Driver {
    fn now(&self) -> Time {
        since(self.began)
    }

    fn run(mut self) -> Counted {
        prepare(Role::Fabric);
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Vec::with_capacity(64);
        let (mut last, mut aged, mut busy) = (Time::ZERO, Time::ZERO, false);
        while !self.shared.stop.load(Relaxed) {
            if let Ok(order) = self.orders.try_recv() {
                self.follow(order);
            }
            let now = self.now();
            if busy {
                self.round.add(now.saturating_sub(last));
            }
            last = now;
            let delivered = self.deliver(now);
            let read = self.read(&mut events);
            busy = delivered + read > 0;
            if now.saturating_sub(aged) >= Time::from_ms(1) {
                aged = now;
                self.state.hosts.iter_mut().for_each(|host| host.age(now));
                self.shared.hops.store(self.state.hops(), Relaxed);
                self.state.hand_over(now);
            }
            if !busy {
                self.sleep();
            }
        }
        // Records end where the fabric does.
        let now = self.now();
        self.deliver(now);
        self.state.hand_over(now);
        self.counted()
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Measure => {
                (self.late, self.round) = (Lateness::default(), Lateness::default());
            }
            Order::Record(recorder) => {
                let State { recorders, fabric, hosts, .. } = &mut self.state;
                recorders.add(*recorder, fabric, hosts);
            }
        }
    }

    /// Makes what is due by `seen`, and hands it over; how many packets.
    fn deliver(&mut self, seen: Time) -> usize {
        self.state.advance(seen);
        let mut count = 0;
        while let Some(left) = self.state.leave() {
            let (at, host) = (left.at, left.host);
            let now = self.now();
            self.late.add(now.saturating_sub(at));
            count += 1;
            self.state.hosts[host as usize].arrive(now, left, &mut self.state.buffers);
            if self.touched.last() != Some(&host) {
                self.touched.push(host);
            }
        }
        let now = self.now();
        let State { fabric, hosts, buffers, .. } = &mut self.state;
        for host in self.touched.drain(..) {
            hosts[host as usize].flush(now, seen, fabric, buffers);
        }
        for host in hosts {
            if host.deadline().is_some_and(|at| at <= now) {
                // First the frames that its kernel has sent, so that the shim forces none instead.
                let began = self.began;
                host.read(|| since(began), BURST, fabric, buffers);
                host.flush(now, seen, fabric, buffers);
            }
        }
        count
    }

    /// Reads a burst of each host that has something; how many frames.
    fn read(&mut self, events: &mut Vec<epoll::Event>) -> usize {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        events.clear();
        if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&none)).is_err() {
            return 0;
        }
        let mut count = 0;
        for event in events.iter() {
            let (began, state) = (self.began, &mut self.state);
            let State { fabric, hosts, buffers, .. } = state;
            let host = &mut hosts[event.data.u64() as usize];
            count += host.read(|| since(began), BURST, fabric, buffers);
            self.deliver(self.now());
        }
        count
    }

    /// Sleeps until a frame comes or something is nearly due.
    fn sleep(&self) {
        let hosts = self.state.hosts.iter().filter_map(Host::deadline);
        let due = self.state.deadline().into_iter().chain(hosts).min();
        let left = due.map_or(PATIENCE, |due| due.saturating_sub(self.now())).min(PATIENCE);
        if left < NAP {
            return std::hint::spin_loop();
        }
        let ns = left.saturating_sub(EARLY).as_ps() / 1000;
        let time = Timespec { tv_sec: 0, tv_nsec: ns as _ };
        let mut fds = [PollFd::from_borrowed_fd(self.epoll.as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, Some(&time));
    }

    fn counted(&self) -> Counted {
        let (late, round) = (self.late.quantiles(), self.round.quantiles());
        // The lab adds what namespaces have counted.
        Counted { late, round, ..self.state.counted() }
    }
}
