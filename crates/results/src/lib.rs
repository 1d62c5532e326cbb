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

mod bins;
mod capture;
mod censoring;
mod checksum;
mod claim_kind;
mod columns;
mod compare;
mod completions;
mod connections;
mod csv;
mod error;
mod fct;
mod folder;
mod format;
mod goodput;
mod guard;
mod html;
mod interval;
mod lock;
mod manifest;
mod ordered;
mod pcap;
mod pool;
mod record;
mod reproduction;
mod reproduction_table;
mod shows;
mod size_bin;
mod sizes;
mod spill;
mod statistics;
mod summary;
mod survival;
mod sweep;
mod sweep_results;
mod table;
mod target;
mod trace;
mod writer;

use std::fs::File;
use std::io::Write;
use std::path::Path;

pub use capture::Captures;
pub use claim_kind::ClaimKind;
pub use compare::{
    Difference, Estimate, Noise, Tree, VariantResult, compare, finish_compare, read_compare,
    run_folder,
};
pub use csv::{TABLES, default_table, write_csv};
pub use error::{Error, Result};
pub use fct::write_fct;
pub use folder::{Folder, Progress, folder_name};
pub use goodput::GoodputOverTime;
pub use html::write_report;
pub use interval::{FEW, Interval, IntervalKind, Resampler, excludes_zero, of_resamples};
pub use manifest::{FileSize, Kind, LinkFailure, MANIFEST, Machine, Manifest, is_result, rfc3339};
pub use millpond_core::congestion::Quantity;
pub use ordered::Ordered;
pub use record::{
    ConnectionRecord, FlowRecord, Node, PacketRecord, PauseRecord, QueryRecord, QueueRecord,
};
pub use reproduction::{
    Absolute, Calls, Claim, Experiment, LoadPoint, Number, OneRun, Published, PublishedNumber,
    REPRODUCTION, Reproduction, Scheme, Verdict, acknowledged_times, claims_json, query_times,
};
pub use reproduction_table::reproduction_table;
pub use shows::ShownNumber;
pub use size_bin::SizeBin;
pub use sizes::SizeBins;
pub use statistics::{Between, Quantile, Samples, WHOLE, jain};
pub use summary::{
    Amount, Application, Audit, DROP_REASONS, Fct, Flows, Latency, Limit, Packets, Percentiles,
    Qct, Rtt, RunInfo, SCHEMA, Slowdown, Spread, Status, Summary, Timers, Totals, World,
    peak_rss_bytes,
};
pub use sweep::{Axis, Point, SWEEP, Sweep, SweepFolder, SweepRun, point_folder, without_shows};
pub use sweep_results::{finish_sweep, sweep_table};
pub use table::{compare_table, run_table, sizes_table};
pub use target::{Owner, not_a_result};
pub use writer::{Header, Keep, RunWriter};

use error::At;

/// Indented JSON with a newline at its end.
pub(crate) fn json_text<T: serde::Serialize>(value: &T) -> String {
    // Our own types, with text keys: this cannot fail.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes a file as JSON, down to the disk.
pub(crate) fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<()> {
    write_file(path, json_text(value).as_bytes())
}

/// Writes a file, down to the disk: what is renamed into place must be whole even after a power
/// cut.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path).at("create", path)?;
    file.write_all(bytes).at("write", path)?;
    file.sync_all().at("write", path)
}

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
