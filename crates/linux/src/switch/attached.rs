//! Ports that are memory which whoever has attached shares with the switch: an application
//! (`applications`), or a virtual machine (`guests`).
//!
//! Their rounds come after the other ports': they are looked at in every round while the switch is
//! awake, shown once a round what was done for them, and asked to wake the switch before it sleeps.
//!
//! Invariant: the switch sleeps only when none of them has anything and each will wake it.

use super::node::{Node, Round};
use crate::dataplane::fault;
use crate::dataplane::port::Port;

impl Node {
    /// Does what such a port is due, and handles what it has for now. Whether there was something.
    pub fn serve_attached(&mut self, round: &mut Round<'_>, port: usize, has_events: bool) -> bool {
        let is_stopped = self.is_stopped();
        let (now, slot) = (round.now, &mut self.slots[port]);
        let attended = fault::caught(|| slot.attend(now, has_events, is_stopped, &mut self.flat));
        let worked = attended.unwrap_or_else(|panic| {
            self.fail(port, panic);
            true
        });
        worked | (!is_stopped && self.receive(round, port, usize::MAX) > 0)
    }
    /// Shows them what was done for them in a round.
    pub fn flush_attached(&mut self, ports: &[usize]) {
        for &index in ports {
            if let Some(port) = self.slots.get_mut(index).and_then(|slot| slot.port.as_mut())
                && let Err(panic) = fault::caught(|| port.flush())
            {
                self.fail(index, panic);
            }
        }
    }
    /// Whether none has anything, and each will wake the switch.
    pub fn may_sleep(&self) -> bool {
        self.slots.iter().filter_map(|slot| slot.port.as_ref()).all(Port::may_sleep)
    }
    pub fn awake(&self) {
        self.slots.iter().filter_map(|slot| slot.port.as_ref()).for_each(Port::awake);
    }
}
