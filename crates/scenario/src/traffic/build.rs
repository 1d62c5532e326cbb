//! From traffic tables to a traffic plan: draws what is drawn in advance, reserves ids, and checks
//! what can be checked.

mod after;
mod closed;
mod job;
mod open;

use super::among::Among;
use super::arrivals::Generator;
use super::dependencies::{self, Roots};
use super::pattern::{self, Listed, OneEach};
use super::{Source, SourceKind, Thinking, TrafficPlan};
use crate::error::Report;
use crate::settings::Settings;
use crate::settings::flows::{BYTES_MAX, FlowTable};
use crate::settings::hosts::HostSet;
use crate::settings::traffic::{Pairs, TrafficParams, TrafficSettings};
use crate::topology::Topology;
use crate::transport::TransportKind;
use millpond_core::random::Stream;
use millpond_core::{Bytes, Time};
use std::collections::HashMap;
use std::sync::Arc;

/// Flow ids are 32 bits, and the last two mean something else.
const IDS_MAX: f64 = (u32::MAX - 1) as f64;

struct Builder<'a> {
    settings: &'a Settings,
    topology: &'a Topology,
    /// The present traffic: its class and name, and from when to when its flows start.
    class: u16,
    name: String,
    start: Time,
    stop: Time,
    /// Its hosts, in the order in which it names them, and by place.
    set: HostSet,
    among: Among,
    horizon: Time,
    report: &'a mut Report,
    classes: Vec<String>,
    /// By name; of two classes of one name, which is an error, the first.
    numbers: HashMap<String, usize>,
    priorities: Vec<u8>,
    thinking: Vec<Thinking>,
    transports: Vec<u8>,
    generators: Vec<Generator>,
    graph: dependencies::Builder,
    /// By traffic: those that it waits for, and whether another waits for it.
    after: Vec<Vec<u16>>,
    is_awaited: Vec<bool>,
    next_id: u64,
    /// Next rank's number among those of all jobs.
    next_rank: u32,
    /// Open-loop flow ids, if they can be counted in advance.
    open_ids: Option<u64>,
    /// Those that are to be expected of sources that are drawn until their stop, which cannot be
    /// counted in advance.
    drawn_ids: f64,
    is_finite: bool,
}

/// Builds the traffic; what is wrong goes to the report.
pub(crate) fn build(
    settings: &Settings,
    topology: &Topology,
    horizon: Time,
    report: &mut Report,
) -> TrafficPlan {
    let classes: Vec<String> = settings.traffic.iter().map(TrafficSettings::name).collect();
    let numbers =
        classes.iter().enumerate().rev().map(|(number, name)| (name.clone(), number)).collect();
    let (transports, other_transports) = transports(settings, report);
    let mut b = Builder {
        settings,
        topology,
        class: 0,
        name: String::new(),
        start: Time::ZERO,
        stop: horizon,
        set: HostSet::All,
        among: Among::all(topology),
        horizon,
        report,
        classes,
        numbers,
        priorities: settings.traffic.iter().map(|t| t.common.priority.min(7) as u8).collect(),
        thinking: vec![Thinking::default(); settings.traffic.len()],
        transports,
        generators: Vec::new(),
        graph: dependencies::Builder::default(),
        after: vec![Vec::new(); settings.traffic.len()],
        is_awaited: vec![false; settings.traffic.len()],
        next_id: 0,
        next_rank: 0,
        open_ids: Some(0),
        drawn_ids: 0.0,
        is_finite: true,
    };
    let mut sources = Vec::new();
    let mut is_counted = true;
    b.find_after();
    for (i, t) in settings.traffic.iter().enumerate() {
        let kind = b.dependent_source(i as u16, t);
        is_counted &= !matches!(kind, SourceKind::Rpc { .. } | SourceKind::Job(_));
        sources.push(Source { class: i as u16, kind });
    }
    let first_dependent = b.next_id as u32;
    b.next_id += b.graph.len();
    let dependencies = std::mem::take(&mut b.graph).finish(first_dependent, topology);
    b.generators.extend(dependencies.clone().map(|graph| Generator::Roots(Roots::new(graph))));
    let total = b.open_ids.map(|open| open.saturating_add(b.next_id));
    if b.next_id.max(total.unwrap_or(0)) as f64 + b.drawn_ids >= IDS_MAX {
        let message = "the traffic has more flows than 32 bits can number";
        b.report.impossible("traffic", message);
    }
    TrafficPlan {
        classes: b.classes,
        priorities: b.priorities,
        thinking: b.thinking,
        transports: b.transports,
        other_transports,
        sources,
        first_open_flow: b.next_id as u32,
        total_flows: total.filter(|_| is_counted),
        is_finite: b.is_finite,
        dependencies,
        generators: b.generators,
        only: None,
    }
}

