use super::*;
use millpond_core::params::Params;

const GOOD: &str = r#"
load-balancing = { kind = "flowlet", gap = "100us" }
receive-offload = { kind = "presto-gro", min = "500us", flow-held-max = "2MiB" }
[[port]]
name = "web"
kind = "tap"
device = "mpweb"
namespace = "web"
addresses = ["10.1.0.1/24", "fd00::1/64"]
mtu = 9000
shape = "5Gbps"
vlan = 10
addresses-max = 4
hardware-addresses = ["02:00:00:00:00:01"]
[[port]]
name = "wire"
kind = "af-packet"
device = "eth1"
trunk = [20, 10, "30-32"]
[[port]]
name = "trace"
kind = "pcap"
write = "out.pcap"
[[port]]
name = "cache"
kind = "shared"
socket = "/run/cache.sock"
uid = 1000
flows = 512
ring = 64
frames = 2048
mtu = 9000
queue = "backpressure"
queue-memory = "32MiB"
headroom = "8MiB"
[[path]]
peer = "right"
local = "192.0.2.1:4799"
remote = "192.0.2.2:4799"
weight = 3
[[path]]
peer = "right"
local = "[2001:db8::1]:4799"
remote = "[2001:db8::2]:4799"
namespace = "underlay"
[[peer]]
name = "right"
key = "/etc/millpond/right.key"
dead-after = "100ms"
overlay = false
pause-ttl = "20ms"
hold-memory = "1MiB"
addresses-max = 99
"#;

#[test]
fn reads_and_writes_the_same() {
    let config = Config::parse("a.toml", GOOD).unwrap();
    assert_eq!(
        (config.ports.len(), config.paths.len(), config.peers()),
        (4, 2, vec!["right".to_string()])
    );
    assert_eq!(Config::parse("b.toml", &config.to_text()).unwrap(), config, "{}", config.to_text());
    assert_eq!(Config::parse("c.toml", "").unwrap(), Config::default());
}

fn has(text: &str, what: &str) {
    let said = Config::parse("a.toml", text).unwrap_err().to_string();
    assert!(said.contains(what), "{what:?} not in {said}");
}

fn shared(rest: &str) -> String {
    format!("[[port]]\nname = \"a\"\nkind = \"shared\"\n{rest}")
}

#[test]
fn errors_of_ports_have_places_and_repairs() {
    has(
        "[[port]]\nnam = \"a\"\n",
        "a.toml:2:1: unknown key `nam` in [port] (did you mean `name`?)",
    );
    has("[[port]]\nkind = \"tap\"\n", "[[port]] needs `name`");
    has("[[port]]\nname = \"a\"\nkind = \"tun\"\n", "a.toml:3:8");
    has("[[port]]\nname = \"a\"\n[[port]]\nname = \"a\"\n", "a.toml:4:8: `name`: there is another");
    has(
        "[[port]]\nname = \"a\"\n[[port]]\nname = \"b\"\ndevice = \"a\"\n",
        "a.toml:5:10: `device`: port \"a\" above has this interface",
    );
    has(
        "[[port]]\nname = \"a-name-of-16-byte\"\n",
        "a.toml:2:8: `name`: \"a-name-of-16-byte\" is no name of an interface",
    );
    has("[[port]]\nname = \"a\"\nmtu = 10\n", "a.toml:3:7");
    has(
        "[[port]]\nname = \"a\"\naddresses = [\"10.0.0.1\"]\n",
        "a.toml:3:13: `addresses`: \"10.0.0.1\" is no address",
    );
    has(
        "[[port]]\nname = \"a\"\nkind = \"af-packet\"\nmtu = 1500\n",
        "a.toml:4:7: `mtu`: is for tap, shared and vhost-user ports only",
    );
    has("[[port]]\nname = \"a\"\nkind = \"pcap\"\n", "[[port]] needs `read`");
}

