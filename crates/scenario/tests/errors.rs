//! Every kind of mistake is named with its line, its column and, where there is one, its repair.

use millpond_scenario::{Errors, Plan, Scenario};

const HEAD: &str = "duration = \"10ms\"\n";

fn plan(text: &str, variant: Option<&str>, overrides: &[(&str, &str)]) -> Result<Plan, Errors> {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Scenario::parse("s.toml", text)?.plan(variant, &overrides, None)
}

/// One mistake after [`HEAD`], at the `!`, which is no part of the text; and a part of its message.
fn fails(text: &str, says: &str) {
    let text = format!("{HEAD}{text}");
    let (before, after) = text.split_once('!').expect("a `!` before the mistake");
    let (line, column) =
        (before.split('\n').count(), before.rsplit('\n').next().unwrap().len() + 1);
    let text = format!("{before}{after}");
    let errors = match plan(&text, None, &[]) {
        Ok(_) => panic!("no error in\n{text}"),
        Err(errors) => errors,
    };
    let shown = errors.to_string();
    let found = errors.errors.iter().any(|e| (e.line, e.column) == (line, column));
    assert!(
        found && shown.contains(says),
        "expected {line}:{column} and {says:?}, found {shown}\nin\n{text}"
    );
    assert!(shown.contains(&format!("s.toml:{line}:{column}: ")));
}

#[test]
fn keys_that_nobody_reads() {
    fails("!sede = 2", "did you mean `seed`?");
    fails("[topology]\nkind = \"leaf-spine\"\n!leafs = 3", "did you mean `leaves`?");
    fails("[topology]\nhost-link = { !rat = \"1Gbps\" }", "did you mean `rate`?");
    fails("[host]\nreceive-cpu = { !per-packets = \"1us\" }", "did you mean `per-packet`?");
    fails("[host]\nreceive-cpu = { ring = !0 }", "1 to 1000000");
    fails("[host]\nreceive-cpu = { cores = !0 }", "1 to 64");
    fails("[host]\nreceive-cpu = { cores = !65 }", "1 to 64");
    fails("[host]\nreceive-cpu = { !core = 2 }", "did you mean `cores`?");
    fails("[host]\nreceive-cpu = !3", "expected a table");
    fails("[host]\njitter = !\"of\"", "write jitter = { kind = \"of\" }");
    fails("[host]\njitter = { kind = !\"unifrom\" }", "did you mean `uniform`?");
    fails("[host]\njitter = { !sizes = \"1us\" }", "did you mean `size`?");
    fails("[host]\njitter = { packets = !-1.0 }", "0 to 1000");
    fails("[host]\njitter = { !packets = 0.5, size = \"1us\" }", "takes its place");
    fails("[host]\nnic = { !per_flow_limit = \"1MB\" }", "per-flow-limit");
    fails(
        "[switch]\nmarking = { kind = \"none\", !threshold-packets = 20 }",
        "it belongs to kind \"ecn\"",
    );
    fails("[transport]\nkind = \"newreno\"\n!dctcp-g = 0.1", "it belongs to kind \"dctcp\"");
    fails("[transport]\n!mss = 100", "set it in [host]");
    fails("[[traffic]]\nkind = \"stride\"\n!ofset = 2", "did you mean `offset`?");
    fails("[[traffic]]\nkind = \"stride\"\n!load = 2", "it belongs to kind \"poisson\"");
    fails("[!engin]\nports = \"auto\"", "did you mean `engine`?");
    fails("[[variant]]\nname = \"a\"\n!sets = {}", "did you mean `set`?");
    fails(
        "[switch]\nmarking = { !threshold-packets = 5, threshold-bytes = 9000 }",
        "has no effect",
    );
}

#[test]
fn what_would_not_fit() {
    fails("[host]\nsegment-offload = !\"4GiB\"", "more than a host hands down");
    // Either source's flows can be numbered, both together cannot.
    let fast = "\n[[traffic]]\nkind = \"incast\"\nresponse = 1\nrate = 1e9\ndegree = 300\n";
    let text = format!(
        "[topology]\nleaves = 16\nspines = 2\nhosts-per-leaf = 32{fast}name = \"a\"{fast}name = \
         \"b\""
    );
    let errors = plan(&format!("duration = \"10ms\"\n{text}"), None, &[]).unwrap_err().to_string();
    assert!(errors.contains("32 bits"), "{errors}");
    assert!(plan(&format!("duration = \"5ms\"\n{text}"), None, &[]).is_ok());
}

