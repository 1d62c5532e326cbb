//! `millpond switch cni`: the switch as a network of containers, by the Container Network
//! Interface, version 1.0 (github.com/containernetworking/cni, SPEC.md).
//!
//! A runtime makes a network namespace and calls the plugin with variables of the environment and a
//! configuration on standard input. `ADD` puts a tap into the namespace and makes it a port of the
//! switch; `DEL` takes it away; `CHECK` looks whether it is there. Addresses are given out by the
//! plugin of `ipam`, which is called by the specification's rules.
//!
//! Invariant: `DEL` is done when nothing is left, however often it is asked for and whatever has
//! gone before; an `ADD` that fails leaves neither port nor address.

use super::apply;
use super::config::PortParams;
use super::error::{Error, run};
use super::ports;
use super::show;
use super::state::State;
use crate::dataplane::port::Device;
use millpond_worlds::namespace;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The versions of the specification that are spoken.
const VERSIONS: [&str; 2] = ["0.4.0", "1.0.0"];

/// The answer where something goes wrong.
#[derive(Debug, PartialEq)]
pub struct Problem {
    /// As the specification numbers them; from 100 on the plugin's own.
    pub code: u32,
    pub msg: String,
    pub details: String,
}

impl Problem {
    fn new(code: u32, msg: impl Into<String>, details: impl ToString) -> Problem {
        Problem { code, msg: msg.into(), details: details.to_string() }
    }
    pub fn to_json(&self) -> Value {
        json!({
            "cniVersion": "1.0.0", "code": self.code, "msg": self.msg, "details": self.details,
        })
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        match error {
            Error::Config(errors) => Problem::new(7, "the configuration makes no port", errors),
            Error::Busy(_) => Problem::new(11, "the switch is being changed", error),
            other => Problem::new(100, "the switch", other),
        }
    }
}

/// The network's configuration; what else is in it is for others.
#[derive(Deserialize)]
struct Network {
    #[serde(rename = "cniVersion", default)]
    version: String,
    mtu: Option<u32>,
    vlan: Option<u32>,
    #[serde(rename = "addressesMax")]
    addresses_max: Option<u32>,
    #[serde(rename = "sourceGuard")]
    source_guard: Option<bool>,
    ipam: Option<Ipam>,
    #[serde(rename = "prevResult")]
    previous: Option<Value>,
}

#[derive(Deserialize)]
struct Ipam {
    #[serde(rename = "type")]
    kind: String,
}

/// The result of a plugin for addresses.
#[derive(Deserialize, Default)]
struct Given {
    #[serde(default)]
    ips: Vec<Map<String, Value>>,
    #[serde(default)]
    routes: Vec<Value>,
    #[serde(default)]
    dns: Value,
}

/// One call: the environment, what came on standard input, and the switch.
pub struct Call<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub input: &'a str,
    pub state: &'a State,
    pub program: &'a dyn Fn() -> Command,
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// The hardware address of a container's interface, and the only one behind its port: it cannot
/// take a neighbour's, nor a neighbour its. A network with `addressesMax` has several behind a
/// port, and names none.
fn hardware_addresses(network: &Network) -> Result<Vec<String>, Problem> {
    if network.addresses_max.is_some_and(|most| most > 1) {
        return Ok(Vec::new());
    }
    let drawn = ports::draw().map_err(|e| Problem::new(100, "no random hardware address", e))?;
    Ok(vec![drawn.to_string()])
}

