//! A lab's network under real kernel TCP.

use millpond_lab::Lab;
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_worlds::needs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

fn plan(text: &str) -> Plan {
    let scenario = Scenario::parse("lab.toml", text).unwrap();
    scenario.plan(None, &[], None).unwrap()
}

/// Sends so many bytes from one host to another; how long that took.
fn transfer(lab: &Lab, from: u32, to: u32, bytes: usize) -> f64 {
    let address = SocketAddr::from((lab.address(to), 7000));
    let names = lab.namespaces();
    let listener = names[to as usize].run(|| TcpListener::bind(address)).unwrap().unwrap();
    let sender = names[from as usize].clone();
    std::thread::scope(|scope| {
        let began = Instant::now();
        scope.spawn(move || {
            let mut socket = sender.run(|| TcpStream::connect(address)).unwrap().unwrap();
            rustix::net::sockopt::set_tcp_congestion(&socket, "cubic").unwrap();
            socket.write_all(&vec![7; bytes]).unwrap();
        });
        let (mut socket, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        socket.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), bytes);
        assert!(all.iter().all(|byte| *byte == 7));
        began.elapsed().as_secs_f64()
    })
}

#[test]
fn a_connection_fills_the_bottleneck_of_a_dumbbell() {
    let plan = plan(
        "duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\nhosts-per-side = 2\n\
         host-link = { rate = \"200Mbps\", delay = \"100us\" }\n\
         bottleneck = { rate = \"100Mbps\", delay = \"100us\" }\n[transport]\nkind = \"cubic\"\n\
         [[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"",
    );
    let mut lab = needs!(Lab::up(&plan));
    let bytes = 10_000_000;
    let seconds = transfer(&lab, 0, 2, bytes);
    let mbps = bytes as f64 * 8e-6 / seconds;
    let counted = lab.stop();
    // 1448 of 1500 bytes are payload.
    assert!((88.0..96.6).contains(&mbps), "{mbps} {counted:?}");
    let dropped: u64 = counted.dropped.iter().map(|(_, count)| count).sum();
    assert_eq!(counted.entered, counted.delivered + dropped + counted.held);
    assert!(dropped > 0 && counted.refused == 0, "{counted:?}");
}
