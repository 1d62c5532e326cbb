//! The fast port: packets of one FIFO leave at times that are known when they join it.
//!
//! Where ports share a memory, what has left a queue is given back late: when its port is offered
//! the next packet, or when a packet finds no room by what is charged still. So what is charged is
//! never less than what waits, who finds room by it has room, and who does not is judged by what
//! waits.

use super::*;

/// A port that is one number: when its link will be free. The fields that a packet changes are one
/// cache line; those that few packets change are behind it.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct FastPort {
    busy_until: Time,
    /// When the first packet that waits starts. They follow each other without a gap, so one time
    /// gives all of theirs.
    first_starts: Time,
    /// Bytes and packets that have not yet started.
    bytes: u64,
    packets: u32,
    /// Of the first of these: its place in `sizes`.
    head: u32,
    /// Their sizes, in a ring whose length is a power of two. Only for occupancy: the packets
    /// themselves are on their way already.
    sizes: Box<[u16]>,
    rules: Arc<Rules>,
    /// The most bytes that ever waited.
    pub bytes_max: u64,
    marking: Marking,
    pub(in crate::switch) admission: Admission,
    /// Packets marked here.
    pub marked: u64,
    /// Bytes that a memory shared with other ports has down for this one.
    charged: u64,
}

impl FastPort {
    /// A port with an idle link.
    pub fn new(config: PortConfig) -> FastPort {
        let rules = Arc::new(Rules::new(&config));
        FastPort::ruled(config, rules)
    }

    fn ruled(config: PortConfig, rules: Arc<Rules>) -> FastPort {
        FastPort {
            busy_until: Time::ZERO,
            first_starts: Time::ZERO,
            bytes: 0,
            packets: 0,
            head: 0,
            sizes: Box::default(),
            bytes_max: 0,
            rules,
            marking: config.marking,
            admission: config.admission,
            marked: 0,
            charged: 0,
        }
    }

    /// The ports of a switch, in order.
    pub fn all(configs: &[PortConfig]) -> Vec<FastPort> {
        let port =
            |(rules, config): (Arc<Rules>, &PortConfig)| FastPort::ruled(config.clone(), rules);
        Rules::of_all(configs).zip(configs).map(port).collect()
    }

    /// The size of the `nth` packet that waits.
    #[inline]
    fn size(&self, nth: u32) -> u64 {
        u64::from(self.sizes[(self.head + nth) as usize & (self.sizes.len() - 1)])
    }

    #[inline]
    fn wait(&mut self, size: u64) {
        if self.packets as usize == self.sizes.len() {
            self.grow();
        }
        let place = (self.head + self.packets) as usize & (self.sizes.len() - 1);
        self.sizes[place] = size as u16;
        self.packets += 1;
        self.bytes += size;
        self.bytes_max = self.bytes_max.max(self.bytes);
    }

    /// Makes room for twice as many.
    #[cold]
    fn grow(&mut self) {
        let mut sizes = vec![0; (self.sizes.len() * 2).max(8)].into_boxed_slice();
        (0..self.packets)
            .zip(sizes.iter_mut())
            .for_each(|(nth, size)| *size = self.size(nth) as u16);
        (self.sizes, self.head) = (sizes, 0);
    }

    /// Forgets the packets that have started by `now`.
    #[inline]
    fn settle(&mut self, now: Time) {
        if self.busy_until <= now {
            (self.bytes, self.packets) = (0, 0);
            return;
        }
        while self.packets > 0 && self.first_starts <= now {
            let size = self.size(0);
            self.first_starts += self.rules.rate.time(size);
            self.bytes -= size;
            self.packets -= 1;
            self.head = (self.head + 1) & (self.sizes.len() as u32 - 1);
        }
    }

    /// When the link is free: nothing waits then.
    #[inline]
    pub fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// The queue at `now`, which no later call may precede.
    #[inline]
    pub fn settled_view(&mut self, now: Time) -> QueueView {
        self.settle(now);
        QueueView { packets: self.packets, bytes: self.bytes }
    }

