//! BFC: backpressure flow control, a pause of flows hop by hop (Goyal et al., NSDI 2022 §3).
//!
//! A port has FIFOs for flows ([`DynamicQueues`](crate::switch::queue::DynamicQueues)). A packet
//! that joins one with more than the threshold counts against its flow at the port by which it
//! came, until it leaves: a bit of the packet remembers that. While a flow has a count at an
//! ingress it is stopped there; when the count is 0 it goes on.
//!
//! The threshold is what the FIFO sends while a pause takes effect: (hop-rtt + interval) · rate /
//! active FIFOs. The neighbour is notified at the next multiple of `interval`, and again when half
//! of a pause is over, so a frame that is lost costs no more than that.
//!
//! A deviation: a change is a frame of 64 bytes that names the flow. BFC's frame has a Bloom filter
//! of all that is paused, at each interval; here nobody is paused by a filter's mistake.
//!
//! Invariant: a flow is stopped at an ingress only if a packet of it, or of one with its number,
//! waits that came in there; a count is 0 when all of them have left.

use super::{IngressView, PauseCounts, PauseFrame, PauseTarget, Pauses, Signal};
use crate::context::Context;
use crate::packet::flags;
use crate::registry::{About, PathProperty};
use crate::switch::site::Auto;
use crate::units::{Rate, Time};
use std::collections::BTreeMap;

pub(super) const ABOUT: About = About {
    summary: "stops a flow at the neighbour whose packets wait behind too many, and no other flow",
    source: "BFC: Goyal et al.: Backpressure flow control, NSDI 2022",
    needs: &[PathProperty::AcyclicWaits],
    breaks: &[PathProperty::TimersRun],
    ..About::PLAIN
};

crate::params! {
    /// The keys of backpressure flow control (BFC, NSDI 2022).
    pub struct BfcParams {
        /// The round trip of a hop: from a packet that waits to the moment when what its pause
        /// holds back no longer comes. "auto" is twice the longest delay of the network's links.
        /// Source: 2us, BFC, NSDI 2022 §3, for links of 1us.
        #[within(1..)]
        pub hop_rtt: Auto<Time> = Auto::Auto,
        /// Neighbours are notified at multiples of it. "auto" is half of hop-rtt. Source: BFC, NSDI
        /// 2022 §3.
        #[within(1000..)]
        pub interval: Auto<Time> = Auto::Auto,
        /// How long a frame stops a flow; it is repeated when half of that is over. "auto" is a
        /// hundred intervals. Source: ours; the paper's frames, which are repeated at each
        /// interval, need no such time.
        #[within(1000000..)]
        pub pause_time: Auto<Time> = Auto::Auto,
    }
}

impl BfcParams {
    /// Their meaning in a network whose links have this delay at most.
    pub fn in_network(&self, delay: Time) -> BfcParams {
        let hop_rtt = self.hop_rtt.or(|| delay.saturating_mul(2).max(SHORTEST));
        let interval = self.interval.or(|| (hop_rtt / 2).max(SHORTEST));
        let pause_time = self.pause_time.or(|| interval.saturating_mul(100).max(SHORTEST_PAUSE));
        BfcParams {
            hop_rtt: Auto::Given(hop_rtt),
            interval: Auto::Given(interval),
            pause_time: Auto::Given(pause_time),
        }
    }

    /// The times in force: for links of unknown length, those of the paper.
    fn times(&self) -> Times {
        let p = self.in_network(Time::from_us(1));
        let time = |time: Auto<Time>| time.or(|| Time::ZERO);
        Times {
            hop_rtt: time(p.hop_rtt),
            interval: time(p.interval),
            pause_time: time(p.pause_time),
        }
    }

    /// How long a FIFO goes on receiving after it has become too long.
    pub fn reaction(&self) -> Time {
        self.times().reaction()
    }

    /// Whether a pause may end before it is repeated.
    pub fn is_brief(&self) -> bool {
        let times = self.times();
        times.pause_time < times.interval.saturating_mul(4)
    }
}

/// The least of what follows a network.
const SHORTEST: Time = Time::from_ns(1);
const SHORTEST_PAUSE: Time = Time::from_us(1);

/// The parameters as plain numbers.
#[derive(Clone, Copy, Debug)]
struct Times {
    hop_rtt: Time,
    interval: Time,
    pause_time: Time,
}

