//! The variants of a scenario beside each other, one run each a seed, spread over the cores.
//!
//! Invariant: a compare loses no finished run of its scenario that this program would make again.
//! Stopped, in whatever way, it keeps them beside its place; ended, in its place, also those of
//! variants and seeds that a later call leaves out. A run is known by its scenario's identity, its
//! seed and the version of results.

use crate::control::share_out;
use crate::run::write;
use crate::threads::{self, all_cores};
use crate::values::values;
use crate::{Error, Options, Plan, Runs, Scenario, Status, Summary, VariantResult, revision};
use millpond_claims::check_runs;
use millpond_core::registry::Reason;
use millpond_results::{
    Folder, Kind, Manifest, Owner, RunWriter, VariantRuns, finish_compare, grouped, read_compare,
    run_folder,
};
use millpond_scenario::Errors;
use millpond_scenario::composition::Answer;
use millpond_scenario::plan::Plan as Detail;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// One arm: a variant of the scenario with one combination of the varied values.
#[derive(Clone, Debug)]
struct Arm {
    name: String,
    variant: Option<String>,
    overrides: Vec<(String, String)>,
    /// How many of the overrides, the last, are varied.
    varied: usize,
    seeds: Vec<u64>,
    /// Its description in the scenario; empty without one.
    about: String,
    /// Its mechanisms, each with the event that it answers.
    answers: Vec<(String, Reason)>,
    /// Of the options' world and those beside it: which.
    world: usize,
}

impl Arm {
    fn new(name: String, variant: Option<String>, overrides: Vec<(String, String)>) -> Arm {
        let (about, answers) = (String::new(), Vec::new());
        Arm { name, variant, overrides, varied: 0, seeds: Vec::new(), about, answers, world: 0 }
    }

    fn plan(&self, scenario: &Scenario, seed: Option<u64>) -> Result<Detail, Errors> {
        let plan = scenario.inner().plan(self.variant.as_deref(), &self.overrides, seed);
        let plan =
            plan.map_err(|errors| errors.given_by("--vary", self.overrides.len() - self.varied))?;
        Ok(Detail { variant: Some(self.name.clone()), ..plan })
    }
}

/// Which runs a compare makes: each variant of a scenario, with each combination of varied values,
/// in each seed.
///
/// ```
/// use millpond::{Comparison, Scenario};
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n\
///             [[traffic]]\nkind = \"incast\"\ndegree = 3\nresponse = \"20KB\"\ncount = 1";
/// let scenario = Scenario::parse("a.toml", text)?;
/// let comparison = Comparison::new(&scenario, &[("transport.kind", "dctcp,cubic")], Some(1..=3))?;
/// assert_eq!((comparison.variants(), comparison.runs()), (vec!["dctcp", "cubic"], 6));
/// # Ok::<(), millpond::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Comparison {
    scenario: Scenario,
    name: String,
    about: String,
    arms: Vec<Arm>,
    /// Arms of the scenario's other variants, without seeds: their finished runs stay.
    others: Vec<Arm>,
    /// The numbers that are shown; empty: those that suit the traffic.
    shows: Vec<String>,
    /// Whether an arm has several seeds, and so a folder for each.
    several: bool,
    /// Changes of the scenario, as they were given.
    changed: Vec<String>,
    warnings: Vec<String>,
}

impl Comparison {
    /// Plans every arm once, so that a wrong value is reported before anything runs.
    ///
    /// `vary` has keys, each with its values: a list with commas, whose members may be ranges
    /// `FROM..TO/STEP`. Without `seeds` the scenario's seed is run.
    ///
    /// # Errors
    /// If there is nothing to compare, a key or a value is there twice, a value is wrong, or there
    /// are more than a million runs.
    pub fn new(
        scenario: &Scenario,
        vary: &[(&str, &str)],
        seeds: Option<RangeInclusive<u64>>,
    ) -> Result<Comparison, Error> {
        Comparison::across(scenario, vary, seeds, &[])
    }

