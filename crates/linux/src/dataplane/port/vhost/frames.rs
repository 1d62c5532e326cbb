//! Frames in a guest's buffers (virtio 1.2 §5.1.6).
//!
//! A frame comes behind a header, in a chain of buffers. To the guest it goes into one chain, or
//! into as many as it takes where the guest merges buffers.
//!
//! Invariant: a frame is copied once, out of memory that the guest may write meanwhile, and only
//! the copy is looked at; of one that does not fit nothing is written.

use super::memory::Memory;
use super::ring::{Broken, Buffer, Chain, Ring};
use crate::dataplane::frame::offload::{self, Offload};
use std::io::IoSlice;

/// The header's length where the guest merges buffers, or is of virtio 1.0 or later.
pub const HEADER: usize = offload::LENGTH + 2;
/// Buffers that a frame may be spread over.
const BUFFERS_MAX: usize = 4096;

/// The format that a guest has agreed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// The header's bytes.
    pub header: usize,
    /// Whether a frame may be in several chains.
    pub is_mergeable: bool,
}

/// The outcome of a take from a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A frame of so many bytes.
    Frame(usize, Offload),
    /// A chain that holds none.
    Bad,
    Nothing,
}

/// The outcome of a frame for a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    Done,
    /// There are not enough buffers for now.
    Full,
    /// The guest's buffers never hold so much.
    TooLong,
}

/// Room for what is looked at.
#[derive(Debug, Default)]
pub struct Scratch {
    buffers: Vec<Buffer>,
    chains: Vec<(Chain, u32)>,
}

/// Copies a chain: the header, and what is behind it.
fn copy(memory: &Memory, buffers: &[Buffer], header: &mut [u8], frame: &mut [u8]) -> Option<usize> {
    let (mut got, split) = (0, header.len());
    for buffer in buffers.iter().filter(|buffer| buffer.length > 0) {
        if buffer.is_writable {
            return None;
        }
        let (mut at, mut length) = (buffer.at, buffer.length as usize);
        if got < split {
            let part = length.min(split - got);
            memory.read(at, &mut header[got..got + part])?;
            got += part;
            length -= part;
            at.0 = at.0.checked_add(part as u64)?;
        }
        if length > 0 {
            let into = frame.get_mut(got - split..)?.get_mut(..length)?;
            memory.read(at, into)?;
            got += length;
        }
    }
    got.checked_sub(split)
}

/// Takes the next frame of a guest. Its buffers are to be [published](Ring::publish).
///
/// # Errors
/// [`Broken`] if the ring has impossible numbers.
#[inline]
pub fn take(
    ring: &mut Ring,
    memory: &Memory,
    format: Format,
    scratch: &mut Scratch,
    frame: &mut [u8],
) -> Result<Taken, Broken> {
    scratch.buffers.clear();
    let Some(chain) = ring.take(memory, &mut scratch.buffers)? else { return Ok(Taken::Nothing) };
    let mut header = [0; HEADER];
    let length = match chain.is_whole {
        true => copy(memory, &scratch.buffers, &mut header[..format.header], frame),
        false => None,
    };
    ring.defer(chain.head, 0)?;
    let mut first = [0; offload::LENGTH];
    first.copy_from_slice(&header[..offload::LENGTH]);
    Ok(match (length, Offload::read(&first)) {
        (Some(length), Ok(offload)) => Taken::Frame(length, offload),
        _ => Taken::Bad,
    })
}

/// Gives a guest a frame. A chain that cannot be written is a ring that is broken: no driver makes
/// one.
///
/// # Errors
/// [`Broken`] if the ring has impossible numbers.
pub fn give(
    ring: &mut Ring,
    memory: &Memory,
    format: Format,
    scratch: &mut Scratch,
    offload: &Offload,
    pieces: &[IoSlice<'_>],
) -> Result<Given, Broken> {
    let (first, total) =
        (ring.next(), format.header + pieces.iter().map(|piece| piece.len()).sum::<usize>());
    let Scratch { buffers, chains } = scratch;
    buffers.clear();
    chains.clear();
    let mut room = 0u64;
    while room < total as u64 {
        let known = buffers.len();
        let is_last = !chains.is_empty()
            && (!format.is_mergeable || chains.len() >= usize::from(ring.size()));
        let chain = if is_last { None } else { ring.take(memory, buffers)? };
        let Some(chain) = chain else {
            ring.go_back(first);
            return Ok(if is_last { Given::TooLong } else { Given::Full });
        };
        let new = &buffers[known..];
        let length: u64 = new.iter().map(|buffer| u64::from(buffer.length)).sum();
        if !chain.is_whole
            || length == 0
            || new.iter().any(|b| !b.is_writable)
            || buffers.len() > BUFFERS_MAX
        {
            return Err(Broken);
        }
        room += length;
        chains.push((chain, u32::try_from(length).unwrap_or(u32::MAX)));
    }
    let mut header = [0; HEADER];
    header[..offload::LENGTH].copy_from_slice(&offload.write());
    header[offload::LENGTH..].copy_from_slice(&(chains.len() as u16).to_le_bytes());
    let mut targets = buffers.iter();
    let (mut at, mut left) = (Default::default(), 0);
    let parts =
        std::iter::once(&header[..format.header]).chain(pieces.iter().map(|piece| &**piece));
    for mut part in parts {
        while !part.is_empty() {
            if left == 0 {
                let buffer = targets.next().ok_or(Broken)?;
                (at, left) = (buffer.at, buffer.length as usize);
                continue;
            }
            let (now, later) = part.split_at(part.len().min(left));
            memory.write(at, now).ok_or(Broken)?;
            at.0 = at.0.wrapping_add(now.len() as u64);
            (part, left) = (later, left - now.len());
        }
    }
    let mut rest = total;
    for (ahead, (chain, length)) in chains.iter().enumerate() {
        let written = rest.min(*length as usize);
        rest -= written;
        ring.note(ahead as u16, chain.head, written as u32)?;
    }
    ring.give(chains.len() as u16)?;
    Ok(Given::Done)
}
