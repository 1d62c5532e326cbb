//! Switches of two workers: flows stay at one, connections outlive what they outlive with one
//! worker, and peers need not have as many.

use super::figures::{Load, median};
use super::peers::{four_paths, states};
use super::place::{Place, TWO, ip, program, soon, transfer};
use millpond_linux::switch::config::Config;
use millpond_linux::switch::reading::{Reading, WorkerReading};
use millpond_linux::switch::{apply, show};
use millpond_worlds::{namespace, needs};
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Seconds of processor time that the switches of these folders have taken.
fn cpu_seconds(place: &Place, names: &[&str]) -> f64 {
    let of = |name: &&str| {
        let pid = place.state(name).process().unwrap();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let numbers: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // Fields 14 and 15 of proc(5), in hundredths.
        [11, 12].iter().map(|at| numbers[*at].parse::<f64>().unwrap()).sum::<f64>() / 100.0
    };
    names.iter().map(of).sum()
}

/// Eight flows with one worker and two, in turn: in one switch between two taps, and between two
/// switches over one path. Processor time is the switches', a gigabyte of goodput.
#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_workers() {
    let place = needs!(Place::new("figures-workers", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place).map(|text| {
        let second = text.match_indices("[[path]]").nth(1).unwrap().0;
        text[..second].to_string()
    });
    let arms: [(&str, Vec<(&str, &str)>); 2] =
        [("one switch", vec![("s", TWO)]), ("two switches", vec![("l", &left), ("r", &right)])];
    let mut port = 7500;
    for (what, switches) in arms {
        let names: Vec<&str> = switches.iter().map(|(name, _)| *name).collect();
        let (mut rates, mut costs) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for turn in 0..10 {
            let workers = 1 + turn % 2;
            for (name, text) in &switches {
                place.apply(name, &format!("workers = {workers}\n{text}"));
            }
            std::thread::sleep(Duration::from_millis(500));
            port += 1;
            let load = Load::start(&place, port);
            std::thread::sleep(Duration::from_millis(500));
            let before = cpu_seconds(&place, &names);
            let rate = load.rate(Duration::from_secs(3));
            let cost = (cpu_seconds(&place, &names) - before) / (rate * 3.0 / 8.0);
            load.end();
            rates[workers - 1].push(rate);
            costs[workers - 1].push(cost);
            names.iter().for_each(|name| assert!(apply::remove_all(&place.state(name)).unwrap()));
        }
        let ratio =
            |of: &[Vec<f64>; 2]| median(of[1].iter().zip(&of[0]).map(|(b, a)| b / a).collect());
        let ratios = [ratio(&rates), ratio(&costs)];
        let ([one, two], [cheap, dear]) = (rates.map(median), costs.map(median));
        println!(
            "{what}, 8 flows, medians of five in turn, 1 and 2 workers: {one:.2} and {two:.2} Gb/s \
             ({:.2}), {cheap:.3} and {dear:.3} CPU-seconds a GB ({:.2})",
            ratios[0], ratios[1]
        );
    }
}

const TWO_WORKERS: &str = "workers = 2\n";

fn read(place: &Place, name: &str) -> Reading {
    show::read(&place.state(name)).unwrap()
}

/// TCP segments that came out of order in a namespace, of how many.
fn out_of_order(network: &str) -> [u64; 2] {
    let of = |file: &str, group: &str, name: &str| -> u64 {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
        let mut lines = text.lines().filter(|line| line.starts_with(group));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let found = names.split(' ').zip(values.split(' ')).find(|(it, _)| *it == name);
        found.unwrap().1.parse().unwrap()
    };
    let both = || {
        let late = of("netstat", "TcpExt:", "TCPOFOQueue");
        [late, of("snmp", "Tcp:", "InSegs")]
    };
    namespace::within(Some(network), both).unwrap()
}

/// Eight flows each way for a second. Returns the segments that came out of order meanwhile, and
/// all segments.
fn both_ways(place: &Place, port: u16) -> [u64; 2] {
    let count = || [0, 1].map(|host| out_of_order(place.network(host)));
    let before = count();
    let loads = [1, 0].map(|to| Load::towards(place, port + to as u16, 8, to));
    std::thread::sleep(Duration::from_secs(1));
    loads.into_iter().for_each(Load::end);
    let after = count();
    [0, 1].map(|what| (0..2).map(|host| after[host][what] - before[host][what]).sum())
}

/// Whether flows keep their order with any number of workers. A busy machine delays a path or loses
/// a segment now and then; a flow that changes its worker is out of order in every sitting.
fn assert_order(place: &Place, port: u16) {
    let share = |turn: u16| {
        let [late, segments] = both_ways(place, port + 2 * turn);
        late as f64 / segments as f64
    };
    let mut shares = Vec::new();
    while shares.len() < 3 && !shares.iter().any(|share| *share < 0.005) {
        shares.push(share(shares.len() as u16));
    }
    assert!(shares.iter().any(|share| *share < 0.005), "out of order: {shares:?}");
}

