//! Progress, notes and warnings of runs for a caller, who may stop them.

use crate::threads::all_cores;
use crate::{Progress, Sim, World};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Receives progress, notes and warnings of runs, and stops them. `()` ignores all and stops
/// nothing.
///
/// Methods are called from the threads that run. The text of [`note`](Control::note) and
/// [`warn`](Control::warn) is one line, without its end.
///
/// ```
/// use millpond::{Control, Error, Options, Scenario, Status, run};
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// /// Stops a run at its first progress.
/// #[derive(Default)]
/// struct Impatient(AtomicBool);
///
/// impl Control for Impatient {
///     fn progress(&self, _: &millpond::Progress) {
///         self.0.store(true, Ordering::Relaxed);
///     }
///     fn is_stopped(&self) -> bool {
///         self.0.load(Ordering::Relaxed)
///     }
/// }
///
/// let text = "duration = \"20s\"\n[topology]\nkind = \"single-switch\"\nhosts = 8\n\
///             [[traffic]]\nkind = \"poisson\"\nsizes = \"10KB\"\nload = 0.5";
/// let plan = Scenario::parse("a.toml", text)?.plan(None)?;
/// let stopped = run(&plan, &Options { control: &Impatient::default(), ..Options::default() })?;
/// assert_eq!(stopped.status, Status::Interrupted);
/// # Ok::<(), Error>(())
/// ```
pub trait Control: Sync {
    /// Whether runs are to end. Asked several times a second; a run ends at its next window edge.
    fn is_stopped(&self) -> bool {
        false
    }

    /// The progress of a run by itself, at most ten times a second.
    fn progress(&self, _progress: &Progress) {}

    /// The progress of many runs, as they begin and end.
    fn runs(&self, _runs: &Runs<'_>) {}

    /// A note that a user may like to read, such as why a run has so many threads.
    fn note(&self, _text: &str) {}

    /// A warning that a user must read, such as a run that failed.
    fn warn(&self, _text: &str) {}
}

impl Control for () {}

/// The progress of many runs.
///
/// ```
/// let runs = millpond::Runs { all: 4, ended: 1, ..Default::default() };
/// assert!(!runs.is_over && runs.ended < runs.all);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs<'a> {
    /// `compare`, `sweep`, or an experiment's name.
    pub label: &'a str,
    /// How many there are.
    pub all: usize,
    /// How many are over, of earlier calls, too.
    pub ended: usize,
    /// Of those of this call, how many failed.
    pub failed: usize,
    /// The run that ended last.
    pub latest: &'a str,
    /// Whether this is the last report.
    pub is_over: bool,
}

/// How plans are run: where, by how many threads, and who watches.
///
/// ```
/// use millpond::{Options, Sim};
///
/// let options = Options { threads: Some(1), ..Options::default() };
/// assert!(!options.force);
/// ```
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Where.
    pub world: &'a dyn World,
    /// Further worlds, for a comparison across worlds ([`Comparison::across`]) and for the
    /// experiments of a paper that other worlds run.
    ///
    /// [`Comparison::across`]: crate::Comparison::across
    pub beside: &'a [&'a dyn World],
    /// Threads of a run, or runs at a time. Without it as many as there are cores, and one for a
    /// run whose windows hold too little to share. No result depends on it.
    pub threads: Option<usize>,
    /// Whether a results folder makes way even if it holds something else than an older result of
    /// the same command and scenario. [`compare`](crate::compare) then makes the runs of an ended
    /// result again; those of an interrupted call stay.
    pub force: bool,
    /// Receives progress, notes and warnings.
    pub control: &'a dyn Control,
}

impl Options<'_> {
    /// The world of this number: [`Options::world`], and then those beside it.
    pub(crate) fn world_of(&self, number: usize) -> &dyn World {
        let beside = number.checked_sub(1).and_then(|at| self.beside.get(at));
        beside.copied().unwrap_or(self.world)
    }

    /// All worlds.
    pub(crate) fn worlds(&self) -> impl Iterator<Item = &dyn World> {
        std::iter::once(self.world).chain(self.beside.iter().copied())
    }

    /// Whether a run of some world needs the machine for itself.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.world.is_exclusive() || self.beside.iter().any(|world| world.is_exclusive())
    }

    /// How many of so many runs are made at a time, at least one.
    pub(crate) fn at_once(&self, runs: usize) -> usize {
        let most = if self.is_exclusive() { 1 } else { usize::MAX };
        self.threads.unwrap_or_else(all_cores).min(runs).min(most).max(1)
    }
}

impl Default for Options<'_> {
    /// In virtual time, watched by nobody.
    fn default() -> Self {
        Options { world: &Sim, beside: &[], threads: None, force: false, control: &() }
    }
}

/// Does `work` on each job, several at a time, until it returns false or the caller stops.
pub(crate) fn share_out<T: Sync>(
    jobs: &[T],
    workers: usize,
    control: &dyn Control,
    work: impl Fn(&T) -> bool + Sync,
) {
    let next = AtomicUsize::new(0);
    let one_by_one = || {
        while !control.is_stopped()
            && let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
            && work(job)
        {}
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(one_by_one);
        }
    });
}
