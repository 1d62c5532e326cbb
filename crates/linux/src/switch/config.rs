//! The file that a user writes, and its errors.
//!
//! ```toml
//! [[port]]
//! name = "web"
//! kind = "tap"
//! device = "mpweb"
//! namespace = "web"
//! addresses = ["10.1.0.1/24"]
//!
//! [[port]]
//! name = "wire"
//! kind = "af-packet"
//! device = "eth1"
//! ```
//!
//! Invariant: a configuration that was read has unique names and devices, and each kind of port has
//! the keys that it needs and no others.

use super::settings::Edge;
use super::table;
use crate::config::{Checked, written};
use crate::dataplane::frame::Mac;
use crate::dataplane::frame::neighbour::Guard;
use crate::dataplane::port::shared::{QueueKind, SharedSettings};
use crate::dataplane::port::vhost::VhostSettings;
use crate::dataplane::vlan::{VlanSet, Vlans};
use millpond_core::params::Field;
use millpond_core::{Bytes, Rate, Time, choice, params};
use millpond_port::layout::Sizes;
use millpond_scenario::document::{Document, DocumentReader};
use millpond_scenario::{Errors, nearest};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

mod workers;

/// The most ports of one switch.
pub const PORTS_MAX: usize = 1024;
/// The most paths, to all peers together.
pub const PATHS_MAX: usize = 256;
/// The longest name.
const NAME_MAX: usize = 63;
/// The longest path of a socket: what its address has room for.
const SOCKET_MAX: usize = 107;
/// The longest packet of an application or a guest by default.
pub const SHARED_MTU: u32 = 1500;
/// Keys of some kinds alone, the kinds, and their names.
const OF_KINDS: [(&[&str], &[PortKind], &str); 7] = {
    use PortKind::{AfPacket, Pcap, Shared, Tap, VhostUser};
    [
        (&["read", "write"], &[Pcap], "pcap"),
        (&["device", "namespace"], &[Tap, AfPacket], "tap and af-packet"),
        (&["addresses", "shape", "source-guard"], &[Tap], "tap"),
        (&["gate"], &[AfPacket], "af-packet"),
        (&["socket", "uid"], &[Shared, VhostUser], "shared and vhost-user"),
        (&["flows", "ring", "frames", "queue", "queue-memory", "headroom"], &[Shared], "shared"),
        (&["mtu"], &[Tap, Shared, VhostUser], "tap, shared and vhost-user"),
    ]
};

choice! {
    /// The kind of a port.
    pub enum PortKind {
        /// An interface of the switch's own.
        Tap = "tap",
        /// An interface that is there already.
        AfPacket = "af-packet",
        /// Files, for tests.
        Pcap = "pcap",
        /// Memory that an application shares.
        Shared = "shared",
        /// The network device of a virtual machine.
        VhostUser = "vhost-user",
    }
}

choice! {
    /// Marking of important packets of a port's TCP.
    pub enum ImportanceKind {
        /// None: packets pass unchanged.
        None = "none",
        /// Those of TLT.
        Tlt = "tlt",
    }
}

