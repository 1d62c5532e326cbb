//! The contents of the maps: the twin of `bpf/layout.h`, which names what each part is for.
//!
//! Values go through byte strings, field by field, so that nothing depends on how Rust lays out a
//! struct; a test compares the sizes with those that the compiled programs declare.
//!
//! Invariant: whoever changes a layout here changes [`LAYOUT`]; maps of another layout are never
//! written. The head's first word is the same in all layouts.

use millpond_core::limit::{Counts, Length, LimitParams, Settings};
use std::net::{IpAddr, SocketAddr};

/// The version of all of it.
pub const LAYOUT: u32 = 2;
/// Scopes that a packet can be charged to.
pub const CHAIN: usize = 8;
/// How many levels of cgroups programs look through, up or down.
pub const DEPTH: u32 = 64;
/// Slots of the histogram of backlogs.
pub const BACKLOGS: usize = 24;
/// Queues that a host can have: a limit of both directions has two.
pub const SCOPES: u32 = 512;

/// Bits of [`Head::flags`].
pub const LOOPBACK: u32 = 1;
/// Bit of [`Head::flags`]: flows whose senders cannot be notified by their packets are reported.
pub const NOTIFY: u32 = 2;
/// Bits of [`Chain::flags`]: other attached cgroups are below this one.
pub const NESTED: u16 = 1;
/// Bit of [`Chain::flags`]: new connections send no faster than the tightest scope.
pub const PACE: u16 = 2;
/// Bit of [`Chain::flags`]: connections that are paced have the share of the tightest scope.
pub const SHARES: u16 = 4;
/// Bit of [`Chain::flags`]: the receive windows of connections follow the scopes.
pub const WINDOWS: u16 = 8;

/// Reads a value; beyond its end all is zero.
struct In<'a>(&'a [u8]);

impl In<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut part = [0; N];
        let n = N.min(self.0.len());
        part[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        part
    }
    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }
    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }
    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

/// The one value that all programs read first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// [`LAYOUT`]; 0: the maps are not finished.
    pub layout: u32,
    pub bank: u32,
    /// [`LOOPBACK`], [`NOTIFY`], by bank.
    pub flags: [u32; 2],
}

impl Head {
    pub fn to_bytes(self) -> Vec<u8> {
        [self.layout, self.bank, self.flags[0], self.flags[1]].map(u32::to_ne_bytes).concat()
    }
    pub fn from_bytes(bytes: &[u8]) -> Head {
        let mut from = In(bytes);
        Head { layout: from.u32(), bank: from.u32(), flags: [from.u32(), from.u32()] }
    }
}

/// One scope's settings in one bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    pub settings: Settings,
    /// Whether packets are charged as on the wire.
    pub wire: bool,
    /// Bytes below IP.
    pub framing: u32,
}

/// Size of a scope in one bank.
pub const SCOPE_BYTES: usize = 80;

impl Scope {
    pub fn new(params: &LimitParams) -> Scope {
        Scope {
            settings: params.settings(),
            wire: params.length == Length::Wire,
            framing: params.framing.get().min(1 << 12) as u32,
        }
    }
    pub fn to_bytes(self) -> Vec<u8> {
        let Scope { settings: s, wire, framing } = self;
        let amounts = [s.burst, s.mark, s.drop, s.drop_large, s.bypass].map(i64::to_ne_bytes);
        let words = [s.reference_rtt, s.form, s.reaction, s.flags, wire.into(), framing];
        let rates = [s.rate, s.cost].map(u64::to_ne_bytes);
        [rates.concat(), amounts.concat(), words.map(u32::to_ne_bytes).concat()].concat()
    }
}

/// The scopes that packets of a cgroup are charged to, in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// How many of `scopes` there are.
    pub count: u16,
    /// [`NESTED`], [`PACE`], [`SHARES`], [`WINDOWS`].
    pub flags: u16,
    /// The cgroup's depth below the root of the hierarchy.
    pub level: u32,
    /// 1 + the scope of the rate below which it is never held; 0: none.
    pub floor: u16,
    pub scopes: [u16; CHAIN],
}

/// Chains that an attached cgroup's programs find, by bank and direction (egress, ingress).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    pub chain: [[Chain; 2]; 2],
}

