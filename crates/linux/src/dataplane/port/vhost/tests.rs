//! Rings over memory of this process: what a guest may write, and what it sees.

use super::frames::{Format, Given, HEADER, Scratch, Taken, give, take};
use super::memory::Memory;
use super::ring::{Broken, Parts, Ring, SIZE_MAX};
use crate::dataplane::frame::Offload;
use proptest::prelude::*;
use std::io::IoSlice;
use vm_memory::GuestAddress;

const LENGTH: usize = 1 << 16;
const PARTS: Parts = Parts { descriptors: 0, available: 0x1000, used: 0x2000 };
const FORMAT: Format = Format { header: HEADER, is_mergeable: true };

fn memory() -> Memory {
    Memory::anonymous(&[(0, LENGTH), (0x10_0000, LENGTH)])
}
fn describe(memory: &Memory, index: u64, at: u64, length: u32, flags: u16, next: u16) {
    let raw =
        [&at.to_le_bytes()[..], &length.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()]
            .concat();
    memory.write(GuestAddress(16 * index), &raw).unwrap();
}
/// Makes heads available from the ring's beginning on.
fn offer(memory: &Memory, heads: &[u16]) {
    let raw: Vec<u8> = heads.iter().flat_map(|head| head.to_le_bytes()).collect();
    memory.write(GuestAddress(0x1004), &raw).unwrap();
    memory.write(GuestAddress(0x1002), &(heads.len() as u16).to_le_bytes()).unwrap();
}
fn used(memory: &Memory) -> u16 {
    let mut raw = [0; 2];
    memory.read(GuestAddress(0x2002), &mut raw).unwrap();
    u16::from_le_bytes(raw)
}
fn send(ring: &mut Ring, memory: &Memory, format: Format, length: usize) -> Result<Given, Broken> {
    let frame = vec![7; length];
    let pieces = [IoSlice::new(&frame[..length / 2]), IoSlice::new(&frame[length / 2..])];
    give(ring, memory, format, &mut Scratch::default(), &Offload::default(), &pieces)
}

#[test]
fn a_ring_lies_in_one_region_and_is_aligned() {
    let memory = memory();
    let ring = |parts: Parts, size| Ring::new(&memory, parts, size, 0, true).is_some();
    assert!(ring(PARTS, 16) && ring(PARTS, 256));
    assert!(!ring(PARTS, 0) && !ring(PARTS, 17) && !ring(PARTS, (2 * SIZE_MAX) as u16));
    assert!(!ring(Parts { used: LENGTH as u64 - 64, ..PARTS }, 16));
    assert!(
        !ring(Parts { available: 0x1001, ..PARTS }, 16)
            && !ring(Parts { descriptors: u64::MAX - 15, ..PARTS }, 16)
    );
}

#[test]
fn a_frame_takes_buffers_all_at_once_or_none() {
    let memory = memory();
    let mut ring = Ring::new(&memory, PARTS, 16, 0, false).unwrap();
    (0..16).for_each(|n| describe(&memory, n, 0x10_0000 + 100 * n, 100, 2, 0));
    assert_eq!(send(&mut ring, &memory, FORMAT, 300), Ok(Given::Full));
    offer(&memory, &[3, 1, 2]);
    assert_eq!(send(&mut ring, &memory, FORMAT, 300), Ok(Given::Full), "a header and 300 are more");
    assert_eq!((used(&memory), ring.next()), (0, 0));
    assert_eq!(send(&mut ring, &memory, FORMAT, 288), Ok(Given::Done));
    assert_eq!((used(&memory), ring.next()), (3, 3));
    let mut header = [0; HEADER];
    memory.read(GuestAddress(0x10_0000 + 300), &mut header).unwrap();
    assert_eq!(header[10..], [3, 0], "so many buffers");
    // A frame that no number of buffers holds does not wait for ever; a driver that does not merge
    // has one buffer.
    let heads: Vec<u16> = (0..16).collect();
    let mut ring = Ring::new(&memory, PARTS, 16, 0, false).unwrap();
    offer(&memory, &heads);
    assert_eq!(send(&mut ring, &memory, FORMAT, 1600), Ok(Given::TooLong));
    let alone = Format { is_mergeable: false, ..FORMAT };
    assert_eq!(send(&mut ring, &memory, alone, 89), Ok(Given::TooLong));
    assert_eq!((send(&mut ring, &memory, alone, 88), ring.next()), (Ok(Given::Done), 1));
}

