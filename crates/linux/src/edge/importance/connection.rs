//! One tracked connection: both its directions, and the model of the frames that the shim sends.
//!
//! Invariant: a connection exists only while both its handshake packets are known.

use super::counters::{Counters, Reason};
use super::options::{self, Blocks, Offer};
use super::params::ShimParams;
use super::receiver::Receiving;
use super::segment::Segment;
use super::sender::{Acknowledgement, Sending, Terms};
use super::template::{Fields, Template};
use crate::dataplane::frame::parse::tcp;
use millpond_core::{Importance, Time};

/// One end's handshake packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Syn {
    pub isn: u32,
    pub window: u16,
    pub offer: Offer,
}

impl Syn {
    /// Reads a SYN or SYN-ACK.
    ///
    /// # Errors
    /// The reason why its flow cannot be tracked.
    pub fn read(segment: &Segment<'_>) -> Result<Syn, Reason> {
        if !segment.payload.is_empty() {
            return Err(Reason::SynData);
        }
        // Accurate ECN is offered with AE, CWR and ECE, and accepted with AE or with CWR alone.
        let echoes = segment.flags & (tcp::ECE | tcp::CWR);
        let accepts = segment.has(tcp::ACK) && echoes & tcp::CWR != 0;
        if segment.reserved & 1 != 0 || accepts {
            return Err(Reason::AccurateEcn);
        }
        let offer = options::offer(segment.options).ok_or(Reason::Option)?;
        Ok(Syn { isn: segment.seq, window: segment.window, offer })
    }
}

/// Decision for an incoming packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub swallow: bool,
    pub strip: bool,
    /// Call [`Connection::force`] after `delta`.
    pub force: bool,
    /// Call [`Connection::echo`] after `echo_wait`.
    pub echo: bool,
}

pub(super) struct Connection {
    pub sending: Sending,
    pub receiving: Receiving,
    template: Template,
    has_stamps: bool,
}

impl Connection {
    /// Of a connection whose handshake packets are these; `template` is of the host's.
    pub fn new(
        params: &ShimParams,
        ours: &Syn,
        theirs: &Syn,
        mut template: Template,
    ) -> Connection {
        let (scale_ours, scale_theirs) = match (ours.offer.scale, theirs.offer.scale) {
            (Some(ours), Some(theirs)) => (ours, theirs),
            _ => (0, 0),
        };
        let stamps = ours.offer.stamps.filter(|_| theirs.offer.stamps.is_some());
        template.open(ours.window >> scale_ours, stamps);
        let has_sack = ours.offer.sack && theirs.offer.sack;
        Connection {
            sending: Sending::new(
                params,
                ours.isn,
                theirs.window,
                theirs.offer.mss,
                scale_theirs,
                has_sack,
            ),
            receiving: Receiving::new(theirs.isn, ours.window, scale_ours),
            template,
            has_stamps: stamps.is_some(),
        }
    }

    /// Whether it is the connection of these handshake packets.
    pub fn is_of(&self, ours: &Syn, theirs: &Syn) -> bool {
        self.sending.numbers().begins_with(ours.isn)
            && self.receiving.numbers().begins_with(theirs.isn)
    }
    pub fn is_done(&self) -> bool {
        self.sending.is_done() && self.receiving.is_done()
    }
    /// Whether an RST with this sequence number ends it at the host (RFC 5961 §3.2).
    pub fn is_reset_by(&self, seq: u32) -> bool {
        seq == self.receiving.ack()
    }

