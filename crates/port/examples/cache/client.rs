//! A client of the cache: one connection, one request at a time.
//!
//! Invariant: an answer is that of the request, or an error.

use crate::server::PORT;
use crate::stack::Stack;
use smoltcp::iface::SocketHandle;
use smoltcp::wire::Ipv4Address;
use std::time::{Duration, Instant};

/// A connection to a server.
pub struct Client {
    /// Its host.
    pub stack: Stack,
    handle: SocketHandle,
    server: Ipv4Address,
    local: u16,
}

impl Client {
    /// Begins a connection.
    pub fn new(mut stack: Stack, server: Ipv4Address) -> Client {
        let local = 40_000 + (std::process::id() % 20_000) as u16;
        let handle = stack.connect((server, PORT), local);
        Client { stack, handle, server, local }
    }
    /// Gives the connection up, and begins another.
    pub fn again(&mut self) {
        self.stack.tcp(self.handle).abort();
        self.stack.turn();
        self.stack.sockets.remove(self.handle);
        self.local = self.local.checked_add(1).unwrap_or(40_000);
        self.handle = self.stack.connect((self.server, PORT), self.local);
    }

    /// Sends a request, and takes what comes until `is_whole`.
    fn ask(
        &mut self,
        request: &[u8],
        patience: Duration,
        is_whole: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, String> {
        let (start, mut sent, mut answer) = (Instant::now(), 0, Vec::new());
        while !is_whole(&answer) {
            let socket = self.stack.tcp(self.handle);
            if !socket.is_open() {
                return Err("the connection has ended".into());
            }
            if socket.can_send() && sent < request.len() {
                sent += socket.send_slice(&request[sent..]).map_err(|e| e.to_string())?;
            }
            if socket.can_recv() {
                let _ = socket.recv(|bytes| {
                    answer.extend(&*bytes);
                    (bytes.len(), ())
                });
                continue;
            }
            if start.elapsed() > patience {
                return Err(format!("no answer in {} s", patience.as_secs()));
            }
            self.stack.turn();
        }
        Ok(answer)
    }

    /// Stores a value.
    pub fn set(&mut self, key: &str, value: &[u8], patience: Duration) -> Result<(), String> {
        let request =
            [format!("set {key} 0 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
        match &self.ask(&request, patience, |answer| answer.ends_with(b"\r\n"))?[..] {
            b"STORED\r\n" => Ok(()),
            other => Err(String::from_utf8_lossy(other).into_owned()),
        }
    }
    /// A value, if there is one.
    pub fn get(&mut self, key: &str, patience: Duration) -> Result<Option<Vec<u8>>, String> {
        // A value may have an END of its own: its length decides.
        let parts = |answer: &[u8]| {
            let line = answer.windows(2).position(|pair| pair == b"\r\n")?;
            let text = String::from_utf8_lossy(&answer[..line]).into_owned();
            let length: Option<usize> =
                text.strip_prefix("VALUE ").and_then(|t| t.rsplit(' ').next()?.parse().ok());
            Some((line + 2, length))
        };
        let is_whole = |answer: &[u8]| match parts(answer) {
            None => false,
            Some((_, None)) => true,
            Some((at, Some(length))) => answer.len() >= at + length + 7,
        };
        let answer = self.ask(format!("get {key}\r\n").as_bytes(), patience, is_whole)?;
        match parts(&answer) {
            Some((at, Some(length))) => Ok(Some(answer[at..at + length].to_vec())),
            _ if answer == b"END\r\n" => Ok(None),
            _ => Err(String::from_utf8_lossy(&answer).into_owned()),
        }
    }
}
