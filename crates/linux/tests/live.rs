//! Limits on this machine's own kernel: two network namespaces, a veth pair, and cgroups that each test makes.
//!
//! Skipped, with a message, without root, cgroup v2, eBPF or `ip`. Children are this test's own program in another role,
//! because a socket belongs to the cgroup that its process was in.
#![allow(missing_docs)]

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};
use millpond_core::random::Stream;
use millpond_linux::limit::apply::Session;
use millpond_linux::limit::layout::{Head, LAYOUT};
use millpond_linux::limit::store::{self, Store};
use millpond_linux::limit::{Error, apply, serve, show};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROLE: &str = "MILLPOND_LIVE_ROLE";

/// One at a time: they measure.
static TURN: Mutex<()> = Mutex::new(());

/// What a test makes, and takes away again.
struct Place {
    bpffs: PathBuf,
    cgroup: PathBuf,
    networks: Vec<String>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

impl Place {
    /// `None`, with a message, where there can be none.
    fn new(name: &str) -> Option<Place> {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let skip = |why: &str| {
            eprintln!("skipped: {name} needs {why}");
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("root");
        }
        let Ok(hierarchy) = millpond_linux::limit::cgroup::Hierarchy::find() else { return skip("cgroup v2") };
        let bpffs = std::env::temp_dir().join(format!("millpond-live-{name}-{}", std::process::id()));
        fs::create_dir_all(&bpffs).unwrap();
        if let Err(error) = store::mount_bpffs(&bpffs) {
            let _ = fs::remove_dir(&bpffs);
            return skip(&format!("a bpf file system ({error})"));
        }
        let cgroup = hierarchy.root.join(format!("millpond-live-{name}-{}", std::process::id()));
        let place = Place { bpffs, cgroup, networks: Vec::new(), _turn: turn };
        if fs::create_dir(&place.cgroup).is_err() {
            return skip("a cgroup v2 that can be written to");
        }
        Some(place)
    }
    /// As `new`, with two namespaces, a and b, at 10.98.7.1 and 10.98.7.2.
    fn with_network(name: &str) -> Option<Place> {
        let mut place = Place::new(name)?;
        let [a, b] = ["a", "b"].map(|end| format!("mp{end}{}", std::process::id()));
        if !ip(&["netns", "add", &a]) {
            eprintln!("skipped: {name} needs `ip netns`");
            return None;
        }
        place.networks = vec![a.clone(), b.clone()];
        let [va, vb] = [format!("va{}", std::process::id()), format!("vb{}", std::process::id())];
        assert!(ip(&["netns", "add", &b]));
        assert!(ip(&["link", "add", &va, "netns", &a, "type", "veth", "peer", "name", &vb, "netns", &b]));
        for (end, device, address) in [(&a, &va, "10.98.7.1/24"), (&b, &vb, "10.98.7.2/24")] {
            assert!(ip(&["-n", end, "addr", "add", address, "dev", device]));
            assert!(ip(&["-n", end, "link", "set", device, "up"]));
        }
        Some(place)
    }
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("millpond-live-{}-{name}", std::process::id()));
        fs::write(&path, text.replace("CGROUP", self.cgroup.to_str().unwrap())).unwrap();
        path
    }
    fn secret(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
    fn apply(&self, file: &Path) -> Result<(), Error> {
        let mut session = Session::open(&self.bpffs)?;
        let source = session.read(file, false)?;
        let sources = session.with(source);
        session.install(sources, false).map(|_| ())
    }
    /// This program in another role, in the cgroup and the first namespace.
    fn child(&self, role: &str, args: &[String]) -> Child {
        self.child_at(0, role, args)
    }
    /// As `child`, in one of the namespaces.
    fn child_at(&self, host: usize, role: &str, args: &[String]) -> Child {
        let own = std::env::current_exe().unwrap();
        let mut command = match self.networks.get(host) {
            // The whole process, not one thread of it: the kick looks for processes.
            Some(network) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{network}")).arg(own);
                command
            }
            None => Command::new(own),
        };
        command.args(["--exact", "a_child_of_these_tests", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env("MILLPOND_LIVE_ARGS", args.join(" ")).stdout(Stdio::null());
        command.spawn().unwrap()
    }
    fn sender(&self, role: &str, args: &[&str]) -> Child {
        let mut all = vec![self.cgroup.display().to_string(), self.networks[0].clone()];
        all.extend(args.iter().map(|a| a.to_string()));
        self.child(role, &all)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = apply::remove_all(&self.bpffs);
        self.networks.iter().for_each(|n| {
            ip(&["netns", "del", n]);
        });
        for below in fs::read_dir(&self.cgroup).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(below.path());
        }
        // The kernel may need a moment for the processes that have just ended.
        let start = Instant::now();
        while self.cgroup.exists() && fs::remove_dir(&self.cgroup).is_err() && start.elapsed().as_secs() < 3 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = rustix::mount::unmount(&self.bpffs, rustix::mount::UnmountFlags::empty());
        let _ = fs::remove_dir(&self.bpffs);
        for name in ["a.toml", "b.toml", "c.toml"] {
            let _ = fs::remove_file(std::env::temp_dir().join(format!("millpond-live-{}-{name}", std::process::id())));
        }
    }
}

