//! Congestion control: millpond's own DCTCP, registered with the kernel on request, and the choice
//! of one for the new connections of a cgroup (`bpf/congestion.bpf.c`).
//!
//! Invariant: mp_dctcp is registered as long as its link is pinned, and a cgroup's choice holds as
//! long as its own is; connections keep what they have until they close.

use super::Error;
use super::capability::PROGRAMS;
use super::config::DCTCP;
use super::link;
use super::object::{self, Loaded};
use super::plan::Plan;
use super::store;
use libbpf_rs::{MapCore, Object};
use rustix::net::{AddressFamily, SocketType};
use std::fs;
use std::path::Path;

/// Congestion controls that this kernel has at this moment.
pub fn available() -> Vec<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    text.split_whitespace().map(String::from).collect()
}

/// The most bytes of a congestion control's name (the kernel's TCP_CA_NAME_MAX, with its zero).
const NAME_MAX: usize = 16;

/// Registers millpond's own DCTCP with the kernel under a name of the caller's own, for as long as
/// its pin in this folder of a bpf file system is there. Names begin with `mp_dctcp` and have 15
/// bytes at most.
///
/// # Errors
/// If the kernel has no struct_ops links or no BTF, has one of this name, or the process lacks
/// CAP_BPF or CAP_NET_ADMIN.
pub fn register_dctcp(folder: &Path, name: &str) -> Result<(), Error> {
    pin(&folder.join(name), name)
}

/// Registers it, or takes it back. Whether it is there in the end.
pub(super) fn register(folder: &Path, wanted: bool) -> Result<(), Error> {
    let path = folder.join(DCTCP);
    match (wanted, path.exists()) {
        (true, false) => pin(&path, DCTCP),
        (false, true) => fs::remove_file(&path).map_err(|e| Error::file(&path, e)),
        _ => Ok(()),
    }
}

/// Registers it under a name, and pins the link.
fn pin(path: &Path, name: &str) -> Result<(), Error> {
    let what = "registering mp_dctcp (it needs BTF, and struct_ops links: Linux 6.4)";
    let lacks = |reason: &str| Error::Kernel { what: what.into(), reason: reason.into() };
    if name.len() >= NAME_MAX {
        return Err(lacks("its name is too long"));
    }
    let mut is_named = false;
    let loaded = Loaded::new(object::DCTCP, what, |map, of| {
        if of == DCTCP
            && let Some(value) = map.initial_value_mut()
            && let Some(at) = value.windows(NAME_MAX).position(|it| it.starts_with(of.as_bytes()))
        {
            value[at..at + NAME_MAX].fill(0);
            value[at..at + name.len()].copy_from_slice(name.as_bytes());
            is_named = true;
        }
        Ok(())
    })?;
    if !is_named {
        return Err(lacks("no name"));
    }
    let mut object = loaded.into_object();
    let map = object.maps_mut().find(|map| map.name() == DCTCP);
    let mut map = map.ok_or_else(|| lacks("no such map"))?;
    let pinned = map.attach_struct_ops().and_then(|mut link| link.pin(path));
    pinned.map_err(|e| Error::kernel(what, PROGRAMS, &e))
}

/// Gives the plan's cgroups their choices, and takes others off; notes on what could not be had.
pub(super) fn choose(folder: &Path, plan: &Plan) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for hook in &plan.hooks {
        let Some(name) = &hook.congestion else { continue };
        if !is_known(name) {
            let known = available().join(", ");
            notes.push(format!(
                "limit \"{}\": this kernel has no congestion control {name}, only {known}",
                hook.limit
            ));
        }
        let path = store::congestion_path(folder, hook.cgroup.id);
        link::attach(&load(folder, name)?, &hook.cgroup, "limit_congestion", &path)?;
    }
    for id in store::choices(folder) {
        if !plan.hooks.iter().any(|hook| hook.cgroup.id == id && hook.congestion.is_some()) {
            let path = store::congestion_path(folder, id);
            fs::remove_file(&path).map_err(|e| Error::file(&path, e))?;
        }
    }
    Ok(notes)
}

/// Whether a socket of this host can have it; asked for, the kernel loads its module.
fn is_known(name: &str) -> bool {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    socket.is_ok_and(|socket| rustix::net::sockopt::set_tcp_congestion(&socket, name).is_ok())
}

/// The program that gives a cgroup's connections this congestion control.
fn load(folder: &Path, name: &str) -> Result<Object, Error> {
    let what = "choosing the congestion control of a cgroup (it needs BTF)";
    let loaded = Loaded::new(object::CONGESTION, what, |map, of| match of {
        store::CHOSEN => map.set_pin_path(store::map_path(folder, of)),
        _ => {
            object::set_constants(map, name.as_bytes());
            Ok(())
        }
    });
    loaded.map(Loaded::into_object)
}
