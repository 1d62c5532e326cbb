//! Amounts that can never act: `check` warns of each with both numbers, and of none that can act.

use millpond_scenario::{Plan, Scenario};

const BASE: &str = r#"
    duration = "1ms"
    [topology]
    kind = "single-switch"
    hosts = 4
    [transport]
    kind = "dctcp"
    [[traffic]]
    kind = "incast"
    degree = 3
"#;

fn plan(text: &str, set: &[(&str, &str)]) -> Result<Plan, String> {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = Scenario::parse("s.toml", text).map_err(|e| e.to_string())?;
    scenario.plan(None, &set, None).map_err(|e| e.to_string())
}

/// The warnings that contain both numbers.
fn warns(tables: &str, set: &[(&str, &str)], numbers: [&str; 2]) {
    let warnings = plan(&format!("{BASE}{tables}"), set).unwrap().warnings;
    let found = |w: &String| numbers.iter().all(|number| w.contains(number));
    assert_eq!(
        warnings.iter().filter(|w| found(w)).count(),
        1,
        "{set:?} {numbers:?}: {warnings:#?}"
    );
}

/// Warnings that begin with one of a table of `bounds.rs`.
fn is_quiet(tables: &str, set: &[(&str, &str)], about: &str) {
    let warnings = plan(&format!("{BASE}{tables}"), set).unwrap().warnings;
    assert!(!warnings.iter().any(|w| w.contains(about)), "{set:?} {about}: {warnings:#?}");
}

const TLT: (&str, &str) = ("transport.importance.kind", "tlt");
const RANKS: (&str, &str) = ("transport.rank.kind", "remaining-bytes");

#[test]
fn admissions_that_refuse_nobody() {
    let color = ("switch.admission.kind", "color-aware");
    let numbers = ["threshold means a queue of 400KB", "hold up to 300KB"];
    warns("", &[TLT, color, ("switch.admission.threshold", "400KB")], numbers);
    is_quiet("", &[TLT, color, ("switch.admission.threshold", "100KB")], "refuses nobody");
    is_quiet("", &[TLT, color], "refuses nobody");
    is_quiet("", &[TLT, color, ("switch.buffer.size", "20KB")], "refuses nobody");
    let aifo = ("switch.admission.kind", "aifo");
    let numbers = ["burst-headroom means a queue of 300KB", "hold up to 300KB"];
    warns("", &[RANKS, aifo, ("switch.admission.burst-headroom", "1.0")], numbers);
    is_quiet("", &[RANKS, aifo], "refuses nobody");
    // A queue's share of a switch's memory bounds it as well: half of it, with an alpha of one.
    let shared = [("switch.buffer.kind", "shared"), ("switch.buffer.size", "500KB")];
    let last = [("switch.admission.kind", "last-packet"), ("switch.admission.threshold", "260KB")];
    warns("", &[&shared[..], &last[..], &[RANKS]].concat(), ["260KB", "hold up to 250KB"]);
    is_quiet("", &[&last[..], &[RANKS]].concat(), "refuses nobody");
}

#[test]
fn thresholds_in_the_wrong_order_are_errors() {
    for place in ["switch.marking", "switch.admission"] {
        let key = |key: &str| format!("{place}.{key}");
        let (kind, min, max) = (key("kind"), key("min-threshold"), key("max-threshold"));
        let set = [(kind.as_str(), "red"), (min.as_str(), "200KB"), (max.as_str(), "100KB")];
        let error = plan(BASE, &set).unwrap_err();
        assert!(
            error.contains(&min) && error.contains("200KB is above max-threshold (100KB)"),
            "{error}"
        );
    }
    // The maximum that is not written is three quarters of the buffer.
    let set = [("switch.admission.kind", "red"), ("switch.admission.min-threshold", "250KB")];
    assert!(plan(BASE, &set).unwrap_err().contains("250KB is above max-threshold (225KB)"));
    let nic = [(
        "host.nic.marking",
        "{ kind = \"red\", min-threshold = \"9KB\", max-threshold = \"8KB\" }",
    )];
    assert!(plan(BASE, &nic).unwrap_err().contains("host.nic.marking"));
}

#[test]
fn pauses_that_stop_nobody() {
    let pools = [
        ("switch.buffer.kind", "pools"),
        ("switch.buffer.size", "400KB"),
        ("switch.pause.kind", "pfc"),
    ];
    let with = |alpha| [&pools[..], &[("switch.pause.alpha", alpha)]].concat();
    warns("", &with("1000"), ["alpha 1000", "has 318KB"]);
    is_quiet("", &with("0.0625"), "stops nobody");
    let bfc = [("switch.queue.kind", "dynamic-queues"), ("switch.pause.kind", "bfc")];
    let slow =
        [&bfc[..], &[("switch.pause.hop-rtt", "1ms"), ("switch.pause.interval", "1us")]].concat();
    warns("", &slow, ["a queue of 1.25MB", "holds up to 300KB"]);
    is_quiet("", &bfc, "stops nobody");
}

