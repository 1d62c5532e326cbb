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

#[derive(Clone, Debug)]
pub(crate) struct Incast {
    pub shape: IncastShape,
    random: Stream,
    next_at: Time,
    left: u64,
    /// A permutation of 0…H−2 of which each query shuffles the first `degree`: the hosts but the
    /// receiver.
    others: Vec<u32>,
    at: Time,
    client: u32,
    /// How many of the present query's flows have been emitted.
    emitted: u32,
}

impl Incast {
    pub fn new(mut random: Stream, shape: IncastShape) -> Incast {
        let next_at = match shape.spacing {
            Spacing::Random(mean) => shape.start.saturating_add(gap(&mut random, mean)),
            Spacing::Fixed(_) => shape.start,
        };
        let (left, emitted) = (shape.count, shape.degree * shape.flows_per_server);
        let (others, at) = ((0..shape.hosts - 1).collect(), Time::ZERO);
        Incast { shape, random, next_at, left, others, at, client: 0, emitted }
    }

    fn flows(&self) -> u32 {
        self.shape.degree * self.shape.flows_per_server
    }

    /// Its load; `None` if all queries start at once.
    pub fn load(&self) -> Option<Load> {
        let gap = match self.shape.spacing {
            Spacing::Random(seconds) => seconds,
            Spacing::Fixed(period) => period.as_s_f64(),
        };
        (gap > 0.0).then(|| Load {
            class: self.shape.class,
            bits_per_second: f64::from(self.flows()) * self.shape.response as f64 * 8.0 / gap,
            pairing: match self.shape.receiver {
                Receiver::Random => Pairing::Any,
                Receiver::Host(host) => Pairing::Into(host),
            },
            members: None,
            start: self.next_at,
            end: self.shape.stop,
            half_of_bytes: None,
        })
    }

    pub fn next(&mut self) -> Option<(Time, Emitted)> {
        if self.emitted == self.flows() {
            return self.begin();
        }
        let draw = self.others[(self.emitted % self.shape.degree) as usize];
        let server = draw + (draw >= self.client) as u32;
        self.emitted += 1;
        let (src, dst, bytes, response) = match self.shape.request {
            0 => (server, self.client, self.shape.response, 0),
            request => (self.client, server, request, self.shape.response),
        };
        Some((
            self.at,
            Emitted::Flow { src, dst, bytes, response, class: self.shape.class, of_query: true },
        ))
    }

    fn begin(&mut self) -> Option<(Time, Emitted)> {
        if self.left == 0 || self.next_at >= self.shape.stop {
            return None;
        }
        self.left -= 1;
        self.at = self.next_at;
        self.client = match self.shape.receiver {
            Receiver::Random => self.random.below(self.shape.hosts as u64) as u32,
            Receiver::Host(host) => host,
        };
        for i in 0..self.shape.degree as usize {
            let j = i + self.random.below((self.others.len() - i) as u64) as usize;
            self.others.swap(i, j);
        }
        self.emitted = 0;
        self.next_at = self.at.saturating_add(match self.shape.spacing {
            Spacing::Random(mean) => gap(&mut self.random, mean),
            Spacing::Fixed(period) => period,
        });
        Some((self.at, Emitted::Query { client: self.client, degree: self.flows() }))
    }
}
