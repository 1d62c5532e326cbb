//! The ideal flow completion time: the flow alone in the empty network.
//!
//! Computed, not simulated, in exact picoseconds. The flow is n packets of the largest size S but for the last one of
//! size s, all at the sender's NIC at once (no window limits it), over links 1…m with transmission times t_j(·) and delays
//! d_j, each packet stored and forwarded whole. Packet n−1 leaves link j at
//!
//! > L_j = Σ_{i≤j} t_i(S) + Σ_{i<j} d_i + (n−2) · max_{i≤j} t_i(S)
//!
//! (identical packets pile up behind the slowest link so far), and the last one at
//!
//! > F_j = max(F_{j−1} + d_{j−1}, L_j) + t_j(s)
//!
//! The flow completes at F_m + d_m, plus the stack's delay at either end, plus (where connections open with a handshake)
//! one round trip of header-only packets with the stack's delay on each of its four passages.

use super::{End, Topology};
use crate::assemble::{HEADER_BYTES, wire_bytes};
use crate::plan::Plan;
use millpond_core::{Rate, Time};

impl Topology {
    /// The links of a shortest path from `src` to `dst`, in order; the first of several equal ones.
    pub fn path(&self, src: u32, dst: u32) -> Vec<u32> {
        let mut path = vec![src];
        let mut at = self.leaf_of(src);
        // No route is longer than there are switches; a loop in a broken one ends here.
        for _ in 0..=self.switches.len() {
            let Some(&port) = self.routes[at as usize].towards(dst).first() else { break };
            let link = self.link_at(at, port);
            path.push(link);
            let here = End::Switch { switch: at, port };
            let site = &self.links[link as usize];
            match if site.a == here { site.b } else { site.a } {
                End::Host(_) => break,
                End::Switch { switch, .. } => at = switch,
            }
        }
        path
    }
}

/// When a train of packets has arrived whole: see the module's formula. `last` is the size of the last packet.
fn train(links: &[(Rate, Time)], packets: u64, full: u64, last: u64) -> Time {
    let (mut sum, mut slowest) = (Time::ZERO, Time::ZERO);
    let mut done = Time::ZERO;
    for &(rate, delay) in links {
        let whole = rate.transmission_time(full);
        sum = sum.saturating_add(whole);
        slowest = slowest.max(whole);
        // When the link is free of the packets before the last.
        let free = match packets {
            0 | 1 => Time::ZERO,
            n => sum.saturating_add(slowest.saturating_mul(n - 2)),
        };
        done = done.max(free).saturating_add(rate.transmission_time(last)).saturating_add(delay);
        sum = sum.saturating_add(delay);
    }
    done
}

fn links(plan: &Plan, src: u32, dst: u32) -> Vec<(Rate, Time)> {
    let site = |&l: &u32| {
        let link = &plan.topology.links[l as usize];
        (link.rate, link.delay)
    };
    plan.topology.path(src, dst).iter().map(site).collect()
}

/// From the sender's transport to the receiver's, without a handshake.
fn one_way(plan: &Plan, src: u32, dst: u32, bytes: u64) -> Time {
    let mss = payload_max(plan);
    let packets = bytes.div_ceil(mss).max(1);
    let last = bytes.max(1) - (packets - 1) * mss;
    let overhead = plan.host.frame_overhead;
    let path = links(plan, src, dst);
    train(&path, packets, wire_bytes(mss, overhead), wire_bytes(last, overhead))
        .saturating_add(plan.host.stack_delay.saturating_mul(2))
}

/// Payload of the largest packet.
fn payload_max(plan: &Plan) -> u64 {
    plan.transport.mss.unwrap_or(plan.host.mtu.saturating_sub(HEADER_BYTES)).max(1) as u64
}

/// The round trip of a handshake, if connections open with one.
fn handshake(plan: &Plan, src: u32, dst: u32) -> Time {
    if !plan.transport.handshake {
        return Time::ZERO;
    }
    let header = wire_bytes(0, plan.host.frame_overhead);
    let one_way = train(&links(plan, src, dst), 1, header, header);
    one_way.saturating_mul(2).saturating_add(plan.host.stack_delay.saturating_mul(4))
}

