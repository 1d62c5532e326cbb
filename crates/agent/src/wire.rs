//! Orders of the world and reports of agents, as bytes.
//!
//! A message is a kind, the length of its body (16 bits) and the body; numbers are little-endian.
//! A frame holds whole messages, one after another, and may end with zeros (kind 0), since Ethernet
//! pads short frames.
//!
//! Invariant: [`Order::read`] and [`Report::read`] give back what was written, and refuse all else.

/// A host's interface to the scenario's network.
pub const LINK: &str = "eth0";
/// Folders that a host has of its own, in the place of the machine's.
pub const OWN_FOLDERS: [&str; 3] = ["/run", "/tmp", "/var/log"];
/// Where programs are looked for.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The type of frames between world and agents: the first for local experiments (IEEE 802).
pub const ETHERTYPE: u16 = 0x88b5;
/// The most bytes of messages in a frame: Ethernet's payload.
pub const FRAME_MAX: usize = 1500;
/// Bytes of a message beside its body.
const HEAD: usize = 3;
/// The most bytes of a list or a text in a message.
pub const BODY_MAX: usize = FRAME_MAX - 64;
/// Bytes of `struct tcp_info` that reports have.
pub const INFO: usize = 248;

/// An order for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Write a text into a file, such as one of `/proc/sys`.
    Write {
        /// The file.
        path: String,
        /// The text.
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
        /// The initial window, in segments.
        initial_window: u32,
        /// The least retransmission timeout, in milliseconds.
        rto_min: u32,
        /// Acknowledge each segment at once.
        quickack: bool,
        /// The largest segment that the host announces.
        mss: u32,
        /// The congestion control.
        congestion: String,
    },
    /// Listen at a port.
    Listen {
        /// Which.
        port: u16,
    },
    /// Report [`Report::Ready`] when all before is done.
    Prepare,
    /// Connect, then send, then receive.
    Open {
        /// The number of the connection, which both ends have.
        connection: u32,
        /// The port of this end.
        from: u16,
        /// The other end's address.
        to: [u8; 4],
        /// And port.
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
        /// The number of the connection.
        connection: u32,
        /// The other end's address.
        peer: [u8; 4],
        /// And port.
        from: u16,
        /// The port of this end.
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
        /// The number of the connection.
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
        /// The number of the connection.
        connection: u32,
    },
    /// Forget a connection, without a packet.
    Close {
        /// The number of the connection.
        connection: u32,
    },
    /// Report [`Report::Sampled`] of connections; none: of all that have one.
    Sample(Vec<u32>),
    /// Report [`Report::Counters`].
    Count,
    /// Run a program of the machine's.
    Run {
        /// Its number.
        program: u16,
        /// For the shell.
        command: String,
    },
    /// Send a program's processes a signal.
    Signal {
        /// Its number.
        program: u16,
        /// Which.
        signal: u8,
    },
}

/// A report of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// It takes orders.
    Hello,
    /// All that was ordered before [`Order::Prepare`] is done.
    Ready,
    /// Something cannot be done.
    Problem(String),
    /// A connection is open at the end that has connected.
    Opened {
        /// Which.
        connection: u32,
    },
    /// All bytes that an end was to receive are there.
    Received {
        /// Which connection's.
        connection: u32,
        /// `struct tcp_info` of that end.
        info: Vec<u8>,
    },
    /// The last byte that an end had to send is acknowledged.
    Acknowledged {
        /// Which connection's.
        connection: u32,
        /// When, by the kernel's clock of the time of day, in nanoseconds.
        stamp: u64,
        /// `struct tcp_info` of that end.
        info: Vec<u8>,
    },
    /// A connection is no more.
    Failed {
        /// Which.
        connection: u32,
        /// The kernel's number of the error.
        errno: u32,
    },
    /// An end of a connection.
    Sampled {
        /// Which.
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
    /// A program has written something.
    Output {
        /// Its number.
        program: u16,
        /// 1: standard output; 2: standard error.
        stream: u8,
        /// What.
        bytes: Vec<u8>,
    },
    /// A program has ended.
    Exited {
        /// Its number.
        program: u16,
        /// As `wait` has it.
        status: u32,
    },
}

/// The error of bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads a body.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }
    fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }
    fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }
    fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        let length = usize::from(self.u16()?);
        // Nobody writes more.
        if length > BODY_MAX {
            return Err(Malformed);
        }
        self.take(length).map(<[u8]>::to_vec)
    }
    fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }
    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u16()?;
        (0..count).map(|_| item(self)).collect()
    }
}

