//! Queue occupancy over time, from `queues.parquet`: the fullest queue anywhere, and the busiest
//! ports.
//!
//! A port has a row at each sample at which something waits, and one at the first sample at which
//! nothing does any more. At a sample without a row the port was empty. Time is cut into
//! buckets of whole periods, and a bucket shows the most that was sampled in it, so no burst is
//! averaged away.
//!
//! Invariant: what is drawn was sampled, and memory is that of the ports and the buckets, not of
//! the samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::{QUEUES, Result, Rows};

const BUCKETS: usize = 300;

pub(crate) type Port = (String, u64);

/// The findings of a first pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Overview {
    path: PathBuf,
    /// Where the run ended, in microseconds.
    pub end: f64,
    /// Time from one sample to the next.
    period: f64,
    /// The most bytes of each port.
    pub peaks: BTreeMap<Port, u64>,
    /// The nodes at the other ends of their links.
    pub peers: BTreeMap<Port, String>,
}

/// Bytes from a time in microseconds on, until the next; the last one is the end.
pub(crate) type Track = Vec<(f64, f64)>;

impl Overview {
    /// Of a run's folder; `None` if it has no samples. `end` is where the run ended, in
    /// microseconds.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) or [`Error::Malformed`](crate::Error::Malformed) if the file
    /// of samples cannot be read.
    pub fn read(run: &Path, end: f64) -> Result<Option<Overview>> {
        let path = run.join(QUEUES);
        if !path.exists() {
            return Ok(None);
        }
        let (mut last, mut period): (Option<f64>, Option<f64>) = (None, None);
        let (mut peaks, mut peers) = (BTreeMap::new(), BTreeMap::new());
        let rows = Rows::open(&path)?;
        let peer = if rows.has("peer") { "peer" } else { "node" };
        rows.each(["time_us", "node", "port", "queue_bytes", peer], |row| {
            let (Some(time), Some(node)) = (row.float(0), row.text(1)) else { return Ok(()) };
            // Whoever has a row has another one at the next sample, full or empty.
            let since = last.map(|last| time - last).filter(|since| *since > 0.0);
            period = period.into_iter().chain(since).min_by(f64::total_cmp);
            last = Some(time);
            let port = (node.to_string(), row.whole(2).unwrap_or(0));
            if !peaks.contains_key(&port) {
                let peer = row.text(4).filter(|peer| !["", node].contains(peer));
                peers.extend(peer.map(|peer| (port.clone(), peer.to_string())));
            }
            let peak = peaks.entry(port).or_default();
            *peak = row.whole(3).unwrap_or(0).max(*peak);
            Ok(())
        })?;
        let Some(last) = last else { return Ok(None) };
        let period = period.unwrap_or(last).max(1e-6);
        Ok(Some(Overview { path, end: end.max(last), period, peaks, peers }))
    }

    /// A second pass: the fullest queue of all, then each of these ports.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) or [`Error::Malformed`](crate::Error::Malformed) if the file
    /// of samples cannot be read.
    pub fn tracks(&self, ports: &[Port]) -> Result<Vec<Track>> {
        // The first sample is taken after one period.
        let samples = ((self.end / self.period).round() as usize).max(1);
        let of_a_bucket = samples.div_ceil(BUCKETS);
        let buckets = samples.div_ceil(of_a_bucket);
        let mut most: Vec<Vec<u64>> = vec![vec![0; buckets]; ports.len() + 1];
        let columns = ["time_us", "node", "port", "queue_bytes"];
        Rows::open(&self.path)?.each(columns, |row| {
            let (Some(time), Some(node)) = (row.float(0), row.text(1)) else { return Ok(()) };
            let sample = ((time / self.period).round() as usize).max(1) - 1;
            let at = (sample / of_a_bucket).min(buckets - 1);
            let (port, bytes) = (row.whole(2).unwrap_or(0), row.whole(3).unwrap_or(0));
            let is_here = |(_, (n, p)): &(usize, &Port)| *p == port && n == node;
            let own = ports.iter().enumerate().filter(is_here).map(|(track, _)| track + 1);
            for track in std::iter::once(0).chain(own) {
                most[track][at] = most[track][at].max(bytes);
            }
            Ok(())
        })?;
        let start = |bucket: usize| (bucket * of_a_bucket + 1) as f64 * self.period;
        Ok(most.into_iter().map(|most| changes(&most, start, self.end)).collect())
    }
}

/// The buckets that differ from the one before, and the end.
fn changes(most: &[u64], start: impl Fn(usize) -> f64, end: f64) -> Track {
    let mut track: Track = Vec::new();
    for (bucket, &bytes) in most.iter().enumerate() {
        if track.last().is_none_or(|&(_, last)| last != bytes as f64) {
            track.push((start(bucket), bytes as f64));
        }
    }
    let last = track.last().map_or(0.0, |&(_, last)| last);
    track.push((end, last));
    track
}

/// The ports with the highest peaks in any of these runs, the highest first; never one that stayed
/// empty.
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
    use crate::model::{Of, Table};

    fn written(dir: &Path, rows: &[(f64, &str, u32, u64)]) {
        let columns = [
            ("time_us", Of::F64, ""),
            ("node", Of::Name, ""),
            ("port", Of::U32, ""),
            ("queue_bytes", Of::I64, ""),
            ("queue_packets", Of::U32, ""),
        ];
        let mut table = Table::create(&dir.join(QUEUES), &columns, &[], 1000).unwrap();
        for &(at, node, port, bytes) in rows {
            table.cell(at);
            table.cell(node);
            table.cell(port);
            table.cell(bytes);
            table.cell(1u32);
            table.end_row().unwrap();
        }
        table.close().unwrap();
    }

    #[test]
    fn bursts_survive_the_buckets() {
        let dir = crate::test_dir("queues");
        assert_eq!(Overview::read(&dir, 1.0).unwrap(), None);
        let mut rows = Vec::new();
        for at in 1..=5_000u32 {
            for (node, port) in [("leaf0", 1u32), ("leaf1", 7)] {
                let bytes = if at == 1234 && port == 7 { 90_000 } else { u64::from(port) };
                rows.push((f64::from(at), node, port, bytes));
            }
        }
        written(&dir, &rows);
        let overview = Overview::read(&dir, 5_000.0).unwrap().unwrap();
        let ports = busiest([&overview].into_iter(), 1);
        assert_eq!(ports, [("leaf1".to_string(), 7)]);
        let tracks = overview.tracks(&ports).unwrap();
        assert_eq!(tracks[0], tracks[1]);
        let peaks: Vec<_> = tracks[1].iter().filter(|(_, bytes)| *bytes > 7.0).collect();
        assert!(matches!(peaks[..], [(at, 90_000.0)] if (*at - 1234.0).abs() < 17.0), "{peaks:?}");
        assert_eq!(tracks[1].last(), Some(&(5_000.0, 7.0)));
    }

    #[test]
    fn a_queue_without_samples_was_empty() {
        let dir = crate::test_dir("idle-queues");
        // Something waits at 10, and again at 90; each time the next sample finds nothing. The run
        // ends at 200.
        written(
            &dir,
            &[(10.0, "a", 0, 1500), (20.0, "a", 0, 0), (90.0, "a", 0, 67_000), (100.0, "a", 0, 0)],
        );
        let overview = Overview::read(&dir, 200.0).unwrap().unwrap();
        let track = &overview.tracks(&[("a".to_string(), 0)]).unwrap()[1];
        assert_eq!(
            track,
            &[(10.0, 1500.0), (20.0, 0.0), (90.0, 67_000.0), (100.0, 0.0), (200.0, 0.0)]
        );
    }
}
