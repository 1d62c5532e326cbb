//! Places in the memory that a switch and an application share. Both sides use this file.
//!
//! | part | written by | what |
//! |---|---|---|
//! | header | switch, once | magic, version, sizes; the switch never reads it |
//! | bells of `transmit` | both | doorbells of the flows' rings, and behind them of `returned` |
//! | bells of `received`, of `finished` | both | a doorbell each: what the application sleeps on |
//! | `transmit`, a ring a flow | application | buffers that are to be sent |
//! | `finished` | switch | buffers whose frames have left the switch |
//! | `received` | switch | buffers with frames for the application |
//! | `returned` | application | those of them that it has read |
//! | transmit buffers | application | frames |
//! | receive buffers | switch | frames |
//!
//! A ring's entry is a [`Descriptor`]. Whose buffer it is goes with the entry: a transmit buffer is
//! the switch's from `transmit` to `finished`, a receive buffer the application's from `received`
//! to `returned`. The rings `finished`, `received` and `returned` have a place for each buffer, so
//! they are never full.
//!
//! Invariant: parts do not overlap, begin at cache lines, and follow from the sizes alone.

use crate::memory::{Area, Memory, Words};
use crate::ring;
use millpond_doorbell::Doorbells;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// "mpondshm", read as a number.
const MAGIC: u64 = u64::from_le_bytes(*b"mpondshm");
/// Of this layout and of the protocol over it.
pub const VERSION: u32 = 1;
/// The header's bytes: a page.
const HEADER: usize = 4096;
const LINE: usize = 64;
/// The most bytes that all of it may have.
pub const BYTES_MAX: usize = 1 << 30;
/// The most flows.
pub const FLOWS_MAX: u32 = 16_384;
/// The most places of a ring, and buffers each way.
pub const PLACES_MAX: u32 = 65_536;

/// How much there is of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Flows that the application can send, each with a ring.
    pub flows: u32,
    /// Places of a flow's ring: a power of two.
    pub places: u32,
    /// Buffers each way: a power of two.
    pub buffers: u32,
    /// Bytes of a buffer: the longest frame. A multiple of 64.
    pub buffer_bytes: u32,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { flows: 64, places: 256, buffers: 1024, buffer_bytes: 2048 }
    }
}

impl Sizes {
    /// Checks that memory of these sizes can be laid out.
    ///
    /// # Errors
    /// The first size that is out of bounds, with the bounds.
    pub fn check(&self) -> Result<(), String> {
        let Sizes { flows, places, buffers, buffer_bytes } = *self;
        let power = |what, n: u32| match n.is_power_of_two() && n <= PLACES_MAX {
            true => Ok(()),
            false => Err(format!("{n} {what}: a power of two up to {PLACES_MAX} is needed")),
        };
        power("places of a ring", places)?;
        power("buffers", buffers)?;
        if flows == 0 || flows > FLOWS_MAX {
            return Err(format!("{flows} flows: 1 to {FLOWS_MAX} are possible"));
        }
        if !(64..=65_536).contains(&buffer_bytes) || buffer_bytes % LINE as u32 != 0 {
            return Err(format!(
                "buffers of {buffer_bytes} bytes: a multiple of 64 up to 65536 is needed"
            ));
        }
        match Layout::of(*self).bytes {
            bytes if bytes > BYTES_MAX => {
                Err(format!("{bytes} bytes in all: {BYTES_MAX} are possible"))
            }
            _ => Ok(()),
        }
    }
}

/// Where everything is, in bytes from the memory's first.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The sizes that it follows from.
    pub sizes: Sizes,
    transmit_bells: usize,
    received_bell: usize,
    finished_bell: usize,
    transmit: usize,
    finished: usize,
    received: usize,
    returned: usize,
    transmit_buffers: usize,
    receive_buffers: usize,
    /// All of it.
    pub bytes: usize,
}

/// Words of the doorbells of so many queues.
fn bells(queues: u32) -> usize {
    Doorbells::<()>::words(queues)
}
/// Bytes of a ring, to its last cache line's end.
fn ring_bytes(places: u32) -> usize {
    (ring::words(places as usize) * size_of::<u64>()).next_multiple_of(LINE)
}

impl Layout {
    /// Of sizes that were checked.
    pub fn of(sizes: Sizes) -> Layout {
        let mut end = HEADER;
        let mut part = |bytes: usize| {
            let start = end;
            end += bytes.next_multiple_of(LINE);
            start
        };
        let (buffers, bytes) = (sizes.buffers as usize, sizes.buffer_bytes as usize);
        Layout {
            sizes,
            transmit_bells: part(bells(sizes.flows + 1) * size_of::<u32>()),
            received_bell: part(bells(1) * size_of::<u32>()),
            finished_bell: part(bells(1) * size_of::<u32>()),
            transmit: part(sizes.flows as usize * ring_bytes(sizes.places)),
            finished: part(ring_bytes(sizes.buffers)),
            received: part(ring_bytes(sizes.buffers)),
            returned: part(ring_bytes(sizes.buffers)),
            transmit_buffers: part(buffers * bytes),
            receive_buffers: part(buffers * bytes),
            bytes: end,
        }
    }

