//! Jobs: collectives among ranks, and their places.

use super::super::SourceKind;
use super::super::job::{IDS_OF_A_RANK, Ids, JobPlan, order};
use super::Builder;
use crate::error::meant;
use crate::settings::flows::BYTES_MAX;
use crate::settings::hosts::{HostSet, ranges};
use crate::settings::job::{
    ChakraParams, CollectiveParams, Connections, GoalParams, Placement, ProgramFile, SimaiParams,
};
use millpond_core::params::{Field, Value};
use millpond_core::random::{hash_name, mix64};
use millpond_core::{Bytes, HostId};
use millpond_ranks::collective::{Algorithm, Collective, Matrix, Operation, algorithms};
use millpond_ranks::program::{Costs, Program};
use millpond_ranks::{Job, Pace, Work};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A job's ranks take at most so many ids: half of them all.
const IDS_OF_A_JOB: u64 = 1 << 31;

/// More chunks of a buffer than this are taken for a slip of the pen.
const CHUNKS_MAX: u64 = 1 << 20;

/// A word as a scenario writes it.
fn word(field: &impl Field) -> String {
    match field.to_value() {
        Value::Text(word) => word,
        _ => String::new(),
    }
}

/// The places of a job's ranks, and their connections.
struct Seats {
    placement: Placement,
    first: u32,
    connections: Connections,
}

impl Seats {
    fn of(placement: Placement, first: u32, connections: Connections) -> Seats {
        Seats { placement, first, connections }
    }
}

