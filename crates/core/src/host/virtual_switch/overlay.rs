//! A scheme by which a host's virtual switch and those of other hosts hold senders back: pauses,
//! credits or rates.
//!
//! Invariant: an overlay's deadline is no later than it has something to do.

use super::Port;
use super::queue::Queue;
use crate::flow_queues::Verdict;
use crate::overlay::{Change, FlowKey, Record};
use crate::packet::{HostId, Packet, PacketId};
use crate::units::Time;

/// A flow from here, as records name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub to: HostId,
    pub key: FlowKey,
}

/// A switch's records for others, and its answer to theirs.
pub(super) trait Overlay: Send {
    fn on_record(&mut self, now: Time, from: HostId, record: &Record);
    /// A state that lasts for a time may be over.
    fn expire(&mut self, now: Time, ports: &mut [Port]);
    /// When to be called for that.
    fn deadline(&self) -> Option<Time>;
    fn age(&mut self, _now: Time) {}
    /// Data has come for a port, whose queue has taken or refused it; flow queues give a verdict.
    fn arrived(
        &mut self,
        now: Time,
        port: u16,
        packet: &Packet,
        queue: &Queue,
        verdict: Option<&Verdict<PacketId>>,
    );
    fn take_signals(&mut self, now: Time, port: u16, queue: &mut Queue);
    /// Whether what has come and gone since it was last asked changes nothing: it has no record to
    /// send, no change to report, and the same deadline.
    fn is_quiet(&self, _now: Time) -> bool {
        false
    }
    /// The records to be sent now, and to whom. To be asked until there are no more.
    fn next(&mut self, now: Time, ports: &mut [Port]) -> Option<(HostId, Vec<Record>)>;
    /// How many packets a flow from here may hand down, of those that it would; none: it waits.
    fn admit(&mut self, _now: Time, _flow: &Leaving, wants: u32) -> u32 {
        wants
    }
    /// It has handed down so many.
    fn handed_down(&mut self, now: Time, flow: &Leaving, packets: u32);
    fn is_held(&self, flow: &Leaving) -> bool;
    /// A target that may no longer, or may again, send. To be asked until there is no more.
    fn next_change(&mut self, now: Time) -> Option<Change>;
    /// Packets that came without leave.
    fn late(&self) -> u64 {
        0
    }
}
