//! The loop of the load generator.
//!
//! | file | content |
//! |---|---|
//! | `opening` | arrivals, closed loops and probes open connections |
//! | `preparing` | sockets of flows that are to come |
//! | `serving` | events: accepting, sending, receiving, acknowledgements |
//! | `answering` | complete messages: answers, next calls, deliveries |
//! | `ending` | completions, failures and their records; the end of the run |
//! | `sampling` | samples of connections |
//!
//! Invariant: nothing starts before its time, and nothing at or after the horizon.

mod answering;
mod ending;
mod opening;
mod preparing;
mod sampling;
mod serving;

use preparing::Prepared;

use super::cgroups::Makers;
use super::clock::Clock;
use super::counts::Counts;
use super::ledger::Ledger;
use super::namespaces::Namespaces;
use super::table::{Connections, Key, Peer, Token};
use super::{Error, Settings, Sink};
use millpond_agent::socket;
use millpond_core::{FlowId, Time};
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::Arrivals;
use millpond_sim::samples::Chosen;
use rustix::event::epoll;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A wait ends so long before what is due, and the thread polls for the rest.
const SPIN: Duration = Duration::from_micros(50);
/// After an event the thread polls so long, unless another wants its core: to wake it costs the
/// fabric's thread 2 us a packet.
const LINGER: Time = Time::from_us(50);
/// The longest wait, after which `stop` is looked at.
const WAIT_MAX: Duration = Duration::from_millis(10);
/// Period at which the loop looks for missing time stamps of acknowledgements and accepts again.
const SWEEP: Time = Time::from_ms(50);
/// So much may start before events are served again.
const STARTS_A_ROUND: usize = 16;
const EVENTS_MAX: usize = 512;
/// The most that one read takes away.
const READ_MAX: usize = 1 << 20;
/// The most that one write hands over.
const WRITE_MAX: usize = 1 << 18;

/// An action that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Answer(Key),
    Ask(Key),
    Sample,
}

