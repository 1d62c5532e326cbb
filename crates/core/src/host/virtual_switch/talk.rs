//! The packets of a host's [`Overlay`]: which kind the host has, the packets that carry its
//! records, and which of them are lost on arrival (`control-loss`).
//!
//! Invariant: the timer is no later than the overlay's deadline.

use super::credits::Credits;
use super::overlay::Overlay;
use super::pauses::Pauses;
use super::picnic::Picnic;
use super::{Call, HostWire, Port, VirtualSwitchConfig, VirtualSwitchParams};
use crate::overlay::Word;
use crate::packet::overlay::Words;
use crate::packet::{Body, Ecn, FlowId, HostId, Importance, Packet, TTL, TrafficClass, flags};
use crate::random::{Stream, mix64};
use crate::units::Time;
use std::collections::BTreeMap;

pub(super) struct Talk {
    pub(super) overlay: Box<dyn Overlay>,
    priority: u8,
    /// When the host is called; [`Time::MAX`]: it is not.
    timer_at: Time,
    loss: f64,
    loss_run: u32,
    /// By sender: packets lost in a row.
    lost: BTreeMap<HostId, u32>,
    random: Stream,
    /// By [`Word::index`].
    pub(super) sent: [u64; Word::COUNT],
}

impl Talk {
    /// `None`: the kind sends no records.
    pub(super) fn new(config: &mut VirtualSwitchConfig) -> Option<Box<Talk>> {
        let overlay: Box<dyn Overlay> = match &config.params {
            VirtualSwitchParams::Backdraft(p) => Box::new(Pauses::new(config, p)),
            VirtualSwitchParams::Credits(p) => Box::new(Credits::new(config, p)),
            VirtualSwitchParams::Picnic(p) => Box::new(Picnic::new(config, p)),
            _ => return None,
        };
        let speaking = config.params.speaking()?;
        Some(Box::new(Talk {
            overlay,
            priority: speaking.priority as u8,
            timer_at: Time::MAX,
            loss: speaking.control_loss,
            loss_run: speaking.control_loss_run,
            lost: BTreeMap::new(),
            random: config.random.fork(),
            sent: [0; Word::COUNT],
        }))
    }

    /// Whether a packet from there is lost on arrival.
    pub(super) fn loses(&mut self, from: HostId) -> bool {
        if self.loss <= 0.0 {
            return false;
        }
        let run = self.lost.entry(from).or_insert(0);
        let is_lost = *run < self.loss_run && self.random.unit() < self.loss;
        *run = if is_lost { *run + 1 } else { 0 };
        is_lost
    }

    pub(super) fn on_record(&mut self, now: Time, me: HostId, from: HostId, words: &Words) {
        for record in words.records(from, me) {
            self.overlay.on_record(now, from, &record);
        }
    }

    /// Ends what has lasted for long enough, if the timer is due. A call that was taken back may
    /// come nevertheless, and changes nothing.
    pub(super) fn expire(&mut self, now: Time, ports: &mut [Port]) -> bool {
        let is_due = self.timer_at == now;
        if is_due {
            self.timer_at = Time::MAX;
            self.overlay.expire(now, ports);
        }
        is_due
    }

    /// The next packet for another host's switch, and its records.
    pub(super) fn next(
        &mut self,
        now: Time,
        me: HostId,
        ports: &mut [Port],
    ) -> Option<(Packet, Words)> {
        let (to, records) = self.overlay.next(now, ports)?;
        for record in &records {
            self.sent[record.word.index()] += 1;
        }
        let words = Words::new(&records);
        let packet = Packet {
            body: Body::Overlay {},
            stamp: now,
            flow: FlowId::MAX,
            src: me,
            dst: to,
            entropy: mix64(u64::from(me) << 32 | u64::from(to)) as u32,
            size: words.bytes() as u16,
            flags: flags::LAST,
            class: TrafficClass::new(self.priority, Importance::Control, Ecn::NotEct),
            ttl: TTL,
            ..Packet::default()
        };
        Some((packet, words))
    }

    /// Keeps the timer no later than there is something to do.
    pub(super) fn arm<W: HostWire>(&mut self, now: Time, wire: &mut W) {
        let next = self.overlay.deadline().unwrap_or(Time::MAX);
        let next = if next == Time::MAX { next } else { next.max(now + Time::from_ps(1)) };
        if next == self.timer_at {
            return;
        }
        if self.timer_at != Time::MAX {
            wire.recall(self.timer_at, Call::Overlay);
        }
        self.timer_at = next;
        if next != Time::MAX {
            wire.call(next, Call::Overlay);
        }
    }
}
