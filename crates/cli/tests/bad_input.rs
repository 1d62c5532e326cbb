//! Bad input, bad places to write to, and runs that are cut short: a clear message that names the
//! place, the exit code of `docs/results.md` (2 bad usage or scenario, 1 failed, 130 interrupted),
//! and nothing left behind that looks whole.

use crate::common::{
    self, Dir, MILLPOND, files, flat, millpond, names, scenario, succeed, summary, text,
};
use millpond_worlds::needs;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A small scenario that is right; tests make it wrong.
const RIGHT: &str = r#"
name = "right"
duration = "1ms"
[topology]
kind = "single-switch"
hosts = 4
[[traffic]]
kind = "flows"
rows = [["1us", 0, 1, 10_000]]
[[variant]]
name = "cubic"
set = { "transport.kind" = "cubic" }
"#;

/// Runs this scenario in a fresh folder; whatever is wrong with it, nothing may be left that a
/// reader takes for a result.
fn run_text(scenario: &str, words: &[&str]) -> Output {
    let dir = Dir::new("bad");
    dir.write("s.toml", scenario);
    let output = millpond(["run", "s.toml", "--out", "result"])
        .args(words)
        .current_dir(dir.path())
        .output()
        .unwrap();
    if !output.status.success() {
        assert_eq!(dir.names(), ["s.toml"], "something is left of {words:?} on\n{scenario}");
    }
    output
}

