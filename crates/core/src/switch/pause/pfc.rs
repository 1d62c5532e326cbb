//! PFC: priority flow control (IEEE 802.1Qbb), with dynamic thresholds as shared-memory switches
//! have them.
//!
//! A priority of an ingress port is stopped when what it holds beyond its minimum exceeds α times
//! what the ingress pool has free, or when it has bytes in headroom; it goes on when neither is so
//! by a little less. The rule is that of TLT's simulations (Lim et al., EuroSys 2021; the
//! thresholds of the HPCC and DCQCN simulators). Those send a frame at each arrival of a priority
//! that is to be stopped, stopped already or not; here one frame stops it, and it is repeated when
//! half of its time is over. Their way is `frames = "each-arrival"`; both are counted either way.
//! All that they count is `"each-egress"`: there the port that a packet is bound for looks at its
//! ingress (`QbbNetDevice::CheckQueueFull`), after the packet was taken or refused, and keeps a
//! clock of its own for the next look.
//!
//! A priority that is stopped is looked at again without traffic, before the pause runs out, so
//! that a pause lasts as long as what caused it. Such looks need frames of one length: a
//! neighbour's pauses all last as long.
//!
//! Invariant: a priority that holds no more than its minimum is never stopped, and a frame that
//! resumes follows one that stops.

use super::{
    IngressView, PauseCounts, PauseFrame, PauseTarget, Pauses, Signal, WatchdogAction,
    WatchdogTerms,
};
use crate::context::Context;
use crate::packet::PRIORITIES;
use crate::registry::{About, PathProperty, Reason};
use crate::units::{Bytes, Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "stops a priority of the neighbour that fills the buffer, so that nothing has to be \
              dropped",
    source: "IEEE 802.1Qbb; dynamic thresholds as in Lim et al., EuroSys 2021",
    needs: &[PathProperty::AcyclicWaits],
    breaks: &[PathProperty::TimersRun, PathProperty::ControlNeverWaits],
    answers: Some(Reason::SwitchDrops),
    ..About::PLAIN
};

crate::choice! {
    /// When frames are sent that stop a priority.
    pub enum PfcFrames {
        /// When it is to be stopped, and again before the pause runs out.
        Once = "once",
        /// At each of its arrivals while it is to be stopped, too.
        EachArrival = "each-arrival",
        /// The same at arrivals that are refused; and each egress port that they come for looks
        /// again by itself.
        EachEgress = "each-egress",
    }
}

crate::params! {
    /// The keys of priority flow control (IEEE 802.1Qbb).
    pub struct PfcParams {
        /// A priority of an ingress port is stopped when it holds more, beyond its minimum, than
        /// alpha times the free bytes of the ingress pool. Source: 1/16, TLT's simulations.
        pub alpha: f64 = 0.0625,
        /// The alpha is for ports up to this rate. It doubles for every doubling of a port's rate
        /// beyond it, to one at most, so that a faster port may hold more. Off means that all ports
        /// have the same. Source: off, TLT's simulations; HPCC's released simulator has it, with
        /// 1/8 and the rate of the hosts' links.
        #[within(1..)]
        pub per: Option<Rate> = None,
        /// The free bytes count for so much less when it is decided whether to go on. Source: 16,
        /// TLT's simulations; next to no hysteresis.
        pub resume_offset: Bytes = Bytes(16),
        /// How long a frame stops a priority; off means the longest that it can carry, 65,535 times
        /// 512 bits at the link's rate. Source: the longest is usual (TLT's simulations of RDMA);
        /// those of TCP have 5 us.
        #[within(1..)]
        pub pause_time: Option<Time> = None,
        /// From a frame to the next look at what it stopped; off means half of the pause. Source: 2
        /// us in TLT's simulations of TCP.
        #[within(1..)]
        pub recheck: Option<Time> = None,
        /// Whether a frame of time zero ends a pause as soon as it can end. Otherwise it is left to
        /// run out. Source: true is what switches do.
        pub resume: bool = true,
        /// When frames are sent: "once", or at "each-arrival" as well, or at refused ones, too, by
        /// "each-egress" port. Source: once is what the standard is for; the released simulators of
        /// TLT send one at each arrival.
        pub frames: PfcFrames = PfcFrames::Once,
        /// The rate at which each priority of a switch's port is served although it is paused.
        /// Source: off is the standard; the egress queue of TLT's released simulators guarantees 10
        /// Gb/s (`BEgressQueue::DoDequeueRR`).
        #[within(1..)]
        pub min_rate: Option<Rate> = None,
        /// How long a priority of a switch's port may be paused with packets waiting and none
        /// leaving, before the port ends the pause by watchdog-action. Source: off is the
        /// standard; SONiC's `config pfcwd start` takes some hundreds of milliseconds.
        #[within(1..)]
        pub watchdog: Option<Time> = None,
        /// How long no frame must pause such a priority before the port heeds pauses of it again;
        /// off means twice the watchdog's time. Source: off is SONiC's default.
        #[within(1..)]
        pub watchdog_restore: Option<Time> = None,
        /// The port's action meanwhile: "drop" the priority's packets, those that wait and those
        /// that come, or "forward" them in spite of the pause. Source: drop is SONiC's default.
        pub watchdog_action: WatchdogAction = WatchdogAction::Drop,
    }
}

