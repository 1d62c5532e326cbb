//! The virtual switch with this machine's own kernel: network namespaces that each test makes, and
//! real TCP between them.
//!
//! Skipped, with a message, without root, TAP or `ip`. The switch is a process of its own
//! (`helpers`), so that it can be killed.

use millpond_linux::switch::config::Config;
use millpond_linux::switch::reading::{PortState, Reading};
use millpond_linux::switch::state::State;
use millpond_linux::switch::{apply, show};
use millpond_worlds::{namespace, needs};
use std::fs;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

mod backpressure;
mod cni;
mod fairness;
mod faults;
mod figures;
mod forged;
mod importance;
mod long;
mod moves;
mod operating;
mod peers;
mod place;
mod vlans;
mod workers;

use place::{Place, TWO, byte, ip, program, soon, transfer};

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
    let files = Files(State::at(
        &std::env::temp_dir().join(format!("millpond-switch-files-{}", std::process::id())),
    ));
    let state = &files.0;
    let port = |name: &str| {
        format!("[[port]]\nname = \"{name}\"\nkind = \"pcap\"\nwrite = \"/dev/null\"\n")
    };
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
/// ends when it is asked to.
fn refuse_until_stopped(state: &State, is_up: &AtomicBool) {
    let _lock = state.lock_frames().unwrap().unwrap();
    let socket = UnixListener::bind(state.file("control.sock")).unwrap();
    is_up.store(true, Ordering::Relaxed);
    for client in socket.incoming() {
        let (mut client, mut asked) = (client.unwrap(), String::new());
        client.read_to_string(&mut asked).unwrap();
        let is_over = asked.starts_with("stop\n");
        let answer = if is_over {
            r#"{"ok":null}"#
        } else {
            r#"{"error":"config:1:1: unknown key `later`"}"#
        };
        client.write_all(answer.as_bytes()).unwrap();
        if is_over {
            return fs::remove_file(state.file("control.sock")).unwrap();
        }
    }
}

#[test]
fn a_process_of_another_version_makes_way() {
    let files = Files(State::at(
        &std::env::temp_dir().join(format!("millpond-switch-other-{}", std::process::id())),
    ));
    let state = &files.0;
    state.create().unwrap();
    let is_up = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| refuse_until_stopped(state, &is_up));
        assert!(soon(|| is_up.load(Ordering::Relaxed)));
        assert_eq!(state.process(), Some(std::process::id()));
        let text = "[[port]]\nname = \"a\"\nkind = \"pcap\"\nwrite = \"/dev/null\"\n";
        let done =
            apply::apply(state, &Config::parse("test.toml", text).unwrap(), &|| program(state))
                .unwrap();
        assert_eq!((done.open, done.waiting), (1, Vec::new()));
        other.join().unwrap();
        assert_ne!(show::read(state).unwrap().pid, std::process::id());
    });
}

#[test]
fn tcp_crosses_and_a_killed_switch_loses_no_connection() {
    let place = needs!(Place::new("kill", &["a", "b"]));
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
    assert!(
        reading.ports.iter().all(|p| p.counters.dropped.is_empty() && p.counters.sent_large > 100),
        "{reading:?}"
    );
    // Again: nothing changes, and the counters stay.
    let again = place.apply("s", TWO);
    assert!(
        again.ports[0].counters.received >= reading.ports[0].counters.received
            && again.pid == reading.pid
    );
    // Without one of them, and then without all.
    place.apply("s", &TWO[..TWO.rfind("[[port]]").unwrap()]);
    assert!(place.has(0, "mpa") && !place.has(1, "mpb"));
    assert!(apply::remove_all(&place.state("s")).unwrap());
    assert!(!place.has(0, "mpa") && !place.state("s").folder().exists());
    assert!(!apply::remove_all(&place.state("s")).unwrap());
}

#[test]
fn a_killed_switch_is_removed_without_a_trace() {
    let place = needs!(Place::new("trace", &["a", "b"]));
    place.apply("s", TWO);
    place.kill("s");
    assert!(place.has(0, "mpa"));
    apply::remove_all(&place.state("s")).unwrap();
    assert!(!place.has(0, "mpa") && !place.has(1, "mpb") && !place.state("s").folder().exists());
    // An interface that was there before is used and not removed.
    assert!(ip(&["-n", place.network(0), "tuntap", "add", "mpa", "mode", "tap"]));
    place.apply("s", TWO);
    apply::remove_all(&place.state("s")).unwrap();
    assert!(place.has(0, "mpa") && !place.has(1, "mpb"));
}

