//! The plugin as a container runtime calls it, with namespaces in the place of containers.

use super::place::{Place, program, transfer};
use millpond_linux::switch::cni::{Call, Problem};
use millpond_linux::switch::{apply, show};
use millpond_worlds::needs;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A plugin for addresses: it gives out one by the container's name, notes what it was asked, and
/// refuses a container that is called so.
const IPAM: &str = r#"#!/bin/sh
folder=$(dirname "$0")
cat > "$folder/input"
echo "$CNI_COMMAND $CNI_CONTAINERID" >> "$folder/asked"
case "$CNI_CONTAINERID" in
*refused) echo '{"code": 102, "msg": "none is left"}'; exit 1 ;;
*broken) route='{"dst": "no-route"}' ;;
*) route='{"dst": "203.0.113.0/24"}' ;;
esac
[ "$CNI_COMMAND" = ADD ] || exit 0
last=${CNI_CONTAINERID#c}
last=${last%-*}
ip="{\"address\": \"10.98.8.$last/24\", \"gateway\": \"10.98.8.254\"}"
echo "{\"ips\": [$ip], \"routes\": [$route]}"
"#;

struct Runtime<'a> {
    place: &'a Place,
    folder: String,
}

impl Runtime<'_> {
    fn call(
        &self,
        command: &str,
        container: &str,
        network: &str,
        input: &Value,
    ) -> Result<Option<Value>, Problem> {
        let state = self.place.state("s");
        let path = format!("/run/netns/{network}");
        let variable = |name: &str| {
            let value = match name {
                "CNI_COMMAND" => command,
                "CNI_CONTAINERID" => container,
                "CNI_NETNS" => &path,
                "CNI_IFNAME" => "eth0",
                "CNI_PATH" => &self.folder,
                _ => return None,
            };
            Some(value.to_string())
        };
        Call {
            variable: &variable,
            input: &input.to_string(),
            state: &state,
            program: &|| program(&state),
        }
        .run()
    }
    fn asked(&self) -> Vec<String> {
        let text = fs::read_to_string(format!("{}/asked", self.folder)).unwrap();
        text.lines().map(str::to_string).collect()
    }
}

#[test]
fn containers_come_and_go() {
    let place = needs!(Place::new("cni", &["a", "b", "c"]));
    let folder = place.folder.with_extension("plugins");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("addresses"), IPAM).unwrap();
    fs::set_permissions(folder.join("addresses"), fs::Permissions::from_mode(0o755)).unwrap();
    let runtime = Runtime { place: &place, folder: folder.to_string_lossy().into_owned() };
    let input = json!({
        "cniVersion": "1.0.0", "name": "n", "type": "millpond", "vlan": 30,
        "ipam": { "type": "addresses" },
    });
    let [a, b, c] = [0, 1, 2].map(|i| place.network(i));
    let first = runtime.call("ADD", "c1", a, &input).unwrap().unwrap();
    assert_eq!(
        first["ips"],
        json!([{ "address": "10.98.8.1/24", "gateway": "10.98.8.254", "interface": 0 }])
    );
    let interface = &first["interfaces"][0];
    assert_eq!(
        (interface["name"].as_str(), interface["mac"].as_str().map(str::len)),
        (Some("eth0"), Some(17))
    );
    // The port takes frames of that address alone.
    let config = apply::installed(&place.state("s")).unwrap().unwrap();
    assert_eq!(config.ports[0].hardware_addresses, [interface["mac"].as_str().unwrap()]);
    let older = json!({
        "cniVersion": "0.4.0", "name": "n", "type": "millpond", "vlan": 30,
        "ipam": { "type": "addresses" },
    });
    let second = runtime.call("ADD", "c2", b, &older).unwrap().unwrap();
    assert_eq!(second["ips"][0]["version"], "4");
    transfer(a, b, "10.98.8.2:7401", 10_000_000, || {});
    assert!(show::read(&place.state("s")).unwrap().ports.iter().all(|port| port.vlan == Some(30)));
    // Once more is wrong, and takes nothing away.
    assert_eq!(runtime.call("ADD", "c1", a, &input).unwrap_err().code, 4);
    let mut checked = input.clone();
    checked["prevResult"] = first;
    assert_eq!(runtime.call("CHECK", "c1", a, &checked), Ok(None));
    checked["prevResult"]["ips"][0]["address"] = json!("10.98.8.77/24");
    assert_eq!(runtime.call("CHECK", "c1", a, &checked).unwrap_err().details, "10.98.8.77/24");
    let nowhere = json!({ "cniVersion": "1.0.0", "name": "n", "type": "millpond", "vlan": 5000 });
    let refused = runtime.call("ADD", "c3", c, &nowhere).unwrap_err();
    assert!(
        refused.code == 7 && refused.details.contains("`port.vlan`: expected 1 to 4094"),
        "{refused:?}"
    );
    // An address that is not given out, and one whose route is wrong: nothing is left.
    let refused = runtime.call("ADD", "c3-refused", c, &input).unwrap_err();
    assert_eq!((refused.code, &refused.msg[..]), (102, "addresses: none is left"));
    assert!(runtime.call("ADD", "c3-broken", c, &input).unwrap_err().msg.contains("no-route"));
    assert_eq!(runtime.asked().last().unwrap(), "DEL c3-broken");
    assert!(!place.has(2, "eth0"));
    let ports = || show::read(&place.state("s")).unwrap().ports.len();
    assert_eq!(ports(), 2);
    // They end, one after its namespace has; and again, which is no error.
    assert!(super::place::ip(&["netns", "del", b]));
    for (container, network) in [("c1", a), ("c2", b), ("c1", a)] {
        assert_eq!(runtime.call("DEL", container, network, &input), Ok(None), "{container}");
    }
    assert!(ports() == 0 && !place.has(0, "eth0"));
    assert!(runtime.call("CHECK", "c1", a, &input).unwrap_err().msg.contains("no such port"));
    fs::remove_dir_all(&folder).unwrap();
}
