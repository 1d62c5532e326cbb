//! `[[limit]]` in guests: the command's own `millpond limit`, which the agent runs as the machine's
//! programs are run, and whose object is the one that holds cgroups on any host; and the kernel's
//! own HTB, by `tc`.
//!
//! A host with a limit runs its agent, and so the sockets that it opens, in the limit's cgroup.
//! With a limit of what arrives the agent listens there, so that the limit holds accepted sockets.
//! HTB has one class, of all that leaves the host. Counters are read by `millpond limit show` or
//! `tc` when the warm-up ends and when the run does.
//!
//! Invariant: a limit is in force before the plan's time begins.

use crate::calendar::Orders;
use crate::error::Error;
use crate::programs::with_own_path;
use millpond_agent::wire::{self, LINK, OWN_FOLDERS, Order};
use millpond_core::Time;
use millpond_lab::limits::of_host;
use millpond_scenario::limit::LimitPlan;
use millpond_scenario::plan::Plan;
use millpond_scenario::settings::limit::{HtbParams, LimitKind};

/// The numbers of these commands, beside those of the plan's programs.
pub const APPLY: u16 = u16::MAX;
const SHOW: u16 = u16::MAX - 1;

/// The number of a host's own limit, if it has one.
fn own(plan: &Plan, host: u32) -> Option<usize> {
    plan.limits.iter().position(|limit| limit.hosts.binary_search(&host).is_ok())
}

/// Whether a host has a limit of its own.
pub fn is_limited(plan: &Plan, host: u32) -> bool {
    own(plan, host).is_some()
}

/// Whether a host has a limit of what arrives.
pub fn holds_arrivals(plan: &Plan, host: u32) -> bool {
    own(plan, host).is_some_and(|number| plan.limits[number].ingress)
}

/// Refuses limits that guests cannot have.
pub fn check(plan: &Plan) -> Result<(), Error> {
    if plan.limits.is_empty() {
        return Ok(());
    }
    let lacks = |key: &str, reason: &str| {
        Err(Error::Unsupported { key: key.into(), reason: reason.into() })
    };
    if plan.limits.iter().any(|limit| limit.classes.is_some() && !limit.hosts.is_empty()) {
        let reason = "all sockets of a guest are of one cgroup: limit all of a host's traffic";
        return lacks("limit.traffic", reason);
    }
    let is_framed = |limit: &&LimitPlan| match &limit.kind {
        LimitKind::Htb(htb) => htb.framing == HtbParams::default().framing,
        LimitKind::Nrm(_) => true,
    };
    if !plan.limits.iter().all(|limit| is_framed(&limit)) {
        return lacks("limit.framing", "the kernel's HTB charges an Ethernet header");
    }
    if !plan.limits.iter().any(|limit| matches!(limit.kind, LimitKind::Nrm(_))) {
        return Ok(());
    }
    let own = std::env::current_exe().unwrap_or_default();
    let is_hidden = |folder: &&&str| own.starts_with(folder);
    if !own.ends_with("millpond") {
        return lacks("limit", "guests run the command `millpond limit`: use the command");
    }
    match OWN_FOLDERS.iter().find(is_hidden) {
        None => Ok(()),
        Some(folder) => {
            let own = own.display();
            lacks("limit", &format!("guests run {own}, and have a {folder} of their own: move it"))
        }
    }
}

/// The command that puts a host's limit in force; `None`: it has none.
pub fn apply(plan: &Plan, host: u32) -> Option<String> {
    let number = own(plan, host)?;
    if let LimitKind::Htb(htb) = &plan.limits[number].kind {
        return Some(classes(number, htb));
    }
    let config = of_host(plan, host).to_text();
    // The agent is the guest's first process.
    Some(with_own_path(format!(
        "set -e\nmkdir /sys/fs/cgroup/limit{number}\nprintf %s '{config}' >/run/limits.toml\n\
         millpond limit apply /run/limits.toml >&2\n\
         echo 1 >/sys/fs/cgroup/limit{number}/cgroup.procs"
    )))
}

/// The commands that make HTB with one class, whose minor number is the limit's and one.
fn classes(number: usize, htb: &HtbParams) -> String {
    let class = number + 1;
    let burst = htb.burst.map_or(String::new(), |it| format!(" burst {0}b cburst {0}b", it.0));
    let (rate, queue) = (htb.rate.bps(), htb.queue);
    format!(
        "set -e\ntc qdisc add dev {LINK} root handle 1: htb default {class:x}\n\
         tc class add dev {LINK} parent 1: classid 1:{class:x} htb rate {rate}bit{burst}\n\
         tc qdisc add dev {LINK} parent 1:{class:x} handle 2: pfifo limit {queue}"
    )
}

