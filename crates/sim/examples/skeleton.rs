//! A lower bound of the cost of a packet-hop: DCTCP flows over a Clos network, and nothing else.
//!
//! `cargo run --release -p millpond-sim --example skeleton -- ls128 balanced 6850` runs a case of
//! `benches/bench.py`. A hop is one event: a packet's arrival at the far end of a link. A link is a
//! FIFO ring of small packets with their arrival times, so that the timing wheel holds links only.
//! Nothing is lost, sent again, configured, traced or counted, flow completion times apart. An
//! assertion ends a run in which a queue exceeds 1000 packets. All fan-outs are powers of two.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock; the simulator does not

use std::process::ExitCode;

const DELAY_PS: u64 = 1_000_000;
const START_GAP_PS: u64 = 10_000;
const QUEUE_PACKETS: u32 = 1000;
const MARK_PACKETS: u32 = 65;
const NONE: u16 = u16::MAX;
const ACK: u32 = 1 << 31;
/// Of data, congestion experienced; of an ACK, the echo.
const MARKED: u32 = 1 << 30;
const NUMBER: u32 = MARKED - 1;

/// A packet and its arrival in ps: before a link, or on it at the far end.
#[derive(Clone, Copy, Default)]
struct Packet {
    at: u64,
    src: u16,
    dst: u16,
    /// The packet's number in its flow, where 0 is the SYN, with `ACK` and `MARKED`.
    word: u32,
}

/// One direction of a link and the queue before it.
#[repr(align(64))]
struct Port {
    /// Packets that have not arrived at the far end: a power of two of places.
    ring: Vec<Packet>,
    /// Packets that have arrived, begun transmission as of the last look, and been put in.
    head: u32,
    begun: u32,
    tail: u32,
    /// The node at the far end: a host, or a switch after all hosts.
    to: u32,
    busy_until: u64,
    data_ps: u32,
    ack_ps: u32,
    /// The next port in the same slot of the wheel.
    next: u16,
}

impl Port {
    fn new(to: usize, gbps: u32) -> Port {
        let (data_ps, ack_ps) = (1500 * 8 * 1000 / gbps, 40 * 8 * 1000 / gbps);
        let (ring, to) = (vec![Packet::default(); 16], to as u32);
        Port { ring, head: 0, begun: 0, tail: 0, to, busy_until: 0, data_ps, ack_ps, next: NONE }
    }

    fn get(&self, count: u32) -> Packet {
        self.ring[count as usize & (self.ring.len() - 1)]
    }

    fn duration(&self, packet: Packet) -> u64 {
        let is_long = packet.word & ACK == 0 && packet.word & NUMBER != 0;
        u64::from(if is_long { self.data_ps } else { self.ack_ps })
    }

    /// Packets that wait for their transmission to begin.
    fn waiting(&mut self, now: u64) -> u32 {
        self.begun = self.begun.max(self.head);
        while self.begun != self.tail {
            let first = self.get(self.begun);
            if first.at - DELAY_PS - self.duration(first) > now {
                break;
            }
            self.begun += 1;
        }
        self.tail - self.begun
    }
}

/// A timing wheel of ports. A slot is a list through the ports and no longer than the time between
/// any event and one that it causes, so that a slot is complete when it is opened.
struct Wheel {
    slots: Vec<u16>,
    occupied: Vec<u64>,
    shift: u32,
    open: usize,
}

