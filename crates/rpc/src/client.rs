//! The sending end: closed-loop RPCs as in the published experiments. Each flow is one persistent
//! connection with one request outstanding; the next one starts when the reply's byte is there, or
//! later where the flow has a least time between requests. The measured time begins after the
//! warm-up. Bytes and rates are counted at the receiver, latencies here: from a request's first
//! byte given to the kernel to its reply. A request that began before the measured time counts when
//! it ends in it.

use crate::protocol::{BEGIN, END, Greeting, REPLY};
use crate::report::{ClassReport, FlowReport, Report};
use crate::samples::percentile;
use crate::socket::{SocketError, connect_tcp, join_cgroup, tcp_info};
use crate::units::{FlowClass, show_flow_set};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the round-trip times are looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);

/// The load to run.
#[derive(Debug, Clone)]
pub struct Load {
    /// Where the server listens.
    pub to: SocketAddr,
    /// The flows.
    pub classes: Vec<FlowClass>,
    /// Congestion control; the system's default without.
    pub congestion: Option<String>,
    /// How long is measured.
    pub duration: Duration,
    /// How long the flows run before that.
    pub warm_up: Duration,
    /// The flows' sockets are opened in these cgroups, in turn.
    pub cgroups: Vec<PathBuf>,
    /// Leave Nagle's algorithm on.
    pub nagle: bool,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A socket that does not open.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A connection that fails.
    #[error("client: {0}")]
    Io(#[from] io::Error),
    /// The server closed a connection, or said something else.
    #[error("the server at {0} ended a connection")]
    Ended(SocketAddr),
    /// The server's counts cannot be read.
    #[error("the server's report: {0}")]
    Report(#[from] serde_json::Error),
}

struct Flow {
    stream: TcpStream,
    class: usize,
    size: u64,
    every: Option<Duration>,
    missing: u64,
    began: Instant,
    /// When the next request begins, where it waits for its time.
    due: Option<Instant>,
    latencies_ns: Vec<u64>,
    retransmitted_before: u32,
    rtt_sum_us: u64,
    rtt_count: u64,
}

impl Flow {
    /// Gives the kernel what it takes of the present request.
    fn send(&mut self, zeros: &[u8]) -> io::Result<()> {
        while self.missing > 0 {
            let chunk = self.missing.min(zeros.len() as u64) as usize;
            match self.stream.write(&zeros[..chunk]) {
                Ok(sent) => self.missing -= sent as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.missing = self.size;
        self.began = Instant::now();
        self.due = None;
    }

    /// After a reply: now, or when it is time.
    fn go_on(&mut self) {
        match self.every.map(|every| self.began + every) {
            Some(due) if due > Instant::now() => self.due = Some(due),
            _ => self.begin(),
        }
    }

    fn look(&mut self) -> Result<(), SocketError> {
        let info = tcp_info(&self.stream)?;
        self.rtt_sum_us += u64::from(info.srtt_us());
        self.rtt_count += 1;
        Ok(())
    }
}

/// Runs the load and reports what came of it.
pub fn run(load: &Load) -> Result<Report, ClientError> {
    // Before any cgroup is joined: what is limited is the load.
    let mut control = connect_tcp(&load.to, None, false)?;
    control.write_all(&Greeting::Control.encode())?;
    let mut flows = open(load)?;
    let waits = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from)?;
    let interest = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
    for (i, flow) in flows.iter().enumerate() {
        epoll::add(&waits, &flow.stream, EventData::new_u64(i as u64), interest)
            .map_err(io::Error::from)?;
    }
    let zeros = vec![0; 1 << 20];
    for flow in &mut flows {
        flow.begin();
        flow.send(&zeros)?;
    }
    let begin = Instant::now() + load.warm_up;
    drive(&mut flows, &waits, &zeros, begin, None, load)?;
    control.write_all(&[BEGIN])?;
    for flow in &mut flows {
        flow.latencies_ns.clear();
        flow.retransmitted_before = tcp_info(&flow.stream)?.total_retrans;
    }
    drive(&mut flows, &waits, &zeros, begin + load.duration, Some(SAMPLE_EVERY), load)?;
    control.write_all(&[END])?;
    let counted = counts(&mut control)?;
    report(load, flows, &counted)
}

fn open(load: &Load) -> Result<Vec<Flow>, ClientError> {
    let mut flows = Vec::new();
    for (class, FlowClass { flows: count, size, every }) in load.classes.iter().enumerate() {
        for _ in 0..*count {
            let number = flows.len();
            if !load.cgroups.is_empty() && (number == 0 || load.cgroups.len() > 1) {
                join_cgroup(&load.cgroups[number % load.cgroups.len()])?;
            }
            let mut stream = connect_tcp(&load.to, load.congestion.as_deref(), load.nagle)?;
            stream.write_all(&Greeting::Load { flow: number as u16, size: *size }.encode())?;
            stream.set_nonblocking(true)?;
            flows.push(Flow {
                stream,
                class,
                size: *size,
                every: *every,
                missing: 0,
                began: Instant::now(),
                due: None,
                latencies_ns: Vec::new(),
                retransmitted_before: 0,
                rtt_sum_us: 0,
                rtt_count: 0,
            });
        }
    }
    Ok(flows)
}

/// Keeps every flow busy until `end`.
fn drive(
    flows: &mut [Flow],
    waits: &OwnedFd,
    zeros: &[u8],
    end: Instant,
    sample_every: Option<Duration>,
    load: &Load,
) -> Result<(), ClientError> {
    let mut room = [const { MaybeUninit::uninit() }; 64];
    let mut next_sample = Instant::now();
    loop {
        let now = Instant::now();
        if now >= end {
            return Ok(());
        }
        let mut until = end;
        if let Some(period) = sample_every {
            if now >= next_sample {
                for flow in flows.iter_mut() {
                    flow.look()?;
                }
                next_sample = now + period;
            }
            until = until.min(next_sample);
        }
        for flow in flows.iter_mut().filter(|flow| flow.due.is_some_and(|due| due <= now)) {
            flow.begin();
            flow.send(zeros)?;
        }
        until = flows.iter().filter_map(|flow| flow.due).fold(until, Instant::min);
        // Rounded up: an early wake-up would spin.
        let wait = until.saturating_duration_since(now).as_micros().div_ceil(1000);
        let wait = Duration::from_millis(wait.try_into().unwrap_or(u64::from(u32::MAX)));
        let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
        let ready = match epoll::wait(waits, &mut room, Some(&timeout)) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(io::Error::from(error).into()),
        };
        for event in ready {
            let flow = &mut flows[event.data.u64() as usize];
            // Copied: the kernel's structure is packed.
            let flags = event.flags;
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                replies(flow, load)?;
            }
            flow.send(zeros)?;
        }
    }
}

/// Takes a reply, if one is there, and begins the next request.
fn replies(flow: &mut Flow, load: &Load) -> Result<(), ClientError> {
    let mut reply = [0; 2];
    match flow.stream.read(&mut reply) {
        Ok(1) if reply[0] == REPLY && flow.missing == 0 => {
            flow.latencies_ns.push(flow.began.elapsed().as_nanos() as u64);
            flow.go_on();
            Ok(())
        }
        Ok(_) => Err(ClientError::Ended(load.to)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn counts(control: &mut TcpStream) -> Result<serde_json::Value, ClientError> {
    control.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let mut text = Vec::new();
    control.take(u64::from(u32::from_le_bytes(length))).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn report(
    load: &Load,
    flows: Vec<Flow>,
    counted: &serde_json::Value,
) -> Result<Report, ClientError> {
    let seconds = counted["seconds"].as_f64().filter(|s| *s > 0.0).unwrap_or(f64::INFINITY);
    let mbps = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds;
    let second_mbps = |counts: &serde_json::Value| {
        counts["max_second_bytes"].as_u64().map(|b| b as f64 * 8.0 / 1e6)
    };
    let none = serde_json::Value::Null;
    let of_flow = |number: usize| {
        let all = counted["flows"].as_array().map_or(&[][..], Vec::as_slice);
        all.iter().find(|f| f["flow"].as_u64() == Some(number as u64)).unwrap_or(&none)
    };
    let mut classes: Vec<ClassReport> = load
        .classes
        .iter()
        .map(|c| ClassReport { size: c.size, flows: c.flows, ..ClassReport::default() })
        .collect();
    let mut latencies = vec![Vec::new(); classes.len()];
    let mut rtt = vec![(0, 0); classes.len()];
    let mut reports = Vec::new();
    let mut ecn = true;
    for (number, flow) in flows.into_iter().enumerate() {
        let info = tcp_info(&flow.stream)?;
        let class = &mut classes[flow.class];
        let counts = of_flow(number);
        let rate = mbps(counts["bytes"].as_u64().unwrap_or(0));
        ecn &= info.ecn();
        class.mbps += rate;
        class.count += flow.latencies_ns.len();
        class.retransmissions +=
            u64::from(info.total_retrans.saturating_sub(flow.retransmitted_before));
        latencies[flow.class].extend(flow.latencies_ns);
        rtt[flow.class].0 += flow.rtt_sum_us;
        rtt[flow.class].1 += flow.rtt_count;
        reports.push(FlowReport {
            class: flow.class,
            mbps: rate,
            max_second_mbps: second_mbps(counts),
        });
    }
    for ((class, mut latencies), (sum, count)) in classes.iter_mut().zip(latencies).zip(&rtt) {
        latencies.sort_unstable();
        let ms = |per_mille| percentile(&latencies, per_mille).map(|ns| ns as f64 / 1e6);
        (class.p50_ms, class.p99_ms, class.p999_ms) = (ms(500), ms(990), ms(999));
        class.max_ms = latencies.last().map(|ns| *ns as f64 / 1e6);
        class.srtt_us = (*count > 0).then(|| *sum as f64 / *count as f64);
    }
    let (sum, count) = rtt.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    Ok(Report {
        flow_set: show_flow_set(&load.classes),
        congestion: load.congestion.clone().unwrap_or_else(|| "default".into()),
        ecn,
        seconds: counted["seconds"].as_f64().unwrap_or(0.0),
        mbps: mbps(counted["bytes"].as_u64().unwrap_or(0)),
        max_second_mbps: second_mbps(counted),
        retransmissions: classes.iter().map(|c| c.retransmissions).sum(),
        srtt_us: (count > 0).then(|| sum as f64 / count as f64),
        classes,
        flows: reports,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::serve;
    use crate::socket::listen_tcp;
    use crate::units::flow_set;

    #[test]
    fn requests_are_answered_and_counted() {
        let listener = listen_tcp(&"127.0.0.1:0".parse().unwrap(), Some("reno")).unwrap();
        let to = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&listener, true));
        let load = Load {
            to,
            classes: flow_set("2x100KB,1x1KB").unwrap(),
            congestion: Some("reno".into()),
            duration: Duration::from_millis(200),
            warm_up: Duration::from_millis(20),
            cgroups: Vec::new(),
            nagle: false,
        };
        let report = run(&load).unwrap();
        server.join().unwrap().unwrap();
        assert_eq!(report.flows.len(), 3);
        assert!(
            report.classes.iter().all(|class| class.count > 0 && class.mbps > 0.0),
            "{report:?}"
        );
        let sum: f64 = report.classes.iter().map(|class| class.mbps).sum();
        assert!((sum - report.mbps).abs() < 1e-6 * sum, "{report:?}");
        assert_eq!(report.max_second_mbps, None, "the window is shorter than a second");
    }

    #[test]
    fn a_flow_with_a_least_time_between_requests_keeps_it() {
        let listener = listen_tcp(&"127.0.0.1:0".parse().unwrap(), None).unwrap();
        let to = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&listener, true));
        let load = Load {
            to,
            classes: flow_set("1x1KB/20ms,1x1KB").unwrap(),
            congestion: None,
            duration: Duration::from_millis(400),
            warm_up: Duration::from_millis(20),
            cgroups: Vec::new(),
            nagle: false,
        };
        let report = run(&load).unwrap();
        server.join().unwrap().unwrap();
        let counts: Vec<usize> = report.classes.iter().map(|class| class.count).collect();
        assert!((1..=21).contains(&counts[0]) && counts[1] > counts[0], "{counts:?}");
    }
}
