//! A statistic by flow size: slowdown over the size of flows is the figure of most papers on
//! datacenter transports.
//!
//! Sizes are cut into bins of equal count (Li et al.: HPCC, SIGCOMM 2019, Fig. 11, has 20), or at
//! given edges. A bin holds the sizes above one edge, up to and with the next. All flows that
//! started are cut, so that what did not complete moves no edge, and variants that see the same
//! arrivals have the same bins.
//!
//! Invariant: the values of one bin are exact and in the order in which they came; flows of one
//! size are in one bin, so that where many have the same size there are fewer bins than asked for;
//! memory does not grow with the flows.

use std::path::{Path, PathBuf};

use crate::model::{Ordered, Result, SizeBin};
use crate::statistics::samples::{Between, Samples};
use crate::statistics::spill::Spill;

/// Flows that stay in memory: 2 MB.
const IN_MEMORY: usize = 1 << 17;
/// Values of a bin that do.
const OF_A_BIN: usize = 1 << 15;
/// In the place of a value: the flow did not complete.
const OPEN: u64 = u64::MAX;

/// How sizes are cut into bins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeBins {
    /// Into so many, with as many flows each as sizes allow.
    Equal(u32),
    /// At these sizes in bytes, which ascend; one more bin holds what is larger than all.
    Edges(Vec<u64>),
}

impl Default for SizeBins {
    fn default() -> Self {
        SizeBins::Equal(20)
    }
}

impl SizeBins {
    /// As a note in a file: a number of bins, or edges with a comma behind each.
    pub(crate) fn note(&self) -> String {
        match self {
            SizeBins::Equal(count) => count.to_string(),
            SizeBins::Edges(edges) => edges.iter().map(|edge| format!("{edge},")).collect(),
        }
    }

    /// Reads a note.
    pub(crate) fn of_note(note: &str) -> Option<SizeBins> {
        let Some(edges) = note.strip_suffix(',') else {
            return note.parse().ok().map(SizeBins::Equal);
        };
        edges.split(',').map(|edge| edge.parse().ok()).collect::<Option<_>>().map(SizeBins::Edges)
    }

    /// The bins' upper edges with their names. The largest size is in the last.
    pub(crate) fn cut(&self, sizes: &mut Samples) -> Result<Vec<Edge>> {
        let (Some(last), Some(largest)) = (sizes.count().checked_sub(1), sizes.max()) else {
            return Ok(Vec::new());
        };
        let mut bins: Vec<Edge> = Vec::new();
        match self {
            SizeBins::Equal(count) => {
                let count = u64::from((*count).max(1));
                // The last of the flows of each part, so that the parts are equal where sizes
                // differ.
                let ranks: Vec<u64> = (1..=count)
                    .map(|part| {
                        (u128::from(part) * u128::from(last + 1)).div_ceil(count.into()) as u64 - 1
                    })
                    .collect();
                let edges = sizes.at_ranks(&ranks)?;
                let mut from = 0;
                for (at, part) in (1..=count).enumerate() {
                    if edges.get(at + 1) != Some(&edges[at]) {
                        let share = |part: u64| trimmed(part as f64 * 100.0 / count as f64);
                        bins.push((edges[at], format!("{}-{}%", share(from), share(part))));
                        from = part;
                    }
                }
            }
            SizeBins::Edges(edges) => {
                let mut from = 0;
                for &edge in edges {
                    bins.push((edge, format!("{from}-{edge}")));
                    from = edge;
                }
                bins.push((largest.max(from), format!(">{from}")));
            }
        }
        Ok(bins)
    }
}

/// The upper edge of a bin, and the bin's name.
pub(crate) type Edge = (u64, String);

/// Edges that do not depend on the flows: 1, 2 and 5 times a power of ten, up to the largest size.
fn fixed(largest: u64) -> Vec<Edge> {
    let steps = (0..).map(|n| [1, 2, 5][n as usize % 3] * 10u128.pow(n / 3));
    let (mut bins, mut from) = (Vec::new(), 0);
    for step in steps.map(|step| u64::try_from(step).unwrap_or(u64::MAX)) {
        bins.push((step, format!("{from}-{step}")));
        if step >= largest {
            return bins;
        }
        from = step;
    }
    bins
}