    /// The words of the doorbells of `transmit` and, as the last queue, of `returned`.
    pub fn transmit_bells(&self, memory: &Arc<Memory>) -> Words<AtomicU32> {
        memory.words(self.transmit_bells, bells(self.sizes.flows + 1))
    }
    /// The words of the doorbell of `received`.
    pub fn received_bell(&self, memory: &Arc<Memory>) -> Words<AtomicU32> {
        memory.words(self.received_bell, bells(1))
    }
    /// The words of the doorbell of `finished`.
    pub fn finished_bell(&self, memory: &Arc<Memory>) -> Words<AtomicU32> {
        memory.words(self.finished_bell, bells(1))
    }
    fn ring(&self, memory: &Arc<Memory>, at: usize, places: u32) -> Words<AtomicU64> {
        memory.long_words(at, ring::words(places as usize))
    }
    /// A flow's ring.
    pub fn transmit(&self, memory: &Arc<Memory>, flow: u32) -> Words<AtomicU64> {
        let at = self.transmit + flow as usize * ring_bytes(self.sizes.places);
        self.ring(memory, at, self.sizes.places)
    }
    /// The ring of buffers whose frames have left.
    pub fn finished(&self, memory: &Arc<Memory>) -> Words<AtomicU64> {
        self.ring(memory, self.finished, self.sizes.buffers)
    }
    /// The ring of frames for the application.
    pub fn received(&self, memory: &Arc<Memory>) -> Words<AtomicU64> {
        self.ring(memory, self.received, self.sizes.buffers)
    }
    /// The ring of buffers that it has read.
    pub fn returned(&self, memory: &Arc<Memory>) -> Words<AtomicU64> {
        self.ring(memory, self.returned, self.sizes.buffers)
    }
    fn buffers(&self, memory: &Arc<Memory>, at: usize) -> Area {
        memory.area(at, self.sizes.buffers as usize * self.sizes.buffer_bytes as usize)
    }
    /// The buffers that the application writes frames into.
    pub fn transmit_buffers(&self, memory: &Arc<Memory>) -> Area {
        self.buffers(memory, self.transmit_buffers)
    }
    /// The buffers that the switch writes frames into.
    pub fn receive_buffers(&self, memory: &Arc<Memory>) -> Area {
        self.buffers(memory, self.receive_buffers)
    }

    /// Writes the header.
    pub fn stamp(&self, memory: &Arc<Memory>) {
        let Sizes { flows, places, buffers, buffer_bytes } = self.sizes;
        memory.long_words(0, 1).as_ref()[0].store(MAGIC, Relaxed);
        let words = memory.words(8, 5);
        for (word, value) in
            words.as_ref().iter().zip([VERSION, flows, places, buffers, buffer_bytes])
        {
            word.store(value, Relaxed);
        }
    }
    /// Whether the header is that of this layout.
    pub fn is_stamped(&self, memory: &Arc<Memory>) -> bool {
        let Sizes { flows, places, buffers, buffer_bytes } = self.sizes;
        let words = memory.words(8, 5);
        let has = |(word, value): (&AtomicU32, u32)| word.load(Relaxed) == value;
        memory.long_words(0, 1).as_ref()[0].load(Relaxed) == MAGIC
            && words.as_ref().iter().zip([VERSION, flows, places, buffers, buffer_bytes]).all(has)
    }
}

/// A ring's entry: which buffer, and how much of it is a frame.
///
/// A buffer's number stands for its offset, so no offset can lie outside of the buffers, or across
/// two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The buffer's number.
    pub buffer: u32,
    /// The frame's bytes.
    pub length: u16,
    /// Sixteen bits of the flow's hash; of received frames only.
    pub tag: u16,
}

impl Descriptor {
    /// As a word.
    #[inline]
    pub fn word(self) -> u64 {
        u64::from(self.buffer) | u64::from(self.length) << 32 | u64::from(self.tag) << 48
    }
    /// From a word. Any word is a descriptor; [`Descriptor::fits`] checks it against the sizes.
    #[inline]
    pub fn of(word: u64) -> Descriptor {
        Descriptor { buffer: word as u32, length: (word >> 32) as u16, tag: (word >> 48) as u16 }
    }
    /// Whether there is such a buffer, and so much room in it.
    #[inline]
    pub fn fits(&self, sizes: &Sizes) -> bool {
        self.buffer < sizes.buffers && u32::from(self.length) <= sizes.buffer_bytes
    }
    /// Where the buffer begins among its kind.
    #[inline]
    pub fn offset(&self, sizes: &Sizes) -> usize {
        self.buffer as usize * sizes.buffer_bytes as usize
    }
}

