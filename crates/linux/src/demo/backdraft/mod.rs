//! A fast and a slow application on one host, and hosts that ask both: what a switch costs that
//! drops, one that stops, and Backdraft's.
//!
//! Each host is a switch in a namespace of its own, with a path to the receiving host's over a veth
//! pair, and applications at ports of shared memory. Clients ask the slow application in bursts at
//! random, at a load below 1, and the fast one now and then: the *victim*. Arms differ in the keys
//! `queue` and `overlay`, and in how much may wait: a ring of `ring` bytes, or flow queues of
//! `memory`. A loss costs a timeout, so each arm runs with several least timeouts.
//!
//! Follows Backdraft (NSDI 2022) in what is compared. Its hosts have 100 Gb/s and cores of their
//! own; here all of them share the cores of one machine.
//!
//! Invariant: arms have their turns by repetition, and whatever happens, threads, sockets and
//! namespaces are gone at the end.

mod report;

use super::place::{Namespaces, ip};
use super::rpc::{Arrivals, Client, Measured, Server, Station};
use crate::dataplane::port;
use crate::switch::config::Config;
use crate::switch::control::Asking;
use crate::switch::reading::Reading;
use crate::switch::run::Switch;
use crate::switch::state::State;
use millpond_core::random::Stream;
use millpond_port::Port;
use serde::Serialize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Before what is measured begins.
const WARM_UP: Duration = Duration::from_millis(500);
/// How long applications may take to find each other.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a request.
const REQUEST: usize = 1000;
/// Frames between a switch and an application, each way: few, so that what waits is in the queues
/// that are compared.
const RING: usize = 64;
/// Requests that a victim's client has open at most.
const VICTIM_WINDOW: usize = 4;
const SLOW: Station = 1;
const FAST: Station = 2;
/// Of the clients' hosts, the first.
const FIRST: Station = 10;

/// The compared values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// Nobody asks the slow application.
    Alone,
    /// A ring that drops.
    Lossy,
    /// A ring with watermarks: above them the switch takes nothing.
    Backpressure,
    /// Flow queues and the overlay.
    Full,
}

impl Arm {
    /// All of them.
    pub const ALL: [Arm; 4] = [Arm::Alone, Arm::Lossy, Arm::Backpressure, Arm::Full];
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Arm::Alone => "alone",
            Arm::Lossy => "lossy",
            Arm::Backpressure => "backpressure",
            Arm::Full => "full",
        }
    }
}

/// The runs to be made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often each arm.
    pub repetitions: usize,
    /// How long each is measured.
    pub duration: Duration,
    /// Hosts with clients.
    pub hosts: usize,
    /// Loads of the slow application, as parts of what it can do; in turn.
    pub loads: Vec<f64>,
    /// Requests of a burst.
    pub burst: usize,
    /// The slow application's work for a request.
    pub work: Duration,
    /// Least timeouts; in turn.
    pub rtos: Vec<Duration>,
    /// Between two requests of a victim's client.
    pub gap: Duration,
    /// Bytes of a ring.
    pub ring: u64,
    /// Bytes of flow queues; half is headroom.
    pub memory: u64,
}

/// Latencies, in microseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Percentiles {
    /// Half took no longer.
    pub p50: f64,
    /// All but a hundredth.
    pub p99: f64,
    /// All but a thousandth.
    pub p999: f64,
    /// How many there were.
    pub count: usize,
    /// Of these, so many were open at the end, and count with their age.
    pub open: usize,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Of what.
    pub arm: Arm,
    /// Which turn.
    pub repetition: usize,
    /// Of the slow application; 0 if nobody asks it.
    pub load: f64,
    /// The least timeout.
    pub rto_ms: f64,
    /// Frames that switches dropped between the applications, after the warm-up.
    pub drops: u64,
    /// Of those who ask the fast application.
    pub victim: Percentiles,
    /// Of those who ask the slow one.
    pub slow: Percentiles,
    /// Of the slow application's requests, answered.
    pub goodput_mbps: f64,
    /// Bytes of those requests that were sent, over those that were answered.
    pub sent_over_delivered: f64,
    /// The most that waited at the receiving host, in bytes.
    pub peak_bytes: u64,
    /// Pauses that the receiving host's switch said.
    pub pauses: u64,
}

/// All of them.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of this form.
    pub schema: u32,
    /// Every run.
    pub runs: Vec<Run>,
}

