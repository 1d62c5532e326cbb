//! The results folder on disk: written as `OUT.partial`, renamed to `OUT` when whole.
//!
//! While a run lasts, `OUT.partial/progress.json` has its progress. A lock on a file in
//! `OUT.partial` keeps a second run out; the system drops it when the process ends in whatever way,
//! so what a killed run leaves is taken over by the next.
//!
//! A command of many runs opens its folder by [`Folder::resume`]: runs that are finished stay in
//! `OUT.partial` if it is stopped, in whatever way, and the same command goes on with them. Nobody
//! else removes them without force. Without force it also takes the finished runs of `OUT`, but for
//! those of the lab: another measurement by the wall clock differs.
//!
//! Invariant: `OUT` is always either what it was before or a whole new result. For the instant of
//! the exchange an older result is moved into `OUT.partial`; should the process die right then, the
//! next run puts it back before anything else.

pub(crate) mod lock;
pub(crate) mod target;

use crate::model::folder_name;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::folder::lock::LOCK;
use crate::folder::target::{Owner, check_target};
use crate::model::{
    At, Error, Kind, MANIFEST, Manifest, Result, World, is_result, remove_if_there,
};

/// The older result, during and after the exchange.
const REPLACED: &str = ".replaced";
const PROGRESS: &str = "progress.json";
const PROGRESS_NEXT: &str = ".progress.json";

/// How far a run is: `progress.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds of virtual time passed.
    pub simulated_s: f64,
    /// Seconds of virtual time to reach; `None` if the run ends with its flows.
    pub horizon_s: Option<f64>,
    /// From 0 to 1, where it is known.
    pub fraction: Option<f64>,
    /// Packet-hops made.
    pub packet_hops: u64,
    /// Packet-hops a second of the wall clock.
    pub packet_hops_per_s: f64,
    pub flows_started: u64,
    pub flows_completed: u64,
    /// Seconds by the wall clock.
    pub wall_s: f64,
    /// Seconds that remain, where they can be estimated.
    pub eta_s: Option<f64>,
    /// The stage: `running`, `writing` and the like.
    pub status: String,
}

/// A results folder that is being written. Dropped without [`Folder::commit`], it removes what it
/// wrote; one that was opened by [`Folder::resume`] leaves the runs that are finished.
#[derive(Debug)]
pub struct Folder {
    out: PathBuf,
    partial: PathBuf,
    owner: Owner,
    force: bool,
    /// Runs of an earlier command that were found damaged.
    damaged: Vec<String>,
    /// Held for as long as the folder is written.
    _lock: File,
    /// The part that dropping it leaves.
    leaves: Leaves,
}

/// A finished run: its folder, relative to `OUT.partial`, and its manifest.
type Found = (PathBuf, Manifest);

/// The part of `OUT.partial` that dropping a folder leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    Nothing,
    FinishedRuns,
    All,
}

impl Folder {
    /// Prepares to write `out`: checks that `owner` may replace it, makes its parent folders and
    /// `OUT.partial`.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::IsFile`], [`Error::NotAResult`], [`Error::OtherResult`] and
    /// [`Error::ForeignFiles`] if `out` must not be replaced; `force` lifts all but the first two.
    /// [`Error::Busy`] if another process writes it, [`Error::Unfinished`] if an interrupted
    /// command left finished runs and `force` is off, [`Error::InTheWay`] if something else has the
    /// temporary name. [`Error::Io`] if the file system refuses.
    pub fn create(out: &Path, owner: &Owner, force: bool) -> Result<Folder> {
        Folder::open(out, owner, force, Leaves::Nothing, &|_, _| false)
    }

    /// Does the same for a command of many runs. It keeps the finished runs in `OUT.partial`, and
    /// without force those of `OUT` that are not the lab's, for which `mine` returns true, given
    /// the folder of a run (relative to either) and its manifest.
    ///
    /// # Errors
    /// As [`Folder::create`]; [`Error::Unfinished`] only if a finished run is not `mine` and
    /// `force` is off.
    pub fn resume(
        out: &Path,
        owner: &Owner,
        force: bool,
        mine: &dyn Fn(&Path, &Manifest) -> bool,
    ) -> Result<Folder> {
        Folder::open(out, owner, force, Leaves::FinishedRuns, mine)
    }

