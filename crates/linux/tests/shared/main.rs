//! Ports of shared memory, with applications and a switch that can be killed: processes of
//! their own (`helpers`). Needs no privileges.

#[path = "../attached/mod.rs"]
mod attached;
mod cache;
#[allow(dead_code)]
#[path = "../../../port/examples/cache/client.rs"]
mod client;
mod overlay;
#[allow(dead_code)]
#[path = "../../../port/examples/cache/server.rs"]
mod server;
#[path = "../../../port/examples/cache/stack.rs"]
mod stack;

use attached::{Place, Process, role, soon};
use millpond_linux::switch::apply;
use millpond_linux::switch::reading::Reading;
use millpond_port::layout::{Hello, Layout};
use millpond_port::memory::Memory;
use millpond_port::{Error, Frame, Port, Unsent, channel};
use millpond_worlds::needs;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl Place {
    /// Applies a switch with these ports of shared memory, each with its keys.
    fn apply(&self, ports: &[(&str, &str)]) -> Reading {
        self.apply_with(ports, "")
    }
    /// And with others.
    fn apply_with(&self, ports: &[(&str, &str)], others: &str) -> Reading {
        self.apply_kind("shared", ports, others)
    }
    fn attach(&self, name: &str) -> Port {
        Port::attach(self.socket(name)).unwrap()
    }
    fn application(&self, name: &str) -> Process {
        Process::start(&mut application(&self.socket(name)))
    }
}

fn application(socket: &Path) -> Command {
    role("application", socket)
}

const BROADCAST: u8 = 0xff;