fn failed(e: &dyn std::fmt::Display) -> port::Error {
    port::Error::Kernel { what: "the demo".into(), reason: e.to_string() }
}

/// A switch on a thread of its own.
struct Running {
    asking: Asking,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn new(folder: &Path, name: &str, text: &str) -> Result<Running, port::Error> {
        let config = Config::parse(name, text).map_err(|e| failed(&e))?;
        let (asking, requests, wake) = Asking::new().map_err(|e| failed(&e))?;
        let state = State::at(&folder.join(name));
        state.create_new().map_err(|e| failed(&e))?;
        let run = move || {
            if let Err(error) = Switch::new(state, config, requests, wake).run() {
                eprintln!("a switch of the demo: {error}");
            }
        };
        let running = Running { asking, thread: Some(std::thread::spawn(run)) };
        // The ports are there when it answers.
        running.read().map(|_| running)
    }
    fn read(&self) -> Result<Reading, port::Error> {
        self.asking.show().map_err(|e| failed(&e))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.asking.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// How far a run is; applications look at it.
const SEEKS: u8 = 0;
const WARMS: u8 = 1;
const MEASURES: u8 = 2;
const ENDS: u8 = 3;

/// A run to be made.
struct Point {
    arm: Arm,
    load: f64,
    rto: Duration,
    repetition: usize,
}

impl Plan {
    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.repetitions * (1 + (Arm::ALL.len() - 1) * self.loads.len() * self.rtos.len())
    }

    /// The runs of a repetition, in their order: arms have their turns at each load and timeout.
    fn points(&self, repetition: usize) -> Vec<Point> {
        let point = |arm, load, rto| Point { arm, load, rto, repetition };
        let first = self.rtos.first().copied().unwrap_or_default();
        let mut points = vec![point(Arm::Alone, 0.0, first)];
        for &load in &self.loads {
            for &rto in &self.rtos {
                let arms = Arm::ALL.into_iter().filter(|arm| *arm != Arm::Alone);
                points.extend(arms.map(|arm| point(arm, load, rto)));
            }
        }
        points
    }

    fn shared(&self, arm: Arm, folder: &Path, name: &str) -> String {
        let queue = match arm {
            Arm::Alone | Arm::Full => {
                format!(
                    "queue = \"flow-queues\"\nqueue-memory = {}\nheadroom = {}",
                    self.memory,
                    self.memory / 2
                )
            }
            Arm::Lossy => format!("queue = \"lossy\"\nqueue-memory = {}", self.ring),
            Arm::Backpressure => format!("queue = \"backpressure\"\nqueue-memory = {}", self.ring),
        };
        let socket = folder.join(format!("{name}.sock"));
        format!(
            "[[port]]\nname = \"{name}\"\nkind = \"shared\"\nsocket = {socket:?}\nring = \
             {RING}\nframes = {RING}\nflows = 4\n{queue}\n"
        )
    }
    /// Namespaces joined in a star, and the switches' files: the receiving host's first.
    fn texts(
        &self,
        arm: Arm,
        folder: &Path,
        namespaces: &Namespaces,
    ) -> Result<Vec<String>, port::Error> {
        let key = folder.join("key");
        std::fs::write(&key, "of this demo alone\n").map_err(|e| failed(&e))?;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))
            .map_err(|e| failed(&e))?;
        let overlay = matches!(arm, Arm::Alone | Arm::Full);
        let peer = |name: &str| {
            format!("[[peer]]\nname = \"{name}\"\nkey = {key:?}\noverlay = {overlay}\n")
        };
        let mut texts = vec![self.shared(arm, folder, "slow") + &self.shared(arm, folder, "fast")];
        for host in 1..=self.hosts {
            let (here, there) = (namespaces.name(host), namespaces.name(0));
            let (near, far) = (format!("mph{host}"), format!("mpr{host}"));
            ip(&[
                "-n", there, "link", "add", &far, "type", "veth", "peer", "name", &near, "netns",
                here,
            ])?;
            for (network, device, end) in [(there, &far, 2), (here, &near, 1)] {
                ip(&[
                    "-n",
                    network,
                    "addr",
                    "add",
                    &format!("10.79.{host}.{end}/24"),
                    "dev",
                    device,
                ])?;
                ip(&["-n", network, "link", "set", device, "mtu", "1600", "up"])?;
            }
            let path = |name: &str, network: &str, [local, remote]: [u8; 2]| {
                format!(
                    "[[path]]\npeer = \"{name}\"\nnamespace = \"{network}\"\nlocal = \
                     \"10.79.{host}.{local}:4799\"\nremote = \"10.79.{host}.{remote}:4799\"\n"
                )
            };
            let name = format!("host{host}");
            texts[0] += &(path(&name, there, [2, 1]) + &peer(&name));
            let ports = ["asks-slow", "asks-fast"]
                .map(|what| self.shared(arm, folder, &format!("{what}{host}")))
                .concat();
            texts.push(ports + &path("receiver", here, [1, 2]) + &peer("receiver"));
        }
        Ok(texts)
    }

    /// The clients of all hosts: of each host one of the fast application, then one of the slow
    /// application. Bursts come at the same times in each arm.
    fn clients(
        &self,
        point: &Point,
        attach: &dyn Fn(String) -> Result<Port, port::Error>,
    ) -> Result<Vec<Client>, port::Error> {
        let mut clients = Vec::new();
        for host in 1..=self.hosts {
            let own = FIRST + 2 * host as Station;
            let arrivals = Arrivals::Closed { window: VICTIM_WINDOW, gap: self.gap };
            let port = attach(format!("asks-fast{host}"))?;
            let client = Client::new(port, [own, FAST], arrivals, REQUEST);
            clients.push(client.with_rto(point.rto));
            let work = self.work * (self.burst * self.hosts) as u32;
            let arrivals = match point.arm {
                Arm::Alone => Arrivals::Closed { window: 0, gap: self.gap },
                _ => Arrivals::Bursts {
                    size: self.burst,
                    mean: work.div_f64(point.load),
                    random: Stream::new(point.repetition as u64, &format!("bursts of {host}")),
                },
            };
            let port = attach(format!("asks-slow{host}"))?;
            let client = Client::new(port, [own + 1, SLOW], arrivals, REQUEST);
            clients.push(client.with_rto(point.rto));
        }
        Ok(clients)
    }

    fn run(&self, point: &Point) -> Result<Run, port::Error> {
        let namespaces = Namespaces::new(self.hosts + 1)?;
        let folder = namespaces.world.folder();
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
            .map_err(|e| failed(&e))?;
        let texts = self.texts(point.arm, folder, &namespaces)?;
        let names: Vec<String> = (0..texts.len()).map(|host| format!("switch{host}")).collect();
        let switches: Vec<Running> = names
            .iter()
            .zip(&texts)
            .map(|(name, text)| Running::new(folder, name, text))
            .collect::<Result<_, _>>()?;
        let attach = |name: String| {
            Port::attach(folder.join(format!("{name}.sock"))).map_err(|e| failed(&e))
        };
        let mut servers = vec![
            Server::new(attach("slow".into())?, SLOW, self.work),
            Server::new(attach("fast".into())?, FAST, Duration::ZERO),
        ];
        let mut clients = self.clients(point, &attach)?;

        let (phase, found) = (AtomicU8::new(SEEKS), AtomicU8::new(0));
        std::thread::scope(|scope| {
            let (phase, found) = (&phase, &found);
            for server in servers.drain(..) {
                scope.spawn(move || serve(server, phase));
            }
            let asking: Vec<_> = clients
                .drain(..)
                .map(|client| scope.spawn(move || ask(client, phase, found)))
                .collect();
            let begun = Instant::now();
            while usize::from(found.load(Ordering::Relaxed)) < asking.len()
                && begun.elapsed() < PATIENCE
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            let is_complete = usize::from(found.load(Ordering::Relaxed)) == asking.len();
            phase.store(if is_complete { WARMS } else { ENDS }, Ordering::Relaxed);
            let readings = || switches.iter().map(Running::read).collect::<Result<Vec<_>, _>>();
            let during = || {
                std::thread::sleep(WARM_UP);
                let before = readings()?;
                phase.store(MEASURES, Ordering::Relaxed);
                std::thread::sleep(self.duration);
                let after = readings()?;
                Ok((before, after))
            };
            let counted = if is_complete {
                during()
            } else {
                Err(failed(&"applications do not hear each other"))
            };
            phase.store(ENDS, Ordering::Relaxed);
            let measured: Vec<Measured> =
                asking.into_iter().filter_map(|thread| thread.join().ok()).collect();
            let (before, after) = counted?;
            Ok(self.summary(point, &measured, [&before, &after]))
        })
    }

    fn summary(
        &self,
        point: &Point,
        measured: &[Measured],
        [before, after]: [&[Reading]; 2],
    ) -> Run {
        let of = |which: usize| measured.iter().skip(which).step_by(2);
        let [answered, sent] =
            [of(1).map(|m| m.answered).sum::<u64>(), of(1).map(|m| m.sent).sum::<u64>()];
        let overlay = |readings: &[Reading]| -> u64 {
            readings[0].peers.iter().filter_map(|peer| Some(peer.overlay.as_ref()?.said[0])).sum()
        };
        let stops = |readings: &[Reading]| -> u64 {
            readings[0].ports.iter().filter_map(|port| Some(port.shared.as_ref()?.pauses)).sum()
        };
        let pauses = if point.arm == Arm::Backpressure { stops } else { overlay };
        let shared = after[0].ports.iter().filter_map(|port| port.shared.as_ref());
        Run {
            arm: point.arm,
            repetition: point.repetition,
            load: point.load,
            rto_ms: point.rto.as_secs_f64() * 1e3,
            drops: drops(after).saturating_sub(drops(before)),
            victim: percentiles(of(0)),
            slow: percentiles(of(1)),
            goodput_mbps: (answered * REQUEST as u64 * 8) as f64
                / self.duration.as_secs_f64()
                / 1e6,
            sent_over_delivered: if answered > 0 {
                sent as f64 / answered as f64
            } else {
                f64::NAN
            },
            peak_bytes: shared.map(|shared| shared.peak_bytes).sum(),
            pauses: pauses(after).saturating_sub(pauses(before)),
        }
    }
}