params! {
    /// The keys of `[[port]]`.
    pub struct PortParams {
        /// Its name; unique in the switch.
        pub name: String = String::new(),
        /// tap, af-packet, pcap, shared or vhost-user.
        pub kind: PortKind = PortKind::Tap,
        /// The interface: a tap makes it if it is not there. Off: the port's name.
        pub device: Option<String> = None,
        /// The network namespace that the interface is in: a name of `ip netns`, or a path. Off:
        /// the switch's own.
        pub namespace: Option<String> = None,
        /// Addresses that a tap gets, with their prefix lengths; those that it has otherwise stay.
        pub addresses: Vec<String> = Vec::new(),
        /// The MTU that a tap gets, in bytes. Off: what paths to peers carry, 1500 at most; of a
        /// tap that was there before, as it is. Of shared memory and virtual machines: the longest
        /// packet; off: 1500.
        #[within(68..=65521)]
        pub mtu: Option<u32> = None,
        /// The rate of a token bucket before a tap, by which senders behind it can be made to wait.
        /// Off: there is none.
        #[within(1_000_000..)]
        pub shape: Option<Rate> = None,
        /// Whether senders behind a packet socket's interface, an end of a veth pair, are made to
        /// wait while a flow of theirs should pause: nothing polls its queues meanwhile.
        pub gate: bool = false,
        /// The VLAN that its frames are of, without a tag there; those that come with one are
        /// dropped.
        #[within(1..=4094)]
        pub vlan: Option<u32> = None,
        /// The VLANs that it carries, with their tags; other frames are dropped. Off, and without
        /// `vlan`: all, and frames of none.
        pub trunk: Option<VlanSet> = None,
        /// How many hardware addresses may be behind it, each in each of its VLANs; frames from
        /// further ones pass, and what is for them is flooded.
        #[within(1..=16384)]
        pub addresses_max: u32 = table::ADDRESSES_OF_A_PORT,
        /// The hardware addresses that are behind it, and nowhere else; frames from others are
        /// dropped. Off: whichever are seen.
        pub hardware_addresses: Vec<String> = Vec::new(),
        /// Whether frames from a tap must claim no other addresses than its `hardware-addresses`
        /// and `addresses`: as sources of IP, in ARP, in neighbour discovery; others are dropped.
        /// Ports of containers (CNI, `connect`) have it.
        pub source_guard: bool = false,
        /// The least payload, in bytes, of the packets that a super-segment is cut into; one of
        /// less is dropped if it makes more than 64.
        #[within(1..=65535)]
        pub gso_least: u32 = u32::from(crate::dataplane::slot::GSO_LEAST),
        /// How the TCP behind a tap or an interface is helped against timeouts: none, or tlt, which
        /// marks important packets and forces out packets after losses.
        pub importance: ImportanceKind = ImportanceKind::None,
        /// The capture (pcap) whose frames come in.
        pub read: Option<String> = None,
        /// The capture (pcap) that frames go out to.
        pub write: Option<String> = None,
        /// Where applications attach to shared memory, or a virtual machine: the path of a socket,
        /// which the switch makes.
        pub socket: Option<String> = None,
        /// The user who may attach, and owns the socket. Off: the switch's own, and root.
        pub uid: Option<u32> = None,
        /// Flows that an application can send, each with a ring.
        #[within(1..=16384)]
        pub flows: u32 = 64,
        /// Frames that a flow's ring has places for; a power of two.
        #[within(2..=65536)]
        pub ring: u32 = 256,
        /// Buffers that an application has each way; a power of two.
        #[within(2..=65536)]
        pub frames: u32 = 1024,
        /// How frames wait in the switch for an application: flow-queues, backpressure or lossy.
        pub queue: QueueKind = QueueKind::FlowQueues,
        /// Bytes that may wait in the switch for an application.
        #[within(65536..=1073741824)]
        pub queue_memory: Bytes = Bytes(8 << 20),
        /// How much of queue-memory only flows may take that were asked to pause: what they send
        /// until the notice arrives. Off: an eighth.
        pub headroom: Option<Bytes> = None,
    }
}

params! {
    /// The keys outside of any table, beside the edge's.
    pub struct SwitchParams {
        /// Frame buffers of each worker, of 64 KiB; only what is in flight together takes memory.
        #[within(16..=65536)]
        pub buffers: u32 = 2048,
        /// How long the poll loop looks for frames, and yields its core, before it sleeps; 0us: it
        /// sleeps at once.
        pub spin: Time = Time::from_us(50),
        /// Threads that move frames, each with a queue of every port and a tunnel of its own.
        #[within(1..=16)]
        pub workers: u32 = 1,
    }
}

params! {
    /// The keys of `[[path]]`: a path to another switch.
    pub struct PathParams {
        /// The other switch's name; its paths share flows.
        pub peer: String = String::new(),
        /// The address and UDP port of this end; each path has its own.
        pub local: String = String::new(),
        /// The address and UDP port of the other end.
        pub remote: String = String::new(),
        /// The network namespace that the addresses are in. Off: the switch's own.
        pub namespace: Option<String> = None,
        /// How often it is taken, next to the peer's other paths.
        #[within(1..=64)]
        pub weight: u32 = 1,
    }
}

