//! A run: kernels boot, agents set hosts up, the plan's traffic passes, and agents report counters.
//!
//! Invariant: all that a run has made, processes and files, ends with it.

use crate::calendar::{Calendar, Orders, Steering};
use crate::console::{Console, Next};
use crate::core::Pinned;
use crate::cost::Cores;
use crate::device;
use crate::error::Error;
use crate::guest::Boot;
use crate::limits::{self, Reading};
use crate::load::{Load, PORT, kernels as hosts_of};
use crate::modelled::{self, Collected, Modelled};
use crate::programs::{self, COMMAND_MAX, Programs};
use crate::watch::Watch;
use crate::{image, kernels, memory};
use millpond_agent::wire::{self, Order, Report};
use millpond_core::Time;
use millpond_core::random::mix64;
use millpond_core::registry::Choice;
use millpond_core::switch::port::LinkRate;
use millpond_lab::kernel::{self, Kernel};
use millpond_lab::load::{Counts, Sink};
use millpond_lab::state::State;
use millpond_lab::{Counted, Recorder, Records, address};
use millpond_linux::dataplane::frame::Mac;
use millpond_linux::dataplane::port::{Caller, Port};
use millpond_linux::dataplane::slot::Slot;
use millpond_results::{Program, checksum_of_file};
use millpond_scenario::plan::{Plan, ProgramPlan};
use millpond_sim::beside::Model;
use millpond_worlds::World;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Kernels that run side by side, which changes no result.
    pub parallel: usize,
    /// When the world stops first, and commands are read from standard input. Their output goes to
    /// standard error.
    pub console: Option<Time>,
}

#[derive(Debug)]
pub struct Outcome {
    pub counts: Counts,
    pub counted: Counted,
    /// Kernel, image and the machine's files that programs name, each with its checksum.
    pub inputs: Vec<(String, String)>,
    /// How often kernels were short of memory for TCP, which makes a run invalid.
    pub pressed: u64,
    /// The counts of its limits at the end of the warm-up, and of the run, if it has any.
    pub limits: [Option<Reading>; 2],
    pub programs: Vec<Program>,
    pub warnings: Vec<String>,
    pub numbers: Vec<(&'static str, u64)>,
}

/// Between two looks at what the user wants.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of the shortest packet: an IPv4 header.
const PACKET_MIN: u64 = 20;
/// Boot of a kernel, in seconds of wall-clock time.
const BOOT: f64 = 0.03;

/// Refuses a plan that this machine cannot run.
///
/// # Errors
/// If there is no kernel, or too little memory, or the plan has what this world lacks.
pub fn check(plan: &Plan) -> Result<(), Error> {
    limits::check(plan)?;
    let is_long = |it: &&ProgramPlan| it.expanded(address::ip).len() > COMMAND_MAX;
    if let Some(program) = plan.programs.iter().find(is_long) {
        return Err(Error::Unsupported {
            key: "program.command".into(),
            reason: format!("that of {:?} is longer than {COMMAND_MAX} bytes", program.name),
        });
    }
    kernels::of(plan)?;
    memory::check(hosts_of(plan).count() as u32)
}

/// How this world will run a plan, for the user.
///
/// # Errors
/// As [`check`].
pub fn note(plan: &Plan) -> Result<String, Error> {
    let kernel = kernels::of(plan)?;
    let hosts = hosts_of(plan).count() as u32;
    let seconds = BOOT * f64::from(hosts);
    let version = &kernel.version;
    let beside = match plan.topology.hosts - hosts {
        0 => String::new(),
        modelled => format!(", beside {modelled} modelled hosts"),
    };
    Ok(format!(
        "virtual: {hosts} kernels (Linux {version}), which boot in some {seconds:.1} s{beside}"
    ))
}

/// A window: the time of the shortest packet from any host to its switch.
fn window(plan: &Plan) -> Time {
    let hosts = plan.topology.links.iter().take(plan.topology.hosts as usize);
    let shortest = PACKET_MIN + u64::from(plan.host.frame_overhead);
    let least = hosts.map(|link| link.delay + LinkRate::new(link.rate).time(shortest));
    least.min().unwrap_or(Time::from_us(1))
}

/// The hardware address of a host's interface to the world.
fn control(host: u32) -> Mac {
    let [.., high, low] = (host + 1).to_be_bytes();
    Mac([0x02, 0x6d, 0x71, 0, high, low])
}

/// The orders for a host's agent before the plan's time begins.
fn preparation(plan: &Plan, host: u32) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut order = |order: Order| wire::pack(&order, &mut frames);
    let congestion = kernel::congestion(&plan.transport_kind, true);
    let keys = kernel::settings(plan).into_iter().chain([
        ("tcp_congestion_control", congestion.to_string()),
        // Enough for the bandwidth-delay products of 100 Gb/s.
        ("tcp_rmem", "4096 1048576 67108864".to_string()),
        ("tcp_wmem", "4096 1048576 67108864".to_string()),
    ]);
    for (key, value) in keys {
        order(Order::Write { path: format!("/proc/sys/net/ipv4/{key}"), value });
    }
    let somaxconn = "/proc/sys/net/core/somaxconn".to_string();
    order(Order::Write { path: somaxconn, value: "65535".into() });
    let no_ipv6 = "/proc/sys/net/ipv6/conf/all/disable_ipv6".to_string();
    order(Order::Write { path: no_ipv6, value: "1".into() });
    let own = address::ip(host).octets();
    let mtu = kernel::mtu(plan).min(u16::MAX.into()) as u16;
    order(Order::Interface { address: own, prefix: address::PREFIX, mtu });
    order(Order::Route {
        initial_window: plan.transport.initial_window,
        rto_min: kernel::rto_min(plan, &Kernel::VIRTUAL) as u32,
        quickack: plan.transport.delayed_ack == 1,
        mss: plan.transport.mss.map_or(0, |mss| mss + kernel::options(plan)),
        congestion: congestion.into(),
    });
    let others = hosts_of(plan).filter(|other| *other != host);
    let others: Vec<_> =
        others.map(|other| (address::ip(other).octets(), address::mac(other).0)).collect();
    others.chunks(100).for_each(|some| order(Order::Neighbours(some.to_vec())));
    match limits::holds_arrivals(plan, host) {
        true => order(Order::Prepare),
        false => listening(plan).into_iter().for_each(order),
    }
    frames
}

