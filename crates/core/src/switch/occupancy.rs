//! Occupancy: *how fresh are the queue lengths that the switch decides by?*
//!
//! A simulated switch can read every queue's length at any instant. A programmable chip cannot: its
//! ingress learns lengths from packets that recirculate, one a port, so it decides on a copy that
//! is as old as such a loop takes (Canary, on Tofino). `refreshed` keeps that copy: port by port it
//! is renewed every period, each port at its own phase. Whatever decides (path choice, admission,
//! deflection) reads the copy; a packet that does not fit the real queue is still dropped, as
//! `overflow-stale`.
//!
//! Nothing is scheduled: the copy as of its last renewal is worked out when somebody reads it, or
//! just before the queue changes.
//!
//! Invariant: what is known at `now` is the length just before the last renewal that is not after
//! `now`.

use super::{Ports, QueueView};
use crate::random::Stream;
use crate::registry::About;
use crate::units::Time;

const EXACT: About = About {
    summary: "decisions read the queue as it is",
    source: "the usual model of simulations",
    ..About::PLAIN
};
const REFRESHED: About = About {
    summary: "decisions read a copy of the queue's length, renewed every period",
    source: "Canary: recirculating packets carry queue lengths from egress to ingress",
    ..About::PLAIN
};

crate::choice! {
    /// The events that write the length that a renewal copies.
    pub enum LengthWrittenAt {
        /// Arrivals and departures: a renewal finds the true length.
        Both = "both",
        /// Departures alone, as a chip's egress does: a packet writes the length that it leaves,
        /// itself included, so the copy of a queue that has run empty stays above zero.
        Departures = "departures",
    }
}

crate::params! {
    /// An exact view has no keys.
    pub struct ExactParams {}
}
crate::params! {
    /// A copy of each queue's length.
    pub struct RefreshedParams {
        /// From one renewal of a port's copy to the next. Source: the artifact's study has 0.1 to
        /// 500us.
        #[within(1..)]
        pub period: Time = Time::from_us(1),
        /// The events that write the length that is copied. Source: "departures" is what Canary's
        /// Tofino program does.
        pub written_at: LengthWrittenAt = LengthWrittenAt::Both,
    }
}

crate::registry! {
    /// How fresh the switch's view of its queues is, with its parameters.
    place: "switch.occupancy",
    question: "how fresh is what the switch knows of its queues?",
    default: Exact,
    params: OccupancyParams, policy: Occupancy {
        /// Makes room for so many ports, each with a phase of its own.
        fn install(&mut self, ports: usize, random: &mut Stream) -> ();
        /// Brings what is known of `port` up to `now`. Before every read, and before the queue
        /// changes.
        fn refresh(&mut self, now: Time, port: u16, ports: &mut Ports) -> ();
        /// The known state of `port`'s queue, if that is not its present one.
        fn of(&self, port: u16) -> Option<QueueView>;
        /// A packet has left the queue of `port`, which held `view` with it.
        fn departed(&mut self, port: u16, view: QueueView) -> ();
        /// Whether ports must report departures.
        fn watches_departures(&self) -> bool;
    };
    "exact" => Exact { ExactParams, Exact; EXACT },
    "refreshed" => Refreshed { RefreshedParams, Refreshed; REFRESHED },
}

impl Occupancy {
    /// The known state of a port's queue, whose present one is `live`.
    #[inline]
    pub(super) fn known(&self, port: u16, live: QueueView) -> QueueView {
        self.of(port).unwrap_or(live)
    }
}

/// Gives policies the queue as it is now.
#[derive(Clone, Debug)]
pub struct Exact;

impl Exact {
    fn new(_: &ExactParams) -> Exact {
        Exact
    }
    fn install(&mut self, _: usize, _: &mut Stream) {}
    #[inline]
    fn refresh(&mut self, _: Time, _: u16, _: &mut Ports) {}
    #[inline]
    fn of(&self, _: u16) -> Option<QueueView> {
        None
    }
    #[inline]
    fn departed(&mut self, _: u16, _: QueueView) {}
    fn watches_departures(&self) -> bool {
        false
    }
}

/// The known state of one port.
#[derive(Clone, Copy, Debug, Default)]
struct Register {
    /// The copy.
    known: QueueView,
    /// The length that departures have written.
    written: QueueView,
    /// The next renewal.
    due: Time,
}

/// A copy of every queue.
#[derive(Clone, Debug)]
pub struct Refreshed {
    period: Time,
    written_at: LengthWrittenAt,
    registers: Vec<Register>,
}

impl Refreshed {
    fn new(params: &RefreshedParams) -> Refreshed {
        let period = params.period.max(Time::from_ps(1));
        Refreshed { period, written_at: params.written_at, registers: Vec::new() }
    }

    fn install(&mut self, ports: usize, random: &mut Stream) {
        let period = self.period.as_ps();
        let register =
            |_| Register { due: Time::from_ps(random.below(period)), ..Register::default() };
        self.registers = (0..ports).map(register).collect();
    }

    #[inline]
    fn refresh(&mut self, now: Time, port: u16, ports: &mut Ports) {
        let register = &mut self.registers[port as usize];
        if now < register.due {
            return;
        }
        let renewed_at = now.as_ps() - (now - register.due).as_ps() % self.period.as_ps();
        register.due = Time::from_ps(renewed_at).saturating_add(self.period);
        register.known = match self.written_at {
            LengthWrittenAt::Departures => register.written,
            LengthWrittenAt::Both => match ports {
                Ports::Fast(ports) => {
                    ports[port as usize].view_at(Time::from_ps(renewed_at.saturating_sub(1)))
                }
                // Unchanged since the last change, which was before the renewal.
                Ports::General(ports) => ports[port as usize].view(),
            },
        };
    }

    #[inline]
    fn of(&self, port: u16) -> Option<QueueView> {
        Some(self.registers[port as usize].known)
    }

    #[inline]
    fn departed(&mut self, port: u16, view: QueueView) {
        self.registers[port as usize].written = view;
    }

    fn watches_departures(&self) -> bool {
        self.written_at == LengthWrittenAt::Departures
    }
}