    /// The same in several worlds: each variant once in each. The names are those of
    /// [`Options::world`] and [`Options::beside`], in order.
    ///
    /// # Errors
    /// As [`Comparison::new`].
    pub fn across(
        scenario: &Scenario,
        vary: &[(&str, &str)],
        seeds: Option<RangeInclusive<u64>>,
        worlds: &[&str],
    ) -> Result<Comparison, Error> {
        let seeds = seeds.map(RangeInclusive::into_inner);
        let has_seeds = seeds.is_some() || worlds.len() > 1;
        let mut arms = in_worlds(arms(scenario, vary, has_seeds)?, worlds);
        let whole = scenario.clone().only::<String>([])?;
        let mut others = in_worlds(self::arms(&whole, vary, has_seeds)?, worlds);
        others.retain(|other| arms.iter().all(|arm| arm.name != other.name));
        check_runs(arms.len(), seeds)?;
        let (mut name, mut about) = (String::new(), String::new());
        let (mut shows, mut own) = (Vec::new(), Vec::new());
        for arm in &mut arms {
            let first =
                arm.plan(scenario, seeds.map(|seeds| seeds.0).or(scenario.chosen_seed()))?;
            let (from, to) = seeds.unwrap_or((first.seed, first.seed));
            arm.seeds = (from..=to).collect();
            let masked = scenario.inner().masked(arm.variant.as_deref(), &arm.overrides);
            own.push((arm.name.clone(), [first.warnings, masked].concat()));
            let answer = |of: &Answer| (format!("{} \"{}\"", of.place, of.kind), of.reason);
            arm.answers = first.answers.iter().map(answer).collect();
            arm.about = first.variant_about;
            if name.is_empty() {
                name = first.name;
                about = first.about;
                shows = first.shows;
            }
        }
        // First, since the terminal shows three.
        let mut warnings: Vec<String> = one_baseline(&arms, vary).into_iter().collect();
        warnings.extend(grouped(own.iter().map(|(name, texts)| (&**name, &**texts))));
        let several = arms.iter().any(|arm| arm.seeds.len() > 1);
        if let Some(first) = arms.first() {
            shows = scenario.chosen(first.variant.as_deref(), &first.overrides)?.unwrap_or(shows);
        }
        let set = scenario.overrides().iter().map(|(key, value)| format!("{key}={value}"));
        let changed =
            set.chain(vary.iter().map(|(key, values)| format!("{key}={values}"))).collect();
        let scenario = scenario.clone();
        Ok(Comparison { scenario, name, about, arms, others, shows, several, changed, warnings })
    }

    /// The scenario's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The scenario's own description (`about`); empty without one.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Each variant's own description, in order; empty without one.
    pub fn abouts(&self) -> Vec<&str> {
        self.arms.iter().map(|arm| arm.about.as_str()).collect()
    }

    /// The variants, in order. The others are compared with the first.
    pub fn variants(&self) -> Vec<&str> {
        self.arms.iter().map(|arm| arm.name.as_str()).collect()
    }

    /// The variants with their seeds, in order.
    pub fn seeds(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.arms.iter().map(|arm| (arm.name.as_str(), arm.seeds.as_slice()))
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.jobs().count()
    }

    /// Warnings of legal and doubtful settings, each text once, behind the names of its variants.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// All runs, by arm and seed.
    fn jobs(&self) -> impl Iterator<Item = (&Arm, u64)> {
        self.arms.iter().flat_map(|arm| arm.seeds.iter().map(move |seed| (arm, *seed)))
    }

    /// Where a run is, within `root`.
    fn place(&self, root: &Path, arm: &Arm, seed: u64) -> PathBuf {
        run_folder(root, &arm.name, seed, self.several)
    }

    /// Whether the finished run in this place of a results folder is of this comparison, or of
    /// another seed or variant of its scenario. With one seed, a variant's place is of that alone.
    fn is_ours(&self, place: &Path, manifest: &Manifest, options: &Options<'_>) -> bool {
        let seed = manifest.seed;
        let has_seed =
            |arm: &Arm| self.several || arm.seeds.is_empty() || arm.seeds.contains(&seed);
        let is_in = |arm: &&Arm| self.place(Path::new(""), arm, seed) == *place;
        let arm = self.arms.iter().chain(&self.others).find(is_in);
        arm.is_some_and(|arm| has_seed(arm) && self.made(arm, manifest, options))
    }

    /// Whether a finished run is what this program would make again.
    fn made(&self, arm: &Arm, manifest: &Manifest, options: &Options<'_>) -> bool {
        revision::makes_again(manifest)
            && self
                .prepared(arm, manifest.seed, options)
                .is_ok_and(|plan| plan.detail().identity() == manifest.identity)
    }

