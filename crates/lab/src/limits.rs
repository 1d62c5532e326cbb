//! A plan's limits in the lab: the eBPF programs of `millpond limit`, on a cgroup for each host and
//! limit.
//!
//! A packet is charged to the queue of its socket's cgroup and to the scopes that its limit names,
//! as in the simulator. Connections are neither paced nor are their windows held (`profile =
//! "published"`), since the simulator's are not.
//!
//! Follows NRM (Brakmo, Starovoitov: BPF Host Network Resource Management, LPC 2018).
//!
//! Invariant: limits end with their world, since all that holds them is pinned in its bpf file
//! system.

use crate::Error;
use crate::load::Cgroup;
use millpond_core::limit::{Direction, IngressMode};
use millpond_linux::limit::apply::Session;
use millpond_linux::limit::cgroup::Hierarchy;
use millpond_linux::limit::config::{Config, Limit, Profile, TargetParams};
use millpond_linux::limit::show::{self, QueueReading};
use millpond_linux::limit::store::Source;
use millpond_scenario::limit::LimitPlan;
use millpond_scenario::plan::Plan;
use millpond_scenario::settings::limit::LimitKind;
use millpond_worlds::World;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The limits of a lab that is up.
pub struct Limits {
    bpffs: PathBuf,
    pub cgroups: Vec<Cgroup>,
}

/// A limit's queues on a host, as the limiter names them.
fn name(limit: u16, host: u32) -> String {
    format!("{limit}.{host}")
}

/// The folder of this process's cgroup.
fn own() -> Result<PathBuf, Error> {
    let text = fs::read_to_string("/proc/self/cgroup");
    let text = text.map_err(|e| Error::system("finding this process's cgroup", e))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Ok(Hierarchy::find()?.root.join(path))
}

/// A limit of the plan as one of the limiter's, on one host.
fn limit(plan: &LimitPlan, number: u16, host: u32, cgroup: Option<&Path>) -> Option<Limit> {
    let LimitKind::Nrm(queue) = &plan.kind else { return None };
    let scopes = plan.scopes.iter().filter(|scope| **scope != number);
    let target = TargetParams {
        name: name(number, host),
        cgroup: cgroup.map(|path| path.display().to_string()),
        direction: Some(match (plan.egress, plan.ingress) {
            (true, true) => Direction::Both,
            (true, false) => Direction::Egress,
            (false, _) => Direction::Ingress,
        }),
        ingress_mode: match plan.ingress_marks_only {
            true => IngressMode::MarkOnly,
            false => IngressMode::Enforce,
        },
        scopes: scopes.map(|scope| name(*scope, host)).collect(),
        profile: Profile::Published,
        ..TargetParams::default()
    };
    Some(Limit { target, queue: queue.clone() })
}

/// A plan's limits on one host, for `millpond limit apply` on a machine of its own. The host's own
/// limit has the cgroup `limitN`, where N is its number in the plan.
pub fn of_host(plan: &Plan, host: u32) -> Config {
    Config {
        limits: on_host(plan, host, |number| format!("limit{number}").into()),
        ..Config::default()
    }
}

/// A plan's limits on one host, and the scopes that they name. `folder` is the cgroup of a limit.
fn on_host(plan: &Plan, host: u32, folder: impl Fn(u16) -> PathBuf) -> Vec<Limit> {
    let (mut limits, mut charged) = (Vec::new(), BTreeSet::new());
    let is_own = |number: u16| plan.limits[usize::from(number)].hosts.binary_search(&host).is_ok();
    for (number, it) in (0..).zip(&plan.limits).filter(|(number, _)| is_own(*number)) {
        limits.extend(limit(it, number, host, Some(&folder(number))));
        charged.extend(it.scopes.iter().copied());
    }
    let scopes = charged.into_iter().filter(|number| !is_own(*number));
    limits.extend(
        scopes.filter_map(|number| limit(&plan.limits[usize::from(number)], number, host, None)),
    );
    limits
}

/// Makes a cgroup whose members are threads, below this process's.
fn threaded(world: &World, folder: &Path) -> Result<(), Error> {
    world.cgroup(folder)?;
    let made = fs::write(folder.join("cgroup.type"), "threaded");
    made.map_err(|e| Error::system(format!("a threaded cgroup at {}", folder.display()), e))
}

impl Limits {
    /// Applies the limits of a plan, if it has any.
    ///
    /// # Errors
    /// If cgroups cannot be made, or the kernel refuses the programs.
    pub fn apply(plan: &Plan, world: &World) -> Result<Option<Limits>, Error> {
        if plan.limits.is_empty() {
            return Ok(None);
        }
        let own = own()?;
        let folder = |number, host| own.join(format!("{}-{}", world.name(), name(number, host)));
        let mut cgroups = Vec::new();
        for (number, it) in (0..).zip(&plan.limits) {
            for host in it.hosts.iter().copied() {
                let (folder, classes) = (folder(number, host), it.classes.clone());
                threaded(world, &folder)?;
                cgroups.push(Cgroup { host, classes, folder });
            }
        }
        let hosts: BTreeSet<u32> = cgroups.iter().map(|it| it.host).collect();
        let limits = hosts.into_iter().flat_map(|host| on_host(plan, host, |n| folder(n, host)));
        let limits = limits.collect();
        let bpffs = world.bpffs("limits")?;
        let config = Config { limits, ..Config::default() };
        let source = Source { file: plan.name.clone(), config };
        Session::open(&bpffs)?.install(vec![source], false)?;
        Ok(Some(Limits { bpffs, cgroups }))
    }

    /// The counters of all queues so far, each with the number of its limit in the plan.
    ///
    /// # Errors
    /// If the kernel's maps cannot be read.
    pub fn read(&self) -> Result<Vec<(u16, QueueReading)>, Error> {
        Ok(show::read(&self.bpffs, None)?.numbered().collect())
    }
}