    fn open(
        out: &Path,
        owner: &Owner,
        force: bool,
        leaves: Leaves,
        mine: &dyn Fn(&Path, &Manifest) -> bool,
    ) -> Result<Folder> {
        let out = &plain(out);
        // A link to a folder is followed, so that the temporary folder is on the same file system
        // as the result.
        let is_link = fs::symlink_metadata(out).is_ok_and(|meta| meta.is_symlink());
        let out = if is_link {
            fs::canonicalize(out).at("follow the link", out)?
        } else {
            out.to_path_buf()
        };
        if out.file_name().is_none() {
            return Err(Error::BadName(out));
        }
        check_target(&out, owner, force)?;
        if let Some(parent) = out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        let partial = beside(&out, ".partial");
        let lock = acquire(&partial)?;
        // From here on, dropping the folder cleans up, but for what an interrupted command has
        // left.
        let mut folder = Folder {
            out,
            partial,
            owner: owner.clone(),
            force,
            damaged: Vec::new(),
            _lock: lock,
            leaves: Leaves::FinishedRuns,
        };
        folder.put_back()?;
        let (mut finished, broken) = finished_runs(&folder.partial)?;
        folder.damaged = broken;
        folder.damaged.extend(damaged(&folder.partial, &mut finished));
        let before = finished.len();
        finished.retain(|(place, manifest)| mine(place, manifest));
        if finished.len() < before && !force {
            folder.leaves = Leaves::All;
            return Err(Error::Unfinished {
                path: folder.partial.clone(),
                runs: before - finished.len(),
            });
        }
        let kept: Vec<PathBuf> = finished.into_iter().map(|(place, _)| place).collect();
        folder.clear(&kept)?;
        check_target(&folder.out, &folder.owner, force)?;
        if leaves == Leaves::FinishedRuns && !force {
            folder.take_over(mine)?;
        }
        folder.leaves = leaves;
        Ok(folder)
    }

    /// Shares the runs that `mine` accepts of the result in the folder's place, if they are whole:
    /// nobody makes them again.
    fn take_over(&mut self, mine: &dyn Fn(&Path, &Manifest) -> bool) -> Result<()> {
        // Without a result there are none.
        let Ok((mut finished, broken)) = finished_runs(&self.out) else { return Ok(()) };
        finished.retain(|(place, manifest)| {
            manifest.world != World::Lab
                && mine(place, manifest)
                && !self.partial.join(place).exists()
        });
        self.damaged.extend(broken);
        self.damaged.extend(damaged(&self.out, &mut finished));
        let share = |(place, _): &Found| share(&self.out.join(place), &self.partial.join(place));
        finished.iter().try_for_each(share)
    }

    /// The runs of an earlier command that were found damaged when the folder was opened, each with
    /// the reason. They are left out, so that they are run again.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Where files are written until the commit: `OUT.partial`.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// The path that the folder will have.
    pub fn target(&self) -> &Path {
        &self.out
    }

    /// Makes a folder within, one level a part, each named by [`folder_name`]: `["ecmp",
    /// "seed-1"]`. Returns its path.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be made.
    pub fn subfolder(&self, parts: &[&str]) -> Result<PathBuf> {
        let path =
            parts.iter().fold(self.partial.clone(), |path, part| path.join(folder_name(part)));
        fs::create_dir_all(&path).at("create", &path)?;
        Ok(path)
    }

    /// Replaces `OUT.partial/progress.json` at once, so that a reader never sees a part of it.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written or replaced.
    pub fn progress(&self, progress: &Progress) -> Result<()> {
        let (next, path) = (self.partial.join(PROGRESS_NEXT), self.partial.join(PROGRESS));
        let mut text =
            serde_json::to_string(progress).map_err(io::Error::from).at("write", &path)?;
        text.push('\n');
        fs::write(&next, text).at("write", &next)?;
        fs::rename(&next, &path).at("replace", &path)
    }

