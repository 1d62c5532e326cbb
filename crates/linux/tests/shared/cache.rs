//! The example of `crates/port`: a cache with TCP of its own, its client, and the kernel's.

use crate::attached::{Place, Process, role, soon};
use crate::client::Client;
use crate::server::PORT;
use crate::stack::Stack;
use millpond_worlds::{World, needs};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(40);
/// Where the helper's server is.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 98, 9, 1);

fn server(place: &Place) -> Process {
    let application = Process::start(&mut role("cache", &place.socket("cache")));
    assert!(soon(|| place.port("cache").shared.unwrap().pid.is_some()));
    application
}

fn value(n: usize) -> Vec<u8> {
    (0..n * 97 % 9000).map(|i| (i * 7 + n) as u8).collect()
}

/// Stores values and reads them back.
fn exchange(client: &mut Client, numbers: std::ops::Range<usize>) {
    for n in numbers {
        client.set(&format!("k{n}"), &value(n), PATIENCE).unwrap();
        assert_eq!(client.get(&format!("k{n}"), PATIENCE), Ok(Some(value(n))));
    }
}

const BOTH: [(&str, &str); 2] = [("cache", ""), ("web", "")];

#[test]
fn tcp_of_applications_survives_the_switch_and_the_server() {
    let place = Place::new("cache");
    place.apply(&BOTH);
    let killed = server(&place);
    let stack = Stack::new(place.attach("web"), Ipv4Addr::new(10, 98, 9, 2));
    let mut client = Client::new(stack, OWN);
    assert_eq!(client.get("k1", PATIENCE), Ok(None));
    exchange(&mut client, 1..150);
    let reading = place.reading();
    assert!(reading.ports.iter().all(|port| port.counters.dropped.is_empty()), "{reading:?}");

    // The switch is killed: the connection goes on when there is one again.
    place.kill();
    let asked = std::thread::scope(|scope| {
        let asked = scope.spawn(|| client.get("k7", PATIENCE));
        std::thread::sleep(Duration::from_millis(300));
        place.apply(&BOTH);
        asked.join().unwrap()
    });
    assert_eq!(asked, Ok(Some(value(7))));
    exchange(&mut client, 150..200);

    // The server is killed: the next one knows nothing, and says so.
    drop(killed);
    let _server = server(&place);
    assert!(client.get("k7", PATIENCE).is_err(), "the connection is none of the new server's");
    client.again();
    assert_eq!(client.get("k7", PATIENCE), Ok(None));
    exchange(&mut client, 1..50);
}

/// A request over the kernel's TCP, and what comes up to `end`.
fn ask(stream: &mut TcpStream, request: &[u8], end: &[u8]) -> Vec<u8> {
    stream.write_all(request).unwrap();
    let (mut answer, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    while !answer.ends_with(end) {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the server has ended the connection");
        answer.extend(&piece[..count]);
    }
    answer
}

/// The kernel's TCP in a namespace reaches the application's: super-segments are cut, and their
/// checksums completed.
#[test]
fn the_kernels_tcp_reaches_an_application() {
    let place = Place::new("kernel");
    let world = needs!(World::new("cache"));
    let network = needs!(world.namespace("kernel"));
    let tun = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    needs!(tun.is_ok(), "TAP");
    let tap = format!(
        "[[port]]\nname = \"tap\"\ndevice = \"mpcache\"\nnamespace = \"{}\"\naddresses = \
         [\"10.98.9.3/24\"]\n",
        network.name()
    );
    place.apply_with(&BOTH[..1], &tap);
    let _server = server(&place);
    let (start, address) = (Instant::now(), (OWN, PORT).into());
    let mut stream = loop {
        match network.run(|| TcpStream::connect_timeout(&address, Duration::from_secs(3))) {
            Ok(Ok(stream)) => break stream,
            other => assert!(start.elapsed() < PATIENCE, "{other:?}"),
        }
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let big: Vec<u8> = (0..600_000u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let set = [format!("set big 5 0 {}\r\n", big.len()).as_bytes(), &big, b"\r\n"].concat();
    assert_eq!(ask(&mut stream, &set, b"\r\n"), b"STORED\r\n");
    let got = ask(&mut stream, b"get big\r\n", b"\r\nEND\r\n");
    let expected =
        [format!("VALUE big 5 {}\r\n", big.len()).as_bytes(), &big, b"\r\nEND\r\n"].concat();
    assert!(got == expected, "{} bytes", got.len());
    let reading = place.reading();
    assert_eq!(reading.ports[0].counters.dropped.get("loss-pool"), None);
    // A segment that the kernel handed over in one piece became packets: more went out than came
    // in.
    assert!(reading.ports[0].counters.sent > reading.ports[1].counters.received, "{reading:?}");
}
