//! The switch's end of the memory that it shares with an application.
//!
//! A malicious process may have written any byte of that memory. So the switch reads each word once
//! for a decision, and checks it. It copies a frame and looks at the copy. Paused flows and the
//! owners of buffers are in its own memory. Each call ends after a bounded number of steps. An
//! application that breaks the rules gets its frames lost, late or garbled, or loses its port
//! ([`Corrupt`]).
//!
//! A flow that is paused stays in its ring: the application's own memory, which it fills until it
//! gets [`crate::Unsent::WouldBlock`].
//!
//! Invariant: a transmit buffer is finished once for each time that it was taken; a receive buffer
//! is free, or lent and not lent again before it is returned.

use crate::channel::{self, Parts, Sleeper, Waker};
use crate::layout::{Descriptor, Layout, Sizes};
use crate::memory::{Area, Memory, Words, sealed};
use crate::ring::{self, Corrupt};
use millpond_doorbell::{Consumer, Doorbells};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Frames of a flow that are taken before another flow has its turn.
pub const TURN: u32 = 32;
/// Tokens that lead to nothing before a call gives up.
const STRAYS: u32 = 64;

/// The finding of [`Host::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A frame, which was copied. It is to be [`Host::taken`] or [`Host::kept`].
    Frame {
        /// The flow whose ring it is in.
        flow: u32,
        /// The buffer that it is in.
        buffer: u32,
        /// Its bytes.
        length: usize,
    },
    /// A descriptor of no buffer, of too many bytes, or of a buffer that the switch has already. It
    /// was taken out.
    Bad,
    /// Nothing yet; there may be more.
    Again,
    Nothing,
}

/// A flow whose turn it is.
#[derive(Clone, Copy, Debug)]
struct Turn {
    flow: u32,
    left: u32,
}

#[derive(Debug)]
pub struct Host {
    sizes: Sizes,
    transmit: Vec<ring::Consumer<Words<AtomicU64>>>,
    bells: Doorbells<(), Words<AtomicU32>>,
    consumer: Consumer,
    transmit_buffers: Area,
    /// By transmit buffer: whether the switch has it.
    is_posted: Vec<bool>,
    finished: ring::Producer<Words<AtomicU64>>,
    finished_bell: Doorbells<Waker, Words<AtomicU32>>,
    received: ring::Producer<Words<AtomicU64>>,
    received_bell: Doorbells<Waker, Words<AtomicU32>>,
    receive_buffers: Area,
    free: Vec<u32>,
    /// By receive buffer: whether the application has it.
    is_lent: Vec<bool>,
    returned: ring::Consumer<Words<AtomicU64>>,
    is_paused: Vec<bool>,
    /// Flows whose token came though they are paused: their word was tampered with.
    is_parked: Vec<bool>,
    /// Of those, the ones that may go on.
    resumed: VecDeque<u32>,
    turn: Option<Turn>,
    has_finished: bool,
    has_received: bool,
    sleeper: Sleeper,
}

impl Host {
    /// Makes new memory. Returns the switch's side of it, and the parts that an application
    /// attaches with.
    ///
    /// # Errors
    /// [`Errno::INVAL`] if `sizes` is out of bounds. Otherwise the kernel's reason to refuse the
    /// memory, its mapping or a pipe.
    pub fn new(sizes: Sizes) -> Result<(Host, Parts<OwnedFd>), Errno> {
        sizes.check().map_err(|_| Errno::INVAL)?;
        let layout = Layout::of(sizes);
        let file = sealed(layout.bytes)?;
        let memory = Memory::map(&file, layout.bytes)?;
        layout.stamp(&memory);
        let ((sleeper, switch), (readable, received), (writable, finished)) =
            (channel::pipe()?, channel::pipe()?, channel::pipe()?);
        let host = Host::over(&layout, &memory, sleeper, received, finished);
        Ok((
            host,
            Parts { memory: file, switch: switch.0, readable: readable.0, writable: writable.0 },
        ))
    }

