//! Closed loops: shuffles, persistent connections and probes.

use super::super::pattern;
use super::super::poisson::other_host;
use super::super::{ProbePair, SourceKind};
use super::Builder;
use crate::settings::traffic::{Pairs, ProbePairs, ProbeParams, RpcParams, ShuffleParams, pair};
use millpond_core::Time;

/// Shuffles keep every host's order, so their memory grows with the square of the hosts.
const SHUFFLE_HOSTS_MAX: u32 = 8_192;

/// More pairs than this are taken for a slip of the pen.
const PROBE_PAIRS_MAX: u32 = 1_000_000;

impl Builder<'_> {
    pub(super) fn shuffle(&mut self, p: &ShuffleParams) -> Option<SourceKind> {
        self.size("size", p.size);
        let (mut random, start, stop) = (self.random(), self.start, self.stop);
        let hosts = self.topology.hosts;
        if self.among.members.is_some() {
            let text = "a shuffle runs among all hosts; hosts is for the other kinds";
            return self.refuse("hosts", text);
        }
        if hosts > SHUFFLE_HOSTS_MAX {
            return self.refuse(
                "kind",
                format!("a shuffle among {hosts} hosts; {SHUFFLE_HOSTS_MAX} is the most"),
            );
        }
        // A host has so many flows in all.
        let concurrency = p.concurrency.min(hosts - 1);
        let first_flow = self.next_id as u32;
        self.next_id += hosts as u64 * (hosts as u64 - 1);
        let order = pattern::shuffle(&mut random, hosts);
        let size = p.size.get();
        Some(SourceKind::Shuffle { size, concurrency, start, stop, order, first_flow })
    }

    pub(super) fn rpc(&mut self, p: &RpcParams) -> Option<SourceKind> {
        let hosts = self.topology.hosts;
        self.size("request", p.request);
        self.size("response", p.response);
        for (key, n) in
            [("clients", p.clients), ("servers", p.servers), ("connections", p.connections)]
        {
            if n == 0 {
                self.wrong(key, "must be at least 1");
            }
        }
        self.is_finite &= self.stop < Time::END;
        let mut listed = Vec::new();
        for text in &p.pairs {
            match pair(text) {
                Some((a, b)) if a < hosts && b < hosts && a != b => {
                    self.known("pairs", a);
                    self.known("pairs", b);
                    listed.extend(std::iter::repeat_n(
                        (a, b),
                        p.connections.min(10_000_000) as usize,
                    ));
                }
                _ => {
                    let last = hosts - 1;
                    self.wrong(
                        "pairs",
                        format!(
                            "{text:?} is no pair of hosts such as \"0-1\"; they are 0 to {last}"
                        ),
                    );
                }
            }
        }
        if !p.pairs.is_empty() {
            return Some(self.persistent(p, listed));
        }
        let (clients, servers) = (p.clients as u64, p.servers as u64);
        let connections = clients * p.connections as u64;
        let hosts = self.among.hosts;
        if clients + servers > hosts as u64 {
            self.wrong(
                "clients",
                format!("{clients} clients and {servers} servers are more than {hosts} hosts"),
            );
        }
        if connections > 10_000_000 {
            self.wrong(
                "connections",
                format!("makes {connections} connections; 10000000 is the most"),
            );
        }
        if clients + servers > hosts as u64 || connections > 10_000_000 || servers == 0 {
            return None;
        }
        let mut drawn: Vec<u32> = (0..hosts).map(|place| self.among.host(place)).collect();
        self.random().shuffle(&mut drawn);
        let (asking, answering) = drawn.split_at(p.clients as usize);
        let pairs = (0..connections).map(|i| {
            (asking[(i / p.connections as u64) as usize], answering[(i % servers) as usize])
        });
        let connections: Vec<(u32, u32)> = pairs.collect();
        Some(self.persistent(p, connections))
    }

    fn persistent(&mut self, p: &RpcParams, connections: Vec<(u32, u32)>) -> SourceKind {
        let first_flow = self.next_id as u32;
        self.next_id += 2 * connections.len() as u64;
        let (request, response) = (p.request.get(), p.response.get());
        let (start, stop) = (self.start, self.stop);
        SourceKind::Rpc { connections, request, response, start, stop, first_flow }
    }

    pub(super) fn probe(&mut self, p: &ProbeParams) -> Option<SourceKind> {
        let mut random = self.random();
        let hosts = self.among.hosts;
        self.size("size", p.size);
        if p.period == Time::ZERO {
            return self.refuse("period", "must be more than zero");
        }
        if p.pairs == ProbePairs::InterLeaf && !self.can_cross(Pairs::InterLeaf) {
            return None;
        }
        let attachment = &*self.among.attachment;
        let drawn: Vec<(u32, u32)> = match &p.pairs {
            ProbePairs::Random => (0..).zip(pattern::random(&mut random, hosts, None)).collect(),
            ProbePairs::InterLeaf => {
                (0..).zip(pattern::random(&mut random, hosts, Some(attachment))).collect()
            }
            ProbePairs::Count(n) => {
                let n = (*n).min(PROBE_PAIRS_MAX + 1);
                let mut pair = |_| {
                    let src = random.below(hosts as u64) as u32;
                    (src, other_host(&mut random, hosts, src, None))
                };
                (0..n).map(&mut pair).collect()
            }
            ProbePairs::Listed(list) => list.clone(),
        };
        let drawn: Vec<(u32, u32)> = match &p.pairs {
            ProbePairs::Listed(_) => drawn,
            _ => {
                let of = |place| self.among.host(place);
                drawn.into_iter().map(|(src, dst)| (of(src), of(dst))).collect()
            }
        };
        if drawn.is_empty() || drawn.len() > PROBE_PAIRS_MAX as usize {
            return self.refuse(
                "pairs",
                format!("{} pairs; 1 to {PROBE_PAIRS_MAX} can probe", drawn.len()),
            );
        }
        let all = self.topology.hosts;
        for (a, b) in drawn.iter().filter(|(a, b)| *a.max(b) >= all || a == b) {
            let text = format!("{a}-{b} is no pair of hosts; they are 0 to {}", all - 1);
            self.wrong("pairs", text);
        }
        let ends = drawn.iter().flat_map(|(a, b)| [*a, *b]);
        if let Some(host) = ends.into_iter().find(|host| self.among.place(*host).is_none()) {
            self.known("pairs", host);
        }
        let mut phase = || Time::from_ps(random.below(p.period.as_ps()));
        let pairs: Vec<ProbePair> =
            drawn.into_iter().map(|(src, dst)| ProbePair { src, dst, phase: phase() }).collect();
        let first_flow = self.next_id as u32;
        self.next_id += 2 * pairs.len() as u64;
        let (size, period, start, stop) = (p.size.get(), p.period, self.start, self.stop);
        Some(SourceKind::Probe { pairs, size, period, start, stop, first_flow })
    }
}
