//! The Parquet tables of a results folder: their names and their columns.

use std::path::Path;

use super::columns::{Column, Of, ROW_GROUP, Table};
use super::error::Result;
use super::ordered::Ordered;
use super::size_bin::SizeBin;
use super::summary::SCHEMA;

/// Rows of `flows.parquet`.
pub(crate) const FLOWS: &str = "flows.parquet";

pub(crate) const FLOW_COLUMNS: [Column<'static>; 14] = [
    ("flow", Of::U32, "number of the flow"),
    ("class", Of::Name, "its traffic's name, or its class in the CSV file"),
    ("src", Of::U32, "sending host"),
    ("dst", Of::U32, "receiving host"),
    ("bytes", Of::I64, "application bytes"),
    ("start_us", Of::F64, "when it started, in microseconds"),
    (
        "fct_us",
        Of::OptionalF64,
        "start to last byte delivered in order, in microseconds; null if unfinished",
    ),
    (
        "fct_sender_us",
        Of::OptionalF64,
        "first data byte sent to last byte acknowledged, in microseconds",
    ),
    ("slowdown", Of::OptionalF64, "fct_us over that of the same flow alone in the empty network"),
    (
        "retransmitted",
        Of::OptionalU32,
        "data packets sent again; null for a call on a persistent connection",
    ),
    (
        "timeouts",
        Of::OptionalU32,
        "retransmission timeouts; null for a call on a persistent connection",
    ),
    (
        "out_of_order",
        Of::OptionalU32,
        "data packets that arrived before an earlier one, late or lost; null if not counted",
    ),
    (
        "path_changes",
        Of::OptionalU32,
        "how often the path changed between two packets; null if not counted",
    ),
    ("query", Of::OptionalU32, "the query that it answers"),
];

/// Rows of `queries.parquet`.
pub(crate) const QUERIES: &str = "queries.parquet";

pub(crate) const QUERY_COLUMNS: [Column<'static>; 7] = [
    ("query", Of::U32, "number of the query"),
    ("class", Of::Name, "its traffic's name"),
    ("client", Of::U32, "the host that asks"),
    ("degree", Of::U32, "flows that answer"),
    ("start_us", Of::F64, "when its first request was sent, or it started, in microseconds"),
    (
        "qct_us",
        Of::OptionalF64,
        "start to last response complete, in microseconds; null if unfinished",
    ),
    ("completed", Of::U32, "responses complete"),
];

/// Rows of `sizes.parquet`.
pub(crate) const SIZES: &str = "sizes.parquet";

pub(crate) const SIZE_COLUMNS: [Column<'static>; 9] = [
    ("sizes", Of::Name, "the bin: shares of all flows, by size, or bytes"),
    ("above_bytes", Of::I64, "flows of the bin are larger"),
    ("to_bytes", Of::I64, "flows of the bin are not larger"),
    ("completed", Of::I64, "flows completed"),
    ("unfinished", Of::I64, "flows that did not complete, and count in no slowdown"),
    ("mean", Of::OptionalF64, "mean slowdown of the completed"),
    ("p50", Of::OptionalF64, "median slowdown of the completed"),
    ("p95", Of::OptionalF64, "95th percentile of the slowdown of the completed"),
    ("p99", Of::OptionalF64, "99th percentile of the slowdown of the completed"),
];

/// Writes `DIR/sizes.parquet`.
pub(crate) fn write_sizes(dir: &Path, bins: &Ordered<SizeBin>) -> Result<()> {
    let mut table = Table::create(
        &dir.join(SIZES),
        &SIZE_COLUMNS,
        &[("schema", SCHEMA.to_string())],
        ROW_GROUP,
    )?;
    for (name, bin) in bins.iter() {
        size_row(&mut table, name, bin)?;
    }
    table.close()
}

/// The columns of a bin, which end a row.
pub(crate) fn size_row(table: &mut Table, name: &str, bin: &SizeBin) -> Result<()> {
    table
        .name(&name.into())
        .i64(bin.above_bytes)
        .i64(bin.to_bytes)
        .i64(bin.completed)
        .i64(bin.unfinished);
    table
        .optional_f64(bin.mean)
        .optional_f64(bin.p50)
        .optional_f64(bin.p95)
        .optional_f64(bin.p99)
        .end_row()
}

/// Rows of `collectives.parquet`: one a round of a job.
pub(crate) const COLLECTIVES: &str = "collectives.parquet";