#[test]
fn errors_of_ports_of_applications_have_places_and_repairs() {
    has(&shared(""), "[[port]] needs `socket`");
    has(
        &shared("socket = \"a.sock\"\n"),
        "a.toml:4:10: `socket`: \"a.sock\" is no place for a socket",
    );
    has(&shared("socket = \"/a\"\nring = 100\n"), "a.toml:5:8: `ring`: 100 is no power of two");
    has(
        &shared("socket = \"/a\"\nflow = 100\n"),
        "a.toml:5:1: unknown key `flow` in [port] (did you mean `flows`?)",
    );
    has(&shared("socket = \"/a\"\nframes = 65536\nmtu = 9000\n"), "a.toml:5:10: `frames`:");
    has(
        &shared("socket = \"/a\"\nheadroom = \"5MiB\"\n"),
        "a.toml:5:12: `headroom`: headroom is more than half",
    );
    has(
        &shared("socket = \"/a\"\ndevice = \"x\"\n"),
        "`device`: is for tap and af-packet ports only",
    );
    has(
        &shared("socket = \"/a\"\nshape = \"1Gbps\"\n"),
        "a.toml:5:9: `shape`: is for tap ports only",
    );
    has("[[port]]\nname = \"a\"\ngate = true\n", "a.toml:3:8: `gate`: is for af-packet ports only");
    has("[[port]]\nname = \"a\"\nflows = 8\n", "a.toml:3:9: `flows`: is for shared ports only");
    has(
        "[[port]]\nname = \"a\"\nsocket = \"/a\"\n",
        "a.toml:3:10: `socket`: is for shared and vhost-user ports only",
    );
}

#[test]
fn errors_of_ports_of_guests_have_places_and_repairs() {
    let guest = |rest: &str| format!("[[port]]\nname = \"a\"\nkind = \"vhost-user\"\n{rest}");
    has(&guest(""), "[[port]] needs `socket`");
    has(
        &guest("socket = \"vm.sock\"\n"),
        "a.toml:4:10: `socket`: \"vm.sock\" is no place for a socket",
    );
    has(&guest("socket = \"/a\"\nframes = 8\n"), "a.toml:5:10: `frames`: is for shared ports only");
    has(
        &guest("socket = \"/a\"\nnamespace = \"x\"\n"),
        "a.toml:5:13: `namespace`: is for tap and af-packet ports",
    );
    has(
        &guest("socket = \"/a\"\naddresses = []\n"),
        "a.toml:5:13: `addresses`: is for tap ports only",
    );
}

#[test]
fn two_ports_with_one_socket_are_an_error() {
    let twice =
        shared("socket = \"/a\"\n") + &shared("socket = \"/a\"\n").replace("\"a\"", "\"b\"");
    has(&twice, "a.toml:8:10: `socket`: port \"a\" above has this one already");
}

#[test]
fn errors_of_addresses_and_vlans_have_places_and_repairs() {
    let macs = |text: &str| format!("[[port]]\nname = \"a\"\nhardware-addresses = [\"{text}\"]\n");
    has(&macs("2:0"), "a.toml:3:22: `hardware-addresses`: \"2:0\" is no hardware address");
    has(&macs("01:00:00:00:00:01"), "is a group's");
    let twice = macs("02:00:00:00:00:01") + &macs("02:00:00:00:00:01").replace("\"a\"", "\"b\"");
    has(&twice, "a.toml:6:22: `hardware-addresses`: port \"a\" above has one of these");
    has(
        "[[port]]\nname = \"a\"\nvlan = 4095\n",
        "a.toml:3:8: `port.vlan`: expected 1 to 4094, found 4095",
    );
    has("[[port]]\nname = \"a\"\nvlan = 0\n", "a.toml:3:8: `port.vlan`: expected 1 to 4094");
    has(
        "[[port]]\nname = \"a\"\ntrunk = [10, 4095]\n",
        "a.toml:3:9: `port.trunk`: 4095 is no VLAN",
    );
    has(
        "[[port]]\nname = \"a\"\ntrunk = [10, 20, 10]\n",
        "a.toml:3:9: `port.trunk`: 10 is there twice",
    );
    has("[[port]]\nname = \"a\"\ntrunk = []\n", "a.toml:3:9: `port.trunk`: a trunk of no VLAN");
    has(
        "[[port]]\nname = \"a\"\nvlan = 1\ntrunk = [2]\n",
        "a.toml:4:9: `trunk`: `vlan` is there as well",
    );
    has(
        "[[port]]\nname = \"a\"\nvlans = 1\n",
        "unknown key `vlans` in [port] (did you mean `vlan`?)",
    );
    has("[[port]\n", "a.toml:1:");
}

