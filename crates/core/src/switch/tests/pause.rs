//! A switch that pauses, between neighbours that send as much as they may: PFC loses nothing.

use super::*;
use crate::packet::TrafficClass;
use crate::switch::admission::ColorParams;
use crate::switch::buffer::{HeadroomRule, PoolsParams};
use crate::switch::pause::{FRAME_BYTES, PauseParams, PfcFrames, PfcParams};
use crate::switch::site::Auto;
use std::collections::{BTreeSet, VecDeque};

const PORTS: u16 = 12;

/// The events, in their order at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Ready(u16),
    Arrive(u16),
    Frame(u16),
    Check(u16, PauseTarget),
    /// A neighbour may begin to send.
    Send(u16),
    /// The neighbour downstream pauses what the switch sends, or lets it go on.
    Downstream(u16),
}

/// The neighbours, their links, and the clock.
struct World {
    packets: Packets,
    events: BTreeSet<(Time, What)>,
    /// By port: packets and frames on the link, and the neighbour.
    arriving: Vec<VecDeque<(Time, PacketId)>>,
    frames: Vec<VecDeque<PauseFrame>>,
    paused_until: Vec<[Time; 8]>,
    busy_until: Vec<Time>,
    dropped: Vec<DropReason>,
    sent: u64,
    delay: Time,
}

impl Wire for World {
    fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }
    fn transmit(&mut self, _: u16, id: PacketId, _: Time) {
        self.packets.remove(id);
        self.sent += 1;
    }
    fn call_ready(&mut self, port: u16, at: Time) {
        self.events.insert((at, What::Ready(port)));
    }
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.dropped.push(reason);
        self.packets.remove(id);
    }
    fn send_pause(&mut self, port: u16, frame: PauseFrame, departs: Time) {
        self.frames[port as usize].push_back(frame);
        assert!(
            self.events.insert((departs + self.delay, What::Frame(port))),
            "frames follow each other"
        );
    }
    fn call_pause_check(&mut self, port: u16, target: PauseTarget, at: Time) {
        assert!(self.events.insert((at, What::Check(port, target))), "one call is enough");
    }
}

/// The parts of a run.
#[derive(Clone, Debug)]
struct Run {
    seed: u64,
    buffer: PoolsParams,
    pfc: PfcParams,
    rate: Rate,
    delay: Time,
    priorities: u64,
    /// Destinations are drawn from so many ports.
    hot: u64,
    /// Every packet is as large as can be.
    full: bool,
    /// How often in 64 times the downstream neighbours pause.
    blocked: u64,
    queue: &'static str,
}

const RATE: Rate = Rate::from_gbps(40);

impl Run {
    fn switch(&self) -> Switch {
        self.switch_that_admits(&AdmissionParams::default())
    }

    fn switch_that_admits(&self, admission: &AdmissionParams) -> Switch {
        let buffer = BufferParams::Pools(self.buffer.clone());
        let links = vec![(self.rate, self.delay); PORTS as usize];
        let port = PortConfig {
            queue: Queue::new(&QueueParams::of_kind(self.queue).expect("it is registered")),
            admission: Admission::new(admission),
            ..PortConfig::plain(self.rate, Capacity::new(&buffer, &PortSite::default()))
        };
        let attachment = Attachment { hosts: (0..PORTS).map(|port| (0, port)).collect() };
        let routes = Routes::new(Arc::new(attachment), Some(0), &[vec![]]);
        let memory =
            Memory::new(&buffer, &SwitchFacts { packet_max: 1_500, links, pauses: true, tier: 0 });
        Switch::new(SwitchConfig {
            pause: Pause::new(&PauseParams::Pfc(self.pfc.clone())),
            ..SwitchConfig::plain(
                routes,
                vec![port; PORTS as usize],
                memory,
                Stream::new(1, "switch/test"),
            )
        })
    }