    fn over(
        l: &Layout,
        memory: &Arc<Memory>,
        sleeper: Sleeper,
        received: Waker,
        finished: Waker,
    ) -> Host {
        let Sizes { flows, places, buffers, .. } = l.sizes;
        let ring = |flow| ring::Consumer::new(l.transmit(memory, flow), places as usize);
        let (flow_count, buffer_count) = (flows as usize, buffers as usize);
        Host {
            sizes: l.sizes,
            transmit: (0..flows).map(ring).collect(),
            bells: Doorbells::over(l.transmit_bells(memory), flows + 1, ()),
            consumer: Consumer::default(),
            transmit_buffers: l.transmit_buffers(memory),
            is_posted: vec![false; buffer_count],
            finished: ring::Producer::new(l.finished(memory), buffer_count),
            finished_bell: Doorbells::over(l.finished_bell(memory), 1, finished),
            received: ring::Producer::new(l.received(memory), buffer_count),
            received_bell: Doorbells::over(l.received_bell(memory), 1, received),
            receive_buffers: l.receive_buffers(memory),
            free: (0..buffers).rev().collect(),
            is_lent: vec![false; buffer_count],
            returned: ring::Consumer::new(l.returned(memory), buffer_count),
            is_paused: vec![false; flow_count],
            is_parked: vec![false; flow_count],
            resumed: VecDeque::new(),
            turn: None,
            has_finished: false,
            has_received: false,
            sleeper,
        }
    }

    /// How much there is of what.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Copies the next frame that may be taken into `into`, which has room for a buffer.
    ///
    /// # Errors
    /// [`Corrupt`] if a ring of the application claims more words than it has places. Detach the
    /// application then.
    pub fn next(&mut self, into: &mut [u8]) -> Result<Next, Corrupt> {
        for _ in 0..STRAYS {
            match self.turn {
                Some(Turn { flow, .. }) if self.is_paused[flow as usize] => {
                    self.end_turn(flow, true)
                }
                Some(Turn { flow, .. }) => match self.transmit[flow as usize].peek()? {
                    Some(word) => return Ok(self.look(flow, Descriptor::of(word), into)),
                    None => self.end_turn(flow, false),
                },
                None => {}
            }
            let Some(queue) = self.resumed.pop_front().or_else(|| self.consumer.next(&self.bells))
            else {
                return Ok(Next::Nothing);
            };
            if queue == self.sizes.flows {
                self.take_back()?;
            } else if self.is_paused[queue as usize] {
                self.is_parked[queue as usize] = true;
            } else {
                self.turn = Some(Turn { flow: queue, left: TURN });
            }
        }
        Ok(Next::Again)
    }

    /// One descriptor, which is this process's copy.
    fn look(&mut self, flow: u32, descriptor: Descriptor, into: &mut [u8]) -> Next {
        let (buffer, length) = (descriptor.buffer, usize::from(descriptor.length));
        if !descriptor.fits(&self.sizes) || length > into.len() || self.is_posted[buffer as usize] {
            self.advance();
            return Next::Bad;
        }
        self.transmit_buffers.read(descriptor.offset(&self.sizes), &mut into[..length]);
        Next::Frame { flow, buffer, length }
    }

    /// The frame was taken: its buffer is the switch's until [`Host::finish`].
    pub fn taken(&mut self, buffer: u32) {
        self.is_posted[buffer as usize] = true;
        self.advance();
    }
    /// The frame stays in its ring, and its flow, which is paused, ends its turn.
    pub fn kept(&mut self) {
        if let Some(Turn { flow, .. }) = self.turn {
            self.end_turn(flow, true);
        }
    }
    fn advance(&mut self) {
        if let Some(turn) = &mut self.turn {
            self.transmit[turn.flow as usize].advance();
            turn.left -= 1;
            let flow = turn.flow;
            if turn.left == 0 {
                self.end_turn(flow, true);
            }
        }
    }
    fn end_turn(&mut self, flow: u32, has_more: bool) {
        self.turn = None;
        self.transmit[flow as usize].release();
        if has_more {
            self.consumer.more(&self.bells, flow);
        }
    }

