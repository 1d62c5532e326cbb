//! The harness of conformance tests: a simulated network's run, its packets as frames, sockets in
//! the place of devices, and the comparison of two lists.

#[path = "../../../sim/tests/common/records.rs"]
mod records;

use crate::dataplane::frame::checksum::{Sum, pseudo};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Layers, Mac, Tag, parse};
use millpond_core::packet::{Kind, flags};
use millpond_core::{HostId, Packet};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_sim::Outcome;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use std::fmt::Debug;
use std::os::fd::OwnedFd;

pub use records::Records;

/// Runs a scenario with some keys set; with `polls`, receive queues record theirs.
pub fn record(
    text: &str,
    seed: u64,
    set: &[(&str, &str)],
    polls: bool,
) -> (Plan, Records, Outcome) {
    let set: Vec<(String, String)> =
        set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let scenario = Scenario::parse("conformance", text).unwrap_or_else(|e| panic!("{e}"));
    let mut plan = scenario.plan(None, &set, Some(seed)).unwrap_or_else(|e| panic!("{e}"));
    plan.capture.polls = polls;
    let mut records = Records::default();
    let Ok(outcome) = millpond_sim::run(&plan, 1, &mut records);
    assert!(outcome.audit.is_conserved());
    (plan, records, outcome)
}

/// A packet's flags as TCP has them.
pub fn tcp_flags(packet: &Packet) -> u8 {
    let pairs = [(flags::CWR, tcp::CWR), (flags::ECE, tcp::ECE)];
    let kind = match packet.kind() {
        Kind::Syn => tcp::SYN,
        Kind::SynAck => tcp::SYN | tcp::ACK,
        _ => tcp::ACK,
    };
    pairs.iter().filter(|(flag, _)| packet.has(*flag)).fold(kind, |set, (_, bit)| set | bit)
}

/// A topology of kind `file`: links of 10 Gb/s between named ends, with their delay in ps.
pub fn graph(hosts: u32, switches: &[&str], links: &[(String, String, u64)]) -> String {
    let links = links.iter().map(|(a, b, delay)| {
        format!("{{ a = \"{a}\", b = \"{b}\", rate = \"10Gbps\", delay = \"{delay}ps\" }}")
    });
    let links = links.collect::<Vec<_>>().join(", ");
    let names = switches.iter().map(|name| format!("{{ name = \"{name}\" }}"));
    let names = names.collect::<Vec<_>>().join(", ");
    format!(
        "[topology]\nkind = \"file\"\n\
         graph = {{ hosts = {hosts}, switches = [{names}], links = [{links}] }}\n"
    )
}

pub fn mac(host: HostId) -> Mac {
    Mac([2, 0, 0, 0, 0, host as u8])
}

/// The headers of a frame of TCP.
pub struct Headers {
    pub from: HostId,
    pub to: HostId,
    pub tag: Option<Tag>,
    pub flow: u32,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub tos: u8,
    pub ttl: u8,
    pub length: u32,
}

impl Headers {
    /// Returns the frame with this payload, and a partial checksum or a whole one.
    pub fn frame(&self, payload: impl Iterator<Item = u8>, partial: bool) -> Vec<u8> {
        let mut frame = [mac(self.to).0, mac(self.from).0].concat();
        frame.extend(self.tag.iter().flat_map(Tag::write));
        frame.extend([8, 0]);
        let network = frame.len();
        let ends = [10, 0, 0, self.from as u8, 10, 0, 0, self.to as u8];
        frame.extend([0x45, self.tos, 0, 0, 0, 0, 0x40, 0, self.ttl, 6, 0, 0]);
        frame.extend(ends);
        [self.flow, self.seq, self.ack].iter().for_each(|word| frame.extend(word.to_be_bytes()));
        frame.extend([((self.length - 20) << 2) as u8, self.flags, 1, 0, 0, 0, 0, 0]);
        // Options without a meaning.
        frame.resize(network + self.length as usize, 1);
        frame.extend(payload);
        let length = (frame.len() - network) as u16;
        frame[network + 2..network + 4].copy_from_slice(&length.to_be_bytes());
        let sum = Sum::default().bytes(&frame[network..network + 20]).checksum();
        frame[network + 10..network + 12].copy_from_slice(&sum.to_be_bytes());
        let layers = layers(&frame);
        let sum = pseudo(&frame, &layers, layers.end - layers.transport);
        let sum =
            if partial { sum.fold() } else { sum.bytes(&frame[layers.transport..]).checksum() };
        let at = layers.transport + 16;
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    }
}

pub fn layers(frame: &[u8]) -> Layers {
    *parse(frame).expect("a frame").tcp().expect("of TCP")
}

/// The word of the TCP header that has a packet's flow: its ports.
pub fn flow(frame: &[u8], layers: &Layers) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|i| frame[layers.transport + i]))
}

/// Two ends of a connection in this process that keeps messages apart and loses none.
pub fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .expect("a pair of sockets");
    for end in [&pair.0, &pair.1] {
        sockopt::set_socket_send_buffer_size(end, 1 << 20).expect("room");
    }
    pair
}

/// Compares two lists; an error has the first place at which they differ.
pub fn same<T: PartialEq + Debug>(what: &str, ours: &[T], theirs: &[T]) -> Result<(), String> {
    let longest = ours.len().max(theirs.len());
    match (0..longest).find(|at| ours.get(*at) != theirs.get(*at)) {
        None => Ok(()),
        Some(at) => Err(format!(
            "{what}, {at} of {}:\nsimulator {:?}\nLinux     {:?}",
            ours.len(),
            ours.get(at),
            theirs.get(at)
        )),
    }
}
