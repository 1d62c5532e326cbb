//! Whether the interfaces by which a cgroup's packets leave keep departure times: only the qdisc
//! `fq` holds a packet until then (`sch_fq`), all others send it at once.
//!
//! A cgroup has no interface of its own. Its packets leave by the network namespaces of its
//! processes; without a process, by the caller's. In each, the interfaces with a default route
//! count, or, if there is none, all interfaces with a route.
//!
//! Invariant: a namespace or an interface that cannot be examined counts as one without `fq`.

use super::cgroup::Cgroup;
use super::sockets::Namespaces;
use crate::netlink::{DUMP, Netlink, find};
use millpond_worlds::namespace;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use std::collections::BTreeSet;
use std::fs;

const GET_QDISC: u16 = 38;
/// Bytes of `struct tcmsg`.
const TCMSG: usize = 20;
const KIND: u16 = 1;
/// A parent that is the interface itself.
const ROOT: u32 = u32::MAX;

/// A queueing discipline of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Qdisc {
    interface: u32,
    handle: u32,
    parent: u32,
    kind: String,
}

/// Returns which interface of a cgroup keeps no departure times and what to do, or `None` if all
/// keep them.
pub(super) fn lacking(cgroup: &Cgroup) -> Option<String> {
    let namespaces = Namespaces::of(std::slice::from_ref(&cgroup.path));
    let mut processes = namespaces.processes().peekable();
    if processes.peek().is_none() {
        return here("");
    }
    processes.find_map(|pid| {
        let place = format!("/proc/{pid}/ns/net");
        let is_own = namespace::identity(&place) == namespace::own();
        let enter = if is_own { String::new() } else { format!("nsenter --net={place} ") };
        namespace::within(Some(&place), || here(&enter))
            .unwrap_or_else(|e| Some(format!("entering the network namespace of {pid}: {e}")))
    })
}

/// As [`lacking`], of the calling thread's namespace; `prefix` begins commands for it.
fn here(prefix: &str) -> Option<String> {
    let listed =
        qdiscs().and_then(|all| Ok((all, socket(AddressFamily::INET, SocketType::DGRAM, None)?)));
    let (all, socket) = match listed {
        Ok(listed) => listed,
        Err(e) => return Some(format!("the qdiscs of its interfaces cannot be read: {e}")),
    };
    interfaces().into_iter().find_map(|name| {
        // An interface that has gone keeps nothing from anybody.
        let index = netdevice::name_to_index(&socket, &name).ok()?;
        let kind = without_fq(&all, index)?;
        Some(format!(
            "departure times need the qdisc fq, and interface {name} has {kind}: {prefix}tc qdisc \
             replace dev {name} root fq (a kernel without sch_fq cannot: use profile = \"shares\")"
        ))
    })
}

/// The interfaces that packets of the calling thread's namespace leave by.
fn interfaces() -> BTreeSet<String> {
    let read = |name: &str| {
        fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
    };
    let (v4, v6) = (read("route"), read("ipv6_route"));
    let with_default = leaving(&v4, &v6, true);
    if with_default.is_empty() { leaving(&v4, &v6, false) } else { with_default }
}

/// Interfaces of the kernel's tables of routes, of default routes alone or of all.
fn leaving(v4: &str, v6: &str, default: bool) -> BTreeSet<String> {
    let of_v4 = v4.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, destination, mask) = (*words.first()?, *words.get(1)?, *words.get(7)?);
        let is_default = destination == "00000000" && mask == "00000000";
        (is_default || !default).then_some(name)
    });
    let of_v6 = v6.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (length, name) = (*words.get(1)?, *words.last()?);
        // Link-local addresses are on every interface, so without a default route they are no sign.
        (default && length == "00").then_some(name)
    });
    of_v4.chain(of_v6).filter(|name| *name != "lo").map(String::from).collect()
}

/// All queueing disciplines of the calling thread's namespace.
fn qdiscs() -> Result<Vec<Qdisc>, Errno> {
    let mut all = Vec::new();
    Netlink::open(None)?.ask(GET_QDISC, DUMP, &[0; TCMSG], |body| all.extend(qdisc(body)))?;
    Ok(all)
}

fn qdisc(body: &[u8]) -> Option<Qdisc> {
    let word = |at: usize| Some(u32::from_ne_bytes(*body.get(at..)?.first_chunk()?));
    let kind = find(body.get(TCMSG..)?, KIND)?;
    let kind = String::from_utf8_lossy(kind).trim_end_matches('\0').to_string();
    Some(Qdisc { interface: word(4)?, handle: word(8)?, parent: word(12)?, kind })
}

/// The qdisc that keeps an interface from keeping departure times. Below `mq`, which has one qdisc
/// for each queue of a card, each of them counts.
fn without_fq(all: &[Qdisc], interface: u32) -> Option<String> {
    let own = || all.iter().filter(|qdisc| qdisc.interface == interface);
    let Some(root) = own().find(|qdisc| qdisc.parent == ROOT) else { return Some("none".into()) };
    if root.kind != "mq" {
        return (root.kind != "fq").then(|| root.kind.clone());
    }
    let mut leaves = own().filter(|q| q.parent != ROOT && q.parent >> 16 == root.handle >> 16);
    leaves.find(|leaf| leaf.kind != "fq").map(|leaf| format!("{} below mq", leaf.kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    #[test]
    fn interfaces_with_a_default_route_count_before_others() {
        let head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n";
        let near = "eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n";
        let far = "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n";
        let v6 = format!("{0} 00 {0} 00 {0} 00000400 1 0 00200200 lo\n", "0".repeat(32));
        let of = |v4: &str, default| -> Vec<String> {
            leaving(&format!("{head}{v4}"), &v6, default).into_iter().collect()
        };
        assert_eq!(of(&format!("{near}{far}"), true), ["eth0"]);
        assert!(of(near, true).is_empty(), "the unreachable default of lo is none");
        assert_eq!(of(near, false), ["eth1"]);
        let v6 = format!("{0} 00 {0} 00 {0} 00000400 1 0 00000003 eth2\n", "0".repeat(32));
        assert!(leaving(head, &v6, true).contains("eth2"));
    }

    #[test]
    fn each_leaf_of_a_card_with_several_queues_has_to_be_fq() {
        let of = |interface, handle, parent, kind: &str| Qdisc {
            interface,
            handle,
            parent,
            kind: kind.into(),
        };
        let one = |kind| without_fq(&[of(2, 0, ROOT, kind)], 2);
        assert_eq!((one("fq"), one("pfifo_fast")), (None, Some("pfifo_fast".into())));
        assert_eq!(without_fq(&[of(3, 0, ROOT, "fq")], 2), Some("none".into()));
        let mut card = vec![
            of(2, 0, ROOT, "mq"),
            of(2, 0, 1, "fq"),
            of(2, 0, 2, "fq"),
            of(2, 0xffff_0000, 0xffff_fff1, "clsact"),
        ];
        assert_eq!(without_fq(&card, 2), None);
        card[2].kind = "fq_codel".into();
        assert_eq!(without_fq(&card, 2), Some("fq_codel below mq".into()));
    }

    proptest::proptest! {
        #[test]
        fn any_answer_is_read_or_not(mut bytes: Vec<u8>) {
            let _ = qdisc(&bytes);
            bytes.resize(TCMSG, 7);
            bytes.extend(attribute(KIND, b"fq\0"));
            proptest::prop_assert_eq!(qdisc(&bytes).unwrap().kind, "fq");
        }
    }
}
