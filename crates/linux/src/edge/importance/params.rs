//! Parameters of a shim.
//!
//! Invariant: the defaults bound the shim's memory to `cache_total` and about a kilobyte a flow.

use millpond_core::Time;
use millpond_core::importance::{First, TltParams};

/// The parameters of a [`Shim`](super::Shim).
#[derive(Clone, Debug)]
pub struct ShimParams {
    /// The machine's own. The shim cannot find a window's last packet: set `first` to "first".
    pub tlt: TltParams,
    /// How long the shim waits after an echo for the host to send data of the flow. It must exceed
    /// the host's delay between an acknowledgement and the data that it lets out.
    pub delta: Time,
    /// How long the shim waits for the host to acknowledge an important packet before it sends an
    /// echo itself.
    pub echo_wait: Time,
    /// An important packet without an echo counts as lost after this time; the host's next data
    /// packet is important then. It must exceed the round-trip time, and be less than the host's
    /// shortest retransmission timeout.
    pub clock_timeout: Time,
    /// So many important packets in a row without an echo end the tracking of a flow.
    pub unanswered_max: u8,
    /// Memory for the unacknowledged payload of a flow, in bytes. Payload beyond it leaves green.
    pub cache_max: usize,
    pub cache_total: usize,
    /// Flows that are tracked at most. Flows beyond it leave green.
    pub flows_max: usize,
    /// The shim forgets a flow that is silent for longer. The flow's later packets leave green.
    pub idle: Time,
}

impl Default for ShimParams {
    fn default() -> Self {
        ShimParams {
            tlt: TltParams { first: First::First, ..TltParams::default() },
            delta: Time::from_us(30),
            echo_wait: Time::from_us(10),
            clock_timeout: Time::from_ms(100),
            unanswered_max: 3,
            cache_max: 2 << 20,
            cache_total: 256 << 20,
            flows_max: 1 << 16,
            idle: Time::from_s(600),
        }
    }
}