    /// Frees the buffers that the application has read, each at most once. [`Host::next`] does so
    /// when the application rings for it. A caller that takes no frames for now uses this.
    ///
    /// # Errors
    /// As [`Host::next`].
    pub fn take_back(&mut self) -> Result<(), Corrupt> {
        for _ in 0..self.sizes.buffers {
            let Some(word) = self.returned.peek()? else { break };
            self.returned.advance();
            let buffer = Descriptor::of(word).buffer;
            // A buffer that was not lent is not taken.
            if self.is_lent.get(buffer as usize) == Some(&true) {
                self.is_lent[buffer as usize] = false;
                self.free.push(buffer);
            }
        }
        self.returned.release();
        Ok(())
    }

    /// The frame of a buffer has left the switch; [`Host::flush`] notifies the application.
    pub fn finish(&mut self, buffer: u32) {
        if std::mem::replace(&mut self.is_posted[buffer as usize], false) {
            // Each buffer has a place; an application that does not read `finished` loses it.
            self.finished.push_blindly(Descriptor { buffer, length: 0, tag: 0 }.word());
            self.has_finished = true;
        }
    }

    /// Whether a frame can be delivered.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }
    /// Hands a frame to the application, which [`Host::flush`] notifies; `false`: there is no
    /// free buffer, or the frame is longer than one.
    pub fn deliver(&mut self, pieces: &[IoSlice<'_>], tag: u16) -> bool {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let fits = length <= self.sizes.buffer_bytes as usize && length <= usize::from(u16::MAX);
        let Some(buffer) = self.free.pop_if(|_| fits) else { return false };
        let descriptor = Descriptor { buffer, length: length as u16, tag };
        let mut at = descriptor.offset(&self.sizes);
        for piece in pieces {
            self.receive_buffers.write(at, piece);
            at += piece.len();
        }
        self.is_lent[buffer as usize] = true;
        self.received.push_blindly(descriptor.word());
        self.has_received = true;
        true
    }
    /// Shows the application what was delivered and what has left.
    pub fn flush(&mut self) {
        if let Some(turn) = self.turn {
            self.transmit[turn.flow as usize].release();
        }
        if std::mem::take(&mut self.has_finished) {
            self.finished.publish();
            self.finished_bell.ring(0);
        }
        if std::mem::take(&mut self.has_received) {
            self.received.publish();
            self.received_bell.ring(0);
        }
    }

    /// From now on no frame of `flow` is taken. Its application is notified.
    pub fn pause(&mut self, flow: u32) {
        self.is_paused[flow as usize] = true;
        self.bells.pause(flow);
    }
    /// `flow` may go on.
    pub fn resume(&mut self, flow: u32) {
        self.is_paused[flow as usize] = false;
        self.bells.resume(flow);
        if std::mem::take(&mut self.is_parked[flow as usize]) {
            self.resumed.push_back(flow);
        }
    }
    pub fn paused(&self) -> usize {
        self.is_paused.iter().filter(|paused| **paused).count()
    }

    /// Announces that the switch is about to sleep. `false`: there is something, and it must not.
    /// After `true` it waits for [`Host::fd`], and calls [`Host::awake`].
    pub fn may_sleep(&self) -> bool {
        self.turn.is_none() && self.resumed.is_empty() && self.consumer.may_sleep(&self.bells)
    }
    pub fn awake(&self) {
        self.consumer.awake(&self.bells);
    }
    /// The descriptor by which the application wakes the switch: readable until [`Host::clear`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.sleeper.fd()
    }
    pub fn clear(&self) {
        self.sleeper.clear();
    }
}