/// The longest pause of a frame, in bytes of the link's time: 65,535 quanta of 512 bits.
const LONGEST_BYTES: u64 = 65_535 * 64;

/// A priority of an ingress port.
#[derive(Clone, Debug)]
struct Group {
    is_stopped: bool,
    /// When it is looked at again, and by which egress port where each looks by itself.
    looks: Vec<(u16, Time)>,
    /// The one time for which the driver has been asked to call; `Time::MAX`: none.
    called_at: Time,
}

impl Group {
    fn look_again(&mut self, by: u16, at: Time) {
        match self.looks.iter_mut().find(|look| look.0 == by) {
            Some(look) => look.1 = at,
            None => self.looks.push((by, at)),
        }
    }

    /// The port that looks at or before `now`.
    fn due(&mut self, now: Time) -> Option<u16> {
        let due = self.looks.iter().position(|look| look.1 <= now)?;
        Some(self.looks.swap_remove(due).0)
    }

    /// When it is looked at again; `Time::MAX`: not at all.
    fn next_look(&self) -> Time {
        self.looks.iter().map(|look| look.1).min().unwrap_or(Time::MAX)
    }
}

/// The amounts that follow from a port's rate.
#[derive(Clone, Copy, Debug)]
struct Port {
    /// How long its frames stop.
    pause: Time,
    /// From a frame to the next look.
    recheck: Time,
    /// α in 1/1024.
    alpha: i128,
}

impl Port {
    fn new(params: &PfcParams, rate: Rate) -> Port {
        let pause = params.pause_time.unwrap_or_else(|| rate.transmission_time(LONGEST_BYTES));
        let mut alpha = (params.alpha * 1024.0) as i128;
        let mut rest = rate.bps();
        while params.per.is_some_and(|per| rest > per.bps()) && alpha < 1024 {
            (alpha, rest) = ((alpha * 2).min(1024), rest / 2);
        }
        Port { pause, recheck: params.recheck.unwrap_or(pause / 2), alpha }
    }
}

/// PFC at one switch: the bytes and the pauses of each ingress port and priority.
#[derive(Clone, Debug)]
pub struct Pfc {
    params: PfcParams,
    ports: Vec<Port>,
    groups: Vec<[Group; PRIORITIES]>,
    counts: PauseCounts,
}

impl Pfc {
    pub(super) fn new(params: &PfcParams) -> Pfc {
        Pfc {
            params: params.clone(),
            ports: Vec::new(),
            groups: Vec::new(),
            counts: PauseCounts::default(),
        }
    }

