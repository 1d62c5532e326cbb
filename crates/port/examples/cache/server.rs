//! A small cache that speaks a part of memcached's text protocol: `get`, `set`, `delete`, `quit`.
//!
//! Invariant: a request is answered once it is whole, and in the order of its connection.

use crate::stack::Stack;
use smoltcp::iface::SocketHandle;
use std::collections::BTreeMap;

/// memcached's port.
pub const PORT: u16 = 11_211;
/// Connections at a time.
const CONNECTIONS: usize = 16;
/// The longest value, and the longest line.
const VALUE_MAX: usize = 1 << 20;
const LINE_MAX: usize = 512;

/// A value, with the flags that it was stored with.
type Stored = (String, Vec<u8>);

/// One connection: what came and is not whole, what is to be sent.
struct Client {
    handle: SocketHandle,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// A server on a stack.
pub struct Server {
    values: BTreeMap<String, Stored>,
    clients: Vec<Client>,
}

/// A request.
#[derive(Debug, PartialEq)]
enum Request {
    /// It took so many bytes, and has this answer.
    Done(usize, Vec<u8>),
    /// There is more to come.
    Partial,
    /// The connection is to end.
    Quit,
}

fn answer(values: &mut BTreeMap<String, Stored>, input: &[u8]) -> Request {
    let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") else {
        return if input.len() > LINE_MAX { Request::Quit } else { Request::Partial };
    };
    let line = String::from_utf8_lossy(&input[..end]).into_owned();
    let (words, rest) = (line.split(' ').collect::<Vec<_>>(), end + 2);
    match words[..] {
        ["get", key] => {
            let mut out = Vec::new();
            if let Some((flags, value)) = values.get(key) {
                out.extend(format!("VALUE {key} {flags} {}\r\n", value.len()).bytes());
                out.extend(value);
                out.extend(b"\r\n");
            }
            out.extend(b"END\r\n");
            Request::Done(rest, out)
        }
        ["set", key, flags, _, length] => {
            match length.parse::<usize>().ok().filter(|n| *n <= VALUE_MAX) {
                None => Request::Quit,
                Some(length) if input.len() < rest + length + 2 => Request::Partial,
                Some(length) => {
                    values.insert(key.into(), (flags.into(), input[rest..rest + length].to_vec()));
                    Request::Done(rest + length + 2, b"STORED\r\n".to_vec())
                }
            }
        }
        ["delete", key] => {
            let said: &[u8] =
                if values.remove(key).is_some() { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" };
            Request::Done(rest, said.to_vec())
        }
        ["quit"] => Request::Quit,
        _ => Request::Done(rest, b"ERROR\r\n".to_vec()),
    }
}

impl Server {
    /// Listens.
    pub fn new(stack: &mut Stack) -> Server {
        let client =
            |_| Client { handle: stack.listen(PORT), input: Vec::new(), output: Vec::new() };
        Server { values: BTreeMap::new(), clients: (0..CONNECTIONS).map(client).collect() }
    }

    /// Answers what has come.
    pub fn turn(&mut self, stack: &mut Stack) {
        for Client { handle, input, output } in &mut self.clients {
            let socket = stack.tcp(*handle);
            while socket.can_recv() && output.is_empty() {
                let _ = socket.recv(|bytes| {
                    input.extend(&*bytes);
                    (bytes.len(), ())
                });
            }
            while output.is_empty() && !input.is_empty() {
                match answer(&mut self.values, input) {
                    Request::Done(taken, said) => {
                        input.drain(..taken);
                        output.extend(said);
                    }
                    Request::Partial => break,
                    Request::Quit => {
                        input.clear();
                        socket.close();
                    }
                }
            }
            if socket.can_send() && !output.is_empty() {
                let sent = socket.send_slice(output).unwrap_or(0);
                output.drain(..sent);
            }
            // The client has gone: the next one may come.
            if !socket.may_recv()
                && socket.is_open()
                && socket.state() != smoltcp::socket::tcp::State::Listen
            {
                let is_opening = matches!(socket.state(), smoltcp::socket::tcp::State::SynReceived);
                if !is_opening && output.is_empty() {
                    socket.close();
                }
            }
            if !socket.is_open() {
                (*input, *output) = (Vec::new(), Vec::new());
                let _ = socket.listen(PORT);
            }
        }
    }
}
