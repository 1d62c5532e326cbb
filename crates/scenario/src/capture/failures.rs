//! The links that fail (`[[failure]]`), by the names of their ends or by their own.
//!
//! Parallel links are apart: a failure can name one of them. One that names their two ends alone is
//! all of theirs.
//!
//! Invariant: a plan names links that exist, and a failure names at least one.

use super::{node, unknown};
use crate::error::{Problem, Report, near_or};
use crate::settings::Settings;
use crate::settings::failure::{FailureParams, Losable};
use crate::topology::{Node, Topology};
use millpond_core::Time;

/// A link that is down for a while or loses packets, in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailurePlan {
    /// Index in [`Topology::links`].
    pub link: u32,
    pub at: Time,
    /// When it is up again (`Time::MAX`: never).
    pub until: Time,
    /// How long the switches at its ends take to notice either.
    pub detect: Time,
    /// How long the routes of the whole network take to follow either; `None`: they never do.
    pub converge: Option<Time>,
    /// Share of the packets that are lost.
    pub loss: f64,
    pub losable: Losable,
}

impl FailurePlan {
    /// Whether nothing gets through, so that the switches at its ends notice.
    pub fn is_outage(&self) -> bool {
        self.loss >= 1.0 && self.losable == Losable::All
    }
}

/// The plan of the links that fail.
pub(crate) fn failures(s: &Settings, topology: &Topology, report: &mut Report) -> Vec<FailurePlan> {
    let mut plans: Vec<FailurePlan> = Vec::new();
    for (i, f) in s.failures.iter().enumerate() {
        let places = s.places.clone();
        let place = |key: &str| places.near(&format!("failure.{i}.{key}"));
        let until = f.until.unwrap_or(Time::MAX);
        if until <= f.at {
            report.value(place("until"), "failure.until", format!("{until} is not after {}", f.at));
        }
        let wrong = |key: &str, problem, help| report.push(place(key), problem, help);
        let Some(links) = (Links { f, topology, wrong }).find() else { continue };
        let plan = FailurePlan {
            link: 0,
            at: f.at,
            until,
            detect: f.detect,
            converge: f.converge,
            loss: f.loss,
            losable: f.losable,
        };
        if let Some(converge) =
            f.converge.filter(|converge| plan.is_outage() && *converge < f.detect)
        {
            let (link, detect) = (f.site(), f.detect);
            report.warn(format!(
                "failure of {link}: the routes of the whole network change after {converge}, \
                 before the switches at the link's ends notice it (detect = {detect}); give a \
                 converge of {detect} or more, or \"never\""
            ));
        }
        // Both hosts of a link notice an outage; a loss on both halves of it would add up.
        let parts = |link: u32| match plan.is_outage() {
            true => topology.whole(link),
            false => vec![link],
        };
        let links = links.into_iter().flat_map(parts);
        let own: Vec<FailurePlan> = links.map(|link| FailurePlan { link, ..plan }).collect();
        warn_of_sums(f, &own, &plans, report);
        plans.extend(own);
    }
    plans
}

/// A loss beside another one on the same link at the same time adds up, which a list of losses
/// rarely means.
fn warn_of_sums(
    f: &FailureParams,
    own: &[FailurePlan],
    others: &[FailurePlan],
    report: &mut Report,
) {
    let is_loss = |plan: &FailurePlan| plan.loss > 0.0 && plan.loss < 1.0;
    let meets =
        |a: &FailurePlan, b: &FailurePlan| a.link == b.link && a.at < b.until && b.at < a.until;
    let both =
        |a: &FailurePlan| others.iter().copied().find(|b| is_loss(a) && is_loss(b) && meets(a, b));
    let Some((a, b)) = own.iter().find_map(|a| Some((a, both(a)?))) else { return };
    let sum = ((1.0 - (1.0 - a.loss) * (1.0 - b.loss)) * 1e6).round() / 1e6;
    report.warn(format!(
        "failure of {}: another failure of the same link has a loss of {} at the same time, and \
         both together lose {sum} of the packets; `number` chooses one of several parallel links",
        f.site(),
        b.loss
    ));
}

