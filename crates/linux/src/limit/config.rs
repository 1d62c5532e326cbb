//! The file that a user writes, and its errors.
//!
//! ```toml
//! [[limit]]
//! name = "batch"
//! unit = "batch.slice"
//! rate = "1Gbps"
//! scopes = ["uplink"]
//!
//! [[limit]]            # no cgroup: a scope that others name
//! name = "uplink"
//! rate = "8Gbps"
//!
//! [[floor]]
//! unit = "ssh.service"
//! rate = "10Mbps"
//!
//! [[notify]]           # senders on other hosts, whose packets cannot carry a mark
//! secret = "/etc/millpond/notify.secret"
//! peers = ["10.0.0.0/8"]
//! ```
//!
//! The keys of the virtual queue are `millpond_core::limit::LimitParams`, as in scenarios.
//!
//! Invariant: a configuration that was read has unique names, rates that the integers hold, and
//! scopes that exist and do not go in circles; what it prints as text is read back as the same.

use super::circles::on_circles;
use super::keys::TARGETS;
pub use super::keys::{FloorParams, HostParams, NotifyParams, Profile, Target, TargetParams};
use super::layout::NAME_MAX;
use crate::config::{Checked, written};
use millpond_core::limit::{Direction, IngressMode, LimitParams, RATES};
use millpond_core::{Rate, Time};
use millpond_scenario::Errors;
use millpond_scenario::document::{Document, DocumentReader, Item};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};

/// The name of millpond's own DCTCP, as a congestion control and as a pin.
pub const DCTCP: &str = "mp_dctcp";
/// So many names are looked through for the one that was meant.
const CANDIDATES: usize = 100;
/// The part of a second's bytes that a limit may carry beyond its rate, with a note or without.
const EXCESS: f64 = 0.03;
/// The bytes of a packet on Ethernet.
const PACKET: u64 = 1_500;
/// The most bytes that a packet has below IP: tunnels, tags, preamble and gap.
const FRAMING_MOST: u64 = 256;
/// Bytes of a name with the zero at its end: the kernel's TCP_CA_NAME_MAX.
const NAME_SIZE: usize = 16;

/// Whether a congestion control can have this name.
fn is_congestion_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..NAME_SIZE).contains(&name.len()) && name.chars().all(fits)
}

/// One `[[limit]]`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Limit {
    pub target: TargetParams,
    pub queue: LimitParams,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Config {
    /// The keys outside of any table.
    pub host: HostParams,
    pub limits: Vec<Limit>,
    pub floors: Vec<FloorParams>,
    /// How senders on other hosts are notified.
    pub notify: Option<NotifyParams>,
}