fn are_shared(workers: &[WorkerReading], of: impl Fn(&WorkerReading) -> u64) -> bool {
    let all: u64 = workers.iter().map(&of).sum();
    workers.len() == 2 && workers.iter().all(|worker| 20 * of(worker) > all)
}

#[test]
fn two_workers_keep_order_and_outlive_a_kill() {
    let place = needs!(Place::new("workers", &["a", "b"]));
    let two = TWO_WORKERS.to_string() + TWO;
    // One worker, by the same measure.
    place.apply("s", TWO);
    assert_order(&place, 7100);
    apply::remove_all(&place.state("s")).unwrap();
    let first = place.apply("s", &two);
    assert_order(&place, 7110);
    let reading = read(&place, "s");
    assert!(are_shared(&reading.workers, |worker| worker.received), "{}", reading.table(None));
    let sum: u64 = reading.workers.iter().map(|worker| worker.received).sum();
    assert_eq!(sum, reading.ports.iter().map(|port| port.counters.received).sum::<u64>());
    // Frames that an interface sends when it comes up go nowhere where it is the only one.
    let dropped = reading.ports.iter().flat_map(|port| port.counters.dropped.keys());
    assert!(dropped.clone().all(|reason| reason == "nowhere"), "{reading:?}");
    let (a, b) = (place.network(0), place.network(1));
    transfer(a, b, "10.98.8.2:7120", 300_000_000, || {
        place.kill("s");
        assert!(place.has(0, "mpa") && place.has(1, "mpb"), "interfaces stay");
        std::thread::sleep(Duration::from_millis(300));
        assert_ne!(place.apply("s", &two).pid, first.pid);
    });
    // Another port and its end, while frames cross.
    let third = "[[port]]\nname = \"c\"\ndevice = \"mpc\"\nnamespace = \"NET0\"\n";
    transfer(b, a, "[fd98::1]:7121", 300_000_000, || {
        let before = read(&place, "s");
        let changed = place.apply("s", &(two.clone() + third));
        assert_eq!((changed.ports.len(), changed.pid), (3, before.pid));
        assert!(place.has(0, "mpc"));
        place.apply("s", &two);
        assert!(!place.has(0, "mpc"), "no worker has it any more");
    });
    // An interface that goes away comes back at both workers.
    assert!(ip(&["-n", b, "link", "del", "mpb"]));
    assert!(soon(|| place.has(1, "mpb")));
    both_ways(&place, 7130);
    // One worker takes over what two had, and not the other way round.
    place.apply("s", TWO);
    transfer(a, b, "10.98.8.2:7140", 20_000_000, || {});
    assert!(apply::remove_all(&place.state("s")).unwrap());
    assert!(!place.has(0, "mpa") && !place.has(1, "mpb"));
    place.apply("s", TWO);
    let text = two.replace("NET0", a).replace("NET1", b);
    let config = Config::parse("test.toml", &text).unwrap();
    let state = place.state("s");
    let done = apply::apply(&state, &config, &|| program(&state)).unwrap();
    assert!(done.open == 0 && done.waiting[0].1.contains("mpa has one queue"), "{done:?}");
}

/// A packet socket for each worker: every datagram comes once, and of a flow in order.
#[test]
fn two_workers_share_an_interface_that_is_there() {
    let place = needs!(Place::new("fanout", &["a", "b", "c"]));
    let [inner, outer] = [place.network(1), place.network(2)];
    let pair =
        ["-n", outer, "link", "add", "mpw", "type", "veth", "peer", "name", "mpc", "netns", inner];
    assert!(ip(&pair) && ip(&["-n", inner, "addr", "add", "10.98.8.2/24", "dev", "mpc"]));
    assert!(ip(&["-n", inner, "link", "set", "mpc", "up"]));
    assert!(ip(&["-n", outer, "link", "set", "mpw", "up"]));
    let wire =
        "[[port]]\nname = \"w\"\nkind = \"af-packet\"\ndevice = \"mpw\"\nnamespace = \"NET2\"\n";
    let tap = &TWO[..TWO.rfind("[[port]]").unwrap()];
    place.apply("s", &format!("{TWO_WORKERS}{tap}{wire}"));
    let (a, b) = (place.network(0), place.network(1));
    transfer(a, b, "10.98.8.2:7001", 50_000_000, || {});
    let there = namespace::within(Some(a), || UdpSocket::bind("10.98.8.1:7003")).unwrap().unwrap();
    there.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let open = |_| namespace::within(Some(b), || UdpSocket::bind("10.98.8.2:0")).unwrap().unwrap();
    let flows: Vec<UdpSocket> = (0..16).map(open).collect();
    let mut room = [0; 16];
    let mut next = [0u64; 16];
    for number in 0..100u64 {
        for (flow, socket) in flows.iter().enumerate() {
            let message = [(flow as u64).to_be_bytes(), number.to_be_bytes()].concat();
            socket.send_to(&message, "10.98.8.1:7003").unwrap();
        }
        for _ in 0..16 {
            assert_eq!(there.recv(&mut room).unwrap(), 16);
            let [flow, number] =
                [0, 8].map(|at| u64::from_be_bytes(room[at..at + 8].try_into().unwrap()));
            assert_eq!(number, next[flow as usize], "flow {flow}");
            next[flow as usize] += 1;
        }
    }
    there.set_nonblocking(true).unwrap();
    assert!(there.recv(&mut room).is_err(), "each came once");
    let reading = read(&place, "s");
    assert!(are_shared(&reading.workers, |worker| worker.received), "{}", reading.table(None));
}

