//! Events of sockets: accepting, sending, receiving, acknowledgements.
//!
//! Events are edge-triggered, so each is served until the socket has no more.

use super::super::connection::{End, Side};
use super::super::table::Connection;
use super::opening::watch;
use super::*;
use rustix::event::epoll::EventFlags;
use std::io;

impl Engine<'_> {
    /// Serves an event. One of a connection that is over is passed by.
    pub(super) fn serve(&mut self, token: Token, flags: EventFlags) {
        let (key, side) = match token {
            Token::Listener(number) => return self.accept_all(number),
            Token::End(key, side) => (key, side),
        };
        if !self.connections.contains_key(&key) {
            return;
        }
        if flags.intersects(EventFlags::ERR | EventFlags::HUP)
            && let Err(error) = self.take_error(key, side, flags)
        {
            return self.fail(key, &error);
        }
        if side == Side::Client
            && flags.contains(EventFlags::OUT)
            && let Some(connection) = self.connections.get_mut(&key)
        {
            connection.is_open = true;
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP) {
            self.receive(key, side);
        }
        if flags.contains(EventFlags::OUT) {
            self.send(key, side);
        }
        self.settle(key);
    }

    /// Reads the time stamp of an acknowledgement, or the connection's error.
    fn take_error(&mut self, key: Key, side: Side, flags: EventFlags) -> io::Result<()> {
        let clock = self.clock;
        let Some(connection) = self.connections.get_mut(&key) else { return Ok(()) };
        let is_stamped = connection.sender() == Some(side);
        let Some(end) = connection.end_mut(side) else { return Ok(()) };
        // First, since taking an ICMP error off the queue clears the socket's.
        if flags.contains(EventFlags::HUP)
            && let Some(error) = socket::error(&end.socket)
        {
            return Err(error);
        }
        if let Some(stamp) = socket::last_stamp(&end.socket).filter(|_| is_stamped) {
            let is_last = end.to_send == 0 && socket::unacknowledged(&end.socket) == 0;
            end.acked = is_last.then(|| clock.at(stamp)).or(end.acked);
            return Ok(());
        }
        socket::error(&end.socket).map_or(Ok(()), Err)
    }

    /// Accepts all connections that wait at a listener.
    fn accept_all(&mut self, number: u32) {
        loop {
            let (host, listener) = &self.listeners[number as usize];
            let host = *host;
            match socket::accept(listener) {
                Ok(None) => return,
                Err(error) => {
                    self.blocked.push(number);
                    return self.ledger.counts.fail(&error, || format!("accepting at host {host}"));
                }
                Ok(Some((socket, peer))) => {
                    let Some(key) = self.peers.remove(&(*peer.ip(), peer.port(), host)) else {
                        let error = io::Error::from(io::ErrorKind::ConnectionAborted);
                        self.ledger.counts.fail(&error, || {
                            format!(
                                "host {host} accepted a connection from {peer}, which no flow has"
                            )
                        });
                        continue;
                    };
                    self.accept(key, socket);
                }
            }
        }
    }

    fn accept(&mut self, key: Key, socket: OwnedFd) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        connection.server = Some(End::new(socket, connection.opening.bytes));
        // A short flow may be there already, and then nobody needs its events.
        self.receive(key, Side::Server);
        let Some(connection) = self.connections.get(&key) else { return };
        if connection.delivered.is_some() {
            return self.settle(key);
        }
        let Some(end) = &connection.server else { return };
        if let Err(error) = watch(&self.epoll, &end.socket, Token::End(key, Side::Server)) {
            self.fail(key, &error);
        }
    }

    /// Takes away what has arrived at an end, and acts on a message that is complete.
    pub(super) fn receive(&mut self, key: Key, side: Side) {
        match self.take_received(key, side) {
            Ok(false) => {}
            Ok(true) => self.received(self.clock.now(), key, side),
            Err(error) => self.fail(key, &error),
        }
    }

    /// Returns whether a message has become complete.
    fn take_received(&mut self, key: Key, side: Side) -> io::Result<bool> {
        let Some(connection) = self.connections.get_mut(&key) else { return Ok(false) };
        let Some(end) = connection.end_mut(side) else { return Ok(false) };
        let (mut taken, was_awaited) = (0, end.to_receive > 0);
        loop {
            // One byte more than there should be, to notice it.
            let wanted = usize::try_from(end.to_receive).unwrap_or(READ_MAX).saturating_add(1);
            let wanted = wanted.min(READ_MAX);
            let Some(count) = socket::discard(&end.socket, &mut self.buffer[..wanted])? else {
                break;
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some(left) = end.to_receive.checked_sub(count as u64) else {
                let excess = "more bytes have arrived than the flow has";
                return Err(io::Error::new(io::ErrorKind::InvalidData, excess));
            };
            (end.to_receive, taken) = (left, taken + count as u64);
            if count < wanted {
                break;
            }
        }
        let is_complete = was_awaited && end.to_receive == 0;
        self.ledger.read(self.clock.now(), connection, side, taken);
        Ok(is_complete)
    }

    /// Sends what an end has to send, as far as its socket takes it.
    pub(super) fn send(&mut self, key: Key, side: Side) {
        if let Err(error) = self.hand_over(key, side) {
            self.fail(key, &error);
        }
    }

    fn hand_over(&mut self, key: Key, side: Side) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&key) else { return Ok(()) };
        let is_stamped = connection.sender() == Some(side);
        let Some(end) = connection.end_mut(side) else { return Ok(()) };
        while end.to_send > 0 {
            let bytes = usize::try_from(end.to_send).unwrap_or(WRITE_MAX).min(WRITE_MAX);
            if is_stamped && bytes as u64 == end.to_send {
                socket::stamp_acknowledgements(&end.socket)?;
            }
            if end.first_sent.is_none() {
                end.first_sent = Some(self.clock.now());
            }
            match socket::send_some(&end.socket, &self.zeros[..bytes])? {
                Some(count) => end.to_send -= count as u64,
                None => break,
            }
        }
        Ok(())
    }

    /// Ends a connection whose flow is delivered and acknowledged.
    pub(super) fn settle(&mut self, key: Key) {
        if self.connections.get(&key).is_some_and(Connection::is_over) {
            self.end(key);
        }
    }

    /// Now and then looks for flows whose acknowledgement has no time stamp, and accepts what could
    /// not be accepted.
    pub(super) fn sweep(&mut self) {
        let now = self.clock.now();
        if now.saturating_sub(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        for number in std::mem::take(&mut self.blocked) {
            self.accept_all(number);
        }
        let is_unstamped = |c: &Connection| {
            let end = c.sender().and_then(|side| c.end(side));
            c.delivered.is_some_and(|at| now.saturating_sub(at) >= SWEEP)
                && end.is_some_and(|end| socket::unacknowledged(&end.socket) == 0)
        };
        let found: Vec<Key> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_unstamped(connection))
            .map(|(key, _)| *key)
            .collect();
        for key in found {
            self.ledger.counts.unstamped += 1;
            if let Some(connection) = self.connections.get_mut(&key)
                && let Some(side) = connection.sender()
                && let Some(end) = connection.end_mut(side)
            {
                end.acked = Some(now);
            }
            self.settle(key);
        }
    }
}
