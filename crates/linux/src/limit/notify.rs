//! The side channel of limits at ingress. A sender whose packets cannot carry CE is on another
//! host, where no return value of a hook reaches it; so its host is notified, and reduces its
//! window there.
//!
//! ```text
//! receiving host: limit_ingress ─ ring ─► sending ── datagram ─┐
//! sending host:           limit_heed: CWR ◄─ map ─ listening ◄─┘
//! ```
//!
//! Off unless a file has `[[notify]]`. It is an offer on both ends: limits at ingress drop what is
//! too far behind, whether senders are notified or not.
//!
//! Invariant: whatever is missing, lost or refused, packets pass as if there were no channel; what
//! arrives reduces a window of a flow to the sending host, once a message, and [`MOST`] a
//! second.

use super::Error;
use super::cgroup::Hierarchy;
use super::config::NotifyParams;
use super::exclusive;
use super::layout::{Flow, Report};
use super::message::{self, Secret};
use super::object::{self, Loaded};
use super::show;
use super::store::{self, Known};
use crate::metrics::Page;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, RingBufferBuilder};
use std::collections::HashMap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Messages a second that are sent, and that are heeded.
pub const MOST: u32 = 50_000;
/// How long a message waits for a packet of its flow, and a report for being sent.
const PATIENCE: Duration = Duration::from_millis(100);
/// How soon a thread that waits sees that it should end.
const PAUSE: Duration = Duration::from_millis(200);
/// Own addresses that are kept open to notify from.
const SOCKETS: usize = 64;

#[derive(Debug, Default)]
pub struct Counters {
    pub sent: AtomicU64,
    /// Reports that were not sent: too old, too many, to no peer, or no way there.
    pub unsent: AtomicU64,
    pub received: AtomicU64,
    /// Messages that were not: wrong form or secret, too old, too many, from no peer, of a flow
    /// that is not its sender's to speak of.
    pub refused: AtomicU64,
    pub heeded: AtomicU64,
}

