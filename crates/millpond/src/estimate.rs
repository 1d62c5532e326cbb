//! How long runs may take, before they are made: by finished runs of the same point, else by a
//! short trial of the point itself on this machine, as many at a time as will run.
//!
//! A trial is timed by the processor's time that it takes: what else the machine does is not taken
//! for the simulation's work, and the estimate is of free cores. It gives the packet-hops a second
//! and the virtual time a second. Where the traffic reports how many packet-hops a run makes, the
//! first is used, since a run's beginning is quieter than the rest; where it does not (closed
//! loops) or gives an upper bound only (more than the links can carry), the second.

use crate::control::share_out;
use crate::threads::all_cores;
use crate::{Control, Error, Options, Runs};
use millpond_claims::{Design, Hops};
use millpond_results::{FlowRecord, QueryRecord};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_sim::{Observer, Standing};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// All trials of a design together take about so long on one core; the others stand for points
/// beyond the most.
const ALL_TRIALS: Duration = Duration::from_secs(12);
const TRIAL: [Duration; 2] = [Duration::from_millis(150), Duration::from_millis(500)];
const MOST_TRIALS: usize = 64;
/// A trial makes no fewer packet-hops, so that one on a slow machine yields as much, unless it
/// takes many times its budget by the wall clock.
const LEAST_HOPS: f64 = 1e6;
const LONGEST: u32 = 10;

/// Runs that are left, and how long it may take.
///
/// ```
/// fn print(estimate: &millpond::Estimate) {
///     println!("{} runs, {:?} s ({})", estimate.left.len(), estimate.seconds, estimate.basis);
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Numbers of the runs that are not finished.
    pub left: Vec<u32>,
    /// Runs at a time.
    pub cores: usize,
    /// On free cores, as far as anything is left that can be estimated.
    pub seconds: Option<f64>,
    /// The basis of the estimate.
    pub basis: String,
}

/// Estimates the time that the runs of a design take, except those that are finished in `out`. The
/// design's points must have their packet-hops.
///
/// # Errors
/// [`Error::Stopped`] if [`Control::is_stopped`] ends it, and the first error of a trial.
pub fn estimate(
    scenario: &Scenario,
    design: &Design,
    out: Option<&Path>,
    options: &Options<'_>,
) -> Result<Estimate, Error> {
    let (cores, control) = (options.threads.unwrap_or_else(all_cores), options.control);
    let (mut left, mut walls, mut to_do) =
        (Vec::new(), BTreeMap::<u32, Vec<f64>>::new(), BTreeMap::new());
    for (point, run) in design.sweep.runs() {
        match out.and_then(|out| run.finished(out)) {
            Some(summary) => walls.entry(point.point).or_default().push(summary.run.wall_s),
            None => {
                left.push(run.run);
                to_do.entry(point.point).or_insert((run.seed, 0)).1 += 1;
            }
        }
    }
    let mut of_point: BTreeMap<u32, f64> = walls
        .iter()
        .map(|(point, walls)| (*point, walls.iter().sum::<f64>() / walls.len() as f64))
        .collect();
    let unknown: Vec<(u32, u64)> = to_do.iter().map(|(point, (seed, _))| (*point, *seed)).collect();
    let unknown: Vec<(u32, u64)> =
        unknown.into_iter().filter(|(point, _)| !of_point.contains_key(point)).collect();
    let tried = tried(scenario, design, &unknown, cores, control)?;
    if control.is_stopped() {
        return Err(Error::Stopped("nothing was run".to_string()));
    }
    let by_runs = to_do.keys().any(|point| of_point.contains_key(point));
    let basis = match (by_runs, tried.is_empty()) {
        (true, true) => "by finished runs",
        (true, false) => "by finished runs and trials",
        _ => "by trials",
    };
    of_point.extend(tried);
    let cores = cores.min(left.len()).max(1);
    let seconds = total(design, &to_do, &of_point, cores);
    Ok(Estimate { left, cores, seconds, basis: basis.to_string() })
}

