//! World `virtual` as a user meets it: a run of real kernels, the simulator beside it, and nothing
//! left behind.

#![cfg(all(feature = "virtual", target_os = "linux"))]

use crate::common::{Dir, MILLPOND, summary};
use millpond_worlds::needs;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = r#"
until = "flows-complete"
topology = { kind = "single-switch", hosts = 3 }
[[traffic]]
kind = "incast"
degree = 2
response = "32KB"
period = "1ms"
count = 3
"#;

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_run_is_repeated_to_the_byte_and_names_its_kernel() {
    needs!(millpond_virtual::kernels::find(None));
    let scratch = Dir::with("run", SCENARIO);
    for out in ["a", "b"] {
        let ran = scratch.output(&["run", "s.toml", "--world", "virtual", "--out", out]);
        assert!(ran.status.success(), "{}", error(&ran));
    }
    let flows = |out: &str| fs::read(scratch.at(out).join("flows.parquet")).unwrap();
    assert!(flows("a") == flows("b"));
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(scratch.at("a/manifest.json")).unwrap()).unwrap();
    let kernel = manifest["inputs"][0][0].as_str().unwrap();
    assert!(kernel.starts_with("kernel ") && manifest["world"] == "virtual", "{manifest}");
}

#[test]
fn the_simulator_runs_beside_kernels_with_their_timers() {
    needs!(millpond_virtual::kernels::find(None));
    let scratch = Dir::with("compare", SCENARIO);
    let args = ["compare", "s.toml", "--worlds", "sim,virtual", "--out", "c", "--json", "-q"];
    let ran = scratch.output(&args);
    assert!(ran.status.success(), "{}", error(&ran));
    let results: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let names: Vec<&str> =
        results.as_array().unwrap().iter().filter_map(|it| it["variant"].as_str()).collect();
    assert_eq!(names, ["sim", "virtual"]);
}

#[test]
fn a_kernel_that_is_none_is_a_clear_error() {
    let scratch = Dir::with("none", SCENARIO);
    let args = ["run", "s.toml", "--world", "virtual", "--set", "host.kernel=s.toml"];
    let ran = scratch.output(&args);
    assert_eq!(ran.status.code(), Some(1), "{}", error(&ran));
    assert!(error(&ran).contains("it is no program"), "{}", error(&ran));
    let empty = scratch.at("no-kernel-here");
    let args = ["run", "s.toml", "--world", "virtual"];
    let ran = scratch.command(&args).env("MILLPOND_CACHE", &empty).output().unwrap();
    assert!(error(&ran).contains("make setup-virtual"), "{}", error(&ran));
}

#[test]
fn a_run_needs_no_root() {
    let kernel = needs!(millpond_virtual::kernels::find(None));
    needs!(rustix::process::geteuid().is_root(), "root, to be another user");
    // Another user reads neither root's cache nor this build's folder.
    let scratch = Dir::with("nobody", SCENARIO);
    let cache = scratch.at("kernel/current");
    fs::create_dir_all(&cache).unwrap();
    fs::copy(&kernel.program, cache.join("linux")).unwrap();
    fs::copy(&kernel.seeded, cache.join("seeded.so")).unwrap();
    fs::copy(MILLPOND, scratch.at("millpond")).unwrap();
    for path in [scratch.path(), &scratch.at("kernel"), &cache] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let ran = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "./millpond"])
        .args(["run", "s.toml", "--world", "virtual", "--out", "o"])
        .current_dir(scratch.path())
        .env("MILLPOND_CACHE", scratch.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", error(&ran));
}

/// Processes whose working folder is that of a guest of this run.
fn kernels(run: &Child) -> usize {
    let of_run = format!("/mp-virtual-{}-", run.id());
    let all = fs::read_dir("/proc").unwrap().flatten();
    let folders = all.filter_map(|it| fs::read_link(it.path().join("cwd")).ok());
    folders.filter(|it| it.to_string_lossy().contains(&of_run)).count()
}

