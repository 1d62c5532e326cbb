//! Measurements, which `make bench-switch` prints: what a path that dies costs, and what a key
//! does.
//!
//! No test: they say what this machine does now, and judge nothing but that connections live.

use super::peers::{four_paths, states};
use super::place::{Place, TWO, ip, soon};
use millpond_linux::switch::apply;
use millpond_worlds::{namespace, needs};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FLOWS: usize = 8;
/// Between two looks at what has arrived.
const STEP: Duration = Duration::from_millis(20);

/// A listener at an address that the switch has just given: on a busy machine it takes a moment.
fn bound(network: &str, address: SocketAddr) -> TcpListener {
    let start = Instant::now();
    loop {
        match namespace::within(Some(network), || TcpListener::bind(address)).unwrap() {
            Ok(listener) => return listener,
            Err(e) => assert!(start.elapsed().as_secs() < 2, "{address}: {e}"),
        }
        std::thread::sleep(STEP);
    }
}

/// Connections from the first namespace to the second, which send as fast as they can.
pub struct Load {
    arrived: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<std::io::Result<()>>>,
}

impl Load {
    pub fn start(place: &Place, port: u16) -> Load {
        Load::towards(place, port, FLOWS, 1)
    }
    /// So many of them, to the second namespace or to the first.
    pub fn towards(place: &Place, port: u16, flows: usize, to: usize) -> Load {
        Load::with(place, port, [flows, to], None)
    }
    /// The same with a congestion control; `None`: the host's.
    fn with(place: &Place, port: u16, [flows, to]: [usize; 2], congestion: Option<&str>) -> Load {
        let address: SocketAddr = format!("10.98.8.{}:{port}", to + 1).parse().unwrap();
        let listener = bound(place.network(to), address);
        let (arrived, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut senders = Vec::new();
        for _ in 0..flows {
            let second = Duration::from_secs(5);
            let (end, to) = (to, || TcpStream::connect_timeout(&address, second));
            let mut stream = namespace::within(Some(place.network(1 - end)), to).unwrap().unwrap();
            if let Some(name) = congestion {
                rustix::net::sockopt::set_tcp_congestion(&stream, name).unwrap();
            }
            let (mut other, _) = listener.accept().unwrap();
            let (count, ends) = (arrived.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut room = vec![0; 1 << 18];
                while let Ok(n @ 1..) = other.read(&mut room) {
                    count.fetch_add(n as u64, Ordering::Relaxed);
                }
            });
            senders.push(std::thread::spawn(move || {
                let piece = vec![7; 1 << 17];
                stream.set_write_timeout(Some(Duration::from_secs(20)))?;
                while !ends.load(Ordering::Relaxed) {
                    stream.write_all(&piece)?;
                }
                Ok(())
            }));
        }
        Load { arrived, stop, senders }
    }
    /// Gigabits a second over the next so long.
    pub fn rate(&self, time: Duration) -> f64 {
        let (start, before) = (Instant::now(), self.arrived.load(Ordering::Relaxed));
        std::thread::sleep(time);
        (self.arrived.load(Ordering::Relaxed) - before) as f64 * 8e-9
            / start.elapsed().as_secs_f64()
    }
    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for sender in self.senders {
            sender.join().unwrap().expect("no connection is lost");
        }
    }
}

