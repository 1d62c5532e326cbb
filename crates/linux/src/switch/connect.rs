//! Ports for network namespaces, without a file.
//!
//! Invariant: an address that a port of the switch has is given to no other.

use super::apply;
use super::config::{Config, PortParams};
use super::control::Done;
use super::error::Error;
use super::ports;
use super::state::State;
pub use ipnet::Ipv4Net;
use millpond_scenario::nearest;
use millpond_worlds::namespace;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

/// The interface that each namespace gets.
pub const DEVICE: &str = "mp0";
/// Where `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Its name, which is the port's, too.
    pub namespace: String,
    pub address: Ipv4Addr,
}

/// Connects the namespaces of `ip netns` with these names: each gets an interface [`DEVICE`] with
/// the next free address of `subnet`. Adds them to the switch that runs, or starts one. Returns
/// what the switch reports, and the addresses. With `is_guarded` a namespace can send from its own
/// addresses alone.
///
/// # Errors
/// [`Error::Refused`] if there is no such namespace, or `subnet` has too few free addresses; the
/// errors of [`apply::add`].
pub fn connect(
    state: &State,
    namespaces: &[String],
    subnet: Ipv4Net,
    is_guarded: bool,
    program: &dyn Fn() -> Command,
) -> Result<(Done, Vec<Connected>), Error> {
    namespaces.iter().try_for_each(|name| find(name))?;
    let mut connected = Vec::new();
    let done = apply::add(
        state,
        |config| {
            connected = assign(config, namespaces, subnet)?;
            connected.iter().map(|end| port(end, subnet, is_guarded)).collect()
        },
        program,
    )?;
    Ok((done, connected))
}

fn port(end: &Connected, subnet: Ipv4Net, is_guarded: bool) -> Result<PortParams, Error> {
    let own = match is_guarded {
        true => Some(ports::draw().map_err(|e| Error::kernel("a random hardware address", e))?),
        false => None,
    };
    Ok(PortParams {
        name: end.namespace.clone(),
        device: Some(DEVICE.into()),
        namespace: Some(end.namespace.clone()),
        addresses: vec![format!("{}/{}", end.address, subnet.prefix_len())],
        hardware_addresses: own.iter().map(ToString::to_string).collect(),
        source_guard: is_guarded,
        ..PortParams::default()
    })
}

/// Gives each namespace a free address.
fn assign(
    config: &Config,
    namespaces: &[String],
    subnet: Ipv4Net,
) -> Result<Vec<Connected>, Error> {
    let of_port = |text: &String| text.split('/').next()?.parse::<Ipv4Addr>().ok();
    let taken: Vec<Ipv4Addr> =
        config.ports.iter().flat_map(|port| &port.addresses).filter_map(of_port).collect();
    let free = subnet.hosts().filter(|address| !taken.contains(address));
    let ends: Vec<Connected> = namespaces
        .iter()
        .zip(free)
        .map(|(namespace, address)| Connected { namespace: namespace.clone(), address })
        .collect();
    match ends.len() == namespaces.len() {
        true => Ok(ends),
        false => Err(Error::Refused(format!(
            "{subnet} has {} free addresses for {} namespaces: name a larger --subnet",
            ends.len(),
            namespaces.len()
        ))),
    }
}

fn find(name: &str) -> Result<(), Error> {
    if namespace::identity(name).is_some() {
        return Ok(());
    }
    let there = fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    let there: Vec<String> =
        there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let help = match nearest(name, there.iter().map(String::as_str)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("`ip netns add {name}` makes it"),
    };
    Err(Error::Refused(format!("there is no network namespace \"{name}\": {help}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_get_addresses_that_are_free() {
        let text = "[[port]]\nname = \"a\"\naddresses = [\"10.0.0.1/30\"]\n";
        let config = Config::parse("test", text).unwrap();
        let names = |names: &[&str]| names.iter().map(|it| it.to_string()).collect::<Vec<_>>();
        let subnet = "10.0.0.0/30".parse().unwrap();
        let ends = assign(&config, &names(&["b"]), subnet).unwrap();
        assert_eq!(ends[0].address, Ipv4Addr::new(10, 0, 0, 2));
        let ports: Vec<PortParams> =
            ends.iter().map(|end| port(end, subnet, true).unwrap()).collect();
        assert_eq!(ports[0].addresses, ["10.0.0.2/30"]);
        assert!(ports[0].source_guard && ports[0].macs().len() == 1);
        let open = port(&ends[0], subnet, false).unwrap();
        assert!(!open.source_guard && open.macs().is_empty());
        let error = assign(&config, &names(&["b", "c"]), subnet).unwrap_err().to_string();
        assert!(error.contains("1 free addresses for 2 namespaces"), "{error}");
    }

    #[test]
    fn a_namespace_that_is_missing_is_an_error() {
        let state = State::scratch("connect");
        let names = ["no-such-namespace-of-millpond".to_string()];
        let subnet = "10.0.0.0/30".parse().unwrap();
        let error = connect(&state, &names, subnet, true, &|| Command::new("true")).unwrap_err();
        assert!(error.to_string().contains("ip netns add"), "{error}");
        assert!(!state.folder().exists(), "nothing was touched");
    }
}
