//! From traffic tables to a traffic plan: draws what is drawn in advance, reserves ids, and checks
//! what can be checked.

mod after;

use super::arrivals::Generator;
use super::dependencies::{self, Roots};
use super::flows::FlowTable;
use super::incast::{Incast, IncastShape, Spacing};
use super::params::{
    IncastParams, LoadBase, Pairs, PoissonParams, ProbePairs, ProbeParams, Receiver, RpcParams,
    TrafficParams,
};
use super::pattern::{self, Listed, OneEach};
use super::poisson::{Poisson, other_host};
use super::{ProbePair, Source, SourceKind, Thinking, TrafficPlan};
use crate::cdf::{SizeSpec, Sizes};
use crate::error::{Problem, Report};
use crate::settings::{Settings, TrafficSettings};
use crate::topology::Topology;
use crate::transport::TransportKind;
use millpond_core::random::Stream;
use millpond_core::{Bytes, Time};
use std::collections::HashMap;
use std::sync::Arc;

/// Shuffles keep every host's order, so their memory grows with the square of the hosts.
const SHUFFLE_HOSTS_MAX: u32 = 8_192;

/// More pairs than this are taken for a slip of the pen.
const PROBE_PAIRS_MAX: u32 = 1_000_000;

/// The name of a traffic: its own, or its kind's.
pub(crate) fn name_of(settings: &TrafficSettings) -> String {
    use millpond_core::registry::Choice;
    settings.common.name.clone().unwrap_or_else(|| settings.kind.kind().to_string())
}

/// More flows than this at one instant are taken for a slip of the pen: each needs its memory at
/// both ends.
const AT_ONCE_MAX: u64 = 16_000_000;

/// Flow ids are 32 bits, and the last two mean something else.
const IDS_MAX: f64 = (u32::MAX - 1) as f64;

/// What all sources are built with.
struct Builder<'a> {
    settings: &'a Settings,
    topology: &'a Topology,
    horizon: Time,
    report: &'a mut Report,
    classes: Vec<String>,
    /// By name; of two classes of one name, which is an error, the first.
    numbers: HashMap<String, usize>,
    /// By class.
    priorities: Vec<u8>,
    /// By class.
    thinking: Vec<Thinking>,
    /// By class.
    transports: Vec<u8>,
    generators: Vec<Generator>,
    graph: dependencies::Builder,
    /// By traffic: those that it waits for, and whether another waits for it.
    after: Vec<Vec<u16>>,
    is_awaited: Vec<bool>,
    /// Next closed-loop flow id.
    next_id: u64,
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
    let classes: Vec<String> = settings.traffic.iter().map(name_of).collect();
    let numbers =
        classes.iter().enumerate().rev().map(|(number, name)| (name.clone(), number)).collect();
    let (transports, other_transports) = transports(settings, report);
    let mut b = Builder {
        settings,
        topology,
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
        open_ids: Some(0),
        drawn_ids: 0.0,
        is_finite: true,
    };
    let mut sources = Vec::new();
    let mut rpc = false;
    b.find_after();
    for (i, t) in settings.traffic.iter().enumerate() {
        let kind = b.dependent_source(i as u16, t);
        rpc |= matches!(kind, SourceKind::Rpc { .. });
        sources.push(Source { class: i as u16, kind });
    }
    let first_dependent = b.next_id as u32;
    b.next_id += b.graph.len();
    let dependencies = std::mem::take(&mut b.graph).finish(first_dependent, topology);
    b.generators.extend(dependencies.clone().map(|graph| Generator::Roots(Roots::new(graph))));
    let total = b.open_ids.map(|open| open.saturating_add(b.next_id));
    if b.next_id.max(total.unwrap_or(0)) as f64 + b.drawn_ids >= IDS_MAX {
        let message = "the traffic has more flows than 32 bits can number";
        b.report.add(settings.place("traffic"), Problem::Impossible(message.into()));
    }
    TrafficPlan {
        classes: b.classes,
        priorities: b.priorities,
        thinking: b.thinking,
        transports: b.transports,
        other_transports,
        sources,
        first_open_flow: b.next_id as u32,
        total_flows: total.filter(|_| !rpc),
        is_finite: b.is_finite,
        dependencies,
        generators: b.generators,
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
        report.add(
            settings.place("traffic"),
            Problem::Impossible("more than 255 different transports".into()),
        );
    }
    (numbers.into_iter().map(|n| n as u8).collect(), others)
}