#[test]
fn errors_of_paths_and_peers_have_places_and_repairs() {
    let path = "[[path]]\npeer = \"p\"\nlocal = \"10.0.0.1:1\"\n";
    has(path, "[[path]] needs `remote`");
    has(
        &format!("{path}remote = \"10.0.0.2\"\n"),
        "a.toml:4:10: `remote`: \"10.0.0.2\" is no address with a port",
    );
    has(&format!("{path}remote = \"[::1]:1\"\n"), "one end is of IPv4");
    has(
        &format!("{path}remote = \"10.0.0.2:1\"\n{path}"),
        "a.toml:7:9: `local`: a path above has this address",
    );
    has(&format!("{path}remote = \"10.0.0.2:1\"\nweight = 0\n"), "a.toml:5:10");
    let peer =
        |keys: &str| format!("{path}remote = \"10.0.0.2:1\"\n[[peer]]\nname = \"p\"\n{keys}");
    has(
        &peer("overlay = true\n"),
        "a.toml:7:11: `overlay`: the overlay needs a key that both switches have",
    );
    has(&peer("hold-memory = \"1MiB\"\n"), "a.toml:7:15: `hold-memory`: the overlay needs a key");
    has(&peer("key = \"/k\"\nfeedback = \"50ms\"\n"), "a.toml:8:12: `feedback`: pause-ttl is less");
    has("bufers = 12\n", "did you mean `buffers`?");
}

#[test]
fn errors_of_importance_have_places_and_repairs() {
    has("[[port]]\nname = \"a\"\nimportance = \"tlt2\"\n", "a.toml:3:14: `port.importance`");
    has("[[port]]\nname = \"a\"\nimportance = \"tlt2\"\n", "none, tlt");
    has(
        "[[port]]\nname = \"a\"\nimportence = \"tlt\"\n",
        "a.toml:3:1: unknown key `importence` in [port] (did you mean `importance`?)",
    );
    for (kind, rest) in [
        ("shared", "socket = \"/a\""),
        ("vhost-user", "socket = \"/a\""),
        ("pcap", "write = \"a\""),
    ] {
        let port = format!("[[port]]\nname = \"a\"\nkind = \"{kind}\"\n{rest}\n");
        let why = format!(
            "a.toml:5:14: `importance`: \"tlt\" is for tap and af-packet ports, which have a \
             kernel's TCP behind them; this port is of kind {kind} (remove the key"
        );
        has(&format!("{port}importance = \"tlt\"\n"), &why);
        assert!(Config::parse("a.toml", &format!("{port}importance = \"none\"\n")).is_ok());
    }
    let config = Config::parse("a.toml", "[[port]]\nname = \"a\"\nimportance = \"tlt\"\n").unwrap();
    assert_eq!(config.ports[0].importance, ImportanceKind::Tlt);
    assert_eq!(Config::parse("b.toml", &config.to_text()).unwrap(), config);
}

#[test]
fn the_reference_has_every_key() {
    let page = include_str!("../../../../../docs/switch-reference.md");
    let (tables, _) = page.split_once("\n## Counters").unwrap();
    let [ports, rest] = {
        let (before, ports) = tables.split_once("`[[port]]`:").unwrap();
        let (ports, behind) = ports.split_once("`[[path]]`:").unwrap();
        [ports.to_string(), format!("{before}{behind}")]
    };
    let written = |table: &str, key: &str| {
        let cells = table.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
        cells.into_iter().any(|cell| cell.contains(&format!("`{key}`")))
    };
    let params: [(&str, &dyn Params); 4] = [
        (&ports, &PortParams::default()),
        (&rest, &SwitchParams::default()),
        (&rest, &PathParams::default()),
        (&rest, &PeerParams::default()),
    ];
    for (table, params) in params {
        for key in params.keys() {
            assert!(written(table, &key.name()), "`{}` is not in switch-reference.md", key.name());
        }
    }
}

