//! The tests of the command with kernels, real networks and the service manager.

mod common;

mod kernels;
mod lab;
mod lab_captures;
mod lab_programs;
mod limit;
mod limit_guide;
mod switch;
mod units;

#[cfg(all(feature = "linux", target_os = "linux"))]
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Held by whoever needs a cgroup that nobody removes: `limit remove` takes all that limits have
/// made and no program is in.
#[cfg(all(feature = "linux", target_os = "linux"))]
static CGROUPS: RwLock<()> = RwLock::new(());

/// Held while a command may remove cgroups.
#[cfg(all(feature = "linux", target_os = "linux"))]
fn removes_cgroups() -> RwLockReadGuard<'static, ()> {
    CGROUPS.read().unwrap_or_else(PoisonError::into_inner)
}