#[test]
fn values_of_the_wrong_form() {
    fails("seed = !-1", "negative");
    fails("seed = !\"x\"", "expected a whole number, found \"x\"");
    fails("seed = !1.5", "expected a whole number");
    fails("seed = !99999999999999999999999", "too large");
    fails("warm-up = !5", "expected a time such as \"10ms\", found 5");
    fails("warm-up = !\"5 parsecs\"", "is not a unit of time");
    fails("warm-up = !\"-5us\"", "negative");
    fails("mice = !\"1.5\"", "finer than a byte");
    fails("mice = ![1]", "found an array");
    fails("mice = !1979-05-27", "found a date");
    fails("until = !\"later\"", "expected one of flows-complete, found \"later\"");
    fails(
        "until = !\"flow-complete\"",
        "found \"flow-complete\"; did you mean \"flows-complete\"?",
    );
    fails("mice = !\"10Kb\"", "sizes are bytes: write B, KB");
    fails(
        "[topology]\nhost-link = { rate = !\"10GBps\" }",
        "rates are bits a second: write bps, Kbps",
    );
    fails("host = !3", "expected a table");
    fails("traffic = !3", "[[traffic]]");
    fails("[topology]\nhost-link = { rate = !\"10Gb\" }", "Gbps");
    fails("[topology]\nleaves = !99999999999", "too large");
    fails("[switch]\nmarking = { kind = \"ecn\", at = !\"noon\" }", "enqueue, dequeue");
    fails("[switch]\npath = !\"spray\"", "write path = { kind = \"spray\" }");
    fails("[host]\nnic = { buffer = !\"endless\" }", "unlimited");
    fails("[transport]\ndupack-threshold = !true", "whole number");
    fails("[[traffic]]\nkind = \"incast\"\nreceiver = !\"me\"", "number of a host");
    fails("[[traffic]]\nkind = \"poisson\"\nsizes = !\"web-serch\"", "web-search");
    fails("[[traffic]]\nkind = \"poisson\"\nsizes = { points = ![[1, 0], [2]] }", "pairs");
    fails("[[traffic]]\nkind = \"poisson\"\nsizes = { points = ![[9, 0], [2, 1]] }", "point 2");
    fails(
        "[[traffic]]\nkind = \"flows\"\nrows = [[\"1us\", 0, 1, 5], ![\"1us\", 0]]",
        "[start, src, dst, bytes]",
    );
}

#[test]
fn names_that_do_not_exist() {
    fails("[topology]\nkind = !\"leaf-spin\"", "did you mean `leaf-spine`?");
    fails("[switch]\npath = { kind = !\"spary\" }", "did you mean `spray`?");
    fails("[transport]\nkind = !\"tahoe\"", "newreno");
    fails("[transport]\nkind = !3", "expected a text");
    fails("[[traffic]]\nkind = !\"poison\"", "did you mean `poisson`?");
    let text = format!("{HEAD}[[variant]]\nname = \"spray\"");
    let e = plan(&text, Some("spary"), &[]).unwrap_err().to_string();
    assert!(e.contains("variant") && e.contains("did you mean `spray`?"), "{e}");
}

#[test]
fn credits_and_rates_are_of_segments_of_tcp() {
    for kind in ["credits", "picnic"] {
        let edge = format!("[edge]\n!virtual-switch = {{ kind = \"{kind}\" }}\n");
        for transport in ["homa", "mptcp", "timely"] {
            let traffic = "[[traffic]]\nkind = \"stride\"\nsize = 1000";
            let text = format!("{edge}{traffic}\n[transport]\nkind = \"{transport}\"");
            fails(&text, "segments of one TCP");
        }
    }
    fails("[edge]\nvirtual-switch = { kind = \"credits\", !queue = 9 }", "queue");
    fails("[edge]\nvirtual-switch = { kind = \"credits\", overcommit = !0 }", "1 to 1000");
}

#[test]
fn applications_need_a_switch_and_traffic_that_there_is() {
    fails("[[!application]]\nwork = \"1us\"", "no effect");
    let lossy = "[edge]\nvirtual-switch = { kind = \"lossy\" }\n";
    fails(&format!("{lossy}[[application]]\ntraffic = ![\"nobody\"]"), "nobody");
    fails(&format!("{lossy}[[application]]\nhosts = !60000"), "60000 is no host");
    fails(&format!("{lossy}[host]\n!receive-cpu = {{ }}"), "cannot be together");
    fails("[edge]\nvirtual-switch = { kind = \"lossy\", cores = !65 }", "1 to 64");
}

#[test]
fn numbers_that_make_no_network() {
    fails("[topology]\nleaves = !0", "at least 1");
    fails("[topology]\nleaves = 2\nspines = 60000\nhosts-per-leaf = !60000", "65535");
    fails("[topology]\nkind = \"fat-tree\"\nk = !7", "even");
    fails("[topology]\nhost-link = { rate = !\"0bps\" }", "too slow");
    fails("[topology]\nkind = \"single-switch\"\nhosts = !1", "too few");
    fails("[!topology]\nleaves = 1\nspines = 1\nhosts-per-leaf = 1", "nobody to talk to");
    fails("[host]\nmtu = !20", "no packet size");
    fails("[host]\nmss = !1500", "1 to 1460");
    fails("[host]\nframe-overhead = !65000", "65535");
    fails("[host]\nsegment-offload = !100", "smaller than one packet");
    fails("[host]\nnic = { per-flow-limit = !100 }", "less than one packet");
    fails("[host]\nnic = { interrupt-throttle = !\"-1us\" }", "-1us");
    for kind in ["dcqcn", "homa", "uet"] {
        let host = "[host]\nnic = { interrupts = !true }\n[transport]\nkind = ";
        let text = format!("{host}\"{kind}\"\n[[traffic]]\nkind = \"stride\"");
        fails(&text, "another transport");
    }
    fails("[host]\nnic = { buffer = { kind = !\"shared\" } }", "one port");
    fails(
        "[host]\nnic = { buffer = !\"switch\" }\n[switch]\nbuffer = { kind = \"shared\" }",
        "of its own",
    );
    fails("[switch]\nbuffer = { kind = \"shared\", alpha = !0 }", "no share");
}

