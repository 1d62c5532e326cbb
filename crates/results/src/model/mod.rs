//! The content of a results folder: its records, tables and JSON files, and how they are read and
//! written.

pub(crate) mod checksum;
pub(crate) mod claim;
pub(crate) mod columns;
pub(crate) mod error;
pub(crate) mod estimate;
pub(crate) mod files;
pub(crate) mod goodput;
pub(crate) mod guard;
pub(crate) mod interval;
pub(crate) mod manifest;
pub(crate) mod names;
pub(crate) mod ordered;
pub(crate) mod program;
pub(crate) mod record;
pub(crate) mod reproduction;
pub(crate) mod rows;
pub(crate) mod size_bin;
pub(crate) mod summary;
pub(crate) mod sweep;
pub(crate) mod tables;
pub(crate) mod totals;
pub(crate) mod tree;
pub(crate) mod variant;
pub(crate) mod words;

pub(crate) use checksum::sealed_text;
pub(crate) use claim::{Cause, Claim, ClaimKind, Lies, Verdict};
pub(crate) use columns::{Of, ROW_GROUP, Table};
pub(crate) use error::{At, Error, Result};
pub(crate) use estimate::{Difference, Estimate, Noise, ShownNumber};
pub(crate) use files::{REPORT, remove_if_there, replace_file, write_json};
pub(crate) use goodput::GoodputOverTime;
pub(crate) use guard::guarded;
pub(crate) use interval::{FEW, Interval, IntervalKind};
pub(crate) use manifest::{
    Kind, LinkFailure, MANIFEST, Manifest, check_files, is_result, list_again,
};
pub(crate) use names::{clean, folder_name, point_folder, run_folder};
pub(crate) use ordered::{Ordered, each_once};
#[cfg(test)]
pub(crate) use record::Frame;
pub(crate) use record::{
    CollectiveRecord, ConnectionRecord, FlowRecord, FlowShare, Node, PacketRecord, PauseRecord,
    QueryRecord, QueueRecord, RankRecord,
};
pub(crate) use reproduction::{
    Calls, Experiment, LoadPoint, Number, OneRun, Published, REPRODUCTION, Reproduction, Scheme,
};
pub(crate) use rows::Rows;
pub(crate) use size_bin::{SizeBin, middle};
pub(crate) use summary::{Flows, Percentiles, SCHEMA, Status, World};
pub(crate) use sweep::{Axis, Point, RUNS, SWEEP, Sweep, SweepRun, is_complete, summary_of};
pub(crate) use tables::{
    COLLECTIVE_COLUMNS, COLLECTIVES, COMPUTATION_COLUMNS, COMPUTATIONS, CONNECTION_COLUMNS,
    CONNECTIONS, FLOW_COLUMNS, FLOWS, QUERIES, QUERY_COLUMNS, QUEUE_COLUMNS, QUEUES, RANK_COLUMNS,
    RANKS, RESULTS, SIZE_COLUMNS, SIZES, write_sizes,
};
pub(crate) use totals::Totals;
pub(crate) use tree::Tree;
pub(crate) use variant::{COMPARE, VariantResult, read_compare};
