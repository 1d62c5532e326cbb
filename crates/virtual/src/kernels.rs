//! Where kernels are, and whether they can run here.
//!
//! `make setup-virtual` builds one into `$MILLPOND_CACHE` (`~/.cache/millpond`), in the folder
//! `kernel/VERSION-CONFIGURATION`, which `kernel/current` names; beside it lies the library that
//! seeds its random numbers. `host.kernel` names another.
//!
//! Invariant: a kernel that passes is a program of this architecture with time travel.

use crate::error::Error;
use millpond_scenario::plan::Plan;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A kernel, and what it runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub program: PathBuf,
    /// The library that seeds its random numbers.
    pub seeded: PathBuf,
    /// Its version, such as `6.12.117-millpond`.
    pub version: String,
}

/// Texts that only kernels with these options or features have.
const MARKS: [(&[u8], &str); 5] = [
    (b"time-travel external link", "CONFIG_UML_TIME_TRAVEL_SUPPORT"),
    (b"time-travel: setting time while not running", "a shared schedule (Linux 6.11 or later)"),
    (b"virtio_uml", "CONFIG_VIRTIO_UML"),
    (b"virtio_net", "CONFIG_VIRTIO_NET"),
    // The library that seeds random numbers is loaded into it.
    (b"ld-linux", "dynamic linking (CONFIG_STATIC_LINK is on)"),
];
const SETUP: &str = "`make setup-virtual` builds one";

/// The folder of the kernel that `make setup-virtual` has built.
pub fn folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("MILLPOND_CACHE").map(PathBuf::from).or_else(|| {
        let home = || variable("HOME").map(|home| Path::new(&home).join(".cache"));
        let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
        cache.map(|cache| cache.join("millpond"))
    });
    cache.unwrap_or_else(|| PathBuf::from("/var/cache/millpond")).join("kernel/current")
}

/// The kernel of a plan.
///
/// # Errors
/// [`Error::Kernel`] with what is missing.
pub fn of(plan: &Plan) -> Result<Kernel, Error> {
    let own = plan.host.kernel.as_ref().map(|path| {
        let base = plan.base.as_deref().unwrap_or(Path::new("."));
        base.join(path)
    });
    find(own.as_deref())
}

/// A kernel at a path, or the usual one.
///
/// # Errors
/// [`Error::Kernel`] with what is missing.
pub fn find(own: Option<&Path>) -> Result<Kernel, Error> {
    let folder = folder();
    let program = own.map_or_else(|| folder.join("linux"), Path::to_path_buf);
    let lacks = |reason: String| Error::Kernel { path: program.clone(), reason };
    if !cfg!(target_arch = "x86_64") {
        return Err(lacks("User Mode Linux needs x86_64".into()));
    }
    let bytes = std::fs::read(&program).map_err(|e| match own {
        None => lacks(format!("there is no kernel ({e}): {SETUP}")),
        Some(_) => lacks(format!("host.kernel cannot be read: {e}")),
    })?;
    if !bytes.starts_with(b"\x7fELF") {
        return Err(lacks(
            "it is no program: a kernel for User Mode Linux is one (ARCH=um)".into(),
        ));
    }
    let has = |mark: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
    if let Some((_, option)) = MARKS.into_iter().find(|(mark, _)| !has(mark)) {
        return Err(lacks(format!("it lacks {option}")));
    }
    let seeded = folder.join("seeded.so");
    if !seeded.exists() {
        let why = format!("{} is missing, which seeds random numbers: {SETUP}", seeded.display());
        return Err(lacks(why));
    }
    let version = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
    let version = version.map_err(|e| lacks(format!("it does not run: {e}")))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_string();
    Ok(Kernel { program, seeded, version })
}
