//! A ring of 64-bit words with one producer and one consumer, which need not trust each other.
//!
//! Each side keeps its own count to itself and publishes a copy. It reads the other's, and finds a
//! count that cannot be. `crate::sync` is std's atomics, or loom's in the models.
//!
//! Invariant: the consumer takes each word once and in order, and none that was not published; what
//! one side reads leads it to no place outside of the ring.

use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, LINE};

/// Among the words: what the producer has published, what the consumer has taken; then places.
const TAIL: usize = 0;
const HEAD: usize = LINE;
const PLACES: usize = 2 * LINE;

/// The other side's count cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// How many words a ring of so many places takes.
pub const fn words(places: usize) -> usize {
    PLACES + places
}

#[derive(Debug)]
pub struct Producer<M> {
    words: M,
    mask: u64,
    tail: u64,
    /// The count that the consumer had taken when it was last looked at.
    head: u64,
}

#[derive(Debug)]
pub struct Consumer<M> {
    words: M,
    mask: u64,
    head: u64,
    /// The count that the producer had published when it was last looked at.
    tail: u64,
}

fn mask(words: &[AtomicU64], places: usize) -> u64 {
    assert!(
        places.is_power_of_two() && words.len() >= self::words(places),
        "words for {places} places"
    );
    places as u64 - 1
}

impl<M: AsRef<[AtomicU64]>> Producer<M> {
    /// Of a ring without any entry.
    ///
    /// # Panics
    /// If `places` is no power of two, or there are fewer than [`words`] of them.
    pub fn new(words: M, places: usize) -> Producer<M> {
        let mask = mask(words.as_ref(), places);
        Producer { words, mask, tail: 0, head: 0 }
    }
    /// Free places: at least so many. Looks at the consumer's count where there seem to be none.
    #[inline]
    pub fn room(&mut self) -> u64 {
        match self.mask + 1 - (self.tail - self.head) {
            0 => self.room_now(),
            room => room,
        }
    }
    /// Free places, by the consumer's count as it is.
    pub fn room_now(&mut self) -> u64 {
        let (places, head) = (self.mask + 1, self.words.as_ref()[HEAD].load(Acquire));
        if self.tail.wrapping_sub(head) <= places {
            self.head = head;
        }
        places - (self.tail - self.head)
    }
    /// Writes a word where there is [`Producer::room`]; [`Producer::publish`] shows it.
    #[inline]
    pub fn push(&mut self, word: u64) {
        self.words.as_ref()[PLACES + (self.tail & self.mask) as usize].store(word, Relaxed);
        self.tail += 1;
    }
    /// As [`Producer::push`], without a look at the consumer's count: the caller has ensured room.
    #[inline]
    pub fn push_blindly(&mut self, word: u64) {
        self.push(word);
        self.head = self.tail;
    }
    #[inline]
    pub fn publish(&self) {
        self.words.as_ref()[TAIL].store(self.tail, Release);
    }
}

impl<M: AsRef<[AtomicU64]>> Consumer<M> {
    /// Of a ring of which nothing was taken.
    ///
    /// # Panics
    /// If `places` is no power of two, or there are fewer than [`words`] of them.
    pub fn new(words: M, places: usize) -> Consumer<M> {
        let mask = mask(words.as_ref(), places);
        Consumer { words, mask, head: 0, tail: 0 }
    }
    /// Returns the first word, if there is one. It stays until [`Consumer::advance`]. The producer
    /// may change it meanwhile, so decide by one look.
    ///
    /// # Errors
    /// [`Corrupt`] if the producer claims more words than the ring has places.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<u64>, Corrupt> {
        if self.head == self.tail {
            let tail = self.words.as_ref()[TAIL].load(Acquire);
            if tail.wrapping_sub(self.head) > self.mask + 1 {
                return Err(Corrupt);
            }
            self.tail = tail;
            if self.head == tail {
                return Ok(None);
            }
        }
        Ok(Some(self.words.as_ref()[PLACES + (self.head & self.mask) as usize].load(Relaxed)))
    }
    /// Takes the word that was looked at; [`Consumer::release`] gives its place back.
    #[inline]
    pub fn advance(&mut self) {
        self.head = self.head.wrapping_add(1);
    }
    /// Gives back the places of what was taken.
    #[inline]
    pub fn release(&self) {
        self.words.as_ref()[HEAD].store(self.head, Release);
    }
}