params! {
    /// The keys of `[[peer]]`: what is to be known of another switch beside the paths to it.
    pub struct PeerParams {
        /// The name by which paths call it.
        pub name: String = String::new(),
        /// The file with the key that both share. Off: the paths there are trusted as wires are.
        pub key: Option<String> = None,
        /// Between two probes of a path.
        #[within(1_000_000_000i64..=10_000_000_000_000i64)]
        pub probe: Time = Time::from_ms(10),
        /// A path is dead when the newest probe that arrived over it is older than another path's
        /// by more.
        #[within(1_000_000_000i64..=60_000_000_000_000i64)]
        pub dead_after: Time = Time::from_ms(30),
        /// A path is left out when it is slower than the fastest by more, one way.
        pub skew_max: Time = Time::from_us(500),
        /// Whether the two pause each other's flows; with a key alone.
        pub overlay: bool = true,
        /// From asking the peer to pause a flow until nothing more of it arrives.
        #[within(20_000_000i64..=1_000_000_000_000i64)]
        pub feedback: Time = Time::from_ms(2),
        /// How long the peer holds a flow that it is asked to pause, unless it is asked again.
        #[within(1_000_000_000i64..=1_000_000_000_000i64)]
        pub pause_ttl: Time = Time::from_ms(100),
        /// Frames that may wait here while the peer pauses their flows, in bytes. Those of
        /// applications wait with these.
        #[within(65536..=1073741824)]
        pub hold_memory: Bytes = Bytes(8 << 20),
        /// How many hardware addresses may be behind it, each in each of its VLANs; frames from
        /// further ones pass, and what is for them is flooded.
        #[within(1..=16384)]
        pub addresses_max: u32 = table::ADDRESSES_OF_A_PEER,
    }
}

/// One file's switch.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Config {
    /// The keys outside of any table.
    pub switch: SwitchParams,
    /// Its treatment of packets to and from peers.
    pub edge: Edge,
    /// Its ports.
    pub ports: Vec<PortParams>,
    /// Its paths to other switches.
    pub paths: Vec<PathParams>,
    /// Those switches, as far as the file has a table of them.
    pub peers: Vec<PeerParams>,
}

impl PortParams {
    /// Its kind, as it is written.
    pub fn kind_name(&self) -> String {
        match self.kind.to_value() {
            millpond_core::params::Value::Text(name) => name,
            _ => String::new(),
        }
    }
    /// The hardware addresses that it has, and no others; none: any.
    pub fn macs(&self) -> Vec<Mac> {
        self.hardware_addresses.iter().filter_map(|text| text.parse().ok()).collect()
    }
    /// The addresses that frames from it may claim; `None`: any.
    pub fn guard(&self) -> Option<Guard> {
        let ip = |text: &String| text.split('/').next()?.parse::<IpAddr>().ok();
        let addresses = || self.addresses.iter().filter_map(ip).collect();
        self.source_guard.then(|| Guard::new(self.macs(), addresses()))
    }
    /// The VLANs that it carries.
    pub fn vlans(&self) -> Vlans {
        match (self.vlan, &self.trunk) {
            (Some(vlan), _) => Vlans::Access(vlan as u16),
            (None, Some(trunk)) => Vlans::Trunk(trunk.clone()),
            (None, None) => Vlans::All,
        }
    }
    /// Shared memory for its packets.
    pub fn shared(&self) -> SharedSettings {
        let buffer_bytes = SharedSettings::buffer_bytes(self.mtu.unwrap_or(SHARED_MTU));
        SharedSettings {
            socket: self.socket.as_deref().unwrap_or("").into(),
            uid: self.uid,
            sizes: Sizes {
                flows: self.flows,
                places: self.ring,
                buffers: self.frames,
                buffer_bytes,
            },
            queue: self.queue,
            memory: self.queue_memory.0,
            headroom: self.headroom.map_or(self.queue_memory.0 / 8, |headroom| headroom.0),
        }
    }
    /// The port of a virtual machine.
    pub fn vhost(&self) -> VhostSettings {
        VhostSettings { socket: self.socket.as_deref().unwrap_or("").into(), uid: self.uid }
    }
    /// Whether it is an interface.
    pub fn has_device(&self) -> bool {
        matches!(self.kind, PortKind::Tap | PortKind::AfPacket)
    }
    /// The interface.
    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap_or(&self.name)
    }
}

