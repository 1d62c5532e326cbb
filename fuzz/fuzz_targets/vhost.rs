//! A virtual machine that means harm, at a port of its own. Either it says any bytes where its
//! front end speaks; or it attaches as it should, and writes whatever it likes into its rings
//! between the switch's calls. These end, what they give is a frame that fits, and the next guest
//! finds the port free.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/linux/tests/vhost/driver.rs"]
mod driver;

use driver::{ALL, BUFFERS, Guest, Options, RINGS, RINGS_LENGTH};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use millpond_linux::dataplane::frame::offload::Offload;
use millpond_linux::dataplane::port::vhost::VhostSettings;
use millpond_linux::dataplane::port::{Port, Received, Vhost};
use std::cell::RefCell;
use std::io::{IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use vhost::VhostBackend;
use vm_memory::{Bytes, GuestAddress};

const RING: u16 = 16;
const ROOM: usize = 70_000;

#[derive(Arbitrary, Debug)]
enum Visit {
    Says(Vec<u8>),
    Attaches { features: u64, parts: u8, is_early: bool, deeds: Vec<Deed> },
}

#[derive(Arbitrary, Debug)]
enum Deed {
    /// A descriptor of a ring.
    Describe {
        ring: bool,
        index: u8,
        address: Address,
        length: u32,
        flags: u8,
        next: u8,
    },
    Offer(bool, u8),
    Show(bool),
    /// Says that any number of chains is there.
    Lie(bool, u16),
    /// A word anywhere in its rings.
    Scribble(u32, u64),
    Send(u8),
    /// Stops a ring, and goes on at any entry.
    Restart(bool, u16),
    // What the switch does.
    Take,
    Give(u16),
    Flush,
    Sleep,
}

#[derive(Arbitrary, Debug)]
enum Address {
    Any(u64),
    Buffer(u8),
    Ring(u16),
}

impl Address {
    fn value(&self) -> u64 {
        match *self {
            Address::Any(at) => at,
            Address::Buffer(slot) => BUFFERS + 512 * u64::from(slot),
            Address::Ring(at) => RINGS + 16 * u64::from(at),
        }
    }
}

struct Bench {
    port: Port,
    socket: PathBuf,
}

fn vhost(port: &mut Port) -> &mut Vhost {
    match port {
        Port::Vhost(port) => port,
        _ => unreachable!("it was opened as one"),
    }
}

impl Bench {
    fn new() -> Bench {
        let socket =
            std::env::temp_dir().join(format!("millpond-fuzz-vhost-{}", std::process::id()));
        let port =
            Vhost::open(VhostSettings { socket: socket.clone(), uid: None }).expect("a socket");
        Bench { port: Port::Vhost(Box::new(port)), socket }
    }

    /// Serves the port while somebody else does this.
    fn beside<T: Send>(&mut self, what: impl FnOnce(&Path) -> T + Send) -> T {
        let (is_done, socket) = (AtomicBool::new(false), self.socket.clone());
        let port = vhost(&mut self.port);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let done = what(&socket);
                is_done.store(true, Ordering::Relaxed);
                done
            });
            while !is_done.load(Ordering::Relaxed) {
                port.attend();
                std::thread::yield_now();
            }
            other.join().expect("it does not panic")
        })
    }

    fn until_free(&mut self) {
        let port = vhost(&mut self.port);
        while port.reading().pid.is_some() {
            port.attend();
            std::thread::yield_now();
        }
    }
}

fn act(deed: &Deed, guest: &mut Guest, bench: &mut Bench, room: &mut [u8]) {
    match *deed {
        Deed::Describe { ring, index, ref address, length, flags, next } => {
            let (ring, index) = (usize::from(ring), u16::from(index) % RING);
            guest.describe_in(
                ring,
                index,
                address.value(),
                length,
                u16::from(flags & 7),
                u16::from(next),
            );
        }
        Deed::Offer(ring, head) => guest.offer(usize::from(ring), head.into()),
        Deed::Show(ring) => guest.show(usize::from(ring)),
        Deed::Lie(ring, next) => guest.lie(usize::from(ring), next),
        Deed::Scribble(at, value) => {
            let at = u64::from(at) % (RINGS_LENGTH - 8);
            guest.memory.write_obj(value, GuestAddress(RINGS + at)).expect("it is the guest's");
        }
        Deed::Send(length) => drop(guest.send(&[0; 10], &vec![7; 14 + usize::from(length)])),
        Deed::Restart(ring, base) => {
            let ring = usize::from(ring);
            bench.beside(|_| {
                let _ = guest.front.get_vring_base(ring);
                let _ = guest.start(ring, base);
            });
        }
        Deed::Take => {
            if let Received::Frame { start, length, .. } = bench.port.receive(room) {
                assert!(start + length <= room.len());
            }
        }
        Deed::Give(length) => {
            let frame = [3; ROOM];
            let (front, rest) = frame[..14 + usize::from(length)].split_at(9);
            let _ =
                bench.port.send(&Offload::default(), &[IoSlice::new(front), IoSlice::new(rest)]);
        }
        Deed::Flush => bench.port.flush(),
        Deed::Sleep => {
            if !bench.port.may_sleep() {
                bench.port.awake();
            }
        }
    }
    vhost(&mut bench.port).attend();
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
}

fuzz_target!(|visit: Visit| {
    BENCH.with_borrow_mut(|bench| {
        match visit {
            Visit::Says(bytes) => bench.beside(|socket| {
                let mut stream = UnixStream::connect(socket).expect("it listens");
                // It may be sent away before it has said all.
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
            }),
            Visit::Attaches { features, parts, is_early, deeds } => {
                let options = Options {
                    features: features & ALL,
                    ring: RING,
                    buffer: 1526,
                    parts: parts.into(),
                    is_early,
                };
                if let Ok(mut guest) = bench.beside(|socket| Guest::try_attach(socket, options)) {
                    let mut room = vec![0; ROOM];
                    deeds.iter().for_each(|deed| act(deed, &mut guest, bench, &mut room));
                }
            }
        }
        bench.until_free();
    });
});
