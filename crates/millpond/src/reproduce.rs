//! A paper's experiments, run, and its claims, decided.

use crate::runs::run_all;
use crate::{Claim, Error, Options, WorldKind, revision};
use millpond_claims::{
    Chosen, Design, Effort, Ended, Experiment, Prepared, Recording, Repeated, Reproducing, Runner,
    find_paper, papers,
};
use millpond_results::{Manifest, SweepFolder};
use std::ops::RangeInclusive;
use std::path::Path;

/// Experiments of a paper to run.
///
/// ```
/// use millpond::Reproduction;
///
/// let quick = Reproduction { paper: "canary".into(), quick: true, ..Reproduction::default() };
/// assert!(Reproduction::papers().contains(&"canary") && quick.only.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reproduction {
    /// One of [`Reproduction::papers`], or a folder with a `paper.toml`.
    pub paper: String,
    /// Whether only what minutes can decide is run.
    pub quick: bool,
    /// Experiments, claims and groups of claims; without any, all.
    pub only: Vec<String>,
    /// Seeds in the place of the experiments' own.
    pub seeds: Option<RangeInclusive<u64>>,
}

impl Reproduction {
    /// The names of the papers that are built in.
    pub fn papers() -> Vec<&'static str> {
        papers().iter().map(|paper| paper.name.as_str()).collect()
    }
}

/// The claims of a paper, decided.
///
/// ```
/// fn print(reproduced: &millpond::Reproduced) {
///     for claim in &reproduced.claims {
///         println!("{}: {}", claim.id, claim.status.name());
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// The chosen claims.
    pub claims: Vec<Claim>,
    /// How many runs failed.
    pub failed: usize,
    /// How many stalled; their experiments decide no claim.
    pub stalled: usize,
    /// Of how many.
    pub runs: usize,
}

/// Runs what is chosen of a paper's experiments and what the results folder does not have, and
/// decides its claims by all that the folder has. Experiments of the lab run if it is among
/// [`Options::beside`].
///
/// ```
/// use millpond::{Error, Options, Reproduction, reproduce};
///
/// let unknown = Reproduction { paper: "no such paper".into(), ..Reproduction::default() };
/// let error = reproduce(&unknown, "out", &Options::default()).unwrap_err();
/// assert!(matches!(error, Error::Usage(text) if text.contains("canary")));
/// ```
///
/// # Errors
/// If there is no such paper or choice, the folder holds something else and [`Options::force`] is
/// off, or it cannot be written; [`Error::Stopped`] if
/// [`Control::is_stopped`](crate::Control::is_stopped) ends it.
pub fn reproduce(
    reproduction: &Reproduction,
    folder: impl AsRef<Path>,
    options: &Options<'_>,
) -> Result<Reproduced, Error> {
    let paper = find_paper(&reproduction.paper)?;
    let job = Reproducing {
        effort: if reproduction.quick { Effort::Quick } else { Effort::Full },
        seeds: reproduction.seeds.clone().map(RangeInclusive::into_inner),
        force: options.force,
        out: folder.as_ref().to_path_buf(),
        chosen: Chosen::of(&paper, &reproduction.only)?.only_in(&paper, &kinds(options)),
        recording: Recording::None,
        paper,
    };
    let Ended { claims, failed, stalled, runs, .. } = reproduce_paper(&job, options)?;
    Ok(Reproduced { claims, failed, stalled, runs })
}

/// The worlds that there are for experiments.
fn kinds(options: &Options<'_>) -> Vec<WorldKind> {
    options.worlds().map(|world| world.kind()).collect()
}

/// Runs a paper of the crate `millpond_claims`, and decides its claims.
///
/// # Errors
/// As [`Reproducing::run`].
pub fn reproduce_paper(job: &Reproducing, options: &Options<'_>) -> Result<Ended, Error> {
    Ok(job.run(&Command { options })?)
}

/// Repeats runs of a paper's ledger, drawn at random.
///
/// # Errors
/// As [`Reproducing::check`].
pub fn check_ledger(
    job: &Reproducing,
    n: usize,
    draw: u64,
    options: &Options<'_>,
) -> Result<Vec<Repeated>, Error> {
    Ok(job.check(n, draw, &Command { options })?)
}

/// Makes runs as the options ask.
struct Command<'a> {
    options: &'a Options<'a>,
}

impl Runner for Command<'_> {
    fn manifest(&self, scenario: &str) -> Manifest {
        revision::manifest(scenario)
    }

    fn print(&self, line: &str) {
        self.options.control.note(line);
    }

    fn run(
        &self,
        prepared: &Prepared<'_>,
        design: &Design,
        folder: &SweepFolder,
    ) -> Result<Vec<(u32, String)>, millpond_claims::Error> {
        let Experiment { name, world, keep, .. } = prepared.of;
        let Some(world) = self.options.worlds().find(|other| other.kind() == *world) else {
            let text = format!("experiment {name}: there is no world {world:?}");
            return Err(millpond_claims::Error::Usage(text));
        };
        let options = Options { world, beside: &[], ..*self.options };
        run_all(name, *keep, &prepared.scenario, design, folder, &options)
    }
}
