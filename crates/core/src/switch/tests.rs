//! The node by itself, under a driver that records what it asks for.

use super::admission::AdmissionParams;
use super::buffer::{BufferParams, Capacity, PerPortParams, SharedParams, SwitchFacts};
use super::marking::{EcnParams, MarkAt, MarkingParams};
use super::queue::{Queue, QueueParams};
use super::route::Attachment;
use super::site::{Auto, PortSite};
use super::*;
use crate::packet::{Ecn, TrafficClass};
use crate::registry::Choice;
use crate::units::{Bytes, Rate};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

mod deflection;
mod fabric;
mod pause;

/// The context that a decision at time zero sees.
pub(crate) fn seeing<V, T>(view: V, packet: &Packet, ask: impl FnOnce(&Context<'_, V>) -> T) -> T {
    seeing_at(Time::ZERO, view, packet, ask)
}

/// The context that a decision sees.
pub(crate) fn seeing_at<V, T>(
    now: Time,
    view: V,
    packet: &Packet,
    ask: impl FnOnce(&Context<'_, V>) -> T,
) -> T {
    ask(&Context { now, packet, view, random: &Random::from(Stream::new(1, "t")) })
}

#[derive(Default)]
struct Recorder {
    packets: Packets,
    sent: Vec<(u16, PacketId, Time)>,
    dropped: Vec<(PacketId, DropReason)>,
    calls: BTreeMap<(Time, u16), ()>,
}

impl Wire for Recorder {
    fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }
    fn transmit(&mut self, port: u16, id: PacketId, departs: Time) {
        self.sent.push((port, id, departs));
    }
    fn call_ready(&mut self, port: u16, at: Time) {
        self.calls.insert((at, port), ());
    }
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.dropped.push((id, reason));
    }
    fn send_pause(&mut self, _: u16, _: PauseFrame, _: Time) {}
    fn call_pause_check(&mut self, _: u16, _: PauseTarget, _: Time) {}
}

impl Recorder {
    /// Makes the calls that the switch asked for up to `until`, those at `until` included.
    fn advance(&mut self, switch: &mut Switch, until: Time) {
        while let Some((&(at, port), ())) = self.calls.iter().next() {
            if at > until {
                break;
            }
            self.calls.remove(&(at, port));
            switch.on_ready(at, port, self);
        }
    }
    fn arrive(&mut self, switch: &mut Switch, now: Time, packet: Packet) -> PacketId {
        self.advance(switch, now);
        let id = self.packets.insert(Packet { ttl: 64, ..packet });
        switch.on_arrival(now, 0, id, self);
        id
    }
}

/// Two hosts at ports 0 and 1 of 10 Gb/s.
fn switch(
    fast: bool,
    buffer: &BufferParams,
    marking: &MarkingParams,
    queue: &QueueParams,
) -> Switch {
    let attachment = Arc::new(Attachment { hosts: vec![(0, 0), (0, 1)] });
    let port = PortConfig {
        marking: marking::Marking::new(marking),
        queue: Queue::new(queue),
        ..PortConfig::plain(Rate::from_gbps(10), Capacity::new(buffer, &PortSite::default()))
    };
    let routes = Routes::new(attachment, Some(0), &[vec![]]);
    let memory = Memory::new(buffer, &SwitchFacts::default());
    let ports = vec![port.clone(), port];
    Switch::new(SwitchConfig {
        fast,
        ..SwitchConfig::plain(routes, ports, memory, Stream::new(1, "switch/test"))
    })
}

fn of_priority(priority: u8) -> Packet {
    Packet { class: TrafficClass::from(Ecn::Ect).with_priority(priority), ..data(1) }
}

fn data(dst: u32) -> Packet {
    Packet { dst, size: 1500, payload: 1460, class: Ecn::Ect.into(), ..Packet::default() }
}

fn per_port(packets: u32) -> BufferParams {
    BufferParams::PerPort(PerPortParams {
        size: Auto::Given(None).into(),
        packets: Some(packets).into(),
        per: None,
    })
}

