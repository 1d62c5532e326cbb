//! How late a host is with a packet: what its stack, NIC and interrupts take, which is never twice
//! the same (`host.jitter`). One [`Jitter`] for what it sends and one for what it receives.
//!
//! Without it, packets of several senders come to a queue at one instant again and again, and whose
//! packet finds the last place is decided once for the whole run (Floyd and Jacobson: On traffic
//! phase effects in packet-switched gateways, Internetworking: Research and Experience 3, 1992).
//!
//! Invariant: packets stay in order, none is early, and none later than its own delay but for the
//! packet before it.

use crate::Time;
use crate::random::Stream;

/// The delays of one host's packets, one way.
#[derive(Clone, Debug)]
pub struct Jitter {
    /// They lie below this, evenly; more than zero.
    size: u64,
    random: Stream,
    /// When the last packet was there.
    last: Time,
}

impl Jitter {
    /// Delays below `size`; `None` where there is none to draw.
    pub fn new(size: Time, random: Stream) -> Option<Jitter> {
        (size > Time::ZERO).then_some(Jitter { size: size.as_ps(), random, last: Time::ZERO })
    }

    /// When the next packet, which without it would arrive at `arrives`, is there.
    #[inline]
    pub fn delay(&mut self, arrives: Time) -> Time {
        let drawn = Time::from_ps(self.random.below(self.size));
        self.last = self.last.max(arrives + drawn);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_uniform_and_keep_the_order() {
        let size = Time::from_ns(1_200);
        let mut jitter = Jitter::new(size, Stream::new(1, "jitter/test")).expect("there is some");
        let (mut sum, mut least, mut most) = (0, u64::MAX, 0);
        for packet in 0..50_000u64 {
            // Full packets, back to back: their order costs none of them anything.
            let arrives = Time::from_ns(1_200 * packet);
            let drawn = (jitter.delay(arrives) - arrives).as_ps();
            (sum, least, most) = (sum + drawn, least.min(drawn), most.max(drawn));
        }
        assert!((597_000..603_000).contains(&(sum / 50_000)), "{}", sum / 50_000);
        assert!(least < 200 && (1_199_800..1_200_000).contains(&most), "{least} {most}");

        let mut last = Time::ZERO;
        let mut held = 0;
        for packet in 0..10_000u64 {
            let arrives = Time::from_ms(100) + Time::from_ns(32 * packet);
            let looked_at = jitter.delay(arrives);
            assert!(looked_at >= last && looked_at >= arrives && looked_at < arrives + size);
            held += u32::from(looked_at == last);
            last = looked_at;
        }
        assert!(held > 1_000, "small packets wait for those before them: {held}");
    }

    #[test]
    fn nothing_to_draw_from_is_no_jitter() {
        assert!(Jitter::new(Time::ZERO, Stream::new(1, "jitter/test")).is_none());
    }
}
