//! Two hosts without a kernel: packets go from one to the other by hand.

use super::*;
use crate::load::PORT;
use crate::{network, support};
use millpond_core::{Importance, Packet};
use millpond_linux::dataplane::metadata;
use millpond_linux::edge::Carrier;
use millpond_scenario::Scenario;

/// Host 0 has an application that takes a millisecond a packet.
const TEXT: &str = "duration = \"1s\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
    host-link = { rate = \"200Mbps\", delay = \"50us\" }\n[transport]\nkind = \"cubic\"\n\
    [switch]\nqueue = { kind = \"strict-priority\" }\n\
    [[application]]\nname = \"a\"\ntraffic = [\"slow\"]\nhosts = 0\nwork = \"1ms\"\nring = 2\n\
    batch = 1\n[[traffic]]\nname = \"quick\"\nkind = \"permutation\"\nsize = \"1KB\"\n\
    [[traffic]]\nname = \"slow\"\nkind = \"permutation\"\nsize = \"1KB\"\n[edge]\n";

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

const QUICK: u16 = PORT;
const SLOW: u16 = PORT + 1;

fn plan(switch: &str, set: &[(&str, &str)]) -> Plan {
    let set: Vec<_> = set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let text = format!("{TEXT}virtual-switch = {{ {switch} }}\n");
    Scenario::parse("vs.toml", &text).unwrap().plan(None, &set, None).unwrap()
}

/// Two hosts without kernels, and what carries what leaves.
struct Rig {
    hosts: [Host; 2],
    fabric: Fabric,
    buffers: Buffers,
    clock: Time,
}

/// Keeps what leaves, and has room or not.
struct Wire {
    left: Vec<(Packet, Held)>,
    is_open: bool,
}

impl Carrier for Wire {
    fn carry(
        &mut self,
        _: Time,
        _: &mut Buffers,
        packets: &[Packet],
        frames: &mut Vec<Held>,
    ) -> Result<(), Drop> {
        self.left.extend(packets.iter().copied().zip(frames.drain(..)));
        Ok(())
    }
    fn has_room(&self, _: Time) -> bool {
        self.is_open
    }
}

impl Rig {
    fn new(plan: &Plan) -> Rig {
        let labels = LabelPlan::new(plan);
        let mut uplinks = network::uplinks(plan);
        let mut host = |host| {
            let slot = Slot::new("", None, 1500);
            Host::new(plan, labels.as_ref(), host, uplinks.remove(0), slot)
        };
        let hosts = [host(0), host(1)];
        let (fabric, buffers) = (network::fabric(plan), Buffers::new(256));
        Rig { hosts, fabric, buffers, clock: Time::ZERO }
    }

    /// A frame from host 1 to a port of host 0, with so much payload.
    fn frame(port: u16, seq: u32, flags: u8, payload: u16) -> Vec<u8> {
        let length = 40 + payload;
        let [high, low] = length.to_be_bytes();
        let ip = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, 6, 0, 0];
        let ports = [2000u16.to_be_bytes(), port.to_be_bytes()].concat();
        let numbers = [seq.to_be_bytes(), [0; 4]].concat();
        let tcp = [&ports[..], &numbers, &[0x50, flags, 0xff, 0xff, 0, 0, 0, 0]].concat();
        let (to, from) = (address::mac(0).0, address::mac(1).0);
        let addresses = [address::ip(1).octets(), address::ip(0).octets()].concat();
        let parts = [&to[..], &from, &[8, 0], &ip, &addresses, &tcp];
        [&parts.concat()[..], &vec![7; payload.into()]].concat()
    }

    /// Such a frame leaves host 1.
    fn leave(&mut self, at: Time, frame: &[u8], wire: &mut Wire) {
        let view = parse(frame).unwrap();
        let first = self.fabric.classifier().read(at, frame, frame.len(), &view).unwrap();
        let copied = Frame::copy(frame, Default::default(), &mut self.buffers).unwrap();
        let edge = &mut self.hosts[1].edge;
        let departure = Departure { frame: &copied, view: &view, first };
        edge.leave(at, &mut self.buffers, departure, wire).unwrap();
        self.buffers.release(copied.buffer);
    }

    /// It arrives at host 0.
    fn arrive(&mut self, at: Time, port: u16, payload: u16) {
        let frame = Rig::frame(port, 0, ACK, payload);
        let held = Held::copy(&frame, &mut self.buffers).unwrap();
        let read = self.fabric.classifier().read(Time::ZERO, &frame, frame.len(), &held.view);
        let left = Left { at, host: 0, packet: read.unwrap(), held };
        self.hosts[0].arrive(at, left, &mut self.buffers);
        self.clock = at;
    }

    fn flush(&mut self, host: usize, at: Time, mut up: impl FnMut(u16)) {
        self.hosts[host].edge.flush(at, at, &mut self.buffers, |_, frame| {
            up(frame.length as u16 - 54);
            Ok(())
        });
    }

    /// Everything that host 0's switch has to send by `at` arrives at host 1; how many packets.
    fn speak(&mut self, at: Time) -> usize {
        self.flush(0, at, |_| ());
        let mut count = 0;
        while let Some((packet, sent)) = self.hosts[0].edge.next_word() {
            let held = Held::copy(&words::frame(&packet, &sent), &mut self.buffers).unwrap();
            let left = Left { at, host: 1, packet, held };
            self.hosts[1].arrive(at, left, &mut self.buffers);
            count += 1;
        }
        self.flush(1, at + Time::from_us(10), |_| ());
        count
    }

    /// The times at which host 0's switch has let packets up, and their payload.
    fn up(&mut self, until: Time) -> Vec<(Time, u16)> {
        let mut seen = Vec::new();
        while self.clock < until {
            self.clock += Time::from_ns(100);
            let at = self.clock;
            self.flush(0, at, |payload| seen.push((at, payload)));
        }
        seen
    }
}

