//! A grid of values and seeds, run over all cores.

use crate::estimate::{Estimate, estimate};
use crate::runs::run_all;
use crate::values::values;
use crate::{Error, Keep, Options, Scenario, SweepResults, revision};
use millpond_claims::{Design, Request, VARIANT, design};
use millpond_results::{
    Axis, Bound, Kind, Manifest, Status, SweepFolder, check_shard, finish_sweep,
};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The points of a sweep: the product of all axes, and of the variants, in each seed.
///
/// ```
/// use millpond::Grid;
///
/// let grid = Grid {
///     axes: vec![("traffic.background.load".into(), "0.2..0.8/0.2".into())],
///     seeds: Some(1..=10),
///     ..Grid::default()
/// };
/// assert!(!grid.variants);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Keys, each with its values: a list with commas, whose members may be ranges
    /// `FROM..TO/STEP`. The last varies fastest.
    pub axes: Vec<(String, String)>,
    /// The seeds of each point; without them the scenario's.
    pub seeds: Option<RangeInclusive<u64>>,
    /// Whether the scenario's variants are an axis, the first.
    pub variants: bool,
    /// The number whose best point is named, as in `shows`; none: the first one shown.
    pub best: Option<String>,
    /// Bounds that the best point keeps: "bulk.fct.mean <= 105 %" of the first point, "timeouts <=
    /// 0".
    pub subject: Vec<String>,
    /// Whether points that are no valid scenario are left out; else they are an error.
    pub skip_invalid: bool,
    /// Whether [`Sweep::estimate`] will be asked. Then planning counts what each point's traffic
    /// asks for, which takes longer.
    pub estimates: bool,
}

/// The runs of a sweep, planned.
///
/// ```
/// use millpond::{Grid, Scenario, Sweep};
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n\
///             [[traffic]]\nkind = \"incast\"\ndegree = 3\nresponse = \"20KB\"\ncount = 1";
/// let axes = vec![("traffic.incast.degree".into(), "1..3".into())];
/// let sweep = Sweep::new(&Scenario::parse("a.toml", text)?, &Grid { axes, ..Grid::default() })?;
/// assert_eq!(sweep.plan().runs().count(), 3);
/// # Ok::<(), millpond::Error>(())
/// ```
#[derive(Clone)]
pub struct Sweep {
    scenario: Scenario,
    /// Of a shard: its runs alone.
    design: Design,
    /// Of a shard: the whole sweep.
    whole: Option<SweepResults>,
    merged: Vec<PathBuf>,
}

impl Sweep {
    /// Plans every point once, so that a wrong value is reported before anything runs.
    ///
    /// # Errors
    /// If there is nothing to sweep, a key or a value is there twice, a value is wrong, or there
    /// are more than a million runs.
    pub fn new(scenario: &Scenario, grid: &Grid) -> Result<Sweep, Error> {
        let variants = || scenario.variants().into_iter().map(String::from).collect();
        let request = Request {
            grid: axes(grid)?,
            seeds: grid
                .seeds
                .clone()
                .map(RangeInclusive::into_inner)
                .or(scenario.chosen_seed().map(|seed| (seed, seed))),
            variants: if grid.variants { variants() } else { Vec::new() },
            set: scenario.overrides().to_vec(),
            skip_invalid: grid.skip_invalid,
            estimate: grid.estimates,
        };
        if grid.variants && request.variants.is_empty() {
            return Err(Error::Usage(
                "--variants: the scenario has no [[variant]] tables".to_string(),
            ));
        }
        if request.grid.is_empty() && request.variants.is_empty() && request.seeds.is_none() {
            let hint = "nothing to sweep; say --grid KEY=A,B, --variants or --seeds N";
            return Err(Error::Usage(hint.to_string()));
        }
        let mut design = design(scenario.inner(), &request)?;
        if let Some(recipe) = design.recipes.first()
            && let Some(shows) = scenario.chosen(recipe.variant.as_deref(), &recipe.overrides)?
        {
            design.sweep.shows = shows;
        }
        let mut bounded = Vec::new();
        for text in &grid.subject {
            let bound = Bound::parse(text);
            let wrong = |e| Error::Usage(format!("--subject {text:?}: {e}"));
            bounded.push(bound.map_err(wrong)?.number);
        }
        if let Some(recipe) = design.recipes.first() {
            let (variant, overrides) = (recipe.variant.as_deref(), &recipe.overrides);
            scenario.numbers("--subject", &bounded, variant, overrides)?;
            let best: Vec<String> = grid.best.iter().cloned().collect();
            scenario.numbers("--best", &best, variant, overrides)?;
        }
        design.sweep.best.clone_from(&grid.best);
        design.sweep.subject.clone_from(&grid.subject);
        Ok(Sweep { scenario: scenario.clone(), design, whole: None, merged: Vec::new() })
    }

    /// One of `of` shards, from 1, for machines that share the runs of a sweep. Its folder has the
    /// whole plan and its own runs; [`Sweep::merge`] makes the sweep of all shards' folders.
    ///
    /// # Errors
    /// If `shard` is not from 1 to `of`.
    pub fn shard(mut self, shard: u32, of: u32) -> Result<Sweep, Error> {
        if !(1..=of).contains(&shard) {
            let text = format!("shard {shard}/{of}: the first of {of} shards is 1, the last {of}");
            return Err(Error::Usage(text));
        }
        self.whole = Some(self.design.sweep.clone());
        for point in &mut self.design.sweep.points {
            point.runs.retain(|run| (run.run - 1) % of == shard - 1);
        }
        Ok(self)
    }

