//! An interface that is there already, by a packet socket: frames that come in on it come to the
//! switch, and the switch's frames go out on it.
//!
//! The host sees what comes in as well, so the interface should have no address. A tag that the
//! kernel has taken off a frame is put back. The socket takes super-segments, and the kernel cuts
//! them where the interface cannot.
//!
//! With several workers each has a socket. The kernel gives a flow's frames of both directions to
//! one of them, by hash (`PACKET_FANOUT_HASH`).
//!
//! Invariant: read and write never block; frames that the host itself sends on the interface do not
//! come back in.

use super::claim::Claim;
use super::device::{Device, Presence};
use super::gate::Gate;
use super::{Error, Received, Refusal, gather, option};
use crate::dataplane::frame::offload::{self, Offload};
use crate::dataplane::frame::vlan;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Not in the libc crate: include/uapi/linux/if_packet.h.
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_FANOUT: libc::c_int = 18;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const FANOUT_HASH: u32 = 0;
const FANOUT_UNIQUE: u32 = 0x2000;
const FANOUT_IGNORE_OUTGOING: u32 = 0x4000;
const VLAN_VALID: u32 = 1 << 4;
const VLAN_TPID_VALID: u32 = 1 << 6;
/// Bytes that may wait in the socket: some round trips of super-segments.
const WAITING: usize = 8 << 20;

/// `struct tpacket_auxdata`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Auxiliary {
    status: u32,
    length: u32,
    captured: u32,
    mac: u16,
    network: u16,
    vlan: u16,
    vlan_protocol: u16,
}

#[derive(Debug)]
pub struct AfPacket {
    socket: OwnedFd,
    device: Device,
    index: i32,
    /// By which senders behind it are made to wait.
    gate: Option<Gate>,
    /// By which other switches do not attach to it.
    _claim: Option<Claim>,
}

/// An address of packet sockets, which rustix does not have.
fn address(index: i32) -> libc::sockaddr_ll {
    // SAFETY: sockaddr_ll is plain data, for which zeros are a value.
    #[allow(unsafe_code)]
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    address
}