/// The exit code, and every one of the phrases in the message.
fn says(output: &Output, code: i32, phrases: &[&str]) {
    let message = flat(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for phrase in phrases {
        assert!(message.contains(phrase), "expected {phrase:?} in: {message}");
    }
    assert!(!message.contains("panicked"), "{message}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}

/// A line added to the scenario; found at this place, with these words.
fn wrong(scenario: &str, place: &str, phrases: &[&str]) {
    let output = run_text(scenario, &[]);
    says(&output, 2, phrases);
    says(&output, 2, &[&format!("[s.toml:{place}]")]);
}

/// An override; the message points into it.
fn wrong_set(set: &str, phrases: &[&str]) {
    says(&run_text(RIGHT, &["--set", set]), 2, phrases);
}

#[test]
fn the_right_scenario_runs() {
    let output = run_text(RIGHT, &["--quiet"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

// The scenario.

#[test]
fn malformed_toml_is_found_where_it_is() {
    wrong("name = \"x\"\nduration = \n", "2:12", &[]);
    wrong("name = \"x\n", "1:10", &[]);
    wrong("[topology\nkind = 3\n", "1:10", &[]);
    let dir = Dir::new("bytes");
    fs::write(dir.at("s.toml"), [0xff, 0xfe, 0x00]).unwrap();
    let output = millpond(["run", "s.toml"]).current_dir(dir.path()).output().unwrap();
    says(&output, 2, &["s.toml", "UTF-8"]);
}

#[test]
fn an_unknown_key_is_told_with_its_nearest_name() {
    wrong(
        "name = \"x\"\nduration = \"1ms\"\nsede = 3\n",
        "3:1",
        &["unknown key `sede`", "did you mean `seed`?"],
    );
    wrong(
        &RIGHT.replace("hosts = 4", "host = 4"),
        "6:1",
        &["unknown key `host`", "did you mean `hosts`?"],
    );
    wrong(&RIGHT.replace("kind = \"flows\"", "kind = \"flow\""), "8:8", &["did you mean `flows`?"]);
}

#[test]
fn a_key_that_nothing_uses_is_an_error() {
    let unused = format!("{RIGHT}[transport]\nkind = \"newreno\"\ndctcp-g = 0.1\n");
    wrong(&unused, "15:1", &["dctcp-g", "it belongs to kind \"dctcp\""]);
}

#[test]
fn units_rates_and_times_must_make_sense() {
    let link = |rate: &str, delay: &str| {
        RIGHT.replace(
            "hosts = 4",
            &format!("hosts = 4\nhost-link = {{ rate = {rate}, delay = {delay} }}"),
        )
    };
    wrong(
        &link("\"10 furlongs\"", "\"1us\""),
        "7:22",
        &["\"furlongs\" is not a unit of rate", "Gbps"],
    );
    wrong(&link("\"0Gbps\"", "\"1us\""), "7:22", &["too slow to send a packet"]);
    wrong(&link("\"10Gbps\"", "\"-1us\""), "7:40", &["negative"]);
    wrong(&RIGHT.replace("\"1ms\"", "\"1 fortnight\""), "3:12", &["not a unit of time"]);
}

#[test]
fn impossible_networks_are_refused() {
    let network = |table: &str| RIGHT.replace("kind = \"single-switch\"\nhosts = 4", table);
    wrong(&network("kind = \"leaf-spine\"\nleaves = 0"), "6:10", &["leaves"]);
    wrong(&network("kind = \"fat-tree\"\nk = 5"), "6:5", &["5"]);
    wrong(&RIGHT.replace("hosts = 4", "hosts = 1"), "6:9", &["too few"]);
    wrong(&network("kind = \"fat-tree\"\nk = 100000"), "6:5", &["100000"]);
}

#[test]
fn numbers_of_hosts_must_exist() {
    let incast = |keys: &str| {
        let at = RIGHT.find("[[traffic]]").unwrap();
        format!("{}[[traffic]]\nkind = \"incast\"\n{keys}\n", &RIGHT[..at])
    };
    wrong(&incast("degree = 4"), "9:10", &["4 of 4 hosts", "1 to 3 can answer"]);
    wrong(&incast("degree = 1\nreceiver = 4"), "10:12", &["4 is no host", "there are 4, from 0"]);
    wrong(&RIGHT.replace("0, 1, 10_000", "0, 7, 10_000"), "9:8", &["dst 7 is no host"]);
}

#[test]
fn variants_are_found_by_name() {
    says(
        &run_text(RIGHT, &["--variant", "cubik"]),
        2,
        &["no variant \"cubik\"", "did you mean `cubic`?"],
    );
    let output = run_text(&RIGHT.replace("\"transport.kind\"", "\"transport.knid\""), &[]);
    says(&output, 2, &["s.toml:12:9", "did you mean `kind`?"]);
}

// Files that a scenario names.

#[test]
fn a_distribution_that_does_not_rise_is_found_by_its_line() {
    let poisson = RIGHT.replace(
        "kind = \"flows\"\nrows = [[\"1us\", 0, 1, 10_000]]",
        "kind = \"poisson\"\nload = 0.1\nsizes = { file = \"sizes.txt\" }",
    );
    let with = |sizes: Option<&str>| {
        let dir = Dir::new("cdf");
        dir.write("s.toml", &poisson);
        sizes.map(|sizes| dir.write("sizes.txt", sizes));
        let output = millpond(["run", "s.toml", "--out", "result"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(!dir.at("result").exists() && !dir.at("result.partial").exists());
        output
    };
    says(
        &with(Some("0 0\n100 0.7\n200 0.6\n300 1\n")),
        2,
        &["sizes.txt:3", "must not decrease", "[s.toml:10:"],
    );
    says(&with(Some("100 0.5\n50 1\n")), 2, &["sizes.txt:2", "sizes must not decrease"]);
    says(
        &with(Some("# comment\n100 0.5\nmany 1\n")),
        2,
        &["sizes.txt:3", "\"many\" is not a number"],
    );
    says(&with(Some("100 0.5\n200 0.9\n")), 2, &["sizes.txt:2", "must be 1"]);
    says(&with(Some("100 0.5 3 1\n")), 2, &["sizes.txt:1", "two columns"]);
    says(&with(Some("")), 2, &["sizes.txt:1", "no points"]);
    says(&with(None), 2, &["sizes.txt", "cannot be read", "[s.toml:10:"]);
}

#[test]
fn a_list_of_flows_is_checked_line_by_line() {
    let flows = RIGHT.replace("rows = [[\"1us\", 0, 1, 10_000]]", "file = \"flows.csv\"");
    let with = |csv: Option<&str>| {
        let dir = Dir::new("csv");
        dir.write("s.toml", &flows);
        csv.map(|csv| dir.write("flows.csv", csv));
        let output = millpond(["run", "s.toml", "--out", "result"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(!dir.at("result").exists() && !dir.at("result.partial").exists());
        output
    };
    let head = "start_us,src,dst,bytes";
    says(
        &with(Some("start,src,dst,bytes\n0,0,1,5\n")),
        2,
        &["flows.csv:1", "unknown column \"start\""],
    );
    says(&with(Some("start_us,src,dst\n0,0,1\n")), 2, &["flows.csv:1", "no column \"bytes\""]);
    says(
        &with(Some(&format!("{head}\n0,0,1,5\n0,0,1\n"))),
        2,
        &["flows.csv:3", "expected 4 columns, found 3"],
    );
    says(&with(Some(&format!("{head}\n0,0,4,5\n"))), 2, &["flows.csv:2", "dst 4 is no host"]);
    says(&with(Some(&format!("{head}\n0,2,2,5\n"))), 2, &["flows.csv:2", "host 2 sends to itself"]);
    says(&with(Some(&format!("{head}\n-1,0,1,5\n"))), 2, &["flows.csv:2", "start_us"]);
    says(&with(Some(&format!("{head}\n0,0,1,0\n"))), 2, &["flows.csv:2", "no size of a flow"]);
    says(&with(Some("")), 2, &["flows.csv:1", "no header"]);
    says(&with(None), 2, &["flows.csv", "cannot be read", "[s.toml:9:8]"]);
}

#[test]
fn a_scenario_that_is_not_there() {
    let dir = Dir::new("missing");
    for command in ["run", "compare", "check"] {
        let output = millpond([command, "nobody.toml"]).current_dir(dir.path()).output().unwrap();
        says(&output, 2, &["nobody.toml", "cannot be read"]);
    }
    assert!(dir.names().is_empty());
}

// The command line.

#[test]
fn overrides_are_checked_like_the_scenario() {
    wrong_set("nonsense", &["KEY=VALUE"]);
    wrong_set("=3", &["KEY=VALUE"]);
    wrong_set("topolgy.hosts=3", &["[--set:1:1]", "did you mean `topology`?"]);
    wrong_set("topology.hosts=many", &["[--set:1:16]"]);
    wrong_set("topology.hosts=-3", &["[--set:1:16]", "negative"]);
    wrong_set("transport.dctcp-gee=0.5", &["[--set:1:1]", "did you mean `dctcp-g`?"]);
    wrong_set("topology.host-link.rate=10 furlongs", &["[--set:1:25]", "not a unit of rate"]);
    wrong_set("traffic.nobody.size=1", &["no traffic \"nobody\""]);
    wrong_set("variant.cubic=1", &["not overridden"]);
}

#[test]
fn numbers_on_the_command_line() {
    says(&run_text(RIGHT, &["--threads", "0"]), 2, &["--threads", "at least one thread"]);
    says(&run_text(RIGHT, &["--threads", "two"]), 2, &["--threads", "whole number"]);
    says(&run_text(RIGHT, &["--seed", "-1"]), 2, &["--seed"]);
    let compare = |words: &[&str]| {
        let dir = Dir::new("compare");
        dir.write("s.toml", RIGHT);
        let output =
            millpond(["compare", "s.toml"]).args(words).current_dir(dir.path()).output().unwrap();
        assert_eq!(dir.names(), ["s.toml"]);
        output
    };
    says(&compare(&["--seeds", "5..1"]), 2, &["--seeds", "A..B"]);
    says(&compare(&["--seeds", "1..99999999999"]), 2, &["--seeds", "more than 100000 seeds"]);
    says(&compare(&["--threads", "0"]), 2, &["at least one thread"]);
    says(&compare(&["--vary", "transport.kind="]), 2, &["transport.kind", "empty value"]);
    says(&compare(&["--vary", "transport.kind=cubic,tahoe"]), 2, &["tahoe", "[--vary:1:16]"]);
    says(
        &compare(&["--vary", "seed=1,2", "--vary", "topolgy.hosts=3"]),
        2,
        &["did you mean", "[--vary:1:1]"],
    );
    says(
        &compare(&["--set", "topolgy.hosts=3", "--vary", "seed=1,2"]),
        2,
        &["did you mean", "[--set:1:1]"],
    );
    says(
        &compare(&["--vary", "seed=1,2", "--vary", "seed=3"]),
        2,
        &["--vary seed", "the key is there twice"],
    );
    says(&compare(&["--vary", "transport.kind=dctcp,dctcp"]), 2, &["dctcp", "twice"]);
    let dir = Dir::new("sweep");
    dir.write("s.toml", RIGHT);
    let mut sweep =
        millpond(["sweep", "s.toml", "--set", "seed=2", "--grid", "transport.kind=tahoe"]);
    says(&sweep.current_dir(dir.path()).output().unwrap(), 2, &["tahoe", "[--grid:1:16]"]);
    for seconds in ["nan", "-1", "inf", "soon"] {
        let daemons: &[&str] = if cfg!(all(feature = "linux", target_os = "linux")) {
            &["limit", "switch"]
        } else {
            &[]
        };
        for what in daemons {
            let interval = format!("--interval={seconds}");
            says(
                &millpond([what, "show", &interval]).output().unwrap(),
                2,
                &["--interval", "0 to 3600"],
            );
        }
    }
    says(
        &millpond(["check", "s.toml", "--resolved", "--json"]).output().unwrap(),
        2,
        &["--resolved", "--json"],
    );
    says(&millpond(["frobnicate"]).output().unwrap(), 2, &["frobnicate"]);
    says(&millpond(["run"]).output().unwrap(), 2, &["<SCENARIO>"]);
}

/// The inputs of several runs do not say what each of them was.
#[test]
fn only_a_runs_folder_can_be_run_again() {
    let dir = Dir::new("again");
    dir.write("s.toml", RIGHT);
    let at = |words: &[&str]| millpond(words).current_dir(dir.path()).output().unwrap();
    assert!(
        at(&["compare", "s.toml", "--vary", "seed=5,6", "--out", "cmp", "--quiet"])
            .status
            .success()
    );
    assert!(
        at(&["sweep", "s.toml", "--seeds", "1..2", "--out", "swp", "--quiet"]).status.success()
    );
    says(&at(&["run", "cmp"]), 2, &["holds a compare", "one of the runs below"]);
    says(&at(&["run", "swp/manifest.json"]), 2, &["holds a sweep"]);
    assert!(at(&["run", "cmp/cubic%20seed=6", "--out", "again", "--quiet"]).status.success());
}

/// A file in the current folder is named without its folder: a manifest, traces beside a scenario
/// of a manifest, a paper.
#[test]
fn files_are_found_from_their_own_folder() {
    let dir = Dir::new("own-folder");
    let job = "\n[[traffic]]\nname = \"job\"\nkind = \"simai\"\nfile = \"job.txt\"\n";
    dir.write("s.toml", &format!("{}{job}", RIGHT.split("[[variant]]").next().unwrap()));
    let layer = "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
    dir.write("job.txt", &format!("HYBRID_TRANSFORMER all_gpus: 2\n1\n{layer}\n"));
    let run = |words: &[&str], folder: &Path| {
        millpond(words).current_dir(folder).output().expect("the program starts")
    };
    let first = run(&["run", "s.toml", "--out", "first", "--quiet"], dir.path());
    let again = run(&["run", "manifest.json", "--out", "again", "--quiet"], &dir.at("first"));
    assert!(again.status.success(), "{first:?} {again:?}");
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/nrm");
    let listed = run(&["reproduce", "paper.toml", "--dry-run"], &paper);
    assert!(listed.status.success(), "{listed:?}");
}

/// A folder that is no run's is bad usage, whatever else it holds.
#[test]
fn a_folder_without_a_manifest_is_told() {
    let dir = Dir::new("folder");
    dir.write("s.toml", RIGHT);
    for command in ["run", "compare", "check"] {
        let output = millpond([command, "."]).current_dir(dir.path()).output().unwrap();
        says(&output, 2, &[". is a folder without a result's manifest.json", "scenario file"]);
    }
    let alone = RIGHT.split("[[variant]]").next().unwrap();
    dir.write("alone.toml", alone);
    let output = millpond(["compare", "alone.toml"]).current_dir(dir.path()).output().unwrap();
    says(&output, 2, &["no variants", "--vary KEY=A,B", "--seeds N"]);
    dir.write("named.toml", &RIGHT.replace("right", &"x".repeat(101)));
    let output = millpond(["check", "named.toml"]).current_dir(dir.path()).output().unwrap();
    says(&output, 2, &["cannot name a folder of results: it has 101 bytes, 100 may be"]);
}

/// A value makes a long name; the folder's is cut.
#[test]
fn values_may_be_long() {
    let dir = Dir::new("long");
    dir.write("s.toml", RIGHT);
    let rows = |bytes: u32| {
        (0..40).map(|i| format!("[\"{i}us\", 0, 1, {bytes}]")).collect::<Vec<_>>().join(", ")
    };
    let vary = format!("traffic.flows.rows=[{}],[{}]", rows(1_000), rows(2_000));
    let words = ["compare", "s.toml", "--vary", &vary, "--out", "cmp", "--quiet"];
    succeed(millpond(words).current_dir(dir.path()));
    assert_eq!(
        names(&dir.at("cmp")).iter().filter(|name| dir.at("cmp").join(name).is_dir()).count(),
        2
    );
}

// Where results go.

/// Runs the right scenario from its folder, to this place.
fn run_to(dir: &Dir, out: &str, words: &[&str]) -> Output {
    dir.write("s.toml", RIGHT);
    millpond(["run", "s.toml", "--quiet", "--out", out])
        .args(words)
        .current_dir(dir.path())
        .output()
        .unwrap()
}

#[test]
fn what_is_no_result_is_never_replaced() {
    let dir = Dir::new("precious");
    dir.write("file", "precious");
    fs::create_dir(dir.at("thesis")).unwrap();
    dir.write("thesis/chapter", "precious");
    says(&run_to(&dir, "file", &[]), 1, &["file is a file, not a folder"]);
    says(&run_to(&dir, "file", &["--force"]), 1, &["file is a file, not a folder"]);
    says(&run_to(&dir, "thesis", &[]), 1, &["thesis exists and is no millpond result", "--force"]);
    says(&run_to(&dir, "file/below", &[]), 1, &["file/below"]);
    says(&run_to(&dir, "..", &[]), 1, &["cannot name a results folder"]);
    assert_eq!(dir.names(), ["file", "s.toml", "thesis"]);
    assert_eq!(fs::read_to_string(dir.at("file")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(dir.at("thesis/chapter")).unwrap(), "precious");
    // By force it is: the user has said so.
    assert!(run_to(&dir, "thesis", &["--force"]).status.success());
    assert!(!dir.at("thesis/chapter").exists() && dir.at("thesis/manifest.json").exists());
}

#[test]
fn an_older_result_is_replaced_whole_and_only_by_a_run_that_ends() {
    let dir = Dir::new("older");
    assert!(run_to(&dir, "result", &[]).status.success());
    let before = files(&dir.at("result"));
    says(&run_to(&dir, "result", &["--variant", "nobody"]), 2, &["nobody"]);
    assert_eq!(files(&dir.at("result")), before);
    says(
        &run_to(&dir, "result", &["--variant", "cubic"]),
        1,
        &["result holds a run of", "--force"],
    );
    assert_eq!(files(&dir.at("result")), before);
    assert!(run_to(&dir, "result", &["--seed", "77"]).status.success());
    assert_eq!(summary(&dir.at("result"))["seed"], 77);
    assert_eq!(dir.names(), ["result", "s.toml"]);
}

#[test]
fn folders_above_the_result_are_made() {
    let dir = Dir::new("parents");
    assert!(run_to(&dir, "a/b/result", &[]).status.success());
    assert_eq!(names(&dir.at("a/b")), ["result"]);
}

/// A shell's word.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| text(&output.stdout).trim() == "0")
}

/// Root writes anywhere, so root becomes nobody first.
#[test]
fn a_folder_that_must_not_be_written_to() {
    let dir = Dir::new("forbidden");
    dir.write("s.toml", RIGHT);
    fs::create_dir(dir.at("forbidden")).unwrap();
    let modes = Command::new("chmod").arg("555").arg(dir.at("forbidden")).status().unwrap();
    assert!(modes.success());
    let mut command = if is_root() {
        // The build folder need not be open to nobody.
        fs::copy(MILLPOND, dir.at("millpond")).unwrap();
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(dir.at("millpond"));
        let can = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"])
            .status();
        needs!(can.is_ok_and(|status| status.success()), "setpriv, by which root becomes nobody");
        nobody
    } else {
        Command::new(MILLPOND)
    };
    let output = command
        .args(["run", "s.toml", "--quiet", "--out", "forbidden/result"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    says(&output, 1, &["cannot create forbidden/result", "Permission denied"]);
    assert!(names(&dir.at("forbidden")).is_empty());
}

/// The manifest of an older result of `incast`.
const OLDER: &str = r#"{"millpond":"0","schema":1,"kind":"run","name":"incast","world":"sim",
    "seed":1,"version":"0","scenario":"","overrides":[],
    "machine":{"os":"","arch":"","cpus":1},"started_at":"","finished_at":"",
    "status":"complete","warnings":[],"files":[]}"#;

/// On disks of every size up to enough there is a whole result or none, and an older one stays as
/// it was.
#[test]
fn a_disk_that_fills_up() {
    let can = || {
        Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success())
    };
    needs!(is_root() && can(), "root and unshare, to mount a small disk");
    let dir = Dir::new("full");
    fs::create_dir(dir.at("disk")).unwrap();
    let incast = scenario("incast");
    let run = |kib: u32, older: bool| {
        // A mount of one's own: nobody else sees it, and it goes with the process.
        let script = format!(
            "mount -t tmpfs -o size={kib}k tmpfs {disk} || exit 77
             if {older}; then mkdir {disk}/result && echo '{OLDER}' > {disk}/result/manifest.json; \
             fi
             {MILLPOND} run {incast} --quiet --out {disk}/result; code=$?
             ls -A {disk}; ls -A {disk}/result; exit $code",
            disk = quoted(&dir.at("disk")),
            incast = quoted(&incast),
        );
        Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap()
    };
    needs!(run(1024, false).status.code() != Some(77), "tmpfs, to mount a small disk");
    let (mut failed, mut succeeded) = (0, 0);
    for kib in (4..=292).step_by(12) {
        for older in [false, true] {
            let output = run(kib, older);
            let left = text(&output.stdout);
            let left: Vec<&str> = left.lines().collect();
            match output.status.code() {
                Some(0) => {
                    succeeded += 1;
                    assert_eq!(left[0], "result", "{kib} KiB: {left:?}");
                    assert_eq!(left.len(), 7, "{kib} KiB: six files in the result: {left:?}");
                }
                Some(1) => {
                    failed += 1;
                    let message = flat(&output.stderr);
                    assert!(
                        message.contains("No space left") && message.contains("result.partial"),
                        "{message}"
                    );
                    let expected: &[&str] = if older { &["result", "manifest.json"] } else { &[] };
                    assert_eq!(left, expected, "{kib} KiB: the older result or nothing");
                }
                code => panic!("{kib} KiB: exit {code:?}: {}", text(&output.stderr)),
            }
        }
    }
    assert!(
        failed >= 8 && succeeded >= 8,
        "{failed} disks were too small and {succeeded} large enough"
    );
}

// Runs that are cut short.

/// A run that would take minutes.
fn start_long_run(dir: &Dir) -> Child {
    let mut command = millpond([
        "run",
        "--quiet",
        "--set",
        "duration=100s",
        "--set",
        "traffic.queries.rate=20000",
    ]);
    command.arg(scenario("microburst")).arg("--out").arg(dir.at("result"));
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !dir.at("result.partial/progress.json").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "no progress.json after a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

fn signal(child: &Child, name: &str) {
    let sent =
        Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn progress_is_json_that_is_whole_at_any_time() {
    let dir = Dir::new("progress");
    let mut child = start_long_run(&dir);
    let mut last = 0.0;
    for _ in 0..40 {
        let progress = common::json(&fs::read(dir.at("result.partial/progress.json")).unwrap());
        let at = progress["simulated_s"].as_f64().unwrap();
        assert!(at >= last, "virtual time goes on");
        last = at;
        std::thread::sleep(Duration::from_millis(30));
    }
    assert!(last > 0.0, "it is replaced each second");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// As on a full disk: whoever watches sees nothing new, and the run goes on.
#[test]
fn progress_that_cannot_be_written_ends_no_run() {
    let dir = Dir::new("unwritten");
    let mut child = start_long_run(&dir);
    // A folder takes the place of the file that becomes progress.json.
    let place = dir.at("result.partial/.progress.json");
    let began = Instant::now();
    while fs::create_dir(&place).is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "the place is never free");
    }
    std::thread::sleep(Duration::from_millis(2500));
    assert!(child.try_wait().unwrap().is_none(), "it runs");
    fs::remove_dir(&place).unwrap();
    signal(&child, "INT");
    let ended = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{err}");
    assert_eq!(err.matches("the run goes on").count(), 1, "{err}");
}

#[test]
fn an_interrupted_run_keeps_what_there_was_and_says_so() {
    for name in ["INT", "TERM"] {
        let dir = Dir::new("interrupt");
        let child = start_long_run(&dir);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        says(&output, 130, &["interrupted"]);
        assert_eq!(dir.names(), ["result"], "no partial folder is left");
        let s = summary(&dir.at("result"));
        assert_eq!((&s["status"], &s["audit"]["conserved"]), (&"interrupted".into(), &true.into()));
        assert!(s["run"]["simulated_s"].as_f64().is_some_and(|s| s < 100.0));
        let manifest = common::json(&fs::read(dir.at("result/manifest.json")).unwrap());
        assert_eq!(manifest["status"], "interrupted");
        assert_eq!(
            names(&dir.at("result")),
            [
                "flows.parquet",
                "manifest.json",
                "queries.parquet",
                "report.html",
                "sizes.parquet",
                "summary.json"
            ]
        );
        let report = text(&fs::read(dir.at("result/report.html")).unwrap());
        assert!(report.contains("not complete"), "the page says so, too");
    }
}

#[test]
fn an_interrupted_comparison_leaves_no_result() {
    let dir = Dir::new("interrupt-compare");
    let mut command = millpond(["compare", "--quiet", "--set", "duration=100s"]);
    command.arg(scenario("microburst")).arg("--out").arg(dir.at("result"));
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !dir.at("result.partial/ecmp/flows.parquet").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing has begun after a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    says(&output, 130, &["interrupted"]);
    assert!(!dir.at("result").exists(), "{:?}", dir.names());
}

#[test]
fn a_killed_run_leaves_only_its_partial_folder_which_the_next_run_takes_over() {
    let dir = Dir::new("kill");
    let mut child = start_long_run(&dir);
    // While it lasts, nobody else may write there.
    let second = run_to(&dir, "result", &[]);
    says(&second, 1, &["another run", &format!("process {}", child.id())]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(dir.names(), ["result.partial", "s.toml"]);
    assert!(!dir.at("result.partial/manifest.json").exists(), "what was killed looks whole");
    let next = run_to(&dir, "result", &[]);
    assert!(next.status.success(), "{}", text(&next.stderr));
    assert_eq!(dir.names(), ["result", "s.toml"]);
    assert_eq!(summary(&dir.at("result"))["status"], "complete");
}

/// Whoever reads only the head of the output is no reason to fail.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let script = format!("{MILLPOND} list | head -1");
    let output = succeed(Command::new("sh").args(["-c", &script]));
    assert!(flat(&output.stderr).is_empty(), "{}", text(&output.stderr));
}

/// Nor is a stderr that takes nothing: the exit code says what happened.
#[test]
fn a_failure_that_nobody_is_told_keeps_its_exit_code() {
    let dir = Dir::new("untold");
    dir.write("s.toml", RIGHT);
    dir.write("bad.toml", &RIGHT.replace("hosts", "hsots"));
    let ends = |words: &str, code: i32| {
        for stderr in ["2>/dev/full", "2>&-"] {
            let script = format!("{MILLPOND} {words} {stderr}");
            let output =
                Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{script}");
        }
    };
    ends("check bad.toml", 2);
    ends("compare s.toml --vary transport.kind=tahoe", 2);
    ends("explain nonsense", 2);
    ends("run s.toml --out result --set switch.buffer.size=100", 0);
    ends("sweep s.toml --grid seed=1", 2);
    ends("export result flows.csv", 0);
    for words in ["check s.toml", "--help", "--version"] {
        let script = format!("{MILLPOND} {words} >/dev/full");
        let output =
            Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
        says(&output, 1, &["cannot write to stdout", "No space left"]);
    }
}