#[test]
fn numbers_that_make_no_traffic() {
    let traffic = |keys: &str, says: &str| fails(&format!("[[traffic]]\n{keys}"), says);
    traffic("kind = \"incast\"\ndegree = !320", "1 to 319");
    traffic("kind = \"incast\"\nreceiver = !320", "no host");
    traffic("kind = \"incast\"\nresponse = !0", "no size");
    traffic("kind = \"incast\"\nrate = 5\nperiod = !\"1ms\"", "together with rate");
    traffic("kind = \"incast\"\nrate = !0.0", "no rate");
    traffic("kind = \"incast\"\nperiod = !\"0us\"", "more than zero");
    traffic("kind = \"poisson\"\nload = !0", "no load");
    traffic("kind = \"poisson\"\nload = !-0.5", "no load");
    traffic("kind = \"poisson\"\nsizes = !0", "no size");
    traffic("kind = \"poisson\"\nsizes = !\"no/such.file\"", "cannot be read");
    traffic("kind = \"stride\"\noffset = !640", "send to itself");
    traffic("kind = \"stride\"\nstart = !\"10ms\"", "not before");
    traffic("kind = \"stride\"\nsize = !0", "no size");
    traffic("kind = \"shuffle\"\nconcurrency = !0", "1 or more");
    traffic("kind = \"rpc\"\nclients = !300\nservers = 50", "more than 320 hosts");
    traffic("kind = \"flows\"\nfile = !\"none.csv\"", "cannot be read");
    traffic("kind = \"flows\"\nrows = ![[1, 0, 320, 5]]", "no host");
    traffic("!kind = \"flows\"", "needs `file`");
    traffic("name = !\"all\"\nkind = \"stride\"", "taken by the statistics");
    traffic("kind = \"stride\"\n[[traffic]]\n!kind = \"stride\"", "two traffics");
    let one_leaf = "[topology]\nkind = \"single-switch\"\n[[traffic]]\nkind = \"poisson\"\n";
    fails(&format!("{one_leaf}pairs = !\"inter-leaf\""), "two leaves");
    fails(&format!("{one_leaf}load-base = !\"fabric\""), "uplinks");
}

#[test]
fn the_run_itself() {
    fails("warm-up = !\"10ms\"", "leaves nothing");
    fails("mice = !\"2MB\"", "above elephants");
    fails("name = !\"a/b\"", "folder");
    fails("[[variant]]\nname = !\"..\"", "folder");
    fails("[[variant]]\nname = \"a\"\n[[variant]]\nname = !\"a\"", "two variants");
    fails("![[variant]]\nset = {}", "needs `name`");
    let e = plan("seed = 1", None, &[]).unwrap_err().to_string();
    assert!(e.contains("needs `duration`"), "{e}");
    let e =
        plan("until = \"flows-complete\"\n[[traffic]]\nkind = \"poisson\"", None, &[]).unwrap_err();
    assert_eq!((e.errors[0].line, e.errors[0].column), (1, 9), "{e}");
    assert!(plan("until = \"flows-complete\"\n[[traffic]]\nkind = \"stride\"", None, &[]).is_ok());
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = "sede = 1\nduration = \"10 lightyears\"\n[switch]\npath = { kind = \"sprays\" \
                }\nmarking = { at = 3 }\n";
    let errors = Scenario::parse("s.toml", text).unwrap_err();
    let lines: Vec<usize> = errors.errors.iter().map(|e| e.line).collect();
    assert_eq!(lines, [1, 2, 4, 5], "{errors}");
    let errors = Scenario::parse("s.toml", "a = \nb = 2\nc = ]\n").unwrap_err();
    assert!(errors.errors.len() >= 2, "{errors}");
}

