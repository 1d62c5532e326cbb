//! The overlay with one peer: what it is asked to pause, and what it has paused here.
//!
//! `millpond_core::overlay` decides. This module gives it keys, and its records datagrams of
//! their own, which leave past whatever waits for a path. The key follows from the secret that
//! both switches share and what both processes drew when they started, for each direction. So a
//! datagram counts between these two processes alone, no clock is part of it, and a process that
//! starts anew is paused by no earlier record.
//!
//! Flows are those of TCP and UDP. Acknowledgements and handshakes of TCP are never held: they cost
//! a receiver little, and would hold up the other direction.
//!
//! Invariant: a peer pauses only what goes to it, and for no longer than `longest` after its last
//! word.

use super::config::PeerParams;
use super::held::Held;
use crate::dataplane::counters::Drop;
use crate::dataplane::flow::named;
use crate::dataplane::frame::View;
use crate::dataplane::frame::offload::Offload;
use crate::dataplane::outgoing::Kept;
use crate::dataplane::port::shared::{Sender, What, class};
use crate::tunnel::secret::Nonce;
use millpond_core::Time;
use millpond_core::flow_queues::Class;
use millpond_core::overlay::{Change, Config, Key, Overlay, PeerId, Refused};
use std::collections::BTreeMap;

/// How the two switches call themselves: what distinguishes them is the key of a direction.
const SWITCH: PeerId = 0;
/// All processes have the same epoch: another process has another key.
const EPOCH: u32 = 1;
/// The longest pause, whatever a peer asks for.
const LONGEST: Time = Time::from_s(1);

pub struct Talk {
    overlay: Overlay,
    /// The process of the peer that it is spoken with.
    with: Option<Nonce>,
    held: Held,
    /// Frames that waited and then could not be sent.
    pub failed: u64,
    /// The path of the next datagram, by its place among those that carry data.
    turn: usize,
}

/// The fate of a frame for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Goes,
    Stays,
    Waits,
}

/// Which peer the frames for an address go to, of the peers that speak the overlay.
#[derive(Debug, Default)]
pub struct Homes {
    by_address: BTreeMap<u128, u16>,
    last: Option<(u128, u16)>,
}

const HOMES_MAX: usize = 65_536;

impl Homes {
    /// A frame for this address goes to this peer.
    #[inline]
    pub fn note(&mut self, address: u128, peer: u16) {
        if self.last == Some((address, peer)) {
            return;
        }
        self.last = Some((address, peer));
        if self.by_address.len() >= HOMES_MAX {
            self.by_address.clear();
        }
        self.by_address.insert(address, peer);
    }
    /// Whether the peer receives what is for this address, as far as is known: a pause may come
    /// before its flow's first frame.
    pub fn is_of(&self, address: u128, peer: u16) -> bool {
        self.by_address.get(&address).is_none_or(|home| *home == peer)
    }
}

impl Talk {
    pub fn new(params: &PeerParams) -> Talk {
        let config = Config {
            feedback: params.feedback,
            ttl: params.pause_ttl,
            longest: LONGEST.max(params.pause_ttl),
            ..Config::default()
        };
        let overlay = Overlay::new(SWITCH, EPOCH, config);
        Talk { overlay, with: None, held: Held::new(params.hold_memory), failed: 0, turn: 0 }
    }

    /// Whether it is spoken with this process of the peer.
    pub fn is_with(&self, theirs: &Nonce) -> bool {
        self.with.as_ref() == Some(theirs)
    }
    /// There is another process, or the first.
    pub fn meet(&mut self, now: Time, theirs: Nonce, key: Key) {
        self.with = Some(theirs);
        let mut changes = Vec::new();
        self.overlay.meet(now, SWITCH, key, |change| changes.push(change));
        self.apply(now, &changes);
    }
    pub fn rekey(&mut self, key: Key) {
        self.overlay.rekey(SWITCH, key);
    }

    /// Takes a datagram of the overlay that arrived. `owns` returns whether the peer receives data
    /// for an address.
    ///
    /// # Errors
    /// The reason to drop the datagram: malformed, not made with the peer's key, or a replay.
    pub fn receive(
        &mut self,
        now: Time,
        datagram: &[u8],
        owns: impl Fn(u128) -> bool,
    ) -> Result<(), Drop> {
        let mut changes = Vec::new();
        let received = self.overlay.receive(
            now,
            datagram,
            |_, address| owns(address),
            |change| changes.push(change),
        );
        self.apply(now, &changes);
        received.map_err(|refused| match refused {
            Refused::Form => Drop::BadEncapsulation,
            Refused::Stranger | Refused::Forged => Drop::Stranger,
            Refused::Replayed => Drop::Replayed,
        })
    }
    fn apply(&mut self, now: Time, changes: &[Change]) {
        let Talk { overlay, held, .. } = self;
        for Change { target, .. } in changes {
            held.set(now, |flow| target.covers(flow), |flow| overlay.keeper.is_held(SWITCH, flow));
        }
    }

