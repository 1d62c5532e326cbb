//! Which scopes a packet of which cgroup is charged to.
//!
//! A packet is charged to the limit of the nearest cgroup that has one, to the scopes that this
//! limit names and those that they name, and then to the limits of the cgroups above it, with their
//! scopes. The program of the nearest cgroup does all of it; those of the others leave its packets
//! alone.
//!
//! Invariant: each packet is charged to a scope at most once, and by one program.

use super::Error;
use super::cgroup::{Cgroup, is_within};
use super::circles::circle;
use super::config::{FloorParams, Limit, Target};
use super::layout::{self, CHAIN, Chain, DEPTH, Label, NESTED, PACE, SHARES, WINDOWS};
use super::numbers::{Identity, Installed, Numbers, Scope};
use super::store::Source;
use millpond_core::limit::{LimitParams, flags};
use std::collections::{BTreeSet, HashMap};

/// How the label of a floor's scope begins.
pub(super) const FLOOR: &str = "floor of ";

#[derive(Clone, Debug)]
pub struct Hook {
    pub cgroup: Cgroup,
    pub limit: String,
    /// By direction; a count of 0: no program.
    pub chain: [Chain; 2],
    /// The congestion control of its new connections.
    pub congestion: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub scopes: Vec<Scope>,
    pub hooks: Vec<Hook>,
    /// Limits whose cgroups are not there, and why.
    pub waiting: Vec<(String, String)>,
    /// [`layout::LOOPBACK`] and others.
    pub flags: u32,
}

impl Plan {
    fn number(&self, name: &str, direction: usize) -> Option<u16> {
        let is = |s: &&Scope| s.label.name == name && s.label.direction == direction as u32;
        self.scopes.iter().find(is).map(|s| s.id)
    }
    /// Whether receive windows of connections are held.
    pub fn holds_windows(&self) -> bool {
        self.hooks.iter().any(|hook| hook.chain[1].flags & WINDOWS != 0)
    }
    /// Whether packets that leave a hook's cgroup get departure times.
    pub fn waits(&self, hook: &Hook) -> bool {
        let chain = &hook.chain[0];
        let of = |id: &u16| self.scopes.iter().find(|scope| scope.id == *id);
        let mut scopes = chain.scopes[..chain.count as usize].iter().filter_map(of);
        scopes.any(|scope| scope.settings.settings.flags & flags::WAITS != 0)
    }
    /// Leaves receive windows as they are.
    pub fn hold_no_windows(&mut self) {
        self.hooks.iter_mut().for_each(|hook| hook.chain[1].flags &= !WINDOWS);
    }
}

/// Makes the plan of `sources`. `resolve` finds cgroups; limits whose cgroups are missing wait in
/// the plan.
///
/// # Errors
/// [`Error::Request`] if two limits have one name or cgroup, a scope is no limit, scopes form a
/// circle, two `[[notify]]` differ, or there are more scopes than a packet or the maps can have.
pub fn plan(
    sources: &[Source],
    installed: &Installed,
    resolve: &dyn Fn(&Target) -> Result<Cgroup, String>,
) -> Result<Plan, Error> {
    let limits: Vec<&Limit> = sources.iter().flat_map(|s| &s.config.limits).collect();
    check_names(sources)?;
    let mut plan = Plan::default();
    if sources.iter().any(|s| s.config.host.loopback) {
        plan.flags |= layout::LOOPBACK;
    }
    if notifies(sources)? {
        plan.flags |= layout::NOTIFY;
    }
    let mut places: Vec<(&Limit, Cgroup)> = Vec::new();
    for &limit in &limits {
        let Some(target) = limit.cgroup() else { continue };
        match resolve(&target) {
            Ok(cgroup) => match places.iter().find(|(_, other)| other.id == cgroup.id) {
                Some((other, _)) => return Err(same_cgroup(sources, limit, other, &cgroup)),
                None => places.push((limit, cgroup)),
            },
            Err(reason) => plan.waiting.push((limit.name().to_string(), reason)),
        }
    }
    let mut floors: Vec<(&FloorParams, Cgroup)> = Vec::new();
    for floor in sources.iter().flat_map(|s| &s.config.floors) {
        let Some(target) = floor.target() else { continue };
        match resolve(&target) {
            Ok(cgroup) => floors.push((floor, cgroup)),
            Err(reason) => plan.waiting.push((floor_name(&target), reason)),
        }
    }
    let numbers = Numbers::new(installed, &identities(&limits, &floors));
    let mut planner = Planner { plan, limits, places, numbers };
    planner.scopes()?;
    planner.hooks()?;
    for (floor, cgroup) in &floors {
        planner.protect(floor, cgroup)?;
    }
    planner.flags();
    let mut plan = planner.plan;
    nest(&mut plan)?;
    Ok(plan)
}