    /// The arms with those of their seeds that are asked for, without arms that have none of them.
    fn seeds_that(&self, of: impl Fn(&Arm, u64) -> bool) -> Vec<VariantRuns> {
        let runs = |arm: &Arm| VariantRuns {
            name: arm.name.clone(),
            about: arm.about.clone(),
            seeds: arm.seeds.iter().copied().filter(|seed| of(arm, *seed)).collect(),
            answers: arm.answers.clone(),
        };
        self.arms.iter().map(runs).filter(|runs| !runs.seeds.is_empty()).collect()
    }

    /// Runs what is not finished, several at a time, each on one thread (a single one gets all).
    fn run_all(&self, folder: &Folder, options: &Options<'_>) -> Ended {
        let all = self.runs();
        let mut left: Vec<(&Arm, u64)> =
            self.jobs().filter(|(arm, seed)| !is_finished(self, folder, arm, *seed)).collect();
        if options.is_exclusive() {
            // Variants take turns, so that a machine that becomes slower favours none of them.
            left.sort_by_key(|(_, seed)| *seed);
        }
        let before = all - left.len();
        let control = options.control;
        if before > 0 {
            control.note(&format!("{before} of {all} runs are finished already"));
        }
        let cores = options.threads.unwrap_or_else(all_cores);
        let workers = options.at_once(left.len());
        let state = Runs { label: "compare", all, ended: before, ..Runs::default() };
        control.runs(&state);
        let runs = Mutex::new((before, Ended { finished: before, ..Ended::default() }));
        share_out(&left, workers, control, |&(arm, seed)| {
            let result = self.run_one(folder, arm, seed, cores / workers, options);
            let mut runs = runs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            runs.0 += 1;
            control.runs(&Runs {
                ended: runs.0,
                latest: &format!("{} (seed {seed})", arm.name),
                ..state
            });
            let runs = &mut runs.1;
            match result {
                Ok(summary) if summary.status == Status::Interrupted => {
                    let _ = std::fs::remove_dir_all(self.place(folder.path(), arm, seed));
                    return false;
                }
                Ok(summary) => {
                    runs.finished += 1;
                    if summary.status == Status::Failed {
                        runs.failed.get_or_insert(summary);
                    }
                }
                Err(error) => {
                    runs.error.get_or_insert(error);
                }
            }
            true
        });
        let (ended, runs) = runs.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        control.runs(&Runs { ended, is_over: true, ..state });
        runs
    }

    fn run_one(
        &self,
        folder: &Folder,
        arm: &Arm,
        seed: u64,
        threads: usize,
        options: &Options<'_>,
    ) -> Result<Summary, Error> {
        let plan = self.prepared(arm, seed, options)?;
        let dir = self.place(folder.path(), arm, seed);
        let threads = match options.threads {
            None if threads > 1 => threads.min(threads::choose(plan.detail()).threads),
            _ => threads,
        };
        let options = &Options { world: options.world_of(arm.world), ..*options };
        let plan = plan.on(Some(threads));
        write(&plan, |header| RunWriter::new(&dir, header), None, None, options)
    }

    /// The plan of a run, as its world runs it.
    fn prepared(&self, arm: &Arm, seed: u64, options: &Options<'_>) -> Result<Plan, Error> {
        let began = Instant::now();
        let plan = Plan::new(arm.plan(&self.scenario, Some(seed))?, &arm.overrides);
        plan.since(began).prepared(|plan| options.world_of(arm.world).prepare(plan))
    }

    /// Prepares every arm of a world that has the machine for itself, and prints how long all will
    /// take, so that what it refuses is refused before anything runs.
    fn check(&self, options: &Options<'_>) -> Result<(), Error> {
        let (mut first, mut runs) = (None, 0);
        for arm in &self.arms {
            let world = options.world_of(arm.world);
            if !world.is_exclusive() {
                continue;
            }
            let plan = self.prepared(arm, arm.seeds[0], options).map_err(|error| match error {
                Error::Usage(text) => Error::Usage(format!("{}: {text}", arm.name)),
                other => other,
            })?;
            runs += arm.seeds.len();
            first = first.or_else(|| world.note(&plan));
        }
        if let Some(note) = first.filter(|_| runs > 1) {
            options.control.note(&format!("{runs} runs, one after the other; the first: {note}"));
        }
        Ok(())
    }

    /// The manifest of a compare that begins now.
    fn manifest(&self, options: &Options<'_>) -> Manifest {
        Manifest {
            name: self.name.clone(),
            about: self.about.clone(),
            world: options.world.kind(),
            seed: self.arms[0].seeds[0],
            overrides: self.changed.clone(),
            shows: self.shows.clone(),
            ..revision::manifest(self.scenario.text())
        }
    }

