//! A leaf with four hosts and four ports to spines, under every deflection and admission: what the
//! node keeps whatever arrives.

use super::*;
use crate::packet::{Color, Importance, flags};
use crate::switch::deflection::DeflectionParams;
use crate::switch::occupancy::OccupancyParams;
use crate::switch::path::PathParams;

/// Hosts 0 to 3 hang at ports 0 to 3; hosts 4 to 7 are reached by any of ports 4 to 7.
const FABRIC: [u16; 4] = [4, 5, 6, 7];

/// The parts of a leaf here.
#[derive(Clone, Debug)]
struct Setup {
    deflection: &'static str,
    admission: AdmissionParams,
    occupancy: OccupancyParams,
    buffer: BufferParams,
}

impl Setup {
    fn queue(&self) -> &'static str {
        if self.deflection == "vertigo" { "srpt" } else { "fifo" }
    }

    fn leaf(&self, fast: bool) -> Switch {
        let hosts = (0..8).map(|host| if host < 4 { (0, host) } else { (1, 0) }).collect();
        let port = PortConfig {
            admission: Admission::new(&self.admission),
            queue: Queue::new(&QueueParams::of_kind(self.queue()).unwrap()),
            ..PortConfig::plain(
                Rate::from_gbps(10),
                Capacity::new(&self.buffer, &PortSite::default()),
            )
        };
        assert!(!fast || port.fits_fast());
        let routes =
            Routes::new(Arc::new(Attachment { hosts }), Some(0), &[vec![], FABRIC.to_vec()]);
        let memory = Memory::new(&self.buffer, &SwitchFacts::default());
        Switch::new(SwitchConfig {
            fabric_ports: FABRIC.to_vec(),
            fast,
            path: Path::new(&PathParams::of_kind("power-of-n").unwrap()),
            deflection: Deflection::new(&DeflectionParams::of_kind(self.deflection).unwrap()),
            occupancy: Occupancy::new(&self.occupancy),
            ..SwitchConfig::plain(routes, vec![port; 8], memory, Stream::new(1, "switch/leaf"))
        })
    }
}

/// Thresholds that bite in a buffer of `size`, and samples of every rank.
fn admission(kind: &str, size: u64) -> AdmissionParams {
    let mut params = AdmissionParams::of_kind(kind).unwrap();
    for (at, key) in params.params().keys().iter().enumerate() {
        let value = match key.field {
            "min_threshold" | "threshold" => crate::params::Value::Bytes(Bytes(size / 4)),
            "max_threshold" => crate::params::Value::Bytes(Bytes(size * 3 / 4)),
            "sample_period" => crate::params::Value::Int(1),
            "burst_headroom" => crate::params::Value::Float(0.2),
            "weight" => crate::params::Value::Float(0.5),
            _ => continue,
        };
        params.params_mut().set(at, &value).unwrap();
    }
    params
}

fn bytes(size: u64) -> BufferParams {
    BufferParams::PerPort(PerPortParams {
        size: Auto::Given(Some(Bytes(size))).into(),
        ..Default::default()
    })
}

fn refreshed(period: Time) -> OccupancyParams {
    OccupancyParams::Refreshed(occupancy::RefreshedParams { period, ..Default::default() })
}

/// Gap in ns, destination, rank, size, TTL.
type Arrivals = Vec<(u64, u32, u32, u16, u8)>;

fn arrivals() -> impl Strategy<Value = Arrivals> {
    // Two destinations in three are host 0, and most packets come at once: its port overflows.
    let dst = prop_oneof![2 => Just(0u32), 1 => 0u32..8];
    let gap = prop_oneof![3 => Just(0u64), 1 => 0u64..2_000];
    prop::collection::vec(
        (gap, dst, 0u32..50, 200u16..1500, prop_oneof![1 => Just(1u8), 20 => 2u8..64]),
        1..150,
    )
}

fn setup() -> impl Strategy<Value = Setup> {
    let kinds = |place: &'static crate::registry::Place| {
        prop::sample::select(place.mechanisms).prop_map(|m| m.kind)
    };
    let occupancy = prop_oneof![
        Just(OccupancyParams::default()),
        (100u64..20_000).prop_map(|ns| refreshed(Time::from_ns(ns))),
    ];
    let size = 2_000u64..20_000;
    (kinds(DeflectionParams::place()), kinds(AdmissionParams::place()), occupancy, size).prop_map(
        |(deflection, kind, occupancy, size)| Setup {
            deflection,
            admission: admission(kind, size),
            occupancy,
            buffer: bytes(size),
        },
    )
}

