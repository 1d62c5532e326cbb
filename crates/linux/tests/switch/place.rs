//! The place that the tests make, and take away again: network namespaces with switches in them,
//! and TCP between.

use millpond_linux::limit::doctor::{self, Finding};
use millpond_linux::switch;
use millpond_linux::switch::config::Config;
use millpond_linux::switch::reading::Reading;
use millpond_linux::switch::state::State;
use millpond_linux::switch::{apply, show};
use millpond_worlds::{Namespace, World, namespace};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One at a time: the machine is small.
static TURN: Mutex<()> = Mutex::new(());

/// The place that a test makes, and takes away again.
pub struct Place {
    pub folder: PathBuf,
    networks: Vec<Namespace>,
    _world: World,
    _turn: std::sync::MutexGuard<'static, ()>,
}

pub fn ip(args: &[&str]) -> bool {
    millpond_worlds::ip::ip(args).is_ok()
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

/// The helper as the switch of a folder.
pub fn program(state: &State) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond-linux-helper"));
    command.arg("switch").arg(state.folder());
    command
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

fn supervisor_of(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

impl Place {
    /// With namespaces of these names; the error is what there is none for.
    pub fn new(name: &str, ends: &[&str]) -> Result<Place, String> {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let needed = |f: &Finding| !["cores", "congestion control"].contains(&f.what);
        let lacks = |f: &Finding| needed(f) && !matches!(f.state, doctor::State::Ok);
        if let Some(lack) = switch::doctor::examine().into_iter().find(lacks) {
            return Err(format!("{}: {}", lack.what, lack.found));
        }
        let world = World::new(&format!("switch-{name}")).map_err(|e| e.to_string())?;
        let networks = world.namespaces(ends).map_err(|e| e.to_string())?;
        // Nobody else has an IPv6 address of these tests: no second of asking before one may be
        // used.
        for (network, what) in networks.iter().flat_map(|it| [(it, "all"), (it, "default")]) {
            let _ = network.set(&format!("ipv6/conf/{what}/accept_dad"), "0");
        }
        let folder = world.folder().to_path_buf();
        world.at_end({
            let folder = folder.clone();
            move || {
                for state in fs::read_dir(&folder).into_iter().flatten().flatten() {
                    let _ = apply::remove_all(&State::at(&state.path()));
                }
            }
        });
        Ok(Place { folder, networks, _world: world, _turn: turn })
    }
    pub fn network(&self, index: usize) -> &str {
        self.networks[index].name()
    }
    pub fn set(&self, index: usize, key: &str, value: &str) {
        self.networks[index].set(key, value).unwrap();
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
            .for_each(|(i, n)| text = text.replace(&format!("NET{i}"), n.name()));
        let config = Config::parse("test.toml", &text).unwrap();
        let state = self.state(name);
        let done = apply::apply(&state, &config, &|| program(&state)).unwrap();
        assert_eq!(done.waiting, [], "all ports open");
        show::read(&state).unwrap()
    }
    /// Kills a switch's process; returns its number and its supervisor's.
    pub fn kill_process(&self, name: &str) -> [u32; 2] {
        let pid = self.state(name).process().expect("it runs");
        let supervisor = supervisor_of(pid);
        kill(pid);
        [pid, supervisor]
    }
    /// Kills a switch's process, and its supervisor before.
    pub fn kill(&self, name: &str) {
        let pid = self.state(name).process().expect("it runs");
        kill(supervisor_of(pid));
        kill(pid);
        assert!(soon(|| self.state(name).process().is_none()));
    }
    pub fn has(&self, index: usize, device: &str) -> bool {
        let out =
            Command::new("ip").args(["-n", self.network(index), "-o", "link"]).output().unwrap();
        String::from_utf8_lossy(&out.stdout).contains(device)
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
