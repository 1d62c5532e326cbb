//! Worlds of real kernels. They need one, which `make setup-virtual` builds.

use millpond_core::Time;
use millpond_lab::Record;
use millpond_lab::load::Sink;
use millpond_results::{ConnectionRecord, FlowRecord, QueryRecord};
use millpond_scenario::Scenario;
use millpond_virtual::{Error, Outcome, Settings, Watch, kernels, run};

/// Everything that a run tells.
#[derive(Default)]
struct Told {
    flows: Vec<FlowRecord>,
    queries: Vec<QueryRecord>,
    rtts: Vec<Time>,
    connections: Vec<ConnectionRecord>,
    records: Vec<Record>,
}

impl Sink for Told {
    fn flow(&mut self, record: FlowRecord) -> bool {
        self.flows.push(record);
        true
    }
    fn query(&mut self, record: QueryRecord) -> bool {
        self.queries.push(record);
        true
    }
    fn rtt(&mut self, rtt: Time) -> bool {
        self.rtts.push(rtt);
        true
    }
    fn connection(&mut self, record: ConnectionRecord) -> bool {
        self.connections.push(record);
        true
    }
}

impl Watch for Told {
    fn recorded(&mut self, batch: &[Record]) -> bool {
        self.records.extend_from_slice(batch);
        true
    }
    fn edge(&mut self, _: Time, _: u64, _: u64, _: u64) -> bool {
        true
    }
}

fn try_run(text: &str, parallel: usize) -> Result<(Outcome, Told), Error> {
    let plan = Scenario::parse("world.toml", text).unwrap().plan(None, &[], None).unwrap();
    let mut told = Told::default();
    let outcome = run(&plan, &Settings { parallel }, &mut told)?;
    Ok((outcome, told))
}

fn run_it(text: &str, parallel: usize) -> (Outcome, Told) {
    try_run(text, parallel).unwrap_or_else(|error| panic!("{error}"))
}

macro_rules! needs_kernel {
    () => {
        if let Err(error) = kernels::find(None) {
            millpond_worlds::skip::skip(module_path!(), error);
            return;
        }
    };
}

const INCAST: &str = r#"
    until = "flows-complete"
    topology = { kind = "single-switch", hosts = 4 }
    [[traffic]]
    kind = "incast"
    degree = 3
    response = "32KB"
    period = "1ms"
    count = 2
"#;

#[test]
fn an_incast_completes_and_packets_are_conserved() {
    needs_kernel!();
    let (outcome, told) = run_it(INCAST, 1);
    assert_eq!((told.flows.len(), told.queries.len()), (6, 2));
    assert!(told.flows.iter().all(|flow| flow.finish.is_some() && flow.sender_last.is_some()));
    let counted = &outcome.counted;
    let dropped: u64 = counted.dropped.iter().map(|(_, count)| count).sum();
    assert_eq!(counted.entered, counted.delivered + dropped + counted.held);
    assert_eq!((outcome.pressed, outcome.counts.failed), (0, 0));
}
