//! The importance shims of ports, as lines of the table and as metrics.
//!
//! Invariant: a port without a shim has neither.

use crate::metrics::{Metric, Page, by};
use crate::switch::importance::Reading;
use std::fmt::Write;

/// Writes the lines of a port.
pub(super) fn lines(out: &mut String, importance: Option<&Reading>) {
    let Some(reading) = importance else { return };
    let _ = writeln!(
        out,
        "  tlt: {} flows in the table, {} bytes cached; data packets: {} unimportant, {} \
         important, {} green, {} forced ({} refused)",
        reading.flows,
        reading.cached_bytes,
        reading.unimportant.packets,
        reading.important.packets,
        reading.green.packets,
        reading.forced.packets,
        reading.refused
    );
    let _ = writeln!(
        out,
        "  tlt: echoes: {} marked, {} sent, {} received; {} packets consumed, {} DSACK blocks \
         removed, {} flows rearmed",
        reading.echoes_marked,
        reading.echoes_sent,
        reading.echoes_received,
        reading.consumed,
        reading.dsacks_stripped,
        reading.rearmed
    );
    if reading.untracked_packets > 0 {
        let _ = writeln!(out, "  tlt: packets of untracked flows: {}", reading.untracked_packets);
    }
    for (reason, count) in &reading.untracked {
        let _ = writeln!(out, "  tlt: flows untracked, {reason}: {count}");
    }
}

const METRICS: [Metric<Reading>; 11] = [
    ("importance_flows", "Flows in the table of a port's shim.", |it| it.flows as f64),
    ("importance_cached_bytes", "Unacknowledged payload that a shim keeps.", |it| {
        it.cached_bytes as f64
    }),
    ("importance_refused_total", "Forced packets that a shim could not send.", |it| {
        it.refused as f64
    }),
    ("importance_echoes_marked_total", "Acknowledgements marked as echoes.", |it| {
        it.echoes_marked as f64
    }),
    ("importance_echoes_sent_total", "Echoes that a shim sent itself.", |it| it.echoes_sent as f64),
    ("importance_echoes_received_total", "Echoes that came in.", |it| it.echoes_received as f64),
    ("importance_consumed_total", "Packets for a host that its shim consumed.", |it| {
        it.consumed as f64
    }),
    ("importance_dsacks_stripped_total", "DSACK blocks removed.", |it| it.dsacks_stripped as f64),
    ("importance_rearmed_total", "Important packets without an echo in time.", |it| {
        it.rearmed as f64
    }),
    ("importance_tracked_flows_total", "Flows that a shim has tracked.", |it| it.tracked as f64),
    (
        "importance_untracked_packets_total",
        "TCP packets of flows that a shim does not track.",
        |it| it.untracked_packets as f64,
    ),
];

/// Writes the metrics of ports' shims, if there are any.
pub(super) fn metrics(ports: &[(String, &Reading)], page: &mut Page) {
    if ports.is_empty() {
        return;
    }
    page.all(ports, &METRICS);
    let kinds = Reading::default().data().map(|(kind, _)| kind);
    let packets = by(ports, "kind", kinds, |it| it.data().map(|(_, data)| data.packets));
    let help = "Data packets, by the mark of the port's shim.";
    page.metric("importance_data_packets_total", help, packets);
    let bytes = by(ports, "kind", kinds, |it| it.data().map(|(_, data)| data.bytes));
    page.metric("importance_data_bytes_total", "The payload of these packets.", bytes);
    let untracked = ports.iter().flat_map(|(labels, it)| {
        it.untracked.iter().map(move |(why, n)| (format!("{labels},reason=\"{why}\""), *n as f64))
    });
    let help = "Flows that a shim does not track, by reason.";
    page.metric("importance_untracked_flows_total", help, untracked);
}

#[cfg(test)]
pub(super) fn sample() -> Reading {
    use crate::switch::importance::Data;
    Reading {
        flows: 3,
        cached_bytes: 4096,
        unimportant: Data { packets: 70, bytes: 70_000 },
        forced: Data { packets: 5, bytes: 1 },
        consumed: 11,
        untracked: [("no-echo".to_string(), 2)].into_iter().collect(),
        untracked_packets: 9,
        ..Reading::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_metrics_have_every_counter() {
        let mut table = String::new();
        lines(&mut table, Some(&sample()));
        for text in [
            "tlt: 3 flows in the table, 4096 bytes cached; data packets: 70 unimportant",
            "5 forced (0 refused)",
            "11 packets consumed",
            "tlt: packets of untracked flows: 9",
            "tlt: flows untracked, no-echo: 2",
        ] {
            assert!(table.contains(text), "{text:?} not in {table}");
        }
        lines(&mut table, None);
        assert_eq!(table.lines().count(), 4);
    }
}