#[test]
fn mistakes_in_variants_are_found_in_the_variant() {
    let text = |set: &str| {
        format!(
            "{HEAD}[switch]\nmarking = {{ kind = \"none\" }}\n[[variant]]\nname = \"v\"\nset = {{ \
             {set} }}\n"
        )
    };
    let error = |set: &str| Scenario::parse("s.toml", &text(set)).unwrap_err();
    for (set, column, says) in [
        ("\"switch.path.kind\" = \"sprai\"", 30, "did you mean `spray`?"),
        ("\"switch.pth.kind\" = \"spray\"", 9, "did you mean `path`?"),
        ("\"switch.marking.threshold-packets\" = 9", 9, "it belongs to kind \"ecn\""),
        ("\"traffic.background.load\" = 0.5", 9, "no traffic \"background\""),
        ("\"not a key\" = 0.5", 9, "is not a dotted key"),
    ] {
        let e = error(set);
        assert_eq!((e.errors[0].line, e.errors[0].column), (6, column), "{e}");
        assert!(e.to_string().contains(says), "{e}");
    }
    assert!(
        Scenario::parse(
            "s",
            &text("\"switch.marking.threshold-packets\" = 9, \"switch.marking.kind\" = \"ecn\"")
        )
        .is_ok()
    );
}

#[test]
fn overriding_a_kind_resets_its_table_but_not_what_is_common() {
    let text = format!(
        "{HEAD}[switch]\nmarking = {{ kind = \"ecn\", threshold-packets = 20 \
         }}\n[transport]\nkind = \"dctcp\"\nmin-rto = \"7ms\"\ndctcp-g = 0.5\n[[traffic]]\nname = \
         \"t\"\nkind = \"stride\"\noffset = 3\nstart = \"1us\"\n"
    );
    let p = plan(&text, None, &[("switch.marking.kind", "ecn")]).unwrap();
    assert!(p.resolved.contains("threshold-packets = \"auto\""));
    let p = plan(&text, None, &[("transport.kind", "cubic"), ("traffic.t.kind", "permutation")])
        .unwrap();
    assert!(
        p.resolved.contains("min-rto = \"7ms\"")
            && p.resolved.contains("cubic-c")
            && !p.resolved.contains("dctcp-g")
    );
    assert!(p.resolved.contains("kind = \"permutation\"\nstart = \"1us\""), "{}", p.resolved);
    // The later of two keys of which one makes the other ineffective wins.
    let p = plan(&text, None, &[("switch.marking.threshold-bytes", "30KB")]).unwrap();
    assert!(
        p.resolved.contains("threshold-bytes = \"30KB\"")
            && !p.resolved.contains("threshold-packets")
    );
    // Packets alone are the only limit.
    let p = plan(&text, None, &[("switch.buffer.packets", "1000")]).unwrap();
    assert!(p.resolved.contains(
        "buffer = { kind = \"per-port\", size = \"off\", packets = 1000, per = \"off\" }"
    ));
}

#[test]
fn overrides_point_into_themselves() {
    let text = format!(
        "{HEAD}[[variant]]\nname = \"ecn\"\n[[variant]]\nname = \"none\"\nset = {{ \
         \"switch.marking.kind\" = \"none\" }}\n"
    );
    let fails = |key: &str, value: &str, column: usize, says: &str| {
        let e = plan(&text, None, &[(key, value)]).unwrap_err();
        assert_eq!(
            (e.errors[0].file.as_str(), e.errors[0].line, e.errors[0].column),
            ("--set", 1, column),
            "{e}"
        );
        assert!(e.to_string().contains(says), "{e}");
    };
    fails("switch.path.kind", "spary", 18, "did you mean `spray`?");
    fails("topolgy.leaves", "3", 1, "did you mean `topology`?");
    fails("topology.leaves", "0", 17, "at least 1");
    fails("variant.x", "0", 1, "not overridden");
    fails("a b", "0", 1, "dotted key");
    // A key that one variant does not use and another does is reported, not refused.
    let set = [("switch.marking.threshold-packets", "9")];
    assert!(
        !plan(&text, Some("ecn"), &set)
            .unwrap()
            .warnings
            .iter()
            .any(|w| w.contains("threshold-packets"))
    );
    let p = plan(&text, Some("none"), &set).unwrap();
    assert!(p.warnings.iter().any(|w| w.contains("threshold-packets")), "{:?}", p.warnings);
}

#[test]
fn seeds_and_names() {
    let text = format!("{HEAD}[[traffic]]\nkind = \"permutation\"\n");
    let p = plan(&text, None, &[("seed", "18446744073709551615")]).unwrap();
    assert_eq!((p.seed, p.name.as_str()), (u64::MAX, "s"));
    let scenario = Scenario::parse("s.toml", &text).unwrap();
    assert_eq!(scenario.plan(None, &[("seed".into(), "3".into())], Some(9)).unwrap().seed, 9);
    assert_eq!(scenario.name(), "s");
}