    fn group(&mut self, view: &IngressView) -> &mut Group {
        let priority = view.target.queue().unwrap_or_default();
        &mut self.groups[view.port as usize][usize::from(priority)]
    }

    /// The bytes that the group holds beyond its minimum, in 1/1024 of a byte; `None`: nothing.
    fn beyond(view: &IngressView) -> Option<i128> {
        let beyond = view.bytes.checked_sub(view.facts.minimum).filter(|beyond| *beyond > 0);
        beyond.map(|beyond| i128::from(beyond) << 10)
    }

    fn must_stop(&self, view: &IngressView) -> bool {
        let limit = self.ports[view.port as usize].alpha * i128::from(view.facts.free);
        Self::beyond(view).is_some_and(|beyond| beyond > limit || view.facts.headroom > 0)
    }

    fn may_go_on(&self, view: &IngressView) -> bool {
        let free = i128::from(view.facts.free) - i128::from(self.params.resume_offset.get());
        let limit = self.ports[view.port as usize].alpha * free;
        Self::beyond(view).is_none_or(|beyond| beyond < limit && view.facts.headroom == 0)
    }

    /// Sends a frame, and has `by` look again.
    fn stop(&mut self, now: Time, by: u16, view: &IngressView) -> Signal {
        let Port { pause: duration, recheck, .. } = self.ports[view.port as usize];
        let group = self.group(view);
        let is_new = !std::mem::replace(&mut group.is_stopped, true);
        group.look_again(by, now.saturating_add(recheck));
        let at = group.next_look();
        self.counts.episodes += u64::from(is_new);
        self.counts.frames += 1;
        Signal {
            frame: Some(PauseFrame { target: view.target, duration }),
            call_at: self.call(view, at),
            counts: false,
        }
    }

    fn let_go_on(&mut self, view: &IngressView) -> Signal {
        let group = self.group(view);
        group.is_stopped = false;
        group.looks.clear();
        if !self.params.resume {
            return Signal::default();
        }
        self.counts.resumes += 1;
        Signal {
            frame: Some(PauseFrame { target: view.target, duration: Time::ZERO }),
            ..Signal::default()
        }
    }

    /// An arrival that finds its priority to be stopped.
    fn stop_by(&mut self, now: Time, view: &IngressView) -> Signal {
        self.counts.arrivals += 1;
        let is_stopped = self.group(view).is_stopped;
        match self.params.frames {
            PfcFrames::Once if is_stopped => Signal::default(),
            PfcFrames::Once | PfcFrames::EachArrival => self.stop(now, 0, view),
            PfcFrames::EachEgress => self.stop(now, view.egress, view),
        }
    }

    /// The time for which to ask the driver, unless it has been asked for an earlier one, at which
    /// all is seen anew.
    fn call(&mut self, view: &IngressView, at: Time) -> Option<Time> {
        let group = self.group(view);
        let is_asked = group.called_at != Time::MAX || at == Time::MAX;
        if is_asked {
            return None;
        }
        group.called_at = at;
        Some(at)
    }
}

impl Pauses for Pfc {
    fn install(&mut self, ports: &[Rate]) {
        self.ports = ports.iter().map(|rate| Port::new(&self.params, *rate)).collect();
        let group = || Group { is_stopped: false, looks: Vec::new(), called_at: Time::MAX };
        self.groups = ports.iter().map(|_| std::array::from_fn(|_| group())).collect();
    }

    fn on_enqueue(&mut self, context: &Context<'_, IngressView>) -> Signal {
        let Context { now, view, .. } = context;
        if self.must_stop(view) { self.stop_by(*now, view) } else { self.on_dequeue(context) }
    }

    fn on_dequeue(&mut self, context: &Context<'_, IngressView>) -> Signal {
        let view = &context.view;
        if self.params.resume && self.group(view).is_stopped && self.may_go_on(view) {
            return self.let_go_on(view);
        }
        Signal::default()
    }

