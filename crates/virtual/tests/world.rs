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

/// The same incast, captured: everything that a run tells, and all bytes of its packets.
fn captured(parallel: usize) -> (Vec<FlowRecord>, Vec<Record>) {
    let text = format!("{INCAST}\n[capture]\npcap = [\"host0\", \"switch0:1\"]\n");
    let (_, told) = run_it(&text, parallel);
    (told.flows, told.records)
}

#[test]
fn runs_are_the_same_to_the_byte_however_many_kernels_run_side_by_side() {
    needs_kernel!();
    let one = captured(1);
    assert!(one.1.len() > 100, "{} packets", one.1.len());
    for parallel in [1, 2, 4] {
        let other = captured(parallel);
        let at = one.1.iter().zip(&other.1).position(|(a, b)| a != b);
        let first = at.map(|at| (&one.1[at], &other.1[at]));
        assert!(other == one, "{parallel} side by side: packet {at:?}: {first:?}");
    }
}

#[test]
fn probes_take_the_time_of_their_links() {
    needs_kernel!();
    let text = "duration = \"5ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
                host-link = { rate = \"10Gbps\", delay = \"2us\" }\n\
                [host]\njitter = { kind = \"none\" }\nnic.interrupt-throttle = \"0us\"\n\
                [[traffic]]\nkind = \"probe\"\nsize = 100\nperiod = \"1ms\"\n";
    let (_, told) = run_it(text, 1);
    eprintln!("{:?}", told.rtts);
    assert!(told.rtts.len() >= 4);
    // Four links there and back of 2 us, and four times 166 bytes at 10 Gb/s: 100, and headers of
    // TCP with time stamps, IPv4 and Ethernet.
    let exact = 4 * (2_000_000 + 166 * 800);
    let least = told.rtts.iter().map(|rtt| rtt.as_ps()).min().unwrap();
    assert!((exact..exact + 1_000_000).contains(&least), "{least} ps, and {exact} on links");
}

#[test]
fn hosts_obey_pauses() {
    needs_kernel!();
    let text = INCAST.replace(
        "[[traffic]]",
        "[switch]\nbuffer = { kind = \"shared\", size = \"400KB\" }\n\
         pause = { kind = \"pfc\" }\n[[traffic]]",
    );
    let (outcome, told) = run_it(&text, 1);
    let dropped: u64 = outcome.counted.dropped.iter().map(|(_, count)| count).sum();
    assert_eq!((dropped, told.flows.len()), (0, 6));
}

#[test]
fn a_file_that_is_no_kernel_is_refused_with_what_it_lacks() {
    needs_kernel!();
    let refused = |path: &str| {
        let text = format!("{INCAST}\n[host]\nkernel = \"{path}\"\n");
        try_run(&text, 1).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused("/no/such/kernel").contains("host.kernel cannot be read"));
    assert!(refused("/etc/passwd").contains("it is no program"));
    assert!(refused("/bin/sh").contains("CONFIG_UML_TIME_TRAVEL_SUPPORT"));
}