/// A plan that is being made, of limits whose places are known.
struct Planner<'a> {
    plan: Plan,
    limits: Vec<&'a Limit>,
    places: Vec<(&'a Limit, Cgroup)>,
    numbers: Numbers<'a>,
}

impl Planner<'_> {
    /// Gives each limit its queues, one a direction.
    fn scopes(&mut self) -> Result<(), Error> {
        for limit in &self.limits {
            let name = limit.name();
            let place = self.places.iter().find(|(l, _)| l.name() == name);
            let cgroup = place.map_or(0, |(_, c)| c.id);
            for direction in (0..2).filter(|&d| limit.covers(d)) {
                let label = Label { name: name.to_string(), direction: direction as u32, cgroup };
                let mut scope = self.numbers.scope(label, &limit.queue(direction))?;
                let of = [
                    (limit.shares(direction), flags::SHARE),
                    (limit.waits(direction), flags::WAITS),
                    (limit.spaces(direction), flags::SPACED),
                    (limit.holds(direction), flags::HELD),
                ];
                let set = of.into_iter().filter(|(is, _)| *is);
                scope.settings.settings.flags |= set.fold(0, |all, (_, flag)| all | flag);
                self.plan.scopes.push(scope);
            }
        }
        Ok(())
    }

    /// Adds a limit's own scope, then those that it names with theirs, each once.
    fn collect(&self, name: &str, direction: usize, ids: &mut Vec<u16>) {
        let (mut seen, mut open) = (BTreeSet::new(), vec![name]);
        while let Some(name) = open.pop() {
            let limit = self.limits.iter().find(|l| l.name() == name);
            let Some(limit) = limit.filter(|_| seen.insert(name)) else { continue };
            ids.extend(self.plan.number(name, direction).filter(|id| !ids.contains(id)));
            open.extend(limit.target.scopes.iter().rev().map(String::as_str));
        }
    }

    /// The chain of a cgroup: of the limits at and above it, the nearest first.
    fn chain(&self, cgroup: &Cgroup, direction: usize) -> Result<Chain, Error> {
        let mut above: Vec<&(&Limit, Cgroup)> =
            self.places.iter().filter(|(_, outer)| is_within(cgroup, outer)).collect();
        above.sort_by_key(|(_, outer)| std::cmp::Reverse(outer.level));
        let mut ids = Vec::new();
        // A limit speaks for its scopes in the directions that it covers.
        for (limit, _) in above.iter().filter(|(limit, _)| limit.covers(direction)) {
            self.collect(limit.name(), direction, &mut ids);
        }
        if ids.len() > CHAIN {
            return Err(Error::Request(format!(
                "packets of {} would be charged to {} scopes; {CHAIN} are possible",
                cgroup.path.display(),
                ids.len()
            )));
        }
        let mut chain = Chain { count: ids.len() as u16, level: cgroup.level, ..Chain::default() };
        chain.scopes[..ids.len()].copy_from_slice(&ids);
        Ok(chain)
    }

    fn hooks(&mut self) -> Result<(), Error> {
        for (limit, cgroup) in &self.places {
            let of = |d: usize| match limit.covers(d) {
                true => self.chain(cgroup, d),
                false => Ok(Chain::default()),
            };
            let (limit, chain) = (*limit, [of(0)?, of(1)?]);
            let congestion = limit.target.congestion.clone();
            let (cgroup, limit) = (cgroup.clone(), limit.name().to_string());
            self.plan.hooks.push(Hook { cgroup, limit, chain, congestion });
        }
        Ok(())
    }

    /// A floor gives its cgroup a queue of its own at the floor's rate: while that is not behind,
    /// packets pass. Where connections have shares, theirs is no less than their share of the
    /// floor.
    fn protect(&mut self, floor: &FloorParams, cgroup: &Cgroup) -> Result<(), Error> {
        for direction in 0..2 {
            let mut chain = self.chain(cgroup, direction)?;
            if chain.count == 0 {
                continue;
            }
            if chain.count as usize == CHAIN {
                return Err(Error::Request(format!(
                    "{} has a floor and {CHAIN} scopes; with a floor, {} are possible",
                    cgroup.path.display(),
                    CHAIN - 1
                )));
            }
            let shares = self.shares_above(floor, cgroup, &chain)?;
            let name = floor_label(cgroup.id);
            let params = LimitParams { rate: floor.rate, ..LimitParams::default() };
            let params = if shares { params.shared() } else { params };
            let label =
                Label { name: name.clone(), direction: direction as u32, cgroup: cgroup.id };
            let mut scope = self.numbers.scope(label, &params)?;
            chain.floor = scope.id + 1;
            if shares {
                scope.settings.settings.flags |= flags::SHARE;
                chain.flags |= PACE | SHARES;
            }
            self.plan.scopes.push(scope);
            match self.plan.hooks.iter_mut().find(|h| h.cgroup.id == cgroup.id) {
                Some(hook) => hook.chain[direction] = chain,
                None => {
                    let mut chains = [Chain::default(); 2];
                    chains[direction] = chain;
                    let cgroup = cgroup.clone();
                    let hook = Hook { cgroup, limit: name, chain: chains, congestion: None };
                    self.plan.hooks.push(hook);
                }
            }
        }
        Ok(())
    }

    /// Whether connections below a floor have shares; an error if a limit above it is tighter.
    fn shares_above(
        &self,
        floor: &FloorParams,
        cgroup: &Cgroup,
        chain: &Chain,
    ) -> Result<bool, Error> {
        let mut shares = false;
        for id in &chain.scopes[..chain.count as usize] {
            let Some(scope) = self.plan.scopes.iter().find(|s| s.id == *id) else { continue };
            shares |= scope.settings.settings.flags & flags::SHARE != 0;
            let limit = self.limits.iter().find(|l| l.name() == scope.label.name);
            if let Some(limit) = limit.filter(|l| l.queue.rate < floor.rate) {
                return Err(Error::Request(format!(
                    "limit \"{}\" would hold {} to {}; its floor is {}",
                    limit.name(),
                    cgroup.path.display(),
                    limit.queue.rate,
                    floor.rate
                )));
            }
        }
        Ok(shares)
    }

    /// Sets the flags that follow from all scopes.
    fn flags(&mut self) {
        let Plan { hooks, scopes, .. } = &mut self.plan;
        for hook in hooks {
            if let Some(limit) = self.limits.iter().find(|limit| limit.name() == hook.limit)
                && hook.chain[0].count > 0
            {
                let flag = |is: bool, bit: u16| if is { bit } else { 0 };
                hook.chain[0].flags |= flag(limit.paces(), PACE) | flag(limit.shares(0), SHARES);
            }
            let chain = &mut hook.chain[1];
            let own = &chain.scopes[..chain.count as usize];
            let is_held = |s: &Scope| s.settings.settings.flags & flags::HELD != 0;
            if scopes.iter().any(|scope| is_held(scope) && own.contains(&scope.id)) {
                chain.flags |= WINDOWS;
            }
        }
    }
}

