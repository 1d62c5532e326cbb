//! Flowlets as a switching chip keeps them: by which port an entry's packets leave, and when the
//! last one did (Alizadeh et al.: CONGA, SIGCOMM 2014 §3.4, whose table LetFlow uses).
//!
//! Flows share entries by their hash: two flows of one entry are one to the table.
//!
//! Invariant: packets of an entry that follow each other within the gap leave by one port while
//! that may be taken.

use super::Site;
use crate::packet::Packet;
use crate::random::mix64;
use crate::units::Time;

/// A flowlet: by which port, and when its last packet came.
#[derive(Clone, Copy, Debug)]
struct Flowlet {
    last: Time,
    port: u16,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Flowlets {
    /// A longer silence ends a flowlet.
    gap: Time,
    entries: u32,
    /// By entry; empty before the first packet, since most switches of a tree never choose.
    table: Vec<Option<Flowlet>>,
}

impl Flowlets {
    pub(super) fn new(gap: Time, entries: u32) -> Flowlets {
        Flowlets { gap, entries: entries.max(1), table: Vec::new() }
    }

    /// The port by which a packet's flowlet goes on; `next` reports that of a new one. It is given
    /// the port of the flowlet before, if that may still be taken.
    pub(super) fn port(
        &mut self,
        now: Time,
        packet: &Packet,
        site: Site,
        candidates: &[u16],
        next: impl FnOnce(Option<u16>) -> u16,
    ) -> u16 {
        if self.table.is_empty() {
            self.table = vec![None; self.entries as usize];
        }
        let entry = &mut self.table[place(packet, site, self.entries as usize)];
        let before = entry.filter(|it| candidates.contains(&it.port));
        let port = match before {
            Some(it) if now.saturating_sub(it.last) <= self.gap => it.port,
            _ => next(before.map(|it| it.port)),
        };
        *entry = Some(Flowlet { last: now, port });
        port
    }
}

/// The place of a packet's flow among so many, by its hash and the switch's salt.
pub(super) fn place(packet: &Packet, site: Site, among: usize) -> usize {
    let hash = mix64(u64::from(packet.entropy) << 32 | u64::from(site.salt)) >> 32;
    ((hash * among as u64) >> 32) as usize
}
