//! One core of an application: it polls its ring when it has nothing else to do, and serves what it
//! took one packet after the other.
//!
//! A packet (or a message) costs a fixed time, a time for each byte of payload, and an
//! exponentially distributed time, all of it slowed down by a factor. Now and then the core
//! stalls: stalls begin as a Poisson process, last the same time each, and stop whatever the core
//! does.
//!
//! Invariant: a core serves one packet at a time, in the order of its ring; what stalls and
//! services last depends on the core's random streams alone.

use super::take;
use crate::packet::PacketId;
use crate::random::Stream;
use crate::units::Time;
use std::collections::VecDeque;

crate::choice! {
    /// The unit of a service.
    pub enum Per {
        /// Each packet with payload.
        Packet = "packet",
        /// Each packet that ends a message or a flow; the others cost their bytes.
        Message = "message",
    }
}

crate::params! {
    /// The costs of an application's cores, beside the traffic that they have.
    pub struct ApplicationCosts {
        /// Cores of the application at each host, each with a ring of its own; a hash spreads
        /// flows over them. Source: ours, one.
        #[within(1..=1024)]
        pub cores: u32 = 1,
        /// Packets that wait in a core's ring. Source: the authors' release, the ring of a vhost
        /// port.
        #[within(1..=1_000_000)]
        pub ring: u32 = 256,
        /// Packets that a core takes from its ring at a time. Source: the authors' applications.
        #[within(1..=4096)]
        pub batch: u32 = 32,
        /// The unit that work and mean are spent on: each packet, or each packet that ends a
        /// message or a flow.
        pub per: Per = Per::Packet,
        /// Work of a core, fixed. Source: ours, none.
        #[within(0..=1e12)]
        pub work: Time = Time::ZERO,
        /// Work for a byte of payload. Source: ours, none.
        #[within(0..=1e9)]
        pub per_byte: Time = Time::ZERO,
        /// Mean of the exponentially distributed work on top. Source: ours, none; the authors'
        /// Homa server has 5us a message.
        #[within(0..=1e12)]
        pub mean: Time = Time::ZERO,
        /// By what all work is multiplied. Source: ours, one.
        #[within(0..=1000)]
        pub slow_down: f64 = 1.0,
        /// Mean time from the end of a stall to the next one. Off: there are none.
        #[within(10_000_000..)]
        pub stall_every: Option<Time> = None,
        /// How long a stall lasts.
        #[within(0..=1e12)]
        pub stall: Time = Time::from_us(100),
    }
}

/// The mean of a Poisson process is rounded to picoseconds here, so that no float decides an order.
fn draw(random: &mut Stream, mean: Time) -> Time {
    let ps = random.exponential(mean.as_ps() as f64);
    Time::from_ps(ps.min(Time::LONGEST.as_ps() as f64) as u64)
}

/// When a core stands still.
#[derive(Clone, Debug)]
struct Stalls {
    every: Time,
    lasts: Time,
    random: Stream,
    /// The present one, or the next.
    begins: Time,
}

impl Stalls {
    fn new(every: Time, lasts: Time, mut random: Stream) -> Stalls {
        let every = every.max(Time::from_ns(1));
        let begins = draw(&mut random, every);
        Stalls { every, lasts, random, begins }
    }

    fn ends(&self) -> Time {
        self.begins.saturating_add(self.lasts)
    }

    /// When so much work ends that begins now.
    fn end_of(&mut self, now: Time, work: Time) -> Time {
        while self.ends() <= now {
            self.next();
        }
        let begins = if self.begins <= now { self.leave() } else { now };
        let mut ends = begins.saturating_add(work);
        while self.begins < ends {
            ends = ends.saturating_add(self.lasts);
            self.next();
        }
        ends
    }

    /// Past the stall that goes on.
    fn leave(&mut self) -> Time {
        let over = self.ends();
        self.next();
        over
    }

    fn next(&mut self) {
        let gap = draw(&mut self.random, self.every);
        self.begins = self.ends().saturating_add(gap).saturating_add(Time::from_ps(1));
    }
}

/// Work that an application's cores have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplicationCounts {
    /// Packets served.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// How long they were served.
    pub busy: Time,
}

/// One core of an application.
pub(super) struct ApplicationCore {
    costs: ApplicationCosts,
    /// `slow-down` in thousandths.
    slow_down: u64,
    random: Stream,
    stalls: Option<Stalls>,
    ring: VecDeque<PacketId>,
    /// Packets that were taken; the first is being served.
    batch: VecDeque<PacketId>,
    pub(super) counts: ApplicationCounts,
}

impl ApplicationCore {
    pub(super) fn new(costs: &ApplicationCosts, mut random: Stream) -> ApplicationCore {
        let stalls = costs.stall_every.map(|every| Stalls::new(every, costs.stall, random.fork()));
        ApplicationCore {
            slow_down: (costs.slow_down * 1000.0) as u64,
            costs: costs.clone(),
            random,
            stalls,
            ring: VecDeque::new(),
            batch: VecDeque::new(),
            counts: ApplicationCounts::default(),
        }
    }