/// The time that a flow of `bytes` from `src` to `dst` takes alone in the empty network, from its start to its last byte
/// at the receiving application.
pub fn ideal_fct(plan: &Plan, src: u32, dst: u32, bytes: u64) -> Time {
    handshake(plan, src, dst).saturating_add(one_way(plan, src, dst, bytes))
}

/// The same for a request and its response on one connection, from the request's start to the response's last byte, with
/// the time that the server thinks in between. That is the time drawn for this exchange and not the mean, so that the
/// result stays what no transport can beat.
pub fn ideal_exchange(
    plan: &Plan,
    (client, server): (u32, u32),
    (request, response): (u64, u64),
    thinks: Time,
) -> Time {
    let there = ideal_fct(plan, client, server, request);
    there.saturating_add(thinks).saturating_add(one_way(plan, server, client, response))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn plan(extra: &str) -> Plan {
        let text = format!("duration = \"1ms\"\n[topology]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n{extra}");
        Scenario::parse("t", &text).unwrap().plan(None, &[], None).unwrap()
    }

    /// Ten packets of 1500 B over 10G, 40G, 40G, 10G with 1, 5, 5, 1 µs: by hand, 1200 + 300 + 300 + 1200 ns for the
    /// first packet, 12 µs of delays, nine more behind the 1200 ns links; a handshake is twice (32 + 8 + 8 + 32) ns + 12 µs.
    #[test]
    fn a_whole_number_of_packets_by_hand() {
        let p = plan("[transport]\nhandshake = false");
        assert_eq!(ideal_fct(&p, 0, 2, 14_600), Time::from_ns(3_000 + 12_000 + 9 * 1_200));
        let p = plan("[transport]\nhandshake = true");
        let round_trip = 2 * (80 + 12_000);
        assert_eq!(ideal_fct(&p, 0, 2, 14_600), Time::from_ns(3_000 + 12_000 + 9 * 1_200 + round_trip));
        assert_eq!(
            ideal_exchange(&p, (0, 2), (1, 14_600), Time::from_us(20)),
            Time::from_ps(round_trip * 1000 + 12_000_000 + 41 * (800 + 200) * 2 + 25_800_000 + 20_000_000)
        );
    }

    /// Two packets, 1460 + 1 bytes of payload: the short one catches up on the long one at every link but never passes.
    /// It leaves link 1 at 1200 + 32.8, meets the first leaving link 2 at 2500 (after 1 µs), goes at 2508.2, and so on.
    #[test]
    fn a_short_last_packet_waits_behind_the_one_before() {
        let p = plan("[host]\nstack-delay = \"1us\"\n[transport]\nhandshake = false");
        let first_leaves_last_link = 3_000_000 + 11_000_000;
        let expected = first_leaves_last_link + 32_800 + 1_000_000 + 2_000_000;
        assert_eq!(ideal_fct(&p, 0, 2, 1_461), Time::from_ps(expected));
        // One packet alone, on one leaf.
        assert_eq!(ideal_fct(&p, 0, 1, 60), Time::from_ps(2 * 100 * 800 + 2_000_000 + 2_000_000));
    }

    /// The closed form against the recursion over every packet.
    #[test]
    fn the_closed_form_is_the_recursion() {
        let rates = [10, 40, 3, 40, 1].map(Rate::from_gbps);
        let delays = [1, 5, 2, 0, 1].map(Time::from_us);
        let links: Vec<_> = rates.into_iter().zip(delays).collect();
        for (n, full, last) in [(1, 1500, 60), (2, 1500, 1500), (7, 1500, 41), (30, 9000, 8999)] {
            let mut free = [Time::ZERO; 5];
            let mut end = Time::ZERO;
            for packet in 0..n {
                let size = if packet == n - 1 { last } else { full };
                let mut at = Time::ZERO;
                for (j, &(rate, delay)) in links.iter().enumerate() {
                    let leaves = at.max(free[j]) + rate.transmission_time(size);
                    free[j] = leaves;
                    at = leaves + delay;
                }
                end = at;
            }
            assert_eq!(train(&links, n, full, last), end, "{n} packets");
        }
    }
}