/// Names, interfaces, sockets and addresses of the ports above, each with the first port's place.
#[derive(Default)]
struct Taken {
    names: HashSet<String>,
    devices: HashMap<(String, Option<String>), usize>,
    sockets: HashMap<String, usize>,
    macs: HashMap<Mac, usize>,
}

impl Taken {
    /// Reports what a port shares with one above, and takes the rest for it.
    fn take(&mut self, r: &mut Checked<'_, '_>, port: &PortParams, above: &[PortParams]) {
        let place = above.len();
        if !self.names.insert(port.name.clone()) {
            r.wrong("name", format!("there is another port \"{}\" above", port.name));
        }
        let key = if r.has("device") { "device" } else { "name" };
        let mut other = |key: &str, first: usize, what: &str| {
            if first < place {
                let message = format!("port \"{}\" above has {what} already", above[first].name);
                r.wrong(key, message);
            }
        };
        if port.has_device() {
            let device = (port.device().to_string(), port.namespace.clone());
            other(key, *self.devices.entry(device).or_insert(place), "this interface");
        }
        if let Some(socket) = &port.socket {
            other("socket", *self.sockets.entry(socket.clone()).or_insert(place), "this one");
        }
        let first = |mac: Mac| *self.macs.entry(mac).or_insert(place);
        let first = port.macs().into_iter().map(first).min().unwrap_or(place);
        other("hardware-addresses", first, "one of these");
    }
}

/// The ports, which share no name, interface, socket or address.
fn read_ports(r: &mut DocumentReader<'_>, config: &mut Config) {
    let mut taken = Taken::default();
    for mut item in r.tables("port") {
        let mut port = PortParams::default();
        let mut r = Checked::read(r, &mut item, &mut [&mut port]);
        read_port(&mut r, &port);
        workers::read_port(&mut r, &port, config.switch.workers);
        taken.take(&mut r, &port, &config.ports);
        if config.ports.len() == PORTS_MAX {
            r.wrong("name", format!("a switch has {PORTS_MAX} ports at most"));
        }
        config.ports.push(port);
    }
}

/// The paths, which share no local address and port.
fn read_paths(r: &mut DocumentReader<'_>, config: &mut Config) {
    let (mut locals, mut ends) = (HashSet::new(), workers::Ends::default());
    for mut item in r.tables("path") {
        let mut path = PathParams::default();
        let mut r = Checked::read(r, &mut item, &mut [&mut path]);
        read_path(&mut r, &path);
        ends.take(&mut r, &path, config.switch.workers);
        let is_new = locals.insert((path.local.clone(), path.namespace.clone()));
        if r.has("local") && !is_new {
            r.wrong("local", "a path above has this address and port already");
        }
        if config.paths.len() == PATHS_MAX {
            r.wrong("local", format!("a switch has {PATHS_MAX} paths at most"));
        }
        config.paths.push(path);
    }
}

/// The peers, to each of which a path leads.
fn read_peers(r: &mut DocumentReader<'_>, config: &mut Config) {
    let (names, mut taken) = (config.peers(), HashSet::new());
    let known: HashSet<&str> = names.iter().map(String::as_str).collect();
    for mut item in r.tables("peer") {
        let mut peer = PeerParams::default();
        let mut r = Checked::read(r, &mut item, &mut [&mut peer]);
        match r.has("name") {
            false => r.missing("name"),
            true => {
                if !taken.insert(peer.name.clone()) {
                    let message = format!("there is another peer \"{}\" above", peer.name);
                    r.wrong("name", message);
                }
                if !known.contains(peer.name.as_str()) {
                    let some = names.iter().map(String::as_str).take(PATHS_MAX);
                    let help =
                        nearest(&peer.name, some).map(|it| format!("did you mean \"{it}\"?"));
                    let message = format!("no path leads to \"{}\"", peer.name);
                    r.reader.wrong(r.item, "name", message, help);
                }
                read_peer(&mut r, &peer);
            }
        }
        workers::read_peer(&mut r, &peer, config.switch.workers);
        config.peers.push(peer);
    }
}

