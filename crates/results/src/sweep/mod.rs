//! A sweep on disk: which runs there are, which of them are finished.
//!
//! ```text
//! OUT/sweep.json                       every point of the grid with its runs; at end, statistics
//! OUT/runs/KEY=VALUE,…/seed-N/         one run, there only when it is whole
//! OUT/.running/…                       runs that are being written
//! OUT/sweep.parquet, OUT/manifest.json at the end
//! ```
//!
//! A run is written beside its place and renamed into it, so what is in its place is finished,
//! however the sweep ended. A point is known by its values and its scenario's identity;
//! runs of different scenarios or versions never meet in one folder.
//!
//! Invariant: opening a folder for the plan that it holds loses no finished run, and no run is done
//! twice; a damaged run is removed, so that it is run again.

use crate::model::{Point, RUNS, SWEEP, Sweep, SweepRun, is_complete, point_folder};
pub(crate) mod finish;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::folder::lock::{self, LOCK};
use crate::folder::target::{Owner, check_target};
use crate::folder::{Folder, plain, share};
use crate::model::{
    At, Error, FLOWS, Kind, MANIFEST, Manifest, QUERIES, RESULTS, Result, replace_file, sealed_text,
};

const RUNNING: &str = ".running";

/// The folder of a sweep, locked for as long as this lives.
#[derive(Debug)]
pub struct SweepFolder {
    out: PathBuf,
    /// Runs that were found damaged and are removed.
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
            SweepFolder { out: out.to_path_buf(), damaged: Vec::new(), _lock: locked(out)? };
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
        crate::model::files::write_file(&next.path().join(SWEEP), sealed_text(sweep).as_bytes())?;
        let out = next.exchange()?;
        Ok(SweepFolder { _lock: locked(&out)?, damaged: Vec::new(), out })
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

    /// Takes the finished runs of another folder of the same plan that this one does not have,
    /// without damaged ones. Both share files where the file system can. Returns how many it took.
    ///
    /// # Errors
    /// As [`check_shard`], or [`Error::Io`] if a run cannot be copied.
    pub fn take_from(&self, other: &Path, sweep: &Sweep) -> Result<usize> {
        check_shard(other, sweep)?;
        let mut taken = 0;
        for (_, run) in sweep.runs().filter(|(_, run)| !self.has(run)) {
            if run.finished(other).is_none() {
                continue;
            }
            let dir = self.begin(run)?;
            share(&other.join(&run.folder), &dir)?;
            self.end(run, &dir)?;
            taken += 1;
        }
        Ok(taken)
    }

    /// Removes the folder of a run that did not end.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be removed.
    pub fn discard(&self, dir: &Path) -> Result<()> {
        remove(dir)
    }

    /// Removes what only running sweeps need. The next one removes what is left.
    pub fn tidy(&self) {
        let _ = remove(&self.out.join(RUNNING));
    }

    /// Writes the plan; a reader sees the old or the new one.
    pub(crate) fn write(&self, sweep: &Sweep) -> Result<()> {
        replace_file(&self.out, SWEEP, sealed_text(sweep).as_bytes())
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
            old.results == new.results && new.runs().any(same)
        };
        for (point, run) in old.runs() {
            if !shared(point, run) {
                // The path is made anew: a file must not choose what is removed.
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

/// Checks that a folder holds runs of this plan, which [`SweepFolder::take_from`] can take.
///
/// # Errors
/// [`Error::OtherShard`] if the folder holds another plan, [`Error::Io`] or [`Error::Malformed`] if
/// it holds none that can be read.
pub fn check_shard(other: &Path, sweep: &Sweep) -> Result<()> {
    match sweep.change_from(&Sweep::read(other)?) {
        Some(change) => Err(Error::OtherShard { path: other.to_path_buf(), change }),
        None => Ok(()),
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
    manifest.results == sweep.results
        && manifest.seed == run.seed
        && manifest.identity == point.identity
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
fn locked(out: &Path) -> Result<File> {
    let path = out.join(LOCK);
    let mut file = lock::open(out).at("create", &path)?;
    lock::take(&mut file, out)?;
    lock::sign(&mut file).at("write", &path)?;
    Ok(file)
}