/// The identities of the plan's scopes, whether they come about or not.
fn identities(limits: &[&Limit], floors: &[(&FloorParams, Cgroup)]) -> Vec<Identity> {
    let both = |limit: &&Limit| {
        let of = |d: usize| (limit.name().to_string(), d as u32, limit.queue(d).settings().form);
        (0..2).filter(|&d| limit.covers(d)).map(of).collect::<Vec<_>>()
    };
    let form = LimitParams::default().settings().form;
    let of_floor = |cgroup: &Cgroup| [0, 1].map(|d| (floor_label(cgroup.id), d, form));
    limits
        .iter()
        .flat_map(both)
        .chain(floors.iter().flat_map(|(_, cgroup)| of_floor(cgroup)))
        .collect()
}

/// Marks each hook that has others below it, whose programs charge its scopes as well.
fn nest(plan: &mut Plan) -> Result<(), Error> {
    for i in 0..plan.hooks.len() {
        for direction in 0..2 {
            let has = |h: &&Hook| h.chain[direction].count > 0;
            let hook = &plan.hooks[i];
            let others = || plan.hooks.iter().filter(has).filter(|h| h.cgroup.id != hook.cgroup.id);
            // Its program looks for the next one below, and for no other.
            let above = others()
                .filter(|h| is_within(&hook.cgroup, &h.cgroup))
                .max_by_key(|h| h.cgroup.level);
            if let Some(above) =
                above.filter(|h| has(&hook) && hook.cgroup.level > h.cgroup.level + DEPTH)
            {
                return Err(Error::Request(format!(
                    "{} is {} levels below {}, which has a limit as well; {DEPTH} are possible",
                    hook.cgroup.path.display(),
                    hook.cgroup.level - above.cgroup.level,
                    above.cgroup.path.display()
                )));
            }
            if others().any(|h| is_within(&h.cgroup, &hook.cgroup)) {
                plan.hooks[i].chain[direction].flags |= NESTED;
            }
        }
    }
    Ok(())
}

