//! `manifest.json`: what was run, by which version, where and when. It also marks a folder as a
//! millpond result.
//!
//! Invariant: it is written last, so a folder that has it is whole.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::checksum::{self, Seal};
use crate::model::error::{At, Error, Result};
use crate::model::files::replace_file;
use crate::model::summary::{SCHEMA, Status, World};

pub const MANIFEST: &str = "manifest.json";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    #[default]
    Run,
    /// Several variants, each in a subfolder.
    Compare,
    Sweep,
    /// The experiments of a paper, each a sweep in a subfolder.
    Reproduce,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub os: String,
    pub arch: String,
    /// Processors that the process may use.
    pub cpus: usize,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn this() -> Machine {
        Machine {
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }
}

/// A link that fails in a run, as the scenario has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkFailure {
    pub link: (String, String),
    /// Which one of several parallel links it is, from 0; absent: all of them, or there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// When it begins to fail, in microseconds of virtual time.
    pub at_us: f64,
    /// When it works again; `null`: never.
    pub until_us: Option<f64>,
    /// The share of its packets that are lost meanwhile: 1 is an outage.
    pub loss: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSize {
    /// Relative to the folder, with `/` between its parts.
    pub name: String,
    pub bytes: u64,
    /// Its XXH64 in hexadecimal. Files of subfolders have none: the runs' own manifests have
    /// theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// `manifest.json`. The caller fills in what it has with struct update syntax over
/// [`Manifest::new`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The mark of a millpond result: the version of the crate that wrote it.
    pub millpond: String,
    pub schema: u32,
    pub kind: Kind,
    /// The scenario's name. [`RunWriter::finish`](crate::RunWriter::finish) fills in this, world,
    /// seed, variant, status, warnings, `finished_at` and files.
    pub name: String,
    pub world: World,
    /// The seed; of a compare, the first.
    pub seed: u64,
    pub variant: Option<String>,
    /// The scenario's own description; absent without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The variant's own description; absent without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant_about: String,
    pub version: String,
    /// The revision that the program was built from, with `-dirty-HASH` if its sources differed;
    /// `unknown` without a repository.
    #[serde(default)]
    pub revision: String,
    /// [`millpond_core::RESULTS`]; 0 of a program that had no such number.
    #[serde(default)]
    pub results: u32,
    /// The scenario as resolved, in TOML: running it again gives the same results.
    pub scenario: String,
    /// The scenario's identity, which a finished run of it has, whatever its seed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identity: String,
    /// The folder from which files that the scenario still names are looked up; absent if it names
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<PathBuf>,
    /// The changes of the command line, as `key=value`.
    pub overrides: Vec<String>,
    /// The numbers that are shown; absent: those that suit the traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<String>,
    /// The links that fail, for charts over time; absent if none does, and of a folder of several
    /// runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<LinkFailure>,
    /// By host: its number in the files that the network was imported from, which exports give
    /// back; absent if hosts have no other numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_numbers: Vec<u32>,
    /// The destination ports of an imported list of flows: from which flow on each is theirs;
    /// absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<(u32, u16)>,
    /// Files beside the scenario that decide the result, such as a kernel, each with its XXH64;
    /// absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(String, String)>,
    pub machine: Machine,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// RFC 3339, UTC.
    pub finished_at: String,
    pub status: Status,
    pub warnings: Vec<String>,
    pub files: Vec<FileSize>,
}

impl Manifest {
    pub fn new(version: impl Into<String>, scenario: impl Into<String>) -> Manifest {
        Manifest {
            millpond: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA,
            version: version.into(),
            results: millpond_core::RESULTS,
            scenario: scenario.into(),
            machine: Machine::this(),
            started_at: now(),
            ..Manifest::default()
        }
    }

