//! Worlds of real kernels. They need one, which `make setup-virtual` builds.

use millpond_core::Time;
use millpond_core::packet::Kind;
use millpond_lab::Record;
use millpond_lab::load::Sink;
use millpond_results::{ConnectionRecord, FlowRecord, PacketRecord, QueryRecord};
use millpond_scenario::Scenario;
use millpond_virtual::{Error, Outcome, Settings, Watch, kernels, run};
use millpond_worlds::needs;

/// Everything that a run tells.
#[derive(Default)]
struct Told {
    flows: Vec<FlowRecord>,
    queries: Vec<QueryRecord>,
    rtts: Vec<Time>,
    connections: Vec<ConnectionRecord>,
    records: Vec<Record>,
    output: String,
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
    fn output(&mut self, program: &str, stream: &str, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        self.output.push_str(
            &text
                .lines()
                .fold(String::new(), |all, line| format!("{all}{program} {stream}: {line}\n")),
        );
        true
    }
    fn response(&mut self, _: &str, _: Time) -> bool {
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
    needs!(kernels::find(None));
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
    needs!(kernels::find(None));
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
fn a_kernel_answers_after_the_time_of_its_links_to_the_picosecond() {
    needs!(kernels::find(None));
    let text = "duration = \"5ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
                host-link = { rate = \"10Gbps\", delay = \"2us\" }\n\
                [host]\njitter = { kind = \"none\" }\nnic.interrupt-throttle = \"0us\"\n\
                [capture]\npcap = [\"host0\"]\n\
                [[traffic]]\nkind = \"probe\"\nsize = 100\nperiod = \"1ms\"\n";
    let (_, told) = run_it(text, 1);
    assert!(told.rtts.len() >= 4, "{:?}", told.rtts);
    let packets: Vec<_> = told
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Packet(it) => Some(it),
            Record::Queue(_) => None,
        })
        .collect();
    let of = |outgoing: bool, kind: Kind| {
        let it = |it: &&&PacketRecord| it.outgoing == outgoing && it.packet.kind() == kind;
        packets.iter().find(it).map(|it| (it.at.as_ps(), u64::from(it.packet.size))).unwrap()
    };
    let (asked, size) = of(true, Kind::Syn);
    let (answered, _) = of(false, Kind::SynAck);
    // The question has left its host; three links of serialisation are to come, in whole
    // nanoseconds where a guest is between two of them, and four of 2 us.
    let links = 4 * 2_000_000 + 3 * (size * 800);
    assert!((links..links + 1000).contains(&(answered - asked)), "{}", answered - asked);
}

#[test]
fn hosts_obey_pauses() {
    needs!(kernels::find(None));
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
    needs!(kernels::find(None));
    let refused = |path: &str| {
        let text = format!("{INCAST}\n[host]\nkernel = \"{path}\"\n");
        try_run(&text, 1).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused("/no/such/kernel").contains("host.kernel cannot be read"));
    assert!(refused("/etc/passwd").contains("it is no program"));
    assert!(refused("/bin/sh").contains("CONFIG_UML_TIME_TRAVEL_SUPPORT"));
}

#[test]
fn programs_see_the_machines_files_and_cannot_change_them() {
    needs!(kernels::find(None));
    let text = "until = \"flows-complete\"\n\
                [topology]\nkind = \"single-switch\"\nhosts = 2\n\
                [[program]]\nname = \"look\"\nhost = 1\nawaits = true\n\
                command = \"touch /etc/millpond-was-here; echo $? {host0}; sleep 0.01; exit 3\"\n\
                [[program]]\nname = \"server\"\nhost = 0\ncommand = \"exec sleep 1000\"\n";
    let (outcome, told) = run_it(text, 1);
    assert!(told.output.contains("look stdout: 1 10.213.0.1"), "{}", told.output);
    assert!(told.output.contains("Read-only"), "{}", told.output);
    assert!(!std::fs::exists("/etc/millpond-was-here").unwrap());
    let statuses: Vec<_> = outcome.programs.iter().map(|it| it.status.as_str()).collect();
    assert_eq!(statuses, ["exit status 3", "ended with the run"]);
}

#[test]
fn limits_need_the_command() {
    let text = format!("{INCAST}\n[[limit]]\nname = \"a\"\nhosts = [\"1..3\"]\nrate = \"1Gbps\"\n");
    let refused = try_run(&text, 1).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("use the command"), "{refused}");
}
