//! The answers of queue pairs: acknowledgements, NACKs and notifications of congestion.
//!
//! Invariant: an answer carries what the switches have written on the data that it answers.

use super::wire::at_host;
use super::{Host, Hosts, Way};
use crate::endpoint::AckOut;
use crate::fabric::Fabric;
use millpond_core::packet::{Body, Kind, Packet, Side, Telemetry, flags, rdma, telemetry};
use millpond_core::{Ecn, Importance, Time, TrafficClass};

impl Hosts {
    /// A queue pair's data has arrived, and these are the answers to send. One to important data is
    /// its echo, and leaves in any case.
    #[inline(never)]
    pub fn answer_pair(
        &mut self,
        now: Time,
        slot: u32,
        data: &mut Packet,
        answers: [Option<AckOut>; 2],
        fabric: &mut Fabric,
    ) {
        let echoes = self.receivers.at(slot).receiver.echoes(&self.shared.transport);
        let echo = if echoes { data.class.importance().echo() } else { Importance::Control };
        let [mut answer, notification] = answers;
        if echo != Importance::Control {
            self.counters.marking.echoes[usize::from(echo == Importance::ForcedEcho)] += 1;
            answer = answer.or_else(|| {
                let receiver = &mut self.receivers.at(slot).receiver;
                receiver.acknowledge(data.ecn() == Ecn::Ce, &self.shared.transport)
            });
        }
        if let Some(answer) = answer {
            self.respond(now, slot, &answer, data, echo, fabric);
        }
        if let Some(notification) = notification {
            self.respond(now, slot, &notification, data, Importance::Control, fabric);
        }
    }

    fn respond(
        &mut self,
        now: Time,
        slot: u32,
        answer: &AckOut,
        data: &mut Packet,
        importance: Importance,
        fabric: &mut Fabric,
    ) {
        let shared = &*self.shared;
        let receiving = self.receivers.at(slot);
        let (ack, hops) = (answer.ack, receiving.hops);
        let (body, beyond) = match answer.kind {
            Kind::Cnp => (Body::Cnp { slot }, rdma::CNP_BYTES),
            Kind::Nack => (Body::Nack { ack, slot, hops }, rdma::ACK_BYTES),
            _ => (Body::RdmaAck { ack, slot, hops }, rdma::ACK_BYTES),
        };
        let written = match answer.kind {
            Kind::Cnp => Side::NONE,
            _ => fabric.packets.lift::<Telemetry>(data),
        };
        let priority = receiving
            .receiver
            .priority(answer.kind, &shared.transport)
            .unwrap_or(receiving.priority);
        let record = if written.is_none() { 0 } else { telemetry::BYTES };
        let size = shared.header + beyond + record;
        let class = TrafficClass::new(priority, importance, Ecn::NotEct);
        let mut packet = Way::of_receiver(receiving).packet(body, answer.stamp, size, class);
        packet.flags = if answer.ece { flags::ECE } else { 0 };
        let (node, mut link) = at_host!(self, receiving.host, fabric);
        link.sack = (answer.sack.count > 0).then_some(&answer.sack);
        link.written = written;
        node.answer(
            now,
            packet,
            receiving.ingress.as_deref_mut(),
            || Some(receiving.opening.class),
            &mut link,
        );
        // A limit may have refused the answer.
        let left = link.written;
        fabric.packets.release(left);
        self.note_departures(fabric);
    }
}
