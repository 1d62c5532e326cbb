//! The front end's connection: a thread that serves the protocol, whose messages may take their
//! time, while the switch's thread moves frames.
//!
//! Invariant: a descriptor that is waited for or signalled is an eventfd, so nothing that is behind
//! another kind of file runs in the switch; the thread ends with its connection.

use super::device::{Device, FEATURES, FROM_GUEST, PROTOCOL, State, TO_GUEST};
use super::memory::Memory;
use super::ring::{Parts, SIZE_MAX};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    FrontendReq, VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags,
    VhostUserInflight, VhostUserLog, VhostUserMemoryRegion, VhostUserShMemConfig,
    VhostUserSharedMsg, VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{
    BackendReqHandler, Error, GpuBackend, Result, VhostUserBackendReqHandler,
    VhostUserProtocolFeatures,
};

/// How long the front end may take to read an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Why a guest ends that ends by itself.
pub const GONE: &str = "it has gone";

struct Handler {
    device: Arc<Device>,
    /// Whether its user could end the switch anyway.
    is_trusted: bool,
}

/// Serves a front end on a thread of its own; what is returned ends it.
pub fn serve(
    socket: OwnedFd,
    device: Arc<Device>,
    is_trusted: bool,
) -> std::io::Result<UnixStream> {
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(ANSWER))?;
    let (ours, next) = (stream.try_clone()?, stream.try_clone()?);
    let handler = Arc::new(Handler { device: device.clone(), is_trusted });
    let work = move || {
        let mut requests = BackendReqHandler::from_stream(stream, handler.clone());
        let error = loop {
            let handled = match early_enable(&next, &handler) {
                Ok(true) => Ok(()),
                Ok(false) => requests.handle_request(),
                Err(error) => Err(error),
            };
            if let Err(error) = handled {
                break error;
            }
        };
        let why = match error {
            Error::Disconnected | Error::PartialMessage | Error::SocketBroken(_) => {
                GONE.to_string()
            }
            error => error.to_string(),
        };
        let mut state = device.lock();
        state.end.get_or_insert(why);
        let freed = state.free();
        drop(state);
        drop(freed);
        device.notify();
    };
    std::thread::Builder::new().name("vhost-user".into()).spawn(work)?;
    Ok(ours)
}

/// A message's header: what it asks, flags, and how many bytes follow.
const HEADER: usize = 12;
/// Version 1 of the protocol, an answer, and that one is wanted.
const VERSION: u32 = 1;
const ANSWERS: u32 = 1 << 2;
const WANTS_ANSWER: u32 = 1 << 3;

/// QEMU switches rings on before it has agreed to any feature, or to that of the protocol
/// (`VHOST_USER_F_PROTOCOL_FEATURES`) at all. The crate ends the connection then; the protocol does
/// not ask that of it. Whether the next message was such a one; it is dealt with here.
fn early_enable(next: &UnixStream, handler: &Handler) -> Result<bool> {
    if handler.device.features() & PROTOCOL != 0 {
        return Ok(false);
    }
    let receive = |into: &mut [u8], flags| {
        recv(next, into, flags | RecvFlags::WAITALL).map(|(_, length)| length)
    };
    let mut header = [0; HEADER];
    let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    // The end, or what is wrong with it, the crate finds.
    if receive(&mut header, RecvFlags::PEEK) != Ok(HEADER)
        || number(&header) != FrontendReq::SET_VRING_ENABLE as u32
        || number(&header[8..]) != 8
    {
        return Ok(false);
    }
    let mut message = [0; HEADER + 8];
    if receive(&mut message, RecvFlags::empty()) != Ok(message.len()) {
        return Err(Error::Disconnected);
    }
    let (ring, is_enabled) = (number(&message[HEADER..]), number(&message[HEADER + 4..]));
    if is_enabled > 1 {
        return Err(Error::InvalidParam);
    }
    handler.set_vring_enable(ring, is_enabled == 1)?;
    if number(&header[4..]) & WANTS_ANSWER != 0 {
        let done = 0u64.to_le_bytes();
        let answer =
            [&header[..4], &(VERSION | ANSWERS).to_le_bytes(), &8u32.to_le_bytes(), &done].concat();
        send(next, &answer, SendFlags::NOSIGNAL).map_err(|_| Error::Disconnected)?;
    }
    Ok(true)
}

fn unsupported<T>() -> Result<T> {
    Err(Error::InvalidOperation("it was not offered"))
}

fn which(index: u32) -> Result<usize> {
    match index as usize {
        ring @ (TO_GUEST | FROM_GUEST) => Ok(ring),
        _ => Err(Error::InvalidParam),
    }
}

/// An eventfd that does not block.
fn eventfd(file: File) -> Result<Arc<File>> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if !link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]") {
        return Err(Error::InvalidParam);
    }
    let flags = fcntl_getfl(&file).map_err(|_| Error::InvalidParam)?;
    fcntl_setfl(&file, flags | OFlags::NONBLOCK).map_err(|_| Error::InvalidParam)?;
    Ok(Arc::new(file))
}

impl Handler {
    /// Changes what the switch sees, and notifies it.
    fn change<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let mut state = self.device.lock();
        let done = work(&mut state);
        state.version += 1;
        drop(state);
        self.device.notify();
        done
    }
    fn settle(&self, state: &mut State, ring: usize) -> Result<()> {
        state.settle(ring, self.device.features()).map_err(Error::InvalidOperation)
    }
    fn stop_all(&self) -> Result<()> {
        self.change(|state| {
            for ring in [TO_GUEST, FROM_GUEST] {
                state.stop(ring);
            }
            Ok(())
        })
    }
}