impl Attachment {
    pub fn to_bytes(self) -> Vec<u8> {
        let chain = |it: &Chain| {
            let Chain { count, flags, level, floor, scopes } = *it;
            let numbers = [floor, 0].into_iter().chain(scopes).flat_map(u16::to_ne_bytes);
            let head = [count, flags].into_iter().flat_map(u16::to_ne_bytes);
            head.chain(level.to_ne_bytes()).chain(numbers).collect::<Vec<u8>>()
        };
        self.chain.iter().flatten().flat_map(chain).collect()
    }
    pub fn from_bytes(bytes: &[u8]) -> Attachment {
        let (mut from, mut attachment) = (In(bytes), Attachment::default());
        for chain in attachment.chain.iter_mut().flatten() {
            (chain.count, chain.flags, chain.level, chain.floor) =
                (from.u16(), from.u16(), from.u32(), from.u16());
            from.u16();
            chain.scopes.iter_mut().for_each(|scope| *scope = from.u16());
        }
        attachment
    }
}

/// A queue's state, behind its lock word.
pub fn queue_state(bytes: &[u8]) -> millpond_core::limit::State {
    let mut from = In(bytes);
    from.u64();
    millpond_core::limit::State { last: from.u64(), credit: from.u64() as i64 }
}

pub const QUEUE_BYTES: usize = 64;

/// The statistics of a scope, summed over all CPUs. Names as in reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub counts: Counts,
    /// Packets that found the queue further behind than `mark`.
    pub behind: u64,
    pub floored: u64,
    /// Returned 0 to 3: drop, pass, drop with CWR, pass with CWR.
    pub returned: [u64; 4],
    pub cwnd_sum: u64,
    pub cwnd_packets: u64,
    pub rtt_sum_us: u64,
    pub rtt_packets: u64,
    /// Bytes, or nanoseconds in the timed forms.
    pub credit_sum: i64,
    pub credit_min: i64,
    pub super_segments: u64,
    pub retries: u64,
    pub kicks: u64,
    pub notified: u64,
    pub first: u64,
    pub last: u64,
    /// Packets that found it not behind, behind by less than 1 us, 2 us, 4 us …
    pub backlog: [u64; BACKLOGS],
}

impl Statistics {
    pub const BYTES: usize = (27 + BACKLOGS) * 8;

    /// Adds what one CPU has counted.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut from = In(bytes);
        let seen = bytes.iter().take(8).any(|&b| b != 0);
        let Counts { packets, bytes, dropped, dropped_bytes, marked, marked_bytes, .. } =
            &mut self.counts;
        let offered = [packets, bytes, dropped, dropped_bytes, marked, marked_bytes];
        offered.into_iter().for_each(|count| *count += from.u64());
        let Counts { reduced, bypassed, decided, .. } = &mut self.counts;
        let decided = [reduced, bypassed, decided, &mut self.behind, &mut self.floored];
        decided.into_iter().for_each(|count| *count += from.u64());
        self.returned.iter_mut().for_each(|count| *count += from.u64());
        let Statistics { cwnd_sum, cwnd_packets, rtt_sum_us, rtt_packets, .. } = self;
        let sums = [cwnd_sum, cwnd_packets, rtt_sum_us, rtt_packets];
        sums.into_iter().for_each(|count| *count += from.u64());
        self.credit_sum += from.u64() as i64;
        let least = from.u64() as i64;
        let Statistics { super_segments, retries, kicks, notified, .. } = self;
        let rare = [super_segments, retries, kicks, notified];
        rare.into_iter().for_each(|count| *count += from.u64());
        let (first, last) = (from.u64(), from.u64());
        if seen {
            self.credit_min = if self.first == 0 { least } else { self.credit_min.min(least) };
            self.first = if self.first == 0 { first } else { self.first.min(first) };
            self.last = self.last.max(last);
        }
        self.backlog.iter_mut().for_each(|count| *count += from.u64());
    }
}

/// One direction of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    pub source: SocketAddr,
    pub destination: SocketAddr,
}

impl Flow {
    /// Size, in maps as on the wire.
    pub const BYTES: usize = 36;

