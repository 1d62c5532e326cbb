//! Frames that wait for a device: a queue of the core's, with its bound, its priorities, and pause.
//!
//! A device that takes what it is given never has one that is not empty: a frame goes straight on,
//! as from an empty queue before an idle link. From the first refusal on, or while a neighbour
//! pauses a priority, frames wait here and are served by priority (DSCP's class selector) as the
//! device takes them again. The link is the device's: the queue's own takes no time.
//!
//! A waiting frame is copied out of its buffer. Buffers are for what is read now, and a device that
//! is stuck must not take them from all others.
//!
//! Invariant: what was offered is taken out once, in order within its priority, or was refused for
//! a reason.

use crate::dataplane::frame::pause::{QUANTUM_BYTES, Quanta};
use millpond_core::counters::DropReason;
use millpond_core::packet::Packets;
use millpond_core::random::{Random, Stream};
use millpond_core::switch::QueueView;
use millpond_core::switch::admission::{Admission, AdmissionParams};
use millpond_core::switch::buffer::{BufferParams, Capacity, Memory, PerPortParams, SwitchFacts};
use millpond_core::switch::marking::{Marking, MarkingParams};
use millpond_core::switch::pause::PauseTarget;
use millpond_core::switch::port::{GeneralPort, PortConfig, Terms};
use millpond_core::switch::queue::{Queue, QueueParams, StrictPriorityParams};
use millpond_core::switch::site::{Auto, PortSite};
use millpond_core::{Bytes, Packet, PacketId, Rate, Time};

/// Bytes that may wait for a device: some super-segments of several connections, 8 ms of a gigabit.
pub const BYTES_MAX: u64 = 1 << 20;
/// How long a device that has refused is left alone. It can be full (EAGAIN), or drop what it is
/// given (ENOBUFS), the end of which nobody reports.
pub const PATIENCE: Time = Time::from_us(50);
/// The rate by which a pause's quanta are counted: that which virtual interfaces report.
const NOMINAL: Rate = Rate::from_gbps(10);

/// The queue of one device.
pub struct Egress<T> {
    port: GeneralPort,
    memory: Memory,
    random: Random,
    packets: Packets,
    /// By packet.
    items: Vec<Option<T>>,
    /// The frame that the device has refused: the next one for it.
    refused: Option<T>,
    /// Until when the device is left alone.
    retry_at: Time,
    /// By priority: until when it is paused.
    paused_until: [Time; 8],
    /// The queue's time: each service takes a moment.
    clock: Time,
}

impl<T> Default for Egress<T> {
    fn default() -> Self {
        let size = Auto::Given(Some(Bytes(BYTES_MAX))).into();
        let buffer = BufferParams::PerPort(PerPortParams { size, ..PerPortParams::default() });
        let port = GeneralPort::new(PortConfig {
            rate: Rate(u64::MAX),
            capacity: Capacity::new(&buffer, &PortSite::default()),
            control: None,
            marking: Marking::new(&MarkingParams::default()),
            admission: Admission::new(&AdmissionParams::default()),
            queue: Queue::new(&QueueParams::StrictPriority(StrictPriorityParams::default())),
        });
        Egress {
            port,
            memory: Memory::new(&buffer, &SwitchFacts::default()),
            random: Stream::new(0, "egress").into(),
            packets: Packets::default(),
            items: Vec::new(),
            refused: None,
            retry_at: Time::ZERO,
            paused_until: [Time::ZERO; 8],
            clock: Time::ZERO,
        }
    }
}

