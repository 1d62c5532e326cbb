//! TLT for an unmodified kernel TCP: a shim at a host's port of a software switch.
//!
//! The shim passes each packet of the host in both directions, cut to single packets. It marks the
//! importance of data, keeps the payload that is not acknowledged, forces out a packet where the
//! host's TCP sends nothing after an echo, and answers important packets with echoes.
//!
//! | file | what it does |
//! |---|---|
//! | `params` | the shim's parameters |
//! | `connection` | one connection: both directions and the frames that the shim sends |
//! | `sender` | marks, cache and forced packets of the direction in which the host sends |
//! | `receiver` | echoes of the direction in which the host receives |
//! | `template` | frames in the host's name |
//! | `segment` | a packet's fields and flow, and DSACK removal |
//! | `options` | TCP options |
//! | `cache` | unacknowledged payload |
//! | `class` | importance in the IP header |
//! | `sequence` | sequence numbers as offsets |
//! | `counters` | the shim's numbers |
//!
//! Follows TLT (Lim, Bai, Zhu, Jung, Han: Towards timeout-less transport in commodity datacenter
//! networks, EuroSys 2021), section 3; the machine is the core's `WindowMarker`.
//!
//! Invariant: the shim never corrupts a stream. A forced packet repeats bytes that the host sent at
//! these sequence numbers; an echo acknowledges no more than the host has. A flow that the shim
//! does not understand passes unchanged, in green: the shim fails open.

mod cache;
mod class;
mod connection;
mod counters;
mod options;
mod params;
mod receiver;
mod segment;
mod sender;
mod sequence;
mod template;
#[cfg(test)]
mod tests;

pub use counters::{Counters, Reason, Sent};
pub use params::ShimParams;

use crate::dataplane::buffers::Buffers;
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Layers, View};
use crate::dataplane::packet::Packet;
use connection::{Connection, Decision, Syn};
use millpond_core::host::stage::{Stage, passes};
use millpond_core::{Importance, Time};
use segment::{Key, Segment};
use sender::Terms;
use std::collections::{BTreeSet, HashMap};
use template::Template;

/// Idle flows that one call of [`Shim::evict`] looks at.
const EVICTION_STEPS: usize = 256;

/// A handshake that takes longer is forgotten.
const HALF_OPEN: Time = Time::from_s(5);

/// Whether the host receives a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    Pass,
    /// The shim has consumed the packet; the caller drops it.
    Swallow,
}

/// A task that waits for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Force,
    Echo,
}

/// A flow, from its first SYN on.
#[derive(Default)]
struct Flow {
    /// The last handshake packet of either end.
    ours: Option<Syn>,
    theirs: Option<Syn>,
    /// Of the host's handshake packet.
    template: Option<Template>,
    connection: Option<Box<Connection>>,
    last: Time,
    /// When the shim looks whether it is idle.
    idle_at: Time,
    due: [Option<Time>; 2],
}

#[derive(Default)]
pub struct Shim {
    params: ShimParams,
    flows: HashMap<Key, Flow>,
    tasks: BTreeSet<(Time, Key, Task)>,
    idle: BTreeSet<(Time, Key)>,
    /// Memory of all caches, in bytes.
    cached: usize,
    frame: Vec<u8>,
    counters: Counters,
}

impl Shim {
    /// Returns a shim without flows.
    pub fn new(params: &ShimParams) -> Shim {
        Shim { params: params.clone(), ..Shim::default() }
    }

    /// Marks a packet of the host on its way into the network. `view` is the packet's own. Call
    /// [`Shim::due`] afterwards: a packet may be due at once. A TCP packet of a flow that the shim
    /// does not track leaves as [`Importance::Control`]; what is not TCP stays as it is.
    pub fn outgoing(&mut self, now: Time, packet: &mut Packet, view: &View, buffers: &Buffers) {
        let Some(layers) = view.tcp() else { return };
        let Some(segment) = Segment::read(packet, layers, buffers) else { return };
        passes(Stage::Importance);
        let key = Key::of(segment.header, layers, view.vlan, true);
        let importance = self.mark(now, key, &segment);
        class::set(packet.header.bytes_mut(), layers, importance);
    }