/// Writes a body.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn raw(mut self, bytes: &[u8]) -> Writer {
        self.0.extend_from_slice(bytes);
        self
    }
    fn u8(self, value: u8) -> Writer {
        self.raw(&[value])
    }
    fn u16(self, value: u16) -> Writer {
        self.raw(&value.to_le_bytes())
    }
    fn u32(self, value: u32) -> Writer {
        self.raw(&value.to_le_bytes())
    }
    fn u64(self, value: u64) -> Writer {
        self.raw(&value.to_le_bytes())
    }
    /// A text or list beyond [`BODY_MAX`] is cut: its writer splits what may be so long.
    fn bytes(self, bytes: &[u8]) -> Writer {
        let bytes = &bytes[..bytes.len().min(BODY_MAX)];
        self.u16(bytes.len() as u16).raw(bytes)
    }
    fn list<T>(self, items: &[T], item: impl Fn(Writer, &T) -> Writer) -> Writer {
        items.iter().fold(self.u16(items.len() as u16), item)
    }
    fn end(self, kind: u8, into: &mut Vec<u8>) {
        into.push(kind);
        into.extend_from_slice(&(self.0.len() as u16).to_le_bytes());
        into.extend_from_slice(&self.0);
    }
}

/// The next message of a frame: kind and body.
fn next<'a>(bytes: &mut &'a [u8]) -> Result<Option<(u8, Reader<'a>)>, Malformed> {
    let Some(kind) = bytes.first().copied().filter(|kind| *kind != 0) else {
        return if bytes.iter().all(|byte| *byte == 0) { Ok(None) } else { Err(Malformed) };
    };
    let mut reader = Reader(&bytes[1..]);
    let length = usize::from(reader.u16()?);
    let body = reader.take(length)?;
    *bytes = reader.0;
    Ok(Some((kind, Reader(body))))
}

/// The message, if nothing of the body is left.
fn whole<T>(message: T, reader: &Reader<'_>) -> Result<T, Malformed> {
    if reader.0.is_empty() { Ok(message) } else { Err(Malformed) }
}

/// Appends a message to the last of some frames, or to a new one.
fn pack(message: &[u8], frames: &mut Vec<Vec<u8>>) {
    match frames.last_mut().filter(|frame| frame.len() + message.len() <= FRAME_MAX) {
        Some(frame) => frame.extend_from_slice(message),
        None => frames.push(message.to_vec()),
    }
}

impl Order {
    /// Appends the order to frames.
    pub fn pack(&self, frames: &mut Vec<Vec<u8>>) {
        let mut bytes = Vec::with_capacity(HEAD + 64);
        self.write(&mut bytes);
        pack(&bytes, frames);
    }

    /// Appends the order's bytes.
    pub fn write(&self, into: &mut Vec<u8>) {
        let w = Writer::default();
        match self {
            Order::Write { path, value } => {
                w.bytes(path.as_bytes()).bytes(value.as_bytes()).end(1, into);
            }
            Order::Interface { address, prefix, mtu } => {
                w.raw(address).u8(*prefix).u16(*mtu).end(2, into);
            }
            Order::Neighbours(list) => {
                w.list(list, |w, (address, mac)| w.raw(address).raw(mac)).end(3, into);
            }
            Order::Route { initial_window, rto_min, quickack, mss, congestion } => w
                .u32(*initial_window)
                .u32(*rto_min)
                .u8((*quickack).into())
                .u32(*mss)
                .bytes(congestion.as_bytes())
                .end(4, into),
            Order::Listen { port } => w.u16(*port).end(5, into),
            Order::Prepare => w.end(6, into),
            Order::Open { connection, from, to, port, send, receive, calls } => w
                .u32(*connection)
                .u16(*from)
                .raw(to)
                .u16(*port)
                .u64(*send)
                .u64(*receive)
                .u8((*calls).into())
                .end(7, into),
            Order::Await { connection, peer, from, port, receive, answer, is_watched } => w
                .u32(*connection)
                .raw(peer)
                .u16(*from)
                .u16(*port)
                .u64(*receive)
                .u64(*answer)
                .u8((*is_watched).into())
                .end(8, into),
            Order::Send { connection, send, receive, is_watched } => {
                w.u32(*connection).u64(*send).u64(*receive).u8((*is_watched).into()).end(9, into)
            }
            Order::Close { connection } => w.u32(*connection).end(10, into),
            Order::Sample(list) => w.list(list, |w, it| w.u32(*it)).end(11, into),
            Order::Count => w.end(12, into),
            Order::Run { program, command } => {
                w.u16(*program).bytes(command.as_bytes()).end(13, into);
            }
            Order::Signal { program, signal } => w.u16(*program).u8(*signal).end(14, into),
            Order::Cease { connection } => w.u32(*connection).end(15, into),
        }
    }

