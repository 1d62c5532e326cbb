//! `--json`: stdout holds one JSON document and nothing else, so that it can be piped without a
//! thought.

use crate::common::{Dir, SHIPPED, json, millpond, scenario, shipped, succeed, summary, text};
use serde_json::{Map, Value};

/// The output of `millpond` on stdout, which must be one JSON document.
fn stdout_json(words: &[&str]) -> Value {
    json(&succeed(&mut millpond(words)).stdout)
}

/// Every key of `summary.json`; of `fct_us` and `slowdown`, those of one class.
const SUMMARY: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "schema", "name", "world", "seed", "variant", "status", "warnings", "run", "flows",
            "fct_us", "slowdown",
        ],
    ),
    (
        "",
        &[
            "qct_us",
            "rtt_us",
            "packets",
            "timeouts",
            "pause_frames",
            "overlay_pauses",
            "fairness_jain",
        ],
    ),
    ("", &["mechanisms", "audit"]),
    (
        "/run",
        &[
            "wall_s",
            "setup_s",
            "simulated_s",
            "events",
            "packet_hops",
            "packet_hops_per_s",
            "peak_rss_bytes",
            "threads",
        ],
    ),
    ("/flows", &["started", "completed", "bytes_delivered", "goodput_gbps"]),
    ("/fct_us/all", &["count", "mean", "mean_restricted", "p50", "p90", "p99", "p999", "max"]),
    ("/slowdown/all", &["p50", "p99", "p999"]),
    (
        "/qct_us",
        &[
            "started",
            "completed",
            "completed_fraction",
            "mean",
            "mean_restricted",
            "p50",
            "p99",
            "p999",
            "max",
        ],
    ),
    ("/rtt_us", &["count", "p50", "p99", "p999"]),
    (
        "/packets",
        &[
            "sent",
            "delivered",
            "dropped",
            "dropped_by",
            "dropped_kinds",
            "ecn_marked",
            "deflected",
            "retransmitted",
        ],
    ),
    (
        "/packets/dropped_by",
        &[
            "queue-full",
            "shared-buffer",
            "early",
            "color",
            "no-deflection",
            "evicted",
            "ttl",
            "receive-ring",
            "virtual-switch",
            "limit",
        ],
    ),
    ("/packets/dropped_by", &["link-down", "injected"]),
    (
        "/packets/dropped_kinds",
        &["data", "retransmission", "ack", "syn", "syn-ack", "nack", "cnp", "grant"],
    ),
    ("/packets", &["out_of_order"]),
    ("/audit", &["conserved"]),
];

fn has_all_keys(summary: &Value) {
    for (place, keys) in SUMMARY {
        let object = summary.pointer(place).and_then(Value::as_object);
        let object = object.unwrap_or_else(|| panic!("{place} is no object"));
        for key in *keys {
            assert!(
                object.contains_key(*key),
                "{place}/{key} is missing; there are {:?}",
                object.keys()
            );
        }
    }
}

#[test]
fn run_prints_its_summary() {
    let dir = Dir::new("run");
    let mut command = shipped("incast").run(Some("dctcp"), &dir.at("out"), &["--json"]);
    let output = succeed(&mut command);
    let printed = json(&output.stdout);
    assert_eq!(printed, summary(&dir.at("out")), "what is printed is what is written");
    has_all_keys(&printed);
    assert_eq!((printed["schema"].as_u64(), printed["world"].as_str()), (Some(1), Some("sim")));
    assert_eq!(
        (printed["status"].as_str(), printed["variant"].as_str()),
        (Some("complete"), Some("dctcp"))
    );
    assert_eq!(
        printed["fct_us"].as_object().map(Map::len),
        Some(4),
        "all, mice, elephants and the traffic's name"
    );
}

/// Warnings and progress go to stderr, where they do not spoil the document.
#[test]
fn warnings_do_not_mix_with_the_document() {
    let dir = Dir::new("warnings");
    let mut command =
        millpond(["run", "--json", "--variant", "spray", "--set", "traffic.permutation.size=20KB"]);
    let output =
        succeed(command.arg(scenario("fat-tree-permutation")).arg("--out").arg(dir.at("out")));
    let printed = json(&output.stdout);
    assert!(text(&output.stderr).contains("warning: "), "{}", text(&output.stderr));
    assert!(
        printed["warnings"][0].as_str().is_some_and(|w| w.contains("spray")),
        "{}",
        printed["warnings"]
    );
}

