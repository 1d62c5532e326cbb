//! The pins in our folder under bpffs, and what its maps hold.
//!
//! ```text
//! <bpffs>/millpond/maps/…                      one pin a map
//! <bpffs>/millpond/links/<cgroup id>-egress    one pin an attachment
//! ```
//!
//! A pinned object lives as long as its pin: through the exit of this program, its death and its
//! upgrade. The check of who has made the folder, and its lock, are `folder`'s.
//!
//! Invariant: maps are written by whoever holds the lock, and only if their layout is ours.

use super::Error;
use super::capability::BPF;
use super::config::Config;
pub use super::folder::is_bpffs;
use super::folder::{FOLDER, Folder};
use super::layout::{self, Attachment, Head, LAYOUT, Label, SCOPE_BYTES, Statistics};
use super::link;
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapHandle};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel's bpf file system belongs.
pub const BPFFS: &str = "/sys/fs/bpf";
/// The maps that are pinned, as the programs name them.
pub const MAPS: [&str; 9] =
    ["head", "scopes", "queues", "counts", "attachments", "attached", "labels", "texts", "reports"];
/// The maps, pinned as well, of what connections are paced at and of whose windows are held: only
/// programs read them.
pub(super) const SOCKETS: [&str; 2] = ["paced", "held"];
/// The same of whose congestion control was chosen.
pub(super) const CHOSEN: &str = "chosen";
/// Bytes of text in one value of `texts`.
const PIECE: usize = 4092;
/// Where a scope's settings have its queue's form.
const FORM: usize = 60;

/// Both directions, as links are called.
pub const DIRECTIONS: [&str; 2] = ["egress", "ingress"];

#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub file: String,
    pub config: Config,
}

pub struct Store {
    folder: PathBuf,
    head: Table,
    scopes: Table,
    queues: Table,
    counts: Table,
    attachments: Table,
    attached: Table,
    labels: Table,
    texts: Table,
}

/// A pinned map, whose errors have its name.
struct Table {
    name: &'static str,
    map: MapHandle,
}

impl Table {
    fn open(folder: &Path, name: &'static str) -> Result<Table, Error> {
        Ok(Table { name, map: pinned_map(folder, name)? })
    }

    fn checked<T>(&self, done: libbpf_rs::Result<T>) -> Result<T, Error> {
        done.map_err(|e| Error::kernel(format!("map {}", self.name), &[BPF], &e))
    }

    /// A value with its lock held (`MapFlags::LOCK`), or none; `None` if the key is absent.
    fn read(&self, key: &[u8], flags: MapFlags) -> Result<Option<Vec<u8>>, Error> {
        self.checked(self.map.lookup(key, flags))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.read(key, MapFlags::ANY)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.checked(self.map.update(key, value, MapFlags::ANY))
    }

    /// Whether the key was there to be changed.
    fn is_there(&self, done: libbpf_rs::Result<()>) -> Result<bool, Error> {
        match done {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            done => self.checked(done).map(|()| true),
        }
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.is_there(self.map.delete(key))
    }
}

/// Our folder below a bpf file system.
pub fn folder(bpffs: &Path) -> PathBuf {
    bpffs.join(FOLDER)
}

pub fn map_path(folder: &Path, name: &str) -> PathBuf {
    folder.join("maps").join(name)
}

/// Where a cgroup's link of a direction is pinned.
pub fn link_path(folder: &Path, cgroup: u64, direction: usize) -> PathBuf {
    folder.join("links").join(format!("{cgroup}-{}", DIRECTIONS[direction]))
}

/// Where the link of a cgroup's `limit_sockets` is pinned.
pub fn pace_path(folder: &Path, cgroup: u64) -> PathBuf {
    folder.join("links").join(format!("{cgroup}-pace"))
}

/// Where the link of what chooses the congestion control of a cgroup's new connections is pinned.
pub fn congestion_path(folder: &Path, cgroup: u64) -> PathBuf {
    folder.join("links").join(format!("{cgroup}-congestion"))
}

/// A pinned map, of a folder that may be trusted.
pub(super) fn pinned(bpffs: &Path, name: &str) -> Result<MapHandle, Error> {
    Folder::find(bpffs)?.ok_or(Error::Nothing)?;
    pinned_map(&folder(bpffs), name)
}

