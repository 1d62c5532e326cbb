//! Worlds of real kernels. They need one, which `make setup-virtual` builds.

#[path = "../../../lab/tests/load/compared.rs"]
mod compared;
mod mixed;
mod traffic;
mod world;

use millpond_core::Time;
use millpond_lab::load::Sink;
use millpond_lab::{Record, output};
use millpond_results::{CollectiveRecord, ConnectionRecord, FlowRecord, QueryRecord};
use millpond_scenario::plan::Plan;
use millpond_virtual::{Error, Outcome, Settings, Watch, run};

/// Records of a run.
#[derive(Default)]
struct Records {
    flows: Vec<FlowRecord>,
    queries: Vec<QueryRecord>,
    rtts: Vec<Time>,
    connections: Vec<ConnectionRecord>,
    captured: Vec<Record>,
    collectives: u32,
    /// Lines of programs, each with the program and the stream.
    output: String,
}

impl Sink for Records {
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

impl Watch for Records {
    fn recorded(&mut self, batch: &[Record]) -> bool {
        self.captured.extend_from_slice(batch);
        true
    }
    fn collective(&mut self, record: &CollectiveRecord) -> bool {
        self.collectives += u32::from(record.end.is_some());
        true
    }
}

impl output::Sink for Records {
    fn output(&mut self, program: &str, stream: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        text.lines().for_each(|line| self.output += &format!("{program} {stream}: {line}\n"));
    }
    fn response(&mut self, _: &str, _: Time) {}
}

/// Runs a plan, so many kernels side by side.
fn try_run(plan: &Plan, parallel: usize) -> Result<(Outcome, Records), Error> {
    let mut records = Records::default();
    let outcome = run(plan, &Settings { parallel, console: None }, &mut records)?;
    Ok((outcome, records))
}