fn same_cgroup(sources: &[Source], limit: &Limit, other: &Limit, cgroup: &Cgroup) -> Error {
    let file = |limit: &Limit| {
        let of = sources.iter().find(|s| s.config.limits.iter().any(|l| l.name() == limit.name()));
        of.map_or("", |s| s.file.as_str()).to_string()
    };
    Error::Request(format!(
        "limits \"{}\" ({}) and \"{}\" ({}) have the same cgroup, {}: a cgroup has one limit; \
         remove one of them, or make one a scope of the other",
        other.name(),
        file(other),
        limit.name(),
        file(limit),
        cgroup.path.display()
    ))
}

/// Whether senders on other hosts are notified; a host has one way to.
fn notifies(sources: &[Source]) -> Result<bool, Error> {
    let mut with = sources.iter().filter(|s| s.config.notify.is_some());
    let Some(first) = with.next() else { return Ok(false) };
    match with.find(|other| other.config.notify != first.config.notify) {
        Some(other) => {
            let text = format!(
                "[[notify]] of {} differs from that of {}: a host has one",
                other.file, first.file
            );
            Err(Error::Request(text))
        }
        None => Ok(true),
    }
}

/// Names are unique over all files, and scopes exist.
fn check_names(sources: &[Source]) -> Result<(), Error> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    for (source, limit) in sources.iter().flat_map(|s| s.config.limits.iter().map(move |l| (s, l)))
    {
        if let Some(file) = names.insert(limit.name(), &source.file) {
            return Err(Error::Request(format!(
                "limit \"{}\" of {} is installed from {file} already: give it another name, or \
                 remove that one",
                limit.name(),
                source.file
            )));
        }
    }
    for limit in sources.iter().flat_map(|s| &s.config.limits) {
        let mut scopes = limit.target.scopes.iter();
        if let Some(scope) = scopes.find(|scope| !names.contains_key(scope.as_str())) {
            return Err(Error::Request(format!(
                "limit \"{}\" has the scope \"{scope}\", and there would be no such limit",
                limit.name()
            )));
        }
    }
    let all: Vec<_> = sources.iter().flat_map(|s| &s.config.limits).map(Limit::named).collect();
    match circle(&all) {
        Some(circle) => {
            let file = |name: &str| names.get(name).copied().unwrap_or_default();
            let named: Vec<String> =
                circle.iter().map(|name| format!("\"{name}\" ({})", file(name))).collect();
            Err(Error::Request(format!(
                "scopes go in a circle: {}",
                named.join(", which has the scope ")
            )))
        }
        None => Ok(()),
    }
}

/// A cgroup as its file names it.
fn named(target: &Target) -> String {
    match target {
        Target::Path(path) => path.display().to_string(),
        Target::Unit(name) | Target::Container(name) | Target::Pod(name) => name.clone(),
        Target::Pid(pid) => format!("pid {pid}"),
    }
}

pub(super) fn floor_name(target: &Target) -> String {
    format!("{FLOOR}{}", named(target))
}

