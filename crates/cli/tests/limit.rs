//! `millpond limit` as a user meets it: errors of a file have their place, and what is not there is
//! said. Most tests install nothing; the others keep their limits in a bpf file system of their
//! own, and are skipped where there can be none.

#![cfg(all(feature = "linux", target_os = "linux"))]

use millpond_worlds::needs;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("millpond-limit-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
    /// Runs `millpond limit …` with an empty folder in the place of the bpf file system.
    fn limit(&self, args: &[&str]) -> Output {
        let _held = crate::removes_cgroups();
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.arg("limit").args(args).arg("--bpffs").arg(&self.0).output().unwrap()
    }
    fn apply(&self, text: &str) -> (Option<i32>, String) {
        let file = self.0.join("limits.toml");
        fs::write(&file, text).unwrap();
        let out = self.limit(&["apply", "--dry-run", file.to_str().unwrap()]);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.limit(&["remove", "--all"]);
        let _ = Command::new("umount").arg(&self.0).stderr(Stdio::null()).status();
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn has_cgroups() -> bool {
    millpond_linux::limit::cgroup::Hierarchy::find().is_ok()
}

#[test]
fn errors_have_their_place() {
    needs!(has_cgroups(), "cgroup v2");
    let scratch = Scratch::new("errors");
    let cases = [
        ("[[limit]]\nname = \"a\"\nrate = \"10 furlongs\"\n", ["limits.toml:3:8", "furlongs"]),
        ("[[limit]]\nname = \"a\"\nrate = \"0bps\"\n", ["limits.toml:3:8", "cannot be held"]),
        ("[[limit]]\nname = \"a\"\nrate = \"90000Gbps\"\n", ["limits.toml:3:8", "cannot be held"]),
        ("[[limit]]\nname = \"a\"\ndirecton = \"both\"\n", ["limits.toml:3:1", "direction"]),
        ("[[limit]]\nname = \"a\"\nscopes = [\"b\"]\n", ["limits.toml:3:10", "there is no limit"]),
    ];
    for (text, expected) in cases {
        let (code, said) = scratch.apply(text);
        assert_eq!(code, Some(2), "{text}: {said}");
        expected.iter().for_each(|e| assert!(said.contains(e), "{e} not in {said}"));
    }
    assert_eq!(scratch.apply("[[limit]]\nname = \"a\"\nrate = \"10gbps\"\n").0, Some(0));
}

#[test]
fn nothing_is_installed() {
    needs!(has_cgroups(), "cgroup v2");
    let scratch = Scratch::new("nothing");
    let shown = scratch.limit(&["show", "--json"]);
    assert_eq!(
        (shown.status.code(), shown.stdout.as_slice()),
        (Some(0), b"{\"limits\": []}\n".as_slice())
    );
    let shown = scratch.limit(&["show"]);
    assert_eq!(
        (shown.status.code(), shown.stdout.as_slice()),
        (Some(0), b"no limits are installed\n".as_slice())
    );
    assert_eq!(scratch.limit(&["remove", "--all"]).status.code(), Some(0));
    // A namespace of mounts without cgroups, as that of `ip netns exec`, hides limits in force.
    for args in ["show", "remove --all"] {
        let hidden = format!(
            "umount -l -a -t cgroup2; exec {} limit {args} --bpffs {}",
            env!("CARGO_BIN_EXE_millpond"),
            scratch.0.display()
        );
        let out = Command::new("unshare").args(["--mount", "sh", "-c", &hidden]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(1) && said.contains("cgroup v2"), "{said}");
    }
    assert_eq!(scratch.limit(&["remove"]).status.code(), Some(2));
    assert_eq!(scratch.limit(&["apply", "no-such-file.toml"]).status.code(), Some(1));
}

#[test]
fn what_only_changes_or_reads_mounts_nothing() {
    needs!(has_cgroups(), "cgroup v2");
    let scratch = Scratch::new("mounts");
    for args in [&["remove", "a"][..], &["set", "a", "rate=1Mbps"], &["observe", "a"]] {
        let out = scratch.limit(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("no limits are installed"), "{args:?}: {said}");
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(
            !mounts.contains(scratch.0.to_str().unwrap()),
            "{args:?} has mounted a file system"
        );
    }
}

/// A limit that no cgroup has, which can be installed wherever eBPF can be loaded.
const SCOPE: &str = "[[limit]]\nname = \"a\"\nrate = \"1Gbps\"\n";

/// A folder with `SCOPE` in force, where that can be.
fn installed(name: &str) -> Result<(Scratch, Scratch), String> {
    let (scratch, files) = (Scratch::new(name), Scratch::new(&format!("{name}-files")));
    let file = files.0.join("limits.toml");
    fs::write(&file, SCOPE).unwrap();
    let out = scratch.limit(&["apply", file.to_str().unwrap()]);
    match out.status.success() {
        true => Ok((scratch, files)),
        false => Err(format!("limits: {}", String::from_utf8_lossy(&out.stderr))),
    }
}

#[test]
fn a_dry_run_exits_as_apply_would() {
    needs!(has_cgroups(), "cgroup v2");
    let scratch = Scratch::new("dry");
    let file = scratch.0.join("limits.toml");
    fs::write(&file, format!("{SCOPE}[[limit]]\nname = \"b\"\ncgroup = \"no-such-cgroup\"\n"))
        .unwrap();
    let file = file.to_str().unwrap();
    let dry = scratch.limit(&["apply", "--dry-run", file]);
    let said = String::from_utf8_lossy(&dry.stderr);
    assert!(String::from_utf8_lossy(&dry.stdout).contains("b would wait"));
    assert_eq!(dry.status.code(), Some(1), "{said}");
    assert!(said.contains("limit \"b\"") && said.contains("no-such-cgroup"), "{said}");
    assert!(said.contains("apply --create makes it"), "{said}");
    assert_eq!(scratch.limit(&["apply", "--dry-run", "--wait", file]).status.code(), Some(0));
}

#[test]
fn files_are_checked_without_a_host() {
    let scratch = Scratch::new("check");
    let write = |name: &str, text: &str| {
        let path = scratch.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let pod = "[[limit]]\nname = \"b\"\npod = \"shop/web-0\"\nscopes = [\"a\"]\n";
    let [a, b] = [write("a.toml", SCOPE), write("b.toml", pod)];
    let wrong = write("c.toml", &pod.replace("shop/web-0", "web-0"));
    let check = |files: &[&str]| {
        let out = scratch.limit(&[&["check"], files].concat());
        let text = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, said) = check(&[&a, &b]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("b.toml: no errors in 1 limit and 0 floors"), "{said}");
    let (code, said) = check(&[&b]);
    assert!(code == Some(2) && said.contains("there is no limit \"a\""), "{said}");
    let (code, said) = check(&[&a, &wrong]);
    assert!(code == Some(2) && said.contains("c.toml:3:7") && said.contains("namespace"), "{said}");
}

#[test]
fn a_cgroup_stays_while_programs_run_in_it_and_is_named() {
    needs!(has_cgroups(), "cgroup v2");
    let (scratch, files) = needs!(installed("stays"));
    let (file, name) =
        (files.0.join("made.toml"), format!("millpond-stays-{}", std::process::id()));
    fs::write(&file, format!("[[limit]]\nname = \"m\"\nrate = \"1Gbps\"\ncgroup = \"{name}\"\n"))
        .unwrap();
    let procs = millpond_linux::limit::cgroup::Hierarchy::find().unwrap().root;
    let procs = procs.join(&name).join("cgroup.procs");
    // The other tests' removals take a cgroup that no program is in yet, also while it is made:
    // then it is made again.
    let mut program = (0..20).find_map(|_| {
        if !scratch.limit(&["apply", "--create", file.to_str().unwrap()]).status.success() {
            return None;
        }
        let mut program = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let program = program.args(["limit", "run", "m", "--bpffs"]).arg(&scratch.0);
        let program = program.args(["--", "cat"]).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut program = program.spawn().unwrap();
        while program.try_wait().unwrap().is_none() {
            if fs::read_to_string(&procs).is_ok_and(|text| !text.is_empty()) {
                return Some(program);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    });
    let program = program.as_mut().expect("a program joins its cgroup");
    // Also once the limits are gone.
    for outcome in ["all limits are removed\n", "no limits are installed\n"] {
        let removed = scratch.limit(&["remove", "--all"]);
        let (out, err) = (String::from_utf8(removed.stdout), String::from_utf8(removed.stderr));
        let (out, err) = (out.unwrap(), err.unwrap());
        assert_eq!(out, outcome);
        assert!(err.contains(&format!("{name} stays, since programs run in it")), "{err}");
    }
    drop(program.stdin.take());
    program.wait().unwrap();
    scratch.limit(&["remove", "--all"]);
    assert!(!procs.exists(), "it goes with the next removal");
}

/// A program whose traffic passes its limit by; one that ends at once leaves nobody to wait for.
#[test]
fn a_program_over_loopback_gets_a_hint() {
    needs!(has_cgroups(), "cgroup v2");
    let (scratch, files) = needs!(installed("over-lo"));
    let (file, name) =
        (files.0.join("made.toml"), format!("millpond-over-lo-{}", std::process::id()));
    fs::write(&file, format!("[[limit]]\nname = \"m\"\nrate = \"1Gbps\"\ncgroup = \"{name}\"\n"))
        .unwrap();
    let (socket, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), (Ipv4Addr::LOCALHOST, 9));
    socket.send_to(b"over lo", to).unwrap();
    let run = |seconds: &str| {
        (0..20).find_map(|_| {
            // The other tests' removals may take the cgroup: then it is made again.
            scratch.limit(&["apply", "--create", file.to_str().unwrap()]);
            let mut program = Command::new(env!("CARGO_BIN_EXE_millpond"));
            let program = program.args(["limit", "run", "m", "--bpffs"]).arg(&scratch.0);
            let ran = program.args(["--", "sleep", seconds]).output().unwrap();
            ran.status.success().then(|| String::from_utf8(ran.stderr).unwrap())
        })
    };
    let hint = run("3").unwrap();
    assert!(hint.contains("over lo where its processes are"), "{hint:?}");
    assert_eq!(hint.lines().count(), 1, "{hint}");
    let start = Instant::now();
    assert_eq!(run("0.1").unwrap(), "");
    assert!(start.elapsed() < Duration::from_secs(2), "its output ends with the program");
    scratch.limit(&["remove", "--all"]);
}

#[test]
fn a_mount_goes_with_the_last_limit_unless_another_has_pins_there() {
    needs!(has_cgroups(), "cgroup v2");
    let (scratch, _files) = needs!(installed("mounted"));
    let is_mounted = || {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.contains(&format!("millpond {} bpf", scratch.0.display()))
    };
    assert!(is_mounted(), "apply has mounted it");
    let other = scratch.0.join("other");
    fs::create_dir(&other).unwrap();
    let removed = scratch.limit(&["remove", "a"]);
    let said = String::from_utf8_lossy(&removed.stderr);
    assert!(removed.status.success() && is_mounted(), "{said}");
    assert!(said.contains("stays: limit remove --all unmounts it"), "{said}");
    assert!(scratch.limit(&["remove", "--all"]).status.success() && is_mounted());
    fs::remove_dir(&other).unwrap();
    assert!(scratch.limit(&["remove", "--all"]).status.success() && !is_mounted());
}

#[test]
fn limits_that_wait_are_not_in_force() {
    let (scratch, files) = needs!(installed("waiting"));
    let file = files.0.join("waiting.toml");
    fs::write(&file, "[[limit]]\nname = \"b\"\ncgroup = \"no-such-cgroup\"\n").unwrap();
    let out = scratch.limit(&["apply", "--wait", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(said, "1 limit in force, 0 cgroups with programs\n");
    assert!(String::from_utf8_lossy(&out.stderr).contains("\"b\" waits"));
}

#[test]
fn half_open_clients_do_not_delay_the_metrics_of_serve() {
    let (scratch, _files) = needs!(installed("half-open"));
    let own = Ipv4Addr::from(0x7f40_0000 | std::process::id());
    let address = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_millpond"));
    server.args(["limit", "serve", "--metrics", &address.to_string(), "--bpffs"]).arg(&scratch.0);
    let mut server = server.stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while metrics(address).is_none() {
        assert!(start.elapsed() < Duration::from_secs(30), "it does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }
    let half_open = |i: usize| {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(&b"GET /metrics HT"[..i % 2 * 15]).unwrap();
        client
    };
    let clients: Vec<TcpStream> = (0..64).map(half_open).collect();
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let start = Instant::now();
        let page = metrics(address).expect("it answers");
        assert!(page.contains("millpond_limit_limit_bits_per_second{limit=\"a\""), "{page}");
        slowest = slowest.max(start.elapsed());
    }
    drop(clients);
    server.kill().unwrap();
    server.wait().unwrap();
    eprintln!("the slowest of 10 pages beside 64 half-open clients: {slowest:?}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

/// As Kubernetes changes the files of a ConfigMap: all of them at once, by a link in their path.
#[test]
fn a_file_may_be_exchanged_by_a_link() {
    let (scratch, files) = needs!(installed("linked"));
    assert!(scratch.limit(&["remove", "--all"]).status.success());
    let at = |name: &str| files.0.join(name);
    let swap = |to: &str| {
        let _ = fs::remove_file(at("next"));
        std::os::unix::fs::symlink(to, at("next")).unwrap();
        fs::rename(at("next"), at("..data")).unwrap();
    };
    for (version, rate) in [("..1", "1Gbps"), ("..2", "2Gbps"), ("..3", "3Gbps")] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("l.toml"), SCOPE.replace("1Gbps", rate)).unwrap();
    }
    swap("..1");
    std::os::unix::fs::symlink("..data/l.toml", at("l.toml")).unwrap();
    let apply = |name: &str| {
        let out = scratch.limit(&["apply", at(name).to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let shown = scratch.limit(&["show", "--json"]);
        let all: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let limits = all["limits"].as_array().unwrap().iter();
        let of = |q: &serde_json::Value| {
            (q["limit_bps"].as_u64().unwrap(), q["file"].as_str().unwrap().to_string())
        };
        limits.map(of).collect::<Vec<_>>()
    };
    let known = at("l.toml").display().to_string();
    let expected = |gbps: u64| vec![(gbps * 1_000_000_000, known.clone()); 2];
    // As an earlier version knew it: by where the links led.
    assert_eq!(apply("..1/l.toml")[0].1, at("..1/l.toml").display().to_string());
    assert_eq!(apply("l.toml"), expected(1));
    swap("..2");
    fs::remove_dir_all(at("..1")).unwrap();
    assert_eq!(apply("l.toml"), expected(2));
    assert_eq!(apply("..2/l.toml"), expected(2), "the same file by its own path");
    swap("..3");
    assert_eq!(apply("l.toml"), expected(3));
    // Another file is another file.
    fs::write(at("b.toml"), SCOPE).unwrap();
    let out = scratch.limit(&["apply", at("b.toml").to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains(&format!("installed from {known}")));
}

#[test]
fn watching_ends_with_its_reader() {
    let (scratch, _files) = needs!(installed("watched"));
    for how in ["", "--json"] {
        let script = format!(
            "{} limit show --watch {how} --bpffs {} | head -n 1; echo over",
            env!("CARGO_BIN_EXE_millpond"),
            scratch.0.display()
        );
        let out = Command::new("timeout").args(["20", "sh", "-c", &script]).output().unwrap();
        assert!(out.status.success(), "it goes on for ever");
        assert!(out.stdout.ends_with(b"over\n"), "{}", String::from_utf8_lossy(&out.stdout));
        assert_eq!(String::from_utf8_lossy(&out.stderr), "", "a reader that has gone is no error");
    }
}

/// The page of metrics, or nothing.
fn metrics(address: SocketAddr) -> Option<String> {
    let mut to = TcpStream::connect(address).ok()?;
    to.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    to.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").ok()?;
    let mut text = String::new();
    to.read_to_string(&mut text).ok()?;
    text.starts_with("HTTP/1.1 200").then_some(text)
}

/// More connections than it may have files, none of which says anything: it answers when they are
/// gone.
#[test]
fn serve_answers_again_when_files_had_run_out() {
    needs!(has_cgroups(), "cgroup v2");
    let scratch = Scratch::new("files");
    // Of this process alone: nobody else draws a number that was free a moment ago.
    let own = Ipv4Addr::from(0x7f80_0000 | std::process::id());
    let address = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap();
    let script = format!(
        "ulimit -n 24; exec {} limit serve --metrics {address} --bpffs {}",
        env!("CARGO_BIN_EXE_millpond"),
        scratch.0.display()
    );
    let mut server =
        Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap();
    let mut comes = |what: &str| {
        let start = Instant::now();
        while metrics(address).is_none() {
            assert_eq!(server.try_wait().unwrap(), None, "{what}, and has not ended");
            assert!(start.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    comes("it answers");
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    std::thread::sleep(Duration::from_secs(1));
    assert!(metrics(address).is_none(), "no file is left for another");
    drop(silent);
    comes("it answers again");
    server.kill().unwrap();
    server.wait().unwrap();
}

/// The files that are shipped for a host beside the program.
fn packaging(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(path)
}

/// A node's pods as the recipe looks at them, again and again: `kubectl` is a script that prints a
/// file.
#[test]
fn the_recipe_for_pods_follows_their_list() {
    let (scratch, files) = needs!(installed("recipe"));
    assert!(scratch.limit(&["remove", "--all"]).status.success());
    let bin = files.0.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_millpond"), bin.join("millpond")).unwrap();
    let kubectl = bin.join("kubectl");
    fs::write(&kubectl, "#!/bin/sh\necho \"$@\" >>\"$LIST.asked\"\ncat \"$LIST\"\n").unwrap();
    fs::set_permissions(&kubectl, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let list = files.0.join("list");
    let look = |pods: &str| {
        fs::write(&list, pods).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut recipe = Command::new("sh");
        recipe
            .arg(packaging("kubernetes/pods.sh"))
            .env("PATH", path)
            .env("LIST", &list)
            .env("NODE", "here");
        recipe.env("EVERY", "0").env("FILE", files.0.join("pods.toml")).env("BPFFS", &scratch.0);
        let out = recipe.output().unwrap();
        let shown = scratch.limit(&["show", "--json"]);
        let all: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let limits = all["limits"].as_array().unwrap().iter();
        let rates: Vec<u64> = limits.map(|limit| limit["limit_bps"].as_u64().unwrap()).collect();
        (out.status.success(), rates, String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let pod = |rate: &str| {
        format!(
            "{{\"items\": [{{\"metadata\": {{\"name\": \"a\", \"namespace\": \"b\", \"uid\": \
             \"no-such-uid-{}\", \"annotations\": {{\"kubernetes.io/egress-bandwidth\": \
             \"{rate}\"}}}}}}]}}",
            std::process::id()
        )
    };
    let (done, rates, said) = look(&pod("10M"));
    assert!(
        done && rates == [10_000_000] && said.contains("waits for its cgroup"),
        "{rates:?} {said}"
    );
    assert_eq!(look(&pod("10M")), (true, vec![10_000_000], String::new()), "nothing has changed");
    assert_eq!(look(&pod("20M")).1, [20_000_000]);
    let (done, rates, said) = look("no list");
    assert!(!done && rates == [20_000_000] && said.contains("no list of pods"), "{rates:?} {said}");
    let (done, rates, said) = look("{\"items\": []}");
    assert!(done && rates.is_empty(), "{rates:?} {said}");
    let asked = fs::read_to_string(list.with_extension("asked")).unwrap();
    assert!(asked.lines().all(|line| line.contains("spec.nodeName=here")), "{asked}");
}

#[test]
fn the_commands_of_the_daemon_set_are_the_programs() {
    let text = fs::read_to_string(packaging("kubernetes/daemonset.yaml")).unwrap();
    let commands = text.lines().filter_map(|line| line.trim().strip_prefix("command: "));
    let commands: Vec<Vec<String>> =
        commands.map(|command| serde_json::from_str(command).unwrap()).collect();
    let (own, other): (Vec<_>, Vec<_>) = commands.iter().partition(|words| words[0] == "millpond");
    for words in &own {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let out = command.args(&words[1..]).arg("--help").output().unwrap();
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let script = Path::new(&other[0][1]).file_name().unwrap().to_str().unwrap();
    assert!(own.len() == 1 && packaging("kubernetes").join(script).exists(), "{commands:?}");
}
