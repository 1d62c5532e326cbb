//! Connections: ends that send and receive what they were ordered to.
//!
//! In a guest a system call that fails takes a microsecond and one that succeeds none, so nothing
//! is tried that is known to fail: a short write means that the socket is full, a short read that
//! it is empty.
//!
//! Invariant: the agent reports a complete message once, when it reads the last byte.

use crate::sys::Poller;
use crate::wire::{Order, Report};
use millpond_agent::socket;
use rustix::event::epoll::EventFlags;
use rustix::net::sockopt;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

/// The most that one write hands over, and that waits in a socket unsent.
const WRITE_MAX: usize = 1 << 18;
/// The most that one read takes away.
const READ_MAX: usize = 1 << 20;
static ZEROS: [u8; WRITE_MAX] = [0; WRITE_MAX];

struct End {
    socket: OwnedFd,
    is_server: bool,
    is_open: bool,
    to_send: u64,
    to_receive: u64,
    /// Bytes of each message that comes, and of the answer to it.
    message: (u64, u64),
    /// Whether a new message follows a complete one at once.
    calls: bool,
    /// Whether the agent reports the last byte's acknowledgement.
    is_watched: bool,
    received: u64,
    /// Whether it waits for room to send.
    is_full: bool,
}

/// A connection that is to come.
struct Awaited {
    connection: u32,
    message: (u64, u64),
    is_watched: bool,
}

pub struct Connections {
    address: [u8; 4],
    listeners: Vec<(u16, OwnedFd)>,
    awaited: BTreeMap<([u8; 4], u16, u16), Awaited>,
    ends: BTreeMap<u32, End>,
    /// Where the kernel is asked to put what it discards: nothing is written there.
    room: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub enum Token {
    Listener(u32),
    Connection(u32),
}

/// Encodes tokens for a poller: these kinds are this module's.
const LISTENER: u64 = 1 << 32;
const CONNECTION: u64 = 2 << 32;

/// The token in a poller's data, if it is of this module.
pub fn token(data: u64) -> Option<Token> {
    match data & !0xffff_ffff {
        LISTENER => Some(Token::Listener(data as u32)),
        CONNECTION => Some(Token::Connection(data as u32)),
        _ => None,
    }
}

impl End {
    fn events(&self) -> EventFlags {
        let out = if self.is_full || !self.is_open { EventFlags::OUT } else { EventFlags::empty() };
        EventFlags::IN | out
    }

    /// Sends what there is, as far as the socket takes it. Whether that changes what it waits for.
    fn send(&mut self) -> Result<bool> {
        let before = self.events();
        self.is_full = false;
        while self.to_send > 0 {
            let bytes = usize::try_from(self.to_send).unwrap_or(WRITE_MAX).min(WRITE_MAX);
            if self.is_watched && bytes as u64 == self.to_send {
                socket::stamp_acknowledgements(&self.socket)?;
            }
            let sent = socket::send_some(&self.socket, &ZEROS[..bytes])?.unwrap_or(0);
            self.to_send -= sent as u64;
            if sent < bytes {
                self.is_full = true;
                break;
            }
        }
        Ok(before != self.events())
    }

    /// Takes away what has arrived. Whether a message is complete.
    fn receive(&mut self, room: &mut [u8]) -> Result<bool> {
        let was_awaited = self.to_receive > 0;
        loop {
            // One byte more than there should be, to notice it.
            let most = (self.to_receive + 1).min(READ_MAX as u64) as usize;
            let Some(count) = socket::discard(&self.socket, &mut room[..most])? else { break };
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.to_receive =
                self.to_receive.checked_sub(count as u64).ok_or(ErrorKind::InvalidData)?;
            self.received += count as u64;
            if count < most {
                break;
            }
        }
        Ok(was_awaited && self.to_receive == 0)
    }
}

impl Connections {
    /// Of a host with this address.
    pub fn new(address: [u8; 4]) -> Connections {
        Connections {
            address,
            listeners: Vec::new(),
            awaited: BTreeMap::new(),
            ends: BTreeMap::new(),
            room: vec![0; READ_MAX],
        }
    }

    pub fn listen(&mut self, poller: &Poller, port: u16) -> Result<()> {
        let at = SocketAddrV4::new(self.address.into(), port);
        let socket = socket::listen_at(socket::tcp(None)?, at)?;
        poller.add(&socket, EventFlags::IN, LISTENER | self.listeners.len() as u64)?;
        self.listeners.push((port, socket));
        Ok(())
    }

    /// Does what an order asks of a connection.
    pub fn obey(&mut self, poller: &Poller, order: Order, report: &mut dyn FnMut(&Report)) {
        let (connection, done) = match order {
            Order::Await { connection, peer, from, port, receive, answer, is_watched } => {
                let awaited = Awaited { connection, message: (receive, answer), is_watched };
                self.awaited.insert((peer, from, port), awaited);
                return;
            }
            Order::Open { connection, .. } => (connection, self.open(poller, &order)),
            Order::Send { connection, send, receive, is_watched } => {
                let Some(end) = self.ends.get_mut(&connection) else { return };
                end.to_send += send;
                end.to_receive += receive;
                end.is_watched = is_watched;
                let is_open = end.is_open;
                let sent =
                    if is_open { Connections::send(poller, connection, end) } else { Ok(()) };
                (connection, sent)
            }
            Order::Cease { connection } => {
                self.ends.get_mut(&connection).into_iter().for_each(|end| end.calls = false);
                return;
            }
            Order::Close { connection } => {
                self.ends.remove(&connection).into_iter().for_each(|end| socket::close(end.socket));
                self.awaited.retain(|_, awaited| awaited.connection != connection);
                return;
            }
            _ => return,
        };
        if let Err(error) = done {
            self.fail(connection, &error, report);
        }
    }

