//! Orders of the world and reports of agents, as bytes.
//!
//! A message is its length (16 bits, little-endian) and a body in postcard's encoding. A frame
//! holds whole messages, one after another, and may end with zeros, since Ethernet pads short
//! frames.
//!
//! Invariant: [`read`] returns the messages that [`bytes`] has written, and rejects other bytes.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A host's interface to the scenario's network.
pub const LINK: &str = "eth0";
/// Folders that a host has of its own, in the place of the machine's.
pub const OWN_FOLDERS: [&str; 3] = ["/run", "/tmp", "/var/log"];
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The type of frames between world and agents: the first for local experiments (IEEE 802).
pub const ETHERTYPE: u16 = 0x88b5;
/// The most bytes of messages in a frame: Ethernet's payload.
pub const FRAME_MAX: usize = 1500;
/// The most bytes of a list or a text in a message.
pub const BODY_MAX: usize = FRAME_MAX - 64;
/// Bytes of `struct tcp_info` that reports have.
pub const INFO: usize = 248;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Write a text into a file, such as one of `/proc/sys`.
    Write {
        path: String,
        value: String,
    },
    /// Give the link's interface an address, and bring it up.
    Interface {
        /// IPv4.
        address: [u8; 4],
        /// Bits of the subnet.
        prefix: u8,
        /// The largest packet.
        mtu: u16,
    },
    /// Hosts of the subnet, each with its hardware address.
    Neighbours(Vec<([u8; 4], [u8; 6])>),
    /// The attributes of the route to the subnet; zero and empty: the kernel's own.
    Route {
        initial_window: u32,
        /// The least retransmission timeout, in milliseconds.
        rto_min: u32,
        quickack: bool,
        /// The largest segment that the host announces.
        mss: u32,
        congestion: String,
    },
    Listen {
        port: u16,
    },
    /// Report [`Report::Ready`] when all before is done.
    Prepare,
    Open {
        /// The number of the connection, which both ends have.
        connection: u32,
        from: u16,
        to: [u8; 4],
        port: u16,
        /// Bytes to send.
        send: u64,
        /// Bytes that come back; zero: the connection's purpose is to send, and the agent reports
        /// when the last byte was acknowledged.
        receive: u64,
        /// Whether all of it begins anew when the last byte is there, until [`Order::Close`].
        calls: bool,
    },
    /// Accept a connection that is to come, receive, and answer at once.
    Await {
        connection: u32,
        peer: [u8; 4],
        from: u16,
        port: u16,
        /// Bytes to receive.
        receive: u64,
        /// Bytes to answer with, each time that `receive` are complete; zero: the world orders it.
        answer: u64,
        /// Whether a last answer is to be acknowledged and reported.
        is_watched: bool,
    },
    /// Send more bytes, and then receive.
    Send {
        connection: u32,
        /// Bytes to send.
        send: u64,
        /// Bytes that come back.
        receive: u64,
        /// Whether the last byte's acknowledgement is to be reported.
        is_watched: bool,
    },
    /// Begin no further call, if the present one is incomplete.
    Cease {
        connection: u32,
    },
    /// Forget a connection, without a packet.
    Close {
        connection: u32,
    },
    /// Report [`Report::Sampled`] of connections; none: of all that have one.
    Sample(Vec<u32>),
    /// Report [`Report::Counters`].
    Count,
    /// Run a program of the machine's.
    Run {
        program: u16,
        command: String,
    },
    /// Send a program's processes a signal.
    Signal {
        program: u16,
        signal: u8,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    Hello,
    /// All that was ordered before [`Order::Prepare`] is done.
    Ready,
    Problem(String),
    /// A connection is open at the end that has connected.
    Opened {
        connection: u32,
    },
    /// All bytes that an end was to receive are there.
    Received {
        connection: u32,
        /// `struct tcp_info` of that end.
        info: Vec<u8>,
    },
    /// The last byte that an end had to send is acknowledged.
    Acknowledged {
        connection: u32,
        /// When, by the kernel's clock of the time of day, in nanoseconds.
        stamp: u64,
        /// `struct tcp_info` of that end.
        info: Vec<u8>,
    },
    Failed {
        connection: u32,
        /// The kernel's number of the error.
        errno: u32,
    },
    Sampled {
        connection: u32,
        /// Whether it has accepted the connection.
        is_server: bool,
        /// Bytes that it has received so far.
        received: u64,
        /// Bytes that it has still to send, or that are not acknowledged.
        unsent: u64,
        /// `struct tcp_info` of that end.
        info: Vec<u8>,
    },
    /// The last report of a [`Order::Sample`].
    SampleEnds,
    /// Counters of the kernel's TCP, by name.
    Counters(Vec<(String, u64)>),
    Output {
        program: u16,
        /// 1: standard output; 2: standard error.
        stream: u8,
        bytes: Vec<u8>,
    },
    Exited {
        program: u16,
        /// As `wait` has it.
        status: u32,
    },
}

/// The error of bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl Report {
    /// A problem, cut to what a frame holds.
    pub fn problem(mut text: String) -> Report {
        text.truncate(text.floor_char_boundary(BODY_MAX));
        Report::Problem(text)
    }
}

/// A message's bytes.
pub fn bytes(message: &impl Serialize) -> Vec<u8> {
    let body = postcard::to_allocvec(message).expect("messages are plain fields");
    [&(body.len() as u16).to_le_bytes()[..], &body].concat()
}

/// Appends a message to the last of some frames, or to a new one.
pub fn pack(message: &impl Serialize, frames: &mut Vec<Vec<u8>>) {
    let bytes = bytes(message);
    match frames.last_mut().filter(|frame| frame.len() + bytes.len() <= FRAME_MAX) {
        Some(frame) => frame.extend_from_slice(&bytes),
        None => frames.push(bytes),
    }
}

/// Takes the next message off a frame; `None` at its end, where only padding is left.
///
/// # Errors
/// [`Malformed`] if the bytes are no message.
pub fn read<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<Option<T>, Malformed> {
    let Some((length, rest)) = bytes.split_first_chunk().filter(|(length, _)| **length != [0; 2])
    else {
        return if bytes.iter().all(|byte| *byte == 0) { Ok(None) } else { Err(Malformed) };
    };
    let length = usize::from(u16::from_le_bytes(*length));
    let (body, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
    let (message, unread) = postcard::take_from_bytes(body).map_err(|_| Malformed)?;
    *bytes = rest;
    if unread.is_empty() { Ok(Some(message)) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests;