#[test]
fn back_to_back_packets_leave_at_line_rate() {
    for fast in [true, false] {
        let mut s = switch(fast, &per_port(10), &MarkingParams::default(), &QueueParams::default());
        let mut w = Recorder::default();
        for _ in 0..3 {
            w.arrive(&mut s, Time::from_us(1), data(1));
        }
        w.advance(&mut s, Time::from_ms(1));
        let departs: Vec<u64> = w.sent.iter().map(|(_, _, t)| t.as_ps()).collect();
        assert_eq!(departs, [2_200_000, 3_400_000, 4_600_000]);
    }
}

#[test]
fn the_packet_in_transmission_does_not_wait() {
    for fast in [true, false] {
        let mut s = switch(fast, &per_port(2), &MarkingParams::default(), &QueueParams::default());
        let mut w = Recorder::default();
        for _ in 0..4 {
            w.arrive(&mut s, Time::ZERO, data(1));
        }
        assert_eq!(w.dropped, [(3, DropReason::QueueFull)]);
        // At 1.2 us the second starts: one place is free again, at that very picosecond.
        w.arrive(&mut s, Time::from_ns(1200), data(1));
        assert_eq!(w.dropped.len(), 1);
    }
}

/// By hand: of four packets one is sent at once, and the others leave queues of 3, 2 and 1 packets,
/// counted with them. A threshold of two is met by two of these queues, and without the departing
/// packet by one.
#[test]
fn departing_packet_is_counted_or_not() {
    let marked = |at: MarkAt| {
        let ecn =
            EcnParams { threshold_packets: Auto::Given(2).into(), at, ..EcnParams::default() };
        let mut s = switch(false, &per_port(10), &MarkingParams::Ecn(ecn), &QueueParams::default());
        let mut w = Recorder::default();
        for _ in 0..4 {
            w.arrive(&mut s, Time::ZERO, data(1));
        }
        w.advance(&mut s, Time::from_ms(1));
        w.sent
            .iter()
            .map(|(_, id, _)| u32::from(w.packets[*id].ecn() == Ecn::Ce))
            .collect::<Vec<_>>()
    };
    assert_eq!(marked(MarkAt::Dequeue), [0, 1, 1, 0]);
    assert_eq!(marked(MarkAt::AfterDequeue), [0, 1, 0, 0]);
}

/// Poisson arrivals of exponential sizes: an M/M/1/K queue, K with the packet in transmission,
/// which loses (1 − ρ) ρ^K / (1 − ρ^(K+1)) of what is offered.
#[test]
fn drop_tail_loses_what_an_m_m_1_k_queue_does() {
    for (fast, load) in [(true, 0.8f64), (false, 1.25)] {
        let mut s = switch(fast, &per_port(4), &MarkingParams::default(), &QueueParams::default());
        let (mut w, mut random) = (Recorder::default(), Stream::new(1, "m/m/1/k"));
        let (n, mut now) = (300_000u32, 0.0);
        for _ in 0..n {
            // A thousand bytes, the mean, take 800 ns.
            now += random.exponential(800_000.0 / load);
            let size = random.exponential(1_000.0).min(60_000.0) as u16 + 1;
            w.arrive(&mut s, Time::from_ps(now as u64), Packet { size, ..data(1) });
        }
        let expected = (1.0 - load) * load.powi(5) / (1.0 - load.powi(6));
        let lost = w.dropped.len() as f64 / f64::from(n);
        assert!((lost / expected - 1.0).abs() < 0.05, "load {load}: {lost} and not {expected}");
    }
}

#[test]
fn a_shared_memory_limits_by_what_is_free() {
    let buffer =
        BufferParams::Shared(SharedParams { size: Bytes(15_000).into(), ..Default::default() });
    let mut s = switch(false, &buffer, &MarkingParams::default(), &QueueParams::default());
    let mut w = Recorder::default();
    for _ in 0..8 {
        w.arrive(&mut s, Time::ZERO, data(1));
    }
    // One on the wire, 5 × 1,500 wait (7,500 ≤ 1 × 7,500 free); the sixth to wait does not fit.
    assert_eq!(w.dropped.len(), 2);
    assert!(w.dropped.iter().all(|d| d.1 == DropReason::SharedBuffer));
    assert_eq!(s.memory_used(), 7_500);
}