/// How the scope of a cgroup's floor is labelled.
pub(super) fn floor_label(cgroup: u64) -> String {
    format!("{FLOOR}{cgroup}")
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    fn source(file: &str, text: &str) -> Source {
        let names = ["uplink", "slice", "a", "b", "all", "l0"];
        Source { file: file.into(), config: Config::parse(file, text, &names).unwrap() }
    }
    /// Cgroups are there by name: "/slice/a".
    fn resolve(target: &Target) -> Result<Cgroup, String> {
        let Target::Path(path) = target else { return Err("no".into()) };
        if path.ends_with("gone") {
            return Err("gone".into());
        }
        let id = path.to_string_lossy().bytes().map(u64::from).sum();
        Ok(Cgroup { path: path.clone(), id, level: path.components().count() as u32 - 1 })
    }
    fn plan_of(sources: &[Source], installed: &Installed) -> Result<Plan, Error> {
        plan(sources, installed, &resolve)
    }
    fn chain_of(plan: &Plan, limit: &str, direction: usize) -> Vec<String> {
        let hook = plan.hooks.iter().find(|h| h.limit == limit).unwrap();
        let chain = hook.chain[direction];
        let name = |id: &u16| plan.scopes.iter().find(|s| s.id == *id).unwrap().label.name.clone();
        chain.scopes[..chain.count as usize].iter().map(name).collect()
    }

    const NESTED_LIMITS: &str = "[[limit]]\nname = \"slice\"\ncgroup = \"/slice\"\nscopes = \
                                 [\"uplink\"]\n[[limit]]\nname = \"a\"\ncgroup = \
                                 \"/slice/a\"\ndirection = \"both\"\n[[limit]]\nname = \
                                 \"uplink\"\nrate = \"8Gbps\"\n";

    #[test]
    fn the_nearest_charges_all_above() {
        let plan = plan_of(&[source("x", NESTED_LIMITS)], &Vec::new()).unwrap();
        assert_eq!(chain_of(&plan, "a", 0), ["a", "slice", "uplink"]);
        assert_eq!(chain_of(&plan, "a", 1), ["a"]);
        assert_eq!(chain_of(&plan, "slice", 0), ["slice", "uplink"]);
        let slice = plan.hooks.iter().find(|h| h.limit == "slice").unwrap();
        assert_eq!((slice.chain[0].flags, slice.chain[1].count), (NESTED | PACE | SHARES, 0));
    }

    #[test]
    fn windows_are_held_where_a_scope_of_what_arrives_asks_for_it() {
        let inner = |more: &str| {
            let outer =
                "[[limit]]\nname = \"slice\"\ncgroup = \"/slice\"\ndirection = \"ingress\"\n";
            let own = "[[limit]]\nname = \"a\"\ncgroup = \"/slice/a\"\ndirection = \
                       \"both\"\nwindows = false\n";
            plan_of(&[source("x", &format!("{outer}{more}{own}"))], &Vec::new()).unwrap()
        };
        let holds = |plan: &Plan| -> Vec<bool> {
            plan.hooks.iter().map(|hook| hook.chain[1].flags & WINDOWS != 0).collect()
        };
        let mut plan = inner("");
        assert_eq!(holds(&plan), [true, true], "its own does not, the slice's does");
        assert!(
            plan.holds_windows()
                && plan.hooks.iter().all(|hook| hook.chain[0].flags & WINDOWS == 0)
        );
        plan.hold_no_windows();
        assert_eq!(holds(&plan), [false, false]);
        assert_eq!(holds(&inner("profile = \"published\"\n")), [false, false]);
        assert_eq!(holds(&inner("profile = \"published\"\nwindows = true\n")), [true, true]);
    }

    #[test]
    fn what_leaves_has_departure_times_and_what_arrives_has_windows() {
        let text = "[[limit]]\nname = \"t\"\ncgroup = \"/x\"\ndirection = \"both\"\nprofile = \
                    \"edt\"\n";
        let plan = plan_of(&[source("x", text)], &Vec::new()).unwrap();
        let of = |direction: u32| {
            let scope = plan.scopes.iter().find(|s| s.label.direction == direction).unwrap();
            scope.settings.settings
        };
        assert_eq!(of(0).form, millpond_core::limit::Form::Edt as u32);
        assert_eq!(of(0).flags & (flags::WAITS | flags::SHARE), flags::WAITS);
        let arriving = flags::SPACED | flags::HELD;
        assert_eq!(of(1).flags & (flags::WAITS | arriving), arriving);
        let hook = &plan.hooks[0];
        assert!(plan.waits(hook) && hook.chain[0].flags & (PACE | SHARES) == 0);
    }

    #[test]
    fn numbers_stay() {
        let first = plan_of(&[source("x", NESTED_LIMITS)], &Vec::new()).unwrap();
        let installed: Installed =
            first.scopes.iter().map(|s| (s.id, s.label.clone(), 0)).collect();
        let text = NESTED_LIMITS
            .replace("name = \"slice\"", "name = \"all\"")
            .replace("direction", "form = \"edt\"\ndirection");
        let second = plan_of(&[source("x", &text)], &installed).unwrap();
        let id = |plan: &Plan, name| plan.number(name, 0).unwrap();
        assert_eq!(id(&first, "uplink"), id(&second, "uplink"));
        let fresh =
            |name: &str| second.scopes.iter().filter(|s| s.label.name == name).all(|s| s.fresh);
        assert!(fresh("all") && fresh("a") && !fresh("uplink"), "another name, another form");
        assert!(
            !first.scopes.iter().any(|s| s.id == id(&second, "all") || s.id == id(&second, "a"))
        );
    }

    #[test]
    fn circles_over_files_are_told() {
        let one = "[[limit]]\nname = \"x\"\nscopes = [\"a\"]\n[[limit]]\nname = \"y\"\n";
        let two = "[[limit]]\nname = \"a\"\nscopes = [\"b\"]\ndirection = \"ingress\"\n";
        let three = "[[limit]]\nname = \"b\"\ncgroup = \"/b\"\nscopes = [\"a\"]\n";
        let sources = [source("1.toml", one), source("2.toml", two), source("3.toml", three)];
        let said = plan_of(&sources, &Vec::new()).unwrap_err().to_string();
        assert!(
            said.contains(
                "\"a\" (2.toml), which has the scope \"b\" (3.toml), which has the scope \"a\""
            ),
            "{said}"
        );
    }

    /// Two scopes a level, each of which has both of the next: 2^40 ways down, of which none is
    /// new.
    #[test]
    fn a_diamond_takes_no_time() {
        let limit = |i: usize, half: &str| {
            let scopes = if i < 40 {
                format!("scopes = [\"l{}\", \"r{}\"]\n", i + 1, i + 1)
            } else {
                String::new()
            };
            format!("[[limit]]\nname = \"{half}{i}\"\ndirection = \"ingress\"\n{scopes}")
        };
        let text: String = (0..=40).map(|i| limit(i, "l") + &limit(i, "r")).collect();
        let more = "[[limit]]\nname = \"top\"\ncgroup = \"/x\"\nscopes = [\"l0\"]\n";
        let plan = plan_of(&[source("1.toml", &(text + more))], &Vec::new()).unwrap();
        assert_eq!(chain_of(&plan, "top", 0), ["top"]);
    }

    /// As many names as there are, and none of them stays.
    #[test]
    fn numbers_of_limits_that_go_are_taken_when_none_is_free() {
        let limits = |prefix: &str, n: usize, more: &str| -> String {
            (0..n)
                .map(|i| {
                    format!("[[limit]]\nname = \"{prefix}{i}\"\ndirection = \"egress\"\n{more}")
                })
                .collect()
        };
        let first = plan_of(&[source("x", &limits("old", 300, ""))], &Vec::new()).unwrap();
        let installed: Installed =
            first.scopes.iter().map(|s| (s.id, s.label.clone(), 0)).collect();
        let text = limits("new", 299, "") + "[[limit]]\nname = \"old7\"\ndirection = \"egress\"\n";
        let second = plan_of(&[source("x", &text)], &installed).unwrap();
        let mut ids: Vec<u16> = second.scopes.iter().map(|s| s.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 300, "each has its own");
        assert_eq!(second.scopes.iter().filter(|s| s.late).count(), 299 - 212, "212 were free");
        let old = |s: &&Scope| s.label.name == "old7";
        assert_eq!(
            second.scopes.iter().find(old).unwrap().id,
            first.scopes.iter().find(old).unwrap().id
        );
        // Another form is another queue as well.
        let forms =
            plan_of(&[source("x", &limits("old", 300, "form = \"edt\"\n"))], &installed).unwrap();
        assert!(forms.scopes.iter().all(|s| s.fresh));
        let said =
            plan_of(&[source("x", &limits("new", 513, ""))], &installed).unwrap_err().to_string();
        assert!(said.contains("512 queues"), "{said}");
    }

    #[test]
    fn a_limit_too_far_below_another_is_refused() {
        let below = |levels: usize| {
            let path = "/x".to_string() + &"/d".repeat(levels);
            let text = format!(
                "[[limit]]\nname = \"a\"\ncgroup = \"/x\"\n[[limit]]\nname = \"b\"\ncgroup = \
                 \"{path}\"\n"
            );
            plan_of(&[source("1.toml", &text)], &Vec::new())
        };
        assert_eq!(below(64).unwrap().hooks[0].chain[0].flags, NESTED | PACE | SHARES);
        let said = below(65).unwrap_err().to_string();
        assert!(
            said.contains("is 65 levels below /x") && said.contains("64 are possible"),
            "{said}"
        );
    }

    #[test]
    fn conflicts_are_named() {
        let said = |sources: &[Source]| plan_of(sources, &Vec::new()).unwrap_err().to_string();
        let one = "[[limit]]\nname = \"a\"\ncgroup = \"/x\"\n";
        let text = said(&[source("1.toml", one), source("2.toml", &one.replace("\"a\"", "\"b\""))]);
        assert!(
            text.contains("\"a\" (1.toml) and \"b\" (2.toml) have the same cgroup, /x"),
            "{text}"
        );
        assert!(
            said(&[source("1.toml", one), source("2.toml", one)])
                .contains("installed from 1.toml already")
        );
        let lost = "[[limit]]\nname = \"c\"\ncgroup = \"/y\"\nscopes = [\"all\"]\n";
        assert!(said(&[source("1.toml", lost)]).contains("no such limit"));
        let told = |port: u32| {
            format!("[[notify]]\nport = {port}\nsecret = \"/s\"\npeers = [\"10.0.0.1\"]\n")
        };
        let text = said(&[source("1.toml", &told(1)), source("2.toml", &told(2))]);
        assert!(text.contains("2.toml differs from that of 1.toml"), "{text}");
        let same = plan_of(&[source("1.toml", &told(1)), source("2.toml", &told(1))], &Vec::new())
            .unwrap();
        assert_eq!(same.flags, layout::NOTIFY);
        let low =
            format!("{one}rate = \"1Mbps\"\n[[floor]]\ncgroup = \"/x/ssh\"\nrate = \"5Mbps\"\n");
        assert!(said(&[source("1.toml", &low)]).contains("its floor is 5Mbps"));
    }

    #[test]
    fn a_floor_has_a_queue_of_its_own() {
        let text = "[[limit]]\nname = \"a\"\ncgroup = \"/x\"\n[[floor]]\ncgroup = \
                    \"/x/ssh\"\nrate = \"5Mbps\"\n";
        let plan = plan_of(&[source("1.toml", text)], &Vec::new()).unwrap();
        let hook = plan.hooks.iter().find(|h| h.cgroup.path.ends_with("ssh")).unwrap();
        assert_eq!(
            (hook.chain[0].count, hook.chain[0].floor > 0, hook.chain[1].count),
            (1, true, 0)
        );
        assert_eq!(plan.hooks[0].chain[0].flags, NESTED | PACE | SHARES);
        assert_eq!(hook.chain[0].flags, PACE | SHARES, "its connections have shares of the floor");
        let gone = format!("{text}[[floor]]\ncgroup = \"/x/gone\"\nrate = \"1Mbps\"\n");
        let waiting = plan_of(&[source("x", &gone)], &Vec::new()).unwrap().waiting;
        assert_eq!(waiting, [("floor of /x/gone".to_string(), "gone".to_string())]);
        let floor = plan.scopes.iter().find(|s| s.id + 1 == hook.chain[0].floor).unwrap();
        assert!(floor.settings.settings.flags & flags::SHARE != 0);
        let published = text.replace("\n[[floor]]", "\nprofile = \"published\"\n[[floor]]");
        let plan = plan_of(&[source("1.toml", &published)], &Vec::new()).unwrap();
        assert!(plan.hooks.iter().all(|hook| hook.chain[0].flags & (PACE | SHARES) == 0));
    }

    #[test]
    fn what_is_not_there_waits() {
        let plan =
            plan_of(&[source("x", "[[limit]]\nname = \"a\"\ncgroup = \"/gone\"\n")], &Vec::new())
                .unwrap();
        assert_eq!((plan.hooks.len(), plan.scopes.len(), plan.waiting.len()), (0, 1, 1));
    }
}
