//! The overlay: virtual switches ask each other to pause flows.
//!
//! Backdraft (Sanaee, Shahinfar, Antichi, Stephens: Backdraft: a Lossless Virtual Switch that
//! Prevents the Slow Receiver Problem, NSDI 2022) keeps packets that a slow receiver has no room
//! for in the memory of their senders' hosts. The switch at the receiver sends PAUSE and RESUME
//! past the fabric. Drivers are the simulator's hosts and `millpond switch`.
//!
//! | file | what |
//! |---|---|
//! | `wire` | a datagram: records of one switch for another, authenticated |
//! | `peers` | which datagrams count: keys, epochs, each datagram once |
//! | `notify` | the receiver's side: records to be sent, and sent again |
//! | `hold` | the sender's side: who may not send, and until when |
//! | `senders` | who is asked to pause together when memory is short |
//! | `generations` | the authors' two overlays, to compare with |
//! | `credits` | what Backdraft does without: grants before data |
//! | `rates` | and PicNIC's way: rates that senders keep |
//!
//! The last three are the simulator's and the lab's alone: `millpond switch` takes no record of
//! credits or rates.
//!
//! The protocol is this project's; the authors' release has two generations, of which one has no
//! RESUME and the other sends each message once. Here all state is soft. A PAUSE holds for its TTL
//! and is refreshed; where a refresh is lost for long, the flow goes on by itself. A PAUSE that was
//! lost is repeated when data of its flow arrives. A RESUME is sent twice. The record of a target
//! is kept once, the latest wins, so control memory is bounded by the number of targets.
//!
//! Each change has a sequence number of its switch, so what arrives late changes nothing. A switch
//! that restarts has a greater *epoch*: its peers forget its records, and send theirs again.
//!
//! Invariants: no message lost, doubled, late or forged pauses a target for longer than a TTL
//! beyond its last true PAUSE; a peer pauses only what is sent to it; its datagrams are a
//! function of calls.

pub mod credits;
pub mod generations;
pub mod hold;
pub mod notify;
mod peers;
pub mod rates;
pub mod senders;
#[cfg(test)]
mod tests;
pub mod wire;

pub use hold::{Change, Keeper};
pub use notify::Notifier;
pub use peers::{Peers, Refused};
pub use senders::Senders;
pub use wire::Key;

use crate::units::Time;

/// A switch that takes part, by its number.
pub type PeerId = u32;

/// The identity of a flow. Addresses are those of IPv6; an IPv4 address is mapped into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    pub source: u128,
    pub destination: u128,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Everything that is sent to the switch that names it.
    Peer,
    /// All flows of one destination's application.
    Application {
        address: u128,
        port: u16,
        protocol: u8,
    },
    Flow(FlowKey),
}

impl Target {
    /// The application that a flow goes to.
    pub fn application(flow: &FlowKey) -> Target {
        Target::Application {
            address: flow.destination,
            port: flow.destination_port,
            protocol: flow.protocol,
        }
    }
    /// Whether this is a flow that goes to `application`.
    pub(super) fn is_flow_of(&self, application: &Target) -> bool {
        match self {
            Target::Flow(flow) => Target::application(flow) == *application,
            _ => false,
        }
    }
    /// Whether the target includes `flow`, which goes to the peer that sent the notification.
    pub fn covers(&self, flow: &FlowKey) -> bool {
        match self {
            Target::Peer => true,
            Target::Application { .. } => *self == Target::application(flow),
            Target::Flow(one) => one == flow,
        }
    }
    /// The address that receives what is meant; a peer has several.
    pub fn destination(&self) -> Option<u128> {
        match self {
            Target::Peer => None,
            Target::Application { address, .. } => Some(*address),
            Target::Flow(flow) => Some(flow.destination),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    Pause,
    Refresh,
    #[default]
    Resume,
    /// I would send so many packets more ([`credits`]).
    Ask,
    /// Send so many packets.
    Grant,
    /// Keep a rate ([`rates`]).
    Rate,
}

impl Word {
    pub const COUNT: usize = 6;

    /// Its place among PAUSE, REFRESH, RESUME, ASK, GRANT, RATE.
    pub const fn index(self) -> usize {
        match self {
            Word::Pause => 0,
            Word::Refresh => 1,
            Word::Resume => 2,
            Word::Ask => 3,
            Word::Grant => 4,
            Word::Rate => 5,
        }
    }
    /// Whether it is one of those by which flows are paused.
    pub const fn is_of_pauses(self) -> bool {
        matches!(self, Word::Pause | Word::Refresh | Word::Resume)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    pub word: Word,
    pub target: Target,
    /// The number of the change, ascending over all targets of the switch that speaks.
    pub seq: u64,
    /// Bytes that wait there; of ASK and GRANT the packets.
    pub queued: u32,
    /// In kb/s, how fast the target may send nevertheless; 0: not at all. Of RATE and the authors'
    /// first generation; a [`Keeper`] holds a target whatever it is.
    pub rate: u32,
    /// How long it holds, in microseconds.
    pub ttl: u32,
}

/// The times and bounds of an overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Config {
    /// From a PAUSE until nothing more arrives.
    pub feedback: Time,
    pub ttl: Time,
    /// How long a peer's record may hold at most.
    pub longest: Time,
    /// With more paused flows than this an application is paused as a whole.
    pub flows: u32,
    /// Datagrams to a peer in half a feedback time.
    pub datagrams: u32,
    /// Targets of a peer that are remembered.
    pub targets: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            feedback: Time::from_us(20),
            ttl: Time::from_us(100),
            longest: Time::from_ms(50),
            flows: 16,
            datagrams: 4,
            targets: 65_536,
        }
    }
}

