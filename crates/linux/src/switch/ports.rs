//! Opens and closes what a configuration says, and keeps account of the interfaces that were made for it.
//!
//! Invariant: an interface that was there before is never removed; one that was made stays until its port is taken out of the
//! configuration, whatever happens to the process.

use super::config::{PathParams, PortKind, PortParams, SHARED_MTU};
use super::error::Error;
use super::state::{Made, State};
use crate::namespace;
use crate::port::tap::TapSettings;
use crate::port::udp::Udp;
use crate::port::{self, AfPacket, Device, Pcap, Port, Shared, Tap, shared};
use std::path::Path;
use std::process::Command;

fn named(params: &PortParams) -> impl Fn(port::Error) -> Error + '_ {
    |error| Error::Port { name: params.name.clone(), error }
}

fn made(params: &PortParams) -> Made {
    Made { namespace: params.namespace.clone(), device: params.device().to_string() }
}

/// Does `work` in the port's namespace.
fn inside<T: Send>(
    namespace: Option<&str>,
    work: impl FnOnce() -> Result<T, port::Error> + Send,
) -> Result<T, port::Error> {
    let what = || format!("entering the network namespace {}", namespace.unwrap_or("?"));
    namespace::within(namespace, work).map_err(|e| match e.raw_os_error() {
        Some(libc::EPERM) => port::Error::Privilege { what: what(), capability: "CAP_SYS_ADMIN" },
        _ => port::Error::Kernel { what: what(), reason: e.to_string() },
    })?
}

/// Opens a port; makes its interface where it is a tap that is not there. Gives the interface's MTU, too.
pub fn open(state: &State, params: &PortParams) -> Result<(Port, usize), Error> {
    let namespace = params.namespace.as_deref();
    match params.kind {
        PortKind::Pcap => {
            let port = Pcap::open(params.read.as_deref().map(Path::new), params.write.as_deref().map(Path::new));
            Ok((Port::Pcap(Box::new(port.map_err(named(params))?)), usize::from(u16::MAX)))
        }
        PortKind::Shared => {
            let port = Shared::open(params.shared()).map_err(named(params))?;
            Ok((Port::Shared(Box::new(port)), params.mtu.unwrap_or(SHARED_MTU) as usize))
        }
        PortKind::AfPacket => {
            let opened = inside(namespace, || {
                let port = AfPacket::open(params.device()).map_err(|error| match error {
                    port::Error::NoDevice { device, .. } => {
                        port::Error::NoDevice { device, namespace: params.namespace.clone() }
                    }
                    other => other,
                })?;
                Ok(Port::AfPacket(port))
            });
            with_mtu(opened.map_err(named(params))?, params)
        }
        PortKind::Tap => {
            let ours = made(params);
            let there =
                inside(namespace, || Ok(Device::new(params.device())?.index().is_ok())).map_err(named(params))?;
            if !there {
                state.note(&ours)?;
            }
            // One that is made anew has the address that it had: its neighbours remember it.
            let had = state.address(&ours)?.filter(|_| !there);
            let opened = inside(namespace, || {
                let settings = TapSettings { device: params.device().into(), persistent: true, napi: false };
                let tap = Tap::open(&settings)?;
                had.map_or(Ok(()), |mac| tap.device().set_mac(mac))?;
                configure(tap.device(), params)?;
                Ok((tap.device().mac().ok(), Port::Tap(tap)))
            });
            let (mac, port) = opened.map_err(named(params))?;
            if let Some(mac) = mac {
                state.note_address(&ours, mac)?;
            }
            with_mtu(port, params)
        }
    }
}

fn with_mtu(port: Port, params: &PortParams) -> Result<(Port, usize), Error> {
    let mtu = port.device().map(Device::mtu).transpose();
    let failed = |e| port::Error::kernel(format!("asking for the MTU of {}", params.device()), e);
    let mtu = mtu.map_err(failed).map_err(named(params))?.unwrap_or(usize::from(u16::MAX));
    Ok((port, mtu))
}

/// Opens a path.
pub fn open_path(params: &PathParams) -> Result<Udp, port::Error> {
    let address = |text: &str| {
        let wrong = |e: std::net::AddrParseError| port::Error::Kernel { what: text.into(), reason: e.to_string() };
        text.parse().map_err(wrong)
    };
    let (local, remote) = (address(&params.local)?, address(&params.remote)?);
    inside(params.namespace.as_deref(), || Udp::open(local, remote))
}

/// Gives a tap what its port says, in its namespace.
fn configure(device: &Device, params: &PortParams) -> Result<(), port::Error> {
    if let Some(mtu) = params.mtu.map(|mtu| mtu as usize).filter(|mtu| device.mtu().ok() != Some(*mtu)) {
        device.set_mtu(mtu)?;
    }
    for address in &params.addresses {
        let what = format!("giving {} the address {address}", device.name());
        let done = Command::new("ip").args(["addr", "replace", address, "dev", device.name()]).output();
        let done =
            done.map_err(|e| port::Error::Kernel { what: format!("{what} with `ip`"), reason: e.to_string() })?;
        if !done.status.success() {
            let reason = String::from_utf8_lossy(&done.stderr).trim().to_string();
            return Err(port::Error::Kernel { what, reason });
        }
    }
    device.up()
}

/// Removes an interface that was made, if nobody else has taken it. An interface or a namespace that has gone already is no error.
pub fn remove(state: &State, made: &Made) -> Result<(), Error> {
    let name = made.device.clone();
    let done = inside(made.namespace.as_deref(), || {
        if Device::new(&made.device)?.index().is_ok() {
            let settings = TapSettings { device: made.device.clone(), persistent: true, napi: false };
            Tap::open(&settings)?.forget()?;
        }
        Ok(())
    });
    let gone = made.namespace.as_deref().is_some_and(|n| !namespace::path(n).exists());
    match done {
        Err(error) if !gone => Err(Error::Port { name, error }),
        _ => state.strike(made),
    }
}

/// Removes the socket of shared memory, if nobody listens at it any more.
pub fn forget(params: &PortParams) {
    if let Some(socket) = &params.socket {
        shared::unlink(Path::new(socket));
    }
}

/// Closes a port that is no longer configured, and removes the interface that was made for it.
pub fn close(state: &State, params: &PortParams, port: Option<Port>) -> Result<(), Error> {
    drop(port);
    forget(params);
    let ours = made(params);
    match params.kind == PortKind::Tap && state.made()?.contains(&ours) {
        true => remove(state, &ours),
        false => Ok(()),
    }
}