    /// Returns the importance of a packet of the host.
    fn mark(&mut self, now: Time, key: Key, segment: &Segment<'_>) -> Importance {
        if segment.has(tcp::SYN) {
            self.handshake(now, key, segment, true);
            return Importance::Control;
        }
        let Some(flow) = self.flows.get_mut(&key) else {
            self.counters.untracked_packets += 1;
            return Importance::Control;
        };
        flow.last = now;
        if segment.has(tcp::RST) {
            self.remove(key);
            return Importance::Control;
        }
        let Some(connection) = &mut flow.connection else {
            self.counters.untracked_packets += 1;
            return Importance::Control;
        };
        let before = connection.sending.memory();
        let room = self.params.cache_max.saturating_sub(before);
        let room = room.min(self.params.cache_total.saturating_sub(self.cached));
        let terms = Terms { params: &self.params, counters: &mut self.counters };
        let marked = connection.outgoing(now, segment, room, terms);
        self.cached = self.cached - before + connection.sending.memory();
        let (is_urgent, is_done) = (connection.sending.is_urgent(), connection.is_done());
        let (is_armed, is_pending) =
            (connection.sending.is_armed(), connection.receiving.is_pending());
        match marked {
            Err(reason) => self.untrack(key, reason),
            Ok(_) if is_done => self.remove(key),
            Ok(_) if is_urgent => self.schedule(key, Task::Force, now),
            Ok(_) if !is_armed => self.cancel(key, Task::Force),
            Ok(_) => (),
        }
        if !is_pending {
            self.cancel(key, Task::Echo);
        }
        marked.unwrap_or_default()
    }

    /// Takes a packet on its way up to the host. `view` is the packet's own. On
    /// [`Verdict::Swallow`] the caller drops it. The packets of a tracked flow lose their
    /// importance here, so that receive offload merges them.
    pub fn incoming(
        &mut self,
        now: Time,
        packet: &mut Packet,
        view: &View,
        buffers: &Buffers,
    ) -> Verdict {
        let Some(layers) = view.tcp() else { return Verdict::Pass };
        let Some(segment) = Segment::read(packet, layers, buffers) else { return Verdict::Pass };
        let key = Key::of(segment.header, layers, view.vlan, false);
        let is_echo = matches!(segment.importance, Importance::Echo | Importance::ForcedEcho);
        let is_shims = is_echo
            && segment.is_pure_ack()
            && options::read(segment.options).is_some_and(|options| options.echo.is_some());
        let decision = self.decide(now, key, &segment);
        if is_shims {
            // Of no use to the host, whether its flow is tracked or not.
            self.counters.consumed += 1;
            return Verdict::Swallow;
        }
        let Some(decision) = decision else { return Verdict::Pass };
        if decision.swallow {
            self.counters.consumed += 1;
            self.counters.acks_swallowed += 1;
            return Verdict::Swallow;
        }
        if decision.strip && segment::strip_dsack(packet, layers, buffers) {
            self.counters.dsacks_stripped += 1;
        }
        class::set(packet.header.bytes_mut(), layers, Importance::Control);
        Verdict::Pass
    }

    /// Decides about an incoming packet; `None`: its flow is not tracked.
    fn decide(&mut self, now: Time, key: Key, segment: &Segment<'_>) -> Option<Decision> {
        if segment.has(tcp::SYN) {
            self.handshake(now, key, segment, false);
            return None;
        }
        let flow = self.flows.get_mut(&key)?;
        flow.last = now;
        let connection = flow.connection.as_mut()?;
        if segment.has(tcp::RST) {
            if connection.is_reset_by(segment.seq) {
                self.remove(key);
            }
            return None;
        }
        let before = connection.sending.memory();
        let decision = connection.incoming(segment, &mut self.counters);
        self.cached = self.cached - before + connection.sending.memory();
        let is_done = connection.is_done();
        match decision {
            Ok(decision) => {
                if decision.force {
                    self.schedule(key, Task::Force, now.saturating_add(self.params.delta));
                }
                if decision.echo {
                    self.schedule(key, Task::Echo, now.saturating_add(self.params.echo_wait));
                }
                if is_done {
                    self.remove(key);
                }
                Some(decision)
            }
            Err(reason) => {
                self.untrack(key, reason);
                None
            }
        }
    }

