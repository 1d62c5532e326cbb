//! Cgroups: where they are mounted, and which one a path, a unit, a container or a process means.
//!
//! A cgroup is known by its id, its folder's inode number: one that is removed and made again under
//! the same path is another.
//!
//! Invariant: what is returned was a folder of the cgroup v2 hierarchy when it was looked at.

use super::config::Target;
use super::{Error, engine};
use rustix::fs::XattrFlags;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    pub path: PathBuf,
    pub id: u64,
    /// Its depth: the root has 0.
    pub level: u32,
}

impl Cgroup {
    /// Moves the calling process into it.
    ///
    /// # Errors
    /// [`Error::File`] if the kernel refuses.
    pub fn enter(&self) -> Result<(), Error> {
        let list = self.path.join("cgroup.procs");
        fs::write(&list, std::process::id().to_string()).map_err(|e| Error::file(&list, e))
    }
    /// The ids of it and of all above it, the root's last.
    pub fn lineage(&self) -> impl Iterator<Item = u64> {
        let folders = self.path.ancestors().take(self.level as usize + 1);
        folders.filter_map(|folder| fs::metadata(folder).ok()).map(|meta| meta.ino())
    }
}

/// The extended attribute of cgroups that limits have made; root alone can set it.
const MARK: &str = "trusted.millpond";
/// The kernel's numbers of file systems of cgroups, of both versions.
const CGROUP2: u64 = 0x6367_7270;
pub(super) const CGROUP1: u64 = 0x0027_e0eb;
/// Where the kubelet has the logs of its pods.
const POD_LOGS: &str = "/var/log/pods";

/// The cgroup v2 hierarchy.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    pub root: PathBuf,
}

/// Where a file system of type `kind` is mounted; `magic` is what the kernel calls it. A mount that
/// is hidden by a later one does not count.
pub(super) fn mounted(kind: &str, magic: u64) -> io::Result<Option<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    // Spaces and the like are octal there.
    let plain =
        |path: &str| path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    let of_kind = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(kind));
    let mut paths = of_kind.filter_map(|line| line.split(' ').nth(1)).map(plain).map(PathBuf::from);
    Ok(paths.find(|path| rustix::fs::statfs(path).is_ok_and(|of| of.f_type as u64 == magic)))
}

impl Hierarchy {
    /// Finds the cgroup hierarchy in the mounts of this process.
    ///
    /// # Errors
    /// [`Error::NoCgroups`] if no cgroup v2 is mounted, [`Error::Kernel`] if /proc/self/mounts
    /// cannot be read.
    pub fn find() -> Result<Hierarchy, Error> {
        let unread = |e: io::Error| Error::Kernel {
            what: "reading /proc/self/mounts".into(),
            reason: e.to_string(),
        };
        let root = mounted("cgroup2", CGROUP2).map_err(unread)?;
        Ok(Hierarchy { root: root.ok_or(Error::NoCgroups)? })
    }