impl AfPacket {
    /// Attaches to an interface of the calling thread's namespace.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is no such interface, [`Error::Privilege`] without CAP_NET_RAW,
    /// [`Error::Kernel`] if the kernel refuses the socket or an option.
    pub fn open(name: &str) -> Result<AfPacket, Error> {
        let device = Device::new(name)?;
        let index =
            device.index().map_err(|_| Error::NoDevice { device: name.into(), namespace: None })?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // No protocol yet: nothing arrives before the socket is bound to the interface.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None);
        let socket = socket.map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => Error::Privilege {
                what: format!("a packet socket for {name}"),
                capability: "CAP_NET_RAW",
            },
            errno => Error::kernel(format!("a packet socket for {name}"), errno),
        })?;
        let failed =
            |what: &'static str| move |e: io::Error| Error::kernel(format!("{what} for {name}"), e);
        for (what, name) in [
            ("super-segments", PACKET_VNET_HDR),
            ("its tags", libc::PACKET_AUXDATA),
            ("not hearing itself", PACKET_IGNORE_OUTGOING),
        ] {
            option::set(&socket, (libc::SOL_PACKET, name), &1i32).map_err(failed(what))?;
        }
        // SAFETY: packet_mreq is plain data, for which zeros are a value.
        #[allow(unsafe_code)]
        let mut all: libc::packet_mreq = unsafe { std::mem::zeroed() };
        (all.mr_ifindex, all.mr_type) = (index, libc::PACKET_MR_PROMISC as u16);
        option::set(&socket, (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP), &all)
            .map_err(failed("frames to other addresses"))?;
        // Beyond the host's limit where the capability allows it, else up to it: less room, no
        // failure.
        let room = sockopt::set_socket_recv_buffer_size_force(&socket, WAITING);
        let _ = room.or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, WAITING));
        let address = address(index);
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads as many bytes as the address has.
        #[allow(unsafe_code)]
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) };
        if bound < 0 {
            return Err(failed("attaching")(io::Error::last_os_error()));
        }
        Ok(AfPacket { socket, device, index, gate: None, _claim: None })
    }
    /// Attaches with so many sockets, among which the kernel divides what comes in.
    ///
    /// # Errors
    /// As [`AfPacket::open`]; [`Error::Kernel`] if the interface is down, or the kernel does not
    /// divide.
    pub fn open_queues(name: &str, count: usize) -> Result<Vec<AfPacket>, Error> {
        let mut all = vec![AfPacket::open(name)?];
        if count <= 1 {
            return Ok(all);
        }
        let failed = |e: io::Error| {
            let what = format!("dividing what comes in on {name} among workers (is it up?)");
            Error::kernel(what, e)
        };
        let kind = FANOUT_HASH | FANOUT_IGNORE_OUTGOING;
        let joins = |socket: &AfPacket, group: u32| {
            option::set(&socket.socket, (libc::SOL_PACKET, PACKET_FANOUT), &group).map_err(failed)
        };
        joins(&all[0], (kind | FANOUT_UNIQUE) << 16)?;
        let group = fanout_group(&all[0].socket).map_err(failed)?;
        for _ in 1..count {
            let mut next = AfPacket::open(name)?;
            joins(&next, kind << 16 | group)?;
            next.discard();
            all.push(next);
        }
        Ok(all)
    }
    /// Drops what came before the socket joined others, which have it, too.
    fn discard(&mut self) {
        let mut room = [0; 64];
        while rustix::io::read(&self.socket, &mut room).is_ok() {}
    }
    /// Keeps the interface from other switches of the host.
    ///
    /// # Errors
    /// [`Error::Busy`] if another switch has it, [`Error::Kernel`] if that cannot be found out.
    pub fn claimed(self) -> Result<AfPacket, Error> {
        let claim = Claim::of(self.device.name(), self.index)?;
        Ok(AfPacket { _claim: claim, ..self })
    }
    /// Adds a gate, by which the port can make its senders wait.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the interface has no NAPI (a veth with `gro on` has one), or the kernel
    /// refuses to defer it. [`Error::Privilege`] without CAP_NET_ADMIN.
    pub fn gated(self) -> Result<AfPacket, Error> {
        let gate = Gate::of(self.device.name(), self.index)?;
        Ok(AfPacket { gate: Some(gate), ..self })
    }
    /// Makes senders behind it wait, or lets them go on.
    pub fn close_gate(&mut self, is_closed: bool) {
        if let Some(Err(errno)) = self.gate.as_mut().map(|gate| gate.set(is_closed)) {
            log::warn!("the gate of {}: {errno}", self.device.name());
        }
    }
    /// Whether they are made to wait: what is in its socket stays there meanwhile.
    pub fn is_gate_closed(&self) -> bool {
        self.gate.as_ref().is_some_and(Gate::is_closed)
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Received {
        let mut header = [0; offload::LENGTH];
        let Some(room) = buffer.get_mut(vlan::LENGTH..) else {
            return Received::Refused(Refusal::TooLong);
        };
        let kind = (libc::SOL_PACKET, libc::PACKET_AUXDATA);
        let read = option::receive::<Auxiliary>(&self.socket, [&mut header, &mut *room], kind);
        let (read, tag) = match read {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
            // Reported once, which may be before the interface is deleted; the socket reads again
            // when it comes up.
            Err(Errno::NETDOWN) if self.device.name_of(self.index).is_some() => {
                return Received::Nothing;
            }
            Err(Errno::NETDOWN) => return Received::Gone,
            Err(errno) => match Refusal::of(errno) {
                Refusal::Gone => return Received::Gone,
                other => return Received::Refused(other),
            },
        };
        let Ok(offload) = Offload::read(&header) else {
            return Received::Refused(Refusal::Invalid);
        };
        let room = room.len();
        let Some(length) = read.checked_sub(offload::LENGTH).filter(|l| *l <= room) else {
            return Received::Refused(Refusal::TooLong);
        };
        let tag = tag.filter(|aux| aux.status & VLAN_VALID != 0 && length >= vlan::AT);
        let Some(tag) = tag else {
            return Received::Frame { start: vlan::LENGTH, length, offload };
        };
        let Ok(offload) = offload.tagged() else { return Received::Refused(Refusal::Invalid) };
        let ethertype =
            if tag.status & VLAN_TPID_VALID != 0 { tag.vlan_protocol } else { vlan::ETHERTYPE };
        vlan::insert(buffer, ethertype, tag.vlan);
        Received::Frame { start: 0, length: length + vlan::LENGTH, offload }
    }

    /// How many frames found its receive queue full.
    pub fn lost(&self) -> u64 {
        super::socket_losses(self.fd())
    }

    /// Looks for the interface that was attached to.
    pub(super) fn follow(&mut self) -> Presence {
        self.device.follow(self.index)
    }

    pub(super) fn send(
        &mut self,
        offload: &Offload,
        pieces: &[IoSlice<'_>],
    ) -> Result<(), Refusal> {
        let header = offload.write();
        let (all, count) = gather(&header, pieces);
        // The socket is bound: where to is known.
        rustix::io::writev(&self.socket, &all[..count]).map(|_| ()).map_err(Refusal::of)
    }
}

/// The number of the group of sockets that one has joined.
fn fanout_group(socket: &OwnedFd) -> io::Result<u32> {
    let mut value = 0u32;
    option::get(socket, (libc::SOL_PACKET, PACKET_FANOUT), &mut value)?;
    Ok(value & 0xffff)
}
