//! From a plan to partitions: nodes, ports and links, each in its place.
//!
//! Directed link 2l runs from end a of link l to end b, and 2l + 1 back. Within a partition links
//! and ports are numbered in the order of the whole network, so the order of simultaneous events
//! does not depend on the partitioning.

use crate::audit::Audit;
use crate::cells::Cells;
use crate::equip::{self, pauses};
use crate::event::Due;
use crate::events::EventQueue;
use crate::fabric::{Fabric, Inbound, LinkTap, OutLink, Receiver, Target, Watched};
use crate::failing;
use crate::hosts::{Host, Hosts};
use crate::jitter::jitter;
use crate::layout::Layout;
use crate::mail::Mail;
use crate::partition::Partition;
use crate::shared::Shared;
use crate::switch_node::SwitchNode;
use millpond_core::congestion::TransportKind;
use millpond_core::host::Round;
use millpond_core::packet::uet::HEADERS;
use millpond_core::random::{Stream, hash_name, mix64};
use millpond_core::switch::admission::Admission;
use millpond_core::switch::buffer::{BufferParams, Capacity, Memory};
use millpond_core::switch::deflection::Deflection;
use millpond_core::switch::marking::Marking;
use millpond_core::switch::occupancy::Occupancy;
use millpond_core::switch::path::{Path, Site};
use millpond_core::switch::pause::Pause;
use millpond_core::switch::port::{LinkRate, PortConfig};
use millpond_core::switch::queue::Queue;
use millpond_core::switch::site::PortSite;
use millpond_core::switch::{Switch, SwitchConfig};
use millpond_core::{Packets, Rate, Time};
use millpond_scenario::jitter::JitterParams;
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::{End, LinkSite};
use millpond_scenario::traffic::SourceKind;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rate at which a joint sends on what a host has sent: a packet takes a picosecond.
const AT_JOINT: Rate = Rate::from_gbps(10_000_000_000);

/// Builds a plan's partitions, at most so many.
pub fn build(plan: &Plan, partitions: usize) -> (Arc<Shared>, Vec<Partition>) {
    build_as(plan, Layout::new(&plan.topology, partitions, plan.engine.one_partition))
}

pub fn build_as(plan: &Plan, layout: Layout) -> (Arc<Shared>, Vec<Partition>) {
    let shared = Arc::new(Shared::new(plan, layout));
    let cables = Cables::new(&shared);
    let mut partitions: Vec<Partition> =
        (0..shared.layout.partitions as u16).map(|p| partition(&shared, &cables, p)).collect();
    install_labels(plan, &mut partitions);
    (shared, partitions)
}

/// Gives switches that follow labels the controller's entries.
fn install_labels(plan: &Plan, partitions: &mut [Partition]) {
    let mut entries = crate::labels::entries(plan);
    for node in partitions.iter_mut().flat_map(|partition| &mut partition.switches) {
        if let Path::Labels(labels) = node.switch.path_mut() {
            labels.follow(std::mem::take(&mut entries[node.index as usize]));
        }
    }
}

/// Where every directed link begins and ends.
struct Cables {
    /// By directed link: (partition of the receiver, its number among that partition's inbound
    /// links).
    inbound: Vec<(u16, u32)>,
    /// By switch and port: the directed link that leaves there.
    from_switch: Vec<Vec<u32>>,
    /// By NIC's address: the directed link that leaves it.
    from_host: Vec<u32>,
}

fn directed(links: &[LinkSite]) -> impl Iterator<Item = (u32, End, End, &LinkSite)> {
    let both = |(i, link)| {
        let link: &LinkSite = link;
        [(2 * i as u32, link.a, link.b, link), (2 * i as u32 + 1, link.b, link.a, link)]
    };
    links.iter().enumerate().flat_map(both)
}

impl Cables {
    fn new(shared: &Shared) -> Cables {
        let topology = &shared.plan.topology;
        let mut cables = Cables {
            inbound: vec![(0, 0); topology.links.len() * 2],
            from_switch: topology
                .switches
                .iter()
                .map(|s| vec![u32::MAX; s.ports as usize])
                .collect(),
            from_host: vec![u32::MAX; topology.addresses() as usize],
        };
        let mut count = vec![0u32; shared.layout.partitions];
        for (id, from, to, _) in directed(&topology.links) {
            let partition = place(&shared.layout, to).0;
            cables.inbound[id as usize] = (partition, count[partition as usize]);
            count[partition as usize] += 1;
            match from {
                End::Host(host) => cables.from_host[host as usize] = id,
                End::Switch { switch, port } => {
                    cables.from_switch[switch as usize][port as usize] = id
                }
            }
        }
        cables
    }
}

