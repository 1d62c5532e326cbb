//! Files that a run writes beside its flows, as other programs read them.

use crate::common::{Dir, succeed};
use millpond_worlds::needs;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCENARIO: &str = r#"
    name = "captures"
    duration = "4ms"
    [topology]
    kind = "leaf-spine"
    leaves = 2
    spines = 2
    hosts-per-leaf = 8
    [switch]
    buffer = { kind = "per-port", size = "60KB" }
    marking = { kind = "ecn", threshold-packets = 15 }
    path = { kind = "spray" }
    [transport]
    kind = "dctcp"
    min-rto = "500us"
    [capture]
    queues = "10us"
    connections = { every = "20us", traffic = "incast", dst = 3, max = 5 }
    pcap = ["host3", "leaf0:3", "leaf0:8"]
    trace = true
    [[failure]]
    link = ["leaf0", "spine1"]
    at = "1ms"
    until = "2ms"
    detect = "100us"
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.6
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 12
    response = "30KB"
    request = 250
    count = 10
    period = "300us"
    receiver = 3
    [[traffic]]
    name = "probe"
    kind = "probe"
    period = "50us"
"#;

/// A folder with a result.
struct Run(Dir);

impl Run {
    fn new(name: &str, extra: &[&str]) -> Run {
        let dir = Dir::new(name);
        dir.write("captures.toml", SCENARIO);
        let words = ["run", "captures.toml", "--out", "out", "--quiet", "--json"];
        succeed(&mut dir.command(&[&words, extra].concat()));
        Run(dir)
    }
    fn file(&self, name: &str) -> PathBuf {
        self.0.at("out").join(name)
    }
    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

const FILES: [&str; 9] = [
    "flows.parquet",
    "queries.parquet",
    "sizes.parquet",
    "queues.parquet",
    "connections.parquet",
    "host3.pcapng",
    "leaf0-3.pcapng",
    "leaf0-8.pcapng",
    "trace.json",
];

#[test]
fn every_file_is_the_same_however_it_is_run() {
    let one = Run::new("one", &["--threads", "1"]);
    let ways: [&[&str]; 3] = [
        &["--threads", "2"],
        &["--set", "engine.partitions=one"],
        &["--set", "engine.ports=general", "--threads", "3"],
    ];
    for (i, way) in ways.iter().enumerate() {
        let other = Run::new(&format!("way{i}"), way);
        for file in FILES {
            assert!(one.bytes(file).len() > 500, "{file}");
            assert!(one.bytes(file) == other.bytes(file), "{file} differs with {way:?}");
        }
        let summary = |run: &Run| {
            let mut summary: Value = serde_json::from_slice(&run.bytes("summary.json")).unwrap();
            summary["run"] = Value::Null;
            summary
        };
        assert_eq!(summary(&one), summary(&other));
        assert!(summary(&one)["rtt_us"]["count"].as_u64().unwrap() > 500);
        assert!(summary(&one)["packets"]["dropped_by"]["link-down"].as_u64().unwrap() > 10);
        let names =
            std::fs::read_dir(one.file("")).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(
            names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')),
            "nothing is left over"
        );
    }
}

/// The trace event format:
/// <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.
#[test]
fn the_trace_keeps_to_its_format() {
    let run = Run::new("trace", &[]);
    let trace: Value = serde_json::from_slice(&run.bytes("trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let (mut open, mut counters, mut named, mut used) = (
        std::collections::BTreeMap::new(),
        0,
        std::collections::BTreeSet::new(),
        std::collections::BTreeSet::new(),
    );
    for e in events {
        let pid = e["pid"].as_u64().unwrap();
        let text =
            |key: &str| e[key].as_str().unwrap_or_else(|| panic!("{key} of {e}")).to_string();
        let ts = || e["ts"].as_f64().unwrap_or_else(|| panic!("ts of {e}"));
        match e["ph"].as_str().unwrap() {
            "M" if e["name"] == "process_name" => {
                assert!(named.insert(pid) && e["args"]["name"].is_string())
            }
            "M" => {}
            "b" => {
                used.insert(pid);
                assert!(open.insert((text("cat"), text("id"), pid), ts()).is_none(), "{e}");
            }
            "e" => {
                let began = open
                    .remove(&(text("cat"), text("id"), pid))
                    .unwrap_or_else(|| panic!("no begin for {e}"));
                assert!(began <= ts());
            }
            "C" => {
                used.insert(pid);
                counters += 1;
                assert!(
                    ts() >= 0.0 && e["args"].as_object().unwrap().values().all(Value::is_number)
                );
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(named, used);
    let ended = events.iter().filter(|e| e["ph"] == "e" && e["cat"] == "query").count();
    assert!(counters > 100 && ended >= 2, "{counters} counters, {ended} queries");
}

fn tshark(file: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new("tshark").arg("-r").arg(file).args(args).output();
    let output = output.map_err(|e| format!("tshark (apt-get install tshark): {e}"))?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout).unwrap())
}

const CHECK: [&str; 4] = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];

#[test]
fn tshark_finds_nothing_malformed() {
    for (name, extra) in [
        ("pcap", &[][..]),
        ("whole", &["--set", "capture.snaplen=off"][..]),
        ("stamps", &["--set", "capture.snaplen=off", "--set", "capture.tcp-timestamps=true"][..]),
    ] {
        let run = Run::new(name, extra);
        for file in ["host3.pcapng", "leaf0-3.pcapng", "leaf0-8.pcapng"] {
            let file = run.file(file);
            let bad = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || \
                       _ws.expert.severity == 8388608";
            let found = needs!(tshark(&file, &[&CHECK[..], &["-Y", bad]].concat()));
            assert_eq!(found, "", "{}", file.display());
        }
    }
}

#[test]
fn tshark_reads_what_was_written() {
    let run = Run::new("fields", &["--set", "capture.snaplen=off"]);
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "ip.src",
        "-e",
        "ip.dst",
        "-e",
        "tcp.len",
        "-e",
        "ip.dsfield.ecn",
        "-e",
        "tcp.options.sack.count",
        "-e",
        "frame.len",
        "-e",
        "ip.len",
    ];
    let args = [&["-o", "tcp.relative_sequence_numbers:FALSE"][..], &fields].concat();
    let text = needs!(tshark(&run.file("host3.pcapng"), &args));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert!(rows.len() > 1_000);
    let mut last = 0.0;
    for row in &rows {
        let at: f64 = row[0].parse().unwrap();
        assert!(at >= last && at < 0.004, "{row:?}");
        assert!(row[0].split('.').nth(1).is_some_and(|digits| digits.len() == 9), "{row:?}");
        last = at;
        // Host 3 is 10.0.0.4, and it sends or receives.
        assert!(row[1] == "10.0.0.4" || row[2] == "10.0.0.4", "{row:?}");
        let number = |i: usize| row[i].parse::<u32>().unwrap();
        assert_eq!(number(6), number(7) + 14);
    }
    for (what, found) in [
        ("sent", rows.iter().any(|r| r[1] == "10.0.0.4")),
        ("full packets", rows.iter().any(|r| r[3] == "1460")),
        ("marks", rows.iter().any(|r| r[4] == "3")),
        ("SACK blocks", rows.iter().any(|r| !r[5].is_empty())),
    ] {
        assert!(found, "no {what}");
    }
}

/// As CSV, on the page, and with a warning where there are none.
#[test]
fn sampled_connections_are_exported_and_drawn() {
    let run = Run::new("connections", &[]);
    let export = |table: &str| {
        let output = run.0.output(&["export", "out", "--table", table]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let csv = export("connections");
    let mut lines = csv.lines();
    let head = "time_us,flow,class,src,dst,state,cwnd_bytes,ssthresh_bytes,in_flight_bytes,\
                acked_bytes,srtt_us,rto_us,retransmitted,timeouts,alpha";
    assert_eq!(lines.next(), Some(head));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(
        rows.len() > 30 && rows.iter().all(|row| row[2] == "incast" && row[4] == "3"),
        "{} rows",
        rows.len()
    );
    let flows: std::collections::BTreeSet<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(flows.len(), 5);
    let ended: Vec<Vec<String>> =
        export("flows").lines().map(|line| line.split(',').map(str::to_string).collect()).collect();
    assert!(flows.iter().all(|flow| {
        ended.iter().any(|row| row[0] == **flow && row[1] == "incast" && row[3] == "3")
    }));
    let alpha = |row: &Vec<&str>| row[14].parse::<f64>().unwrap();
    assert!(
        rows.iter().all(|row| (0.0..=1.0).contains(&alpha(row)))
            && rows.iter().any(|row| alpha(row) < 1.0)
    );
    let page = String::from_utf8(run.bytes("report.html")).unwrap();
    for what in [
        "Connections over time",
        "<b>Congestion window</b>",
        "<b>Smoothed round-trip time</b>",
        "<b>alpha</b>",
    ] {
        assert!(page.contains(what), "{what}");
    }
    let warnings = |run: &Run| {
        let summary: Value = serde_json::from_slice(&run.bytes("summary.json")).unwrap();
        summary["warnings"].to_string()
    };
    assert!(!warnings(&run).contains("capture.connections"), "{}", warnings(&run));
    let flows =
        ["--set", "capture.connections.flows=4000000", "--set", "capture.connections.dst=off"];
    let none = Run::new("no-connections", &flows);
    assert!(
        warnings(&none).contains("not open at any sample, every 20us: flow 4000000"),
        "{}",
        warnings(&none)
    );
    let none = Run::new("other-connections", &["--set", "capture.connections.src=3"]);
    assert!(
        warnings(&none).contains("no connection that it means was open"),
        "{}",
        warnings(&none)
    );
}