    /// All neighbours send whatever they may for so long.
    fn go(&self, until: Time) -> (Switch, World) {
        let count = PORTS as usize;
        let mut s = self.switch();
        let mut w = World {
            packets: Packets::default(),
            events: BTreeSet::new(),
            arriving: vec![VecDeque::new(); count],
            frames: vec![VecDeque::new(); count],
            paused_until: vec![[Time::ZERO; 8]; count],
            busy_until: vec![Time::ZERO; count],
            dropped: Vec::new(),
            sent: 0,
            delay: self.delay,
        };
        let mut random = Stream::new(self.seed, "world");
        for port in 0..PORTS {
            w.events.insert((Time::from_ns(random.below(2_000)), What::Send(port)));
            let from = if self.blocked == 64 { 0 } else { random.below(50_000) };
            w.events.insert((Time::from_ns(from), What::Downstream(port)));
        }
        while let Some((now, what)) = w.events.pop_first().filter(|(now, _)| *now < until) {
            self.happen(now, what, &mut s, &mut w, &mut random);
        }
        (s, w)
    }

    fn happen(&self, now: Time, what: What, s: &mut Switch, w: &mut World, random: &mut Stream) {
        match what {
            What::Ready(port) => s.on_ready(now, port, w),
            What::Check(port, target) => s.on_pause_check(now, port, target, w),
            What::Arrive(port) => {
                let (_, id) = w.arriving[port as usize].pop_front().expect("it is on its way");
                if let Some((next, _)) = w.arriving[port as usize].front() {
                    w.events.insert((*next, What::Arrive(port)));
                }
                s.on_arrival(now, port, id, w);
            }
            What::Frame(port) => {
                let frame = w.frames[port as usize].pop_front().expect("it is on its way");
                w.paused_until[port as usize]
                    [frame.target.queue().expect("it stops a priority") as usize] =
                    now + frame.duration;
                w.events.insert((now.max(w.busy_until[port as usize]), What::Send(port)));
            }
            What::Send(port) => self.send(now, port, w, random),
            What::Downstream(port) => {
                let blocks = random.below(64) < self.blocked;
                let duration = if blocks { Time::from_us(60) } else { Time::ZERO };
                for priority in 0..self.priorities as u8 {
                    s.on_pause(
                        now,
                        port,
                        PauseFrame { target: PauseTarget::Priority(priority), duration },
                        w,
                    );
                }
                w.events.insert((
                    now + Time::from_ns(10_000 + random.below(40_000)),
                    What::Downstream(port),
                ));
            }
        }
    }

    /// The neighbour at `port` begins to send what is not paused, or waits until something is not.
    fn send(&self, now: Time, port: u16, w: &mut World, random: &mut Stream) {
        let it = port as usize;
        if now < w.busy_until[it] {
            return;
        }
        let free: Vec<u8> =
            (0..self.priorities as u8).filter(|p| w.paused_until[it][*p as usize] <= now).collect();
        if free.is_empty() {
            let paused = &w.paused_until[it][..self.priorities as usize];
            w.events
                .insert((*paused.iter().min().expect("there are priorities"), What::Send(port)));
            return;
        }
        let priority = free[random.below(free.len() as u64) as usize];
        let size = if self.full { 1_500 } else { 64 + random.below(1_437) };
        // Nobody is his own neighbour's destination.
        let dst = (it as u64 + 1 + random.below(self.hot)) % PORTS as u64;
        let dst = if random.below(4) > 0 { dst.min(self.hot) } else { dst } as u32;
        let packet = Packet {
            dst,
            size: size as u16,
            payload: 40,
            class: TrafficClass::default().with_priority(priority),
            ttl: 9,
            ..Packet::default()
        };
        let id = w.packets.insert(packet);
        w.busy_until[it] = now + self.rate.transmission_time(size);
        let arrives = w.busy_until[it] + self.delay;
        if w.arriving[it].is_empty() {
            w.events.insert((arrives, What::Arrive(port)));
        }
        w.arriving[it].push_back((arrives, id));
        w.events.insert((w.busy_until[it], What::Send(port)));
    }
}

