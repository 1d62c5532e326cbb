//! A path to another switch: a UDP socket between two addresses, whose content is encapsulated
//! frames.
//!
//! The kernel routes, finds neighbours, and adds outer headers with their checksum. A super-segment
//! leaves as one call: its packets, each behind its encapsulation, are datagrams of one size, which
//! UDP's own segmentation offload takes together (UDP_SEGMENT); the same the other way (UDP_GRO).
//! The socket is connected, so datagrams from elsewhere do not come in. Whoever can forge the
//! peer's address can forge frames, unless the two switches share a key (`crate::tunnel`).
//!
//! Anybody can forge what routers report (ICMP). The socket takes no size from such a report, and a
//! call that failed for one is made again. A refusal is the host's own: its routing table has no
//! way, or the datagram is longer than the MTU of the interface.
//!
//! Invariant: read and write never block; no datagram is fragmented; no report is a refusal.

use super::device::{ioctl, request};
use super::route::Route;
use super::{Error, Refusal, option};
use crate::dataplane::buffers::Buffers;
use crate::dataplane::packet::Packet;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// The most bytes of one call: a UDP datagram's largest content, with room to spare.
pub const BYTES_MAX: usize = 65_000;
/// The longest IP packet.
const LENGTH_MAX: usize = 65_535;
/// The most datagrams of one call (UDP_MAX_SEGMENTS of older kernels).
const DATAGRAMS_MAX: usize = 64;
/// Bytes that may wait in the socket, either way.
const WAITING: usize = 8 << 20;
/// The control message with the length of each datagram of a call.
const SEGMENT: option::Name = (libc::SOL_UDP, libc::UDP_SEGMENT);
/// How often a call is made again that fails for a report.
const TRIES: u64 = 4;

#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    /// `None`: the kernel has no socket for routes.
    route: Option<Route>,
    reports: Cell<u64>,
}

/// Asks for room, beyond the host's limit where the capability allows it, else up to it.
fn set_room(socket: &UdpSocket) {
    let received = sockopt::set_socket_recv_buffer_size_force(socket, WAITING);
    let _ = received.or_else(|_| sockopt::set_socket_recv_buffer_size(socket, WAITING));
    let sent = sockopt::set_socket_send_buffer_size_force(socket, WAITING);
    let _ = sent.or_else(|_| sockopt::set_socket_send_buffer_size(socket, WAITING));
}

/// Whether an error may be a report that somebody has sent (`icmp_err_convert` in the kernel's
/// net/ipv4/icmp.c, `icmpv6_err_convert` in net/ipv6/icmp.c).
fn may_be_report(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::NOPROTOOPT
            | Errno::OPNOTSUPP
            | Errno::PROTO
            | Errno::ACCESS
            | Errno::MSGSIZE
    )
}

/// How many datagrams one call takes, of these lengths, and how long each of them is: they are of
/// one length, but for the last, which may be shorter.
fn run(mut lengths: impl Iterator<Item = usize>) -> (usize, usize) {
    let size = lengths.next().unwrap_or(0);
    let (mut count, mut last) = (1, size);
    for next in lengths {
        if last != size || next > size || (count + 1) * size > BYTES_MAX || count == DATAGRAMS_MAX {
            break;
        }
        (count, last) = (count + 1, next);
    }
    (count, size)
}

