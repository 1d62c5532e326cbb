//! A host's receiving connections, as the stages of ingress ask for them.

use super::order::Order;
use super::{HostWire, Label};
use crate::packet::{FlowId, Packet, Packets};

/// A connection's state at the host that it receives at.
#[derive(Default)]
pub struct Ingress {
    pub(super) label: Option<Box<Label>>,
    /// The buffer that restores the order of its packets, while that is needed.
    pub(super) order: Option<Box<Order>>,
}

impl Ingress {
    /// Of a connection whose acknowledgements have labels.
    pub fn labelled(label: Box<Label>) -> Box<Ingress> {
        Box::new(Ingress { label: Some(label), order: None })
    }

    /// Packets that it holds.
    pub fn kept(&self) -> usize {
        self.order.as_ref().map_or(0, |order| order.len())
    }

    /// Its connection is over: frees what it holds and takes back its timer.
    pub fn close<W: HostWire>(&mut self, flow: FlowId, wire: &mut W) {
        if let Some(order) = self.order.take() {
            order.close(flow, wire);
        }
    }
}

pub struct Expecting<'a> {
    /// The next byte that its endpoint expects.
    pub next: u64,
    pub ingress: &'a mut Option<Box<Ingress>>,
}

/// The connections of a host, as the stages of ingress ask for them.
#[warn(missing_docs)]
pub trait Flows {
    /// The class of a packet's traffic, if its connection is known.
    fn class(&self, packet: &Packet) -> Option<u16>;
    /// The connection that a data packet is for; `None`: it is over.
    fn expecting(&mut self, packet: &Packet) -> Option<Expecting<'_>>;
    /// Whether a data packet is ahead of what its endpoint expects.
    fn is_ahead(&mut self, packet: &Packet, _: &Packets) -> bool {
        self.expecting(packet).is_some_and(|it| packet.seq() > it.next)
    }
    /// Whether a data packet ends its flow or message.
    fn ends_message(&mut self, _: &Packet) -> bool {
        true
    }
    /// The connection of this flow that receives here.
    fn receiving(&mut self, flow: FlowId) -> Option<Expecting<'_>>;
}