/// The empty network's round trip is 7.7 us, with a jitter of 1.2 us at each of four passages.
#[test]
fn timeouts_below_the_round_trip() {
    warns(
        "",
        &[("transport.fixed-rto", "5us")],
        ["fixed-rto is 5us", "round trip of the empty network"],
    );
    warns(
        "",
        &[("transport.initial-rto", "5us")],
        ["initial-rto is 5us", "round trip of the empty network"],
    );
    is_quiet("", &[], "round trip");
    let delayed = [("transport.delayed-ack", "2")];
    warns("", &delayed, ["delayed-ack-timeout is 40ms", "min-rto 10ms"]);
    is_quiet("", &[delayed[0], ("transport.delayed-ack-timeout", "1ms")], "delayed-ack-timeout");
    let tables = |kind: &str| BASE.replace("dctcp", kind);
    let of = |kind: &str, set: &[(&str, &str)], says: &str| {
        let warnings = plan(&tables(kind), set).unwrap().warnings;
        assert!(warnings.iter().any(|w| w.contains(says)), "{kind} {set:?}: {warnings:#?}");
    };
    of("dcqcn", &[("rdma.recovery.timeout", "5us")], "rdma.recovery.timeout is 5us");
    let selective = ("rdma.recovery.kind", "selective");
    of("dcqcn", &[selective, ("rdma.recovery.timeout-low", "5us")], "timeout-low is 5us");
    of("homa", &[("transport.homa-resend-interval", "5us")], "homa-resend-interval is 5us");
    of("swift", &[delayed[0]], "steers to 90us, and a single segment's acknowledgement waits 40ms");
}

#[test]
fn a_burst_of_handshakes_beside_a_long_first_timeout() {
    let many = BASE
        .replace("hosts = 4", "hosts = 64")
        .replace("degree = 3", "degree = 60\nresponse = \"40KB\"");
    let warnings = |set: &[(&str, &str)]| plan(&many, set).unwrap().warnings.join("\n");
    let long = ("transport.initial-rto", "1s");
    let told = warnings(&[long]);
    assert!(
        told.contains("can send 900KB at once") && told.contains("holds up to 300KB"),
        "{told}"
    );
    assert!(told.contains("initial-rto (1s, 100 times min-rto)"), "{told}");
    assert_eq!(warnings(&[]), "", "10 ms is min-rto");
    assert_eq!(warnings(&[long, ("transport.handshake", "false")]), "");
    assert_eq!(warnings(&[long, ("switch.buffer.size", "1MB")]), "");
}

#[test]
fn limits_above_the_link() {
    let limit = |rate: &str| format!("[[limit]]\nhosts = \"all\"\nrate = \"{rate}\"\n");
    warns(&limit("100Gbps"), &[], ["rate is 100Gbps", "links have 10Gbps at most"]);
    is_quiet(&limit("9Gbps"), &[], "limits nothing");
    // A scope limits what its members' hosts send.
    let scope = format!(
        "{}name = \"a\"\nscopes = [\"b\"]\n[[limit]]\nname = \"b\"\nrate = \"20Gbps\"\n",
        limit("9Gbps")
    );
    warns(&scope, &[], ["\"b\" limits nothing", "20Gbps"]);
}

#[test]
fn what_comes_after_the_end() {
    for key in ["capture.queues.every", "capture.connections.every"] {
        warns("", &[(key, "2ms")], [&format!("{key} is 2ms"), "ends at 1ms"]);
        is_quiet("", &[(key, "100us")], "there is no sample");
    }
    let failure = "[[failure]]\nlink = [\"host0\", \"switch0\"]\nat = \"5ms\"\nuntil = \"6ms\"\n";
    warns(failure, &[], ["begins at 5ms", "ends at 1ms"]);
    is_quiet(&failure.replace("5ms", "500us"), &[], "begins at");
    let aifo =
        [("switch.admission.kind", "aifo"), RANKS, ("switch.admission.sample-period", "1000")];
    warns("", &aifo, ["with 20000 packets", "ends at 1ms"]);
    is_quiet("", &aifo[..2], "fills its window");
    warns(
        "[[variant]]\nname = \"x\"\n",
        &[("traffic.incast.stop", "100us"), ("warm-up", "200us")],
        ["200us", "100us"],
    );
}

/// A row that waits names its hosts as any other does.
#[test]
fn a_waiting_row_out_of_range_is_an_error() {
    let rows = |row: &str| {
        let text = format!(
            "until = \"flows-complete\"\n[topology]\nkind = \"single-switch\"\nhosts = \
             4\n[[traffic]]\nname = \"f\"\nkind = \"flows\"\nrows = [\n  {{ start = \"0us\", src \
             = 0, dst = 1, bytes = 1000, id = \"a\" }},\n  {row},\n]\n[[traffic]]\nkind = \
             \"permutation\"\nafter = [\"f\"]\n"
        );
        plan(&text, &[])
    };
    assert!(rows("{ start = \"0us\", src = 2, dst = 1, bytes = 1000, after = [\"a\"] }").is_ok());
    for (row, says) in [
        (
            "{ start = \"0us\", src = 9, dst = 1, bytes = 1000, after = [\"a\"] }",
            "src 9 is no host; there are 4, from 0",
        ),
        (
            "{ start = \"0us\", src = 0, dst = 9, bytes = 1000, after = [\"a\"] }",
            "dst 9 is no host; there are 4, from 0",
        ),
        ("{ start = \"0us\", src = 9, dst = 9, bytes = 1000 }", "src 9 is no host"),
        (
            "{ start = \"0us\", src = 0, dst = 0, bytes = 1000, after = [\"a\"] }",
            "host 0 sends to itself",
        ),
        (
            "{ start = \"0us\", src = 0, dst = 1, bytes = 0, after = [\"a\"] }",
            "0 bytes is no size of a flow",
        ),
    ] {
        assert!(rows(row).unwrap_err().contains(says), "{row}");
    }
}

#[test]
fn a_virtual_switch_without_an_application_is_warned_about() {
    let about = "no [[application]] is behind edge.virtual-switch";
    let application = "[[application]]\nname = \"a\"\n";
    let set = [("edge.virtual-switch.kind", "backdraft")];
    let warnings = plan(BASE, &set).unwrap().warnings;
    assert!(warnings.iter().any(|w| w.contains(about)), "{warnings:#?}");
    is_quiet(application, &set, about);
    is_quiet("", &[], about);
}