/// The last orders of a preparation. A limit of what arrives precedes them: an accepted socket is
/// of the cgroup that its listener was made in.
fn listening(plan: &Plan) -> Vec<Order> {
    let classes = 0..plan.traffic.classes.len() as u16;
    classes.map(|class| Order::Listen { port: PORT + class }).chain([Order::Prepare]).collect()
}

/// The traffic as what steers agents, with who watches.
struct Traffic<'a, 'b> {
    load: Load<'a>,
    programs: Programs<'a>,
    limits: limits::Reader<'a>,
    console: Option<Console<'b>>,
    plan: &'a Plan,
    watch: &'b mut dyn Watch,
    records: Records,
    looked: Instant,
    now: Time,
}

impl Traffic<'_, '_> {
    fn recorded(&mut self) {
        while let Some(batch) = self.records.next(Duration::ZERO) {
            self.load.ledger.goes_on &= self.watch.recorded(&batch);
        }
    }
}

impl Steering for Traffic<'_, '_> {
    fn next(&mut self) -> Option<Time> {
        let console = self.console.as_ref().and_then(Console::next);
        let others = self.programs.next().into_iter().chain(self.limits.next());
        self.load.next().into_iter().chain(others).chain(console).min()
    }

    fn on_time(&mut self, now: Time, orders: &mut Orders) {
        if self.console.as_mut().is_some_and(|it| it.stand(now, orders) == Next::End) {
            self.load.ledger.goes_on = false;
        }
        if self.load.next().is_some_and(|at| at <= now) {
            self.load.on_time(now, orders);
        } else {
            self.limits.on_time(now, orders);
            self.programs.on_time(now, self.watch, orders);
        }
    }

    fn on_report(
        &mut self,
        now: Time,
        host: u32,
        mut report: &[u8],
        orders: &mut Orders,
    ) -> Result<(), String> {
        loop {
            match wire::read(&mut report) {
                Ok(Some(Report::Output { program, stream, bytes })) => {
                    let console = self.console.as_mut();
                    if !console.is_some_and(|it| it.wrote(program, &bytes))
                        && !self.limits.wrote(host, program, stream, &bytes)
                    {
                        self.programs.wrote(program, stream, &bytes, self.watch);
                    }
                }
                Ok(Some(Report::Exited { program, status })) => {
                    let console = self.console.as_mut();
                    if !console.is_some_and(|it| it.exited(program, status))
                        && !self.limits.exited(now, program)
                    {
                        self.programs.exited(program, status);
                    }
                }
                Ok(Some(report)) => {
                    let sink: &mut dyn Sink = self.watch;
                    self.load.on_report(now, host, report, sink, orders);
                }
                Ok(None) => return Ok(()),
                Err(_) => return Err("its agent sent a malformed report".to_string()),
            }
        }
    }

    fn on_records(&mut self, modelled: &mut Modelled<'_>) {
        self.load.ledger.goes_on &= modelled.hand_over(self.watch);
    }