impl Wheel {
    fn push(&mut self, at: u64, id: u16, next: &mut u16) {
        let slot = (at >> self.shift) as usize & (self.slots.len() - 1);
        *next = std::mem::replace(&mut self.slots[slot], id);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Empties the next slot with ports. Returns the first of them, or `NONE` without any event.
    fn pop(&mut self) -> u16 {
        let words = self.occupied.len();
        let (mut word, mut of) = (self.open / 64, u64::MAX << (self.open % 64));
        for _ in 0..=words {
            let bits = self.occupied[word] & of;
            if bits != 0 {
                self.open = 64 * word + bits.trailing_zeros() as usize;
                self.occupied[word] &= !(bits & bits.wrapping_neg());
                return std::mem::replace(&mut self.slots[self.open], NONE);
            }
            (word, of) = ((word + 1) & (words - 1), u64::MAX);
        }
        NONE
    }
}

/// A switch that serves `count` hosts from `first`. Up, it shifts and masks a receiver or a hash.
struct Switch {
    first: u32,
    count: u32,
    stride_log: u32,
    down: u32,
    up: u32,
    up_mask: u64,
    up_shift: u32,
}

/// Both ends of a flow; the sender's is DCTCP (RFC 8257), with windows in packets.
#[derive(Default)]
struct Flow {
    next: u32,
    window_end: u32,
    seen: u32,
    marked: u32,
    credit: f64,
    window: f64,
    threshold: f64,
    alpha: f64,
    /// The number of the packet that the receiver expects.
    expected: u32,
    fct_ps: u64,
}

impl Flow {
    fn on_ack(&mut self, number: u32, echo: bool) {
        if number == 0 {
            (self.window, self.threshold) = (10.0, f64::INFINITY);
            return;
        }
        self.seen += 1;
        self.marked += u32::from(echo);
        let has_ended = number > self.window_end;
        let is_cut = has_ended && self.marked != 0;
        if has_ended {
            let fraction = f64::from(self.marked) / f64::from(self.seen);
            self.alpha += (fraction - self.alpha) / 16.0;
            (self.window_end, self.seen, self.marked) = (self.next - 1, 0, 0);
        }
        if is_cut {
            self.window = (self.window * (1.0 - self.alpha / 2.0)).max(1.0);
            (self.threshold, self.credit) = (self.window, 0.0);
        } else if !echo {
            self.credit += 1.0;
            if self.window < self.threshold || self.credit >= self.window {
                self.credit = 0.0;
                self.window += 1.0;
            }
        }
    }
}

/// SplitMix64's finaliser.
fn splitmix64(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

struct Network {
    wheel: Wheel,
    /// A host's transmitter has the host's number.
    ports: Vec<Port>,
    switches: Vec<Switch>,
    hosts: usize,
    /// By how much a flow's receiver is further than its sender.
    offset: usize,
    ecmp: bool,
    flows: Vec<Flow>,
    /// The number of each flow's last packet.
    last: u32,
    /// Flows of which an ACK is missing.
    open: usize,
    hops: u64,
}

impl Network {
    /// The network of a case; none if there is no such case.
    fn new(topology: &str, path: &str, packets: &str) -> Option<Network> {
        // Hosts of a leaf, leaves, up-ports of a leaf, Gb/s of hosts and of the fabric.
        let (r, leaves, ups, host_gbps, fabric, offset) = match topology {
            "ls128" => (16, 8, 4, 10, 40, 16),
            "ls1024" => (32, 32, 8, 10, 40, 32),
            "ft128" => (4, 32, 4, 100, 100, 16),
            "ft1024" => (8, 128, 8, 100, 100, 64),
            _ => return None,
        };
        let last = packets.parse().ok().filter(|last| (1..NUMBER).contains(last))?;
        let ecmp = ["balanced", "ecmp"].iter().position(|&known| known == path)? == 1;
        let (hosts, is_fat_tree) = (r * leaves, r == ups);
        // Four events a slot, at the rate of hosts that send all the time.
        let flying = if is_fat_tree { 12 } else { 8 } * hosts as u64;
        let slot_ps = 4 * 12_000_000 / u64::from(host_gbps) / flying;
        let shift = slot_ps.clamp(256, 320_000 / u64::from(fabric)).ilog2();
        let horizon_ps = 2_300_000 + START_GAP_PS * hosts as u64; // of an idle link, and the starts
        let slots = ((horizon_ps >> shift) as usize + 2).next_power_of_two().max(64);
        let mut network = Network {
            wheel: Wheel {
                slots: vec![NONE; slots],
                occupied: vec![0; slots / 64],
                shift,
                open: 0,
            },
            ports: (0..hosts).map(|i| Port::new(hosts + i / r, host_gbps)).collect(),
            switches: Vec::new(),
            hosts,
            offset,
            ecmp,
            flows: (0..hosts).map(|_| Flow::default()).collect(),
            last,
            open: hosts,
            hops: 0,
        };
        let (leaf, above) = (hosts, hosts + leaves);
        let links = |first: usize, count: usize, step: usize, gbps: u32| -> Vec<(usize, u32)> {
            (0..count).map(|i| (first + i * step, gbps)).collect()
        };
        for i in 0..leaves {
            let first = above + if is_fat_tree { i / r * r } else { 0 };
            let ports = [links(r * i, r, 1, host_gbps), links(first, ups, 1, fabric)];
            network.add(0, (r * i, r), ports);
        }
        for i in 0..if is_fat_tree { leaves } else { 0 } {
            let (pod, core) = (i / r * r, above + leaves + i % r * r);
            let ports = [links(leaf + pod, r, 1, fabric), links(core, r, 1, fabric)];
            network.add(1, (pod * r, r * r), ports);
        }
        for i in 0..if is_fat_tree { r * r } else { ups } {
            let (first, step) = if is_fat_tree { (above + i / r, r) } else { (leaf, 1) };
            network.add(2, (0, hosts), [links(first, leaves / step, step, fabric), vec![]]);
        }
        assert!(network.ports.len() < usize::from(NONE), "too many ports");
        Some(network)
    }

    /// Adds a switch that serves `count` hosts from `first`; ports are (node, Gb/s).
    fn add(&mut self, tier: u32, (first, count): (usize, usize), ports: [Vec<(usize, u32)>; 2]) {
        let [downs, ups] = [ports[0].len(), ports[1].len().max(1)];
        self.switches.push(Switch {
            first: first as u32,
            count: count as u32,
            stride_log: (count / downs).ilog2(),
            down: self.ports.len() as u32,
            up: (self.ports.len() + downs) as u32,
            up_mask: ups as u64 - 1,
            up_shift: tier * if self.ecmp { 16 } else { ups.ilog2() },
        });
        self.ports.extend(ports.concat().iter().map(|&(to, gbps)| Port::new(to, gbps)));
    }

    fn transmit(&mut self, id: usize, mut packet: Packet) {
        let port = &mut self.ports[id];
        let held = port.tail - port.head;
        if held >= MARK_PACKETS {
            let waiting = port.waiting(packet.at);
            assert!(waiting < QUEUE_PACKETS, "a queue exceeds {QUEUE_PACKETS} packets");
            if waiting >= MARK_PACKETS && packet.word & ACK == 0 {
                packet.word |= MARKED;
            }
        }
        port.busy_until = port.busy_until.max(packet.at) + port.duration(packet);
        packet.at = port.busy_until + DELAY_PS;
        if held == 0 {
            self.wheel.push(packet.at, id as u16, &mut port.next);
        }
        if held as usize == port.ring.len() {
            port.ring.extend_from_within(..); // each packet is at its place in one half
        }
        let mask = port.ring.len() - 1;
        port.ring[port.tail as usize & mask] = packet;
        port.tail += 1;
    }

    /// The oldest packet of a port arrives at the far end of its link.
    fn arrive(&mut self, id: u16) {
        let port = &mut self.ports[usize::from(id)];
        let packet = port.get(port.head);
        port.head += 1;
        if port.head != port.tail {
            self.wheel.push(port.get(port.head).at, id, &mut port.next);
        }
        self.hops += 1;
        let to = port.to as usize;
        if to < self.hosts {
            return self.deliver(to, packet);
        }
        let switch = &self.switches[to - self.hosts];
        let local = u32::from(packet.dst).wrapping_sub(switch.first);
        let out = if local < switch.count {
            switch.down + (local >> switch.stride_log)
        } else {
            let (src, dst) = (u64::from(packet.src), u64::from(packet.dst));
            let choice = if self.ecmp { splitmix64(src << 32 | dst) } else { dst };
            switch.up + ((choice >> switch.up_shift) & switch.up_mask) as u32
        };
        self.transmit(out as usize, packet);
    }

    fn deliver(&mut self, host: usize, Packet { at, src, dst, word }: Packet) {
        let number = word & NUMBER;
        if word & ACK == 0 {
            let flow = &mut self.flows[usize::from(src)];
            assert!(number == flow.expected, "a packet is lost or overtaken");
            flow.expected += 1;
            if number == self.last {
                flow.fct_ps = at - START_GAP_PS * u64::from(src);
            }
            return self.transmit(host, Packet { at, src: dst, dst: src, word: word | ACK });
        }
        self.open -= usize::from(number == self.last);
        let flow = &mut self.flows[host];
        flow.on_ack(number, word & MARKED != 0);
        let first = flow.next;
        flow.next = first.max((number + 1 + flow.window as u32).min(self.last + 1));
        for word in first..flow.next {
            self.transmit(host, Packet { at, src: dst, dst: src, word });
        }
    }

    /// Runs until each flow's last ACK has arrived.
    fn run(&mut self) {
        for host in 0..self.hosts {
            let (at, dst) = (START_GAP_PS * host as u64, (host + self.offset) % self.hosts);
            self.flows[host].next = 1;
            self.transmit(host, Packet { at, src: host as u16, dst: dst as u16, word: 0 });
        }
        let mut batch: Vec<(u64, u16)> = Vec::new();
        while self.open != 0 {
            let mut id = self.wheel.pop();
            assert!(id != NONE, "no event is left and {} flows are open", self.open);
            while id != NONE {
                let port = &self.ports[usize::from(id)];
                batch.push((port.get(port.head).at, id));
                id = port.next;
            }
            batch.sort_by_key(|&(at, _)| at);
            for (_, id) in batch.drain(..) {
                self.arrive(id);
            }
        }
    }
}

/// The first number behind `name` in a file of the kernel; 0 if there is none.
fn counter(file: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let rest = text.find(name).map_or("", |place| &text[place + name.len()..]);
    rest.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [topology, path, packets] = [0, 1, 2].map(|i| arguments.get(i).map_or("", String::as_str));
    let Some(mut network) = Network::new(topology, path, packets) else {
        eprintln!("usage: skeleton ls128|ls1024|ft128|ft1024 balanced|ecmp PACKETS");
        return ExitCode::from(2);
    };
    // The scheduler counts this thread's nanoseconds.
    let (cpu, begun) = (counter("/proc/self/schedstat", ""), std::time::Instant::now());
    network.run();
    let wall_s = begun.elapsed().as_secs_f64();
    let cpu_s = (counter("/proc/self/schedstat", "") - cpu) / 1e9;
    let mut fct: Vec<f64> = network.flows.iter().map(|flow| flow.fct_ps as f64 / 1e6).collect();
    fct.sort_by(f64::total_cmp);
    let (hops, flows) = (network.hops, fct.len());
    let [min, p50, p99, max] = [0.0, 0.5, 0.99, 1.0].map(|q| {
        let rank = q * (flows - 1) as f64; // interpolated linearly
        let (below, above) = (fct[rank.floor() as usize], fct[rank.ceil() as usize]);
        below + rank.fract() * (above - below)
    });
    println!(
        "{{\"simulator\":\"skeleton\",\"topology\":\"{topology}\",\"path\":\"{path}\",\
         \"packets_per_flow\":{packets},\"wall_s\":{wall_s:.3},\"cpu_s\":{cpu_s:.6},\
         \"packet_hops\":{hops},\"mhops_per_s\":{:.4},\"events\":{hops},\
         \"peak_rss_bytes\":{},\"drops\":0,\"timeouts\":0,\"fct_us\":{{\"min\":{min:.3},\
         \"mean\":{:.3},\"p50\":{p50:.3},\"p99\":{p99:.3},\"max\":{max:.3}}},\
         \"completed\":{flows},\"flows\":{flows}}}",
        hops as f64 / cpu_s.max(1e-6) / 1e6, // a short run may count as 0 s
        counter("/proc/self/status", "VmHWM:") * 1024.0,
        fct.iter().sum::<f64>() / flows as f64,
    );
    ExitCode::SUCCESS
}
