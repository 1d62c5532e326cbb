//! `millpond-rpc server` as a process of its own, with few files.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_millpond-rpc");

/// Ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn more_connections_than_files_wait_and_end_nothing() {
    // Of this process alone: nobody else draws a number that was free a moment ago.
    let own = Ipv4Addr::from(0x7f80_0000 | std::process::id());
    let address = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap();
    let script = "ulimit -n 8; exec \"$0\" server \"$1\"";
    let server =
        Command::new("sh").args(["-c", script, PROGRAM, &address.to_string()]).spawn().unwrap();
    let mut server = Server(server);
    let start = Instant::now();
    let first = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(e) => assert!(start.elapsed() < Duration::from_secs(10), "{e}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let others: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.0.try_wait().unwrap().is_none(), "it goes on");
    drop((first, others));
    let load = ["--flows", "1x1KB", "--duration", "100ms", "--warm-up", "10ms"];
    let client = Command::new(PROGRAM)
        .args(["client", &address.to_string()])
        .args(load)
        .stdout(Stdio::null())
        .status();
    assert!(client.unwrap().success(), "and serves those that come when there is room");
}
