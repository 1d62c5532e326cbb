//! The Parquet tables of a results folder: their names and their columns.

use std::path::Path;

use millpond_core::Time;
use parquet::data_type::ByteArray;

use super::columns::{Layout, Table, Value, layout};
use super::error::Result;
use super::ordered::Ordered;
use super::record::{
    CollectiveRecord, ConnectionRecord, FlowRecord, QueryRecord, QueueRecord, RankRecord,
};
use super::size_bin::SizeBin;
use super::summary::SCHEMA;

fn us(time: Option<Time>) -> Option<f64> {
    time.map(Time::as_us_f64)
}

/// Rows of `flows.parquet`.
pub(crate) const FLOWS: &str = "flows.parquet";

layout! {
    FLOW_COLUMNS of |flow: FlowRecord, names| {
        /// number of the flow
        flow: u32 = flow.flow,
        /// its traffic's name, or its class in the CSV file
        class: &ByteArray = &names[0],
        /// sending host
        src: u32 = flow.src,
        /// receiving host
        dst: u32 = flow.dst,
        /// application bytes
        bytes: u64 = flow.bytes,
        /// when it started, in microseconds
        start_us: f64 = flow.start.as_us_f64(),
        /// start to last byte delivered in order, in microseconds; null if unfinished
        fct_us: Option<f64> = us(flow.fct()),
        /// first data byte sent to last byte acknowledged, in microseconds
        fct_sender_us: Option<f64> = us(flow.fct_sender()),
        /// fct_us over that of the same flow alone in the empty network
        slowdown: Option<f64> = flow.slowdown(),
        /// data packets sent again; null for a call on a persistent connection
        retransmitted: Option<u32> = (!flow.is_call).then_some(flow.retransmitted),
        /// retransmission timeouts; null for a call on a persistent connection
        timeouts: Option<u32> = (!flow.is_call).then_some(flow.timeouts),
        /// data packets that arrived before an earlier one, late or lost; null if not counted
        out_of_order: Option<u32> = flow.out_of_order,
        /// how often the path changed between two packets; null if not counted
        path_changes: Option<u32> = flow.path_changes,
        /// the query that it answers
        query: Option<u32> = flow.query,
    }
}

/// Rows of `queries.parquet`.
pub(crate) const QUERIES: &str = "queries.parquet";

layout! {
    QUERY_COLUMNS of |query: QueryRecord, names| {
        /// number of the query
        query: u32 = query.query,
        /// its traffic's name
        class: &ByteArray = &names[0],
        /// the host that asks
        client: u32 = query.client,
        /// flows that answer
        degree: u32 = query.degree,
        /// when its first request was sent, or it started, in microseconds
        start_us: f64 = query.start.as_us_f64(),
        /// start to last response complete, in microseconds; null if unfinished
        qct_us: Option<f64> = us(query.qct()),
        /// responses complete
        completed: u32 = query.completed,
    }
}

/// Rows of `sizes.parquet`.
pub(crate) const SIZES: &str = "sizes.parquet";

layout! {
    SIZE_COLUMNS of |bin: SizeBin, names| {
        /// the bin: shares of all flows, by size, or bytes
        sizes: &ByteArray = &names[0],
        /// flows of the bin are larger
        above_bytes: u64 = bin.above_bytes,
        /// flows of the bin are not larger
        to_bytes: u64 = bin.to_bytes,
        /// flows completed
        completed: u64 = bin.completed,
        /// flows that did not complete, and count in no slowdown
        unfinished: u64 = bin.unfinished,
        /// mean slowdown of the completed
        mean: Option<f64> = bin.mean,
        /// median slowdown of the completed
        p50: Option<f64> = bin.p50,
        /// 95th percentile of the slowdown of the completed
        p95: Option<f64> = bin.p95,
        /// 99th percentile of the slowdown of the completed
        p99: Option<f64> = bin.p99,
    }
}

/// Writes `DIR/sizes.parquet`.
pub(crate) fn write_sizes(dir: &Path, bins: &Ordered<SizeBin>) -> Result<()> {
    let mut table = Table::of(&dir.join(SIZES), &SIZE_COLUMNS, &[("schema", SCHEMA.to_string())])?;
    bins.iter().try_for_each(|(name, bin)| table.row(&SIZE_COLUMNS, bin, &[name.into()]))?;
    table.close()
}

/// Rows of `collectives.parquet`: one a round of a job.
pub(crate) const COLLECTIVES: &str = "collectives.parquet";

