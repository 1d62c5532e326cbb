//! Opens and closes the ports of a configuration, and keeps account of the interfaces that were
//! made for it.
//!
//! Invariant: an interface that was there before is never removed; one that was made stays until
//! its port is taken out of the configuration, whatever happens to the process.

use super::config::{PathParams, PortKind, PortParams, SHARED_MTU};
use super::error::{Error, run};
use super::shaping::{self, discipline};
use super::state::{Made, Record, State};
use crate::dataplane::frame::Mac;
use crate::dataplane::port::tap::TapSettings;
use crate::dataplane::port::udp::Udp;
use crate::dataplane::port::{self, AfPacket, Device, Pcap, Port, Shared, Tap, Vhost};
use crate::tunnel::session;
use millpond_worlds::namespace::{self, Identity};
use std::path::Path;

fn named(params: &PortParams) -> impl Fn(port::Error) -> Error + '_ {
    |error| Error::Port { name: params.name.clone(), error }
}

fn made(params: &PortParams) -> Made {
    Made { namespace: params.namespace.clone(), device: params.device().to_string() }
}

pub struct Opened {
    pub port: Port,
    /// Its other queues, for the workers after the first.
    pub others: Vec<Port>,
    pub mtu: usize,
    /// Whether the switch chooses that: it made the interface, and its file has no `mtu`.
    pub fits: bool,
}

impl Opened {
    fn new(port: Port, mtu: usize) -> Opened {
        Opened { port, others: Vec::new(), mtu, fits: false }
    }
}

/// Opens a port, with a queue for each of so many workers; makes its interface where it is a tap
/// that is not there.
pub fn open(state: &State, params: &PortParams, workers: usize) -> Result<Opened, Error> {
    let namespace = params.namespace.as_deref();
    match params.kind {
        PortKind::Pcap => {
            let port = Pcap::open(
                params.read.as_deref().map(Path::new),
                params.write.as_deref().map(Path::new),
            );
            Ok(Opened::new(
                Port::Pcap(Box::new(port.map_err(named(params))?)),
                usize::from(u16::MAX),
            ))
        }
        PortKind::Shared => {
            let port = Shared::open(params.shared()).map_err(named(params))?;
            Ok(Opened::new(Port::Shared(Box::new(port)), params.mtu.unwrap_or(SHARED_MTU) as usize))
        }
        PortKind::VhostUser => {
            let port = Vhost::open(params.vhost()).map_err(named(params))?;
            Ok(Opened::new(Port::Vhost(Box::new(port)), params.mtu.unwrap_or(SHARED_MTU) as usize))
        }
        PortKind::AfPacket => {
            let opened = port::within(namespace, || {
                let opened = AfPacket::open_queues(params.device(), workers);
                let mut queues = opened.map_err(|error| match error {
                    port::Error::NoDevice { device, .. } => {
                        port::Error::NoDevice { device, namespace: params.namespace.clone() }
                    }
                    other => other,
                })?;
                let port = queues.remove(0).claimed()?;
                let port = Port::AfPacket(if params.gate { port.gated()? } else { port });
                Ok((port, queues.into_iter().map(Port::AfPacket).collect()))
            });
            let (port, others) = opened.map_err(named(params))?;
            with_mtu(port, others, params)
        }
        PortKind::Tap => {
            let ours = made(params);
            let look = || Ok((Device::new(params.device())?.index().ok(), namespace::own()));
            let (there, home) = port::within(namespace, look).map_err(named(params))?;
            let had = settle_record(state, &ours, there, home)?;
            let wanted = first_address(&params.macs(), had).filter(|_| there.is_none());
            let opened = port::within(namespace, || {
                let settings = TapSettings { device: params.device().into(), persistent: true };
                let mut queues = Tap::open_queues(&settings, workers)?;
                let tap = queues.remove(0);
                wanted.map_or(Ok(()), |mac| tap.device().set_mac(mac))?;
                let (mac, index) = (tap.device().mac().ok(), tap.device().index());
                let failed = |e| {
                    port::Error::kernel(format!("asking which interface {} is", params.device()), e)
                };
                state.note_made(&ours, mac, home, index.map_err(failed)?).map_err(|e| {
                    port::Error::Kernel {
                        what: format!("noting that {} was made", params.device()),
                        reason: e.to_string(),
                    }
                })?;
                configure(tap.device(), params, there.is_none())?;
                Ok((Port::Tap(tap), queues.into_iter().map(Port::Tap).collect()))
            });
            let (port, others) = opened.map_err(named(params))?;
            let opened = with_mtu(port, others, params)?;
            let fits = params.mtu.is_none() && state.record(&ours)?.is_some();
            Ok(Opened { fits, ..opened })
        }
    }
}

/// A random hardware address of one station, locally administered.
///
/// # Errors
/// The kernel's reason, if it has no random bytes.
pub fn draw() -> std::io::Result<Mac> {
    let [_, a, b, c, d, e, ..] = session::draw()?;
    Ok(Mac([2, a, b, c, d, e]))
}

/// The address of an interface that is made: the one that it had, unless its port names others.
fn first_address(named: &[Mac], had: Option<Mac>) -> Option<Mac> {
    had.filter(|mac| named.is_empty() || named.contains(mac)).or(named.first().copied())
}