/// The counts of limits, and their time.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub at: Time,
    /// The output of `millpond limit show --json`, of each host with such a limit.
    pub texts: Vec<String>,
    /// Of each host with a class of HTB.
    pub classes: Vec<Class>,
}

/// Counters of a class of HTB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    pub limit: u16,
    /// Bytes that have left.
    pub bytes: u64,
    /// Packets that have left; super-segments count as what they are cut into.
    pub packets: u64,
    /// Packets that its queue has refused.
    pub dropped: u64,
}

impl Class {
    /// Reads what `tc -s class show` prints: `None` if that is no class.
    fn read(text: &str) -> Option<Class> {
        let (_, class) = text.split_once("class htb 1:")?;
        let minor = u16::from_str_radix(class.split_whitespace().next()?, 16).ok()?;
        let (_, sent) = text.split_once("Sent ")?;
        let mut numbers =
            sent.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        let [bytes, packets, dropped] = [(); 3].map(|()| numbers.next());
        let (bytes, packets, dropped) = (bytes?, packets?, dropped?);
        Some(Class { limit: minor.checked_sub(1)?, bytes, packets, dropped })
    }
}

pub struct Reader<'a> {
    plan: &'a Plan,
    hosts: Vec<u32>,
    /// At the end of the warm-up, and of the run.
    pub readings: [Option<Reading>; 2],
    /// The reading under way: which, what was printed by host, and hosts that have not ended.
    asked: Option<(usize, Vec<String>, usize)>,
}

impl<'a> Reader<'a> {
    pub fn new(plan: &'a Plan) -> Reader<'a> {
        let hosts = (0..plan.topology.hosts).filter(|host| own(plan, *host).is_some()).collect();
        Reader { plan, hosts, readings: [None, None], asked: None }
    }

    /// When the first reading is due, if it is.
    pub fn next(&self) -> Option<Time> {
        let is_due = !self.hosts.is_empty() && self.readings[0].is_none() && self.asked.is_none();
        is_due.then_some(self.plan.warm_up)
    }

    pub fn on_time(&mut self, now: Time, orders: &mut Orders) {
        if self.next().is_some_and(|at| at <= now) {
            self.ask(0, now, orders);
        }
    }

    /// The run is over: asks for the last reading; whether it is there.
    pub fn finish(&mut self, now: Time, orders: &mut Orders) -> bool {
        if self.hosts.is_empty() || self.readings[1].is_some() {
            return true;
        }
        if self.asked.is_none() {
            self.ask(1, now, orders);
        }
        false
    }

    fn ask(&mut self, which: usize, now: Time, orders: &mut Orders) {
        self.asked = Some((which, vec![String::new(); self.hosts.len()], self.hosts.len()));
        for host in &self.hosts {
            let kind = own(self.plan, *host).map(|number| &self.plan.limits[number].kind);
            let command = match kind {
                Some(LimitKind::Htb(_)) => format!("tc -s class show dev {LINK}"),
                _ => with_own_path("millpond limit show --json --interval 0.001".into()),
            };
            let order = Order::Run { program: SHOW, command };
            orders.push((now, *host, wire::bytes(&order)));
        }
    }

    /// A command has printed something; whether it was this one's.
    pub fn wrote(&mut self, host: u32, program: u16, stream: u8, bytes: &[u8]) -> bool {
        if program == SHOW
            && stream == 1
            && let Ok(at) = self.hosts.binary_search(&host)
            && let Some((_, texts, _)) = &mut self.asked
        {
            texts[at].push_str(&String::from_utf8_lossy(bytes));
        }
        program == SHOW
    }

    /// A command has ended; whether it was this one's.
    pub fn exited(&mut self, now: Time, program: u16) -> bool {
        if program != SHOW {
            return false;
        }
        if let Some((_, _, left)) = &mut self.asked {
            *left -= 1;
        }
        if let Some((which, texts, _)) = self.asked.take_if(|(.., left)| *left == 0) {
            let classes = texts.iter().filter_map(|text| Class::read(text)).collect();
            let texts = texts.into_iter().filter(|text| Class::read(text).is_none()).collect();
            self.readings[which] = Some(Reading { at: now, texts, classes });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_read_as_tc_prints_it() {
        let text = "class htb 1:1 root leaf 2: prio 0 rate 1Gbit ceil 1Gbit burst 1375b cburst \
                    1375b \n Sent 1514 bytes 2 pkt (dropped 3, overlimits 4 requeues 0) \n \
                    backlog 0b 0p requeues 0\n lended: 2 borrowed: 0 giants: 0\n";
        let class = Class { limit: 0, bytes: 1514, packets: 2, dropped: 3 };
        assert_eq!(Class::read(text), Some(class));
        assert_eq!(Class::read("{\"limits\": []}"), None);
        assert_eq!(Class::read("class htb 1:zz Sent"), None);
    }
}