#[test]
fn data_goes_up_when_its_application_has_served_it_and_the_rest_at_once() {
    let mut rig = Rig::new(&plan("kind = \"lossy\"", &[]));
    for (port, payload) in [(SLOW, 100), (SLOW, 101), (SLOW, 0), (QUICK, 102)] {
        rig.arrive(Time::from_ms(1), port, payload);
    }
    let up = rig.up(Time::from_ms(9));
    let ms = |at: Time| at.as_us_f64() / 1000.0;
    let [(a, 0), (b, 102), (c, 100), (d, 101)] = up[..] else { panic!("{up:?}") };
    assert!(ms(a) < 1.001 && ms(b) < 1.001 && (2.0..2.001).contains(&ms(c)), "{up:?}");
    assert_eq!(d - c, Time::from_ms(1));
    assert_eq!(rig.buffers.in_use(), 0);
}

#[test]
fn a_full_ring_drops_and_gives_buffers_back() {
    let mut rig = Rig::new(&plan("kind = \"lossy\"", &[]));
    (0..5).for_each(|_| rig.arrive(Time::from_ms(1), SLOW, 100));
    assert_eq!(rig.up(Time::from_us(1_500)), []);
    // One is served, and two fit the ring.
    assert_eq!(rig.hosts[0].dropped(DropReason::VirtualSwitch), 2);
    assert_eq!((rig.hosts[0].dropped_bytes(), rig.hosts[0].kept()), (308, (3, 3 * 154)));
    assert_eq!(rig.up(Time::from_ms(9)).len(), 3);
    assert_eq!((rig.buffers.in_use(), rig.hosts[0].kept()), (0, (0, 0)));
}

