//! A plan's lab while it is up.
//!
//! Invariant: dropping a lab ends its thread, its namespaces and the processes in them.

use crate::driver::{self, Order, Shared};
use crate::limits::Limits;
use crate::load::Cgroup;
use crate::place::{self, Places};
use crate::record::{Recorder, Records};
use crate::state::{Counted, State};
use crate::{Error, address, kernel, support};
use millpond_core::Time;
use millpond_linux::limit::congestion;
use millpond_linux::limit::show::QueueReading;
use millpond_scenario::plan::Plan;
use millpond_scenario::transport::TransportKind;
use millpond_worlds::{Namespace, World};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

/// A network of namespaces that is up.
pub struct Lab {
    shared: Arc<Shared>,
    orders: Sender<Order>,
    /// `None` after its end.
    thread: Option<JoinHandle<Counted>>,
    places: Places,
    congestion: String,
    limits: Option<Limits>,
    /// The zero of the thread's clock.
    clock: Instant,
}

/// From the start of the lab's thread to the beginning of the plan's time: connections of probes
/// open meanwhile.
const LEAD: Time = Time::from_ms(100);

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// The kernel's name of a transport. The project's own is registered under a name of this lab, so
/// that it ends with the lab and with no other.
fn congestion(world: &World, kind: &TransportKind) -> Result<String, Error> {
    let has_dctcp = congestion::available().iter().any(|name| name == "dctcp");
    let known = kernel::congestion(kind, has_dctcp);
    if known != "mp_dctcp" {
        return Ok(known.into());
    }
    // Seven digits: a process has 22 bits, and 64 labs at a time.
    let number = std::process::id() << 6 | SERIAL.fetch_add(1, Relaxed) & 63;
    let name = format!("{known}{:07x}", number & 0xfff_ffff);
    congestion::register_dctcp(&world.bpffs("bpf")?, &name)?;
    Ok(name)
}

/// The plan with its failures in the time of the lab's thread.
fn led(plan: &Plan) -> Plan {
    let mut led = plan.clone();
    for failure in &mut led.failures {
        failure.at = failure.at.saturating_add(LEAD);
        failure.until = failure.until.saturating_add(LEAD);
    }
    led.horizon = led.horizon.saturating_add(LEAD);
    led
}

impl Lab {
    /// Makes the hosts and the network of a plan, and lets packets move.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the plan names something that this world lacks; otherwise if
    /// namespaces or ports cannot be made, as without root.
    pub fn up(plan: &Plan) -> Result<Lab, Error> {
        support::check(plan)?;
        let world = World::new("lab")?;
        let congestion = congestion(&world, &plan.transport_kind)?;
        let limits = Limits::apply(plan, &world)?;
        let (places, slots) = place::make(plan, world, &congestion)?;
        let state = State::new(&led(plan), slots);
        let (shared, clock) = (Arc::new(Shared::default()), Instant::now());
        let (orders, followed) = channel();
        let thread = driver::start(clock, state, shared.clone(), followed)?;
        Ok(Lab { shared, orders, thread: Some(thread), places, congestion, limits, clock })
    }

    /// The world that owns the lab's namespaces.
    pub fn world(&self) -> &World {
        &self.places.world
    }
    pub fn namespaces(&self) -> &[Namespace] {
        &self.places.namespaces
    }
    pub fn address(&self, host: u32) -> Ipv4Addr {
        address::ip(host)
    }
    /// The cgroups of hosts whose traffic is limited.
    pub fn cgroups(&self) -> &[Cgroup] {
        self.limits.as_ref().map_or(&[], |limits| &limits.cgroups)
    }
    /// The counters of limits so far, each with the number of its limit in the plan.
    ///
    /// # Errors
    /// If the kernel's maps cannot be read.
    pub fn limits(&self) -> Result<Vec<(u16, QueueReading)>, Error> {
        self.limits.as_ref().map_or(Ok(Vec::new()), Limits::read)
    }
    /// The beginning of the plan's time, which may be to come.
    pub fn began(&self) -> Instant {
        self.clock + LEAD.to_duration()
    }
    /// The congestion control of the hosts' TCP, by the kernel's name.
    pub fn congestion(&self) -> &str {
        &self.congestion
    }
    /// Packet-hops so far.
    pub fn hops(&self) -> u64 {
        self.shared.hops.load(Relaxed)
    }
    /// Forgets lateness so far: what follows is measured.
    pub fn measure(&self) {
        self.order(Order::Measure);
    }
    /// Records what a plan captures of queues and packets, from its beginning to its horizon. The
    /// plan has this lab's network.
    pub fn record(&self, plan: &Plan, began: Instant) -> Records {
        let (recorder, records) = Recorder::new(plan, began, self.clock);
        recorder.into_iter().for_each(|it| self.order(Order::Record(Box::new(it))));
        records
    }

    fn order(&self, order: Order) {
        // A thread that has ended follows none.
        let _ = self.orders.send(order);
    }

    /// Stops the network, and returns what it has counted. Namespaces end when the lab is dropped.
    pub fn stop(&mut self) -> Counted {
        // The interfaces end with the thread, which holds their other sides.
        let lost = self.places.dropped();
        let [timeouts, retransmitted] = self.places.counters();
        self.shared.stop.store(true, Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        Counted { lost, timeouts, retransmitted, ..ended.and_then(Result::ok).unwrap_or_default() }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
