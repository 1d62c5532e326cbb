//! Ultra Ethernet transport's parameters, and a control law without any answer here: its
//! window ([`super::nscc`]) and its credit are run by its own endpoints (`sim::endpoint::uet`),
//! which number packets.
//!
//! The defaults are those of uet-htsim, the consortium's simulator; by its own note only the
//! specification is authoritative.

use super::{Demands, Echo, Family, Law, Shared};
use crate::edge::entropy::UetPathChoice;
use crate::registry::{About, PathProperty, Signal};
use crate::switch::site::Auto;
use crate::{Bytes, Time};

pub(super) const ABOUT: About = About {
    summary: "packets take any path and come in any order; a window, credit, or both",
    source: "Ultra Ethernet 1.0 as uet-htsim has it; NSCC, RCCC",
    needs: &[PathProperty::ControlNeverWaits],
    breaks: &[PathProperty::FifoPerFlow, PathProperty::FifoPerFlowcell],
    provides: &[Signal::Priorities],
    reads: &[Signal::Marks, Signal::TrimmedHeaders],
    alone: &[Signal::Priorities, Signal::Marks, Signal::TrimmedHeaders],
    ..About::PLAIN
};

crate::choice! {
    /// The control of how much may be in flight.
    pub enum UetControl {
        /// The sender's window, by marks and delay (NSCC).
        Nscc = "nscc",
        /// The receiver's credit (RCCC).
        Rccc = "rccc",
        /// Both: the smaller counts.
        Both = "both",
        /// A window that nothing changes: for tests of all else.
        Constant = "constant",
    }
}

impl UetControl {
    /// Whether a window follows the network.
    pub fn has_window(self) -> bool {
        matches!(self, UetControl::Nscc | UetControl::Both)
    }
    /// Whether receivers give credit.
    pub fn has_credit(self) -> bool {
        matches!(self, UetControl::Rccc | UetControl::Both)
    }
}

crate::params! {
    /// The keys of the Ultra Ethernet transport (1.0, as uet-htsim has it).
    pub struct UetParams {
        /// The control of how much may be in flight. Source: the sender's window is uet-htsim's
        /// default.
        pub uet_control: UetControl = UetControl::Nscc,
        /// How packets' paths are chosen; give switches the path "ecmp", which hashes the value.
        /// Source: uet-htsim.
        pub uet_path_choice: UetPathChoice = UetPathChoice::Mixed,
        /// How many values there are; a power of two. Source: uet-htsim; its tests have 128.
        #[within(1..=65_536)]
        pub uet_paths: u32 = 64,
        /// An ACK at the latest when so many bytes have come since the last. "auto" is 16,384, and
        /// a quarter of the first window where that is less: on slow or short links a sender would
        /// wait for each ACK. Source: 16,384 bytes (uet-htsim); 4,000 is an ACK for each packet.
        #[within(1..)]
        pub uet_ack_bytes: Auto<Bytes> = Auto::Auto,
        /// The window of a new connection, and the credit that it begins with. "auto" is 1.5
        /// times the bandwidth-delay product, which is also the largest. Source: uet-htsim.
        #[within(1..)]
        pub uet_window: Auto<Bytes> = Auto::Auto,
        /// The queueing delay that the window aims at. "auto" is three quarters of the longest
        /// round trip where switches trim, and all of it where they drop. Source: uet-htsim.
        #[within(1_000..)]
        pub uet_target_delay: Auto<Time> = Auto::Auto,
        /// From a packet's sending to its timeout; it does not back off. "auto" is 15 us and six
        /// times what a queue takes, of a bandwidth-delay product where switches trim and of five
        /// where they drop. Source: uet-htsim.
        #[within(1_000_000..)]
        pub uet_rto: Auto<Time> = Auto::Auto,
        /// Repair losses by how many packets came beyond them, and by probes (SLEEK): for switches
        /// that drop. Source: uet-htsim has it off.
        pub uet_sleek: bool = false,
    }
}

/// Nothing: window and credit are its endpoints'.
#[derive(Clone, Copy, Debug)]
pub struct Uet;

impl Law for Uet {
    type Params = UetParams;
    type Constants = ();

    fn demands(_: &UetParams) -> Demands {
        Demands { family: Family::Uet, echo: Echo::Precise, ..Demands::default() }
    }
    fn check(params: &UetParams) -> Option<(&'static str, String)> {
        let paths = params.uet_paths;
        let reason = format!("{paths} is no power of two");
        (!paths.is_power_of_two()).then_some(("uet-paths", reason))
    }
    fn constants(_: &UetParams) {}
    fn new(_: u64, _: &Shared<()>) -> Uet {
        Uet
    }
}