/// Frames over this path go nowhere, without a word; or go again.
fn set_dead(place: &Place, path: usize, is_dead: bool) {
    let (address, device) = (format!("10.97.{path}.2"), format!("mpc{path}"));
    let network = place.network(2);
    let done = match is_dead {
        true => ip(&[
            "-n",
            network,
            "neigh",
            "replace",
            &address,
            "lladdr",
            "02:00:00:00:00:99",
            "dev",
            &device,
            "nud",
            "permanent",
        ]),
        false => ip(&["-n", network, "neigh", "del", &address, "dev", &device]),
    };
    assert!(done);
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A file with a secret for the two switches.
fn key_file(place: &Place) -> PathBuf {
    let key = place.folder.with_extension("key");
    std::fs::write(&key, "a key of two switches").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    key
}

#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_a_path_that_dies() {
    let place = needs!(Place::new("figures-paths", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place);
    place.apply("left", &left);
    place.apply("right", &right);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    println!("{FLOWS} flows over 4 paths, Gb/s of goodput; a path is dead from 0 ms on");
    let mut whole = Vec::new();
    for path in [3, 0, 1] {
        let load = Load::start(&place, 7300 + path as u16);
        std::thread::sleep(Duration::from_millis(700));
        let before = load.rate(Duration::from_secs(1));
        let died = Instant::now();
        set_dead(&place, path, true);
        let (mut again, mut steps) = (None, Vec::new());
        while died.elapsed() < Duration::from_secs(1) {
            let rate = load.rate(STEP);
            if died.elapsed() > 2 * STEP && rate >= 0.7 * before && again.is_none() {
                again = Some(died.elapsed());
            }
            steps.push(rate);
        }
        let after = load.rate(Duration::from_secs(1));
        let again = again.map_or("never".into(), |time| format!("{} ms", time.as_millis()));
        let least = steps.iter().copied().fold(f64::MAX, f64::min);
        println!(
            "path {path}: {before:.2} before, 70 % again after {again}, least of 20 ms \
             {least:.2}, {after:.2} with three"
        );
        load.end();
        let address = format!("10.98.8.2:{}", 7400 + path);
        let second = Duration::from_secs(1);
        let up =
            super::peers::come_up(place.network(0), place.network(1), &address, 200, second).len();
        println!("path {path} dead: {up} of 200 new connections came up, each within a second");
        set_dead(&place, path, false);
        whole.push(after);
        assert!(soon(|| states(&place, "left") == ["used"; 4]));
    }
    let load = Load::start(&place, 7350);
    std::thread::sleep(Duration::from_millis(700));
    let (start, before) = (Instant::now(), load.arrived.load(Ordering::Relaxed));
    for _ in 0..6 {
        set_dead(&place, 0, true);
        std::thread::sleep(Duration::from_millis(200));
        set_dead(&place, 0, false);
        std::thread::sleep(Duration::from_millis(800));
    }
    let flapping = (load.arrived.load(Ordering::Relaxed) - before) as f64 * 8e-9
        / start.elapsed().as_secs_f64();
    let three = median(whole);
    println!(
        "path 0 dead for 200 ms of each second: {flapping:.2}, of three paths alone {:.2}",
        flapping / three
    );
    load.end();
}

/// The longest gap between datagrams that leave each 200 us, around a `kill -9`.
#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_a_kill() {
    let place = needs!(Place::new("figures-kill", &["a", "b"]));
    let mut gaps = Vec::new();
    for _ in 0..5 {
        place.apply("s", TWO);
        let open = |network: usize, at: &str| {
            let open = || UdpSocket::bind(at);
            namespace::within(Some(place.network(network)), open).unwrap().unwrap()
        };
        let (here, there) = (open(0, "10.98.8.1:0"), open(1, "10.98.8.2:7003"));
        there.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let stop = AtomicBool::new(false);
        let gap = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _ = here.send_to(&[0; 64], "10.98.8.2:7003");
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            there.recv(&mut [0; 64]).unwrap();
            let start = Instant::now();
            let killer = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(500));
                place.kill_process("s")
            });
            let (mut last, mut gap) = (Instant::now(), Duration::ZERO);
            while start.elapsed() < Duration::from_secs(3) {
                there.recv(&mut [0; 64]).unwrap();
                gap = gap.max(last.elapsed());
                last = Instant::now();
            }
            stop.store(true, Ordering::Relaxed);
            killer.join().unwrap();
            gap
        });
        gaps.push(gap.as_secs_f64() * 1e3);
        apply::remove_all(&place.state("s")).unwrap();
    }
    println!(
        "kill -9 of the switch, ms without a frame: {gaps:.0?}, median {:.0}",
        median(gaps.clone())
    );
}