    /// As maps and messages hold it: IPv4 in IPv6, in the network's order.
    pub fn to_bytes(self) -> [u8; Flow::BYTES] {
        let mut bytes = [0; Flow::BYTES];
        for (i, end) in [self.source, self.destination].into_iter().enumerate() {
            let address = match end.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            bytes[16 * i..][..16].copy_from_slice(&address.octets());
            bytes[32 + 2 * i..][..2].copy_from_slice(&end.port().to_be_bytes());
        }
        bytes
    }
    /// From what maps and messages hold.
    pub fn from_bytes(bytes: &[u8; Flow::BYTES]) -> Flow {
        let end = |i: usize| {
            let mut address = [0; 16];
            address.copy_from_slice(&bytes[16 * i..][..16]);
            let port = u16::from_be_bytes([bytes[32 + 2 * i], bytes[33 + 2 * i]]);
            SocketAddr::new(IpAddr::V6(address.into()).to_canonical(), port)
        };
        Flow { source: end(0), destination: end(1) }
    }
}

/// A flow whose sender should slow down, as the programs report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub flow: Flow,
    pub at: u64,
}

impl Report {
    pub fn from_bytes(bytes: &[u8]) -> Option<Report> {
        let (flow, rest) = bytes.split_first_chunk()?;
        let (_scope, at) = rest.split_first_chunk::<4>()?;
        Some(Report { flow: Flow::from_bytes(flow), at: u64::from_ne_bytes(*at.first_chunk()?) })
    }
}

/// Which limit a scope belongs to, by bank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    /// 0 egress, 1 ingress.
    pub direction: u32,
    /// The cgroup's id; 0: none.
    pub cgroup: u64,
}

/// The longest name of a limit, in bytes.
pub const NAME_MAX: usize = 63;

impl Label {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.name.clone().into_bytes();
        bytes.resize(NAME_MAX + 1, 0);
        bytes.extend([self.direction, 0].map(u32::to_ne_bytes).as_flattened());
        bytes.extend(self.cgroup.to_ne_bytes());
        bytes
    }
    pub fn from_bytes(bytes: &[u8]) -> Label {
        let name = &bytes[..bytes.len().min(NAME_MAX + 1)];
        let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        let mut from = In(bytes.get(NAME_MAX + 1..).unwrap_or(&[]));
        let direction = from.u32();
        from.u32();
        Label {
            name: String::from_utf8_lossy(&name[..end]).into_owned(),
            direction,
            cgroup: from.u64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_their_bytes() {
        let head = Head { layout: 7, bank: 1, flags: [2, 3] };
        assert_eq!(Head::from_bytes(&head.to_bytes()), head);
        let mut attachment = Attachment::default();
        attachment.chain[1][0] =
            Chain { count: 2, flags: NESTED, level: 3, floor: 9, scopes: [1, 2, 3, 4, 5, 6, 7, 8] };
        assert_eq!(Attachment::from_bytes(&attachment.to_bytes()), attachment);
        let label = Label { name: "bätch".into(), direction: 1, cgroup: 42 };
        assert_eq!(label.to_bytes().len(), NAME_MAX + 1 + 16);
        assert_eq!(Label::from_bytes(&label.to_bytes()), label);
        assert_eq!(Scope::new(&LimitParams::default()).to_bytes().len(), SCOPE_BYTES);
        assert_eq!(Label::from_bytes(&[]), Label::default());
    }

    #[test]
    fn flows_of_both_kinds_of_addresses() {
        for (source, destination) in
            [("10.0.0.1:7", "10.0.0.2:65535"), ("[fd00::1]:80", "[fd00::2]:1")]
        {
            let flow =
                Flow { source: source.parse().unwrap(), destination: destination.parse().unwrap() };
            assert_eq!(Flow::from_bytes(&flow.to_bytes()), flow);
            let mut ring = flow.to_bytes().to_vec();
            ring.extend(3u32.to_ne_bytes());
            ring.extend(42u64.to_ne_bytes());
            assert_eq!(Report::from_bytes(&ring), Some(Report { flow, at: 42 }));
            assert_eq!(Report::from_bytes(&ring[..47]), None);
        }
        let v4 = Flow {
            source: "1.2.3.4:258".parse().unwrap(),
            destination: "5.6.7.8:1".parse().unwrap(),
        };
        assert_eq!(v4.to_bytes()[10..16], [255, 255, 1, 2, 3, 4]);
        assert_eq!(v4.to_bytes()[32..], [1, 2, 0, 1]);
    }
}