    fn on_refused(&mut self, context: &Context<'_, IngressView>) -> Signal {
        let looks = self.params.frames == PfcFrames::EachEgress && self.must_stop(&context.view);
        if looks { self.stop_by(context.now, &context.view) } else { Signal::default() }
    }

    fn on_check(&mut self, now: Time, view: &IngressView) -> Signal {
        let group = self.group(view);
        if group.called_at != now {
            return Signal::default(); // a call of the port's watchdog
        }
        group.called_at = Time::MAX;
        let Some(by) = group.due(now) else {
            // A frame has been sent since: its look is later. Or there is nothing to look at any
            // more.
            let at = group.next_look();
            return Signal { frame: None, call_at: self.call(view, at), counts: false };
        };
        if self.may_go_on(view) { self.let_go_on(view) } else { self.stop(now, by, view) }
    }

    fn counts(&self) -> PauseCounts {
        self.counts
    }

    fn watchdog(&self) -> Option<WatchdogTerms> {
        let detection = self.params.watchdog?;
        let restoration = self.params.watchdog_restore.unwrap_or(detection.saturating_mul(2));
        Some(WatchdogTerms { detection, restoration, action: self.params.watchdog_action })
    }

    fn stopped(&self) -> Vec<(u16, PauseTarget)> {
        // A guaranteed rate empties what is paused, and a watchdog drops it.
        if self.params.min_rate.is_some() || self.params.watchdog.is_some() {
            return Vec::new();
        }
        let of = |(port, groups): (usize, &[Group; PRIORITIES])| {
            let stopped = groups.iter().enumerate().filter(|(_, group)| group.is_stopped);
            stopped
                .map(|(priority, _)| (port as u16, PauseTarget::Priority(priority as u8)))
                .collect::<Vec<_>>()
        };
        self.groups.iter().enumerate().flat_map(of).collect()
    }

    fn stays(&self, view: &IngressView, _: u32) -> bool {
        !self.may_go_on(view)
    }

    #[inline]
    fn is_active(&self) -> bool {
        true
    }

    fn min_rate(&self) -> Option<Rate> {
        self.params.min_rate
    }
}

#[cfg(test)]
mod tests {
    use super::super::IngressFacts;
    use super::*;
    use crate::packet::Packet;
    use crate::switch::tests::seeing_at;

    const POOL: i64 = 3_120_000;

    /// A priority that holds so much, alone in the switch of TLT's simulations.
    fn view(bytes: u64) -> IngressView {
        let facts = IngressFacts { minimum: 3_000, free: POOL - bytes as i64, headroom: 0 };
        IngressView {
            port: 0,
            egress: 0,
            target: PauseTarget::Priority(3),
            bytes,
            facts,
            load: None,
            rate: Rate(0),
        }
    }

    fn pfc(params: PfcParams) -> Pfc {
        let mut it = Pfc::new(&params);
        it.install(&[Rate::from_gbps(40)]);
        it
    }

    /// Oracle: PAUSE if used − 2 MTU > (I − used) / 16 or anything is in headroom, RESUME if used −
    /// 2 MTU < (I − used − 16) / 16 and nothing is; at no more than 2 MTU never.
    #[test]
    fn thresholds_are_as_published() {
        let it = pfc(PfcParams::default());
        // 17 used > 3,168,000 and 17 used < 3,168,000 − 16.
        let stops = [(186_352, false), (186_353, true)];
        assert!(stops.iter().all(|(bytes, stops)| it.must_stop(&view(*bytes)) == *stops));
        let goes = [(186_351, true), (186_352, false)];
        assert!(goes.iter().all(|(bytes, goes)| it.may_go_on(&view(*bytes)) == *goes));
        let with = |bytes: u64, free: i64, headroom: u64| {
            let facts = IngressFacts { minimum: 3_000, free, headroom };
            let view = IngressView {
                port: 0,
                egress: 0,
                target: PauseTarget::Priority(3),
                bytes,
                facts,
                load: None,
                rate: Rate(0),
            };
            (it.must_stop(&view), it.may_go_on(&view))
        };
        assert_eq!(with(3_000, -50_000, 0), (false, true));
        assert_eq!(with(3_001, -50_000, 0), (true, false));
        assert_eq!(with(3_001, POOL, 1), (true, false));
        assert_eq!(with(3_001, POOL, 0), (false, true));
    }

