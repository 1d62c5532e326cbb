//! The whole network in one fabric, as a lab has it: what hosts sent in the simulation enters, and
//! what reaches hosts must be the same packets at the same times.

use super::replay::frame;
use super::simulated::{Arrival, Trace};
use super::{Counted, Left, Seen};
use crate::dataplane::buffers::Buffers;
use crate::dataplane::frame::offload;
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Offload, Tag, parse};
use crate::dataplane::metadata::Classifier;
use crate::dataplane::packet::Packet as Bytes;
use crate::fabric::{Fabric, Far, Held, Line};
use crate::tests::{flow, mac, same};
use millpond_core::counters::DropReason;
use millpond_core::packet::flags;
use millpond_core::{Packet, Time};
use millpond_scenario::topology::End;

/// The number of a switch's first line.
fn first_line(trace: &Trace, switch: u32) -> u32 {
    let switches = &trace.plan.topology.switches[..switch as usize];
    switches.iter().map(|site| u32::from(site.ports)).sum()
}

fn line_to(trace: &Trace, switch: u32, port: u16) -> Line {
    let topology = &trace.plan.topology;
    let link = &topology.links[topology.link_at(switch, port) as usize];
    let own = End::Switch { switch, port };
    let far = match if link.a == own { link.b } else { link.a } {
        End::Host(host) => Far::Host(host, link.delay),
        End::Switch { switch, port } => {
            Far::Line(first_line(trace, switch) + u32::from(port), link.delay)
        }
    };
    Line::inside("", link.rate, far)
}

fn is_host(trace: &Trace, switch: u32, port: u16) -> bool {
    let topology = &trace.plan.topology;
    topology.is_host_link(topology.link_at(switch, port) as usize)
}

/// A packet of the trace as a host's NIC hands it over.
fn held(packet: &Packet, buffers: &mut Buffers) -> Held {
    let bytes = frame(packet);
    let bytes = &bytes[offload::LENGTH..];
    let buffer = buffers.take().expect("a buffer");
    buffers.bytes_mut(buffer)[..bytes.len()].copy_from_slice(bytes);
    let view = parse(bytes).expect("a frame");
    let (bytes, _) = Bytes::read(buffers, buffer, 0..bytes.len());
    if bytes.has_payload() {
        buffers.retain(buffer, 1);
    }
    buffers.release(buffer);
    let payload = usize::from(packet.payload);
    let layers = view.layers().expect("of TCP");
    Held { bytes, view, offload: Offload::of(layers, payload) }
}

/// A packet that has reached its host, as the trace has it at the switch's port: before the link's
/// delay.
fn seen(trace: &Trace, left: &crate::fabric::Left) -> Left {
    let (leaf, port) = trace.plan.topology.attachment.hosts[left.host as usize];
    let delay = trace.plan.topology.links[left.host as usize].delay;
    debug_assert!(is_host(trace, leaf.into(), port));
    let (header, view) = (left.held.bytes.header.bytes(), left.held.view);
    let (layers, tag) =
        (*view.tcp().expect("of TCP"), Tag::read(header, view.tag.expect("a tag")).expect("a tag"));
    let packet = &left.packet;
    Left::Packet(Seen {
        at: Time::from_ps(left.at.as_ps() - delay.as_ps()),
        port,
        flow: flow(header, &layers),
        seq: tcp::seq(header, &layers),
        ack: tcp::ack(header, &layers),
        size: packet.size,
        flags: tcp::flags(header, &layers),
        ecn: packet.class.ecn(),
        ttl: packet.ttl,
        rank: tag.rank,
        deflected: packet.has(flags::DEFLECTED),
    })
}

/// Lets a fabric of all switches have what hosts sent; what reached hosts, by host, and what was
/// counted.
fn run(trace: &Trace) -> (Vec<Vec<Left>>, Counted) {
    let hosts = (0..trace.plan.topology.hosts).map(|host| (mac(host), host));
    let switches = (0..trace.switches()).map(|switch| {
        let ports = trace.plan.topology.switches[switch as usize].ports;
        (trace.node(switch), (0..ports).map(|port| line_to(trace, switch, port)).collect())
    });
    let mut fabric = Fabric::of(switches, Classifier::new(hosts, 0));
    let mut buffers = Buffers::new(4096);
    let mut entering: Vec<(Time, u32, Packet)> = Vec::new();
    for switch in 0..trace.switches() {
        for (at, port, what) in trace.arrivals(switch) {
            if let Arrival::Packet(packet) = what
                && is_host(trace, switch, port)
            {
                entering.push((at, first_line(trace, switch) + u32::from(port), packet));
            }
        }
    }
    entering.sort_by_key(|(at, line, _)| (*at, *line));
    let mut reached = vec![Vec::new(); trace.plan.topology.hosts as usize];
    let mut take = |fabric: &mut Fabric, buffers: &mut Buffers| {
        while let Some(mut left) = fabric.leave() {
            reached[left.host as usize].push(seen(trace, &left));
            left.held.bytes.end(buffers);
        }
    };
    for (at, line, packet) in entering {
        fabric.advance(Time::from_ps(at.as_ps() - 1), &mut buffers);
        take(&mut fabric, &mut buffers);
        let held = held(&packet, &mut buffers);
        let (header, length) = (held.bytes.header.bytes(), held.bytes.length());
        let read = fabric.classifier().read(at, header, length, &held.view).expect("a host's");
        fabric.enter(at, at, line, read, held, &buffers);
    }
    // The simulation ended before what happens at this instant.
    fabric.advance(Time::from_ps(trace.end.as_ps() - 1), &mut buffers);
    take(&mut fabric, &mut buffers);
    let marked = fabric.switches().map(|node| node.marked()).sum();
    let deflected = fabric.switches().map(|node| node.deflected).sum();
    let mut counted = Counted { marked, deflected, ..Counted::default() };
    for reason in DropReason::ALL {
        let of_lines = fabric.lines().iter().map(|line| line.slot.counters.discarded(reason));
        counted.dropped[reason as usize] = of_lines.sum();
    }
    fabric.advance(trace.end + Time::from_ms(100), &mut buffers);
    take(&mut fabric, &mut buffers);
    assert_eq!((fabric.held(), buffers.in_use()), (0, 0));
    (reached, counted)
}

/// Compares what reached each host up to the trace's end.
pub fn agree(trace: &Trace) -> Result<usize, String> {
    let (reached, counted) = run(trace);
    same("counted", &[trace.counted], &[counted])?;
    let mut count = 0;
    for (host, theirs) in reached.iter().enumerate() {
        let (leaf, port) = trace.plan.topology.attachment.hosts[host];
        let ours: Vec<Left> =
            trace.left(leaf.into()).into_iter().filter(|left| left.port() == port).collect();
        count += ours.len();
        let theirs = &theirs[..theirs.len().min(ours.len())];
        same(&format!("host {host}"), &ours, theirs)?;
    }
    Ok(count)
}