/// The runs shared out among the cores, and no less than the longest takes alone. Points that were
/// not tried cost what the others do, by packet-hops where these are known.
fn total(
    design: &Design,
    to_do: &BTreeMap<u32, (u64, usize)>,
    of_point: &BTreeMap<u32, f64>,
    cores: usize,
) -> Option<f64> {
    if to_do.is_empty() {
        return Some(0.0);
    }
    let hops = |point: u32| design.hops[point as usize - 1].map(|hops| hops.count);
    let known: Vec<(f64, Option<f64>)> =
        of_point.iter().map(|(point, seconds)| (*seconds, hops(*point))).collect();
    let mean = (!known.is_empty())
        .then(|| known.iter().map(|(s, _)| s).sum::<f64>() / known.len() as f64)?;
    let with_hops = known.iter().filter_map(|(seconds, hops)| Some((*seconds, (*hops)?)));
    let (seconds, all_hops) =
        with_hops.fold((0.0, 0.0), |(a, b), (seconds, hops)| (a + seconds, b + hops));
    let of = |point: u32| match (of_point.get(&point), hops(point)) {
        (Some(seconds), _) => *seconds,
        (None, Some(hops)) if all_hops > 0.0 => hops * seconds / all_hops,
        (None, _) => mean,
    };
    let sum: f64 = to_do.iter().map(|(point, (_, runs))| of(*point) * *runs as f64).sum();
    let longest = to_do.keys().map(|point| of(*point)).fold(0.0, f64::max);
    Some((sum / cores as f64).max(longest))
}

/// Seconds that a run of each of these points (each with a seed) may take, by a trial of it; of
/// many points, of some.
fn tried(
    scenario: &Scenario,
    design: &Design,
    points: &[(u32, u64)],
    cores: usize,
    control: &dyn Control,
) -> Result<Vec<(u32, f64)>, Error> {
    let step = points.len().div_ceil(MOST_TRIALS).max(1);
    let points: Vec<(u32, u64)> = points.iter().copied().step_by(step).collect();
    let budget = (ALL_TRIALS / points.len().max(1) as u32).clamp(TRIAL[0], TRIAL[1]);
    let state = Runs { label: "trials", all: points.len(), ..Runs::default() };
    if points.is_empty() {
        return Ok(Vec::new());
    }
    control.runs(&state);
    let found = Mutex::new(Vec::new());
    share_out(&points, cores.min(points.len()), control, |&(point, seed)| {
        let recipe = &design.recipes[point as usize - 1];
        let plan = scenario.plan(recipe.variant.as_deref(), &recipe.overrides, Some(seed));
        let hops = design.hops[point as usize - 1];
        let seconds =
            plan.map(|plan| (point, Trial::of(&plan, budget, control).seconds(&plan, hops)));
        let mut found = found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        found.push(seconds);
        control.runs(&Runs { ended: found.len(), ..state });
        true
    });
    let found = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    control.runs(&Runs { ended: found.len(), is_over: true, ..state });
    Ok(found.into_iter().collect::<Result<Vec<_>, _>>()?)
}

/// How far a run was at some time.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    busy_s: f64,
    simulated_s: f64,
    hops: f64,
}

/// Processor time of this thread so far.
#[cfg(unix)]
fn busy() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// By the wall clock, where there is nothing better.
#[cfg(not(unix))]
fn busy() -> Duration {
    static FIRST: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

/// The beginning of a run.
struct Trial<'a> {
    control: &'a dyn Control,
    began: Instant,
    /// The thread's processor time when it began.
    before: Duration,
    budget: Duration,
    /// The first mark in the second half, and the last mark.
    half: Option<Mark>,
    last: Mark,
    /// The run came to its end.
    whole: bool,
}

impl<'a> Trial<'a> {
    fn of(plan: &Plan, budget: Duration, control: &'a dyn Control) -> Trial<'a> {
        let (half, last) = (None, Mark::default());
        let mut trial = Trial {
            control,
            began: Instant::now(),
            before: busy(),
            budget,
            half,
            last,
            whole: false,
        };
        let Ok(outcome) = millpond_sim::run(plan, 1, &mut trial);
        trial.whole = !outcome.interrupted;
        trial.last.busy_s = trial.taken().as_secs_f64();
        trial
    }

    /// Processor time that it took so far.
    fn taken(&self) -> Duration {
        busy().saturating_sub(self.before)
    }

    /// Seconds of the whole run.
    fn seconds(&self, plan: &Plan, hops: Option<Hops>) -> f64 {
        if self.whole {
            return self.last.busy_s;
        }
        // The first half warms up; where looks are rare there is no other.
        let from = self.half.filter(|half| half.hops < self.last.hops).unwrap_or_default();
        let busy = self.last.busy_s - from.busy_s;
        let left = match hops.filter(|hops| !hops.is_bound) {
            Some(hops) => (hops.count - self.last.hops) / (self.last.hops - from.hops).max(1.0),
            None => {
                let simulated = self.last.simulated_s - from.simulated_s;
                (plan.horizon.as_s_f64() - self.last.simulated_s) / simulated.max(1e-12)
            }
        };
        self.last.busy_s + busy * left.max(0.0)
    }
}

impl Observer for Trial<'_> {
    type Error = Infallible;