fn place(layout: &Layout, end: End) -> (u16, u32) {
    match end {
        End::Host(host) => layout.hosts[host as usize],
        End::Switch { switch, .. } => layout.switches[switch as usize],
    }
}

/// A partition's fabric with the links that end there.
fn fabric(shared: &Shared, p: u16) -> Fabric {
    let (plan, layout) = (&shared.plan, &shared.layout);
    let topology = &plan.topology;
    let mut fabric = Fabric {
        partition: p,
        packets: Packets::default(),
        events: cells(shared, p),
        inbound: Vec::new(),
        pauses: Default::default(),
        chunks: Default::default(),
        outlinks: Vec::new(),
        outbox: (0..layout.partitions).map(|_| Mail::default()).collect(),
        jittered: Vec::new(),
        watched: Vec::new(),
        failing: Vec::new(),
        captured: Vec::new(),
        captured_pauses: Vec::new(),
        audit: Audit::default(),
    };
    for (id, _, to, _) in
        directed(&topology.links).filter(|(_, _, to, _)| place(layout, *to).0 == p)
    {
        let number = place(layout, to).1;
        let mut receiver = match to {
            End::Host(_) => Receiver::Host(number),
            End::Switch { port, .. } => Receiver::Switch(number, port),
        };
        if plan.failures.iter().any(|f| f.link == id / 2) {
            fabric.failing.push(receiver);
            receiver = Receiver::Failing(fabric.failing.len() as u32 - 1);
        }
        let cell = layout.cell(topology, to);
        fabric.events.places.inbound.push(cell);
        fabric.inbound.push(Inbound::new(receiver, cell, lot(plan, id)));
    }
    fabric
}

/// Adds the directed link that leaves a node of `cell`. Returns the same without its tap if it is
/// watched.
fn outlink(
    plan: &Plan,
    cables: &Cables,
    id: u32,
    cell: u32,
    fabric: &mut Fabric,
) -> Option<OutLink> {
    let link = &plan.topology.links[id as usize / 2];
    let at_host = plan.topology.is_host_link(id as usize / 2);
    let (partition, inbound) = cables.inbound[id as usize];
    let mut target = if partition == fabric.partition {
        Target::Local(inbound)
    } else {
        Target::Remote(partition, inbound)
    };
    if let Some(jitter) = jitter(plan, id) {
        fabric.jittered.push((target, jitter));
        target = Target::Jittered(fabric.jittered.len() as u32 - 1);
    }
    let delay = if at_host { link.delay + plan.host.stack_delay } else { link.delay };
    let mut plain = None;
    if let Some(watched) = watched(plan, id) {
        fabric.watched.push(watched);
        plain = Some(OutLink { delay, target });
        target = Target::Watched(fabric.watched.len() as u32 - 1);
    }
    fabric.outlinks.push(OutLink { delay, target });
    fabric.events.places.outlinks.push(cell);
    notices(plan, id, fabric);
    plain
}

/// The changes of routes that each cell with a changed switch has to make.
fn reroutes(shared: &Shared, switches: &[SwitchNode], fabric: &mut Fabric) {
    for (number, epoch) in shared.epochs.iter().enumerate() {
        // Hosts with several NICs choose again, and are in the cells of their leaves.
        let topology = &shared.plan.topology;
        let chooses =
            |switch: u32| shared.nics.is_some() && topology.switches[switch as usize].tier == 0;
        let changed = switches.iter().filter(|node: &&SwitchNode| {
            epoch.changed.contains_key(&node.index) || chooses(node.index)
        });
        let cells: BTreeSet<u32> = changed.map(|node| node.cell).collect();
        for cell in cells {
            fabric.events.push_to(cell, epoch.from, Due::Routes(number as u32).into());
        }
    }
}

