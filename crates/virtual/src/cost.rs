//! `host.receive-cpu`: what arrives costs its host's cores time before the kernel has it.
//!
//! A guest's code takes no virtual time. With this key a frame, merged or not, waits for the core
//! of its flow, which works so long for each of its packets, for each byte of payload and once for
//! the segment; then the kernel has the frame. It is the simulator's model (`core::host::receive`)
//! without its polls: a core takes one frame after another.
//!
//! Invariant: frames of one flow keep their order, and a ring never holds more packets than it may.

use millpond_core::Time;
use millpond_core::host::ReceiveCpuParams;
use millpond_core::random::mix64;
use millpond_linux::dataplane::frame::Offload;
use std::collections::VecDeque;

/// Ethernet, IPv4 and TCP headers.
const HEADERS: u64 = 54;
/// Where a frame has its addresses and ports.
const FLOW: std::ops::Range<usize> = 26..38;

/// A core: when it has done all that it has, and packets that wait, by when it has taken them.
#[derive(Clone, Default)]
struct Core {
    busy: Time,
    ring: VecDeque<(Time, u64)>,
}

pub struct Cores {
    costs: ReceiveCpuParams,
    all: Vec<Core>,
}

impl Cores {
    pub fn new(costs: &ReceiveCpuParams) -> Cores {
        Cores { costs: costs.clone(), all: vec![Core::default(); costs.cores.max(1) as usize] }
    }

    /// When the kernel has a frame that has come at `now`; `None`: its ring is full.
    pub fn work(&mut self, now: Time, offload: &Offload, frame: &[u8]) -> Option<Time> {
        let flow = frame.get(FLOW).unwrap_or_default();
        let hash = flow.iter().fold(0, |hash, byte| mix64(hash ^ u64::from(*byte)));
        let core = (hash % self.all.len() as u64) as usize;
        let core = &mut self.all[core];
        let payload = (frame.len() as u64).saturating_sub(HEADERS);
        let packets = match u64::from(offload.gso_size) {
            0 => 1,
            size => payload.div_ceil(size).max(1),
        };
        while core.ring.pop_front_if(|(taken, _)| *taken <= now).is_some() {}
        let waiting: u64 = core.ring.iter().map(|(_, packets)| packets).sum();
        if waiting + packets > u64::from(self.costs.ring) {
            return None;
        }
        let begins = core.busy.max(now);
        let times = |cost: Time, count: u64| Time::from_ps(cost.as_ps().saturating_mul(count));
        let work = times(self.costs.per_packet, packets)
            + times(self.costs.per_byte, payload)
            + self.costs.per_segment;
        core.ring.push_back((begins, packets));
        core.busy = begins + work;
        Some(core.busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(port: u8, payload: usize) -> Vec<u8> {
        let mut frame = vec![0; HEADERS as usize + payload];
        frame[37] = port;
        frame
    }

    fn cores(cores: u32, ring: u32) -> Cores {
        let (per_packet, per_byte) = (Time::from_ns(100), Time::from_ps(1000));
        let per_segment = Time::from_ns(1000);
        let default = ReceiveCpuParams::default();
        let costs = ReceiveCpuParams { per_packet, per_byte, per_segment, ring, cores, ..default };
        Cores::new(&costs)
    }

    #[test]
    fn a_core_takes_one_frame_after_another() {
        let (mut cores, one) = (cores(1, 512), Offload::default());
        let merged = Offload { gso_size: 500, ..one };
        // 100 + 1000 + 1000 ns; then two packets: 200 + 1000 + 1000.
        assert_eq!(cores.work(Time::ZERO, &one, &frame(1, 1000)), Some(Time::from_ns(2100)));
        assert_eq!(cores.work(Time::ZERO, &merged, &frame(1, 1000)), Some(Time::from_ns(4300)));
        let idle = Time::from_ns(9000);
        assert_eq!(cores.work(idle, &one, &frame(1, 0)), Some(idle + Time::from_ns(1100)));
    }

    #[test]
    fn a_ring_is_bounded_by_packets_that_wait() {
        let (mut cores, one) = (cores(1, 2), Offload::default());
        let merged = Offload { gso_size: 500, ..one };
        // The first is being worked on, and waits no more.
        assert!(cores.work(Time::ZERO, &one, &frame(1, 500)).is_some());
        assert!(cores.work(Time::ZERO, &merged, &frame(1, 1000)).is_some());
        assert_eq!(cores.work(Time::ZERO, &one, &frame(1, 500)), None);
        assert!(cores.work(Time::from_ns(1600), &one, &frame(1, 500)).is_some());
    }

    #[test]
    fn flows_are_spread_over_cores_and_each_keeps_its_own() {
        let (mut cores, one) = (cores(4, 512), Offload::default());
        let first = |cores: &mut Cores, port| cores.work(Time::ZERO, &one, &frame(port, 0));
        let alone = Some(Time::from_ns(1100));
        let idle = (1..=16).filter(|port| first(&mut cores, *port) == alone).count();
        assert!((2..=4).contains(&idle), "{idle} cores");
        assert_ne!(first(&mut cores, 1), alone);
    }
}