/// The search for the links of one failure, which reports a key, what is wrong with it, and what
/// would do.
struct Links<'a, F> {
    f: &'a FailureParams,
    topology: &'a Topology,
    wrong: F,
}

impl<F: FnMut(&str, Problem, Option<String>)> Links<'_, F> {
    fn value(&mut self, key: &str, message: impl Into<String>) -> Option<Vec<u32>> {
        let problem = Problem::Value { key: format!("failure.{key}"), message: message.into() };
        (self.wrong)(key, problem, None);
        None
    }

    /// The node that a key names.
    fn node(&mut self, key: &str, name: &str) -> Option<Node> {
        let node = node(self.topology, name);
        if node.is_none() {
            let (problem, help) = unknown(self.topology, name);
            (self.wrong)(key, problem, Some(help));
        }
        node
    }

    fn find(&mut self) -> Option<Vec<u32>> {
        if let Some(name) = &self.f.switch {
            return match self.f.link.is_empty() {
                true => self.of_switch(name),
                false => self.value("switch", "give a link or a switch, not both"),
            };
        }
        let (a, b) = match self.f.link.as_slice() {
            [name] => return self.named(name),
            [a, b] => (a, b),
            _ => {
                let message = "expected the two ends of a link, such as [\"leaf0\", \"spine1\"], \
                               or a link's name; or give a `switch`";
                return self.value("link", message);
            }
        };
        let (from, to) = (self.node("link", a), self.node("link", b));
        let links = self.topology.between(from?, to?);
        if links.is_empty() {
            return self.value("link", format!("there is no link between {a} and {b}"));
        }
        let Some(number) = self.f.number else { return Some(links) };
        let last = links.len() - 1;
        match links.get(number as usize) {
            Some(link) => Some(vec![*link]),
            None if last == 0 => {
                self.value("number", format!("there is one link between {a} and {b}, number 0"))
            }
            None => {
                let count = links.len();
                let text =
                    format!("there are {count} links between {a} and {b}, numbers 0 to {last}");
                self.value("number", text)
            }
        }
    }

    fn of_switch(&mut self, name: &str) -> Option<Vec<u32>> {
        match self.node("switch", name)? {
            _ if self.f.number.is_some() => {
                let text = format!("all links of {name} fail; give a `link` to choose one");
                self.value("number", text)
            }
            Node::Switch(switch) => Some(self.topology.wiring[switch as usize].clone()),
            Node::Host(_) => self.value("switch", format!("{name} is a host; give a `link`")),
        }
    }

    fn named(&mut self, name: &str) -> Option<Vec<u32>> {
        let names = &self.topology.link_names;
        let Some(link) = names.get(name) else {
            let help = near_or(name, names.keys().map(String::as_str), || {
                "a link is [\"leaf0\", \"spine1\"], or a `name` of a topology's list".into()
            });
            let problem = Problem::Unknown { what: "link".into(), name: name.into() };
            (self.wrong)("link", problem, Some(help));
            return None;
        };
        match self.f.number {
            Some(_) => self.value("number", format!("{name:?} is one link already")),
            None => Some(vec![*link]),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Plan, Scenario};
    use std::collections::BTreeSet;

    /// Three links between two switches, the last written the other way round and with a name.
    fn plan(failures: &str) -> Result<Plan, String> {
        let text = format!(
            "duration = \"1ms\"\n[topology]\nkind = \"file\"\ngraph = {{ hosts = 2, switches = \
             [{{ name = \"a\" }}, {{ name = \"b\" }}], links = [{{ a = \"host0\", b = \"a\", rate \
             = \"10Gbps\", delay = \"1us\" }}, {{ a = \"a\", b = \"b\", rate = \"10Gbps\", delay \
             = \"1us\" }}, {{ a = \"host1\", b = \"b\", rate = \"10Gbps\", delay = \"1us\" }}, {{ \
             a = \"a\", b = \"b\", rate = \"10Gbps\", delay = \"2us\" }}, {{ a = \"b\", b = \
             \"a\", rate = \"10Gbps\", delay = \"3us\", name = \"third\" }}] \
             }}\n{failures}[[traffic]]\nkind = \"flows\"\nrows = [{{ start = \"0us\", src = 0, \
             dst = 1, bytes = 1000 }}]\n"
        );
        let scenario = Scenario::parse("x.toml", &text).map_err(|e| e.to_string())?;
        scenario.plan(None, &[], None).map_err(|e| e.to_string())
    }

    /// The delays of the links that fail, in microseconds.
    fn delays(failure: &str) -> Vec<u64> {
        let plan = plan(&format!("[[failure]]\n{failure}\nat = \"0us\"\nloss = 0.1\n")).unwrap();
        let delay = |link: u32| plan.topology.links[link as usize].delay.as_ps() / 1_000_000;
        plan.failures.iter().map(|failure| delay(failure.link)).collect()
    }

    #[test]
    fn a_failure_names_one_link_of_a_bundle() {
        assert_eq!(delays("link = [\"a\", \"b\"]"), [1, 2, 3]);
        assert_eq!(delays("link = [\"a\", \"b\"]\nnumber = 1"), [2]);
        assert_eq!(delays("link = [\"b\", \"a\"]\nnumber = 2"), [3]);
        assert_eq!(delays("link = [\"host0\", \"a\"]\nnumber = 0"), [1]);
        assert_eq!(delays("link = \"third\""), [3]);
    }

    #[test]
    fn a_link_that_is_not_there_is_an_error() {
        let fails =
            |failure: &str| plan(&format!("[[failure]]\n{failure}\nat = \"0us\"\n")).unwrap_err();
        let three = fails("link = [\"a\", \"b\"]\nnumber = 3");
        assert!(three.contains("there are 3 links between a and b, numbers 0 to 2"), "{three}");
        let one = fails("link = [\"host0\", \"a\"]\nnumber = 1");
        assert!(one.contains("there is one link between host0 and a, number 0"), "{one}");
        let near = fails("link = \"thrd\"");
        assert!(
            near.contains("no link \"thrd\"") && near.contains("did you mean `third`?"),
            "{near}"
        );
        assert!(fails("link = \"third\"\nnumber = 0").contains("is one link already"));
    }

    #[test]
    fn failure_of_a_switch_is_of_all_its_links() {
        assert_eq!(delays("switch = \"a\""), [1, 1, 2, 3]);
        let fails =
            |failure: &str| plan(&format!("[[failure]]\n{failure}\nat = \"0us\"\n")).unwrap_err();
        for (failure, text) in [
            ("switch = \"c\"", "no node \"c\""),
            ("switch = \"host0\"", "host0 is a host; give a `link`"),
            ("switch = \"a\"\nnumber = 0", "all links of a fail"),
            ("switch = \"a\"\nlink = [\"a\", \"b\"]", "give a link or a switch, not both"),
            ("loss = 1.0", "link"),
        ] {
            let found = fails(failure);
            assert!(found.contains(text), "{failure}: {found}");
        }
        let resolved = plan("[[failure]]\nswitch = \"a\"\nat = \"0us\"\n").unwrap();
        let again = Scenario::parse("again.toml", &resolved.resolved).unwrap();
        assert_eq!(again.plan(None, &[], None).unwrap().failures, resolved.failures);
    }

    /// Two hosts with two links between them, the second written the other way round.
    fn joined(rest: &str) -> Result<Plan, String> {
        let link = |a: u32, name: &str| {
            let ends = format!("a = \"host{a}\", b = \"host{}\"", 1 - a);
            format!("{{ {ends}, rate = \"10Gbps\", delay = \"1us\", name = \"{name}\" }}")
        };
        let text = format!(
            "duration = \"1ms\"\n[topology]\nkind = \"file\"\n[topology.graph]\nhosts = 2\n\
             switches = []\nlinks = [{}, {}]\n{rest}[[traffic]]\nkind = \"permutation\"\n\
             size = 1000\n",
            link(0, "first"),
            link(1, "second")
        );
        let scenario = Scenario::parse("x.toml", &text).map_err(|e| e.to_string())?;
        scenario.plan(None, &[], None).map_err(|e| e.to_string())
    }

    /// Both hosts notice an outage; a loss counts once.
    #[test]
    fn a_failure_of_a_link_between_hosts_is_of_both_halves_only_as_an_outage() {
        let links = |failure: &str| {
            let plan = joined(&format!("[[failure]]\n{failure}\nat = \"0us\"\n")).unwrap();
            plan.failures.iter().map(|failure| failure.link).collect::<Vec<_>>()
        };
        // The NICs of host 0 have the addresses 0 and 2, those of host 1 have 1 and 3.
        let both = "link = [\"host1\", \"host0\"]";
        assert_eq!(links(both), [0, 1, 3, 2]);
        assert_eq!(links(&format!("{both}\nloss = 0.01")), [0, 3]);
        assert_eq!(links(&format!("{both}\nnumber = 1\nloss = 0.01")), [3]);
        assert_eq!(links("link = [\"host0\", \"host1\"]\nnumber = 0\nloss = 0.01"), [0]);
        assert_eq!(links("link = \"second\"\nloss = 0.01"), [3]);
        assert_eq!(links(&format!("{both}\nlosable = \"unimportant\"")), [0, 3]);
        let fails = |ends: &str| {
            joined(&format!("[[failure]]\nlink = {ends}\nat = \"0us\"\n")).unwrap_err()
        };
        let own = fails("[\"host0\", \"host0\"]");
        assert!(own.contains("there is no link between host0 and host0"), "{own}");
        let joint = fails("[\"host0\", \"host0-host1#0\"]");
        assert!(joint.contains("no node \"host0-host1#0\""), "{joint}");
    }

    #[test]
    fn a_capture_of_a_link_between_hosts_is_at_both_hosts() {
        let taps = |name: &str| {
            let plan = joined(&format!("[capture]\npcap = [{name:?}]\n")).unwrap();
            plan.capture.taps.into_iter().map(|tap| tap.name).collect::<Vec<_>>()
        };
        assert_eq!(taps("first"), ["host0", "host1"]);
        assert_eq!(taps("second"), ["host1-1", "host0-1"]);
        assert_eq!(taps("host0->host1"), ["host0", "host0-1"]);
        assert_eq!(taps("host0->host1#1"), ["host0-1"]);
    }

    /// Losses of two failures of one link add up, which is warned of; those of two links do not.
    #[test]
    fn losses_that_add_up_are_warned_of() {
        let warnings = |second: &str| {
            let failure = |link: &str| format!("[[failure]]\n{link}\nat = \"0us\"\nloss = 0.03\n");
            let both = failure("link = [\"a\", \"b\"]\nnumber = 0") + &failure(second);
            let plan = plan(&both).unwrap();
            plan.warnings.iter().filter(|text| text.contains("lose 0.0591 of the packets")).count()
        };
        assert_eq!(warnings("link = [\"b\", \"a\"]\nnumber = 0"), 1);
        assert_eq!(warnings("link = [\"b\", \"a\"]"), 1);
        assert_eq!(warnings("link = [\"b\", \"a\"]\nnumber = 1"), 0);
    }

    #[test]
    fn a_capture_names_one_link_of_a_bundle() {
        let taps = |ports: &str| {
            let plan = plan(&format!("[capture]\npcap = {ports}\n"));
            plan.map(|plan| {
                plan.capture.taps.into_iter().map(|tap| tap.name).collect::<BTreeSet<_>>()
            })
        };
        let names =
            |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
        assert_eq!(taps("[\"a->b\"]").unwrap(), names(&["a-1", "a-2", "a-3"]));
        assert_eq!(taps("[\"a->b#1\"]").unwrap(), names(&["a-2"]));
        assert_eq!(taps("[\"third\"]").unwrap(), names(&["a-3", "b-3"]));
        let wrong = taps("[\"a->b#3\"]").unwrap_err();
        assert!(wrong.contains("there are links 0 to 2 from a to b"), "{wrong}");
    }
}
