//! Incast: a query that many servers answer at once.
//!
//! Invariant: the servers of a query are distinct and never its receiver, every set of them is
//! equally likely, and a query costs as much time as its degree whatever the number of hosts.

use super::emitted::Emitted;
use super::load::{Load, Pairing};
use super::poisson::gap;
use crate::settings::traffic::Receiver;
use millpond_core::Time;
use millpond_core::random::Stream;

/// How long from one query to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spacing {
    /// Exponential, with this mean in seconds; also before the first.
    Random(f64),
    /// Constant; none before the first.
    Fixed(Time),
}

#[derive(Clone, Debug)]
pub(crate) struct Incast {
    pub class: u16,
    random: Stream,
    spacing: Spacing,
    next_at: Time,
    stop: Time,
    left: u64,
    hosts: u32,
    receiver: Receiver,
    request: u64,
    response: u64,
    degree: u32,
    /// Flows of a query.
    flows: u32,
    /// A permutation of 0…H−2 of which each query shuffles the first `degree`: the hosts but the
    /// receiver.
    others: Vec<u32>,
    at: Time,
    client: u32,
    /// How many of the present query's flows have been emitted.
    emitted: u32,
}

/// The parameters that an incast is made from.
pub(crate) struct IncastShape {
    pub class: u16,
    pub start: Time,
    pub stop: Time,
    pub count: u64,
    pub hosts: u32,
    pub receiver: Receiver,
    /// 0: servers start by themselves.
    pub request: u64,
    pub response: u64,
    pub degree: u32,
    pub flows_per_server: u32,
    pub spacing: Spacing,
}

impl Incast {
    pub fn new(mut random: Stream, shape: &IncastShape) -> Incast {
        let first = match shape.spacing {
            Spacing::Random(mean) => shape.start.saturating_add(gap(&mut random, mean)),
            Spacing::Fixed(_) => shape.start,
        };
        Incast {
            class: shape.class,
            random,
            spacing: shape.spacing,
            next_at: first,
            stop: shape.stop,
            left: shape.count,
            hosts: shape.hosts,
            receiver: shape.receiver,
            request: shape.request,
            response: shape.response,
            degree: shape.degree,
            flows: shape.degree * shape.flows_per_server,
            others: (0..shape.hosts - 1).collect(),
            at: Time::ZERO,
            client: 0,
            emitted: shape.degree * shape.flows_per_server,
        }
    }

    /// Its load; `None` if all queries start at once.
    pub fn load(&self) -> Option<Load> {
        let gap = match self.spacing {
            Spacing::Random(seconds) => seconds,
            Spacing::Fixed(period) => period.as_s_f64(),
        };
        (gap > 0.0).then(|| Load {
            class: self.class,
            bits_per_second: f64::from(self.flows) * self.response as f64 * 8.0 / gap,
            pairing: match self.receiver {
                Receiver::Random => Pairing::Any,
                Receiver::Host(host) => Pairing::Into(host),
            },
            members: None,
            start: self.next_at,
            end: self.stop,
            half_of_bytes: None,
        })
    }

    pub fn next(&mut self) -> Option<(Time, Emitted)> {
        if self.emitted == self.flows {
            return self.begin();
        }
        let draw = self.others[(self.emitted % self.degree) as usize];
        let server = draw + (draw >= self.client) as u32;
        self.emitted += 1;
        let (src, dst, bytes, response) = match self.request {
            0 => (server, self.client, self.response, 0),
            request => (self.client, server, request, self.response),
        };
        Some((
            self.at,
            Emitted::Flow { src, dst, bytes, response, class: self.class, of_query: true },
        ))
    }

    fn begin(&mut self) -> Option<(Time, Emitted)> {
        if self.left == 0 || self.next_at >= self.stop {
            return None;
        }
        self.left -= 1;
        self.at = self.next_at;
        self.client = match self.receiver {
            Receiver::Random => self.random.below(self.hosts as u64) as u32,
            Receiver::Host(host) => host,
        };
        for i in 0..self.degree as usize {
            let j = i + self.random.below((self.others.len() - i) as u64) as usize;
            self.others.swap(i, j);
        }
        self.emitted = 0;
        self.next_at = self.at.saturating_add(match self.spacing {
            Spacing::Random(mean) => gap(&mut self.random, mean),
            Spacing::Fixed(period) => period,
        });
        Some((self.at, Emitted::Query { client: self.client, degree: self.flows }))
    }
}
