//! A slab of values that are referred to by 32-bit ids.
//!
//! Invariant: an id is live from [`Pool::insert`] to [`Pool::remove`], never after.

/// Pushes, growing by an eighth instead of doubling: for the few vectors whose slack is most of a
/// run's memory.
#[inline]
pub fn push_tight<T>(vector: &mut Vec<T>, value: T) {
    if vector.len() == vector.capacity() {
        vector.reserve_exact(vector.len() / 8 + 16);
    }
    vector.push(value);
}

/// A slab with a free list: constant-time insert and remove, no allocation once it has grown. It
/// grows by pages, so that growing moves nothing and leaves little slack; a pool of very many
/// values has large `PAGE`s, of which to find one is a read of a short list.
#[derive(Clone, Debug)]
pub struct Pool<T, const PAGE: usize = 16> {
    pages: Vec<Box<[T; PAGE]>>,
    used: u32,
    free: Vec<u32>,
}

impl<T, const PAGE: usize> Default for Pool<T, PAGE> {
    fn default() -> Self {
        Pool { pages: Vec::new(), used: 0, free: Vec::new() }
    }
}

impl<T: Copy + Default, const PAGE: usize> Pool<T, PAGE> {
    /// Puts `value` in a free slot (the one freed last, whose line is most likely cached).
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            if self.used as usize == self.pages.len() * PAGE {
                self.grow();
            }
            self.used += 1;
            self.used - 1
        });
        self[id] = value;
        id
    }
    #[cold]
    fn grow(&mut self) {
        self.pages.push(Box::new([T::default(); PAGE]));
    }
    /// Frees a slot. The caller must not use the id again.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        push_tight(&mut self.free, id);
    }
    pub fn live(&self) -> usize {
        self.used as usize - self.free.len()
    }
    /// How many slots there are, live or free: the memory held.
    pub fn capacity(&self) -> usize {
        self.pages.len() * PAGE
    }
}

impl<T, const PAGE: usize> std::ops::Index<u32> for Pool<T, PAGE> {
    type Output = T;
    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.pages[id as usize / PAGE][id as usize % PAGE]
    }
}
impl<T, const PAGE: usize> std::ops::IndexMut<u32> for Pool<T, PAGE> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.pages[id as usize / PAGE][id as usize % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_reuses_slots_and_counts_live() {
        let mut pool: Pool<u64> = Pool::default();
        let a = pool.insert(0);
        let b = pool.insert(7);
        pool.remove(a);
        assert_eq!(pool.live(), 1);
        assert_eq!(pool.insert(9), a);
        assert_eq!((pool[a], pool[b]), (9, 7));
    }
}
