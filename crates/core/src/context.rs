//! The inputs of a decision, the same at every place of the packet path: the time, the packet, a
//! view of the state that the place lets it look at, and random numbers.
//!
//! Invariant: a decision that changes nothing (a *test*) draws nothing either, so that asking twice
//! gives one answer.

use crate::packet::Packet;
use crate::random::Random;
use crate::units::Time;

/// The inputs of a decision. `V` is the place's view: a queue's length, the ports to choose from,
/// what an ingress holds.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a, V> {
    pub now: Time,
    /// The packet that is decided of.
    pub packet: &'a Packet,
    pub view: V,
    pub random: &'a Random,
}

impl<'a, V> Context<'a, V> {
    /// The same packet at the same time, looking at something else.
    #[inline]
    pub fn of<W>(&self, view: W) -> Context<'a, W> {
        Context { now: self.now, packet: self.packet, view, random: self.random }
    }
}
