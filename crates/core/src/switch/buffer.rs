//! The buffer: where a port's packets may wait, and how much of it a port may take.
//!
//! *Per port*: each port has its own bytes or packets. *Shared*: one memory for all ports, of which a queue may hold at
//! most α times what is free (dynamic thresholds; Choudhury and Hahne, IEEE/ACM ToN 1998).
//!
//! Invariant: the packet in transmission is outside the buffer, and a packet fits if occupancy + its size ≤ capacity.

use crate::counters::DropReason;
use crate::registry::About;
use crate::switch::QueueView;
use crate::units::Bytes;

const PER_PORT: About = About {
    summary: "each port has its own memory",
    source: "the usual model of simulations",
    needs: &[],
    breaks: &[],
    restores: &[],
};
const SHARED: About = About {
    summary: "one memory for all ports, shared by dynamic thresholds",
    source: "Choudhury, Hahne: Dynamic queue length thresholds, IEEE/ACM ToN 1998",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::params! {
    /// A buffer of each port's own.
    pub struct PerPortParams {
        /// Bytes that may wait at a port; off means that only packets are counted. Source: 300 KB is the Canary and
        /// Vertigo setting for 10 Gb/s ports.
        pub size: Option<Bytes> = Some(Bytes(300_000)),
        /// Packets that may wait at a port; off means that only bytes are counted.
        pub packets: Option<u32> = None,
    }
}
crate::params! {
    /// One buffer for all ports.
    pub struct SharedParams {
        /// Bytes that may wait in the whole switch. Source: 9 MB is a Trident II's.
        pub size: Bytes = Bytes(9_000_000),
        /// A queue may hold at most alpha times the free bytes. Source: 1 is a common default; TLT's egress uses 1.
        pub alpha: f64 = 1.0,
    }
}

crate::registry! {
    /// Which buffer, with its parameters.
    place: "switch.buffer", question: "where may it wait, and how much?", default: PerPort,
    params: BufferParams;
    "per-port" => PerPort { PerPortParams; PER_PORT },
    "shared" => Shared { SharedParams; SHARED },
}

/// What one port may hold by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes, `u64::MAX` for no limit.
    pub bytes: u64,
    /// Packets, `u32::MAX` for no limit.
    pub packets: u32,
}

impl Capacity {
    /// No limit.
    pub const UNLIMITED: Capacity = Capacity { bytes: u64::MAX, packets: u32::MAX };

    /// Why a queue of `view` cannot hold `size` more bytes, if it cannot.
    #[inline]
    pub fn lacks_room(&self, view: &QueueView, size: u64) -> Option<DropReason> {
        let full = view.bytes + size > self.bytes || view.packets >= self.packets;
        if full { Some(DropReason::QueueFull) } else { None }
    }

    /// What the parameters allow one port.
    pub fn new(params: &BufferParams) -> Capacity {
        match params {
            BufferParams::PerPort(p) => {
                Capacity { bytes: p.size.map_or(u64::MAX, Bytes::get), packets: p.packets.unwrap_or(u32::MAX) }
            }
            BufferParams::Shared(_) => Capacity::UNLIMITED,
        }
    }
}

/// The memory of a whole switch: counts what all its ports hold.
#[derive(Clone, Debug)]
pub struct Memory {
    size: u64,
    used: u64,
    /// α in 1/1024, so that no float decides.
    alpha: u64,
}

impl Memory {
    /// The memory that the parameters describe; unlimited (and still counted) with per-port buffers.
    pub fn new(params: &BufferParams) -> Memory {
        match params {
            BufferParams::PerPort(_) => Memory { size: 1 << 40, used: 0, alpha: 1 << 20 },
            BufferParams::Shared(p) => Memory { size: p.size.get(), used: 0, alpha: (p.alpha * 1024.0) as u64 },
        }
    }
    /// Whether `size` more bytes fit a queue that holds `queued`.
    #[inline]
    pub fn test(&self, queued: u64, size: u64) -> Option<DropReason> {
        let free = self.size - self.used;
        let over = (queued + size) << 10 > self.alpha.saturating_mul(free) || size > free;
        if over { Some(DropReason::SharedBuffer) } else { None }
    }
    /// How many bytes must leave a queue that holds `queued` before `size` more fit: its own bytes count twice, once
    /// against its share and once for what the share is of.
    pub fn missing(&self, queued: u64, size: u64) -> u64 {
        let free = self.size - self.used;
        let over = ((queued + size) << 10).saturating_sub(self.alpha.saturating_mul(free));
        over.div_ceil(self.alpha.saturating_add(1 << 10)).max(size.saturating_sub(free))
    }
    /// What a port of this capacity can hold at most, all others being empty.
    pub fn reach(&self, capacity: Capacity) -> Capacity {
        let share = (u128::from(self.size) * u128::from(self.alpha) / u128::from(self.alpha + 1024)) as u64;
        Capacity { bytes: capacity.bytes.min(share), ..capacity }
    }
    /// Bytes came in.
    #[inline]
    pub fn take(&mut self, size: u64) {
        self.used += size;
    }
    /// Bytes left.
    #[inline]
    pub fn give(&mut self, size: u64) {
        self.used -= size;
    }
    /// Bytes that wait in the whole switch.
    pub fn used(&self) -> u64 {
        self.used
    }
    /// Bytes that are free.
    pub fn free(&self) -> u64 {
        self.size - self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With α = 1 a single hot queue settles at half the memory (Choudhury and Hahne, eq. 2: α/(1+α)).
    #[test]
    fn one_hot_queue_takes_alpha_over_one_plus_alpha() {
        for (alpha, share) in [(1.0, 0.5), (2.0, 2.0 / 3.0), (0.5, 1.0 / 3.0)] {
            let mut memory = Memory::new(&BufferParams::Shared(SharedParams { size: Bytes(3_000_000), alpha }));
            let mut queued = 0;
            while memory.test(queued, 1_500).is_none() {
                memory.take(1_500);
                queued += 1_500;
            }
            let expected = 3_000_000.0 * share;
            assert!((queued as f64 - expected).abs() <= 3_000.0, "{queued} against {expected}");
        }
    }
}