#[test]
fn warnings_of_what_is_allowed_but_odd() {
    let warns = |text: &str, says: &str| {
        let p = plan(&format!("{HEAD}{text}"), None, &[]).unwrap();
        assert!(p.warnings.iter().any(|w| w.contains(says)), "{says}: {:?}", p.warnings);
    };
    warns("[[traffic]]\nkind = \"poisson\"\nload = 1.5", "load of 1.5");
    warns("[switch]\npath = { kind = \"spray\" }", "fifo-per-flow");
    warns("[switch]\nbuffer = { size = 100 }", "smaller than one packet");
    warns("seed = 2", "no traffic");
    warns("[[traffic]]\nkind = \"flows\"\nrows = [[\"1s\", 0, 1, 5]]", "left out");
    let paused = |keys: &str| {
        format!("[switch]\nbuffer = {{ kind = \"pools\"{keys} }}\npause = {{ kind = \"pfc\" }}\n")
    };
    warns(&paused(", headroom = \"1KB\""), "headroom of 1KB is ");
    let short = "[topology]\nkind = \"single-switch\"\nhosts = 4\nhost-link = { rate = \
                 \"10Gbps\", delay = \"1us\" }\n";
    let by_rule =
        |delays: &str| format!("{short}{}", paused(&format!(", headroom-rule = \"{delays}\"")));
    // The hosts' jitter delays by up to a packet, 1.2 us. In 2.2 us there are 2,750 bytes: three
    // times that, for twice that and two packets of 1,500.
    warns(&by_rule("three-delays"), "headroom of 8250B is 250B less than what is on its way");
    let enough = plan(&format!("{HEAD}{}", by_rule("round-trip")), None, &[]).unwrap().warnings;
    assert!(!enough.iter().any(|w| w.contains("headroom")), "{enough:?}");
}

#[test]
fn numbers_outside_of_what_their_key_takes() {
    let part = |part: &str, says: &str| fails(&format!("[switch]\n{part}"), says);
    part("deflection = { kind = \"canary\", choices = !0 }", "expected 1 to 64, found 0");
    part("deflection = { kind = \"canary\", choices = !65 }", "expected 1 to 64, found 65");
    part("deflection = { kind = \"vertigo\", choices = !0 }", "expected 1 to 64");
    part("deflection = { kind = \"canary-pisa\", cells = !0 }", "expected 1 or more, found 0");
    part("deflection = { kind = \"canary-pisa\", cell = !0 }", "expected 1B or more, found 0B");
    part("path = { kind = \"power-of-n\", choices = !0 }", "expected 1 to 64");
    part("path = { kind = \"drill\", memory = !65 }", "expected 0 to 64, found 65");
    part("queue = { kind = \"sp-pifo\", queues = !0 }", "expected 1 to 64");
    part(
        "occupancy = { kind = \"refreshed\", period = !\"0us\" }",
        "expected 1ps or more, found 0us",
    );
    for kind in ["aifo", "probabilistic"] {
        part(
            &format!("admission = {{ kind = \"{kind}\", burst-headroom = !7 }}"),
            "expected 0 to 1, found 7",
        );
        part(
            &format!("admission = {{ kind = \"{kind}\", sample-period = !0 }}"),
            "expected 1 or more, found 0",
        );
        part(
            &format!("admission = {{ kind = \"{kind}\", window = !4000 }}"),
            "expected 1 to 2048, found 4000",
        );
    }
    part(
        "admission = { kind = \"distribution\", burst-headroom = !-0.5 }",
        "expected 0 to 1, found -0.5",
    );
    for kind in ["red", "wred"] {
        part(
            &format!("admission = {{ kind = \"{kind}\", max-probability = !nan }}"),
            "nan is not a number",
        );
        part(&format!("admission = {{ kind = \"{kind}\", weight = !2 }}"), "expected 0 to 1");
        part(&format!("admission = {{ kind = \"{kind}\", packet-rate = !-1 }}"), "negative");
    }
    fails("[transport]\ndctcp-g = !7", "expected 0 to 1, found 7");
    fails("[transport]\nmin-rto = !\"2s\"\nmax-rto = \"1s\"", "2s is above max-rto (1s)");
    let swift = "[transport]\nkind = \"swift\"\nswift-window-min = !50";
    fails(swift, "50 is above swift-window-max (43)");
    fails("[transport]\ndelayed-ack = !0", "expected 1 or more, found 0");
    let e = plan(HEAD, None, &[("switch.path", "{ kind = \"power-of-n\", choices = 0 }")])
        .unwrap_err()
        .to_string();
    assert!(e.contains("--set:1:13") && e.contains("switch.path.choices"), "{e}");
}

