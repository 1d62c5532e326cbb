//! Huge pages for runs of large networks.
//!
//! Hosts, ports and packets of a large network lie all over the heap, so that with pages of 4 KB
//! most reads miss the address translation's cache (the TLB), too. glibc asks for huge pages where
//! its tunable `glibc.malloc.hugetlb` is 1, which it reads from the environment when a program
//! starts. So the program starts itself once more: the same process, with the same arguments.
//!
//! Invariant: a program starts itself at most once, and nothing but its speed and its memory by a
//! few percent depends on it. Whoever sets `GLIBC_TUNABLES` keeps what they chose.

use std::ffi::OsStr;

const TUNABLES: &str = "GLIBC_TUNABLES";
/// From so many hosts on it is worth the start: FT1024 gains a seventh, FT65536 a third.
const HOSTS: u32 = 1_000;
/// Whether the kernel gives huge pages to who asks; where it gives them to all, nobody needs to.
const OFFER: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Starts the program again with huge pages, if a run of so many hosts gains by them. Returns where
/// it does not, or cannot.
pub fn start_again(hosts: u32) {
    let offer = std::fs::read_to_string(OFFER).unwrap_or_default();
    if are_wanted(hosts, &offer, std::env::var_os(TUNABLES).as_deref()) {
        exec();
    }
}

fn are_wanted(hosts: u32, offer: &str, tunables: Option<&OsStr>) -> bool {
    hosts >= HOSTS && offer.contains("[madvise]") && tunables.is_none()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn exec() {
    use std::os::unix::process::CommandExt;
    let mut arguments = std::env::args_os();
    let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) else { return };
    let mut again = std::process::Command::new(program);
    // It comes back only where it fails, and then the run goes on as it is.
    let _ = again.arg0(name).args(arguments).env(TUNABLES, "glibc.malloc.hugetlb=1").exec();
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn exec() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_networks_want_them_once_and_where_they_are_offered() {
        let offered = "always [madvise] never\n";
        assert!(are_wanted(1_024, offered, None));
        assert!(!are_wanted(320, offered, None));
        assert!(!are_wanted(1_024, "[always] madvise never\n", None));
        assert!(!are_wanted(1_024, "always madvise [never]\n", None));
        assert!(!are_wanted(1_024, "", None));
        let set = OsStr::new("glibc.malloc.hugetlb=1");
        assert!(!are_wanted(1_024, offered, Some(set)), "the program has started itself already");
    }
}
