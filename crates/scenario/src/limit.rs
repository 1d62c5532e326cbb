//! Limits: which hosts hold which of their traffic to which bandwidth (`[[limit]]`).
//!
//! A limit without hosts is a scope: it has a virtual queue on each host where another limit names
//! it, and all that name it there share that queue. Every host has its own virtual queue, since no
//! two machines share one.
//!
//! Follows NRM (Linux Plumbers Conference 2018) for `nrm`, and Linux's `tc-htb` for `htb`, its
//! comparator; what they decide is `core::limit`.
//!
//! Invariant: a plan's limits name only hosts, classes of traffic and scopes that exist.

use crate::error::{Report, near_or};
use crate::settings::Settings;
use crate::settings::hosts::HostSet;
use crate::settings::limit::{HtbParams, LimitCommon, LimitKind, LimitSettings};
use crate::topology::Topology;
pub use millpond_core::limit::IngressMode;
use millpond_core::limit::{Direction, Form, LimitParams, RATES, Settings as Integers, flags};
use millpond_core::{Bytes, Rate};
use std::collections::{BTreeSet, HashMap};

#[derive(Clone, Debug)]
pub struct LimitPlan {
    pub name: String,
    /// The mechanism that it decides with.
    pub kind: LimitKind,
    /// The hosts that have it by themselves, in ascending order.
    pub hosts: Vec<u32>,
    /// The classes of traffic that belong to it; `None`: all.
    pub classes: Option<Vec<u16>>,
    pub egress: bool,
    pub ingress: bool,
    /// On what arrives it only marks.
    pub ingress_marks_only: bool,
    /// Itself and the limits that its packets are charged to as well: indices in the plan's list,
    /// itself first.
    pub scopes: Vec<u16>,
}

impl LimitPlan {
    pub fn rate(&self) -> Rate {
        match &self.kind {
            LimitKind::Nrm(p) => p.rate,
            LimitKind::Htb(p) => p.rate,
        }
    }

    pub fn integers(&self, ingress: bool) -> Integers {
        match &self.kind {
            LimitKind::Nrm(p) => {
                let mut integers = p.settings();
                if ingress && self.ingress_marks_only {
                    integers.flags |= flags::MARK_ONLY;
                }
                integers
            }
            LimitKind::Htb(p) => htb(p),
        }
    }
}

/// A class of HTB as a virtual queue in the form of departure times: its tokens are what that may
/// save up, and it never drops by itself.
fn htb(p: &HtbParams) -> Integers {
    let tick = p.rate.bps() / 8_000_000_000;
    let burst = p.burst.unwrap_or(Bytes(1600 + tick));
    let largest = Some(Bytes(1 << 39));
    LimitParams {
        rate: p.rate,
        burst: Some(burst),
        form: Form::Edt,
        mark: largest,
        drop: largest,
        ..LimitParams::default()
    }
    .settings()
}

/// Limits are numbered by 16 bits.
const LIMITS_MAX: usize = 65_535;

/// More virtual queues than this for one packet are taken for a slip of the pen.
const SCOPES_MAX: usize = 8;

/// The plan of all limits. `classes` are the names of the plan's classes of traffic.
pub(crate) fn limits(
    s: &Settings,
    topology: &Topology,
    classes: &[String],
    report: &mut Report,
) -> Vec<LimitPlan> {
    if s.limits.len() > LIMITS_MAX {
        report.wrong("limit", format!("{} limits; {LIMITS_MAX} is the most", s.limits.len()));
        return Vec::new();
    }
    let names = Names::of(s.limits.iter().map(LimitSettings::name).collect());
    let classes = Names::of(classes.to_vec());
    let mut plans = Vec::new();
    for (i, limit) in s.limits.iter().enumerate() {
        let check = Check { s, report, name: &names.list[i] };
        plans.push(check.plan(limit, i, topology, &classes, &names));
    }
    // A scope's own scopes are charged, too.
    let direct: Vec<Vec<u16>> = plans.iter().map(|p: &LimitPlan| p.scopes.clone()).collect();
    for (i, plan) in plans.iter_mut().enumerate() {
        let mut all = vec![i as u16];
        let mut next = 0;
        // Beyond the most nobody asks how many they are.
        while let Some(&scope) = all.get(next).filter(|_| next <= SCOPES_MAX) {
            all.extend(
                direct[scope as usize]
                    .iter()
                    .copied()
                    .filter(|s| !all.contains(s))
                    .collect::<Vec<_>>(),
            );
            next += 1;
        }
        if all.len() > SCOPES_MAX {
            let message = format!("more than {SCOPES_MAX} limits are charged for each packet");
            let at = report.at(&format!("limit.{}.scopes", plan.name));
            report.value(at, "limit.scopes", message);
        }
        plan.scopes = all;
    }
    let on_hosts = plans.iter().filter(|p| !p.hosts.is_empty());
    let charged: BTreeSet<u16> = on_hosts.flat_map(|p| p.scopes.iter().copied()).collect();
    for (i, plan) in plans.iter().enumerate().filter(|(_, p)| p.hosts.is_empty()) {
        if !charged.contains(&(i as u16)) {
            report.warn(format!(
                "limit {:?} has no hosts, and no limit that has any names it",
                plan.name
            ));
        }
    }
    plans
}