impl Counters {
    pub fn prometheus(&self) -> String {
        let counts = [
            ("sent", "Messages to senders' hosts.", &self.sent),
            ("unsent", "Reports that became no message.", &self.unsent),
            ("received", "Messages from receivers' hosts that were believed.", &self.received),
            ("refused", "Messages that were not believed.", &self.refused),
            ("heeded", "Windows that were reduced for them.", &self.heeded),
        ];
        let mut page = Page::new("millpond_limit_notifications");
        for (name, help, count) in counts {
            let value = [(String::new(), count.load(Ordering::Relaxed) as f64)];
            page.metric(&format!("{name}_total"), help, value);
        }
        page.text
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// So many a second.
struct Allowance {
    since: Instant,
    left: u32,
}

impl Allowance {
    fn new() -> Allowance {
        Allowance { since: Instant::now(), left: MOST }
    }
    fn take(&mut self) -> bool {
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Allowance::new();
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

/// The two ends on this host, as long as a file asks for them.
#[derive(Default)]
pub struct Notify {
    pub counters: Arc<Counters>,
    running: Option<Running>,
    /// The wish that could not be begun, so that it is reported once.
    failed: Option<Wanted>,
    known: Known,
}

/// The wish of a file, and the ring that the programs of now write to.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    params: NotifyParams,
    ring: u32,
}

struct Running {
    wanted: Wanted,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Notify {
    /// Follows the installed files: begins, ends, or begins anew; what failed is tried again each
    /// time. Reports to `log`.
    pub fn follow(&mut self, bpffs: &Path, log: &dyn Fn(&str)) {
        let wanted = wanted(bpffs, &mut self.known);
        if wanted.as_ref() == self.running.as_ref().map(|running| &running.wanted) {
            return;
        }
        self.running = None;
        let Some(wanted) = wanted else { return log("notifications: off") };
        match Running::new(bpffs, &wanted, &self.counters) {
            Ok(running) => {
                log(&format!("notifications: on, at UDP port {}", wanted.params.port));
                (self.running, self.failed) = (Some(running), None);
            }
            Err(error) => {
                if self.failed.as_ref() != Some(&wanted) {
                    log(&format!("no notifications: {error}"));
                }
                self.failed = Some(wanted);
            }
        }
    }
}

fn wanted(bpffs: &Path, known: &mut Known) -> Option<Wanted> {
    let params = known.look(bpffs).0.iter().find_map(|s| s.config.notify.clone())?;
    let ring = ring(bpffs).ok()?.info().ok()?.info.id;
    Some(Wanted { params, ring })
}

fn ring(bpffs: &Path) -> Result<MapHandle, Error> {
    store::pinned(bpffs, "reports")
}

impl Running {
    fn new(bpffs: &Path, wanted: &Wanted, counters: &Arc<Counters>) -> Result<Running, Error> {
        let (params, stop) = (&wanted.params, Arc::new(AtomicBool::new(false)));
        let secret = Secret::read(&PathBuf::from(&params.secret))?;
        let port = params.port as u16;
        let ring = ring(bpffs)?;
        let sending = Sending {
            port,
            peers: Peers::of(params),
            secret: secret.clone(),
            counters: counters.clone(),
            allowance: Allowance::new(),
            from: HashMap::new(),
        };
        let listening = Listening {
            socket: listen(port)?,
            heed: Heed::attach()?,
            counters: counters.clone(),
            believing: Believing { peers: Peers::of(params), secret, allowance: Allowance::new() },
        };
        let (one, other) = (stop.clone(), stop.clone());
        let threads = vec![
            std::thread::spawn(move || sending.run(&ring, &one)),
            std::thread::spawn(move || listening.run(&other)),
        ];
        Ok(Running { wanted: wanted.clone(), stop, threads })
    }
}

/// Hosts that are notified and believed.
struct Peers(Vec<ipnet::IpNet>);

impl Peers {
    fn of(params: &NotifyParams) -> Peers {
        Peers(params.networks().into_iter().flatten().collect())
    }
    fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// From the ring to the senders' hosts.
struct Sending {
    port: u16,
    peers: Peers,
    secret: Secret,
    counters: Arc<Counters>,
    allowance: Allowance,
    from: HashMap<IpAddr, UdpSocket>,
}

impl Sending {
    fn run(mut self, ring: &MapHandle, stop: &AtomicBool) {
        let mut reports = RingBufferBuilder::new();
        let added = reports.add(ring, |bytes| {
            count(if self.send(bytes) { &self.counters.sent } else { &self.counters.unsent });
            0
        });
        if added.is_err() {
            return;
        }
        let Ok(reports) = reports.build() else { return };
        while !stop.load(Ordering::Relaxed) {
            let _ = reports.poll(PAUSE);
        }
    }

    /// Whether a message is on its way.
    fn send(&mut self, report: &[u8]) -> bool {
        let Some(Report { flow, at }) = Report::from_bytes(report) else { return false };
        let age = Duration::from_nanos(show::now().saturating_sub(at));
        let (to, from) = (flow.source.ip(), flow.destination.ip());
        if age > PATIENCE || !self.peers.has(to) || !self.allowance.take() {
            return false;
        }
        let message = message::encode(flow, SystemTime::now(), &self.secret);
        // From the address that the flow goes to: only of such is a message believed.
        let there = (to, self.port);
        self.socket(from).is_some_and(|socket| socket.send_to(&message, there).is_ok())
    }

    fn socket(&mut self, from: IpAddr) -> Option<&UdpSocket> {
        if !self.from.contains_key(&from) {
            if self.from.len() >= SOCKETS {
                self.from.clear();
            }
            let socket = UdpSocket::bind((from, 0)).ok()?;
            // A full queue here must not hold up what comes after.
            socket.set_nonblocking(true).ok()?;
            self.from.insert(from, socket);
        }
        self.from.get(&from)
    }
}

/// From receivers' hosts to the program that reduces windows.
struct Listening {
    socket: UdpSocket,
    heed: Heed,
    counters: Arc<Counters>,
    believing: Believing,
}

struct Believing {
    peers: Peers,
    secret: Secret,
    allowance: Allowance,
}

impl Believing {
    /// The flow that a message names, if it is believed.
    fn flow(&mut self, datagram: &[u8], from: IpAddr, now: SystemTime) -> Option<Flow> {
        // Cheap checks first: anybody can send.
        if datagram.len() != message::BYTES || !self.peers.has(from) {
            return None;
        }
        let flow = message::decode(datagram, now, &self.secret).ok()?;
        // Last, so that a message that is refused anyway takes nothing of the allowance.
        (flow.destination.ip() == from && self.allowance.take()).then_some(flow)
    }
}

/// A socket for both kinds of addresses; where there is no IPv6, for IPv4.
fn listen(port: u16) -> Result<UdpSocket, Error> {
    let fail = |e: std::io::Error| Error::Kernel {
        what: format!("listening on UDP port {port}"),
        reason: e.to_string(),
    };
    let socket = UdpSocket::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    let socket = socket
        .or_else(|_| UdpSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))))
        .map_err(fail)?;
    socket.set_read_timeout(Some(PAUSE)).map_err(fail)?;
    Ok(socket)
}

impl Listening {
    fn run(mut self, stop: &AtomicBool) {
        // Longer than any message, so that a longer one is seen to be none.
        let mut datagram = [0; message::BYTES + 1];
        let mut seen = 0;
        while !stop.load(Ordering::Relaxed) {
            if let Ok((n, from)) = self.socket.recv_from(&mut datagram) {
                let is_accepted = self.accept(&datagram[..n], from.ip().to_canonical());
                count(if is_accepted { &self.counters.received } else { &self.counters.refused });
            }
            let heeded = self.heed.count();
            self.counters.heeded.fetch_add(heeded.saturating_sub(seen), Ordering::Relaxed);
            seen = heeded;
        }
    }

    fn accept(&mut self, datagram: &[u8], from: IpAddr) -> bool {
        let flow = self.believing.flow(datagram, from, SystemTime::now());
        flow.is_some_and(|flow| self.heed.slow_down(flow))
    }
}

/// The program that reduces windows, at every cgroup's packets as long as this lives.
struct Heed {
    _link: Link,
    reported: MapHandle,
    heeded: MapHandle,
}

impl Heed {
    fn attach() -> Result<Heed, Error> {
        let what = "attaching what reduces windows to the root of all cgroups";
        let loaded = Loaded::plain(object::HEED, what)?;
        let map = |name: &str| loaded.checked(MapHandle::try_from(&loaded.map(name)?));
        let (reported, heeded) = (map("reported")?, map("heeded")?);
        let hierarchy = Hierarchy::find()?;
        let at = hierarchy.at(Path::new("/")).ok();
        if let Some(reason) =
            at.and_then(|at| exclusive::in_the_way(&at, &exclusive::hooks([true, false], false)))
        {
            return Err(Error::Kernel { what: what.into(), reason });
        }
        let root = hierarchy.root;
        let folder = File::open(&root).map_err(|e| Error::file(&root, e))?;
        let program = loaded.program("limit_heed")?;
        let _link = loaded.checked(program.attach_cgroup(folder.as_raw_fd()))?;
        Ok(Heed { _link, reported, heeded })
    }

    /// The flow's next packet, if it comes soon, reduces its window.
    fn slow_down(&self, flow: Flow) -> bool {
        let until = show::now() + PATIENCE.as_nanos() as u64;
        self.reported.update(&flow.to_bytes(), &until.to_ne_bytes(), MapFlags::ANY).is_ok()
    }

    fn count(&self) -> u64 {
        let of = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        let counts = self.heeded.lookup_percpu(&[0; 4], MapFlags::ANY);
        counts.ok().flatten().map_or(0, |all| all.iter().map(of).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second() {
        let mut allowance = Allowance::new();
        assert_eq!((0..3 * MOST).filter(|_| allowance.take()).count() as u32, MOST);
        allowance.since -= Duration::from_secs(1);
        assert!(allowance.take());
    }

    /// Whoever can send from a peer's address, and does not know the secret, keeps no message out.
    #[test]
    fn what_is_not_believed_uses_up_nothing() {
        let [here, there] = ["10.0.0.1:80", "10.0.0.2:40000"].map(|end| end.parse().unwrap());
        let flow = Flow { source: here, destination: there };
        let secret = |text: &[u8]| Secret::new(text).unwrap();
        let peers = Peers::of(&NotifyParams {
            peers: vec!["10.0.0.0/8".into()],
            ..NotifyParams::default()
        });
        let known = secret(b"0123456789abcdef");
        let mut believing = Believing { peers, secret: known.clone(), allowance: Allowance::new() };
        let now = SystemTime::now();
        let forged = message::encode(flow, now, &secret(b"another secret of theirs"));
        let stale = message::encode(flow, now - Duration::from_secs(60), &known);
        let foreign = message::encode(Flow { source: there, destination: here }, now, &known);
        let mut garbage = forged;
        garbage[..8].fill(0);
        for what in [forged, stale, foreign, garbage] {
            let believed =
                (0..MOST / 2).filter(|_| believing.flow(&what, there.ip(), now).is_some()).count();
            assert_eq!(believed, 0);
        }
        let good = message::encode(flow, now, &known);
        assert_eq!(believing.flow(&good, there.ip(), now), Some(flow));
        assert_eq!(believing.flow(&good, "192.168.0.1".parse().unwrap(), now), None, "no peer");
        // Belief is bounded all the same.
        believing.allowance =
            Allowance { since: Instant::now() + Duration::from_secs(60), left: 1 };
        assert_eq!([0, 1].map(|_| believing.flow(&good, there.ip(), now).is_some()), [true, false]);
    }

    #[test]
    fn peers_are_networks_and_addresses() {
        let peers = ["10.1.0.0/16", "192.168.7.7", "fd00::/8"].map(String::from).to_vec();
        let peers = Peers::of(&NotifyParams { peers, ..NotifyParams::default() });
        for (address, is_one) in [
            ("10.1.2.3", true),
            ("10.2.0.1", false),
            ("192.168.7.7", true),
            ("192.168.7.8", false),
            ("fd12::1", true),
            ("::1", false),
        ] {
            assert_eq!(peers.has(address.parse().unwrap()), is_one, "{address}");
        }
    }

    #[test]
    fn prometheus_has_each_counter() {
        let counters = Counters::default();
        count(&counters.sent);
        let text = counters.prometheus();
        assert!(text.contains("\nmillpond_limit_notifications_sent_total 1\n"), "{text}");
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 5);
    }
}
