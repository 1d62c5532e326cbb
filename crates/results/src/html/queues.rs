//! Queue occupancy over time, from `queues.parquet`: the fullest queue anywhere, and the busiest ports.
//!
//! Time is cut into buckets, and a bucket shows the most that was sampled in it, so no burst is averaged away.
//!
//! Invariant: memory is that of the ports and the buckets, not of the samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::rows::Rows;
use crate::error::Result;

/// The file; a run has it on request.
const QUEUES: &str = "queues.parquet";
/// Buckets of time.
const BUCKETS: usize = 300;

/// A node and its port.
pub(crate) type Port = (String, u64);

/// What a first pass finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Overview {
    path: PathBuf,
    /// First and last sample, in microseconds.
    pub span: (f64, f64),
    /// The most bytes of each port.
    pub peaks: BTreeMap<Port, u64>,
    /// Samples of one port, at most.
    samples: usize,
}

/// Bytes over time in microseconds: the most of each bucket.
pub(crate) type Track = Vec<(f64, f64)>;

impl Overview {
    /// Of a run's folder; `None` if it has no samples.
    pub fn read(run: &Path) -> Result<Option<Overview>> {
        let path = run.join(QUEUES);
        if !path.exists() {
            return Ok(None);
        }
        let mut span = (f64::INFINITY, f64::NEG_INFINITY);
        let mut ports: BTreeMap<String, BTreeMap<u64, (u64, usize)>> = BTreeMap::new();
        Rows::open(&path)?.each(["time_us", "node", "port", "queue_bytes"], |columns, count| {
            for row in 0..count {
                let (Some(time), Some(node)) = (columns[0].float(row), columns[1].text(row)) else { continue };
                span = (span.0.min(time), span.1.max(time));
                if !ports.contains_key(node) {
                    ports.insert(node.to_string(), BTreeMap::new());
                }
                let Some(ports) = ports.get_mut(node) else { continue };
                let (peak, samples) = ports.entry(columns[2].whole(row).unwrap_or(0)).or_default();
                *peak = columns[3].whole(row).unwrap_or(0).max(*peak);
                *samples += 1;
            }
            Ok(())
        })?;
        let samples = ports.values().flat_map(|ports| ports.values().map(|(_, samples)| *samples)).max().unwrap_or(0);
        let of_node = |(node, ports): (String, BTreeMap<u64, (u64, usize)>)| {
            ports.into_iter().map(move |(port, (peak, _))| ((node.clone(), port), peak)).collect::<Vec<_>>()
        };
        let peaks = ports.into_iter().flat_map(of_node).collect();
        Ok((samples > 0).then_some(Overview { path, span, peaks, samples }))
    }

    /// A second pass: the fullest queue of all, then each of these ports.
    pub fn tracks(&self, ports: &[Port]) -> Result<Vec<Track>> {
        let buckets = BUCKETS.min(self.samples).max(1);
        let width = ((self.span.1 - self.span.0) / buckets as f64).max(1e-6);
        let mut most: Vec<Vec<Option<u64>>> = vec![vec![None; buckets]; ports.len() + 1];
        Rows::open(&self.path)?.each(["time_us", "node", "port", "queue_bytes"], |columns, count| {
            for row in 0..count {
                let (Some(time), Some(node)) = (columns[0].float(row), columns[1].text(row)) else { continue };
                let at = (((time - self.span.0) / width) as usize).min(buckets - 1);
                let (port, bytes) = (columns[2].whole(row).unwrap_or(0), columns[3].whole(row).unwrap_or(0));
                most[0][at] = most[0][at].max(Some(bytes));
                for (track, _) in ports.iter().enumerate().filter(|(_, (n, p))| *p == port && n == node) {
                    most[track + 1][at] = most[track + 1][at].max(Some(bytes));
                }
            }
            Ok(())
        })?;
        let middle = |at: usize| self.span.0 + (at as f64 + 0.5) * width;
        let track = |most: Vec<Option<u64>>| {
            let points = most.into_iter().enumerate();
            points.filter_map(|(at, bytes)| Some((middle(at), bytes? as f64))).collect()
        };
        Ok(most.into_iter().map(track).collect())
    }
}

/// The ports with the highest peaks in any of these runs, the highest first; never one that stayed empty.
pub(crate) fn busiest<'a>(runs: impl Iterator<Item = &'a Overview>, most: usize) -> Vec<Port> {
    let mut peaks: BTreeMap<&Port, u64> = BTreeMap::new();
    for (port, &peak) in runs.flat_map(|run| &run.peaks) {
        let highest = peaks.entry(port).or_default();
        *highest = peak.max(*highest);
    }
    let mut ports: Vec<(&Port, u64)> = peaks.into_iter().filter(|(_, peak)| *peak > 0).collect();
    // Stable: ports of equal peaks stay in the order of their names.
    ports.sort_by_key(|(_, peak)| std::cmp::Reverse(*peak));
    ports.into_iter().take(most).map(|(port, _)| port.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Of, Table};
    use parquet::data_type::ByteArray;

    #[test]
    fn bursts_survive_the_buckets() {
        let dir = crate::test_dir("queues");
        assert_eq!(Overview::read(&dir).unwrap(), None);
        let columns = [
            ("time_us", Of::F64, ""),
            ("node", Of::Name, ""),
            ("port", Of::U32, ""),
            ("queue_bytes", Of::I64, ""),
            ("queue_packets", Of::U32, ""),
        ];
        let mut table = Table::create(&dir.join(QUEUES), &columns, &[], 1000).unwrap();
        for at in 0..5_000u32 {
            for (node, port) in [("leaf0", 1u32), ("leaf1", 7)] {
                let bytes = if at == 1234 && port == 7 { 90_000 } else { u64::from(port) };
                table.f64(f64::from(at)).name(&ByteArray::from(node)).u32(port).i64(bytes).u32(1).end_row().unwrap();
            }
        }
        table.close().unwrap();
        let overview = Overview::read(&dir).unwrap().unwrap();
        assert_eq!(overview.span, (0.0, 4999.0));
        let ports = busiest([&overview].into_iter(), 1);
        assert_eq!(ports, [("leaf1".to_string(), 7)]);
        let tracks = overview.tracks(&ports).unwrap();
        assert_eq!((tracks.len(), tracks[0].len()), (2, BUCKETS));
        assert_eq!(tracks[0].iter().map(|p| p.1).fold(0.0, f64::max), 90_000.0);
        assert_eq!(tracks[1].iter().filter(|p| p.1 > 7.0).count(), 1);
    }
}
