//! Presto's receive offload: merges by flowcell, and holds a flowcell back while what comes before
//! it is on another path.
//!
//! Section 3.2 of the paper, its Algorithm 2. Packets of a flowcell share a path, so a gap inside a
//! flowcell is loss and goes up at once; a gap between flowcells may be reordering, and is waited
//! for. For each segment at the end of a poll, in the order of sequence numbers, with `last` the
//! flowcell that was last released in order and `expected` the next byte:
//!
//! | case | flowcell | begins | | meaning |
//! |---|---|---|---|---|
//! | 1 | `last` | anywhere | up | in order, or a loss that the transport must see |
//! | 2 | newer | before `expected` | up | a retransmission |
//! | 3 | newer | at `expected` | up | the next flowcell |
//! | 4 | newer | beyond | waits; up when its time is over | reordering, or a loss at the boundary |
//! | 5 | older | anywhere | up | late, or a retransmission |
//!
//! The wait is `alpha` times the flow's expected delay from the segment's first packet on, and no
//! less than the expected delay over `beta` from its last. The expected delay is a moving average
//! of how long gaps took that did fill. A gap that did not fill in time gives no sample; so where
//! the true delay is beyond the wait for good nothing would ever be learned, and after
//! `double_after` such gaps in a row the expected delay doubles.
//!
//! *Safe rules.* As published, a retransmission in a newer flowcell (case 2) makes all that is in
//! flight older: it is then released unordered (case 5), `expected` stays behind, and the next
//! flowcell waits although nothing is missing. With `rules = "safe"` cases 2 and 5 move `last` and
//! `expected` only where the segment continues the stream: it begins at or before `expected` and
//! reaches beyond. So `last` stays the flowcell of the byte before `expected`, what is in flight
//! behind a retransmission is in order again, and so is a sender that was started anew and numbers
//! its flowcells from anywhere, half of the time from what looks older. A segment whose time is
//! over also takes those up that wait in front of it, so that giving up does not reorder.
//!
//! A packet without payload passes at once, behind what is ready. The published description is
//! silent; what waits for a gap stays, since in a connection with data both ways every pure ACK
//! would undo the ordering.
//!
//! State is per flow: with one `expected` for all an unrelated sequence number would switch
//! ordering off.
//!
//! Invariant: every packet leaves once, and no later than `max(alpha E, E/beta` after the last that
//! joined it`)` and a poll, where `E` is the expected delay; only flows with packets in the poll,
//! or whose time is over, are looked at.

use super::segment::{NONE, Segment, Segments, pass};
use super::{Arrival, Cause, Counters, PrestoGroParams, Released, Rules, tcp};
use crate::flow_table::FlowTable;
use crate::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Segments of a flow that may wait. Keeps the search for a packet's segment short, whatever
/// arrives.
const SEGMENTS_MAX: u32 = 128;
/// Flows that one call of [`Presto::evict`] looks at.
const EVICTION_STEPS: usize = 256;
/// The least unit of time: "longer than" a wait, as the paper has it.
const TICK: Time = Time::from_ps(1);

