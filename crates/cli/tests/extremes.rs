//! The ends of what can be written: sizes, times and counts that wrapped, hung or ate all memory,
//! each with the message that it has now. `crates/sim/tests/extremes.rs` tests that every key of
//! the catalogue survives its ends.

use crate::common::{self, Dir, flat, millpond, succeed, summary, text};
use std::fs;
use std::process::Output;

const NETWORK: &str = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n";
const ONE_FLOW: &str = "[[traffic]]\nkind = \"flows\"\nrows = [[\"1us\", 0, 1, 10_000]]\n";

fn run(dir: &Dir, scenario: &str, words: &[&str]) -> Output {
    dir.write("s.toml", scenario);
    millpond(["run", "s.toml", "--out", "result", "--quiet"])
        .args(words)
        .current_dir(dir.path())
        .output()
        .unwrap()
}

/// Refused with exit code 2 and these words, and nothing is left.
fn refused(scenario: &str, phrases: &[&str]) -> String {
    let dir = Dir::new("extreme");
    let output = run(&dir, scenario, &[]);
    let message = flat(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}\nof\n{:.300}", scenario);
    for phrase in phrases {
        assert!(message.contains(phrase), "expected {phrase:?} in: {message}");
    }
    assert!(!message.contains("panicked") && dir.names() == ["s.toml"], "{message}");
    message
}

/// It runs; its summary.
fn runs(scenario: &str) -> serde_json::Value {
    let dir = Dir::new("extreme");
    let output = run(&dir, scenario, &[]);
    assert!(output.status.success(), "{}\nof\n{scenario}", text(&output.stderr));
    summary(&dir.at("result"))
}

#[test]
fn sizes_times_and_rates_have_an_end() {
    let pools = |keys: &str| {
        format!("{NETWORK}[switch]\nbuffer = {{ kind = \"pools\", {keys} }}\n{ONE_FLOW}")
    };
    refused(
        &pools("headroom = \"4611686018427387904B\""),
        &["[s.toml:6:39]", "1000TB is the largest size"],
    );
    refused(&pools("group-min = 18446744073709551615"), &["1000000000000000 are the most"]);
    refused(&pools("headroom = \"1000TB\""), &["not enough for switch0", "take 4000"]);
    refused(&NETWORK.replace("1ms", "18446744s"), &["1000000s is the longest time"]);
    let rows = |start: &str| {
        format!("{NETWORK}[[traffic]]\nkind = \"flows\"\nrows = [[{start}, 0, 1, 1]]\n")
    };
    refused(&rows("\"18446743s\""), &["expected [start, src, dst, bytes]"]);
    refused(&rows("1e13"), &["expected [start, src, dst, bytes]"]);
    let link =
        NETWORK.to_string() + "host-link = { rate = \"18446744073709551615bps\" }\n" + ONE_FLOW;
    refused(&link, &["1000Tbps is the highest rate"]);
    runs(&(NETWORK.replace("1ms", "1000000s") + ONE_FLOW));
}

#[test]
fn counts_that_no_machine_holds() {
    let incast =
        |keys: &str| format!("{NETWORK}[[traffic]]\nkind = \"incast\"\ndegree = 3\n{keys}\n");
    let at_once = "flows at once; 16000000 is the most";
    refused(
        &incast("rate = 1.0\nflows-per-server = 400_000_000"),
        &["[s.toml:9:", "1200000000", at_once],
    );
    refused(&incast("count = 18446744073709551615"), &["[s.toml:8:", at_once]);
    refused(&incast("flows-per-server = 4294967295"), &[at_once]);
    // A query in the mean of a thousand runs is still a query, whose flows must have numbers: both
    // together have none.
    let rare =
        |name: &str| incast(&format!("name = {name:?}\nrate = 1e-9\nflows-per-server = 5_000_000"));
    let many: String =
        (0..290).map(|i| rare(&format!("t{i}"))[NETWORK.len()..].to_string()).collect();
    refused(&format!("{NETWORK}{many}"), &["more flows than 32 bits can number"]);
    refused(
        &format!("{NETWORK}[[traffic]]\nkind = \"shuffle\"\nconcurrency = 0\n"),
        &["1 or more"],
    );
    let wide = format!(
        "{NETWORK}[[traffic]]\nkind = \"shuffle\"\nsize = 1000\nconcurrency = 4294967295\n"
    );
    assert_eq!(runs(&wide)["flows"]["completed"], 12);
}

