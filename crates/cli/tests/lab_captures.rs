//! Files that a lab's run writes beside its flows have the form of the simulator's, and agree with
//! the run's summary.

#![cfg(all(feature = "linux", target_os = "linux"))]

use crate::common::{Dir, MILLPOND};
use millpond_worlds::{World, namespace, needs};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// An incast that overflows a port, with all that is recorded. Flows end long before the run.
const SCENARIO: &str = r#"
name = "lab-captures"
duration = "8ms"
topology = { kind = "leaf-spine", leaves = 2, spines = 1, hosts-per-leaf = 2 }
[switch]
buffer = { kind = "per-port", size = "30KB" }
[transport]
kind = "cubic"
tlp = true
min-rto = "1ms"
[capture]
queues = { every = "20us", ports = ["leaf0", "host2"] }
connections = { every = "50us", max = 40 }
goodput = "100us"
pcap = ["host0", "host1", "host2", "host3", "leaf0->host0", "leaf0->spine0"]
[[traffic]]
name = "incast"
kind = "incast"
degree = 3
response = "120KB"
period = "1ms"
stop = "3500us"
receiver = 0
"#;

/// By how much the lab slows it.
const SCALE: f64 = 100.0;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn millpond(dir: &Dir, args: &[&str]) -> Output {
    Command::new(MILLPOND).args(args).current_dir(dir.path()).output().unwrap()
}

/// Runs it in both worlds; `set` is for both.
fn both(name: &str, set: &[&str]) -> Result<Dir, millpond_worlds::Error> {
    World::new("probe")?;
    let dir = Dir::new(name);
    dir.write("s.toml", SCENARIO);
    for world in ["sim", "lab"] {
        let args = ["run", "s.toml", "--world", world, "--scale", "100", "--out", world];
        let out = millpond(&dir, &[&args[..], set].concat());
        // A machine that is busy with other tests may be late.
        assert!(matches!(out.status.code(), Some(0 | 4)), "{}", text(&out.stderr));
    }
    Ok(dir)
}

