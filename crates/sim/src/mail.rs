//! Mail from one partition to another at a window's edge: packets, and notes between the two ends
//! of a connection.
//!
//! Notes are bookkeeping of the simulation, not of the network: they cost no bandwidth and take no
//! virtual time, and no decision of a protocol depends on when one is read, as long as it is read
//! before the packets that follow it.
//!
//! Invariant: what is read at one edge is read in an order that is of links and flows alone,
//! whoever shares a partition with whom: packets in the order of their link, notes in the order of
//! flows.

use millpond_core::packet::Record;
use millpond_core::switch::pause::PauseFrame;
use millpond_core::{FlowId, HostId, Packet, Time};
use millpond_ranks::Message;
use millpond_scenario::traffic::NodeId;

/// A packet on its way into another partition.
#[derive(Clone, Copy, Debug)]
pub struct Crossing {
    /// When its last bit arrives.
    pub arrives: Time,
    /// By which of the receiving partition's inbound links.
    pub inbound: u32,
    /// Itself; its side records, if any, are next in [`Mail::records`].
    pub packet: Packet,
}

/// The mail of one partition for another in one window.
#[derive(Debug, Default)]
pub struct Mail {
    /// Packets, in the order sent (a link's packets in their order of arrival).
    pub packets: Crossings,
    /// The side records of those packets that have one.
    pub records: Vec<Record>,
    /// Pause frames: arrival, inbound link, frame.
    pub pauses: Vec<(Time, u32, PauseFrame)>,
    pub notes: Vec<Note>,
}

/// Crossings in a page of a mailbox.
const PAGE: usize = 16;

/// Crossings in order, in pages: there is a mailbox a pair of partitions, they do not all peak at
/// once, and pages of one size go from one to another through the allocator without slack.
#[derive(Debug, Default)]
pub struct Crossings {
    pages: Vec<Vec<Crossing>>,
}

impl Crossings {
    #[inline]
    pub fn push(&mut self, crossing: Crossing) {
        match self.pages.last_mut() {
            Some(page) if page.len() < PAGE => page.push(crossing),
            _ => self.push_page(crossing),
        }
    }
    #[cold]
    fn push_page(&mut self, crossing: Crossing) {
        let mut page = Vec::with_capacity(PAGE);
        page.push(crossing);
        self.pages.push(page);
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pages.first().is_none_or(|page| page.is_empty())
    }
    /// Takes all, in order. The first page stays for the next window.
    #[inline]
    pub fn take(&mut self, mut each: impl FnMut(Crossing)) {
        for page in &mut self.pages {
            page.iter().for_each(|crossing| each(*crossing));
            page.clear();
        }
        self.pages.truncate(1);
    }
}

impl Mail {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.notes.is_empty() && self.pauses.is_empty()
    }
}

/// The purpose of a connection: what its ends do when bytes have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    OneWay,
    /// One flow of a shuffle: the sender starts its next when this one is done.
    Shuffle,
    /// A request; its receiver answers with this many bytes on the next flow id.
    Request {
        /// Bytes to answer with.
        response: u64,
    },
    Response,
    /// The requests of a persistent connection: its receiver answers each on the next flow id.
    RpcRequests,
    /// The responses of a persistent connection: its receiver counts each and asks again.
    RpcResponses,
    /// The questions of a probe: its receiver answers each with as much on the next flow id.
    Pings,
    /// The answers to a probe: its receiver measures each.
    Pongs,
    /// Messages from one rank of a job to another, one after the other.
    Messages,
    /// A message from one rank of a job to another: the connection ends with it.
    Message,
}

impl Role {
    /// Whether the connection is a probe's, which makes no flow.
    pub fn is_probe(self) -> bool {
        matches!(self, Role::Pings | Role::Pongs)
    }
    /// Whether it carries messages of a job, which are announced one by one and each a record.
    pub fn is_of_ranks(self) -> bool {
        matches!(self, Role::Messages | Role::Message)
    }
    /// Whether the connection outlives its messages.
    pub fn is_persistent(self) -> bool {
        matches!(
            self,
            Role::RpcRequests | Role::RpcResponses | Role::Pings | Role::Pongs | Role::Messages
        )
    }
}

/// A connection as its receiving end learns of it.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    pub flow: FlowId,
    /// Sending host; once it is open, the address of the NIC there.
    pub src: HostId,
    /// Receiving host; once it is open, the address of the NIC there.
    pub dst: HostId,
    /// The sender's slot, for acknowledgements to carry.
    pub sender_slot: u32,
    /// Bytes of the flow, or of each message on a persistent connection.
    pub bytes: u64,
    pub role: Role,
    pub class: u16,
    /// The query that it belongs to.
    pub query: Option<u32>,
    /// When the flow (or its request) started.
    pub start: Time,
    /// Bytes of the request, where this is its response.
    pub request: u64,
}

impl Opening {
    /// Of a connection that starts now, from a host to another.
    pub fn new(now: Time, flow: FlowId, class: u16, role: Role, ends: (HostId, HostId)) -> Opening {
        let (src, dst) = ends;
        let (sender_slot, bytes, query, request) = (millpond_core::packet::NONE, 0, None, 0);
        Opening { flow, src, dst, sender_slot, bytes, role, class, query, start: now, request }
    }

    /// Of the other direction, which has the next flow id.
    pub fn back(&self, role: Role) -> Opening {
        Opening { flow: self.flow + 1, src: self.dst, dst: self.src, role, ..*self }
    }
}

/// A message of a job on its way.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    /// Where it ends in the connection's bytes.
    pub ends: u64,
    pub at: Time,
    /// The message as the receiving rank sees it.
    pub message: Message,
}

/// From one end of a connection to the other.
#[derive(Clone, Copy, Debug)]
pub enum Note {
    /// To the receiver, before the first packet.
    Open { opening: Opening, at: Time },
    /// To the sender, before the acknowledgement of the last byte.
    Delivered {
        flow: FlowId,
        /// When the last byte was delivered in order.
        at: Time,
        /// Packets that arrived out of order.
        out_of_order: u32,
        /// Packets that took another way than the one before.
        path_changes: u32,
    },
    /// To the receiver, before the first packet of a message of a job.
    Posted { flow: FlowId, message: Posted },
    /// To the sender's host: the send of a job's program is matched.
    Matched {
        /// The rank's number among those of all jobs.
        rank: u32,
        /// The send, an operation of its rank.
        operation: u32,
        /// When the sender learns of it.
        at: Time,
    },
    /// To the receiver, when all is acknowledged.
    Release(FlowId),
    /// To the host where a flow or barrier waits: one of those that it waits for is delivered.
    News {
        node: NodeId,
        /// When it can go on, as far as this one is concerned.
        at: Time,
    },
}

impl Note {
    /// The connection that it is about. News and matches are about none; in which order they are
    /// read changes nothing.
    pub fn flow(&self) -> FlowId {
        match *self {
            Note::Open { opening: Opening { flow, .. }, .. }
            | Note::Delivered { flow, .. }
            | Note::Posted { flow, .. }
            | Note::Release(flow) => flow,
            Note::News { node: number, .. } | Note::Matched { rank: number, .. } => number,
        }
    }
}
