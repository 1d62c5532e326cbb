//! The application's end of the memory that it shares with a switch, for as long as that switch is
//! there.
//!
//! *Credits.* A frame holds its buffer until it has left the switch. Flows whose receiver is slow
//! would soon hold all of them, and the others could not send. So a flow may have as many buffers
//! as are free: the threshold that follows what is left (Choudhury, Hahne: Dynamic queue length
//! thresholds for shared-memory packet switches, 1998), by which there is always some left.
//!
//! Invariant: a transmit buffer is free, or posted and some flow's. The switch's words lead to no
//! place outside of the memory.

use crate::channel::{Parts, Sleeper, Waker};
use crate::layout::{Descriptor, Layout, Sizes};
use crate::memory::{Area, Memory, Words};
use crate::ring;
use crate::{Error, Frame, Unsent};
use millpond_doorbell::{Consumer, Doorbells};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Sends after which buffers that have come back are taken, so that those in the cache are used.
const REAP_EVERY: u32 = 32;

/// The doorbell that the switch rings, and the application sleeps on.
#[derive(Debug)]
struct Bell {
    words: Doorbells<(), Words<AtomicU32>>,
    consumer: Consumer,
    sleeper: Sleeper,
}

#[derive(Debug)]
pub(crate) struct Attached {
    pub sizes: Sizes,
    /// The switch has gone when this ends.
    pub socket: OwnedFd,
    transmit: Vec<ring::Producer<Words<AtomicU64>>>,
    bells: Doorbells<Waker, Words<AtomicU32>>,
    transmit_buffers: Area,
    free: Vec<u32>,
    /// By transmit buffer: the flow that has it, if it is posted.
    owner: Vec<Option<u32>>,
    /// By flow: how many it has.
    in_flight: Vec<u32>,
    finished: ring::Consumer<Words<AtomicU64>>,
    received: ring::Consumer<Words<AtomicU64>>,
    receive_buffers: Area,
    returned: ring::Producer<Words<AtomicU64>>,
    readable: Bell,
    writable: Bell,
    until_reap: u32,
}

impl Bell {
    fn new(words: Words<AtomicU32>, fd: OwnedFd) -> Bell {
        Bell {
            words: Doorbells::over(words, 1, ()),
            consumer: Consumer::default(),
            sleeper: Sleeper(fd),
        }
    }
    /// Clears the doorbell: frames and buffers that come later ring again.
    fn clear(&mut self) {
        self.awake();
        while self.consumer.next(&self.words).is_some() {}
    }
    fn may_sleep(&self) -> bool {
        self.consumer.may_sleep(&self.words)
    }
    fn awake(&self) {
        self.consumer.awake(&self.words);
        self.sleeper.clear();
    }
}

impl Attached {
    pub fn new(socket: OwnedFd, sizes: Sizes, parts: Parts<OwnedFd>) -> Result<Attached, Error> {
        let l = Layout::of(sizes);
        let memory = Memory::map(&parts.memory, l.bytes).map_err(|e| {
            Error::Protocol(format!("the switch's memory cannot be mapped, or is not sealed: {e}"))
        })?;
        if !l.is_stamped(&memory) {
            return Err(Error::Protocol(
                "the memory has other sizes than the switch has said".into(),
            ));
        }
        let (memory, buffers) = (&memory, sizes.buffers as usize);
        let ring = |flow| ring::Producer::new(l.transmit(memory, flow), sizes.places as usize);
        Ok(Attached {
            sizes,
            socket,
            transmit: (0..sizes.flows).map(ring).collect(),
            bells: Doorbells::over(l.transmit_bells(memory), sizes.flows + 1, Waker(parts.switch)),
            transmit_buffers: l.transmit_buffers(memory),
            free: (0..sizes.buffers).rev().collect(),
            owner: vec![None; buffers],
            in_flight: vec![0; sizes.flows as usize],
            finished: ring::Consumer::new(l.finished(memory), buffers),
            received: ring::Consumer::new(l.received(memory), buffers),
            receive_buffers: l.receive_buffers(memory),
            returned: ring::Producer::new(l.returned(memory), buffers),
            readable: Bell::new(l.received_bell(memory), parts.readable),
            writable: Bell::new(l.finished_bell(memory), parts.writable),
            until_reap: REAP_EVERY,
        })
    }

