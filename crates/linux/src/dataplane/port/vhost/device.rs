//! A guest's device: its features, its memory, its two rings. The front end's thread (`control`)
//! sets it up, and the switch's moves frames.
//!
//! Invariant: a lock is held while one frame is copied, and never while memory is mapped or given
//! back; a ring with an impossible state stays still until the guest has gone.

use super::frames::{self, Format, Given, HEADER, Scratch, Taken};
use super::memory::Memory;
use super::ring::{Broken, Parts, Ring};
use crate::dataplane::frame::offload::{self, GsoType, Offload};
use std::fs::File;
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The ring of frames for the guest.
pub const TO_GUEST: usize = 0;
/// The ring of its own frames.
pub const FROM_GUEST: usize = 1;

const CSUM: u64 = 1 << 0;
const GUEST_CSUM: u64 = 1 << 1;
const GUEST_TSO4: u64 = 1 << 7;
const GUEST_TSO6: u64 = 1 << 8;
const GUEST_ECN: u64 = 1 << 9;
const HOST_TSO4: u64 = 1 << 11;
const HOST_TSO6: u64 = 1 << 12;
const HOST_ECN: u64 = 1 << 13;
const MRG_RXBUF: u64 = 1 << 15;
const INDIRECT_DESC: u64 = 1 << 28;
const EVENT_IDX: u64 = 1 << 29;
/// Not the device's but the protocol's: rings are switched on one by one.
pub const PROTOCOL: u64 = 1 << 30;
const VERSION_1: u64 = 1 << 32;
const GUEST_USO4: u64 = 1 << 54;
const GUEST_USO6: u64 = 1 << 55;
const HOST_USO: u64 = 1 << 56;

/// The features that a guest is offered.
pub const FEATURES: u64 = CSUM
    | GUEST_CSUM
    | GUEST_TSO4
    | GUEST_TSO6
    | GUEST_ECN
    | HOST_TSO4
    | HOST_TSO6
    | HOST_ECN
    | MRG_RXBUF
    | INDIRECT_DESC
    | EVENT_IDX
    | PROTOCOL
    | VERSION_1
    | GUEST_USO4
    | GUEST_USO6
    | HOST_USO;

/// One ring: the front end's settings of it, and the ring itself while it runs.
#[derive(Debug, Default)]
pub struct Queue {
    pub size: u16,
    /// Where its parts are for the front end.
    pub parts: Option<Parts>,
    /// The entry that it begins with.
    pub base: u16,
    /// Where the guest kicks: it has started the ring.
    pub kick: Option<Arc<File>>,
    pub call: Option<Arc<File>>,
    pub is_enabled: bool,
    ring: Option<Ring>,
}

/// The state that both threads see.
#[derive(Debug, Default)]
pub struct State {
    pub memory: Option<Arc<Memory>>,
    pub queues: [Queue; 2],
    /// Changes of what is to be waited for.
    pub version: u64,
    /// Why the guest has gone, or must go.
    pub end: Option<String>,
    format: Format,
    scratch: Scratch,
}

#[derive(Debug)]
pub struct Device {
    state: Mutex<State>,
    features: AtomicU64,
    news: OwnedFd,
}

impl State {
    /// Sets a ring going, or stops it, as what is known of it allows.
    pub fn settle(&mut self, which: usize, features: u64) -> Result<(), &'static str> {
        self.format = format(features);
        let queue = &mut self.queues[which];
        if let Some(mut ring) = queue.ring.take() {
            let _ = ring.publish();
            queue.base = ring.next();
        }
        let (Some(memory), Some(parts), Some(_)) = (&self.memory, queue.parts, &queue.kick) else {
            return Ok(());
        };
        let at =
            |address| memory.guest_address(address).ok_or("a ring outside of the guest's memory");
        let parts = Parts {
            descriptors: at(parts.descriptors)?,
            available: at(parts.available)?,
            used: at(parts.used)?,
        };
        let ring = Ring::new(memory, parts, queue.size, queue.base, features & EVENT_IDX != 0);
        queue.ring =
            Some(ring.ok_or("a ring outside of the guest's memory, or of a size that cannot be")?);
        Ok(())
    }
    /// Stops a ring. The entry that it would go on with.
    pub fn stop(&mut self, which: usize) -> u16 {
        let queue = &mut self.queues[which];
        queue.kick = None;
        if let Some(mut ring) = queue.ring.take() {
            let _ = ring.publish();
            queue.base = ring.next();
        }
        queue.base
    }
    /// All that it had, to be given back where nobody waits for it.
    pub fn free(&mut self) -> (Option<Arc<Memory>>, [Queue; 2]) {
        (self.memory.take(), std::mem::take(&mut self.queues))
    }
    /// The ring, if frames may pass.
    fn running(&mut self, which: usize) -> Option<&mut Ring> {
        let queue = &mut self.queues[which];
        queue.ring.as_mut().filter(|_| queue.is_enabled)
    }
}