/// A switch's answer to an attaching application, before the file descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hello {
    /// The memory and the pipes are with this message.
    Welcome(Sizes),
    /// Another application is attached.
    Busy,
    /// The peer has no permission.
    Denied,
}

/// The bytes of a [`Hello`].
pub const HELLO_BYTES: usize = 32;

impl Hello {
    /// As bytes.
    pub fn write(&self) -> [u8; HELLO_BYTES] {
        let (what, sizes) = match self {
            Hello::Welcome(sizes) => (0, *sizes),
            Hello::Busy => (1, Sizes::default()),
            Hello::Denied => (2, Sizes::default()),
        };
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        let words = [VERSION, what, sizes.flows, sizes.places, sizes.buffers, sizes.buffer_bytes];
        for (place, word) in bytes[8..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&u32::to_le_bytes(word));
        }
        bytes
    }
    /// Reads a hello from its bytes.
    ///
    /// # Errors
    /// The bytes are no hello, or have another version of the layout, sizes out of bounds, or an
    /// unknown answer.
    pub fn read(bytes: &[u8]) -> Result<Hello, String> {
        let word = |at: usize| {
            bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        };
        if bytes.len() != HELLO_BYTES || bytes[..8] != MAGIC.to_le_bytes() {
            return Err("what answers there is no port of a millpond switch".into());
        }
        if word(8) != VERSION {
            return Err(format!(
                "the switch has version {} of the layout, this library {VERSION}",
                word(8)
            ));
        }
        let sizes =
            Sizes { flows: word(16), places: word(20), buffers: word(24), buffer_bytes: word(28) };
        match word(12) {
            0 => sizes.check().map(|()| Hello::Welcome(sizes)),
            1 => Ok(Hello::Busy),
            2 => Ok(Hello::Denied),
            other => {
                Err(format!("the switch answers with {other}, which this library does not know"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_follow_each_other() {
        for sizes in [Sizes::default(), Sizes { flows: 1, places: 1, buffers: 1, buffer_bytes: 64 }]
        {
            sizes.check().unwrap();
            let l = Layout::of(sizes);
            let starts = [
                (0, HEADER),
                (l.transmit_bells, bells(sizes.flows + 1) * 4),
                (l.received_bell, bells(1) * 4),
                (l.finished_bell, bells(1) * 4),
                (l.transmit, sizes.flows as usize * ring_bytes(sizes.places)),
                (l.finished, ring_bytes(sizes.buffers)),
                (l.received, ring_bytes(sizes.buffers)),
                (l.returned, ring_bytes(sizes.buffers)),
                (l.transmit_buffers, (sizes.buffers * sizes.buffer_bytes) as usize),
                (l.receive_buffers, (sizes.buffers * sizes.buffer_bytes) as usize),
                (l.bytes, 0),
            ];
            for pair in starts.windows(2) {
                assert!(
                    pair[0].0 + pair[0].1 <= pair[1].0 && pair[1].0.is_multiple_of(LINE),
                    "{pair:?}"
                );
            }
        }
    }

    #[test]
    fn errors_name_sizes_that_are_out_of_bounds() {
        let bad = |change: fn(&mut Sizes)| {
            let mut sizes = Sizes::default();
            change(&mut sizes);
            sizes.check().unwrap_err()
        };
        assert!(
            bad(|s| s.flows = 0).contains("flows")
                && bad(|s| s.flows = FLOWS_MAX + 1).contains("flows")
        );
        assert!(
            bad(|s| s.places = 3).contains("power of two")
                && bad(|s| s.buffers = 0).contains("buffers")
        );
        assert!(bad(|s| s.buffer_bytes = 100).contains("multiple of 64"));
        let huge = bad(|s| (s.flows, s.places) = (FLOWS_MAX, PLACES_MAX));
        assert!(huge.contains("in all"), "{huge}");
    }

    proptest! {
        #[test]
        fn a_descriptor_is_read_as_written(buffer: u32, length: u16, tag: u16) {
            let descriptor = Descriptor { buffer, length, tag };
            prop_assert_eq!(Descriptor::of(descriptor.word()), descriptor);
        }

        #[test]
        fn any_hello_is_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            at in 8..HELLO_BYTES,
        ) {
            prop_assert!(Hello::read(&bytes).is_err());
            let hello = Hello::Welcome(Sizes::default());
            let mut bent = hello.write();
            prop_assert_eq!(Hello::read(&bent), Ok(hello));
            bent[at] ^= 0x80;
            if let Ok(Hello::Welcome(sizes)) = Hello::read(&bent) {
                prop_assert!(sizes.check().is_ok());
            }
        }
    }
}
