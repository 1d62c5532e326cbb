//! The summary of a run, from what was collected of its records.

use super::{BUILT_IN, Group, RunWriter};
use crate::model::error::Result;
use crate::model::summary::{
    Application, Fct, Latency, Packets, Qct, Rtt, Slowdown, Spread, Summary, Timers,
};
use crate::model::{Flows, Ordered, Percentiles, SCHEMA, Status, Totals};
use crate::statistics::by_size::{BySize, SizeBins};
use crate::statistics::censoring;
use crate::statistics::completions::{Completions, PS_PER_US};
use crate::statistics::numbers::statistics;
use crate::statistics::samples::Samples;
use crate::statistics::shows::{Column, columns};
use crate::statistics::survival::percentiles;
use millpond_core::Time;
use std::path::PathBuf;

#[derive(Default)]
struct OfFlows {
    fct_us: Vec<(String, Fct)>,
    slowdown: Vec<(String, Slowdown)>,
    timers: Vec<(String, Timers)>,
}

impl RunWriter {
    /// The statistics of flows, by class; takes the samples.
    fn of_flows(&mut self, horizon: Time) -> Result<OfFlows> {
        let header = &self.header;
        let classes =
            || BUILT_IN.iter().map(|name| name.to_string()).chain(header.classes.iter().cloned());
        let mut flows = OfFlows::default();
        for (name, completions) in classes().zip(self.fct.drain(..)) {
            flows.fct_us.push((name, completions.end(horizon)?));
        }
        for (name, slowdowns) in classes().zip(self.slowdown.drain(..)) {
            flows.slowdown.push((name, slowdowns.end(horizon)?));
        }
        for (name, [mut srtt, mut rto]) in classes().zip(self.timers.take().into_iter().flatten()) {
            let timer =
                Timers { count: srtt.count(), srtt: spread(&mut srtt)?, rto: spread(&mut rto)? };
            flows.timers.push((name, timer));
        }
        Ok(flows)
    }

    /// The statistics of applications, by name; takes the samples.
    fn of_applications(&mut self, horizon: Time) -> Result<Vec<(String, Application)>> {
        let mut applications = Vec::new();
        for Group { name, fct, slowdown, qct, .. } in self.applications.drain(..) {
            let fct_us = fct.end(horizon)?;
            let (slowdown, qct_us) = (slowdown.end(horizon)?, qct.end(horizon)?.into());
            applications.push((name, Application { fct_us, slowdown, qct_us }));
        }
        Ok(applications)
    }

    /// Calls of traffic, and response times of programs; takes the samples.
    fn latency(
        &mut self,
        fct_us: &[(String, Fct)],
        totals: &Totals,
    ) -> Result<Vec<(String, Latency)>> {
        let is_call = |name: &&(String, Fct)| totals.calls.contains(&name.0);
        let calls = fct_us.iter().filter(is_call);
        let mut latency: Vec<(String, Latency)> =
            calls.map(|(name, fct)| (name.clone(), Latency::of(fct))).collect();
        for (class, times) in self.responses.drain(..) {
            latency.push((class, Latency::of(&times.end(totals.horizon)?)));
        }
        Ok(latency)
    }

    pub(super) fn summary(&mut self, totals: Totals) -> Result<Summary> {
        let OfFlows { fct_us, slowdown, timers } = self.of_flows(totals.horizon)?;
        let mut by_size = std::mem::replace(&mut self.by_size, BySize::new(PathBuf::new()));
        let is_cut_by_flows = matches!(self.header.size_bins, SizeBins::Equal(_));
        let by_fixed_size =
            if is_cut_by_flows { by_size.by_fixed_size()? } else { Ordered::default() };
        let qct = std::mem::replace(&mut self.qct, Completions::new(Samples::new(PathBuf::new())));
        let mut qct_by_class = Vec::new();
        for (name, completions) in self.header.classes.iter().zip(self.qct_by_class.drain(..)) {
            qct_by_class.push((name.clone(), Qct::from(completions.end(totals.horizon)?)));
        }
        qct_by_class.retain(|(_, qct)| qct.started > 0);
        let applications = self.of_applications(totals.horizon)?;
        let Percentiles { p50, p90, p95, p99, p999, .. } =
            percentiles(&mut self.rtt, |between| between.interpolate(PS_PER_US))?;
        let (completed, unfinished) =
            fct_us.first().map_or((0, 0), |(_, all)| (all.count, all.unfinished));
        let measured_ps = totals.measured.as_ps() as f64;
        let latency = self.latency(&fct_us, &totals)?;
        let header = &self.header;
        let collectives = self.jobs.summary(&header.jobs, &header.classes)?;
        let mut summary = Summary {
            schema: SCHEMA,
            name: header.name.clone(),
            world: header.world,
            seed: header.seed,
            variant: header.variant.clone(),
            status: if totals.audit.conserved { totals.status } else { Status::Failed },
            until_complete: totals.until_complete,
            flows: Flows {
                started: completed + unfinished,
                completed,
                not_started: totals.not_started,
                bytes_delivered: totals.bytes_delivered,
                // Bits a picosecond are Tb/s.
                goodput_gbps: (measured_ps > 0.0)
                    .then(|| totals.bytes_delivered as f64 * 8e3 / measured_ps),
            },
            latency_us: Ordered::from(latency),
            fct_us: Ordered::from(fct_us),
            slowdown: Ordered::from(slowdown),
            slowdown_by_size: by_size.by(&self.header.size_bins)?,
            slowdown_by_fixed_size: by_fixed_size,
            qct_us: qct.end(totals.horizon)?.into(),
            qct_by_class_us: Ordered::from(qct_by_class),
            applications: Ordered::from(applications),
            shows: Ordered::default(),
            rtt_us: Rtt { count: self.rtt.count(), p50, p90, p95, p99, p999 },
            collectives: Ordered::from(collectives),
            timers_us: Ordered::from(timers),
            goodput_over_time: totals.goodput_over_time.clone(),
            queue_peaks: totals.queue_peaks.clone(),
            packets: Packets::of(&totals),
            warnings: totals.warnings,
            run: totals.run,
            timeouts: totals.timeouts,
            pause_frames: totals.pause_frames,
            overlay_pauses: totals.overlay_pauses,
            fairness_jain: totals.fairness_jain.filter(|index| index.is_finite()),
            mechanisms: totals.mechanisms,
            limits: totals.limits,
            programs: totals.programs,
            audit: totals.audit,
        };
        let warnings = censoring::warnings(std::slice::from_ref(&summary));
        summary.warnings.extend(warnings);
        Ok(summary)
    }
}

/// The summary with the numbers of these names.
pub(super) fn show(summary: Summary, names: &[String]) -> Summary {
    if names.is_empty() {
        return summary;
    }
    let tree = statistics(&summary);
    let columns = columns(names, &[&tree]);
    let number = |column: Column| {
        (column.name.clone(), tree.leaf(&column.path).and_then(|estimate| estimate.mean))
    };
    Summary { shows: columns.into_iter().map(number).collect(), ..summary }
}

fn spread(samples: &mut Samples) -> Result<Spread> {
    let Percentiles { p50, p95, p99, .. } =
        percentiles(samples, |between| between.interpolate(PS_PER_US))?;
    Ok(Spread { p50, p95, p99 })
}
