//! The times in which a link is down, or loses packets.
//!
//! A packet that is lost still takes its time on the link: the sender marks it, and it ends where
//! it would have arrived. So a port's schedule does not depend on what becomes of its packets.
//!
//! Invariant: a packet that left before a link went down and arrived before, or that starts when
//! the link is up again, gets through.

use crate::counters::DropReason;
use crate::packet::flags;
use crate::random::Stream;
use crate::{Color, Packet, Time};

/// A time in which a link loses packets.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub from: Time,
    pub until: Time,
    /// Share of the packets that are lost.
    pub loss: f64,
    /// Whether green packets get through.
    pub spares_green: bool,
}

/// All of one direction of a link.
#[derive(Clone, Debug)]
pub struct Outages {
    /// In the order of their beginnings.
    outages: Vec<Outage>,
    /// Whether a packet that may be lost is.
    random: Stream,
}

impl Outages {
    /// These outages, with a stream of the link's own.
    pub fn new(outages: Vec<Outage>, random: Stream) -> Outages {
        Outages { outages, random }
    }

    /// Whether the link never fails.
    pub fn is_empty(&self) -> bool {
        self.outages.is_empty()
    }

    /// The reason why what leaves from `starts` on and arrives in full at `arrives` is lost, if it
    /// is: the link is down at any time between.
    pub fn lose(&mut self, starts: Time, arrives: Time, color: Color) -> Option<DropReason> {
        let random = &mut self.random;
        let mut meets = self.outages.iter().filter(|it| starts < it.until && arrives > it.from);
        let by = meets.find(|it| {
            !(it.spares_green && color == Color::Green)
                && (it.loss >= 1.0 || random.unit() < it.loss)
        })?;
        Some(if by.loss >= 1.0 && !by.spares_green {
            DropReason::LinkDown
        } else {
            DropReason::Injected
        })
    }

    /// Decides of a packet, and marks it if it is lost; whether it is.
    pub fn strike(&mut self, packet: &mut Packet, starts: Time, arrives: Time) -> bool {
        let reason = self.lose(starts, arrives, packet.color());
        packet.flags |= match reason {
            None => 0,
            Some(DropReason::Injected) => flags::LOST | flags::INJECTED,
            Some(_) => flags::LOST,
        };
        reason.is_some()
    }
}

/// The reason why a packet that would arrive now was lost on its link, if it was.
#[inline]
pub fn lost(packet: &Packet) -> Option<DropReason> {
    if !packet.has(flags::LOST) {
        return None;
    }
    let injected = packet.has(flags::INJECTED);
    Some(if injected { DropReason::Injected } else { DropReason::LinkDown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, Importance, TrafficClass};

    fn outages(loss: f64, spares_green: bool) -> Outages {
        let (from, until) = (Time::from_us(10), Time::from_us(20));
        let one = Outage { from, until, loss, spares_green };
        Outages::new(vec![one], Stream::new(1, "link/0"))
    }

    #[test]
    fn what_touches_the_outage_is_lost() {
        let mut down = outages(1.0, false);
        let mut is_lost =
            |from, to| down.lose(Time::from_us(from), Time::from_us(to), Color::Green).is_some();
        assert_eq!([is_lost(8, 10), is_lost(20, 22)], [false, false]);
        assert_eq!([is_lost(8, 11), is_lost(12, 14), is_lost(19, 22), is_lost(8, 22)], [true; 4]);
    }

    #[test]
    fn a_share_is_lost_and_green_may_be_spared() {
        let (from, to) = (Time::from_us(12), Time::from_us(13));
        let mut some = outages(0.25, true);
        let lost = (0..10_000).filter(|_| some.lose(from, to, Color::Red).is_some()).count();
        assert!((2_300..2_700).contains(&lost), "{lost} of 10000 at 25 %");
        assert_eq!(some.lose(from, to, Color::Green), None);
    }

    #[test]
    fn a_mark_says_the_reason() {
        for (mut of, reason) in [
            (outages(1.0, false), DropReason::LinkDown),
            (outages(1.0, true), DropReason::Injected),
        ] {
            let class = TrafficClass::new(0, Importance::Unimportant, Ecn::NotEct);
            let mut packet = Packet { class, ..Packet::default() };
            assert_eq!(lost(&packet), None);
            assert!(of.strike(&mut packet, Time::from_us(12), Time::from_us(13)));
            assert_eq!(lost(&packet), Some(reason));
        }
    }
}
