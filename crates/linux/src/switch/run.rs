//! The poll loop: one thread that moves all frames.
//!
//! A round asks the kernel which ports have frames, reads the clock once, and gives each of those
//! ports a burst. When there has been nothing to do for `spin` it sleeps in that question until
//! there is. Once a second it looks after what is slow: ports whose interface has gone are tried
//! again, MTUs are read anew, addresses age.
//!
//! Invariant: a request of another thread is answered within a round, or within a second if its
//! wake-up is lost; nothing but the kernel's own work for a frame takes long.

use super::config::{Config, PortParams};
use super::control::Request;
use super::error::Error;
use super::journal::Rises;
use super::losses::Losses;
use super::node::{Node, Round};
use super::order::Order;
use super::shaping::Shaper;
use super::state::State;
use super::supervise::PANICKED;
use super::table::Place;
use super::uplink::Uplink;
use crate::dataplane::buffers::Buffers;
use crate::dataplane::fault;
use crate::dataplane::mirror::Mirror;
use crate::dataplane::port::{Device, Port, Presence};
use millpond_core::Time;
use millpond_worlds::namespace::{self, Identity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use workers::Team;

mod change;
mod fit;
mod loops;
mod reading;
#[cfg(test)]
mod tests;
mod workers;

/// How often what is slow is looked after.
const HOUSEKEEPING: Time = Time::from_s(1);

/// How long it sleeps at most while it takes nothing from anywhere.
const STOPPED: Duration = Duration::from_micros(50);
/// Frames for everybody that a round writes, about: a thousand ports that come up make millions,
/// and requests wait for a round.
const FLOODED_MAX: usize = 4096;
/// Parts of rounds that may panic in a second in which no round is whole.
const FAILED_MAX: u64 = 8;
/// The part of a round that serves paths.
const PATHS: &str = "paths";
/// Seconds without a free buffer after a panic: the panicking work may have kept them.
const STARVED_MAX: u32 = 5;
/// How long a switch that starts waits for what a former process still has.
const GRACE: Duration = Duration::from_secs(2);

/// The state of a port that its slot does not have.
#[derive(Default)]
struct PortStatus {
    /// The reason why it is not there.
    waiting: Option<Error>,
    /// Its namespace, by identity.
    home: Option<Identity>,
    /// Whether the switch chooses its MTU.
    fits: bool,
}

pub struct Switch {
    state: State,
    config: Config,
    node: Node,
    buffers: Buffers,
    uplink: Uplink,
    shaper: Shaper,
    /// By port, beside its slot.
    ports: Vec<PortStatus>,
    losses: Losses,
    rises: Rises,
    /// Whether the interface of an af-packet port had its carrier, by the port's name.
    carriers: BTreeMap<String, bool>,
    requests: Receiver<Request>,
    wake: Arc<OwnedFd>,
    team: Team,
    start: Instant,
    /// The port that the next round begins with, if it has something.
    first: usize,
    bursts: u64,
    sleeps: u64,
    /// Parts of rounds that have panicked since the last housekeeping.
    failed: u64,
    /// Rounds before the last look at failures.
    judged: u64,
    /// For how many times in a row housekeeping has found all buffers in use.
    starved: u32,
    /// Why the state folder has no copy of the configuration.
    pub(super) unsaved: Option<String>,
}

/// The namespace that a port is to be in.
fn home(params: &PortParams) -> Option<Identity> {
    params.namespace.as_deref().and_then(namespace::identity)
}

/// The ports and paths that have something to read.
#[derive(Default)]
struct Ready {
    ports: Vec<usize>,
    paths: Vec<usize>,
    /// All ports that are memory, and those of them at whose descriptors something has happened.
    attached: Vec<usize>,
    attend: Vec<usize>,
}

impl Switch {
    /// Opens the ports of `config`; those that cannot be opened wait.
    pub fn new(
        state: State,
        config: Config,
        requests: Receiver<Request>,
        wake: Arc<OwnedFd>,
    ) -> Switch {
        let mut switch = Switch::of_team(state, &config, requests, wake, Team::alone());
        switch.change(config);
        switch.wait_for_predecessor();
        switch
    }

    /// A worker without ports and paths yet.
    fn of_team(
        state: State,
        config: &Config,
        requests: Receiver<Request>,
        wake: Arc<OwnedFd>,
        team: Team,
    ) -> Switch {
        let (mut node, buffers) = (Node::default(), Buffers::new(config.switch.buffers as usize));
        node.loops.own = team.prober;
        let empty = Config { switch: config.switch.clone(), ..Config::default() };
        let mut uplink = Uplink::new(&empty);
        if !team.leads() {
            uplink.follow();
        }
        Switch {
            state,
            config: empty,
            node,
            buffers,
            uplink,
            shaper: Shaper::default(),
            ports: Vec::new(),
            losses: Losses::default(),
            rises: Rises::default(),
            carriers: BTreeMap::new(),
            requests,
            wake,
            team,
            start: Instant::now(),
            first: 0,
            bursts: 0,
            sleeps: 0,
            failed: 0,
            judged: 0,
            starved: 0,
            unsaved: None,
        }
    }

    /// A process that was killed has given up its lock, and may not have given up its interfaces
    /// yet.
    fn wait_for_predecessor(&mut self) {
        let began = Instant::now();
        loop {
            let is_busy = |status: &PortStatus| status.waiting.as_ref().is_some_and(Error::is_busy);
            let busy: Vec<usize> =
                (0..self.ports.len()).filter(|port| is_busy(&self.ports[*port])).collect();
            if busy.is_empty() && !self.uplink.is_busy() || began.elapsed() > GRACE {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
            busy.into_iter().for_each(|port| self.open(port));
            self.uplink.open();
        }
    }

    fn now(&self) -> Time {
        Time::from_ns(self.start.elapsed().as_nanos() as u64)
    }

    /// Moves frames until a request stops it.
    ///
    /// # Errors
    /// [`Error::Kernel`] if waiting for frames fails.
    pub fn run(&mut self) -> Result<(), Error> {
        // Else the kernel may let a sleep of microseconds last 50 more.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut ready = Ready::default();
        let mut now = self.now();
        let (mut looked, mut busy, mut worked) = (now, true, now);
        loop {
            // Sleeping and being woken costs more than looking again, for a while; who else wants
            // the core gets it meanwhile.
            let spins = now.saturating_sub(worked) < self.config.switch.spin;
            if !busy && spins {
                std::thread::yield_now();
            }
            let is_stopped = self.node.is_stopped();
            let sleeps = !busy && !spins && (self.node.may_sleep() || is_stopped);
            let timeout = if sleeps { self.patience(now) } else { Duration::ZERO };
            // Applications that are not served now may have rung already.
            let timeout = if is_stopped { timeout.min(STOPPED) } else { timeout };
            let asked = self.wait(timeout, &mut ready)?;
            if sleeps {
                self.node.awake();
            }
            if asked && !self.answer() {
                return Ok(());
            }
            now = self.now();
            busy = self.round(now, &ready);
            self.part("loops", |switch| {
                switch.look_for_loops(now);
                switch.report_to_team();
                false
            });
            if busy || !ready.paths.is_empty() {
                worked = now;
            }
            if now.saturating_sub(looked) >= HOUSEKEEPING {
                looked = now;
                self.judge_failures();
                self.part("housekeeping", |switch| {
                    switch.housekeeping(now);
                    false
                });
            }
        }
    }

    /// Gives each that is ready its burst. Whether there may be more.
    fn round(&mut self, now: Time, ready: &Ready) -> bool {
        self.bursts += 1;
        let busy = self.part(PATHS, |switch| switch.serve_paths(now, ready));
        busy | self.serve_ports(now, ready)
            | self.part("applications", |switch| switch.serve_attached(now, ready))
    }

    /// A part of a round. Its panic costs that part; a part that fails again and again ends the
    /// process, which begins anew with sound state.
    fn part(&mut self, work: &str, part: impl FnOnce(&mut Switch) -> bool) -> bool {
        fault::caught(|| part(self)).unwrap_or_else(|panic| {
            panic.keep(work, &[]);
            self.failed += 1;
            if work == PATHS {
                let config = self.config.clone();
                self.uplink.merge_anew(&config, &mut self.buffers);
            }
            true
        })
    }

    /// Reads paths, and does the work for peers that is due.
    fn serve_paths(&mut self, now: Time, ready: &Ready) -> bool {
        let mut is_drained = true;
        self.node.drain(now);
        self.uplink.drain_paths(now);
        for &path in &ready.paths {
            is_drained &= !self.uplink.receive(now, path, &mut self.buffers);
        }
        if !ready.paths.is_empty() || self.uplink.deadline().is_some_and(|due| due <= now) {
            self.uplink.flush(now, is_drained, &mut self.buffers, &mut self.node);
            self.uplink.answer(now, &mut self.buffers, &mut self.node);
        }
        self.uplink.evict(now);
        // Before anything else is sent: every frame that comes until a pause arrives needs memory.
        self.uplink.speak(now, &mut self.node);
        // Paths are judged after what has come was looked at.
        if self.uplink.tick_due().is_some_and(|due| due <= now) {
            self.uplink.tick(now, self.widest());
        }
        !is_drained | self.uplink.release(now, &mut self.buffers)
    }

    /// Reads ports, in turn, until frames for everybody are too many.
    fn serve_ports(&mut self, now: Time, ready: &Ready) -> bool {
        let mut busy = false;
        self.node.take_flooded();
        let (mut flooded, first) = (0, std::mem::take(&mut self.first));
        let first = ready.ports.iter().position(|port| *port >= first).unwrap_or(0);
        for &port in ready.ports[first..].iter().chain(&ready.ports[..first]) {
            flooded += self.node.take_flooded();
            if flooded > FLOODED_MAX {
                self.first = port;
                return true;
            }
            // A request may have left fewer.
            if port < self.node.slots.len() {
                busy |= self.part("ports", |switch| {
                    let Switch { node, buffers, uplink, .. } = switch;
                    node.receive(&mut Round::new(now, buffers, uplink), port, usize::MAX) > 0
                });
            }
        }
        busy
    }

    /// Serves the ports that are memory, and sends the frames that the round has for paths.
    fn serve_attached(&mut self, now: Time, ready: &Ready) -> bool {
        let mut busy = false;
        let Switch { node, buffers, uplink, .. } = self;
        let round = &mut Round::new(now, buffers, uplink);
        let count = node.slots.len();
        for &port in ready.attached.iter().filter(|port| **port < count) {
            busy |= node.serve_attached(round, port, ready.attend.contains(&port));
        }
        node.serve_shims(round);
        self.uplink.depart(now);
        self.node.flush_attached(&ready.attached);
        self.uplink.speak(now, &mut self.node);
        self.shape();
        busy
    }

    /// Makes senders wait whose flows should pause, or lets them go on: by buckets before taps, and
    /// by gates.
    fn shape(&mut self) {
        if self.config.ports.iter().all(|port| port.shape.is_none() && !port.gate) {
            return;
        }
        let mut slowed = std::collections::BTreeSet::new();
        self.node.slowed(&mut slowed);
        self.uplink.slowed(&mut slowed);
        let is_stopped = self.node.is_stopped();
        let Switch { shaper, config, node, .. } = self;
        shaper.set(&config.ports, |index| node.slots[index].mtu, &slowed);
        for (index, slot) in node.slots.iter_mut().enumerate() {
            if let Some(port) = &mut slot.port {
                port.close_gate(is_stopped || slowed.contains(&(index as u16)));
            }
        }
    }

    /// How long there is nothing to do without a frame. `now` is a round old, so a wait may end a
    /// little late, and never early.
    fn patience(&mut self, now: Time) -> Duration {
        let uplink = &self.uplink;
        let [held, paths, probes] = [uplink.deadline(), uplink.paths_due(), uplink.tick_due()];
        let loops = self.node.probes_due().filter(|_| self.team.leads());
        let dues = [held, paths, probes, uplink.speaks_at(), self.node.deadline(), loops];
        let due = dues.into_iter().flatten().min();
        let wait = due.map_or(HOUSEKEEPING, |due| due.saturating_sub(now).min(HOUSEKEEPING));
        wait.to_duration()
    }

    /// Waits for frames or requests; which ports have some, and whether there are requests.
    fn wait(&mut self, timeout: Duration, ready: &mut Ready) -> Result<bool, Error> {
        ready.ports.clear();
        ready.paths.clear();
        ready.attached.clear();
        ready.attend.clear();
        let mut which = Vec::with_capacity(self.node.slots.len());
        let mut fds = vec![PollFd::new(&*self.wake, PollFlags::IN)];
        // The poll does not wait for a descriptor that is not to be read.
        let is_stopped = self.node.is_stopped();
        for (index, slot) in self.node.slots.iter().enumerate() {
            let is_memory = slot.port.as_ref().is_some_and(Port::is_memory);
            if is_memory {
                ready.attached.push(index);
            }
            let is_waited_for = |port: &&Port| is_memory || !(is_stopped || port.is_gate_closed());
            match slot.port.as_ref().filter(is_waited_for).map(|port| port.fd()) {
                Some(Some(fd)) => {
                    which.push(index);
                    fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
                }
                Some(None) => ready.ports.push(index),
                None => {}
            }
        }
        let paths_from = fds.len();
        for (path, socket) in self.uplink.sockets().filter(|_| !is_stopped) {
            which.push(path);
            fds.push(PollFd::from_borrowed_fd(socket.fd(), PollFlags::IN));
        }
        self.sleeps += u64::from(!timeout.is_zero());
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(Error::kernel("waiting for frames", e)),
        }
        // An error of an interface shows when it is read.
        for (at, (which, fd)) in which.iter().zip(&fds[1..]).enumerate() {
            if !fd.revents().is_empty() {
                let to = match at + 1 < paths_from {
                    true if ready.attached.binary_search(which).is_ok() => &mut ready.attend,
                    true => &mut ready.ports,
                    false => &mut ready.paths,
                };
                to.push(*which);
            }
        }
        Ok(!fds[0].revents().is_empty())
    }

    /// Counts what the kernel has lost since this was done last.
    fn count_losses(&mut self) {
        let ports = self.node.slots.iter_mut().zip(&self.ports).zip(&self.config.ports);
        // The kernel counts a tap's losses for all its queues together.
        let leads = self.team.leads();
        let ports =
            ports.filter(|((slot, _), _)| leads || !matches!(slot.port, Some(Port::Tap(_))));
        self.losses.count(
            ports.map(|((slot, status), params)| (slot, status.home, params.namespace.as_deref())),
        );
        self.uplink.count_losses();
    }

    /// Logs the kernel's losses, now and then.
    fn report_losses(&mut self, now: Time) {
        let ports =
            self.node.slots.iter().map(|slot| (format!("port {}", slot.name), &slot.counters));
        for (subject, counters) in ports.chain(self.uplink.path_counters()) {
            if let Some(lost) = self.rises.of(now, &subject, counters.lost_by_kernel()) {
                log::warn!("{subject}: {lost} frames lost before the switch could read them");
            }
        }
    }

    /// Logs interfaces that have lost their carrier, and those that have it again.
    fn report_carriers(&mut self) {
        let slots = self.node.slots.iter();
        for port in slots.filter(|slot| matches!(slot.port, Some(Port::AfPacket(_)))) {
            let device = port.port.as_ref().and_then(Port::device);
            let Some(Ok(has)) = device.map(Device::has_carrier) else { continue };
            let had = self.carriers.insert(port.name.clone(), has).unwrap_or(true);
            match (had, has) {
                (true, false) => log::warn!("port {}: its interface has no carrier", port.name),
                (false, true) => log::info!("port {}: its interface has a carrier", port.name),
                _ => {}
            }
        }
    }

    /// Ends the process if a part of each round since the last call has panicked: no frame's panic
    /// does that, so it would go on.
    fn judge_failures(&mut self) {
        let (failed, rounds) = (self.failed, self.bursts - self.judged);
        (self.failed, self.judged) = (0, self.bursts);
        if failed > FAILED_MAX && failed >= rounds {
            log::error!("a part of each round fails: the process ends");
            std::process::exit(PANICKED);
        }
    }

    fn housekeeping(&mut self, now: Time) {
        self.starved = (self.starved + 1) * u32::from(self.buffers.is_exhausted());
        if self.starved > STARVED_MAX && fault::faults().count > 0 {
            log::error!("internal errors have left no buffers: the process ends");
            std::process::exit(PANICKED);
        }
        self.count_losses();
        self.report_losses(now);
        self.node.table.age(now);
        self.uplink.housekeeping(now);
        if !self.team.leads() {
            return self.follow_ports();
        }
        self.report_carriers();
        self.fit(now);
        for index in 0..self.node.slots.len() {
            // An open port keeps its namespace alive when that has lost its name, or another has
            // it.
            let moved = self.ports[index].home != home(&self.config.ports[index]);
            let port = self.node.slots[index].port.as_mut();
            let presence = port.map_or(Presence::Same, Port::follow);
            let name = &self.config.ports[index].name;
            if moved || presence == Presence::Gone {
                log::warn!("port {name}: its interface is gone");
                self.node.lose(index);
                self.team.order(|| Order::Lost(index));
            } else if presence == Presence::Renamed {
                let device = self.node.slots[index].port.as_ref().and_then(Port::device);
                let device = device.map_or("", Device::name);
                log::warn!("port {name}: its interface is called {device} now");
            }
            self.open(index);
            let slot = &mut self.node.slots[index];
            if let Some(shared) = slot.shared() {
                shared.housekeeping(now);
            }
            if !slot.has_end() {
                self.node.table.forget(Place::Port(index));
            }
            slot.renew_mtu();
        }
    }

    /// Answers what other threads ask; whether to go on.
    fn answer(&mut self) -> bool {
        let _ = rustix::io::read(self.wake.as_fd(), &mut [0u8; 8]);
        while let Ok(request) = self.requests.try_recv() {
            // The asking thread may have gone away.
            match request {
                Request::Show(answer) => {
                    self.count_losses();
                    drop(answer.send(self.reading_of_all()));
                }
                Request::Addresses(answer) => drop(answer.send(self.addresses())),
                Request::Flows(answer) => {
                    let mut flows = self.uplink.flows(self.now());
                    if self.team.leads() {
                        flows.extend(self.team.flows());
                    }
                    drop(answer.send(flows));
                }
                Request::Mirror(name, answer) => {
                    let slot = self.node.slots.iter_mut().find(|slot| slot.name == name);
                    let shown = slot.map(|slot| {
                        let (mirror, shown) = Mirror::new();
                        self.team.order(|| Order::Watched(name.clone(), mirror.another()));
                        slot.mirror = Some(mirror);
                        shown
                    });
                    drop(answer.send(shown));
                }
                Request::Apply(config, answer) if !self.team.fits(&config) => {
                    drop(answer.send(None));
                }
                Request::Apply(config, answer) => {
                    let done = self.change(*config);
                    if self.team.leads() {
                        let (open, waiting) = (done.open, done.waiting.len());
                        log::info!("changed: {open} ports open, {waiting} wait");
                    }
                    drop(answer.send(Some(done)));
                }
                Request::Team(order) => {
                    if !self.obey(order) {
                        return false;
                    }
                }
                Request::Stop(answer) => {
                    log::info!("ends, as it was asked");
                    let _ = answer.send(());
                    return false;
                }
            }
        }
        true
    }
}
