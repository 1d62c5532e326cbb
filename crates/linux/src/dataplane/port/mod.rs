//! Ports: where frames come into the switch and leave it.
//!
//! | file | what it is |
//! |---|---|
//! | `tap` | an interface of its own in a namespace; super-segments of up to 64 KB either way |
//! | `af_packet` | an interface that is there already |
//! | `claim` | that interface, for one switch of the host |
//! | `gate`, `netdev` | its senders made to wait; the kernel's interface to its queues |
//! | `option` | options and messages of sockets that rustix does not have |
//! | `pcap` | files, for tests |
//! | `caller` | whoever drives this process, for worlds without ports |
//! | `shared` | memory that an application shares with the switch |
//! | `vhost` | the network device of a virtual machine |
//! | `socket` | where applications and guests attach |
//! | `udp` | a path to another switch, which is no port but is read and written like one |
//!
//! Invariant: a frame is read into the caller's buffer and written from the caller's pieces; a port
//! keeps neither. A fault of one frame is reported as a reason; a port whose interface has gone
//! reports that, and is never an error of another.

pub mod af_packet;
pub mod caller;
mod claim;
mod device;
mod gate;
mod netdev;
mod option;
pub mod pcap;
mod route;
pub mod shared;
pub mod socket;
pub mod tap;
pub mod udp;
pub mod vhost;

pub use af_packet::AfPacket;
pub use caller::Caller;
pub use claim::sweep as sweep_claims;
pub use device::{Device, Presence};
pub use pcap::Pcap;
pub use shared::Shared;
pub use tap::Tap;
pub use vhost::Vhost;

use crate::dataplane::frame::offload::{self, Offload};
use millpond_worlds::namespace;
use rustix::io::Errno;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

/// The most pieces that a frame can be written in; its first is two where a tag was taken out.
pub const PIECES_MAX: usize = 65;

/// Why a port is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused for want of a privilege.
    #[error("{what} needs {capability}: run as root, or give the process that capability")]
    Privilege { what: String, capability: &'static str },
    /// Another process has the interface, or the address of a path.
    #[error(
        "{device} is held by another process: end it (a millpond switch that still runs?), or use \
         another"
    )]
    Busy { device: String },
    /// Each worker needs a queue of its own, and the interface was made with one.
    #[error(
        "the TAP {device} has one queue, and each worker needs one: take its port out of the file \
         and apply, then put it back"
    )]
    OneQueue { device: String },
    #[error(
        "there is no interface {device}{}",
        namespace.as_ref().map_or(String::new(), |n| format!(" in namespace {n}"))
    )]
    NoDevice { device: String, namespace: Option<String> },
    #[error("{what}: {reason}")]
    Kernel { what: String, reason: String },
}

impl Error {
    /// The kernel's error when asked to do `what`; a refused permission names the capability.
    pub fn kernel(what: impl Into<String>, error: impl Into<std::io::Error>) -> Error {
        let (what, error) = (what.into(), error.into());
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                Error::Privilege { what, capability: "CAP_NET_ADMIN" }
            }
            _ => Error::Kernel { what, reason: error.to_string() },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A frame, at this place of the buffer.
    Frame {
        start: usize,
        /// How many bytes it has.
        length: usize,
        /// The work that is still to be done to it.
        offload: Offload,
    },
    /// A frame that cannot be had, for this reason; there may be others behind it.
    Refused(Refusal),
    Nothing,
    Gone,
}

/// Why one frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Full,
    Down,
    /// More bytes than the interface takes.
    TooLong,
    /// The kernel found the frame or its virtio header wrong.
    Invalid,
    Gone,
    /// Nobody is at the other end, or there is no way there.
    Unreachable,
    /// An application's or a guest's descriptor of no frame.
    Descriptor,
    /// No guest is attached whose driver is up.
    NoGuest,
}

impl Refusal {
    fn of(errno: Errno) -> Refusal {
        match errno {
            Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR => Refusal::Full,
            Errno::IO | Errno::NETDOWN => Refusal::Down,
            Errno::MSGSIZE | Errno::TOOBIG => Refusal::TooLong,
            Errno::BADFD | Errno::NODEV | Errno::NXIO | Errno::BADF => Refusal::Gone,
            _ => Refusal::Invalid,
        }
    }
}

pub enum Port {
    Tap(Tap),
    AfPacket(AfPacket),
    Pcap(Box<Pcap>),
    Shared(Box<Shared>),
    Vhost(Box<Vhost>),
    Caller(Caller),
}

