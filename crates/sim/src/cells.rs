//! Cells: the nodes of a partition that share an event queue.
//!
//! A cell is a switch with its hosts. A packet sent over a link to another cell arrives in a later
//! window (the layout sees to it), so within a window each cell is served by itself, one after the
//! other. A cell's ports, links and connections fit the first-level cache; those of a whole pod do
//! not, and of a whole network not even the second.
//!
//! Invariant: every event lies in the queue of the cell whose nodes it is for.

use crate::event::{Class, Event, Key};
use crate::events::EventQueue;
use millpond_core::Time;

/// No cell is served.
const NOWHERE: u32 = u32::MAX;

/// Which cell things are in, by their numbers in the partition.
#[derive(Debug, Default)]
pub struct Places {
    /// By inbound link: the cell of its receiver.
    pub inbound: Vec<u32>,
    /// By out-link: the cell of its sender.
    pub outlinks: Vec<u32>,
    pub hosts: Vec<u32>,
}

/// The event queues of a partition.
pub struct Cells {
    /// By cell. While a cell is served, its queue is `present`.
    queues: Vec<EventQueue>,
    /// By cell but the one that is served: the time of its first event.
    due: Vec<Time>,
    /// The cell that is served.
    here: u32,
    /// Its queue; an empty one while none is.
    present: EventQueue,
    /// Where things are; set before the first event.
    pub places: Places,
}

impl Cells {
    /// One for each queue, with no event in it.
    pub fn new(queues: Vec<EventQueue>) -> Cells {
        let due = vec![Time::MAX; queues.len()];
        let present = EventQueue::new(Time::from_ns(1), false);
        Cells { queues, due, here: NOWHERE, present, places: Places::default() }
    }

    pub fn count(&self) -> u32 {
        self.queues.len() as u32
    }

    #[inline]
    pub fn here(&self) -> u32 {
        self.here
    }

    /// The cell of a host.
    pub fn of_host(&self, host: u32) -> u32 {
        self.places.hosts[host as usize]
    }

    /// The cell that an event is for. Flows that start and routes that change are pushed to
    /// their cells by the caller.
    fn of(&self, key: Key) -> u32 {
        let source = key.source() as usize;
        match key.class() {
            Class::Arrival | Class::Pause => self.places.inbound[source],
            Class::PortReady | Class::PauseCheck | Class::Link => self.places.outlinks[source],
            Class::Start => unreachable!("a start has no source"),
            Class::NicRoom
            | Class::SenderTimer
            | Class::ReceiverTimer
            | Class::OrderingTimer
            | Class::Probe
            | Class::Answer
            | Class::Release
            | Class::Poll
            | Class::Rank => self.places.hosts[source],
        }
    }

    /// Inserts an event, in the queue of whom it is for.
    #[inline]
    pub fn push(&mut self, at: Time, key: Key) {
        self.push_to(self.of(key), at, key);
    }

    /// Inserts an event of the cell that is served.
    #[inline]
    pub fn push_here(&mut self, at: Time, key: Key) {
        self.present.push(at, key);
    }

    /// Inserts an event of a cell.
    #[inline]
    pub fn push_to(&mut self, cell: u32, at: Time, key: Key) {
        if cell == self.here {
            return self.present.push(at, key);
        }
        self.queues[cell as usize].push(at, key);
        let due = &mut self.due[cell as usize];
        *due = at.min(*due);
    }

    /// Takes back an event that was pushed and has not been popped; as [`EventQueue::cancel`].
    pub fn cancel(&mut self, at: Time, key: Key) {
        let cell = self.of(key);
        if cell == self.here {
            return self.present.cancel(at, key);
        }
        let queue = &mut self.queues[cell as usize];
        queue.cancel(at, key);
        if self.due[cell as usize] == at {
            self.due[cell as usize] = queue.next_time().unwrap_or(Time::MAX);
        }
    }

    /// Begins to serve a cell, if it has an event before `end`. Follow with [`Cells::leave`].
    #[inline]
    pub fn enter(&mut self, cell: u32, end: Time) -> bool {
        let is_due = self.due[cell as usize] < end;
        if is_due {
            self.here = cell;
            std::mem::swap(&mut self.present, &mut self.queues[cell as usize]);
        }
        is_due
    }

    /// The first event of the cell that is served, if it is before `end`.
    #[inline]
    pub fn pop_before(&mut self, end: Time) -> Option<Event> {
        self.present.pop_before(end)
    }

    /// The cell has no event before `end` any more.
    pub fn leave(&mut self) {
        let cell = self.here as usize;
        self.due[cell] = self.present.next_time().unwrap_or(Time::MAX);
        std::mem::swap(&mut self.present, &mut self.queues[cell]);
        self.here = NOWHERE;
    }

    /// The time of the first event of all.
    pub fn next_time(&self) -> Option<Time> {
        self.due.iter().copied().min().filter(|due| *due < Time::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_cells() -> Cells {
        let mut cells =
            Cells::new((0..2).map(|_| EventQueue::new(Time::from_ns(10), false)).collect());
        cells.places = Places { inbound: vec![0, 1], outlinks: vec![1], hosts: vec![1, 0] };
        cells
    }

    #[test]
    fn each_event_is_served_with_its_cell() {
        let mut cells = two_cells();
        let events = [
            (3, Key::new(Class::Arrival, 1, 0), 1),
            (4, Key::new(Class::SenderTimer, 1, 0), 0),
            (5, Key::new(Class::PortReady, 0, 0), 1),
            (6, Key::new(Class::Poll, 0, 0), 1),
        ];
        events.iter().for_each(|(at, key, _)| cells.push(Time::from_us(*at), *key));
        assert_eq!(cells.next_time(), Some(Time::from_us(3)));
        assert!(!cells.enter(0, Time::from_us(4)), "its first event is later");
        for cell in [0, 1] {
            assert!(cells.enter(cell, Time::from_us(7)));
            // For the other cell, and for this one.
            cells.push(Time::from_us(9), Key::new(Class::Arrival, 1 - cell, 0));
            let served: Vec<Event> =
                std::iter::from_fn(|| cells.pop_before(Time::from_us(7))).collect();
            let expected = events
                .iter()
                .filter(|event| event.2 == cell)
                .map(|(at, key, _)| (Time::from_us(*at), *key));
            assert_eq!(served, expected.collect::<Vec<_>>());
            cells.leave();
        }
        assert_eq!(cells.next_time(), Some(Time::from_us(9)));
    }

    #[test]
    fn what_is_cancelled_is_not_due() {
        let mut cells = two_cells();
        let (key, far) = (Key::new(Class::SenderTimer, 0, 7), Time::from_s(1));
        cells.push(far, key);
        assert_eq!(cells.next_time(), Some(far));
        cells.cancel(far, key);
        assert_eq!(cells.next_time(), None);
    }
}