    /// Returns the cgroup of a folder, given absolutely or relative to the root of the hierarchy.
    ///
    /// # Errors
    /// The folder is missing, is a file, or is outside the hierarchy.
    pub fn at(&self, path: &Path) -> Result<Cgroup, String> {
        let path = if path.starts_with(&self.root) {
            path.to_path_buf()
        } else {
            self.root.join(strip(path))
        };
        let real = fs::canonicalize(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let root =
            fs::canonicalize(&self.root).map_err(|e| format!("{}: {e}", self.root.display()))?;
        let below =
            real.strip_prefix(&root).map_err(|_| format!("{} is no cgroup", path.display()))?;
        let level = below.components().count() as u32;
        let meta = fs::metadata(&real).map_err(|e| format!("{}: {e}", path.display()))?;
        if !meta.is_dir() {
            return Err(format!("{} is no folder", path.display()));
        }
        Ok(Cgroup { path: real, id: meta.ino(), level })
    }

    /// Returns the cgroup that a target names.
    ///
    /// # Errors
    /// The reason why it is not found: no such folder, unit, container or process, or a name that
    /// several have.
    pub fn resolve(&self, target: &Target) -> Result<Cgroup, String> {
        match target {
            Target::Path(path) => self.given(path),
            Target::Unit(unit) => self.unit(unit),
            Target::Container(id) => self.container(id),
            Target::Pod(pod) => self.pod(pod),
            Target::Pid(pid) => self.process(*pid),
        }
    }

    /// Makes the folders of a path that are not there, and marks them. Returns them.
    ///
    /// # Errors
    /// [`Error::File`] if the path leads elsewhere, or a folder cannot be made.
    pub(super) fn make(&self, path: &Path) -> Result<Vec<PathBuf>, Error> {
        let whole =
            if path.starts_with(&self.root) { path.into() } else { self.root.join(strip(path)) };
        if path.is_absolute() && whole != path
            || path.components().any(|c| c == Component::ParentDir)
        {
            let reason = format!("cgroup v2 is mounted at {}", self.root.display());
            return Err(Error::file(path, reason));
        }
        let mut missing: Vec<PathBuf> =
            whole.ancestors().take_while(|at| !at.exists()).map(PathBuf::from).collect();
        missing.reverse();
        for folder in &missing {
            fs::create_dir(folder).map_err(|e| Error::file(folder, e))?;
            // Without the mark it stays when limits go.
            let _ = rustix::fs::setxattr(folder, MARK, b"1", XattrFlags::empty());
        }
        Ok(missing)
    }

    /// The cgroups that [`make`](Self::make) has made, those below others after them.
    pub(super) fn made(&self) -> Vec<PathBuf> {
        let mut marked = Vec::new();
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            open.extend(below(&folder).map(|entry| entry.path()));
            if rustix::fs::getxattr(&folder, MARK, &mut [0u8; 1]).is_ok() {
                marked.push(folder);
            }
        }
        marked
    }

    /// Removes the cgroups that [`make`](Self::make) has made, where nobody uses them: the kernel
    /// keeps one that has processes.
    pub(super) fn remove_made(&self) {
        self.made().iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }

    /// A path as a user writes it: absolute below the mount, relative to it, or `/` for its root.
    fn given(&self, path: &Path) -> Result<Cgroup, String> {
        let path = if path == Path::new("/") { &self.root } else { path };
        if path.is_absolute() && !path.starts_with(&self.root) {
            let known = format!("cgroup v2 is mounted at {}", self.root.display());
            return Err(format!("{} is not below it: {known}", path.display()));
        }
        if path.components().any(|c| c == Component::ParentDir) {
            return Err(format!("{}: a cgroup's path has no ..", path.display()));
        }
        self.at(path).map_err(|reason| match self.root.join(strip(path)).exists() {
            true => reason,
            false => format!("{reason} (apply --create makes it)"),
        })
    }

