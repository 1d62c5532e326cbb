//! The answers of queue pairs: acknowledgements, NACKs and notifications of congestion.
//!
//! Invariant: an answer carries what the switches have written on the data that it answers.

use super::receiving::stages_let_see;
use super::*;
use crate::endpoint::Answer as Told;
use millpond_core::Sack;
use millpond_core::packet::{Side, Telemetry, rdma, telemetry};

impl Hosts {
    /// An acknowledgement, a NACK or a CNP has arrived.
    #[inline(never)]
    pub(super) fn on_answer_of_pair(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let Some(sending) = self.senders.get(packet.peer, packet.flow) else { return };
        sending.peer = packet.slot();
        let (ack, hops) = match packet.body {
            Body::RdmaAck { ack, hops, .. } | Body::Nack { ack, hops, .. } => (ack, hops),
            _ => (sending.sender.acked(), 0),
        };
        let (sack, telemetry) =
            (fabric.packets.side::<Sack>(packet), fabric.packets.side::<Telemetry>(packet));
        let ece = packet.has(flags::ECE);
        let ack = AckIn { ack, ece, sack, stamp: packet.stamp, hops, mapping: None };
        if stages_let_see(now, sending, packet, &ack) {
            let rewinds = sending.sender.rewinds();
            sending.sender.on_answer(
                now,
                &Told { kind: packet.kind(), ack, telemetry },
                &self.shared.transport,
            );
            if sending.sender.rewinds() > rewinds
                && let Some(marker) = sending.egress.as_mut().and_then(|egress| egress.marker())
            {
                marker.on_rewind();
            }
        }
        self.go_on(now, packet, fabric);
    }

    /// A queue pair's data has arrived, and these are the answers to send. One to important data is
    /// its echo, and leaves in any case.
    #[inline(never)]
    pub(super) fn answer_pair(
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
                receiver.answer_now(data.ecn() == Ecn::Ce, &self.shared.transport)
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
        let told = if written.is_none() { 0 } else { telemetry::BYTES };
        let size = shared.header + beyond + told;
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
