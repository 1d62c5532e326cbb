//! Several switches: what becomes of a packet that is deflected on its way.

use super::*;
use crate::packet::flags;
use crate::switch::deflection::DeflectionParams;

/// Hosts 0 to 5 by pairs at ports 0 and 1 of three leaves, which ports 2 and 3 lead to the two
/// spines (switches 3 and 4), of which port `l` leads to leaf `l`.
const LEAVES: u16 = 3;
const HOSTS: u32 = 6;

/// The next event: a packet reaches a switch by a port, or a switch is called for a port.
enum Event {
    Arrival(u16, PacketId),
    Ready(u16),
}

/// The links, which have no length, and a record of each packet's way.
#[derive(Default)]
struct Fabric {
    packets: Packets,
    at: u16,
    /// By time and order: the switch, and what comes to it.
    events: BTreeMap<(Time, u32), (u16, Event)>,
    order: u32,
    /// By packet: switches that it has crossed, and how often it was deflected.
    ways: Vec<(u32, u32)>,
    delivered: usize,
    dropped: Vec<DropReason>,
}

impl Fabric {
    fn push(&mut self, at: Time, switch: u16, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), (switch, event));
    }
    /// A packet sets out from its host.
    fn send(&mut self, at: Time, from: u32, packet: Packet) {
        let id = self.packets.insert(Packet { src: from, ..packet });
        self.ways.push((0, 0));
        self.push(at, (from / 2) as u16, Event::Arrival((from % 2) as u16, id));
    }
    fn run(&mut self, switches: &mut [Switch]) {
        while let Some(((now, _), (switch, event))) = self.events.pop_first() {
            self.at = switch;
            match event {
                Event::Ready(port) => switches[switch as usize].on_ready(now, port, self),
                Event::Arrival(port, id) => {
                    let packet = &mut self.packets[id];
                    let way = &mut self.ways[id as usize];
                    *way = (way.0 + 1, way.1 + u32::from(packet.has(flags::DEFLECTED)));
                    packet.flags &= !flags::DEFLECTED;
                    switches[switch as usize].on_arrival(now, port, id, self);
                }
            }
        }
    }
}

impl Wire for Fabric {
    fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }
    fn transmit(&mut self, port: u16, id: PacketId, departs: Time) {
        match (self.at < LEAVES, port) {
            (true, 0 | 1) => self.delivered += 1,
            (true, _) => self.push(departs, LEAVES + port - 2, Event::Arrival(self.at, id)),
            (false, _) => self.push(departs, port, Event::Arrival(self.at - LEAVES + 2, id)),
        }
    }
    fn call_ready(&mut self, port: u16, at: Time) {
        self.push(at, self.at, Event::Ready(port));
    }
    fn discard(&mut self, _: PacketId, reason: DropReason) {
        self.dropped.push(reason);
    }
    fn send_pause(&mut self, _: u16, _: PauseFrame, _: Time) {}
    fn call_pause_check(&mut self, _: u16, _: PauseTarget, _: Time) {}
}

fn node(number: u16, deflection: &str) -> Switch {
    let is_leaf = number < LEAVES;
    let buffer = per_port(5);
    let queue = if deflection == "vertigo" { "srpt" } else { "fifo" };
    let port = PortConfig {
        queue: Queue::new(&QueueParams::of_kind(queue).unwrap()),
        ..PortConfig::plain(Rate::from_gbps(10), Capacity::new(&buffer, &PortSite::default()))
    };
    let attachment =
        Attachment { hosts: (0..HOSTS as u16).map(|host| (host / 2, host % 2)).collect() };
    let towards = |leaf| match (is_leaf, leaf == number) {
        (true, true) => vec![],
        (true, false) => vec![2, 3],
        (false, _) => vec![leaf],
    };
    let towards: Vec<Vec<u16>> = (0..LEAVES).map(towards).collect();
    let routes = Routes::new(Arc::new(attachment), is_leaf.then_some(number), &towards);
    let ports = vec![port; if is_leaf { 4 } else { 3 }];
    let (memory, random) = (
        Memory::new(&buffer, &SwitchFacts::default()),
        Stream::new(1, &format!("switch/{number}")),
    );
    Switch::new(SwitchConfig {
        site: Site { tier: u8::from(!is_leaf), salt: u32::from(number) },
        fabric_ports: if is_leaf { vec![2, 3] } else { vec![0, 1, 2] },
        deflection: Deflection::new(&DeflectionParams::of_kind(deflection).unwrap()),
        ..SwitchConfig::plain(routes, ports, memory, random)
    })
}

/// A deflection costs two switches at most: three are the way from leaf to leaf, so d deflections
/// make it 3 + 2d.
#[test]
fn a_deflection_costs_two_hops_at_most() {
    let mut most = 0;
    for kind in DeflectionParams::place().mechanisms.iter().map(|m| m.kind) {
        let mut switches: Vec<Switch> = (0..LEAVES + 2).map(|number| node(number, kind)).collect();
        let (mut fabric, mut random) = (Fabric::default(), Stream::new(1, "fabric"));
        let sent = 600;
        for _ in 0..sent {
            // Two of three go to host 0: its port overflows, and so do others on the way back.
            let dst = if random.below(3) < 2 { 0 } else { random.below(u64::from(HOSTS)) as u32 };
            let (from, at) =
                (random.below(u64::from(HOSTS)) as u32, Time::from_ns(random.below(100_000)));
            let (rank, hash) = (random.below(50) as u32, random.bits() as u32);
            fabric.send(at, from, Packet { rank, entropy: hash, ttl: 250, ..data(dst) });
        }
        fabric.run(&mut switches);
        assert_eq!(fabric.delivered + fabric.dropped.len(), sent, "{kind}");
        assert!(
            fabric.ways.iter().all(|(hops, deflected)| *hops <= 3 + 2 * deflected && *hops <= 250),
            "{kind}"
        );
        let deflected = fabric.ways.iter().map(|way| way.1).max().unwrap();
        assert_eq!(deflected > 0, kind != "none", "{kind}");
        most = most.max(deflected);
    }
    assert!(most > 2, "none goes to and fro: {most}");
}