/// Names with their numbers; of equal ones the first counts.
struct Names {
    list: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Names {
    fn of(list: Vec<String>) -> Names {
        let numbers = list.iter().enumerate().rev().map(|(i, name)| (name.clone(), i)).collect();
        Names { list, numbers }
    }
    fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }
}

struct Check<'a> {
    s: &'a Settings,
    report: &'a mut Report,
    name: &'a str,
}

impl Check<'_> {
    fn wrong(&mut self, key: &str, message: String) {
        let path = format!("limit.{}.{key}", self.name);
        self.report.wrong(&path, message);
    }

    fn unknown(&mut self, key: &str, what: &str, name: &str, known: &[String]) {
        let help = near_or(name, known.iter().map(String::as_str), || match known {
            [] => "there is none".into(),
            _ => format!("there are {}", known.join(", ")),
        });
        let path = format!("limit.{}.{key}", self.name);
        self.report.unknown(&path, what, name, Some(help));
    }

    fn plan(
        mut self,
        limit: &LimitSettings,
        index: usize,
        topology: &Topology,
        classes: &Names,
        names: &Names,
    ) -> LimitPlan {
        let common = &limit.common;
        if self.name.trim().is_empty() {
            self.wrong("name", "expected a name".into());
        }
        if names.number(self.name) != Some(index) {
            self.wrong(
                "name",
                format!("two limits are called {:?}; give each its own name", self.name),
            );
        }
        let egress = common.direction != Direction::Ingress;
        let ingress = common.direction != Direction::Egress;
        match &limit.kind {
            LimitKind::Nrm(p) => self.nrm(p, ingress),
            LimitKind::Htb(p) => self.htb(p, common),
        }
        if common.ingress_mode == IngressMode::MarkOnly && !ingress {
            self.wrong(
                "ingress-mode",
                "has no effect on what leaves; set direction to \"ingress\" or \"both\"".into(),
            );
        }
        let classes_here = (!common.traffic.is_empty()).then(|| {
            let mut list = Vec::new();
            for name in &common.traffic {
                match classes.number(name) {
                    Some(class) => list.push(class as u16),
                    None => self.unknown("traffic", "traffic", name, &classes.list),
                }
            }
            list
        });
        let mut scopes = Vec::new();
        for name in &common.scopes {
            match names.number(name) {
                Some(scope) if matches!(self.s.limits[scope].kind, LimitKind::Htb(_)) => {
                    self.wrong("scopes", format!("{name:?} is of kind \"htb\", which is no scope"));
                }
                Some(scope) => scopes.push(scope as u16),
                None => self.unknown("scopes", "limit", name, &names.list),
            }
        }
        LimitPlan {
            name: self.name.to_string(),
            kind: limit.kind.clone(),
            hosts: self.hosts(common.hosts.as_ref(), topology.hosts),
            classes: classes_here,
            egress,
            ingress,
            ingress_marks_only: common.ingress_mode == IngressMode::MarkOnly,
            scopes,
        }
    }

    fn hosts(&mut self, set: Option<&HostSet>, hosts: u32) -> Vec<u32> {
        match set.map(|set| set.members(hosts)) {
            None => Vec::new(),
            Some(Ok(members)) => members.unwrap_or_else(|| (0..hosts).collect()),
            Some(Err(message)) => {
                self.wrong("hosts", message);
                Vec::new()
            }
        }
    }

    fn rate(&mut self, rate: Rate) {
        if !RATES.contains(&rate.bps()) {
            let (least, most) = (Rate(*RATES.start()), Rate(*RATES.end()));
            self.wrong("rate", format!("{rate} is no rate of a limit; {least} to {most} are"));
        }
    }

    fn nrm(&mut self, p: &LimitParams, ingress: bool) {
        self.rate(p.rate);
        if p.form == Form::Edt && ingress {
            self.wrong("form", "\"edt\" delays what leaves; what arrives cannot be delayed".into());
        }
        if !(p.bypass >= 0.0 && p.bypass <= millpond_core::limit::FLOOR as f64) {
            self.wrong(
                "bypass",
                format!("{} is no multiple; 0 to {} are", p.bypass, millpond_core::limit::FLOOR),
            );
        }
        let integers = p.settings();
        if integers.mark >= integers.drop_large {
            let key = if p.drop.is_some() { "drop" } else { "mark" };
            self.wrong(key, "mark must be below drop by more than the reserve".into());
        }
        let segment = self.s.host.segment_offload.map_or(0, Bytes::get);
        if p.drop.is_some_and(|drop| drop.get() < 3 * segment) {
            let text = format!(
                "limit {:?}: a drop threshold below three super-segments ({} bytes) lets one of \
                 them cross from mark to drop",
                self.name,
                3 * segment
            );
            self.report.warn(text);
        }
    }

    fn htb(&mut self, p: &HtbParams, common: &LimitCommon) {
        self.rate(p.rate);
        if common.direction != Direction::Egress {
            self.wrong("direction", "htb is a qdisc: it sees only what leaves".into());
        }
        if !common.scopes.is_empty() {
            self.wrong("scopes", "htb has no scopes here: one class, one rate".into());
        }
        if common.hosts.is_none() {
            self.wrong("hosts", "htb needs hosts: it is no scope".into());
        }
        if p.queue == 0 {
            self.wrong("queue", "must be at least 1".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn plan(limits: &str) -> Result<crate::plan::Plan, String> {
        let text = format!(
            "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = \
             4\n[[traffic]]\nname = \"bulk\"\nkind = \"permutation\"\n[[traffic]]\nname = \
             \"small\"\nkind = \"permutation\"\nsize = 100\n{limits}"
        );
        let scenario = Scenario::parse("test", &text).map_err(|e| e.to_string())?;
        scenario.plan(None, &[], None).map_err(|e| e.to_string())
    }

    #[test]
    fn hosts_classes_and_scopes_are_found() {
        let p = plan(
            "[[limit]]\nname = \"batch\"\nhosts = [\"0..1\", \"3\"]\ntraffic = [\"bulk\"]\nscopes \
             = [\"uplink\"]\nrate = \"1Gbps\"\n[[limit]]\nname = \"uplink\"\nrate = \
             \"5Gbps\"\ndirection = \"both\"\nscopes = [\"rack\"]\n[[limit]]\nname = \
             \"rack\"\nrate = \"9Gbps\"\n",
        )
        .unwrap();
        assert_eq!(p.limits[0].hosts, [0, 1, 3]);
        assert_eq!(
            (p.limits[0].classes.clone(), p.limits[0].scopes.clone()),
            (Some(vec![0]), vec![0, 1, 2])
        );
        assert!(p.limits[1].hosts.is_empty() && p.limits[1].ingress && p.limits[1].egress);
        assert_eq!(p.warnings, Vec::<String>::new());
        let again = Scenario::parse("again", &p.resolved).unwrap().plan(None, &[], None).unwrap();
        assert_eq!(again.resolved, p.resolved);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_near() {
        let says = |limit: &str, what: &[&str]| {
            let found = plan(&format!("[[limit]]\nname = \"a\"\n{limit}\n")).unwrap_err();
            what.iter().for_each(|w| assert!(found.contains(w), "{w:?} not in {found}"));
        };
        says("hosts = \"0..9\"", &["9 is no host", "limit.a.hosts"]);
        says("hosts = \"3..1\"", &["backwards"]);
        says("hosts = \"one\"", &["ranges such as"]);
        says("hosts = 0\ntraffic = [\"bukl\"]", &["bukl", "did you mean `bulk`"]);
        says(
            "hosts = 0\nscopes = [\"uplnk\"]\n[[limit]]\nname = \"uplink\"",
            &["did you mean `uplink`"],
        );
        says("hosts = 0\nrate = \"10 furlongs\"", &["limit.a.rate"]);
        says("hosts = 0\nrate = \"1bps\"", &["no rate of a limit"]);
        says("hosts = 0\nrat = \"1Gbps\"", &["rat", "did you mean `rate`"]);
        says("hosts = 0\nqueue = 5", &["queue", "\"htb\""]);
        says("hosts = 0\nkind = \"htp\"", &["htp", "htb"]);
        says("hosts = 0\nmark = \"900KB\"", &["below drop"]);
        says("hosts = 0\nbypass = 5.0", &["bypass"]);
        says("hosts = 0\nform = \"edt\"\ndirection = \"both\"", &["cannot be delayed"]);
        says("hosts = 0\ningress-mode = \"mark-only\"", &["no effect"]);
        says("hosts = 0\nkind = \"htb\"\ndirection = \"ingress\"", &["only what leaves"]);
        says("hosts = 0\n[[limit]]\nname = \"a\"\nhosts = 1", &["two limits are called"]);
        assert!(plan("[[limit]]\nname = \"a\"\n").unwrap().warnings[0].contains("no hosts"));
    }

    #[test]
    fn a_class_of_htb_saves_up_one_packet() {
        let integers = htb(&HtbParams::default());
        assert_eq!(integers.burst, 1600 * 8, "nanoseconds at 1 Gb/s");
    }
}