impl Limit {
    pub fn name(&self) -> &str {
        &self.target.name
    }
    /// Its name, and those of its scopes.
    pub(super) fn named(&self) -> (&str, &[String]) {
        (self.name(), &self.target.scopes)
    }
    /// Its cgroup; `None` for a scope that others name.
    pub fn cgroup(&self) -> Option<Target> {
        self.target.target()
    }
    /// Whether it has a queue for a direction: 0 egress, 1 ingress.
    pub fn covers(&self, direction: usize) -> bool {
        match self.target.direction {
            Some(Direction::Egress) => direction == 0,
            Some(Direction::Ingress) => direction == 1,
            Some(Direction::Both) => true,
            None => direction == 0 || self.cgroup().is_none(),
        }
    }
    /// Whether new connections of its cgroup are paced.
    pub fn paces(&self) -> bool {
        self.target.pace.unwrap_or(self.target.profile == Profile::Shares)
    }
    /// Whether the pace of its connections follows its queue for a direction: what arrives is sent
    /// by others.
    pub fn shares(&self, direction: usize) -> bool {
        direction == 0 && self.target.profile != Profile::Published && self.paces()
    }
    /// Whether packets of a direction get departure times, until which the interface holds them.
    pub fn waits(&self, direction: usize) -> bool {
        direction == 0 && self.target.profile == Profile::Edt
    }
    /// Whether connections lose one packet at a time in a direction: at egress a drop is no loss.
    pub fn spaces(&self, direction: usize) -> bool {
        direction == 1 && self.target.profile != Profile::Published
    }
    /// Whether the receive windows of its connections follow its queue: at egress the pace does.
    pub fn holds(&self, direction: usize) -> bool {
        direction == 1 && self.target.windows.unwrap_or(self.target.profile != Profile::Published)
    }
    pub fn queue(&self, direction: usize) -> LimitParams {
        let never = direction == 1 && self.target.ingress_mode == IngressMode::MarkOnly;
        let queue = match direction {
            _ if self.waits(direction) => self.queue.departing(),
            _ if self.shares(direction) => self.queue.shared(),
            _ if self.spaces(direction) => self.queue.arriving(),
            _ => self.queue.clone(),
        };
        LimitParams { mark_only: self.queue.mark_only || never, ..queue }
    }
    /// Changes keys by name, as `millpond limit set` asks.
    ///
    /// # Errors
    /// An unknown key, a wrong value, or a key that only the file can change; the limit keeps its
    /// values.
    pub fn set(&mut self, pairs: &[(String, String)]) -> Result<(), Errors> {
        let mut changed = self.clone();
        Document::assignments("set", "limit", pairs).read(|r| {
            for mut item in r.tables("limit") {
                let mut r = read_limit(r, &mut item, &mut changed);
                for key in ["name"].into_iter().chain(TARGETS) {
                    if r.has(key) {
                        r.wrong(key, "cannot be changed by set: edit the file and apply it");
                    }
                }
            }
        })?;
        *self = changed;
        Ok(())
    }
}

fn read_limit<'r, 'a>(
    r: &'r mut DocumentReader<'a>,
    item: &'r mut Item<'a>,
    limit: &mut Limit,
) -> Checked<'r, 'a> {
    let mut r = Checked::read(r, item, &mut [&mut limit.target, &mut limit.queue]);
    let rate = limit.queue.rate.bps();
    if !RATES.contains(&rate) {
        let help = format!("from {} to {}", Rate(*RATES.start()), Rate(*RATES.end()));
        r.wrong_help("rate", format!("{} cannot be held", limit.queue.rate), help);
    }
    let s = limit.queue.settings();
    if s.mark > s.drop_large {
        r.wrong(
            "mark",
            "senders would be notified only after packets are dropped: mark must be below drop - \
             reserve",
        );
    }
    match &limit.target.congestion {
        Some(_) if limit.cgroup().is_none() => {
            r.wrong("congestion", "only a limit with a cgroup has connections");
        }
        Some(name) if !is_congestion_name(name) => {
            r.wrong("congestion", format!("{name:?} cannot be the name of a congestion control"));
        }
        _ => {}
    }
    if !(0.0..=4.0).contains(&limit.queue.bypass) {
        r.wrong("bypass", "from 0 (never) to 4 times the drop threshold");
    }
    check_sizes(&mut r, &limit.queue);
    r
}

/// Sizes with which no packet could pass, or each would be charged for far more than it is.
fn check_sizes(r: &mut Checked<'_, '_>, queue: &LimitParams) {
    for (key, size) in [("burst", queue.burst), ("mark", queue.mark), ("drop", queue.drop)] {
        if let Some(size) = size.filter(|size| size.get() < PACKET) {
            let message = format!("{size} is less than a packet: at least {PACKET}B");
            r.wrong(key, message);
        }
    }
    if queue.framing.get() > FRAMING_MOST {
        let message = format!("a packet has at most {FRAMING_MOST}B below IP");
        r.wrong("framing", message);
    }
    if r.has("reference-rtt") && queue.reference_rtt < Time::from_us(1) {
        r.wrong("reference-rtt", "at least 1us: flows get signals in proportion to it");
    }
}