impl Builder<'_> {
    pub(super) fn collective(&mut self, p: &CollectiveParams) -> Option<SourceKind> {
        let hosts = self.placed(p.placement, p.ranks, p.first, false)?;
        let ranks = hosts.len() as u32;
        let collective = self.schedule(p, ranks)?;
        let stragglers = self.stragglers(&p.stragglers, ranks)?;
        let pace = Pace {
            gap: p.gap,
            compute: p.compute,
            jitter: p.compute_jitter,
            stragglers,
            straggler_delay: p.straggler_delay,
            key: mix64(self.settings.run.seed) ^ hash_name(&self.name),
        };
        let channels = collective.channels;
        let job = Job { collective, rounds: p.repeat, pace };
        self.job(Work::Collective(job), hosts, p.connections, channels)
    }

    pub(super) fn goal(&mut self, p: &GoalParams) -> Option<SourceKind> {
        let eager = Some(p.eager.get());
        let costs = Costs { message: p.message_cost, byte: p.byte_cost, eager, ..Costs::default() };
        self.program(&p.file, costs, Seats::of(p.placement, p.first, p.connections))
    }

    pub(super) fn simai(&mut self, p: &SimaiParams) -> Option<SourceKind> {
        // Collectives alone send, and they wait for nobody's receive.
        self.program(&p.file, Costs::default(), Seats::of(p.placement, p.first, p.connections))
    }

    pub(super) fn chakra(&mut self, p: &ChakraParams) -> Option<SourceKind> {
        // A trace has the ranks' costs of messages, as computations.
        let costs = Costs { eager: p.eager.map(Bytes::get), ..Costs::default() };
        self.program(&p.file, costs, Seats::of(p.placement, p.first, p.connections))
    }

    /// A job of programs of ranks.
    fn program(&mut self, file: &ProgramFile, costs: Costs, seats: Seats) -> Option<SourceKind> {
        // Without programs the file could not be read, which is already reported.
        let program = file.program.clone()?;
        let ranks = Some(program.ranks.len() as u32);
        let hosts = self.placed(seats.placement, ranks, seats.first, true)?;
        let channels = self.channels(&file.path, &program, &hosts);
        self.job(Work::Program { program, costs }, hosts, seats.connections, channels)
    }

    /// A channel for each NIC that a program's sends name, which the ranks' hosts must have.
    fn channels(&mut self, path: &str, of: &Program, hosts: &[HostId]) -> u32 {
        for (rank, (nic, place)) in &of.nics {
            let host = hosts[*rank as usize];
            let count = self.topology.nics(host).count();
            if usize::from(*nic) >= count {
                let has = match count {
                    1 => "one NIC, number 0".to_string(),
                    _ => format!("NICs 0 to {}", count - 1),
                };
                let text = format!(
                    "{path}: {place}: rank {rank} sends by nic {nic}; host{host} has {has}"
                );
                self.wrong("file", text);
                return 1;
            }
        }
        of.nics()
    }

    fn job(
        &mut self,
        work: Work,
        hosts: Vec<HostId>,
        connections: Connections,
        channels: u32,
    ) -> Option<SourceKind> {
        let ranks = hosts.len() as u32;
        let width = Ids::width(connections, ranks, channels);
        let count = u64::from(ranks) * u64::from(channels) * u64::from(width);
        if count > IDS_OF_A_JOB {
            let text = match connections {
                Connections::Lasting => format!(
                    "{ranks} ranks with {channels} channels have {count} connections; \
                     {IDS_OF_A_JOB} are the most"
                ),
                Connections::PerMessage => format!(
                    "{ranks} ranks with {channels} channels; with a connection for each message \
                     ranks times channels are at most {}",
                    IDS_OF_A_JOB / u64::from(IDS_OF_A_RANK)
                ),
            };
            return self.refuse("ranks", text);
        }
        let (first_flow, first_rank) = (self.next_id as u32, self.next_rank);
        self.next_id += count;
        self.next_rank += ranks;
        let ids = Ids { first_flow, first_rank, connections, width };
        let plan = JobPlan::new(work, hosts, self.start, ids, self.topology);
        Some(SourceKind::Job(Arc::new(plan)))
    }

    /// The hosts of a job's ranks, in the order of ranks.
    fn placed(
        &mut self,
        placement: Placement,
        ranks: Option<u32>,
        first: u32,
        is_program: bool,
    ) -> Option<Vec<HostId>> {
        let listed: Vec<HostId> = match &self.set {
            HostSet::All => (0..self.topology.hosts).collect(),
            HostSet::Ranges(list) => list.iter().flat_map(|(from, to)| *from..=*to).collect(),
        };
        let count = listed.len();
        let distinct: BTreeSet<HostId> = listed.iter().copied().collect();
        if distinct.len() < count {
            return self.refuse("hosts", "names a host twice; a host has one rank of a job");
        }
        let order = order(placement, listed, &self.topology.attachment, self.settings.run.seed);
        let left = count.saturating_sub(first as usize);
        let ranks = ranks.map_or(left, |ranks| ranks as usize);
        let least = if is_program { 1 } else { 2 };
        if ranks > left {
            let key = if is_program { "file" } else { "hosts" };
            let text = format!("{ranks} ranks from place {first} on, and there are {count} hosts");
            return self.refuse(key, text);
        }
        if ranks < least {
            let text = format!("{ranks} ranks from place {first} on; a job has at least {least}");
            return self.refuse("first", text);
        }
        Some(order.into_iter().skip(first as usize).take(ranks).collect())
    }

    fn schedule(&mut self, p: &CollectiveParams, ranks: u32) -> Option<Collective> {
        self.size("size", p.size);
        let known = algorithms(p.op);
        let algorithm = match p.algorithm {
            Algorithm::Auto => known[0],
            chosen => chosen,
        };
        if !known.contains(&algorithm) {
            let (own, words) = (word(&algorithm), known.iter().map(word).collect::<Vec<_>>());
            let help = meant(&own, words.iter().map(String::as_str));
            let text = format!("{} has no {own:?}, but {}{help}", word(&p.op), words.join(", "));
            return self.refuse("algorithm", text);
        }
        let groups = matches!(algorithm, Algorithm::Hierarchical | Algorithm::Pxn);
        if groups && (p.group > ranks || !ranks.is_multiple_of(p.group)) {
            let text = format!("{ranks} ranks are not a whole number of groups of {}", p.group);
            return self.refuse("group", text);
        }
        if p.skew != 1.0 {
            let is_skewed = p.op == Operation::AllToAll && algorithm != Algorithm::Bruck;
            if !is_skewed || p.skew > f64::from(ranks) {
                let text = format!(
                    "{} is for all-to-all, pairwise, linear and pxn, and at most the number of \
                     ranks, {ranks}",
                    p.skew
                );
                return self.refuse("skew", text);
            }
        }
        let matrix = match p.matrix.as_slice() {
            [] => None,
            rows => Some(self.matrix(rows, ranks, p.op, algorithm)?),
        };
        if let Some(chunk) = p.chunk.filter(|chunk| p.size.get() / chunk.get() > CHUNKS_MAX) {
            let text = format!("{chunk} makes more than {CHUNKS_MAX} chunks of {}", p.size);
            return self.refuse("chunk", text);
        }
        let is_ring = algorithm == Algorithm::Ring && p.op != Operation::Broadcast;
        if p.slices > 1 && !is_ring {
            return self.refuse("slices", format!("is of rings; {:?} has none", word(&algorithm)));
        }
        if p.channels > 1 && p.op == Operation::Barrier {
            let text = "a barrier has no data that channels could divide: use 1";
            return self.refuse("channels", text);
        }
        let total = matrix.as_ref().map(Matrix::total);
        Some(Collective {
            operation: p.op,
            algorithm,
            ranks,
            bytes: total.map_or(p.size.get(), |total| total.div_ceil(u64::from(ranks))),
            channels: p.channels,
            slices: p.slices,
            chunk: p.chunk.map(|chunk| chunk.get()),
            group: p.group,
            skew: p.skew,
            matrix,
            micro_batches: p.micro_batches,
            stage: (p.forward, p.backward),
        })
    }

    /// The bytes from each rank to each, a row a sender.
    fn matrix(
        &mut self,
        rows: &[String],
        ranks: u32,
        operation: Operation,
        algorithm: Algorithm,
    ) -> Option<Matrix> {
        let read = || {
            if operation != Operation::AllToAll
                || !matches!(algorithm, Algorithm::Pairwise | Algorithm::Linear)
            {
                return Err("is for all-to-all, pairwise and linear".to_string());
            }
            if rows.len() != ranks as usize {
                return Err(format!("{} rows, and the job has {ranks} ranks", rows.len()));
            }
            let mut all = Vec::new();
            for (rank, row) in rows.iter().enumerate() {
                let blocks = row.split([',', ' ']).filter(|word| !word.is_empty()).map(block);
                let blocks: Vec<u64> =
                    blocks.collect::<Result<_, _>>().map_err(|e| format!("row {rank}: {e}"))?;
                if blocks.len() != ranks as usize {
                    let found = blocks.len();
                    return Err(format!("row {rank}: {found} sizes, and there are {ranks} ranks"));
                }
                all.extend(blocks);
            }
            match all.iter().map(|bytes| u128::from(*bytes)).sum::<u128>() {
                0 => Err("no rank sends anything".into()),
                sum if sum > u128::from(BYTES_MAX) => {
                    Err(format!("{sum} bytes in all; {} are the most", Bytes(BYTES_MAX)))
                }
                _ => Ok(all.into()),
            }
        };
        read().map(Matrix::new).map_err(|text| self.wrong("matrix", text)).ok()
    }

    fn stragglers(&mut self, list: &[String], ranks: u32) -> Option<BTreeSet<u32>> {
        let found = ranges(&Value::List(list.to_vec()), "rank")
            .filter(|list| list.iter().all(|(from, to)| from <= to && *to < ranks));
        if found.is_none() {
            let text =
                format!("expected ranks such as [\"3\", \"8..11\"], from 0 to {}", ranks - 1);
            self.wrong("stragglers", text);
        }
        Some(found?.into_iter().flat_map(|(from, to)| from..=to).collect())
    }
}

/// One size of a matrix: bytes as a number, or with a unit.
fn block(word: &str) -> Result<u64, String> {
    let bytes = word.parse::<Bytes>().map_err(|e| e.to_string())?;
    match bytes.get() {
        bytes if bytes <= BYTES_MAX => Ok(bytes),
        _ => Err(format!("{word:?} is no size of a flow; {} is the most", Bytes(BYTES_MAX))),
    }
}