#[test]
fn parts_of_a_switch_that_do_not_go_together() {
    let red = "[switch]\nadmission = { kind = \"red\", min-threshold = !\"200KB\", max-threshold = \
               \"100KB\" }";
    fails(red, "200KB is above max-threshold (100KB)");
    fails(
        "[switch]\nmarking = { kind = \"red\", min-threshold = !\"200KB\", max-threshold = \
         \"100KB\" }",
        "switch.marking.min-threshold`: 200KB is above max-threshold (100KB)",
    );
    fails(
        "[switch]\nadmission = { kind = \"wred\", important-min-threshold = !\"400KB\" }",
        "400KB is above important-max-threshold (300KB)",
    );
    fails("[switch]\n!deflection = { kind = \"vertigo\" }", "\"fifo\" gives none up");
    fails("[edge]\n!load-balancing = { kind = \"hedera\" }", "switch.path \"ecmp\" follows none");
    let warns = |table: &str| {
        let text = format!(
            "{HEAD}[switch]\n{table}\n[transport]\nrank = {{ kind = \"remaining-bytes\" \
             }}\nordering = {{ kind = \"timeout\" }}\n[[traffic]]\nkind = \"stride\"\n"
        );
        // Not every admission reads ranks, and no host has colors.
        let mut warnings = plan(&text, None, &[]).unwrap().warnings;
        warnings.retain(|warning| !warning.contains(", which nothing "));
        warnings.join("\n")
    };
    let packets = "buffer = { packets = 100 }\n";
    for kind in ["aifo", "distribution", "probabilistic"] {
        let admission = format!("admission = {{ kind = \"{kind}\" }}");
        assert!(
            warns(&format!("{packets}{admission}"))
                .contains("refuses nobody: it goes by the share"),
            "{kind}"
        );
        assert_eq!(warns(&admission), "", "{kind}");
    }
    assert_eq!(
        warns(&format!("{packets}admission = {{ kind = \"aifo\", form = \"original\" }}")),
        ""
    );
    // Thresholds that are not written follow the buffer.
    for kind in
        ["red", "wred", "probabilistic", "last-packet", "aifo", "distribution", "color-aware"]
    {
        let shallow =
            format!("buffer = {{ size = \"50KB\" }}\nadmission = {{ kind = \"{kind}\" }}");
        assert_eq!(warns(&shallow), "", "{kind}");
    }
    let red = "buffer = { size = \"50KB\" }\nadmission = { kind = \"red\", min-threshold = \
               \"50KB\", max-threshold = \"90KB\" }";
    assert!(
        warns(red).contains(
            "min-threshold means a queue of 50KB, and leaf ports of 10Gbps hold up to 50KB"
        )
    );
    let pisa = |cells| {
        format!(
            "buffer = {{ size = \"100KB\" }}\ndeflection = {{ kind = \"canary-pisa\", cells = \
             {cells} }}"
        )
    };
    assert_eq!(warns(&pisa(1250)), "");
    assert!(warns(&pisa(1024)).contains("reckons with 80KiB a port"), "{}", warns(&pisa(1024)));
}

#[test]
fn a_pause_needs_a_memory_with_headroom() {
    let pfc = "pause = { kind = \"pfc\"";
    fails(&format!("[switch]\n!{pfc} }}"), "each port has its own");
    fails(
        &format!("[switch]\nbuffer = {{ kind = \"pools\" }}\n{pfc}, alpha = !0 }}"),
        "0 is no share",
    );
    fails("[switch]\nbuffer = { kind = \"pools\", size = !\"100KB\" }", "minima and headroom take");
    fails("[switch]\nbuffer = { kind = \"pools\", lossless-priorities = !9 }", "expected 1 to 8");
    fails("[switch]\nbuffer = { kind = \"pools\", alpha = !0.0 }", "0 is no share");
    fails("[host]\nnic = { buffer = { kind = !\"pools\" } }", "nobody to share with");
    fails(
        "[host]\nnic = { buffer = !\"switch\" }\n[switch]\nbuffer = { kind = \"pools\" }",
        "nobody to share with",
    );
    let vertigo = "buffer = { kind = \"pools\" }\nqueue = { kind = \"srpt\" }\ndeflection = { \
                   kind = \"vertigo\" }";
    fails(&format!("[switch]\n!{vertigo}"), "need not make any");
    let warns = |buffer: &str, pause: &str, priority: u32| {
        let text = format!(
            "{HEAD}transport = {{ min-rto = \"20us\" }}\n[switch]\nbuffer = {{ {buffer} }}\n\
             {pfc}{pause} }}\n[[traffic]]\nkind = \"stride\"\n[[traffic]]\nname = \"other\"\n\
             kind = \"permutation\"\npriority = {priority}\n"
        );
        plan(&text, None, &[]).unwrap_or_else(|e| panic!("{e}")).warnings.join("\n")
    };
    // Every transport has timers; those of the run can be outlasted.
    let (pools, always) =
        ("kind = \"pools\", size = \"9MB\"", "needs timers-run, which switch.pause \"pfc\" breaks");
    let quiet = warns(pools, "", 0);
    assert!(quiet.contains(always) && quiet.lines().count() == 1, "{quiet}");
    assert!(warns(pools, "", 3).contains("2 priorities, and switch.buffer keeps headroom for 1"));
    assert!(!warns(&format!("{pools}, lossless-priorities = 2"), "", 3).contains("priorities"));
    assert!(warns("kind = \"shared\"", "", 0).contains("finds no headroom"));
    let short = ", pause-time = \"5us\", recheck = \"5us\"";
    assert!(warns(pools, short, 0).contains("a pause ends although its cause lasts"));
}