/// Which transport each traffic has, and those that are not the scenario's, each once.
fn transports(settings: &Settings, report: &mut Report) -> (Vec<u8>, Vec<TransportKind>) {
    let mut others: Vec<TransportKind> = Vec::new();
    let mut number = |own: &Option<TransportKind>| match own {
        None => 0,
        Some(kind) if *kind == settings.transport_kind => 0,
        Some(kind) => {
            let known = others.iter().position(|other| other == kind).unwrap_or(others.len());
            if known == others.len() {
                others.push(kind.clone());
            }
            known + 1
        }
    };
    let numbers: Vec<usize> = settings.traffic.iter().map(|t| number(&t.transport)).collect();
    if others.len() > 255 {
        report.impossible("traffic", "more than 255 different transports");
    }
    (numbers.into_iter().map(|n| n as u8).collect(), others)
}

impl Builder<'_> {
    /// Makes a traffic the present one.
    fn begin(&mut self, class: u16, t: &TrafficSettings) {
        (self.class, self.name, self.start) = (class, t.name(), t.common.start);
        // A traffic that waits starts at a time that the run decides.
        let waits = !self.after[usize::from(class)].is_empty();
        self.stop = if waits { Time::END } else { self.ends(t) };
        self.choose_hosts(t);
    }

    /// When a traffic ends at the latest.
    fn ends(&self, t: &TrafficSettings) -> Time {
        t.common.stop.map_or(self.horizon, |stop| stop.min(self.horizon))
    }

    /// The present traffic's random stream, from its beginning.
    fn random(&self) -> Stream {
        Stream::new(self.settings.run.seed, &format!("traffic/{}", self.name))
    }

    fn source(&mut self, t: &TrafficSettings) -> SourceKind {
        if t.common.priority > 7 {
            self.wrong("priority", "expected a priority from 0 to 7");
        }
        let (start, stop) = (self.start, self.stop);
        if start >= stop {
            let message = format!(
                "starts at {start}, which is not before its stop or the end of the run at {stop}"
            );
            self.wrong("start", message);
        }
        self.of_kind(t).unwrap_or(SourceKind::Open)
    }

    /// The source of a traffic by its kind; `None`: it has none, which may be reported.
    fn of_kind(&mut self, t: &TrafficSettings) -> Option<SourceKind> {
        let (mut random, class) = (self.random(), self.class);
        let ends = |what| t.common.stop.map(|_| what);
        let early = match &t.kind {
            TrafficParams::Collective(_) => {
                ends("a collective ends with its rounds, and not at a time: use repeat")
            }
            TrafficParams::Goal(_) => ends("programs end by themselves, and not at a time"),
            TrafficParams::Simai(_) => ends("layers end by themselves, and not at a time"),
            TrafficParams::Chakra(_) => ends("traces end by themselves, and not at a time"),
            _ => None,
        };
        early.into_iter().for_each(|text| self.wrong("stop", text));
        let Among { hosts, attachment, .. } = self.among.clone();
        let attachment = &*attachment;
        let inter_leaf = |pairs: Pairs| (pairs == Pairs::InterLeaf).then_some(attachment);
        let (to, size, stagger) = match &t.kind {
            TrafficParams::Poisson(p) => return self.poisson(p),
            TrafficParams::Incast(p) => return self.incast(p),
            TrafficParams::Rpc(p) => return self.rpc(p),
            TrafficParams::Probe(p) => return self.probe(p),
            TrafficParams::Collective(p) => return self.collective(p),
            TrafficParams::Goal(p) => return self.goal(p),
            TrafficParams::Simai(p) => return self.simai(p),
            TrafficParams::Chakra(p) => return self.chakra(p),
            TrafficParams::Flows(p) => return self.flows(p.rows.0.clone()?),
            TrafficParams::Shuffle(p) => return self.shuffle(p),
            TrafficParams::Permutation(p) => {
                (pattern::permutation(&mut random, hosts), p.size, p.stagger)
            }
            TrafficParams::Bijection(p) => {
                (pattern::bijection(&mut random, hosts, attachment), p.size, p.stagger)
            }
            TrafficParams::Random(p) => {
                if !self.can_cross(p.pairs) {
                    return None;
                }
                (pattern::random(&mut random, hosts, inter_leaf(p.pairs)), p.size, p.stagger)
            }
            TrafficParams::Stride(p) => {
                if p.offset % hosts == 0 {
                    self.wrong(
                        "offset",
                        format!("{} makes every one of {hosts} hosts send to itself", p.offset),
                    );
                }
                let to = (0..hosts as u64)
                    .map(|h| ((h + p.offset as u64) % hosts as u64) as u32)
                    .collect();
                (to, p.size, p.stagger)
            }
        };
        self.size("size", size);
        let bytes = size.get();
        let (start, stop) = (self.start, self.stop);
        Some(self.one_each(OneEach { to: to.into(), bytes, start, stagger, stop, class, next: 0 }))
    }

    /// Each host starts one flow, one after the other.
    fn one_each(&mut self, flows: OneEach) -> SourceKind {
        let hosts = flows.to.len() as u64;
        let span = flows.stop.saturating_sub(flows.start).as_ps();
        let in_time = match flows.stagger {
            Time::ZERO => hosts,
            stagger => span.div_ceil(stagger.as_ps()),
        };
        self.open(Some(in_time.min(hosts)));
        self.generate(Generator::OneEach(flows));
        SourceKind::Open
    }

    /// Settles which hosts a traffic runs among.
    fn choose_hosts(&mut self, t: &TrafficSettings) {
        let set = &t.common.hosts;
        (self.set, self.among) = (HostSet::All, Among::all(self.topology));
        match set.members(self.topology.hosts) {
            Ok(None) => {}
            Ok(Some(members)) if members.len() < 2 && !t.kind.is_job() => {
                self.wrong("hosts", "a traffic needs two hosts at least");
            }
            Ok(Some(members)) => {
                self.among = Among::of(self.topology, members);
                self.set = set.clone();
            }
            Err(text) => self.wrong("hosts", text),
        }
    }

    /// Refuses a host that a traffic names and is not among its hosts.
    fn known(&mut self, key: &str, host: u32) -> Option<u32> {
        let place = self.among.place(host);
        if place.is_none() && host < self.topology.hosts {
            let text = format!("host {host} is not among the traffic's hosts");
            self.wrong(key, text);
        }
        place
    }

    /// Adds what draws flows by places.
    fn generate(&mut self, generator: Generator) {
        self.generators.push(match &self.among.members {
            None => generator,
            Some(members) => Generator::Among(Box::new(generator), members.clone()),
        });
    }

    fn wrong(&mut self, key: &str, message: impl Into<String>) {
        let path = format!("traffic.{}.{key}", self.name);
        self.report.wrong(&path, message);
    }

    /// The same, in place of what the traffic would become.
    fn refuse<T>(&mut self, key: &str, message: impl Into<String>) -> Option<T> {
        self.wrong(key, message);
        None
    }

    fn size(&mut self, key: &str, size: Bytes) {
        if size.get() == 0 || size.get() > BYTES_MAX {
            let most = Bytes(BYTES_MAX);
            self.wrong(key, format!("{size} is no size of a flow; 1B to {most} are"));
        }
    }

    /// Counts the flow ids of an open-loop source, if they can be counted.
    fn open(&mut self, ids: Option<u64>) {
        self.open_ids = self.open_ids.zip(ids).map(|(a, b)| a.saturating_add(b));
    }

    /// The requests of a traffic and its servers' think times.
    fn asks(&mut self, request: Option<Bytes>, thinking: Thinking) {
        if let Some(request) = request {
            self.size("request", request);
        } else if thinking != Thinking::default() {
            let text = format!(
                "traffic {:?} has a think time and no request: nobody is asked, and nobody thinks",
                self.name
            );
            self.report.warn(text);
        }
        for (key, time) in [("think-time", thinking.mean), ("think-deviation", thinking.deviation)]
        {
            if time > Time::from_s(1_000) {
                self.wrong(key, format!("{time} is more than 1000s"));
            }
        }
        self.thinking[self.class as usize] = thinking;
    }

    fn can_cross(&mut self, pairs: Pairs) -> bool {
        let can = pairs == Pairs::Random || self.among.leaves() > 1;
        if !can {
            self.wrong("pairs", "\"inter-leaf\" needs hosts on at least two leaves");
        }
        can
    }

    fn flows(&mut self, table: Arc<FlowTable>) -> Option<SourceKind> {
        let (class, start, stop) = (self.class, self.start, self.stop);
        if self.among.members.is_some() {
            let ends = table.rows.iter().flat_map(|row| [row.src, row.dst]);
            if let Some(host) = ends.into_iter().find(|host| self.among.place(*host).is_none()) {
                self.known("hosts", host);
            }
        }
        let mut classes = Vec::with_capacity(table.classes.len());
        for c in &table.classes {
            if ["all", "mice", "elephants"].contains(&c.as_str()) {
                self.wrong("file", format!("the class {c:?} is taken by the statistics"));
            }
            let number = *self.numbers.entry(c.clone()).or_insert(self.classes.len());
            if self.is_awaited.get(number) == Some(&true) && number != class as usize {
                self.wrong(
                    "file",
                    format!(
                        "the class {c:?} is a traffic for which others wait; call it otherwise"
                    ),
                );
            }
            if number == self.classes.len() {
                self.classes.push(c.clone());
                self.priorities.push(self.priorities[class as usize]);
                self.thinking.push(Thinking::default());
                self.transports.push(self.transports[class as usize]);
            }
            classes.push(number as u16);
        }
        if self.classes.len() > u16::MAX as usize {
            self.wrong("file", "makes more than 65535 classes");
        }
        let before_stop = table.rows.partition_point(|row| start.saturating_add(row.start) < stop);
        self.open(Some(before_stop as u64));
        // Of what waits the run reports what never started.
        if before_stop < table.rows.len() && table.waits.is_none() {
            let late = table.rows.len() - before_stop;
            self.report.warn(format!(
                "traffic {:?}: {late} flows would start after its stop and are left out",
                self.name
            ));
        }
        let listed = Listed { table, start, stop, class, classes: classes.into(), next: 0 };
        self.generators.push(Generator::Listed(listed));
        Some(SourceKind::Open)
    }
}