    /// Takes the finished runs of these folders before it makes the others.
    #[must_use]
    pub fn merge<T: Into<PathBuf>>(mut self, folders: impl IntoIterator<Item = T>) -> Sweep {
        self.merged = folders.into_iter().map(Into::into).collect();
        self
    }

    /// The scenario's name.
    pub fn name(&self) -> &str {
        &self.design.sweep.name
    }

    /// The points with their runs, without statistics.
    pub fn plan(&self) -> &SweepResults {
        &self.design.sweep
    }

    /// The warnings of all points, each text once.
    pub fn warnings(&self) -> &[String] {
        &self.design.warnings
    }

    /// Estimates how long the runs take that `folder` does not have, by those that it has and by
    /// short trials (12 s of one core, roughly).
    ///
    /// # Errors
    /// [`Error::Stopped`] if [`Control::is_stopped`](crate::Control::is_stopped) ends it.
    pub fn estimate(
        &self,
        folder: impl AsRef<Path>,
        options: &Options<'_>,
    ) -> Result<Estimate, Error> {
        let folder = folder.as_ref();
        let resumes = SweepResults::read(folder)
            .is_ok_and(|old| self.design.sweep.change_from(&old).is_none());
        estimate(self.scenario.inner(), &self.design, resumes.then_some(folder), options)
    }
}

/// Makes the runs of a sweep, several at a time, into its results folder, and keeps `keep` of each.
/// Runs that the folder has are not made again; a run that fails stops no other, and its point
/// reports why. Of a shard it writes no results but those of its runs, and returns these.
///
/// ```
/// use millpond::{Grid, Keep, Options, Scenario, Status, Sweep, sweep};
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n\
///             [[traffic]]\nkind = \"incast\"\ndegree = 3\nresponse = \"20KB\"\ncount = 1";
/// let grid = Grid { seeds: Some(1..=2), ..Grid::default() };
/// let planned = Sweep::new(&Scenario::parse("a.toml", text)?, &grid)?;
/// let folder = std::env::temp_dir().join(format!("millpond-doc-sweep-{}", std::process::id()));
/// let results = sweep(&planned, &folder, Keep::Summary, &Options::default())?;
/// assert_eq!(results.status, Status::Complete);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), millpond::Error>(())
/// ```
///
/// # Errors
/// If the folder holds something else and [`Options::force`] is off, or cannot be written;
/// [`Error::Stopped`] if [`Control::is_stopped`](crate::Control::is_stopped) ends it.
pub fn sweep(
    sweep: &Sweep,
    folder: impl AsRef<Path>,
    keep: Keep,
    options: &Options<'_>,
) -> Result<SweepResults, Error> {
    let plan = sweep.whole.as_ref().unwrap_or(&sweep.design.sweep);
    let folder = folder.as_ref();
    // A shard's folder has no manifest.
    if sweep.whole.is_some() && !options.force && Manifest::read_kind(folder, Kind::Sweep).is_ok() {
        return Err(Error::Usage(format!(
            "{} holds the whole sweep with its statistics; choose another folder for the shard \
             with --out, or replace the results with --force",
            folder.display()
        )));
    }
    // Opening the folder writes the plan there, in the place of statistics.
    sweep.merged.iter().try_for_each(|other| check_shard(other, plan))?;
    let folder = SweepFolder::open(folder, plan, options.force)?;
    for other in &sweep.merged {
        let taken = folder.take_from(other, plan)?;
        options.control.note(&format!("{taken} runs are taken from {}", other.display()));
    }
    let manifest = Manifest {
        name: plan.name.clone(),
        seed: plan.seeds.first().copied().unwrap_or_default(),
        overrides: plan.overrides.clone(),
        ..revision::manifest(sweep.scenario.text())
    };
    let failures = run_all("sweep", keep, sweep.scenario.inner(), &sweep.design, &folder, options)?;
    if sweep.whole.is_some() {
        folder.tidy();
        return Ok(ended(sweep.design.sweep.clone(), &folder, &failures));
    }
    Ok(finish_sweep(&folder, plan, &failures, manifest)?)
}

/// The runs of a shard, each with how it ended.
fn ended(
    mut shard: SweepResults,
    folder: &SweepFolder,
    failures: &[(u32, String)],
) -> SweepResults {
    for run in shard.points.iter_mut().flat_map(|point| &mut point.runs) {
        let finished = run.finished(folder.path());
        run.status = Some(finished.map_or(Status::Failed, |summary| summary.status));
        let failure = failures.iter().find(|(number, _)| *number == run.run);
        run.reason = failure.map(|(_, reason)| reason.clone());
    }
    shard
}

/// The axes with their values.
fn axes(grid: &Grid) -> Result<Vec<Axis>, Error> {
    let mut axes: Vec<Axis> = Vec::new();
    for (key, text) in &grid.axes {
        let values =
            values(text).map_err(|message| Error::Usage(format!("--grid {key}: {message}")))?;
        let twice = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value));
        let complaint = match () {
            () if key == "seed" => "seeds are given by --seeds N or --seeds A..B".to_string(),
            () if key == VARIANT && grid.variants => "--variants sweeps all of them".to_string(),
            () if axes.iter().any(|axis| &axis.key == key) => "the key is there twice".to_string(),
            () if values.iter().any(String::is_empty) => {
                format!("an empty value; write {key}=a,b,c")
            }
            () if twice.is_some() => {
                format!("{} is there twice", twice.map_or("", |(_, value)| value))
            }
            () => String::new(),
        };
        if !complaint.is_empty() {
            return Err(Error::Usage(format!("--grid {key}: {complaint}")));
        }
        axes.push(Axis { key: key.clone(), values });
    }
    Ok(axes)
}