    /// Gives the folder its name, in place of an older result. Returns its path.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the manifest, which is written last, is missing or damaged; the
    /// target is untouched then. [`Error::Io`] if the file system refuses to rename, and the errors
    /// of [`Folder::create`] if the target has changed meanwhile.
    pub fn commit(self) -> Result<PathBuf> {
        if !is_result(&self.partial) {
            let reason = "is missing or not whole, so the results are not either".to_string();
            return Err(Error::Malformed { path: self.partial.join(MANIFEST), reason });
        }
        self.exchange()
    }

    /// The same for the folder of a command that goes on within it.
    pub(crate) fn exchange(mut self) -> Result<PathBuf> {
        for name in [PROGRESS, PROGRESS_NEXT] {
            remove_if_there(&self.partial.join(name))?;
        }
        check_target(&self.out, &self.owner, self.force)?;
        let replaced = self.partial.join(REPLACED);
        if self.out.exists() {
            fs::rename(&self.out, &replaced).at("move aside", &self.out)?;
        }
        // If this fails, dropping the folder moves the older result back.
        fs::rename(&self.partial, &self.out).at("rename", &self.partial)?;
        self.leaves = Leaves::All;
        // The new result stands. Anything that cannot be tidied up now goes with it when it is
        // replaced itself.
        let _ = fs::remove_dir_all(self.out.join(REPLACED));
        let _ = fs::remove_file(self.out.join(LOCK));
        Ok(self.out.clone())
    }

    /// Leaves `OUT.partial` as it is, with what it holds so far, and `OUT` alone. Returns the path
    /// of the former.
    pub fn leave(mut self) -> PathBuf {
        self.leaves = Leaves::All;
        self.partial.clone()
    }

    /// Whether an older result that came to its end stands in the folder's place.
    pub fn would_replace_complete(&self) -> bool {
        Manifest::read(&self.out).is_ok_and(|manifest| manifest.status.is_final())
    }

    /// A note of the result that the commit will replace, if there is one: whose it is, and where.
    pub fn replaces(&self) -> Option<String> {
        let holder = Owner::of(&Manifest::read(&self.out).ok()?);
        let out = self.out.display();
        Some(format!("at its end this command replaces the results of {holder} in {out}"))
    }

    /// Puts back an older result that an exchange cut short left here.
    fn put_back(&self) -> Result<()> {
        let replaced = self.partial.join(REPLACED);
        if fs::symlink_metadata(&replaced).is_ok() && fs::symlink_metadata(&self.out).is_err() {
            fs::rename(&replaced, &self.out).at("move back", &replaced)?;
        }
        Ok(())
    }

    /// Puts back an older result, then removes everything but the lock and the folders in `kept`.
    fn clear(&self, kept: &[PathBuf]) -> Result<()> {
        self.put_back()?;
        self.clear_below(Path::new(""), kept)
    }

    fn clear_below(&self, place: &Path, kept: &[PathBuf]) -> Result<()> {
        let dir = self.partial.join(place);
        for entry in fs::read_dir(&dir).at("read", &dir)? {
            let entry = entry.at("read", &dir)?;
            let (below, path) = (place.join(entry.file_name()), entry.path());
            if below == Path::new(LOCK) || kept.contains(&below) {
                continue;
            }
            let is_dir = entry.file_type().at("look at", &path)?.is_dir();
            if is_dir && kept.iter().any(|kept| kept.starts_with(&below)) {
                self.clear_below(&below, kept)?;
                continue;
            }
            if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }
                .at("remove", &path)?;
        }
        Ok(())
    }
}

