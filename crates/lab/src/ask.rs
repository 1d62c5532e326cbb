//! A client that asks a real server over and over, and measures each response: memcached by its
//! text protocol, Redis by RESP.
//!
//! One thread polls all connections. A connection has one request under way at most. Without a
//! period it asks again once it has the response. With one it asks at each multiple of the period
//! by the machine's clock, so that clients on all hosts of a lab ask at once; a connection that
//! still waits then lets the time pass.
//!
//! Invariant: a response counts only if it has the bytes that the protocol demands; any other ends
//! the client with the server's words.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long the client tries to reach a server that may still be starting.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// The key that all clients store and ask for.
const KEY: &str = "millpond";

/// A request that a server understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// memcached's `get`.
    MemcachedGet,
    /// Redis' `GET`.
    RedisGet,
    /// Redis' `SET`.
    RedisSet,
}

#[derive(Clone, Debug)]
pub struct Asking {
    pub request: Request,
    pub server: SocketAddr,
    pub connections: usize,
    /// The value's size in bytes.
    pub size: usize,
    /// Time between two requests of a connection; `None`: as fast as the server answers.
    pub period: Option<Duration>,
    pub lasts: Duration,
}

/// Bytes of a request, and those that its response begins with and has.
struct Exchange {
    request: Vec<u8>,
    head: Vec<u8>,
    length: usize,
}

impl Exchange {
    fn new(request: Vec<u8>, head: String, length: usize) -> Exchange {
        Exchange { request, head: head.into_bytes(), length }
    }

    fn memcached_set(size: usize) -> Exchange {
        let mut request = format!("set {KEY} 0 0 {size}\r\n").into_bytes();
        request.extend(value(size));
        request.extend(b"\r\n");
        Exchange::new(request, "STORED\r\n".into(), 8)
    }

    fn redis_set(size: usize) -> Exchange {
        let (key, length) = (KEY, KEY.len());
        let mut request =
            format!("*3\r\n$3\r\nSET\r\n${length}\r\n{key}\r\n${size}\r\n").into_bytes();
        request.extend(value(size));
        request.extend(b"\r\n");
        Exchange::new(request, "+OK\r\n".into(), 5)
    }

    fn of(request: Request, size: usize) -> Exchange {
        let (key, length) = (KEY, KEY.len());
        let (asked, head, end) = match request {
            Request::RedisSet => return Exchange::redis_set(size),
            Request::MemcachedGet => {
                (format!("get {key}\r\n"), format!("VALUE {key} 0 {size}\r\n"), "\r\nEND\r\n")
            }
            Request::RedisGet => {
                let asked = format!("*2\r\n$3\r\nGET\r\n${length}\r\n{key}\r\n");
                (asked, format!("${size}\r\n"), "\r\n")
            }
        };
        let whole = head.len() + size + end.len();
        Exchange::new(asked.into_bytes(), head, whole)
    }

    /// The request that must have been answered before, if a value is asked for.
    fn before(request: Request, size: usize) -> Option<Exchange> {
        match request {
            Request::MemcachedGet => Some(Exchange::memcached_set(size)),
            Request::RedisGet => Some(Exchange::redis_set(size)),
            Request::RedisSet => None,
        }
    }
}

fn value(size: usize) -> impl Iterator<Item = u8> {
    std::iter::repeat_n(b'x', size)
}

/// A connection, and the request under way on it.
struct Connection {
    stream: TcpStream,
    /// `None`: it waits for its time to ask.
    asked: Option<Instant>,
    sent: usize,
    /// The part of the response that has come: its first bytes, and how many in all.
    head: Vec<u8>,
    received: usize,
}

