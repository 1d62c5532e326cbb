//! Traffics that wait for others, and lists whose flows do: they are held in the graph of
//! dependencies instead of among the arrivals.

use super::super::SourceKind;
use super::super::arrivals::Generator;
use super::super::dependencies::Dependent;
use super::super::emitted::Emitted;
use super::Builder;
use crate::error::meant;
use crate::settings::flows::{FlowTable, cycle};
use crate::settings::traffic::{TrafficParams, TrafficSettings};
use millpond_core::Time;
use millpond_core::registry::Choice;
use std::sync::Arc;

/// More flows than this are not held for a traffic that waits.
const WAITING_MAX: usize = 16_000_000;

/// The flows of a source that is held, which starts nothing from `stop` on; or what it has that
/// cannot be.
fn listed(
    generator: Generator,
    stop: Time,
) -> Result<(Vec<Dependent>, Option<Arc<FlowTable>>), &'static str> {
    let mut flows = Vec::new();
    if let Generator::Listed(list) = generator {
        for row in &list.table.rows {
            let class = row.class.map_or(list.class, |c| list.classes[c as usize]);
            flows.push(Dependent {
                start: row.start,
                src: row.src,
                dst: row.dst,
                bytes: row.bytes,
                class,
                stop,
            });
        }
        let waits = |row: usize| {
            list.table.waits.as_ref().is_some_and(|waits| !waits.after[row].is_empty())
        };
        // A row that waits for another does not wait for the list's start a second time.
        for (row, flow) in flows.iter_mut().enumerate().filter(|(row, _)| !waits(*row)) {
            flow.start = list.start.saturating_add(list.table.rows[row].start);
        }
        return Ok((flows, Some(list.table)));
    }
    let mut generator = generator;
    while let Some((start, emitted)) = generator.next() {
        match emitted {
            Emitted::Flow { src, dst, bytes, response: 0, class, .. } => {
                flows.push(Dependent { start, src, dst, bytes, class, stop });
            }
            Emitted::Flow { .. } => return Err("requests"),
            Emitted::Query { .. } => return Err("queries"),
            Emitted::Numbered(_) => {}
        }
        if flows.len() > WAITING_MAX {
            return Err("more flows than memory holds (give it a count)");
        }
    }
    Ok((flows, None))
}

impl Builder<'_> {
    /// Looks up who waits for which traffics. None may wait for itself by way of others.
    pub(super) fn find_after(&mut self) {
        let names: Vec<String> = self.classes.clone();
        for (at, t) in self.settings.traffic.iter().enumerate() {
            self.name.clone_from(&names[at]);
            for other in &t.common.after {
                match self.numbers.get(other) {
                    Some(number) if !self.after[at].contains(&(*number as u16)) => {
                        self.after[at].push(*number as u16);
                        self.is_awaited[*number] = true;
                    }
                    Some(_) => {}
                    None => {
                        let help = meant(other, names.iter().map(String::as_str));
                        self.wrong("after", format!("there is no traffic {other:?}{help}"));
                    }
                }
            }
        }
        let after: Vec<Vec<u32>> =
            self.after.iter().map(|list| list.iter().map(|n| u32::from(*n)).collect()).collect();
        if let Some(cycle) = cycle(&after) {
            let around = cycle.iter().chain(cycle.first()).map(|at| names[*at as usize].as_str());
            let text = around.collect::<Vec<_>>().join(" after ");
            self.name.clone_from(&names[cycle[0] as usize]);
            self.wrong("after", format!("it waits for itself: {text}"));
            self.after.iter_mut().for_each(Vec::clear);
        }
        for traffic in (0..names.len()).filter(|at| self.is_awaited[*at]) {
            self.graph.waited_for(traffic as u16);
        }
    }

    /// A traffic, with what it waits for and who waits for it.
    pub(super) fn dependent_source(&mut self, class: u16, t: &TrafficSettings) -> SourceKind {
        let waits_within = match &t.kind {
            TrafficParams::Flows(p) => p.rows.0.clone().filter(|table| {
                self.is_awaited[class as usize]
                    || table.waits.as_ref().is_some_and(|w| w.after.iter().any(|a| !a.is_empty()))
            }),
            _ => None,
        };
        self.begin(class, t);
        let after = self.after[class as usize].clone();
        if after.is_empty() && waits_within.is_none() {
            let kind = self.source(t);
            if self.is_awaited[class as usize] {
                match self.flows_of(t) {
                    Some(count) if count > 0 => self.graph.counts(class, count),
                    _ => {
                        let text = "it is waited for, and has no number of flows that is known in \
                                    advance; give it a count";
                        self.wrong("kind", text);
                    }
                }
            }
            return kind;
        }
        let (generators, open, drawn) = (self.generators.len(), self.open_ids, self.drawn_ids);
        let kind = self.source(t);
        if self.generators.len() == generators {
            if !matches!(kind, SourceKind::Open) {
                let kinds =
                    "permutation, stride, bijection, random, flows, and poisson with a count";
                self.wrong(
                    "after",
                    format!("a traffic of kind {} cannot wait; {kinds} can", t.kind.kind()),
                );
            }
            return SourceKind::Open;
        }
        (self.open_ids, self.drawn_ids) = (open, drawn);
        match self.generators.pop().map(|generator| listed(generator, self.ends(t))) {
            Some(Ok((flows, table))) => {
                let own = self.graph.add(flows, table.as_ref());
                after.iter().for_each(|other| self.graph.wait(*other, own.clone()));
                if own.is_empty() && self.is_awaited[class as usize] {
                    self.wrong("rows", "it is waited for, and has no flows");
                }
                self.graph.counts_own(class, own);
            }
            Some(Err(what)) => self.wrong("after", format!("a traffic with {what} cannot wait")),
            None => {}
        }
        SourceKind::Open
    }

    /// How many flows a traffic has, if that is known in advance.
    fn flows_of(&self, t: &TrafficSettings) -> Option<u64> {
        let hosts = u64::from(self.among.hosts);
        match &t.kind {
            TrafficParams::Poisson(p) => p.count,
            TrafficParams::Incast(p) => {
                let queries = if p.rate.is_none() && p.period.is_none() {
                    p.count.or(Some(1))
                } else {
                    p.count
                }?;
                Some(queries.saturating_mul(u64::from(p.degree) * u64::from(p.flows_per_server)))
            }
            TrafficParams::Shuffle(_) => Some(hosts * (hosts - 1)),
            TrafficParams::Rpc(_)
            | TrafficParams::Probe(_)
            | TrafficParams::Flows(_)
            | TrafficParams::Collective(_)
            | TrafficParams::Goal(_)
            | TrafficParams::Simai(_)
            | TrafficParams::Chakra(_) => None,
            TrafficParams::Permutation(_)
            | TrafficParams::Bijection(_)
            | TrafficParams::Random(_)
            | TrafficParams::Stride(_) => Some(hosts),
        }
    }
}