fn read_port(r: &mut Checked<'_, '_>, port: &PortParams) {
    read_name(r, port);
    read_kind(r, port);
    if port.vlan.is_some() && port.trunk.is_some() {
        let help =
            "a port is of one VLAN, without tags, or of some, with tags: take one of the two away";
        r.wrong_help("trunk", "`vlan` is there as well", help);
    }
    read_addresses(r, port);
}

fn read_name(r: &mut Checked<'_, '_>, port: &PortParams) {
    match r.has("name") {
        false => r.missing("name"),
        true if port.name.is_empty() || port.name.len() > NAME_MAX => {
            r.wrong("name", format!("a name has 1 to {NAME_MAX} bytes"));
        }
        true if port
            .name
            .contains(|c: char| c.is_control() || c.is_whitespace() || "/\"\\{}".contains(c)) =>
        {
            r.wrong("name", "a name has no spaces, control characters, slashes, quotes or braces");
        }
        true => {}
    }
}

/// The keys that only ports of some kinds have.
fn read_kind(r: &mut Checked<'_, '_>, port: &PortParams) {
    let others = OF_KINDS.iter().filter(|(_, kinds, _)| !kinds.contains(&port.kind));
    for (keys, _, names) in others {
        for key in r.written(keys) {
            r.wrong(key, format!("is for {names} ports only"));
        }
    }
    if port.has_device() {
        let device = port.device();
        if device.is_empty() || device.len() > 15 || device.contains(['/', ' ', ':', '\0']) {
            let key = if r.has("device") { "device" } else { "name" };
            let help = "give the port a `device`, or a shorter name";
            let message = format!(
                "\"{device}\" is no name of an interface: those have 1 to 15 bytes, no slash, \
                 colon or space"
            );
            r.wrong_help(key, message, help);
        }
    } else if port.kind == PortKind::Pcap && port.read.is_none() && port.write.is_none() {
        r.missing("read");
    }
    if port.kind == PortKind::Tap
        && port.source_guard
        && let Some(key) = ["hardware-addresses", "addresses"].into_iter().find(|key| !r.has(key))
    {
        let message = format!("the guard has no `{key}` to compare frames with");
        let help = format!("give the port `{key}`, or take `source-guard` away");
        r.wrong_help("source-guard", message, help);
    }
    if !port.has_device() && port.importance != ImportanceKind::None {
        let message = format!(
            "\"tlt\" is for tap and af-packet ports, which have a kernel's TCP behind them; this \
             port is of kind {}",
            port.kind_name()
        );
        r.wrong_help("importance", message, "remove the key");
    }
    match port.kind {
        PortKind::Shared => read_shared(r, port),
        PortKind::VhostUser => read_socket(r, port),
        PortKind::Tap | PortKind::AfPacket | PortKind::Pcap => {}
    }
}

fn read_addresses(r: &mut Checked<'_, '_>, port: &PortParams) {
    for text in &port.hardware_addresses {
        match text.parse::<Mac>() {
            Ok(mac) if !mac.is_group() => {}
            Ok(_) => r.wrong(
                "hardware-addresses",
                format!("\"{text}\" is a group's, and no frame comes from one"),
            ),
            Err(why) => {
                let message = format!("\"{text}\" is no hardware address: {why}");
                r.wrong_help("hardware-addresses", message, "write it as 02:00:00:00:00:01");
            }
        }
    }
    for address in &port.addresses {
        let parts = address
            .split_once('/')
            .and_then(|(a, p)| Some((a.parse::<std::net::IpAddr>().ok()?, p.parse::<u8>().ok()?)));
        let fits = parts.is_some_and(|(a, prefix)| prefix <= if a.is_ipv4() { 32 } else { 128 });
        if !fits {
            let help = "write it as 10.0.0.1/24";
            r.wrong_help(
                "addresses",
                format!("\"{address}\" is no address with a prefix length"),
                help,
            );
        }
    }
}

fn read_socket(r: &mut Checked<'_, '_>, port: &PortParams) {
    let path = port.socket.as_deref().unwrap_or("");
    if !r.has("socket") {
        r.missing("socket");
    } else if !path.starts_with('/') || path.len() > SOCKET_MAX || path.contains('\0') {
        let message = format!(
            "\"{path}\" is no place for a socket: an absolute path of at most {SOCKET_MAX} bytes \
             is"
        );
        r.wrong("socket", message);
    }
}

