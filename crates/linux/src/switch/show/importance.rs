//! The importance shims of ports, as lines of the table and as metrics.
//!
//! Invariant: a port without a shim has neither.

use crate::switch::importance::Reading;
use crate::switch::reading::PortReading;
use std::fmt::Write;

/// Writes a metric: its name, its help, its type, and each value behind its labels.
pub(super) type Metric<'a> = dyn FnMut(&str, &str, &str, Vec<(String, f64)>) + 'a;

/// Writes the lines of a port.
pub(super) fn lines(out: &mut String, importance: Option<&Reading>) {
    let Some(it) = importance else { return };
    let _ = writeln!(
        out,
        "  tlt: {} flows in the table, {} bytes cached; data packets: {} unimportant, {} \
         important, {} green, {} forced ({} refused)",
        it.flows,
        it.cached_bytes,
        it.unimportant.packets,
        it.important.packets,
        it.green.packets,
        it.forced.packets,
        it.refused
    );
    let _ = writeln!(
        out,
        "  tlt: echoes: {} marked, {} sent, {} received; {} packets consumed, {} DSACK blocks \
         removed, {} flows rearmed",
        it.echoes_marked,
        it.echoes_sent,
        it.echoes_received,
        it.consumed,
        it.dsacks_stripped,
        it.rearmed
    );
    if it.untracked_packets > 0 {
        let _ = writeln!(out, "  tlt: packets of untracked flows: {}", it.untracked_packets);
    }
    for (reason, count) in &it.untracked {
        let _ = writeln!(out, "  tlt: flows untracked, {reason}: {count}");
    }
}

/// A metric with one value a port: its name, its help, its value.
type Plain = (&'static str, &'static str, fn(&Reading) -> u64);

/// Writes the metrics of all ports that have a shim.
pub(super) fn metrics(ports: &[PortReading], metric: &mut Metric<'_>) {
    let all: Vec<(&str, &Reading)> =
        ports.iter().filter_map(|p| Some((&p.name[..], p.importance.as_ref()?))).collect();
    if all.is_empty() {
        return;
    }
    let plain = |value: fn(&Reading) -> u64| -> Vec<(String, f64)> {
        all.iter().map(|(name, it)| (format!("{{port=\"{name}\"}}"), value(it) as f64)).collect()
    };
    let gauges: [Plain; 2] = [
        ("flows", "Flows in the table of a port's shim.", |it| it.flows as u64),
        ("cached_bytes", "Unacknowledged payload that a shim keeps.", |it| it.cached_bytes as u64),
    ];
    for (name, help, value) in gauges {
        metric(&format!("importance_{name}"), help, "gauge", plain(value));
    }
    let counters: [Plain; 9] = [
        ("refused", "Forced packets that a shim could not send.", |it| it.refused),
        ("echoes_marked", "Acknowledgements marked as echoes.", |it| it.echoes_marked),
        ("echoes_sent", "Echoes that a shim sent itself.", |it| it.echoes_sent),
        ("echoes_received", "Echoes that came in.", |it| it.echoes_received),
        ("consumed", "Packets for a host that its shim consumed.", |it| it.consumed),
        ("dsacks_stripped", "DSACK blocks removed.", |it| it.dsacks_stripped),
        ("rearmed", "Important packets without an echo in time.", |it| it.rearmed),
        ("tracked_flows", "Flows that a shim has tracked.", |it| it.tracked),
        ("untracked_packets", "TCP packets of flows that a shim does not track.", |it| {
            it.untracked_packets
        }),
    ];
    for (name, help, value) in counters {
        metric(&format!("importance_{name}_total"), help, "counter", plain(value));
    }
    data_metrics(&all, metric);
    let untracked = all.iter().flat_map(|(name, it)| {
        let labels = move |why: &str| format!("{{port=\"{name}\",reason=\"{why}\"}}");
        it.untracked.iter().map(move |(why, count)| (labels(why), *count as f64))
    });
    let help = "Flows that a shim does not track, by reason.";
    metric("importance_untracked_flows_total", help, "counter", untracked.collect());
}

/// Packets and bytes of data, by kind.
fn data_metrics(all: &[(&str, &Reading)], metric: &mut Metric<'_>) {
    let by_kind = |value: fn(&crate::switch::importance::Data) -> u64| -> Vec<(String, f64)> {
        let of = |(name, it): &(&str, &Reading)| {
            it.data().map(|(kind, data)| {
                (format!("{{port=\"{name}\",kind=\"{kind}\"}}"), value(&data) as f64)
            })
        };
        all.iter().flat_map(of).collect()
    };
    let packets = by_kind(|data| data.packets);
    let help = "Data packets, by the mark of the port's shim.";
    metric("importance_data_packets_total", help, "counter", packets);
    let bytes = by_kind(|data| data.bytes);
    metric("importance_data_bytes_total", "The payload of these packets.", "counter", bytes);
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
