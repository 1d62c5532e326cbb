//! An event: what is due ([`Due`]), as the key that orders it at equal times ([`Key`]).
//!
//! A key is 64 bits: the class, then the source (a link, an out-link or a host, by its number),
//! then a sequence (a flow, a core, a target). The layout of an event in it is private to this
//! file.
//!
//! Invariant: a key gives back the event that it was made of.

use millpond_core::Time;
use millpond_core::host::Call;
use millpond_core::packet::{FlowId, NONE};
use millpond_core::switch::pause::PauseTarget;

/// The order at equal times: class, then source, then sequence. Arrivals may draw lots between
/// class and source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

/// Classes in their order at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// A switch learns that a link is down or up, or routes change. Before anything chooses a port.
    Link = 0,
    /// A port's link is free. Before arrivals, so that a packet that arrives at this instant finds
    /// its place.
    PortReady = 1,
    /// A packet's last bit has arrived. Before timers, so that an ACK at the deadline still counts.
    Arrival = 2,
    /// A pause frame has arrived.
    Pause = 3,
    /// Flows start.
    Start = 4,
    /// A NIC has room again for a flow.
    NicRoom = 5,
    /// A sender's retransmission timer.
    SenderTimer = 6,
    /// A receiver's delayed acknowledgement.
    ReceiverTimer = 7,
    /// A receiver's ordering buffer has held a packet long enough. After arrivals, so that what
    /// fills the gap at this instant still does.
    OrderingTimer = 8,
    /// A probe is due.
    Probe = 9,
    /// A server has thought, and answers.
    Answer = 10,
    /// A segment that a limit has held back is due.
    Release = 11,
    /// A switch looks again at what it has paused.
    PauseCheck = 12,
    /// A host polls its receive queue. After arrivals, so that what arrives at this instant is in
    /// it.
    Poll = 13,
    /// A rank of a job has computed, or has paused long enough.
    Rank = 14,
}

impl Key {
    /// The key of an event.
    #[inline]
    pub fn new(class: Class, source: u32, sequence: u32) -> Key {
        debug_assert!(source < 1 << 28);
        Key((class as u64) << 60 | (source as u64) << 32 | sequence as u64)
    }
    /// Whether it is of a class.
    #[inline]
    pub fn is(self, class: Class) -> bool {
        self.0 >> 60 == class as u64
    }
    /// Its class.
    #[inline]
    pub fn class(self) -> Class {
        match self.0 >> 60 {
            0 => Class::Link,
            1 => Class::PortReady,
            2 => Class::Arrival,
            3 => Class::Pause,
            4 => Class::Start,
            5 => Class::NicRoom,
            6 => Class::SenderTimer,
            7 => Class::ReceiverTimer,
            8 => Class::OrderingTimer,
            9 => Class::Probe,
            10 => Class::Answer,
            11 => Class::Release,
            12 => Class::PauseCheck,
            13 => Class::Poll,
            _ => Class::Rank,
        }
    }
    /// Its source.
    #[inline]
    pub fn source(self) -> u32 {
        (self.0 >> 32) as u32 & 0x0FFF_FFFF
    }
    /// Its sequence.
    #[inline]
    pub fn sequence(self) -> u32 {
        self.0 as u32
    }
}

/// An event that is due. Numbers of links, out-links and hosts are those of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The link of an out-link fails, or comes back.
    Link {
        /// The out-link.
        out: u32,
        /// Whether it fails.
        is_down: bool,
    },
    /// Routes change to those of the epoch of this number.
    Routes(u32),
    /// An out-link is free.
    PortReady(u32),
    /// The last bit of a packet has arrived on an inbound link.
    Arrival {
        /// The link.
        inbound: u32,
        /// The packet's number there, by which it draws lots.
        number: u32,
    },
    /// A pause frame has arrived on an inbound link.
    Pause(u32),
    /// The port of an out-link's other end may have to pause its target again, or let it go on.
    PauseCheck {
        /// The out-link.
        out: u32,
        /// Whom the pause stops.
        target: PauseTarget,
    },
    /// The cell's next open-loop flow starts.
    Start,
    /// The closed loop of this number starts.
    StartLoop(u32),
    /// A flow starts that waited for others.
    StartWaited(FlowId),
    /// An event of a host.
    Host(u32, HostEvent),
}

