//! The congestion control of a cgroup's new connections: the nearest cgroup's choice, before the
//! handshake where ECN hangs on it, and the host's own again afterwards.

use crate::place::{Place, ip};
use millpond_linux::limit::apply::{Done, Session};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;

/// What a connection and its other end have, and whether its first SYN asked for ECN; both ends are
/// of this process, over loopback.
pub fn play(file: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let from = listener.accept().unwrap().0;
    let name = |socket: &dyn AsFd| rustix::net::sockopt::tcp_congestion(socket.as_fd()).unwrap();
    let names = [name(&to), name(&from)].join(" ");
    fs::write(file, format!("{names} {}", has_ecn(&to))).unwrap();
}

/// TCP_INFO's options: bit 3 says that ECN was negotiated.
#[allow(unsafe_code)]
fn has_ecn(socket: &TcpStream) -> bool {
    use std::os::fd::AsRawFd;
    let (mut info, mut size) = ([0u8; 8], 8 as libc::socklen_t);
    let at = info.as_mut_ptr().cast();
    // SAFETY: the buffer is as long as the size says, and the descriptor is open.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut size)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    info[5] & 8 != 0
}

/// What connections of a cgroup have that are made now.
fn made(place: &Place, cgroup: &Path) -> String {
    let file = std::env::temp_dir().join(format!("millpond-live-chosen-{}", std::process::id()));
    let args =
        [cgroup.to_str().unwrap(), &place.networks[0], file.to_str().unwrap()].map(String::from);
    assert!(place.child("congestion", &args).wait().unwrap().success());
    let said = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    said
}

/// Applies a text; unlike [`Place::apply`] it says what could not be had.
fn apply(place: &Place, text: &str) -> Done {
    let mut session = Session::open(&place.bpffs).unwrap();
    let source = session.read(&place.file("a.toml", text), false).unwrap();
    let sources = session.with(source);
    session.install(sources, false).unwrap()
}

#[test]
fn a_cgroups_connections_have_its_congestion_control() {
    let Some(place) = Place::with_network("congestion") else { return };
    assert!(ip(&["-n", &place.networks[0], "link", "set", "lo", "up"]));
    let inner = place.cgroup.join("inner");
    fs::create_dir(&inner).unwrap();
    let own = made(&place, &inner);
    let text = "[[limit]]\nname = \"o\"\ncgroup = \"CGROUP\"\ncongestion = \"reno\"\n";
    assert_eq!(apply(&place, text).notes, Vec::<String>::new());
    assert_eq!(made(&place, &place.cgroup), "reno reno false");
    assert_eq!(made(&place, &inner), "reno reno false", "the cgroup above chooses");

    let both = format!(
        "{text}[[limit]]\nname = \"i\"\ncgroup = \"CGROUP/inner\"\ncongestion = \"mp_dctcp\"\n"
    );
    apply(&place, &both);
    let seen = made(&place, &inner);
    if seen.starts_with("reno") {
        eprintln!("skipped: mp_dctcp cannot be registered here");
    } else {
        assert_eq!(seen, "mp_dctcp mp_dctcp true", "the nearest chooses, and its SYN asks for ECN");
    }
    assert_eq!(made(&place, &place.cgroup), "reno reno false");

    apply(&place, &text.replace("congestion = \"reno\"\n", ""));
    assert_eq!(made(&place, &inner), own, "a choice that is no longer made is gone");
}

#[test]
fn an_unknown_congestion_control_is_told_and_limits_hold() {
    let Some(place) = Place::new("no-congestion") else { return };
    let done =
        apply(&place, "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\ncongestion = \"no_such\"\n");
    assert_eq!(done.cgroups, 1);
    assert!(
        done.notes.iter().any(|note| note.contains("no_such") && note.contains("cubic")),
        "{:?}",
        done.notes
    );
}