    /// Takes a SYN or SYN-ACK. Only a packet of the host replaces a connection: a stranger's SYN
    /// changes nothing until the host answers it.
    fn handshake(&mut self, now: Time, key: Key, segment: &Segment<'_>, leaves: bool) {
        let syn = match Syn::read(segment) {
            Ok(syn) => syn,
            Err(reason) if leaves => return self.untrack(key, reason),
            Err(reason) => {
                self.counters.untrack(reason);
                if let Some(flow) = self.flows.get_mut(&key) {
                    flow.theirs = None;
                }
                return;
            }
        };
        if !self.has_room(now, key) {
            self.counters.untrack(Reason::Full);
            return;
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.last = now;
        if leaves {
            (flow.ours, flow.template) = (Some(syn), Some(Template::new(segment)));
        } else {
            flow.theirs = Some(syn);
        }
        let both = flow.ours.zip(flow.theirs);
        let is_known = both.is_some_and(|(ours, theirs)| {
            flow.connection.as_ref().is_some_and(|it| it.is_of(&ours, &theirs))
        });
        let template = flow.template.clone();
        let opens = both.filter(|(ours, theirs)| {
            let answered = if leaves { theirs.isn } else { ours.isn };
            segment.has(tcp::ACK) && segment.ack == answered.wrapping_add(1)
        });
        if is_known || !(leaves || opens.is_some()) {
            return;
        }
        self.drop_connection(key);
        if let (Some((ours, theirs)), Some(template), Some(flow)) =
            (opens, template, self.flows.get_mut(&key))
        {
            let connection = Connection::new(&self.params, &ours, &theirs, template);
            flow.connection = Some(Box::new(connection));
            self.counters.tracked += 1;
        }
    }

    /// Makes an entry for a flow; whether there is one.
    fn has_room(&mut self, now: Time, key: Key) -> bool {
        if self.flows.contains_key(&key) {
            return true;
        }
        if self.flows.len() >= self.params.flows_max {
            return false;
        }
        let idle_at = now.saturating_add(HALF_OPEN.min(self.params.idle));
        self.flows.insert(key, Flow { idle_at, ..Flow::default() });
        self.idle.insert((idle_at, key));
        true
    }

    /// Returns when [`Shim::due`] has something to do; `None`: not before another packet comes.
    pub fn deadline(&self) -> Option<Time> {
        self.tasks.first().map(|(at, _, _)| *at)
    }

    /// Calls `out` with each frame to send into the network now, Ethernet header included.
    pub fn due(&mut self, now: Time, out: &mut impl FnMut(&[u8])) {
        while let Some(&(at, key, task)) = self.tasks.first()
            && at <= now
        {
            self.tasks.pop_first();
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            flow.due[task as usize] = None;
            let Some(connection) = &mut flow.connection else { continue };
            let frame = &mut self.frame;
            match task {
                Task::Force => {
                    let Some(bytes) = connection.force(now, frame, &mut self.counters) else {
                        continue;
                    };
                    self.counters.force(bytes);
                }
                Task::Echo => {
                    if !connection.echo(frame) {
                        continue;
                    }
                    self.counters.echoes_sent += 1;
                }
            }
            out(frame);
        }
    }

    /// Forgets flows that are idle, of some hundred that it looks at. Call it each millisecond.
    pub fn evict(&mut self, now: Time) {
        for _ in 0..EVICTION_STEPS {
            let Some(&(at, key)) = self.idle.first() else { return };
            if at > now {
                return;
            }
            self.idle.pop_first();
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            let idle = if flow.connection.is_some() { self.params.idle } else { HALF_OPEN };
            flow.idle_at = flow.last.saturating_add(idle);
            if flow.idle_at <= now {
                self.remove(key);
            } else {
                self.idle.insert((flow.idle_at, key));
            }
        }
    }

    /// Returns what the shim has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// Returns the same with the flows in the table and the memory of their caches.
    pub fn reading(&self) -> Counters {
        let (flows, cached_bytes) = (self.flows(), self.cached());
        Counters { flows, cached_bytes, ..self.counters.clone() }
    }
    /// Returns the number of flows in the table.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
    /// Returns the memory of all caches, in bytes.
    pub fn cached(&self) -> usize {
        self.cached
    }

    /// Calls for a task at a time, unless it is due earlier.
    fn schedule(&mut self, key: Key, task: Task, at: Time) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let due = &mut flow.due[task as usize];
        if let Some(old) = *due {
            if old <= at {
                return;
            }
            self.tasks.remove(&(old, key, task));
        }
        *due = Some(at);
        self.tasks.insert((at, key, task));
    }

    /// Calls for a task no more: the host has done it.
    fn cancel(&mut self, key: Key, task: Task) {
        let due = self.flows.get_mut(&key).and_then(|flow| flow.due[task as usize].take());
        if let Some(at) = due {
            self.tasks.remove(&(at, key, task));
        }
    }

    fn untrack(&mut self, key: Key, reason: Reason) {
        self.counters.untrack(reason);
        self.remove(key);
    }

    fn remove(&mut self, key: Key) {
        self.drop_connection(key);
        if let Some(flow) = self.flows.remove(&key) {
            self.idle.remove(&(flow.idle_at, key));
        }
    }

    /// Forgets the connection of a flow, and its tasks.
    fn drop_connection(&mut self, key: Key) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        if let Some(connection) = flow.connection.take() {
            self.cached -= connection.sending.memory();
        }
        self.cancel(key, Task::Force);
        self.cancel(key, Task::Echo);
    }
}

/// Returns whether the checksums of a whole frame are right; tests and fuzzing check forged frames
/// with it.
pub fn checks(frame: &[u8], layers: &Layers) -> bool {
    segment::checks(frame, layers)
}
