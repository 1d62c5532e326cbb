//! A sweep on disk: which runs there are, which of them are finished.
//!
//! ```text
//! OUT/sweep.json                       every point of the grid with its runs; later statistics
//! OUT/runs/KEY=VALUE,…/seed-N/         one run, there only when it is whole
//! OUT/.running/…                       runs that are being written
//! OUT/sweep.parquet, OUT/manifest.json at the end
//! ```
//!
//! A run is written beside its place and renamed into it, so what is in its place is finished,
//! however the sweep ended. A point is known by its values and by a hash of its resolved scenario;
//! runs of different scenarios or versions never meet in one folder.
//!
//! Invariant: opening a folder for the plan that it holds loses no finished run, and no run is done
//! twice; a damaged run is removed, so that it is run again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use millpond_core::random::hash_name;
use serde::{Deserialize, Serialize};

use crate::checksum::{read_sealed, sealed_text};
use crate::compare::{Difference, Estimate, Tree};
use crate::error::{At, Error, Result};
use crate::folder::{Folder, LOCK, folder_name, plain};
use crate::manifest::{Kind, MANIFEST, Manifest, is_result};
use crate::ordered::Ordered;
use crate::shows::ShownNumber;
use crate::summary::{SCHEMA, Status, Summary};
use crate::target::{Owner, check_target};
use crate::writer::{FLOWS, QUERIES};

/// The plan's name in the folder.
pub const SWEEP: &str = "sweep.json";
const RUNS: &str = "runs";
const RUNNING: &str = ".running";
/// Rows of a sweep: one a run.
pub(crate) const RESULTS: &str = "sweep.parquet";

/// `sweep.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Version of the results folder's form.
    pub schema: u32,
    /// The scenario's name.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// `complete` when all runs are, `stalled` or `failed` if one of them is, `interrupted` before
    /// the end.
    pub status: Status,
    /// What the command line set in every run, as `key=value`.
    pub overrides: Vec<String>,
    /// What is varied. The last key varies fastest.
    pub grid: Vec<Axis>,
    /// The seeds of each point.
    pub seeds: Vec<u64>,
    /// The numbers that are shown; absent: those that suit the traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<String>,
    /// The points, in the order of the grid.
    pub points: Vec<Point>,
}

/// One key of the grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The key; `variant` for the scenario's variants.
    pub key: String,
    /// Its values, as written.
    pub values: Vec<String>,
}

/// One point of the grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// From 1.
    pub point: u32,
    /// The value of each key.
    pub values: Ordered<String>,
    /// Hash of its resolved scenario (without the seed).
    pub identity: String,
    /// Why it is left out, if it is.
    pub skipped: Option<String>,
    /// One for each seed; none if it is left out.
    pub runs: Vec<SweepRun>,
    /// The warnings of its runs, each once.
    pub warnings: Vec<String>,
    /// The summary's numbers over the complete runs; `null` before the end.
    pub statistics: Option<Tree<Estimate>>,
    /// The point that this one is compared with: the same values but of one key.
    #[serde(default)]
    pub against: Option<u32>,
    /// The differences to that point, paired by seed; `null` before the end and where there is
    /// none.
    #[serde(default)]
    pub differences: Option<Tree<Difference>>,
    /// The numbers that tables and pages show, by their names in `shows`.
    #[serde(default)]
    pub shows: Ordered<ShownNumber>,
}

/// One run of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRun {
    /// From 1 over the whole sweep.
    pub run: u32,
    /// Its seed.
    pub seed: u64,
    /// Its folder, relative to the sweep's.
    pub folder: String,
    /// How it ended; `null` if it has not been run to its end.
    pub status: Option<Status>,
    /// Why it failed.
    pub reason: Option<String>,
}

impl Sweep {
    /// The plan: a point for each element of `points`, which is (values, the scenario as resolved
    /// or why it cannot be).
    pub fn new(
        name: &str,
        version: &str,
        grid: Vec<Axis>,
        seeds: Vec<u64>,
        points: Vec<(Vec<String>, std::result::Result<String, String>)>,
    ) -> Sweep {
        let mut number = 0;
        let point = |(at, (values, resolved)): (
            usize,
            (Vec<String>, std::result::Result<String, String>),
        )| {
            let values: Vec<_> = grid.iter().map(|axis| axis.key.clone()).zip(values).collect();
            let mut point =
                Point { point: at as u32 + 1, values: Ordered::from(values), ..Point::default() };
            match resolved {
                Ok(resolved) => {
                    point.identity = identity_of(&resolved);
                    let folder = format!("{RUNS}/{}", point_folder(&point.values));
                    for &seed in &seeds {
                        number += 1;
                        let folder = format!("{folder}/seed-{seed}");
                        point.runs.push(SweepRun {
                            run: number,
                            seed,
                            folder,
                            ..SweepRun::default()
                        });
                    }
                }
                Err(reason) => point.skipped = Some(reason),
            }
            point
        };
        let points = points.into_iter().enumerate().map(point).collect();
        Sweep {
            schema: SCHEMA,
            name: name.into(),
            version: version.into(),
            status: Status::Interrupted,
            overrides: Vec::new(),
            grid,
            seeds,
            shows: Vec::new(),
            points,
        }
    }