    /// Reports on the runs that are finished, and leaves them for the same comparison.
    fn stopped(&self, folder: Folder, finished: usize, manifest: Manifest) -> Result<Error, Error> {
        let all = self.runs();
        let text = format!(
            "{finished} of {all} runs are finished; the same command goes on with the others"
        );
        let variants = self.seeds_that(|arm, seed| is_finished(self, &folder, arm, seed));
        if variants.is_empty() {
            return Ok(Error::Stopped(text));
        }
        let warning = format!("interrupted: {finished} of {all} runs are finished");
        let (status, warnings) = (Status::Interrupted, vec![warning]);
        let manifest = Manifest { status, warnings, ..manifest };
        finish_compare(&folder, &variants, self.several, manifest)?;
        let page = folder.leave().join("report.html");
        Ok(Error::Stopped(format!("{text}; report of what there is: {}", page.display())))
    }
}

fn is_finished(comparison: &Comparison, folder: &Folder, arm: &Arm, seed: u64) -> bool {
    let manifest = Manifest::read(&comparison.place(folder.path(), arm, seed));
    manifest.is_ok_and(|manifest| manifest.status.is_final())
}

/// How the runs of this call ended.
#[derive(Default)]
struct Ended {
    /// Those that are whole, with those that were before.
    finished: usize,
    /// One that failed its audit.
    failed: Option<Summary>,
    /// The first that could not be made at all.
    error: Option<Error>,
}

/// A compare in its results folder.
///
/// ```
/// fn print(compared: &millpond::Compared) {
///     for variant in &compared.results {
///         println!("{}: {:?}", variant.variant, variant.status);
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Compared {
    /// The variants; the others are compared with the first.
    pub results: Vec<VariantResult>,
    /// Where the results are.
    pub folder: PathBuf,
    /// A run whose audit failed, if one did.
    pub failed: Option<Summary>,
}

impl Compared {
    /// Reads the results folder of a compare.
    ///
    /// ```no_run
    /// let compared = millpond::Compared::read("out/five-compare")?;
    /// println!("{} variants", compared.results.len());
    /// # Ok::<(), millpond::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the folder holds no compare, one in the form of another version, or a damaged file.
    pub fn read(folder: impl AsRef<Path>) -> Result<Compared, Error> {
        let folder = folder.as_ref().to_path_buf();
        Manifest::read_kind(&folder, Kind::Compare)?;
        Ok(Compared { results: read_compare(&folder)?, folder, failed: None })
    }
}

/// Makes the runs of a comparison, several at a time, and writes their results folder, in the place
/// of an older result of the same scenario. Runs that an earlier call finished, interrupted or
/// ended, are not made again. With [`Options::force`], and in the lab, which measures anew, only
/// those of an interrupted call stay.
///
/// ```
/// use millpond::{Compared, Comparison, Options, Scenario, compare};
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n\
///             [[traffic]]\nkind = \"incast\"\ndegree = 3\nresponse = \"20KB\"\ncount = 1";
/// let scenario = Scenario::parse("a.toml", text)?;
/// let comparison = Comparison::new(&scenario, &[("transport.initial-window", "1,10")], None)?;
/// let folder = std::env::temp_dir().join(format!("millpond-doc-compare-{}", std::process::id()));
/// let compared = compare(&comparison, &folder, &Options::default())?;
/// assert_eq!(compared.results[1].variant, "initial-window=10");
/// assert_eq!(Compared::read(&folder)?.results, compared.results);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), millpond::Error>(())
/// ```
///
/// # Errors
/// If the folder holds something else and [`Options::force`] is off, if it cannot be written, or if
/// a run fails; [`Error::Stopped`] if [`Control::is_stopped`](crate::Control::is_stopped) ends it.
pub fn compare(
    comparison: &Comparison,
    folder: impl AsRef<Path>,
    options: &Options<'_>,
) -> Result<Compared, Error> {
    comparison.check(options)?;
    let owner = Owner::new(Kind::Compare, &comparison.name);
    let is_ours = |place: &Path, manifest: &Manifest| comparison.is_ours(place, manifest, options);
    let folder = Folder::resume(folder.as_ref(), &owner, options.force, &is_ours)?;
    folder.replaces().into_iter().for_each(|note| options.control.note(&note));
    for what in folder.damaged() {
        options.control.warn(&format!("warning: {what}; what is damaged is run again"));
    }
    let manifest = comparison.manifest(options);
    let runs = comparison.run_all(&folder, options);
    if let Some(error) = runs.error {
        if runs.finished > 0 {
            let (finished, all, partial) =
                (runs.finished, comparison.runs(), folder.path().display());
            options.control.warn(&format!(
                "{finished} of {all} runs are finished and kept in {partial}; the same command \
                 goes on"
            ));
        }
        return Err(error);
    }
    if runs.finished < comparison.runs() {
        return Err(comparison.stopped(folder, runs.finished, manifest)?);
    }
    let manifest = Manifest { status: Status::Complete, ..manifest };
    let all = comparison.seeds_that(|_, _| true);
    let results = finish_compare(&folder, &all, comparison.several, manifest)?;
    Ok(Compared { results, folder: folder.commit()?, failed: runs.failed })
}