impl Port {
    /// Reads a frame into `buffer`, which has [`FRAME_MAX`](super::buffers::FRAME_MAX) bytes and
    /// more.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> Received {
        match self {
            Port::Tap(port) => port.receive(buffer),
            Port::AfPacket(port) => port.receive(buffer),
            Port::Pcap(port) => port.receive(buffer),
            Port::Shared(port) => port.receive(buffer),
            Port::Vhost(port) => port.receive(buffer),
            Port::Caller(_) => Received::Nothing,
        }
    }
    /// Writes a frame that is made of at most [`PIECES_MAX`] pieces. Frames to an application go by
    /// [`Shared::send`], which needs their sender.
    ///
    /// # Errors
    /// The device's reason to refuse the frame; [`Refusal::Invalid`] for a port to an application.
    #[inline]
    pub fn send(&mut self, offload: &Offload, pieces: &[IoSlice<'_>]) -> Result<(), Refusal> {
        match self {
            Port::Tap(port) => port.send(offload, pieces),
            Port::AfPacket(port) => port.send(offload, pieces),
            Port::Pcap(port) => port.send(offload, pieces),
            Port::Vhost(port) => port.send(offload, pieces),
            Port::Caller(port) => port.send(offload, pieces),
            Port::Shared(_) => Err(Refusal::Invalid),
        }
    }
    /// Whether it takes what is still to be done to a frame; what does not gets packets that are
    /// whole. `is_lone`: the frame is one packet. Behind a packet socket's interface nobody need
    /// distinguish a partial checksum of such a packet.
    #[inline]
    pub fn takes(&self, offload: &Offload, is_lone: bool) -> bool {
        match self {
            Port::Tap(_) => true,
            Port::AfPacket(_) => !(is_lone && offload.partial),
            Port::Pcap(_) | Port::Shared(_) => *offload == Offload::default(),
            Port::Vhost(port) => port.takes(offload),
            Port::Caller(port) => port.takes(offload),
        }
    }
    /// The descriptor to wait for; `None`: there is no need to wait.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Port::Tap(port) => Some(port.fd()),
            Port::AfPacket(port) => Some(port.fd()),
            Port::Shared(port) => Some(port.fd()),
            Port::Vhost(port) => Some(port.fd()),
            Port::Pcap(_) | Port::Caller(_) => None,
        }
    }
    /// The application's, if it is one.
    #[inline]
    pub fn shared(&mut self) -> Option<&mut Shared> {
        match self {
            Port::Shared(port) => Some(port),
            _ => None,
        }
    }
    /// Makes senders behind it wait, or lets them go on, if it has a gate.
    pub fn close_gate(&mut self, is_closed: bool) {
        if let Port::AfPacket(port) = self {
            port.close_gate(is_closed);
        }
    }
    /// Whether a gate makes them wait; then nothing is read.
    pub fn is_gate_closed(&self) -> bool {
        matches!(self, Port::AfPacket(port) if port.is_gate_closed())
    }
    /// Whether it is memory that somebody has attached to, or may.
    pub fn is_memory(&self) -> bool {
        matches!(self, Port::Shared(_) | Port::Vhost(_))
    }
    /// Shows whoever has attached what was done for them since the last time.
    pub fn flush(&mut self) {
        match self {
            Port::Shared(port) => port.flush(),
            Port::Vhost(port) => port.flush(),
            Port::Tap(_) | Port::AfPacket(_) | Port::Pcap(_) | Port::Caller(_) => {}
        }
    }
    /// Whether there is nothing to do until its descriptor is ready.
    pub fn may_sleep(&self) -> bool {
        match self {
            Port::Shared(port) => port.may_sleep(),
            Port::Vhost(port) => port.may_sleep(),
            Port::Tap(_) | Port::AfPacket(_) | Port::Pcap(_) | Port::Caller(_) => true,
        }
    }
    /// The switch is awake: nobody who has attached need wake it.
    pub fn awake(&self) {
        match self {
            Port::Shared(port) => port.awake(),
            Port::Vhost(port) => port.awake(),
            Port::Tap(_) | Port::AfPacket(_) | Port::Pcap(_) | Port::Caller(_) => {}
        }
    }
    /// Looks for its interface again, whose name may have changed. A packet socket reads that its
    /// interface is down once, and that may be before the kernel has forgotten the interface: call
    /// this now and then. A tap may be moved to another namespace, and ends by being read.
    pub fn follow(&mut self) -> Presence {
        match self {
            Port::AfPacket(port) => port.follow(),
            Port::Tap(port) => port.follow(),
            Port::Pcap(_) | Port::Shared(_) | Port::Vhost(_) | Port::Caller(_) => Presence::Same,
        }
    }
    pub fn device(&self) -> Option<&Device> {
        match self {
            Port::Tap(port) => Some(port.device()),
            Port::AfPacket(port) => Some(port.device()),
            Port::Pcap(_) | Port::Shared(_) | Port::Vhost(_) | Port::Caller(_) => None,
        }
    }
}

/// Runs `work` in the network namespace, or in the caller's own if there is no name. Returns the
/// result of `work`.
///
/// # Errors
/// As [`enter`]; `work` does not run then.
pub fn within<T: Send>(
    namespace: Option<&str>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let what = || format!("entering the network namespace {}", namespace.unwrap_or("?"));
    namespace::within(namespace, work).map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::PERM) => Error::Privilege { what: what(), capability: "CAP_SYS_ADMIN" },
        _ => Error::Kernel { what: what(), reason: e.to_string() },
    })?
}

/// How many messages a socket's full receive queue has cost (`SO_MEMINFO`, which rustix does not
/// have); the kernel's count begins anew beyond 32 bits.
fn socket_losses(socket: BorrowedFd<'_>) -> u64 {
    // include/uapi/linux/sock_diag.h: SK_MEMINFO_DROPS is the last of SK_MEMINFO_VARS.
    let mut info = [0u32; 9];
    let read = option::get(&socket, (libc::SOL_SOCKET, libc::SO_MEMINFO), &mut info);
    read.map_or(0, |_| info[8].into())
}

/// The virtio header's bytes and then the pieces, for one call of the kernel.
fn gather<'a>(
    header: &'a [u8; offload::LENGTH],
    pieces: &[IoSlice<'a>],
) -> ([IoSlice<'a>; PIECES_MAX + 1], usize) {
    let mut all = [IoSlice::new(&[]); PIECES_MAX + 1];
    let count = pieces.len().min(PIECES_MAX);
    all[0] = IoSlice::new(header);
    all[1..=count].copy_from_slice(&pieces[..count]);
    (all, count + 1)
}