#[test]
fn a_paused_priority_waits_and_expires() {
    let mut s = switch(
        false,
        &per_port(10),
        &MarkingParams::default(),
        &QueueParams::of_kind("strict-priority").unwrap(),
    );
    let mut w = Recorder::default();
    s.on_pause(
        Time::ZERO,
        1,
        PauseFrame { target: PauseTarget::Priority(3), duration: Time::from_us(10) },
        &mut w,
    );
    w.arrive(&mut s, Time::ZERO, of_priority(3));
    w.arrive(&mut s, Time::ZERO, of_priority(0));
    w.advance(&mut s, Time::from_us(9));
    assert_eq!(w.sent.iter().map(|s| s.1).collect::<Vec<_>>(), [1], "only priority 0 may leave");
    w.advance(&mut s, Time::from_us(10));
    assert_eq!(w.sent[1], (1, 0, Time::from_ns(11_200)), "the pause ends by itself");
}

#[test]
fn a_resume_ends_a_pause_early() {
    let mut s = switch(false, &per_port(10), &MarkingParams::default(), &QueueParams::default());
    let mut w = Recorder::default();
    s.on_pause(
        Time::ZERO,
        1,
        PauseFrame { target: PauseTarget::Priority(0), duration: Time::from_ms(10) },
        &mut w,
    );
    w.arrive(&mut s, Time::ZERO, data(1));
    assert!(w.sent.is_empty());
    s.on_pause(
        Time::from_us(5),
        1,
        PauseFrame { target: PauseTarget::Priority(0), duration: Time::ZERO },
        &mut w,
    );
    assert_eq!(w.sent, [(1, 0, Time::from_ns(6_200))]);
}

#[test]
fn ttl_ends_a_loop() {
    let mut s = switch(true, &per_port(10), &MarkingParams::default(), &QueueParams::default());
    let mut w = Recorder::default();
    let id = w.packets.insert(Packet { ttl: 1, ..data(1) });
    s.on_arrival(Time::ZERO, 0, id, &mut w);
    assert_eq!(w.dropped, [(id, DropReason::Ttl)]);
}

/// Departures, drops, marks, lengths of queues and the longest, for arrivals that come so many
/// nanoseconds after each other, with so many bytes for a host.
fn verdicts(
    fast: bool,
    (buffer, threshold): (&BufferParams, u32),
    arrivals: &[(u64, u16, u32)],
) -> impl PartialEq + std::fmt::Debug {
    let marking = MarkingParams::Ecn(EcnParams {
        threshold_packets: Auto::Given(threshold).into(),
        ..Default::default()
    });
    let mut s = switch(fast, buffer, &marking, &QueueParams::default());
    let mut w = Recorder::default();
    let mut now = Time::ZERO;
    let mut views = Vec::new();
    for (gap, size, to) in arrivals {
        now += Time::from_ns(*gap);
        // Looking on changes nothing.
        if gap % 7 == 3 {
            w.advance(&mut s, now - Time::from_ps(1));
            s.occupancy(now, |port, view| views.push((port, view)));
        }
        w.arrive(&mut s, now, Packet { size: *size, ..data(*to) });
    }
    w.advance(&mut s, Time::from_s(1));
    let marks: Vec<Ecn> = (0..arrivals.len() as u32).map(|id| w.packets[id].ecn()).collect();
    w.sent.sort();
    (w.sent, w.dropped, marks, views, s.bytes_max())
}