    /// Packets that its ring has room for.
    pub(super) fn room(&self) -> usize {
        (self.costs.ring as usize).saturating_sub(self.ring.len())
    }

    /// A packet joins its ring, which must have room.
    pub(super) fn push(&mut self, id: PacketId) {
        self.ring.push_back(id);
    }

    /// Packets here.
    pub(super) fn kept(&self) -> usize {
        self.ring.len() + self.batch.len()
    }

    /// Whether it has something to poll and nothing else to do.
    pub(super) fn is_ready(&self) -> bool {
        self.batch.is_empty() && !self.ring.is_empty()
    }

    /// Takes a batch from its ring.
    pub(super) fn poll(&mut self) {
        take(&mut self.ring, &mut self.batch, self.costs.batch as usize);
    }

    /// The packet to be served next.
    pub(super) fn first(&self) -> Option<PacketId> {
        self.batch.front().copied()
    }

    /// Whether only ends of messages cost a service.
    pub(super) fn asks_for_ends(&self) -> bool {
        self.costs.per == Per::Message
    }

    /// Begins to serve the first of its batch, of so much payload: until when. `is_service`: it
    /// costs what a service does beside its bytes.
    pub(super) fn serve(&mut self, now: Time, payload: u16, is_service: bool) -> Time {
        let costs = &self.costs;
        let mut work = costs.per_byte.saturating_mul(u64::from(payload));
        if is_service {
            work = work.saturating_add(costs.work);
            if costs.mean > Time::ZERO {
                work = work.saturating_add(draw(&mut self.random, costs.mean));
            }
        }
        let work =
            Time::from_ps((u128::from(work.as_ps()) * u128::from(self.slow_down) / 1000) as u64);
        self.counts.packets += 1;
        self.counts.bytes += u64::from(payload);
        self.counts.busy += work;
        match &mut self.stalls {
            Some(stalls) => stalls.end_of(now, work),
            None => now.saturating_add(work),
        }
    }

    /// The first of its batch is served.
    pub(super) fn served(&mut self) -> Option<PacketId> {
        self.batch.pop_front()
    }

    /// All packets here, for a run that ends.
    #[cfg(test)]
    pub(super) fn ring_len(&self) -> usize {
        self.ring.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(costs: ApplicationCosts) -> ApplicationCore {
        ApplicationCore::new(&costs, Stream::new(1, "core"))
    }

    #[test]
    fn a_service_by_hand() {
        let costs = ApplicationCosts {
            work: Time::from_ns(500),
            per_byte: Time::from_ps(100),
            slow_down: 2.5,
            ..ApplicationCosts::default()
        };
        let mut core = core(costs);
        // (500 ns + 1,000 · 100 ps) · 2.5, and without the service (100 ns) · 2.5.
        assert_eq!(
            core.serve(Time::from_us(7), 1_000, true),
            Time::from_us(7) + Time::from_ns(1_500)
        );
        assert_eq!(core.serve(Time::ZERO, 1_000, false), Time::from_ns(250));
        assert_eq!(
            (core.counts.packets, core.counts.bytes, core.counts.busy),
            (2, 2_000, Time::from_ns(1_750))
        );
    }

    #[test]
    fn exponential_work_has_its_mean() {
        let mut core =
            core(ApplicationCosts { mean: Time::from_us(5), ..ApplicationCosts::default() });
        let total: u64 = (0..40_000).map(|_| core.serve(Time::ZERO, 0, true).as_ps()).sum();
        let mean = total / 40_000;
        assert!((4_900_000..5_100_000).contains(&mean), "{mean}");
    }

    /// Stalls of 100 us every 300 us leave three quarters of the time.
    #[test]
    fn stalls_take_their_share() {
        let costs = ApplicationCosts {
            work: Time::from_us(1),
            stall_every: Some(Time::from_us(300)),
            ..ApplicationCosts::default()
        };
        let (mut core, mut now) = (core(costs), Time::ZERO);
        for _ in 0..300_000 {
            now = core.serve(now, 0, true);
        }
        let share = 300_000.0 / now.as_us_f64();
        assert!((0.73..0.77).contains(&share), "{share}");
    }

    #[test]
    fn a_core_takes_a_batch_when_it_has_nothing_else_to_do() {
        let mut core = core(ApplicationCosts { ring: 40, ..ApplicationCosts::default() });
        (0..40).for_each(|id| core.push(id));
        assert_eq!((core.room(), core.is_ready()), (0, true));
        core.poll();
        assert_eq!(
            (core.room(), core.ring_len(), core.is_ready(), core.first()),
            (32, 8, false, Some(0))
        );
        (0..32).for_each(|id| assert_eq!(core.served(), Some(id)));
        assert!(core.is_ready());
    }
}
