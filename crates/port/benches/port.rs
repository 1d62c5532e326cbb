//! Speed of a port of shared memory: `cargo bench -p millpond-port`, a part of `make bench-switch`.
//!
//! *One way*: an application sends frames of 64 bytes; the switch's end takes them and copies each
//! out. Beside it, in turns, a bare ring with the same copies in and out: nothing but its two
//! counts, no flows, no doorbells, no buffers that come back. Two threads each, on two cores;
//! frames are shown to the other side one by one (`try_send`), or 32 together (`try_send_all`).
//!
//! *Polling*: two queues of Q have frames, one at a time. With doorbells the consumer learns which;
//! else it looks at all of them. One thread does both ends, so the figure is what a frame costs.
//!
//! Medians; no test, and no ratio that fails.

use millpond_port::channel::{self, Parts};
use millpond_port::host::{Host, Next};
use millpond_port::layout::{Hello, Layout, Sizes};
use millpond_port::memory::{Area, Memory, Words, sealed};
use millpond_port::{Port, ring};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, accept, bind, listen, socket};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::black_box;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

const FRAME: usize = 64;
const ROUNDS: usize = 9;
const TIME: Duration = Duration::from_millis(400);
const PLACES: usize = 256;
const TOGETHER: usize = 32;

/// A port, and the switch's end of it; its socket is to be kept.
fn attach(sizes: Sizes) -> (Port, Host, OwnedFd) {
    let path = std::env::temp_dir().join(format!("millpond-bench-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new(&path).expect("a path")).expect("an address");
    listen(&listener, 1).expect("a listener");
    let welcome = std::thread::spawn(move || {
        let connection = accept(&listener).expect("an application");
        let (host, parts) = Host::new(sizes).expect("memory");
        let parts = Parts {
            memory: parts.memory.as_fd(),
            switch: parts.switch.as_fd(),
            readable: parts.readable.as_fd(),
            writable: parts.writable.as_fd(),
        };
        channel::send(&connection, &Hello::Welcome(sizes), Some(&parts)).expect("it listens");
        (host, connection)
    });
    let port = Port::attach(&path).expect("a port");
    let (host, connection) = welcome.join().expect("a welcome");
    let _ = std::fs::remove_file(&path);
    (port, host, connection)
}

/// A bare ring with room for a frame beside each place.
struct Bare {
    producer: ring::Producer<Words<AtomicU64>>,
    consumer: ring::Consumer<Words<AtomicU64>>,
    frames: Area,
}

impl Bare {
    fn new(places: usize) -> Bare {
        let words = (ring::words(places) * 8).next_multiple_of(64);
        let length = words + places * FRAME;
        let memory = Memory::map(sealed(length).expect("a file"), length).expect("memory");
        let ring = || memory.long_words(0, ring::words(places));
        Bare {
            producer: ring::Producer::new(ring(), places),
            consumer: ring::Consumer::new(ring(), places),
            frames: memory.area(words, places * FRAME),
        }
    }
}

/// Keeps the thread on one of the cores that the process may use: `which` counts from the last.
fn pin(which: usize, cores: &CpuSet) {
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core)).collect();
    let mut one = CpuSet::new();
    one.set(all[all.len().saturating_sub(1 + which)]);
    let _ = sched_setaffinity(None, &one);
}

/// Frames a second, in millions, of a consumer that another thread feeds; each on a core.
fn rate(mut produce: impl FnMut() -> bool + Send, mut consume: impl FnMut() -> u64) -> f64 {
    let over = std::sync::atomic::AtomicBool::new(false);
    let cores = sched_getaffinity(None).unwrap_or_default();
    let rate = std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1, &cores);
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                // The cores are shared with others: who waits gives way.
                if !(0..TOGETHER).all(|_| produce()) {
                    std::thread::yield_now();
                }
            }
        });
        pin(0, &cores);
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < TIME {
            let got = consume();
            count += got;
            if got == 0 {
                std::thread::yield_now();
            }
        }
        let rate = count as f64 / start.elapsed().as_secs_f64() / 1e6;
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        rate
    });
    let _ = sched_setaffinity(None, &cores);
    rate
}

fn bare(together: usize) -> f64 {
    let Bare { mut producer, mut consumer, frames } = Bare::new(PLACES);
    let theirs = frames.clone();
    let (frame, mut sent) = ([7; FRAME], 0);
    let produce = move || {
        let mut count = 0;
        while count < together && producer.room() > 0 {
            theirs.write(sent % PLACES * FRAME, &frame);
            producer.push(sent as u64);
            sent += 1;
            count += 1;
        }
        producer.publish();
        count > 0
    };
    let mut room = [0; FRAME];
    rate(produce, || {
        let mut count = 0;
        while count < 64 && consumer.peek().expect("nobody means harm").is_some() {
            let at = black_box(consumer.peek().expect("as before").unwrap_or(0)) as usize;
            frames.read(at % PLACES * FRAME, &mut room);
            black_box(&room);
            consumer.advance();
            count += 1;
        }
        consumer.release();
        count
    })
}

