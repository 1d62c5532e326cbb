//! Files that a run writes of its jobs: `collectives.parquet`, `ranks.parquet`,
//! `computations.parquet`, and their statistics.
//!
//! Invariant: the files are made with the first record, so a run without jobs has none of them.

use crate::model::columns::Layout;
use crate::model::summary::{Collectives, Times};
use crate::model::tables::Computation;
use crate::model::{
    COLLECTIVE_COLUMNS, COLLECTIVES, COMPUTATION_COLUMNS, COMPUTATIONS, CollectiveRecord,
    Percentiles, RANK_COLUMNS, RANKS, RankRecord, Result, SCHEMA, Table,
};
use crate::statistics::completions::PS_PER_US;
use crate::statistics::samples::Samples;
use crate::statistics::survival::percentiles;
use parquet::data_type::ByteArray;
use std::path::Path;
use std::slice;

/// The facts about a job that are known before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobHeader {
    /// Index into [`Header::classes`](crate::Header::classes).
    pub class: u16,
    pub operation: String,
    pub algorithm: String,
    pub ranks: u32,
    pub bytes: u64,
    /// From algorithm bandwidth to bus bandwidth; zero where there is no buffer.
    pub bus_factor: f64,
}

/// The files and statistics under way.
#[derive(Default)]
pub(super) struct Jobs {
    ranks: Option<Table>,
    computations: Option<Table>,
    collectives: Option<Table>,
    statistics: Vec<Statistics>,
}

/// The statistics that are kept of a job's rounds.
struct Statistics {
    times: Samples,
    iterations: Samples,
    exposed: Samples,
    skews: Samples,
    unfinished: u64,
    ratios: f64,
}

impl Jobs {
    /// Of a header's jobs; names of temporary files begin with what `samples` makes of a word.
    pub fn new(jobs: &[JobHeader], samples: impl Fn(&str, usize) -> Samples) -> Jobs {
        let of_job = |n: usize| Statistics {
            times: samples("collective", n),
            iterations: samples("iteration", n),
            exposed: samples("exposed", n),
            skews: samples("skew", n),
            unfinished: 0,
            ratios: 0.0,
        };
        let statistics = (0..jobs.len()).map(of_job).collect();
        Jobs { statistics, ..Jobs::default() }
    }

    /// A rank's part of a round; `dir`: where the table is, if there is one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be created or written.
    pub fn rank(
        &mut self,
        record: &RankRecord,
        name: &ByteArray,
        dir: Option<&Path>,
    ) -> Result<()> {
        let Some(table) = opened(&mut self.ranks, dir, RANKS, &RANK_COLUMNS)? else {
            return Ok(());
        };
        let names = slice::from_ref(name);
        table.row(&RANK_COLUMNS, record, names)?;
        for &(begin, end) in &record.computations {
            let (kept, columns) = (&mut self.computations, &COMPUTATION_COLUMNS);
            let Some(table) = opened(kept, dir, COMPUTATIONS, columns)? else { return Ok(()) };
            let of = Computation { round: record.round, rank: record.rank, begin, end };
            table.row(columns, &of, names)?;
        }
        Ok(())
    }

    /// A round.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be created or written.
    pub fn collective(
        &mut self,
        record: &CollectiveRecord,
        job: usize,
        name: &ByteArray,
        dir: Option<&Path>,
    ) -> Result<()> {
        if let Some(statistics) = self.statistics.get_mut(job) {
            statistics.add(record)?;
        }
        let columns = &COLLECTIVE_COLUMNS;
        match opened(&mut self.collectives, dir, COLLECTIVES, columns)? {
            Some(table) => table.row(columns, record, slice::from_ref(name)),
            None => Ok(()),
        }
    }

    /// Writes the rest of the files.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be written.
    pub fn close(&mut self) -> Result<()> {
        let tables = [self.ranks.take(), self.computations.take(), self.collectives.take()];
        for table in tables.into_iter().flatten() {
            table.close()?;
        }
        Ok(())
    }

    /// The statistics, by the name of each job's class.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a spill file cannot be read.
    pub fn summary(
        &mut self,
        jobs: &[JobHeader],
        classes: &[String],
    ) -> Result<Vec<(String, Collectives)>> {
        let of = jobs.iter().zip(self.statistics.drain(..));
        of.map(|(job, statistics)| {
            Ok((classes[usize::from(job.class)].clone(), statistics.summary(job)?))
        })
        .collect()
    }
}

/// The table, made if need be.
fn opened<'a, R>(
    table: &'a mut Option<Table>,
    dir: Option<&Path>,
    file: &str,
    columns: &Layout<R>,
) -> Result<Option<&'a mut Table>> {
    if let (None, Some(dir)) = (&table, dir) {
        *table = Some(Table::of(&dir.join(file), columns, &[("schema", SCHEMA.to_string())])?);
    }
    Ok(table.as_mut())
}

impl Statistics {
    fn add(&mut self, record: &CollectiveRecord) -> Result<()> {
        if !record.counted {
            return Ok(());
        }
        let (Some(time), Some(end)) = (record.time(), record.end) else {
            self.unfinished += 1;
            return Ok(());
        };
        let iteration = end.saturating_sub(record.began);
        self.times.push(time.as_ps())?;
        self.iterations.push(iteration.as_ps())?;
        self.exposed.push(iteration.saturating_sub(record.computed).as_ps())?;
        self.skews.push(end.saturating_sub(record.first_end).as_ps())?;
        self.ratios += record.ratio().unwrap_or(0.0);
        Ok(())
    }

    fn summary(mut self, job: &JobHeader) -> Result<Collectives> {
        let rounds = self.times.count();
        let over = |sum: f64| (rounds > 0).then(|| sum / rounds as f64);
        let seconds = self.times.sum() as f64 / 1e12;
        // Of the mean time, as nccl-tests has it.
        let algbw = over(seconds).filter(|mean| *mean > 0.0 && job.bus_factor > 0.0);
        let algbw = algbw.map(|mean| job.bytes as f64 / mean / 1e9);
        Ok(Collectives {
            operation: job.operation.clone(),
            algorithm: job.algorithm.clone(),
            ranks: job.ranks,
            bytes: job.bytes,
            rounds,
            unfinished: self.unfinished,
            time_us: times(&mut self.times)?,
            iteration_us: times(&mut self.iterations)?,
            exposed_us: times(&mut self.exposed)?,
            skew_us: times(&mut self.skews)?,
            algbw_gbytes: algbw,
            busbw_gbytes: algbw.map(|rate| rate * job.bus_factor),
            ratio: over(self.ratios).filter(|ratio| *ratio > 0.0),
        })
    }
}

fn times(samples: &mut Samples) -> Result<Times> {
    let (sum, count) = (samples.sum() as f64 / PS_PER_US, samples.count());
    let Percentiles { p50, p90, p99, max, .. } =
        percentiles(samples, |between| between.interpolate(PS_PER_US))?;
    Ok(Times { mean: (count > 0).then(|| sum / count as f64), p50, p90, p99, max })
}