/// Waits until something is so.
fn wait(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_left_of_a_run_that_is_killed() {
    needs!(millpond_virtual::kernels::find(None));
    let scratch = Dir::with("killed", &SCENARIO.replace("count = 3", "count = 1000000"));
    // While kernels boot, and when all of them run.
    for least in [0, 1, 2, 3, 3] {
        let args = ["run", "s.toml", "--world", "virtual", "--out", "k", "--force", "-q"];
        let mut run = scratch.command(&args).stderr(Stdio::null()).spawn().unwrap();
        wait("the kernels do not start", || kernels(&run) >= least);
        run.kill().unwrap();
        run.wait().unwrap();
        wait("kernels are left", || kernels(&run) == 0);
    }
}

#[test]
fn the_limiter_holds_its_rate_in_a_real_kernel() {
    needs!(millpond_virtual::kernels::find(None));
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    needs!(has("iperf3"), "iperf3 is missing");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/virtual/limit.toml");
    let scratch = Dir::with("limit", &fs::read_to_string(file).unwrap());
    let ran = scratch.output(&["run", "s.toml", "--world", "virtual", "--out", "l"]);
    assert!(ran.status.success(), "{}", error(&ran));
    let text = fs::read_to_string(scratch.at("l/programs/client.stdout")).unwrap();
    let line = text.lines().find(|line| line.ends_with("receiver")).unwrap_or_else(|| {
        panic!("{text}\n{}", fs::read_to_string(scratch.at("l/programs/client.stderr")).unwrap())
    });
    let rate = line.split_whitespace().zip(line.split_whitespace().skip(1));
    let rate: f64 =
        rate.filter(|(_, unit)| *unit == "Mbits/sec").find_map(|it| it.0.parse().ok()).unwrap();
    // IP bytes: 1500 for 1448 of payload.
    let of_limit = rate * 1500.0 / 1448.0 / 1000.0;
    assert!((0.985..1.01).contains(&of_limit), "{line}");
}

const LIMITED: &str = r#"
duration = "60ms"
warm-up = "10ms"
topology = { kind = "single-switch", hosts = 3 }
[[traffic]]
kind = "permutation"
size = "40MB"
[[limit]]
name = "slow"
hosts = 1
rate = "1Gbps"
"#;

/// The row of the limit in a run with this override.
fn limited(name: &str, set: &str) -> serde_json::Value {
    let scratch = Dir::with(name, LIMITED);
    let ran = scratch.output(&["run", "s.toml", "--world", "virtual", "--out", "l", "--set", set]);
    assert!(ran.status.success(), "{}", error(&ran));
    let summary: serde_json::Value = summary(&scratch.at("l"));
    summary["limits"][0].clone()
}

#[test]
fn limits_of_a_scenario_are_millpond_limits_in_each_kernel() {
    needs!(millpond_virtual::kernels::find(None));
    let limit = limited("limits", "limit.slow.kind=nrm");
    let rate = limit["rate_gbps"].as_f64().unwrap();
    assert!(limit["name"] == "slow" && (0.93..1.02).contains(&rate), "{limit}");
}

/// Its servers listen in the limit's cgroup.
#[test]
fn limits_of_what_arrives_hold_in_each_kernel() {
    needs!(millpond_virtual::kernels::find(None));
    let limit = limited("ingress", "limit.slow.direction=ingress");
    let rate = limit["rate_gbps"].as_f64().unwrap();
    assert!(limit["direction"] == "ingress" && (0.7..1.02).contains(&rate), "{limit}");
}

#[test]
fn limits_of_kind_htb_are_the_kernels_own() {
    needs!(millpond_virtual::kernels::find(None));
    let limit = limited("htb", "limit.slow.kind=htb");
    let rate = limit["rate_gbps"].as_f64().unwrap();
    assert!(limit["kind"] == "htb" && (0.98..1.01).contains(&rate), "{limit}");
    assert!(limit["packets"].as_u64().unwrap() > 3000, "{limit}");
}

#[test]
fn a_console_runs_commands_at_hosts_while_the_world_stands() {
    needs!(millpond_virtual::kernels::find(None));
    let scratch = Dir::with("console", SCENARIO);
    let args = ["run", "s.toml", "--world", "virtual", "--out", "c", "--console", "1ms", "--json"];
    let mut command = scratch.command(&args);
    let (input, output) = (Stdio::piped(), Stdio::piped());
    let mut run = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    let lines = "host1 cat /proc/uptime; hostname -I\nhost7 ls\ngo 1ms\nhost0 exit 4\n";
    run.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ran = run.wait_with_output().unwrap();
    let said = error(&ran);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("1.000000 ms > 0."), "{said}");
    assert!(said.contains("host0 to host2") && said.contains("(exit status 4)"), "{said}");
    let prompts: Vec<f64> = said
        .split(" ms > ")
        .filter_map(|text| text.rsplit(['\n', ' ']).next()?.parse().ok())
        .collect();
    // The command at the first stop has taken some microseconds.
    assert!(prompts.iter().any(|at| (2.0..2.2).contains(at)), "{prompts:?}");
    let summary: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert!(summary["warnings"].to_string().contains("2 commands"), "{summary}");
}