/// Lets the packets arrive one by one; `look` sees the switch as it was before each, what was
/// recorded, and the switch.
fn feed(
    s: &mut Switch,
    arrivals: &Arrivals,
    mut look: impl FnMut(&Switch, &Recorder, &Switch, PacketId, Time),
) -> Recorder {
    let mut w = Recorder::default();
    let mut now = Time::ZERO;
    for &(gap, dst, rank, size, ttl) in arrivals {
        now += Time::from_ns(gap);
        w.advance(s, now);
        let before = s.clone();
        let id = w.packets.insert(Packet { rank, size, ttl, ..data(dst) });
        s.on_arrival(now, 0, id, &mut w);
        look(&before, &w, s, id, now);
    }
    w
}

/// While there are others: what goes there is lost, and the switch knows it.
#[test]
fn nothing_is_deflected_to_a_port_whose_link_is_known_to_be_down() {
    for kind in
        DeflectionParams::place().mechanisms.iter().map(|m| m.kind).filter(|kind| *kind != "none")
    {
        let setup = Setup {
            deflection: kind,
            admission: AdmissionParams::default(),
            occupancy: OccupancyParams::default(),
            buffer: bytes(3_000),
        };
        let mut s = setup.leaf(false);
        s.set_alive(4, false);
        let arrivals = (0..60).map(|i| (0, i % 2, i % 7, 1000, 60)).collect();
        let mut w = feed(&mut s, &arrivals, |_, _, _, _, _| ());
        w.advance(&mut s, Time::from_s(1));
        assert!(
            s.deflected > 0 && w.sent.iter().all(|sent| sent.0 != 4),
            "{kind}: {} deflected",
            s.deflected
        );
        s.set_alive(4, true);
        let now = Time::from_s(2);
        for i in 0..60 {
            let id = w.packets.insert(Packet { rank: i % 7, size: 1000, ttl: 60, ..data(i % 4) });
            s.on_arrival(now, 0, id, &mut w);
        }
        w.advance(&mut s, Time::from_s(3));
        assert!(w.sent.iter().any(|sent| sent.0 == 4), "{kind}: the port is used again");
    }
}

/// A packet that the admission refuses is dropped for its reason, whether there is room or not;
/// want of room still moves the least important.
#[test]
fn vertigo_moves_packets_only_for_want_of_room() {
    let setup = Setup {
        deflection: "vertigo",
        admission: admission("color-aware", 12_000), // red below 3,000
        occupancy: OccupancyParams::default(),
        buffer: bytes(12_000),
    };
    let (mut s, mut w) = (setup.leaf(false), Recorder::default());
    let green = |rank| Packet { rank, size: 1000, ..data(0) };
    let red = |rank| Packet { class: Importance::Unimportant.into(), ..green(rank) };
    let mut arrive = |packets: &[Packet]| {
        packets.iter().for_each(|packet| {
            w.arrive(&mut s, Time::ZERO, *packet);
        });
        (w.dropped.clone(), s.deflected)
    };
    // One leaves, two wait.
    let mut dropped = vec![(3, DropReason::Color), (4, DropReason::Color)];
    assert_eq!(arrive(&[red(1); 5]), (dropped.clone(), 0), "there is room");
    assert_eq!(arrive(&[green(9); 11]), (dropped.clone(), 1), "ten fill the queue");
    dropped.push((16, DropReason::Color));
    assert_eq!(arrive(&[red(0)]), (dropped.clone(), 1), "more important than all, and red");
    assert_eq!(arrive(&[green(0)]), (dropped, 2), "in the place of another");
}

fn general(s: &Switch) -> &[GeneralPort] {
    let Ports::General(ports) = &s.ports else { panic!("general ports were asked for") };
    ports
}

/// Where a packet waits or was sent.
fn place(s: &Switch, w: &Recorder, id: PacketId) -> Option<u16> {
    let sent = w.sent.iter().find(|sent| sent.1 == id).map(|sent| sent.0);
    sent.or_else(|| (0..8).find(|port| general(s)[*port as usize].queued().contains(&id)))
}

