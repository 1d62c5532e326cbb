//! Jobs of a plan: their ranks' hosts, and the numbers of their connections.
//!
//! Invariant: no two ranks of a job are on one host. Each rank has a range of ids a channel: where
//! connections last, one for each rank that it could send to, whether or not it ever does; where
//! each message has its own, so many that an id is free again for long when its turn comes.

use super::news::News;
use crate::settings::job::{Connections, Placement};
use crate::topology::Topology;
use millpond_core::random::Stream;
use millpond_core::switch::route::Attachment;
use millpond_core::{FlowId, HostId, Time};
use millpond_ranks::Work;
use std::collections::BTreeMap;

/// Ids of a rank's connections for one message each, at least.
pub(crate) const IDS_OF_A_RANK: u32 = 1 << 16;

/// Ids of a job whose ranks have more than that.
const IDS_OF_MESSAGES: u32 = 1 << 28;

/// A job with its ranks' places.
#[derive(Clone, Debug)]
pub struct JobPlan {
    pub work: Work,
    pub hosts: Vec<HostId>,
    ranks: BTreeMap<HostId, u32>,
    pub start: Time,
    /// The first of its connections' ids.
    pub first_flow: FlowId,
    pub connections: Connections,
    /// How many ids a rank has on each channel.
    width: u32,
    /// Rank 0's number among those of all jobs.
    pub first_rank: u32,
    /// How its ranks learn that a send is matched.
    pub news: News,
}

impl JobPlan {
    /// A job whose ranks are on these hosts.
    pub(crate) fn new(
        work: Work,
        hosts: Vec<HostId>,
        start: Time,
        ids: Ids,
        topology: &Topology,
    ) -> JobPlan {
        let Ids { first_flow, first_rank, connections, width } = ids;
        let awaits: &[HostId] = match work {
            Work::Collective(_) => &[],
            Work::Program { .. } => &hosts,
        };
        let news = News::to(awaits.iter().copied(), topology);
        let ranks = hosts.iter().zip(0..).map(|(host, rank)| (*host, rank)).collect();
        JobPlan { work, hosts, ranks, start, first_flow, connections, width, first_rank, news }
    }

    pub fn count(&self) -> u32 {
        self.hosts.len() as u32
    }

    pub fn rank_at(&self, host: HostId) -> Option<u32> {
        self.ranks.get(&host).copied()
    }

    /// The rank that sends on a connection.
    pub fn sender(&self, flow: FlowId) -> u32 {
        (flow - self.first_flow) / self.width % self.count()
    }

    pub fn channel(&self, flow: FlowId) -> u32 {
        (flow - self.first_flow) / self.width / self.count()
    }

    /// The NIC that a connection's sends name, if its job's program names any but 0.
    pub fn nic(&self, flow: FlowId) -> Option<u32> {
        match &self.work {
            Work::Program { program, .. } if program.nics() > 1 => Some(self.channel(flow)),
            _ => None,
        }
    }

    /// The id of the connection that carries a message of a rank to another; `sent`: how many the
    /// rank has sent before.
    pub fn flow(&self, from: u32, to: u32, channel: u32, sent: u32) -> FlowId {
        let place = match self.connections {
            Connections::Lasting => to,
            Connections::PerMessage => sent % self.width,
        };
        self.first_flow + (channel * self.count() + from) * self.width + place
    }
}

pub(crate) struct Ids {
    pub first_flow: FlowId,
    pub first_rank: u32,
    pub connections: Connections,
    pub width: u32,
}

impl Ids {
    /// How many ids each of so many ranks needs on each of so many channels.
    pub fn width(connections: Connections, ranks: u32, channels: u32) -> u32 {
        match connections {
            Connections::Lasting => ranks,
            Connections::PerMessage => {
                (IDS_OF_MESSAGES / ranks.saturating_mul(channels)).max(IDS_OF_A_RANK)
            }
        }
    }
}

/// The order in which a job takes these hosts.
pub(crate) fn order(
    placement: Placement,
    mut hosts: Vec<HostId>,
    attachment: &Attachment,
    seed: u64,
) -> Vec<HostId> {
    match placement {
        Placement::Listed => hosts,
        Placement::Packed => {
            hosts.sort_unstable();
            hosts
        }
        Placement::Random => {
            hosts.sort_unstable();
            Stream::new(seed, "placement").shuffle(&mut hosts);
            hosts
        }
        Placement::RoundRobin => {
            hosts.sort_unstable();
            let mut taken: BTreeMap<u16, u32> = BTreeMap::new();
            let mut turns: Vec<(u32, u16, HostId)> = Vec::new();
            for host in hosts {
                let (leaf, _) = attachment.hosts[host as usize];
                let turn = taken.entry(leaf).or_insert(0);
                turns.push((*turn, leaf, host));
                *turn += 1;
            }
            turns.sort_unstable();
            turns.into_iter().map(|(.., host)| host).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;
    use crate::traffic::SourceKind;

    fn hosts(keys: &str) -> Vec<u32> {
        let text = format!(
            "duration = \"1s\"\n[topology]\nleaves = 2\nspines = 1\nhosts-per-leaf = 4\n\
             [[traffic]]\nkind = \"collective\"\n{keys}"
        );
        let plan = Scenario::parse("t", &text).unwrap().plan(None, &[], None).unwrap();
        match &plan.traffic.sources[0].kind {
            SourceKind::Job(job) => job.hosts.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn placements_are_orders_of_the_hosts() {
        assert_eq!(hosts("ranks = 3\nfirst = 2"), [2, 3, 4]);
        assert_eq!(hosts("ranks = 4\nplacement = \"round-robin\""), [0, 4, 1, 5]);
        let listed = "placement = \"listed\"\nhosts = [\"7\", \"0..2\"]";
        assert_eq!(hosts(listed), [7, 0, 1, 2]);
        assert_eq!(hosts("hosts = [\"7\", \"0..2\"]"), [0, 1, 2, 7]);
        let mut both = hosts("ranks = 4\nplacement = \"random\"");
        assert_ne!(both, [0, 1, 2, 3]);
        both.extend(hosts("ranks = 4\nplacement = \"random\"\nfirst = 4"));
        both.sort_unstable();
        assert_eq!(both, [0, 1, 2, 3, 4, 5, 6, 7], "two jobs share no host");
    }
}
