//! Addresses of hosts: a function of the host's number, so that no table is needed.
//!
//! The lab answers a host's ARP requests itself (RFC 826): all hosts are on one subnet, and every
//! address in it has a known owner. So no broadcast crosses the fabric.
//!
//! Invariant: [`host_of`] inverts [`ip`].

use millpond_linux::dataplane::frame::Mac;
use std::net::Ipv4Addr;

/// Bits of the subnet's prefix that all hosts share.
pub const PREFIX: u8 = 16;
/// The most hosts that the subnet holds.
pub const HOSTS_MAX: u32 = 0xfffe;

/// The IPv4 address of a host.
pub fn ip(host: u32) -> Ipv4Addr {
    let [.., high, low] = (host + 1).to_be_bytes();
    Ipv4Addr::new(10, 213, high, low)
}

/// The hardware address of a host's interface.
pub fn mac(host: u32) -> Mac {
    let [.., high, low] = (host + 1).to_be_bytes();
    Mac([0x02, 0x6d, 0x70, 0, high, low])
}

/// The host that has an address, of `hosts` hosts.
pub fn host_of(address: Ipv4Addr, hosts: u32) -> Option<u32> {
    let [10, 213, high, low] = address.octets() else { return None };
    u32::from(u16::from_be_bytes([high, low])).checked_sub(1).filter(|host| *host < hosts)
}

const ARP: [u8; 2] = [0x08, 0x06];
/// Hardware type Ethernet, protocol IPv4, and the lengths of their addresses.
const KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: [u8; 2] = [0, 1];
const REPLY: [u8; 2] = [0, 2];
const LENGTH: usize = 42;

/// The reply to a frame, if the frame asks for the hardware address of one of `hosts` hosts other
/// than the asker.
pub fn answer(frame: &[u8], hosts: u32) -> Option<[u8; LENGTH]> {
    let frame: &[u8; LENGTH] = frame.first_chunk()?;
    let (kind, asked) = (&frame[12..20], &frame[38..42]);
    if kind[..2] != ARP || kind[2..] != KIND || frame[20..22] != REQUEST {
        return None;
    }
    let (asker, asked) = (&frame[22..32], <[u8; 4]>::try_from(asked).ok()?);
    if asker[6..] == asked {
        return None;
    }
    let owner = mac(host_of(asked.into(), hosts)?);
    let mut reply = [0; LENGTH];
    let parts: [&[u8]; 8] = [&asker[..6], &owner.0, &ARP, &KIND, &REPLY, &owner.0, &asked, asker];
    let mut at = 0;
    for part in parts {
        reply[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_leads_back_to_its_host() {
        for host in [0, 1, 253, 254, 255, 256, 65_000, HOSTS_MAX - 1] {
            assert_eq!(host_of(ip(host), HOSTS_MAX), Some(host));
            assert_eq!(host_of(ip(host), host), None);
        }
        assert_eq!(host_of(Ipv4Addr::new(10, 213, 0, 0), 9), None);
        assert_eq!(host_of(Ipv4Addr::new(10, 214, 0, 1), 9), None);
    }

    fn request(asker: u32, asked: Ipv4Addr) -> Vec<u8> {
        let parts: [&[u8]; 8] = [
            &[255; 6],
            &mac(asker).0,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &mac(asker).0,
            &ip(asker).octets(),
            &[0; 6],
            &asked.octets(),
            &[0; 18],
        ];
        parts.concat()
    }

    #[test]
    fn a_request_for_another_host_is_answered_with_its_address() {
        let reply = answer(&request(3, ip(7)), 8).unwrap();
        assert_eq!((&reply[..6], &reply[6..12]), (&mac(3).0[..], &mac(7).0[..]));
        assert_eq!(reply[12..22], [8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
        assert_eq!((&reply[22..28], &reply[28..32]), (&mac(7).0[..], &ip(7).octets()[..]));
        assert_eq!((&reply[32..38], &reply[38..42]), (&mac(3).0[..], &ip(3).octets()[..]));
    }

    proptest! {
        /// Of any length, and like a request or not.
        #[test]
        fn any_frame_gets_an_answer_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            is_like_a_request: bool,
        ) {
            let (mut bytes, like) = (bytes, request(1, ip(2)));
            if let (true, Some(head)) = (is_like_a_request, bytes.get_mut(12..22)) {
                head.copy_from_slice(&like[12..22]);
            }
            if let Some(answer) = answer(&bytes, HOSTS_MAX) {
                prop_assert_eq!((&answer[..6], &answer[12..20]), (&bytes[22..28], &like[12..20]));
            }
        }
    }

    #[test]
    fn other_frames_get_no_answer() {
        assert_eq!(answer(&request(3, ip(8)), 8), None, "no such host");
        assert_eq!(answer(&request(3, ip(3)), 8), None, "its own address: a probe for duplicates");
        assert_eq!(answer(&request(3, ip(7))[..41], 8), None);
        let mut reply = request(3, ip(7));
        reply[21] = 2;
        assert_eq!(answer(&reply, 8), None);
    }
}