    fn process(&self, pid: u32) -> Result<Cgroup, String> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .map_err(|e| format!("process {pid}: {e}"))?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::"));
        let path = path.ok_or_else(|| format!("process {pid} is in no cgroup v2"))?;
        below_root(self.at(Path::new(path))?, &format!("process {pid}"))
    }

    /// By `systemctl show`; without systemd, the folder of that name.
    fn unit(&self, unit: &str) -> Result<Cgroup, String> {
        // As sd_booted(3) has it: where systemd does not run, there is nobody to ask.
        let asks = Path::new("/run/systemd/system").is_dir();
        let ask = || {
            let mut command = std::process::Command::new("systemctl");
            command.args(["show", "--property=ControlGroup", "--value", "--", unit]).output()
        };
        if let Some(Ok(answer)) = asks.then(ask) {
            let path = String::from_utf8_lossy(&answer.stdout).trim().to_string();
            if answer.status.success() && !path.is_empty() {
                return below_root(self.at(Path::new(&path))?, &format!("unit {unit:?}"));
            }
        }
        let named = |name: &str| name == unit;
        self.search(&named).map_err(|n| match n {
            0 => format!(
                "there is no unit {unit:?} that runs: systemctl knows no cgroup of it, and none \
                 has its name"
            ),
            n => format!("{n} cgroups are called {unit:?}: name one by its path"),
        })
    }

    /// A cgroup whose name has the id, as docker, containerd, CRI-O and podman name them, or a
    /// pod's uid. A word that is no id is a name, which an engine resolves.
    fn container(&self, container: &str) -> Result<Cgroup, String> {
        let is_id = container.len() >= 12
            && container.chars().all(|c| c.is_ascii_hexdigit() || "-_".contains(c));
        let id = if is_id { container.to_string() } else { engine::id_of(container)? };
        let dashed = id.replace('-', "_");
        let named = |name: &str| {
            let name = name.strip_suffix(".scope").or(name.strip_suffix(".slice")).unwrap_or(name);
            let of = |id: &str| {
                name.starts_with(id)
                    || name.rsplit_once(['-', ':']).is_some_and(|(_, end)| end.starts_with(id))
                    || name.strip_prefix("pod").is_some_and(|end| end == id)
                    || name.ends_with(&format!("pod{id}"))
            };
            of(&id) || of(&dashed)
        };
        self.search(&named).map_err(|n| match n {
            0 => format!("no cgroup belongs to container {container:?}"),
            n => format!("{n} cgroups match container {container:?}: write more of its id"),
        })
    }

    /// The cgroup of a pod, whose uid the kubelet writes into the name of the folder of its logs.
    fn pod(&self, pod: &str) -> Result<Cgroup, String> {
        let uids = pod_uids(Path::new(POD_LOGS), pod);
        // Folders of pods of this name that are gone may be there still.
        let found = uids.iter().find_map(|uid| self.container(uid).ok());
        found.ok_or_else(|| match uids.is_empty() {
            true => format!("no pod {pod:?} is on this node: {POD_LOGS} has no folder of it"),
            false => {
                format!("no cgroup belongs to pod {pod:?}, whose uid is {}", uids.join(" or "))
            }
        })
    }

    pub(super) fn ids(&self) -> BTreeSet<u64> {
        let (mut ids, mut open) = (BTreeSet::new(), vec![self.root.clone()]);
        while let Some(folder) = open.pop() {
            for entry in below(&folder) {
                ids.insert(entry.ino());
                open.push(entry.path());
            }
        }
        ids.extend(fs::metadata(&self.root).map(|root| root.ino()));
        ids
    }

    /// The one cgroup whose name satisfies `named`, or how many do.
    fn search(&self, named: &dyn Fn(&str) -> bool) -> Result<Cgroup, usize> {
        let (mut found, mut open) = (Vec::new(), vec![self.root.clone()]);
        while let Some(folder) = open.pop() {
            for entry in below(&folder) {
                if entry.file_name().to_str().is_some_and(named) {
                    found.push(entry.path());
                } else {
                    open.push(entry.path());
                }
            }
        }
        match &found[..] {
            [one] => self.at(one).map_err(|_| 0),
            all => Err(all.len()),
        }
    }
}

/// The uids of the pods of this namespace and name, by folders `NAMESPACE_NAME_UID`.
fn pod_uids(logs: &Path, pod: &str) -> Vec<String> {
    let prefix = format!("{}_", pod.replacen('/', "_", 1));
    let entries = fs::read_dir(logs).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut uids: Vec<String> =
        names.filter_map(|name| Some(name.strip_prefix(&prefix)?.to_string())).collect();
    uids.sort_unstable();
    uids
}

