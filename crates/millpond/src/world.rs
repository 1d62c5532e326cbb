//! A world runs a plan and feeds an observer.

use crate::{
    ConnectionRecord, Error, FlowRecord, PacketRecord, PauseRecord, Plan, QueryRecord, QueueRecord,
    Standing, Time, Totals, WorldKind,
};
use millpond_results::{CollectiveRecord, RankRecord};

/// Runs plans. Worlds differ in who owns time and who moves bytes; scenario, records, summary and
/// comparison are the same for all.
///
/// ```
/// use millpond::{Error, Observer, Options, Plan, Scenario, Sim, Totals, World, WorldKind, run};
///
/// /// The simulator, for plans of few hosts.
/// struct Small;
///
/// impl World for Small {
///     fn kind(&self) -> WorldKind {
///         WorldKind::Sim
///     }
///     fn run(&self, plan: &Plan, observer: &mut dyn Observer) -> Result<Totals, Error> {
///         if plan.hosts() > 16 {
///             let problem = "`topology.hosts`: this world has 16 hosts at most";
///             return Err(Error::Usage(problem.into()));
///         }
///         Sim.run(plan, observer)
///     }
/// }
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 17\n\
///             [[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"";
/// let plan = Scenario::parse("a.toml", text)?.plan(None)?;
/// assert!(run(&plan, &Options { world: &Small, ..Options::default() }).is_err());
/// # Ok::<(), Error>(())
/// ```
pub trait World: Sync {
    /// The kind of world that results record.
    fn kind(&self) -> WorldKind;

    /// Runs a plan to its end, or until [`Observer::edge`] ends it. Records go to `observer`, in an
    /// order that depends on the plan alone.
    ///
    /// # Errors
    /// The first error of `observer`; or the key of the plan that this world does not support.
    fn run(&self, plan: &Plan, observer: &mut dyn Observer) -> Result<Totals, Error>;

    /// The plan as this world runs it, which results record: the plan itself, or a slower network
    /// of the same ratios. [`run`](crate::run) and its kin ask before anything is written.
    ///
    /// # Errors
    /// As [`World::run`], if the plan needs what this world lacks.
    fn prepare(&self, plan: &Plan) -> Result<Plan, Error> {
        Ok(plan.clone())
    }

    /// Whether a run needs the machine for itself, so that two at a time would change results.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// How this world will run a plan, for the user; `None` if there is nothing to report.
    fn note(&self, _plan: &Plan) -> Option<String> {
        None
    }
}

/// Watches a run and receives its records. Each method has a default that ignores its record.
///
/// ```
/// use millpond::{Error, FlowRecord, Observer, Scenario, Sim, World};
///
/// /// The largest flow.
/// #[derive(Default)]
/// struct Largest(u64);
///
/// impl Observer for Largest {
///     fn flow(&mut self, flow: &FlowRecord) -> Result<(), Error> {
///         self.0 = self.0.max(flow.bytes);
///         Ok(())
///     }
/// }
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
///             [[traffic]]\nkind = \"permutation\"\nsize = \"5KB\"";
/// let mut largest = Largest::default();
/// let totals = Sim.run(&Scenario::parse("a.toml", text)?.plan(None)?, &mut largest)?;
/// assert_eq!((largest.0, totals.timeouts), (5000, 0));
/// # Ok::<(), Error>(())
/// ```
pub trait Observer: Send {
    /// A flow is over (or, at the end, is not). In the order of (time over, flow).
    ///
    /// # Errors
    /// An error, here and below, ends the run.
    fn flow(&mut self, _record: &FlowRecord) -> Result<(), Error> {
        Ok(())
    }

    /// A query is over (or, at the end, is not).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn query(&mut self, _record: &QueryRecord) -> Result<(), Error> {
        Ok(())
    }

    /// A probe was answered after this time. In the order of (time of the answer, flow).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn rtt(&mut self, _rtt: Time) -> Result<(), Error> {
        Ok(())
    }

    /// A port's queue was sampled. In the order of (time, node, port).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn queue(&mut self, _record: &QueueRecord) -> Result<(), Error> {
        Ok(())
    }

    /// A connection was sampled. In the order of (time, flow).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn connection(&mut self, _record: &ConnectionRecord) -> Result<(), Error> {
        Ok(())
    }

    /// A packet was captured. In the order of (time, capture); of two at once the outgoing one
    /// first.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn packet(&mut self, _record: &PacketRecord) -> Result<(), Error> {
        Ok(())
    }

    /// A PAUSE frame was captured. In the order of packets, and after packets of the same time.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn pause(&mut self, _record: &PauseRecord) -> Result<(), Error> {
        Ok(())
    }

    // Of the records of jobs callers have the summary and the tables; the library's forty names
    // have no room for them.
    /// A rank has ended its part of a round of its job. In the order of (end, class, round, rank).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    #[doc(hidden)]
    fn rank(&mut self, _record: &RankRecord) -> Result<(), Error> {
        Ok(())
    }

    /// All ranks of a job have ended a round (or, at the end, have not).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    #[doc(hidden)]
    fn collective(&mut self, _record: &CollectiveRecord) -> Result<(), Error> {
        Ok(())
    }

    /// A program of a host reported a response time of this class.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn response(&mut self, _class: &str, _time: Time) -> Result<(), Error> {
        Ok(())
    }

    /// A program of a host wrote bytes to `stream` (`stdout` or `stderr`); none when it starts.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn output(&mut self, _program: &str, _stream: &str, _bytes: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    /// Called several times a second. `false` ends the run there.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn edge(&mut self, _standing: &Standing) -> Result<bool, Error> {
        Ok(true)
    }
}
