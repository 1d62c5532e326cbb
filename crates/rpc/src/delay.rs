//! A delay line between two TUN interfaces, for kernels without netem: whatever one end sends, the
//! other receives a constant time later, in order and without loss. Packets keep their virtio
//! header, so TCP's super-packets of up to 64 KB cross as one and checksums are left to the ends.
//! The interfaces are made where this process is; whoever started it moves them into their
//! namespaces.

use std::collections::VecDeque;
use std::io;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tun_rs::{DeviceBuilder, SyncDevice};

/// A super-packet and its virtio header.
const PACKET_BYTES: usize = (1 << 16) + 64;
/// Packets that an interface holds while its reader is not scheduled.
const QUEUE_PACKETS: u32 = 10_000;

/// A packet and when it is due.
type Due = (Instant, Vec<u8>);

/// Buffers that were used and can be used again.
type Spare = Arc<Mutex<VecDeque<Vec<u8>>>>;

fn interface(name: &str) -> io::Result<Arc<SyncDevice>> {
    let device = DeviceBuilder::new()
        .name(name)
        .offload(true)
        .packet_information(false)
        .tx_queue_len(QUEUE_PACKETS)
        .build_sync()?;
    Ok(Arc::new(device))
}

/// Joins two new interfaces until the process ends, each way with `delay`. `ready` is called when
/// they are there.
pub fn join(left: &str, right: &str, delay: Duration, ready: impl FnOnce()) -> io::Result<()> {
    let left = interface(left)?;
    let right = interface(right)?;
    ready();
    let ways = [(Arc::clone(&left), Arc::clone(&right)), (right, left)];
    let mut threads = Vec::new();
    for (from, to) in ways {
        let (sender, receiver) = channel();
        let spare = Spare::default();
        let used = Arc::clone(&spare);
        threads.push(thread::spawn(move || read(&from, delay, &sender, &spare)));
        threads.push(thread::spawn(move || write(&to, &receiver, &used)));
    }
    for thread in threads {
        thread
            .join()
            .map_err(|_| io::Error::other("a thread of the delay line ended by itself"))??;
    }
    Ok(())
}

/// Takes packets from an interface, each with the time at which it is due at the other.
fn read(from: &SyncDevice, delay: Duration, due: &Sender<Due>, spare: &Spare) -> io::Result<()> {
    loop {
        let reused = spare.lock().ok().and_then(|mut spare| spare.pop_front());
        let mut packet = reused.unwrap_or_default();
        packet.resize(PACKET_BYTES, 0);
        match from.recv(&mut packet) {
            Ok(got) => packet.truncate(got),
            // An interface that is down, as while it is moved, or a signal.
            Err(error) if transient(&error) => {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(error) => return Err(error),
        }
        if due.send((Instant::now() + delay, packet)).is_err() {
            return Ok(());
        }
    }
}

/// Gives packets to an interface when they are due.
fn write(to: &SyncDevice, due: &Receiver<Due>, used: &Spare) -> io::Result<()> {
    // Sleeps end when they should and not up to 50 us later.
    rustix::thread::set_current_timer_slack(Some(NonZero::<u64>::MIN))?;
    while let Ok((at, packet)) = due.recv() {
        let now = Instant::now();
        if at > now {
            thread::sleep(at - now);
        }
        match to.send(&packet) {
            Ok(_) => {}
            // As a wire does when nobody is at its end.
            Err(error) if transient(&error) => {}
            Err(error) => return Err(error),
        }
        if let Ok(mut used) = used.lock() {
            used.push_back(packet);
        }
    }
    Ok(())
}

fn transient(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let transient =
        [Errno::IO, Errno::INTR, Errno::NOBUFS, Errno::AGAIN, Errno::NOMEM, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|errno| transient.contains(&errno))
}