    /// Reads `DIR/sweep.json`.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Malformed`] if its checksum is wrong.
    pub fn read(dir: &Path) -> Result<Sweep> {
        read_sealed(&dir.join(SWEEP))
    }

    /// All runs, each with its point.
    pub fn runs(&self) -> impl Iterator<Item = (&Point, &SweepRun)> {
        self.points.iter().flat_map(|point| point.runs.iter().map(move |run| (point, run)))
    }

    /// The plan, with the finished runs of `out` that are of its points but of other seeds: what it
    /// is when a sweep grows. Runs of another version or of a changed scenario are not among them.
    pub fn grown(mut self, out: &Path) -> Sweep {
        let Ok(old) = Sweep::read(out) else { return self };
        if old.version != self.version {
            return self;
        }
        let mut number = 0;
        for point in &mut self.points {
            let same =
                |other: &&Point| other.values == point.values && other.identity == point.identity;
            let runs = old.points.iter().find(same).map_or(&[][..], |other| &other.runs);
            for run in runs {
                let is_there = || is_complete(out, run) || run.is_damaged(out);
                if !point.runs.iter().any(|own| own.seed == run.seed) && is_there() {
                    point.runs.push(SweepRun { status: None, reason: None, ..run.clone() });
                    if !self.seeds.contains(&run.seed) {
                        self.seeds.push(run.seed);
                    }
                }
            }
            point.runs.sort_by_key(|run| run.seed);
            for run in &mut point.runs {
                number += 1;
                run.run = number;
            }
        }
        self.seeds.sort_unstable();
        self
    }

    /// What makes this another sweep than `old`, in words; `None` if they are the same.
    pub fn change_from(&self, old: &Sweep) -> Option<String> {
        let keys = |sweep: &Sweep| {
            let axis = |axis: &Axis| format!("{}={}", axis.key, axis.values.join(","));
            sweep.grid.iter().map(axis).collect::<Vec<_>>().join(" ")
        };
        let seeds = |sweep: &Sweep| match sweep.seeds.as_slice() {
            [] => String::new(),
            [only] => only.to_string(),
            [first, .., last] => format!("{first}..{last}"),
        };
        let checks = [
            ("millpond", old.version.clone(), self.version.clone()),
            ("the scenario's name", old.name.clone(), self.name.clone()),
            ("--grid", keys(old), keys(self)),
            ("--seeds", seeds(old), seeds(self)),
            ("--set", old.overrides.join(" "), self.overrides.join(" ")),
        ];
        for (what, old, new) in checks {
            if old != new {
                return Some(format!("{what} was {old:?}, now it is {new:?}"));
            }
        }
        let same = |(a, b): (&Point, &Point)| a.values == b.values && a.identity == b.identity;
        let scenario =
            self.points.len() == old.points.len() && self.points.iter().zip(&old.points).all(same);
        (!scenario).then(|| "the scenario has changed since".to_string())
    }
}

/// The hash of a point's scenario.
fn identity_of(scenario: &str) -> String {
    format!("{:016x}", hash_name(&without_shows(scenario)))
}

/// A resolved scenario without the numbers that it shows, which change no run.
pub fn without_shows(scenario: &str) -> String {
    scenario.split_inclusive('\n').filter(|line| !line.starts_with("shows = ")).collect()
}

/// The name of a point's folder.
pub fn point_folder(values: &Ordered<String>) -> String {
    let label: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let label = if label.is_empty() { "base".to_string() } else { label.join(",") };
    folder_name(&label)
}

/// The folder of a sweep, locked for as long as this lives.
#[derive(Debug)]
pub struct SweepFolder {
    out: PathBuf,
    /// What was found damaged and removed.
    damaged: Vec<String>,
    _lock: File,
}

