//! One queue for all that waits for an application: what switches have that keep no flows apart.
//!
//! As in BESS, on which Backdraft's authors build: a ring that drops at its end, or one with
//! watermarks (0.9 and 0.15 of it), above which the switch takes nothing from anywhere. Both are
//! here to compare flow queues with.
//!
//! Invariant: frames leave in the order in which they came.

use super::waiting::Waiting;
use std::collections::VecDeque;

#[derive(Debug)]
pub struct Fifo {
    frames: VecDeque<Waiting>,
    bytes: u64,
    memory: u64,
    peak: u64,
    stops: bool,
    is_stopped: bool,
    stopped_count: u64,
}

impl Fifo {
    /// With room for so many bytes.
    pub fn new(memory: u64, stops: bool) -> Fifo {
        Fifo {
            frames: VecDeque::new(),
            bytes: 0,
            memory,
            peak: 0,
            stops,
            is_stopped: false,
            stopped_count: 0,
        }
    }
    /// Whether there is room for so many bytes.
    pub fn has_room(&self, length: usize) -> bool {
        self.bytes + length as u64 <= self.memory
    }
    /// Takes a frame that there is room for.
    pub fn push(&mut self, frame: Waiting) {
        self.bytes += frame.bytes.len() as u64;
        self.peak = self.peak.max(self.bytes);
        self.frames.push_back(frame);
        if self.stops && !self.is_stopped && self.bytes >= self.memory / 10 * 9 {
            self.is_stopped = true;
            self.stopped_count += 1;
        }
    }
    pub fn pop(&mut self) -> Option<Waiting> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.bytes.len() as u64;
        if self.bytes <= self.memory / 100 * 15 {
            self.is_stopped = false;
        }
        Some(frame)
    }
    pub fn clear(&mut self) {
        self.frames.clear();
        (self.bytes, self.is_stopped) = (0, false);
    }
    /// Whether the switch is to take nothing from anywhere.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
    /// Whether an application keeps a frame that there is no room for.
    pub fn stops(&self) -> bool {
        self.stops
    }
    /// How often it has stopped the switch.
    pub fn stopped_count(&self) -> u64 {
        self.stopped_count
    }
    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    pub fn peak(&self) -> u64 {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_stop_and_a_bound_drops() {
        let frame = || Waiting::of(vec![0; 1000]);
        for stops in [false, true] {
            let mut fifo = Fifo::new(10_000, stops);
            (0..9).for_each(|_| fifo.push(frame()));
            assert_eq!(
                (fifo.is_stopped(), fifo.has_room(1000), fifo.has_room(1001)),
                (stops, true, false)
            );
            (0..7).for_each(|_| drop(fifo.pop()));
            assert_eq!((fifo.is_stopped(), fifo.bytes()), (stops, 2000));
            assert!(fifo.pop().is_some() && !fifo.is_stopped() && fifo.peak() == 9000);
            assert_eq!(fifo.stopped_count(), u64::from(stops));
        }
    }
}