fn check_name(r: &mut Checked<'_, '_>, name: &str) {
    if !r.has("name") {
        return r.missing("name");
    }
    if name.is_empty() || name.len() > NAME_MAX {
        r.wrong("name", format!("a name has 1 to {NAME_MAX} bytes"));
    }
    if name.contains(|c: char| c.is_control() || c == '/' || c == '"' || c == '\\') {
        r.wrong("name", "a name has no control characters, slashes or quotes");
    }
}

fn check_targets(r: &mut Checked<'_, '_>, names: [&Option<String>; 4]) {
    let given: Vec<&str> = TARGETS.into_iter().filter(|key| r.has(key)).collect();
    if let [first, second, ..] = given[..] {
        r.wrong(second, format!("a limit has one cgroup, and {first} names it already"));
    }
    for (key, name) in TARGETS.into_iter().zip(names) {
        if let Some(problem) = name.as_deref().and_then(|name| name_problem(key, name)) {
            r.wrong(key, problem);
        }
    }
    let [.., pod] = names;
    if r.has("pod") && !pod.as_deref().is_some_and(is_pod_name) {
        r.wrong("pod", "a pod has a namespace and a name, such as \"shop/web-0\"");
    }
}

/// Why a text cannot name a cgroup on any host.
fn name_problem(key: &str, text: &str) -> Option<&'static str> {
    let leaves = Path::new(text).components().any(|part| part == Component::ParentDir);
    match key {
        _ if text.is_empty() => Some("is empty"),
        _ if text.contains(char::is_control) => Some("has a control character"),
        "cgroup" if leaves => {
            Some("leads out of the cgroup v2 mount: write the path below the mount, without ..")
        }
        "unit" | "container" if text.contains('/') => {
            Some("a name has no slash: cgroup takes paths")
        }
        _ => None,
    }
}

/// Whether both parts can be names of Kubernetes.
fn is_pod_name(pod: &str) -> bool {
    let is_name = |part: &str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(fits)
    };
    pod.split_once('/').is_some_and(|(space, name)| is_name(space) && is_name(name))
}

fn read_notify<'a>(r: &mut DocumentReader<'a>, item: &mut Item<'a>) -> NotifyParams {
    let mut notify = NotifyParams::default();
    let mut r = Checked::read(r, item, &mut [&mut notify]);
    r.need(&["secret", "peers"]);
    if r.has("secret")
        && (!Path::new(&notify.secret).is_absolute() || notify.secret.contains(char::is_control))
    {
        r.wrong("secret", "the whole path of a file: serve reads it, wherever it was started");
    }
    if r.has("peers") && notify.peers.is_empty() {
        r.wrong("peers", "whom to tell and to believe, such as \"10.0.0.0/8\"");
    }
    if let Some(peer) = notify.networks().into_iter().find_map(Result::err) {
        r.wrong(
            "peers",
            format!("{peer:?} is neither an address nor a network such as 10.0.0.0/8"),
        );
    }
    notify
}

impl Config {
    /// Whether it asks for millpond's own DCTCP.
    pub fn wants_dctcp(&self) -> bool {
        self.host.dctcp
            || self.limits.iter().any(|limit| limit.target.congestion.as_deref() == Some(DCTCP))
    }