#[test]
fn a_switch_of_several_workers_refuses_what_needs_one() {
    let refused = |text: &str, place: &str, what: &str| {
        let said = Config::parse("a.toml", text).unwrap_err().to_string();
        assert!(said.contains(place) && said.contains(what), "{what:?} not in {said}");
    };
    refused("worker = 2\n", "a.toml:1:1", "did you mean `workers`?");
    refused("workers = 17\n", "a.toml:1:11", "`workers`");
    let port = |keys: &str| format!("workers = 2\n[[port]]\nname = \"a\"\n{keys}\n");
    for kind in ["shared", "vhost-user"] {
        let keys = format!("kind = \"{kind}\"\nsocket = \"/run/a\"");
        refused(&port(&keys), "a.toml:4:8", "has one end for one worker, and this switch has 2");
    }
    refused(&port("kind = \"pcap\"\nread = \"a\""), "a.toml:4:8", "a port of kind pcap");
    refused(&port("shape = \"1Gbps\""), "a.toml:4:9", "`shape`: makes senders wait");
    refused(&port("importance = \"tlt\""), "a.toml:4:14", "both directions of a connection");
    refused(&port("kind = \"af-packet\"\ngate = true"), "a.toml:5:8", "`gate`: makes senders wait");
    let path = |local: u16, remote: u16| {
        format!(
            "[[path]]\npeer = \"b\"\nlocal = \"192.0.2.1:{local}\"\nremote = \
             \"192.0.2.2:{remote}\"\n"
        )
    };
    let three = |paths: &str| format!("workers = 3\n{paths}");
    refused(&three(&path(65534, 1)), "a.toml:4:9", "3 workers (`workers`) have no ports");
    refused(&three(&path(1, 65534)), "a.toml:5:10", "3 workers (`workers`) have no ports");
    let near = three(&(path(4799, 1) + &path(4801, 1)));
    refused(&near, "a.toml:8:9", "the path above from 192.0.2.1:4799 has this port");
    let peer = "[[peer]]\nname = \"b\"\nkey = \"k\"\noverlay = true\n";
    refused(&three(&(path(4799, 1) + peer)), "a.toml:9:11", "the overlay needs one worker");
    // Beside each other, and with one worker, all of it is right.
    let far = Config::parse("a.toml", &three(&(path(4799, 1) + &path(4802, 1)))).unwrap();
    let last = far.clone().of_worker(2);
    let ends: Vec<&str> = last.paths.iter().map(|path| &path.local[..]).collect();
    assert_eq!(ends, ["192.0.2.1:4801", "192.0.2.1:4804"]);
    assert_eq!(far.clone().of_worker(0).paths, far.paths);
    assert_eq!(Config::parse("a.toml", &far.to_text()).unwrap(), far);
    Config::parse("a.toml", &near.replace("workers = 3", "workers = 1")).unwrap();
}

/// Eight times the tables take about eight times the time: each is checked against those above in
/// one step.
#[test]
fn time_of_checks_grows_with_the_length_of_a_file() {
    use rustix::time::{ClockId, clock_gettime};
    let cost = |text: &str| {
        let run = || {
            let now = || clock_gettime(ClockId::ThreadCPUTime);
            let start = now();
            let _ = std::hint::black_box(Config::parse("a.toml", text));
            let took = now() - start;
            took.tv_sec as f64 + took.tv_nsec as f64 * 1e-9
        };
        (0..5).map(|_| run()).fold(f64::MAX, f64::min)
    };
    let mac =
        |i: usize| format!("hardware-addresses = [\"02:00:00:00:{:02x}:{:02x}\"]", i >> 8, i & 255);
    let local = |i: usize| format!("local = \"10.0.{}.{}:4799\"", i >> 8, i & 255);
    let kinds: [&dyn Fn(usize) -> String; 5] = [
        &|_| "[[port]]\n".into(),
        &|i| format!("[[port]]\nname = \"p{i}\"\n{}\n", mac(i)),
        &|i| format!("[[port]]\nname = \"p{i}\"\nkind = \"shared\"\nsocket = \"/run/{i}\"\n"),
        &|i| format!("[[path]]\npeer = \"p{i}\"\nremote = \"10.9.9.9:1\"\n{}\n", local(i)),
        &|i| format!("[[path]]\npeer = \"p{i}\"\n[[peer]]\nname = \"p{i}\"\n"),
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        let costs = [500, 4000].map(|count| cost(&(0..count).map(kind).collect::<String>()));
        assert!(costs[1] < 20.0 * costs[0], "kind {number}: {costs:?} s for 500 and 4,000");
    }
    // A list of ranges ends with the first number that is there twice.
    let trunk =
        |count| format!("[[port]]\nname = \"a\"\ntrunk = [{}]\n", "\"1-4094\",".repeat(count));
    let costs = [100, 800].map(|count| cost(&trunk(count)));
    assert!(costs[1] < 20.0 * costs[0], "{costs:?}");
    assert!(
        Config::parse("a.toml", &trunk(2)).unwrap_err().to_string().contains("1 is there twice")
    );
}
