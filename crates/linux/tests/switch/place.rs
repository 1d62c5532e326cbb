//! What the tests make, and take away again: network namespaces with switches in them, and TCP
//! between.

use super::ROLE;
use millpond_linux::switch::config::Config;
use millpond_linux::switch::reading::Reading;
use millpond_linux::switch::state::State;
use millpond_linux::switch::{apply, show};
use millpond_linux::{namespace, switch};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One at a time: the machine is small.
static TURN: Mutex<()> = Mutex::new(());

/// What a test makes, and takes away again.
pub struct Place {
    pub folder: PathBuf,
    networks: Vec<String>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

pub fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// Whether `what` comes about in time.
pub fn soon(what: impl Fn() -> bool) -> bool {
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
pub fn program(state: &State) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_switch_of_these_tests", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, state.folder());
    command
}

impl Place {
    /// With namespaces of these names; `None`, with a message, where there can be none.
    pub fn new(name: &str, ends: &[&str]) -> Option<Place> {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let fatal: Vec<_> =
            switch::doctor::examine().into_iter().filter(|f| f.what != "cores").collect();
        if let Some(lack) = fatal.iter().find(|f| {
            !matches!(f.state, millpond_linux::limit::doctor::State::Ok)
                && f.what != "congestion control"
        }) {
            eprintln!("skipped: {name} needs {}: {}", lack.what, lack.found);
            return None;
        }
        let folder =
            std::env::temp_dir().join(format!("millpond-switch-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut place = Place { folder, networks: Vec::new(), _turn: turn };
        for end in ends {
            let network = format!("mpt{}{end}", std::process::id());
            if !ip(&["netns", "add", &network]) {
                eprintln!("skipped: {name} needs `ip netns`");
                return None;
            }
            ip(&["-n", &network, "link", "set", "lo", "up"]);
            // Nobody else has an IPv6 address of these tests: no second of asking before one may be
            // used.
            let sure = || {
                let of = |what: &str| format!("/proc/sys/net/ipv6/conf/{what}/accept_dad");
                ["all", "default"].map(|what| fs::write(of(what), "0"))
            };
            let _ = namespace::within(Some(&network), sure);
            place.networks.push(network);
        }
        Some(place)
    }
    pub fn network(&self, index: usize) -> &str {
        &self.networks[index]
    }
    pub fn state(&self, name: &str) -> State {
        State::at(&self.folder.join(name))
    }
    /// Applies a text, in which NET0, NET1, … stand for the namespaces; the reading afterwards.
    pub fn apply(&self, name: &str, text: &str) -> Reading {
        let mut text = text.to_string();
        self.networks
            .iter()
            .enumerate()
            .for_each(|(i, n)| text = text.replace(&format!("NET{i}"), n));
        let config = Config::parse("test.toml", &text).unwrap();
        let state = self.state(name);
        let done = apply::apply(&state, &config, &|| program(&state)).unwrap();
        assert_eq!(done.waiting, [], "all ports open");
        show::read(&state).unwrap()
    }
    pub fn kill(&self, name: &str) {
        let pid = self.state(name).process().expect("it runs");
        assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
        assert!(soon(|| self.state(name).process().is_none()));
    }
    pub fn has(&self, index: usize, device: &str) -> bool {
        let out =
            Command::new("ip").args(["-n", self.network(index), "-o", "link"]).output().unwrap();
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

pub const TWO: &str = r#"
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

pub fn connect(network: &str, address: SocketAddr) -> TcpStream {
    let start = Instant::now();
    loop {
        let tried = namespace::within(Some(network), || {
            TcpStream::connect_timeout(&address, Duration::from_secs(2))
        });
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
pub fn byte(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Sends bytes from one namespace to another, checks each of them, and does `meanwhile` once some
/// have arrived.
pub fn transfer(from: &str, to: &str, address: &str, bytes: u64, meanwhile: impl FnOnce()) {
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
                    Err(e) => {
                        assert!(start.elapsed().as_secs() < 40, "nobody came to {address}: {e}")
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let mut piece = vec![0; 1 << 16];
            loop {
                let n = stream.read(&mut piece).expect("the connection lives");
                let at = arrived.load(Ordering::Relaxed);
                assert!(
                    piece[..n].iter().zip(at..).all(|(b, i)| *b == byte(i)),
                    "a byte near {at} is wrong"
                );
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
