//! Captures of a lab that is up, for other processes: a socket where a client names a place and
//! gets pcapng.
//!
//! A client writes the place's name, as `[capture] pcap` has it, and a line feed. The answer is a
//! capture, or the reason why there is none; a capture begins with a line feed, and a reason does
//! not. It ends, with a whole packet, when the client has shut its side down.
//!
//! Invariant: a client that reads slowly, or no more, holds nothing up; its capture has gaps, whose
//! lengths it counts.

use crate::Lab;
use crate::record::Record;
use millpond_core::Time;
use millpond_results::{PacketWriter, Place};
use millpond_scenario::plan::{CapturePlan, Plan, Tap};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest name of a place.
const NAME_MAX: u64 = 4096;
/// Between two looks at whether a capture, or the lab, is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Time limit for a client's request, and for its last packets.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers clients at a socket of this path, which is made here, until `is_over`. The plan is the
/// lab's.
///
/// # Errors
/// If the socket cannot be made.
pub fn serve(
    lab: &Lab,
    plan: &Plan,
    path: &Path,
    is_over: &(dyn Fn() -> bool + Sync),
) -> io::Result<()> {
    // A lab that was killed leaves its socket.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        while !is_over() {
            clients.retain(|(_, answer): &(_, ScopedJoinHandle<'_, _>)| !answer.is_finished());
            match listener.accept() {
                Ok((stream, _)) => clients.extend(start(scope, stream, lab, plan, is_over)),
                Err(_) => std::thread::sleep(LOOK),
            }
        }
        let _ = std::fs::remove_file(path);
        let end = Instant::now() + PATIENCE;
        while clients.iter().any(|(_, answer)| !answer.is_finished()) && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        // Those that wait for a client which does not read.
        clients.iter().for_each(|(stream, _)| _ = stream.shutdown(Shutdown::Both));
    });
    Ok(())
}

/// Starts the answer to a client; `None` if the process has no file for it.
fn start<'s, 'e>(
    scope: &'s Scope<'s, 'e>,
    stream: UnixStream,
    lab: &'e Lab,
    plan: &'e Plan,
    is_over: &'e (dyn Fn() -> bool + Sync),
) -> Option<(UnixStream, ScopedJoinHandle<'s, io::Result<()>>)> {
    let other = stream.try_clone().ok()?;
    Some((stream, scope.spawn(move || answer(&other, lab, plan, is_over))))
}

fn answer(
    mut stream: &UnixStream,
    lab: &Lab,
    plan: &Plan,
    is_over: &(dyn Fn() -> bool + Sync),
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut name = String::new();
    BufReader::new(stream.take(NAME_MAX)).read_line(&mut name)?;
    let taps = match Tap::named(&plan.topology, name.trim()) {
        Ok(taps) => taps,
        Err(reason) => return stream.write_all(reason.as_bytes()),
    };
    let place = |tap: &Tap| Place { name: tap.name.clone(), link: tap.link.clone() };
    let places: Vec<Place> = taps.iter().map(place).collect();
    let capture = CapturePlan { taps, snaplen: u32::MAX, ..CapturePlan::default() };
    let plan = Plan { capture, horizon: Time::MAX, ..plan.clone() };
    let (began, epoch) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH));
    let records = lab.record(&plan, began);
    let out = BufWriter::with_capacity(1 << 16, stream);
    let mut out = PacketWriter::new(out, &places, u32::MAX, epoch.unwrap_or_default())?;
    out.get_mut().flush()?;
    while !is_over() && is_there(stream) {
        for record in records.next(LOOK).into_iter().flatten() {
            if let Record::Packet(packet) = record {
                out.write(packet.tap.into(), &packet)?;
            }
        }
        out.get_mut().flush()?;
    }
    Ok(())
}

/// Whether the client still wants packets.
fn is_there(client: &UnixStream) -> bool {
    let mut fds = [PollFd::new(client, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let ended = PollFlags::HUP | PollFlags::RDHUP;
    poll(&mut fds, Some(&now)).is_ok() && !fds[0].revents().intersects(ended)
}

/// A capture under way, at its reader.
pub struct Capture {
    stream: UnixStream,
    /// The bytes that have been read.
    room: Vec<u8>,
    count: usize,
}

impl Capture {
    /// Asks the lab that answers at a socket for a capture of a place.
    ///
    /// # Errors
    /// `InvalidInput` with the lab's reason if there is no such place; otherwise if the lab does
    /// not answer.
    pub fn of(path: &Path, place: &str) -> io::Result<Capture> {
        let mut stream = UnixStream::connect(path)?;
        stream.write_all(format!("{}\n", place.trim()).as_bytes())?;
        let mut room = vec![0; 1 << 16];
        let count = stream.read(&mut room)?;
        if room[..count].first().is_some_and(|first| *first != b'\n') {
            let mut reason = String::from_utf8_lossy(&room[..count]).into_owned();
            stream.read_to_string(&mut reason)?;
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        stream.set_read_timeout(Some(LOOK))?;
        Ok(Capture { stream, room, count })
    }

    /// Copies it to `out` until `is_over`, the lab's end, or the end of whoever reads `out`.
    ///
    /// # Errors
    /// If the lab cannot be read, or `out` not be written.
    pub fn copy(mut self, out: &mut dyn Write, is_over: &dyn Fn() -> bool) -> io::Result<()> {
        let mut is_last = false;
        loop {
            match out.write_all(&self.room[..self.count]).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                written => written?,
            }
            if is_over() && !is_last {
                is_last = true;
                self.stream.shutdown(Shutdown::Write)?;
            }
            self.count = match self.stream.read(&mut self.room) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            };
        }
    }
}
