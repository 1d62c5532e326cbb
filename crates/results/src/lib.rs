//! The results folder of millpond, written by both worlds, and what is made from it: tables and one
//! self-contained page.
//!
//! A run goes: [`Folder::create`], [`RunWriter::new`] in it, [`RunWriter::flow`] and
//! [`RunWriter::query`] as they end, [`RunWriter::finish`], [`Folder::commit`]. A compare opens one
//! [`Folder`] by [`Folder::resume`], makes a [`RunWriter`] in the [`run_folder`] of each variant
//! and seed, then [`finish_compare`] and [`Folder::commit`].
//!
//! Invariant: for the same records in the same order, every file is byte-identical except
//! `manifest.json` and the object `run` of `summary.json`. No clock, address or hash seed enters a
//! file but these.

#![deny(clippy::missing_errors_doc)]

mod compare;
mod export;
mod folder;
mod model;
mod pool;
mod render;
mod report;
mod reproduce;
mod statistics;
mod sweep;
mod write;

#[cfg(test)]
use std::path::Path;

pub use compare::{VariantRuns, finish_compare};
pub use export::csv::{TABLES, default_table, write_csv};
pub use export::fct::write_fct;
pub use folder::target::{Owner, not_a_result};
pub use folder::{Folder, Progress};
pub use millpond_core::congestion::Quantity;
pub use model::checksum::of_file as checksum_of_file;
pub use model::claim::{Absolute, Cause, Claim, ClaimKind, Counted, Lies, Verdict, claims_json};
pub use model::error::{Error, Result};
pub use model::estimate::{Difference, Estimate, Noise, ShownNumber};
pub use model::goodput::{GoodputOverTime, Recovery};
pub use model::interval::{FEW, Interval, IntervalKind, excludes_zero};
pub use model::manifest::{FileSize, Kind, LinkFailure, MANIFEST, Machine, Manifest, is_result};
pub use model::names::{folder_name, point_folder, run_folder};
pub use model::ordered::Ordered;
pub use model::program::Program;
pub use model::record::{
    CollectiveRecord, ConnectionRecord, FlowRecord, FlowShare, Frame, Node, PacketRecord,
    PauseRecord, QueryRecord, QueueRecord, RankRecord,
};
pub use model::reproduction::{
    Calls, Experiment, LoadPoint, Number, OneRun, Published, PublishedNumber, REPRODUCTION,
    Reproduction, Scheme,
};
pub use model::size_bin::SizeBin;
pub use model::summary::{
    Amount, Application, Audit, Collectives, DROP_REASONS, Fct, Flows, Latency, Limit, Packets,
    Percentiles, Qct, QueuePeak, Rtt, RunInfo, SCHEMA, Slowdown, Spread, Status, Summary, Timers,
    Times, World,
};
pub use model::sweep::{Axis, Point, SWEEP, Sweep, SweepRun};
pub use model::totals::{Totals, peak_rss_bytes};
pub use model::tree::Tree;
pub use model::variant::{VariantResult, read_compare, read_results};
pub use render::claims::{Failing, KindCounts, causes_text, failing, kind_counts};
pub use render::exchange::{
    claims_junit, claims_markdown, compare_junit, compare_markdown, judged_markdown, judged_text,
};
pub use render::html::gallery::{Exhibit, gallery};
pub use render::html::plot::plots;
pub use render::text::compare::{compare_table, sizes_table};
pub use render::text::layout::{Warnings, about_text, filled};
pub use render::text::reproduction::reproduction_table;
pub use render::text::run::run_table;
pub use render::text::sweep::sweep_table;
pub use report::write_report;
pub use statistics::by_size::SizeBins;
pub use statistics::compare::{compare, grouped};
pub use statistics::load_point::{acknowledged_times, query_times};
pub use statistics::resampling::{Resampler, of_resamples};
pub use statistics::samples::{Between, Quantile, Samples, WHOLE, jain};
pub use statistics::subject::Bound;
pub use statistics::tolerance::{Judged, Tolerance};
pub use sweep::finish::finish_sweep;
pub use sweep::{SweepFolder, check_shard};
pub use write::capture::Captures;
pub use write::pcap::{PacketWriter, Place};
pub use write::{Header, JobHeader, Keep, RunWriter};

/// A fresh folder for one test, removed with it.
#[cfg(test)]
pub(crate) struct TestDir(std::path::PathBuf);

#[cfg(test)]
impl std::ops::Deref for TestDir {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
pub(crate) fn test_dir(name: &str) -> TestDir {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique =
        format!("millpond-{}-{name}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let dir = TestDir(std::env::temp_dir().join(unique));
    std::fs::create_dir_all(&dir.0).unwrap();
    dir
}