    /// Whether it asks for nothing that stays installed.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.floors.is_empty() && self.notify.is_none()
    }

    /// Reads a file's text. `others` are the names of limits that are installed from other files,
    /// which scopes may name.
    ///
    /// # Errors
    /// All errors of syntax, keys and values; a name or a cgroup that two limits have; a scope that
    /// is no limit; a second `[[notify]]`.
    pub fn parse(name: &str, text: &str, others: &[&str]) -> Result<Config, Errors> {
        Config::read(name, text, Some(others))
    }

    /// Reads the text of one file of several; its scopes may be limits of any of them.
    ///
    /// # Errors
    /// As [`Config::parse`], but for scopes that are no limit.
    pub fn parse_part(name: &str, text: &str) -> Result<Config, Errors> {
        Config::read(name, text, None)
    }

    fn read(name: &str, text: &str, others: Option<&[&str]>) -> Result<Config, Errors> {
        Document::parse(name, text).read(|r| {
            let mut config = Config::default();
            r.top(&mut config.host);
            config.read_limits(r, others);
            for mut item in r.tables("floor") {
                let mut floor = FloorParams::default();
                let mut r = Checked::read(r, &mut item, &mut [&mut floor]);
                check_targets(&mut r, floor.names());
                if floor.target().is_none() {
                    r.missing("cgroup");
                }
                if !RATES.contains(&floor.rate.bps()) {
                    r.wrong("rate", format!("{} cannot be held", floor.rate));
                }
                config.floors.push(floor);
            }
            for mut item in r.tables("notify") {
                if config.notify.is_some() {
                    let message = "there is another [[notify]] above: a host has one";
                    r.wrong(&item, "port", message, None);
                }
                config.notify = Some(read_notify(r, &mut item));
            }
            config
        })
    }

    fn read_limits(&mut self, r: &mut DocumentReader<'_>, others: Option<&[&str]>) {
        let (mut items, mut names) = (r.tables("limit"), HashSet::new());
        let mut cgroups: HashMap<Target, String> = HashMap::new();
        for item in &mut items {
            let mut limit = Limit::default();
            let mut r = read_limit(r, item, &mut limit);
            let name = limit.name().to_string();
            check_name(&mut r, &name);
            check_targets(&mut r, limit.target.names());
            if limit.target.pid == Some(0) {
                r.wrong("pid", "no process has the number 0");
            }
            if !names.insert(name.clone()) {
                r.wrong("name", format!("there is another limit \"{name}\" above"));
            }
            let target = limit.cgroup();
            if let Some(other) = target.as_ref().and_then(|target| cgroups.get(target)) {
                let key = TARGETS.into_iter().find(|key| r.has(key)).unwrap_or("cgroup");
                let message = format!("limit \"{other}\" above has this cgroup already");
                let help =
                    "a cgroup has one limit; give it direction = \"both\", or further scopes";
                r.wrong_help(key, message, help);
            }
            if let Some(target) = target {
                cgroups.entry(target).or_insert(name);
            }
            self.limits.push(limit);
        }
        check_scopes(r, &items, &self.limits, others);
    }

    /// Notes for the user, beside what is wrong.
    pub fn notes(&self) -> Vec<String> {
        let queues = |limit: &Limit| -> Vec<LimitParams> {
            (0..2).filter(|&d| limit.covers(d)).map(|d| limit.queue(d)).collect()
        };
        let own = || self.limits.iter().filter(|l| l.queue.has_own_thresholds());
        let exceeds = |l: &&Limit| queues(l).iter().any(|queue| queue.excess() > EXCESS);
        let within: Vec<&str> = own().filter(|l| !exceeds(l)).map(Limit::name).collect();
        let beyond: Vec<String> = own()
            .filter(exceeds)
            .map(|l| {
                let most = queues(l).iter().map(LimitParams::excess).fold(0.0, f64::max);
                format!("{} ({:.0} %)", l.name(), 100.0 * most)
            })
            .collect();
        let mut notes = Vec::new();
        if !within.is_empty() {
            notes.push(format!(
                "at low rates burst, mark and drop are smaller than published where they are not \
                 set, so that no second carries 3 % more: {}",
                first_names(&within)
            ));
        }
        if !beyond.is_empty() {
            notes.push(format!(
                "at rates as low as these a few packets are more than 3 % of a second: the first \
                 second of a burst may carry up to this much more: {}",
                first_names(&beyond)
            ));
        }
        notes
    }

    /// As a file that is read back as the same.
    pub fn to_text(&self) -> String {
        let mut out = written(&self.host, &HostParams::default());
        for limit in &self.limits {
            out += "\n[[limit]]\n";
            out += &written(&limit.target, &TargetParams::default());
            out += &written(&limit.queue, &LimitParams::default());
        }
        for floor in &self.floors {
            out += "\n[[floor]]\n";
            out += &written(floor, &FloorParams::default());
        }
        if let Some(notify) = &self.notify {
            out += "\n[[notify]]\n";
            out += &written(notify, &NotifyParams::default());
        }
        out
    }
}

