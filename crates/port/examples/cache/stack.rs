//! TCP in an application's own address space (smoltcp), over a port of shared memory.
//!
//! Two traps are met here. smoltcp asks for room to send without saying for which connection, and
//! when it is refused once it sends nothing for any of them: a paused flow would stop all. And it
//! takes a received frame only if an answer could be sent: who cannot send would receive nothing
//! either, and two such stacks could wait for each other for ever. So the device always has room:
//! frames wait here by flow, no more of a connection than its window, and go out as their flow may.
//!
//! Invariant: frames of a connection leave in order; receiving never waits for sending.

use millpond_port::{Frame, Port, Unsent};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Bytes that a connection may have under way each way.
const WINDOW: usize = 64 << 10;
const MTU: usize = 1500;
/// The longest sleep.
const NAP: Duration = Duration::from_millis(20);

/// A port as smoltcp's device.
pub struct Wire {
    port: Port,
    received: VecDeque<Vec<u8>>,
    frames: Vec<Frame>,
    /// By flow: what it could not send yet.
    staged: BTreeMap<u32, VecDeque<Vec<u8>>>,
    flows: u32,
}

/// A frame that was received.
pub struct Rx(Vec<u8>);
/// Room for one that is sent.
pub struct Tx<'a>(&'a mut Wire);

impl RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = vec![0; length];
        let result = write(&mut frame);
        let flow = flow(&frame, self.0.flows);
        self.0.staged.entry(flow).or_default().push_back(frame);
        result
    }
}

/// A connection's flow; what is no connection has flow 0.
fn flow(frame: &[u8], flows: u32) -> u32 {
    let is_tcp = frame.len() >= 38 && frame[12..14] == [8, 0] && frame[23] == 6;
    if !is_tcp || flows < 2 {
        return 0;
    }
    // Source and destination port, behind an IP header without options, and the peer's address.
    let key = frame[30..38]
        .iter()
        .fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add((*byte).into()));
    1 + key % (flows - 1)
}

impl Wire {
    fn new(port: Port) -> Wire {
        let (received, frames, staged) =
            (VecDeque::new(), vec![Frame::default(); 64], BTreeMap::new());
        Wire { flows: port.flows(), port, received, frames, staged }
    }

    /// Sends what waits, a flow after another: one that cannot send keeps no other.
    fn flush(&mut self) {
        if self.port.flows() > 0 {
            self.flows = self.port.flows();
        }
        for (flow, waiting) in &mut self.staged {
            while let Some(frame) = waiting.front() {
                match self.port.try_send(*flow, frame) {
                    Err(Unsent::WouldBlock) => break,
                    // A switch that came back with fewer flows: TCP sends again.
                    Ok(()) | Err(_) => drop(waiting.pop_front()),
                }
            }
        }
        self.staged.retain(|_, waiting| !waiting.is_empty());
    }

    fn fill(&mut self) {
        let count = self.port.recv(&mut self.frames);
        self.received.extend(self.frames[..count].iter().map(|frame| frame.bytes().to_vec()));
    }
}

impl Device for Wire {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Rx, Tx<'_>)> {
        if self.received.is_empty() {
            self.fill();
        }
        let frame = self.received.pop_front()?;
        Some((Rx(frame), Tx(self)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(self))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MTU + 14;
        capabilities
    }
}

/// A host of its own: an address, and connections.
pub struct Stack {
    wire: Wire,
    interface: Interface,
    /// The connections.
    pub sockets: SocketSet<'static>,
}

impl Stack {
    /// With an address in a network of 24 bits.
    pub fn new(port: Port, address: Ipv4Address) -> Stack {
        let [_, b, c, d] = address.octets();
        let mac = EthernetAddress([2, 0, 0, b, c, d]);
        let mut wire = Wire::new(port);
        let mut config = Config::new(mac.into());
        config.random_seed = std::process::id().into();
        let mut interface = Interface::new(config, &mut wire, Instant::now());
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address.into(), 24)).expect("there is room for one");
        });
        Stack { wire, interface, sockets: SocketSet::new(Vec::new()) }
    }

    fn socket() -> tcp::Socket<'static> {
        let buffer = || tcp::SocketBuffer::new(vec![0; WINDOW]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        socket.set_congestion_control(tcp::CongestionControl::Cubic);
        socket
    }
    /// Waits for a connection.
    pub fn listen(&mut self, port: u16) -> SocketHandle {
        let mut socket = Stack::socket();
        socket.listen(port).expect("a port that is not 0");
        self.sockets.add(socket)
    }
    /// Begins a connection.
    pub fn connect(&mut self, to: (Ipv4Address, u16), from: u16) -> SocketHandle {
        let mut socket = Stack::socket();
        socket.connect(self.interface.context(), to, from).expect("addresses that can be");
        self.sockets.add(socket)
    }
    /// A connection.
    pub fn tcp(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Does what is due, and sleeps if nothing has come for the application.
    pub fn turn(&mut self) {
        let now = Instant::now();
        let polled = self.interface.poll(now, &mut self.wire, &mut self.sockets);
        self.wire.flush();
        if polled == PollResult::SocketStateChanged {
            return;
        }
        let due = self.interface.poll_delay(now, &self.sockets).map_or(NAP, Duration::from);
        if !due.is_zero() && self.wire.received.is_empty() {
            self.wire.port.wait(due.min(NAP));
        }
    }
}