fn pinned_map(folder: &Path, name: &str) -> Result<MapHandle, Error> {
    let path = map_path(folder, name);
    MapHandle::from_pinned_path(&path)
        .map_err(|e| Error::kernel(path.display().to_string(), &[BPF], &e))
}

/// A map's key of a bank.
fn banked(bank: u32, number: u32) -> [u8; 4] {
    (bank << 16 | number).to_ne_bytes()
}

impl Store {
    /// Opens the maps of the installed limits. Returns `None` if there are none, or only the
    /// remains of an interrupted first apply.
    ///
    /// # Errors
    /// [`Error::Layout`] if another version made them, [`Error::Foreign`] if another user owns the
    /// folder or may write it, [`Error::Kernel`] if a map cannot be opened.
    pub fn open(bpffs: &Path) -> Result<Option<Store>, Error> {
        if Folder::find(bpffs)?.is_none() {
            return Ok(None);
        }
        let folder = folder(bpffs);
        match head_of(&folder)?.layout {
            LAYOUT => Store::adopt(folder).map(Some),
            // Not finished.
            0 => Ok(None),
            found => Err(Error::Layout { found, ours: LAYOUT }),
        }
    }

    /// The maps of a folder that has them all.
    pub(super) fn adopt(folder: PathBuf) -> Result<Store, Error> {
        let map = |name| Table::open(&folder, name);
        Ok(Store {
            head: map("head")?,
            scopes: map("scopes")?,
            queues: map("queues")?,
            counts: map("counts")?,
            attachments: map("attachments")?,
            attached: map("attached")?,
            labels: map("labels")?,
            texts: map("texts")?,
            folder,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the head: the layout, the bank in force, and its flags.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read.
    pub fn head(&self) -> Result<Head, Error> {
        Ok(Head::from_bytes(&self.head.get(&[0; 4])?.unwrap_or_default()))
    }

    pub(super) fn bank(&self) -> Result<u32, Error> {
        Ok(self.head()?.bank & 1)
    }

    /// Writes the first value. The kernel copies it word by word, and layout and bank are one word.
    pub(super) fn put_head(&self, head: Head) -> Result<(), Error> {
        self.head.put(&[0; 4], &head.to_bytes())
    }

    /// Returns the scopes of a bank with their labels, in the order of their numbers.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read.
    pub fn labels(&self, bank: u32) -> Result<Vec<(u16, Label)>, Error> {
        let mut labels = Vec::new();
        for key in self.labels.map.keys() {
            let number = u32::from_ne_bytes(key.as_slice().try_into().unwrap_or_default());
            if number >> 16 != bank {
                continue;
            }
            let bytes = self.labels.get(&key)?;
            labels.extend(bytes.map(|bytes| (number as u16, Label::from_bytes(&bytes))));
        }
        labels.sort_by_key(|(id, _)| *id);
        Ok(labels)
    }

    /// Replaces the labels of a bank.
    pub(super) fn put_labels(&self, bank: u32, labels: &[(u16, Label)]) -> Result<(), Error> {
        for (id, _) in self.labels(bank)? {
            if !labels.iter().any(|(new, _)| *new == id) {
                self.labels.delete(&banked(bank, id.into()))?;
            }
        }
        let put = |(id, label): &(u16, Label)| {
            self.labels.put(&banked(bank, (*id).into()), &label.to_bytes())
        };
        labels.iter().try_for_each(put)
    }

    /// Returns the sources that a bank was made of.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read, [`Error::Request`] if its texts cannot be
    /// parsed.
    pub fn sources(&self, bank: u32) -> Result<Vec<Source>, Error> {
        parse(&text_of(&self.texts, bank)?)
    }

    /// Replaces what was applied, in a bank.
    pub(super) fn put_sources(&self, bank: u32, sources: &[Source]) -> Result<(), Error> {
        let list: Vec<(&str, String)> =
            sources.iter().map(|s| (s.file.as_str(), s.config.to_text())).collect();
        let text = serde_json::to_vec(&list).map_err(|e| Error::Request(e.to_string()))?;
        for (number, part) in text.chunks(PIECE).enumerate() {
            let mut value = (text.len() as u32).to_ne_bytes().to_vec();
            value.extend_from_slice(part);
            value.resize(4 + PIECE, 0);
            self.texts.put(&banked(bank, number as u32), &value)?;
        }
        let mut number = text.len().div_ceil(PIECE) as u32;
        while self.texts.delete(&banked(bank, number))? {
            number += 1;
        }
        Ok(())
    }

    /// Writes a scope's settings into one bank; the other stays as it is.
    pub(super) fn put_scope(&self, bank: u32, id: u16, scope: layout::Scope) -> Result<(), Error> {
        let mut bytes = self.scopes.get(&banked(0, id.into()))?.unwrap_or_default();
        bytes.resize(2 * SCOPE_BYTES, 0);
        let at = bank as usize * SCOPE_BYTES;
        bytes[at..at + SCOPE_BYTES].copy_from_slice(&scope.to_bytes());
        self.scopes.put(&banked(0, id.into()), &bytes)
    }

    /// The form of a scope's queue in a bank.
    pub(super) fn form(&self, bank: u32, id: u16) -> Result<u32, Error> {
        let bytes = self.scopes.get(&banked(0, id.into()))?.unwrap_or_default();
        let form = bytes.get(bank as usize * SCOPE_BYTES + FORM..).and_then(|b| b.first_chunk());
        Ok(form.map_or(0, |form| u32::from_ne_bytes(*form)))
    }

    /// Empties a scope's queue and statistics.
    pub(super) fn reset(&self, id: u16) -> Result<(), Error> {
        let (key, counts) = (banked(0, id.into()), &self.counts);
        let empty = [0; layout::QUEUE_BYTES];
        self.queues.checked(self.queues.map.update(&key, &empty, MapFlags::LOCK))?;
        let cpus = counts.checked(libbpf_rs::num_possible_cpus())?;
        let empty = vec![vec![0; counts.map.value_size() as usize]; cpus];
        counts.checked(counts.map.update_percpu(&key, &empty, MapFlags::ANY))
    }

    /// Returns the state of a scope's queue.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read.
    pub fn queue(&self, id: u16) -> Result<millpond_core::limit::State, Error> {
        let bytes = self.queues.read(&banked(0, id.into()), MapFlags::LOCK)?;
        Ok(layout::queue_state(&bytes.unwrap_or_default()))
    }

    /// Returns a scope's statistics, summed over all cores.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read.
    pub fn statistics(&self, id: u16) -> Result<Statistics, Error> {
        let mut sum = Statistics::default();
        let all = self.counts.map.lookup_percpu(&banked(0, id.into()), MapFlags::ANY);
        let all = self.counts.checked(all)?;
        all.iter().flatten().for_each(|bytes| sum.add(bytes));
        Ok(sum)
    }

    /// Returns the entry that a cgroup's programs read, or `None` if none was ever attached.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read.
    pub fn attachment(&self, cgroup: u64) -> Result<Option<Attachment>, Error> {
        let bytes = self.attachments.get(&cgroup.to_ne_bytes())?;
        Ok(bytes.map(|bytes| Attachment::from_bytes(&bytes)))
    }

    /// Writes what a cgroup's programs find; false if none was ever attached.
    pub(super) fn put_attachment(
        &self,
        cgroup: u64,
        attachment: Attachment,
    ) -> Result<bool, Error> {
        let (key, table) = (cgroup.to_ne_bytes(), &self.attachments);
        table.is_there(table.map.update(&key, &attachment.to_bytes(), MapFlags::EXIST))
    }

    /// Writes in which banks and directions a cgroup counts as attached (bit 2 × bank + direction),
    /// and which scope is its own.
    pub(super) fn put_attached(
        &self,
        cgroup: u64,
        bank: u32,
        directions: u32,
        own: u16,
    ) -> Result<(), Error> {
        let key = cgroup.to_ne_bytes();
        let old = self
            .attached
            .get(&key)?
            .and_then(|b| b.try_into().ok())
            .map(u32::from_ne_bytes)
            .unwrap_or_default();
        let new = old & 0xffff & !(3 << (2 * bank))
            | directions << (2 * bank)
            | (u32::from(own) + 1) << 16;
        self.attached.put(&key, &new.to_ne_bytes())
    }

    /// Forgets a cgroup that is no longer attached.
    pub(super) fn forget(&self, cgroup: u64) {
        let _ = self.attached.delete(&cgroup.to_ne_bytes());
    }

    /// Cgroups that are still there, with all that was attached to them.
    pub(super) fn live(&self) -> BTreeSet<u64> {
        let (mut live, mut dead) = (BTreeSet::new(), BTreeSet::new());
        for (cgroup, direction) in self.links() {
            let link = Link::open(link_path(&self.folder, cgroup, direction));
            let is_live = link.is_ok_and(|link| link::is_live(&link));
            if is_live { &mut live } else { &mut dead }.insert(cgroup);
        }
        &live - &dead
    }

    /// Cgroups that links are pinned for, with the direction, dead ones as well.
    pub fn links(&self) -> Vec<(u64, usize)> {
        links(&self.folder)
    }
}

/// The first value of a folder's maps; without maps, that of maps that are not finished.
fn head_of(folder: &Path) -> Result<Head, Error> {
    if !map_path(folder, "head").exists() {
        return Ok(Head::default());
    }
    Ok(Head::from_bytes(&Table::open(folder, "head")?.get(&[0; 4])?.unwrap_or_default()))
}

/// The bytes of a bank's texts.
fn text_of(texts: &Table, bank: u32) -> Result<Vec<u8>, Error> {
    let (mut text, mut length) = (Vec::new(), 0);
    for number in 0.. {
        let Some(bytes) = texts.get(&banked(bank, number))? else { break };
        length = u32::from_ne_bytes(bytes[..4].try_into().unwrap_or_default()) as usize;
        text.extend_from_slice(&bytes[4..]);
        if text.len() >= length {
            break;
        }
    }
    text.truncate(length);
    Ok(text)
}

/// The sources that a text names.
fn parse(text: &[u8]) -> Result<Vec<Source>, Error> {
    let broken = |e: &dyn std::fmt::Display| {
        Error::Request(format!("the installed limits cannot be read back: {e}"))
    };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let list: Vec<(String, String)> = serde_json::from_slice(text).map_err(|e| broken(&e))?;
    let source = |(file, text): (String, String)| {
        // Scopes across files were checked before they were applied.
        let config = Config::parse_part(&file, &text).map_err(|e| broken(&e))?;
        Ok(Source { file, config })
    };
    list.into_iter().map(source).collect()
}

/// The installed sources, for who looks at them again and again: parsed where they have changed.
#[derive(Default)]
pub(super) struct Known {
    text: Vec<u8>,
    sources: Vec<Source>,
}

impl Known {
    /// The sources that are installed now; whether they have changed since the last time.
    pub(super) fn look(&mut self, bpffs: &Path) -> (&[Source], bool) {
        let text = Known::text(bpffs).unwrap_or_default();
        let has_changed = text != self.text;
        if has_changed {
            self.sources = parse(&text).unwrap_or_default();
            self.text = text;
        }
        (&self.sources, has_changed)
    }

    fn text(bpffs: &Path) -> Result<Vec<u8>, Error> {
        if Folder::find(bpffs)?.is_none() {
            return Ok(Vec::new());
        }
        let folder = folder(bpffs);
        match head_of(&folder)? {
            Head { layout: LAYOUT, bank, .. } => text_of(&Table::open(&folder, "texts")?, bank & 1),
            _ => Ok(Vec::new()),
        }
    }
}

/// Cgroups that links are pinned for, with the direction.
pub fn links(folder: &Path) -> Vec<(u64, usize)> {
    pinned_links(folder, |kind| DIRECTIONS.iter().position(|direction| *direction == kind))
}

/// Cgroups whose connections' congestion control is chosen.
pub(super) fn choices(folder: &Path) -> Vec<u64> {
    pinned_links(folder, |kind| (kind == "congestion").then_some(()))
        .into_iter()
        .map(|(id, ())| id)
        .collect()
}

/// Links of the kinds that `of` accepts, by cgroup.
fn pinned_links<T: Ord>(folder: &Path, of: impl Fn(&str) -> Option<T>) -> Vec<(u64, T)> {
    let entries = fs::read_dir(folder.join("links")).into_iter().flatten().flatten();
    let parse = |name: &str| {
        let (id, kind) = name.split_once('-')?;
        Some((id.parse().ok()?, of(kind)?))
    };
    let mut links: Vec<(u64, T)> = entries.filter_map(|e| parse(e.file_name().to_str()?)).collect();
    links.sort_unstable();
    links
}