    fn flow(&mut self, _record: &FlowRecord) -> Result<(), Infallible> {
        Ok(())
    }

    fn query(&mut self, _record: &QueryRecord) -> Result<(), Infallible> {
        Ok(())
    }

    fn edge(&mut self, standing: &Standing) -> Result<bool, Infallible> {
        let taken = self.taken().as_secs_f64();
        let (simulated_s, hops) = (standing.simulated.as_s_f64(), standing.hops as f64);
        self.last = Mark { busy_s: taken, simulated_s, hops };
        let spent = (taken / self.budget.as_secs_f64()).min(hops / LEAST_HOPS);
        if spent >= 0.5 {
            self.half.get_or_insert(self.last);
        }
        Ok(spent < 1.0
            && self.began.elapsed() < self.budget * LONGEST
            && !self.control.is_stopped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_claims::{Request, design};
    use millpond_core::Time;
    use millpond_results::Axis;

    const OPEN: &str = r#"
        name = "trial"
        duration = "100ms"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 2
        hosts-per-leaf = 8
        host-link = { rate = "10Gbps", delay = "1us" }
        fabric-link = { rate = "40Gbps", delay = "5us" }
        [[traffic]]
        name = "background"
        kind = "poisson"
        sizes = "cache-follower"
        load = 0.5
    "#;
    const CALLS: &str = r#"
        [[traffic]]
        name = "calls"
        kind = "rpc"
        clients = 4
        servers = 4
        request = "1KB"
        response = "30KB"
        connections = 2
    "#;

    /// The whole run's time against what a trial says that is a small part of it. Other work on the
    /// machine shows in neither, but for the caches; the five tries are for that.
    #[test]
    fn a_trial_tells_how_long_a_run_takes() {
        let open = Scenario::parse("trial.toml", OPEN).unwrap();
        let closed = Scenario::parse("trial.toml", &[OPEN, CALLS].concat()).unwrap();
        for scenario in [&open, &closed] {
            let request = Request { estimate: true, seeds: Some((1, 1)), ..Request::default() };
            let design = design(scenario, &request).unwrap();
            assert_eq!(
                design.hops[0].is_some(),
                std::ptr::eq(scenario, &open),
                "closed loops do not tell"
            );
            let plan = scenario.plan(None, &[], Some(1)).unwrap();
            let ratio = || {
                let told =
                    Trial::of(&plan, Duration::from_millis(60), &()).seconds(&plan, design.hops[0]);
                told / Trial::of(&plan, Duration::from_secs(3600), &()).last.busy_s
            };
            let mut ratios = Vec::new();
            while !ratios.last().is_some_and(|ratio| (1.0 / 2.0..2.0).contains(ratio)) {
                assert!(ratios.len() < 5, "{ratios:?}");
                ratios.push(ratio());
            }
        }
    }

    #[test]
    fn runs_are_shared_out_among_the_cores_and_points_stand_for_each_other() {
        let axis = Axis {
            key: "host.mtu".into(),
            values: ["1500", "3000", "9000"].map(String::from).to_vec(),
        };
        let scenario = Scenario::parse("trial.toml", OPEN).unwrap();
        let request =
            Request { grid: vec![axis], estimate: true, seeds: Some((1, 4)), ..Request::default() };
        let mut design = design(&scenario, &request).unwrap();
        design.hops = [10.0, 20.0, 30.0]
            .map(|count| Some(Hops { count, is_bound: false, span: Time::ZERO }))
            .to_vec();
        let to_do = BTreeMap::from([(1, (1, 4)), (2, (1, 4)), (3, (1, 1))]);
        // Seconds go by hops where a point was not tried: 5, 10 and 15.
        let told = total(&design, &to_do, &BTreeMap::from([(1, 5.0), (2, 10.0)]), 2);
        assert_eq!(told, Some((4.0 * 5.0 + 4.0 * 10.0 + 15.0) / 2.0));
        assert_eq!(
            total(&design, &BTreeMap::from([(3, (1, 1))]), &BTreeMap::from([(1, 5.0)]), 8),
            Some(15.0)
        );
        assert_eq!(total(&design, &to_do, &BTreeMap::new(), 2), None);
        assert_eq!(total(&design, &BTreeMap::new(), &BTreeMap::new(), 2), Some(0.0));
    }
}
