//! Doubly linked lists of numbers: joining, leaving and finding the first cost the same however
//! many are listed, and no allocation.
//!
//! Invariant: a number is in at most one of the lists that share their [`Links`].

use super::NONE;

/// The shared part of lists of the same things: each one's neighbours.
#[derive(Clone, Debug, Default)]
pub struct Links(Vec<[u32; 2]>);

/// A list through [`Links`]: the numbers of its first and its last.
#[derive(Clone, Copy, Debug)]
pub struct List {
    first: u32,
    last: u32,
}

impl Links {
    /// The one behind `at`, or [`NONE`].
    pub fn after(&self, at: u32) -> u32 {
        self.0[at as usize][1]
    }
    /// Bytes that lie in memory for them.
    pub fn memory(&self) -> usize {
        self.0.capacity() * size_of::<[u32; 2]>()
    }
}

impl Default for List {
    fn default() -> Self {
        List { first: NONE, last: NONE }
    }
}

impl List {
    /// The first, or [`NONE`].
    pub fn first(&self) -> u32 {
        self.first
    }
    /// Appends a number that is in no list.
    pub fn push(&mut self, links: &mut Links, at: u32) {
        if links.0.len() <= at as usize {
            links.0.resize(at as usize + 1, [NONE; 2]);
        }
        links.0[at as usize] = [self.last, NONE];
        match self.last {
            NONE => self.first = at,
            last => links.0[last as usize][1] = at,
        }
        self.last = at;
    }
    /// Takes out a number that is in this list.
    pub fn remove(&mut self, links: &mut Links, at: u32) {
        let [before, after] = links.0[at as usize];
        match before {
            NONE => self.first = after,
            before => links.0[before as usize][1] = after,
        }
        match after {
            NONE => self.last = before,
            after => links.0[after as usize][0] = before,
        }
    }
}