impl Times {
    fn reaction(&self) -> Time {
        self.hop_rtt.saturating_add(self.interval)
    }
}

/// A flow at an ingress.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Packets that count against it.
    count: u32,
    /// The neighbour was asked to stop it.
    is_notified: bool,
    /// The call that counts; zero: none does.
    call_at: Time,
    /// All calls to come: the driver is asked once for each time.
    asked: Vec<Time>,
}

impl Group {
    /// Has something to do then; what to ask the driver for.
    fn look_at(&mut self, at: Time) -> Option<Time> {
        self.call_at = at;
        let is_new = !self.asked.contains(&at);
        if is_new {
            self.asked.push(at);
        }
        is_new.then_some(at)
    }
}

/// BFC at one switch: the counted flows of each ingress port, and their pauses.
#[derive(Clone, Debug)]
pub struct Bfc {
    times: Times,
    groups: BTreeMap<(u16, u16), Group>,
    counts: PauseCounts,
}

impl Bfc {
    pub(super) fn new(params: &BfcParams) -> Bfc {
        Bfc { times: params.times(), groups: BTreeMap::new(), counts: PauseCounts::default() }
    }

    /// The bytes that a FIFO may hold, of so many that share the link.
    fn threshold(&self, rate: Rate, active: u32) -> u64 {
        rate.bytes_in(self.times.reaction()) / u64::from(active.max(1))
    }

    /// The next time at which neighbours are notified.
    fn next_interval(&self, now: Time) -> Time {
        let interval = self.times.interval.as_ps();
        Time::from_ps((now.as_ps() / interval).saturating_add(1).saturating_mul(interval))
    }

    fn key(view: &IngressView) -> Option<(u16, u16)> {
        match view.target {
            PauseTarget::Flow(vfid) => Some((view.port, vfid)),
            PauseTarget::Priority(_) => None,
        }
    }
}

impl Pauses for Bfc {
    fn on_enqueue(&mut self, context: &Context<'_, IngressView>) -> Signal {
        let view = &context.view;
        let (Some(key), Some(load)) = (Self::key(view), view.load) else {
            return Signal::default();
        };
        if load.bytes <= self.threshold(view.rate, load.active) {
            return Signal::default();
        }
        self.counts.arrivals += 1;
        let at = self.next_interval(context.now);
        let group = self.groups.entry(key).or_default();
        group.count += 1;
        let changes = group.count == 1 && !group.is_notified;
        Signal {
            call_at: if changes { group.look_at(at) } else { None },
            counts: true,
            ..Signal::default()
        }
    }

    fn on_dequeue(&mut self, context: &Context<'_, IngressView>) -> Signal {
        if !context.packet.has(flags::COUNTS) {
            return Signal::default();
        }
        let at = self.next_interval(context.now);
        let group = Self::key(&context.view).and_then(|key| self.groups.get_mut(&key));
        let Some(group) = group else { return Signal::default() };
        group.count -= 1;
        let changes = group.count == 0 && group.is_notified;
        Signal { call_at: if changes { group.look_at(at) } else { None }, ..Signal::default() }
    }

    fn on_check(&mut self, now: Time, view: &IngressView) -> Signal {
        let Some(key) = Self::key(view) else { return Signal::default() };
        let Some(group) = self.groups.get_mut(&key) else { return Signal::default() };
        group.asked.retain(|at| *at != now);
        let is_due = group.call_at == now;
        let (stops, was_notified) = (group.count > 0, group.is_notified);
        if !is_due || !stops {
            let ends = is_due && was_notified;
            group.is_notified &= !ends;
            if group.count == 0 && !group.is_notified && group.asked.is_empty() {
                self.groups.remove(&key);
            }
            self.counts.resumes += u64::from(ends);
            let frame = PauseFrame { target: view.target, duration: Time::ZERO };
            return Signal { frame: ends.then_some(frame), ..Signal::default() };
        }
        group.is_notified = true;
        let call_at = group.look_at(now.saturating_add(self.times.pause_time / 2));
        self.counts.episodes += u64::from(!was_notified);
        self.counts.frames += 1;
        let frame = PauseFrame { target: view.target, duration: self.times.pause_time };
        Signal { frame: Some(frame), call_at, ..Signal::default() }
    }