    /// By hand: 1/8 at 25 Gb/s is 1/4 at 40 and 50, 1/2 at 100, and one from 200 on.
    #[test]
    fn a_faster_port_may_hold_more() {
        let params =
            PfcParams { alpha: 0.125, per: Some(Rate::from_gbps(25)), ..PfcParams::default() };
        let alpha = |gbps| Port::new(&params, Rate::from_gbps(gbps)).alpha;
        assert_eq!(
            [10, 25, 40, 50, 100, 200, 400].map(alpha),
            [128, 128, 256, 256, 512, 1024, 1024]
        );
        let large = PfcParams { alpha: 4.0, ..params.clone() };
        assert_eq!(Port::new(&large, Rate::from_gbps(400)).alpha, 4096, "what is above one stays");
        let mut it = Pfc::new(&params);
        it.install(&[Rate::from_gbps(25), Rate::from_gbps(100)]);
        let at = |port, bytes| IngressView {
            port,
            facts: IngressFacts { free: 80_000, ..view(0).facts },
            ..view(bytes)
        };
        assert!(
            !it.must_stop(&at(0, 13_000)) && it.must_stop(&at(0, 13_001)),
            "3,000 and an eighth of 80,000"
        );
        assert!(
            !it.must_stop(&at(1, 43_000)) && it.must_stop(&at(1, 43_001)),
            "3,000 and half of 80,000"
        );
    }

    /// A target that one frame stops takes no second one until half of the pause is over; both
    /// counts are kept.
    #[test]
    fn one_frame_stops_and_one_resumes() {
        let mut it = pfc(PfcParams::default());
        let longest = Time::from_ns(838_848);
        let mut frames = Vec::new();
        for n in 1..=200 {
            let signal = seeing_at(Time::from_us(n), view(n * 1_500), &Packet::default(), |at| {
                it.on_enqueue(at)
            });
            frames.extend(signal.frame);
            assert_eq!(signal.call_at.is_some(), n == 125, "{n}");
        }
        assert_eq!(frames, [PauseFrame { target: PauseTarget::Priority(3), duration: longest }]);
        assert_eq!(it.counts(), PauseCounts { frames: 1, resumes: 0, episodes: 1, arrivals: 76 });
        // Half of the pause is over: again. Later: not by a call of before.
        let at = Time::from_us(125) + longest / 2;
        let again = it.on_check(at, &view(300_000));
        assert_eq!((again.frame, again.call_at), (Some(frames[0]), Some(at + longest / 2)));
        let end = (1..=200).rev().find(|n| {
            seeing_at(at, view(n * 1_500), &Packet::default(), |at| it.on_dequeue(at))
                .frame
                .is_some()
        });
        assert_eq!((end, it.counts().resumes, it.counts().episodes), (Some(124), 1, 1));
        assert_eq!(
            it.on_check(at + longest / 2, &view(0)),
            Signal::default(),
            "nothing is stopped any more"
        );
        // Stopped and not: an episode each.
        for n in 2..10 {
            assert!(
                seeing_at(at, view(187_500), &Packet::default(), |at| it.on_enqueue(at))
                    .frame
                    .is_some()
            );
            assert!(
                seeing_at(at, view(1_500), &Packet::default(), |at| it.on_dequeue(at))
                    .frame
                    .is_some_and(|frame| frame.duration == Time::ZERO)
            );
            assert_eq!((it.counts().episodes, it.counts().frames), (n, n + 1));
        }
    }