/// From one station to another, with a number.
fn frame(to: u8, from: u8, number: u32) -> [u8; 64] {
    let mut frame = [0; 64];
    let address = |n| if n == BROADCAST { [BROADCAST; 6] } else { [2, 0, 0, 0, 0, n] };
    frame[..6].copy_from_slice(&address(to));
    frame[6..12].copy_from_slice(&address(from));
    frame[12..14].copy_from_slice(&[0x88, 0xb6]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &Frame) -> u32 {
    u32::from_be_bytes(frame.bytes()[14..18].try_into().unwrap())
}

/// Makes the switch know who is where.
fn announce(port: &mut Port, own: u8, others: &mut [&mut Port]) {
    port.try_send(0, &frame(BROADCAST, own, u32::MAX)).unwrap();
    let mut frames = vec![Frame::default(); 4];
    for other in others {
        // Beside frames that another station may have sent to everybody before.
        let mut hears = || {
            let count = other.recv(&mut frames);
            frames[..count].iter().any(|frame| frame.bytes()[11] == own)
        };
        assert!(soon(&mut hears), "station {own} is not heard of");
    }
}

/// Three applications that know each other: stations 1, 2 and 3.
fn three(place: &Place) -> [Port; 3] {
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(|name| place.attach(name));
    announce(&mut a, 1, &mut [&mut b, &mut c]);
    announce(&mut b, 2, &mut [&mut a, &mut c]);
    announce(&mut c, 3, &mut [&mut a, &mut b]);
    [a, b, c]
}

/// Sends as many frames in a flow as are wanted, as far as it goes.
fn push(port: &mut Port, flow: u32, to: u8, sent: &mut u32, wanted: u32) {
    while *sent < wanted {
        match port.try_send(flow, &frame(to, 1, *sent)) {
            Ok(()) => *sent += 1,
            Err(Unsent::WouldBlock) => return,
            Err(other) => panic!("{other}"),
        }
    }
}

/// Takes what has arrived, in order.
fn pull(port: &mut Port, arrived: &mut u32) {
    let mut frames = vec![Frame::default(); 64];
    loop {
        let count = port.recv(&mut frames);
        for frame in &frames[..count] {
            assert_eq!(number(frame), *arrived);
            *arrived += 1;
        }
        if count == 0 {
            return;
        }
    }
}

/// Buffers enough that flows are paused before they have their share of them.
const SCARCE: &str = "frames = 4096\nqueue-memory = \"64KiB\"";
const THREE: [(&str, &str); 3] = [("a", SCARCE), ("b", SCARCE), ("c", "")];

#[test]
fn a_slow_application_loses_nothing_and_blocks_no_other() {
    let place = Place::new("slow");
    place.apply(&THREE);
    let [mut a, mut b, mut c] = three(&place);
    const EACH: u32 = 50_000;
    let (mut to_b, mut to_c, mut at_b, mut at_c) = (0, 0, 0, 0);
    // B reads nothing, and C all.
    assert!(soon(|| {
        push(&mut a, 1, 2, &mut to_b, EACH);
        push(&mut a, 2, 3, &mut to_c, EACH);
        pull(&mut c, &mut at_c);
        at_c == EACH
    }));
    assert!(to_b < 6000 && a.paused(1) && !a.paused(2), "{to_b} sent to who reads nothing");
    let shared = place.port("b").shared.unwrap();
    assert!(
        shared.notified == 1 && shared.waiting_frames > 0 && shared.waiting_bytes <= 65_536,
        "{shared:?}"
    );
    assert_eq!(place.port("a").shared.unwrap().paused, 1);
    // B reads.
    assert!(soon(|| {
        push(&mut a, 1, 2, &mut to_b, EACH);
        pull(&mut b, &mut at_b);
        at_b == EACH
    }));
    assert!(soon(|| a.in_flight() == 0) && !a.paused(1));
    let reading = place.reading();
    assert!(reading.ports.iter().all(|port| port.counters.dropped.is_empty()), "{reading:?}");
    let shared = place.port("b").shared.unwrap();
    assert!(
        shared.pauses > 0 && shared.pauses == shared.resumes && shared.waiting_frames == 0,
        "{shared:?}"
    );
    assert_eq!(place.port("a").counters.received, u64::from(2 * EACH) + 1);
}

#[test]
fn an_application_that_is_killed_keeps_nobody() {
    let place = Place::new("app");
    place.apply(&THREE);
    let (mut a, mut c) = (place.attach("a"), place.attach("c"));
    announce(&mut a, 1, &mut [&mut c]);
    let application = place.application("b");
    let mut frames = vec![Frame::default(); 8];
    assert!(soon(|| a.recv(&mut frames) > 0), "it is there");
    assert_eq!(place.port("b").shared.unwrap().pid, Some(application.0.id() as i32));
    // It reads nothing, and A nothing of its: both flows are paused.
    let mut sent = 0;
    assert!(soon(|| {
        push(&mut a, 1, 2, &mut sent, u32::MAX);
        a.paused(1) && place.port("b").shared.unwrap().paused == 1
    }));
    drop(application);
    assert!(soon(|| place.port("b").shared.unwrap().pid.is_none()));
    assert!(soon(|| !a.paused(1) && a.in_flight() == 0), "its flow goes on, to nobody");
    let dropped = place.port("b").counters.dropped;
    assert!(dropped["loss-app-exit"] > 0, "{dropped:?}");
    assert!(place.port("a").counters.dropped["no-application"] > 0);
    assert_eq!(place.port("b").shared.unwrap().notified, 0);
    // The frames that it had sent are A's to read, and then another takes its place.
    let mut from_b = 0;
    assert!(soon(|| {
        from_b += a.recv(&mut frames);
        place.port("a").shared.unwrap().waiting_frames == 0
    }));
    let mut b = place.attach("b");
    announce(&mut b, 2, &mut [&mut c]);
    let (mut sent, mut arrived) = (0, 0);
    assert!(soon(|| {
        push(&mut a, 1, 2, &mut sent, 10_000);
        pull(&mut b, &mut arrived);
        arrived == 10_000
    }));
    assert_eq!(place.port("b").shared.unwrap().attachments, 2);
}

#[test]
fn a_switch_that_is_killed_or_changed_is_attached_to_again() {
    let place = Place::new("switch");
    place.apply(&THREE);
    let [mut a, mut b, mut c] = three(&place);
    place.kill();
    assert!(soon(|| {
        a.wait(Duration::from_millis(10));
        !a.is_attached() && a.try_send(1, &frame(2, 1, 0)) == Err(Unsent::WouldBlock)
    }));
    std::thread::sleep(Duration::from_millis(100));
    place.apply(&THREE);
    let back = |port: &mut Port, times| {
        soon(|| {
            // As an application does that sleeps for it.
            port.wait(Duration::from_millis(500));
            port.is_attached() && port.attachments() == times
        })
    };
    assert!(back(&mut a, 2) && back(&mut b, 2) && back(&mut c, 2));
    announce(&mut b, 2, &mut [&mut a, &mut c]);
    let (mut sent, mut arrived) = (0, 0);
    let flow = |a: &mut Port, b: &mut Port, sent: &mut u32, arrived: &mut u32, wanted| {
        soon(|| {
            push(a, 1, 2, sent, wanted);
            pull(b, arrived);
            *arrived == wanted
        })
    };
    assert!(flow(&mut a, &mut b, &mut sent, &mut arrived, 10_000));
    // Again the same, which changes nothing; then another size of one port.
    let before = place.reading().pid;
    place.apply(&THREE);
    assert!(flow(&mut a, &mut b, &mut sent, &mut arrived, 20_000) && a.attachments() == 2);
    place.apply(&[THREE[0], ("b", "flows = 7\nmtu = 9000"), THREE[2]]);
    assert!(
        back(&mut b, 3) && b.flows() == 7 && b.frame_max() == 9024 && place.reading().pid == before
    );
    announce(&mut b, 2, &mut [&mut c]);
    pull_all(&mut a);
    assert!(flow(&mut a, &mut b, &mut sent, &mut arrived, 30_000) && a.attachments() == 2);
    // Without it: its socket is gone, and the others go on.
    place.apply(&[THREE[0], THREE[2]]);
    assert!(soon(|| {
        b.wait(Duration::from_millis(10));
        !b.is_attached()
    }));
    assert!(
        !place.socket("b").exists()
            && matches!(Port::attach(place.socket("b")), Err(Error::Absent { .. }))
    );
    announce(&mut a, 1, &mut [&mut c]);
    assert!(apply::remove_all(&place.state()).unwrap() && !place.socket("a").exists());
}

fn pull_all(port: &mut Port) {
    let mut frames = vec![Frame::default(); 64];
    while port.recv(&mut frames) > 0 {}
}

#[test]
fn a_port_has_one_application_and_its_user() {
    let place = Place::new("user");
    place.apply(&[("a", ""), ("b", "uid = 65534")]);
    let a = place.attach("a");
    assert!(matches!(Port::attach(place.socket("a")), Err(Error::Busy)));
    drop(a);
    assert!(soon(|| Port::attach(place.socket("a")).is_ok()), "it is free again");
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let meta = fs::metadata(place.socket("b")).unwrap();
    assert_eq!((meta.permissions().mode() & 0o777, meta.uid()), (0o600, 65_534));
    needs!(rustix::process::geteuid().is_root(), "root, to be another user");
    // Whom the file's mode lets in the switch does not, if it is another.
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.socket("a"), open.clone()).unwrap();
    fs::set_permissions(&place.folder, open).unwrap();
    use std::os::unix::process::CommandExt;
    // The folder where these tests were built may be closed to another user.
    let program = place.folder.join("helper");
    fs::copy(application(&place.socket("a")).get_program(), &program).unwrap();
    let as_nobody = |name: &str| {
        let arguments = application(&place.socket(name));
        Process::start(Command::new(&program).args(arguments.get_args()).uid(65_534))
    };
    let _denied = as_nobody("a");
    let said = place.folder.join("a.sock.refused");
    let is_said = soon(|| fs::read_to_string(&said).is_ok_and(|text| !text.is_empty()));
    needs!(is_said, "a program of these tests that another user can run");
    assert!(fs::read_to_string(&said).unwrap().contains("lets another user"));
    let allowed = as_nobody("b");
    assert!(soon(|| place.port("b").shared.unwrap().pid == Some(allowed.0.id() as i32)));
}

