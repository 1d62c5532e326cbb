//! millpond as a library: read a scenario, run it, get its statistics.
//!
//! ```
//! use millpond::{Options, Scenario, run};
//!
//! let text = r#"
//!     duration = "1ms"
//!     topology = { kind = "single-switch", hosts = 4 }
//!     traffic = [{ kind = "poisson", sizes = "10KB", load = 0.4 }]
//! "#;
//! let plan = Scenario::parse("small.toml", text)?.plan(None)?;
//! let summary = run(&plan, &Options::default())?;
//! assert!(summary.audit.conserved && summary.flows.completed > 0);
//! # Ok::<(), millpond::Error>(())
//! ```
//!
//! A [`Scenario`] is a text with variants; a [`Plan`] is one variant with a seed, checked. A
//! [`World`] runs a plan and feeds an [`Observer`]; [`Sim`] is the world of virtual time. [`run`]
//! returns a [`Summary`]; [`run_into`] writes a results folder. [`compare`], [`sweep`] and
//! [`reproduce`] make many runs into one folder, and go on where an earlier call was stopped.
//!
//! A caller brings traffic (flows from a file, any distribution of sizes), observers and worlds.
//! Mechanisms (path choices, queues, control laws) cannot come from outside: they are compiled into
//! `millpond-core`, so that a packet costs no dynamic call and a result depends on nothing but its
//! plan. Add one in the tree; `CONTRIBUTING.md` describes how.
//!
//! Invariant: a plan has one result, in any number of threads and on any machine, but for the
//! members `run` of summaries and for manifests.

#![deny(missing_docs, clippy::missing_errors_doc)]

mod compare;
mod control;
mod error;
mod estimate;
#[cfg(all(feature = "virtual", target_os = "linux"))]
mod kernels;
#[cfg(all(feature = "lab", target_os = "linux"))]
mod lab;
mod plan;
mod reproduce;
mod revision;
mod run;
mod runs;
mod scenario;
mod sim;
mod standstill;
mod sweep;
mod threads;
mod totals;
mod value;
mod values;
mod world;

pub use compare::{Compared, Comparison, compare};
pub use control::{Control, Options, Runs};
pub use error::Error;
pub use estimate::Estimate;
#[cfg(all(feature = "virtual", target_os = "linux"))]
pub use kernels::Virtual;
#[cfg(all(feature = "lab", target_os = "linux"))]
pub use lab::Lab;
pub use plan::Plan;
pub use reproduce::{Reproduced, Reproduction, reproduce};
pub use run::{Written, run, run_into};
pub use scenario::Scenario;
pub use sim::Sim;
pub use sweep::{Grid, Sweep, sweep};
pub use world::{Observer, World};

/// How far a run is.
///
/// ```
/// let progress = millpond::Progress { fraction: Some(0.5), ..Default::default() };
/// assert_eq!(progress.flows_completed, 0);
/// ```
pub use millpond_results::Progress;

/// How a run ended: complete, stalled, interrupted, or failed (its audit found lost packets).
///
/// ```
/// assert!(millpond::Status::Complete.is_final() && !millpond::Status::Interrupted.is_final());
/// ```
pub use millpond_results::Status;

/// The statistics of a run, as in `summary.json`. Times are in microseconds.
///
/// ```
/// let summary = millpond::Summary::default();
/// assert!(summary.fct_us.get("all").is_none());
/// ```
pub use millpond_results::Summary;

/// The return value of a [`World`], beside the records that its [`Observer`] got: sums over the
/// run.
///
/// ```
/// assert_eq!(millpond::Totals::default().timeouts, 0);
/// ```
pub use millpond_results::Totals;

/// Which world made a result, as results record it.
///
/// ```
/// use millpond::{Sim, World, WorldKind};
/// assert_eq!(Sim.kind(), WorldKind::Sim);
/// ```
pub use millpond_results::World as WorldKind;

/// A flow that is over, or that is open at the end of the run.
///
/// ```
/// fn print(flow: &millpond::FlowRecord) {
///     println!("{} bytes in {:?}", flow.bytes, flow.fct());
/// }
/// ```
pub use millpond_results::FlowRecord;

/// A query that is over, or that is open at the end of the run.
///
/// ```
/// fn print(query: &millpond::QueryRecord) {
///     println!("{} answers in {:?}", query.degree, query.qct());
/// }
/// ```
pub use millpond_results::QueryRecord;

/// A sample of a port's queue.
///
/// ```
/// fn print(queue: &millpond::QueueRecord) {
///     println!("{}: {} bytes wait at port {}", queue.at, queue.bytes, queue.port);
/// }
/// ```
pub use millpond_results::QueueRecord;

/// A sample of a connection.
///
/// ```
/// fn print(sample: &millpond::ConnectionRecord) {
///     println!("flow {}", sample.flow);
/// }
/// ```
pub use millpond_results::ConnectionRecord;

/// A packet that a capture saw.
///
/// ```
/// fn print(packet: &millpond::PacketRecord) {
///     println!("{}: capture {}", packet.at, packet.tap);
/// }
/// ```
pub use millpond_results::PacketRecord;

/// A PAUSE frame that a capture saw.
///
/// ```
/// fn print(pause: &millpond::PauseRecord) {
///     println!("{}: capture {}", pause.at, pause.tap);
/// }
/// ```
pub use millpond_results::PauseRecord;

/// Where a run stands: virtual time, packet-hops, flows started and over.
///
/// ```
/// assert_eq!(millpond::Standing::default().started, 0);
/// ```
pub use millpond_sim::Standing;

/// Virtual time, in whole picoseconds.
///
/// ```
/// assert_eq!(millpond::Time::from_ps(1_500_000).as_us_f64(), 1.5);
/// ```
pub use millpond_core::Time;

/// The errors of a scenario, each with file, line, column and, where one is known, the repair.
///
/// ```
/// let parsed = millpond::Scenario::parse("a.toml", "sed = 1");
/// let Err(millpond::Error::Scenario(errors)) = parsed else {
///     panic!("`sed` is no key");
/// };
/// assert_eq!((errors.errors[0].line, errors.errors[0].column), (1, 1));
/// ```
pub use millpond_scenario::Errors as ScenarioErrors;

/// A variant of a compare: its statistics over seeds, and the differences to the first variant.
///
/// ```
/// fn p99_us(result: &millpond::VariantResult) -> Option<f64> {
///     result.statistics.leaf(&["fct_us", "all", "p99"])?.mean
/// }
/// ```
pub use millpond_results::VariantResult;

/// The points of a sweep with their runs, statistics and differences, as in `sweep.json`.
///
/// ```
/// let sweep = millpond::SweepResults::default();
/// assert_eq!(sweep.runs().count(), 0);
/// ```
pub use millpond_results::Sweep as SweepResults;

/// The files of each run that a sweep keeps beside its summary and manifest.
///
/// ```
/// assert_eq!(millpond::Keep::default(), millpond::Keep::All);
/// ```
pub use millpond_results::Keep;

/// A claim of a paper, with what was measured and whether it holds.
///
/// ```
/// fn fails(claim: &millpond::Claim) -> bool {
///     claim.status.name() == "fails"
/// }
/// ```
pub use millpond_results::Claim;

/// For the command alone. Not part of the API.
#[doc(hidden)]
pub mod command {
    pub use crate::estimate::estimate;
    pub use crate::reproduce::{check_ledger, reproduce_paper};
    pub use crate::revision::{LONG_VERSION, manifest};
    pub use crate::threads::all_cores;
}
