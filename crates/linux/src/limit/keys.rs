//! The keys of the file that a user writes: what each is for, and its default.
//!
//! Invariant: a key is declared here once; reading, writing and `set` follow from it.

use ipnet::IpNet;
use millpond_core::limit::{Direction, IngressMode};
use millpond_core::{Rate, Time, choice, params};
use std::net::IpAddr;
use std::path::PathBuf;

params! {
    /// The keys outside of any table.
    pub struct HostParams {
        /// Whether traffic over loopback counts.
        pub loopback: bool = false,
        /// How often `serve` restarts limited TCP connections that have data to send, nothing in
        /// flight, and would wait for a timer of 200 ms. 20ms is the slides'. Off: never.
        pub kick: Option<Time> = None,
        /// Whether to register millpond's own DCTCP as a congestion control, by the name of
        /// mp_dctcp.
        pub dctcp: bool = false,
    }
}

choice! {
    /// How TCP is held to a limit.
    pub enum Profile {
        /// At egress by a pace for each connection, which follows the virtual queue; at ingress by
        /// receive windows, and losses that are spaced. Not in the slides.
        Shares = "shares",
        /// At egress by a departure time for each packet, until which fq at the interface holds it;
        /// at ingress as with shares. Not in the slides, but in the program that came of them.
        Edt = "edt",
        /// By marks, window reductions and drops alone, as in the slides.
        Published = "published",
    }
}

params! {
    /// The keys of `[[limit]]` that are not its queue's.
    pub struct TargetParams {
        /// Its name; unique on the host.
        pub name: String = String::new(),
        /// The cgroup, by its path; relative to where cgroup v2 is mounted.
        pub cgroup: Option<String> = None,
        /// The cgroup of this systemd unit (or slice).
        pub unit: Option<String> = None,
        /// The cgroup of the container with this id (its first 12 digits are enough), or this name.
        pub container: Option<String> = None,
        /// The cgroup of this pod of a Kubernetes node: its namespace and name ("shop/web-0").
        pub pod: Option<String> = None,
        /// The cgroup that this process is in at the time of apply.
        pub pid: Option<u32> = None,
        /// egress, ingress or both. Off: egress; for a limit without a cgroup, both.
        pub direction: Option<Direction> = None,
        /// enforce, or mark-only: packets that arrive are never dropped.
        pub ingress_mode: IngressMode = IngressMode::Enforce,
        /// Further limits that its packets are charged to as well.
        pub scopes: Vec<String> = Vec::new(),
        /// The congestion control of its cgroup's new TCP connections, such as "bbr" or "mp_dctcp",
        /// which it registers. Off: what the host or the application chooses. Not in the slides.
        pub congestion: Option<String> = None,
        /// shares: new TCP connections of its cgroup are paced so that together they send what the
        /// limit allows; those that it receives have their windows held, and lose one packet at a
        /// time. edt: each packet that leaves waits in fq at the interface for its departure time;
        /// what arrives is as with shares. published: as in the slides, where nothing is paced, and
        /// beyond `drop` all is lost.
        pub profile: Profile = Profile::Shares,
        /// Whether new TCP connections of its cgroup send no faster than the tightest limit that
        /// they are charged to, spaced by their own timers; with shares, than the least share. Off:
        /// as the profile has it. Not in the slides.
        pub pace: Option<bool> = None,
        /// Whether new TCP connections of its cgroup offer their senders smaller receive windows
        /// while what arrives is beyond `mark`. Off: as the profile has it. Not in the slides.
        pub windows: Option<bool> = None,
    }
}

params! {
    /// The keys of `[[floor]]`: a cgroup that no limit may hold below a rate.
    pub struct FloorParams {
        /// As in `[[limit]]`.
        pub cgroup: Option<String> = None,
        /// As in `[[limit]]`.
        pub unit: Option<String> = None,
        /// As in `[[limit]]`.
        pub container: Option<String> = None,
        /// As in `[[limit]]`.
        pub pod: Option<String> = None,
        /// The rate that it is sure of.
        pub rate: Rate = Rate(1_000_000),
    }
}

params! {
    /// The keys of `[[notify]]`: how limits at ingress notify senders whose packets cannot carry
    /// a mark. Both hosts run `serve` and have it.
    pub struct NotifyParams {
        /// Where messages are sent to, and listened for: the same UDP port on all hosts.
        #[within(1..=65535)]
        pub port: u32 = 7411,
        /// A file with what the hosts share and nobody else has, at least 16 bytes.
        pub secret: String = String::new(),
        /// Whom to notify and whom to believe: addresses or networks.
        pub peers: Vec<String> = Vec::new(),
    }
}

/// How a cgroup is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// By its path.
    Path(PathBuf),
    /// By a systemd unit.
    Unit(String),
    /// By a container's id, or its name.
    Container(String),
    /// By a pod's namespace and name.
    Pod(String),
    /// By a process.
    Pid(u32),
}

/// The keys that name a cgroup.
pub(super) const TARGETS: [&str; 5] = ["cgroup", "unit", "container", "pod", "pid"];

/// The cgroup that one of the first four keys names.
fn target(keys: [&Option<String>; 4]) -> Option<Target> {
    let [path, unit, container, pod] = keys.map(Option::clone);
    let named = path.map(|path| Target::Path(path.into())).or(unit.map(Target::Unit));
    named.or(container.map(Target::Container)).or(pod.map(Target::Pod))
}

impl TargetParams {
    /// Its cgroup; `None` for a scope that others name.
    pub fn target(&self) -> Option<Target> {
        target(self.names()).or(self.pid.map(Target::Pid))
    }

    /// The values of its first four [`TARGETS`].
    pub(super) fn names(&self) -> [&Option<String>; 4] {
        [&self.cgroup, &self.unit, &self.container, &self.pod]
    }
}

impl FloorParams {
    /// Its cgroup.
    pub fn target(&self) -> Option<Target> {
        target(self.names())
    }

    /// The values of its first four [`TARGETS`].
    pub(super) fn names(&self) -> [&Option<String>; 4] {
        [&self.cgroup, &self.unit, &self.container, &self.pod]
    }
}

impl NotifyParams {
    /// Its peers; what is none comes back as it is written.
    pub fn networks(&self) -> Vec<Result<IpNet, &str>> {
        let network =
            |text: &str| text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        self.peers.iter().map(|text| network(text).ok_or(text.as_str())).collect()
    }
}