fn partition(shared: &Arc<Shared>, cables: &Cables, p: u16) -> Partition {
    let (plan, layout) = (&shared.plan, &shared.layout);
    let topology = &plan.topology;
    let mut fabric = fabric(shared, p);

    let mut plain = Vec::new();
    let mut owners = Vec::new();
    let mut switches = Vec::new();
    for (index, _) in layout.switches.iter().enumerate().filter(|(_, place)| place.0 == p) {
        let first = fabric.outlinks.len() as u32;
        let ports = &cables.from_switch[index];
        owners.extend(
            (0..ports.len()).map(|port| Receiver::Switch(switches.len() as u32, port as u16)),
        );
        let cell = layout.cells[index];
        ports.iter().for_each(|id| plain.extend(outlink(plan, cables, *id, cell, &mut fabric)));
        switches.push(SwitchNode {
            switch: switch(shared, index, ports, first),
            first,
            index: index as u32,
            cell,
        });
    }
    let mut hosts = Vec::new();
    for (index, _) in layout.hosts.iter().enumerate().filter(|(_, place)| place.0 == p) {
        let id = cables.from_host[index];
        owners.push(Receiver::Host(hosts.len() as u32));
        let node = equip::host(plan, index as u32, topology.links[id as usize / 2].rate);
        hosts.push(Host {
            id: index as u32,
            out: fabric.outlinks.len() as u32,
            round: Round::new(node.serves_by_priority()),
            node,
            turns: Default::default(),
        });
        let cell = layout.cell(topology, End::Host(index as u32));
        plain.extend(outlink(plan, cables, id, cell, &mut fabric));
        fabric.events.places.hosts.push(cell);
    }
    for (watched, link) in fabric.watched.iter_mut().zip(plain) {
        watched.plain = fabric.outlinks.len() as u32;
        fabric.outlinks.push(link);
    }
    reroutes(shared, &switches, &mut fabric);
    let loops = loops(plan, &hosts);
    Partition::new(fabric, switches, Hosts::new(shared.clone(), hosts), owners, loops)
}

/// Whether arrivals at one instant draw lots: unless hosts are exact.
fn draws_lots(plan: &Plan) -> bool {
    !matches!(plan.host.choices.jitter, JitterParams::None(_))
}

/// The number by which a directed link's arrivals draw lots; `None`: they come in the order of
/// links.
pub fn lot_of(plan: &Plan, id: u32) -> Option<u32> {
    draws_lots(plan).then(|| lot(plan, id))
}

/// The number by which a directed link draws lots: its own, and another one for each seed.
fn lot(plan: &Plan, id: u32) -> u32 {
    let odd = (mix64(mix64(plan.seed) ^ hash_name("lots")) | 1) as u32;
    (id + 1).wrapping_mul(odd)
}

/// The things to watch on a directed link, if any.
fn watched(plan: &Plan, id: u32) -> Option<Watched> {
    let link = &plan.topology.links[id as usize / 2];
    let (from, to) = if id.is_multiple_of(2) { (link.a, link.b) } else { (link.b, link.a) };
    let outages = failing::outages(plan, id);
    let taps =
        plan.capture.taps.iter().enumerate().filter(|(_, tap)| tap.end == from || tap.end == to);
    let taps: Vec<LinkTap> =
        taps.map(|(i, tap)| LinkTap { tap: i as u16, outgoing: tap.end == from }).collect();
    let is_watched = !outages.is_empty() || !taps.is_empty();
    is_watched.then(|| Watched {
        plain: u32::MAX,
        rate: LinkRate::new(link.rate),
        delay: link.delay,
        outages,
        taps,
    })
}

/// The events at which the node at the beginning of a directed link, the last one added, learns of
/// its failures.
fn notices(plan: &Plan, id: u32, fabric: &mut Fabric) {
    let out = fabric.outlinks.len() as u32 - 1;
    for (down, up) in failing::noticed(plan, id / 2) {
        fabric.events.push(down, Due::Link { out, is_down: true }.into());
        if up < Time::MAX {
            fabric.events.push(up, Due::Link { out, is_down: false }.into());
        }
    }
}

/// The closed loops that begin at these hosts.
fn loops(plan: &Plan, hosts: &[Host]) -> Vec<(Time, u16, u32)> {
    let mut loops = Vec::new();
    for (index, source) in plan.traffic.sources.iter().enumerate() {
        let start = match &source.kind {
            SourceKind::Open => continue,
            SourceKind::Shuffle { start, .. }
            | SourceKind::Rpc { start, .. }
            | SourceKind::Probe { start, .. } => *start,
            SourceKind::Job(job) => {
                let here = (0..).zip(hosts).filter(|(_, host)| job.rank_at(host.id).is_some());
                loops.extend(here.map(|(at, _)| (job.start, index as u16, at)));
                continue;
            }
        };
        // A host's loops begin at its first NIC, which has the host's number.
        let here = (0..).zip(hosts).filter(|(_, host)| host.id < plan.topology.hosts);
        loops.extend(here.map(|(at, _)| (start, index as u16, at)));
    }
    loops
}

/// Whether packets ask switches to write their telemetry on them.
fn collects_telemetry(plan: &Plan) -> bool {
    plan.transports().any(|kind| kind.demands().telemetry)
}

/// Whether receivers give credit, so that a mark at the port to a host is no sign: no other path
/// would help there, and the receiver paces its credit (uet-htsim).
fn gives_credit(plan: &Plan) -> bool {
    let gives = |kind: &TransportKind| match kind {
        TransportKind::Uet(params) => params.uet_control.has_credit(),
        _ => false,
    };
    plan.transports().any(gives)
}

