//! The receiving end: reads requests, answers each with one byte, and counts what arrived while the
//! client measures, by flow and millisecond. One thread and one epoll, so that it costs little
//! beside what is measured. Input that is no greeting closes its connection and nothing else. Where
//! there is no room for a connection, it waits until others have ended.

use crate::protocol::{BEGIN, END, GREETING_BYTES, Greeting, REPLY};
use crate::samples::Arrivals;
use crate::socket::SocketError;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long it waits, with all that it serves, when there is no room for a connection.
const PAUSE: Duration = Duration::from_millis(1);

/// Why the server ends before it should.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A socket that does not open.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Polling or accepting failed.
    #[error("server: {0}")]
    Io(#[from] io::Error),
}

enum Role {
    Unknown { greeting: [u8; GREETING_BYTES], got: usize },
    Load { flow: u16, size: u64, missing: u64 },
    Control,
}

struct Connection {
    stream: TcpStream,
    role: Role,
}

/// The measurement at present.
#[derive(Default)]
struct Window {
    begun: Option<Instant>,
    flows: BTreeMap<u16, Arrivals>,
}

/// Serves until the process ends, or, with `once`, until a control connection has ended.
pub fn serve(listener: &TcpListener, once: bool) -> Result<(), ServerError> {
    listener.set_nonblocking(true)?;
    let waits = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from)?;
    let watch = |fd: &dyn AsFd, key: u64| {
        epoll::add(&waits, fd.as_fd(), EventData::new_u64(key), EventFlags::IN)
    };
    watch(listener, u64::MAX).map_err(io::Error::from)?;
    let mut connections: BTreeMap<u64, Connection> = BTreeMap::new();
    let mut next = 0;
    let mut window = Window::default();
    let mut buffer = vec![0; 1 << 18];
    let mut room = [const { MaybeUninit::uninit() }; 64];
    loop {
        let ready = match epoll::wait(&waits, &mut room, None) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(io::Error::from(error).into()),
        };
        for event in ready {
            let key = event.data.u64();
            if key == u64::MAX {
                while let Some(stream) = accept(listener)? {
                    watch(&stream, next).map_err(io::Error::from)?;
                    let role = Role::Unknown { greeting: [0; GREETING_BYTES], got: 0 };
                    connections.insert(next, Connection { stream, role });
                    next += 1;
                }
                continue;
            }
            let Some(connection) = connections.get_mut(&key) else { continue };
            if !serve_connection(connection, &mut window, &mut buffer) {
                let control = matches!(connection.role, Role::Control);
                connections.remove(&key);
                if control && once {
                    return Ok(());
                }
            }
        }
    }
}

/// The next connection; `None`: there is none, or no room for it now.
fn accept(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            Ok(Some(stream))
        }
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                std::thread::sleep(PAUSE);
                Ok(None)
            }
            _ => Err(error),
        },
    }
}

/// Reads what is there, once; false when the connection is over.
fn serve_connection(connection: &mut Connection, window: &mut Window, buffer: &mut [u8]) -> bool {
    let Connection { stream, role } = connection;
    // A greeting or a control message is not read beyond its end.
    let room = match role {
        Role::Unknown { got, .. } => GREETING_BYTES - *got,
        Role::Control => 1,
        Role::Load { .. } => buffer.len(),
    };
    let got = match stream.read(&mut buffer[..room]) {
        Ok(0) => return false,
        Ok(got) => got,
        Err(error) => {
            return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
        }
    };
    match role {
        Role::Unknown { greeting, got: before } => {
            greeting[*before..*before + got].copy_from_slice(&buffer[..got]);
            *before += got;
            if *before == GREETING_BYTES {
                *role = match Greeting::decode(greeting) {
                    Some(Greeting::Load { flow, size }) => Role::Load { flow, size, missing: size },
                    Some(Greeting::Control) => Role::Control,
                    None => return false,
                };
            }
            true
        }
        Role::Load { flow, size, missing } => {
            if let Some(begun) = window.begun {
                window
                    .flows
                    .entry(*flow)
                    .or_default()
                    .add(begun.elapsed().as_millis() as u64, got as u64);
            }
            let mut got = got as u64;
            while got >= *missing {
                got -= *missing;
                *missing = *size;
                // One byte for each request that was outstanding: there is room, or the client is
                // gone.
                if stream.write(&[REPLY]).is_err() {
                    return false;
                }
            }
            *missing -= got;
            true
        }
        Role::Control => control(stream, buffer[0], window).is_ok(),
    }
}

fn control(stream: &mut TcpStream, word: u8, window: &mut Window) -> io::Result<()> {
    match word {
        BEGIN => {
            *window = Window { begun: Some(Instant::now()), flows: BTreeMap::new() };
            Ok(())
        }
        END => {
            let window = std::mem::take(window);
            let report = report(&window).to_string();
            stream.set_nonblocking(false)?;
            stream.write_all(&(report.len() as u32).to_le_bytes())?;
            stream.write_all(report.as_bytes())
        }
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

fn report(window: &Window) -> serde_json::Value {
    let elapsed = window.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
    let window_ms = (elapsed * 1e3) as u64;
    let mut all = Arrivals::default();
    window.flows.values().for_each(|flow| all.merge(flow));
    json!({
        "seconds": elapsed,
        "bytes": all.total(),
        "max_second_bytes": all.max_second(window_ms),
        "flows": window.flows.iter().map(|(flow, arrivals)| json!({
            "flow": flow,
            "bytes": arrivals.total(),
            "max_second_bytes": arrivals.max_second(window_ms),
        })).collect::<Vec<_>>(),
    })
}