    /// The queue at `now`.
    pub fn view_at(&self, now: Time) -> QueueView {
        let mut view = QueueView { packets: self.packets, bytes: self.bytes };
        let mut starts = self.first_starts;
        for size in (0..self.packets).map(|nth| self.size(nth)) {
            if starts > now {
                break;
            }
            starts += self.rules.rate.time(size);
            view.packets -= 1;
            view.bytes -= size;
        }
        view
    }

    /// Why a queue of `view` has no room for `size` more bytes, if it has none.
    #[inline]
    pub fn lacks_room(&self, view: &QueueView, size: u64) -> Option<DropReason> {
        self.rules.capacity.lacks_room(view, size)
    }

    /// Takes the packet and returns the time at which its last bit leaves.
    ///
    /// # Errors
    /// The reason to drop the packet: admission rejects it, or the queue has no room.
    #[inline(always)]
    pub fn offer(
        &mut self,
        now: Time,
        packet: &mut Packet,
        terms: &Terms<'_>,
    ) -> Result<Time, DropReason> {
        self.settle(now);
        self.join(now, packet, terms, |_| None)
    }

    /// The same with a memory that the ports share, among them the one of this number.
    ///
    /// # Errors
    /// As [`FastPort::offer`], or the memory has no room.
    pub fn offer_of(
        ports: &mut [FastPort],
        number: u16,
        now: Time,
        packet: &mut Packet,
        memory: &mut Memory,
        terms: &Terms<'_>,
    ) -> Result<Time, DropReason> {
        let claim = Claim::of(packet, number);
        ports[number as usize].give_back(now, memory);
        let queued = ports[number as usize].bytes;
        // Another view of the queue may lead to another verdict.
        if terms.known.is_some() || memory.test(queued, &claim).is_some() {
            ports.iter_mut().for_each(|port| port.give_back(now, memory));
        }
        let port = &mut ports[number as usize];
        let departs = port.join(now, packet, terms, |view| memory.test(view.bytes, &claim))?;
        memory.take_bytes(port.bytes - port.charged);
        port.charged = port.bytes;
        Ok(departs)
    }

    /// Gives back to the memory what has left the queue by `now`.
    #[inline]
    fn give_back(&mut self, now: Time, memory: &mut Memory) {
        if self.charged > 0 {
            self.settle(now);
            memory.give_bytes(self.charged - self.bytes);
            self.charged = self.bytes;
        }
    }

    /// Takes the packet into the queue, which is as it is now; `beyond`: why there is no room for
    /// it beside this port's own capacity.
    #[inline(always)]
    fn join(
        &mut self,
        now: Time,
        packet: &mut Packet,
        terms: &Terms<'_>,
        beyond: impl Fn(&QueueView) -> Option<DropReason>,
    ) -> Result<Time, DropReason> {
        let size = packet.size as u64;
        let view = QueueView { packets: self.packets, bytes: self.bytes };
        let live = Context { now, packet, view, random: terms.random };
        let lacks_room = |view: &QueueView| {
            let full = self.rules.capacity.lacks_room(view, size);
            full.or_else(|| beyond(view))
        };
        let admission = if self.rules.asks { Some(&mut self.admission) } else { None };
        admit(admission, &live, terms, lacks_room)?;
        let from = self.rules.marks_from;
        let is_long = view.packets >= from.packets || view.bytes >= from.bytes;
        if is_long && self.marking.at_enqueue(&live) && set_ce(packet) {
            self.marked += 1;
        }
        let starts = if self.busy_until > now {
            if self.packets == 0 {
                self.first_starts = self.busy_until;
            }
            self.wait(size);
            self.busy_until
        } else {
            now
        };
        self.busy_until = starts + self.rules.rate.time(size);
        Ok(self.busy_until)
    }
}
