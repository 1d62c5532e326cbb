//! Faults of interfaces and processes: what the switch does, and what its log has of it.

use super::peers::{four_paths, states};
use super::place::{Place, TWO, connect, ip, program, soon, transfer};
use super::tap_and_wire;
use millpond_linux::switch::config::Config;
use millpond_linux::switch::{apply, show};
use millpond_worlds::{namespace, needs};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::{Duration, Instant};

fn log(place: &Place, name: &str) -> String {
    fs::read_to_string(place.state(name).file("log")).unwrap()
}

/// Renames an interface, which takes it down for a moment.
fn rename(network: &str, from: &str, to: &str) {
    for change in [&["down"][..], &["name", to]] {
        assert!(ip(&[&["-n", network, "link", "set", from], change].concat()));
    }
    assert!(ip(&["-n", network, "link", "set", to, "up"]));
}

#[test]
fn a_renamed_interface_stays_its_port() {
    let place = needs!(Place::new("renamed", &["a", "b", "c"]));
    tap_and_wire(&place, "");
    rename(place.network(2), "mpw", "mpnew");
    rename(place.network(0), "mpa", "mpold");
    let told = |what: &str| log(&place, "s").contains(what);
    assert!(
        soon(|| told("port w: its interface is called mpnew now")
            && told("port a: its interface is called mpold now")),
        "{}",
        log(&place, "s")
    );
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 10_000_000, || {});
    let reading = show::read(&place.state("s")).unwrap();
    let devices: Vec<&str> = reading.ports.iter().map(|port| &port.device[..]).collect();
    assert_eq!(devices, ["mpold", "mpnew"]);
    // An interface that was made goes under its new name, too.
    apply::remove_all(&place.state("s")).unwrap();
    assert!(!place.has(0, "mpold") && place.has(2, "mpnew"));
}

#[test]
fn a_second_switch_waits_for_interfaces_of_the_first() {
    let place = needs!(Place::new("two", &["a", "b", "c"]));
    tap_and_wire(&place, "");
    let ports = |suffix: &str| {
        format!(
            "[[port]]\nname = \"a{suffix}\"\ndevice = \"mpa\"\nnamespace = \"{}\"\n[[port]]\n\
             name = \"w{suffix}\"\nkind = \"af-packet\"\ndevice = \"mpw\"\nnamespace = \"{}\"\n",
            place.network(0),
            place.network(2)
        )
    };
    let second = place.state("t");
    let config = Config::parse("test.toml", &ports("2")).unwrap();
    let done = apply::apply(&second, &config, &|| program(&second)).unwrap();
    let held = |device: &str| {
        let says = format!("{device} is held by another process");
        done.waiting.iter().any(|(_, reason)| reason.contains(&says))
    };
    assert!(done.open == 0 && held("mpa") && held("mpw"), "{:?}", done.waiting);
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 10_000_000, || {});
    // The first one ends, and the second has what it has waited for.
    place.kill("s");
    let open = || show::read(&second).is_ok_and(|r| r.ports.iter().all(|p| p.reason.is_none()));
    assert!(soon(open), "{}", log(&place, "t"));
    transfer(place.network(0), place.network(1), "10.98.8.2:7002", 10_000_000, || {});
    // A line for each port, however often it was tried.
    let waits = log(&place, "t").lines().filter(|line| line.contains("held by")).count();
    assert_eq!(waits, 2, "{}", log(&place, "t"));
}

#[test]
fn a_lost_carrier_is_a_line_and_costs_no_connection() {
    let place = needs!(Place::new("carrier", &["a", "b", "c"]));
    tap_and_wire(&place, "");
    let set = |how: &str| {
        assert!(ip(&["-n", place.network(1), "link", "set", "mpc", how]));
    };
    let count = |what: &str| log(&place, "s").matches(what).count();
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 50_000_000, || {
        set("down");
        assert!(
            soon(|| count("port w: its interface has no carrier") == 1),
            "{}",
            log(&place, "s")
        );
        set("up");
        assert!(soon(|| count("port w: its interface has a carrier") == 1), "{}", log(&place, "s"));
    });
}