    pub fn send(&mut self, flow: u32, frame: &[u8]) -> Result<(), Unsent> {
        self.post(flow, frame)?;
        self.show(flow);
        Ok(())
    }
    /// As many as can be, shown together.
    pub fn send_all(&mut self, flow: u32, frames: &[&[u8]]) -> Result<usize, Unsent> {
        let mut count = 0;
        let mut posted = Ok(());
        while count < frames.len() && posted.is_ok() {
            posted = self.post(flow, frames[count]);
            count += usize::from(posted.is_ok());
        }
        if count > 0 {
            self.show(flow);
        }
        match posted {
            Err(unsent) if count == 0 => Err(unsent),
            _ => Ok(count),
        }
    }
    /// Shows the switch what was posted, and rings.
    #[inline]
    fn show(&mut self, flow: u32) {
        self.transmit[flow as usize].publish();
        self.bells.ring(flow);
    }
    #[inline]
    fn post(&mut self, flow: u32, frame: &[u8]) -> Result<(), Unsent> {
        let at = flow as usize;
        if at >= self.transmit.len() {
            return Err(Unsent::NoSuchFlow);
        }
        if frame.len() > self.sizes.buffer_bytes as usize || frame.len() > usize::from(u16::MAX) {
            return Err(Unsent::TooLong);
        }
        self.until_reap -= 1;
        if self.until_reap == 0 || self.in_flight[at] as usize >= self.free.len() {
            self.until_reap = REAP_EVERY;
            self.reap();
        }
        if self.in_flight[at] as usize >= self.free.len() || self.transmit[at].room() == 0 {
            return Err(Unsent::WouldBlock);
        }
        let Some(buffer) = self.free.pop() else { return Err(Unsent::WouldBlock) };
        let descriptor = Descriptor { buffer, length: frame.len() as u16, tag: 0 };
        self.transmit_buffers.write(descriptor.offset(&self.sizes), frame);
        self.owner[buffer as usize] = Some(flow);
        self.in_flight[at] += 1;
        self.transmit[at].push(descriptor.word());
        Ok(())
    }

    /// Takes back the buffers whose frames have left.
    fn reap(&mut self) {
        while let Ok(Some(word)) = self.finished.peek() {
            self.finished.advance();
            let buffer = Descriptor::of(word).buffer;
            if let Some(flow) = self.owner.get_mut(buffer as usize).and_then(Option::take) {
                self.in_flight[flow as usize] -= 1;
                self.free.push(buffer);
            }
        }
        self.finished.release();
    }

    pub fn credits(&mut self, flow: u32) -> u32 {
        let Some(ring) = self.transmit.get_mut(flow as usize) else { return 0 };
        let room = ring.room_now();
        self.reap();
        // Each frame takes one of the free and adds one to the flow's.
        let free = (self.free.len() as u64)
            .saturating_sub(self.in_flight[flow as usize].into())
            .div_ceil(2);
        room.min(free) as u32
    }

    pub fn is_paused(&self, flow: u32) -> bool {
        flow < self.sizes.flows && self.bells.is_paused(flow)
    }
    /// Frames whose buffers have not come back.
    pub fn in_flight(&mut self) -> usize {
        self.reap();
        self.owner.len() - self.free.len()
    }

    pub fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let mut count = 0;
        while count < frames.len()
            && let Ok(Some(word)) = self.received.peek()
        {
            self.received.advance();
            let descriptor = Descriptor::of(word);
            if !descriptor.fits(&self.sizes) {
                continue;
            }
            let frame = &mut frames[count];
            frame.tag = descriptor.tag;
            frame.bytes.resize(descriptor.length.into(), 0);
            self.receive_buffers.read(descriptor.offset(&self.sizes), &mut frame.bytes);
            self.returned.push_blindly(word);
            count += 1;
        }
        if count > 0 {
            self.received.release();
            self.returned.publish();
            self.bells.ring(self.sizes.flows);
        }
        count
    }

    /// Whether the application may sleep until the readable descriptor is ready.
    pub fn arm_readable(&mut self) -> bool {
        self.readable.clear();
        matches!(self.received.peek(), Ok(None)) && self.readable.may_sleep()
    }
    /// The same of the writable one.
    pub fn arm_writable(&mut self) -> bool {
        self.writable.clear();
        let before = self.free.len();
        self.reap();
        self.free.len() == before && self.writable.may_sleep()
    }
    pub fn readable(&self) -> &Sleeper {
        &self.readable.sleeper
    }
    pub fn writable(&self) -> &Sleeper {
        &self.writable.sleeper
    }
}
