//! The addresses that hosts claim before their neighbours: by ARP (RFC 826, RFC 5227), reverse ARP
//! (RFC 903), IPv6 neighbour discovery (RFC 4861), and as sources of IP packets.
//!
//! Invariant: any bytes give an answer.

use super::parse::{Mac, View};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const REVERSE_ARP: u16 = 0x8035;
const IPV6: u16 = 0x86dd;
/// Tags of VLANs, behind those that a view looks behind.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

const ICMPV6: u8 = 58;
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;
/// Options of neighbour discovery: the hardware address of the source, and of the target.
const SOURCE_LINK: u8 = 1;
const TARGET_LINK: u8 = 2;

/// The bytes of a frame that are looked at: 64 of extension headers, and the options.
pub const FRONT: usize = 256;

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The type of a frame's content, and the content.
fn content<'a>(frame: &'a [u8], view: &View) -> Option<(u16, &'a [u8])> {
    let kind = array(frame, view.ethernet.checked_sub(2)?)?;
    Some((u16::from_be_bytes(kind), frame.get(view.ethernet..)?))
}

/// A packet of ARP or reverse ARP for Ethernet and IPv4.
struct Arp {
    operation: u8,
    sender: Mac,
    sender_ip: Ipv4Addr,
    target: Mac,
    target_ip: Ipv4Addr,
}

impl Arp {
    fn read(bytes: &[u8]) -> Option<Arp> {
        let head: [u8; 8] = array(bytes, 0)?;
        let [.., operation] = head;
        (head[..7] == [0, 1, 8, 0, 6, 4, 0]).then_some(())?;
        Some(Arp {
            operation,
            sender: Mac(array(bytes, 8)?),
            sender_ip: array(bytes, 14)?.into(),
            target: Mac(array(bytes, 18)?),
            target_ip: array(bytes, 24)?.into(),
        })
    }
}

/// A packet of IPv6, as far as neighbour discovery needs it.
struct Six<'a> {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    hops: u8,
    /// The message of ICMPv6, if it is one.
    message: Option<&'a [u8]>,
}

impl<'a> Six<'a> {
    /// `None`: it ends within a header, or has more extension headers than any sender needs.
    fn read(bytes: &'a [u8]) -> Option<Six<'a>> {
        let [source, destination] = [array(bytes, 8)?, array(bytes, 24)?].map(Ipv6Addr::from);
        let (mut next, mut at, hops) = (bytes[6], 40, bytes[7]);
        for _ in 0..8 {
            let message = match next {
                // Hop-by-hop options, routing, destination options (RFC 8200 §4).
                0 | 43 | 60 => {
                    let [kind, length]: [u8; 2] = array(bytes, at)?;
                    (next, at) = (kind, at + 8 + usize::from(length) * 8);
                    continue;
                }
                ICMPV6 => Some(bytes.get(at..)?),
                _ => None,
            };
            return Some(Six { source, destination, hops, message });
        }
        None
    }
}

/// The target of a solicitation or advertisement.
fn target(message: &[u8]) -> Option<Ipv6Addr> {
    array(message, 8).map(Ipv6Addr::from)
}

/// Whether each option of this kind names an address that `permits` accepts, and how many do. A
/// message that ends within an option has no answer.
fn links(mut options: &[u8], kind: u8, permits: impl Fn(Mac) -> bool) -> Option<usize> {
    let mut count = 0;
    while let [own, length, ..] = *options {
        let length = usize::from(length) * 8;
        let option = options.get(..length).filter(|option| !option.is_empty())?;
        if own == kind {
            permits(Mac(array(option, 2)?)).then_some(())?;
            count += 1;
        }
        options = &options[length..];
    }
    Some(count)
}

/// Whether the frame announces to everybody that its source is where it comes from: gratuitous ARP,
/// the reverse ARP of a virtual machine that has migrated, an unsolicited advertisement of IPv6.
pub fn announces(frame: &[u8], view: &View) -> bool {
    let is_own = |mac: Mac| mac == view.source;
    let announces = |kind: u16, bytes: &[u8]| match kind {
        ARP => {
            let arp = Arp::read(bytes)?;
            let is_gratuitous = arp.sender_ip == arp.target_ip && !arp.sender_ip.is_unspecified();
            Some(is_own(arp.sender) && is_gratuitous)
        }
        REVERSE_ARP => {
            let arp = Arp::read(bytes)?;
            Some(arp.operation == 3 && is_own(arp.sender) && is_own(arp.target))
        }
        IPV6 => {
            let six = Six::read(bytes)?;
            let message = six.message?;
            let is_solicited = message.get(4)? & 0x40 != 0;
            let is_ours = message[..2] == [ADVERTISEMENT, 0] && six.hops == 255 && !is_solicited;
            let links = links(message.get(24..)?, TARGET_LINK, is_own)?;
            Some(is_ours && six.destination.is_multicast() && links > 0)
        }
        _ => None,
    };
    content(frame, view).and_then(|(kind, bytes)| announces(kind, bytes)).unwrap_or(false)
}

/// The addresses that a port's sender has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    macs: Vec<Mac>,
    addresses: Vec<IpAddr>,
}

