//! Runs scenarios written in a test and keeps their records.

mod records;

use millpond_core::Time;
use millpond_core::congestion::{Family, TransportKind};
use millpond_core::packet::Body;
use millpond_core::registry::Choice;
use millpond_results::{FlowRecord, PacketRecord};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_sim::Outcome;
use std::sync::atomic::{AtomicU32, Ordering};

pub use records::Records;

/// The control laws of queue pairs, as a scenario names them.
pub fn queue_pairs() -> Vec<&'static str> {
    let kinds = TransportKind::place().mechanisms.iter().map(|mechanism| mechanism.kind);
    let family = |kind| TransportKind::of_kind(kind).expect("it is registered").demands().family;
    kinds.filter(|kind| family(kind) == Family::Rdma).collect()
}

/// A file that is removed with the test.
pub struct File(pub std::path::PathBuf);

impl File {
    /// A rank program's file.
    pub fn new(name: &str, text: &str) -> File {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("millpond-{name}-{process}-{number}.goal"));
        std::fs::write(&path, text).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The plan of a scenario's text.
pub fn plan(text: &str, set: &[(&str, &str)]) -> Plan {
    let set: Vec<(String, String)> =
        set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let scenario = Scenario::parse("test", text).unwrap_or_else(|e| panic!("{e}"));
    scenario.plan(None, &set, None).unwrap_or_else(|e| panic!("{e}"))
}

/// The plan of a scenario's text with exact hosts, for what is computed by hand.
pub fn exact(text: &str, set: &[(&str, &str)]) -> Plan {
    plan(text, &[&[("host.jitter", "off")], set].concat())
}

/// Runs it; the audit must hold.
pub fn simulate(plan: &Plan, threads: usize) -> (Outcome, Records) {
    let mut records = Records::default();
    let outcome = match millpond_sim::run(plan, threads, &mut records) {
        Ok(outcome) => outcome,
        Err(never) => match never {},
    };
    assert!(outcome.audit.is_conserved(), "{:?}", outcome.audit);
    (outcome, records)
}

/// Everything that can be seen of a run.
pub fn fingerprint(plan: &Plan, threads: usize) -> String {
    let (outcome, records): (Outcome, Records) = simulate(plan, threads);
    let Outcome {
        simulated,
        audit,
        hosts,
        marked,
        deflected,
        pause_frames,
        pairs,
        delivered,
        sampled,
        queue_bytes_max,
        limits,
        counters,
        cores,
        standstill,
        unmatched,
        ..
    } = outcome;
    let kept = (audit.injected, audit.delivered, audit.dropped, audit.in_flight, audit.hops);
    format!(
        "{simulated:?} {kept:?} {hosts:?} {marked} {deflected} {pause_frames} {pairs:?} \
         {delivered:?} {sampled:?} {queue_bytes_max} {limits:?} {counters:?} {cores:?} \
         {standstill:?} {unmatched:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        records.flows,
        records.queries,
        records.rtts,
        records.queues,
        records.connections,
        records.packets.iter().map(seen).collect::<Vec<_>>(),
        records.pauses,
        records.ranks,
        records.collectives
    )
}

/// Equal, or where they first are not.
pub fn assert_same(a: &str, b: &str, what: &str) {
    let differs =
        a.bytes().zip(b.bytes()).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    let around =
        |text: &str| text[differs.saturating_sub(300)..(differs + 100).min(text.len())].to_string();
    assert!(a == b, "{what}: at {differs}:\n{}\n---\n{}", around(a), around(b));
}

/// A run with these settings is the same with several threads, in one partition, and with general
/// ports.
pub fn assert_nothing_changes(text: &str, set: &[(&str, &str)], threads: &[usize]) {
    let one = fingerprint(&plan(text, set), 1);
    for &threads in threads {
        assert_same(
            &one,
            &fingerprint(&plan(text, set), threads),
            &format!("{set:?}: {threads} threads"),
        );
    }
    for (key, value) in [("engine.partitions", "one"), ("engine.ports", "general")] {
        let other = plan(text, &[set, &[(key, value)]].concat());
        assert_same(&one, &fingerprint(&other, 2), &format!("{set:?}: {key} = {value}"));
    }
}

/// The fields of a packet that a capture shows: slots of connections, which a packet carries too,
/// are partitions' own.
fn seen(record: &PacketRecord) -> impl std::fmt::Debug + use<> {
    let p = record.packet;
    let ack = if let Body::Ack { ack, .. } = p.body { ack } else { 0 };
    (
        record.at,
        record.tap,
        record.outgoing,
        p.flow,
        p.src,
        p.dst,
        (p.kind(), p.seq(), ack, p.payload, p.size, p.flags, p.class, p.ttl, p.rank),
        record.records.clone(),
    )
}

/// The FCT of each flow in the order of the flows' numbers; all are complete.
pub fn fcts(records: &Records) -> Vec<Time> {
    let mut flows: Vec<&FlowRecord> = records.flows.iter().collect();
    flows.sort_by_key(|flow| flow.flow);
    flows.iter().map(|flow| flow.fct().expect("every flow is complete")).collect()
}