    fn open(&mut self, poller: &Poller, order: &Order) -> Result<()> {
        let Order::Open { connection, from, to, port, send, receive, calls } = *order else {
            return Ok(());
        };
        let socket = socket::tcp(None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        socket::bind_to(&socket, SocketAddrV4::new(self.address.into(), from))?;
        if send > WRITE_MAX as u64 {
            socket::bound_unsent(&socket, WRITE_MAX as u32)?;
        }
        socket::begin_connecting(&socket, SocketAddrV4::new(to.into(), port))?;
        let end = End {
            socket,
            is_server: false,
            is_open: false,
            to_send: send,
            to_receive: receive,
            message: (receive, send),
            calls,
            is_watched: receive == 0,
            received: 0,
            is_full: false,
        };
        poller.add(&end.socket, end.events(), CONNECTION | u64::from(connection))?;
        self.ends.insert(connection, end);
        Ok(())
    }

    fn send(poller: &Poller, connection: u32, end: &mut End) -> Result<()> {
        if end.send()? {
            poller.change(&end.socket, end.events(), CONNECTION | u64::from(connection))?;
        }
        Ok(())
    }

    fn fail(&mut self, connection: u32, error: &Error, report: &mut dyn FnMut(&Report)) {
        self.ends.remove(&connection);
        let errno = match (error.raw_os_error(), error.kind()) {
            (Some(errno), _) => errno,
            (None, ErrorKind::UnexpectedEof) => libc::ECONNRESET,
            _ => libc::EPROTO,
        };
        report(&Report::Failed { connection, errno: errno as u32 });
    }

    pub fn serve(
        &mut self,
        poller: &Poller,
        token: Token,
        events: EventFlags,
        report: &mut dyn FnMut(&Report),
    ) {
        match token {
            Token::Listener(number) => self.accept(poller, number, report),
            Token::Connection(connection) => {
                if let Err(error) = self.serve_end(poller, connection, events, report) {
                    self.fail(connection, &error, report);
                }
            }
        }
    }

    fn accept(&mut self, poller: &Poller, number: u32, report: &mut dyn FnMut(&Report)) {
        let Some((port, listener)) = self.listeners.get(number as usize) else { return };
        let Ok(Some((socket, peer))) = socket::accept(listener) else { return };
        let Some(awaited) = self.awaited.remove(&(peer.ip().octets(), peer.port(), *port)) else {
            socket::close(socket);
            let text = format!("port {port} has a connection from {peer} that no flow has");
            return report(&Report::problem(text));
        };
        let Awaited { connection, message, is_watched } = awaited;
        let end = End {
            socket,
            is_server: true,
            is_open: true,
            to_send: 0,
            to_receive: message.0,
            message,
            calls: false,
            is_watched,
            received: 0,
            is_full: false,
        };
        let added = poller.add(&end.socket, end.events(), CONNECTION | u64::from(connection));
        self.ends.insert(connection, end);
        if let Err(error) = added {
            self.fail(connection, &error, report);
        }
    }

    fn serve_end(
        &mut self,
        poller: &Poller,
        connection: u32,
        events: EventFlags,
        report: &mut dyn FnMut(&Report),
    ) -> Result<()> {
        let Some(end) = self.ends.get_mut(&connection) else { return Ok(()) };
        if events.contains(EventFlags::ERR) {
            match socket::next_stamp(&end.socket).flatten() {
                Some(stamp) => {
                    let is_last = end.to_send == 0 && socket::unacknowledged(&end.socket) == 0;
                    if end.is_watched && is_last {
                        end.is_watched = false;
                        let info = socket::tcp_info(&end.socket);
                        let stamp = stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64;
                        report(&Report::Acknowledged { connection, stamp, info });
                    }
                }
                None => socket::error(&end.socket).map_or(Ok(()), Err)?,
            }
        }
        if events.contains(EventFlags::OUT) {
            if !end.is_open {
                socket::error(&end.socket).map_or(Ok(()), Err)?;
                end.is_open = true;
                report(&Report::Opened { connection });
                // It waits for less now, whatever it sends.
                end.send()?;
                let token = CONNECTION | u64::from(connection);
                poller.change(&end.socket, end.events(), token)?;
            } else {
                Connections::send(poller, connection, end)?;
            }
        }
        let arrived = events.intersects(EventFlags::IN | EventFlags::HUP);
        if arrived && end.receive(&mut self.room)? {
            report(&Report::Received { connection, info: socket::tcp_info(&end.socket) });
            let (receive, answer) = end.message;
            if answer > 0 && (end.is_server || end.calls) {
                end.to_receive = receive;
                end.to_send += answer;
                Connections::send(poller, connection, end)?;
            }
        }
        Ok(())
    }

    pub fn sample(&self, which: &[u32], report: &mut dyn FnMut(&Report)) {
        let mut sampled = |connection: u32, end: &End| {
            report(&Report::Sampled {
                connection,
                is_server: end.is_server,
                received: end.received,
                unsent: end.to_send + u64::from(socket::unacknowledged(&end.socket)),
                info: socket::tcp_info(&end.socket),
            });
        };
        if which.is_empty() {
            self.ends.iter().for_each(|(connection, end)| sampled(*connection, end));
        }
        for connection in which {
            if let Some(end) = self.ends.get(connection) {
                sampled(*connection, end);
            }
        }
        report(&Report::SampleEnds);
    }
}