#[test]
fn a_second_process_takes_over() {
    let place = needs!(Place::new("over", &["a", "b"]));
    let first = place.apply("s", TWO);
    let mut second = program(&place.state("s"));
    let mut second = second.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(soon(|| show::read(&place.state("s")).is_ok_and(|r| r.pid == second.id())));
    assert_ne!(first.pid, second.id());
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 20_000_000, || {});
    apply::stop(&place.state("s")).unwrap();
    assert!(second.wait().unwrap().success());
}

#[test]
fn a_port_that_disappears_comes_back() {
    let place = needs!(Place::new("gone", &["a", "b"]));
    place.apply("s", TWO);
    let network = place.network(1);
    assert!(ip(&["-n", network, "link", "del", "mpb"]));
    // It is made anew, with its address; the other port has not suffered.
    assert!(soon(|| place.has(1, "mpb")));
    transfer(place.network(0), network, "10.98.8.2:7001", 20_000_000, || {});
    // With its namespace it cannot be, and the rest goes on.
    assert!(ip(&["netns", "del", network]));
    let waits = |r: &Reading| r.ports[1].state == PortState::Waiting && r.ports[1].reason.is_some();
    assert!(soon(|| show::read(&place.state("s"))
        .is_ok_and(|r| waits(&r) && r.ports[0].state == PortState::Open)));
    assert!(ip(&["netns", "add", network]));
    assert!(soon(
        || show::read(&place.state("s")).is_ok_and(|r| r.ports[1].state == PortState::Open)
    ));
    transfer(place.network(0), network, "10.98.8.2:7002", 20_000_000, || {});
}

/// A tap, and a veth pair whose one end, in the third namespace, is a port; both with `keys`.
fn tap_and_wire(place: &Place, keys: &str) {
    let [inner, outer] = [place.network(1), place.network(2)];
    let pair =
        ["-n", outer, "link", "add", "mpw", "type", "veth", "peer", "name", "mpc", "netns", inner];
    assert!(ip(&pair));
    for (network, device, address) in [(1, "mpc", Some("10.98.8.2/24")), (2, "mpw", None)] {
        let network = place.network(network);
        address.map(|a| ip(&["-n", network, "addr", "add", a, "dev", device]));
        assert!(ip(&["-n", network, "link", "set", device, "up"]));
    }
    let tap = &TWO[..TWO.rfind("[[port]]").unwrap()];
    place.apply(
        "s",
        &format!(
            "{tap}{keys}[[port]]\nname = \"w\"\nkind = \"af-packet\"\ndevice = \"mpw\"\n\
             namespace = \"NET2\"\n{keys}"
        ),
    );
}

#[test]
fn a_slow_interface_gets_all_of_a_burst() {
    let place = needs!(Place::new("slow", &["a", "b", "c"]));
    tap_and_wire(&place, "");
    let (a, b) = (place.network(0), place.network(1));
    // Room for everything in its queue: what bounds it is the packet socket, some 90 packets.
    let shape = "qdisc add dev mpw root tbf rate 100mbit burst 10kb limit 20mb";
    let mut tc = Command::new("tc");
    tc.args(["-n", place.network(2)]).args(shape.split(' '));
    needs!(tc.status().is_ok_and(|status| status.success()), "`tc` with tbf");
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
    let place = needs!(Place::new("tags", &["a", "b", "c"]));
    tap_and_wire(&place, "");
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
    let tagged = [(a, "mpa", "10.98.9.1/24"), (b, "mpc", "10.98.9.2/24")].map(
        |(network, device, address)| {
            ip(&[
                "-n", network, "link", "add", "link", device, "name", "mptag", "type", "vlan",
                "id", "7",
            ]) && ip(&["-n", network, "addr", "add", address, "dev", "mptag"])
                && ip(&["-n", network, "link", "set", "mptag", "up"])
        },
    );
    let has_tags = tagged == [true, true];
    if has_tags {
        transfer(a, b, "10.98.9.2:7001", 20_000_000, || {});
        transfer(b, a, "10.98.9.1:7001", 20_000_000, || {});
    }
    // An interface that goes away, and another of the same name.
    assert!(ip(&["-n", place.network(2), "link", "del", "mpw"]));
    assert!(soon(
        || show::read(&place.state("s")).is_ok_and(|r| r.ports[1].state == PortState::Waiting)
    ));
    needs!(has_tags, "VLAN interfaces");
}