/// Pauses and advertisements since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub sent: u64,
    pub received: u64,
    pub strangers: u64,
    /// Datagrams that were not made by the peer that they name, or not for us, or have no form.
    pub forged: u64,
    /// Datagrams that came twice, too late, or from before a restart.
    pub replayed: u64,
    /// Records about what the peer does not receive, or of no pause.
    pub foreign: u64,
    pub words_sent: [u64; 3],
    /// Those received, as far as they counted.
    pub words_received: [u64; 3],
}

/// One switch's part: both sides and the datagrams between them.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// The words of this switch to its peers.
    pub notifier: Notifier,
    /// The words of its peers to it.
    pub keeper: Keeper,
    peers: Peers,
    counters: Counters,
}

impl Overlay {
    /// The switch numbered `me`. Its epoch is greater than at any start before, and not zero.
    pub fn new(me: PeerId, epoch: u32, config: Config) -> Overlay {
        Overlay {
            notifier: Notifier::new(config),
            keeper: Keeper::new(config),
            peers: Peers::new(me, epoch, config.feedback),
            counters: Counters::default(),
        }
    }
    /// Another switch that takes part, and the key that both have.
    pub fn add(&mut self, peer: PeerId, key: Key) {
        self.peers.add(peer, key);
    }
    /// Another process of a peer, or the first. `key` is of that process and this one alone, and
    /// both switches have the same epoch. The words of a former one are void.
    pub fn meet(&mut self, now: Time, peer: PeerId, key: Key, mut changed: impl FnMut(Change)) {
        self.peers.meet(peer, key);
        self.keeper.forget(peer, &mut changed);
        self.notifier.restarted(now, peer);
    }
    /// The peer's key has changed, and its process has not.
    pub fn rekey(&mut self, peer: PeerId, key: Key) {
        self.peers.rekey(peer, key);
    }
    /// Takes a datagram that arrived. `owns` returns whether a peer receives data for an address.
    /// `changed` is called for each target that must pause or may resume.
    ///
    /// # Errors
    /// The reason to drop the datagram: malformed, an unknown sender, a wrong tag, or a replay. The
    /// overlay counts each.
    pub fn receive(
        &mut self,
        now: Time,
        datagram: &[u8],
        owns: impl Fn(PeerId, u128) -> bool,
        mut changed: impl FnMut(Change),
    ) -> Result<(), Refused> {
        let opened = self.peers.open(datagram).inspect_err(|refused| match refused {
            Refused::Stranger => self.counters.strangers += 1,
            Refused::Replayed => self.counters.replayed += 1,
            Refused::Form | Refused::Forged => self.counters.forged += 1,
        })?;
        if opened.is_restarted {
            self.keeper.forget(opened.peer, &mut changed);
            self.notifier.restarted(now, opened.peer);
        }
        if !opened.is_for_this_epoch {
            self.counters.replayed += 1;
            return Err(Refused::Replayed);
        }
        self.counters.received += 1;
        for record in opened.records {
            let is_its_own =
                record.target.destination().is_none_or(|address| owns(opened.peer, address));
            if is_its_own && record.word.is_of_pauses() {
                self.counters.words_received[record.word.index()] += 1;
                self.keeper.on_record(now, opened.peer, &record).map(&mut changed);
            } else {
                self.counters.foreign += 1;
            }
        }
        Ok(())
    }
    /// The next datagram for `peer`, if a record is due now. To be asked until there is none.
    pub fn transmit(&mut self, now: Time, peer: PeerId) -> Option<Vec<u8>> {
        let greets = self.peers.greets(now, peer)?;
        let records = self.notifier.poll(now, peer, wire::RECORDS);
        if records.is_empty() && !greets {
            return None;
        }
        let datagram = self.peers.seal(peer, &records)?;
        self.counters.sent += 1;
        records.iter().for_each(|record| self.counters.words_sent[record.word.index()] += 1);
        Some(datagram)
    }
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
