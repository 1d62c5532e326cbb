//! Cgroups: where they are mounted, and which one a path, a unit, a container or a process means.
//!
//! A cgroup is known by its id, its folder's inode number: one that is removed and made again under
//! the same path is another.
//!
//! Invariant: what is returned was a folder of the cgroup v2 hierarchy when it was looked at.

use super::config::Target;
use super::{Error, engine};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// A cgroup that was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its folder.
    pub path: PathBuf,
    /// Its id.
    pub id: u64,
    /// Its depth: the root has 0.
    pub level: u32,
}

impl Cgroup {
    /// The ids of it and of all above it, the root's last.
    pub fn lineage(&self) -> impl Iterator<Item = u64> {
        let folders = self.path.ancestors().take(self.level as usize + 1);
        folders.filter_map(|folder| fs::metadata(folder).ok()).map(|meta| meta.ino())
    }
}

/// The cgroup v2 hierarchy.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub root: PathBuf,
}

/// The first mount of a file system of type `kind`.
pub(super) fn mounted(kind: &str) -> io::Result<Option<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(kind));
    // Spaces and the like are octal there.
    let plain =
        |path: &str| path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    Ok(line.and_then(|line| line.split(' ').nth(1)).map(|path| PathBuf::from(plain(path))))
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
        Ok(Hierarchy { root: mounted("cgroup2").map_err(unread)?.ok_or(Error::NoCgroups)? })
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
            Target::Pid(pid) => self.process(*pid),
        }
    }

    /// A path as a user writes it: absolute below the mount, or relative to it.
    fn given(&self, path: &Path) -> Result<Cgroup, String> {
        if path.is_absolute() && !path.starts_with(&self.root) {
            let known = format!("cgroup v2 is mounted at {}", self.root.display());
            return Err(format!("{} is not below it: {known}", path.display()));
        }
        if path.components().any(|c| c == Component::ParentDir) {
            return Err(format!("{}: a cgroup's path has no ..", path.display()));
        }
        self.at(path)
    }

    fn process(&self, pid: u32) -> Result<Cgroup, String> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .map_err(|e| format!("process {pid}: {e}"))?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::"));
        let path = path.ok_or_else(|| format!("process {pid} is in no cgroup v2"))?;
        self.at(Path::new(path))
    }

    /// As `systemctl show` says; where there is no systemd, the folder of that name.
    fn unit(&self, unit: &str) -> Result<Cgroup, String> {
        // As sd_booted(3) has it: where systemd does not run, there is nobody to ask.
        let asks = Path::new("/run/systemd/system").is_dir();
        let ask = || {
            let mut command = std::process::Command::new("systemctl");
            command.args(["show", "--property=ControlGroup", "--value", "--", unit]).output()
        };
        if let Some(Ok(said)) = asks.then(ask) {
            let path = String::from_utf8_lossy(&said.stdout).trim().to_string();
            if said.status.success() && !path.is_empty() {
                return self.at(Path::new(&path));
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
    /// pod's uid. What is no id is a name, which an engine knows.
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

    /// The one cgroup whose name satisfies `named`, or how many do.
    fn search(&self, named: &dyn Fn(&str) -> bool) -> Result<Cgroup, usize> {
        let (mut found, mut open) = (Vec::new(), vec![self.root.clone()]);
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
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
    }
}