/// A cgroup that something other than its path names; the root would limit the whole host.
fn below_root(cgroup: Cgroup, what: &str) -> Result<Cgroup, String> {
    match cgroup.level {
        0 => Err(format!(
            "{what} is in the root of cgroup v2, whose limit would hold for the whole host: move \
             it to a cgroup of its own, or write cgroup = \"/\" if the host is meant"
        )),
        _ => Ok(cgroup),
    }
}

/// The folders in a folder; none, if it is gone.
pub(super) fn below(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

fn strip(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Whether `inner` is `outer` or below it.
pub fn is_within(inner: &Cgroup, outer: &Cgroup) -> bool {
    inner.path.starts_with(&outer.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a hierarchy.
    struct Tree(PathBuf);
    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
    fn tree(name: &str) -> (Tree, Hierarchy) {
        let root =
            std::env::temp_dir().join(format!("millpond-cgroup-{name}-{}", std::process::id()));
        for path in [
            "a/b",
            "system.slice/docker-0123456789abcdef.scope",
            "kubepods/pod6f1c-11-22-333/cri-containerd-fedcba9876543210",
        ] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("file"), "").unwrap();
        (Tree(root.clone()), Hierarchy { root })
    }

    #[test]
    fn paths_units_and_containers() {
        let (_tree, h) = tree("find");
        let at = |target: Target| h.resolve(&target);
        assert_eq!(at(Target::Path("a/b".into())).unwrap().level, 2);
        let ids = ["a/b", "a", "/"].map(|path| h.at(Path::new(path)).unwrap().id);
        assert_eq!(h.at(Path::new("a/b")).unwrap().lineage().collect::<Vec<_>>(), ids);
        assert!(ids.iter().all(|id| h.ids().contains(id)) && h.ids().len() == 8, "{:?}", h.ids());
        assert_eq!(
            at(Target::Path(h.root.join("a/b"))).unwrap(),
            at(Target::Path("a/b".into())).unwrap()
        );
        assert!(at(Target::Path("/etc".into())).unwrap_err().contains("mounted at"));
        assert!(at(Target::Path("../x".into())).unwrap_err().contains(".."));
        assert!(at(Target::Path("file".into())).unwrap_err().contains("no folder"));
        assert!(at(Target::Path("none".into())).is_err());
        assert!(
            at(Target::Container("0123456789ab".into()))
                .unwrap()
                .path
                .ends_with("docker-0123456789abcdef.scope")
        );
        assert!(at(Target::Container("fedcba9876543210".into())).is_ok());
        assert!(at(Target::Container("6f1c-11-22-333".into())).is_ok());
        assert!(
            at(Target::Container("0123".into())).is_err(),
            "too short for an id, and no container's name"
        );
        assert!(at(Target::Container("999999999999".into())).unwrap_err().contains("no cgroup"));
        assert!(at(Target::Unit("no-such.service".into())).unwrap_err().contains("no unit"));
        assert!(at(Target::Pod("no/such".into())).unwrap_err().contains("no pod"));
    }

    #[test]
    fn the_root_is_a_target_by_its_path_alone() {
        let (_tree, h) = tree("root");
        let root = h.resolve(&Target::Path("/".into())).unwrap();
        let said = below_root(root, "process 1").unwrap_err();
        assert!(said.contains("process 1") && said.contains("whole host"), "{said}");
        assert!(below_root(h.at(Path::new("a")).unwrap(), "process 2").is_ok());
    }

    #[test]
    fn a_pods_uid_is_in_the_name_of_its_logs() {
        let (_tree, h) = tree("pods");
        let logs = h.root.join("logs");
        for name in ["shop_web_6f1c-11-22-333", "shop_web_0-old", "shop_web2_9", "other_web_8"] {
            fs::create_dir_all(logs.join(name)).unwrap();
        }
        assert_eq!(pod_uids(&logs, "shop/web"), ["0-old", "6f1c-11-22-333"]);
        assert!(pod_uids(&logs, "shop/we").is_empty());
    }
}