#[test]
fn a_paused_flow_waits_behind_its_kernel_and_keeps_its_order() {
    let kind = "kind = \"backdraft\", memory = \"3KB\", feedback = \"1ms\"";
    let mut rig = Rig::new(&plan(kind, &[]));
    (0..6).for_each(|_| rig.arrive(Time::from_us(100), SLOW, 1000));
    assert!(rig.speak(Time::from_us(200)) > 0, "a pause");
    let at = Time::from_us(300);
    let mut wire = Wire { left: Vec::new(), is_open: false };
    for (port, payload) in [(SLOW, 500), (SLOW, 501), (SLOW, 502), (QUICK, 503)] {
        rig.leave(at, &Rig::frame(port, 0, ACK, payload), &mut wire);
        assert!(wire.left.is_empty(), "data takes turns");
    }
    rig.leave(at, &Rig::frame(SLOW, 0, ACK, 0), &mut wire);
    assert_eq!(wire.left.len(), 1, "acknowledgements do not wait");
    wire.left.drain(..).for_each(|(_, mut held)| held.bytes.end(&mut rig.buffers));
    let leaving = |rig: &mut Rig, now: Time| -> Vec<u16> {
        let mut wire = Wire { left: Vec::new(), is_open: true };
        rig.hosts[1].edge.take_turns(now, &mut rig.buffers, &mut wire);
        wire.left.iter().map(|(packet, _)| packet.payload).collect()
    };
    assert_eq!(leaving(&mut rig, at), [503], "another application's flow is not held");
    assert_eq!(rig.up(Time::from_ms(5)).len(), 4);
    // Half of the memory is there again: the flow may go on.
    rig.up(Time::from_ms(7));
    let last = (3..8).map(Time::from_ms).find_map(|at| {
        rig.speak(at);
        Some(leaving(&mut rig, at)).filter(|all| !all.is_empty())
    });
    assert_eq!(last, Some(vec![500, 501, 502]));
    let mut all = Counters::default();
    rig.hosts.iter().for_each(|host| host.count(&mut all));
    let of = |name: &str| all.get("backdraft", name);
    assert!(of("pauses") > 0 && of("resumes") > 0 && of("held-us") > 1_000, "{all:?}");
}

#[test]
fn combinations_that_cannot_be_are_refused_by_their_keys() {
    let tlt = ("transport.importance.kind", "tlt");
    let refused = |plan: &Plan| support::check(plan).map_err(|error| error.to_string());
    assert!(refused(&plan("kind = \"flow-queues\"", &[tlt])).is_ok());
    for kind in ["backdraft", "credits", "picnic"] {
        let error = refused(&plan(&format!("kind = \"{kind}\""), &[tlt])).unwrap_err();
        assert!(error.contains("transport.importance"), "{error}");
    }
    let message = ("application.a.per", "message");
    let error = refused(&plan("kind = \"lossy\"", &[message])).unwrap_err();
    assert!(error.contains("application.per"), "{error}");
}

/// Importance comes first, so the packet of a marked frame says what the frame does. Rank and label
/// follow, before a flow waits for its turn.
#[test]
fn a_packet_passes_importance_rank_and_label_before_it_waits() {
    let set = [
        ("transport.importance.kind", "tlt"),
        ("transport.rank.kind", "attained-service"),
        ("edge.load-balancing.kind", "presto"),
    ];
    let kind = "kind = \"backdraft\", feedback = \"1ms\"";
    let mut rig = Rig::new(&plan(kind, &set));
    let mut wire = Wire { left: Vec::new(), is_open: false };
    let us = Time::from_us;
    rig.leave(us(1), &Rig::frame(SLOW, 99, SYN, 0), &mut wire);
    // The answer of host 0 opens the connection at the shim.
    let mut answer = Rig::frame(SLOW, 7, SYN | ACK, 0);
    answer[..12].rotate_left(6);
    answer[26..34].rotate_left(4);
    answer[34..38].rotate_left(2);
    answer[42..46].copy_from_slice(&100u32.to_be_bytes());
    let held = Held::copy(&answer, &mut rig.buffers).unwrap();
    let packet = rig.fabric.classifier().read(us(2), &answer, answer.len(), &held.view).unwrap();
    rig.hosts[1].arrive(us(2), Left { at: us(2), host: 1, packet, held }, &mut rig.buffers);
    rig.flush(1, us(3), |_| ());
    wire.left.clear();
    for seq in [100, 1100, 2100] {
        let mut frame = Rig::frame(SLOW, seq, ACK, 1000);
        frame[42..46].copy_from_slice(&8u32.to_be_bytes());
        rig.leave(us(4), &frame, &mut wire);
    }
    assert!(wire.left.is_empty(), "data waits for its turn");
    wire.is_open = true;
    rig.hosts[1].edge.take_turns(us(5), &mut rig.buffers, &mut wire);
    let passed = wire.left.iter().map(|(packet, held)| {
        let class = metadata::class(held.bytes.header.bytes(), &held.view);
        assert_eq!(packet.class, class, "the packet follows from the marked frame");
        (class.importance(), packet.rank, packet.flowcell())
    });
    let passed = passed.collect::<Vec<_>>();
    let cell = passed[0].2;
    let (first, others) = (Importance::Important, Importance::Unimportant);
    assert_eq!(passed, [(first, 0, cell), (others, 1, cell), (others, 2, cell)]);
}