proptest! {
    /// Every packet is sent or dropped once, or still waits; no queue holds more than its buffer;
    /// none goes to a host that is not its own; a packet whose hops are used up is dropped for
    /// that.
    #[test]
    fn whatever_arrives_nothing_is_lost_or_doubled(
        arrivals in arrivals(),
        setup in setup(),
        stop in any::<bool>(),
    ) {
        let size = Bytes(Capacity::new(&setup.buffer, &PortSite::default()).bytes);
        let mut s = setup.leaf(false);
        let mut full = false;
        let mut w = feed(&mut s, &arrivals, |_, _, s, _, _| {
            full |= general(s).iter().any(|port| port.view().bytes > size.get());
        });
        prop_assert!(!full);
        if !stop {
            w.advance(&mut s, Time::from_s(1));
            prop_assert!(s.queued().is_empty() && s.memory_used() == 0);
        }
        let ids = w.sent.iter().map(|sent| sent.1).chain(w.dropped.iter().map(|dropped| dropped.0));
        let mut ids: Vec<PacketId> = ids.chain(s.queued()).collect();
        ids.sort();
        prop_assert_eq!(ids, (0..arrivals.len() as u32).collect::<Vec<_>>());
        prop_assert!(s.bytes_max().into_iter().all(|bytes| bytes <= size.get()));
        for &(port, id, _) in &w.sent {
            let packet = &w.packets[id];
            let deflected = packet.has(flags::DEFLECTED);
            prop_assert!(
                FABRIC.contains(&port) || port == packet.dst as u16 && !deflected,
                "{:?} to {}",
                packet,
                port
            );
            prop_assert!(!(deflected && setup.deflection == "none"));
        }
        for (id, &(.., ttl)) in arrivals.iter().enumerate() {
            let expired = w.dropped.contains(&(id as u32, DropReason::Ttl));
            prop_assert_eq!(expired, ttl == 1);
        }
        let stale = w.dropped.iter().any(|dropped| dropped.1 == DropReason::OverflowStale);
        prop_assert!(!stale || setup.occupancy.kind() == "refreshed");
    }

    /// A Canary that knows its queues puts no packet where there is no room or the test refuses it.
    #[test]
    fn canary_enqueues_only_where_the_test_passes(arrivals in arrivals(), setup in setup()) {
        let setup = Setup { deflection: "canary", occupancy: OccupancyParams::default(), ..setup };
        let mut bad = None;
        feed(&mut setup.leaf(false), &arrivals, |before, w, s, id, now| {
            let Some(port) = place(s, w, id) else { return };
            let (packet, port) = (w.packets[id], &general(before)[port as usize]);
            let room =
                port.lacks_room(&port.view(), &Claim::of(&packet, 0), &before.memory).is_none();
            if !room || seeing_at(now, port.view(), &packet, |at| port.admission.test(at)).is_some()
            {
                bad = Some(id);
            }
        });
        prop_assert_eq!(bad, None);
    }

    /// Vertigo moves or drops for a packet only such as are strictly less important, and serves the
    /// most important.
    #[test]
    fn vertigo_displaces_larger_ranks_and_serves_the_smallest(
        arrivals in arrivals(),
        setup in setup(),
    ) {
        let setup = Setup { deflection: "vertigo", admission: AdmissionParams::default(), ..setup };
        let mut s = setup.leaf(false);
        let mut bad = Vec::new();
        let mut w = feed(&mut s, &arrivals, |before, w, s, id, _| {
            for port in 0..8 {
                for other in general(before)[port].queued() {
                    let stays = general(s)[port].queued().contains(&other);
                    if !stays && w.packets[other].rank <= w.packets[id].rank {
                        bad.push((id, other));
                    }
                }
            }
        });
        prop_assert!(bad.is_empty(), "{:?}", bad);
        // From here on nothing arrives.
        while let Some((&(at, _), ())) = w.calls.iter().next() {
            let sent = w.sent.len();
            w.advance(&mut s, at);
            for &(port, id, _) in &w.sent[sent..] {
                let waiting = general(&s)[port as usize].queued();
                prop_assert!(
                    waiting.iter().all(|other| w.packets[*other].rank >= w.packets[id].rank)
                );
            }
        }
    }

    /// Whoever is moved passes the admission of the queue that it is moved to: nowhere do red bytes
    /// reach their threshold.
    #[test]
    fn vertigo_asks_the_admission_of_every_queue(arrivals in arrivals(), room in 4_000u64..20_000) {
        let setup = Setup {
            deflection: "vertigo",
            admission: admission("color-aware", room),
            occupancy: OccupancyParams::default(),
            buffer: bytes(room),
        };
        let (mut s, mut w, mut now) = (setup.leaf(false), Recorder::default(), Time::ZERO);
        for &(gap, dst, rank, size, _) in &arrivals {
            now += Time::from_ns(gap);
            let importance =
                if rank % 2 == 0 { Importance::Unimportant } else { Importance::Control };
            w.arrive(&mut s, now, Packet { rank, size, class: importance.into(), ..data(dst) });
            for port in general(&s) {
                let waiting = port.queued();
                let red = waiting
                    .iter()
                    .map(|id| &w.packets[*id])
                    .filter(|packet| packet.color() == Color::Red);
                prop_assert!(red.map(|packet| packet.size as u64).sum::<u64>() < room / 4);
            }
        }
    }

    /// The packets forwarded and those deflected are together those that join a queue. (Vertigo
    /// moves those that have joined before.)
    #[test]
    fn forwarded_and_deflected_are_what_is_queued(arrivals in arrivals(), setup in setup()) {
        prop_assume!(setup.deflection != "vertigo");
        let mut s = setup.leaf(false);
        let (mut forwarded, mut queued) = (0, 0);
        feed(&mut s, &arrivals, |_, w, s, id, _| {
            let joined = place(s, w, id).is_some();
            queued += u64::from(joined);
            forwarded += u64::from(joined && !w.packets[id].has(flags::DEFLECTED));
        });
        prop_assert_eq!(forwarded + s.deflected, queued);
    }

    /// Fast and general ports give the same verdicts and departures with deflection, too.
    #[test]
    fn fast_and_general_agree_with_deflection(arrivals in arrivals(), setup in setup()) {
        let needs_general = Admission::new(&setup.admission).watches_departures();
        prop_assume!(setup.deflection != "vertigo" && !needs_general);
        let run = |fast| {
            let mut s = setup.leaf(fast);
            let mut w = Recorder::default();
            let mut now = Time::ZERO;
            for &(gap, dst, rank, size, _) in &arrivals {
                now += Time::from_ns(gap);
                w.arrive(&mut s, now, Packet { rank, size, ..data(dst) });
            }
            w.advance(&mut s, Time::from_s(1));
            let packets: Vec<Packet> = (0..arrivals.len() as u32).map(|id| w.packets[id]).collect();
            let mut sent = w.sent;
            sent.sort();
            (sent, w.dropped, packets, s.deflected)
        };
        prop_assert_eq!(run(true), run(false));
    }

    /// With empty neighbours DIBS loses nothing of a burst that fits the queues of all ports to
    /// switches.
    #[test]
    fn dibs_absorbs_a_burst_of_all_its_queues(
        room in 1u32..30,
        share in 0.0..=1.0f64,
        simple in any::<bool>(),
    ) {
        let setup = Setup {
            deflection: if simple { "simple" } else { "dibs" },
            admission: AdmissionParams::default(),
            occupancy: OccupancyParams::default(),
            buffer: per_port(room),
        };
        for fast in [true, false] {
            let (mut s, mut w) = (setup.leaf(fast), Recorder::default());
            let burst = (share * f64::from(room * FABRIC.len() as u32)) as u32;
            (0..burst).for_each(|_| {
                w.arrive(&mut s, Time::ZERO, data(0));
            });
            prop_assert!(w.dropped.is_empty());
            prop_assert_eq!(s.deflected, u64::from(burst.saturating_sub(room + 1)));
        }
    }
}

/// A burst between two renewals: the switch goes on with what it knew, and the queue drops.
#[test]
fn an_overflow_that_the_switch_did_not_see_is_stale() {
    for (fast, deflection) in [(true, "none"), (false, "none"), (true, "canary"), (false, "canary")]
    {
        let setup = Setup {
            deflection,
            admission: AdmissionParams::of_kind("aifo").unwrap(),
            occupancy: refreshed(Time::from_s(1)),
            buffer: per_port(2),
        };
        let (mut s, mut w) = (setup.leaf(fast), Recorder::default());
        for _ in 0..5 {
            w.arrive(&mut s, Time::from_us(1), data(0));
        }
        assert_eq!(
            w.dropped,
            [(3, DropReason::OverflowStale), (4, DropReason::OverflowStale)],
            "{deflection} {fast}"
        );
        assert_eq!(s.deflected, 0);
    }
}