impl Call<'_> {
    /// Runs the command that CNI_COMMAND names. Returns the result to print, if the command has
    /// one.
    ///
    /// # Errors
    /// A problem with its CNI code: 1 an unknown version, 4 a missing or wrong variable, 6 a
    /// configuration that is no JSON, and those of the command.
    pub fn run(&self) -> Result<Option<Value>, Problem> {
        let command = self.needed("CNI_COMMAND")?;
        if command == "VERSION" {
            return Ok(Some(json!({ "cniVersion": "1.0.0", "supportedVersions": VERSIONS })));
        }
        let network: Network = serde_json::from_str(self.input)
            .map_err(|e| Problem::new(6, "standard input is no network configuration", e))?;
        if !VERSIONS.contains(&network.version.as_str()) {
            let details = format!("\"{}\"; spoken are {}", network.version, VERSIONS.join(" and "));
            return Err(Problem::new(1, "a version of CNI that is not spoken", details));
        }
        match command.as_str() {
            "ADD" => self.add(&network).map(Some),
            "DEL" => self.delete(&network).map(|()| None),
            "CHECK" => self.check(&network).map(|()| None),
            other => Err(Problem::new(
                4,
                "CNI_COMMAND",
                format!("\"{other}\" is not ADD, DEL, CHECK or VERSION"),
            )),
        }
    }

    fn needed(&self, name: &str) -> Result<String, Problem> {
        let value = (self.variable)(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| Problem::new(4, name, "is not set"))
    }

    /// The names of the container's port and of its interface.
    fn names(&self) -> Result<(String, String), Problem> {
        let (container, device) = (self.needed("CNI_CONTAINERID")?, self.needed("CNI_IFNAME")?);
        // The specification's own rule; a path of other characters would leave its folder.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if !container.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !container.chars().all(is_plain)
        {
            return Err(Problem::new(
                4,
                "CNI_CONTAINERID",
                format!("\"{container}\" is no container's"),
            ));
        }
        let short: String = container.chars().take(40).collect();
        Ok((format!("{short}-{device}"), device))
    }

    fn add(&self, network: &Network) -> Result<Value, Problem> {
        let (name, device) = self.names()?;
        let place = self.needed("CNI_NETNS")?;
        let there = || Device::new(&device).is_ok_and(|device| device.index().is_ok());
        match namespace::within(Some(&place), there) {
            Err(e) => return Err(Problem::new(4, "CNI_NETNS", format!("{place}: {e}"))),
            Ok(true) => {
                return Err(Problem::new(
                    4,
                    "CNI_IFNAME",
                    format!("there is an interface {device} already"),
                ));
            }
            Ok(false) => {}
        }
        let given = self.addresses(network, "ADD")?;
        let added = self.attach(network, &name, &device, &place, &given);
        if added.is_err() {
            // A failure now has its cause in the first.
            let _ = self.addresses(network, "DEL");
        }
        added
    }

    fn attach(
        &self,
        network: &Network,
        name: &str,
        device: &str,
        place: &str,
        given: &Given,
    ) -> Result<Value, Problem> {
        let addresses: Vec<String> = given
            .ips
            .iter()
            .filter_map(|ip| ip.get("address")?.as_str())
            .map(str::to_string)
            .collect();
        let hardware_addresses = hardware_addresses(network)?;
        // Several addresses behind a port, or unknown ones, cannot be guarded.
        let source_guard = network.source_guard.unwrap_or(true)
            && !hardware_addresses.is_empty()
            && !addresses.is_empty();
        let port = PortParams {
            name: name.into(),
            device: Some(device.into()),
            namespace: Some(place.into()),
            addresses,
            mtu: network.mtu,
            vlan: network.vlan,
            addresses_max: network.addresses_max.unwrap_or(PortParams::default().addresses_max),
            hardware_addresses,
            source_guard,
            ..PortParams::default()
        };
        let added = match apply::add(self.state, |_| Ok(vec![port]), self.program) {
            // Nothing was changed.
            Err(error @ (Error::Config(_) | Error::Busy(_))) => return Err(error.into()),
            Err(error) => Err(error.into()),
            Ok(done) => match done.waiting.iter().find(|(waits, _)| waits == name) {
                Some((_, reason)) => Err(Problem::new(100, "the port cannot be opened", reason)),
                None => self.result(network, device, place, given),
            },
        };
        if added.is_err() {
            let _ = self.remove(name);
        }
        added
    }

    /// Of a port that is there: its routes, and what is printed.
    fn result(
        &self,
        network: &Network,
        device: &str,
        place: &str,
        given: &Given,
    ) -> Result<Value, Problem> {
        self.route(device, place, given)?;
        let address = namespace::within(Some(place), || Device::new(device).ok()?.mac().ok());
        let address = address.ok().flatten().map_or_else(String::new, |mac| mac.to_string());
        let ips = given.ips.iter().map(|ip| {
            let mut ip = ip.clone();
            let is_six =
                ip.get("address").and_then(Value::as_str).is_some_and(|it| it.contains(':'));
            ip.insert("interface".into(), json!(0));
            match network.version.as_str() {
                "0.4.0" => ip.insert("version".into(), json!(if is_six { "6" } else { "4" })),
                _ => ip.remove("version"),
            };
            ip
        });
        let mut result = json!({
            "cniVersion": network.version,
            "interfaces": [{ "name": device, "mac": address, "sandbox": place }],
            "ips": ips.collect::<Vec<_>>(),
            "routes": given.routes,
        });
        if given.dns.is_object() {
            result["dns"] = given.dns.clone();
        }
        Ok(result)
    }

    /// The routes that came with the addresses; one without a gateway goes by the first address's.
    fn route(&self, device: &str, place: &str, given: &Given) -> Result<(), Problem> {
        for route in &given.routes {
            let Some(to) = text(route, "dst") else { continue };
            let gateways = || given.ips.iter().filter_map(|ip| ip.get("gateway")?.as_str());
            let first = || gateways().find(|gateway| gateway.contains(':') == to.contains(':'));
            let mut arguments = vec!["route", "replace", to];
            if let Some(gateway) = text(route, "gw").or_else(first) {
                arguments.extend(["via", gateway]);
            }
            arguments.extend(["dev", device]);
            let failed = |e| Problem::new(100, format!("the route to {to}"), e);
            let done = namespace::within(Some(place), || run("ip", &arguments));
            done.unwrap_or_else(|e| Err(e.to_string())).map_err(failed)?;
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), Problem> {
        let is_there = apply::installed(self.state)?
            .is_some_and(|it| it.ports.iter().any(|port| port.name == name));
        if is_there {
            apply::remove(self.state, name, self.program)?;
        }
        Ok(())
    }

    fn delete(&self, network: &Network) -> Result<(), Problem> {
        let (name, _) = self.names()?;
        let removed = self.remove(&name);
        // Both are tried: what one leaves the other need not.
        let given_back = self.addresses(network, "DEL");
        removed.and(given_back.map(|_| ()))
    }

    fn check(&self, network: &Network) -> Result<(), Problem> {
        let (name, device) = self.names()?;
        let place = self.needed("CNI_NETNS")?;
        let reading = show::read(self.state)?;
        let port = reading.ports.iter().find(|port| port.name == name);
        let port = port.ok_or_else(|| Problem::new(100, "the switch has no such port", &name))?;
        if let Some(reason) = &port.reason {
            return Err(Problem::new(100, "the port waits", reason));
        }
        let list = namespace::within(Some(&place), || {
            Command::new("ip").args(["-o", "addr", "show", "dev", &device]).output()
        });
        let list = list
            .and_then(|done| done)
            .map_err(|e| Problem::new(100, format!("{device} in {place}"), e))?;
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let wanted = network
            .previous
            .as_ref()
            .and_then(|it| it.get("ips")?.as_array())
            .into_iter()
            .flatten();
        for address in wanted.filter_map(|ip| text(ip, "address")) {
            if !list.split_whitespace().any(|word| word == address) {
                return Err(Problem::new(100, format!("{device} has lost its address"), address));
            }
        }
        self.addresses(network, "CHECK").map(|_| ())
    }

    /// Asks the plugin for addresses, with what this one was asked with.
    fn addresses(&self, network: &Network, command: &str) -> Result<Given, Problem> {
        let Some(ipam) = &network.ipam else { return Ok(Given::default()) };
        if ipam.kind.is_empty() || ipam.kind.contains('/') {
            return Err(Problem::new(
                7,
                "ipam.type",
                format!("\"{}\" is no plugin's name", ipam.kind),
            ));
        }
        let folders = self.needed("CNI_PATH")?;
        let found = std::env::split_paths(&folders)
            .map(|folder| folder.join(&ipam.kind))
            .find(|file| file.is_file());
        let plugin =
            found.ok_or_else(|| Problem::new(7, format!("no plugin {}", ipam.kind), &folders))?;
        let failed = |e: std::io::Error| Problem::new(5, plugin.display().to_string(), e);
        let output = self.call(&plugin, command).map_err(failed)?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            // Its output has the error in the form of the specification.
            let answer = serde_json::from_str::<Value>(&printed).ok();
            let answer = answer.as_ref();
            let code = answer.and_then(|it| it.get("code")?.as_u64()).unwrap_or(100) as u32;
            let msg = answer.and_then(|it| text(it, "msg")).unwrap_or("no answer").to_string();
            return Err(Problem::new(code, format!("{}: {msg}", ipam.kind), printed.trim()));
        }
        match command {
            "ADD" => serde_json::from_str(&printed)
                .map_err(|e| Problem::new(6, format!("what {} has said", ipam.kind), e)),
            _ => Ok(Given::default()),
        }
    }

    fn call(&self, plugin: &PathBuf, command: &str) -> std::io::Result<std::process::Output> {
        let mut process = Command::new(plugin);
        for name in ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH"] {
            if let Some(value) = (self.variable)(name) {
                process.env(name, value);
            }
        }
        process
            .env("CNI_COMMAND", command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut process = process.spawn()?;
        if let Some(mut input) = process.stdin.take() {
            // One that reads nothing has its answer all the same.
            let _ = input.write_all(self.input.as_bytes());
        }
        process.wait_with_output()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(variables: &[(&str, &str)], input: &str) -> Result<Option<Value>, Problem> {
        let state = State::at("/nonexistent/millpond-cni".as_ref());
        let variable = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        };
        Call { variable: &variable, input, state: &state, program: &|| Command::new("false") }.run()
    }

    #[test]
    fn versions_are_told() {
        let answer =
            call(&[("CNI_COMMAND", "VERSION")], r#"{"cniVersion":"1.0.0"}"#).unwrap().unwrap();
        assert_eq!(answer["supportedVersions"], json!(["0.4.0", "1.0.0"]));
    }

    #[test]
    fn what_is_wrong_has_the_specifications_number() {
        let container = [("CNI_COMMAND", "ADD"), ("CNI_CONTAINERID", "c1"), ("CNI_IFNAME", "eth0")];
        let add = |more: &[(&str, &str)], input: &str| {
            call(&[more, &container].concat(), input).unwrap_err()
        };
        let good = r#"{"cniVersion":"1.0.0","name":"n","type":"millpond"}"#;
        assert_eq!(call(&[], good).unwrap_err().code, 4);
        assert_eq!(add(&[], "{").code, 6);
        assert_eq!(add(&[], &good.replace("1.0.0", "0.1.0")).code, 1);
        assert_eq!(add(&[("CNI_COMMAND", "GC")], good).code, 4);
        let problem = add(&[], good);
        assert_eq!((problem.code, &problem.msg[..]), (4, "CNI_NETNS"));
        assert_eq!(add(&[("CNI_CONTAINERID", "../c1")], good).msg, "CNI_CONTAINERID");
        let place = [("CNI_NETNS", "/nonexistent/netns")];
        assert_eq!(add(&place, good).code, 4);
        let path = [("CNI_COMMAND", "DEL"), ("CNI_PATH", "/nonexistent")];
        for plugin in ["../x", "host-local", ""] {
            let ipam = good.replace('}', &format!(r#","ipam":{{"type":"{plugin}"}}}}"#));
            assert_eq!(add(&path, &ipam).code, 7, "{plugin}");
        }
        assert_eq!(add(&place, good).to_json()["code"], 4);
    }

    #[test]
    fn what_a_plugin_for_addresses_says_is_read_or_refused() {
        let given: Given =
            serde_json::from_str(r#"{"ips":[{"address":"10.0.0.2/24"}],"routes":["x"]}"#).unwrap();
        assert_eq!((given.ips.len(), text(&given.routes[0], "dst")), (1, None));
        assert!(serde_json::from_str::<Given>(r#"{"ips":["10.0.0.2/24"]}"#).is_err());
    }

    #[test]
    fn a_removal_of_what_is_not_there_is_done() {
        let container = [("CNI_COMMAND", "DEL"), ("CNI_CONTAINERID", "c1"), ("CNI_IFNAME", "eth0")];
        assert_eq!(
            call(&container, r#"{"cniVersion":"1.0.0","name":"n","type":"millpond"}"#),
            Ok(None)
        );
    }
}