/// The first three names of a list, and how many follow.
fn first_names<T: AsRef<str>>(names: &[T]) -> String {
    let named: Vec<&str> = names.iter().take(3).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(3);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &rest
}

/// Scopes exist, in this file or among `others` if these are known, and do not go in circles.
fn check_scopes<'a>(
    r: &mut DocumentReader<'a>,
    items: &[Item<'a>],
    limits: &[Limit],
    others: Option<&[&str]>,
) {
    let is_open = others.is_none();
    let others = others.unwrap_or_default();
    let names: Vec<&str> = limits.iter().map(Limit::name).chain(others.iter().copied()).collect();
    let known: HashSet<&str> = names.iter().copied().collect();
    let all: Vec<_> = limits.iter().map(Limit::named).collect();
    for ((limit, item), is_on_circle) in limits.iter().zip(items).zip(on_circles(&all)) {
        let unknown = |scope: &&String| !is_open && !known.contains(scope.as_str());
        for scope in limit.target.scopes.iter().filter(unknown) {
            let others = names.iter().copied().filter(|name| *name != limit.name());
            // A list of thousands helps nobody, and takes its time for each error.
            let others: Vec<&str> = others.take(CANDIDATES).collect();
            r.unknown(item, "scopes", "limit", scope, &others);
        }
        if is_on_circle {
            let message = format!("\"{}\" would be a scope of itself", limit.name());
            r.wrong(item, "scopes", message, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
kick = "20ms"
[[limit]]
name = "batch"
cgroup = "batch"
rate = "1gbit"
direction = "both"
congestion = "mp_dctcp"
ingress-mode = "mark-only"
scopes = ["uplink"]
mark = "60KB"
[[limit]]
name = "uplink"
rate = "8Gbps"
[[floor]]
cgroup = "ssh"
rate = "10Mbps"
[[notify]]
port = 7000
secret = "/etc/secret"
peers = ["10.0.0.0/8", "fd00::1"]
"#;

    #[test]
    fn reads_and_writes_the_same() {
        let config = Config::parse("a.toml", GOOD, &[]).unwrap();
        assert_eq!(config.limits.len(), 2);
        assert!(config.limits[0].queue(1).mark_only && !config.limits[0].queue(0).mark_only);
        assert!(config.limits[1].covers(0) && config.limits[1].covers(1));
        assert_eq!(
            Config::parse("b.toml", &config.to_text(), &[]).unwrap(),
            config,
            "{}",
            config.to_text()
        );
    }

    /// A file's text as an earlier version kept it in its maps, with every key.
    const INSTALLED: &str = include_str!("../../tests/state/limit-installed.toml");

    #[test]
    fn what_is_installed_is_read_and_written_the_same() {
        let config = Config::parse("limits.toml", INSTALLED, &[]).unwrap();
        let (_provenance, text) = INSTALLED.split_once('\n').unwrap();
        assert_eq!(config.to_text(), text);
        let batch = &config.limits[0];
        assert_eq!((batch.target.ingress_mode, batch.queue.bypass), (IngressMode::MarkOnly, 1.5));
        assert!(batch.covers(0) && batch.covers(1) && batch.queue.observe);
    }

    fn errors(text: &str) -> String {
        Config::parse("a.toml", text, &["far"]).unwrap_err().to_string()
    }

    fn has(text: &str, what: &str) {
        let said = errors(text);
        assert!(said.contains(what), "{what:?} not in {said}");
    }

    #[test]
    fn errors_have_places_and_repairs() {
        has(
            "[[limit]]\nname = \"a\"\nrate = \"10 furlongs\"\n",
            "a.toml:3:8: `limit.rate`: \"10 furlongs\": \"furlongs\" is not a unit",
        );
        has(
            "[[limit]]\nname = \"a\"\nrate = \"0Gbps\"\n",
            "a.toml:3:8: `rate`: 0bps cannot be held (from 8Kbps to 1Tbps)",
        );
        has("[[limit]]\nname = \"a\"\nrate = \"5000Tbps\"\n", "a.toml:3:8");
        has(
            "[[limit]]\nname = \"a\"\nrat = \"1Gbps\"\n",
            "a.toml:3:1: unknown key `rat` in [limit] (did you mean `rate`?)",
        );
        has("[[limit]]\nrate = \"1Gbps\"\n", "[[limit]] needs `name`");
        has(
            "[[limit]]\nname = \"a\"\ncgroup = \"x\"\n[[limit]]\nname = \"b\"\ncgroup = \"x\"\n",
            "a.toml:6:10: `cgroup`: limit \"a\" above",
        );
        has(
            "[[limit]]\nname = \"a\"\n[[limit]]\nname = \"a\"\n",
            "a.toml:4:8: `name`: there is another",
        );
        has(
            "[[limit]]\nname = \"a\"\nscopes = [\"upling\"]\n[[limit]]\nname = \"uplink\"\n",
            "a.toml:3:10: there is no limit \"upling\" (did you mean `uplink`?)",
        );
        has(
            "[[limit]]\nname = \"a\"\nscopes = [\"b\"]\n[[limit]]\nname = \"b\"\nscopes = \
             [\"a\"]\n",
            "would be a scope of itself",
        );
        has("[[limit]]\nname = \"a\"\nmark = \"2MB\"\n", "a.toml:3:8: `mark`");
        has(
            "[[limit]]\nname = \"a\"\ncgroup = \"x\"\nunit = \"y\"\n",
            "a.toml:4:8: `unit`: a limit has one cgroup",
        );
        has(
            "[[limit]]\nname = \"a\"\ncongestion = \"bbr\"\n",
            "a.toml:3:14: `congestion`: only a limit with a cgroup",
        );
        has(
            "[[limit]]\nname = \"a\"\ncgroup = \"x\"\ncongestion = \"no way\"\n",
            "a.toml:4:14: `congestion`",
        );
        has("[[limit]]\nname = \"a\"\npod = \"web\"\n", "a.toml:3:7: `pod`: a pod has a namespace");
        has("[[limit]]\nname = \"a\"\nprofile = \"etd\"\n", "edt");
        has("[[limit]\n", "a.toml:1:");
        has("[[floor]]\nrate = \"1Mbps\"\n", "[[floor]] needs `cgroup`");
        assert!(
            Config::parse("a", "[[limit]]\nname = \"a\"\nscopes = [\"far\"]\n", &["far"]).is_ok()
        );
    }

    #[test]
    fn values_that_make_no_sense_are_errors() {
        for (line, what) in [
            ("cgroup = \"../../../etc\"", "a.toml:3:10: `cgroup`: leads out of the cgroup v2"),
            ("cgroup = \"/a/../..\"", "a.toml:3:10: `cgroup`: leads out"),
            ("cgroup = \"\"", "a.toml:3:10: `cgroup`: is empty"),
            ("container = \"\"", "a.toml:3:13: `container`: is empty"),
            ("unit = \"a/b.service\"", "a.toml:3:8: `unit`: a name has no slash"),
            ("pid = 0", "a.toml:3:7: `pid`: no process"),
            ("burst = \"1B\"", "a.toml:3:9: `burst`: 1B is less than a packet"),
            ("mark = \"0B\"", "a.toml:3:8: `mark`"),
            ("drop = \"1KB\"", "a.toml:3:8: `drop`"),
            ("burst = \"-1KB\"", "a.toml:3:9"),
            ("framing = \"1MB\"", "a.toml:3:11: `framing`: a packet has at most 256B"),
            ("reference-rtt = \"0us\"", "a.toml:3:17: `reference-rtt`"),
        ] {
            has(&format!("[[limit]]\nname = \"a\"\n{line}\n"), what);
        }
        has("[[floor]]\ncgroup = \"../x\"\n", "a.toml:2:10: `cgroup`: leads out");
    }

    #[test]
    fn errors_of_notices_have_places() {
        let notify = "[[notify]]\nsecret = \"/s\"\npeers = [\"10.0.0.1\"]\n";
        has("[[notify]]\npeers = [\"10.0.0.1\"]\n", "[[notify]] needs `secret`");
        has("[[notify]]\nsecret = \"/s\"\n", "[[notify]] needs `peers`");
        has(
            &notify.replace("10.0.0.1", "10.0.0.0/33"),
            "a.toml:3:9: `peers`: \"10.0.0.0/33\" is neither",
        );
        has(&notify.replace("\"10.0.0.1\"", ""), "a.toml:3:9: `peers`: whom to tell");
        has(&notify.replace("/s", "s"), "a.toml:2:10: `secret`: the whole path");
        has(&format!("{notify}port = 0\n"), "a.toml:4:8: `notify.port`: expected 1 to 65535");
        has(&format!("{notify}{notify}"), "there is another [[notify]] above");
    }

    /// A chain of scopes as long as a file allows, and one that ends where it began.
    #[test]
    fn long_chains_of_scopes_are_walked() {
        let chain = |n: usize, last: &str| {
            let limit = |i: usize| {
                let scope = if i + 1 < n { format!("l{}", i + 1) } else { last.to_string() };
                format!("[[limit]]\nname = \"l{i}\"\nscopes = [\"{scope}\"]\n")
            };
            Config::parse("a.toml", &(0..n).map(limit).collect::<String>(), &["far"])
        };
        assert_eq!(chain(300, "far").unwrap().limits.len(), 300);
        let said = chain(3, "l1").unwrap_err().to_string();
        assert!(said.contains("\"l1\" would be") && !said.contains("\"l0\" would be"), "{said}");
    }

    #[test]
    fn low_rates_are_noted_once() {
        let limits = |n: usize, rate: &str| {
            let limit = |i| format!("[[limit]]\nname = \"l{i}\"\nrate = \"{rate}\"\n");
            Config::parse("a.toml", &(0..n).map(limit).collect::<String>(), &[]).unwrap()
        };
        assert!(limits(3, "1Gbps").notes().is_empty());
        assert!(limits(3, "100Mbps").notes()[0].ends_with(": l0, l1, l2"));
        assert!(limits(100, "100Mbps").notes()[0].ends_with(": l0, l1, l2 and 97 more"));
    }

    #[test]
    fn three_percent_are_promised_only_where_they_hold() {
        for direction in ["egress", "ingress", "both"] {
            let notes = |rate: &str| {
                let text = format!(
                    "[[limit]]\nname = \"l\"\ncgroup = \"x\"\nrate = \"{rate}\"\ndirection = \
                     \"{direction}\"\n"
                );
                Config::parse("a.toml", &text, &[]).unwrap().notes().join("\n")
            };
            assert_eq!(notes("1Gbps"), "");
            assert!(notes("100Mbps").contains("no second carries 3 % more: l"), "{direction}");
            let slow = notes("800Kbps");
            assert!(!slow.contains("no second") && slow.contains("more: l ("), "{slow}");
        }
    }

    #[test]
    fn set_changes_keys_by_name() {
        let mut limit = Config::parse("a.toml", GOOD, &[]).unwrap().limits[0].clone();
        limit.set(&[("rate".into(), "5Mbps".into())]).unwrap();
        assert_eq!(limit.queue.rate, Rate(5_000_000));
        let wrong = limit
            .set(&[("rate".into(), "5 parsecs".into()), ("name".into(), "x".into())])
            .unwrap_err();
        assert!(wrong.to_string().contains("set:2:8"), "{wrong}");
        assert_eq!(limit.queue.rate, Rate(5_000_000));
    }
}
