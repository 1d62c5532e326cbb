//! Datagrams at a constant rate, and a sink that counts them: the test that what exceeds a limit is
//! lost silently. The sender reports every error that the kernel returned to it, by name: a limiter
//! that is visible to applications shows as EPERM.

use crate::samples::Arrivals;
use rustix::io::Errno;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Sends datagrams of `size` bytes at `rate` bits a second of payload, `burst` of them at once.
pub fn send(
    to: SocketAddr,
    rate: f64,
    size: usize,
    burst: u64,
    duration: Duration,
) -> io::Result<Value> {
    let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.connect(to)?;
    let payload = vec![0; size];
    let begun = Instant::now();
    let (mut tried, mut sent) = (0_u64, 0_u64);
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    loop {
        let elapsed = begun.elapsed();
        if elapsed >= duration {
            break;
        }
        let due = (elapsed.as_secs_f64() * rate / (8.0 * size as f64)) as u64 / burst * burst;
        if tried >= due {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        while tried < due && begun.elapsed() < duration {
            tried += 1;
            match socket.send(&payload) {
                Ok(_) => sent += 1,
                Err(error) => *errors.entry(error_name(&error)).or_default() += 1,
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let mbps = |count: u64| (count as f64 * size as f64 * 8.0 / seconds / 1e3).round() / 1e3;
    Ok(json!({
        "kind": "udp-send", "seconds": seconds, "size": size, "tried": tried, "accepted": sent,
        "offered_mbps": mbps(tried), "accepted_mbps": mbps(sent), "errors": errors,
    }))
}

/// The errors of a send by the names of errno(3), others as text.
fn error_name(error: &io::Error) -> String {
    let name = match Errno::from_io_error(error) {
        Some(Errno::PERM) => "EPERM",
        Some(Errno::ACCESS) => "EACCES",
        Some(Errno::AGAIN) => "EAGAIN",
        Some(Errno::INTR) => "EINTR",
        Some(Errno::INVAL) => "EINVAL",
        Some(Errno::NOBUFS) => "ENOBUFS",
        Some(Errno::NOMEM) => "ENOMEM",
        Some(Errno::MSGSIZE) => "EMSGSIZE",
        Some(Errno::CONNREFUSED) => "ECONNREFUSED",
        Some(Errno::HOSTUNREACH) => "EHOSTUNREACH",
        Some(Errno::NETUNREACH) => "ENETUNREACH",
        Some(Errno::NETDOWN) => "ENETDOWN",
        _ => return error.to_string(),
    };
    name.to_string()
}

/// Counts datagrams until none has come for `idle` after the first, for which it waits as long as
/// the socket does.
pub fn sink(socket: &UdpSocket, idle: Duration) -> io::Result<Value> {
    let mut buffer = vec![0; 1 << 16];
    let first = socket.recv(&mut buffer)? as u64;
    let begun = Instant::now();
    let mut arrivals = Arrivals::default();
    arrivals.add(0, first);
    let mut count = 1_u64;
    let mut last = begun;
    socket.set_read_timeout(Some(idle))?;
    loop {
        match socket.recv(&mut buffer) {
            Ok(got) => {
                last = Instant::now();
                arrivals.add(last.duration_since(begun).as_millis() as u64, got as u64);
                count += 1;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let seconds = last.duration_since(begun).as_secs_f64();
    let mbps = |bytes: u64| (bytes as f64 * 8.0 / 1e3).round() / 1e3;
    Ok(json!({
        "kind": "udp-sink", "seconds": seconds, "count": count, "bytes": arrivals.total(),
        "mbps": if seconds > 0.0 { Some(mbps(arrivals.total()) / seconds) } else { None },
        "max_second_mbps": arrivals.max_second((seconds * 1e3) as u64).map(mbps),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_sent_at_a_rate_and_counted() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let sink = std::thread::spawn(move || sink(&socket, Duration::from_secs(2)).unwrap());
        let sent = send(to, 8e5, 1000, 5, Duration::from_millis(500)).unwrap();
        let got = sink.join().unwrap();
        assert!(sent["tried"].as_u64() <= Some(50), "{sent}");
        assert_eq!(sent["tried"].as_u64().unwrap() % 5, 0, "{sent}");
        assert_eq!(sent["accepted"], got["count"]);
        assert_eq!(sent["errors"], json!({}));
    }
}
