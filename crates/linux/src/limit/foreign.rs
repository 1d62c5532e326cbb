//! Sockets in another cgroup than their process. A socket belongs to the cgroup in which it was
//! made, so a process that is moved into a limited cgroup keeps unlimited sockets, and one that is
//! moved out keeps limited ones. The search is `bpf/foreign.bpf.c`, over the open files of all
//! processes.
//!
//! Invariant: reading changes nothing; without BTF nothing is known, and nothing is reported.

use super::Error;
use super::object::{self, Loaded};
use libbpf_rs::{Iter, MapCore, MapFlags};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The foreign sockets of one limited cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// Sockets of its processes that were made in other cgroups: its limit does not hold for them.
    pub made_elsewhere: u64,
    /// Sockets that were made in it, of processes that are elsewhere now: its limit holds for them.
    pub taken_elsewhere: u64,
    /// One of them: the program, its process, and the socket.
    pub example: Option<String>,
}

/// A record of `struct foreign`.
struct Record {
    cgroup: u64,
    is_taken: bool,
    text: String,
}

/// Bytes of a record.
const RECORD: usize = 56;
const IPV4: u16 = 2;

fn record(bytes: &[u8; RECORD]) -> Record {
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
    let half = |at: usize| [bytes[at], bytes[at + 1]];
    let mut address = [0; 16];
    address.copy_from_slice(&bytes[32..48]);
    let there = match u16::from_ne_bytes(half(48)) {
        IPV4 => IpAddr::from([bytes[32], bytes[33], bytes[34], bytes[35]]),
        _ => Ipv6Addr::from(address).to_canonical(),
    };
    let (port, port_there) = (u16::from_ne_bytes(half(50)), u16::from_be_bytes(half(52)));
    let name = &bytes[16..32];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..end]).replace(char::is_control, "?");
    let socket = match port_there {
        0 => format!("port {port}"),
        _ => format!("to {}", SocketAddr::new(there, port_there)),
    };
    Record {
        cgroup: u64::from(word(0)) | u64::from(word(4)) << 32,
        is_taken: word(12) != 0,
        text: format!("{name} (process {}), {socket}", word(8)),
    }
}

/// Returns the foreign sockets of each of these cgroups, in their order.
///
/// # Errors
/// [`Error::Kernel`] on a kernel without BTF or older than Linux 5.11, [`Error::Privilege`] without
/// the capabilities to load programs.
pub(super) fn find(cgroups: &[u64]) -> Result<Vec<Foreign>, Error> {
    let what = "looking for sockets that were made in other cgroups (it needs BTF, and Linux 5.11)";
    let mut found = vec![Foreign::default(); cgroups.len()];
    if cgroups.is_empty() {
        return Ok(found);
    }
    let loaded = Loaded::plain(object::FOREIGN, what)?;
    let limited = loaded.map("limited")?;
    for cgroup in cgroups {
        loaded.checked(limited.update(&cgroup.to_ne_bytes(), &[1, 0, 0, 0], MapFlags::ANY))?;
    }
    let link = loaded.attach("find_foreign")?;
    let mut bytes = Vec::new();
    let read = loaded.checked(Iter::new(&link))?.read_to_end(&mut bytes);
    read.map_err(|e| Error::Kernel { what: what.into(), reason: e.to_string() })?;
    for of in bytes.chunks_exact(RECORD).filter_map(<[u8]>::first_chunk).map(record) {
        for foreign in cgroups.iter().zip(&mut found).filter(|(id, _)| **id == of.cgroup) {
            let count = if of.is_taken {
                &mut foreign.1.taken_elsewhere
            } else {
                &mut foreign.1.made_elsewhere
            };
            *count += 1;
            foreign.1.example.get_or_insert_with(|| of.text.clone());
        }
    }
    Ok(found)
}

impl Foreign {
    /// Returns a line for people about the limit `name`, or `None` if all sockets are where their
    /// processes are.
    pub fn note(&self, name: &str) -> Option<String> {
        let sockets = |n: u64| if n == 1 { "1 socket".into() } else { format!("{n} sockets") };
        let mut parts = Vec::new();
        if self.made_elsewhere > 0 {
            let count = sockets(self.made_elsewhere);
            parts.push(format!("not limited: {count} of its processes, made in other cgroups"));
        }
        if self.taken_elsewhere > 0 {
            let count = sockets(self.taken_elsewhere);
            parts.push(format!("limited: {count} made in it, whose processes have left"));
        }
        let example = self.example.as_ref()?;
        Some(format!(
            "limit \"{name}\": {} (such as {example}): a socket stays in the cgroup that made it, \
             so start the program again, by millpond limit run {name} -- COMMAND",
            parts.join("; ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_its_socket() {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&(7u64 << 32 | 5).to_ne_bytes());
        bytes[8..12].copy_from_slice(&42u32.to_ne_bytes());
        bytes[12] = 1;
        bytes[16..22].copy_from_slice(b"ip\x1brf3");
        bytes[32..36].copy_from_slice(&[10, 0, 0, 2]);
        bytes[48..50].copy_from_slice(&IPV4.to_ne_bytes());
        bytes[52..54].copy_from_slice(&5201u16.to_be_bytes());
        let of = record(&bytes);
        assert_eq!((of.cgroup, of.is_taken), (7 << 32 | 5, true));
        assert_eq!(of.text, "ip?rf3 (process 42), to 10.0.0.2:5201");
        bytes[50..54].copy_from_slice(&[80u16.to_ne_bytes(), [0; 2]].concat());
        assert_eq!(record(&bytes).text, "ip?rf3 (process 42), port 80");
    }

    #[test]
    fn a_note_counts_both_ways_and_names_the_remedy() {
        assert_eq!(Foreign::default().note("a"), None);
        let both = Foreign { made_elsewhere: 1, taken_elsewhere: 2, example: Some("x".into()) };
        let note = both.note("a").unwrap();
        for part in ["not limited: 1 socket of", "limited: 2 sockets made", "limit run a --"] {
            assert!(note.contains(part), "{part} not in {note}");
        }
    }
}