/// Each arm in each of several worlds; in one, the arms as they are.
fn in_worlds(arms: Vec<Arm>, worlds: &[&str]) -> Vec<Arm> {
    if worlds.len() < 2 {
        return arms;
    }
    let name = |arm: &Arm, world: &str| match (&arm.variant, arm.varied) {
        (None, 0) => world.to_string(),
        _ => format!("{} {world}", arm.name),
    };
    let in_one =
        |arm: &Arm, at: usize| Arm { name: name(arm, worlds[at]), world: at, ..arm.clone() };
    let in_all = |arm| (0..worlds.len()).map(move |at| in_one(arm, at));
    arms.iter().flat_map(in_all).collect()
}

/// The scenario's variants (or the scenario as it is), each with every combination of the varied
/// values.
fn arms(scenario: &Scenario, vary: &[(&str, &str)], has_seeds: bool) -> Result<Vec<Arm>, Error> {
    let set = scenario.overrides();
    let mut arms: Vec<Arm> = scenario
        .variants()
        .into_iter()
        .map(|name| Arm::new(name.to_string(), Some(name.to_string()), set.to_vec()))
        .collect();
    if arms.is_empty() {
        arms.push(Arm::new("base".to_string(), None, set.to_vec()));
    }
    for (at, (key, list)) in vary.iter().enumerate() {
        if vary[..at].iter().any(|(other, _)| other == key) {
            return Err(Error::Usage(format!(
                "--vary {key}: the key is there twice; write {key}=a,b,c"
            )));
        }
        let values =
            values(list).map_err(|message| Error::Usage(format!("--vary {key}: {message}")))?;
        if values.iter().any(String::is_empty) {
            return Err(Error::Usage(format!("--vary {key}: an empty value; write {key}=a,b,c")));
        }
        let short = key.rsplit('.').next().unwrap_or(key);
        let combined = |arm: &Arm, value: &str| {
            let label =
                if short == "kind" { value.to_string() } else { format!("{short}={value}") };
            let mut overrides = arm.overrides.clone();
            overrides.push((key.to_string(), value.to_string()));
            let name = match (&arm.variant, arm.varied) {
                (None, 0) => label,
                _ => format!("{} {label}", arm.name),
            };
            Arm { varied: arm.varied + 1, ..Arm::new(name, arm.variant.clone(), overrides) }
        };
        arms =
            arms.iter().flat_map(|arm| values.iter().map(|value| combined(arm, value))).collect();
    }
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    if let Some(twice) =
        names.iter().enumerate().find_map(|(at, name)| names[..at].contains(name).then_some(name))
    {
        return Err(Error::Usage(format!(
            "{twice:?} is there twice; give each value of --vary once"
        )));
    }
    if arms.len() < 2 && !has_seeds {
        let hint =
            "the scenario has no variants; add [[variant]] tables, --vary KEY=A,B, or --seeds N";
        return Err(Error::Usage(hint.to_string()));
    }
    Ok(arms)
}

/// Where variants and varied values multiply, most rows differ from the first in both: the reader
/// learns how to compare variants at one value.
fn one_baseline(arms: &[Arm], vary: &[(&str, &str)]) -> Option<String> {
    let first = arms.first()?;
    let variants = arms.iter().any(|arm| arm.variant != first.variant);
    let (key, values) = vary.first().filter(|_| variants)?;
    let value = values.split(',').next_back()?;
    Some(format!(
        "every row is compared with {:?}, also where {key} differs; to compare variants at one \
         value, set {key} to it, such as {value}, and do not vary it",
        first.name
    ))
}