fn runs() -> impl Strategy<Value = Run> {
    let pfc = prop::sample::select(vec![
        PfcParams::default(),
        PfcParams { frames: PfcFrames::EachArrival, ..PfcParams::default() },
        PfcParams { alpha: 4.0, ..PfcParams::default() },
        PfcParams { resume_offset: Bytes(50_000), alpha: 0.5, ..PfcParams::default() },
        PfcParams {
            pause_time: Some(Time::from_us(5)),
            recheck: Some(Time::from_us(2)),
            resume: false,
            ..PfcParams::default()
        },
        PfcParams {
            pause_time: Some(Time::from_us(5)),
            recheck: Some(Time::from_us(2)),
            resume: false,
            frames: PfcFrames::EachArrival,
            ..PfcParams::default()
        },
    ]);
    let queue = prop::sample::select(vec!["fifo", "strict-priority"]);
    let rate = prop::sample::select(vec![10, 25, 40, 100]);
    let link = (rate, 0..10_000u64, any::<bool>()).prop_map(|(gbps, delay, triples)| {
        // Three delays are enough from two packets a delay on.
        let rule = if triples { HeadroomRule::ThreeDelays } else { HeadroomRule::RoundTrip };
        (gbps, if triples { delay.max(3_010 * 8 / gbps) } else { delay }, rule)
    });
    (
        any::<u64>(),
        pfc,
        link,
        1..4u64,
        1..12u64,
        any::<bool>(),
        prop::sample::select(vec![0, 20, 64]),
        queue,
    )
        .prop_map(
            |(seed, pfc, (gbps, delay, headroom_rule), priorities, hot, full, blocked, queue)| {
                Run {
                    seed,
                    buffer: PoolsParams {
                        size: Bytes(1_000_000 + 12 * priorities * delay * gbps * 3 / 8).into(),
                        lossless_priorities: priorities as u32,
                        headroom_rule,
                        ..PoolsParams::default()
                    },
                    pfc,
                    rate: Rate::from_gbps(gbps),
                    delay: Time::from_ns(delay),
                    priorities,
                    hot,
                    full,
                    blocked,
                    queue,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Oracle: with headroom for 2 · delay · rate + 2 MTU a lossless priority, or for 3 · delay ·
    /// rate where a link holds two packets, PFC never drops, at any rate, delay and load.
    #[test]
    fn pfc_never_drops_at_any_load(run in runs()) {
        let (s, w) = run.go(Time::from_us(400));
        prop_assert_eq!(&w.dropped[..], &[]);
        let counts = s.pause_counts();
        prop_assert!(counts.frames >= counts.episodes && counts.resumes <= counts.episodes);
        prop_assert!(run.pfc.frames == PfcFrames::Once || counts.frames >= counts.arrivals);
        let held: u64 = s.queued().iter().map(|id| w.packets[*id].size as u64).sum();
        prop_assert_eq!(held, s.memory_used());
        prop_assert_eq!(held, s.ingress_bytes.iter().flatten().sum::<u64>());
    }
}

/// A run in which everything is blocked for most of the time.
fn hard() -> Run {
    Run {
        seed: 7,
        buffer: PoolsParams {
            lossless_priorities: 2,
            size: Bytes(3_500_000).into(),
            ..PoolsParams::default()
        },
        pfc: PfcParams::default(),
        rate: RATE,
        delay: Time::from_us(10),
        priorities: 2,
        hot: 2,
        full: true,
        blocked: 60,
        queue: "strict-priority",
    }
}

/// The property above is not empty: headroom is used, and a fifth of it is not enough.
#[test]
fn headroom_is_what_prevents_the_loss() {
    let run = hard();
    let (s, w) = run.go(Time::from_us(400));
    assert!(
        w.dropped.is_empty() && s.pause_counts().episodes > 20 && w.sent > 100,
        "{:?}",
        s.pause_counts()
    );
    let scant =
        PoolsParams { headroom: Some(Bytes(20_000)), size: Bytes(1_500_000).into(), ..run.buffer };
    let (_, w) = Run { buffer: scant, ..run }.go(Time::from_us(400));
    assert!(
        w.dropped.len() > 100 && w.dropped.iter().all(|reason| *reason == DropReason::SharedBuffer)
    );
}

/// A pause lasts as long as its cause, without an arrival to renew it: packets come only after
/// downstream lets go.
#[test]
fn pauses_are_renewed_without_traffic() {
    for (pause, recheck) in [(5, 2), (40, 20)] {
        let pfc = PfcParams {
            pause_time: Some(Time::from_us(pause)),
            recheck: Some(Time::from_us(recheck)),
            ..PfcParams::default()
        };
        let run = Run { pfc, blocked: 64, hot: 11, priorities: 1, ..hard() };
        let (s, w) = run.go(Time::from_us(900));
        let counts = s.pause_counts();
        assert_eq!((w.dropped.len(), counts.resumes), (0, 0));
        // Twelve priorities are stopped early on, and stay so.
        assert_eq!(counts.episodes, 12);
        let looks = 12 * (800 / recheck..900 / recheck + 1).end;
        assert!(
            counts.frames > 12 * 800 / recheck && counts.frames <= looks,
            "{} of {looks}",
            counts.frames
        );
    }
}

/// A frame waits for the packet in transmission, and what waits behind it for the frame.
#[test]
fn frames_take_their_time_on_the_link() {
    let mut port = GeneralPort::new(PortConfig {
        rate: RATE,
        control: None,
        capacity: Capacity::UNLIMITED,
        marking: marking::Marking::new(&MarkingParams::default()),
        admission: Admission::new(&AdmissionParams::default()),
        queue: Queue::new(&QueueParams::of_kind("strict-priority").expect("it is registered")),
    });
    let mut memory = Memory::new(&per_port(100), &SwitchFacts::default());
    let (mut packets, random) = (Packets::default(), Random::from(Stream::new(1, "t")));
    let mut offer = |port: &mut GeneralPort, now: Time, priority: u8| {
        let id = packets.insert(Packet {
            size: 1_500,
            class: TrafficClass::default().with_priority(priority),
            ..Packet::default()
        });
        port.offer(now, id, &mut packets[id], &mut memory, &Terms::plain(&random))
            .expect("there is room");
        port.serve(now, &mut packets, &mut memory, &random)
    };
    let packet = RATE.transmission_time(1_500);
    let frame = RATE.transmission_time(FRAME_BYTES);
    assert_eq!(offer(&mut port, Time::ZERO, 0).transmit.map(|(_, departs)| departs), Some(packet));
    assert_eq!(offer(&mut port, Time::from_ns(1), 0).call_at, Some(packet));
    assert_eq!(port.send_frame(Time::from_ns(2)), packet + frame);
    assert_eq!(port.send_frame(Time::from_ns(3)), packet + frame * 2);
    let service = port.on_ready(packet, &mut packets, &mut memory, &random);
    assert_eq!(service, Service { transmit: None, call_at: Some(packet + frame * 2) });
    let service = port.on_ready(packet + frame * 2, &mut packets, &mut memory, &random);
    assert_eq!(service.transmit.map(|(_, departs)| departs), Some(packet * 2 + frame * 2));
}

/// Paused time is the time in which a priority was, whether the pause was renewed, ended early, or
/// ran out.
#[test]
fn paused_time_is_counted_once() {
    let mut run = hard().switch();
    let mut w = hard().go(Time::ZERO).1;
    let us = Time::from_us;
    let mut step = |now: u64, priority: u8, duration: u64| {
        run.on_pause(
            us(now),
            1,
            PauseFrame { target: PauseTarget::Priority(priority), duration: us(duration) },
            &mut w,
        );
        run.paused_time(us(now + 5))
    };
    assert_eq!(step(10, 3, 100), us(5));
    assert_eq!(step(50, 3, 100), us(45), "renewed");
    assert_eq!(step(60, 4, 3), us(55 + 3), "another, which runs out");
    assert_eq!(step(90, 3, 0), us(80 + 3), "ended early");
    assert_eq!(step(95, 3, 0), us(80 + 3));
    assert_eq!(step(200, 3, 10), us(80 + 3 + 5));
    assert_eq!(run.paused_time(us(500)), us(80 + 3 + 10));
}

/// A priority that is paused keeps the driver's calls few and apart: others are served meanwhile,
/// and it goes on in time.
#[test]
fn a_paused_priority_waits_and_others_do_not() {
    let run = Run { priorities: 2, ..hard() };
    let mut s = run.switch();
    let mut w = run.go(Time::ZERO).1;
    w.events.clear();
    s.on_pause(
        Time::ZERO,
        1,
        PauseFrame { target: PauseTarget::Priority(0), duration: Time::from_us(50) },
        &mut w,
    );
    for n in 0..10u64 {
        for priority in [0, 1] {
            let id = w.packets.insert(Packet {
                dst: 1,
                size: 1_500,
                class: TrafficClass::default().with_priority(priority),
                ttl: 9,
                ..Packet::default()
            });
            s.on_arrival(Time::from_us(n), 0, id, &mut w);
        }
        while let Some((at, What::Ready(port))) =
            w.events.pop_first().filter(|(at, _)| *at < Time::from_us(n + 1))
        {
            s.on_ready(at, port, &mut w);
        }
    }
    assert_eq!((w.sent, s.queued().len()), (10, 10));
    let mut last = Time::ZERO;
    w.events.insert((Time::from_us(50), What::Ready(1)));
    while let Some((at, What::Ready(port))) = w.events.pop_first() {
        s.on_ready(at, port, &mut w);
        last = at;
    }
    assert_eq!((w.sent, s.queued().len()), (20, 0));
    assert!(last >= Time::from_us(50) + RATE.transmission_time(1_500) * 9, "{last:?}");
}

/// Red packets are tested before anything is accounted: what is dropped for its color makes no
/// pause.
#[test]
fn a_red_drop_pauses_nobody() {
    use crate::packet::Importance;
    let run = hard();
    let color = AdmissionParams::Color(ColorParams { threshold: Auto::Given(Bytes(30_000)) });
    let mut s = run.switch_that_admits(&color);
    let mut w = run.go(Time::ZERO).1;
    w.events.clear();
    for priority in [0, 1] {
        s.on_pause(
            Time::ZERO,
            1,
            PauseFrame { target: PauseTarget::Priority(priority), duration: Time::from_ms(9) },
            &mut w,
        );
    }
    let mut arrive = |s: &mut Switch, importance: Importance| {
        let packet =
            Packet { dst: 1, size: 1_500, class: importance.into(), ttl: 9, ..Packet::default() };
        let id = w.packets.insert(packet);
        s.on_arrival(Time::ZERO, 0, id, &mut w);
        w.dropped.len()
    };
    let dropped = (0..1_000).map(|_| arrive(&mut s, Importance::Unimportant)).last();
    assert_eq!((dropped, s.memory_used(), s.pause_counts().frames), (Some(1_000 - 19), 28_500, 0));
    // Green ones are accepted, and pause.
    let dropped = (0..100).map(|_| arrive(&mut s, Importance::Important)).last();
    assert_eq!((dropped, s.memory_used()), (Some(1_000 - 19), 178_500));
    assert_eq!(s.pause_counts().frames, 1);
}

/// A port with a minimum rate serves what is paused at that rate, when packets join; pause frames
/// are no occasion.
#[test]
fn a_paused_port_serves_its_minimum_rate() {
    let served = |floor: Option<Rate>, frames: bool| {
        let mut port =
            GeneralPort::new(PortConfig::plain(Rate::from_gbps(40), Capacity::UNLIMITED));
        floor.into_iter().for_each(|rate| port.guarantee(rate));
        let mut memory = Memory::new(&per_port(1_000), &SwitchFacts::default());
        let (mut packets, random) = (Packets::default(), Random::from(Stream::new(1, "t")));
        port.on_pause(Time::ZERO, PauseTarget::Priority(0), Time::from_ms(1));
        let mut left = 0;
        // A packet every 600 ns, of which a link of 40 Gb/s carries all and the minimum of 10 Gb/s
        // half.
        for n in 1..=200u64 {
            let now = Time::from_ns(600 * n);
            let id = packets.insert(Packet { size: 1_500, ..Packet::default() });
            port.offer(now, id, &mut packets[id], &mut memory, &Terms::plain(&random))
                .expect("there is room");
            let service = match frames {
                true => port.heed(now, &mut packets, &mut memory, &random),
                false => port.serve(now, &mut packets, &mut memory, &random),
            };
            left += u32::from(service.transmit.is_some());
        }
        left
    };
    assert_eq!((served(None, false), served(None, true)), (0, 0));
    assert!((100..=102).contains(&served(Some(Rate::from_gbps(10)), false)));
    assert_eq!(served(Some(Rate::from_gbps(40)), false), 200);
    assert_eq!(served(Some(Rate::from_gbps(10)), true), 0);
}