proptest! {
    /// Fast and general ports give the same departures, marks and drops for any arrivals.
    #[test]
    fn fast_and_general_agree(
        arrivals in prop::collection::vec((0u64..3_000, 40u16..1500), 1..200),
        capacity in 1u32..20,
        threshold in 0u32..20,
        bytes in prop::option::of(100u64..20_000),
    ) {
        let buffer = BufferParams::PerPort(PerPortParams {
            size: Auto::Given(bytes.map(Bytes)).into(),
            packets: Some(capacity).into(),
            per: None,
        });
        let arrivals: Vec<_> = arrivals.iter().map(|(gap, size)| (*gap, *size, 1)).collect();
        let run = |fast| verdicts(fast, (&buffer, threshold), &arrivals);
        prop_assert_eq!(run(true), run(false));
    }

    /// The same of a memory that the ports share, whatever share of it a queue may take.
    #[test]
    fn fast_and_general_agree_on_a_shared_memory(
        arrivals in prop::collection::vec((0u64..2_000, 40u16..1500, 0u32..2), 1..300),
        size in 2_000u64..60_000,
        alpha in prop::sample::select(vec![0.125, 0.5, 1.0, 2.0, 8.0]),
        threshold in 0u32..20,
    ) {
        let buffer =
            BufferParams::Shared(SharedParams { size: Bytes(size).into(), alpha, per: None });
        let run = |fast| verdicts(fast, (&buffer, threshold), &arrivals);
        prop_assert_eq!(run(true), run(false));
    }

    /// A packet that goes past a queue of any kind leaves the switch as if it had waited there.
    #[test]
    fn passing_an_idle_queue_changes_nothing(
        arrivals in prop::collection::vec((0u64..3_000, 40u16..1500, 0u8..8, 0u32..4), 1..200),
        size in 3_000u64..20_000,
        threshold in 0u32..4,
        at_dequeue in any::<bool>(),
    ) {
        let buffer =
            BufferParams::Shared(SharedParams { size: Bytes(size).into(), ..Default::default() });
        let marking = MarkingParams::Ecn(EcnParams {
            threshold_packets: Auto::Given(threshold).into(),
            at: if at_dequeue { MarkAt::Dequeue } else { MarkAt::Enqueue },
            ..Default::default()
        });
        for kind in ["fifo", "strict-priority", "srpt", "sp-pifo", "dynamic-queues"] {
            let run = |is_plain| {
                let queue = QueueParams::of_kind(kind).expect("it is registered");
                let mut s = switch(false, &buffer, &marking, &queue);
                assert!(s.is_plain, "nobody watches its queues");
                s.is_plain = is_plain;
                let mut w = Recorder::default();
                let mut now = Time::ZERO;
                for &(gap, size, priority, rank) in &arrivals {
                    now += Time::from_ns(gap);
                    w.arrive(&mut s, now, Packet { size, rank, ..of_priority(priority) });
                }
                w.advance(&mut s, Time::from_s(1));
                let marks: Vec<Ecn> =
                    (0..arrivals.len() as u32).map(|id| w.packets[id].ecn()).collect();
                (w.sent, w.dropped, marks, s.memory_used())
            };
            prop_assert_eq!(run(true), run(false), "{}", kind);
        }
    }

    /// Whatever arrives, the memory is empty when everything has left.
    #[test]
    fn memory_is_conserved(
        arrivals in prop::collection::vec((0u64..2_000, 40u16..1500, 0u8..8), 1..200),
        size in 1_500u64..40_000,
    ) {
        let buffer =
            BufferParams::Shared(SharedParams { size: Bytes(size).into(), ..Default::default() });
        let mut s = switch(
            false,
            &buffer,
            &MarkingParams::default(),
            &QueueParams::of_kind("strict-priority").unwrap(),
        );
        let mut w = Recorder::default();
        let mut now = Time::ZERO;
        for (gap, size, priority) in &arrivals {
            now += Time::from_ns(*gap);
            w.arrive(&mut s, now, Packet { size: *size, ..of_priority(*priority) });
        }
        w.advance(&mut s, Time::from_s(1));
        prop_assert_eq!(s.memory_used(), 0);
        prop_assert_eq!(w.sent.len() + w.dropped.len(), arrivals.len());
    }
}