fn read_shared(r: &mut Checked<'_, '_>, port: &PortParams) {
    read_socket(r, port);
    for (key, value) in [("ring", port.ring), ("frames", port.frames)] {
        if !value.is_power_of_two() {
            r.wrong(key, format!("{value} is no power of two"));
            return;
        }
    }
    if port.headroom.is_some_and(|headroom| headroom.0 > port.queue_memory.0 / 2) {
        let message = "headroom is more than half of queue-memory".to_string();
        r.wrong("headroom", message);
    }
    if let Err(why) = port.shared().sizes.check() {
        let key =
            ["flows", "frames", "ring", "mtu"].into_iter().find(|key| r.has(key)).unwrap_or("name");
        r.wrong(key, why);
    }
}

fn read_path(r: &mut Checked<'_, '_>, path: &PathParams) {
    r.need(&["peer", "local", "remote"]);
    let ends: Vec<Option<SocketAddr>> = [("local", &path.local), ("remote", &path.remote)]
        .into_iter()
        .map(|(key, text)| {
            let address = text.parse().ok();
            if address.is_none() && r.has(key) {
                let help = "write it as 192.0.2.1:4799 or [2001:db8::1]:4799";
                r.wrong_help(key, format!("\"{text}\" is no address with a port"), help);
            }
            address
        })
        .collect();
    if let [Some(local), Some(remote)] = ends[..]
        && local.is_ipv4() != remote.is_ipv4()
    {
        r.wrong("remote", "one end is of IPv4 and the other of IPv6");
    }
}

fn read_peer(r: &mut Checked<'_, '_>, peer: &PeerParams) {
    for key in r.written(&["overlay", "feedback", "pause-ttl", "hold-memory"]) {
        if peer.key.is_none() && (key != "overlay" || peer.overlay) {
            let help =
                "give the peer a `key`: else whoever can forge its address could pause its flows";
            r.wrong_help(key, "the overlay needs a key that both switches have", help);
        }
    }
    if peer.pause_ttl < peer.feedback + peer.feedback + peer.feedback + peer.feedback {
        let key = if r.has("pause-ttl") { "pause-ttl" } else { "feedback" };
        r.wrong(key, "pause-ttl is less than four times feedback");
    }
    if peer.dead_after < peer.probe + peer.probe {
        r.wrong(
            if r.has("dead-after") { "dead-after" } else { "probe" },
            "dead-after is less than two probes",
        );
    }
}

impl Config {
    /// The settings of a peer; the defaults where the file has none.
    pub fn peer(&self, name: &str) -> PeerParams {
        let default = || PeerParams { name: name.into(), ..PeerParams::default() };
        self.peers.iter().find(|peer| peer.name == name).cloned().unwrap_or_else(default)
    }

    /// The other switches, in the order in which they are first named.
    pub fn peers(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let new = self.paths.iter().filter(|path| seen.insert(&path.peer));
        new.map(|path| path.peer.clone()).collect()
    }

    /// Reads the text of a file. `name` stands for the file in messages.
    ///
    /// # Errors
    /// All errors of syntax, keys and values; a name, an interface, a socket or an address that two
    /// ports have; paths that do not fit their peers.
    pub fn parse(name: &str, text: &str) -> Result<Config, Errors> {
        Document::parse(name, text).read(|r| {
            let mut config = Config::default();
            r.top(&mut config.switch);
            config.edge = Edge::read(r);
            read_ports(r, &mut config);
            read_paths(r, &mut config);
            read_peers(r, &mut config);
            config
        })
    }

    /// As a file that is read back as the same.
    pub fn to_text(&self) -> String {
        let mut out = written(&self.switch, &SwitchParams::default()) + &self.edge.to_text();
        for port in &self.ports {
            out += "\n[[port]]\n";
            out += &written(port, &PortParams::default());
        }
        for path in &self.paths {
            out += "\n[[path]]\n";
            out += &written(path, &PathParams::default());
        }
        for peer in &self.peers {
            out += "\n[[peer]]\n";
            out += &written(peer, &PeerParams::default());
        }
        out
    }
}

#[cfg(test)]
mod tests;
