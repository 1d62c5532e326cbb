//! The pace of connections that exist, and what they may receive, when limits change.
//! `limit_sockets` gives a connection its SO_MAX_PACING_RATE and its window; without more it would
//! keep them until it closes, whatever became of the limit, and one that is older than its limit
//! would have neither. The work on a socket is in `bpf/pace.bpf.c`.
//!
//! Invariant: when this has run, each connection below a limit, or once below one, is paced by
//! the limits in force now, or as its application asked for; and each window is as it was,
//! until a limit that is in force holds it again.

use super::Error;
use super::cgroup::is_within;
use super::layout::{LOOPBACK, PACE, SHARES, WINDOWS};
use super::object::{self, Loaded};
use super::plan::{Hook, Plan};
use super::sockets::Namespaces;
use super::store::{SOCKETS, map_path};
use libbpf_rs::{MapCore, MapFlags};
use millpond_core::limit::{POINT, flags};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether windows that a limit holds can be let go again when it is gone.
pub(super) fn can_let_go() -> Result<(), Error> {
    let what = "letting receive windows go again (it needs BTF, and iterators over TCP sockets \
                that may set options: Linux 5.18): so none is held";
    // A kernel that can once can always, and loading takes longer than a limit may be missing.
    static ABLE: AtomicBool = AtomicBool::new(false);
    if ABLE.load(Ordering::Relaxed) {
        return Ok(());
    }
    Loaded::plain(object::PACE, what)?;
    ABLE.store(true, Ordering::Relaxed);
    Ok(())
}

/// The effect of the limits above a connection on it; `struct followed` in `bpf/pace.bpf.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Followed {
    /// Bytes a second.
    rate: u32,
    /// [`PACE`], [`SHARES`], [`WINDOWS`].
    flags: u16,
}

impl Followed {
    fn to_bytes(self) -> Vec<u8> {
        [self.rate.to_ne_bytes(), u32::from(self.flags).to_ne_bytes()].concat()
    }
}

/// The paces that are in force now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Paces {
    /// By cgroup; of all limits that are above its connections.
    limited: Vec<(u64, Followed)>,
    loopback: bool,
}

impl Paces {
    /// Of a plan, with the values of `limit_sockets`.
    pub(super) fn of(plan: &Plan) -> Paces {
        let rate = |id: &u16| {
            let settings = plan.scopes.iter().find(|s| s.id == *id)?.settings.settings;
            let bytes = (u128::from(settings.rate) * 1_000_000_000) >> POINT;
            (settings.flags & flags::OBSERVE == 0).then(|| u32::try_from(bytes).unwrap_or(u32::MAX))
        };
        let flags_of =
            |hook: &Hook| (hook.chain[0].flags & (PACE | SHARES)) | (hook.chain[1].flags & WINDOWS);
        // The programs of all cgroups above a connection pace it.
        let followed = |hook: &Hook| {
            let above = || plan.hooks.iter().filter(|outer| is_within(&hook.cgroup, &outer.cgroup));
            let paced = above().filter(|hook| hook.chain[0].flags & PACE != 0);
            let rates = paced
                .flat_map(|h| &h.chain[0].scopes[..h.chain[0].count as usize])
                .filter_map(rate);
            let rate = rates.min();
            let flags = above().map(flags_of).fold(0, |all, one| all | one);
            // Where all of its limits observe, nothing is asked.
            let flags = if rate.is_none() { flags & WINDOWS } else { flags };
            (flags != 0)
                .then_some((hook.cgroup.id, Followed { rate: rate.unwrap_or(u32::MAX), flags }))
        };
        Paces {
            limited: plan.hooks.iter().filter_map(followed).collect(),
            loopback: plan.flags & LOOPBACK != 0,
        }
    }

    /// Gives them to the connections that exist, and to those that the maps of `folder` have paced.
    /// How many have a pace and no share, or no window, since this kernel cannot let them ask.
    pub(super) fn give(&self, folder: &Path) -> Result<u64, Error> {
        // Entering namespaces changes a thread for good.
        std::thread::scope(|scope| match scope.spawn(|| self.give_here(folder)).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    fn give_here(&self, folder: &Path) -> Result<u64, Error> {
        // Maps of an earlier version have fewer.
        let pin = |name: &str| Some(map_path(folder, name)).filter(|path| path.exists());
        if SOCKETS.iter().all(|name| pin(name).is_none()) {
            return Ok(0);
        }
        let what = "changing the pace and the windows of connections that exist (it needs BTF, \
                    and iterators over TCP sockets that may set options: Linux 5.18): they keep \
                    it until they close";
        let constants = u32::from(self.loopback).to_ne_bytes();
        let loaded = Loaded::new(object::PACE, what, |map, name| {
            match pin(name).filter(|_| SOCKETS.contains(&name)) {
                Some(path) => map.reuse_pinned_map(&path),
                None => {
                    object::set_constants(map, &constants);
                    Ok(())
                }
            }
        })?;
        let limited = loaded.map("limited")?;
        for (cgroup, followed) in &self.limited {
            let value = followed.to_bytes();
            loaded.checked(limited.update(&cgroup.to_ne_bytes(), &value, MapFlags::ANY))?;
        }
        let link = loaded.attach("follow")?;
        match Namespaces::all().run(&link) {
            0 => {
                let deaf = loaded.map("deaf")?.lookup(&[0; 4], MapFlags::ANY);
                let count = loaded.checked(deaf)?.and_then(|count| count.try_into().ok());
                Ok(count.map_or(0, u64::from_ne_bytes))
            }
            n => Err(Error::Privilege {
                what: format!(
                    "changing the pace and the windows of connections in {n} other network \
                     namespaces"
                ),
                capability: "CAP_SYS_ADMIN".into(),
            }),
        }
    }
}