#[test]
fn two_workers_have_a_tunnel_each_plain_and_sealed() {
    let place = needs!(Place::new("tunnels", &["a", "b", "c", "d"]));
    let key = place.folder.with_extension("key");
    fs::write(&key, "a key of two switches").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let (a, b) = (place.network(0), place.network(1));
    let sealed = format!("[[peer]]\nname = \"other\"\nkey = {key:?}\n");
    for (turn, peer) in ["", &sealed].into_iter().enumerate() {
        let [left, right] =
            four_paths_once(&place, turn).map(|it| TWO_WORKERS.to_string() + &it + peer);
        place.apply("left", &left);
        place.apply("right", &right);
        assert!(soon(|| states(&place, "left") == ["used"; 4]));
        let are_met = |name: &str| read(&place, name).workers.iter().all(|it| it.paths == 4);
        assert!(
            soon(|| are_met("left") && are_met("right")),
            "{}",
            read(&place, "left").table(None)
        );
        let port = 7200 + 50 * turn as u16;
        assert_order(&place, port);
        for name in ["left", "right"] {
            let reading = read(&place, name);
            let workers = &reading.workers;
            assert!(are_shared(workers, |it| it.path_received), "{}", reading.table(None));
            let lost = ["stranger", "replayed", "no-session", "bad-encapsulation"];
            let dropped = reading.paths.iter().flat_map(|path| path.counters.dropped.keys());
            assert!(!dropped.clone().any(|it| lost.contains(&&it[..])), "{}", reading.table(None));
        }
        // A path dies for both workers, under a connection; then the other switch.
        transfer(a, b, &format!("10.98.8.2:{}", port + 10), 100_000_000, || {
            assert!(ip(&["-n", place.network(3), "link", "set", "mpd2", "down"]));
        });
        assert!(soon(|| read(&place, "left").workers.iter().all(|worker| worker.paths == 3)));
        assert!(ip(&["-n", place.network(3), "link", "set", "mpd2", "up"]));
        transfer(a, b, &format!("10.98.8.2:{}", port + 11), 100_000_000, || {
            place.kill("right");
            place.apply("right", &right);
        });
        for name in ["left", "right"] {
            apply::remove_all(&place.state(name)).unwrap();
        }
    }
    fs::remove_file(&key).unwrap();
}

/// The wires are made once; the texts are the same.
fn four_paths_once(place: &Place, turn: usize) -> [String; 2] {
    if turn > 0 {
        for i in 0..4 {
            ip(&["-n", place.network(2), "link", "del", &format!("mpc{i}")]);
        }
    }
    four_paths(place)
}

/// The peer does not answer the second worker's tunnel: the first worker sends its frames.
#[test]
fn a_peer_with_one_worker_hears_both() {
    let place = needs!(Place::new("unequal", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place);
    place.apply("left", &(TWO_WORKERS.to_string() + &left));
    place.apply("right", &right);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    both_ways(&place, 7400);
    let (a, b) = (place.network(0), place.network(1));
    transfer(a, b, "10.98.8.2:7410", 50_000_000, || {});
    transfer(b, a, "[fd98::1]:7410", 50_000_000, || {});
    // One-way flows, of which the kernel leaves some at the second worker.
    let there = namespace::within(Some(b), || UdpSocket::bind("10.98.8.2:7420")).unwrap().unwrap();
    there.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let open = |_| namespace::within(Some(a), || UdpSocket::bind("10.98.8.1:0")).unwrap().unwrap();
    for socket in (0..32).map(open) {
        socket.send_to(&[7; 100], "10.98.8.2:7420").unwrap();
        assert_eq!(there.recv(&mut [0; 200]).unwrap(), 100);
    }
    let reading = read(&place, "left");
    let [_, second] = &reading.workers[..] else { panic!("{reading:?}") };
    assert!(second.received > 0 && second.paths == 0, "{}", reading.table(None));
    // On a busy machine answers come late, and a path is dead until the next.
    let has_all = || read(&place, "left").workers[0].paths == 4;
    assert!(soon(has_all), "{}", read(&place, "left").table(None));
    // It becomes one of two workers, and has both tunnels.
    apply::remove_all(&place.state("right")).unwrap();
    place.apply("right", &(TWO_WORKERS.to_string() + &right));
    assert!(soon(|| read(&place, "left").workers.iter().all(|worker| worker.paths == 4)));
    // Its interface is another, with another address.
    assert!(ip(&["-n", a, "neigh", "flush", "all"]));
    transfer(a, b, "10.98.8.2:7411", 50_000_000, || {});
}