/// `a - b` in sequence space.
#[inline]
fn behind(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

/// Whether flowcell `a` is newer than `b`.
#[inline]
fn is_newer(a: u16, b: u16) -> bool {
    (a.wrapping_sub(b) as i16) > 0
}

#[derive(Clone, Debug)]
struct Flow {
    /// The next byte in order.
    expected: u32,
    /// Of the flowcell that was last released in order.
    last: u16,
    /// It had packets in this poll.
    is_touched: bool,
    /// Gaps in a row that did not fill in time.
    missed: u32,
    /// Its segments: the one begun last is the first.
    head: u32,
    kept_bytes: u64,
    /// How long a gap is expected to take.
    delay: Time,
    /// The earliest time at which it is to be looked at without a packet; `Time::MAX`: none.
    armed: Time,
    /// When its last poll with packets was.
    seen: Time,
}

/// The terms of one walk over a flow's segments.
#[derive(Clone, Copy)]
struct Walk {
    now: Time,
    /// Release the first segment that would wait.
    is_forced: bool,
    /// A gap that is filled now was filled by a packet: not by a release that was forced.
    learns: bool,
}

impl Walk {
    fn plain(now: Time) -> Walk {
        Walk { now, is_forced: false, learns: true }
    }
    /// Something has to go, whatever it waits for.
    fn forced(now: Time) -> Walk {
        Walk { now, is_forced: true, learns: false }
    }
}

/// A flow that has segments, and the two of them that grew last, the last first: two flowcells
/// often arrive at once.
#[derive(Clone, Copy, Debug)]
struct Recent<F> {
    flow: F,
    at: u32,
    segments: [u32; 2],
}

/// A flow that is silent for so long is forgotten where room is short: longer than any wait for
/// order.
const CROWDED: Time = Time::from_s(1);

/// A receive queue that merges by flowcell and holds reordered segments (Presto §3.2).
#[derive(Clone, Debug)]
pub struct Presto<F, P> {
    params: PrestoGroParams,
    flows: FlowTable<F, Flow>,
    /// Flows that are known at most.
    most: usize,
    segments: Segments<P>,
    /// Flows with packets in this poll.
    touched: Vec<u32>,
    /// When to look at which flow. An entry whose time is not its flow's `armed` is out of date.
    deadlines: BinaryHeap<Reverse<(Time, u32)>>,
    order: Vec<u32>,
    /// Where the last packet of this poll went, which is often where the next one goes.
    recent: Option<Recent<F>>,
    kept_bytes: u64,
    counters: Counters,
}

impl<F: Copy + Eq, P: Copy> Presto<F, P> {
    pub fn new(params: &PrestoGroParams) -> Self {
        Presto {
            params: params.clone(),
            flows: FlowTable::default(),
            most: usize::MAX,
            segments: Segments::default(),
            touched: Vec::new(),
            deadlines: BinaryHeap::new(),
            order: Vec::new(),
            recent: None,
            kept_bytes: 0,
            counters: Counters::default(),
        }
    }

    /// Bounds the number of tracked flows; packets of others go up as they come.
    pub fn bound(&mut self, most: usize) {
        self.most = most;
    }

    /// Merges a packet with its segment, or starts one.
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        arrival: &Arrival<F>,
        packet: P,
        out: &mut impl FnMut(Released<'_, F, P>),
    ) {
        if let Some(recent) = &mut self.recent
            && recent.flow == arrival.flow
        {
            let [last, before] = recent.segments;
            if self.segments.append::<true, F>(last, now, arrival, packet).is_ok() {
                return;
            }
            if self.segments.append::<true, F>(before, now, arrival, packet).is_ok() {
                recent.segments = [before, last];
                return;
            }
        }
        let at = match self.recent.filter(|recent| recent.flow == arrival.flow) {
            Some(recent) => recent.at,
            None => match self.flows.find(arrival.hash, arrival.flow) {
                Some(at) => at,
                None if self.flows.len() >= self.most => {
                    return pass(now, arrival, packet, &mut self.counters, out);
                }
                // Whoever only acknowledges has no order to keep.
                None if arrival.len == 0 && arrival.flags & (tcp::SYN | tcp::FIN) == 0 => {
                    return pass(now, arrival, packet, &mut self.counters, out);
                }
                None => self.open(now, arrival),
            },
        };
        let is_urgent = arrival.flags & (tcp::SYN | tcp::RST | tcp::URG) != 0;
        if is_urgent || (arrival.len == 0 && arrival.flags & tcp::FIN == 0) {
            return self.pass(now, at, arrival, packet, is_urgent, out);
        }
        let flow = &mut self.flows[at];
        if !flow.is_touched {
            flow.is_touched = true;
            flow.seen = now;
            self.touched.push(at);
        }
        let mut segment = flow.head;
        while segment != NONE {
            match self.segments.append::<true, F>(segment, now, arrival, packet) {
                Ok(_) => break,
                Err(next) => segment = next,
            }
        }
        if segment == NONE {
            segment = self.segments.begin(now, arrival, packet);
            self.segments[segment].next = std::mem::replace(&mut flow.head, segment);
        }
        let before = self
            .recent
            .filter(|recent| recent.at == at)
            .map_or(segment, |recent| recent.segments[0]);
        self.recent = Some(Recent { flow: arrival.flow, at, segments: [segment, before] });
    }

    /// A poll ends, or a deadline has come. Waits end by `now`, which may be earlier than the last
    /// packet: up to it nothing has arrived that was not looked at.
    pub fn flush(&mut self, now: Time, out: &mut impl FnMut(Released<'_, F, P>)) {
        self.recent = None;
        let mut touched = std::mem::take(&mut self.touched);
        for at in touched.drain(..) {
            self.flows[at].is_touched = false;
            self.serve(now, at, out);
        }
        self.touched = touched;
        while let Some(Reverse((due, at))) = self.deadlines.peek().copied() {
            if due > now && self.kept_bytes <= self.params.held_max.get() {
                break;
            }
            self.deadlines.pop();
            if self.flows[at].armed == due {
                self.flows[at].armed = Time::MAX;
                if due > now {
                    self.walk(Walk::forced(now), at, out);
                }
                self.serve(now, at, out);
            }
        }
        self.counters.held_bytes_max = self.counters.held_bytes_max.max(self.kept_bytes);
    }

    /// When [`Presto::flush`] is due without a packet.
    pub fn deadline(&mut self) -> Option<Time> {
        while let Some(Reverse((due, at))) = self.deadlines.peek().copied() {
            let flow = &mut self.flows[at];
            if flow.armed == due && flow.head != NONE {
                return Some(due);
            }
            if flow.armed == due {
                flow.armed = Time::MAX;
            }
            self.deadlines.pop();
        }
        None
    }

    /// Forgets idle flows; those of a second where more than half of what is allowed are known.
    pub fn evict(&mut self, now: Time) -> usize {
        let is_crowded = self.flows.len() > self.most / 2;
        let idle = if is_crowded { self.params.idle.min(CROWDED) } else { self.params.idle };
        let is_idle = |flow: &Flow| {
            flow.head == NONE && !flow.is_touched && now.saturating_sub(flow.seen) > idle
        };
        let evicted = self.flows.evict(EVICTION_STEPS, is_idle);
        self.counters.evicted += evicted as u64;
        evicted
    }

    /// Forgets a flow that is over.
    pub fn forget(&mut self, hash: u32, flow: F) {
        if let Some(at) = self.flows.find(hash, flow)
            && self.flows[at].head == NONE
            && !self.flows[at].is_touched
        {
            self.flows.remove(at);
        }
    }

    /// Releases everything, flow by flow, each in order.
    pub fn drain(&mut self, out: &mut impl FnMut(Released<'_, F, P>)) {
        self.recent = None;
        while let Some(at) = self.touched.pop() {
            self.flows[at].is_touched = false;
            self.release_all(at, out);
        }
        while let Some(Reverse((_, at))) = self.deadlines.pop() {
            self.flows[at].armed = Time::MAX;
            self.release_all(at, out);
        }
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    #[cfg(test)]
    pub(super) fn delay_of(&self, hash: u32, flow: F) -> Time {
        self.flows[self.flows.find(hash, flow).expect("a flow")].delay
    }
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    #[cold]
    fn open(&mut self, now: Time, arrival: &Arrival<F>) -> u32 {
        let flow = Flow {
            expected: arrival.seq,
            last: arrival.flowcell,
            is_touched: false,
            missed: 0,
            head: NONE,
            kept_bytes: 0,
            delay: self.params.initial.clamp(self.params.min, self.params.max.max(self.params.min)),
            armed: Time::MAX,
            seen: now,
        };
        self.flows.insert(arrival.hash, arrival.flow, flow)
    }

    /// A packet that does not wait: one without payload, or one that must not.
    fn pass(
        &mut self,
        now: Time,
        at: u32,
        arrival: &Arrival<F>,
        packet: P,
        is_urgent: bool,
        out: &mut impl FnMut(Released<'_, F, P>),
    ) {
        self.recent = None;
        if is_urgent {
            self.release_all(at, out);
        } else {
            self.serve(now, at, out);
        }
        let flow = &mut self.flows[at];
        flow.seen = now;
        if arrival.flags & tcp::SYN != 0 {
            (flow.expected, flow.last) = (arrival.end(), arrival.flowcell);
        } else if is_urgent && behind(arrival.end(), flow.expected) > 0 {
            flow.expected = arrival.end();
        }
        pass(now, arrival, packet, &mut self.counters, out);
    }

    fn release_all(&mut self, at: u32, out: &mut impl FnMut(Released<'_, F, P>)) {
        self.sort(at);
        let flow = &mut self.flows[at];
        flow.head = NONE;
        self.kept_bytes -= std::mem::take(&mut flow.kept_bytes);
        for segment in self.order.iter() {
            if behind(self.segments[*segment].end, flow.expected) > 0 {
                (flow.expected, flow.last) =
                    (self.segments[*segment].end, self.segments[*segment].flowcell);
            }
        }
        let identity = self.flows.flow(at);
        for segment in self.order.drain(..) {
            self.segments.release(segment, identity, Cause::Forced, &mut self.counters, out);
        }
    }

    /// Releases what is ready of a flow, and what is above its limits.
    #[inline]
    fn serve(&mut self, now: Time, at: u32, out: &mut impl FnMut(Released<'_, F, P>)) {
        if self.flows[at].head == NONE {
            return;
        }
        let mut kept = self.walk(Walk::plain(now), at, out);
        while kept > SEGMENTS_MAX || self.flows[at].kept_bytes > self.params.flow_held_max.get() {
            kept = self.walk(Walk::forced(now), at, out);
        }
    }

    /// A flow's segments into `order`, by sequence number; equal ones as they came.
    #[inline]
    fn sort(&mut self, at: u32) {
        let flow = &self.flows[at];
        self.order.clear();
        let mut segment = flow.head;
        while segment != NONE {
            self.order.push(segment);
            segment = self.segments[segment].next;
        }
        if self.order.len() > 1 {
            self.order.reverse();
            // By insertion, which allocates nothing, and does little: they are nearly sorted.
            let place = |segment: u32| behind(self.segments[segment].seq, flow.expected);
            for i in 1..self.order.len() {
                let mut j = i;
                while j > 0 && place(self.order[j - 1]) > place(self.order[j]) {
                    self.order.swap(j - 1, j);
                    j -= 1;
                }
            }
        }
    }

    /// Decides on each segment of a flow. Returns how many are kept.
    #[inline]
    fn walk(&mut self, mut walk: Walk, at: u32, out: &mut impl FnMut(Released<'_, F, P>)) -> u32 {
        self.sort(at);
        let order = std::mem::take(&mut self.order);
        let mut given_up = None;
        let identity = self.flows.flow(at);
        let flow = &mut self.flows[at];
        let (mut head, mut kept, mut kept_bytes, mut deadline) = (NONE, 0, 0, Time::MAX);
        for (place, &segment) in order.iter().enumerate() {
            let verdict = match flow.verdict(
                &self.segments[segment],
                &mut walk,
                &self.params,
                &mut self.counters,
            ) {
                Verdict::Gap => {
                    let given_up = *given_up.get_or_insert_with(|| {
                        flow.given_up(walk.now, &self.segments, &order, &self.params)
                    });
                    match place < given_up
                        && (self.params.rules == Rules::Safe
                            || self.segments[segment].expiry(flow, &self.params) <= walk.now)
                    {
                        true => {
                            flow.give_up(&self.segments[segment], &self.params, &mut self.counters)
                        }
                        false => Verdict::Gap,
                    }
                }
                verdict => verdict,
            };
            if let Verdict::Up(cause) = verdict {
                self.segments.release(segment, identity, cause, &mut self.counters, out);
                continue;
            }
            let held = &mut self.segments[segment];
            self.counters.held += u64::from(!std::mem::replace(&mut held.is_held, true));
            held.next = std::mem::replace(&mut head, segment);
            kept += 1;
            kept_bytes += u64::from(held.bytes);
            deadline = deadline.min(held.expiry(flow, &self.params));
        }
        flow.head = head;
        self.kept_bytes =
            self.kept_bytes + kept_bytes - std::mem::replace(&mut flow.kept_bytes, kept_bytes);
        if deadline < flow.armed {
            flow.armed = deadline;
            self.deadlines.push(Reverse((deadline, at)));
        }
        self.order = order;
        kept
    }
}

impl<P> Segment<P> {
    #[inline]
    fn expiry(&self, flow: &Flow, params: &PrestoGroParams) -> Time {
        let gap = self.first.saturating_add(flow.delay.saturating_mul(u64::from(params.alpha)));
        let quiet = self.last.saturating_add(flow.delay / u64::from(params.beta));
        gap.max(quiet).saturating_add(TICK)
    }
}

/// The outcome of a segment at the end of a poll.
#[derive(Clone, Copy)]
enum Verdict {
    Up(Cause),
    Gap,
}

impl Flow {
    #[inline]
    fn verdict<P>(
        &mut self,
        segment: &Segment<P>,
        walk: &mut Walk,
        params: &PrestoGroParams,
        counters: &mut Counters,
    ) -> Verdict {
        let (seq, end, cell) = (segment.seq, segment.end, segment.flowcell);
        let is_beyond = behind(end, self.expected) > 0;
        let is_safe = params.rules == Rules::Safe;
        if cell == self.last {
            self.expected = if is_beyond { end } else { self.expected };
            return Verdict::Up(Cause::SameCell);
        }
        let gap = behind(seq, self.expected);
        if !is_newer(cell, self.last) {
            if is_safe && gap <= 0 && is_beyond {
                (self.last, self.expected) = (cell, end);
            }
            return Verdict::Up(Cause::Older);
        }
        if gap == 0 {
            (self.last, self.expected) = (cell, end);
            if segment.is_held && walk.learns {
                // The packet that has filled the gap came no earlier, whatever the time by which
                // waits end.
                let waited = walk.now.max(self.seen).saturating_sub(segment.first);
                self.learn(waited, params);
                counters.filled(waited);
            }
            return Verdict::Up(Cause::InOrder);
        }
        if gap < 0 {
            if !is_safe {
                self.last = cell;
            } else if is_beyond {
                (self.last, self.expected) = (cell, end);
            }
            return Verdict::Up(Cause::Overlap);
        }
        if std::mem::take(&mut walk.is_forced) {
            (self.last, self.expected) = (cell, end);
            return Verdict::Up(Cause::Forced);
        }
        Verdict::Gap
    }

    /// How many segments from the first on lie at or before the last whose time is over.
    #[cold]
    fn given_up<P: Copy>(
        &self,
        now: Time,
        segments: &Segments<P>,
        order: &[u32],
        params: &PrestoGroParams,
    ) -> usize {
        let is_over = |at: &u32| {
            is_newer(segments[*at].flowcell, self.last) && segments[*at].expiry(self, params) <= now
        };
        order.iter().rposition(is_over).map_or(0, |place| place + 1)
    }

    /// A gap did not fill in time.
    #[cold]
    fn give_up<P>(
        &mut self,
        segment: &Segment<P>,
        params: &PrestoGroParams,
        counters: &mut Counters,
    ) -> Verdict {
        (self.last, self.expected) = (segment.flowcell, segment.end);
        self.missed += 1;
        if params.double_after > 0 && self.missed >= params.double_after {
            self.missed = 0;
            self.delay = self.delay.saturating_mul(2).min(params.max.max(params.min));
            counters.doubled += 1;
        }
        Verdict::Up(Cause::Timeout)
    }

    fn learn(&mut self, waited: Time, params: &PrestoGroParams) {
        let part = u64::from(params.smoothing);
        let delay = if waited >= self.delay {
            self.delay.saturating_add((waited - self.delay) / part)
        } else {
            self.delay - (self.delay - waited) / part
        };
        self.delay = delay.clamp(params.min, params.max.max(params.min));
        self.missed = 0;
    }
}
