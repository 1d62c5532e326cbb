//! Medians of a demo's runs for people, and what was expected before the first run.
//!
//! Invariant: a ratio is of medians over repetitions of the same load and timeout.

use super::super::place::median;
use super::{Arm, Report, Run};
use std::fmt::Write;

/// The victim's p99 may be so much longer than without the neighbour.
const VICTIM_MOST: f64 = 2.0;
/// Losses cost the slow application's clients at least so much, at the longest timeout and the
/// worst load.
const LOSSY_LEAST: f64 = 10.0;
/// Below this ratio of p99 a lossless switch does not pay.
const PAYS: f64 = 1.1;

/// A value among those of all runs.
fn values(runs: &[Run], of: impl Fn(&Run) -> f64) -> Vec<f64> {
    let of_arms = runs.iter().filter(|run| run.arm != Arm::Alone);
    let mut values: Vec<f64> = of_arms.map(of).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// The heads of the columns and their widths.
const COLUMNS: [(&str, usize); 11] = [
    ("drops", 6),
    ("victim50", 8),
    ("99", 8),
    ("slow50", 8),
    ("99", 8),
    ("99.9", 8),
    ("done %", 6),
    ("open", 5),
    ("sent/", 5),
    ("peak KB", 7),
    ("pauses", 6),
];

impl Report {
    fn loads(&self) -> Vec<f64> {
        values(&self.runs, |run| run.load)
    }
    fn rtos(&self) -> Vec<f64> {
        values(&self.runs, |run| run.rto_ms)
    }
    /// A median over the repetitions of an arm at a load and a timeout.
    fn of(&self, arm: Arm, (load, rto): (f64, f64), f: impl Fn(&Run) -> f64) -> f64 {
        let is_it = |run: &&Run| {
            run.arm == arm && (arm == Arm::Alone || run.load == load && run.rto_ms == rto)
        };
        median(self.runs.iter().filter(is_it).map(f))
    }

    fn row(&self, arm: Arm, at: (f64, f64)) -> String {
        // Of nobody there is nothing to tell.
        let of = |decimals: usize, f: &dyn Fn(&Run) -> f64| match self.of(arm, at, f) {
            value if value.is_finite() => format!("{value:.decimals$}"),
            _ => "–".to_string(),
        };
        let cells = [
            of(0, &|r| r.drops as f64),
            of(0, &|r| r.victim.p50),
            of(0, &|r| r.victim.p99),
            of(0, &|r| r.slow.p50),
            of(0, &|r| r.slow.p99),
            of(0, &|r| r.slow.p999),
            of(1, &|r| 100.0 * (1.0 - r.slow.open as f64 / r.slow.count as f64)),
            of(0, &|r| r.slow.open as f64),
            of(2, &|r| r.sent_over_delivered),
            of(0, &|r| r.peak_bytes as f64 / 1e3),
            of(0, &|r| r.pauses as f64),
        ];
        let cells = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!(" {cell:>width$}"));
        format!("{:<12}{}", arm.name(), cells.collect::<String>())
    }

    /// Medians for people, and what is expected.
    pub fn table(&self) -> String {
        let heads: String =
            COLUMNS.iter().map(|(head, width)| format!(" {head:>width$}")).collect();
        let mut out = format!("times in us\n{:<12}{heads}\n", "");
        let _ = writeln!(out, "{}", self.row(Arm::Alone, (0.0, 0.0)));
        for load in self.loads() {
            for rto in self.rtos() {
                let _ = writeln!(out, "load {load}, timeouts of {rto} ms and more");
                for arm in Arm::ALL.into_iter().filter(|arm| *arm != Arm::Alone) {
                    let _ = writeln!(out, "{}", self.row(arm, (load, rto)));
                }
            }
        }
        for rto in self.rtos() {
            let ratios: Vec<f64> =
                self.loads().into_iter().map(|load| self.lossy(load, rto)).collect();
            let cells: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
            let all = ratios.iter().filter(|ratio| **ratio >= PAYS).count();
            let verdict = match all {
                0 => "does not pay",
                n if n == ratios.len() => "pays",
                _ => "pays at some loads",
            };
            let _ = writeln!(
                out,
                "timeout {rto} ms: slow's p99, lossy over full, by load: {}: lossless {verdict}",
                cells.join(", ")
            );
        }
        for (what, value, holds) in self.expected() {
            let _ = writeln!(out, "{}: {what}: {value:.2}", if holds { "holds" } else { "FAILS" });
        }
        out
    }

    fn lossy(&self, load: f64, rto: f64) -> f64 {
        let p99 = |r: &Run| r.slow.p99;
        self.of(Arm::Lossy, (load, rto), p99) / self.of(Arm::Full, (load, rto), p99)
    }

    /// The expectations, what was found, and whether they hold.
    fn expected(&self) -> Vec<(String, f64, bool)> {
        let full = self.runs.iter().filter(|run| run.arm == Arm::Full);
        let drops = full.map(|run| run.drops as f64).fold(f64::NAN, f64::max);
        let what = "frames dropped with flow queues and overlay, at most 0".to_string();
        let mut all = vec![(what, drops, drops == 0.0)];
        let p99 = |r: &Run| r.victim.p99;
        let points: Vec<(f64, f64)> = self
            .loads()
            .into_iter()
            .flat_map(|load| self.rtos().into_iter().map(move |rto| (load, rto)))
            .collect();
        let victims = points.iter().map(|at| self.of(Arm::Full, *at, p99));
        let victim = victims.fold(f64::NAN, f64::max) / self.of(Arm::Alone, (0.0, 0.0), p99);
        let what =
            format!("victim's p99, full over alone, at the worst point at most {VICTIM_MOST}");
        all.push((what, victim, victim <= VICTIM_MOST));
        let Some(longest) = self.rtos().last().copied() else { return all };
        let ratios = self.loads().into_iter().map(|load| self.lossy(load, longest));
        let lossy = ratios.fold(f64::NAN, f64::max);
        let what = format!(
            "slow's p99, lossy over full, timeout {longest} ms, worst load, at least {LOSSY_LEAST}"
        );
        all.push((what, lossy, lossy >= LOSSY_LEAST));
        all
    }

    /// How much of what is expected does not hold.
    pub fn failures(&self) -> usize {
        self.expected().iter().filter(|(_, _, holds)| !holds).count()
    }
}