layout! {
    COLLECTIVE_COLUMNS of |round: CollectiveRecord, names| {
        /// its traffic's name
        class: &ByteArray = &names[0],
        /// number of the round, from 0
        round: u32 = round.round,
        /// when the first rank began, with its computation, in microseconds
        began_us: f64 = round.began.as_us_f64(),
        /// when the first rank could send, in microseconds
        begin_us: f64 = round.begin.as_us_f64(),
        /// when the last rank had ended, in microseconds; null: not all had
        end_us: Option<f64> = us(round.end),
        /// begin to end, in microseconds
        time_us: Option<f64> = us(round.time()),
        /// first rank's end to last rank's, in microseconds
        skew_us: Option<f64> = us(round.end.map(|end| end.saturating_sub(round.first_end))),
        /// a rank's buffer over the time, in GB/s
        algbw_gbytes: Option<f64> = round.algbw.map(|rate| rate / 1e9),
        /// algbw_gbytes times the collective's factor, in GB/s
        busbw_gbytes: Option<f64> = round.busbw.map(|rate| rate / 1e9),
        /// the time over that without contention
        ratio: Option<f64> = round.ratio(),
    }
}

/// Rows of `ranks.parquet`: one a rank and round of a job.
pub(crate) const RANKS: &str = "ranks.parquet";

layout! {
    RANK_COLUMNS of |rank: RankRecord, names| {
        /// its traffic's name
        class: &ByteArray = &names[0],
        /// number of the round, from 0
        round: u32 = rank.round,
        /// number of the rank, from 0
        rank: u32 = rank.rank,
        /// the rank's host
        host: u32 = rank.host,
        /// when it began, with its computation, in microseconds
        began_us: f64 = rank.began.as_us_f64(),
        /// when it could send its first message, in microseconds
        ready_us: f64 = rank.ready.as_us_f64(),
        /// when all messages for it were there, in microseconds
        ended_us: f64 = rank.ended.as_us_f64(),
        /// how long it computed, in microseconds
        computed_us: f64 = rank.computed.as_us_f64(),
    }
}

/// Rows of `computations.parquet`: the first computations of a job's ranks.
pub(crate) const COMPUTATIONS: &str = "computations.parquet";

/// A computation of a rank in a round.
pub(crate) struct Computation {
    pub round: u32,
    pub rank: u32,
    pub begin: Time,
    pub end: Time,
}

layout! {
    COMPUTATION_COLUMNS of |it: Computation, names| {
        /// its traffic's name
        class: &ByteArray = &names[0],
        /// number of the round, from 0
        round: u32 = it.round,
        /// number of the rank, from 0
        rank: u32 = it.rank,
        /// when the rank began to compute, in microseconds
        begin_us: f64 = it.begin.as_us_f64(),
        /// when the computation was over, in microseconds
        end_us: f64 = it.end.as_us_f64(),
    }
}

/// Rows of `queues.parquet`.
pub(crate) const QUEUES: &str = "queues.parquet";

layout! {
    QUEUE_COLUMNS of |queue: QueueRecord, names| {
        /// when, in microseconds: just before all that happens at this instant
        time_us: f64 = queue.at.as_us_f64(),
        /// the switch, or the host whose NIC it is
        node: &ByteArray = &names[0],
        /// its port; a host's is 0
        port: u32 = queue.port.into(),
        /// bytes that wait, without the packet in transmission
        queue_bytes: u64 = queue.bytes,
        /// packets that wait
        queue_packets: u32 = queue.packets,
        /// the node at the other end of the port's link; empty: of several NICs
        peer: &ByteArray = &names[1],
    }
}

/// The file; a run has it on request.
pub(crate) const CONNECTIONS: &str = "connections.parquet";

layout! {
    /// The columns that every such file has.
    CONNECTION_COLUMNS of |end: ConnectionRecord, names| {
        /// when, in microseconds: just before all that happens at this instant
        time_us: f64 = end.at.as_us_f64(),
        /// number of the flow
        flow: u32 = end.flow,
        /// its traffic's name, or its class in the CSV file
        class: &ByteArray = &names[0],
        /// sending host
        src: u32 = end.src,
        /// receiving host
        dst: u32 = end.dst,
        /// syn-sent, or loss recovery as Linux names it: open, disorder, recovery, loss
        state: &str = end.state,
        /// congestion window
        cwnd_bytes: u64 = end.cwnd,
        /// slow-start threshold; null while there is none
        ssthresh_bytes: Option<u64> = end.ssthresh,
        /// bytes believed to be in the network
        in_flight_bytes: u64 = end.in_flight,
        /// bytes acknowledged since the connection was opened
        acked_bytes: u64 = end.acked,
        /// smoothed round-trip time, in microseconds; null before the first measurement
        srtt_us: Option<f64> = us(end.srtt),
        /// retransmission timeout as backed off, in microseconds
        rto_us: f64 = end.rto.as_us_f64(),
        /// segments sent again since the connection was opened
        retransmitted: u32 = end.retransmitted,
        /// retransmission timeouts since the connection was opened
        timeouts: u32 = end.timeouts,
    }
}

/// Rows of a sweep: one a run.
pub(crate) const RESULTS: &str = "sweep.parquet";