#[test]
fn what_would_let_nothing_through() {
    let admission = |kind: &str| format!("{NETWORK}[switch]\nadmission = {{ {kind} }}\n{ONE_FLOW}");
    refused(&admission("kind = \"last-packet\", threshold = 0"), &["[s.toml:6:49]", "1B or more"]);
    refused(&admission("kind = \"red\", min-threshold = 0, max-threshold = 0"), &["1B or more"]);
    // A chain of switches as long as a packet's life, and one that is a switch longer.
    let chain = |switches: usize| {
        let link = |a: &str, b: &str| {
            format!("{{ a = {a:?}, b = {b:?}, rate = \"10Gbps\", delay = \"1us\" }}, ")
        };
        let last = format!("s{}", switches - 1);
        let links: String =
            (1..switches).map(|i| link(&format!("s{}", i - 1), &format!("s{i}"))).collect();
        let names: String = (0..switches).map(|i| format!("{{ name = \"s{i}\" }}, ")).collect();
        format!(
            "duration = \"10ms\"\n[topology]\nkind = \"file\"\n[topology.graph]\nhosts = \
             2\nswitches = [{names}]\nlinks = [{}{}{links}]\n{ONE_FLOW}",
            link("host0", "s0"),
            link("host1", &last)
        )
    };
    assert_eq!(runs(&chain(249))["flows"]["completed"], 1);
    refused(
        &chain(250),
        &["from s0 to s249 a packet meets 250 switches; its TTL lets it pass 249"],
    );
}

#[test]
fn load_is_of_the_host_links_where_there_is_no_fabric() {
    let poisson = format!("{NETWORK}[[traffic]]\nkind = \"poisson\"\nload = 0.2\nsizes = 10_000\n");
    let base = |more: &str| runs(&format!("{poisson}{more}"))["flows"]["started"].clone();
    assert_eq!(base(""), base("load-base = \"host-links\"\n"));
    refused(&format!("{poisson}load-base = \"fabric\"\n"), &["needs leaves with uplinks"]);
}

// Reports of mistakes.

#[test]
fn a_mistake_far_to_the_right_is_shown() {
    let far = " ".repeat(70_000);
    let message = refused(
        &format!("{NETWORK}x = [{far}\"1\", {far}]\n"),
        &["[s.toml:5:1]", "unknown key `x`"],
    );
    assert!(message.len() < 2_000, "{} bytes", message.len());
    refused(&format!("duration = \"1ms\"{far} x\n"), &["[s.toml:1:700"]);
    let long = "a".repeat(200_000);
    let message = refused(&format!("duration = \"1ms\"\nuntil = \"{long}\"\n"), &["[s.toml:2:9]"]);
    assert!(message.len() < 2_000, "{} bytes", message.len());
}

#[test]
fn one_missing_brace_is_one_mistake() {
    let scenario = NETWORK.to_string()
        + "host-link = { rate = \"10Gbps\", delay = \"1us\"\n[host]\nmtu = 1500\n"
        + ONE_FLOW;
    let message = refused(&scenario, &["unclosed inline table", "[s.toml:6:1]", "left open"]);
    assert_eq!(message.matches("[s.toml:").count(), 1, "{message}");
}

#[test]
fn thousands_of_mistakes_are_counted() {
    let wrong: String = (0..5_000).map(|i| format!("kee{i} = 1\n")).collect();
    let message = refused(&format!("{NETWORK}{wrong}"), &["and 4900 more errors"]);
    assert_eq!(message.matches("[s.toml:").count(), 100);
}

// Results.

#[test]
fn a_damaged_table_is_an_error() {
    let dir = Dir::new("damaged");
    let made = run(&dir, &format!("{NETWORK}{ONE_FLOW}"), &[]);
    assert!(made.status.success());
    let path = dir.at("result/flows.parquet");
    let whole = fs::read(&path).unwrap();
    let mut codes = Vec::new();
    for at in (0..whole.len()).step_by(29) {
        let mut bent = whole.clone();
        bent[at] ^= 0xff;
        fs::write(&path, bent).unwrap();
        let output =
            millpond(["export", "result", "--csv", "-"]).current_dir(dir.path()).output().unwrap();
        let message = flat(&output.stderr);
        assert!(
            !message.contains("panicked") && !message.contains("RUST_BACKTRACE"),
            "byte {at}: {message}"
        );
        assert!(
            output.status.success() || message.contains("flows.parquet"),
            "byte {at}: {message}"
        );
        codes.push(output.status.code());
    }
    assert!(
        codes.iter().all(|code| [Some(0), Some(1)].contains(code)) && codes.contains(&Some(1)),
        "{codes:?}"
    );
}