/// Each error names its place, both names and the reason; and there is one only where some traffic
/// runs over several subflows.
#[test]
fn what_goes_by_the_offsets_of_one_tcp_is_refused_with_several_subflows() {
    let traffic = "[[traffic]]\nkind = \"stride\"\nsize = 1000\n";
    let wrong = [
        ("transport", "importance = { kind = \"tlt\" }", "transport.importance \"tlt\""),
        (
            "transport",
            "rank = { kind = \"attained-service\" }",
            "transport.rank \"attained-service\"",
        ),
        ("transport", "ordering = { kind = \"timeout\" }", "transport.ordering \"timeout\""),
        ("edge", "load-balancing = { kind = \"presto\" }", "edge.load-balancing \"presto\""),
        ("[limit]", "rate = \"1Gbps\"\nhosts = \"all\"", "[[limit]]"),
    ];
    for (table, key, what) in wrong {
        let one = format!("{HEAD}{traffic}transport = {{ kind = \"mptcp\" }}\n[{table}]\n{key}\n");
        let shown = plan(&one, None, &[]).expect_err("both cannot be").to_string();
        let says = format!("{what} and transport \"mptcp\" cannot be together");
        assert!(shown.contains(&says), "{shown}");
        assert!(shown.contains("s.toml:6:") || shown.contains("s.toml:7:"), "{shown}");
        let without = one.replace("transport = { kind = \"mptcp\" }\n", "");
        assert!(plan(&without, None, &[]).is_ok(), "{without}");
    }
    let planned = plan(
        &format!("{HEAD}{traffic}transport = {{ kind = \"mptcp\", mptcp-subflows = 65 }}\n"),
        None,
        &[],
    );
    assert!(planned.unwrap_err().to_string().contains("1 to 64"));
}

/// Keys that only TCPs read, or only their segments bear, are refused where queue pairs run; and
/// those that a layer below writes for the scenario's other variants are left to them.
#[test]
fn a_pause_of_flows_needs_queues_of_flows() {
    fails("[switch]\n!pause = { kind = \"bfc\" }", "queue = { kind = \"dynamic-queues\" }");
}

/// An override of a key that a variant sets itself makes the variant equal to the others in it.
#[test]
fn an_override_over_a_variants_own_key_is_reported() {
    let text = format!(
        "{HEAD}[[traffic]]\nname = \"t\"\nkind = \"stride\"\nsize = 1000\n\
         [[variant]]\nname = \"plain\"\n\
         [[variant]]\nname = \"patient\"\nset = {{ \"transport.dupack-threshold\" = 20 }}\n"
    );
    let scenario = Scenario::parse("s", &text).unwrap();
    let set = |key: &str| vec![(key.to_string(), "7".to_string())];
    let masked = |variant, key| scenario.masked(variant, &set(key));
    let found = masked(Some("patient"), "transport.dupack-threshold");
    let expected = "`transport.dupack-threshold` is given for all variants and replaces this \
                    variant's own value";
    assert_eq!(found, [expected]);
    for (variant, key) in [
        (Some("plain"), "transport.dupack-threshold"),
        (None, "transport.dupack-threshold"),
        (Some("patient"), "transport.initial-window"),
        (Some("absent"), "transport.dupack-threshold"),
    ] {
        assert_eq!(masked(variant, key), [""; 0], "{variant:?} {key}");
    }
}

/// Keys that nothing uses are reported; those that one variant uses are not, nor those left as they
/// are.
#[test]
fn keys_that_no_variant_uses_are_told() {
    let idle = |text: &str, set: &[(&str, &str)]| {
        let text = format!(
            "{HEAD}{text}\n[[traffic]]\nname = \"t\"\nkind = \"stride\"\nsize = 1000\npriority = \
             2\n"
        );
        let set: Vec<(String, String)> =
            set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let scenario = Scenario::parse("s", &text).unwrap();
        scenario.plan(None, &set, None).unwrap();
        scenario.idle(&set)
    };
    let told = |text: &str, set: &[(&str, &str)], keys: &[&str]| {
        let found = idle(text, set);
        let starts = keys.iter().map(|key| format!("`{key}` has no effect: "));
        assert_eq!(found.len(), keys.len(), "{text}: {found:?}");
        found
            .iter()
            .zip(starts)
            .for_each(|(found, start)| assert!(found.starts_with(&start), "{found}"));
    };
    let strict = "[switch]\nqueue = { kind = \"strict-priority\" }\n";
    told("", &[], &["traffic.t.priority"]);
    told("", &[("traffic.t.priority", "0")], &[]);
    told(strict, &[], &[]);
    told("[switch]\nbuffer = { kind = \"pools\" }\npause = { kind = \"pfc\" }", &[], &[]);
    told(&format!("{strict}[transport]\nkind = \"homa\""), &[], &["traffic.t.priority"]);
    told(
        &format!("{strict}[capture]\nsnaplen = \"200B\"\ntcp-timestamps = true"),
        &[],
        &["capture.snaplen", "capture.tcp-timestamps"],
    );
    told(&format!("{strict}[capture]\nsnaplen = \"200B\"\npcap = [\"host0\"]"), &[], &[]);
    let rdma =
        format!("{strict}[rdma]\nflow-control = \"rate\"\nrecovery = {{ kind = \"selective\" }}\n");
    told(&rdma, &[], &["rdma.flow-control", "rdma.recovery"]);
    told(&rdma, &[("transport.kind", "hpcc")], &[]);
    told(
        &format!("{rdma}[[variant]]\nname = \"hpcc\"\nset = {{ \"transport.kind\" = \"hpcc\" }}"),
        &[],
        &[],
    );
    let host = format!(
        "{strict}[host]\nsegment-offload = \"off\"\nnic = {{ per-flow-limit = \"64KiB\" }}\n"
    );
    told(&host, &[], &[]);
    told(
        &format!("{host}[transport]\nkind = \"hpcc\""),
        &[],
        &["host.nic.per-flow-limit", "host.segment-offload"],
    );
}