#[test]
fn compare_prints_its_comparison() {
    let dir = Dir::new("compare");
    let mut command = millpond(["compare", "--json", "--seeds", "3..4", "--set", "duration=50ms"]);
    let output = succeed(command.arg(scenario("incast")).arg("--out").arg(dir.at("out")));
    let printed = json(&output.stdout);
    assert_eq!(printed, json(&std::fs::read(dir.at("out/compare.json")).unwrap()));
    let variants: Vec<&str> =
        printed.as_array().unwrap().iter().map(|v| v["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, shipped("incast").variants);
    for entry in printed.as_array().unwrap() {
        assert_eq!(entry["seeds"], serde_json::json!([3, 4]));
    }
}

/// The text of a command on stdout and stderr.
fn printed(words: &[&str], dir: &Dir) -> [String; 2] {
    let mut command = millpond(words.iter().copied());
    let output = succeed(command.arg(scenario("fat-tree-permutation")).current_dir(dir.path()));
    [text(&output.stdout), text(&output.stderr)].map(|text| text.to_string())
}

#[test]
fn warnings_are_printed_once_before_the_runs() {
    let dir = Dir::new("once");
    let size = "traffic.permutation.size=20KB";
    for words in [
        &["run", "--variant", "spray", "--set", size][..],
        &["compare", "--set", size],
        &["sweep", "--variants", "--set", size, "--seeds", "1..2"],
    ] {
        let [out, err] = printed(words, &dir);
        let warning = "needs fifo-per-flow, which switch.path \"spray\" breaks";
        assert_eq!(err.matches(warning).count(), 1, "{words:?}: {err}");
        assert!(!out.replace('\n', " ").contains("fifo-per-flow"), "{words:?}: {out}");
        assert_eq!(err.contains("spray, spray-tolerant: "), words[0] == "compare", "{err}");
    }
}

#[test]
fn check_prints_the_offered_load_and_notes() {
    let dir = Dir::new("offered");
    dir.write(
        "s.toml",
        "until = \"flows-complete\"\ntopology = { kind = \"leaf-spine\", leaves = 4, spines = 2, \
         hosts-per-leaf = 8, fabric-link = { rate = \"10Gbps\" } }\n[[traffic]]\nname = \
         \"web\"\nkind = \"poisson\"\nsizes = \"web-search\"\nload = 0.6\npairs = \
         \"inter-leaf\"\nstop = \"20ms\"\n[[variant]]\nname = \"same\"\n[[variant]]\nname = \
         \"half\"\nset = { \"traffic.web.load\" = 0.3 }\n",
    );
    let path = dir.at("s.toml");
    let path = path.to_str().unwrap();
    let told = text(&succeed(&mut millpond(["check", path])).stdout).to_string();
    let load = "load 15 % of the host links, 60 % of the leaves' uplinks; oversubscription 4:1";
    assert!(told.contains(load), "{told}");
    assert!(told.contains("note: half of the bytes of web are in flows that take"), "{told}");
    assert_eq!(told.matches("note: the load of web ends at 20ms").count(), 1, "{told}");
    assert_eq!((told.matches(load).count(), told.matches("load 7.5 %").count()), (1, 1), "{told}");
    let printed = stdout_json(&["check", path, "--json"]);
    let offered = &printed[0]["offered"];
    assert_eq!(offered["oversubscription"], 4.0);
    assert!((offered["uplinks"]["mean"].as_f64().unwrap() - 0.6).abs() < 1e-9, "{offered}");
    assert_eq!(printed[0]["notes"].as_array().unwrap().len(), 2, "{printed}");
}

#[test]
fn check_tells_of_every_variant() {
    for s in SHIPPED.iter() {
        let path = scenario(&s.name);
        let printed = stdout_json(&["check", path.to_str().unwrap(), "--json"]);
        let variants: Vec<Option<&str>> =
            printed.as_array().unwrap().iter().map(|v| v["variant"].as_str()).collect();
        let expected: Vec<Option<&str>> =
            std::iter::once(None).chain(s.variants.iter().map(|v| Some(v.as_str()))).collect();
        assert_eq!(variants, expected, "{}: as it stands, then its variants", s.name);
    }
}

#[test]
fn check_names_the_mechanisms_that_are_chosen() {
    let printed = stdout_json(&[
        "check",
        scenario("deflection").to_str().unwrap(),
        "--json",
        "--variant",
        "canary-stale",
    ]);
    let expected = serde_json::json!({
        "transport": "dctcp", "transport.rank": "remaining-bytes", "transport.ordering": "timeout",
        "switch.buffer": "per-port", "switch.marking": "ecn", "switch.path": "power-of-n",
        "switch.admission": "aifo", "switch.deflection": "canary", "switch.occupancy": "refreshed",
    });
    assert_eq!(printed[0]["mechanisms"], expected);
    let line = |variant: &str| {
        let path = scenario("deflection");
        let words = ["check", path.to_str().unwrap(), "--variant", variant];
        text(&succeed(&mut millpond(words)).stdout).lines().next().unwrap().to_string()
    };
    let has = |variant: &str, what: &str| {
        assert!(line(variant).contains(what), "{what} not in {}", line(variant))
    };
    has("ecmp", "32 hosts, 8 switches, 48 links; ");
    has("ecmp", "; dctcp · ecmp · per-port · ecn; ");
    has(
        "vertigo",
        " · rank remaining-bytes · ordering timeout · queue srpt · deflection vertigo; ",
    );
    let one = text(&succeed(&mut millpond(["check", scenario("incast").to_str().unwrap()])).stdout);
    assert!(one.contains(" hosts, 1 switch, ") && one.contains("; 1 partition, "), "{one}");
    has("canary-stale", " · admission aifo · deflection canary · occupancy refreshed; ");
}

#[test]
fn list_names_the_places_and_their_kinds() {
    let printed = stdout_json(&["list", "--json"]);
    let kinds = |place: &str| -> Vec<&str> {
        let places = printed["places"].as_array().unwrap();
        let place = places
            .iter()
            .find(|p| p["place"] == place)
            .unwrap_or_else(|| panic!("no place {place}"));
        place["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| kind["kind"].as_str().unwrap())
            .collect()
    };
    assert!(["newreno", "cubic", "dctcp"].iter().all(|kind| kinds("transport").contains(kind)));
    assert!(
        ["leaf-spine", "fat-tree", "single-switch", "dumbbell"]
            .iter()
            .all(|k| kinds("topology").contains(k))
    );
    assert!(["ecmp", "balanced", "spray"].iter().all(|kind| kinds("switch.path").contains(kind)));
    assert!(printed["sizes"].as_array().unwrap().iter().any(|size| size == "web-search"));
}

#[test]
fn explain_tells_what_a_name_means() {
    for name in ["transport.min-rto", "dctcp", "switch.marking", "traffic"] {
        let printed = stdout_json(&["explain", name, "--json"]);
        assert_eq!(printed["name"], name);
        assert!(printed["text"].as_str().is_some_and(|text| text.len() > 20), "{printed}");
    }
}

/// The schema is JSON, and knows every table that the shipped scenarios have (`variant` of
/// `[variant.set]`).
#[test]
fn the_schema_knows_the_shipped_scenarios() {
    let schema = stdout_json(&["schema"]);
    let known = schema["properties"].as_object().expect("a schema of an object");
    assert!(schema["$schema"].is_string());
    for s in SHIPPED.iter() {
        let written = std::fs::read_to_string(scenario(&s.name)).unwrap();
        for line in written.lines() {
            let table = line
                .strip_prefix('[')
                .map(|l| l.trim_start_matches('[').split([']', '.']).next().unwrap());
            if let Some(table) = table.filter(|_| !line.starts_with("  ")) {
                assert!(known.contains_key(table), "{}: {table} is not in the schema", s.name);
            }
        }
    }
}

/// A command that fails prints no document at all, rather than half of one.
#[test]
fn failures_leave_stdout_empty() {
    let dir = Dir::new("failures");
    let file = dir.write("file", "");
    let (incast, file) = (scenario("incast"), file.to_str().unwrap().to_string());
    let incast = incast.to_str().unwrap();
    for words in [
        vec!["run", incast, "--json", "--variant", "nobody"],
        vec!["run", incast, "--json", "--out", &file],
        vec!["compare", incast, "--json", "--vary", "transport.kind=tahoe,dctcp"],
        vec!["check", incast, "--json", "--set", "topology.hosts=1"],
        vec!["explain", "nothing-of-the-kind", "--json"],
    ] {
        let output = millpond(&words).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}: {}", text(&output.stdout));
        assert!(!output.stderr.is_empty(), "{words:?} says nothing");
    }
}