    /// Reads `DIR/manifest.json`.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub fn read(dir: &Path) -> Result<Manifest> {
        checksum::read_sealed(&dir.join(MANIFEST))
    }

    /// Reads the manifest of a folder that holds this `kind` of result in this version's form.
    ///
    /// # Errors
    /// As [`Manifest::read`]; [`Error::Malformed`] if the folder holds another kind, or the form of
    /// another version.
    pub fn read_kind(dir: &Path, kind: Kind) -> Result<Manifest> {
        let manifest = Manifest::read(dir)?;
        let reason = match () {
            () if manifest.schema != SCHEMA => format!(
                "has form {} (written by millpond {}), and this version reads form {SCHEMA}: run \
                 its scenario again",
                manifest.schema, manifest.millpond
            ),
            () if manifest.kind != kind => {
                format!("is of a {:?}, not of a {kind:?}", manifest.kind).to_lowercase()
            }
            () => return Ok(manifest),
        };
        Err(Error::Malformed { path: dir.join(MANIFEST), reason })
    }

    /// Lists the folder's files with their checksums, sets the time, and writes
    /// `DIR/manifest.json`.
    ///
    /// # Errors
    /// [`Error::Io`] if a file of the folder cannot be read or the manifest cannot be written.
    pub fn write(mut self, dir: &Path) -> Result<()> {
        self.finished_at = now();
        self.files.clear();
        list(dir, "", &mut self.files)?;
        self.seal(dir)
    }

    fn seal(&self, dir: &Path) -> Result<()> {
        replace_file(dir, MANIFEST, checksum::sealed_text(self).as_bytes())
    }

    /// Reads the manifest of a finished run and checks every file that it lists.
    ///
    /// # Errors
    /// Names the first file that is missing, damaged or without a checksum.
    pub fn verified(dir: &Path) -> Result<Manifest> {
        let path = dir.join(MANIFEST);
        match checksum::seal_of(&std::fs::read(&path).at("read", &path)?) {
            Seal::Whole => {}
            Seal::Broken => return Err(checksum::damaged(&path)),
            Seal::Missing => {
                let reason = "is damaged, or of an earlier version: it has no checksum".to_string();
                return Err(Error::Malformed { path, reason });
            }
        }
        let manifest = Manifest::read(dir)?;
        for file in &manifest.files {
            if file.checksum.is_none() || !file.is_whole(dir)? {
                return Err(checksum::damaged(&dir.join(&file.name)));
            }
        }
        Ok(manifest)
    }
}

impl FileSize {
    /// Whether the file has its checksum. One without a checksum in the manifest is taken as it is.
    fn is_whole(&self, dir: &Path) -> Result<bool> {
        let path = dir.join(&self.name);
        let Some(checksum) = &self.checksum else { return Ok(true) };
        let bytes = std::fs::metadata(&path).at("read", &path)?.len();
        Ok(bytes == self.bytes && checksum::of_file(&path)? == *checksum)
    }
}

/// Checks those of the files in `dir` that its manifest lists and `wanted` names.
///
/// # Errors
/// If one of them is damaged or missing, or the manifest is damaged. Without a manifest nothing is
/// known of the files, which is no error.
pub(crate) fn check_files(dir: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<()> {
    if !dir.join(MANIFEST).is_file() {
        return Ok(());
    }
    for file in Manifest::read(dir)?.files.iter().filter(|file| wanted(&file.name)) {
        if !file.is_whole(dir)? {
            return Err(checksum::damaged(&dir.join(&file.name)));
        }
    }
    Ok(())
}

/// Lists a file of `dir` anew, which a command has made again from the others.
pub(crate) fn list_again(dir: &Path, name: &str) -> Result<()> {
    let mut manifest = Manifest::read(dir)?;
    let Some(file) = manifest.files.iter_mut().find(|file| file.name == name) else {
        return Ok(());
    };
    let path = dir.join(name);
    let bytes = std::fs::metadata(&path).at("read", &path)?.len();
    *file = FileSize { name: name.into(), bytes, checksum: Some(checksum::of_file(&path)?) };
    manifest.seal(dir)
}

/// Whether the folder is a millpond result: its manifest carries our mark.
pub fn is_result(dir: &Path) -> bool {
    #[derive(Deserialize)]
    struct Mark {
        #[serde(rename = "millpond")]
        _millpond: String,
        #[serde(rename = "schema")]
        _schema: u32,
    }
    std::fs::read(dir.join(MANIFEST))
        .is_ok_and(|text| serde_json::from_slice::<Mark>(&text).is_ok())
}

/// `2026-01-31T12:00:00Z`.
fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// All files below `dir` in the order of their names, without hidden ones, progress and the
/// manifest itself.
fn list(dir: &Path, prefix: &str, files: &mut Vec<FileSize>) -> Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .at("read", dir)?
        .collect::<std::io::Result<Vec<_>>>()
        .at("read", dir)?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let skip = name.starts_with('.')
            || (prefix.is_empty() && (name == MANIFEST || name == "progress.json"));
        if skip {
            continue;
        }
        let meta = entry.metadata().at("read", &entry.path())?;
        let name = format!("{prefix}{name}");
        if meta.is_dir() {
            list(&entry.path(), &format!("{name}/"), files)?;
        } else {
            // Files in a subfolder are read once, by the command that wrote them.
            let checksum =
                if prefix.is_empty() { Some(checksum::of_file(&entry.path())?) } else { None };
            files.push(FileSize { name, bytes: meta.len(), checksum });
        }
    }
    Ok(())
}
