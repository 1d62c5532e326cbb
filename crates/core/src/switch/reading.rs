//! The reports of a switch: occupancy, marks, what waits in it.

use super::*;

impl Switch {
    /// The queue at each port just before `at`, which is after all calls so far: with fast ports,
    /// too, a packet that would start at this very instant still waits.
    pub fn occupancy(&mut self, at: Time, mut each: impl FnMut(u16, QueueView)) {
        let before = Time::from_ps(at.as_ps().saturating_sub(1));
        let count = self.ports.count() as u16;
        (0..count).for_each(|port| self.occupancy.refresh(before, port, &mut self.ports));
        match &mut self.ports {
            Ports::Fast(ports) => {
                ports
                    .iter_mut()
                    .enumerate()
                    .for_each(|(port, it)| each(port as u16, it.settled_view(before)));
            }
            Ports::General(ports) => {
                ports.iter().enumerate().for_each(|(port, it)| each(port as u16, it.view()));
            }
        }
    }

    /// Packets marked at any port.
    pub fn marked(&self) -> u64 {
        match &self.ports {
            Ports::Fast(ports) => ports.iter().map(|p| p.marked).sum(),
            Ports::General(ports) => ports.iter().map(|p| p.marked).sum(),
        }
    }

    /// The most bytes that ever waited, by port.
    pub fn bytes_max(&self) -> Vec<u64> {
        match &self.ports {
            Ports::Fast(ports) => ports.iter().map(|p| p.bytes_max).collect(),
            Ports::General(ports) => ports.iter().map(|p| p.bytes_max).collect(),
        }
    }

    /// All packets that wait here, for the audit. Fast ports hold none: their packets are on the
    /// links already.
    pub fn queued(&self) -> Vec<PacketId> {
        match &self.ports {
            Ports::Fast(_) => Vec::new(),
            Ports::General(ports) => ports.iter().flat_map(GeneralPort::queued).collect(),
        }
    }
}