fn enter(network: &str) {
    let file = File::open(format!("/run/netns/{network}")).unwrap();
    let kind = Some(rustix::thread::LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(file.as_fd(), kind).unwrap();
}

/// Not a test: what a child does. Without a role it has nothing to do.
#[test]
fn a_child_of_these_tests() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let args = std::env::var("MILLPOND_LIVE_ARGS").unwrap();
    let args: Vec<&str> = args.split(' ').collect();
    match role.as_str() {
        "tcp" | "udp" | "flood" | "receive" => {
            fs::write(Path::new(args[0]).join("cgroup.procs"), std::process::id().to_string()).unwrap();
            match role.as_str() {
                "tcp" => send_tcp(args[2].parse().unwrap(), args[3].parse().unwrap()),
                "udp" => send_udp(),
                "receive" => receive(),
                _ => flood(args[2].parse().unwrap()),
            }
        }
        "apply" => apply_forever(&args),
        other => panic!("no role {other}"),
    }
}

/// The host's own congestion control may be BBR, which limits are not for.
fn connect() -> TcpStream {
    let to = TcpStream::connect("10.98.7.2:7007").unwrap();
    rustix::net::sockopt::set_tcp_congestion(&to, "cubic").unwrap();
    to
}

fn send_tcp(flows: usize, ms: u64) {
    let connections: Vec<TcpStream> = (0..flows).map(|_| connect()).collect();
    let end = Instant::now() + Duration::from_millis(ms);
    let threads = connections.into_iter().map(|mut to| {
        std::thread::spawn(move || {
            let piece = vec![0; 1 << 16];
            while Instant::now() < end && to.write_all(&piece).is_ok() {}
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|t| t.join().unwrap());
}

/// 100 Mbps or so, small steps.
fn flood(ms: u64) {
    let socket = UdpSocket::bind("10.98.7.1:0").unwrap();
    socket.connect("10.98.7.2:7007").unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(ms) {
        (0..10).for_each(|_| drop(socket.send(&[0; 1400])));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Takes what comes, until it is killed.
fn receive() {
    let listener = TcpListener::bind("10.98.7.2:7007").unwrap();
    for from in listener.incoming() {
        std::thread::spawn(move || {
            let (mut from, mut piece) = (from.unwrap(), vec![0; 1 << 18]);
            while let Ok(1..) = from.read(&mut piece) {}
        });
    }
}

fn send_udp() {
    let socket = UdpSocket::bind("10.98.7.1:0").unwrap();
    socket.connect("10.98.7.2:7007").unwrap();
    for _ in 0..3000 {
        // EPERM would come back here.
        if let Err(error) = socket.send(&[0; 1400])
            && error.kind() == std::io::ErrorKind::PermissionDenied
        {
            std::process::exit(3);
        }
    }
    std::process::exit(0);
}

fn apply_forever(args: &[&str]) {
    let (bpffs, files) = (Path::new(args[0]), [Path::new(args[1]), Path::new(args[2])]);
    let first: usize = args[3].parse().unwrap();
    for n in first.. {
        let mut session = Session::open(bpffs).unwrap();
        let mut source = session.read(files[n % 2], false).unwrap();
        // As one file that is edited.
        source.file = "edited".into();
        let sources = session.with(source);
        session.install(sources, false).unwrap();
    }
}

/// Bytes that arrived at the other end, every 50 ms.
struct Sink {
    bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Sink {
    fn new(place: &Place) -> Sink {
        let (bytes, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (network, counted, over) = (place.networks[1].clone(), bytes.clone(), stop.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            enter(&network);
            let listener = TcpListener::bind("10.98.7.2:7007").unwrap();
            listener.set_nonblocking(true).unwrap();
            ready.send(()).unwrap();
            while !over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((mut from, _)) => {
                        let counted = counted.clone();
                        from.set_nonblocking(false).unwrap();
                        std::thread::spawn(move || {
                            let mut piece = vec![0; 1 << 18];
                            while let Ok(n @ 1..) = from.read(&mut piece) {
                                counted.fetch_add(n as u64, Ordering::Relaxed);
                            }
                        });
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        is_ready.recv().unwrap();
        Sink { bytes, stop }
    }
    /// Megabits in the busiest second, and on average, while `child` runs.
    fn watch(&self, mut child: Child) -> (f64, f64) {
        let (mut seen, start) = (vec![], Instant::now());
        while child.try_wait().unwrap().is_none() {
            seen.push((start.elapsed().as_secs_f64(), self.bytes.load(Ordering::Relaxed)));
            std::thread::sleep(Duration::from_millis(50));
        }
        let first = seen.iter().position(|(_, b)| *b > seen[0].1).unwrap_or(0);
        let seen = &seen[first..];
        let mut most = 0.0f64;
        for (i, (from, bytes)) in seen.iter().enumerate() {
            if let Some((to, more)) = seen[i..].iter().find(|(to, _)| to - from >= 1.0) {
                most = most.max((more - bytes) as f64 * 8e-6 / (to - from));
            }
        }
        let (last, all) = (seen.last().unwrap(), seen.first().unwrap());
        (most, (last.1 - all.1) as f64 * 8e-6 / (last.0 - all.0))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_limit_holds_over_any_second() {
    let Some(place) = Place::with_network("holds") else { return };
    let sink = Sink::new(&place);
    for (mbps, flows, form) in [(50, 1, "credit"), (200, 5, "credit"), (200, 3, "lock-free")] {
        let text = format!(
            "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\npace = false\nrate = \"{mbps}Mbps\"\nform = \"{form}\"\n"
        );
        place.apply(&place.file("a.toml", &text)).unwrap();
        let (most, mean) = sink.watch(place.sender("tcp", &[&flows.to_string(), "3000"]));
        eprintln!("{mbps} Mbps, {flows} flows, {form}: {most:.1} Mbps in the busiest second, {mean:.1} on average");
        assert!(most <= mbps as f64 * 1.03, "{most} Mbps over a second, limit {mbps}");
        assert!(mean > mbps as f64 * 0.02, "{mean} of {mbps} Mbps: nothing gets through");
    }
    // One flow without ECN in a rack: its window cannot be small enough, so it runs into drops and waits for its timer.
    // The kick is for that.
    let text = "kick = \"20ms\"\n[[limit]]\npace = false\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"50Mbps\"\n";
    place.apply(&place.file("a.toml", text)).unwrap();
    let bpffs = place.bpffs.clone();
    std::thread::spawn(move || serve::serve(&bpffs, None, &|_| {}));
    let (most, mean) = sink.watch(place.sender("tcp", &["1", "4000"]));
    eprintln!("50 Mbps, 1 flow, with the kick: {most:.1} Mbps in the busiest second, {mean:.1} on average");
    assert!(most <= 50.0 * 1.03, "{most}");
    assert!(mean > 10.0, "{mean}");
    let reading = show::read(&place.bpffs, None).unwrap();
    let q = &reading.limits[0];
    assert!(
        q.packets > 1000 && q.reduced > 0 && q.kicks > 0 && q.rtt_us_mean.is_some() && q.cwnd_mean.is_some(),
        "{q:?}"
    );
    assert_eq!(q.backlog_us.iter().sum::<u64>(), q.packets);
}

/// What a virtual queue cannot do alone: a flow whose least window is more than its limit.
#[test]
fn a_paced_connection_needs_no_timer() {
    let Some(place) = Place::with_network("pace") else { return };
    let sink = Sink::new(&place);
    let limit = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"50Mbps\"\n";
    let links = || fs::read_dir(store::folder(&place.bpffs).join("links")).unwrap().count();
    place.apply(&place.file("a.toml", limit)).unwrap();
    assert_eq!(links(), 2, "the packets' and the connections'");
    let (most, mean) = sink.watch(place.sender("tcp", &["1", "3000"]));
    eprintln!("50 Mbps, 1 flow, paced: {most:.1} Mbps in the busiest second, {mean:.1} on average");
    assert!(most <= 50.0 * 1.03, "{most}");
    assert!(mean > 20.0, "{mean}");
    place.apply(&place.file("a.toml", &format!("{limit}pace = false\n"))).unwrap();
    assert_eq!(links(), 1, "pacing that is no longer asked for is gone");
}

/// A second bpf file system, for what another host has installed.
struct OtherHost(PathBuf);

impl OtherHost {
    fn new() -> OtherHost {
        let path = std::env::temp_dir().join(format!("millpond-live-other-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        store::mount_bpffs(&path).unwrap();
        OtherHost(path)
    }
}

impl Drop for OtherHost {
    fn drop(&mut self) {
        let _ = apply::remove_all(&self.0);
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::empty());
        let _ = fs::remove_dir(&self.0);
    }
}

/// What a `serve` in a namespace counts under a name.
fn metric(network: &str, name: &str) -> u64 {
    let (network, name) = (network.to_string(), format!("millpond_limit_notifications_{name}_total "));
    let asked = std::thread::spawn(move || {
        enter(&network);
        let mut to = TcpStream::connect("127.0.0.1:9184").unwrap();
        to.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        to.read_to_string(&mut text).unwrap();
        text.lines().find_map(|line| line.strip_prefix(&name).map(|n| n.parse().unwrap())).unwrap_or(0)
    });
    asked.join().unwrap()
}

/// A sender without ECN behind a limit at ingress on another host: with the side channel it slows down before it is dropped.
#[test]
fn a_sender_on_another_host_is_told() {
    let Some(place) = Place::with_network("told") else { return };
    let other = OtherHost::new();
    let [sender, receiver] = ["sender", "receiver"].map(|name| place.cgroup.join(name));
    let secret = place.secret("b.toml", "sixteen bytes or more");
    for folder in [&sender, &receiver] {
        fs::create_dir(folder).unwrap();
    }
    for (network, bpffs) in place.networks.iter().zip([&other.0, &place.bpffs]) {
        assert!(ip(&["-n", network, "link", "set", "lo", "up"]));
        let (network, bpffs) = (network.clone(), bpffs.clone());
        std::thread::spawn(move || {
            enter(&network);
            serve::serve(&bpffs, Some("127.0.0.1:9184".parse().unwrap()), &|text| eprintln!("serve: {text}"))
        });
    }
    let limit = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/receiver\"\ndirection = \"ingress\"\nrate = \"1Gbps\"\n";
    let channel = |of: &str| format!("[[notify]]\nsecret = \"{}\"\npeers = [\"{of}\"]\n", secret.display());
    let run = |channel: [String; 2], ms: &str| {
        let apply = |bpffs: &Path, text: String| {
            let _ = apply::remove_all(bpffs);
            if !text.is_empty() {
                let file = place.file("a.toml", &text);
                let mut session = Session::open(bpffs).unwrap();
                let sources = session.with(session.read(&file, false).unwrap());
                session.install(sources, false).unwrap();
            }
        };
        let [here, there] = channel;
        apply(&other.0, here);
        apply(&place.bpffs, format!("{limit}{there}"));
        // Serve follows within a second.
        std::thread::sleep(Duration::from_millis(1500));
        let mut sink = place.child_at(1, "receive", &[receiver.display().to_string(), String::new()]);
        std::thread::sleep(Duration::from_millis(300));
        let args = [sender.display().to_string(), place.networks[0].clone(), "1".into(), ms.into()];
        place.child("tcp", &args).wait().unwrap();
        sink.kill().unwrap();
        sink.wait().unwrap();
        // What was heeded is counted when the next message comes, or after a while.
        std::thread::sleep(Duration::from_millis(400));
        show::read(&place.bpffs, None).unwrap().limits[0].clone()
    };
    // The veth pair has no rate of its own, at which a window would be gone before anybody could be told: pacing stands for one.
    let wire = "[[limit]]\nname = \"wire\"\ncgroup = \"CGROUP/sender\"\nrate = \"1200Mbps\"\n".to_string();
    let without = run([wire.clone(), String::new()], "3000");
    assert_eq!((without.notifications, metric(&place.networks[1], "sent")), (0, 0));
    let with = run([format!("{wire}{}", channel("10.98.7.2")), channel("10.98.7.0/24")], "3000");
    let count = |host: usize, name| metric(&place.networks[host], name);
    for (name, q) in [("without", &without), ("with", &with)] {
        let mbps = (q.bytes - q.dropped_bytes) as f64 * 8e-6 / q.seconds;
        eprintln!(
            "{name}: {mbps:.0} Mbps, {} of {} packets dropped, {} notifications",
            q.dropped, q.packets, q.notifications
        );
    }
    let names = ["sent", "unsent", "received", "refused", "heeded"];
    let counted = [0, 1].map(|host| names.map(|name| count(host, name)));
    eprintln!("{names:?}: of the sender's host {:?}, of the receiver's {:?}", counted[0], counted[1]);
    let [sent, received, heeded] = [count(1, "sent"), count(0, "received"), count(0, "heeded")];
    assert!(with.notifications > 0 && sent > 0 && sent <= with.notifications, "{sent} of {}", with.notifications);
    assert!(
        received > 0 && received <= sent && heeded > 0 && heeded <= received,
        "{sent} sent, {received} received, {heeded} heeded"
    );
    assert!(with.dropped * 2 < without.dropped, "{} drops with, {} without", with.dropped, without.dropped);
    // Another secret: nothing is believed. A peer that is none: nothing is sent. Both times the limit holds as without.
    let heeded = count(0, "heeded");
    let other_secret = place.secret("c.toml", "another of sixteen bytes");
    let here = channel("10.98.7.2").replace(secret.to_str().unwrap(), other_secret.to_str().unwrap());
    let forged = run([format!("{wire}{here}"), channel("10.98.7.0/24")], "1000");
    let nobody = run([format!("{wire}{}", channel("10.98.7.2")), channel("10.99.0.0/16")], "1000");
    eprintln!("{} and {} packets dropped with another secret and without a peer", forged.dropped, nobody.dropped);
    assert!(count(0, "refused") > 0 && forged.notifications > 0);
    assert!(count(1, "unsent") >= nobody.notifications && nobody.notifications > 0);
    assert_eq!(count(0, "heeded"), heeded, "nothing more is heeded");
    assert!(forged.dropped > 0 && nobody.dropped > 0);
    fs::remove_dir(&sender).unwrap();
}

#[test]
fn udp_is_dropped_silently() {
    let Some(place) = Place::with_network("udp") else { return };
    place.apply(&place.file("a.toml", "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"1Mbps\"\n")).unwrap();
    let status = place.sender("udp", &[]).wait().unwrap();
    assert!(status.success(), "no EPERM: {status}");
    let reading = show::read(&place.bpffs, None).unwrap();
    assert!(reading.limits[0].dropped > 2000, "{:?}", reading.limits[0]);
    assert_eq!(reading.limits[0].returned[0], 0);
}

const OLD: &str = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"10Mbps\"\nscopes = [\"up\"]\n[[limit]]\nname = \"up\"\nrate = \"20Mbps\"\n";
const NEW: &str = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"30Mbps\"\ndirection = \"both\"\nscopes = [\"side\"]\n[[limit]]\nname = \"side\"\nrate = \"40Mbps\"\n";

/// Rates of the scopes that a packet of the cgroup would be charged to now, from the maps alone.
fn in_force(place: &Place) -> Option<Vec<u64>> {
    let store = Store::open(&place.bpffs).unwrap()?;
    let bank = store.head().unwrap().bank & 1;
    let (cgroup, _) = *store.links().first()?;
    let chain = store.attachment(cgroup).unwrap()?.chain[bank as usize][0];
    let map = MapHandle::from_pinned_path(store::map_path(store.folder(), "scopes")).unwrap();
    let rate = |id: &u16| {
        let bytes = map.lookup(&u32::from(*id).to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        let rate = u64::from_ne_bytes(bytes[bank as usize * 80..][..8].try_into().unwrap());
        (rate as f64 * 8e9 / (1u64 << 24) as f64 / 1e6).round() as u64
    };
    Some(chain.scopes[..chain.count as usize].iter().map(rate).collect())
}

#[test]
fn killed_at_any_instant_it_is_the_old_or_the_new() {
    let Some(place) = Place::new("kill") else { return };
    let (old, new) = (place.file("a.toml", OLD), place.file("b.toml", NEW));
    let args: Vec<String> = [&place.bpffs, &old, &new].map(|p| p.display().to_string()).to_vec();
    let mut random = Stream::new(std::process::id() as u64, "kill");
    let (mut seen_old, mut seen_new) = (0, 0);
    for round in 0..90u64 {
        if round >= 24 && seen_old > 2 && seen_new > 2 {
            break;
        }
        let mut all = args.clone();
        all.push((round % 2).to_string());
        let mut child = place.child("apply", &all);
        // Kills fall into all parts of an apply, and before the first; a busy machine takes longer to get there.
        std::thread::sleep(Duration::from_micros(20_000 + random.bits() % (150_000 + 6_000 * round)));
        child.kill().unwrap();
        child.wait().unwrap();
        match in_force(&place) {
            None => {}
            Some(rates) if rates.is_empty() => assert!(round == 0, "nothing is in force after {round} kills"),
            Some(rates) if rates == [10, 20] => seen_old += 1,
            Some(rates) => {
                assert_eq!(rates, [30, 40], "after {round} kills");
                seen_new += 1;
            }
        }
        let sources = Session::open(&place.bpffs).unwrap().sources;
        assert!(sources.len() <= 1, "what was applied can be read: {sources:?}");
    }
    assert!(seen_old > 0 && seen_new > 0, "{seen_old} old, {seen_new} new");
    place.apply(&old).unwrap_err();
    Session::open(&place.bpffs).unwrap().remove_all().unwrap();
    place.apply(&old).unwrap();
    assert_eq!(in_force(&place), Some(vec![10, 20]));
}

#[test]
fn remove_all_leaves_nothing() {
    let Some(place) = Place::new("remove") else { return };
    let text = format!("dctcp = true\n{NEW}");
    place.apply(&place.file("a.toml", &text)).unwrap();
    let folder = store::folder(&place.bpffs);
    let links: Vec<_> = fs::read_dir(folder.join("links")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(links.len(), 3, "egress, ingress, pace");
    let links: Vec<(u32, u32)> = links
        .iter()
        .map(|path| {
            let info = Link::open(path).unwrap().info().unwrap();
            (info.id, info.prog_id)
        })
        .collect();
    let map = |name: &str| MapHandle::from_pinned_path(store::map_path(&folder, name)).unwrap().info().unwrap().info.id;
    let maps: Vec<u32> = store::MAPS.iter().map(|name| map(name)).collect();
    assert!(apply::remove_all(&place.bpffs).unwrap());
    assert!(!apply::remove_all(&place.bpffs).unwrap(), "there is nothing more");
    assert_eq!(
        fs::read_dir(&place.bpffs).unwrap().filter(|e| e.as_ref().unwrap().file_name() == "millpond").count(),
        0
    );
    // The kernel frees them when it has time.
    let start = Instant::now();
    let gone = || {
        let programs = links.iter().all(|(_, id)| libbpf_rs::Program::fd_from_id(*id).is_err());
        programs && maps.iter().all(|id| MapHandle::from_map_id(*id).is_err())
    };
    while !gone() {
        assert!(start.elapsed().as_secs() < 10, "programs {links:?} or maps {maps:?} are still there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_cgroup_that_is_made_anew() {
    let Some(place) = Place::new("anew") else { return };
    let inner = place.cgroup.join("inner");
    fs::create_dir(&inner).unwrap();
    let file = place.file("a.toml", "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/inner\"\nrate = \"10Mbps\"\n");
    place.apply(&file).unwrap();
    let standing = || show::read(&place.bpffs, None).unwrap().limits[0].standing;
    assert_eq!(standing(), show::Standing::Active);
    fs::remove_dir(&inner).unwrap();
    assert_eq!(standing(), show::Standing::Waiting);
    assert!(matches!(place.apply(&file), Err(Error::Cgroup { .. })), "a cgroup that is not there is an error");
    fs::create_dir(&inner).unwrap();
    assert_eq!(standing(), show::Standing::Recreated);
    place.apply(&file).unwrap();
    assert_eq!(standing(), show::Standing::Active);
    // And by itself, where somebody serves.
    let bpffs = place.bpffs.clone();
    std::thread::spawn(move || serve::serve(&bpffs, None, &|_| {}));
    fs::remove_dir(&inner).unwrap();
    fs::create_dir(&inner).unwrap();
    let start = Instant::now();
    while standing() != show::Standing::Active {
        assert!(start.elapsed().as_secs() < 15, "serve did not apply again");
        std::thread::sleep(Duration::from_millis(100));
    }
    fs::remove_dir(&inner).unwrap();
}

#[test]
fn two_copies_wait_for_each_other() {
    let Some(place) = Place::new("two") else { return };
    let (old, new) = (place.file("a.toml", OLD), place.file("b.toml", NEW));
    let run = |file: &Path| {
        for _ in 0..15 {
            let mut session = Session::open(&place.bpffs).unwrap();
            let mut source = session.read(file, false).unwrap();
            source.file = "edited".into();
            let sources = session.with(source);
            session.install(sources, false).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(&old));
        scope.spawn(|| run(&new));
    });
    let rates = in_force(&place).unwrap();
    assert!(rates == [10, 20] || rates == [30, 40], "{rates:?}");
}

#[test]
fn files_that_conflict_and_values_that_change_in_place() {
    let Some(place) = Place::new("files") else { return };
    place.apply(&place.file("a.toml", OLD)).unwrap();
    let second = place.file("b.toml", "[[limit]]\nname = \"other\"\ncgroup = \"CGROUP\"\nrate = \"1Mbps\"\n");
    let said = place.apply(&second).unwrap_err().to_string();
    assert!(said.contains("have the same cgroup") && said.contains("a.toml") && said.contains("b.toml"), "{said}");
    assert_eq!(in_force(&place), Some(vec![10, 20]), "the old ones hold");
    let ids = || {
        let store = Store::open(&place.bpffs).unwrap().unwrap();
        let link = store::link_path(store.folder(), store.links()[0].0, 0);
        (Link::open(link).unwrap().info().unwrap().id, store.labels(store.head().unwrap().bank).unwrap())
    };
    let before = ids();
    let mut session = Session::open(&place.bpffs).unwrap();
    let sources = session.set("t", &[("rate".into(), "15Mbps".into())]).unwrap();
    session.install(sources, false).unwrap();
    assert_eq!(in_force(&place), Some(vec![15, 20]));
    assert_eq!(ids(), before, "the same link, the same queues");
    let without = session.without("up").unwrap_err_or_install(&mut session);
    assert!(without.contains("no such limit"), "{without}");
}

/// A removal that must be refused, as text.
trait Refused {
    fn unwrap_err_or_install(self, session: &mut Session) -> String;
}
impl Refused for Result<Vec<millpond_linux::limit::store::Source>, Error> {
    fn unwrap_err_or_install(self, session: &mut Session) -> String {
        self.and_then(|sources| session.install(sources, false)).unwrap_err().to_string()
    }
}

#[test]
fn another_layout_is_refused_and_can_be_removed() {
    let Some(place) = Place::new("layout") else { return };
    let file = place.file("a.toml", OLD);
    place.apply(&file).unwrap();
    let head = MapHandle::from_pinned_path(store::map_path(&store::folder(&place.bpffs), "head")).unwrap();
    head.update(&[0; 4], &Head { layout: LAYOUT + 41, bank: 1, flags: [0; 2] }.to_bytes(), MapFlags::ANY).unwrap();
    for said in [place.apply(&file).unwrap_err(), show::read(&place.bpffs, None).unwrap_err()] {
        assert!(matches!(said, Error::Layout { found, ours } if found == LAYOUT + 41 && ours == LAYOUT), "{said}");
    }
    assert!(apply::remove_all(&place.bpffs).unwrap());
    place.apply(&file).unwrap();
}

#[test]
fn a_hundred_cgroups_within_two_seconds() {
    let Some(place) = Place::new("hundred") else { return };
    let mut text = String::new();
    for i in 0..100 {
        fs::create_dir(place.cgroup.join(format!("c{i}"))).unwrap();
        text += &format!("[[limit]]\nname = \"c{i}\"\ncgroup = \"CGROUP/c{i}\"\nrate = \"5Mbps\"\n");
    }
    let file = place.file("a.toml", &text);
    let start = Instant::now();
    place.apply(&file).unwrap();
    let first = start.elapsed();
    place.apply(&file).unwrap();
    eprintln!("100 cgroups: {first:?}, again {:?}", start.elapsed() - first);
    assert!(first < Duration::from_secs(2), "{first:?}");
    assert_eq!(show::read(&place.bpffs, None).unwrap().limits.len(), 100);
}

/// A floor inside a limited cgroup: what is within it passes, whatever its slice has used up.
#[test]
fn a_floor_passes_when_its_slice_is_behind() {
    let Some(place) = Place::with_network("floor") else { return };
    let inner = place.cgroup.join("ssh");
    fs::create_dir(&inner).unwrap();
    let text = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"20Mbps\"\n[[floor]]\ncgroup = \"CGROUP/ssh\"\nrate = \"10Mbps\"\n";
    place.apply(&place.file("a.toml", text)).unwrap();
    let outer = [place.cgroup.display().to_string(), place.networks[0].clone(), "1500".into()];
    let mut greedy = place.child("flood", &outer);
    std::thread::sleep(Duration::from_millis(500));
    let mut protected = place.child("udp", &[inner.display().to_string(), place.networks[0].clone()]);
    protected.wait().unwrap();
    greedy.wait().unwrap();
    let store = Store::open(&place.bpffs).unwrap().unwrap();
    let labels = store.labels(store.head().unwrap().bank & 1).unwrap();
    let (id, _) = labels.iter().find(|(_, l)| l.name.starts_with("floor of")).unwrap();
    let floored = store.statistics(*id).unwrap().floored;
    assert!(floored > 5, "{floored} packets passed by the floor");
}