/// The switch reads MTUs once a second; a packet that seems too long has it look at once.
#[test]
fn an_mtu_that_grows_is_used_at_once() {
    let place = needs!(Place::new("grows", &["a", "b"]));
    place.apply("s", TWO);
    let open = |network: usize, at: &str| {
        namespace::within(Some(place.network(network)), || UdpSocket::bind(at)).unwrap().unwrap()
    };
    let (here, there) = (open(0, "10.98.8.1:0"), open(1, "10.98.8.2:7003"));
    there.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    here.send_to(&[0; 100], "10.98.8.2:7003").unwrap();
    there.recv(&mut [0; 100]).unwrap();
    let mut mtu = 1500;
    for _ in 0..5 {
        mtu += 1000;
        for (network, device) in [(1, "mpb"), (0, "mpa")] {
            let text = mtu.to_string();
            assert!(ip(&["-n", place.network(network), "link", "set", device, "mtu", &text]));
        }
        here.send_to(&vec![7; mtu - 28], "10.98.8.2:7003").unwrap();
        assert_eq!(there.recv(&mut [0; 9000]).unwrap(), mtu - 28);
    }
    let reading = show::read(&place.state("s")).unwrap();
    assert!(reading.ports.iter().all(|port| port.counters.dropped.is_empty()), "{reading:?}");
}