    fn counts(&self) -> PauseCounts {
        self.counts
    }
    fn stopped(&self) -> Vec<(u16, PauseTarget)> {
        let notified = self.groups.iter().filter(|(_, group)| group.is_notified);
        notified.map(|((port, vfid), _)| (*port, PauseTarget::Flow(*vfid))).collect()
    }
    fn stays(&self, _: &IngressView, counted: u32) -> bool {
        counted > 0
    }
    fn is_active(&self) -> bool {
        true
    }
    fn stops_flows(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::random::{Random, Stream};
    use crate::switch::buffer::IngressFacts;
    use crate::switch::queue::Load;

    fn view(bytes: u64, active: u32) -> IngressView {
        IngressView {
            port: 3,
            egress: 1,
            target: PauseTarget::Flow(7),
            bytes: 0,
            facts: IngressFacts::default(),
            load: Some(Load { vfid: 7, bytes, active }),
            rate: Rate::from_gbps(10),
        }
    }

    fn ask(it: &mut Bfc, us: u64, view: IngressView, leaves: bool, counts: bool) -> Signal {
        let packet = Packet { flags: if counts { flags::COUNTS } else { 0 }, ..Packet::default() };
        let random = Random::from(Stream::new(1, "bfc"));
        let context = Context {
            now: Time::from_ps(us * 1_000_000 + 1),
            packet: &packet,
            view,
            random: &random,
        };
        if leaves { it.on_dequeue(&context) } else { it.on_enqueue(&context) }
    }

    /// 3 us of 10 Gb/s are 3750 bytes; with three that share the link, 1250.
    #[test]
    fn the_threshold_is_what_is_sent_while_a_pause_takes_effect() {
        let mut it = Bfc::new(&BfcParams::default());
        for (bytes, active, counts) in
            [(3_750, 1, false), (3_751, 1, true), (1_250, 3, false), (1_251, 3, true)]
        {
            assert_eq!(
                ask(&mut it, 1, view(bytes, active), false, false).counts,
                counts,
                "{bytes} {active}"
            );
        }
    }

    /// Two packets count. The neighbour is notified at 2 us, again after 50, and let go one
    /// interval after the second has left.
    #[test]
    fn a_flow_is_stopped_while_any_packet_counts() {
        let mut it = Bfc::new(&BfcParams::default());
        let us = Time::from_us;
        let first = ask(&mut it, 1, view(9_000, 1), false, false);
        assert_eq!((first.frame, first.call_at, first.counts), (None, Some(us(2)), true));
        assert_eq!(
            ask(&mut it, 1, view(9_000, 1), false, false).call_at,
            None,
            "it is asked for already"
        );
        let notified = it.on_check(us(2), &view(9_000, 1));
        let stop = PauseFrame { target: PauseTarget::Flow(7), duration: us(100) };
        assert_eq!((notified.frame, notified.call_at), (Some(stop), Some(us(52))));
        assert_eq!(it.on_check(us(52), &view(0, 1)).frame, Some(stop), "again");
        assert_eq!(ask(&mut it, 60, view(0, 1), true, true).call_at, None, "one is left");
        assert_eq!(ask(&mut it, 60, view(0, 1), true, false).call_at, None, "of no count");
        assert_eq!(ask(&mut it, 61, view(0, 1), true, true).call_at, Some(us(62)));
        let go = it.on_check(us(62), &view(0, 1));
        assert_eq!(go.frame, Some(PauseFrame { duration: Time::ZERO, ..stop }));
        assert_eq!(it.groups.len(), 1, "a call is still to come");
        assert_eq!(it.on_check(us(102), &view(0, 1)), Signal::default(), "and is too old");
        assert!(it.groups.is_empty());
        let PauseCounts { frames, resumes, episodes, arrivals } = it.counts();
        assert_eq!((frames, resumes, episodes, arrivals), (2, 1, 1, 2));
    }

    /// The neighbour never hears of a packet that has left before it is notified.
    #[test]
    fn a_moment_is_not_told() {
        let mut it = Bfc::new(&BfcParams::default());
        ask(&mut it, 1, view(9_000, 1), false, false);
        assert_eq!(ask(&mut it, 1, view(0, 1), true, true), Signal::default());
        assert_eq!(it.on_check(Time::from_us(2), &view(0, 1)), Signal::default());
        assert!(it.groups.is_empty() && it.counts().frames == 0);
    }
}