/// Makes the record of an interface fit what is there, before one is opened or made: its number,
/// and the namespace. The address that one is to have which is made anew: its neighbours remember
/// it.
fn settle_record(
    state: &State,
    ours: &Made,
    there: Option<i32>,
    home: Option<Identity>,
) -> Result<Option<Mac>, Error> {
    let record = state.record(ours)?;
    let address = record.as_ref().and_then(|record| record.address).filter(|_| there.is_none());
    match record {
        // The name stands for another namespace than before, where one may have been left.
        Some(elsewhere) if elsewhere.home.is_some() && elsewhere.home != home => {
            remove(state, &elsewhere)?
        }
        // Ours has gone, and somebody has made another of its name.
        Some(record) if there.is_some() && record.index.is_some() && record.index != there => {
            state.strike(std::slice::from_ref(ours))?;
        }
        _ => {}
    }
    if there.is_none() {
        state.note(ours, home)?;
    }
    Ok(address)
}

fn with_mtu(port: Port, others: Vec<Port>, params: &PortParams) -> Result<Opened, Error> {
    let mtu = port.device().map(Device::mtu).transpose();
    let failed = |e| port::Error::kernel(format!("asking for the MTU of {}", params.device()), e);
    let mtu = mtu.map_err(failed).map_err(named(params))?.unwrap_or(usize::from(u16::MAX));
    Ok(Opened { others, ..Opened::new(port, mtu) })
}

pub fn open_path(params: &PathParams) -> Result<Udp, port::Error> {
    let address = |text: &str| {
        let wrong = |e: std::net::AddrParseError| port::Error::Kernel {
            what: text.into(),
            reason: e.to_string(),
        };
        text.parse().map_err(wrong)
    };
    let (local, remote) = (address(&params.local)?, address(&params.remote)?);
    port::within(params.namespace.as_deref(), || Udp::open(local, remote))
}

/// Gives a tap its port's settings, in its namespace; one that is new has nothing yet.
fn configure(device: &Device, params: &PortParams, is_new: bool) -> Result<(), port::Error> {
    if let Some(mtu) =
        params.mtu.map(|mtu| mtu as usize).filter(|mtu| device.mtu().ok() != Some(*mtu))
    {
        device.set_mtu(mtu)?;
    }
    match params.shape {
        Some(rate) => {
            let mtu = device.mtu().unwrap_or(1500);
            discipline("replace", device.name(), &shaping::bucket(rate, mtu, false))?;
        }
        None if is_new => {}
        // The discipline of an earlier file, if there was one.
        None => drop(discipline("del", device.name(), &[])),
    }
    for address in &params.addresses {
        let what = format!("giving {} the address {address}", device.name());
        run("ip", &["addr", "replace", address, "dev", device.name()])
            .map_err(|reason| port::Error::Kernel { what, reason })?;
    }
    device.up()
}

/// Removes an interface that was made, if nobody else has taken it, and its record. An interface or
/// a namespace that has gone already is no error.
pub fn remove(state: &State, record: &Record) -> Result<(), Error> {
    unmake(record)?;
    state.strike(std::slice::from_ref(&record.made))
}

/// Removes an interface that was made, whoever asks from wherever, and no other of its name.
pub fn unmake(record: &Record) -> Result<(), Error> {
    let name = &record.made.device;
    let failed = |error| Error::Port { name: name.clone(), error };
    let place = match record.home {
        Some(home) => match namespace::find(home) {
            Some(path) => Some(path),
            None => return Ok(()),
        },
        None => record.made.namespace.as_deref().map(namespace::path),
    };
    if place.as_ref().is_some_and(|place| !place.exists()) {
        return Ok(());
    }
    let place = place.map(|place| place.to_string_lossy().into_owned());
    let done = port::within(place.as_deref(), || {
        let device = match record.index {
            Some(index) => Device::of_index(index)?,
            None => Some(Device::new(name)?).filter(|device| device.index().is_ok()),
        };
        let Some(device) = device else { return Ok(()) };
        let settings = TapSettings { device: device.name().into(), persistent: true };
        Tap::open(&settings)?.forget()
    });
    done.map_err(failed)
}

/// Removes the socket of an application's or a guest's port, if nobody listens at it any more.
pub fn forget(params: &PortParams) {
    if let Some(socket) = &params.socket {
        port::socket::unlink(Path::new(socket));
    }
}

/// Closes a port that is no longer configured, and removes the interface that was made for it.
pub fn close(state: &State, params: &PortParams, port: Option<Port>) -> Result<(), Error> {
    drop(port);
    forget(params);
    match state.record(&made(params))?.filter(|_| params.kind == PortKind::Tap) {
        Some(record) => remove(state, &record),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_keeps_its_address_where_its_port_allows_it() {
        let [a, b] = [1, 2].map(|last| Mac([2, 0, 0, 0, 0, last]));
        assert_eq!(first_address(&[], None), None);
        assert_eq!(first_address(&[], Some(a)), Some(a));
        assert_eq!(first_address(&[a, b], Some(b)), Some(b));
        assert_eq!(first_address(&[a], Some(b)), Some(a));
        assert_eq!(first_address(&[b], None), Some(b));
    }
}
