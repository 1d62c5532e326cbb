//! Worlds on this kernel, however they end.
#![cfg(target_os = "linux")]

use millpond_worlds::{World, namespace, needs, sweep};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Everything on this host that goes by a world's name.
fn left(world: &str) -> Vec<String> {
    let places = ["/run/netns", "/run/millpond-worlds", "/sys/fs/cgroup"].map(Path::new);
    let temporary = std::env::temp_dir();
    let names = places.into_iter().chain([temporary.as_path()]).flat_map(|place| {
        let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string())
    });
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mounts = mounts.lines().map(String::from).collect::<Vec<_>>();
    names.chain(mounts).filter(|name| name.contains(world)).collect()
}

fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// A process that has a world: the world's name, and that of a process in it.
fn holder(args: &[&str]) -> Option<(Child, String, String)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond-world-holder"));
    let mut child =
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Some((world, pid)) = line.trim().split_once(' ') else {
        child.wait().unwrap();
        return None;
    };
    Some((child, world.to_string(), pid.to_string()))
}

fn kill(child: &Child, signal: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
}

const SIGINT: u32 = 2;

/// Whether processes that this one starts ignore a signal, as those of a job in the background do.
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 != 0
}

#[test]
fn two_namespaces_exchange_bytes_over_a_veth() {
    let world = needs!(World::new("pair"));
    let [a, b] = [needs!(world.namespace("a")), needs!(world.namespace("b"))];
    world.veths(&[[(&a, "eth0"), (&b, "eth0")]]).unwrap();
    a.ip("addr add 10.97.0.1/24 dev eth0\nlink set eth0 up").unwrap();
    b.ip("addr add 10.97.0.2/24 dev eth0\nlink set eth0 up").unwrap();
    let listener = b.run(|| TcpListener::bind("10.97.0.2:7000").unwrap()).unwrap();
    let stream = a.run(|| TcpStream::connect("10.97.0.2:7000").unwrap()).unwrap();
    assert_eq!(listener.accept().unwrap().1, stream.local_addr().unwrap());
    a.set("ipv4/tcp_no_metrics_save", "1").unwrap();
    assert!(a.set("ipv4/no_such_key", "1").is_err() && a.ip("link set none up").is_err());
    assert!(world.namespace("a").is_err(), "a label names one namespace");
    let name = world.name().to_string();
    drop((world, stream, listener));
    assert_eq!(left(&name), Vec::<String>::new());
}

#[test]
fn sixty_four_hosts_are_there_within_two_seconds() {
    let start = Instant::now();
    let world = needs!(World::new("many"));
    let middle = needs!(world.namespace("switch"));
    let labels: Vec<String> = (0..64).map(|host| format!("h{host}")).collect();
    let hosts = world.namespaces(&labels).unwrap();
    let ports: Vec<String> = (0..64).map(|host| format!("p{host}")).collect();
    let pair = |(host, port)| [(host, "eth0"), (&middle, port)];
    let pairs: Vec<_> = hosts.iter().zip(ports.iter().map(String::as_str)).map(pair).collect();
    world.veths(&pairs).unwrap();
    for (number, host) in hosts.iter().enumerate() {
        host.ip(&format!("addr add 10.97.1.{number}/24 dev eth0\nlink set eth0 up")).unwrap();
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let name = world.name().to_string();
    drop(world);
    assert_eq!(left(&name), Vec::<String>::new());
}

#[test]
fn closures_run_before_the_world_ends_and_its_processes_end_with_it() {
    let world = needs!(World::new("end"));
    let namespace = needs!(world.namespace("a"));
    let script = "sleep 1000 & echo $!; wait";
    let mut shell = world.command("sh");
    let child = shell.args(["-c", script]).stdout(Stdio::piped());
    let mut child = namespace.spawn(child).unwrap();
    let mut pid = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let (said, hears) = std::sync::mpsc::channel();
    for order in 0..2 {
        let (said, folder) = (said.clone(), world.folder().to_path_buf());
        world.at_end(move || said.send((order, folder.exists())).unwrap());
    }
    assert!(is_running(pid.trim()));
    drop(world);
    assert_eq!(hears.try_iter().collect::<Vec<_>>(), [(1, true), (0, true)]);
    assert!(!is_running(pid.trim()), "the shell's child goes with the shell");
    child.wait().unwrap();
}

#[test]
fn a_world_ends_with_a_panic_and_with_a_signal() {
    needs!(World::new("probe"));
    let (mut child, world, pid) = holder(&["panic"]).unwrap();
    child.wait().unwrap();
    assert_eq!((left(&world), is_running(&pid)), (Vec::new(), false));
    if is_ignored(SIGINT) {
        eprintln!("skipped: signals: these tests were started with SIGINT ignored");
        return;
    }
    for signal in ["-INT", "-TERM"] {
        let (mut child, world, pid) = holder(&[]).unwrap();
        assert!(is_running(&pid) && left(&world).len() >= 5, "{:?}", left(&world));
        kill(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!((left(&world), is_running(&pid)), (Vec::new(), false), "{signal}");
    }
}

#[test]
fn the_sweeper_takes_away_what_a_killed_process_has_left_and_nothing_else() {
    let own = needs!(World::new("own"));
    let namespace = needs!(own.namespace("a"));
    let (mut child, world, pid) = holder(&[]).unwrap();
    sweep().unwrap();
    assert!(left(&world).len() >= 5 && is_running(&pid), "it lives: {:?}", left(&world));
    kill(&child, "-KILL");
    child.wait().unwrap();
    // Another test's first world may sweep before this.
    sweep().unwrap();
    let start = Instant::now();
    while !left(&world).is_empty() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((left(&world), is_running(&pid)), (Vec::new(), false));
    assert!(namespace::identity(namespace.name()).is_some() && !left(own.name()).is_empty());
}