impl SweepFolder {
    /// Opens `out` for a plan: makes the folder, or continues a sweep of the same plan. With
    /// `force`, runs of another plan and other results make way, except for runs that both plans
    /// share.
    ///
    /// # Errors
    /// [`Error::OtherSweep`] if the folder holds runs of another plan, and [`Error::IsFile`],
    /// [`Error::NotAResult`], [`Error::OtherResult`] or [`Error::ForeignFiles`] if it holds
    /// something else, unless `force` is on. [`Error::Busy`] if another process writes it,
    /// [`Error::Io`] if the file system refuses.
    pub fn open(out: &Path, sweep: &Sweep, force: bool) -> Result<SweepFolder> {
        let out = &plain(out);
        let old = Sweep::read(out).ok();
        let lost_plan = old.is_none() && out.join(SWEEP).is_file() && out.join(RUNS).is_dir();
        if old.is_none() && !lost_plan && !is_empty(out) {
            // A sweep goes on in its own folder; whatever else is there gives way by force alone.
            check_target(out, &Owner::new(Kind::Sweep, &sweep.name), force)?;
            if !force {
                return Err(Error::NotAResult(
                    out.to_path_buf(),
                    format!("the result of a sweep, but no {SWEEP}"),
                ));
            }
            return SweepFolder::replace(out, sweep);
        }
        fs::create_dir_all(out).at("create", out)?;
        let mut folder =
            SweepFolder { out: out.to_path_buf(), damaged: Vec::new(), _lock: lock(out)? };
        match old {
            Some(old) => folder.adopt(&old, sweep, force)?,
            None if lost_plan => folder.adopt_by_manifests(sweep, force)?,
            None => {}
        }
        folder.remove_damaged(sweep)?;
        remove(&out.join(RUNNING))?;
        folder.write(sweep)?;
        Ok(folder)
    }

    /// A new folder in place of something else, at once.
    fn replace(out: &Path, sweep: &Sweep) -> Result<SweepFolder> {
        let owner = Owner::new(Kind::Sweep, &sweep.name);
        let next = Folder::create(out, &owner, true)?;
        crate::write_file(&next.path().join(SWEEP), sealed_text(sweep).as_bytes())?;
        let out = next.exchange()?;
        Ok(SweepFolder { _lock: lock(&out)?, damaged: Vec::new(), out })
    }

    /// The runs that were found damaged when the folder was opened, each with the reason. They are
    /// removed, so that they are run again.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Whether a run is complete or stalled in the folder.
    pub fn has(&self, run: &SweepRun) -> bool {
        is_complete(&self.out, run)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.out
    }

    /// Makes the empty folder that a run is written to before it is whole. Returns its path.
    ///
    /// # Errors
    /// [`Error::Io`] if an older one cannot be removed or the folder cannot be made.
    pub fn begin(&self, run: &SweepRun) -> Result<PathBuf> {
        let dir = self.out.join(RUNNING).join(run.run.to_string());
        remove(&dir)?;
        fs::create_dir_all(&dir).at("create", &dir)?;
        Ok(dir)
    }

    /// Moves a run that is whole to its place.
    ///
    /// # Errors
    /// [`Error::Io`] if an older one cannot be removed or the folder cannot be renamed.
    pub fn end(&self, run: &SweepRun, dir: &Path) -> Result<()> {
        let place = self.out.join(&run.folder);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        remove(&place)?;
        fs::rename(dir, &place).at("rename", dir)
    }

    /// Removes the folder of a run that did not end.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be removed.
    pub fn discard(&self, dir: &Path) -> Result<()> {
        remove(dir)
    }

    /// Removes what only running sweeps need. What cannot be removed is removed by the next one.
    pub(crate) fn tidy(&self) {
        let _ = remove(&self.out.join(RUNNING));
    }

    /// Writes the plan; a reader sees the old or the new one.
    pub(crate) fn write(&self, sweep: &Sweep) -> Result<()> {
        let (next, path) = (self.out.join(".sweep.json"), self.out.join(SWEEP));
        crate::write_file(&next, sealed_text(sweep).as_bytes())?;
        fs::rename(&next, &path).at("replace", &path)
    }

    /// Removes the runs of the plan whose files are not what was written.
    fn remove_damaged(&mut self, sweep: &Sweep) -> Result<()> {
        for (_, run) in sweep.runs() {
            let place = self.out.join(&run.folder);
            if place.is_dir()
                && let Err(error) = Manifest::verified(&place)
            {
                self.damaged.push(error.to_string());
                remove(&place)?;
            }
        }
        Ok(())
    }

    /// Goes on without `sweep.json`, which is damaged: a run of the plan is known by its manifest.
    fn adopt_by_manifests(&mut self, sweep: &Sweep, force: bool) -> Result<()> {
        for place in run_folders(&self.out)? {
            let manifest = Manifest::verified(&self.out.join(&place));
            let known = sweep.runs().find(|(_, run)| Path::new(&run.folder) == place);
            let is_ours = match (&known, &manifest) {
                (None, _) => false,
                (Some((point, run)), Ok(manifest)) => is_of(manifest, sweep, point, run),
                // It is removed with the damaged ones.
                (Some(_), Err(_)) => true,
            };
            if is_ours {
                continue;
            }
            if !force {
                let change =
                    format!("{SWEEP} is damaged, and {} is no run of this sweep", place.display());
                return Err(Error::OtherSweep { path: self.out.clone(), change });
            }
            remove(&self.out.join(&place))?;
        }
        self.damaged.push(format!(
            "{}: is damaged; its runs have manifests of their own",
            self.out.join(SWEEP).display()
        ));
        [MANIFEST, RESULTS, FLOWS, QUERIES].iter().try_for_each(|name| remove(&self.out.join(name)))
    }

