//! The merged stream of open-loop arrivals.

use super::among::named;
use super::dependencies::Roots;
use super::emitted::Emitted;
use super::incast::Incast;
use super::load::{Load, Pairing};
use super::pattern::{Listed, OneEach};
use super::poisson::Poisson;
use super::{Arrival, Query};
use millpond_core::Time;
use std::sync::Arc;

/// The next event: a query begins, or a flow starts. A query comes right before its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Query(Query),
    Flow(Arrival),
}

/// One open-loop source: yields in order of time.
#[derive(Clone, Debug)]
pub(crate) enum Generator {
    Poisson(Poisson),
    Incast(Incast),
    OneEach(OneEach),
    Listed(Listed),
    Roots(Roots),
    /// One of the others, among these hosts.
    Among(Box<Generator>, Arc<[u32]>),
}

impl Generator {
    /// Its load, if it has a rate.
    pub(super) fn load(&self) -> Option<Load> {
        match self {
            Generator::Poisson(g) => Some(g.load()),
            Generator::Incast(g) => g.load(),
            Generator::Among(g, members) => {
                let mut load = g.load()?;
                if let Pairing::Into(place) = &mut load.pairing {
                    *place = members[*place as usize];
                }
                Some(Load { members: Some(members.clone()), ..load })
            }
            Generator::OneEach(_) | Generator::Listed(_) | Generator::Roots(_) => None,
        }
    }

    pub(super) fn next(&mut self) -> Option<(Time, Emitted)> {
        match self {
            Generator::Poisson(g) => g.next(),
            Generator::Incast(g) => g.next(),
            Generator::OneEach(g) => g.next(),
            Generator::Listed(g) => g.next(),
            Generator::Roots(g) => g.next(),
            Generator::Among(g, members) => {
                g.next().map(|(at, emitted)| (at, named(emitted, members)))
            }
        }
    }
    /// The class of its queries, and of flows that name none.
    pub(crate) fn class(&self) -> u16 {
        match self {
            Generator::Poisson(g) => g.class,
            Generator::Incast(g) => g.shape.class,
            Generator::OneEach(g) => g.class,
            Generator::Listed(g) => g.class,
            Generator::Roots(_) => 0,
            Generator::Among(g, _) => g.class(),
        }
    }

    /// Pairs of hosts, each with its class, that show which hosts its flows connect, in a network
    /// of so many.
    pub(crate) fn pairs(&self, hosts: u32) -> Vec<(u16, (u32, u32))> {
        let class = self.class();
        match self {
            Generator::Poisson(_) | Generator::Incast(_) => {
                (0..hosts).map(|host| (class, (0, host))).collect()
            }
            Generator::OneEach(g) => {
                (0..).zip(&*g.to).map(|(from, to)| (class, (from, *to))).collect()
            }
            Generator::Listed(g) => {
                let own = |number: u16| g.classes[usize::from(number)];
                let rows = g.table.rows.iter();
                rows.map(|row| (row.class.map_or(class, own), (row.src, row.dst))).collect()
            }
            Generator::Roots(_) => Vec::new(),
            Generator::Among(g, members) => {
                let of = |place: u32| members[place as usize];
                let pairs = g.pairs(members.len() as u32).into_iter();
                pairs.map(|(class, (a, b))| (class, (of(a), of(b)))).collect()
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Head {
    generator: Generator,
    next: Option<(Time, Emitted)>,
    query: u32,
}

/// The open-loop flows and queries of a plan, in order; made by [`super::TrafficPlan::arrivals`].
#[derive(Clone, Debug)]
pub struct Arrivals {
    heads: Vec<Head>,
    /// By host: whether its flows are among them; `None`: all are.
    only: Option<Arc<[bool]>>,
    /// A `u64`, so that running out of ids is seen and not wrapped.
    next_flow: u64,
    next_query: u32,
}

impl Arrivals {
    pub(super) fn new(
        generators: &[Generator],
        first_flow: u32,
        only: Option<Arc<[bool]>>,
    ) -> Arrivals {
        let heads = generators.iter().cloned().map(|mut generator| {
            let next = generator.next();
            Head { generator, next, query: 0 }
        });
        Arrivals { heads: heads.collect(), only, next_flow: first_flow as u64, next_query: 0 }
    }

    /// The next flow, passing over queries.
    pub fn next_arrival(&mut self) -> Option<Arrival> {
        self.find_map(|event| match event {
            Event::Flow(arrival) => Some(arrival),
            Event::Query(_) => None,
        })
    }
}

impl Iterator for Arrivals {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        loop {
            let event = self.draw()?;
            let Some(only) = &self.only else { return Some(event) };
            let host = match event {
                Event::Flow(flow) => flow.src,
                Event::Query(query) => query.client,
            };
            if only[host as usize] {
                return Some(event);
            }
        }
    }
}

impl Arrivals {
    /// The next of all hosts' flows and queries.
    fn draw(&mut self) -> Option<Event> {
        let first = self
            .heads
            .iter_mut()
            .filter(|h| h.next.is_some())
            .min_by_key(|h| h.next.map(|(at, _)| at))?;
        let (at, emitted) = first.next?;
        first.next = first.generator.next();
        match emitted {
            Emitted::Query { client, degree } => {
                first.query = self.next_query;
                self.next_query += 1;
                let class = first.generator.class();
                Some(Event::Query(Query { query: first.query, client, degree, at, class }))
            }
            Emitted::Numbered(arrival) => Some(Event::Flow(arrival)),
            Emitted::Flow { src, dst, bytes, response, class, of_query } => {
                // A plan whose flows would not fit 32 bits is refused; this is the last resort of
                // an endless one.
                let flow = u32::try_from(self.next_flow).ok().filter(|&f| f < u32::MAX - 1)?;
                self.next_flow += if response == 0 { 1 } else { 2 };
                let query = of_query.then_some(first.query);
                Some(Event::Flow(Arrival { at, src, dst, bytes, response, class, flow, query }))
            }
        }
    }
}
