//! The steps of an installation: programs are loaded and attached, the bank that is not in force is
//! written, and programs that nobody needs any more are taken off. `apply` has their order.
//!
//! Invariant: none of them changes what is in force.

use super::Error;
use super::capability::BPF;
use super::folder::Locked;
use super::layout::{Attachment, PACE, WINDOWS};
use super::link;
use super::object::{self, Loaded};
use super::plan::{Hook, Plan};
use super::store::{self, DIRECTIONS, MAPS, SOCKETS, Source, Store};
use libbpf_rs::{MapCore, MapHandle, Object};
use std::fs;

/// The loaded programs, over the maps that were pinned when they were loaded.
pub(super) struct Programs {
    object: Object,
    /// The kernel's number of one of these maps.
    head: u32,
}

/// The kernel's number of the pinned head.
fn head(folder: &Locked) -> Result<u32, Error> {
    let path = store::map_path(folder.path(), "head");
    let info = MapHandle::from_pinned_path(&path).and_then(|map| map.info());
    Ok(info.map_err(|e| Error::kernel(path.display().to_string(), &[BPF], &e))?.info.id)
}

impl Programs {
    /// Loads the programs over the pinned maps; makes and pins the maps that are not there.
    pub(super) fn load(folder: &Locked) -> Result<Programs, Error> {
        folder.make_parts()?;
        let pinned = |name: &str| MAPS.contains(&name) || SOCKETS.contains(&name);
        let loaded = Loaded::new(object::LIMIT, "loading the eBPF programs", |map, name| {
            match pinned(name) {
                true => map.set_pin_path(store::map_path(folder.path(), name)),
                false => Ok(()),
            }
        });
        Ok(Programs { object: loaded?.into_object(), head: head(folder)? })
    }

    /// Whether their maps are the pinned ones.
    pub(super) fn are_current(&self, folder: &Locked) -> bool {
        head(folder).is_ok_and(|head| head == self.head)
    }
}

/// Gives every cgroup of the plan its programs, the present ones.
pub(super) fn attach(
    store: &Store,
    programs: &Programs,
    plan: &Plan,
    bank: u32,
) -> Result<(), Error> {
    let object = &programs.object;
    for hook in &plan.hooks {
        let id = hook.cgroup.id;
        // The remains of an earlier attachment: nothing is in force here until the banks turn.
        let mut attachment = store.attachment(id)?.unwrap_or_default();
        if !store.links().iter().any(|(cgroup, _)| *cgroup == id) {
            attachment.chain[1 - bank as usize] = Default::default();
            store.put_attachment(id, attachment)?;
        }
        for direction in (0..2).filter(|&d| hook.chain[d].count > 0) {
            let path = store::link_path(store.folder(), id, direction);
            link::attach(object, &hook.cgroup, &format!("limit_{}", DIRECTIONS[direction]), &path)?;
        }
        if follows_sockets(hook) {
            link::attach(
                object,
                &hook.cgroup,
                "limit_sockets",
                &store::pace_path(store.folder(), id),
            )?;
        }
        attachment.chain[bank as usize] = hook.chain;
        if !store.put_attachment(id, attachment)? {
            return Err(Error::Cgroup {
                limit: hook.limit.clone(),
                reason: format!("{} went away", hook.cgroup.path.display()),
            });
        }
        let directions =
            (0..2).filter(|&d| hook.chain[d].count > 0).fold(0, |bits, d| bits | 1 << d);
        let own = hook.chain.iter().find(|c| c.count > 0).map_or(0, |c| c.scopes[0]);
        store.put_attached(id, bank, directions, own)?;
    }
    Ok(())
}

/// Whether connections of the cgroup are notified of its limits, at either end.
pub(super) fn follows_sockets(hook: &Hook) -> bool {
    hook.chain[0].flags & PACE != 0 || hook.chain[1].flags & WINDOWS != 0
}

/// Writes all but attachments into the bank that is not in force.
pub(super) fn write(
    store: &Store,
    plan: &Plan,
    sources: &[Source],
    bank: u32,
) -> Result<(), Error> {
    for scope in &plan.scopes {
        if scope.fresh && !scope.late {
            store.reset(scope.id)?;
        }
        store.put_scope(bank, scope.id, scope.settings)?;
    }
    let labels: Vec<_> = plan.scopes.iter().map(|s| (s.id, s.label.clone())).collect();
    store.put_labels(bank, &labels)?;
    store.put_sources(bank, sources)?;
    // Cgroups that the plan leaves out have no scopes in it.
    for (id, _) in
        store.links().into_iter().filter(|(id, _)| !plan.hooks.iter().any(|h| h.cgroup.id == *id))
    {
        if let Some(mut attachment) = store.attachment(id)? {
            attachment.chain[bank as usize] = Default::default();
            store.put_attachment(id, attachment)?;
        }
        store.put_attached(id, bank, 0, 0)?;
    }
    Ok(())
}

/// Takes programs off where the plan has none.
pub(super) fn detach(store: &Store, plan: &Plan) -> Result<(), Error> {
    for (id, _) in store.links() {
        let path = store::pace_path(store.folder(), id);
        let is_needed = plan.hooks.iter().any(|hook| hook.cgroup.id == id && follows_sockets(hook));
        if !is_needed && path.exists() {
            fs::remove_file(&path).map_err(|e| Error::file(&path, e))?;
        }
    }
    for (id, direction) in store.links() {
        let hook = plan.hooks.iter().find(|h| h.cgroup.id == id);
        if hook.is_some_and(|h| h.chain[direction].count > 0) {
            continue;
        }
        let path = store::link_path(store.folder(), id, direction);
        fs::remove_file(&path).map_err(|e| Error::file(&path, e))?;
        if hook.is_none() {
            let _ = store.put_attachment(id, Attachment::default());
            store.forget(id);
        }
    }
    Ok(())
}
