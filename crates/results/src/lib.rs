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

mod export;
mod folder;
mod model;
mod pool;
mod render;
mod statistics;
mod sweep;
mod write;

#[cfg(test)]
use std::path::Path;

pub use export::csv::{TABLES, default_table, write_csv};
pub use export::fct::write_fct;
pub use folder::target::{Owner, not_a_result};
pub use folder::{Folder, Progress, folder_name};
pub use millpond_core::congestion::Quantity;
pub use model::claim::ClaimKind;
pub use model::error::{Error, Result};
pub use model::goodput::GoodputOverTime;
pub use model::manifest::{
    FileSize, Kind, LinkFailure, MANIFEST, Machine, Manifest, is_result, rfc3339,
};
pub use model::ordered::Ordered;
pub use model::record::{
    ConnectionRecord, FlowRecord, Node, PacketRecord, PauseRecord, QueryRecord, QueueRecord,
};
pub use model::reproduction::{
    Absolute, Calls, Claim, Experiment, LoadPoint, Number, OneRun, Published, PublishedNumber,
    REPRODUCTION, Reproduction, Scheme, Verdict, acknowledged_times, claims_json, query_times,
};
pub use model::size_bin::SizeBin;
pub use model::summary::{
    Amount, Application, Audit, DROP_REASONS, Fct, Flows, Latency, Limit, Packets, Percentiles,
    Qct, Rtt, RunInfo, SCHEMA, Slowdown, Spread, Status, Summary, Timers, Totals, World,
    peak_rss_bytes,
};
pub use render::html::write_report;
pub use render::text::reproduction::reproduction_table;
pub use render::text::run::{compare_table, run_table, sizes_table};
pub use render::text::sweep::{finish_sweep, sweep_table};
pub use statistics::by_size::SizeBins;
pub use statistics::compare::{
    Difference, Estimate, Noise, Tree, VariantResult, compare, finish_compare, read_compare,
    run_folder,
};
pub use statistics::resampling::{
    FEW, Interval, IntervalKind, Resampler, excludes_zero, of_resamples,
};
pub use statistics::samples::{Between, Quantile, Samples, WHOLE, jain};
pub use statistics::shows::ShownNumber;
pub use sweep::{Axis, Point, SWEEP, Sweep, SweepFolder, SweepRun, point_folder, without_shows};
pub use write::capture::Captures;
pub use write::{Header, Keep, RunWriter};

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
