//! The stream that is measured: one TCP connection from one namespace to the other, with the
//! kernel's CUBIC.
//!
//! Invariant: what is counted was read by the receiving application.

use millpond_core::Rate;
use millpond_worlds::namespace;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes that are written and read at once.
const PIECE: usize = 1 << 20;
/// How long a call may take before the end is looked at.
const PATIENCE: Duration = Duration::from_millis(200);

/// A stream that runs.
pub struct Load {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Sets SO_MAX_PACING_RATE, which rustix does not have.
fn pace(socket: &TcpStream, rate: Rate) -> io::Result<()> {
    let bytes = rate.bps() / 8;
    let size = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel reads as many bytes as the value has.
    #[allow(unsafe_code)]
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const bytes).cast(),
            size,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Load {
    /// From one namespace to an address in another. `pacing`: no faster than this.
    pub fn start(
        from: &str,
        to: &str,
        address: SocketAddr,
        pacing: Option<Rate>,
    ) -> io::Result<Load> {
        let listener = namespace::within(Some(to), || TcpListener::bind(address))??;
        let (stop, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, counts) = (stop.clone(), received.clone());
        // A socket stays in the namespace that it was made in, whatever thread uses it.
        let reader = std::thread::spawn(move || receive(&listener, &ends, &counts));
        let (from, ends) = (from.to_string(), stop.clone());
        let writer = std::thread::spawn(move || {
            namespace::enter(&from)?;
            send(address, pacing, &ends)
        });
        Ok(Load { stop, received, threads: vec![reader, writer] })
    }
    /// Bytes that the receiver has read.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
    /// Ends it; what went wrong meanwhile.
    pub fn end(self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        // All of them end, whatever the first one says.
        let results: Vec<io::Result<()>> = self
            .threads
            .into_iter()
            .map(|t| t.join().unwrap_or(Err(io::ErrorKind::Other.into())))
            .collect();
        results.into_iter().collect()
    }
}

fn is_patience(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn send(address: SocketAddr, pacing: Option<Rate>, stop: &AtomicBool) -> io::Result<()> {
    let mut socket = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    rustix::net::sockopt::set_tcp_congestion(&socket, "cubic")?;
    pacing.map_or(Ok(()), |rate| pace(&socket, rate))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let piece = vec![0x5a; PIECE];
    while !stop.load(Ordering::Relaxed) {
        match socket.write(&piece) {
            Ok(_) => {}
            Err(e) if is_patience(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn receive(listener: &TcpListener, stop: &AtomicBool, received: &AtomicU64) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut socket = loop {
        match listener.accept() {
            Ok((socket, _)) => break socket,
            Err(e) if is_patience(&e) && !stop.load(Ordering::Relaxed) => {
                std::thread::sleep(Duration::from_millis(1))
            }
            Err(e) if is_patience(&e) => return Err(io::Error::other("no connection came about")),
            Err(e) => return Err(e),
        }
    };
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut piece = vec![0; PIECE];
    while !stop.load(Ordering::Relaxed) {
        match socket.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => drop(received.fetch_add(n as u64, Ordering::Relaxed)),
            Err(e) if is_patience(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
