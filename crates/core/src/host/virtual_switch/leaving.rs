//! Flows from a host: what other hosts' virtual switches let them send.

use super::*;

impl VirtualSwitch {
    /// A flow from here, as words name it.
    pub(super) fn leaving(&self, class: u16, flow: FlowId, to: HostId) -> Leaving {
        // The host that receives has the same applications.
        let application = self.port_of(Some(class), flow).unwrap_or(u16::MAX);
        Leaving { to, key: Whom::key(flow, application, self.me, to) }
    }

    /// Whether the data of a class waits for an application at another host.
    pub(super) fn is_served(&self, class: u16, to: HostId) -> bool {
        let of_class = self.by_class.get(usize::from(class)).copied().flatten();
        of_class
            .is_some_and(|(application, ..)| self.applications[usize::from(application)].is_at(to))
    }

    /// How many packets a flow from here may hand down, of those that it would. None: it waits,
    /// until [`VirtualSwitch::next_change`] names it.
    pub(in crate::host) fn admit(
        &mut self,
        now: Time,
        class: u16,
        flow: FlowId,
        to: HostId,
        wants: u32,
    ) -> u32 {
        if !self.is_served(class, to) {
            return wants;
        }
        let leaving = self.leaving(class, flow, to);
        self.talk.as_mut().map_or(wants, |talk| talk.overlay.admit(now, &leaving, wants))
    }

    /// A flow from here has handed down so many packets.
    pub(in crate::host) fn handed_down(
        &mut self,
        now: Time,
        class: u16,
        flow: FlowId,
        packets: u32,
        to: HostId,
    ) {
        let leaving = self.leaving(class, flow, to);
        if let Some(talk) = &mut self.talk {
            talk.overlay.handed_down(now, &leaving, packets);
        }
    }

    /// Whether a flow from here may not send.
    pub(in crate::host) fn is_held(&self, class: u16, flow: FlowId, to: HostId) -> bool {
        let Some(talk) = &self.talk else { return false };
        talk.overlay.is_held(&self.leaving(class, flow, to))
    }
}