/// Frames that the switches dropped, for whatever reason.
fn drops(readings: &[Reading]) -> u64 {
    let of = |reading: &Reading| -> u64 {
        let ports = reading.ports.iter().flat_map(|port| port.counters.dropped.values());
        let paths = reading.paths.iter().flat_map(|path| path.counters.dropped.values());
        let held =
            reading.peers.iter().filter_map(|peer| Some(peer.overlay.as_ref()?.lost)).sum::<u64>();
        ports.chain(paths).chain(reading.edge.dropped.values()).sum::<u64>() + held
    };
    readings.iter().map(of).sum()
}

fn percentiles<'a>(measured: impl Iterator<Item = &'a Measured> + Clone) -> Percentiles {
    let open = measured.clone().map(|m| m.open).sum();
    let mut times: Vec<Duration> = measured.flat_map(|m| m.times.iter().copied()).collect();
    times.sort_unstable();
    let at = |share: f64| {
        let rank = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len().max(1));
        times.get(rank - 1).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    };
    Percentiles { p50: at(0.5), p99: at(0.99), p999: at(0.999), count: times.len(), open }
}

fn serve(mut server: Server, phase: &AtomicU8) {
    while phase.load(Ordering::Relaxed) != ENDS {
        if let Some(nothing) = server.turn() {
            std::thread::sleep(nothing);
        }
    }
}

fn ask(mut client: Client, phase: &AtomicU8, found: &AtomicU8) -> Measured {
    let (mut is_found, mut is_measuring) = (false, false);
    loop {
        match phase.load(Ordering::Relaxed) {
            SEEKS if !is_found => {
                is_found = client.hears();
                found.fetch_add(u8::from(is_found), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
            SEEKS => std::thread::sleep(Duration::from_millis(1)),
            ENDS => return client.end(),
            now => {
                if now == MEASURES && !std::mem::replace(&mut is_measuring, true) {
                    client.measure();
                }
                if !client.turn() {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        }
    }
}

/// Runs all arms in turn, and calls `say` with each run. If `stop` returns true, the report has the
/// runs so far.
///
/// # Errors
/// A namespace, an interface or a switch cannot be made, or a client or server in a namespace
/// fails.
pub fn demo(
    plan: &Plan,
    stop: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&Run),
) -> Result<Report, port::Error> {
    let mut runs = Vec::new();
    for point in (0..plan.repetitions).flat_map(|repetition| plan.points(repetition)) {
        if stop() {
            break;
        }
        let run = plan.run(&point)?;
        say(&run);
        runs.push(run);
    }
    Ok(Report { schema: 2, runs })
}