#[test]
fn an_out_that_ends_in_a_dot_can_be_replaced() {
    let dir = Dir::new("dot");
    dir.write("s.toml", &format!("{NETWORK}{ONE_FLOW}"));
    for _ in 0..2 {
        succeed(millpond(["run", "s.toml", "--quiet", "--out", "t/."]).current_dir(dir.path()));
        succeed(
            millpond(["sweep", "s.toml", "--quiet", "--seeds", "1..2", "--out", "w/."])
                .current_dir(dir.path()),
        );
    }
    assert_eq!(dir.names(), ["s.toml", "t", "w"]);
}

#[test]
fn seeds_at_the_end_of_their_range() {
    let dir = Dir::new("seeds");
    dir.write("s.toml", &format!("{NETWORK}{ONE_FLOW}"));
    let last = "18446744073709551613..18446744073709551615";
    succeed(
        millpond(["sweep", "s.toml", "--quiet", "--seeds", last, "--out", "w"])
            .current_dir(dir.path()),
    );
    let csv = succeed(millpond(["export", "w", "--csv", "-"]).current_dir(dir.path()));
    let seeds: Vec<String> = text(&csv.stdout)
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(2).unwrap().into())
        .collect();
    assert_eq!(seeds, ["18446744073709551613", "18446744073709551614", "18446744073709551615"]);
    for command in ["compare", "sweep"] {
        let all = [command, "s.toml", "--seeds", "0..18446744073709551615"];
        let output = millpond(all).current_dir(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(flat(&output.stderr).contains("--seeds"), "{}", text(&output.stderr));
    }
}

/// A comparison holds the plans that run, not all of them, and one copy of the list that they name.
#[test]
fn a_comparisons_memory_is_that_of_the_runs_under_way() {
    let dir = Dir::new("memory");
    // Long, and over before its first flow: what is left is what plans take.
    let rows: String = (0..200_000).map(|i| format!("{},0,1,1000\n", 10_000 + i)).collect();
    dir.write("flows.csv", &format!("start_us,src,dst,bytes\n{rows}"));
    dir.write("s.toml", &format!("{NETWORK}[[traffic]]\nkind = \"flows\"\nfile = \"flows.csv\"\n"));
    let peak = |seeds: &str, out: &str| {
        let words =
            ["compare", "s.toml", "--quiet", "--threads", "1", "--seeds", seeds, "--out", out];
        succeed(millpond(words).current_dir(dir.path()));
        let peaks = common::find(&dir.at(out), "summary.json").into_iter().map(|path| {
            let summary = common::json(&fs::read(path).unwrap());
            summary["run"]["peak_rss_bytes"].as_u64().unwrap_or(0)
        });
        peaks.max().unwrap()
    };
    let (few, many) = (peak("1..2", "few"), peak("1..24", "many"));
    assert!(many < few + few / 2, "two runs: {few} bytes, twenty-four: {many}");
}

/// The environment of a running program shows what it has started itself with.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn large_network_is_run_with_huge_pages_where_the_kernel_offers_them() {
    let offer = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if !offer.unwrap_or_default().contains("[madvise]") {
        return eprintln!("skipped: this kernel offers no huge pages to who asks");
    }
    let dir = Dir::new("huge-pages");
    let has_tunable = |k: u32, own: Option<&str>| {
        let text = format!(
            "duration = \"100s\"\n[topology]\nkind = \"fat-tree\"\nk = {k}\n[[traffic]]\nkind = \
             \"poisson\"\nsizes = \"1MB\"\nload = 0.5\n"
        );
        dir.write("large.toml", &text);
        let mut command = dir.command(&["run", "large.toml", "--threads=1", "--out", "x", "-q"]);
        command.env_remove("GLIBC_TUNABLES");
        command.envs(own.map(|own| ("GLIBC_TUNABLES", own)));
        let mut child = command.spawn().unwrap();
        // It writes its progress only after it has started itself.
        let began = std::time::Instant::now();
        while !dir.at("x.partial/progress.json").exists() {
            assert!(began.elapsed().as_secs() < 60, "no progress");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let environment = std::fs::read(format!("/proc/{}/environ", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_dir_all(dir.at("x.partial")).unwrap();
        String::from_utf8_lossy(&environment).contains("glibc.malloc.hugetlb=1")
    };
    assert!(has_tunable(16, None), "1,024 hosts gain");
    assert!(!has_tunable(4, None), "16 hosts do not");
    assert!(!has_tunable(16, Some("glibc.malloc.hugetlb=0")), "the user's word counts");
}