impl Builder<'_> {
    fn source(&mut self, class: u16, t: &TrafficSettings) -> SourceKind {
        let name = name_of(t);
        let mut random = Stream::new(self.settings.run.seed, &format!("traffic/{name}"));
        if t.common.priority > 7 {
            self.wrong(&name, "priority", "expected a priority from 0 to 7".into());
        }
        let start = t.common.start;
        // What waits starts after a time that nobody knows yet.
        let waits = !self.after[class as usize].is_empty();
        let stop = t.common.stop.map_or(self.horizon, |s| s.min(self.horizon));
        let stop = if waits { Time::END } else { stop };
        if start >= stop {
            let message = format!(
                "starts at {start}, which is not before its stop or the end of the run at {stop}"
            );
            self.wrong(&name, "start", message);
        }
        let hosts = self.topology.hosts;
        let attachment = &*self.topology.attachment;
        let inter_leaf = |pairs: Pairs| (pairs == Pairs::InterLeaf).then_some(attachment);
        let (to, size, stagger) = match &t.kind {
            TrafficParams::Poisson(p) => return self.poisson(class, &name, random, p, start, stop),
            TrafficParams::Incast(p) => return self.incast(class, &name, random, p, start, stop),
            TrafficParams::Rpc(p) => return self.rpc(&name, random, p, start, stop),
            TrafficParams::Probe(p) => return self.probe(&name, random, p, start, stop),
            TrafficParams::Flows(p) => {
                return self.flows(class, &name, p.rows.0.clone(), start, stop);
            }
            TrafficParams::Shuffle(p) => {
                self.size(&name, "size", p.size);
                return self.shuffle(&name, random, p.size.get(), p.concurrency, start, stop);
            }
            TrafficParams::Permutation(p) => {
                (pattern::permutation(&mut random, hosts), p.size, p.stagger)
            }
            TrafficParams::Bijection(p) => {
                (pattern::bijection(&mut random, attachment), p.size, p.stagger)
            }
            TrafficParams::Random(p) => {
                if !self.can_cross(&name, p.pairs) {
                    return SourceKind::Open;
                }
                (pattern::random(&mut random, hosts, inter_leaf(p.pairs)), p.size, p.stagger)
            }
            TrafficParams::Stride(p) => {
                if p.offset % hosts == 0 {
                    self.wrong(
                        &name,
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
        self.size(&name, "size", size);
        let span = stop.saturating_sub(start).as_ps();
        let in_time =
            if stagger == Time::ZERO { hosts as u64 } else { span.div_ceil(stagger.as_ps()) };
        self.open(Some(in_time.min(hosts as u64)));
        let to: Arc<[u32]> = to.into();
        let one_each = OneEach { to, bytes: size.get(), start, stagger, stop, class, next: 0 };
        self.generators.push(Generator::OneEach(one_each));
        SourceKind::Open
    }

    fn wrong(&mut self, name: &str, key: &str, message: String) {
        let path = format!("traffic.{name}.{key}");
        self.report.value(self.settings.place(&path), &path, message);
    }

    fn size(&mut self, name: &str, key: &str, size: Bytes) {
        if size.get() == 0 || size.get() > super::flows::BYTES_MAX {
            self.wrong(
                name,
                key,
                format!(
                    "{size} is no size of a flow; 1B to {} are",
                    Bytes(super::flows::BYTES_MAX)
                ),
            );
        }
    }

    /// Counts the flow ids of an open-loop source, if they can be counted.
    fn open(&mut self, ids: Option<u64>) {
        self.open_ids = self.open_ids.zip(ids).map(|(a, b)| a.saturating_add(b));
    }

    /// What a traffic's requests and its servers' think times are.
    fn asks(&mut self, class: u16, name: &str, request: Option<Bytes>, thinking: Thinking) {
        if let Some(request) = request {
            self.size(name, "request", request);
        } else if thinking != Thinking::default() {
            let text = format!(
                "traffic {name:?} has a think time and no request: nobody is asked, and nobody \
                 thinks"
            );
            self.report.warnings.push(text);
        }
        for (key, time) in [("think-time", thinking.mean), ("think-deviation", thinking.deviation)]
        {
            if time > Time::from_s(1_000) {
                self.wrong(name, key, format!("{time} is more than 1000s"));
            }
        }
        self.thinking[class as usize] = thinking;
    }

    fn can_cross(&mut self, name: &str, pairs: Pairs) -> bool {
        let can = pairs == Pairs::Random || self.topology.leaves() > 1;
        if !can {
            self.wrong(name, "pairs", "\"inter-leaf\" needs hosts on at least two leaves".into());
        }
        can
    }

    /// The sizes of flows; `None` if there are none, which is already reported.
    fn sizes(&mut self, name: &str, sizes: &SizeSpec) -> Option<Sizes> {
        match sizes {
            SizeSpec::Fixed(bytes) => {
                self.size(name, "sizes", *bytes);
                Some(Sizes::Fixed(bytes.get()))
            }
            SizeSpec::Points(cdf) | SizeSpec::File { points: Some(cdf), .. } => {
                Some(Sizes::Cdf(cdf.clone()))
            }
            SizeSpec::Builtin(builtin) => {
                crate::cdf::Cdf::builtin(builtin).map(|cdf| Sizes::Cdf(Arc::new(cdf)))
            }
            SizeSpec::File { .. } => None,
        }
    }

    fn poisson(
        &mut self,
        class: u16,
        name: &str,
        random: Stream,
        p: &PoissonParams,
        start: Time,
        stop: Time,
    ) -> SourceKind {
        let crosses = self.can_cross(name, p.pairs);
        self.asks(
            class,
            name,
            p.request,
            Thinking { mean: p.think_time, deviation: p.think_deviation },
        );
        let Some(sizes) = self.sizes(name, &p.sizes) else { return SourceKind::Open };
        let (base, capacity) = match p.load_base.settled(self.topology.fabric_capacity()) {
            LoadBase::HostLinks => ("the host links", self.topology.host_capacity()),
            _ => ("the leaves' uplinks", self.topology.fabric_capacity()),
        };
        if capacity == 0 {
            self.wrong(
                name,
                "load-base",
                "\"fabric\" needs leaves with uplinks; use \"host-links\"".into(),
            );
        }
        if !(p.load > 0.0 && p.load <= 1_000.0) {
            self.wrong(
                name,
                "load",
                format!("{} is no load; above 0 and up to 1000 is, 1 being all of {base}", p.load),
            );
            return SourceKind::Open;
        }
        if p.load > 1.0 {
            let text =
                format!("traffic {name:?} offers a load of {}: more than {base} can carry", p.load);
            self.report.warnings.push(text);
        }
        let rate = p.load * capacity as f64 / (8.0 * sizes.mean().max(1.0));
        let ids = if p.request.is_some() { 2 } else { 1 };
        let expected = rate * stop.saturating_sub(start).as_s_f64();
        if p.count.is_none() && stop == Time::END {
            self.is_finite = false;
        } else if p.count.is_none() && expected * ids as f64 > 4e9 {
            self.wrong(
                name,
                "load",
                format!("makes about {expected:.1e} flows, more than 32 bits can number"),
            );
        }
        self.open(p.count.filter(|_| stop == Time::END).map(|count| count.saturating_mul(ids)));
        if stop < Time::END {
            // Less than one may still be one.
            self.drawn_ids +=
                expected.max(1.0).min(p.count.unwrap_or(u64::MAX) as f64) * ids as f64;
        }
        if crosses && capacity > 0 {
            let inter_leaf =
                (p.pairs == Pairs::InterLeaf).then(|| self.topology.attachment.clone());
            let (gap, left, hosts) = (1.0 / rate, p.count.unwrap_or(u64::MAX), self.topology.hosts);
            let request = p.request.map_or(0, Bytes::get);
            let g = Poisson {
                random,
                at: start,
                stop,
                gap,
                left,
                sizes,
                request,
                hosts,
                inter_leaf,
                class,
            };
            self.generators.push(Generator::Poisson(g));
        }
        SourceKind::Open
    }

    /// The time between queries; `None` if it is wrong, which is then in the report.
    fn spacing(&mut self, name: &str, p: &IncastParams) -> Option<Spacing> {
        Some(match (p.rate, p.period) {
            (Some(_), Some(_)) => {
                self.wrong(name, "period", "is given together with rate; give one of them".into());
                return None;
            }
            (Some(rate), None) if !(rate > 0.0 && rate <= 1e9) => {
                self.wrong(
                    name,
                    "rate",
                    format!("{rate} is no rate; above 0 and up to 1e9 queries per second is"),
                );
                return None;
            }
            (None, Some(Time::ZERO)) => {
                self.wrong(name, "period", "must be more than zero".into());
                return None;
            }
            (Some(rate), None) => Spacing::Random(1.0 / rate),
            (None, Some(period)) => Spacing::Fixed(period),
            (None, None) => Spacing::Fixed(Time::ZERO),
        })
    }

    fn incast(
        &mut self,
        class: u16,
        name: &str,
        random: Stream,
        p: &IncastParams,
        start: Time,
        stop: Time,
    ) -> SourceKind {
        let hosts = self.topology.hosts;
        self.size(name, "response", p.response);
        self.asks(
            class,
            name,
            p.request,
            Thinking { mean: p.think_time, deviation: p.think_deviation },
        );
        if p.degree == 0 || p.degree >= hosts {
            self.wrong(
                name,
                "degree",
                format!("{} of {hosts} hosts; 1 to {} can answer", p.degree, hosts - 1),
            );
        }
        let flows = u64::from(p.degree) * u64::from(p.flows_per_server);
        let at_once = p.rate.is_none() && p.period.is_none();
        let queries_at_once = if at_once { p.count.unwrap_or(1) } else { 1 };
        if flows.saturating_mul(queries_at_once) > AT_ONCE_MAX {
            let key = if flows > AT_ONCE_MAX { "flows-per-server" } else { "count" };
            let text = format!(
                "makes {} flows at once; {AT_ONCE_MAX} is the most",
                u128::from(flows) * u128::from(queries_at_once)
            );
            self.wrong(name, key, text);
            return SourceKind::Open;
        }
        if let Receiver::Host(host) = p.receiver
            && host >= hosts
        {
            self.wrong(name, "receiver", format!("{host} is no host; there are {hosts}, from 0"));
        }
        let Some(spacing) = self.spacing(name, p) else { return SourceKind::Open };
        let count = if at_once { p.count.or(Some(1)) } else { p.count };
        let ids = if p.request.is_some() { 2 } else { 1 } * flows;
        self.is_finite &= count.is_some() || stop < Time::END;
        let exact = count.filter(|_| at_once || stop == Time::END);
        self.open(exact.map(|c| c.saturating_mul(ids)));
        if exact.is_none() && stop < Time::END {
            let gap = match spacing {
                Spacing::Random(seconds) => seconds,
                Spacing::Fixed(period) => period.as_s_f64(),
            };
            // A fraction of a query is none or one, with all of its flows.
            let queries = (stop.saturating_sub(start).as_s_f64() / gap).max(1.0);
            self.drawn_ids += queries.min(count.unwrap_or(u64::MAX) as f64) * ids as f64;
        }
        if p.degree < hosts {
            let shape = IncastShape {
                class,
                start,
                stop,
                count: count.unwrap_or(u64::MAX),
                hosts,
                receiver: p.receiver,
                request: p.request.map_or(0, Bytes::get),
                response: p.response.get(),
                degree: p.degree,
                flows_per_server: p.flows_per_server,
                spacing,
            };
            self.generators.push(Generator::Incast(Incast::new(random, &shape)));
        }
        SourceKind::Open
    }

    fn shuffle(
        &mut self,
        name: &str,
        mut random: Stream,
        size: u64,
        concurrency: u32,
        start: Time,
        stop: Time,
    ) -> SourceKind {
        let hosts = self.topology.hosts;
        if hosts > SHUFFLE_HOSTS_MAX {
            self.wrong(
                name,
                "kind",
                format!("a shuffle among {hosts} hosts; {SHUFFLE_HOSTS_MAX} is the most"),
            );
            return SourceKind::Open;
        }
        // A host has so many flows in all.
        let concurrency = concurrency.min(hosts - 1);
        let first_flow = self.next_id as u32;
        self.next_id += hosts as u64 * (hosts as u64 - 1);
        let order = pattern::shuffle(&mut random, hosts);
        SourceKind::Shuffle { size, concurrency, start, stop, order, first_flow }
    }

    fn rpc(
        &mut self,
        name: &str,
        mut random: Stream,
        p: &RpcParams,
        start: Time,
        stop: Time,
    ) -> SourceKind {
        let hosts = self.topology.hosts;
        self.size(name, "request", p.request);
        self.size(name, "response", p.response);
        for (key, n) in
            [("clients", p.clients), ("servers", p.servers), ("connections", p.connections)]
        {
            if n == 0 {
                self.wrong(name, key, "must be at least 1".into());
            }
        }
        self.is_finite &= stop < Time::END;
        let mut listed = Vec::new();
        for text in &p.pairs {
            match super::params::pair(text) {
                Some((a, b)) if a < hosts && b < hosts && a != b => {
                    listed.extend(std::iter::repeat_n(
                        (a, b),
                        p.connections.min(10_000_000) as usize,
                    ));
                }
                _ => {
                    let last = hosts - 1;
                    self.wrong(
                        name,
                        "pairs",
                        format!(
                            "{text:?} is no pair of hosts such as \"0-1\"; they are 0 to {last}"
                        ),
                    );
                }
            }
        }
        if !p.pairs.is_empty() {
            return self.persistent(p, start, stop, listed);
        }
        let (clients, servers) = (p.clients as u64, p.servers as u64);
        let connections = clients * p.connections as u64;
        if clients + servers > hosts as u64 {
            self.wrong(
                name,
                "clients",
                format!("{clients} clients and {servers} servers are more than {hosts} hosts"),
            );
        }
        if connections > 10_000_000 {
            self.wrong(
                name,
                "connections",
                format!("makes {connections} connections; 10000000 is the most"),
            );
        }
        if clients + servers > hosts as u64 || connections > 10_000_000 || servers == 0 {
            return SourceKind::Open;
        }
        let mut drawn: Vec<u32> = (0..hosts).collect();
        random.shuffle(&mut drawn);
        let (asking, answering) = drawn.split_at(p.clients as usize);
        let pairs = (0..connections).map(|i| {
            (asking[(i / p.connections as u64) as usize], answering[(i % servers) as usize])
        });
        let connections: Vec<(u32, u32)> = pairs.collect();
        self.persistent(p, start, stop, connections)
    }

    fn persistent(
        &mut self,
        p: &RpcParams,
        start: Time,
        stop: Time,
        connections: Vec<(u32, u32)>,
    ) -> SourceKind {
        let first_flow = self.next_id as u32;
        self.next_id += 2 * connections.len() as u64;
        let (request, response) = (p.request.get(), p.response.get());
        SourceKind::Rpc { connections, request, response, start, stop, first_flow }
    }

    fn probe(
        &mut self,
        name: &str,
        mut random: Stream,
        p: &ProbeParams,
        start: Time,
        stop: Time,
    ) -> SourceKind {
        let hosts = self.topology.hosts;
        self.size(name, "size", p.size);
        if p.period == Time::ZERO {
            self.wrong(name, "period", "must be more than zero".into());
            return SourceKind::Open;
        }
        if p.pairs == ProbePairs::InterLeaf && !self.can_cross(name, Pairs::InterLeaf) {
            return SourceKind::Open;
        }
        let attachment = &self.topology.attachment;
        let drawn: Vec<(u32, u32)> = match &p.pairs {
            ProbePairs::Random => (0..).zip(pattern::random(&mut random, hosts, None)).collect(),
            ProbePairs::InterLeaf => {
                (0..).zip(pattern::random(&mut random, hosts, Some(attachment))).collect()
            }
            ProbePairs::Count(n) => {
                let n = (*n).min(PROBE_PAIRS_MAX + 1);
                let mut pair = |_| {
                    let src = random.below(hosts as u64) as u32;
                    (src, other_host(&mut random, hosts, src, None))
                };
                (0..n).map(&mut pair).collect()
            }
            ProbePairs::Listed(list) => list.clone(),
        };
        if drawn.is_empty() || drawn.len() > PROBE_PAIRS_MAX as usize {
            self.wrong(
                name,
                "pairs",
                format!("{} pairs; 1 to {PROBE_PAIRS_MAX} can probe", drawn.len()),
            );
            return SourceKind::Open;
        }
        for (a, b) in drawn.iter().filter(|(a, b)| a.max(b) >= &hosts || a == b) {
            self.wrong(
                name,
                "pairs",
                format!("{a}-{b} is no pair of hosts; they are 0 to {}", hosts - 1),
            );
        }
        let mut phase = || Time::from_ps(random.below(p.period.as_ps()));
        let pairs: Vec<ProbePair> =
            drawn.into_iter().map(|(src, dst)| ProbePair { src, dst, phase: phase() }).collect();
        let first_flow = self.next_id as u32;
        self.next_id += 2 * pairs.len() as u64;
        SourceKind::Probe { pairs, size: p.size.get(), period: p.period, start, stop, first_flow }
    }

    fn flows(
        &mut self,
        class: u16,
        name: &str,
        table: Option<Arc<FlowTable>>,
        start: Time,
        stop: Time,
    ) -> SourceKind {
        // Without a table the file could not be read, which is already reported.
        let Some(table) = table else { return SourceKind::Open };
        let mut classes = Vec::with_capacity(table.classes.len());
        for c in &table.classes {
            if ["all", "mice", "elephants"].contains(&c.as_str()) {
                self.wrong(name, "file", format!("the class {c:?} is taken by the statistics"));
            }
            let number = *self.numbers.entry(c.clone()).or_insert(self.classes.len());
            if self.is_awaited.get(number) == Some(&true) && number != class as usize {
                self.wrong(
                    name,
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
            self.wrong(name, "file", "makes more than 65535 classes".into());
        }
        let before_stop = table.rows.partition_point(|row| start.saturating_add(row.start) < stop);
        self.open(Some(before_stop as u64));
        // Of what waits the run tells what never started.
        if before_stop < table.rows.len() && table.waits.is_none() {
            let late = table.rows.len() - before_stop;
            self.report.warnings.push(format!(
                "traffic {name:?}: {late} flows would start after its stop and are left out"
            ));
        }
        let listed = Listed { table, start, stop, class, classes: classes.into(), next: 0 };
        self.generators.push(Generator::Listed(listed));
        SourceKind::Open
    }
}