    /// The host sends a packet, not of a handshake. Returns its importance. `room`: memory that the
    /// cache may take.
    ///
    /// # Errors
    /// The reason why the flow cannot be tracked any longer.
    pub fn outgoing(
        &mut self,
        now: Time,
        segment: &Segment<'_>,
        room: usize,
        mut terms: Terms<'_>,
    ) -> Result<Importance, Reason> {
        let options = options::read(segment.options).ok_or(Reason::Option)?;
        if segment.has(tcp::URG) {
            return Err(Reason::Urgent);
        }
        if !segment.has(tcp::ACK) || options.echo.is_some() {
            return Err(Reason::Stream);
        }
        let stamps = options.stamps.filter(|_| self.has_stamps);
        if !self.receiving.on_sent(segment.ack, segment.window) {
            return Err(Reason::Stream);
        }
        self.template.update(segment, stamps);
        if segment.is_pure_ack() {
            let echo = self.receiving.take_echo(segment.ack, options.sack.as_slice());
            terms.counters.echoes_marked += u64::from(echo.is_some());
            return Ok(echo.unwrap_or(Importance::Control));
        }
        let is_last = segment.has(tcp::FIN);
        if segment.payload.is_empty() {
            if is_last {
                self.sending.on_fin(segment.seq);
            }
            return Ok(Importance::Control);
        }
        let (seq, payload) = (segment.seq, segment.payload);
        let data = self.sending.on_data(now, seq, payload, is_last, room, &mut terms)?;
        terms.counters.sent(data, payload.len());
        Ok(data)
    }

    /// A packet comes, not of a handshake.
    ///
    /// # Errors
    /// The reason why the flow cannot be tracked any longer.
    pub fn incoming(
        &mut self,
        segment: &Segment<'_>,
        counters: &mut Counters,
    ) -> Result<Decision, Reason> {
        let options = options::read(segment.options).ok_or(Reason::Option)?;
        let mut decision = Decision::default();
        if segment.has(tcp::ACK) {
            let has_dsack = options::has_dsack(segment.ack, &options.sack);
            let blocks = options.sack.as_slice();
            let blocks = if has_dsack { blocks.get(1..).unwrap_or(&[]) } else { blocks };
            let is_pure = segment.is_pure_ack();
            let importance = if is_pure { segment.importance } else { Importance::Control };
            let is_echo = matches!(importance, Importance::Echo | Importance::ForcedEcho);
            let echo = options.echo.as_ref().filter(|_| is_echo).map(Blocks::as_slice);
            let (is_redundant, force) = self.sending.on_ack(&Acknowledgement {
                importance,
                ack: segment.ack,
                window: segment.window,
                blocks: echo.unwrap_or(blocks),
                is_shims: echo.is_some(),
                is_pure: is_pure && !segment.has(tcp::ECE),
            });
            counters.echoes_received += u64::from(is_echo);
            decision = Decision {
                swallow: is_redundant,
                strip: has_dsack && self.sending.has_forced(),
                force,
                echo: false,
            };
        }
        let has_fin = segment.has(tcp::FIN);
        if !segment.payload.is_empty() || has_fin {
            let length = segment.payload.len();
            decision.echo =
                self.receiving.on_data(segment.seq, length, has_fin, segment.importance);
        }
        Ok(decision)
    }

    /// Writes the frame to force out, if the host has sent nothing since the echo. Returns the
    /// length of its payload.
    pub fn force(
        &mut self,
        now: Time,
        frame: &mut Vec<u8>,
        counters: &mut Counters,
    ) -> Option<usize> {
        let mut payload = Vec::new();
        let (seq, importance) = self.sending.force(now, &mut payload, counters)?;
        let ack = self.receiving.ack();
        let fields = Fields { seq, ack, importance, echo: None, payload: &payload };
        self.template.write(&fields, frame);
        Some(payload.len())
    }

    /// Writes the echo that is due, if the host has sent none.
    pub fn echo(&mut self, frame: &mut Vec<u8>) -> bool {
        let mut ranges = Vec::new();
        let Some(importance) = self.receiving.echo(&mut ranges) else { return false };
        let fields = Fields {
            seq: self.sending.next(),
            ack: self.receiving.ack(),
            importance,
            echo: Some(&ranges),
            payload: &[],
        };
        self.template.write(&fields, frame);
        true
    }
}
