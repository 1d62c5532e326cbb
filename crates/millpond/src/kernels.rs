//! The world of Linux kernels in virtual time.

use crate::lab::watched::Watched;
use crate::lab::{self, Lab};
use crate::sim::Beside;
use crate::{Error, Observer, Plan, Standing, Time, Totals, World, WorldKind};
use millpond_lab::kernel::{self, Kernel};
use millpond_lab::{LimitReading, QueueReading, Record, support};
use millpond_results::{CollectiveRecord, RankRecord};
use millpond_virtual::{Class, Outcome, Settings, Watch};
use std::time::Instant;

/// Linux kernels in virtual time: a host is a real kernel (User Mode Linux), and the network is the
/// simulator's switches, with the scenario's rates and delays. Needs Linux on x86_64 and a kernel,
/// which `make setup-virtual` builds.
///
/// ```no_run
/// use millpond::{Options, Scenario, Virtual, run};
///
/// let scenario = Scenario::open("incast.toml")?;
/// let options = Options { world: &Virtual::default(), ..Options::default() };
/// let summary = run(&scenario.plan(None)?, &options)?;
/// println!("p99 {:?} us", summary.fct_us.get("all").and_then(|fct| fct.p99));
/// # Ok::<(), millpond::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Virtual {
    /// Run the slower network that this lab runs, to compare the two.
    pub slowed: Option<Lab>,
    /// Stop the world first at this time, and read lines from standard input: commands for hosts,
    /// and how to go on. They are answered on standard error.
    pub console: Option<Time>,
}

fn failed(error: millpond_virtual::Error) -> Error {
    match error {
        millpond_virtual::Error::Unsupported { .. } => Error::Usage(format!("virtual: {error}")),
        _ => Error::Runs(format!("virtual: {error}")),
    }
}

impl Virtual {
    /// The simulator of what this world runs: the plan has the kernels' timers. So a result of each
    /// differ by their worlds alone.
    ///
    /// ```no_run
    /// use millpond::{Comparison, Options, Scenario, Virtual, compare};
    ///
    /// let (scenario, kernels) = (Scenario::open("incast.toml")?, Virtual::default());
    /// let both = Comparison::across(&scenario, &[], Some(1..=5), &["sim", "virtual"])?;
    /// let options =
    ///     Options { world: &kernels.simulator(), beside: &[&kernels], ..Options::default() };
    /// compare(&both, "out/incast-worlds", &options)?;
    /// # Ok::<(), millpond::Error>(())
    /// ```
    pub fn simulator(self) -> impl World {
        Beside(move |plan: &Plan| self.prepared(plan))
    }

    /// The plan as this world runs it, whoever runs it.
    fn prepared(&self, plan: &Plan) -> Result<Plan, Error> {
        let plan = match &self.slowed {
            Some(lab) => lab.slow(plan)?,
            None => plan.clone(),
        };
        let detail = plan.detail();
        support::check_virtual(detail).map_err(|error| lab::failed_in("virtual", error))?;
        let (mut own, note) = lab::of_kernel(detail, &detail.resolved, &Kernel::VIRTUAL)?;
        own.warnings.clone_from(&detail.warnings);
        own.warnings.extend(note);
        Ok(Plan::new(own, plan.overrides()).on(plan.threads()))
    }
}

impl World for Virtual {
    fn kind(&self) -> WorldKind {
        WorldKind::Virtual
    }

    fn prepare(&self, plan: &Plan) -> Result<Plan, Error> {
        let mut detail = self.prepared(plan)?.detail().clone();
        detail.warnings.extend(kernel::ignored(plan.detail(), &Kernel::VIRTUAL));
        millpond_virtual::check(&detail).map_err(failed)?;
        Ok(Plan::new(detail, plan.overrides()).on(plan.threads()))
    }

    fn note(&self, plan: &Plan) -> Option<String> {
        millpond_virtual::note(plan.detail()).ok()
    }

    fn run(&self, plan: &Plan, observer: &mut dyn Observer) -> Result<Totals, Error> {
        let detail = plan.detail();
        let settings = Settings { parallel: plan.threads().unwrap_or(1), console: self.console };
        let watched = Watched::new(observer);
        let began = Instant::now();
        let outcome = millpond_virtual::run(detail, &settings, &mut &watched);
        watched.end()?;
        let outcome = outcome.map_err(failed)?;
        let invalid = invalid(&outcome);
        let wall = began.elapsed();
        let mut totals = lab::totals(plan, &outcome.counts, &outcome.counted, wall, invalid);
        totals.run.threads = settings.parallel as u32;
        totals.mechanisms = lab::with_own(&outcome.counted, "virtual", &outcome.numbers);
        if let [Some(warm), Some(end)] = &outcome.limits {
            let began = Instant::now();
            let end = (began + end.at.saturating_sub(warm.at).to_duration(), counters(end)?);
            totals.limits = lab::limits::limits(detail, &(began, counters(warm)?), &end);
        }
        totals.inputs = outcome.inputs;
        totals.programs = outcome.programs;
        totals.warnings.extend(outcome.warnings);
        Ok(totals)
    }
}

impl Watch for &Watched<'_> {
    fn recorded(&mut self, batch: &[Record]) -> bool {
        Watched::recorded(self, batch)
    }
    fn rank(&mut self, record: &RankRecord) -> bool {
        self.pass(|observer| observer.rank(record).map(|()| true))
    }
    fn collective(&mut self, record: &CollectiveRecord) -> bool {
        self.pass(|observer| observer.collective(record).map(|()| true))
    }
    fn edge(&mut self, now: Time, hops: u64, started: u64, completed: u64) -> bool {
        let standing = Standing { simulated: now, hops, started, completed };
        self.pass(|observer| observer.edge(&standing))
    }
}

/// Counts of the limits, with the number of each in the plan.
fn counters(reading: &millpond_virtual::Reading) -> Result<Vec<(u16, QueueReading)>, Error> {
    let class = |it: &Class| {
        let mut queue = QueueReading::default();
        queue.direction = "egress".into();
        (queue.packets, queue.bytes, queue.dropped) =
            (it.packets + it.dropped, it.bytes, it.dropped);
        (it.limit, queue)
    };
    let mut all: Vec<_> = reading.classes.iter().map(class).collect();
    for text in &reading.texts {
        let failed = |e| Error::Runs(format!("virtual: what a guest's limits print: {e}: {text}"));
        all.extend(serde_json::from_str::<LimitReading>(text).map_err(failed)?.numbered());
    }
    Ok(all)
}

/// Reasons why the run is invalid, a sentence each.
fn invalid(outcome: &Outcome) -> Vec<String> {
    let (mut found, pressed, count) = (Vec::new(), outcome.pressed, outcome.counted.refused);
    if pressed > 0 {
        found.push(format!(
            "invalid: hosts' kernels were short of memory for TCP {pressed} times, which stalls \
             flows: use a larger host.memory"
        ));
    }
    if count > 0 {
        found.push(format!("invalid: hosts' kernels had no buffer for {count} frames"));
    }
    found
}
