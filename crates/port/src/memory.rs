//! Memory that two processes share, as words and bytes that can be used without care.
//!
//! All unsafe code of the crate is here. The other process may write any byte at any time, so no
//! reference to plain data points into the memory: words are atomics, and bytes are copied out and
//! in.
//!
//! Invariant: an access lies within the mapping, which lives as long as whoever refers to it; the
//! file is sealed before it is mapped, so it cannot become shorter than the mapping.
#![allow(unsafe_code)]

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The seals that the file must have: its size stays what it is, for everybody and for ever.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A mapping of a sealed file.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: it is memory that other processes write as well; all access is by atomics and by copies.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Makes a file of `length` zero bytes in memory, and seals it: its size cannot change.
///
/// # Errors
/// The kernel's reason: no memory or no file descriptor is left.
pub fn sealed(length: usize) -> Result<OwnedFd, Errno> {
    let file =
        rustix::fs::memfd_create("millpond-port", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&file, length as u64)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

impl Memory {
    /// Maps the first `length` bytes of a file.
    ///
    /// # Errors
    /// [`Errno::INVAL`] if the file lacks a seal or is shorter than `length`, or if `length` is 0.
    /// Otherwise the kernel's reason to refuse the mapping.
    pub fn map(file: impl AsFd, length: usize) -> Result<Arc<Memory>, Errno> {
        let is_sealed = rustix::fs::fcntl_get_seals(&file)?.contains(SEALS);
        if !is_sealed || length == 0 || rustix::fs::fstat(&file)?.st_size < length as i64 {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses, of a file that cannot shrink.
        let base = unsafe { mmap(null_mut(), length, access, MapFlags::SHARED, &file, 0) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno::NOMEM)?;
        Ok(Arc::new(Memory { base, length }))
    }

    fn at<T>(&self, offset: usize, count: usize) -> NonNull<T> {
        let bytes = count.checked_mul(size_of::<T>());
        let end = bytes.and_then(|bytes| offset.checked_add(bytes)).expect("a size");
        assert!(
            end <= self.length && offset.is_multiple_of(align_of::<T>()),
            "outside of shared memory"
        );
        // SAFETY: within the mapping, which begins at a page, so it is aligned as the offset is.
        unsafe { self.base.add(offset) }.cast()
    }
    /// 32-bit words from `offset` on.
    ///
    /// # Panics
    /// If they are not in the mapping, or not aligned.
    pub fn words(self: &Arc<Memory>, offset: usize, count: usize) -> Words<AtomicU32> {
        Words { first: self.at(offset, count), count, memory: self.clone() }
    }
    /// 64-bit words from `offset` on.
    ///
    /// # Panics
    /// If they are not in the mapping, or not aligned.
    pub fn long_words(self: &Arc<Memory>, offset: usize, count: usize) -> Words<AtomicU64> {
        Words { first: self.at(offset, count), count, memory: self.clone() }
    }
    /// Bytes from `offset` on.
    ///
    /// # Panics
    /// If they are not in the mapping.
    pub fn area(self: &Arc<Memory>, offset: usize, length: usize) -> Area {
        Area { first: self.at(offset, length), length, memory: self.clone() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no reference is left.
        let _ = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.length) };
    }
}

#[derive(Clone, Debug)]
pub struct Words<A> {
    first: NonNull<A>,
    count: usize,
    memory: Arc<Memory>,
}

// SAFETY: atomics, in memory that outlives this; `Memory` is both.
unsafe impl<A: Sync> Send for Words<A> {}
// SAFETY: as above.
unsafe impl<A: Sync> Sync for Words<A> {}

impl<A> AsRef<[A]> for Words<A> {
    #[inline]
    fn as_ref(&self) -> &[A] {
        debug_assert!(self.memory.length >= self.count * size_of::<A>());
        // SAFETY: within the mapping, aligned, initialised (any bytes are an atomic), and alive as
        // long as `memory`. Only the two constructors in `Memory` make these, of atomics, which
        // others may write while there are references.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

/// Bytes in shared memory, to be copied.
#[derive(Clone, Debug)]
pub struct Area {
    first: NonNull<u8>,
    length: usize,
    memory: Arc<Memory>,
}

// SAFETY: bytes that are only copied, in memory that outlives this.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    #[inline]
    fn place(&self, offset: usize, length: usize) -> *mut u8 {
        debug_assert!(self.length <= self.memory.length);
        assert!(offset <= self.length && length <= self.length - offset, "outside of the area");
        // SAFETY: within the area, which is within the mapping.
        unsafe { self.first.add(offset) }.as_ptr()
    }
    /// Copies bytes out. Bytes that another process writes meanwhile are in the copy, or are not.
    ///
    /// # Panics
    /// If they are not in the area.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.place(offset, into.len()).cast_const();
        // SAFETY: `from` has so many bytes; `into` is this process's own, so they do not overlap.
        // Another process may write them at the same time: the copy then has bytes of either, and
        // any bytes are bytes. Every decision from them is made from the copy.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }
    /// Copies bytes in.
    ///
    /// # Panics
    /// If they are not in the area.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let into = self.place(offset, from.len());
        // SAFETY: `into` has so many bytes, of shared memory, to which there are no references.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), into, from.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn two_mappings_are_one_memory() {
        let file = sealed(8192).unwrap();
        let (a, b) = (Memory::map(&file, 8192).unwrap(), Memory::map(&file, 8192).unwrap());
        a.words(4096, 2).as_ref()[1].store(0x0403_0201, SeqCst);
        let mut bytes = [0; 6];
        b.area(4100, 6).read(0, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4, 0, 0]);
        b.area(0, 16).write(8, &7u64.to_ne_bytes());
        assert_eq!(a.long_words(8, 1).as_ref()[0].load(SeqCst), 7);
    }

    #[test]
    fn a_file_that_can_shrink_or_is_short_is_not_mapped() {
        let open = rustix::fs::memfd_create("open", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&open, 4096).unwrap();
        assert!(Memory::map(&open, 4096).is_err());
        let file = sealed(4096).unwrap();
        assert!(Memory::map(&file, 4097).is_err() && rustix::fs::ftruncate(&file, 0).is_err());
        assert!(rustix::fs::ftruncate(&file, 8192).is_err());
    }

    #[test]
    fn what_lies_outside_is_refused() {
        let memory = Memory::map(sealed(4096).unwrap(), 4096).unwrap();
        let refused = |what: Box<dyn FnOnce() + std::panic::UnwindSafe>| {
            std::panic::catch_unwind(what).is_err()
        };
        let at = |offset, count| {
            let memory = std::panic::AssertUnwindSafe(memory.clone());
            Box::new(move || drop({ memory }.words(offset, count)))
        };
        assert!(
            refused(at(4096, 1))
                && refused(at(2, 1))
                && refused(at(0, usize::MAX))
                && !refused(at(4092, 1))
        );
        let area = std::panic::AssertUnwindSafe(memory.area(0, 64));
        assert!(refused(Box::new(move || { area }.read(60, &mut [0; 5]))));
    }
}