/// Whether the switches of so many partitions can use fast ports.
pub fn fast_ports(plan: &Plan, partitions: usize) -> bool {
    let switch = &plan.switch;
    let occupancy = Occupancy::new(&switch.occupancy);
    let displaces = Deflection::new(&switch.deflection).nature().displaces;
    let policies = !pauses(plan) && !displaces && !occupancy.watches_departures();
    // Telemetry is complete after packets are on their way: nobody may copy them.
    let telemetry = !collects_telemetry(plan)
        || (partitions == 1 && plan.failures.is_empty() && plan.capture.taps.is_empty());
    // A deflection asks whether other ports have room; fast ports learn that late of a shared
    // memory.
    let buffer = match switch.buffer {
        BufferParams::PerPort(_) => true,
        BufferParams::Shared(_) => Deflection::new(&switch.deflection).is_none(),
        BufferParams::Pools(_) => false,
    };
    let port = port_config(plan, &PortSite::default(), None).fits_fast();
    policies && telemetry && buffer && port && !plan.engine.general_ports
}

/// A port that can hold what its parameters, or its switch's `memory`, allow.
fn port_config(plan: &Plan, site: &PortSite, memory: Option<&Memory>) -> PortConfig {
    let capacity = Capacity::new(&plan.switch.buffer, site);
    let reach = memory.map_or(capacity, |memory| memory.reach(capacity));
    PortConfig {
        rate: site.rate,
        capacity,
        control: plan.switch.overflow.headers(capacity.bytes),
        marking: Marking::new(&plan.switch.marking.at_port(site, reach)),
        admission: Admission::new(&plan.switch.admission.at_port(&plan.around(site, reach))),
        queue: Queue::new(&plan.switch.queue),
    }
}

fn switch(shared: &Shared, index: usize, ports: &[u32], first: u32) -> Switch {
    let plan = &shared.plan;
    let topology = &plan.topology;
    let site = &topology.switches[index];
    let name = format!("switch/{}", site.name);
    let link = |id: &u32| *id as usize / 2;
    let memory = Memory::new(&plan.switch.buffer, &plan.switch_facts(index));
    let gives_credit = gives_credit(plan);
    let port = |id: &u32| {
        let port = plan.port_site(site.tier, topology.links[link(id)].rate);
        let rate = if site.is_joint { AT_JOINT } else { port.rate };
        let config = PortConfig { rate, ..port_config(plan, &port, Some(&memory)) };
        match gives_credit && topology.is_host_link(link(id)) {
            true => PortConfig { marking: Marking::new(&Default::default()), ..config },
            false => config,
        }
    };
    let ports_of = ports.iter().map(port).collect();
    let fabric_ports =
        (0..ports.len()).filter(|p| !topology.is_host_link(link(&ports[*p]))).map(|p| p as u16);
    Switch::new(SwitchConfig {
        site: Site { tier: site.tier, salt: mix64(mix64(plan.seed) ^ hash_name(&name)) as u32 },
        routes: topology.routes[index].clone(),
        ports: ports_of,
        fabric_ports: fabric_ports.collect(),
        fast: fast_ports(plan, shared.layout.partitions),
        memory,
        path: Path::new(&plan.switch.path),
        deflection: Deflection::new(&plan.switch.deflection),
        occupancy: Occupancy::new(&plan.switch.occupancy),
        pause: Pause::new(&plan.switch.pause),
        trim: plan.switch.overflow.trim((HEADERS + plan.host.frame_overhead) as u16),
        telemetry: collects_telemetry(plan).then_some(first),
        random: Stream::new(plan.seed, &name),
    })
}

/// The queues of a partition's cells. Buckets are as wide as a few times the mean gap between a
/// cell's events when all its links are busy with full packets.
fn cells(shared: &Shared, p: u16) -> Cells {
    let (topology, layout) = (&shared.plan.topology, &shared.layout);
    let mut rates: Vec<u128> = Vec::new();
    for (_, _, to, link) in
        directed(&topology.links).filter(|(_, _, to, _)| place(layout, *to).0 == p)
    {
        let cell = layout.cell(topology, to) as usize;
        rates.resize(rates.len().max(cell + 1), 0);
        rates[cell] += u128::from(link.rate.bps());
    }
    let packet_bits = shared.plan.host.mtu as u128 * 8;
    let queue = |bits_per_second: &u128| {
        let gap_ps = packet_bits * 1_000_000_000_000 / (*bits_per_second).max(1);
        EventQueue::new(
            Time::from_ps((gap_ps as u64 * 2).clamp(500, 1_000_000)),
            draws_lots(&shared.plan),
        )
    };
    Cells::new(rates.iter().map(queue).collect())
}
