//! What this program does as a child of its tests: it sends, receives or applies in a cgroup and a
//! namespace of its own, since a socket belongs to the cgroup that its process was in.

use crate::place::ROLE;
use crate::{arriving, congestion, former, pacing};
use millpond_linux::limit::apply::Session;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Plays the role that the environment says; none without one.
pub fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let args = std::env::var("MILLPOND_LIVE_ARGS").unwrap();
    let args: Vec<&str> = args.split(' ').collect();
    match role.as_str() {
        "tcp" | "udp" | "flood" | "receive" | "windows" | "paces" | "congestion" => {
            fs::write(Path::new(args[0]).join("cgroup.procs"), std::process::id().to_string())
                .unwrap();
            match role.as_str() {
                "tcp" => send_tcp(args[2].parse().unwrap(), args[3].parse().unwrap()),
                "udp" => send_udp(),
                "receive" => receive(),
                "windows" => arriving::play(Path::new(args[2])),
                "paces" => pacing::play(Path::new(args[2])),
                "congestion" => congestion::play(Path::new(args[2])),
                _ => flood(args[2].parse().unwrap()),
            }
        }
        "apply" => apply_forever(&args),
        "apply-once" => apply_once(Path::new(args[0]), Path::new(args[1])),
        "dump" => print!("{}", former::dump(Path::new(args[0]))),
        other => panic!("no role {other}"),
    }
}

/// Once somebody listens, who may have been started just now. The host's own congestion control may
/// be BBR, which limits are not for.
pub fn connect() -> TcpStream {
    let start = Instant::now();
    let to = loop {
        match TcpStream::connect("10.98.7.2:7007") {
            Ok(to) => break to,
            Err(e) => assert!(start.elapsed() < Duration::from_secs(5), "{e}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    rustix::net::sockopt::set_tcp_congestion(&to, "cubic").unwrap();
    to
}

/// A socket's option, after it was set where that is asked for.
#[allow(unsafe_code)]
pub fn option(socket: BorrowedFd<'_>, level: i32, name: i32, set: Option<u32>) -> u32 {
    let (mut value, mut size) = (set.unwrap_or(0), size_of::<u32>() as libc::socklen_t);
    // SAFETY: both calls take a pointer to a u32 with its size, and the descriptor is open.
    let done = unsafe {
        let value = (&raw mut value).cast();
        match set {
            Some(_) => libc::setsockopt(socket.as_raw_fd(), level, name, value, size),
            None => libc::getsockopt(socket.as_raw_fd(), level, name, value, &raw mut size),
        }
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    value
}

fn send_tcp(flows: usize, ms: u64) {
    let connections: Vec<TcpStream> = (0..flows).map(|_| connect()).collect();
    let end = Instant::now() + Duration::from_millis(ms);
    let threads = connections.into_iter().map(|mut to| {
        std::thread::spawn(move || {
            let piece = vec![0; 1 << 16];
            while Instant::now() < end && to.write_all(&piece).is_ok() {}
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|t| t.join().unwrap());
}

/// 100 Mbps or so, small steps.
fn flood(ms: u64) {
    let socket = UdpSocket::bind("10.98.7.1:0").unwrap();
    socket.connect("10.98.7.2:7007").unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(ms) {
        (0..10).for_each(|_| drop(socket.send(&[0; 1400])));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Takes what comes, until it is killed.
fn receive() {
    let listener = TcpListener::bind("10.98.7.2:7007").unwrap();
    for from in listener.incoming() {
        std::thread::spawn(move || {
            let (mut from, mut piece) = (from.unwrap(), vec![0; 1 << 18]);
            while let Ok(1..) = from.read(&mut piece) {}
        });
    }
}

fn send_udp() {
    let socket = UdpSocket::bind("10.98.7.1:0").unwrap();
    socket.connect("10.98.7.2:7007").unwrap();
    for _ in 0..3000 {
        // EPERM would come back here.
        if let Err(error) = socket.send(&[0; 1400])
            && error.kind() == std::io::ErrorKind::PermissionDenied
        {
            std::process::exit(3);
        }
    }
    std::process::exit(0);
}

fn apply_once(bpffs: &Path, file: &Path) {
    let mut session = Session::open(bpffs).unwrap();
    let sources = session.with(session.read(file, false).unwrap());
    session.install(sources, false).unwrap();
}

fn apply_forever(args: &[&str]) {
    let (bpffs, files) = (Path::new(args[0]), [Path::new(args[1]), Path::new(args[2])]);
    let first: usize = args[3].parse().unwrap();
    for n in first.. {
        let mut session = Session::open(bpffs).unwrap();
        let mut source = session.read(files[n % 2], false).unwrap();
        // As one file that is edited.
        source.file = "edited".into();
        let sources = session.with(source);
        session.install(sources, false).unwrap();
    }
}