#[test]
fn kicks_and_signals_are_asked_for() {
    for has_event_index in [false, true] {
        let memory = memory();
        describe(&memory, 0, 0x10_0000, 100, 0, 0);
        let mut ring = Ring::new(&memory, PARTS, 16, 0, has_event_index).unwrap();
        assert_eq!(
            (ring.wants_signal(), ring.wants_signal()),
            (Ok(true), Ok(false)),
            "one may be owed"
        );
        assert_eq!(ring.arm(), Ok(false));
        offer(&memory, &[0]);
        assert_eq!((ring.arm(), ring.has_more()), (Ok(true), true));
        let mut frame = [0; 200];
        let taken = take(&mut ring, &memory, FORMAT, &mut Scratch::default(), &mut frame);
        assert_eq!(taken, Ok(Taken::Frame(88, Offload::default())));
        assert_eq!((ring.publish(), used(&memory)), (Ok(()), 1));
        assert_eq!((ring.wants_signal(), ring.wants_signal()), (Ok(true), Ok(false)));
        // The driver wants none: by its flag, or with an event that is far away.
        memory.write(GuestAddress(0x1000), &[1]).unwrap();
        memory.write(GuestAddress(0x1004 + 32), &9u16.to_le_bytes()).unwrap();
        memory.write(GuestAddress(0x1002), &2u16.to_le_bytes()).unwrap();
        take(&mut ring, &memory, FORMAT, &mut Scratch::default(), &mut frame).unwrap();
        assert_eq!((used(&memory), ring.publish(), used(&memory)), (1, Ok(()), 2));
        assert_eq!(ring.wants_signal(), Ok(false));
        memory.write(GuestAddress(0x1002), &100u16.to_le_bytes()).unwrap();
        assert_eq!(ring.arm(), Err(Broken), "more than it has places for");
    }
}

proptest! {
    /// Any bytes as rings and descriptors: no panic, no end that does not come, no write elsewhere.
    #[test]
    fn whatever_lies_there(
        bytes in proptest::collection::vec(any::<u8>(), 0x400),
        base in any::<u16>(),
        ahead in 0..20u16,
        is_mergeable: bool,
        small in any::<bool>(),
    ) {
        let memory = memory();
        memory.write(GuestAddress(0), &bytes[..0x200]).unwrap();
        memory.write(GuestAddress(0x1000), &bytes[0x200..0x240]).unwrap();
        if small {
            // Addresses, lengths, flags and heads that are closer to the truth.
            for n in 0..16usize {
                let b = &bytes[16 * n..16 * n + 16];
                let at = u64::from(b[0]) << 8 | u64::from(b[1] & 1) << 20;
                describe(
                    &memory,
                    n as u64,
                    at,
                    u32::from(b[3]) * 16,
                    u16::from(b[4] & 7),
                    u16::from(b[5] % 18),
                );
                memory
                    .write(GuestAddress(0x1004 + 2 * n as u64), &u16::from(b[6] % 17).to_le_bytes())
                    .unwrap();
            }
        }
        memory.write(GuestAddress(0x1002), &base.wrapping_add(ahead).to_le_bytes()).unwrap();
        let format = Format { header: if is_mergeable { 12 } else { 10 }, is_mergeable };
        let mut ring = Ring::new(&memory, PARTS, 16, base, ahead % 2 == 0).unwrap();
        let (mut frame, mut scratch, mut count) = (vec![0; 70_000], Scratch::default(), 0);
        // It may write its own indices: so many rounds and no more.
        while count < 64 {
            match take(&mut ring, &memory, format, &mut scratch, &mut frame) {
                Ok(Taken::Nothing) | Err(Broken) => break,
                Ok(Taken::Frame(length, _)) => prop_assert!(length <= frame.len()),
                Ok(Taken::Bad) => {}
            }
            count += 1;
        }
        prop_assert!(count <= ahead.min(16));
        let mut ring = Ring::new(&memory, PARTS, 16, base, ahead % 2 == 0).unwrap();
        for length in [60, 1514, 65_000] {
            let _ = send(&mut ring, &memory, format, length);
            let _ = (ring.publish(), ring.wants_signal(), ring.arm());
        }
    }
}