    fn is_over(
        &mut self,
        now: Time,
        state: &mut State,
        mut modelled: Option<&mut Modelled<'_>>,
        orders: &mut Orders,
    ) -> bool {
        self.now = now;
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.recorded();
            let ledger = &mut self.load.ledger;
            let (started, completed) = (ledger.counts.started, ledger.counts.completed);
            let own = modelled.as_mut().map(|it| it.standing()).unwrap_or_default();
            let (hops, started, completed) =
                (state.hops() + own.0, started + own.1, completed + own.2);
            ledger.goes_on &= self.watch.edge(now, hops, started, completed);
        }
        let is_complete = self.plan.until_complete
            && self.load.is_complete()
            && modelled.as_mut().is_none_or(|it| it.is_complete());
        if is_complete || !self.load.ledger.goes_on {
            self.load.stop(now, orders);
            if let Some(modelled) = modelled {
                modelled.stop();
            }
        }
        // Programs that the run awaits go on beyond the traffic's end.
        let awaits_none = self.programs.awaits_none() || !self.load.ledger.goes_on;
        if self.load.has_stopped() && awaits_none {
            self.programs.stop(now, orders);
            if self.programs.are_over() && self.limits.finish(now, orders) {
                self.load.ask_counters(now, orders);
            }
        }
        self.load.is_over() && self.programs.are_over()
    }
}

/// Boots a plan's hosts, in a world that owns them.
fn boot(plan: &Plan, settings: &Settings, world: &World) -> Result<(Calendar, Inputs), Error> {
    let kernel = kernels::of(plan)?;
    let image = image::write(world.folder())?;
    let inputs = inputs(plan, &kernel, &image)?;
    let mtu = kernel::mtu(plan).min(u16::MAX.into()) as u16;
    let merges = plan.host.choices.receive_offload.kind() != "none";
    let port = || Some(Port::Caller(Caller { merges, ..Caller::default() }));
    let hosts = hosts_of(plan);
    let slots = (0..plan.topology.hosts)
        .map(|host| Slot::new(format!("host{host}"), port(), mtu.into()))
        .collect();
    let cuts = plan.host.segment_offload.is_some();
    let link = |mac: Mac| device::Settings { mac, mtu, cuts, merges };
    let own = |mac: Mac| device::Settings { mac, mtu: 1500, cuts: false, merges: false };
    let boots = hosts.map(|host| Boot {
        host,
        kernel: &kernel.program,
        seeded: &kernel.seeded,
        image: &image,
        seed: mix64(plan.seed ^ mix64(u64::from(host) + 1)),
        memory: plan.host.memory.get() >> 20,
        devices: [link(address::mac(host)), own(control(host))],
    });
    let nic = || {
        let cores = plan.host.receive_cpu.as_ref().map(Cores::new);
        (plan.host.nic.interrupt_throttle, cores)
    };
    let state = State::new(plan, slots);
    let calendar = Calendar::boot(world, state, boots, window(plan), settings.parallel, nic)?;
    Ok((calendar, inputs))
}

/// Files beside the scenario that decide a result, each with its checksum.
type Inputs = Vec<(String, String)>;

fn inputs(plan: &Plan, kernel: &kernels::Kernel, image: &Path) -> Result<Inputs, Error> {
    let sum = |path: &Path| {
        let failed = |e| Error::system(path.display().to_string(), std::io::Error::other(e));
        checksum_of_file(path).map_err(failed)
    };
    let mut files: BTreeSet<PathBuf> =
        plan.programs.iter().flat_map(|it| programs::files(&it.expanded(address::ip))).collect();
    if !plan.limits.is_empty() {
        // Guests run `millpond limit`.
        files.extend(std::env::current_exe());
    }
    let mut all = vec![
        (format!("kernel {}", kernel.version), sum(&kernel.program)?),
        ("image".into(), sum(image)?),
    ];
    for file in files {
        all.push((file.display().to_string(), sum(&file)?));
    }
    Ok(all)
}