/// The switch's work on what is there, a round of its poll loop.
fn take(host: &mut Host, room: &mut [u8]) -> u64 {
    let mut count = 0;
    while count < 64 {
        let Next::Frame { buffer, .. } = host.next(room).expect("nobody means harm") else { break };
        black_box(&room);
        host.taken(buffer);
        host.finish(buffer);
        count += 1;
    }
    host.flush();
    count
}

fn port(together: usize) -> f64 {
    let (mut port, mut host, _socket) = attach(Sizes { places: PLACES as u32, ..Sizes::default() });
    let frame = [7; FRAME];
    let mut room = [0; 2048];
    let produce = move || match together {
        1 => port.try_send(1, &frame).is_ok(),
        _ => port.try_send_all(1, &[&frame[..]; TOGETHER][..together]).is_ok(),
    };
    rate(produce, || take(&mut host, &mut room))
}

/// Nanoseconds a frame, of `step`, which does one.
fn cost(mut step: impl FnMut(u32)) -> f64 {
    let (start, mut count) = (Instant::now(), 0u32);
    while start.elapsed() < TIME / 8 {
        (0..256).for_each(&mut step);
        count += 256;
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

fn with_doorbells(queues: u32) -> f64 {
    let (mut port, mut host, _socket) =
        attach(Sizes { flows: queues, places: 16, ..Sizes::default() });
    let (frame, mut room) = ([7; FRAME], [0; 2048]);
    cost(|n| {
        port.try_send(if n % 2 == 0 { 0 } else { queues - 1 }, &frame).expect("there is room");
        assert_eq!(take(&mut host, &mut room), 1);
    })
}

/// The same memory and the same copies, without doorbells.
fn polling_all(queues: u32) -> f64 {
    let sizes = Sizes { flows: queues, places: 16, ..Sizes::default() };
    let layout = Layout::of(sizes);
    let memory = Memory::map(sealed(layout.bytes).expect("a file"), layout.bytes).expect("memory");
    let all = 0..queues;
    let mut producers: Vec<_> =
        all.clone().map(|q| ring::Producer::new(layout.transmit(&memory, q), 16)).collect();
    let mut consumers: Vec<_> =
        all.map(|q| ring::Consumer::new(layout.transmit(&memory, q), 16)).collect();
    let buffers = layout.transmit_buffers(&memory);
    let (frame, mut room) = ([7; FRAME], [0; FRAME]);
    cost(|n| {
        let producer = &mut producers[if n % 2 == 0 { 0 } else { queues as usize - 1 }];
        buffers.write(0, &frame);
        assert!(producer.room() > 0);
        producer.push(0);
        producer.publish();
        // A round of the poll loop looks at each.
        for consumer in &mut consumers {
            while let Ok(Some(_)) = consumer.peek() {
                buffers.read(0, &mut room);
                black_box(&room);
                consumer.advance();
                consumer.release();
            }
        }
    })
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_string()
}

fn main() {
    // `cargo test --benches` runs it, too, and measures nothing.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!(
        "load {} on {} cores",
        load(),
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    println!("one way, 64 B, million frames a second, median (most) of {ROUNDS} in turns");
    println!("{:>9} {:>16} {:>16} {:>8}", "together", "bare ring", "port", "ratio");
    for together in [1, TOGETHER] {
        let (bares, ports): (Vec<f64>, Vec<f64>) =
            (0..ROUNDS).map(|_| (bare(together), port(together))).unzip();
        let ratio = median(bares.iter().zip(&ports).map(|(bare, port)| port / bare).collect());
        let told = |all: &[f64]| {
            let most = all.iter().copied().fold(0.0, f64::max);
            format!("{:.1} ({most:.1})", median(all.to_vec()))
        };
        println!("{together:>9} {:>16} {:>16} {ratio:>8.2}", told(&bares), told(&ports));
    }
    println!("ns a frame, 2 queues with frames, median of {ROUNDS}");
    println!("{:>7} {:>10} {:>12}", "queues", "doorbells", "polling all");
    for queues in [2, 8, 32, 128, 512, 2048, 4096] {
        let pairs = (0..ROUNDS).map(|_| (with_doorbells(queues), polling_all(queues)));
        let (bells, polls): (Vec<f64>, Vec<f64>) = pairs.unzip();
        println!("{queues:>7} {:>10.1} {:>12.1}", median(bells), median(polls));
    }
    println!("load {}", load());
}