/// An event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A stage of the host node asked for it. Its [`Call::Ready`] is [`Due::PortReady`].
    Call(Call),
    /// The NIC has room for messages.
    RoomForMessages,
    /// The NIC asks its queue pairs for a packet.
    Pull,
    /// The host gives credit.
    Credit,
    /// The retransmission timer of a flow's sender.
    SenderTimer(FlowId),
    /// The delayed acknowledgement of a flow's receiver.
    ReceiverTimer(FlowId),
    /// A flow's probe is due.
    Probe(FlowId),
    /// A server answers the request that this flow is.
    Answer(FlowId),
    /// A time has come for which the rank of this number, among those of all jobs, has asked.
    Rank(u32),
}

/// Of [`Class::Link`], the first sequence of an epoch's routes.
const ROUTES: u32 = 2;
/// Of [`Class::Start`], the source of a flow that waited for others.
const WAITED: u32 = 1;
/// Of [`Class::NicRoom`], in the place of a flow: the host's messages, and its queue pairs.
const MESSAGES: u32 = NONE;
const PULL: u32 = NONE - 1;
/// Of [`Class::Poll`], its last sequence: the host's credit.
const CREDIT: u32 = NONE;
/// Of [`Class::Poll`], events of one ring or core; a core's follow those of the core before.
const POLLS: u32 = 6;

impl From<Due> for Key {
    #[inline(always)]
    fn from(due: Due) -> Key {
        match due {
            Due::Link { out, is_down } => Key::new(Class::Link, out, is_down.into()),
            Due::Routes(epoch) => Key::new(Class::Link, 0, ROUTES + epoch),
            Due::PortReady(out) => Key::new(Class::PortReady, out, 0),
            Due::Arrival { inbound, number } => Key::new(Class::Arrival, inbound, number),
            Due::Pause(inbound) => Key::new(Class::Pause, inbound, 0),
            Due::PauseCheck { out, target } => Key::new(Class::PauseCheck, out, target.number()),
            Due::Start => Key::new(Class::Start, 0, 0),
            Due::StartLoop(number) => Key::new(Class::Start, 0, 1 + number),
            Due::StartWaited(flow) => Key::new(Class::Start, WAITED, flow),
            Due::Host(host, event) => event.key(host),
        }
    }
}

impl HostEvent {
    #[inline(always)]
    fn key(self, host: u32) -> Key {
        let poll =
            |kind: u32, number: u16| Key::new(Class::Poll, host, POLLS * u32::from(number) + kind);
        match self {
            HostEvent::RoomForMessages => Key::new(Class::NicRoom, host, MESSAGES),
            HostEvent::Pull => Key::new(Class::NicRoom, host, PULL),
            HostEvent::Credit => Key::new(Class::Poll, host, CREDIT),
            HostEvent::SenderTimer(flow) => Key::new(Class::SenderTimer, host, flow),
            HostEvent::ReceiverTimer(flow) => Key::new(Class::ReceiverTimer, host, flow),
            HostEvent::Probe(flow) => Key::new(Class::Probe, host, flow),
            HostEvent::Answer(flow) => Key::new(Class::Answer, host, flow),
            HostEvent::Rank(number) => Key::new(Class::Rank, host, number),
            HostEvent::Call(call) => match call {
                Call::Ready => unreachable!("an out-link's event"),
                Call::Room(flow) => Key::new(Class::NicRoom, host, flow),
                Call::Order(flow) => Key::new(Class::OrderingTimer, host, flow),
                Call::Release(segment) => Key::new(Class::Release, host, segment),
                Call::Poll(ring) => poll(0, ring),
                Call::Held(ring) => poll(1, ring),
                Call::Worked(core) => poll(2, core),
                Call::Switch(core) => poll(3, core),
                Call::Application(core) => poll(4, core),
                Call::Overlay => poll(5, 0),
            },
        }
    }
}

