//! The load against agents that are processes in namespaces of this machine's kernel, by the wall
//! clock: the guests' own program, which takes its orders from a socket here.

use super::compared::{Records, UNTIL, assert_like_the_simulator, bytes, plan};
use super::{INCAST, RPC, SHUFFLE, THINKING};
use crate::calendar::Orders;
use crate::image;
use crate::load::{Load, PORT};
use millpond_agent::wire::{self, FRAME_MAX, Order, Report};
use millpond_core::Time;
use millpond_lab::address;
use millpond_lab::load::Counts;
use millpond_results::{ConnectionRecord, FlowRecord};
use millpond_scenario::plan::Plan;
use millpond_worlds::{Namespace, World, needs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An agent that reports nothing for so long never will.
const PATIENCE: Duration = Duration::from_secs(10);

/// One world at a time: a process that is being started has what others write open, and a program
/// that somebody writes cannot be started.
static TURN: Mutex<()> = Mutex::new(());

/// Agents of hosts that a bridge joins.
struct Agents {
    hosts: Vec<Namespace>,
    sockets: Vec<OwnedFd>,
    processes: Vec<Child>,
    reports: VecDeque<(u32, Report)>,
    _world: World,
    _turn: MutexGuard<'static, ()>,
}

impl Agents {
    fn new(label: &str, hosts: u32) -> Result<Agents, millpond_worlds::Error> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let world = World::new(label)?;
        let bridge = world.namespace("bridge")?;
        let labels: Vec<String> = (0..hosts).map(|host| format!("h{host}")).collect();
        let namespaces = world.namespaces(&labels)?;
        let ends: Vec<String> = (0..hosts).map(|host| format!("to{host}")).collect();
        let ends_of = |(host, end)| [(host, "eth0"), (&bridge, end)];
        let pairs: Vec<_> =
            namespaces.iter().zip(ends.iter().map(String::as_str)).map(ends_of).collect();
        world.veths(&pairs)?;
        let up = |end: &String| format!("link set {end} master br0\nlink set {end} up\n");
        let ports: String = ends.iter().map(up).collect();
        bridge.ip(&format!("link add br0 type bridge\nlink set br0 up\n{ports}"))?;
        for (host, namespace) in (0..).zip(&namespaces) {
            let mac = address::mac(host);
            namespace.ip(&format!("link set eth0 address {mac}\nlink set eth0 up"))?;
        }
        let program = world.folder().join("agent");
        std::fs::write(&program, image::AGENT).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let (mut sockets, mut processes) = (Vec::new(), Vec::new());
        for namespace in &namespaces {
            let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
            let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
            let mut command = Command::new(&program);
            command.args(["--socket", "0"]).stdin(Stdio::from(theirs));
            processes.push(namespace.spawn(&mut command).unwrap());
            sockets.push(ours);
        }
        namespaces.iter().for_each(wait_for_link);
        let reports = VecDeque::new();
        let mut agents =
            Agents { hosts: namespaces, sockets, processes, reports, _world: world, _turn: turn };
        (0..hosts).for_each(|host| agents.wait_for(host, &Report::Hello));
        Ok(agents)
    }

    fn order(&self, host: u32, bytes: &[u8]) {
        send(&self.sockets[host as usize], bytes, SendFlags::NOSIGNAL).unwrap();
    }

    /// Takes what agents report within some time.
    fn hear(&mut self, time: Duration) {
        let polled = |fd| PollFd::new(fd, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = self.sockets.iter().map(polled).collect();
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        poll(&mut fds, Some(&time)).unwrap();
        let ready = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>();
        for host in (0..).zip(ready).filter_map(|(host, is)| is.then_some(host)) {
            let mut frame = [0; FRAME_MAX];
            let socket = &self.sockets[host as usize];
            let (_, length) = recv(socket, &mut frame[..], RecvFlags::empty()).unwrap();
            assert!(length > 0, "the agent of host {host} has ended");
            let mut bytes = &frame[..length];
            while let Some(report) = wire::read(&mut bytes).unwrap() {
                self.reports.push_back((host, report));
            }
        }
    }

    /// Waits for a report, and keeps the others.
    fn wait_for(&mut self, host: u32, wanted: &Report) {
        let begun = Instant::now();
        loop {
            let found = self.reports.iter().position(|(of, it)| *of == host && it == wanted);
            if let Some(at) = found {
                self.reports.remove(at);
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "host {host}: no {wanted:?}: {:?}", self.reports);
            self.hear(Duration::from_millis(100));
        }
    }

    /// Hands orders on. An agent is to have those of connections that come before the packets do.
    fn obey(&mut self, orders: &mut Orders) {
        for (_, host, bytes) in orders.drain(..) {
            self.order(host, &bytes);
            if matches!(wire::read(&mut &bytes[..]), Ok(Some(Order::Await { .. }))) {
                self.prepare(host, &[]);
            }
        }
    }

    /// Has an agent do these, and waits for it.
    fn prepare(&mut self, host: u32, orders: &[Order]) {
        let mut frames = Vec::new();
        orders.iter().chain([&Order::Prepare]).for_each(|order| wire::pack(order, &mut frames));
        frames.iter().for_each(|frame| self.order(host, frame));
        self.wait_for(host, &Report::Ready);
    }

    fn prepare_all(&mut self, plan: &Plan) {
        for host in 0..plan.topology.hosts {
            let no_metrics = "/proc/sys/net/ipv4/tcp_no_metrics_save";
            let mut orders = vec![
                Order::Write { path: no_metrics.into(), value: "1".into() },
                Order::Interface {
                    address: address::ip(host).octets(),
                    prefix: address::PREFIX,
                    mtu: 1400,
                },
                Order::Neighbours(
                    (0..plan.topology.hosts)
                        .map(|host| (address::ip(host).octets(), address::mac(host).0))
                        .collect(),
                ),
                Order::Route {
                    initial_window: 7,
                    rto_min: 30,
                    quickack: true,
                    mss: 1200,
                    congestion: "reno".into(),
                },
            ];
            let classes = 0..plan.traffic.classes.len() as u16;
            orders.extend(classes.map(|class| Order::Listen { port: PORT + class }));
            self.prepare(host, &orders);
        }
    }

    /// Makes a plan's traffic by the wall clock.
    fn run(&mut self, plan: &Plan) -> (Records, Counts) {
        self.prepare_all(plan);
        let began = Instant::now();
        let clock = || Time::from_ns(began.elapsed().as_nanos() as u64);
        let (mut load, mut records, mut orders) =
            (Load::new(plan), Records::default(), Orders::new());
        while !load.is_over() {
            assert!(began.elapsed() < PATIENCE, "{:?}", load.ledger.counts);
            let now = clock();
            while load.next().is_some_and(|next| next <= now) {
                load.on_time(now, &mut orders);
                self.obey(&mut orders);
            }
            let next = load.next().unwrap_or(Time::MAX).saturating_sub(clock());
            if self.reports.is_empty() {
                self.hear(Duration::from_nanos(next.as_ps() / 1000).min(PATIENCE));
            }
            while let Some((host, report)) = self.reports.pop_front() {
                load.on_report(clock(), host, report, &mut records, &mut orders);
                self.obey(&mut orders);
            }
            if plan.until_complete && load.is_complete() {
                load.stop(clock(), &mut orders);
                self.obey(&mut orders);
            }
        }
        let counts = load.conclude(clock(), &mut records);
        (records, counts)
    }

    /// Sockets of TCP that do not listen.
    fn sockets_left(&self) -> Vec<String> {
        let of = |host: &Namespace| {
            let table = host.run(|| std::fs::read_to_string("/proc/thread-self/net/tcp"));
            let table = table.unwrap().unwrap();
            let is_left = |line: &&str| line.split_whitespace().nth(3) != Some("0A");
            table.lines().skip(1).filter(is_left).map(String::from).collect::<Vec<_>>()
        };
        self.hosts.iter().flat_map(of).collect()
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        // Agents end with the world.
        self.sockets.clear();
        let ended = self.processes.iter_mut().map(|it| it.wait().map(|status| status.success()));
        let all = ended.map(|it| it.unwrap_or(false)).fold(true, |all, it| all & it);
        assert!(all || std::thread::panicking(), "an agent ends with an error");
    }
}

/// A link is up a moment after it was set up.
fn wait_for_link(host: &Namespace) {
    let show = || Command::new("ip").args(["-brief", "link", "show", "dev", "eth0"]).output();
    let is_up =
        || String::from_utf8_lossy(&host.run(show).unwrap().unwrap().stdout).contains(" UP ");
    let begun = Instant::now();
    while !is_up() {
        assert!(begun.elapsed() < PATIENCE, "eth0 does not come up");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn agents_make_the_simulators_flows_with_kernel_tcp() {
    let mut agents = needs!(Agents::new("agents", 4));
    for (traffic, has_times) in [(format!("{INCAST}{THINKING}"), true), (SHUFFLE.into(), false)] {
        let plan = plan(UNTIL, 4, &traffic);
        let run = agents.run(&plan);
        assert_like_the_simulator(&plan, &run, has_times);
        let (records, counts) = &run;
        let requests = if has_times { 19 * 100 } else { 0 };
        assert_eq!((counts.bytes_measured, counts.unstamped), (bytes(records) + requests, 0));
        for flow in &records.flows {
            let rto = Time::from_ms(30)..Time::from_ms(100);
            assert!(flow.srtt > Time::ZERO && rto.contains(&flow.rto), "{flow:?}");
        }
        assert_eq!(agents.sockets_left(), Vec::<String>::new(), "no TIME_WAIT");
    }
    let route = agents.hosts[1].run(|| Command::new("ip").args(["route", "show"]).output());
    let route = String::from_utf8(route.unwrap().unwrap().stdout).unwrap();
    let own = route.contains("rto_min lock 30ms");
    let others = ["initcwnd 7", "quickack 1", "advmss 1200", "congctl reno", "10.213.0.0/16"];
    assert!(own && others.iter().all(|it| route.contains(it)), "{route}");
}

#[test]
fn agents_call_until_the_stop_and_report_how_connections_stand() {
    let mut agents = needs!(Agents::new("agents-rpc", 3));
    let capture = "[capture]\ngoodput = \"50ms\"\nconnections = { every = \"50ms\", max = 8 }";
    let traffic = format!("{RPC}stop = \"200ms\"\n{capture}");
    let plan = plan("duration = \"300ms\"\nwarm-up = \"100ms\"", 3, &traffic);
    let (records, counts) = agents.run(&plan);
    assert!(counts.errors.is_empty() && counts.completed > 100, "{counts:?}");
    let unfinished = records.flows.iter().find(|call| call.finish.is_none());
    assert!(unfinished.is_none(), "{unfinished:?}, {:?}", records.connections);
    assert_eq!(counts.started, counts.completed, "the last calls end after the stop");
    let stop = Time::from_ms(200);
    assert!(records.flows.iter().all(|call| call.start < stop));
    let last = records.flows.iter().filter_map(|call| call.finish).max().unwrap();
    assert!(last < Time::from_ms(250), "{last:?}");
    let read = |call: &&FlowRecord| call.finish.is_some_and(|at| at >= Time::from_ms(100));
    let whole = records.flows.iter().filter(read).count() as u64 * 16_200;
    assert!(counts.bytes_measured.abs_diff(whole) <= 8 * 16_200, "{counts:?}, {whole}");
    assert_eq!(counts.goodput.len(), 6);
    let sums: Vec<u64> = counts.goodput.iter().map(|sample| sample[0]).collect();
    let all = records.flows.len() as u64 * 16_200;
    // By the wall clock an agent can begin a call just before its last report is taken.
    let is_all = sums[5].abs_diff(all) <= 2 * 16_200;
    assert!(sums.is_sorted() && sums[1] > 0 && is_all, "{sums:?}, {all}");
    assert!(records.connections.len() >= 8 && counts.sampled.len() == 4, "{counts:?}");
    let order = records.connections.iter().map(|row| (row.at, row.flow));
    assert!(order.is_sorted());
    // A segment has 12 bytes of time stamps.
    let is_grown = |row: &ConnectionRecord| row.cwnd >= 7 * 1188 && row.acked > 0;
    let small = records.connections.iter().find(|row| !is_grown(row));
    assert!(small.is_none(), "{small:?}");
    assert_eq!(agents.sockets_left(), Vec::<String>::new());
}