impl<T> Egress<T> {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.refused.is_none() && self.port.view().packets == 0
    }
    /// Whether a frame may go straight on.
    #[inline]
    pub fn is_idle(&self, now: Time) -> bool {
        self.is_empty() && self.paused_until.iter().all(|until| *until <= now)
    }
    /// Waiting frames, and their bytes but for the one that the device has refused.
    pub fn waiting(&self) -> (u64, u64) {
        let view = self.port.view();
        (u64::from(view.packets) + u64::from(self.refused.is_some()), view.bytes)
    }
    /// The waiting frames, without the one that the device has refused.
    pub fn view(&self) -> QueueView {
        self.port.view()
    }

    /// Queues a packet with the value of `item`. Follow with [`Egress::next`]: the packet may have
    /// a priority that is not paused.
    ///
    /// # Errors
    /// The reason to drop the packet: admission rejects it, or the queue or its memory has no room.
    pub fn offer(
        &mut self,
        now: Time,
        mut packet: Packet,
        item: impl FnOnce() -> T,
    ) -> Result<(), DropReason> {
        let now = self.at(now);
        let id = self.packets.insert(packet);
        let terms = Terms::plain(&self.random);
        if let Err(reason) = self.port.offer(now, id, &mut packet, &mut self.memory, &terms) {
            self.packets.remove(id);
            return Err(reason);
        }
        let at = id as usize;
        if at >= self.items.len() {
            self.items.resize_with(at + 1, || None);
        }
        self.items[at] = Some(item());
        Ok(())
    }

    /// The next one for the device, if it is to be tried.
    pub fn next(&mut self, now: Time) -> Option<T> {
        if self.refused.is_some() {
            return if self.retry_at <= now { self.refused.take() } else { None };
        }
        let now = self.at(now);
        let service = self.port.serve(now, &mut self.packets, &mut self.memory, &self.random);
        service.transmit.and_then(|(id, _)| self.take(id))
    }
    /// The device has refused this one, which came from here or was to go straight on.
    pub fn refuse(&mut self, now: Time, item: T) {
        self.refuse_for(now, item, PATIENCE);
    }
    /// The same of a device that is to be left alone for so long, unless [`Egress::retry`] comes
    /// first.
    pub fn refuse_for(&mut self, now: Time, item: T, patience: Time) {
        (self.refused, self.retry_at) = (Some(item), now + patience);
    }
    /// The device has reported room.
    pub fn retry(&mut self) {
        self.retry_at = Time::ZERO;
    }
    /// When [`Egress::next`] may have something again; `None`: not by itself.
    pub fn due(&self) -> Option<Time> {
        if self.refused.is_some() {
            return Some(self.retry_at);
        }
        let resume = || self.paused_until.iter().copied().filter(|until| *until > self.clock).min();
        (self.port.view().packets > 0).then(|| resume().unwrap_or(self.clock))
    }

    /// A neighbour stops priorities, or lets them go on.
    pub fn pause(&mut self, now: Time, quanta: &Quanta) {
        let now = self.at(now);
        for (priority, quanta) in quanta.iter().enumerate() {
            if let Some(quanta) = quanta {
                let until = now + NOMINAL.transmission_time(u64::from(*quanta) * QUANTUM_BYTES);
                self.paused_until[priority] = until;
                self.port.on_pause(now, PauseTarget::Priority(priority as u8), until);
            }
        }
    }

    /// Gives up all that waits; how much that was.
    pub fn clear(&mut self) -> u64 {
        let waiting: Vec<PacketId> = self.port.queued();
        let count = waiting.len() as u64 + u64::from(self.refused.is_some());
        let (clock, paused_until) = (self.clock, self.paused_until);
        *self = Egress { clock, paused_until, ..Egress::default() };
        for (priority, until) in
            paused_until.into_iter().enumerate().filter(|(_, until)| *until > clock)
        {
            self.port.on_pause(clock, PauseTarget::Priority(priority as u8), until);
        }
        count
    }

    /// A moment later than what was served last, and no earlier than `now`.
    fn at(&mut self, now: Time) -> Time {
        self.clock = now.max(self.clock + Time::from_ps(1));
        self.clock
    }
    fn take(&mut self, id: PacketId) -> Option<T> {
        self.packets.remove(id);
        self.items.get_mut(id as usize)?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::packet::TrafficClass;
    use millpond_core::{Ecn, Importance};
    use proptest::prelude::*;

    fn packet(priority: u8, size: u16) -> Packet {
        Packet {
            size,
            class: TrafficClass::new(priority, Importance::Control, Ecn::NotEct),
            ..Packet::default()
        }
    }
    fn all(egress: &mut Egress<u32>, now: Time) -> Vec<u32> {
        std::iter::from_fn(|| egress.next(now)).collect()
    }

    #[test]
    fn a_refusal_is_tried_again_and_keeps_its_place() {
        let mut egress = Egress::default();
        assert!(egress.is_idle(Time::ZERO) && egress.due().is_none());
        egress.refuse(Time::ZERO, 1);
        (2..5).for_each(|item| egress.offer(Time::ZERO, packet(0, 100), || item).unwrap());
        assert!(!egress.is_idle(Time::ZERO) && egress.next(Time::from_us(49)).is_none());
        assert_eq!(egress.due(), Some(PATIENCE));
        assert_eq!((egress.next(PATIENCE), egress.next(PATIENCE)), (Some(1), Some(2)));
        egress.refuse(PATIENCE, 2);
        assert_eq!(all(&mut egress, PATIENCE + PATIENCE), [2, 3, 4]);
        assert!(egress.is_empty() && egress.due().is_none());
    }

    #[test]
    fn the_bound_is_the_cores_and_has_its_reason() {
        let mut egress = Egress::default();
        let mut count = 0u32;
        let full = loop {
            match egress.offer(Time::ZERO, packet(0, 60_000), || count) {
                Ok(()) => count += 1,
                Err(reason) => break reason,
            }
        };
        assert_eq!((full, u64::from(count)), (DropReason::QueueFull, BYTES_MAX / 60_000));
        assert_eq!((egress.clear(), egress.is_empty()), (u64::from(count), true));
    }

    #[test]
    fn what_is_paused_waits_and_what_is_urgent_goes_first() {
        let mut egress = Egress::default();
        let quanta = |priority: usize, quanta| {
            let mut all = [None; 8];
            all[priority] = Some(quanta);
            all
        };
        egress.pause(Time::ZERO, &quanta(0, 1000));
        for (item, priority) in [0, 3, 7, 0].into_iter().enumerate() {
            egress.offer(Time::ZERO, packet(priority, 100), || item as u32).unwrap();
        }
        assert_eq!(all(&mut egress, Time::from_us(1)), [2, 1]);
        // 1000 quanta of 51.2 ns.
        let due = egress.due().unwrap();
        assert!(due > Time::from_ns(51_199) && due < Time::from_ns(51_201), "{due:?}");
        assert!(egress.next(Time::from_us(51)).is_none());
        assert_eq!(all(&mut egress, due), [0, 3]);
        egress.pause(due, &[Some(u16::MAX); 8]);
        assert!(!egress.is_idle(due));
        egress.pause(due, &[Some(0); 8]);
        assert!(egress.is_idle(due + Time::from_ns(1)));
    }

    proptest! {
        /// Whatever the device takes: each is taken out once, in the order of its priority.
        #[test]
        fn order_holds_within_a_priority(
            offered in proptest::collection::vec((0..8u8, 60..3000u16), 1..200),
            refusals in proptest::collection::vec(any::<bool>(), 1..50),
        ) {
            let mut egress = Egress::default();
            let mut out: Vec<Vec<u32>> = vec![Vec::new(); 8];
            let (mut now, mut turn) = (Time::ZERO, 0);
            for (number, (priority, size)) in (0u32..).zip(&offered) {
                egress.offer(now, packet(*priority, *size), || (*priority, number)).unwrap();
                while let Some(item) = egress.next(now) {
                    turn += 1;
                    if refusals[turn % refusals.len()] {
                        egress.refuse(now, item);
                        break;
                    }
                    out[usize::from(item.0)].push(item.1);
                }
                now += Time::from_us(20);
            }
            now += PATIENCE;
            while let Some((priority, number)) = egress.next(now) {
                out[usize::from(priority)].push(number);
            }
            prop_assert!(egress.is_empty() && out.iter().all(|numbers| numbers.is_sorted()));
            prop_assert_eq!(out.iter().map(Vec::len).sum::<usize>(), offered.len());
        }
    }
}
