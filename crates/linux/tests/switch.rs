//! The virtual switch with this machine's own kernel: network namespaces that each test makes, and real TCP between them.
//!
//! Skipped, with a message, without root, TAP or `ip`. The switch is this test's own program in another role, so that it can be
//! killed.
#![allow(missing_docs)]

use millpond_core::Time;
use millpond_linux::demo::{Arm, Plan, demo};
use millpond_linux::switch::config::Config;
use millpond_linux::switch::show::{PortState, Reading};
use millpond_linux::switch::state::State;
use millpond_linux::switch::{apply, serve, show};
use millpond_linux::{namespace, switch};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROLE: &str = "MILLPOND_SWITCH_STATE";

/// One at a time: the machine is small.
static TURN: Mutex<()> = Mutex::new(());

/// What a test makes, and takes away again.
struct Place {
    folder: PathBuf,
    networks: Vec<String>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// Whether `what` comes about in time.
fn soon(what: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(15) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// This test's own program, as the switch of a folder.
fn program(state: &State) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_switch_of_these_tests", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, state.folder());
    command
}

impl Place {
    /// With namespaces of these names; `None`, with a message, where there can be none.
    fn new(name: &str, ends: &[&str]) -> Option<Place> {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let fatal: Vec<_> = switch::doctor::examine().into_iter().filter(|f| f.what != "cores").collect();
        if let Some(lack) = fatal
            .iter()
            .find(|f| !matches!(f.state, millpond_linux::limit::doctor::State::Ok) && f.what != "congestion control")
        {
            eprintln!("skipped: {name} needs {}: {}", lack.what, lack.found);
            return None;
        }
        let folder = std::env::temp_dir().join(format!("millpond-switch-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut place = Place { folder, networks: Vec::new(), _turn: turn };
        for end in ends {
            let network = format!("mpt{}{end}", std::process::id());
            if !ip(&["netns", "add", &network]) {
                eprintln!("skipped: {name} needs `ip netns`");
                return None;
            }
            ip(&["-n", &network, "link", "set", "lo", "up"]);
            place.networks.push(network);
        }
        Some(place)
    }
    fn network(&self, index: usize) -> &str {
        &self.networks[index]
    }
    fn state(&self, name: &str) -> State {
        State::at(&self.folder.join(name))
    }
    /// Applies a text, in which NET0, NET1, … stand for the namespaces; the reading afterwards.
    fn apply(&self, name: &str, text: &str) -> Reading {
        let mut text = text.to_string();
        self.networks.iter().enumerate().for_each(|(i, n)| text = text.replace(&format!("NET{i}"), n));
        let config = Config::parse("test.toml", &text).unwrap();
        let state = self.state(name);
        let done = apply::apply(&state, &config, &|| program(&state)).unwrap();
        assert_eq!(done.waiting, [], "all ports open");
        show::read(&state).unwrap()
    }
    fn kill(&self, name: &str) {
        let pid = self.state(name).process().expect("it runs");
        assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
        assert!(soon(|| self.state(name).process().is_none()));
    }
    fn has(&self, index: usize, device: &str) -> bool {
        let out = Command::new("ip").args(["-n", self.network(index), "-o", "link"]).output().unwrap();
        String::from_utf8_lossy(&out.stdout).contains(device)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for state in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let _ = apply::remove_all(&State::at(&state.path()));
        }
        for network in &self.networks {
            ip(&["netns", "del", network]);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Not a test: what a switch does. Without a state folder it has nothing to do.
#[test]
fn a_switch_of_these_tests() {
    let Ok(folder) = std::env::var(ROLE) else { return };
    serve::serve(&State::at(folder.as_ref()), None, None, &|text| eprintln!("{text}")).unwrap();
}

const TWO: &str = r#"
[[port]]
name = "a"
device = "mpa"
namespace = "NET0"
addresses = ["10.98.8.1/24", "fd98::1/64"]
[[port]]
name = "b"
device = "mpb"
namespace = "NET1"
addresses = ["10.98.8.2/24", "fd98::2/64"]
"#;

fn connect(network: &str, address: SocketAddr) -> TcpStream {
    let start = Instant::now();
    loop {
        let tried = namespace::within(Some(network), || TcpStream::connect_timeout(&address, Duration::from_secs(2)));
        match tried.unwrap() {
            Ok(stream) => {
                rustix::net::sockopt::set_tcp_congestion(&stream, "cubic").unwrap();
                return stream;
            }
            // IPv6 looks for duplicates of its addresses first.
            Err(e) => assert!(start.elapsed().as_secs() < 30, "{address}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Byte `i` of a stream; no period that a lost or doubled packet could fit into.
fn byte(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Sends bytes from one namespace to another, checks each of them, and does `meanwhile` once some have arrived.
fn transfer(from: &str, to: &str, address: &str, bytes: u64, meanwhile: impl FnOnce()) {
    let address: SocketAddr = address.parse().unwrap();
    let listener = {
        let start = Instant::now();
        loop {
            match namespace::within(Some(to), || TcpListener::bind(address)).unwrap() {
                Ok(listener) => break listener,
                Err(e) => assert!(start.elapsed().as_secs() < 15, "{address}: {e}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let arrived = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = connect(from, address);
            let mut sent = 0;
            while sent < bytes {
                stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
                let piece: Vec<u8> = (sent..bytes.min(sent + 200_000)).map(byte).collect();
                stream.write_all(&piece).unwrap();
                sent += piece.len() as u64;
            }
        });
        let reader = scope.spawn(|| {
            listener.set_nonblocking(true).unwrap();
            let start = Instant::now();
            let mut stream = loop {
                match listener.accept() {
                    Ok((stream, _)) => break stream,
                    Err(e) => assert!(start.elapsed().as_secs() < 40, "nobody came to {address}: {e}"),
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let mut piece = vec![0; 1 << 16];
            loop {
                let n = stream.read(&mut piece).expect("the connection lives");
                let at = arrived.load(Ordering::Relaxed);
                assert!(piece[..n].iter().zip(at..).all(|(b, i)| *b == byte(i)), "a byte near {at} is wrong");
                arrived.store(at + n as u64, Ordering::Relaxed);
                if n == 0 {
                    return;
                }
            }
        });
        while arrived.load(Ordering::Relaxed) < bytes / 4 && !reader.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        meanwhile();
    });
    assert_eq!(arrived.into_inner(), bytes);
}

/// A switch of files, which needs no privilege; removed with the test.
struct Files(State);

impl Drop for Files {
    fn drop(&mut self) {
        let _ = apply::remove_all(&self.0);
        let _ = fs::remove_dir_all(self.0.folder());
    }
}

#[test]
fn a_switch_that_is_started_can_be_changed_by_several_at_once() {
    let files = Files(State::at(&std::env::temp_dir().join(format!("millpond-switch-files-{}", std::process::id()))));
    let state = &files.0;
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\nkind = \"pcap\"\nwrite = \"/dev/null\"\n");
    let config = Config::parse("test.toml", &["a", "b", "c"].map(port).concat()).unwrap();
    let done = apply::apply(state, &config, &|| program(state)).unwrap();
    assert_eq!((done.open, done.waiting), (3, Vec::new()));
    let first = show::read(state).unwrap();
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            scope.spawn(move || apply::remove(state, name, &|| program(state)).unwrap());
        }
    });
    let last = show::read(state).unwrap();
    let names: Vec<&str> = last.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!((names, last.pid), (vec!["c"], first.pid));
    assert!(apply::remove_all(state).unwrap() && !state.folder().exists());
}

/// As the process of another version, which knows other keys: it refuses what it is to become, and
/// ends when it is told to.
fn refuse_until_stopped(state: &State, is_up: &AtomicBool) {
    let _lock = state.lock_frames().unwrap().unwrap();
    let socket = UnixListener::bind(state.file("control.sock")).unwrap();
    is_up.store(true, Ordering::Relaxed);
    for client in socket.incoming() {
        let (mut client, mut asked) = (client.unwrap(), String::new());
        client.read_to_string(&mut asked).unwrap();
        let is_over = asked.starts_with("stop\n");
        let answer = if is_over { r#"{"ok":null}"# } else { r#"{"error":"config:1:1: unknown key `later`"}"# };
        client.write_all(answer.as_bytes()).unwrap();
        if is_over {
            return fs::remove_file(state.file("control.sock")).unwrap();
        }
    }
}

#[test]
fn a_process_of_another_version_makes_way() {
    let files = Files(State::at(&std::env::temp_dir().join(format!("millpond-switch-other-{}", std::process::id()))));
    let state = &files.0;
    state.create().unwrap();
    let is_up = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| refuse_until_stopped(state, &is_up));
        assert!(soon(|| is_up.load(Ordering::Relaxed)));
        assert_eq!(state.process(), Some(std::process::id()));
        let text = "[[port]]\nname = \"a\"\nkind = \"pcap\"\nwrite = \"/dev/null\"\n";
        let done = apply::apply(state, &Config::parse("test.toml", text).unwrap(), &|| program(state)).unwrap();
        assert_eq!((done.open, done.waiting), (1, Vec::new()));
        other.join().unwrap();
        assert_ne!(show::read(state).unwrap().pid, std::process::id());
    });
}

#[test]
fn tcp_crosses_and_a_killed_switch_loses_no_connection() {
    let Some(place) = Place::new("kill", &["a", "b"]) else { return };
    let first = place.apply("s", TWO);
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 300_000_000, || {
        place.kill("s");
        assert!(place.has(0, "mpa") && place.has(1, "mpb"), "interfaces stay");
        std::thread::sleep(Duration::from_millis(300));
        let second = place.apply("s", TWO);
        assert_ne!(first.pid, second.pid);
    });
    transfer(place.network(1), place.network(0), "[fd98::1]:7002", 50_000_000, || {});
    let reading = show::read(&place.state("s")).unwrap();
    assert!(reading.ports.iter().all(|p| p.counters.dropped.is_empty() && p.counters.sent_large > 100), "{reading:?}");
    // Again: nothing changes, and the counters stay.
    let again = place.apply("s", TWO);
    assert!(again.ports[0].counters.received >= reading.ports[0].counters.received && again.pid == reading.pid);
    // Without one of them, and then without all.
    place.apply("s", &TWO[..TWO.rfind("[[port]]").unwrap()]);
    assert!(place.has(0, "mpa") && !place.has(1, "mpb"));
    assert!(apply::remove_all(&place.state("s")).unwrap());
    assert!(!place.has(0, "mpa") && !place.state("s").folder().exists());
    assert!(!apply::remove_all(&place.state("s")).unwrap());
}

#[test]
fn a_killed_switch_is_removed_without_a_trace() {
    let Some(place) = Place::new("trace", &["a", "b"]) else { return };
    place.apply("s", TWO);
    place.kill("s");
    assert!(place.has(0, "mpa"));
    apply::remove_all(&place.state("s")).unwrap();
    assert!(!place.has(0, "mpa") && !place.has(1, "mpb") && !place.state("s").folder().exists());
    // What was there before is used and not removed.
    assert!(ip(&["-n", place.network(0), "tuntap", "add", "mpa", "mode", "tap"]));
    place.apply("s", TWO);
    apply::remove_all(&place.state("s")).unwrap();
    assert!(place.has(0, "mpa") && !place.has(1, "mpb"));
}

#[test]
fn a_second_process_takes_over() {
    let Some(place) = Place::new("over", &["a", "b"]) else { return };
    let first = place.apply("s", TWO);
    let mut second = Command::new(std::env::current_exe().unwrap());
    second.args(["--exact", "a_switch_of_these_tests", "--nocapture"]).env(ROLE, place.state("s").folder());
    let mut second = second.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(soon(|| show::read(&place.state("s")).is_ok_and(|r| r.pid == second.id())));
    assert_ne!(first.pid, second.id());
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 20_000_000, || {});
    apply::stop(&place.state("s")).unwrap();
    assert!(second.wait().unwrap().success());
}

#[test]
fn a_port_that_disappears_comes_back() {
    let Some(place) = Place::new("gone", &["a", "b"]) else { return };
    place.apply("s", TWO);
    let network = place.network(1);
    assert!(ip(&["-n", network, "link", "del", "mpb"]));
    // It is made anew, with its address; the other port has not suffered.
    assert!(soon(|| place.has(1, "mpb")));
    transfer(place.network(0), network, "10.98.8.2:7001", 20_000_000, || {});
    // With its namespace it cannot be, and the rest goes on.
    assert!(ip(&["netns", "del", network]));
    let waits = |r: &Reading| r.ports[1].state == PortState::Waiting && r.ports[1].reason.is_some();
    assert!(soon(|| show::read(&place.state("s")).is_ok_and(|r| waits(&r) && r.ports[0].state == PortState::Open)));
    assert!(ip(&["netns", "add", network]));
    assert!(soon(|| show::read(&place.state("s")).is_ok_and(|r| r.ports[1].state == PortState::Open)));
    transfer(place.network(0), network, "10.98.8.2:7002", 20_000_000, || {});
}

/// A tap, and a veth pair whose one end, in the third namespace, is a port.
fn tap_and_wire(place: &Place) {
    let [inner, outer] = [place.network(1), place.network(2)];
    let pair = ["-n", outer, "link", "add", "mpw", "type", "veth", "peer", "name", "mpc", "netns", inner];
    assert!(ip(&pair));
    for (network, device, address) in [(1, "mpc", Some("10.98.8.2/24")), (2, "mpw", None)] {
        let network = place.network(network);
        address.map(|a| ip(&["-n", network, "addr", "add", a, "dev", device]));
        assert!(ip(&["-n", network, "link", "set", device, "up"]));
    }
    let tap = &TWO[..TWO.rfind("[[port]]").unwrap()];
    place.apply(
        "s",
        &format!("{tap}[[port]]\nname = \"w\"\nkind = \"af-packet\"\ndevice = \"mpw\"\nnamespace = \"NET2\"\n"),
    );
}

#[test]
fn a_slow_interface_gets_all_of_a_burst() {
    let Some(place) = Place::new("slow", &["a", "b", "c"]) else { return };
    tap_and_wire(&place);
    let (a, b) = (place.network(0), place.network(1));
    // Room for everything in its queue: what bounds it is the packet socket, some 90 packets.
    let shape = "qdisc add dev mpw root tbf rate 100mbit burst 10kb limit 20mb";
    let mut tc = Command::new("tc");
    tc.args(["-n", place.network(2)]).args(shape.split(' '));
    if !tc.status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: slowing an interface down needs `tc` and tbf");
    }
    let there = namespace::within(Some(b), || UdpSocket::bind("10.98.8.2:7003")).unwrap().unwrap();
    there.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // The reader may be late.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&there, 4 << 20).unwrap();
    let here = namespace::within(Some(a), || UdpSocket::bind("10.98.8.1:0")).unwrap().unwrap();
    let mut room = vec![0; 2000];
    // Neighbours find each other first.
    here.send_to(&[0; 1400], "10.98.8.2:7003").unwrap();
    there.recv(&mut room).unwrap();
    // As many as a tap's own queue takes at once.
    for number in 0..300u32 {
        let datagram = [&number.to_be_bytes()[..], &[0; 1396]].concat();
        here.send_to(&datagram, "10.98.8.2:7003").unwrap();
    }
    for number in 0..300u32 {
        let length = there.recv(&mut room).unwrap_or_else(|e| panic!("datagram {number}: {e}"));
        assert_eq!((length, &room[..4]), (1400, &number.to_be_bytes()[..]));
    }
    let reading = show::read(&place.state("s")).unwrap();
    assert!(reading.ports.iter().all(|port| port.counters.dropped.is_empty()), "{reading:?}");
}

#[test]
fn tags_fragments_and_interfaces_of_others() {
    let Some(place) = Place::new("tags", &["a", "b", "c"]) else { return };
    tap_and_wire(&place);
    let (a, b) = (place.network(0), place.network(1));
    transfer(a, b, "10.98.8.2:7001", 50_000_000, || {});
    transfer(b, a, "10.98.8.1:7001", 50_000_000, || {});
    // Fragments: datagrams of three packets.
    let there = namespace::within(Some(b), || UdpSocket::bind("10.98.8.2:7003")).unwrap().unwrap();
    there.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let here = namespace::within(Some(a), || UdpSocket::bind("10.98.8.1:0")).unwrap().unwrap();
    let datagram: Vec<u8> = (0..4000).map(byte).collect();
    here.send_to(&datagram, "10.98.8.2:7003").unwrap();
    let mut room = vec![0; 5000];
    assert_eq!(there.recv(&mut room).unwrap(), 4000);
    assert_eq!(room[..4000], datagram);
    // Tags, which the kernel takes off what a packet socket gets, and super-segments behind them.
    let tagged = [(a, "mpa", "10.98.9.1/24"), (b, "mpc", "10.98.9.2/24")].map(|(network, device, address)| {
        ip(&["-n", network, "link", "add", "link", device, "name", "mptag", "type", "vlan", "id", "7"])
            && ip(&["-n", network, "addr", "add", address, "dev", "mptag"])
            && ip(&["-n", network, "link", "set", "mptag", "up"])
    });
    match tagged {
        [true, true] => {
            transfer(a, b, "10.98.9.2:7001", 20_000_000, || {});
            transfer(b, a, "10.98.9.1:7001", 20_000_000, || {});
        }
        _ => eprintln!("skipped: tags need VLAN interfaces"),
    }
    // An interface that goes away, and another of the same name.
    assert!(ip(&["-n", place.network(2), "link", "del", "mpw"]));
    assert!(soon(|| show::read(&place.state("s")).is_ok_and(|r| r.ports[1].state == PortState::Waiting)));
}

/// Two switches, four paths between them.
fn paths(local: usize, network: &str) -> String {
    let path = |i: u32| {
        let remote = 3 - local;
        format!(
            "[[path]]\npeer = \"other\"\nlocal = \"10.97.{i}.{local}:4799\"\nremote = \"10.97.{i}.{remote}:4799\"\nnamespace = \"{network}\"\n"
        )
    };
    (0..4).map(path).collect()
}

/// Four wires between the namespaces 2 and 3; what the two switches are, each with its tap in a namespace of its own.
fn four_paths(place: &Place) -> [String; 2] {
    for i in 0..4 {
        let (c, d) = (format!("mpc{i}"), format!("mpd{i}"));
        let ends = ["type", "veth", "peer", "name", &d, "netns", place.network(3)];
        assert!(ip(&[&["-n", place.network(2), "link", "add", &c][..], &ends].concat()));
        for (network, device, last) in [(2, &c, 1), (3, &d, 2)] {
            assert!(ip(&["-n", place.network(network), "addr", "add", &format!("10.97.{i}.{last}/24"), "dev", device]));
            assert!(ip(&["-n", place.network(network), "link", "set", device, "up"]));
        }
    }
    let (one, two) = TWO.split_at(TWO.rfind("[[port]]").unwrap());
    // Room for the outer headers.
    let [one, two] = [one, two].map(|text| text.replace("addresses", "mtu = 1400\naddresses"));
    [one + &paths(1, "NET2"), two + &paths(2, "NET3")]
}

/// How a switch finds its paths.
fn states(place: &Place, name: &str) -> Vec<String> {
    let reading = show::read(&place.state(name)).unwrap();
    reading.paths.iter().map(|path| path.health.state.clone()).collect()
}

/// New connections, one after another; how many came up within a second each.
fn come_up(from: &str, to: &str, address: &str, count: usize) -> usize {
    let address: SocketAddr = address.parse().unwrap();
    let listener = namespace::within(Some(to), || TcpListener::bind(address)).unwrap().unwrap();
    let second = Duration::from_secs(1);
    let one =
        |_: &usize| namespace::within(Some(from), || TcpStream::connect_timeout(&address, second)).unwrap().is_ok();
    let up = (0..count).filter(one).count();
    drop(listener);
    up
}

#[test]
fn a_path_that_dies_or_is_too_small_is_left_out() {
    let Some(place) = Place::new("dying", &["a", "b", "c", "d"]) else { return };
    let [left, right] = four_paths(&place);
    let [left, right] = [left, right].map(|text| text + "[[peer]]\nname = \"other\"\ndead-after = \"200ms\"\n");
    place.apply("left", &left);
    place.apply("right", &right);
    let (a, b) = (place.network(0), place.network(1));
    assert!(soon(|| states(&place, "left") == ["used"; 4] && states(&place, "right") == ["used"; 4]));
    // The first path, which all that is no flow took: frames to its other end go nowhere, without a word.
    let neighbour = ["neigh", "replace", "10.97.0.2", "lladdr", "02:00:00:00:00:99", "dev", "mpc0", "nud", "permanent"];
    assert!(ip(&[&["-n", place.network(2)][..], &neighbour].concat()));
    let is_dead = |name: &str| states(&place, name) == ["dead", "used", "used", "used"];
    assert!(soon(|| is_dead("left") && is_dead("right")), "{:?}", states(&place, "left"));
    assert_eq!(come_up(a, b, "10.98.8.2:7101", 40), 40);
    transfer(a, b, "10.98.8.2:7102", 30_000_000, || {});
    // Another one, by the interface, under a connection; and the first is there again.
    transfer(a, b, "10.98.8.2:7103", 100_000_000, || {
        assert!(ip(&["-n", place.network(3), "link", "set", "mpd2", "down"]));
    });
    assert!(ip(&["-n", place.network(2), "neigh", "del", "10.97.0.2", "dev", "mpc0"]));
    assert!(soon(|| states(&place, "left") == ["used", "used", "dead", "used"]), "{:?}", states(&place, "left"));
    // A small one carries what is small and nothing else: with others it carries nothing.
    for (network, device) in [(2, "mpc1"), (3, "mpd1")] {
        assert!(ip(&["-n", place.network(network), "link", "set", device, "mtu", "1300"]));
    }
    assert!(soon(|| states(&place, "left")[1] == "narrow" && states(&place, "right")[1] == "narrow"));
    transfer(b, a, "10.98.8.1:7104", 30_000_000, || {});
    let reading = show::read(&place.state("left")).unwrap();
    assert!(reading.table(None).contains("NOT AUTHENTICATED: other"), "{}", reading.table(None));
}

#[test]
fn with_a_key_only_the_peer_gets_frames_through() {
    let Some(place) = Place::new("sealed", &["a", "b", "c", "d"]) else { return };
    let key = place.folder.with_extension("key");
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::write(&key, text).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("the first of our keys\n");
    let peer = format!("[[peer]]\nname = \"other\"\nkey = {key:?}\n");
    let [left, right] = four_paths(&place).map(|text| text + &peer);
    place.apply("left", &left);
    place.apply("right", &right);
    let (a, b) = (place.network(0), place.network(1));
    assert!(soon(|| states(&place, "left") == ["used"; 4]), "{:?}", states(&place, "left"));
    transfer(a, b, "10.98.8.2:7201", 60_000_000, || {
        // A new key, in three steps.
        let steps = [
            "the first of our keys\nthe second of our keys",
            "the second of our keys\nthe first of our keys",
            "the second of our keys",
        ];
        for step in steps {
            write(step);
            std::thread::sleep(Duration::from_millis(1500));
        }
    });
    transfer(b, a, "[fd98::1]:7201", 30_000_000, || {});
    let stranger = |name: &str| -> u64 {
        let reading = show::read(&place.state(name)).unwrap();
        reading.paths.iter().filter_map(|path| path.counters.dropped.get("stranger")).sum()
    };
    assert_eq!((stranger("left"), stranger("right")), (0, 0), "no loss by a new key");
    // A switch that starts anew, under a connection.
    transfer(a, b, "10.98.8.2:7202", 60_000_000, || {
        place.kill("right");
        place.apply("right", &right);
    });
    // Somebody at the peer's address, with frames of the plain kind: they reach no tap.
    place.kill("right");
    let forger = namespace::within(Some(place.network(3)), || UdpSocket::bind("10.97.0.2:4799")).unwrap().unwrap();
    let before = show::read(&place.state("left")).unwrap();
    let frame: Vec<u8> = [&[0x6d, 0x10, 0, 0, 0, 0, 0, 0][..], &[0xff; 6], &[2; 6], &[0x08, 0], &[7; 60]].concat();
    (0..100).for_each(|_| drop(forger.send_to(&frame, "10.97.0.1:4799")));
    assert!(soon(|| stranger("left") >= 100));
    let after = show::read(&place.state("left")).unwrap();
    assert_eq!(after.ports[0].counters.sent, before.ports[0].counters.sent);
    drop(forger);
    place.apply("right", &right);
    transfer(a, b, "10.98.8.2:7203", 10_000_000, || {});
    assert!(!show::read(&place.state("left")).unwrap().table(None).contains("NOT AUTHENTICATED"));
    fs::remove_file(&key).unwrap();
}

#[test]
fn peers_over_four_paths() {
    let Some(place) = Place::new("peers", &["a", "b", "c", "d"]) else { return };
    let [left, right] = four_paths(&place);
    place.apply("left", &left);
    place.apply("right", &right);
    let (a, b) = (place.network(0), place.network(1));
    transfer(a, b, "10.98.8.2:7001", 100_000_000, || {});
    transfer(b, a, "[fd98::1]:7001", 50_000_000, || {});
    let reading = show::read(&place.state("right")).unwrap();
    let share: Vec<u64> = reading.paths.iter().map(|p| p.counters.received_bytes).collect();
    // Not alike: super-segments of a write's end are short, and turns may give all of those to one path.
    assert!(share.iter().all(|s| *s > share.iter().sum::<u64>() / 40), "all paths carry: {share:?}");
    assert!(reading.edge.packets > 3 * reading.edge.segments, "merged: {:?}", reading.edge);
    assert_eq!(reading.buffers, 0);
    // A peer that does not answer, and comes back under the connection.
    transfer(a, b, "10.98.8.2:7002", 100_000_000, || {
        place.kill("right");
        std::thread::sleep(Duration::from_millis(300));
        place.apply("right", &right);
    });
    let left_now = show::read(&place.state("left")).unwrap();
    let refused: u64 = left_now.paths.iter().filter_map(|p| p.counters.dropped.get("unreachable")).sum::<u64>()
        + left_now.ports[0].counters.dropped.get("unreachable").copied().unwrap_or(0);
    assert!(refused > 0, "{left_now:?}");
    // Somebody at the peer's address who sends anything.
    place.kill("right");
    let forger = namespace::within(Some(place.network(3)), || UdpSocket::bind("10.97.0.2:4799")).unwrap().unwrap();
    for i in 0..5000u64 {
        let mut bytes: Vec<u8> = (i..i + 20 + i % 1300).map(|j| byte(j * 31)).collect();
        if i % 2 == 0 {
            bytes[..8].copy_from_slice(&[
                0x6d,
                0x10 | (i / 2 % 2) as u8,
                byte(i),
                byte(i + 1),
                byte(i + 2),
                byte(i + 3),
                0,
                0,
            ]);
        }
        let _ = forger.send_to(&bytes, "10.97.0.1:4799");
    }
    assert!(soon(|| show::read(&place.state("left"))
        .is_ok_and(|r| r.paths[0].counters.dropped.contains_key("bad-encapsulation"))));
    drop(forger);
    let before = left_now.pid;
    place.apply("right", &right);
    transfer(a, b, "10.98.8.2:7003", 50_000_000, || {});
    assert_eq!(show::read(&place.state("left")).unwrap().pid, before, "it has never fallen");
}

#[test]
fn the_demo_runs_and_leaves_nothing() {
    let Some(_place) = Place::new("demo", &[]) else { return };
    let plan = Plan {
        arms: Arm::ALL.to_vec(),
        repetitions: 1,
        duration: Duration::from_millis(500),
        skews: vec![Time::from_us(50)],
        ..Plan::default()
    };
    let mut told = 0;
    let report = demo(&plan, &|| false, &mut |_| told += 1).unwrap();
    assert_eq!((told, report.runs.len()), (6, 6));
    for run in &report.runs {
        assert!(run.throughput_gbps > 0.01 && run.segments > 0 && run.other_drops == 0, "{run:?}");
    }
    let of = |arm: Arm| report.runs.iter().find(|r| r.arm == arm).unwrap();
    assert_eq!(of(Arm::OnePath).timed_out, 0);
    assert!(of(Arm::PrestoGro).held > 0, "the skew shows");
    let rate = |arm: Arm| of(arm).out_of_order as f64 / of(arm).throughput_gbps;
    assert!(rate(Arm::PrestoGro) < rate(Arm::StockGro) / 5.0, "{}", report.table());
    let left = Command::new("ip").args(["netns"]).output().unwrap();
    // Its names have this process' number: another demo may run beside.
    let made = [0, 1].map(|end| format!("mpdemo{}{end}", std::process::id()));
    let left = String::from_utf8_lossy(&left.stdout).into_owned();
    assert!(!left.split_whitespace().any(|name| made.iter().any(|made| made == name)), "{left}");
    // It ends early when it is told to.
    let stop = AtomicBool::new(true);
    assert!(demo(&plan, &|| stop.load(Ordering::Relaxed), &mut |_| {}).unwrap().runs.is_empty());
}