/// At most two decimals, without trailing zeros.
fn trimmed(share: f64) -> String {
    let text = format!("{share:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A value of each flow, while they pass.
pub(crate) struct BySize {
    sizes: Samples,
    /// Size, and the bits of the value.
    flows: Vec<[u64; 2]>,
    spill: Spill<16>,
    /// Where spill files are made.
    scratch: PathBuf,
}

impl BySize {
    /// Spills to files of this name and more in their names.
    pub fn new(scratch: PathBuf) -> BySize {
        let place = |what: &str| part(&scratch, what);
        let sizes = Samples::with_limit(place("sizes"), IN_MEMORY);
        BySize { sizes, flows: Vec::new(), spill: Spill::new(place("flows")), scratch }
    }

    /// A flow of this size; without a value it did not complete.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a spill file cannot be written.
    pub fn push(&mut self, bytes: u64, value: Option<f64>) -> Result<()> {
        if self.flows.len() == IN_MEMORY {
            self.spill.append(self.flows.iter().map(bytes_of))?;
            self.flows.clear();
        }
        self.sizes.push(bytes)?;
        // A negative zero would sort last.
        self.flows.push([bytes, value.map_or(OPEN, |value| (value + 0.0).to_bits())]);
        Ok(())
    }

    /// The bins by name, from the smallest sizes up. A bin without flows is there if its edge was
    /// given.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a spill file cannot be read.
    pub fn by(&mut self, rule: &SizeBins) -> Result<Ordered<SizeBin>> {
        let edges = rule.cut(&mut self.sizes)?;
        self.at(edges)
    }

    /// The bins with fixed edges that have flows.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a spill file cannot be read.
    pub fn by_fixed_size(&mut self) -> Result<Ordered<SizeBin>> {
        let Some(largest) = self.sizes.max() else { return Ok(Ordered::default()) };
        let bins = self.at(fixed(largest))?;
        Ok(Ordered(
            bins.0.into_iter().filter(|(_, bin)| bin.completed + bin.unfinished > 0).collect(),
        ))
    }

    /// The bins with these edges. A flow that is larger than the last is in the last.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a spill file cannot be read or written.
    pub fn at(&mut self, edges: Vec<Edge>) -> Result<Ordered<SizeBin>> {
        let collector =
            |at: usize| Samples::with_limit(part(&self.scratch, &at.to_string()), OF_A_BIN);
        let mut bins: Vec<(SizeBin, Samples, f64)> =
            (0..edges.len()).map(|at| (SizeBin::default(), collector(at), 0.0)).collect();
        let mut failed = Ok(());
        let mut sort = |[bytes, bits]: [u64; 2]| {
            let at =
                edges.partition_point(|(edge, _)| *edge < bytes).min(edges.len().saturating_sub(1));
            let Some((bin, values, sum)) = bins.get_mut(at) else { return };
            if bits == OPEN {
                bin.unfinished += 1;
            } else if failed.is_ok() {
                *sum += f64::from_bits(bits);
                failed = values.push(bits);
            }
        };
        self.spill.each(|bytes| sort(of_bytes(bytes)))?;
        self.flows.iter().copied().for_each(&mut sort);
        failed?;
        let (mut all, mut above) = (Vec::new(), 0);
        for ((to, name), (bin, mut values, sum)) in edges.into_iter().zip(bins) {
            let completed = values.count();
            let found = values.quantiles(&[5_000, 9_500, 9_900])?;
            let at =
                |place: usize| found.as_ref().map(|found| Between::interpolate_bits(found[place]));
            let mean = (completed > 0).then(|| sum / completed as f64);
            let [p50, p95, p99] = [at(0), at(1), at(2)];
            all.push((
                name,
                SizeBin { above_bytes: above, to_bytes: to, completed, mean, p50, p95, p99, ..bin },
            ));
            above = to;
        }
        Ok(all.into())
    }
}

fn bytes_of([bytes, bits]: &[u64; 2]) -> [u8; 16] {
    (u128::from(*bytes) << 64 | u128::from(*bits)).to_le_bytes()
}

fn of_bytes(bytes: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*bytes);
    [(both >> 64) as u64, both as u64]
}

/// `PLACE-WHAT`.
fn part(place: &Path, what: &str) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_os_string();
    name.push(format!("-{what}"));
    place.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::statistics::samples::{WHOLE, place};

    fn by_size(flows: &[(u64, Option<f64>)], rule: &SizeBins) -> Vec<(String, SizeBin)> {
        let dir = crate::test_dir("sizes");
        let mut sizes = BySize::new(dir.join("spill"));
        flows.iter().for_each(|&(bytes, value)| sizes.push(bytes, value).unwrap());
        sizes.by(rule).unwrap().iter().map(|(name, bin)| (name.to_string(), *bin)).collect()
    }

    #[test]
    fn bins_are_of_equal_count_where_sizes_differ() {
        let flows: Vec<(u64, Option<f64>)> =
            (1..=200).rev().map(|n| (n * 10, Some(n as f64))).collect();
        let bins = by_size(&flows, &SizeBins::default());
        assert_eq!(bins.len(), 20);
        assert!(bins.iter().all(|(_, bin)| bin.completed == 10 && bin.unfinished == 0));
        assert_eq!((bins[0].0.as_str(), bins[19].0.as_str()), ("0-5%", "95-100%"));
        let last = bins[19].1;
        assert_eq!(
            (last.above_bytes, last.to_bytes, last.mean, last.p50),
            (1900, 2000, Some(195.5), Some(195.5))
        );
        assert_eq!((last.p95, last.p99), (Some(199.55), Some(199.91)));
    }

    /// Nine of ten flows have 8 kB: they are one bin, whatever their share.
    #[test]
    fn one_size_is_in_one_bin() {
        let of = |n: u64| {
            (
                if n.is_multiple_of(10) { 1_000 + n } else { 8_000 },
                (!n.is_multiple_of(7)).then_some(2.0),
            )
        };
        let bins = by_size(&(0..1_000).map(of).collect::<Vec<_>>(), &SizeBins::Equal(20));
        let names: Vec<&str> = bins.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["0-5%", "5-10%", "10-100%"]);
        let (_, last) = &bins[2];
        assert_eq!(
            (last.above_bytes, last.to_bytes, last.completed + last.unfinished),
            (1_990, 8_000, 900)
        );
        assert_eq!(bins.iter().map(|(_, bin)| bin.unfinished).sum::<u64>(), 143);
    }

    #[test]
    fn edges_are_taken_as_given() {
        let flows = [(5, Some(1.0)), (10, Some(3.0)), (11, None), (5_000, Some(9.0))];
        let bins = by_size(&flows, &SizeBins::Edges(vec![10, 100, 1_000]));
        let of = |at: usize| {
            (bins[at].0.as_str(), bins[at].1.completed, bins[at].1.unfinished, bins[at].1.p50)
        };
        assert_eq!(of(0), ("0-10", 2, 0, Some(2.0)));
        assert_eq!(of(1), ("10-100", 0, 1, None));
        assert_eq!(of(2), ("100-1000", 0, 0, None));
        assert_eq!((of(3), bins[3].1.to_bytes), ((">1000", 1, 0, Some(9.0)), 5_000));
        assert!(by_size(&[], &SizeBins::Edges(vec![10])).is_empty());
    }

    #[test]
    fn few_flows_are_few_bins_and_what_is_open_moves_no_edge() {
        let flows = |open: bool| [(7, Some(1.0)), (9, (!open).then_some(2.0)), (30, Some(4.0))];
        let edges = |open| {
            by_size(&flows(open), &SizeBins::Equal(20))
                .into_iter()
                .map(|(name, bin)| (name, bin.to_bytes))
        };
        assert!(edges(true).eq(edges(false)));
        assert!(edges(true).eq([
            ("0-30%".to_string(), 7),
            ("30-65%".to_string(), 9),
            ("65-100%".to_string(), 30)
        ]));
    }

    #[test]
    fn fixed_edges_are_those_of_every_run() {
        let dir = crate::test_dir("fixed");
        let of = |flows: &[u64]| {
            let mut sizes = BySize::new(dir.join("spill"));
            flows.iter().for_each(|&bytes| sizes.push(bytes, Some(1.0)).unwrap());
            sizes
                .by_fixed_size()
                .unwrap()
                .iter()
                .map(|(name, bin)| (name.to_string(), bin.completed))
                .collect::<Vec<_>>()
        };
        let named = |bins: &[(&str, u64)]| {
            bins.iter().map(|(name, n)| (name.to_string(), *n)).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&[1, 1_000, 501, 90_000]),
            named(&[("0-1", 1), ("500-1000", 2), ("50000-100000", 1)])
        );
        assert_eq!(of(&[1_000, 1_001]), named(&[("500-1000", 1), ("1000-2000", 1)]));
        assert_eq!(of(&[u64::MAX]).len(), 1);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn notes_read_back() {
        for rule in
            [SizeBins::Equal(7), SizeBins::Edges(vec![5]), SizeBins::Edges(vec![1, 1 << 40])]
        {
            assert_eq!(SizeBins::of_note(&rule.note()), Some(rule));
        }
        assert_eq!([SizeBins::of_note("x"), SizeBins::of_note("1,x,")], [None, None]);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 100,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        /// Against the definition, and whatever the order of the flows.
        #[test]
        fn bins_are_those_of_sorting_everything(
            flows in prop::collection::vec(
                (1u64..60, prop::option::weighted(0.8, 1.0f64..50.0)),
                1..300,
            ),
            count in 1u32..30,
        ) {
            let bins = by_size(&flows, &SizeBins::Equal(count));
            let mut above = 0;
            for (name, bin) in &bins {
                let own = |flow: &&(u64, Option<f64>)| flow.0 > above && flow.0 <= bin.to_bytes;
                let mut values: Vec<f64> =
                    flows.iter().filter(own).filter_map(|flow| flow.1).collect();
                prop_assert_eq!((bin.above_bytes, bin.completed), (above, values.len() as u64));
                prop_assert_eq!(
                    bin.unfinished,
                    flows.iter().filter(own).filter(|flow| flow.1.is_none()).count() as u64
                );
                // No smaller edge holds the bin's share of all flows.
                let share: f64 =
                    name.trim_end_matches('%').split('-').next_back().unwrap().parse().unwrap();
                let up_to = |size: u64| {
                    flows.iter().filter(|flow| flow.0 <= size).count() as f64 * 100.0
                        / flows.len() as f64
                };
                prop_assert!(
                    up_to(bin.to_bytes) >= share - 0.006,
                    "{} {} {}",
                    name,
                    up_to(bin.to_bytes),
                    share
                );
                values.sort_by(f64::total_cmp);
                if let Some(last) = values.len().checked_sub(1) {
                    let (rank, part) = place(9_500, last as u64);
                    let next = values[(rank as usize + 1).min(last)];
                    let expected = values[rank as usize]
                        + (next - values[rank as usize]) * (part as f64 / WHOLE as f64);
                    prop_assert_eq!(bin.p95, Some(expected));
                }
                above = bin.to_bytes;
            }
            prop_assert_eq!(above, flows.iter().map(|flow| flow.0).max().unwrap());
            let mut turned = flows.clone();
            turned.reverse();
            let without_mean = |bins: Vec<(String, SizeBin)>| -> Vec<_> {
                bins.into_iter().map(|(name, bin)| (name, SizeBin { mean: None, ..bin })).collect()
            };
            prop_assert_eq!(
                without_mean(by_size(&turned, &SizeBins::Equal(count))),
                without_mean(bins)
            );
        }
    }

    /// More flows than memory holds are those that were spilled and those that were not.
    #[test]
    fn what_is_spilled_counts() {
        let count = IN_MEMORY as u64 * 2 + 5;
        let flows: Vec<(u64, Option<f64>)> =
            (0..count).map(|n| (1 + n % 1_000, Some(1.0 + (n % 10) as f64))).collect();
        let bins = by_size(&flows, &SizeBins::Equal(10));
        assert_eq!(bins.iter().map(|(_, bin)| bin.completed).sum::<u64>(), count);
        assert!(
            bins.iter().all(|(_, bin)| bin.p50 == Some(5.5)
                || bin.p50 == Some(6.0)
                || bin.p50 == Some(5.0))
        );
    }
}
