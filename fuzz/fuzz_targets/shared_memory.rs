//! Anything written anywhere into the memory that an application shares with the switch, between
//! any of the switch's calls: they end, and what they give is a frame of a buffer that there is and
//! that the switch has not got, or an error. An honest application at another port gets all its
//! frames.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use millpond_port::host::{Host, Next};
use millpond_port::layout::{Descriptor, Layout, Sizes};
use millpond_port::memory::Memory;
use millpond_port::ring::Producer;
use std::io::IoSlice;
use std::sync::atomic::Ordering::SeqCst;

const SIZES: Sizes = Sizes { flows: 3, places: 4, buffers: 8, buffer_bytes: 64 };

#[derive(Arbitrary, Debug)]
enum Step {
    /// A word of all memory.
    Write(u16, u32),
    /// A ring's word: what it says, and how far it goes.
    Post {
        flow: u8,
        place: u8,
        word: u64,
        tail: u8,
    },
    /// A doorbell's word.
    Ring(u8, u8),
    Next,
    Keep,
    Finish,
    Deliver(u8),
    Pause(u8),
    Resume(u8),
    Sleep,
}

fuzz_target!(|steps: Vec<Step>| {
    let (mut host, parts) = Host::new(SIZES).expect("memory");
    let layout = Layout::of(SIZES);
    let memory = Memory::map(&parts.memory, layout.bytes).expect("it is sealed");
    let words = memory.words(0, layout.bytes / 4);
    let bells = layout.transmit_bells(&memory);
    let (mut room, mut posted) = ([0; 64], Vec::new());
    for step in steps {
        match step {
            Step::Write(at, value) => {
                words.as_ref()[usize::from(at) % words.as_ref().len()].store(value, SeqCst)
            }
            Step::Post { flow, place, word, tail } => {
                let ring = layout.transmit(&memory, u32::from(flow) % SIZES.flows);
                ring.as_ref()[16 + usize::from(place) % 4].store(word, SeqCst);
                ring.as_ref()[0].store(tail.into(), SeqCst);
            }
            Step::Ring(at, value) => {
                bells.as_ref()[usize::from(at) % bells.as_ref().len()].store(value.into(), SeqCst);
            }
            Step::Next | Step::Keep => match host.next(&mut room) {
                Ok(Next::Frame { flow, buffer, length }) => {
                    assert!(flow < SIZES.flows && buffer < SIZES.buffers && length <= 64);
                    assert!(!posted.contains(&buffer), "it has this one");
                    if matches!(step, Step::Keep) {
                        host.pause(flow);
                        host.kept();
                    } else {
                        host.taken(buffer);
                        posted.push(buffer);
                    }
                }
                Ok(_) => {}
                // The application loses its port.
                Err(_) => break,
            },
            Step::Finish => posted.pop().into_iter().for_each(|buffer| host.finish(buffer)),
            Step::Deliver(length) => {
                let frame = [3; 64];
                let _ = host.deliver(&[IoSlice::new(&frame[..usize::from(length % 65)])], 1);
            }
            Step::Pause(flow) => host.pause(u32::from(flow) % SIZES.flows),
            Step::Resume(flow) => host.resume(u32::from(flow) % SIZES.flows),
            Step::Sleep => {
                if !host.may_sleep() {
                    host.awake();
                }
            }
        }
        host.flush();
    }
    let rest = (0..100).filter(|_| host.deliver(&[IoSlice::new(&[1])], 0)).count();
    assert!(rest <= SIZES.buffers as usize);
    honest();
});

/// As the library does, by hand.
fn honest() {
    let (mut host, parts) = Host::new(SIZES).expect("memory");
    let layout = Layout::of(SIZES);
    let memory = Memory::map(&parts.memory, layout.bytes).expect("it is sealed");
    let bells =
        millpond_doorbell::Doorbells::over(layout.transmit_bells(&memory), SIZES.flows + 1, ());
    let mut ring = Producer::new(layout.transmit(&memory, 2), 4);
    for number in 0..6u32 {
        assert!(ring.room() > 0);
        layout.transmit_buffers(&memory).write(number as usize * 64, &[number as u8; 9]);
        ring.push(Descriptor { buffer: number, length: 9, tag: 0 }.word());
        ring.publish();
        bells.ring(2);
        let mut room = [0; 64];
        assert_eq!(host.next(&mut room), Ok(Next::Frame { flow: 2, buffer: number, length: 9 }));
        assert_eq!(room[..9], [number as u8; 9]);
        host.taken(number);
        host.finish(number);
        host.flush();
    }
}