pub(super) struct Engine<'a> {
    settings: &'a Settings<'a>,
    plan: &'a Plan,
    sink: &'a mut dyn Sink,
    clock: Clock,
    ledger: Ledger<'a>,
    namespaces: Namespaces,
    epoll: OwnedFd,
    makers: Makers,
    listeners: Vec<(u32, OwnedFd)>,
    /// By host: whether its namespace's congestion control is the wanted one.
    is_default: Vec<bool>,
    connections: Connections,
    /// Connections that have not been accepted, and the ports of all.
    peers: HashMap<Peer, Key>,
    ports: HashSet<(u32, u16)>,
    prepared: Prepared,
    /// By time and then in the order in which they were set.
    timers: BinaryHeap<Reverse<(Time, u64, Timer)>>,
    timers_set: u64,
    chosen: Option<Chosen>,
    swept: Time,
    /// Listeners that could not accept, and try again.
    blocked: Vec<u32>,
    zeros: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'a> Engine<'a> {
    /// Opens the namespaces and listens at every host.
    pub fn new(settings: &'a Settings<'a>, sink: &'a mut dyn Sink) -> Result<Engine<'a>, Error> {
        let (plan, places) = (settings.plan, settings.places);
        let hosts = plan.topology.hosts as usize;
        if hosts != places.len() {
            return Err(Error::Places { hosts, places: places.len() });
        }
        raise_limits();
        let names = places.iter().map(|place| place.namespace.as_str());
        let namespaces =
            Namespaces::open(names).map_err(|(name, source)| Error::Namespace { name, source })?;
        let makers = Makers::new(settings.cgroups, places, settings.congestion);
        let makers = makers.map_err(Error::Thread)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| Error::Events(error.into()))?;
        let mut engine = Engine {
            settings,
            plan,
            sink,
            clock: Clock::new(settings.began),
            ledger: Ledger::new(plan),
            namespaces,
            makers,
            epoll,
            listeners: Vec::new(),
            is_default: Vec::new(),
            connections: Connections::default(),
            peers: HashMap::new(),
            ports: HashSet::new(),
            prepared: Prepared::new(plan),
            timers: BinaryHeap::new(),
            timers_set: 0,
            chosen: None,
            swept: Time::ZERO,
            blocked: Vec::new(),
            zeros: vec![0; WRITE_MAX],
            buffer: vec![0; READ_MAX],
        };
        (0..hosts as u32).try_for_each(|host| engine.listen_at(host))?;
        Ok(engine)
    }

    /// Listens at a host for all classes of traffic.
    fn listen_at(&mut self, host: u32) -> Result<(), Error> {
        let Settings { places, congestion, .. } = *self.settings;
        let name = &places[host as usize].namespace;
        let entered = self.namespaces.enter(host);
        entered.map_err(|source| Error::Namespace { name: name.clone(), source })?;
        let default = socket::tcp(None).and_then(|socket| socket::congestion(&socket));
        self.is_default.push(default.is_ok_and(|default| default == congestion));
        (0..self.plan.traffic.classes.len() as u16).try_for_each(|class| self.listen(host, class))
    }

    /// Listens at a host for a class, with a socket of its cgroup. The thread is at that host.
    fn listen(&mut self, host: u32, class: u16) -> Result<(), Error> {
        let Settings { places, congestion, .. } = *self.settings;
        let (port, place) = (self.port(class), &places[host as usize]);
        let fails = |source| Error::Listen {
            host,
            address: place.address,
            port,
            congestion: congestion.to_string(),
            source,
        };
        let made = match self.makers.of(host, class) {
            Some(cgroup) => self.makers.take(cgroup),
            None => socket::tcp(Some(congestion)),
        };
        let at = SocketAddrV4::new(place.address, port);
        let listener = made.and_then(|socket| socket::listen_at(socket, at)).map_err(fails)?;
        let number = self.listeners.len() as u32;
        let token = epoll::EventData::new_u64(Token::Listener(number).encode());
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &listener, token, flags).map_err(|e| Error::Events(e.into()))?;
        self.listeners.push((host, listener));
        Ok(())
    }

    /// The port at which all hosts listen for a class.
    fn port(&self, class: u16) -> u16 {
        self.settings.port.saturating_add(class)
    }

    /// Makes the traffic, and returns the counts.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Counts, Error> {
        self.open_probes();
        self.begin_samples();
        let nothing =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; EVENTS_MAX];
        let (lingers, mut served) = (self.lingers(), None::<Time>);
        while self.ledger.goes_on && self.clock.until(self.plan.horizon) > Duration::ZERO {
            if stop.load(Ordering::Relaxed) {
                self.ledger.goes_on = false;
                break;
            }
            let next = self.start_due(STARTS_A_ROUND);
            if self.plan.until_complete && self.ledger.is_complete() {
                break;
            }
            let next = next.unwrap_or(Time::MAX).min(self.plan.horizon);
            let most = if self.prepare(next) { Duration::ZERO } else { WAIT_MAX };
            let now = self.clock.now();
            let wait = match served.filter(|at| lingers && now.saturating_sub(*at) < LINGER) {
                Some(_) => Duration::ZERO,
                None => self.clock.until(next).saturating_sub(SPIN).min(most),
            };
            let count = socket::wait(&self.epoll, &mut events, wait).map_err(Error::Events)?;
            if count > 0 {
                served = Some(now);
            }
            for event in events.iter().take(count) {
                self.serve(Token::decode(event.data.u64()), event.flags);
                // A burst of events delays no start, and a burst of starts no event.
                self.start_due(1);
            }
            self.sweep();
        }
        Ok(self.conclude())
    }

    /// Whether the thread polls for a while after events.
    fn lingers(&self) -> bool {
        crate::urgent::is_apart() && self.plan.programs.is_empty()
    }

    fn set_timer(&mut self, at: Time, timer: Timer) {
        self.timers.push(Reverse((at, self.timers_set, timer)));
        self.timers_set += 1;
    }

    /// Starts what is due, at most so much; returns when the next thing is.
    fn start_due(&mut self, most: usize) -> Option<Time> {
        let mut starts = Vec::new();
        for _ in 0..most {
            let next = self.next_start()?;
            if next >= self.plan.horizon || self.clock.until(next) > Duration::ZERO {
                return Some(next);
            }
            if self.timers.peek().is_some_and(|Reverse((at, ..))| *at == next) {
                if let Some(Reverse((at, _, timer))) = self.timers.pop() {
                    self.on_timer(at, timer);
                }
            } else {
                self.ledger.agenda.take(&mut starts);
                self.start(&mut starts);
            }
        }
        self.next_start()
    }

    fn next_start(&mut self) -> Option<Time> {
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        self.ledger.agenda.next_time().into_iter().chain(timer).min()
    }

    fn on_timer(&mut self, at: Time, timer: Timer) {
        match timer {
            Timer::Answer(key) => self.answer(key),
            Timer::Ask(key) => self.ask(key),
            Timer::Sample => self.sample(at),
        }
    }
}

/// Lets the process have as many files as it may. Without the right to more the run goes on with
/// what it has, and counts connections that lack one as errors.
fn raise_limits() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wanted = Some(1 << 20);
    let raised = Rlimit { current: wanted, maximum: maximum.max(wanted) };
    if setrlimit(Resource::Nofile, raised).is_err() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