    /// Queues the signal of a port of this switch.
    pub fn notify(&mut self, now: Time, what: &What) {
        let notifier = &mut self.overlay.notifier;
        match what {
            What::Pause(target, queued) => notifier.pause(now, SWITCH, *target, queued.0),
            What::Resume(target) => notifier.resume(now, SWITCH, *target),
            What::Arrived(flow, target, queued) => {
                // A peer that is configured anew has no state. A pause in force stays as it is.
                if !notifier.is_paused(SWITCH, target) {
                    notifier.pause(now, SWITCH, *target, queued.0);
                }
                notifier.arrived(now, SWITCH, flow);
            }
        }
    }
    /// The next datagram, if a record is due now.
    pub fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        self.with?;
        self.overlay.transmit(now, SWITCH)
    }
    /// Which of `count` paths it takes: in turn, since one may lose what another carries.
    pub fn turn(&mut self, count: usize) -> usize {
        self.turn = self.turn.wrapping_add(1);
        self.turn % count.max(1)
    }
    /// Ends what has lasted for long enough.
    pub fn expire(&mut self, now: Time) {
        let changes: Vec<Change> = std::iter::from_fn(|| self.overlay.keeper.expire(now)).collect();
        self.apply(now, &changes);
    }
    /// When there is something to do.
    pub fn deadline(&self) -> Option<Time> {
        let next = self.with.and_then(|_| self.overlay.notifier.deadline(SWITCH));
        next.into_iter().chain(self.overlay.keeper.deadline()).min()
    }
    pub fn housekeeping(&mut self, now: Time) {
        self.held.expire(now);
    }

    /// Decides whether a frame for the peer leaves, waits, or stays with its sender.
    ///
    /// # Errors
    /// [`Drop::LossHeld`] if the peer has paused the flow and there is no memory for the frame.
    #[inline]
    pub fn admit(
        &mut self,
        now: Time,
        bytes: &[u8],
        offload: &Offload,
        view: &View,
        sender: Sender<'_>,
    ) -> Result<Admission, Drop> {
        if self.overlay.keeper.is_empty() && self.held.is_empty() {
            return Ok(Admission::Goes);
        }
        self.ask(now, bytes, offload, view, sender)
    }
    #[cold]
    fn ask(
        &mut self,
        now: Time,
        bytes: &[u8],
        offload: &Offload,
        view: &View,
        sender: Sender<'_>,
    ) -> Result<Admission, Drop> {
        let Some(layers) = view.layers().filter(|_| class(view, bytes) == Class::Data) else {
            return Ok(Admission::Goes);
        };
        let flow = named(bytes, layers);
        let is_held = self.overlay.keeper.is_held(SWITCH, &flow);
        if let Sender::Application(origin) = sender {
            if is_held {
                self.held.pause(origin, flow);
                return Ok(Admission::Stays);
            }
            return Ok(Admission::Goes);
        }
        if !is_held && !self.held.has(&flow) {
            return Ok(Admission::Goes);
        }
        let frame = Kept { view: *view, offload: *offload, bytes: bytes.to_vec() };
        match self.held.queue(now, flow, is_held, frame, sender.port()) {
            true => Ok(Admission::Waits),
            false => Err(Drop::LossHeld),
        }
    }
    /// The next frame that waited and may go.
    pub fn next(&mut self, now: Time) -> Option<Kept> {
        if self.held.is_empty() { None } else { self.held.next(now) }
    }

    /// Ports that frames have come from which wait here.
    pub fn slowed(&self) -> impl Iterator<Item = u16> {
        self.held.ports()
    }
    pub fn reading(&self) -> Reading {
        let (counters, keeper, held) = (self.overlay.counters(), &self.overlay.keeper, &self.held);
        Reading {
            speaks: self.with.is_some(),
            notified: self.overlay.notifier.len(SWITCH),
            held: keeper.held(),
            sent: counters.words_sent,
            received: counters.words_received,
            forged: counters.forged + counters.strangers,
            replayed: counters.replayed,
            foreign: counters.foreign,
            late: keeper.late() + keeper.beyond(),
            paused: held.paused(),
            waiting_frames: held.len(),
            waiting_bytes: held.bytes(),
            peak_bytes: held.peak(),
            lost: held.lost(),
            failed: self.failed,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reading {
    /// Whether a process of the peer was met.
    pub speaks: bool,
    /// Targets that it is notified of now.
    #[serde(rename = "told")]
    pub notified: usize,
    pub held: usize,
    /// PAUSE, REFRESH and RESUME that were sent.
    #[serde(rename = "said")]
    pub sent: [u64; 3],
    #[serde(rename = "heard")]
    pub received: [u64; 3],
    /// Datagrams that the peer's process has not made for this one.
    pub forged: u64,
    pub replayed: u64,
    /// Records about what goes to another peer.
    pub foreign: u64,
    /// Records that came too late, or named more targets than are remembered.
    pub late: u64,
    pub paused: usize,
    pub waiting_frames: usize,
    /// Their bytes.
    pub waiting_bytes: u64,
    pub peak_bytes: u64,
    /// Frames that found no memory to wait in.
    pub lost: u64,
    /// Frames that waited and then could not be sent.
    pub failed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::parse;
    use crate::dataplane::frame::segment::tests::{Build, frame_of};
    use millpond_core::overlay::Target;

    fn talk(drawn: u8) -> Talk {
        let mut talk = Talk::new(&PeerParams::default());
        talk.meet(Time::ZERO, [drawn; 16], Key::new(b"what two switches share").unwrap());
        talk
    }
    fn admit(talk: &mut Talk, now: Time, payload: usize) -> Admission {
        let frame = frame_of(&Build { payload, ..Build::default() });
        let view = parse(&frame).unwrap();
        talk.admit(now, &frame, &Offload::default(), &view, Sender::Port(3)).unwrap()
    }

    #[test]
    fn what_a_peer_pauses_waits_and_acknowledgements_go() {
        let (mut ours, mut theirs) = (talk(1), talk(2));
        let frame = frame_of(&Build { payload: 100, ..Build::default() });
        let flow = named(&frame, parse(&frame).unwrap().layers().unwrap());
        let mut now = Time::from_ms(1);
        assert_eq!(admit(&mut ours, now, 100), Admission::Goes);
        theirs.notify(now, &What::Pause(Target::Flow(flow), millpond_core::Bytes(9)));
        let said = theirs.transmit(now).unwrap();
        // Frames for that address go elsewhere: the peer has no say in them.
        assert_eq!(ours.receive(now, &said, |address| address != flow.destination), Ok(()));
        assert_eq!((ours.reading().foreign, admit(&mut ours, now, 100)), (1, Admission::Goes));
        assert_eq!(ours.receive(now, &said, |_| true), Err(Drop::Replayed));
        now += Time::from_ms(30);
        let again = theirs.transmit(now).unwrap();
        assert_eq!(ours.receive(now, &again, |_| true), Ok(()));
        assert_eq!(admit(&mut ours, now, 100), Admission::Waits);
        assert_eq!(admit(&mut ours, now, 0), Admission::Goes, "a pure acknowledgement");
        assert_eq!((ours.reading().held, ours.slowed().collect::<Vec<_>>()), (1, vec![3]));
        // A datagram of somebody else, and one of before the peer started anew.
        let stranger = Key::new(b"something else altogether").unwrap();
        assert!(ours.next(now).is_none());
        ours.meet(now, [9; 16], stranger);
        assert!(ours.next(now).is_some(), "what a former process has said is void");
        assert_eq!(ours.receive(now, &again, |_| true), Err(Drop::Stranger));
        assert_eq!((ours.reading().held, ours.reading().forged), (0, 1));
    }

    #[test]
    fn a_pause_ends_by_itself() {
        let (mut ours, mut theirs) = (talk(1), talk(2));
        let now = Time::from_ms(1);
        theirs.notify(now, &What::Pause(Target::Peer, millpond_core::Bytes(9)));
        ours.receive(now, &theirs.transmit(now).unwrap(), |_| true).unwrap();
        assert_eq!(admit(&mut ours, now, 100), Admission::Waits);
        let due = ours.deadline().unwrap();
        assert_eq!(due, now + PeerParams::default().pause_ttl);
        ours.expire(due);
        assert!(ours.next(due).is_some() && ours.reading().held == 0);
    }

    #[test]
    fn an_address_is_the_last_peers_that_was_sent_to() {
        let mut homes = Homes::default();
        assert!(homes.is_of(7, 0) && homes.is_of(7, 1), "nothing is known of it");
        homes.note(7, 1);
        assert!(!homes.is_of(7, 0) && homes.is_of(7, 1));
        homes.note(7, 0);
        homes.note(8, 1);
        assert!(homes.is_of(7, 0) && !homes.is_of(8, 0));
    }
}
