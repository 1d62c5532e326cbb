//! Keys that are written and change nothing, since what they are of is not there: in one variant
//! they may be for another, in none they are a slip.
//!
//! Invariant: no key that is left at its default is ever reported.

use crate::choices::RdmaChoices;
use crate::rdma::RdmaParams;
use crate::settings::capture::CaptureParams;
use crate::settings::{HostParams, NicParams, Settings};
use millpond_core::congestion::Family;
use millpond_core::params::Params;
use millpond_core::registry::Choice;
use millpond_core::switch::buffer::BufferParams;
use millpond_core::switch::pause::PauseParams;
use millpond_core::switch::queue::QueueParams;

/// A key that is written, and why nothing uses it; `None`: something does.
pub(crate) type Written = (String, Option<String>);

/// Those of the keys that may be idle.
pub(crate) fn written(s: &Settings) -> Vec<Written> {
    let mut list = Vec::new();
    priorities(s, &mut list);
    queue_pairs(s, &mut list);
    let mut note = |is_written: bool, key: &str, is_used: bool, why: &str| {
        if is_written {
            list.push((key.to_string(), (!is_used).then(|| why.to_string())));
        }
    };
    let (capture, pcap) = (&s.capture, !s.capture.pcap.is_empty());
    let unwritten = "no packets are captured (capture.pcap)";
    note(capture.snaplen != CaptureParams::default().snaplen, "capture.snaplen", pcap, unwritten);
    note(capture.tcp_timestamps, "capture.tcp-timestamps", pcap, unwritten);
    let streams =
        s.traffic.is_empty() || s.kinds().any(|kind| kind.demands().family != Family::Rdma);
    let of_nics = "queue pairs hand down packet by packet, one at a time";
    let (segment, limit) = (s.host.segment_offload, s.nic.params.per_flow_limit);
    let merges = streams || s.edge.virtual_switch.kind() != "none";
    note(segment != HostParams::default().segment_offload, "host.segment-offload", merges, of_nics);
    note(limit != NicParams::default().per_flow_limit, "host.nic.per-flow-limit", streams, of_nics);
    list
}

/// Priorities of traffic, where nothing asks for them, or the transport sets its own.
fn priorities(s: &Settings, list: &mut Vec<Written>) {
    let switch = &s.switch;
    let serves = matches!(switch.queue, QueueParams::StrictPriority(_))
        || matches!(switch.buffer, BufferParams::Pools(_))
        || matches!(switch.pause, PauseParams::Pfc(_));
    for (t, kind) in s.traffic.iter().zip(s.kinds()).filter(|(t, _)| t.common.priority > 0) {
        let why = match kind.demands().family {
            Family::Homa => {
                Some(format!("transport \"{}\" sets its packets' priorities", kind.kind()))
            }
            _ if !serves => Some(format!(
                "switch.queue \"{}\" serves by none, and nothing else asks for it",
                switch.queue.kind()
            )),
            _ => None,
        };
        list.push((format!("traffic.{}.priority", t.name()), why));
    }
}

/// The table `[rdma]`, where nothing runs over queue pairs.
fn queue_pairs(s: &Settings, list: &mut Vec<Written>) {
    let why = (!s.has_queue_pairs()).then(|| "no transport has queue pairs".to_string());
    let defaults = RdmaParams::default();
    let changed =
        s.rdma.keys().iter().enumerate().filter(|(i, _)| s.rdma.get(*i) != defaults.get(*i));
    list.extend(changed.map(|(_, key)| (format!("rdma.{}", key.name()), why.clone())));
    if s.rdma_choices != RdmaChoices::default() {
        list.push(("rdma.recovery".into(), why));
    }
}
