//! Two hosts' virtual switches without a kernel: packets go from one to the other by hand.

use super::*;
use crate::load::PORT;
use crate::nic::made;
use crate::{address, network, support};
use millpond_linux::fabric::Fabric;
use millpond_scenario::Scenario;

/// Host 0 has an application that takes a millisecond a packet.
const TEXT: &str = "duration = \"1s\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
    host-link = { rate = \"200Mbps\", delay = \"50us\" }\n[transport]\nkind = \"cubic\"\n\
    [switch]\nqueue = { kind = \"strict-priority\" }\n\
    [[application]]\nname = \"a\"\ntraffic = [\"slow\"]\nhosts = 0\nwork = \"1ms\"\nring = 2\n\
    batch = 1\n[[traffic]]\nname = \"quick\"\nkind = \"permutation\"\nsize = \"1KB\"\n\
    [[traffic]]\nname = \"slow\"\nkind = \"permutation\"\nsize = \"1KB\"\n[edge]\n";

const QUICK: u16 = PORT;
const SLOW: u16 = PORT + 1;

fn plan(switch: &str, set: &[(&str, &str)]) -> Plan {
    let set: Vec<_> = set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let text = format!("{TEXT}virtual-switch = {{ {switch} }}\n");
    Scenario::parse("vs.toml", &text).unwrap().plan(None, &set, None).unwrap()
}

/// A host's switch, with what makes packets of frames.
struct Rig {
    switches: [Box<VirtualSwitch>; 2],
    fabric: Fabric,
    buffers: Buffers,
}

impl Rig {
    fn new(plan: &Plan) -> Rig {
        let switch = |host| VirtualSwitch::new(plan, host).unwrap();
        let switches = [switch(0), switch(1)];
        Rig { switches, fabric: network::fabric(plan), buffers: Buffers::new(256) }
    }

    /// A packet from host 1 to a port of host 0, with so much payload.
    fn packet(&mut self, port: u16, payload: u16) -> (Packet, Held) {
        let length = 40 + payload;
        let [high, low] = length.to_be_bytes();
        let ip = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, 6, 0, 0];
        let ports = [2000u16.to_be_bytes(), port.to_be_bytes()].concat();
        let tcp = [&ports[..], &[0; 8], &[0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]].concat();
        let (to, from) = (address::mac(0).0, address::mac(1).0);
        let addresses = [address::ip(1).octets(), address::ip(0).octets()].concat();
        let parts = [&to[..], &from, &[8, 0], &ip, &addresses, &tcp];
        let frame = [&parts.concat()[..], &vec![7; payload.into()]].concat();
        let held = made(&frame, &mut self.buffers).unwrap();
        let (header, length) = (held.bytes.header.bytes(), held.bytes.length());
        let read = self.fabric.classifier().read(Time::ZERO, header, length, &held.view);
        (read.unwrap(), held)
    }

    /// It arrives at host 0.
    fn arrive(&mut self, at: Time, port: u16, payload: u16) {
        let (packet, held) = self.packet(port, payload);
        self.switches[0].arrive(Left { at, host: 0, packet, held }, &mut self.buffers);
    }

    /// Everything that host 0's switch has said by `at` arrives at host 1; how many packets.
    fn speak(&mut self, at: Time) -> usize {
        self.switches[0].run(at, &mut self.buffers);
        let mut count = 0;
        while let Some((packet, frame)) = self.switches[0].next_word() {
            let held = made(&frame, &mut self.buffers).unwrap();
            self.switches[1].arrive(Left { at, host: 1, packet, held }, &mut self.buffers);
            count += 1;
        }
        self.switches[1].run(at + Time::from_us(10), &mut self.buffers);
        count
    }

    /// The times at which host 0's switch has let packets up, and their payload.
    fn up(&mut self, until: Time) -> Vec<(Time, u16)> {
        self.switches[0].run(until, &mut self.buffers);
        let all: Vec<Left> = std::iter::from_fn(|| self.switches[0].next_up()).collect();
        let seen = all.iter().map(|left| (left.at, left.packet.payload)).collect();
        all.into_iter().for_each(|mut left| left.held.bytes.end(&mut self.buffers));
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
    rig.switches[0].run(Time::from_us(1_500), &mut rig.buffers);
    // One is served, and two fit the ring.
    assert_eq!(rig.switches[0].dropped(DropReason::VirtualSwitch), 2);
    assert_eq!((rig.switches[0].dropped_bytes(), rig.switches[0].kept()), (308, (3, 3 * 154)));
    assert_eq!(rig.up(Time::from_ms(9)).len(), 3);
    assert_eq!((rig.buffers.in_use(), rig.switches[0].kept()), (0, (0, 0)));
}

#[test]
fn a_paused_flow_waits_behind_its_kernel_and_keeps_its_order() {
    let kind = "kind = \"backdraft\", memory = \"3KB\", feedback = \"1ms\"";
    let mut rig = Rig::new(&plan(kind, &[]));
    (0..6).for_each(|_| rig.arrive(Time::from_us(100), SLOW, 1000));
    assert!(rig.speak(Time::from_us(200)) > 0, "a pause");
    let at = Time::from_us(300);
    for (port, payload) in [(SLOW, 500), (SLOW, 501), (SLOW, 502), (QUICK, 503)] {
        let (packet, held) = rig.packet(port, payload);
        assert!(rig.switches[1].leave(at, packet, held).is_none(), "data takes turns");
    }
    let (packet, held) = rig.packet(SLOW, 0);
    assert!(rig.switches[1].leave(at, packet, held).is_some(), "acknowledgements do not wait");
    let leaving = |rig: &mut Rig, now: Time| -> Vec<u16> {
        let next = || rig.switches[1].next_leaving(now).map(|(packet, _)| packet.payload);
        std::iter::from_fn(next).collect()
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
    rig.switches.iter().for_each(|switch| switch.count(&mut all));
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
