//! What is counted, and the closed list of reasons for which a packet may be dropped.
//!
//! Invariant: every packet that is injected is delivered, dropped for exactly one of these reasons, or in flight.

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// It did not fit the port's own buffer.
    QueueFull,
    /// It did not fit its share of a shared buffer.
    SharedBuffer,
    /// An admission policy refused it although it would have fitted.
    Early,
    /// Its color was refused beyond the color threshold.
    Color,
    /// Its queue refused it and no other would take it.
    NoDeflection,
    /// It fitted the queue as the switch knew it, and not the queue as it was.
    OverflowStale,
    /// It was removed from a queue for a more important one.
    Evicted,
    /// It crossed too many switches.
    Ttl,
    /// The receiving host's ring was full.
    ReceiveRing,
    /// A bandwidth limit refused it.
    Limit,
    /// Its link was down.
    LinkDown,
    /// A test dropped it on purpose.
    Injected,
}

impl DropReason {
    /// All of them, in the order of reports.
    pub const ALL: [DropReason; 12] = [
        DropReason::QueueFull,
        DropReason::SharedBuffer,
        DropReason::Early,
        DropReason::Color,
        DropReason::NoDeflection,
        DropReason::OverflowStale,
        DropReason::Evicted,
        DropReason::Ttl,
        DropReason::ReceiveRing,
        DropReason::Limit,
        DropReason::LinkDown,
        DropReason::Injected,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue-full",
            DropReason::SharedBuffer => "shared-buffer",
            DropReason::Early => "early",
            DropReason::Color => "color",
            DropReason::NoDeflection => "no-deflection",
            DropReason::OverflowStale => "overflow-stale",
            DropReason::Evicted => "evicted",
            DropReason::Ttl => "ttl",
            DropReason::ReceiveRing => "receive-ring",
            DropReason::Limit => "limit",
            DropReason::LinkDown => "link-down",
            DropReason::Injected => "injected",
        }
    }
}