impl Connection {
    fn open(server: SocketAddr) -> io::Result<Connection> {
        let began = Instant::now();
        let stream = loop {
            match TcpStream::connect(server) {
                Ok(stream) => break stream,
                Err(error) if began.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        };
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, asked: None, sent: 0, head: Vec::new(), received: 0 })
    }

    fn ask(&mut self) {
        self.asked = Some(Instant::now());
        (self.sent, self.received) = (0, 0);
        self.head.clear();
    }

    fn wants(&self, exchange: &Exchange) -> PollFlags {
        match self.asked {
            Some(_) if self.sent < exchange.request.len() => PollFlags::IN | PollFlags::OUT,
            _ => PollFlags::IN,
        }
    }

    /// Sends and receives what it can. Returns the response time once the response is complete.
    fn step(&mut self, exchange: &Exchange, buffer: &mut [u8]) -> io::Result<Option<Duration>> {
        while self.asked.is_some() && self.sent < exchange.request.len() {
            match self.stream.write(&exchange.request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if is_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err(io::Error::other("the server has closed the connection")),
                Ok(count) => count,
                Err(error) if is_later(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            let missing = exchange.head.len().saturating_sub(self.head.len());
            self.head.extend_from_slice(&buffer[..count.min(missing)]);
            self.received += count;
            let is_right = exchange.head.starts_with(&self.head);
            if !is_right || self.received > exchange.length || self.asked.is_none() {
                let text = String::from_utf8_lossy(&self.head);
                return Err(io::Error::other(format!("the server answers {text:?}")));
            }
            if self.received == exchange.length {
                return Ok(self.asked.take().map(|asked| asked.elapsed()));
            }
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The time since this machine started, which all of its processes share.
fn uptime() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The number of the period that a time is in.
fn number(period: Duration, now: Duration) -> u128 {
    now.as_nanos() / period.as_nanos().max(1)
}

/// Asks until its time is over, and passes each response time on. Requests that are under way then
/// are not awaited.
///
/// # Errors
/// If the server cannot be reached within ten seconds, ends a connection, or answers anything but
/// the value; and the first error of `take`.
pub fn ask(asking: &Asking, take: &mut dyn FnMut(Duration) -> io::Result<()>) -> io::Result<()> {
    let open = |_| Connection::open(asking.server);
    let mut all: Vec<Connection> = (0..asking.connections).map(open).collect::<Result<_, _>>()?;
    let mut buffer = vec![0; 64 << 10];
    if let (Some(exchange), Some(first)) =
        (Exchange::before(asking.request, asking.size), all.first_mut())
    {
        first.ask();
        while first.step(&exchange, &mut buffer)?.is_none() {
            wait(std::slice::from_ref(first), &exchange, PAUSE)?;
        }
    }
    let exchange = Exchange::of(asking.request, asking.size);
    let began = Instant::now();
    if asking.period.is_none() {
        all.iter_mut().for_each(Connection::ask);
    }
    let mut last = asking.period.map(|period| number(period, uptime()));
    while began.elapsed() < asking.lasts {
        let now = uptime();
        let current = asking.period.map(|period| number(period, now));
        if current != last {
            all.iter_mut().filter(|one| one.asked.is_none()).for_each(Connection::ask);
            last = current;
        }
        for one in &mut all {
            while let Some(time) = one.step(&exchange, &mut buffer)? {
                take(time)?;
                if asking.period.is_some() {
                    break;
                }
                one.ask();
            }
        }
        let left = asking.lasts.saturating_sub(began.elapsed());
        let next = asking.period.map_or(PAUSE, |period| until_next(period, now));
        wait(&all, &exchange, left.min(next).min(PAUSE))?;
    }
    Ok(())
}

/// The time until the next period begins.
fn until_next(period: Duration, now: Duration) -> Duration {
    let nanos = period.as_nanos().max(1);
    Duration::from_nanos((nanos - now.as_nanos() % nanos) as u64)
}

/// Waits until a connection can go on, at most so long.
fn wait(all: &[Connection], exchange: &Exchange, most: Duration) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> =
        all.iter().map(|one| PollFd::new(&one.stream, one.wants(exchange))).collect();
    let time = Timespec { tv_sec: 0, tv_nsec: most.as_nanos() as _ };
    match poll(&mut fds, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    /// A server that answers each request of `length` bytes with `answer`, over two writes.
    fn server(length: usize, answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || serve(stream, length, answer));
            }
        });
        address
    }

    fn serve(mut stream: TcpStream, length: usize, answer: &[u8]) {
        let mut request = vec![0; length];
        while stream.read_exact(&mut request).is_ok() {
            let (first, rest) = answer.split_at(answer.len() / 2);
            let sent = stream.write_all(first).and_then(|()| stream.write_all(rest));
            if sent.is_err() {
                return;
            }
        }
    }

    fn asked(asking: &Asking) -> io::Result<usize> {
        let mut times = Vec::new();
        ask(asking, &mut |time| {
            times.push(time);
            Ok(())
        })?;
        assert!(times.iter().all(|time| *time < Duration::from_secs(10)), "{times:?}");
        Ok(times.len())
    }

    fn asking(request: Request, server: SocketAddr) -> Asking {
        let lasts = Duration::from_millis(200);
        Asking { request, server, connections: 2, size: 3, period: None, lasts }
    }

    #[test]
    fn a_set_is_a_resp_array_whose_lengths_fit() {
        let set = Exchange::of(Request::RedisSet, 3);
        let text = "*3\r\n$3\r\nSET\r\n$8\r\nmillpond\r\n$3\r\nxxx\r\n";
        assert_eq!(String::from_utf8_lossy(&set.request), text);
        let get = Exchange::of(Request::MemcachedGet, 3);
        let answer = "VALUE millpond 0 3\r\nxxx\r\nEND\r\n";
        assert_eq!(
            (get.length, answer.starts_with(&*String::from_utf8_lossy(&get.head))),
            (answer.len(), true)
        );
    }

    #[test]
    fn connections_ask_again_as_soon_as_they_have_the_response() {
        let length = Exchange::of(Request::RedisSet, 3).request.len();
        let count = asked(&asking(Request::RedisSet, server(length, b"+OK\r\n"))).unwrap();
        assert!(count > 4, "{count} responses in 200 ms");
    }

    #[test]
    fn with_a_period_each_connection_asks_once_a_period() {
        let length = Exchange::of(Request::RedisSet, 3).request.len();
        let period = Some(Duration::from_millis(50));
        let of = asking(Request::RedisSet, server(length, b"+OK\r\n"));
        let count = asked(&Asking { period, ..of }).unwrap();
        // Two connections; at most five periods begin in 200 ms, fewer on a machine that stalls.
        assert!((1..=10).contains(&count), "{count}");
    }

    #[test]
    fn any_other_answer_ends_the_client_with_the_servers_words() {
        let length = Exchange::of(Request::RedisSet, 3).request.len();
        let error = asked(&asking(Request::RedisSet, server(length, b"-ERR no\r\n"))).unwrap_err();
        assert!(error.to_string().contains("the server answers \"-"), "{error}");
        let error = asked(&asking(Request::RedisSet, server(length, b"+OK\r\n+"))).unwrap_err();
        assert!(error.to_string().contains("the server answers"), "{error}");
    }
}