fn format(features: u64) -> Format {
    let is_long = features & (VERSION_1 | MRG_RXBUF) != 0;
    Format {
        header: if is_long { HEADER } else { offload::LENGTH },
        is_mergeable: features & MRG_RXBUF != 0,
    }
}

impl Device {
    pub fn new() -> Result<Device, rustix::io::Errno> {
        use rustix::event::{EventfdFlags, eventfd};
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Device { state: Mutex::default(), features: AtomicU64::new(0), news })
    }
    /// Its state; a thread that has panicked has left nothing half done but its own ring.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// The features that the guest has agreed to.
    pub fn features(&self) -> u64 {
        self.features.load(Ordering::Relaxed)
    }
    pub fn agree(&self, features: u64) {
        self.features.store(features, Ordering::Relaxed);
    }
    /// The descriptor by which the switch learns of changes.
    pub fn news(&self) -> &OwnedFd {
        &self.news
    }
    /// Notifies the switch of a change.
    pub fn notify(&self) {
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }

    /// Whether the guest takes what is still to be done to a frame.
    #[inline]
    pub fn takes(&self, offload: &Offload) -> bool {
        let needed = match offload.gso {
            _ if *offload == Offload::default() => return true,
            GsoType::None => GUEST_CSUM,
            GsoType::Tcp4 => GUEST_CSUM | GUEST_TSO4,
            GsoType::Tcp6 => GUEST_CSUM | GUEST_TSO6,
            GsoType::Udp => GUEST_CSUM | GUEST_USO4 | GUEST_USO6,
        };
        let needed = needed | if offload.ecn { GUEST_ECN } else { 0 };
        self.features() & needed == needed
    }

    /// The guest is to be sent away.
    #[cold]
    fn broken(&self, state: &mut State, Broken: Broken) {
        state.end = Some("its rings say what cannot be".into());
        state.queues.iter_mut().for_each(|queue| queue.ring = None);
        self.notify();
    }

    #[inline]
    pub fn take(&self, frame: &mut [u8]) -> Taken {
        let state = &mut *self.lock();
        let State { memory, queues, scratch, format, .. } = state;
        let queue = &mut queues[FROM_GUEST];
        let (Some(memory), Some(ring), true) = (memory, &mut queue.ring, queue.is_enabled) else {
            return Taken::Nothing;
        };
        let taken = frames::take(ring, memory, *format, scratch, frame);
        taken.unwrap_or_else(|broken| {
            self.broken(state, broken);
            Taken::Bad
        })
    }
    /// Gives the guest a frame; `None`: it takes none. Where there is no room the guest will kick.
    #[inline]
    pub fn give(&self, offload: &Offload, pieces: &[IoSlice<'_>]) -> Option<Given> {
        let state = &mut *self.lock();
        let State { memory, queues, scratch, format, .. } = state;
        let queue = &mut queues[TO_GUEST];
        let (Some(memory), Some(ring), true) = (memory, &mut queue.ring, queue.is_enabled) else {
            return None;
        };
        let mut give = || loop {
            let given = frames::give(ring, memory, *format, scratch, offload, pieces)?;
            // More may have come before the guest was asked to kick.
            if given == Given::Full && ring.arm()? {
                continue;
            }
            if given == Given::Done {
                ring.disarm();
            }
            return Ok(given);
        };
        match give() {
            Ok(given) => Some(given),
            Err(broken) => {
                self.broken(state, broken);
                None
            }
        }
    }

    /// Signals what was given back, where the guest wants that.
    pub fn signal(&self) {
        let state = &mut *self.lock();
        for which in [TO_GUEST, FROM_GUEST] {
            let Some(ring) = state.running(which) else { continue };
            match ring.publish().and_then(|()| ring.wants_signal()) {
                Ok(true) => {
                    let call = state.queues[which].call.as_ref();
                    call.map(|call| rustix::io::write(call.as_fd(), &1u64.to_ne_bytes()));
                }
                Ok(false) => {}
                Err(broken) => return self.broken(state, broken),
            }
        }
    }
    /// Whether the guest has nothing for now; it kicks when it has.
    pub fn may_sleep(&self) -> bool {
        let state = &mut *self.lock();
        let Some(ring) = state.running(FROM_GUEST) else { return true };
        if ring.has_more() {
            return false;
        }
        match ring.arm() {
            Ok(has_more) => !has_more,
            Err(broken) => {
                self.broken(state, broken);
                false
            }
        }
    }
    pub fn awake(&self) {
        if let Some(ring) = self.lock().running(FROM_GUEST) {
            ring.disarm();
        }
    }
    /// Whether frames can pass both ways.
    pub fn is_up(&self) -> bool {
        let state = &mut *self.lock();
        state.running(TO_GUEST).is_some() && state.running(FROM_GUEST).is_some()
    }
    pub fn is_mergeable(&self) -> bool {
        self.features() & MRG_RXBUF != 0
    }
    /// Whether it takes super-segments of TCP.
    pub fn takes_super_segments(&self) -> bool {
        let needed = GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6;
        self.features() & needed == needed
    }
}