impl VhostUserBackendReqHandler for Handler {
    fn set_owner(&self) -> Result<()> {
        Ok(())
    }
    fn reset_owner(&self) -> Result<()> {
        self.stop_all()
    }
    fn reset_device(&self) -> Result<()> {
        unsupported()
    }
    fn get_features(&self) -> Result<u64> {
        Ok(FEATURES)
    }
    fn set_features(&self, features: u64) -> Result<()> {
        if features & !FEATURES != 0 {
            return Err(Error::FeatureMismatch);
        }
        self.device.agree(features);
        self.change(|state| {
            for ring in [TO_GUEST, FROM_GUEST] {
                if features & PROTOCOL == 0 {
                    state.queues[ring].is_enabled = true;
                }
                self.settle(state, ring)?;
            }
            Ok(())
        })
    }
    fn set_mem_table(
        &self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        let memory = Memory::map(regions, files, self.is_trusted).map_err(|why| {
            log::warn!("a guest's memory: {why}");
            Error::InvalidParam
        })?;
        let mut old = None;
        self.change(|state| {
            old = state.memory.replace(Arc::new(memory));
            [TO_GUEST, FROM_GUEST].into_iter().try_for_each(|ring| self.settle(state, ring))
        })?;
        // The lock is free again: to give back much memory takes long.
        drop(old);
        Ok(None)
    }
    fn set_vring_num(&self, index: u32, size: u32) -> Result<()> {
        let ring = which(index)?;
        if !size.is_power_of_two() || size > SIZE_MAX {
            return Err(Error::InvalidParam);
        }
        self.change(|state| {
            state.queues[ring].size = size as u16;
            self.settle(state, ring)
        })
    }
    fn set_vring_addr(
        &self,
        index: u32,
        _: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _: u64,
    ) -> Result<()> {
        let ring = which(index)?;
        self.change(|state| {
            state.queues[ring].parts = Some(Parts { descriptors, available, used });
            self.settle(state, ring)
        })
    }
    fn set_vring_base(&self, index: u32, base: u32) -> Result<()> {
        let ring = which(index)?;
        self.change(|state| {
            state.stop(ring);
            state.queues[ring].base = base as u16;
            Ok(())
        })
    }
    fn get_vring_base(&self, index: u32) -> Result<VhostUserVringState> {
        let ring = which(index)?;
        self.change(|state| Ok(VhostUserVringState::new(index, u32::from(state.stop(ring)))))
    }
    fn set_vring_kick(&self, index: u8, file: Option<File>) -> Result<()> {
        let ring = which(index.into())?;
        // Without one the switch would have to look for ever.
        let kick = eventfd(file.ok_or(Error::InvalidParam)?)?;
        self.change(|state| {
            state.queues[ring].kick = Some(kick);
            self.settle(state, ring)
        })
    }
    fn set_vring_call(&self, index: u8, file: Option<File>) -> Result<()> {
        let ring = which(index.into())?;
        let call = file.map(eventfd).transpose()?;
        self.change(|state| {
            state.queues[ring].call = call;
            Ok(())
        })
    }
    fn set_vring_err(&self, index: u8, _: Option<File>) -> Result<()> {
        which(index.into()).map(|_| ())
    }
    fn get_protocol_features(&self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::REPLY_ACK)
    }
    fn set_protocol_features(&self, features: u64) -> Result<()> {
        match features & !VhostUserProtocolFeatures::REPLY_ACK.bits() {
            0 => Ok(()),
            _ => Err(Error::FeatureMismatch),
        }
    }
    fn get_queue_num(&self) -> Result<u64> {
        Ok(1)
    }
    fn set_vring_enable(&self, index: u32, is_enabled: bool) -> Result<()> {
        let ring = which(index)?;
        self.change(|state| {
            state.queues[ring].is_enabled = is_enabled;
            Ok(())
        })
    }

    fn get_config(&self, _: u32, _: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        unsupported()
    }
    fn set_config(&self, _: u32, _: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        unsupported()
    }
    fn set_gpu_socket(&self, _: GpuBackend) -> Result<()> {
        unsupported()
    }
    fn get_shared_object(&self, _: VhostUserSharedMsg) -> Result<File> {
        unsupported()
    }
    fn get_inflight_fd(&self, _: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        unsupported()
    }
    fn set_inflight_fd(&self, _: &VhostUserInflight, _: File) -> Result<()> {
        unsupported()
    }
    fn get_max_mem_slots(&self) -> Result<u64> {
        unsupported()
    }
    fn add_mem_region(
        &self,
        _: &VhostUserSingleMemoryRegion,
        _: File,
        _: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        unsupported()
    }
    fn remove_mem_region(&self, _: &VhostUserSingleMemoryRegion) -> Result<()> {
        unsupported()
    }
    fn set_device_state_fd(
        &self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        unsupported()
    }
    fn check_device_state(&self) -> Result<()> {
        unsupported()
    }
    fn get_shmem_config(&self) -> Result<VhostUserShMemConfig> {
        unsupported()
    }
    fn set_log_base(&self, _: &VhostUserLog, _: File) -> Result<()> {
        unsupported()
    }
}
