//! Cores that work on receive rings, and what they count.

use super::*;

/// Work that a core has done in the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounts {
    pub busy: Time,
    pub polls: u64,
    /// Packets that they took.
    pub packets: u64,
    pub bytes: u64,
    pub segments: u64,
    /// Of them, those that the transport found out of order.
    pub out_of_order: u64,
    /// Packets dropped since a ring was full: these in the whole run.
    pub ring_drops: u64,
}

/// The cost of receiving in the measured time, by name; `cores` are sorted by host. Shares of a
/// core are in parts per million: of all cores of hosts that received payload, and the largest of
/// the others, which received acknowledgements at most.
pub fn report_cores(cores: &[(HostId, CoreCounts)], measured: Time, counters: &mut Report) {
    if cores.is_empty() {
        return;
    }
    let named = counters.of("receive-cpu");
    let share =
        |core: &CoreCounts| core.busy.as_ps() as u128 * 1_000_000 / measured.as_ps().max(1) as u128;
    let by_host = cores.chunk_by(|(one, _), (next, _)| one == next);
    let hosts = by_host.map(|host| host.iter().map(|(_, core)| *core).collect::<Vec<_>>());
    let (receiving, others): (Vec<_>, Vec<_>) =
        hosts.partition(|host| host.iter().any(|core| core.bytes > 0));
    named.add("receiving-hosts", receiving.len() as u64);
    let (receiving, others) = (receiving.concat(), others.concat());
    let shares = || receiving.iter().map(share);
    let sum = |count: fn(&CoreCounts) -> u64| receiving.iter().map(count).sum::<u64>();
    let (polls, packets) = (sum(|core| core.polls), sum(|core| core.packets));
    named.add("busy-ppm-mean", (shares().sum::<u128>() / receiving.len().max(1) as u128) as u64);
    named.add("busy-ppm-min", shares().min().unwrap_or(0) as u64);
    named.add("busy-ppm-max", shares().max().unwrap_or(0) as u64);
    named.add("busy-ppm-max-without-payload", others.iter().map(share).max().unwrap_or(0) as u64);
    named.add("polls", polls);
    named.add("packets", packets);
    named.add("batch-mean-packets", (packets + polls / 2) / polls.max(1));
    named.add("segments", sum(|core| core.segments));
    named.add("segments-out-of-order", sum(|core| core.out_of_order));
    named.add("ring-drops", cores.iter().map(|(_, core)| core.ring_drops).sum::<u64>());
}

/// A core: its costs, the ring that it works on and when it is free.
pub struct Core {
    pub(super) costs: ReceiveCpuParams,
    pub(super) measured_from: Time,
    /// The ring whose segments it works on: they are on their way up.
    pub(super) works_on: Option<u16>,
    /// The end of what it does, as far as that is known.
    pub(super) free_at: Time,
    /// Segments of the work at hand that were out of order.
    pub(super) out_of_order: u64,
    pub(super) counts: CoreCounts,
}

impl Core {
    pub(super) fn new(costs: ReceiveCpuParams, measured_from: Time) -> Core {
        let counts = CoreCounts::default();
        Core { costs, measured_from, works_on: None, free_at: Time::ZERO, out_of_order: 0, counts }
    }

    /// A segment goes up, which the transport finds out of order or not.
    pub(in crate::host) fn found(&mut self, is_out_of_order: bool) {
        self.out_of_order += u64::from(is_out_of_order);
    }

    /// Work from now on; it is idle.
    pub(super) fn spend(&mut self, now: Time, work: Time) {
        self.free_at = now.saturating_add(work);
        self.counts.busy += self.free_at.saturating_sub(now.max(self.measured_from));
    }

    /// Begins to work on what a poll of a ring took, or a timer: on packets, payload, and segments.
    pub(super) fn begin(&mut self, now: Time, ring: u16, packets: u64, bytes: u64, segments: u64) {
        let costs = &self.costs;
        let work =
            costs.per_packet * packets + costs.per_byte * bytes + costs.per_segment * segments;
        self.works_on = Some(ring);
        self.spend(now, work);
        if now >= self.measured_from {
            self.counts.polls += u64::from(packets > 0);
            self.counts.packets += packets;
            self.counts.bytes += bytes;
            self.counts.segments += segments;
        }
    }

    /// The work is done, and its segments are handed up.
    pub(super) fn end(&mut self, now: Time) {
        self.works_on = None;
        let out_of_order = std::mem::take(&mut self.out_of_order);
        self.spend(now, self.costs.per_out_of_order * out_of_order);
        if now >= self.measured_from {
            self.counts.out_of_order += out_of_order;
        }
    }

    /// Its actions so far by `now`.
    pub fn counts(&self, now: Time) -> CoreCounts {
        let ahead = self.free_at.saturating_sub(now.max(self.measured_from));
        CoreCounts { busy: self.counts.busy.saturating_sub(ahead), ..self.counts }
    }
}