#[test]
fn ten_thousand_addresses_leave_their_neighbours_alone() {
    let place = needs!(Place::new("addresses", &["a", "b", "c"]));
    let third = "[[port]]\nname = \"c\"\ndevice = \"mpc\"\nnamespace = \"NET2\"\n";
    place.apply("s", &format!("{TWO}{third}"));
    use millpond_linux::dataplane::frame::Offload;
    use millpond_linux::dataplane::port::{AfPacket, Port};
    let open = || Port::AfPacket(AfPacket::open("mpc").unwrap());
    let mut wire = namespace::within(Some(place.network(2)), open).unwrap();
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 50_000_000, || {
        for i in 0..10_000u32 {
            let [_, _, high, low] = i.to_be_bytes();
            // To nobody in particular, of a kind that nobody takes.
            let mut frame = vec![2, 0, 0, 0, 9, 9, 2, 0, 0, 7, high, low, 0x88, 0xb6];
            frame.resize(60, 0);
            let _ = wire.send(&Offload::default(), &[std::io::IoSlice::new(&frame)]);
            if i % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let behind = |name: &str| {
        let table = show::read_addresses(&place.state("s")).unwrap();
        table.iter().filter(|it| it.port.as_deref() == Some(name)).count()
    };
    assert!(soon(|| behind("c") == 1024), "its bound: {}", behind("c"));
    assert!(behind("a") >= 1 && behind("b") >= 1);
}

/// A datagram each 10 ms to a peer, while another peer comes and goes.
#[test]
fn a_peer_that_comes_costs_the_others_no_frame() {
    let place = needs!(Place::new("added", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place);
    let key = place.folder.with_extension("key");
    use std::os::unix::fs::PermissionsExt;
    fs::write(&key, "a key of two switches").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let peer = format!("[[peer]]\nname = \"other\"\nkey = {key:?}\ndead-after = \"500ms\"\n");
    let [left, right] = [left, right].map(|text| text + &peer);
    place.apply("left", &left);
    place.apply("right", &right);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    let third = "[[path]]\npeer = \"third\"\nlocal = \"10.97.0.1:4801\"\n\
                 remote = \"10.97.0.2:4801\"\nnamespace = \"NET2\"\n";
    let open = |network: usize, at: &str| {
        let open = || UdpSocket::bind(at);
        let socket = namespace::within(Some(place.network(network)), open).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        socket
    };
    let (here, there) = (open(0, "10.98.8.1:0"), open(1, "10.98.8.2:7003"));
    here.connect("10.98.8.2:7003").unwrap();
    here.send(&[0; 4]).unwrap();
    let (_, from) = there.recv_from(&mut [0; 4]).unwrap();
    let sent = 300;
    let came = std::thread::scope(|scope| {
        let answers = scope.spawn(|| std::iter::from_fn(|| there.recv(&mut [0; 4]).ok()).count());
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            place.apply("left", &format!("{left}{third}"));
            std::thread::sleep(Duration::from_millis(1000));
            place.apply("left", &left);
        });
        let start = Instant::now();
        for number in 0..sent {
            here.send(&u32::to_be_bytes(number)).unwrap();
            let due = Duration::from_millis(10) * (number + 1);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
        answers.join().unwrap()
    });
    assert_eq!((came as u32, from.ip().to_string()), (sent, "10.98.8.1".into()));
    let sessions = log(&place, "right").matches("has started anew").count();
    assert_eq!(sessions, 0, "the other end has met one process: {}", log(&place, "right"));
    fs::remove_file(key).unwrap();
}

#[test]
fn a_switch_at_rest_writes_no_line() {
    let place = needs!(Place::new("rest", &["a", "b", "c", "d"]));
    // A busy machine makes paths slow and late.
    let peer = "[[peer]]\nname = \"other\"\ndead-after = \"5s\"\nskew-max = \"1s\"\n";
    let [left, right] = four_paths(&place).map(|text| text + peer);
    place.apply("left", &left);
    place.apply("right", &right);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    assert!(soon(|| log(&place, "left").contains("paths to other: ")));
    let before = log(&place, "left");
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(log(&place, "left"), before);
}

/// The switch leads a session, so that it has a processor beside whatever its starter's session
/// does.
#[test]
fn a_switch_that_apply_starts_leads_a_session() {
    let place = needs!(Place::new("session", &["a", "b"]));
    let pid = place.apply("s", TWO).pid;
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Session, and nice, of proc_pid_stat(5).
    assert_eq!((fields[3], fields[16]), (&pid.to_string()[..], "-5"));
    let finding = millpond_linux::switch::doctor::examine_process(pid).unwrap();
    assert!(finding.found.contains("nice -5"), "{}", finding.found);
}

/// Nobody applies anything: the supervisor starts the switch again, and ends with it.
#[test]
fn a_killed_switch_starts_again_by_itself() {
    let place = needs!(Place::new("supervised", &["a", "b"]));
    place.apply("s", TWO);
    let address: SocketAddr = "10.98.8.2:7001".parse().unwrap();
    let listen = || TcpListener::bind(address);
    let listener = namespace::within(Some(place.network(1)), listen).unwrap().unwrap();
    let mut here = connect(place.network(0), address);
    let mut there = listener.accept().unwrap().0;
    there.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let state = place.state("s");
    let [killed, supervisor] = place.kill_process("s");
    here.write_all(&[7; 1000]).unwrap();
    let mut came = [0; 1000];
    there.read_exact(&mut came).unwrap();
    let reading = show::read(&state).unwrap();
    assert_eq!((reading.restarts, reading.pid == killed), (Some(1), false));
    let found = millpond_linux::switch::doctor::examine_restarts(&reading).unwrap().found;
    assert!(found.starts_with("1; the last one at 20"), "{found}");
    assert!(found.ends_with("after signal: 9 (SIGKILL)"), "{found}");
    assert!(log(&place, "s").contains("starts again in 100 ms"), "{}", log(&place, "s"));
    assert!(apply::remove_all(&state).unwrap());
    // It is this process's child, which nobody waits for.
    let stat = || fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap_or_default();
    assert!(soon(|| stat().is_empty() || stat().contains(") Z ")), "{}", stat());
}

/// Connections stay open while the worker is killed and started again.
#[test]
fn a_worker_that_is_killed_again_and_again_costs_no_connection() {
    let place = needs!(Place::new("again", &["a", "b"]));
    place.apply("s", TWO);
    let address: SocketAddr = "10.98.8.2:7001".parse().unwrap();
    let listen = || TcpListener::bind(address);
    let listener = namespace::within(Some(place.network(1)), listen).unwrap().unwrap();
    let mut here = connect(place.network(0), address);
    let mut there = listener.accept().unwrap().0;
    there.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    for turn in 0..10u8 {
        place.kill("s");
        here.write_all(&[turn; 1000]).unwrap();
        place.apply("s", TWO);
        let mut came = [0; 1000];
        there.read_exact(&mut came).unwrap();
        assert_eq!(came, [turn; 1000]);
    }
}