/// The complete runs in folders below a folder, recognised by their manifests, which are
/// written last; and why manifests that are there cannot be read.
fn finished_runs(root: &Path) -> Result<(Vec<Found>, Vec<String>)> {
    let (mut found, mut broken, mut places) = (Vec::new(), Vec::new(), vec![PathBuf::new()]);
    while let Some(place) = places.pop() {
        let dir = root.join(&place);
        for entry in fs::read_dir(&dir).at("read", &dir)? {
            let entry = entry.at("read", &dir)?;
            let is_dir = entry.file_type().at("look at", &entry.path())?.is_dir();
            if !is_dir || entry.file_name() == REPLACED {
                continue;
            }
            let below = place.join(entry.file_name());
            match Manifest::read(&entry.path()) {
                Ok(manifest) if manifest.kind == Kind::Run && manifest.status.is_final() => {
                    found.push((below, manifest));
                }
                Err(error) if entry.path().join(MANIFEST).is_file() => {
                    broken.push(error.to_string())
                }
                _ => places.push(below),
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    broken.sort();
    Ok((found, broken))
}

/// Makes a copy of a folder that shares its files where the file system can. The manifest comes
/// last: a copy that is cut short is no result.
pub(crate) fn share(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).at("create", to)?;
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to)?;
        File::open(to)?.sync_all()
    };
    let share_file = |name: &Path| {
        let (from, to) = (from.join(name), to.join(name));
        fs::hard_link(&from, &to).or_else(|_| copy(&from, &to)).at("copy", &to)
    };
    for entry in fs::read_dir(from).at("read", from)? {
        let entry = entry.at("read", from)?;
        let name = PathBuf::from(entry.file_name());
        if entry.file_type().at("look at", &entry.path())?.is_dir() {
            share(&entry.path(), &to.join(name))?;
        } else if name != Path::new(MANIFEST) {
            share_file(&name)?;
        }
    }
    match from.join(MANIFEST).exists() {
        true => share_file(Path::new(MANIFEST)),
        false => Ok(()),
    }
}

/// Takes the runs whose files are not what was written out of `finished`, and gives the reasons.
fn damaged(partial: &Path, finished: &mut Vec<Found>) -> Vec<String> {
    let mut reasons = Vec::new();
    finished.retain(|(place, _)| match Manifest::verified(&partial.join(place)) {
        Ok(_) => true,
        Err(error) => {
            reasons.push(error.to_string());
            false
        }
    });
    reasons
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.partial
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let kept = match self.leaves {
            Leaves::All => return,
            Leaves::Nothing => Vec::new(),
            // Files that cannot be distinguished are left to the next command.
            Leaves::FinishedRuns => match finished_runs(&self.partial) {
                Ok((finished, _)) => finished.into_iter().map(|(place, _)| place).collect(),
                Err(_) => return,
            },
        };
        // The lock goes last but for the folder itself: whoever finds a folder without it finds it
        // empty.
        if self.clear(&kept).is_ok() && kept.is_empty() {
            let _ = fs::remove_file(self.partial.join(LOCK));
            let _ = fs::remove_dir(&self.partial);
        }
    }
}

/// The path without parts that mean nothing, such as the dot of `OUT/.`, by which no folder can be
/// renamed.
pub(crate) fn plain(out: &Path) -> PathBuf {
    out.components().collect()
}

/// `OUT` with something appended to its last part.
fn beside(out: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(out.file_name().unwrap_or_default());
    name.push(suffix);
    out.with_file_name(name)
}

/// Makes `OUT.partial` if need be and locks it. The remains of a dead run there are taken over.
fn acquire(partial: &Path) -> Result<File> {
    let lock_path = partial.join(LOCK);
    // A run that ends at this moment may take the folder away under us: try again.
    for _ in 0..16 {
        match fs::create_dir(partial) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_leftover(partial)?,
            Err(error) => return Err(error).at("create", partial),
        }
        let mut file = match lock::open(partial) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.at("create", &lock_path)?,
        };
        lock::take(&mut file, partial)?;
        if same_file(&file, &lock_path) {
            if let Err(error) = lock::sign(&mut file) {
                let _ = fs::remove_file(&lock_path);
                let _ = fs::remove_dir(partial);
                return Err(error).at("write", &lock_path);
            }
            return Ok(file);
        }
    }
    Err(Error::Busy { path: partial.to_path_buf(), holder: None })
}

/// `OUT.partial` exists: fine if a run made it, which has a lock in it or died before it had
/// anything.
fn check_leftover(partial: &Path) -> Result<()> {
    let meta = match fs::symlink_metadata(partial) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).at("look at", partial),
    };
    let ours = meta.is_dir()
        && (partial.join(LOCK).exists()
            || fs::read_dir(partial).is_ok_and(|mut entries| entries.next().is_none()));
    // It may have gone, or got its lock, in between.
    if ours || !partial.exists() || partial.join(LOCK).exists() {
        return Ok(());
    }
    Err(Error::InTheWay(partial.to_path_buf()))
}