pub(crate) const COLLECTIVE_COLUMNS: [Column<'static>; 10] = [
    ("class", Of::Name, "its traffic's name"),
    ("round", Of::U32, "number of the round, from 0"),
    ("began_us", Of::F64, "when the first rank began, with its computation, in microseconds"),
    ("begin_us", Of::F64, "when the first rank could send, in microseconds"),
    ("end_us", Of::OptionalF64, "when the last rank had ended, in microseconds; null: not all had"),
    ("time_us", Of::OptionalF64, "begin to end, in microseconds"),
    ("skew_us", Of::OptionalF64, "first rank's end to last rank's, in microseconds"),
    ("algbw_gbytes", Of::OptionalF64, "a rank's buffer over the time, in GB/s"),
    ("busbw_gbytes", Of::OptionalF64, "algbw_gbytes times the collective's factor, in GB/s"),
    ("ratio", Of::OptionalF64, "the time over that without contention"),
];

/// Rows of `ranks.parquet`: one a rank and round of a job.
pub(crate) const RANKS: &str = "ranks.parquet";

pub(crate) const RANK_COLUMNS: [Column<'static>; 8] = [
    ("class", Of::Name, "its traffic's name"),
    ("round", Of::U32, "number of the round, from 0"),
    ("rank", Of::U32, "number of the rank, from 0"),
    ("host", Of::U32, "the rank's host"),
    ("began_us", Of::F64, "when it began, with its computation, in microseconds"),
    ("ready_us", Of::F64, "when it could send its first message, in microseconds"),
    ("ended_us", Of::F64, "when all messages for it were there, in microseconds"),
    ("computed_us", Of::F64, "how long it computed, in microseconds"),
];

/// Rows of `computations.parquet`: the first computations of a job's ranks.
pub(crate) const COMPUTATIONS: &str = "computations.parquet";

pub(crate) const COMPUTATION_COLUMNS: [Column<'static>; 5] = [
    ("class", Of::Name, "its traffic's name"),
    ("round", Of::U32, "number of the round, from 0"),
    ("rank", Of::U32, "number of the rank, from 0"),
    ("begin_us", Of::F64, "when the rank began to compute, in microseconds"),
    ("end_us", Of::F64, "when the computation was over, in microseconds"),
];

/// Rows of `queues.parquet`.
pub(crate) const QUEUES: &str = "queues.parquet";

pub(crate) const QUEUE_COLUMNS: [Column<'static>; 6] = [
    ("time_us", Of::F64, "when, in microseconds: just before all that happens at this instant"),
    ("node", Of::Name, "the switch, or the host whose NIC it is"),
    ("port", Of::U32, "its port; a host's is 0"),
    ("queue_bytes", Of::I64, "bytes that wait, without the packet in transmission"),
    ("queue_packets", Of::U32, "packets that wait"),
    ("peer", Of::Name, "the node at the other end of the port's link; empty: of several NICs"),
];

/// The file; a run has it on request.
pub(crate) const CONNECTIONS: &str = "connections.parquet";

/// The columns that every such file has.
pub(crate) const CONNECTION_COLUMNS: [Column<'static>; 14] = [
    ("time_us", Of::F64, "when, in microseconds: just before all that happens at this instant"),
    ("flow", Of::U32, "number of the flow"),
    ("class", Of::Name, "its traffic's name, or its class in the CSV file"),
    ("src", Of::U32, "sending host"),
    ("dst", Of::U32, "receiving host"),
    (
        "state",
        Of::Name,
        "syn-sent, or loss recovery as Linux names it: open, disorder, recovery, loss",
    ),
    ("cwnd_bytes", Of::I64, "congestion window"),
    ("ssthresh_bytes", Of::OptionalI64, "slow-start threshold; null while there is none"),
    ("in_flight_bytes", Of::I64, "bytes believed to be in the network"),
    ("acked_bytes", Of::I64, "bytes acknowledged since the connection was opened"),
    (
        "srtt_us",
        Of::OptionalF64,
        "smoothed round-trip time, in microseconds; null before the first measurement",
    ),
    ("rto_us", Of::F64, "retransmission timeout as backed off, in microseconds"),
    ("retransmitted", Of::U32, "segments sent again since the connection was opened"),
    ("timeouts", Of::U32, "retransmission timeouts since the connection was opened"),
];

/// Rows of a sweep: one a run.
pub(crate) const RESULTS: &str = "sweep.parquet";
