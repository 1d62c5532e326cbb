//! Programs of the live tests of limits: they send, receive or apply in a cgroup and a namespace
//! of their own, since a socket belongs to the cgroup that its process was in.

use millpond_linux::limit::apply::Session;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The pace that a connection of `paces` asks for itself: between the two limits of the test.
const OWN_PACE: u32 = 2_000_000;
/// The window that a connection of `windows` asks for itself.
const OWN_WINDOW: u32 = 50_000;

/// Plays `role`; the first argument of most is the cgroup that the process enters.
pub fn play(role: &str, args: &[&str]) {
    match role {
        "apply" => return apply_forever(args),
        "wander" => return wander(Path::new(args[0]), Path::new(args[1]), Path::new(args[2])),
        _ => {}
    }
    let procs = Path::new(args[0]).join("cgroup.procs");
    fs::write(procs, std::process::id().to_string()).unwrap();
    match role {
        "tcp" => send_tcp(args[2].parse().unwrap(), args[3].parse().unwrap()),
        "udp" => send_udp(),
        "receive" => receive(),
        "windows" => windows(Path::new(args[2])),
        "paces" => paces(Path::new(args[2])),
        "congestion" => congestion(Path::new(args[2])),
        "flood" => flood(args[2].parse().unwrap()),
        other => panic!("no role {other}"),
    }
}

/// Once somebody listens, who may have been started just now. The host's own congestion control may
/// be BBR, which limits are not for.
fn connect() -> TcpStream {
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

/// A socket's option, after it was set where that is asked for. By libc: rustix has neither paces
/// nor window clamps.
#[allow(unsafe_code)]
fn option(socket: BorrowedFd<'_>, level: i32, name: i32, set: Option<u32>) -> u32 {
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

/// Has a socket that was made elsewhere, enters `cgroup`, makes one there, and leaves to `other`
/// when a file is there; `file` has where it is.
fn wander(cgroup: &Path, other: &Path, file: &Path) {
    let enter = |cgroup: &Path, said: &str| {
        fs::write(cgroup.join("cgroup.procs"), std::process::id().to_string()).unwrap();
        fs::write(file, said).unwrap();
    };
    let socket = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect("127.0.0.1:9").unwrap();
        socket
    };
    let _made_elsewhere = socket();
    enter(cgroup, "in");
    let _made_here = socket();
    while !file.with_extension("leave").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    enter(other, "out");
    std::thread::sleep(Duration::from_secs(60));
}

/// Receives over two connections, of which the second has a window of its own, and writes down what
/// the windows may be: the least and the present one of each.
fn windows(file: &Path) {
    let listener = TcpListener::bind("10.98.7.2:7007").unwrap();
    let mut streams = [(); 2].map(|()| listener.accept().unwrap().0);
    let clamp = |from: &TcpStream, set| {
        option(from.as_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, set)
    };
    // Otherwise the kernel's own buffers grow, and the window with them; and until it has seen how
    // large segments are, it sets the window itself.
    option(streams[1].as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, Some(4 * OWN_WINDOW));
    let (mut least, mut piece) = ([u32::MAX; 2], vec![0; 1 << 18]);
    streams[1].read_exact(&mut piece).unwrap();
    clamp(&streams[1], Some(OWN_WINDOW));
    loop {
        for (from, least) in streams.iter_mut().zip(&mut least) {
            let _ = from.read(&mut piece);
            *least = clamp(from, None).min(*least);
        }
        // The kernel sets the window itself, too, when segments come in another size. A window that
        // a limit has held once is not asked for again: the limit gives it back, or the test fails.
        if least[1] >= OWN_WINDOW {
            clamp(&streams[1], Some(OWN_WINDOW));
        }
        let [a, b] = [0, 1].map(|i| format!("{} {}", least[i], clamp(&streams[i], None)));
        let next = file.with_extension("next");
        fs::write(&next, format!("{a} {b}")).unwrap();
        fs::rename(&next, file).unwrap();
    }
}

/// A socket's SO_MAX_PACING_RATE, after it was set where that is asked for.
fn pace(socket: BorrowedFd<'_>, set: Option<u32>) -> u32 {
    option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, set)
}

/// Connections of one cgroup, whose paces are written to a file again and again: to another host,
/// to another host with a pace of its own, and both ends of two over loopback.
fn paces(file: &Path) {
    let plain = connect();
    let own = connect();
    pace(own.as_fd(), Some(OWN_PACE));
    let mut sockets = vec![plain, own];
    for address in ["127.0.0.1:0", "10.98.7.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(address).unwrap();
        sockets.push(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        sockets.push(listener.accept().unwrap().0);
    }
    loop {
        let paces: Vec<String> =
            sockets.iter().map(|socket| pace(socket.as_fd(), None).to_string()).collect();
        let next = file.with_extension("next");
        fs::write(&next, paces.join(" ")).unwrap();
        fs::rename(&next, file).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes the congestion controls of a connection and its other end, and whether its first SYN
/// asked for ECN; both ends are of this process, over loopback.
fn congestion(file: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let from = listener.accept().unwrap().0;
    let name = |socket: &dyn AsFd| rustix::net::sockopt::tcp_congestion(socket.as_fd()).unwrap();
    let names = [name(&to), name(&from)].join(" ");
    fs::write(file, format!("{names} {}", has_ecn(&to))).unwrap();
}

/// TCP_INFO's options, which rustix does not have: bit 3 says that ECN was negotiated.
#[allow(unsafe_code)]
fn has_ecn(socket: &TcpStream) -> bool {
    let (mut info, mut size) = ([0u8; 8], 8 as libc::socklen_t);
    let at = info.as_mut_ptr().cast();
    // SAFETY: the buffer is as long as the size says, and the descriptor is open.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut size)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    info[5] & 8 != 0
}