impl Key {
    /// The event that the key was made of.
    #[inline]
    pub fn due(self) -> Due {
        let (source, sequence) = (self.source(), self.sequence());
        let of_host = |event| Due::Host(source, event);
        match self.class() {
            Class::Link if sequence >= ROUTES => Due::Routes(sequence - ROUTES),
            Class::Link => Due::Link { out: source, is_down: sequence != 0 },
            Class::PortReady => Due::PortReady(source),
            Class::Arrival => Due::Arrival { inbound: source, number: sequence },
            Class::Pause => Due::Pause(source),
            Class::PauseCheck => {
                Due::PauseCheck { out: source, target: PauseTarget::of_number(sequence) }
            }
            Class::Start if source == WAITED => Due::StartWaited(sequence),
            Class::Start => sequence.checked_sub(1).map_or(Due::Start, Due::StartLoop),
            Class::NicRoom => of_host(match sequence {
                MESSAGES => HostEvent::RoomForMessages,
                PULL => HostEvent::Pull,
                flow => HostEvent::Call(Call::Room(flow)),
            }),
            Class::SenderTimer => of_host(HostEvent::SenderTimer(sequence)),
            Class::ReceiverTimer => of_host(HostEvent::ReceiverTimer(sequence)),
            Class::OrderingTimer => of_host(HostEvent::Call(Call::Order(sequence))),
            Class::Probe => of_host(HostEvent::Probe(sequence)),
            Class::Answer => of_host(HostEvent::Answer(sequence)),
            Class::Rank => of_host(HostEvent::Rank(sequence)),
            Class::Release => of_host(HostEvent::Call(Call::Release(sequence))),
            Class::Poll if sequence == CREDIT => of_host(HostEvent::Credit),
            Class::Poll => {
                let number = (sequence / POLLS) as u16;
                of_host(HostEvent::Call(match sequence % POLLS {
                    0 => Call::Poll(number),
                    1 => Call::Held(number),
                    2 => Call::Worked(number),
                    3 => Call::Switch(number),
                    4 => Call::Application(number),
                    _ => Call::Overlay,
                }))
            }
        }
    }
}

/// A time and a key.
pub type Event = (Time, Key);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_keep_their_parts_and_order() {
        let key = Key::new(Class::SenderTimer, 12_345, 678);
        assert_eq!((key.class(), key.source(), key.sequence()), (Class::SenderTimer, 12_345, 678));
        assert!(Key::new(Class::PortReady, 9, 9) < Key::new(Class::Arrival, 0, 0));
        assert!(Key::new(Class::Arrival, 1, 0) < Key::new(Class::Arrival, 2, 0));
    }

    fn call() -> impl Strategy<Value = Call> {
        let flow = 0..PULL;
        prop_oneof![
            flow.clone().prop_map(Call::Room),
            flow.prop_map(Call::Order),
            any::<u32>().prop_map(Call::Release),
            any::<u16>().prop_map(Call::Poll),
            any::<u16>().prop_map(Call::Held),
            any::<u16>().prop_map(Call::Worked),
            any::<u16>().prop_map(Call::Switch),
            any::<u16>().prop_map(Call::Application),
            Just(Call::Overlay),
        ]
    }

    fn host_event() -> impl Strategy<Value = HostEvent> {
        let flow = 0..PULL;
        prop_oneof![
            call().prop_map(HostEvent::Call),
            Just(HostEvent::RoomForMessages),
            Just(HostEvent::Pull),
            Just(HostEvent::Credit),
            flow.clone().prop_map(HostEvent::SenderTimer),
            flow.clone().prop_map(HostEvent::ReceiverTimer),
            flow.clone().prop_map(HostEvent::Probe),
            flow.prop_map(HostEvent::Answer),
            any::<u32>().prop_map(HostEvent::Rank),
        ]
    }

    fn due() -> impl Strategy<Value = Due> {
        let source = 0u32..1 << 28;
        let target = prop_oneof![
            (0u8..8).prop_map(PauseTarget::Priority),
            any::<u16>().prop_map(PauseTarget::Flow)
        ];
        prop_oneof![
            (source.clone(), any::<bool>()).prop_map(|(out, is_down)| Due::Link { out, is_down }),
            (0..u32::MAX - ROUTES).prop_map(Due::Routes),
            source.clone().prop_map(Due::PortReady),
            (source.clone(), any::<u32>())
                .prop_map(|(inbound, number)| Due::Arrival { inbound, number }),
            source.clone().prop_map(Due::Pause),
            (source.clone(), target).prop_map(|(out, target)| Due::PauseCheck { out, target }),
            Just(Due::Start),
            (0..u32::MAX).prop_map(Due::StartLoop),
            any::<u32>().prop_map(Due::StartWaited),
            (source, host_event()).prop_map(|(host, event)| Due::Host(host, event)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn a_key_gives_back_its_event(due in due()) {
            prop_assert_eq!(Key::from(due).due(), due);
        }
    }
}