    /// As TLT's simulator of TCP has it: short pauses that are looked at every 2 us and run out by
    /// themselves, and a frame an arrival.
    #[test]
    fn frames_at_each_arrival_and_pauses_that_run_out() {
        let params = PfcParams {
            pause_time: Some(Time::from_us(5)),
            recheck: Some(Time::from_us(2)),
            resume: false,
            frames: PfcFrames::EachArrival,
            ..PfcParams::default()
        };
        let mut it = pfc(params);
        let full = view(300_000);
        let first = seeing_at(Time::ZERO, full, &Packet::default(), |at| it.on_enqueue(at));
        assert_eq!(first.call_at, Some(Time::from_us(2)));
        for n in 1..10 {
            let more =
                seeing_at(Time::from_ns(100 * n), full, &Packet::default(), |at| it.on_enqueue(at));
            assert_eq!((more.frame, more.call_at), (first.frame, None));
        }
        // The call comes before the look that the last frame has put off.
        let early = it.on_check(Time::from_us(2), &full);
        assert_eq!(early, Signal { call_at: Some(Time::from_ns(2_900)), ..Signal::default() });
        assert_eq!(it.on_check(Time::from_ns(2_900), &full).frame, first.frame);
        assert_eq!(
            seeing_at(Time::from_us(3), view(1_500), &Packet::default(), |at| it.on_dequeue(at)),
            Signal::default()
        );
        assert_eq!(it.on_check(Time::from_ns(4_900), &view(1_500)), Signal::default());
        assert_eq!(it.counts(), PauseCounts { frames: 11, resumes: 0, episodes: 1, arrivals: 10 });
        assert!(
            seeing_at(Time::from_us(5), full, &Packet::default(), |at| it.on_enqueue(at))
                .frame
                .is_some()
        );
        assert_eq!(it.counts().episodes, 2);
    }

    /// As all of TLT's simulator of TCP counts: refused packets pause, too, and each egress port
    /// looks every 2 us by its own clock.
    #[test]
    fn each_egress_port_looks_by_itself() {
        let params = PfcParams {
            pause_time: Some(Time::from_us(5)),
            recheck: Some(Time::from_us(2)),
            resume: false,
            frames: PfcFrames::EachEgress,
            ..PfcParams::default()
        };
        let mut it = pfc(params.clone());
        let towards = |egress| IngressView { egress, ..view(300_000) };
        let at = Time::from_ns;
        let first = seeing_at(at(0), towards(1), &Packet::default(), |seen| it.on_enqueue(seen));
        assert_eq!((first.frame.is_some(), first.call_at), (true, Some(at(2_000))));
        let refused =
            seeing_at(at(500), towards(2), &Packet::default(), |seen| it.on_refused(seen));
        assert_eq!((refused.frame, refused.call_at), (first.frame, None));
        // Two clocks, 500 ns apart.
        let mut frames = Vec::new();
        let mut next = first.call_at;
        while let Some(now) = next.filter(|now| *now < at(9_000)) {
            let signal = it.on_check(now, &view(300_000));
            frames.extend(signal.frame.map(|_| now));
            next = signal.call_at;
        }
        assert_eq!(frames, [2_000, 2_500, 4_000, 4_500, 6_000, 6_500, 8_000, 8_500].map(at));
        // Nothing is to be stopped any more: both are done.
        assert_eq!(it.on_check(at(10_000), &view(1_500)), Signal::default());
        assert_eq!(it.on_check(at(10_500), &view(300_000)), Signal::default());
        assert_eq!(it.counts(), PauseCounts { frames: 10, resumes: 0, episodes: 1, arrivals: 2 });
        // Otherwise a refusal pauses nobody.
        let mut it = pfc(PfcParams { frames: PfcFrames::EachArrival, ..params });
        let refused = seeing_at(at(0), towards(2), &Packet::default(), |seen| it.on_refused(seen));
        assert_eq!((refused, it.counts()), (Signal::default(), PauseCounts::default()));
    }
}