    /// Goes on with the runs of `old`, as far as they are those of `new`.
    fn adopt(&self, old: &Sweep, new: &Sweep, force: bool) -> Result<()> {
        let Some(change) = new.change_from(old) else { return Ok(()) };
        if !force {
            return Err(Error::OtherSweep { path: self.out.clone(), change });
        }
        let shared = |point: &Point, run: &SweepRun| {
            let same = |(p, r): (&Point, &SweepRun)| {
                p.identity == point.identity && r.folder == run.folder
            };
            old.version == new.version && new.runs().any(same)
        };
        for (point, run) in old.runs() {
            if !shared(point, run) {
                // The path is made anew: what a file says is not to choose what is removed.
                let folder = self.out.join(RUNS).join(point_folder(&point.values));
                remove(&folder.join(format!("seed-{}", run.seed)))?;
                // The point's folder goes with its last run.
                let _ = fs::remove_dir(folder);
            }
        }
        for name in [MANIFEST, RESULTS, FLOWS, QUERIES] {
            remove(&self.out.join(name))?;
        }
        Ok(())
    }
}

/// The folders of runs in a sweep's folder, relative to it, in order.
fn run_folders(out: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let folders = |place: &Path| -> Result<Vec<PathBuf>> {
        let dir = out.join(place);
        let entries = fs::read_dir(&dir)
            .at("read", &dir)?
            .collect::<io::Result<Vec<_>>>()
            .at("read", &dir)?;
        let below = entries.iter().map(|entry| place.join(entry.file_name()));
        Ok(below.filter(|place| out.join(place).is_dir()).collect())
    };
    for point in folders(Path::new(RUNS))? {
        found.extend(folders(&point)?);
    }
    found.sort();
    Ok(found)
}

/// Whether a run's manifest is that of this run of the plan.
fn is_of(manifest: &Manifest, sweep: &Sweep, point: &Point, run: &SweepRun) -> bool {
    // A point's identity is that of its scenario with seed 0.
    let own = format!("seed = {}", manifest.seed);
    let lines = manifest.scenario.lines().map(|line| if line == own { "seed = 0" } else { line });
    let scenario: String = lines.flat_map(|line| [line, "\n"]).collect();
    manifest.version == sweep.version
        && manifest.seed == run.seed
        && identity_of(&scenario) == point.identity
}

/// Whether a run is complete or stalled in a sweep's folder, whose files are as they were written.
fn is_complete(out: &Path, run: &SweepRun) -> bool {
    summary_of(out, run).is_some_and(|summary| summary.status.is_final())
}

/// The summary of a finished run in a sweep's folder; `None` if it must be run (again).
pub(crate) fn summary_of(out: &Path, run: &SweepRun) -> Option<Summary> {
    let dir = out.join(&run.folder);
    let summary = Summary::read(&dir).ok()?;
    (is_result(&dir) && summary.seed == run.seed && summary.status != Status::Interrupted)
        .then_some(summary)
}

impl SweepRun {
    /// The run's summary, if it is complete or stalled in the sweep's folder and its files are what
    /// was written. A failed run and a damaged one are run again.
    pub fn finished(&self, out: &Path) -> Option<Summary> {
        Manifest::verified(&out.join(&self.folder)).ok()?;
        summary_of(out, self).filter(|summary| summary.status.is_final())
    }

    /// Whether the run has a folder there, whose files are not what was written.
    fn is_damaged(&self, out: &Path) -> bool {
        let place = out.join(&self.folder);
        place.is_dir() && Manifest::verified(&place).is_err()
    }
}

fn is_empty(out: &Path) -> bool {
    match fs::read_dir(out) {
        Ok(mut entries) => entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == LOCK)),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes a file or a folder with all that is in it, if it is there.
fn remove(path: &Path) -> Result<()> {
    let is_dir = match fs::symlink_metadata(path) {
        Ok(meta) => meta.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).at("look at", path),
    };
    if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) }.at("remove", path)
}

/// Keeps a second sweep out. The file stays; the lock ends with the process.
fn lock(out: &Path) -> Result<File> {
    let path = out.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .at("create", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            return Err(Error::Busy { path: out.to_path_buf(), holder: text.trim().parse().ok() });
        }
        // A file system without locks: its users must take care themselves.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error).at("lock", &path),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).at("write", &path)?;
    Ok(file)
}