/// Whether the path still leads to this open file.
#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_file(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Status;
    use crate::test_dir;

    fn manifest(version: &str) -> Manifest {
        Manifest::new(version, "")
    }

    #[test]
    fn names_stay_inside_and_apart() {
        assert_eq!(folder_name("ecmp-2.5"), "ecmp-2.5");
        assert_eq!(folder_name(".."), "%2E.");
        assert_eq!(folder_name("a/b\\c"), "a%2Fb%5Cc");
        assert_eq!(folder_name(""), "%");
        assert_eq!(folder_name("report.html"), "report.html%");
        assert_eq!(folder_name("é%"), "%C3%A9%25");
    }

    #[test]
    fn odd_targets_are_refused() {
        let dir = test_dir("odd-targets");
        assert!(matches!(
            Folder::create(Path::new(".."), &Owner::default(), true),
            Err(Error::BadName(_))
        ));
        assert!(matches!(
            Folder::create(Path::new("/"), &Owner::default(), true),
            Err(Error::BadName(_))
        ));
        let file = dir.join("file");
        fs::write(&file, "x").unwrap();
        assert!(matches!(Folder::create(&file, &Owner::default(), true), Err(Error::IsFile(_))));
        assert!(matches!(
            Folder::create(&file.join("below"), &Owner::default(), false),
            Err(Error::Io { .. })
        ));
        fs::create_dir(dir.join("x.partial")).unwrap();
        fs::write(dir.join("x.partial/mine"), "").unwrap();
        assert!(matches!(
            Folder::create(&dir.join("x"), &Owner::default(), true),
            Err(Error::InTheWay(_))
        ));
        assert!(dir.join("x.partial/mine").exists());
    }

    #[test]
    fn a_second_run_is_kept_out_and_a_dropped_one_leaves_nothing() {
        let dir = test_dir("second-run");
        let out = dir.join("deep/x");
        let folder = Folder::create(&out, &Owner::default(), false).unwrap();
        folder.progress(&Progress::default()).unwrap();
        let read = || {
            serde_json::from_slice::<Progress>(
                &fs::read(dir.join("deep/x.partial/progress.json")).unwrap(),
            )
        };
        assert_eq!(read().unwrap(), Progress::default());
        let Err(Error::Busy { holder, .. }) = Folder::create(&out, &Owner::default(), true) else {
            panic!("not kept out")
        };
        assert_eq!(holder, Some(std::process::id()));
        assert!(matches!(folder.commit(), Err(Error::Malformed { .. })));
        assert_eq!(fs::read_dir(dir.join("deep")).unwrap().count(), 0);
        Folder::create(&out, &Owner::default(), false).unwrap();
    }

    #[test]
    fn finished_runs_are_kept_for_their_own_command() {
        let dir = test_dir("resume");
        let out = dir.join("x");
        let run = |folder: &Folder, place: &str, status| {
            let run = folder.path().join(place);
            fs::create_dir_all(&run).unwrap();
            Manifest { name: place.into(), status, ..manifest("1") }.write(&run).unwrap();
        };
        let mine = |place: &Path, manifest: &Manifest| {
            assert_eq!(place, Path::new(&manifest.name));
            place.starts_with("a")
        };
        let folder = Folder::resume(&out, &Owner::default(), false, &mine).unwrap();
        run(&folder, "a/seed-1", Status::Complete);
        run(&folder, "a/seed-2", Status::Interrupted);
        fs::create_dir(folder.path().join("b")).unwrap();
        drop(folder);
        let partial = dir.join("x.partial");
        assert!(
            partial.join("a/seed-1").exists()
                && !partial.join("a/seed-2").exists()
                && !partial.join("b").exists()
        );
        let folder = Folder::resume(&out, &Owner::default(), false, &mine).unwrap();
        assert!(folder.path().join("a/seed-1").exists());
        run(&folder, "b", Status::Complete);
        drop(folder);
        let refused = [
            Folder::resume(&out, &Owner::default(), false, &mine).map(drop),
            Folder::create(&out, &Owner::default(), false).map(drop),
        ];
        for (refused, left) in refused.into_iter().zip([1, 2]) {
            assert!(
                matches!(refused, Err(Error::Unfinished { runs, .. }) if runs == left),
                "{refused:?}"
            );
            assert!(partial.join("a/seed-1").exists() && partial.join("b").exists());
        }
        drop(Folder::resume(&out, &Owner::default(), true, &mine).unwrap());
        assert!(partial.join("a/seed-1").exists() && !partial.join("b").exists());
        drop(Folder::create(&out, &Owner::default(), true).unwrap());
        assert!(!partial.exists());
    }

    #[test]
    fn a_finished_result_gives_its_runs_to_the_same_command() {
        let dir = test_dir("take-over");
        let out = dir.join("x");
        let mine = |place: &Path, _: &Manifest| place.starts_with("a");
        let resume = |force| Folder::resume(&out, &Owner::default(), force, &mine).unwrap();
        let folder = resume(false);
        for place in ["a/seed-1", "a/seed-2", "a/lab", "b"] {
            let run = folder.path().join(place);
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join("summary.json"), place).unwrap();
            let world = if place == "a/lab" { World::Lab } else { World::Sim };
            Manifest { world, ..manifest("1") }.write(&run).unwrap();
        }
        manifest("1").write(folder.path()).unwrap();
        folder.commit().unwrap();
        fs::write(out.join("a/seed-2/summary.json"), "damaged").unwrap();
        let folder = resume(false);
        let text = fs::read_to_string(folder.path().join("a/seed-1/summary.json")).unwrap();
        assert_eq!(text, "a/seed-1");
        for left_out in ["a/seed-2", "a/lab", "b"] {
            assert!(!folder.path().join(left_out).exists(), "{left_out}");
        }
        let damaged = folder.damaged();
        assert!(matches!(damaged, [one] if one.contains("x/a/seed-2/summary.json")), "{damaged:?}");
        // An interrupted lab goes on.
        let lab = Manifest { world: World::Lab, ..manifest("1") };
        fs::create_dir(folder.path().join("a/lab")).unwrap();
        lab.write(&folder.path().join("a/lab")).unwrap();
        drop(folder);
        assert!(resume(false).path().join("a/lab").exists());
        fs::remove_dir_all(dir.join("x.partial")).unwrap();
        assert!(!resume(true).path().join("a/seed-1").exists(), "by force all are made again");
        assert!(out.join("b").exists() && out.join("a/seed-1/summary.json").exists());
    }

    #[test]
    fn an_exchange_cut_short_is_undone_by_the_next_run() {
        let dir = test_dir("cut-short");
        let out = dir.join("x");
        let old = dir.join("x.partial").join(REPLACED);
        fs::create_dir_all(&old).unwrap();
        fs::write(dir.join("x.partial").join(LOCK), "1").unwrap();
        manifest("0").write(&old).unwrap();
        drop(Folder::create(&out, &Owner::default(), false).unwrap());
        assert!(is_result(&out) && !dir.join("x.partial").exists());
    }

    #[test]
    fn a_rename_that_fails_keeps_the_older_result() {
        let dir = test_dir("rename-fails");
        let out = dir.join("x");
        fs::create_dir(&out).unwrap();
        manifest("0").write(&out).unwrap();
        let folder = Folder::create(&out, &Owner::default(), false).unwrap();
        manifest("1").write(folder.path()).unwrap();
        // Something in the place of the older result: moving it aside fails.
        fs::create_dir(folder.path().join(REPLACED)).unwrap();
        fs::write(folder.path().join(REPLACED).join("full"), "").unwrap();
        assert!(matches!(folder.commit(), Err(Error::Io { doing: "move aside", .. })));
        assert_eq!(Manifest::read(&out).unwrap().version, "0");
        assert_eq!(fs::read_dir(&*dir).unwrap().count(), 1);
    }
}
