//! millpond's own DCTCP, registered with the kernel on request.
//!
//! Invariant: it is registered as long as its link is pinned; sockets that use it keep it until they close.

use super::Error;
use super::capability::PROGRAMS;
use super::object;
use libbpf_rs::MapCore;
use std::fs;
use std::path::Path;

/// Where its link is pinned, and what it is called.
pub const NAME: &str = "mp_dctcp";

/// Congestion controls that this kernel knows at this moment.
pub fn available() -> Vec<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(String::from).collect()
}

/// Registers it, or takes it back. Whether it is there in the end.
pub(super) fn register(folder: &Path, wanted: bool) -> Result<(), Error> {
    let pin = folder.join(NAME);
    match (wanted, pin.exists()) {
        (true, false) => {}
        (false, true) => return fs::remove_file(&pin).map_err(|e| Error::file(&pin, e)),
        _ => return Ok(()),
    }
    let what = "registering mp_dctcp (it needs BTF, and struct_ops links: Linux 6.4)";
    let fail = |e: libbpf_rs::Error| Error::kernel(what, PROGRAMS, &e);
    let mut loaded = object::open(object::DCTCP, what)?.load().map_err(fail)?;
    let map = loaded.maps_mut().find(|m| m.name() == NAME);
    let mut map = map.ok_or_else(|| Error::Kernel { what: what.into(), reason: "no such map".into() })?;
    let mut link = map.attach_struct_ops().map_err(fail)?;
    link.pin(&pin).map_err(fail)
}