#[test]
fn messages_are_for_switches_that_serve_by_priority() {
    let text = |queue: &str| {
        format!(
            "duration = \"1ms\"\n[switch]\nqueue = {{ kind = \"{queue}\" }}\n[transport]\nkind = \
             \"homa\"\n[[traffic]]\nkind = \"stride\"\nsize = 1000\n"
        )
    };
    let told = |queue: &str| plan(&text(queue), None, &[]).unwrap().warnings;
    for queue in ["fifo", "srpt", "sp-pifo", "dynamic-queues"] {
        let warnings = told(queue);
        assert!(
            warnings.iter().any(|w| w.contains("\"homa\" provides priorities")),
            "{queue}: {warnings:?}"
        );
    }
    assert_eq!(told("strict-priority"), Vec::<String>::new());
    assert!(plan(&text("fifo").replace("homa", "dctcp"), None, &[]).unwrap().warnings.is_empty());
}

#[test]
fn what_messages_do_not_have_is_refused() {
    let homa = "[[traffic]]\nkind = \"stride\"\nsize = 1000\n[transport]\nkind = \"homa\"";
    fails(&format!("{homa}\n!importance = {{ kind = \"tlt\" }}"), "cannot be together");
    fails(&format!("{homa}\n!rank = {{ kind = \"remaining-bytes\" }}"), "cannot be together");
    fails(&format!("{homa}\n!min-rto = \"1ms\""), "what Homa reads begins with homa-");
    fails(&format!("{homa}\nhoma-overcommitment = !0"), "1 or more");
    fails(&format!("{homa}\nhoma-unscheduled-cutoffs = ![5, 5]"), "that ascend");
    fails("[transport]\nkind = !\"ndp\"", "transport.kind = \"homa\"");
}

#[test]
fn what_queue_pairs_do_not_have_is_refused() {
    let traffic = "[[traffic]]\nkind = \"stride\"\nsize = 1000\n";
    fails(
        &format!("{traffic}[transport]\nkind = \"dcqcn\"\n!min-rto = \"1ms\""),
        "`min-rto` has no effect",
    );
    fails(
        &format!("{traffic}[transport]\n!handshake = false\nkind = \"hpcc\""),
        "what queue pairs read is in [rdma]",
    );
    fails(
        &format!("{traffic}[transport]\nkind = \"dcqcn\"\n!dctcp-g = 0.1"),
        "it belongs to kind \"dctcp\"",
    );
    fails("[rdma]\n!windo = 1000", "did you mean `window`?");
    fails("[rdma]\nack-priority = !8", "0 to 7");
    fails("[rdma]\nrecovery = { kind = !\"go-back\" }", "go-back-n");
    fails("[rdma]\nrecovery = { !timeout-low = \"1ms\" }", "it belongs to kind \"selective\"");
    fails("[rdma]\nrecovery = { timeout = !\"0us\" }", "1us or more");
    fails("[transport]\nkind = \"hpcc\"\nhpcc-eta = !0.0", "must be more than zero");
    fails("[transport]\nkind = !\"irn\"", "recovery = { kind = \"selective\" }");
    for (table, key, what) in [
        (
            "host",
            "receive-offload = { kind = \"stock-gro\" }",
            "host.receive-offload \"stock-gro\"",
        ),
        ("[limit]", "rate = \"1Gbps\"\nhosts = \"all\"", "[[limit]]"),
    ] {
        let one = format!("{HEAD}{traffic}transport = {{ kind = \"timely\" }}\n[{table}]\n{key}\n");
        let shown = plan(&one, None, &[]).expect_err("both cannot be").to_string();
        assert!(
            shown.contains(&format!("{what} and transport \"timely\" cannot be together")),
            "{shown}"
        );
    }
    // The base's keys are its own; where a TCP runs beside, all keys are read.
    let base = format!("{HEAD}{traffic}[transport]\nmin-rto = \"1ms\"\n");
    assert!(plan(&base, None, &[("transport.kind", "dcqcn")]).is_ok());
    assert!(
        plan(&base, None, &[("transport.kind", "dcqcn"), ("transport.min-rto", "2ms")]).is_err()
    );
    let beside = [
        ("transport.kind", "dcqcn"),
        ("transport.min-rto", "2ms"),
        ("traffic.stride.transport.kind", "cubic"),
    ];
    assert!(plan(&base, None, &beside).is_ok());
}