impl Udp {
    /// Opens a path's socket between these addresses, in the calling thread's namespace.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process has the local address, [`Error::Kernel`] if there is no
    /// route or the kernel refuses an option.
    pub fn open(local: SocketAddr, remote: SocketAddr) -> Result<Udp, Error> {
        let failed = |what: String| move |e: io::Error| Error::kernel(what, e);
        let socket = UdpSocket::bind(local).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => Error::Busy { device: local.to_string() },
            _ => failed(format!("a path's socket at {local}"))(e),
        })?;
        socket.connect(remote).map_err(failed(format!("a path to {remote}")))?;
        socket.set_nonblocking(true).map_err(failed("a path's socket".into()))?;
        // The MTU is the interface's, whatever routers report.
        match local.is_ipv4() {
            true => sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE),
            false => sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE),
        }
        .map_err(|e| failed("no fragments".into())(e.into()))?;
        option::set(&socket, (libc::SOL_UDP, libc::UDP_GRO), &1i32)
            .map_err(failed("UDP_GRO".into()))?;
        set_room(&socket);
        let local = socket.local_addr().map_err(failed("a path's own address".into()))?;
        Ok(Udp { socket, route: Route::open(local, remote).ok(), reports: Cell::new(0) })
    }

    /// Over any socket that keeps messages apart.
    #[cfg(test)]
    pub(crate) fn over(socket: std::os::fd::OwnedFd) -> Udp {
        Udp { socket: socket.into(), route: None, reports: Cell::new(0) }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The longest datagram that the interface takes by which it leaves: its MTU without the outer
    /// headers. `None`: the kernel has no answer.
    pub fn room(&self) -> Option<usize> {
        let headers = if self.socket.local_addr().ok()?.is_ipv4() { 20 + 8 } else { 40 + 8 };
        let mut asked = request("lo").ok()?;
        asked.ifr_ifru.ifru_ifindex = self.route.as_ref()?.interface().ok()?;
        ioctl(&self.socket, libc::SIOCGIFNAME, &mut asked).ok()?;
        ioctl(&self.socket, libc::SIOCGIFMTU, &mut asked).ok()?;
        // SAFETY: the kernel has written this field of the union.
        #[allow(unsafe_code)]
        let mtu = unsafe { asked.ifr_ifru.ifru_mtu };
        usize::try_from(mtu).ok()?.min(LENGTH_MAX).checked_sub(headers)
    }
    /// How many reports of routers and hosts were ignored.
    pub fn reports(&self) -> u64 {
        self.reports.get()
    }
    /// Why the kernel does not send a datagram of this length. A report that came between two tries
    /// is no reason: the datagram is sent later.
    #[cold]
    fn refusal(&self, error: &io::Error, length: usize) -> Refusal {
        let is_too_long = || self.room().is_none_or(|room| length > room);
        let has_route = || self.route.as_ref().is_some_and(|route| route.interface().is_ok());
        match Errno::from_io_error(error) {
            // UDP's offload fails with INVAL where a packet is longer than the MTU.
            Some(Errno::INVAL | Errno::MSGSIZE) if is_too_long() => Refusal::TooLong,
            Some(Errno::INVAL) => Refusal::Invalid,
            Some(Errno::NETDOWN) => Refusal::Unreachable,
            Some(errno) if may_be_report(errno) && has_route() => Refusal::Full,
            Some(errno) if may_be_report(errno) => Refusal::Unreachable,
            Some(errno) => Refusal::of(errno),
            None => Refusal::Invalid,
        }
    }

    /// How many datagrams found its receive queue full.
    pub fn lost(&self) -> u64 {
        super::socket_losses(self.fd())
    }

    /// Sends packets, each behind `header`; how many went, and what stopped the rest.
    pub fn send(
        &self,
        header: &[u8],
        frames: &[impl AsRef<Packet>],
        buffers: &Buffers,
    ) -> (usize, Option<Refusal>) {
        let mut sent = 0;
        while sent < frames.len() {
            let length = |frame| header.len() + AsRef::<Packet>::as_ref(frame).length();
            let (count, size) = run(frames[sent..].iter().map(length));
            let mut pieces = [IoSlice::new(&[]); 3 * DATAGRAMS_MAX];
            for (three, frame) in pieces.chunks_exact_mut(3).zip(&frames[sent..sent + count]) {
                let packet = frame.as_ref();
                three[0] = IoSlice::new(header);
                three[1] = IoSlice::new(packet.header.bytes());
                three[2] = IoSlice::new(packet.payload(buffers));
            }
            match self.write(&pieces[..3 * count], (count > 1).then_some(size as u16)) {
                Ok(()) => sent += count,
                Err(error) => return (sent, Some(self.refusal(&error, size))),
            }
        }
        (sent, None)
    }

    /// Sends datagrams that lie one behind another, each up to its place in `ends`; how many went,
    /// and what stopped the rest.
    pub fn send_laid_out(&self, bytes: &[u8], ends: &[usize]) -> (usize, Option<Refusal>) {
        let (mut sent, mut start) = (0, 0);
        while sent < ends.len() {
            let starts = [start].into_iter().chain(ends[sent..].iter().copied());
            let (count, size) = run(starts.zip(&ends[sent..]).map(|(start, end)| end - start));
            let end = ends[sent + count - 1];
            match self
                .write(&[IoSlice::new(&bytes[start..end])], (count > 1).then_some(size as u16))
            {
                Ok(()) => (sent, start) = (sent + count, end),
                Err(error) => return (sent, Some(self.refusal(&error, size))),
            }
        }
        (sent, None)
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// The socket's reason: full, longer than the interface's MTU, or no route to the other end.
    pub fn send_one(&self, datagram: &[u8]) -> Result<(), Refusal> {
        let written = self.write(&[IoSlice::new(datagram)], None);
        written.map_err(|error| self.refusal(&error, datagram.len()))
    }

    /// The kernel hands over a report as the error of the next call, which has sent nothing then.
    fn write(&self, pieces: &[IoSlice<'_>], segment: Option<u16>) -> io::Result<()> {
        for tried in 0.. {
            match option::send(&self.socket, pieces, SEGMENT, segment) {
                Err(error)
                    if tried < TRIES && Errno::from_io_error(&error).is_some_and(may_be_report) => {
                }
                Ok(()) if tried > 0 => {
                    self.reports.set(self.reports.get() + tried);
                    return Ok(());
                }
                written => return written,
            }
        }
        Ok(())
    }

    /// Reads what has arrived. Returns its length in bytes and the length of each datagram in it
    /// but the last, or `None` if nothing has arrived.
    ///
    /// # Errors
    /// [`Refusal::TooLong`] if it is longer than `buffer`, otherwise the socket's reason.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<(usize, usize)>, Refusal> {
        for _ in 0..TRIES {
            match self.receive_once(buffer) {
                Err(error) if may_be_report(error) => self.reports.set(self.reports.get() + 1),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
                Err(errno) => return Err(Refusal::of(errno)),
                Ok((read, _)) if read > buffer.len() => return Err(Refusal::TooLong),
                Ok(read) => return Ok(Some(read)),
            }
        }
        Ok(None)
    }

    fn receive_once(&self, buffer: &mut [u8]) -> Result<(usize, usize), Errno> {
        let kind = (libc::SOL_UDP, libc::UDP_GRO);
        let read = option::receive::<libc::c_int>(&self.socket, [buffer, &mut []], kind);
        let (read, segment) = read?;
        let segment = segment.and_then(|segment| usize::try_from(segment).ok());
        Ok((read, segment.filter(|segment| *segment > 0).unwrap_or(read).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::Header;
    use crate::dataplane::held::Held;

    impl Udp {
        /// Two that have each other as peer. Somebody else may draw a number between its choice and
        /// its use: then others are drawn.
        pub(crate) fn pair() -> [Udp; 2] {
            let draw = |_| {
                let held = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
                let [a, b] = held.each_ref().map(|socket| socket.local_addr().unwrap());
                drop(held);
                Some([Udp::open(a, b).ok()?, Udp::open(b, a).ok()?])
            };
            (0..10).find_map(draw).expect("two free numbers")
        }
    }

    #[test]
    fn a_report_of_a_closed_port_is_no_refusal() {
        let [from, to] = Udp::pair();
        drop(to);
        for _ in 0..10 {
            assert_eq!(from.send_one(b"for nobody"), Ok(()));
        }
        assert_eq!(from.receive(&mut [0; 100]), Ok(None));
        assert!(from.reports() >= 10, "{}", from.reports());
        // The size is the interface's.
        let room = from.room().unwrap();
        assert_eq!(from.send_one(&vec![0; room + 1]), Err(Refusal::TooLong));
        assert_eq!(from.send_one(&[0; 1000]), Ok(()));
    }

    #[test]
    fn datagrams_of_one_size_travel_together_and_arrive_apart() {
        let [from, to] = Udp::pair();
        let mut buffers = Buffers::new(4);
        let buffer = buffers.take().unwrap();
        buffers.bytes_mut(buffer).iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
        let packet = |i: usize, length: usize| {
            let mut header = Header::default();
            header.set(&[i as u8; 20]);
            Held::from(Packet::new(header, buffer, i * 100..i * 100 + length))
        };
        let lengths = [100, 100, 100, 40, 100, 0];
        let packets: Vec<Held> = lengths.iter().enumerate().map(|(i, l)| packet(i, *l)).collect();
        let (sent, refused) = from.send(b"headings", &packets, &buffers);
        assert_eq!((sent, refused), (6, None));
        let (mut room, mut seen) = (vec![0; 1 << 16], Vec::new());
        let start = std::time::Instant::now();
        while seen.len() < 6 && start.elapsed().as_secs() < 5 {
            while let Some((bytes, size)) = to.receive(&mut room).unwrap() {
                seen.extend(
                    room[..bytes].chunks(size).map(|d| (d.len(), d[8], d.get(28).copied())),
                );
            }
        }
        let expected =
            |i: usize| (28 + lengths[i], i as u8, (lengths[i] > 0).then_some((i * 100) as u8));
        assert_eq!(seen, (0..6).map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn datagrams_that_are_laid_out_arrive_apart() {
        let [from, to] = Udp::pair();
        let lengths = [100, 100, 100, 40, 100, 150, 150];
        let bytes: Vec<u8> = (0..7u8).flat_map(|i| vec![i; lengths[usize::from(i)]]).collect();
        let ends: Vec<usize> = lengths
            .iter()
            .scan(0, |at, length| {
                *at += length;
                Some(*at)
            })
            .collect();
        assert_eq!(from.send_laid_out(&bytes, &ends), (7, None));
        let (mut room, mut seen) = (vec![0; 1 << 16], Vec::new());
        let start = std::time::Instant::now();
        while seen.len() < 7 && start.elapsed().as_secs() < 5 {
            while let Some((bytes, size)) = to.receive(&mut room).unwrap() {
                seen.extend(
                    room[..bytes]
                        .chunks(size)
                        .map(|d| (d.len(), d[0], d.iter().all(|byte| *byte == d[0]))),
                );
            }
        }
        assert_eq!(seen, (0..7u8).map(|i| (lengths[usize::from(i)], i, true)).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_receive_queue_is_told() {
        let [from, to] = Udp::pair();
        sockopt::set_socket_recv_buffer_size(&to.socket, 4096).unwrap();
        assert_eq!(to.lost(), 0);
        (0..100).for_each(|_| assert_eq!(from.send_one(&[0; 1000]), Ok(())));
        let start = std::time::Instant::now();
        let mut came = 0;
        // Nothing is under way over loopback: what has not come is lost.
        while came + to.lost() < 100 && start.elapsed().as_secs() < 5 {
            came += to
                .receive(&mut [0; 70_000])
                .unwrap()
                .map_or(0, |(bytes, size)| (bytes / size) as u64);
        }
        assert!(to.lost() > 50 && came + to.lost() == 100, "{came} {}", to.lost());
    }

    #[test]
    fn the_kernel_tells_how_much_a_path_has_room_for() {
        let mtu = crate::dataplane::port::Device::new("lo").unwrap().mtu().unwrap();
        assert_eq!(Udp::pair()[0].room(), Some(mtu.min(65_535) - 28));
    }
}