/// Attaches as a port does, and writes whatever it likes into the memory.
fn vandal(place: &Place, name: &str, seed: &mut u64) {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(place.socket(name)).unwrap()).unwrap();
    let Ok(Some((Hello::Welcome(sizes), Some(parts)))) = channel::receive(&socket) else { return };
    let layout = Layout::of(sizes);
    let memory = Memory::map(&parts.memory, layout.bytes).unwrap();
    let mut draw = || {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as u32
    };
    let words = memory.words(0, layout.bytes / 4);
    // Doorbells and rings, mostly, or a ring's words and its bell as they should be, and bad
    // frames.
    let bells = layout.transmit_bells(&memory);
    let ring = layout.transmit(&memory, 0);
    for round in 0..20_000u32 {
        let value = if draw() % 2 == 0 { draw() % 70 } else { draw() };
        match round % 4 {
            0 => words.as_ref()[draw() as usize % (layout.bytes / 16)].store(value, Relaxed),
            1 => bells.as_ref()[draw() as usize % bells.as_ref().len()].store(value, Relaxed),
            2 => ring.as_ref()[16 + draw() as usize % 64]
                .store(u64::from(draw()) << 32 | u64::from(value), Relaxed),
            _ => ring.as_ref()[0].store(u64::from(draw() % 100), Relaxed),
        }
        if round % 64 == 0 {
            let _ = rustix::io::write(&parts.switch, &[1]);
        }
    }
    std::thread::sleep(Duration::from_millis(20));
}

#[test]
fn a_hostile_application_harms_its_own_port_alone() {
    let place = Place::new("hostile");
    let reading = place.apply(&[THREE[0], THREE[1], THREE[2], ("evil", "")]);
    let [mut a, mut b, _c] = three(&place);
    let (mut sent, mut arrived, mut seed) = (0, 0, 7);
    for _ in 0..20 {
        vandal(&place, "evil", &mut seed);
        let wanted = sent + 5_000;
        assert!(soon(|| {
            push(&mut a, 1, 2, &mut sent, wanted);
            let mut frames = vec![Frame::default(); 64];
            let count = b.recv(&mut frames);
            // A frame that the other sends to everybody is not from station 1 with the next number.
            let is_next = |frame: &Frame, n: u32| frame.bytes() == crate::frame(2, 1, n);
            for frame in &frames[..count] {
                arrived += u32::from(is_next(frame, arrived));
            }
            arrived == wanted
        }));
    }
    let now = place.reading();
    assert_eq!(now.pid, reading.pid, "the switch lives");
    assert!(
        now.ports[0].counters.dropped.is_empty() && now.ports[1].counters.dropped.is_empty(),
        "{now:?}"
    );
    assert!(now.ports[3].counters.dropped.contains_key("bad-descriptor"), "{:?}", now.ports[3]);
    assert_eq!(now.ports[0].shared.as_ref().unwrap().paused, 0);
}
