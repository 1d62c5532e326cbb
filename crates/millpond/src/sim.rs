//! The world of virtual time.

use crate::{ConnectionRecord, FlowRecord, PacketRecord, PauseRecord, QueryRecord, QueueRecord};
use crate::{Error, Observer, Plan, Standing, Time, Totals, World, WorldKind, threads, totals};
use millpond_results::{CollectiveRecord, RankRecord};
use std::time::Instant;

/// The simulator: the world of virtual time. It runs every plan.
///
/// ```
/// use millpond::{Scenario, Sim, World};
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
///             [[traffic]]\nkind = \"permutation\"\nsize = \"5KB\"";
/// let plan = Scenario::parse("a.toml", text)?.plan(None)?;
///
/// /// Needs no records.
/// struct Nothing;
/// impl millpond::Observer for Nothing {}
///
/// let totals = Sim.run(&plan, &mut Nothing)?;
/// assert_eq!(totals.sent, totals.delivered);
/// # Ok::<(), millpond::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sim;

impl World for Sim {
    fn kind(&self) -> WorldKind {
        WorldKind::Sim
    }

    fn prepare(&self, plan: &Plan) -> Result<Plan, Error> {
        without_programs(plan.clone())
    }

    fn run(&self, plan: &Plan, observer: &mut dyn Observer) -> Result<Totals, Error> {
        let detail = plan.detail();
        let threads = plan.threads().unwrap_or_else(|| threads::choose(detail).threads);
        let began = Instant::now();
        let outcome = millpond_sim::run(detail, threads, &mut Feed(observer))?;
        Ok(totals::totals(detail, &outcome, began.elapsed(), threads))
    }

    fn note(&self, plan: &Plan) -> Option<String> {
        plan.threads().is_none().then(|| threads::choose(plan.detail()).reason)
    }
}

/// The plan for the simulator, which runs no programs.
///
/// # Errors
/// If the plan has nothing but programs.
fn without_programs(plan: Plan) -> Result<Plan, Error> {
    let detail = plan.detail();
    if detail.programs.is_empty() {
        return Ok(plan);
    }
    let names: Vec<&str> = detail.programs.iter().map(|program| program.name.as_str()).collect();
    if detail.traffic.sources.is_empty() {
        let names = names.join(", ");
        return Err(Error::Usage(format!(
            "the simulator runs no programs ({names}), and there is no [[traffic]]: use `millpond \
             lab` or --world virtual, or add traffic"
        )));
    }
    let mut detail = detail.clone();
    let warning = format!("the simulator runs no programs: {} did not run", names.join(", "));
    detail.warnings.push(warning);
    Ok(Plan::new(detail, plan.overrides()).on(plan.threads()))
}

/// The simulator beside another world: it runs the plans that the other world prepares.
#[cfg(all(feature = "lab", target_os = "linux"))]
pub(crate) struct Beside<F>(pub F);

#[cfg(all(feature = "lab", target_os = "linux"))]
impl<F: Fn(&Plan) -> Result<Plan, Error> + Sync> World for Beside<F> {
    fn kind(&self) -> WorldKind {
        WorldKind::Sim
    }
    fn prepare(&self, plan: &Plan) -> Result<Plan, Error> {
        without_programs((self.0)(plan)?)
    }
    fn note(&self, plan: &Plan) -> Option<String> {
        Sim.note(plan)
    }
    fn run(&self, plan: &Plan, observer: &mut dyn Observer) -> Result<Totals, Error> {
        Sim.run(plan, observer)
    }
}

/// Passes the simulator's records on.
struct Feed<'a>(&'a mut dyn Observer);

impl millpond_sim::Observer for Feed<'_> {
    type Error = Error;

    fn flow(&mut self, record: &FlowRecord) -> Result<(), Error> {
        self.0.flow(record)
    }

    fn query(&mut self, record: &QueryRecord) -> Result<(), Error> {
        self.0.query(record)
    }

    fn rtt(&mut self, rtt: Time) -> Result<(), Error> {
        self.0.rtt(rtt)
    }

    fn queue(&mut self, record: &QueueRecord) -> Result<(), Error> {
        self.0.queue(record)
    }

    fn connection(&mut self, record: &ConnectionRecord) -> Result<(), Error> {
        self.0.connection(record)
    }

    fn packet(&mut self, record: &PacketRecord) -> Result<(), Error> {
        self.0.packet(record)
    }

    fn pause(&mut self, record: &PauseRecord) -> Result<(), Error> {
        self.0.pause(record)
    }

    fn rank(&mut self, record: &RankRecord) -> Result<(), Error> {
        self.0.rank(record)
    }

    fn collective(&mut self, record: &CollectiveRecord) -> Result<(), Error> {
        self.0.collective(record)
    }

    fn edge(&mut self, standing: &Standing) -> Result<bool, Error> {
        self.0.edge(standing)
    }
}