    /// Takes the next order off a frame; `None`: there is none.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no order.
    pub fn read(bytes: &mut &[u8]) -> Result<Option<Order>, Malformed> {
        let Some((kind, mut r)) = next(bytes)? else { return Ok(None) };
        let order = match kind {
            1 => Order::Write { path: r.text()?, value: r.text()? },
            2 => Order::Interface { address: r.array()?, prefix: r.u8()?, mtu: r.u16()? },
            3 => Order::Neighbours(r.list(|r| Ok((r.array()?, r.array()?)))?),
            4 => Order::Route {
                initial_window: r.u32()?,
                rto_min: r.u32()?,
                quickack: r.bool()?,
                mss: r.u32()?,
                congestion: r.text()?,
            },
            5 => Order::Listen { port: r.u16()? },
            6 => Order::Prepare,
            7 => Order::Open {
                connection: r.u32()?,
                from: r.u16()?,
                to: r.array()?,
                port: r.u16()?,
                send: r.u64()?,
                receive: r.u64()?,
                calls: r.bool()?,
            },
            8 => Order::Await {
                connection: r.u32()?,
                peer: r.array()?,
                from: r.u16()?,
                port: r.u16()?,
                receive: r.u64()?,
                answer: r.u64()?,
                is_watched: r.bool()?,
            },
            9 => Order::Send {
                connection: r.u32()?,
                send: r.u64()?,
                receive: r.u64()?,
                is_watched: r.bool()?,
            },
            10 => Order::Close { connection: r.u32()? },
            11 => Order::Sample(r.list(Reader::u32)?),
            12 => Order::Count,
            13 => Order::Run { program: r.u16()?, command: r.text()? },
            14 => Order::Signal { program: r.u16()?, signal: r.u8()? },
            15 => Order::Cease { connection: r.u32()? },
            _ => return Err(Malformed),
        };
        whole(Some(order), &r)
    }
}

impl Report {
    /// Appends the report's bytes.
    pub fn write(&self, into: &mut Vec<u8>) {
        let w = Writer::default();
        match self {
            Report::Hello => w.end(1, into),
            Report::Ready => w.end(2, into),
            Report::Problem(text) => w.bytes(text.as_bytes()).end(3, into),
            Report::Opened { connection } => w.u32(*connection).end(4, into),
            Report::Received { connection, info } => w.u32(*connection).bytes(info).end(5, into),
            Report::Acknowledged { connection, stamp, info } => {
                w.u32(*connection).u64(*stamp).bytes(info).end(6, into);
            }
            Report::Failed { connection, errno } => w.u32(*connection).u32(*errno).end(7, into),
            Report::Sampled { connection, is_server, received, unsent, info } => w
                .u32(*connection)
                .u8((*is_server).into())
                .u64(*received)
                .u64(*unsent)
                .bytes(info)
                .end(8, into),
            Report::SampleEnds => w.end(9, into),
            Report::Counters(list) => {
                w.list(list, |w, (name, value)| w.bytes(name.as_bytes()).u64(*value)).end(10, into);
            }
            Report::Output { program, stream, bytes } => {
                w.u16(*program).u8(*stream).bytes(bytes).end(11, into);
            }
            Report::Exited { program, status } => w.u16(*program).u32(*status).end(12, into),
        }
    }

    /// Takes the next report off a frame; `None`: there is none.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no report.
    pub fn read(bytes: &mut &[u8]) -> Result<Option<Report>, Malformed> {
        let Some((kind, mut r)) = next(bytes)? else { return Ok(None) };
        let report = match kind {
            1 => Report::Hello,
            2 => Report::Ready,
            3 => Report::Problem(r.text()?),
            4 => Report::Opened { connection: r.u32()? },
            5 => Report::Received { connection: r.u32()?, info: r.bytes()? },
            6 => Report::Acknowledged { connection: r.u32()?, stamp: r.u64()?, info: r.bytes()? },
            7 => Report::Failed { connection: r.u32()?, errno: r.u32()? },
            8 => Report::Sampled {
                connection: r.u32()?,
                is_server: r.bool()?,
                received: r.u64()?,
                unsent: r.u64()?,
                info: r.bytes()?,
            },
            9 => Report::SampleEnds,
            10 => Report::Counters(r.list(|r| Ok((r.text()?, r.u64()?)))?),
            11 => Report::Output { program: r.u16()?, stream: r.u8()?, bytes: r.bytes()? },
            12 => Report::Exited { program: r.u16()?, status: r.u32()? },
            _ => return Err(Malformed),
        };
        whole(Some(report), &r)
    }
}

#[cfg(test)]
mod tests;
