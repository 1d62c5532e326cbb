//! The authors' two overlays, as their release has them, to compare with.
//!
//! *First generation*: a queue at its high mark asks the flow to pause for as long as the queue
//! takes, at its measured rate, to fall to its low mark, and names the rate to keep then. There is
//! no RESUME and no acknowledgement; the next pause is sent when the last has run out.
//!
//! *Second generation*: a queue above 70 % reports once that it is overloaded, below 50 % once that
//! it no longer is, to the sender of the packet at hand. Nothing is repeated and nothing expires: a
//! message that is lost leaves its sender running, or paused for ever.
//!
//! The differences: the release's state machine ignores the end of an overload where both sides are
//! overloaded, and a message that finds the ring full is dropped unseen. The first is a defect and
//! not modelled; the second is the driver's.

use crate::units::Time;

/// A first-generation queue that sends pauses. Lengths are packets.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    high: u64,
    low: u64,
    samples: [u64; 4],
    at: usize,
    until: Time,
}

/// A message of the first generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedPause {
    pub duration: Time,
    pub packets_per_second: u64,
}

impl Timed {
    /// How often [`Timed::sample`] is called.
    pub const SAMPLE: Time = Time::from_ms(1);
    /// The longest pause that a queue asks for.
    pub const LONGEST: Time = Time::from_ms(5);
    /// The lowest rate that a pause names.
    pub const SLOWEST: u64 = 32;

    /// With a ring of this capacity: 7/8 of it is high, 1/8 low.
    pub fn new(capacity: u64) -> Timed {
        Timed {
            high: capacity * 7 / 8,
            low: capacity / 8,
            samples: [0; 4],
            at: 0,
            until: Time::ZERO,
        }
    }
    /// Packets that left in the last [`Timed::SAMPLE`].
    pub fn sample(&mut self, left: u64) {
        self.samples[self.at] = left;
        self.at = (self.at + 1) % self.samples.len();
    }
    /// Packets a second, over the last four samples.
    pub fn rate(&self) -> u64 {
        self.samples.iter().sum::<u64>() * 250
    }
    /// How long a queue of this length is to pause.
    pub fn duration(&self, len: u64) -> Time {
        match (len.checked_sub(self.low), self.rate()) {
            (None, _) => Time::from_us(1),
            (Some(_), 0) => Time::from_ms(1),
            (Some(over), rate) => (Time::from_s(1).saturating_mul(over) / rate).min(Timed::LONGEST),
        }
    }
    /// A packet has joined, and the queue has this length.
    pub fn joined(&mut self, now: Time, len: u64) -> Option<TimedPause> {
        if len < self.high || now < self.until {
            return None;
        }
        let duration = self.duration(len);
        self.until = now + duration;
        Some(TimedPause { duration, packets_per_second: self.rate().max(Timed::SLOWEST) })
    }
}

/// A first-generation queue that receives pauses.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimedSource {
    next: Time,
    gap: Time,
}

impl TimedSource {
    /// Takes a pause: packets wait for its duration, and then leave at its rate.
    pub fn on_record(&mut self, now: Time, pause: TimedPause) {
        self.next = self.next.max(now + pause.duration);
        self.gap = Time::from_s(1) / pause.packets_per_second.max(1);
    }
    /// When the next packet may leave.
    pub fn next(&self) -> Time {
        self.next
    }
    /// So many packets leave at once.
    pub fn leaves(&mut self, now: Time, packets: u64) {
        self.next = now.saturating_add(self.gap.saturating_mul(packets));
    }
}

/// A second-generation queue that reports overloads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Episodes {
    is_overloaded: bool,
}

impl Episodes {
    /// The report, to the sender of the packet at hand, of a queue that has `len` of `capacity`
    /// packets: `true`, that it is overloaded; `false`, that it no longer is.
    pub fn observe(&mut self, len: u64, capacity: u64) -> Option<bool> {
        let is_news =
            if self.is_overloaded { len * 10 < capacity * 5 } else { len * 10 > capacity * 7 };
        self.is_overloaded ^= is_news;
        is_news.then_some(self.is_overloaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of 4096 and 1,000 packets a second: from 4,096 to 512 takes 3.584 s, capped.
    #[test]
    fn durations_by_hand() {
        let mut timed = Timed::new(4_096);
        assert_eq!(
            (timed.duration(4_096), timed.duration(511)),
            (Time::from_ms(1), Time::from_us(1))
        );
        timed.sample(4);
        assert_eq!((timed.rate(), timed.duration(4_096)), (1_000, Time::from_ms(5)));
        // A million a second: 3,584 us; 1,000 packets over the low mark take 1 ms.
        (0..4).for_each(|_| timed.sample(1_000));
        assert_eq!(
            (timed.duration(4_096), timed.duration(1_512)),
            (Time::from_us(3_584), Time::from_ms(1))
        );
    }

    #[test]
    fn the_first_generation_waits_for_the_end_of_its_pause() {
        let mut timed = Timed::new(64);
        assert_eq!(timed.joined(Time::ZERO, 55), None);
        let pause = TimedPause { duration: Time::from_ms(1), packets_per_second: 32 };
        assert_eq!(timed.joined(Time::ZERO, 56), Some(pause));
        assert_eq!(timed.joined(Time::from_us(999), 64), None);
        assert_eq!(timed.joined(Time::from_ms(1), 64), Some(pause));
        let mut source = TimedSource::default();
        source.on_record(Time::ZERO, pause);
        assert_eq!(source.next(), Time::from_ms(1));
        source.leaves(Time::from_ms(1), 1);
        assert_eq!(source.next(), Time::from_ms(1) + Time::from_us(31_250));
    }

    #[test]
    fn the_second_generation_speaks_once_an_episode() {
        let mut queue = Episodes::default();
        let said: Vec<_> =
            [716, 717, 1_000, 512, 511, 100, 717].map(|len| queue.observe(len, 1_024)).into();
        assert_eq!(said, [None, Some(true), None, None, Some(false), None, Some(true)]);
    }
}