/// The link-local address that a kernel gives an interface by its hardware address (RFC 4291,
/// appendix A).
fn link_local(Mac([a, b, c, d, e, f]): Mac) -> IpAddr {
    let word = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    let words = [0xfe80, 0, 0, 0, word(a ^ 2, b), word(c, 0xff), word(0xfe, d), word(e, f)];
    Ipv6Addr::from(words).into()
}

impl Guard {
    /// For a sender with these addresses; the link-local addresses of IPv6 follow from `macs`.
    pub fn new(macs: Vec<Mac>, mut addresses: Vec<IpAddr>) -> Guard {
        addresses.extend(macs.iter().map(|mac| link_local(*mac)));
        Guard { macs, addresses }
    }
    fn has(&self, address: impl Into<IpAddr>) -> bool {
        self.addresses.contains(&address.into())
    }

    /// Whether a frame claims no other's address: as the source of an IP packet, as the sender of
    /// ARP, in neighbour discovery. Advertisements of routers, and redirects, claim a router's.
    pub fn permits(&self, frame: &[u8], view: &View) -> bool {
        let permitted = |kind: u16, bytes: &[u8]| match kind {
            IPV4 => {
                let source = Ipv4Addr::from(array(bytes, 12)?);
                // A client that asks for an address (DHCP) has none yet.
                let asks = || {
                    let at = usize::from(bytes[0] & 15) * 4;
                    bytes[9] == 17 && array(bytes, at) == Some([0, 68, 0, 67])
                };
                Some(self.has(source) || source.is_unspecified() && asks())
            }
            ARP | REVERSE_ARP => {
                let arp = Arp::read(bytes)?;
                let is_own = arp.sender_ip.is_unspecified() || self.has(arp.sender_ip);
                Some(is_own && self.macs.contains(&arp.sender))
            }
            IPV6 => self.permits_six(&Six::read(bytes)?),
            kind => Some(!TAGS.contains(&kind)),
        };
        content(frame, view).and_then(|(kind, bytes)| permitted(kind, bytes)).unwrap_or(false)
    }

