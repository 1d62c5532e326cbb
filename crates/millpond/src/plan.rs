//! A plan: what a world runs.

use crate::{Error, Time};
use millpond_scenario::plan::Plan as Detail;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One variant of a scenario with one seed, checked and complete: what a [`World`](crate::World)
/// runs. Clones share it.
///
/// ```
/// use millpond::Scenario;
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
///             [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"";
/// let plan = Scenario::parse("pair.toml", text)?.plan(None)?;
/// assert_eq!((plan.name(), plan.hosts(), plan.seed()), ("pair", 2, 1));
/// assert!(plan.resolved().contains("kind = \"single-switch\""));
/// # Ok::<(), millpond::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    detail: Arc<Detail>,
    overrides: Arc<[(String, String)]>,
    threads: Option<usize>,
    /// Time that its making took.
    setup: Duration,
}

impl Plan {
    pub(crate) fn new(detail: Detail, overrides: &[(String, String)]) -> Plan {
        let (detail, overrides) = (Arc::new(detail), overrides.into());
        Plan { detail, overrides, threads: None, setup: Duration::ZERO }
    }

    /// The same, whose making began then.
    pub(crate) fn since(self, began: Instant) -> Plan {
        Plan { setup: began.elapsed(), ..self }
    }

    /// The plan as a world prepares it.
    pub(crate) fn prepared(
        &self,
        prepare: impl FnOnce(&Plan) -> Result<Plan, Error>,
    ) -> Result<Plan, Error> {
        let began = Instant::now();
        let own = prepare(self)?;
        Ok(Plan { setup: self.setup + began.elapsed(), ..own })
    }

    /// Time that reading, planning and preparing it took.
    pub(crate) fn setup(&self) -> Duration {
        self.setup
    }

    /// The same with this many threads, if a number is given.
    pub(crate) fn on(&self, threads: Option<usize>) -> Plan {
        Plan { threads: threads.or(self.threads), ..self.clone() }
    }

    /// The scenario's name.
    pub fn name(&self) -> &str {
        &self.detail.name
    }

    /// The variant, if it is one.
    pub fn variant(&self) -> Option<&str> {
        self.detail.variant.as_deref()
    }

    /// The scenario's own description (`about`); empty without one.
    pub fn about(&self) -> &str {
        &self.detail.about
    }

    /// The variant's own description; empty without one.
    pub fn variant_about(&self) -> &str {
        &self.detail.variant_about
    }

    /// The seed of every random stream.
    pub fn seed(&self) -> u64 {
        self.detail.seed
    }

    /// The number of hosts.
    pub fn hosts(&self) -> u32 {
        self.detail.topology.hosts
    }

    /// Where virtual time ends at the latest; [`Time::MAX`] if the run ends with its flows.
    pub fn horizon(&self) -> Time {
        self.detail.horizon
    }

    /// How many threads a world may take; without it the world chooses.
    pub fn threads(&self) -> Option<usize> {
        self.threads
    }

    /// Warnings of legal and doubtful settings, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.detail.warnings
    }

    /// The scenario as TOML, with every default written out.
    pub fn resolved(&self) -> &str {
        &self.detail.resolved
    }

    /// Changes of the scenario, in order: key and value.
    pub fn overrides(&self) -> &[(String, String)] {
        &self.overrides
    }

    /// The network and its traffic in numbers, for worlds of this workspace. Not part of the API.
    #[doc(hidden)]
    pub fn detail(&self) -> &Detail {
        &self.detail
    }
}