/// Prepares the hosts: addresses, routes, TCP's keys, listeners, limits.
fn prepare(plan: &Plan, calendar: &mut Calendar) -> Result<(), Error> {
    let left = std::cell::Cell::new(hosts_of(plan).count());
    let is_ready = || left.set(left.get().saturating_sub(1));
    let mut printed = vec![String::new(); plan.topology.hosts as usize];
    let mut unlimited: BTreeSet<u32> =
        hosts_of(plan).filter(|host| limits::is_limited(plan, *host)).collect();
    calendar.begin(
        |reported| {
            let (host, mut report) = (reported.host, &reported.bytes[..]);
            let mut orders = Vec::new();
            while let Ok(Some(report)) = wire::read(&mut report) {
                match report {
                    Report::Hello => orders.extend(preparation(plan, host)),
                    Report::Ready => match limits::apply(plan, host) {
                        Some(command) if unlimited.remove(&host) => {
                            let order = Order::Run { program: limits::APPLY, command };
                            wire::pack(&order, &mut orders);
                        }
                        _ => is_ready(),
                    },
                    Report::Output { bytes, .. } => {
                        printed[host as usize].push_str(&String::from_utf8_lossy(&bytes));
                    }
                    Report::Exited { status: 0, .. } if limits::holds_arrivals(plan, host) => {
                        listening(plan).iter().for_each(|order| wire::pack(order, &mut orders));
                    }
                    Report::Exited { status: 0, .. } => is_ready(),
                    Report::Exited { .. } => {
                        return Err(format!("its limit: {}", printed[host as usize].trim()));
                    }
                    Report::Problem(reason) => return Err(reason),
                    _ => {}
                }
            }
            Ok(orders)
        },
        || left.get() == 0,
    )
}

/// Runs a plan.
///
/// # Errors
/// As [`check`]; if a guest ends, stands still, or cannot follow an order.
pub fn run(plan: &Plan, settings: &Settings, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    check(plan)?;
    let _pinned = (settings.parallel <= 1).then(Pinned::new);
    let failed = |e: millpond_worlds::Error| Error::system(e.what, e.source);
    let world = World::of_processes("virtual").map_err(failed)?;
    let began = Instant::now();
    let (mut calendar, inputs) = boot(plan, settings, &world)?;
    prepare(plan, &mut calendar)?;
    let booted = began.elapsed();
    let (recorder, records) = Recorder::new(plan, began, began);
    if let Some(recorder) = recorder {
        let State { recorders, fabric, hosts, .. } = &mut calendar.state;
        recorders.add(recorder, fabric, hosts);
    }
    let (looked, now) = (Instant::now(), Time::ZERO);
    let own = plan.host.stacks.is_some().then(|| plan.part(true));
    let (load, programs) = (Load::new(own.as_ref().unwrap_or(plan)), Programs::new(plan));
    let model = own.is_some().then(|| Model::new(plan, window(plan)));
    let shared = model.as_ref().map(Model::shared);
    let mut collected = Collected::default();
    let mut modelled = model
        .zip(shared.as_deref())
        .map(|(model, shared)| Modelled::new(plan, model, shared, &mut collected));
    let limits = limits::Reader::new(plan);
    // Standard input is locked for a console alone: runs side by side have none.
    let console = settings.console.map(|at| {
        let (input, output) = (std::io::stdin().lock(), std::io::stderr());
        let hosts = (0..plan.topology.hosts).map(|host| plan.host.is_linux(host)).collect();
        Console::new(hosts, at, Box::new(input), Box::new(output))
    });
    let mut traffic =
        Traffic { load, programs, limits, console, plan, watch, records, looked, now };
    let windows = calendar.windows;
    calendar.go(&mut traffic, modelled.as_mut())?;
    calendar.state.hand_over(traffic.now);
    traffic.recorded();
    let Traffic { load, programs, limits, console, watch, now, .. } = traffic;
    let limits = limits.readings;
    let (programs, mut warnings) = programs.ended();
    let commands = console.map_or(0, |console| console.commands);
    if commands > 0 {
        warnings.push(format!("the console ran {commands} commands, which are part of this run"));
    }
    let counters = load.counters.clone();
    let mut counts = load.conclude(now, watch);
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
    let of = |count: fn(&crate::site::Counts) -> u64| {
        calendar.sites.iter().map(|site| count(&site.counts)).sum::<u64>()
    };
    let mut counted = calendar.state.counted();
    counted.refused += of(|it| it.refused);
    (counted.timeouts, counted.retransmitted) = (counts.timeouts, counts.retransmitted);
    if let Some(modelled) = modelled {
        let ended = counts.ended;
        modelled::conclude(modelled, ended, &mut counts, &mut counted);
        collected.pass(watch);
    }
    let numbers = vec![
        ("boot_ms", booted.as_millis() as u64),
        ("windows", calendar.windows - windows),
        ("frames_sent", of(|it| it.sent)),
        ("frames_received", of(|it| it.received)),
        ("interrupts", of(|it| it.interrupts)),
        ("ring_drops", of(|it| it.ring_drops)),
        ("loss_probes", counter("TCPLossProbes")),
        ("marks_acknowledged", counter("TCPDeliveredCE")),
        ("failed_connections", counts.errors.values().map(|failure| failure.count).sum()),
    ];
    let pressed = counter("TCPMemoryPressures") + counter("TCPAbortOnMemory");
    Ok(Outcome { counts, counted, inputs, pressed, limits, programs, warnings, numbers })
}