fn summary(dir: &Dir, world: &str) -> Value {
    let text = std::fs::read_to_string(dir.path().join(world).join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A table's columns, and its rows by column.
fn table(dir: &Dir, world: &str, table: &str) -> (String, Vec<BTreeMap<String, String>>) {
    let out = millpond(dir, &["export", world, "--table", table]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let text = text(&out.stdout);
    let (head, rows) = text.split_once('\n').unwrap();
    let names = || head.split(',').map(String::from);
    let row = |line: &str| names().zip(line.split(',').map(String::from)).collect();
    (head.to_string(), rows.lines().map(row).collect())
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

/// The packets of a capture.
fn packets(file: &Path) -> Vec<EnhancedPacketBlock<'static>> {
    let mut reader = PcapNgReader::new(File::open(file).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let (Block::EnhancedPacket(packet), _) = block.unwrap() {
            packets.push(packet.into_owned());
        }
    }
    packets
}

fn is_outgoing(packet: &EnhancedPacketBlock<'_>) -> bool {
    packet.options.contains(&EnhancedPacketOption::Flags(2))
}

/// How many went out of a place, and how many came in.
fn directions(dir: &Dir, world: &str, place: &str) -> (u64, u64) {
    let all = packets(&dir.path().join(world).join(format!("{place}.pcapng")));
    let out = all.iter().filter(|packet| is_outgoing(packet)).count() as u64;
    (out, all.len() as u64 - out)
}

#[test]
fn both_worlds_write_the_same_files_and_columns() {
    let dir = needs!(both("forms", &[]));
    let files = |world: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(dir.path().join(world)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(files("sim"), files("lab"));
    for name in ["queues", "connections", "flows", "queries"] {
        assert_eq!(table(&dir, "sim", name).0, table(&dir, "lab", name).0);
    }
    let page = std::fs::read_to_string(dir.path().join("lab/report.html")).unwrap();
    for part in ["Connections over time", "<b>Congestion window</b>", "Goodput over time"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn samples_of_a_lab_agree_with_its_summary_and_with_the_simulator() {
    let dir = needs!(both("samples", &[]));
    let [sim, lab] = ["sim", "lab"].map(|world| summary(&dir, world));
    assert_eq!(lab["flows"]["completed"], 12);
    // The last sample has all bytes that were delivered.
    for (summary, scale) in [(&sim, 1.0), (&lab, SCALE)] {
        let goodput = &summary["goodput_over_time"];
        let period = goodput["period_us"].as_f64().unwrap();
        assert_eq!(period, 100.0 * scale);
        let rates = goodput["gbps"]["incast"].as_array().unwrap();
        let sum: f64 = rates.iter().map(|rate| rate.as_f64().unwrap()).sum();
        let delivered = summary["flows"]["bytes_delivered"].as_f64().unwrap();
        assert!((sum * period * 125.0 - delivered).abs() < 1.0, "{sum} {delivered}");
    }
    // Some packet found the queue full, so samples that are a few packets apart found it nearly so.
    assert!(lab["packets"]["dropped_by"]["queue-full"].as_u64().unwrap() > 0);
    let most = |world: &str, place: &str| {
        let rows = table(&dir, world, "queues").1;
        let bytes = rows.iter().filter(|row| row["node"] == place);
        bytes.map(|row| number(row, "queue_bytes")).fold(0.0, f64::max)
    };
    for world in ["sim", "lab"] {
        let most = most(world, "leaf0");
        assert!((20_000.0..=30_000.0).contains(&most), "{world}: {most}");
    }
    assert!(most("lab", "host2") >= 4500.0, "a window waits in the NIC");
    let rows = table(&dir, "lab", "queues").1;
    let is_multiple = |us: f64| (us / (20.0 * SCALE)).fract() == 0.0;
    assert!(rows.iter().all(|row| is_multiple(number(row, "time_us"))));
    assert!(
        rows.iter()
            .all(|row| number(row, "queue_packets") > 0.0 || number(row, "queue_bytes") == 0.0)
    );
}

#[test]
fn samples_of_connections_are_the_kernels() {
    let dir = needs!(both("connections", &[]));
    let sizes: BTreeMap<String, f64> = table(&dir, "lab", "flows")
        .1
        .iter()
        .map(|row| (row["flow"].clone(), number(row, "bytes")))
        .collect();
    let rows = table(&dir, "lab", "connections").1;
    let times: Vec<f64> = rows.iter().map(|row| number(row, "time_us")).collect();
    assert!(rows.len() > 20 && times.is_sorted(), "{times:?}");
    let states = ["syn-sent", "open", "disorder", "cwr", "recovery", "loss"];
    for row in &rows {
        let [acked, cwnd] = ["acked_bytes", "cwnd_bytes"].map(|column| number(row, column));
        assert!(states.contains(&row["state"].as_str()) && row["dst"] == "0", "{row:?}");
        assert!(acked <= sizes[&row["flow"]] && cwnd > 0.0, "{row:?}");
        assert!(row["w_max_bytes"].is_empty(), "the kernel does not report it");
    }
    // Ten segments are on their way first, of 1448 bytes. A SYN is in flight as well, before any
    // round trip, and a slow machine may see nothing but it and what follows a loss at first.
    let is_before_loss = |row: &&BTreeMap<String, String>| {
        row["state"] == "open"
            && ["in_flight_bytes", "retransmitted"].map(|column| number(row, column) > 0.0)
                == [true, false]
    };
    let early: Vec<_> = rows.iter().filter(is_before_loss).collect();
    assert!(early.iter().all(|row| number(row, "srtt_us") > 0.0), "{early:?}");
    let widest = early.iter().map(|row| number(row, "cwnd_bytes")).fold(0.0, f64::max);
    assert!(widest >= 14_480.0, "{widest} of {} rows", early.len());
    let sampled: BTreeSet<&String> = rows.iter().map(|row| &row["flow"]).collect();
    assert!(sampled.len() >= 9, "{sampled:?}");
    let again: f64 = rows.iter().map(|row| number(row, "retransmitted")).fold(0.0, f64::max);
    assert!(again > 0.0, "segments that the queue dropped were sent again");
}

/// Payload bytes of each connection that came in at a place, counted once each.
fn streams(packets: &[EnhancedPacketBlock<'_>]) -> Vec<u64> {
    let mut ranges: BTreeMap<Vec<u8>, Vec<(u32, u32)>> = BTreeMap::new();
    for packet in packets.iter().filter(|packet| !is_outgoing(packet)) {
        let (ip, tcp) = (&packet.data[14..], &packet.data[34..]);
        assert_eq!((ip[0], ip[9]), (0x45, 6), "TCP over IPv4 without options");
        let word = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
        let payload = u32::from(word(&ip[2..])) - 20 - 4 * u32::from(tcp[12] >> 4);
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        // The sender's address, and both ports.
        let key = [&ip[12..16], &tcp[..4]].concat();
        ranges.entry(key).or_default().push((seq, payload));
    }
    let bytes = |mut ranges: Vec<(u32, u32)>| {
        // Relative to the first packet, the SYN or its answer, whose number comes before the data.
        let first = ranges[0].0.wrapping_add(1);
        ranges.iter_mut().for_each(|(seq, _)| *seq = seq.wrapping_sub(first));
        ranges.retain(|(_, length)| *length > 0);
        ranges.sort_unstable();
        let mut upto = 0;
        ranges.iter().fold(0, |sum, (from, length)| {
            let end = from + length;
            let new = u64::from(end.saturating_sub((*from).max(upto)));
            upto = upto.max(end);
            sum + new
        })
    };
    ranges.into_values().map(bytes).collect()
}

#[test]
fn captures_of_a_lab_hold_the_packets_that_it_counts() {
    let dir = needs!(both("packets", &[]));
    let lab = summary(&dir, "lab");
    let count = |name: &str| lab["packets"][name].as_u64().unwrap();
    let hosts = (0..4).map(|host| directions(&dir, "lab", &format!("host{host}")));
    let (sent, delivered) = hosts.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    assert_eq!((sent, delivered), (count("sent"), count("delivered")));
    assert!(count("dropped") > 0 && sent == delivered + count("dropped"));
    // A link's two ends see the same packets.
    let (out, incoming) = directions(&dir, "lab", "host0");
    assert_eq!(directions(&dir, "lab", "leaf0-0"), (incoming, out));
    assert!(directions(&dir, "lab", "leaf0-2").0 > 0);

    let all = packets(&dir.path().join("lab/host0.pcapng"));
    assert!(all.iter().map(|packet| packet.timestamp).is_sorted());
    let last = all.last().unwrap().timestamp;
    assert!(last < Duration::from_millis(800), "{last:?}");
    assert!(all.iter().all(|packet| packet.data.len() as u32 == packet.original_len.min(96)));
    assert!(all.iter().any(|packet| packet.original_len == 1514));
    // Each of twelve responses came in whole.
    assert_eq!(streams(&all), [120_000; 12]);
}

#[test]
fn tshark_finds_nothing_malformed_in_a_labs_captures() {
    let dir = needs!(both("tshark", &["--set", "capture.snaplen=off"]));
    for place in ["host0", "leaf0-0", "leaf0-2"] {
        // A kernel that sums up in software writes a sum of zero as ones, as UDP does (RFC 768).
        let bad = "_ws.malformed || (tcp.checksum.status == 0 && tcp.checksum != 0xffff) \
                   || ip.checksum.status == 0";
        let check = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", bad];
        let file = dir.path().join(format!("lab/{place}.pcapng"));
        let output = Command::new("tshark").arg("-r").arg(&file).args(check).output();
        let output = needs!(output.map_err(|e| format!("tshark (apt-get install tshark): {e}")));
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{place}");
    }
}

/// A lab that is up, and ends with the test.
struct Standing<'a> {
    dir: &'a Dir,
    name: String,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        millpond(self.dir, &["lab", "down", "--lab", &self.name]);
    }
}

impl Standing<'_> {
    fn up(dir: &Dir) -> Standing<'_> {
        let name = format!("captures-{}", std::process::id());
        dir.write("s.toml", SCENARIO);
        let args = ["lab", "up", "s.toml", "--detach", "--scale", "100", "--name", &name];
        let out = millpond(dir, &args);
        assert!(out.status.success(), "{}", text(&out.stderr));
        Standing { dir, name }
    }

    fn capture(&self, place: &str, file: &str) -> Command {
        let mut command = Command::new(MILLPOND);
        let args = ["lab", "capture", place, "--lab", &self.name, "-w", file, "--seconds", "2"];
        command.args(args).current_dir(self.dir.path());
        command
    }
}

#[test]
fn a_lab_that_is_up_is_captured_at_any_link() {
    needs!(World::new("probe").map(drop));
    let dir = Dir::new("standing");
    let lab = Standing::up(&dir);
    let list = millpond(&dir, &["lab", "list", "--json"]);
    let list: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    let own = list.iter().find(|it| it["name"] == lab.name.as_str()).unwrap();
    let [from, to] = [0, 3].map(|host| &own["hosts"][host]);

    let places = [("host3", "a.pcapng"), ("leaf0->spine0", "b.pcapng"), ("host2", "c.pcapng")];
    let running = places.map(|(place, file)| lab.capture(place, file).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(700));
    let address = format!("{}:9", to["address"].as_str().unwrap());
    let send = || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        (0..20).for_each(|_| _ = socket.send_to(&[1; 100], &address));
    };
    namespace::within(Some(from["namespace"].as_str().unwrap()), send).unwrap();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    let of_udp = |file: &str| {
        let all = packets(&dir.path().join(file));
        let udp: Vec<_> = all.into_iter().filter(|packet| packet.data[23] == 17).collect();
        let out = udp.iter().filter(|packet| is_outgoing(packet)).count();
        assert!(udp.iter().all(|packet| packet.original_len == 142 && packet.data.len() == 142));
        (out, udp.len() - out)
    };
    assert_eq!((of_udp("a.pcapng"), of_udp("b.pcapng")), ((0, 20), (20, 0)));
    assert!(packets(&dir.path().join("c.pcapng")).is_empty());

    for (place, expected) in [
        ("leaf9", "there is no node \"leaf9\": did you mean `leaf"),
        ("leaf0:7", "it has ports 0 to 2"),
    ] {
        let out = lab.capture(place, "x.pcapng").output().unwrap();
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(!dir.path().join("x.pcapng").exists());
    }
}
