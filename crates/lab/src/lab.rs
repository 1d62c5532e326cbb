//! A plan's lab while it is up.
//!
//! Invariant: dropping a lab ends its thread, its namespaces and the processes in them.

use crate::driver::{self, Counted, Shared};
use crate::host::Host;
use crate::place::{self, Places};
use crate::{Error, address, kernel, network, support};
use millpond_linux::limit::congestion;
use millpond_scenario::plan::Plan;
use millpond_scenario::transport::TransportKind;
use millpond_sim::labels::LabelPlan;
use millpond_worlds::{Namespace, World};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;

/// A network of namespaces that is up.
pub struct Lab {
    shared: Arc<Shared>,
    /// `None` after its end.
    thread: Option<JoinHandle<Counted>>,
    places: Places,
    congestion: String,
}

/// Of this process, by number.
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
        let (places, slots) = place::make(plan, world, &congestion)?;
        let labels = LabelPlan::new(plan);
        let hosts = slots.into_iter().zip(network::uplinks(plan)).zip(0..);
        let hosts = hosts
            .map(|((slot, uplink), host)| Host::new(plan, labels.as_ref(), host, uplink, slot))
            .collect();
        let shared = Arc::new(Shared::default());
        let thread = driver::start(network::fabric(plan), hosts, shared.clone())?;
        Ok(Lab { shared, thread: Some(thread), places, congestion })
    }

    /// The world that owns the lab's namespaces.
    pub fn world(&self) -> &World {
        &self.places.world
    }
    /// Returns the namespaces, by host.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.places.namespaces
    }
    /// The address of a host.
    pub fn address(&self, host: u32) -> Ipv4Addr {
        address::ip(host)
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
        self.shared.restart.store(true, Relaxed);
    }

    /// Stops the network, and returns what it has counted. Namespaces end when the lab is dropped.
    pub fn stop(&mut self) -> Counted {
        // The interfaces end with the thread, which holds their other sides.
        let lost = self.places.dropped();
        self.shared.stop.store(true, Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        Counted { lost, ..ended.and_then(Result::ok).unwrap_or_default() }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