#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_a_key() {
    let place = needs!(Place::new("figures-key", &["a", "b", "c", "d"]));
    let key = key_file(&place);
    let plain = four_paths(&place);
    let sealed =
        plain.clone().map(|text| text + &format!("[[peer]]\nname = \"other\"\nkey = {key:?}\n"));
    let mut rates = [Vec::new(), Vec::new()];
    for turn in 0..10u16 {
        let arm = usize::from(turn % 2);
        let [left, right] = if arm == 1 { &sealed } else { &plain };
        place.apply("left", left);
        place.apply("right", right);
        assert!(soon(|| states(&place, "left") == ["used"; 4]));
        let load = Load::start(&place, 7500 + turn);
        std::thread::sleep(Duration::from_millis(500));
        rates[arm].push(load.rate(Duration::from_secs(2)));
        load.end();
    }
    let [plain, sealed] = rates.map(median);
    println!(
        "{FLOWS} flows, medians of five in turn: plain {plain:.2} Gb/s, sealed {sealed:.2} Gb/s, \
         {:.2}",
        sealed / plain
    );
    std::fs::remove_file(&key).unwrap();
}

/// Which part of datagrams of 64 bytes on the wire is lost, at 50,000 a second.
fn small_datagrams(place: &Place, port: u16, time: Duration) -> f64 {
    const EACH_MS: u64 = 50;
    let address = format!("10.98.8.2:{port}");
    let there =
        namespace::within(Some(place.network(1)), || UdpSocket::bind(&address)).unwrap().unwrap();
    let here = namespace::within(Some(place.network(0)), || UdpSocket::bind("10.98.8.1:0"))
        .unwrap()
        .unwrap();
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&there, 8 << 20);
    there.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    here.connect(&address).unwrap();
    // Neighbours find each other first.
    here.send(&[0; 22]).unwrap();
    there.recv(&mut [0; 64]).unwrap();
    let reader = std::thread::spawn(move || {
        std::iter::from_fn(|| there.recv(&mut [0; 64]).ok()).count() as u64
    });
    let (start, mut sent) = (Instant::now(), 0);
    while start.elapsed() < time {
        let due = start.elapsed().as_millis() as u64 * EACH_MS;
        while sent < due {
            sent += u64::from(here.send(&[0; 22]).is_ok());
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    1.0 - reader.join().unwrap() as f64 / sent as f64
}

/// VXLAN over a bridge in each of the hosts, between veth pairs to the workloads, over the first
/// wire.
fn vxlan(place: &Place) -> bool {
    let end = |host: usize| {
        let (network, work) = (place.network(2 + host), place.network(host));
        let (own, other) = (format!("10.97.0.{}", host + 1), format!("10.97.0.{}", 2 - host));
        let run = |line: &str| {
            let line = line.replace("WORK", work).replace("OWN", &own).replace("OTHER", &other);
            ip(&[&["-n", network][..], &line.split(' ').collect::<Vec<_>>()].concat())
        };
        run("link add mpbr type bridge")
            && run("link add mpvx type vxlan id 7 local OWN remote OTHER dstport 4789")
            && run("link set mpvx master mpbr up")
            && run("link add mpup type veth peer name mpwork netns WORK")
            && run("link set mpup master mpbr up")
            && run("link set mpbr up")
            && ip(&["-n", work, "link", "set", "mpwork", "mtu", "1450", "up"])
            && ip(&[
                "-n",
                work,
                "addr",
                "add",
                &format!("10.98.8.{}/24", host + 1),
                "dev",
                "mpwork",
            ])
    };
    end(0) && end(1)
}

fn no_vxlan(place: &Place) {
    for host in 0..2 {
        for device in ["mpup", "mpvx", "mpbr"] {
            ip(&["-n", place.network(2 + host), "link", "del", device]);
        }
    }
}

/// Requests of 64 bytes and their responses over one connection, one at a time: how many a second.
fn transactions(place: &Place, port: u16, time: Duration) -> f64 {
    let address: SocketAddr = format!("10.98.8.2:{port}").parse().unwrap();
    let listener =
        namespace::within(Some(place.network(1)), || TcpListener::bind(address)).unwrap().unwrap();
    let to = || TcpStream::connect_timeout(&address, Duration::from_secs(5));
    let mut here = namespace::within(Some(place.network(0)), to).unwrap().unwrap();
    let (mut there, _) = listener.accept().unwrap();
    [&here, &there].into_iter().for_each(|end| end.set_nodelay(true).unwrap());
    let server = std::thread::spawn(move || {
        let mut message = [0; 64];
        while there.read_exact(&mut message).is_ok() && there.write_all(&message).is_ok() {}
    });
    let (start, mut count, mut message) = (Instant::now(), 0u64, [0; 64]);
    while start.elapsed() < time {
        here.write_all(&message).unwrap();
        here.read_exact(&mut message).unwrap();
        count += 1;
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    drop(here);
    server.join().unwrap();
    rate
}

/// Gigabits a second of all these loads together, each of so many flows to a namespace.
fn rate_of(place: &Place, port: &mut u16, loads: &[(usize, usize)], time: Duration) -> f64 {
    let loads = loads.iter().map(|(flows, to)| {
        *port += 1;
        Load::towards(place, *port, *flows, *to)
    });
    let loads: Vec<Load> = loads.collect();
    std::thread::sleep(Duration::from_millis(500));
    let count = || loads.iter().map(|load| load.arrived.load(Ordering::Relaxed)).sum::<u64>();
    let (start, before) = (Instant::now(), count());
    std::thread::sleep(time);
    let rate = (count() - before) as f64 * 8e-9 / start.elapsed().as_secs_f64();
    loads.into_iter().for_each(Load::end);
    rate
}

/// The figures that are measured of each arm.
const FIGURES: [&str; 5] = [
    "1 flow, Gb/s",
    "8 flows, Gb/s",
    "4 flows each way, Gb/s",
    "requests a second",
    "64 bytes at 50,000 a second, lost, %",
];

fn figures_of(place: &Place, port: &mut u16, time: Duration) -> [f64; FIGURES.len()] {
    let mut rate = |loads: &[(usize, usize)]| rate_of(place, port, loads, time);
    let rates = [rate(&[(1, 1)]), rate(&[(FLOWS, 1)]), rate(&[(FLOWS / 2, 1), (FLOWS / 2, 0)])];
    *port += 2;
    let requests = transactions(place, *port - 1, time);
    [rates[0], rates[1], rates[2], requests, 100.0 * small_datagrams(place, *port, time)]
}

/// The switch over one wire, plain and with a key, and over four, and the kernel's VXLAN over a
/// bridge over the first wire.
#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_beside_vxlan() {
    let place = needs!(Place::new("figures-vxlan", &["a", "b", "c", "d"]));
    let four = four_paths(&place).map(|text| text.replace("mtu = 1400\n", ""));
    let one = four.each_ref().map(|text| {
        let second = text.match_indices("[[path]]").nth(1).unwrap().0;
        text[..second].to_string()
    });
    let key = key_file(&place);
    let sealed =
        one.clone().map(|text| text + &format!("[[peer]]\nname = \"other\"\nkey = {key:?}\n"));
    let has_vxlan = vxlan(&place);
    no_vxlan(&place);
    needs!(has_vxlan, "a kernel with VXLAN and bridges");
    let (turns, time, mut port) = (5, Duration::from_secs(2), 7600);
    let arms = [
        ("VXLAN", None),
        ("one path", Some(&one)),
        ("with a key", Some(&sealed)),
        ("four paths", Some(&four)),
    ];
    let mut all = arms.each_ref().map(|_| Vec::new());
    for _ in 0..turns {
        for ((_, texts), figures) in arms.iter().zip(&mut all) {
            match texts {
                None => assert!(vxlan(&place)),
                Some([left, right]) => {
                    place.apply("left", left);
                    place.apply("right", right);
                    assert!(soon(|| states(&place, "left").iter().all(|state| state == "used")));
                }
            }
            figures.push(figures_of(&place, &mut port, time));
            match texts {
                None => no_vxlan(&place),
                Some(_) => ["left", "right"]
                    .iter()
                    .for_each(|name| assert!(apply::remove_all(&place.state(name)).unwrap())),
            }
        }
    }
    std::fs::remove_file(&key).unwrap();
    println!("medians of {turns} in turn; ratios to VXLAN are medians of the turns' own");
    for (at, what) in FIGURES.iter().enumerate() {
        for ((name, _), figures) in arms.iter().zip(&all) {
            let value = median(figures.iter().map(|turn| turn[at]).collect());
            let ratios = figures.iter().zip(&all[0]).map(|(ours, its)| ours[at] / its[at]);
            let ratio = Some(median(ratios.collect())).filter(|ratio| ratio.is_finite());
            let ratio = ratio.map_or(String::new(), |ratio| format!(" ({ratio:.2})"));
            println!("{what}: {name} {value:.2}{ratio}");
        }
    }
}

/// Round trips of 64 bytes to an echo in the second namespace, one at a time, for so long; in
/// microseconds, sorted.
fn round_trips(stream: &mut TcpStream, time: Duration) -> Vec<f64> {
    let (start, mut all, mut room) = (Instant::now(), Vec::new(), [0; 64]);
    while start.elapsed() < time {
        let sent = Instant::now();
        stream.write_all(&[7; 64]).unwrap();
        stream.read_exact(&mut room).unwrap();
        all.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    all.sort_by(f64::total_cmp);
    all
}

/// A connection from the first namespace to an echo in the second.
fn echo(place: &Place, port: u16) -> TcpStream {
    let address: SocketAddr = format!("10.98.8.2:{port}").parse().unwrap();
    let listener = bound(place.network(1), address);
    let open = || TcpStream::connect_timeout(&address, Duration::from_secs(5));
    let stream = namespace::within(Some(place.network(0)), open).unwrap().unwrap();
    let (mut other, _) = listener.accept().unwrap();
    std::thread::spawn(move || {
        let mut room = [0; 64];
        while other.read_exact(&mut room).and_then(|()| other.write_all(&room)).is_ok() {}
    });
    stream.set_nodelay(true).unwrap();
    stream
}

/// The median round trip alone and beside a bulk flow of the same namespaces, in turn; the bulk
/// flow's rate. For flows that fill a queue until it drops, and for flows that do not.
fn rpc_beside_bulk(place: &Place, what: &str, mut port: u16) {
    let time = Duration::from_millis(300);
    for congestion in ["cubic", "bbr"] {
        let mut stream = echo(place, port);
        port += 10;
        let (mut alone, mut beside, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 1..=7 {
            let p50 = |all: Vec<f64>| all[all.len() / 2];
            alone.push(p50(round_trips(&mut stream, time)));
            let load = Load::with(place, port + turn, [1, 1], Some(congestion));
            std::thread::sleep(time);
            std::thread::scope(|scope| {
                let rate = scope.spawn(|| load.rate(time));
                beside.push(p50(round_trips(&mut stream, time)));
                rates.push(rate.join().unwrap());
            });
            load.end();
        }
        let ratios = alone.iter().zip(&beside).map(|(alone, beside)| beside / alone);
        let [ratio, alone, beside, rate] = [ratios.collect(), alone, beside, rates].map(median);
        println!(
            "{what}: RPC alone {alone:.0} us at p50, beside {congestion} of {rate:.1} Gb/s \
             {beside:.0} us, {ratio:.1} times"
        );
    }
}

/// Over the kernel's VXLAN, one switch with taps, and two switches over one path (with a key
/// as well) and four.
#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_an_rpc_beside_a_bulk_flow() {
    let place = needs!(Place::new("figures-rpc", &["a", "b", "c", "d"]));
    let four = four_paths(&place);
    let one = four.each_ref().map(|text| {
        let second = text.match_indices("[[path]]").nth(1).unwrap().0;
        text[..second].to_string()
    });
    let key = key_file(&place);
    let sealed =
        one.clone().map(|text| text + &format!("[[peer]]\nname = \"other\"\nkey = {key:?}\n"));
    if vxlan(&place) {
        rpc_beside_bulk(&place, "VXLAN", 7400);
    }
    no_vxlan(&place);
    place.apply("one", TWO);
    rpc_beside_bulk(&place, "one switch", 7450);
    apply::remove_all(&place.state("one")).unwrap();
    for (what, texts) in [("one path", &one), ("with a key", &sealed), ("four paths", &four)] {
        place.apply("left", &texts[0]);
        place.apply("right", &texts[1]);
        assert!(soon(|| states(&place, "left").iter().all(|state| state == "used")));
        rpc_beside_bulk(&place, &format!("two switches, {what}"), 7500);
        ["left", "right"]
            .iter()
            .for_each(|name| assert!(apply::remove_all(&place.state(name)).unwrap()));
    }
    std::fs::remove_file(&key).unwrap();
}
