//! Programs of others that exclude ours from a cgroup: attached as the only one there and below, or
//! as one that others may replace and not join. The kernel's error for both is `EPERM`.
//!
//! Invariant: a failed query reports no such program.

use super::cgroup::Cgroup;
use libbpf_rs::query::ProgInfoIter;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// The hooks that limits need, by direction, and the one of connections.
const EGRESS: u32 = libbpf_sys::BPF_CGROUP_INET_EGRESS;
const INGRESS: u32 = libbpf_sys::BPF_CGROUP_INET_INGRESS;
const CONNECTIONS: u32 = libbpf_sys::BPF_CGROUP_SOCK_OPS;

/// The hooks of a cgroup that gets programs for these directions, and for its connections.
pub(super) fn hooks(directions: [bool; 2], connections: bool) -> Vec<u32> {
    let all = [(EGRESS, directions[0]), (INGRESS, directions[1]), (CONNECTIONS, connections)];
    all.into_iter().filter(|(_, wanted)| *wanted).map(|(hook, _)| hook).collect()
}

/// How a cgroup's programs were attached, and which they are.
#[allow(unsafe_code)]
fn attached(cgroup: &Path, hook: u32) -> Option<(u32, Vec<u32>)> {
    let folder = File::open(cgroup).ok()?;
    let (mut ids, mut count, mut flags) = (vec![0u32; 64], 64u32, 0u32);
    // SAFETY: `ids` has room for `count` numbers, and all three outlive the call.
    let done = unsafe {
        libbpf_sys::bpf_prog_query(
            folder.as_raw_fd(),
            hook,
            0,
            &mut flags,
            ids.as_mut_ptr(),
            &mut count,
        )
    };
    ids.truncate(count as usize);
    (done == 0).then_some((flags, ids))
}

/// Whose program keeps ours from a hook of `cgroup`, for people; `None`: nobody's.
pub(super) fn in_the_way(cgroup: &Cgroup, hooks: &[u32]) -> Option<String> {
    hooks.iter().find_map(|hook| {
        for (up, folder) in cgroup.path.ancestors().take(cgroup.level as usize + 1).enumerate() {
            let (flags, ids) = attached(folder, *hook)?;
            let Some(id) = ids.first() else { continue };
            match (up, flags) {
                (0, libbpf_sys::BPF_F_ALLOW_MULTI) => continue,
                (_, libbpf_sys::BPF_F_ALLOW_MULTI) => return None,
                // Of a cgroup above: for those below to replace.
                (1.., libbpf_sys::BPF_F_ALLOW_OVERRIDE) => return None,
                _ => return Some(described(folder, *id)),
            }
        }
        None
    })
}

fn described(folder: &Path, id: u32) -> String {
    let name =
        ProgInfoIter::default().find(|p| p.id == id).map(|p| p.name.to_string_lossy().into_owned());
    let name =
        name.filter(|name| !name.is_empty()).map_or(String::new(), |name| format!(" \"{name}\""));
    format!(
        "{} has a BPF program{name} (number {id}) that allows no other beside it, there or below: \
         detach it, or have it attached with BPF_F_ALLOW_MULTI",
        folder.display()
    )
}
