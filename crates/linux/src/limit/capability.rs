//! The capabilities of this process, as the kernel names them.
//!
//! Invariant: what cannot be found out counts as lacking.

use std::fs;

/// One of them, by its number and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability(u32, &'static str);

pub const NET_ADMIN: Capability = Capability(12, "CAP_NET_ADMIN");
pub const SYS_ADMIN: Capability = Capability(21, "CAP_SYS_ADMIN");
/// Programs that the verifier lets do more: loops whose end it has to find, pointers that are
/// compared.
pub const PERFMON: Capability = Capability(38, "CAP_PERFMON");
pub const BPF: Capability = Capability(39, "CAP_BPF");
/// The capabilities that it takes to load programs, and to attach them.
pub const PROGRAMS: &[Capability] = &[BPF, PERFMON, NET_ADMIN];

/// Those of `needed` that this thread has not, by name.
pub fn lacking(needed: &[Capability]) -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    lacking_of(mask, needed)
}

fn lacking_of(mask: u64, needed: &[Capability]) -> Vec<&'static str> {
    let has = |of: Capability| (mask >> of.0) & 1 == 1;
    // The rights that CAP_SYS_ADMIN includes since before there were the others.
    let had = |of: &Capability| has(*of) || ([BPF, PERFMON].contains(of) && has(SYS_ADMIN));
    needed.iter().filter(|of| !had(of)).map(|of| of.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_named() {
        assert_eq!(lacking_of(0, PROGRAMS), ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"]);
        assert_eq!(lacking_of(1 << 39 | 1 << 12, PROGRAMS), ["CAP_PERFMON"]);
        assert_eq!(lacking_of(1 << 21, PROGRAMS), ["CAP_NET_ADMIN"]);
        assert!(lacking_of(!0, PROGRAMS).is_empty());
    }
}
