//! Results of a lab's limits, in the form of the simulator's.
//!
//! Invariant: a limit's counters are of the whole run; its rate is over the measured time.

use crate::totals;
use millpond_lab::QueueReading;
use millpond_results::Limit;
use millpond_scenario::plan::Plan;
use std::collections::BTreeMap;
use std::time::Instant;

/// The counters of all queues at a time, each with the number of its limit.
pub(crate) type Reading = (Instant, Vec<(u16, QueueReading)>);

fn add(limit: &mut Limit, of: &QueueReading) {
    let egress = u64::from(of.direction == "egress");
    let arriving = 1 - egress;
    limit.packets += of.packets;
    limit.bytes += of.bytes;
    limit.decided += of.decided;
    limit.marked += of.marked;
    limit.marked_bytes += of.marked_bytes;
    limit.reduced += of.reduced * egress;
    limit.local_drops += of.dropped * egress;
    limit.local_drop_bytes += of.dropped_bytes * egress;
    limit.dropped += of.dropped * arriving;
    limit.dropped_bytes += of.dropped_bytes * arriving;
    limit.bypassed += of.bypassed;
}

/// A mean over hosts, each with its packets.
fn mean(parts: &[(&QueueReading, Option<f64>)]) -> Option<f64> {
    let known = parts.iter().filter_map(|(of, mean)| Some((of.packets as f64, (*mean)?)));
    let (weight, sum) = known.fold((0.0, 0.0), |(w, s), (n, mean)| (w + n, s + n * mean));
    (weight > 0.0).then(|| sum / weight)
}

/// Bytes that have passed.
fn passed(of: &[&QueueReading]) -> u64 {
    of.iter().map(|it| it.bytes.saturating_sub(it.dropped_bytes)).sum()
}

/// Each limit and direction, from the counters at the end of the warm-up and at the end.
pub(crate) fn limits(plan: &Plan, warm: &Reading, end: &Reading) -> Vec<Limit> {
    let by_limit = |all: &'_ Reading| {
        let mut by: BTreeMap<(u16, bool), Vec<QueueReading>> = BTreeMap::new();
        for (number, it) in &all.1 {
            by.entry((*number, it.direction == "ingress")).or_default().push(it.clone());
        }
        by
    };
    let before = by_limit(warm);
    let seconds = end.0.saturating_duration_since(warm.0).as_secs_f64();
    let one = |((number, ingress), queues): ((u16, bool), Vec<QueueReading>)| {
        let mut limit = totals::limit(plan, number, ingress);
        let queues: Vec<&QueueReading> = queues.iter().collect();
        queues.iter().for_each(|it| add(&mut limit, it));
        let earlier = before.get(&(number, ingress)).map(|all| all.iter().collect());
        let bytes = passed(&queues).saturating_sub(earlier.map_or(0, |all: Vec<_>| passed(&all)));
        limit.rate_gbps = (seconds > 0.0).then(|| bytes as f64 * 8e-9 / seconds);
        let of = |value: fn(&QueueReading) -> Option<f64>| {
            let parts: Vec<_> = queues.iter().map(|it| (*it, value(it))).collect();
            mean(&parts)
        };
        let bytes = |it: &QueueReading| it.credit_mean.filter(|_| it.credit_unit == "bytes");
        limit.credit_mean_bytes = of(bytes);
        limit.rtt_mean_us = of(|it| it.rtt_us_mean);
        limit
    };
    by_limit(end).into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use std::time::Duration;

    /// A queue that one host has, with these counts of packets of 1000 bytes.
    fn queue(direction: &str, packets: u64, dropped: u64) -> QueueReading {
        let mut queue = QueueReading::default();
        (queue.direction, queue.packets, queue.dropped) = (direction.into(), packets, dropped);
        (queue.bytes, queue.dropped_bytes) = (packets * 1000, dropped * 1000);
        (queue.credit_mean, queue.credit_unit) = (Some(packets as f64), "bytes".into());
        queue
    }

    #[test]
    fn hosts_are_summed_and_rates_are_of_the_measured_time() {
        let text = "duration = \"1s\"\n\
                    [topology]\nkind = \"single-switch\"\nhosts = 4\n[[traffic]]\nkind = \
                    \"permutation\"\nsize = 1\n[[limit]]\nname = \"a\"\nhosts = [\"0..1\"]\n\
                    direction = \"both\"\nrate = \"10Mbps\"\n";
        let plan = Scenario::parse("limits", text).unwrap().plan(None).unwrap();
        let began = Instant::now();
        let warm = (began, vec![(0, queue("egress", 100, 0)), (0, queue("egress", 300, 100))]);
        let end = vec![
            (0, queue("egress", 200, 0)),
            (0, queue("egress", 600, 200)),
            (0, queue("ingress", 50, 5)),
        ];
        let end = (began + Duration::from_secs(2), end);
        let all = limits(plan.detail(), &warm, &end);
        let [out, arriving] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((out.name.as_str(), out.hosts, out.packets), ("a", 2, 800));
        assert_eq!((out.local_drops, out.dropped), (200, 0));
        // 600 packets passed at the end, and 300 when the warm-up ended.
        assert_eq!(out.rate_gbps, Some(300.0 * 1000.0 * 8e-9 / 2.0));
        assert_eq!(out.credit_mean_bytes, Some((200.0 * 200.0 + 600.0 * 600.0) / 800.0));
        assert_eq!((arriving.local_drops, arriving.dropped), (0, 5));
    }
}
