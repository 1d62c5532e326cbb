//! The kernel's losses on a frame's way to the switch, counted at the port or path that it came to.
//!
//! A tap's queue to the switch has a bound; what is beyond it the kernel drops and counts as the
//! interface's (`tx_dropped`). So it does with a socket's receive queue (`SO_MEMINFO`; for UDP that
//! is what `UdpRcvbufErrors` sums up). An interface is asked for by `/proc/net/dev` of its
//! namespace: that takes no lock which somebody who makes or removes interfaces holds, and frames
//! would wait.
//!
//! Invariant: a lost frame is counted once, from when its port was opened on.

use crate::dataplane::counters::Drop;
use crate::dataplane::port::Port;
use crate::dataplane::slot::Slot;
use millpond_worlds::namespace::{self, Identity};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};

/// By interface: what the kernel has dropped that was sent on it.
type Dropped = BTreeMap<String, u64>;

/// The lists of interfaces of the namespaces that ports are in.
#[derive(Default)]
pub struct Losses {
    lists: BTreeMap<Option<Identity>, File>,
}

/// Parses `/proc/net/dev`: after a name and a colon eight numbers of what came and eight of what
/// went, the fourth of them drops.
fn parse(text: &str) -> Dropped {
    let line = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        Some((name.trim().to_string(), numbers.split_whitespace().nth(11)?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

impl Losses {
    /// Of a namespace: the one that `home` is, by the name that a port has for it.
    fn list(&mut self, home: Option<Identity>, namespace: Option<&str>) -> Option<Dropped> {
        let list = match self.lists.entry(home) {
            std::collections::btree_map::Entry::Occupied(list) => list.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let open = || File::open("/proc/thread-self/net/dev");
                place.insert(namespace::within(namespace, open).ok()?.ok()?)
            }
        };
        let mut text = String::new();
        list.rewind().and_then(|()| list.read_to_string(&mut text)).ok()?;
        Some(parse(&text))
    }

    /// Counts what was lost at these ports since the last call; `opened`: what was lost before that
    /// one was opened does not count.
    pub fn count<'a>(
        &mut self,
        ports: impl Iterator<Item = (&'a mut Slot, Option<Identity>, Option<&'a str>)>,
    ) {
        let mut lists: BTreeMap<Option<Identity>, Option<Dropped>> = BTreeMap::new();
        for (slot, home, namespace) in ports {
            match &slot.port {
                Some(Port::Tap(tap)) => {
                    let list = lists.entry(home).or_insert_with(|| self.list(home, namespace));
                    if let Some(total) =
                        list.as_ref().and_then(|list| list.get(tap.device().name()))
                    {
                        let total = *total;
                        slot.counters.rose(Drop::DeviceFull, total);
                    }
                }
                Some(Port::AfPacket(port)) => {
                    let total = port.lost();
                    slot.counters.rose(Drop::SocketFull, total);
                }
                _ => {}
            }
        }
        // Of namespaces without ports nothing keeps them alive.
        self.lists.retain(|home, _| lists.contains_key(home));
    }

    /// A port was opened: what its interface has lost before does not count.
    pub fn opened(&mut self, slot: &mut Slot, home: Option<Identity>, namespace: Option<&str>) {
        let total = match &slot.port {
            Some(Port::Tap(tap)) => {
                self.list(home, namespace).and_then(|list| list.get(tap.device().name()).copied())
            }
            _ => None,
        };
        slot.counters.rises_from(total.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read() {
        let text = "Inter-|   Receive |  Transmit\n face |bytes packets errs\nlo: 1 2 3 4 5 6 7 8 \
                    9 10 11 12 13 14 15 16\n mpa:0 0 0 0 0 0 0 0 0 0 0 388665 0 0 0 0\nbad: 1 2\n";
        assert_eq!(parse(text), Dropped::from([("lo".into(), 12), ("mpa".into(), 388_665)]));
        let mut losses = Losses::default();
        for _ in 0..2 {
            assert!(losses.list(None, None).unwrap().contains_key("lo"), "again and again");
        }
    }
}
