//! The world itself: determinism, times, pauses, programs, refusals.

use crate::{Records, try_run};
use millpond_core::packet::Kind;
use millpond_lab::Record;
use millpond_results::{FlowRecord, PacketRecord};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_virtual::{Outcome, kernels};
use millpond_worlds::needs;

fn plan(text: &str) -> Plan {
    Scenario::parse("world.toml", text).unwrap().plan(None, &[], None).unwrap()
}

fn run(text: &str, parallel: usize) -> (Outcome, Records) {
    try_run(&plan(text), parallel).unwrap_or_else(|error| panic!("{error}"))
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
    let (outcome, records) = run(INCAST, 1);
    assert_eq!((records.flows.len(), records.queries.len()), (6, 2));
    assert!(records.flows.iter().all(|flow| flow.finish.is_some() && flow.sender_last.is_some()));
    let counted = &outcome.counted;
    let dropped: u64 = counted.dropped.iter().map(|(_, count)| count).sum();
    assert_eq!(counted.entered, counted.delivered + dropped + counted.held);
    assert_eq!((outcome.pressed, outcome.counts.failed), (0, 0));
}

/// The same incast, captured: all records of a run, and all bytes of its packets.
fn captured(parallel: usize) -> (Vec<FlowRecord>, Vec<Record>) {
    let text = format!("{INCAST}\n[capture]\npcap = [\"host0\", \"switch0:1\"]\n");
    let (_, records) = run(&text, parallel);
    (records.flows, records.captured)
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
    let (_, records) = run(text, 1);
    assert!(records.rtts.len() >= 4, "{:?}", records.rtts);
    let packets: Vec<_> = records
        .captured
        .iter()
        .filter_map(|record| match record {
            Record::Packet(it) => Some(it),
            Record::Queue(_) => None,
        })
        .collect();
    let of = |outgoing: bool, kind: Kind| {
        let is_wanted =
            |packet: &&&PacketRecord| packet.outgoing == outgoing && packet.packet.kind() == kind;
        let found = packets.iter().find(is_wanted);
        found.map(|packet| (packet.at.as_ps(), u64::from(packet.packet.size))).unwrap()
    };
    let (asked, size) = of(true, Kind::Syn);
    let (answered, _) = of(false, Kind::SynAck);
    // The question has left its host; three links of serialisation are to come, in whole
    // nanoseconds where a guest is between two of them, and four of 2 us.
    let links = 4 * 2_000_000 + 3 * (size * 800);
    assert!((links..links + 1000).contains(&(answered - asked)), "{}", answered - asked);
}

#[test]
fn receiving_takes_the_time_that_the_plan_gives_it() {
    needs!(kernels::find(None));
    let median = |cost: &str| {
        let text = format!(
            "duration = \"5ms\"\ntopology = {{ kind = \"single-switch\", hosts = 2 }}\n\
             [host]\njitter = {{ kind = \"none\" }}\nnic.interrupt-throttle = \"0us\"\n{cost}\n\
             [[traffic]]\nkind = \"probe\"\nsize = 100\nperiod = \"1ms\"\n"
        );
        let mut rtts: Vec<u64> = run(&text, 1).1.rtts.iter().map(|rtt| rtt.as_ps()).collect();
        rtts.sort_unstable();
        rtts[rtts.len() / 2]
    };
    let cost = "receive-cpu = { per-packet = \"1us\", per-byte = \"0ns\", per-segment = \"4us\" }";
    let more = median(cost) - median("");
    // The question, and the answer, which may wait for an acknowledgement before it.
    assert!((10_000_000..=15_002_000).contains(&more), "{more}");
}

#[test]
fn a_host_that_is_paused_loses_nothing_where_others_drop() {
    needs!(kernels::find(None));
    let dropped = |pause: &str| {
        let text = format!(
            "until = \"flows-complete\"\ntopology = {{ kind = \"single-switch\", hosts = 4 }}\n\
             transport = {{ kind = \"cubic\" }}\n\
             [switch]\nbuffer = {{ kind = \"shared\", size = \"400KB\" }}\n\
             marking = {{ kind = \"none\" }}\npause = {{ kind = \"{pause}\" }}\n\
             [[traffic]]\nkind = \"incast\"\ndegree = 3\nresponse = \"2MB\"\n\
             period = \"1ms\"\ncount = 1\n"
        );
        let (outcome, records) = run(&text, 1);
        assert_eq!(records.flows.len(), 3);
        outcome.counted.dropped.iter().map(|(_, count)| count).sum::<u64>()
    };
    assert!(dropped("none") > 0);
    assert_eq!(dropped("pfc"), 0);
}

#[test]
fn a_file_that_is_no_kernel_is_refused_with_what_it_lacks() {
    needs!(kernels::find(None));
    let refused = |path: &str| {
        let text = format!("{INCAST}\n[host]\nkernel = \"{path}\"\n");
        try_run(&plan(&text), 1).err().map(|error| error.to_string()).unwrap_or_default()
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
    let (outcome, records) = run(text, 1);
    assert!(records.output.contains("look stdout: 1 10.213.0.1"), "{}", records.output);
    assert!(records.output.contains("Read-only"), "{}", records.output);
    assert!(!std::fs::exists("/etc/millpond-was-here").unwrap());
    let statuses: Vec<_> = outcome.programs.iter().map(|it| it.status.as_str()).collect();
    assert_eq!(statuses, ["exit status 3", "ended with the run"]);
}

#[test]
fn limits_need_the_command() {
    let text = format!("{INCAST}\n[[limit]]\nname = \"a\"\nhosts = [\"1..3\"]\nrate = \"1Gbps\"\n");
    let refused = try_run(&plan(&text), 1).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("use the command"), "{refused}");
}
