//! How many frames of 64 bytes a guest brings into the switch's port, beside an application's port
//! of shared memory: `cargo test -p millpond-linux --test vhost -- --ignored --nocapture speed`.
//! Two threads each; frames are shown to the switch's end 32 together. Medians of turns.

use super::driver::{Guest, Options};
use super::frame;
use millpond_linux::dataplane::buffers::FRAME_MAX;
use millpond_linux::dataplane::port::shared::{QueueKind, SharedSettings};
use millpond_linux::dataplane::port::vhost::VhostSettings;
use millpond_linux::dataplane::port::{Port, Received, Shared, Vhost};
use millpond_port::layout::Sizes;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_millis(400);
const TOGETHER: usize = 32;
const ROUNDS: usize = 7;

/// Frames a second, in millions, that the switch's end takes while another thread sends.
fn rate(mut produce: impl FnMut() -> bool + Send, mut consume: impl FnMut() -> u64) -> f64 {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if !produce() {
                    std::thread::yield_now();
                }
            }
        });
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < TIME {
            let got = consume();
            count += got;
            if got == 0 {
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::Relaxed);
        count as f64 / start.elapsed().as_secs_f64() / 1e6
    })
}

fn short() -> [u8; 64] {
    frame(2, 1, 0).try_into().unwrap()
}

/// A guest and the switch's end of its port.
fn attach(socket: &Path) -> (Guest, Vhost) {
    let mut port = Vhost::open(VhostSettings { socket: socket.into(), uid: None }).unwrap();
    let (path, is_attached) = (socket.to_path_buf(), AtomicBool::new(false));
    let guest = std::thread::scope(|scope| {
        let guest = scope.spawn(|| {
            let guest = Guest::attach(&path, Options { ring: 1024, ..Options::default() });
            is_attached.store(true, Ordering::Relaxed);
            guest
        });
        while !is_attached.load(Ordering::Relaxed) {
            port.attend();
        }
        guest.join().unwrap()
    });
    port.attend();
    port.awake();
    (guest, port)
}

/// Takes the frames that are there, a round of the poll loop.
fn take(port: &mut Port, room: &mut [u8]) -> u64 {
    let count =
        (0..64).take_while(|_| matches!(port.receive(room), Received::Frame { .. })).count();
    port.flush();
    count as u64
}

/// Nanoseconds that a frame costs either end, in one thread.
fn costs(socket: &Path) -> [f64; 2] {
    let (mut guest, port) = attach(socket);
    let (sent, mut room, mut port) = (short(), vec![0; FRAME_MAX], Port::Vhost(Box::new(port)));
    let (mut times, mut count) = ([Duration::ZERO; 2], 0);
    while times[0] + times[1] < TIME {
        let start = Instant::now();
        count += guest.flood(&sent, TOGETHER);
        let middle = Instant::now();
        take(&mut port, &mut room);
        times[0] += middle - start;
        times[1] += middle.elapsed();
    }
    times.map(|time| time.as_secs_f64() * 1e9 / count as f64)
}

fn guest(socket: &Path) -> f64 {
    let (mut guest, port) = attach(socket);
    let (sent, mut room, mut port) = (short(), vec![0; FRAME_MAX], Port::Vhost(Box::new(port)));
    let produce = move || guest.flood(&sent, TOGETHER) > 0;
    rate(produce, || take(&mut port, &mut room))
}

fn application(socket: &Path) -> f64 {
    let sizes = Sizes { places: 256, ..Sizes::default() };
    let (memory, headroom, queue) = (1 << 20, 1 << 17, QueueKind::FlowQueues);
    let settings =
        SharedSettings { socket: socket.into(), uid: None, sizes, queue, memory, headroom };
    let mut shared = Shared::open(settings).unwrap();
    let path = socket.to_path_buf();
    let mut theirs = std::thread::scope(|scope| {
        let port = scope.spawn(|| millpond_port::Port::attach(&path).unwrap());
        while !port.is_finished() {
            shared.attend();
        }
        port.join().unwrap()
    });
    let (sent, mut room, mut port) =
        (frame(2, 1, 0), vec![0; FRAME_MAX], Port::Shared(Box::new(shared)));
    let produce = move || theirs.try_send_all(1, &[&sent[..]; TOGETHER]).is_ok();
    rate(produce, || {
        let count = (0..64).take_while(|_| {
            let is_frame = matches!(port.receive(&mut room), Received::Frame { .. });
            let shared = port.shared().unwrap();
            // As the switch's node does with each.
            if is_frame && shared.origin().is_some() {
                shared.conclude(millpond_linux::dataplane::port::shared::Fate::Left);
            }
            is_frame
        });
        let count = count.count();
        port.flush();
        count as u64
    })
}

#[test]
#[ignore = "a measurement: make bench-switch"]
fn speed_beside_shared_memory() {
    let socket: PathBuf =
        std::env::temp_dir().join(format!("millpond-vhost-speed-{}", std::process::id()));
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (rates, measure) in rates.iter_mut().zip([guest as fn(&Path) -> f64, application]) {
            rates.push(measure(&socket));
            let _ = std::fs::remove_file(&socket);
        }
    }
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let [guest, application] = rates.each_mut().map(median);
    let [of_guest, of_switch] = costs(&socket);
    let _ = std::fs::remove_file(&socket);
    println!(
        "a guest's frame of 64 bytes costs the guest {of_guest:.0} ns and the switch's port \
         {of_switch:.0} ns"
    );
    println!(
        "guest {guest:.2} M/s, application {application:.2} M/s, ratio {:.2}",
        guest / application
    );
}
