//! Trimming: a packet for which there is no room loses its payload, and its headers go on before
//! all data (NDP, SIGCOMM 2017; Ultra Ethernet as uet-htsim has it).
//!
//! Either the packet that arrives is trimmed, or the newest that waits, in whose place the one that
//! arrives then joins even where there is not quite room. Which of the two is a lot's: equal
//! senders would otherwise lose all, or nothing.

use crate::registry::{About, PathProperty, Reason, Signal};
use crate::switch::site::Auto;
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "its payload is cut off, and its headers go on before all data",
    source: "NDP, SIGCOMM 2017; uet-htsim",
    restores: &[PathProperty::ControlNeverWaits],
    provides: &[Signal::TrimmedHeaders],
    answers: Some(Reason::SwitchDrops),
    ..About::PLAIN
};

crate::choice! {
    /// Whose payload is cut off.
    pub enum TrimChoice {
        /// The payload of the packet that arrives, or of the newest that waits, with equal chance.
        Lot = "lot",
        /// The payload of the packet that arrives.
        Arriving = "arriving",
        /// The payload of the newest that waits.
        Newest = "newest",
    }
}

crate::params! {
    /// The keys of trimming: a refused packet goes on without its payload.
    pub struct TrimParams {
        /// Bytes on the wire of what is left; at least its headers. Source: 64, uet-htsim; switches
        /// have 128 (SAI) or 256 (Spectrum-4).
        pub size: Bytes = Bytes(64),
        /// Whose payload is cut off. Source: a lot, uet-htsim.
        pub choice: TrimChoice = TrimChoice::Lot,
        /// Bytes that packets without payload may take at a port, beside its buffer. "auto" is
        /// twice the port's buffer. Source: uet-htsim.
        #[within(1..)]
        pub headers: Auto<Bytes> = Auto::Auto,
    }
}
