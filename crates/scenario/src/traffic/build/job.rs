//! Jobs: collectives among ranks, and their places.

use super::super::SourceKind;
use super::super::job::{IDS_OF_A_RANK, Ids, JobPlan, order};
use super::Builder;
use crate::error::nearest;
use crate::settings::flows::BYTES_MAX;
use crate::settings::hosts::{HostSet, ranges};
use crate::settings::job::{
    ChakraParams, CollectiveParams, Connections, GoalParams, Placement, ProgramFile, SimaiParams,
};
use millpond_core::params::{Field, Value};
use millpond_core::random::{hash_name, mix64};
use millpond_core::{Bytes, HostId, Time};
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

impl Builder<'_> {
    pub(super) fn collective(
        &mut self,
        name: &str,
        p: &CollectiveParams,
        start: Time,
        stop: Option<Time>,
    ) -> SourceKind {
        if stop.is_some() {
            let text = "a collective ends with its rounds, and not at a time: use repeat";
            self.wrong(name, "stop", text.into());
        }
        let Some(hosts) = self.placed(name, p.placement, p.ranks, p.first, false) else {
            return SourceKind::Open;
        };
        let ranks = hosts.len() as u32;
        let Some(collective) = self.schedule(name, p, ranks) else { return SourceKind::Open };
        let Some(stragglers) = self.stragglers(name, &p.stragglers, ranks) else {
            return SourceKind::Open;
        };
        let pace = Pace {
            gap: p.gap,
            compute: p.compute,
            jitter: p.compute_jitter,
            stragglers,
            straggler_delay: p.straggler_delay,
            key: mix64(self.settings.run.seed) ^ hash_name(name),
        };
        let channels = collective.channels;
        let job = Job { collective, rounds: p.repeat, pace };
        self.job(name, Work::Collective(job), hosts, (p.connections, channels), start)
    }

    pub(super) fn goal(
        &mut self,
        name: &str,
        p: &GoalParams,
        start: Time,
        stop: Option<Time>,
    ) -> SourceKind {
        if stop.is_some() {
            self.wrong(name, "stop", "programs end by themselves, and not at a time".into());
        }
        let (message, byte, eager) = (p.message_cost, p.byte_cost, Some(p.eager.get()));
        let costs = Costs { message, byte, gap: Time::ZERO, gap_byte: Time::ZERO, eager };
        self.program(name, &p.file, costs, (p.placement, p.first, p.connections), start)
    }

    pub(super) fn simai(
        &mut self,
        name: &str,
        p: &SimaiParams,
        start: Time,
        stop: Option<Time>,
    ) -> SourceKind {
        if stop.is_some() {
            self.wrong(name, "stop", "layers end by themselves, and not at a time".into());
        }
        // Collectives alone send, and they wait for nobody's receive.
        let zero = Time::ZERO;
        let costs = Costs { message: zero, byte: zero, gap: zero, gap_byte: zero, eager: None };
        self.program(name, &p.file, costs, (p.placement, p.first, p.connections), start)
    }

    pub(super) fn chakra(
        &mut self,
        name: &str,
        p: &ChakraParams,
        start: Time,
        stop: Option<Time>,
    ) -> SourceKind {
        if stop.is_some() {
            self.wrong(name, "stop", "traces end by themselves, and not at a time".into());
        }
        // A trace has the ranks' costs of messages, as computations.
        let (zero, eager) = (Time::ZERO, p.eager.map(Bytes::get));
        let costs = Costs { message: zero, byte: zero, gap: zero, gap_byte: zero, eager };
        self.program(name, &p.file, costs, (p.placement, p.first, p.connections), start)
    }

    fn program(
        &mut self,
        name: &str,
        file: &ProgramFile,
        costs: Costs,
        (placement, first, connections): (Placement, u32, Connections),
        start: Time,
    ) -> SourceKind {
        // Without programs the file could not be read, which is already reported.
        let Some(program) = file.program.clone() else { return SourceKind::Open };
        let ranks = Some(program.ranks.len() as u32);
        let Some(hosts) = self.placed(name, placement, ranks, first, true) else {
            return SourceKind::Open;
        };
        let channels = self.channels((name, &file.path), &program, &hosts);
        self.job(name, Work::Program { program, costs }, hosts, (connections, channels), start)
    }

    /// A channel for each NIC that a program's sends name, which the ranks' hosts must have.
    fn channels(&mut self, (name, path): (&str, &str), of: &Program, hosts: &[HostId]) -> u32 {
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
                self.wrong(name, "file", text);
                return 1;
            }
        }
        of.nics()
    }

    /// Gives a job its numbers.
    fn job(
        &mut self,
        name: &str,
        work: Work,
        hosts: Vec<HostId>,
        (connections, channels): (Connections, u32),
        start: Time,
    ) -> SourceKind {
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
            self.wrong(name, "ranks", text);
            return SourceKind::Open;
        }
        let (first_flow, first_rank) = (self.next_id as u32, self.next_rank);
        self.next_id += count;
        self.next_rank += ranks;
        let ids = Ids { first_flow, first_rank, connections, width };
        SourceKind::Job(Arc::new(JobPlan::new(work, hosts, start, ids, self.topology)))
    }

    /// The hosts of a job's ranks, in the order of ranks.
    fn placed(
        &mut self,
        name: &str,
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
            self.wrong(name, "hosts", "names a host twice; a host has one rank of a job".into());
            return None;
        }
        let order = order(placement, listed, &self.topology.attachment, self.settings.run.seed);
        let left = count.saturating_sub(first as usize);
        let ranks = ranks.map_or(left, |ranks| ranks as usize);
        let least = if is_program { 1 } else { 2 };
        if ranks > left {
            let key = if is_program { "file" } else { "hosts" };
            let text = format!("{ranks} ranks from place {first} on, and there are {count} hosts");
            self.wrong(name, key, text);
            return None;
        }
        if ranks < least {
            let text = format!("{ranks} ranks from place {first} on; a job has at least {least}");
            self.wrong(name, "first", text);
            return None;
        }
        Some(order.into_iter().skip(first as usize).take(ranks).collect())
    }

    /// The collective itself.
    fn schedule(&mut self, name: &str, p: &CollectiveParams, ranks: u32) -> Option<Collective> {
        self.size(name, "size", p.size);
        let known = algorithms(p.op);
        let algorithm = match p.algorithm {
            Algorithm::Auto => known[0],
            chosen => chosen,
        };
        if !known.contains(&algorithm) {
            let (own, words) = (word(&algorithm), known.iter().map(word).collect::<Vec<_>>());
            let near = nearest(&own, words.iter().map(String::as_str));
            let help = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            let text = format!("{} has no {own:?}, but {}{help}", word(&p.op), words.join(", "));
            self.wrong(name, "algorithm", text);
            return None;
        }
        let groups = matches!(algorithm, Algorithm::Hierarchical | Algorithm::Pxn);
        if groups && (p.group > ranks || !ranks.is_multiple_of(p.group)) {
            let text = format!("{ranks} ranks are not a whole number of groups of {}", p.group);
            self.wrong(name, "group", text);
            return None;
        }
        if p.skew != 1.0 {
            let is_skewed = p.op == Operation::AllToAll && algorithm != Algorithm::Bruck;
            if !is_skewed || p.skew > f64::from(ranks) {
                let text = format!(
                    "{} is for all-to-all, pairwise, linear and pxn, and at most the number of \
                     ranks, {ranks}",
                    p.skew
                );
                self.wrong(name, "skew", text);
                return None;
            }
        }
        let matrix = match p.matrix.as_slice() {
            [] => None,
            rows => Some(self.matrix(name, rows, ranks, (p.op, algorithm))?),
        };
        if let Some(chunk) = p.chunk.filter(|chunk| p.size.get() / chunk.get() > CHUNKS_MAX) {
            let text = format!("{chunk} makes more than {CHUNKS_MAX} chunks of {}", p.size);
            self.wrong(name, "chunk", text);
            return None;
        }
        let is_ring = algorithm == Algorithm::Ring && p.op != Operation::Broadcast;
        if p.slices > 1 && !is_ring {
            self.wrong(name, "slices", format!("is of rings; {:?} has none", word(&algorithm)));
            return None;
        }
        if p.channels > 1 && p.op == Operation::Barrier {
            let text = "a barrier has no data that channels could divide: use 1";
            self.wrong(name, "channels", text.into());
            return None;
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
        name: &str,
        rows: &[String],
        ranks: u32,
        (operation, algorithm): (Operation, Algorithm),
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
        read().map(Matrix::new).map_err(|text| self.wrong(name, "matrix", text)).ok()
    }

    fn stragglers(&mut self, name: &str, list: &[String], ranks: u32) -> Option<BTreeSet<u32>> {
        let found = ranges(&Value::List(list.to_vec()), "rank")
            .filter(|list| list.iter().all(|(from, to)| from <= to && *to < ranks));
        if found.is_none() {
            let text =
                format!("expected ranks such as [\"3\", \"8..11\"], from 0 to {}", ranks - 1);
            self.wrong(name, "stragglers", text);
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