    fn permits_six(&self, six: &Six<'_>) -> Option<bool> {
        let is_new = six.source.is_unspecified();
        let Some(message) = six.message else { return Some(self.has(six.source)) };
        let own = |mac: Mac| self.macs.contains(&mac);
        let options = |at: usize, kind: u8| links(message.get(at..)?, kind, own).map(|_| true);
        let is_permitted = match *message.first()? {
            ROUTER_ADVERTISEMENT | REDIRECT => false,
            ROUTER_SOLICITATION => options(8, SOURCE_LINK)?,
            // A host that checks whether its address is free names it as the target.
            SOLICITATION if is_new => self.has(target(message)?),
            SOLICITATION => options(24, SOURCE_LINK)?,
            ADVERTISEMENT => self.has(target(message)?) && options(24, TARGET_LINK)?,
            _ => true,
        };
        Some(is_permitted && (is_new || self.has(six.source)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use proptest::prelude::*;

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn frame(source: Mac, kind: u16, content: &[u8]) -> Vec<u8> {
        [&[0xff; 6][..], &source.0, &kind.to_be_bytes(), content].concat()
    }
    fn arp(operation: u8, ends: [(Mac, [u8; 4]); 2]) -> Vec<u8> {
        let ends = ends.map(|(mac, ip)| [&mac.0[..], &ip].concat()).concat();
        [&[0, 1, 8, 0, 6, 4, 0, operation][..], &ends].concat()
    }
    fn six(source: &str, destination: &str, message: &[u8]) -> Vec<u8> {
        let ends = [source, destination].map(|it| it.parse::<Ipv6Addr>().unwrap().octets());
        let head = [0x60, 0, 0, 0, 0, message.len() as u8, ICMPV6, 255];
        [&head[..], &ends.concat(), message].concat()
    }
    fn discovery(kind: u8, flags: u8, target: &str, option: Option<(u8, Mac)>) -> Vec<u8> {
        let target = target.parse::<Ipv6Addr>().unwrap().octets();
        let option = option.map_or(Vec::new(), |(kind, mac)| [&[kind, 1][..], &mac.0].concat());
        [&[kind, 0, 0, 0, flags, 0, 0, 0][..], &target, &option].concat()
    }
    fn announced(frame: &[u8]) -> bool {
        announces(frame, &parse(frame).unwrap())
    }

    #[test]
    fn gratuitous_arp_reverse_arp_and_unsolicited_advertisements_are_announcements() {
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]];
        for operation in [1, 2] {
            let gratuitous = arp(operation, [(OWN, a), (Mac::default(), a)]);
            assert!(announced(&frame(OWN, ARP, &gratuitous)));
            assert!(!announced(&frame(OTHER, ARP, &gratuitous)), "another's");
            let tagged = [&[0, 7, 8, 6][..], &gratuitous].concat();
            assert!(announced(&frame(OWN, 0x8100, &tagged)), "in a VLAN");
            let question = arp(operation, [(OWN, a), (Mac::default(), b)]);
            assert!(!announced(&frame(OWN, ARP, &question)));
            let probe = arp(operation, [(OWN, [0; 4]), (Mac::default(), [0; 4])]);
            assert!(!announced(&frame(OWN, ARP, &probe)));
        }
        let none = [0; 4];
        assert!(announced(&frame(OWN, REVERSE_ARP, &arp(3, [(OWN, none), (OWN, none)]))));
        assert!(!announced(&frame(OWN, REVERSE_ARP, &arp(3, [(OWN, none), (OTHER, none)]))));
        let link = Some((TARGET_LINK, OWN));
        for (flags, to, link, is) in [
            (0x20, "ff02::1", link, true),
            (0x60, "ff02::1", link, false),
            (0x20, "fd00::2", link, false),
            (0x20, "ff02::1", None, false),
            (0x20, "ff02::1", Some((TARGET_LINK, OTHER)), false),
        ] {
            let message = discovery(ADVERTISEMENT, flags, "fd00::1", link);
            assert_eq!(announced(&frame(OWN, IPV6, &six("fd00::1", to, &message))), is);
        }
    }

    fn guarded(kind: u16, content: &[u8]) -> bool {
        let addresses = ["10.0.0.1", "fd00::1"].map(|it| it.parse().unwrap());
        let frame = frame(OWN, kind, content);
        Guard::new(vec![OWN], addresses.to_vec()).permits(&frame, &parse(&frame).unwrap())
    }
    fn four(source: [u8; 4], ports: [u8; 4]) -> Vec<u8> {
        let head = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
        [&head[..], &source, &[255; 4], &ports, &[0, 8, 0, 0]].concat()
    }

    #[test]
    fn guard_permits_own_addresses_alone() {
        let [own, other] = [[10, 0, 0, 1], [10, 0, 0, 2]];
        for (source, ports, is) in [
            (own, [0, 1, 0, 2], true),
            (other, [0, 1, 0, 2], false),
            ([0; 4], [0, 68, 0, 67], true),
            ([0; 4], [0, 1, 0, 2], false),
        ] {
            assert_eq!(guarded(IPV4, &four(source, ports)), is, "{source:?} {ports:?}");
        }
        for (sender, is) in [
            ((OWN, own), true),
            ((OWN, [0; 4]), true),
            ((OWN, other), false),
            ((OTHER, own), false),
        ] {
            for operation in [1, 2] {
                assert_eq!(guarded(ARP, &arp(operation, [sender, (OTHER, other)])), is);
            }
        }
        assert!(guarded(0x88b5, &[1, 2, 3]), "neither IP nor ARP");
        assert!(!guarded(0x8100, &[0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 8, 0]), "tag in tag in tag");
    }

    #[test]
    fn guard_permits_own_discovery_alone() {
        let message = |kind, target, link| discovery(kind, 0x20, target, link);
        let (link, all) = ("fe80::ff:fe00:1", "ff02::1");
        let [to_own, to_other] = [OWN, OTHER].map(|mac| Some((TARGET_LINK, mac)));
        let [by_own, by_other] = [OWN, OTHER].map(|mac| Some((SOURCE_LINK, mac)));
        for (source, message, is) in [
            ("fd00::1", message(ADVERTISEMENT, "fd00::1", to_own), true),
            (link, message(ADVERTISEMENT, link, to_own), true),
            (link, message(ADVERTISEMENT, "fd00::2", to_own), false),
            (link, message(ADVERTISEMENT, "fd00::1", to_other), false),
            ("fe80::5", message(ADVERTISEMENT, "fd00::1", to_own), false),
            ("fd00::1", message(SOLICITATION, "fd00::2", by_own), true),
            ("fd00::1", message(SOLICITATION, "fd00::2", by_other), false),
            ("fd00::2", message(SOLICITATION, "fd00::1", by_own), false),
            ("::", message(SOLICITATION, "fd00::1", None), true),
            ("::", message(SOLICITATION, "fd00::2", None), false),
            (link, message(ROUTER_ADVERTISEMENT, "::", None), false),
            (link, message(REDIRECT, "fd00::9", None), false),
            (link, message(128, "::", None), true),
        ] {
            assert_eq!(guarded(IPV6, &six(source, all, &message)), is, "{source} {message:?}");
        }
        // An advertisement behind an extension header is one all the same.
        let forged = message(ADVERTISEMENT, "fd00::2", to_own);
        let hidden = [&[ICMPV6, 0, 1, 4, 0, 0, 0, 0][..], &forged].concat();
        let mut packet = six(link, all, &hidden);
        packet[6] = 0;
        assert!(!guarded(IPV6, &packet));
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(
            kind in prop_oneof![Just(ARP), Just(IPV4), Just(IPV6), Just(REVERSE_ARP), any::<u16>()],
            mut content in proptest::collection::vec(any::<u8>(), 0..200),
            next in prop_oneof![Just(0u8), Just(43), Just(58), any::<u8>()],
            message in prop_oneof![133u8..138, any::<u8>()],
        ) {
            [(6, next), (40, message)].into_iter().for_each(|(at, value)| {
                content.get_mut(at).into_iter().for_each(|byte| *byte = value);
            });
            let frame = frame(OWN, kind, &content);
            if let Some(view) = parse(&frame) {
                announces(&frame, &view);
                Guard::new(vec![OWN], Vec::new()).permits(&frame, &view);
            }
        }
    }
}
