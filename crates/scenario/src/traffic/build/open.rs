//! Open loops: Poisson arrivals and incasts.

use super::super::arrivals::Generator;
use super::super::incast::{Incast, IncastShape, Spacing};
use super::super::poisson::Poisson;
use super::super::{SourceKind, Thinking};
use super::Builder;
use crate::cdf::{Cdf, SizeSpec, Sizes};
use crate::settings::traffic::{IncastParams, LoadBase, Pairs, PoissonParams, Receiver};
use millpond_core::{Bytes, Time};
use std::sync::Arc;

/// More flows than this at one instant are taken for a slip of the pen: each needs its memory at
/// both ends.
const AT_ONCE_MAX: u64 = 16_000_000;

impl Builder<'_> {
    /// The sizes of flows; `None` if there are none, which is already reported.
    fn sizes(&mut self, sizes: &SizeSpec) -> Option<Sizes> {
        match sizes {
            SizeSpec::Fixed(bytes) => {
                self.size("sizes", *bytes);
                Some(Sizes::Fixed(bytes.get()))
            }
            SizeSpec::Points(cdf) | SizeSpec::File { points: Some(cdf), .. } => {
                Some(Sizes::Cdf(cdf.clone()))
            }
            SizeSpec::Builtin(builtin) => {
                Cdf::builtin(builtin).map(|cdf| Sizes::Cdf(Arc::new(cdf)))
            }
            SizeSpec::File { .. } => None,
        }
    }

    pub(super) fn poisson(&mut self, p: &PoissonParams) -> Option<SourceKind> {
        let (random, start, stop, class) = (self.random(), self.start, self.stop, self.class);
        let crosses = self.can_cross(p.pairs);
        let thinking = Thinking { mean: p.think_time, deviation: p.think_deviation };
        self.asks(p.request, thinking);
        let sizes = self.sizes(&p.sizes)?;
        let (base, capacity) = match p.load_base.settled(self.among.fabric_capacity(self.topology))
        {
            LoadBase::HostLinks => ("the host links", self.among.host_capacity(self.topology)),
            _ => ("the leaves' uplinks", self.among.fabric_capacity(self.topology)),
        };
        if capacity == 0 {
            self.wrong("load-base", "\"fabric\" needs leaves with uplinks; use \"host-links\"");
        }
        if !(p.load > 0.0 && p.load <= 1_000.0) {
            return self.refuse(
                "load",
                format!("{} is no load; above 0 and up to 1000 is, 1 being all of {base}", p.load),
            );
        }
        if p.load > 1.0 {
            let text = format!(
                "traffic {:?} offers a load of {}: more than {base} can carry",
                self.name, p.load
            );
            self.report.warn(text);
        }
        let rate = p.load * capacity as f64 / (8.0 * sizes.mean().max(1.0));
        let ids = if p.request.is_some() { 2 } else { 1 };
        let expected = rate * stop.saturating_sub(start).as_s_f64();
        if p.count.is_none() && stop == Time::END {
            self.is_finite = false;
        } else if p.count.is_none() && expected * ids as f64 > 4e9 {
            self.wrong(
                "load",
                format!("makes about {expected:.1e} flows, more than 32 bits can number"),
            );
        }
        self.open(p.count.filter(|_| stop == Time::END).map(|count| count.saturating_mul(ids)));
        if stop < Time::END {
            // An expectation below one can still draw one flow.
            self.drawn_ids +=
                expected.max(1.0).min(p.count.unwrap_or(u64::MAX) as f64) * ids as f64;
        }
        if crosses && capacity > 0 {
            let inter_leaf = (p.pairs == Pairs::InterLeaf).then(|| self.among.attachment.clone());
            let (gap, left, hosts) = (1.0 / rate, p.count.unwrap_or(u64::MAX), self.among.hosts);
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
            self.generate(Generator::Poisson(g));
        }
        Some(SourceKind::Open)
    }

    /// The time between queries; `None` if it is wrong, which is then in the report.
    fn spacing(&mut self, p: &IncastParams) -> Option<Spacing> {
        Some(match (p.rate, p.period) {
            (Some(_), Some(_)) => {
                return self.refuse("period", "is given together with rate; give one of them");
            }
            (Some(rate), None) if !(rate > 0.0 && rate <= 1e9) => {
                return self.refuse(
                    "rate",
                    format!("{rate} is no rate; above 0 and up to 1e9 queries per second is"),
                );
            }
            (None, Some(Time::ZERO)) => {
                return self.refuse("period", "must be more than zero");
            }
            (Some(rate), None) => Spacing::Random(1.0 / rate),
            (None, Some(period)) => Spacing::Fixed(period),
            (None, None) => Spacing::Fixed(Time::ZERO),
        })
    }

    pub(super) fn incast(&mut self, p: &IncastParams) -> Option<SourceKind> {
        let (start, stop, class) = (self.start, self.stop, self.class);
        let hosts = self.among.hosts;
        self.size("response", p.response);
        let thinking = Thinking { mean: p.think_time, deviation: p.think_deviation };
        self.asks(p.request, thinking);
        if p.degree == 0 || p.degree >= hosts {
            self.wrong(
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
            return self.refuse(key, text);
        }
        let mut receiver = p.receiver;
        if let Receiver::Host(host) = p.receiver {
            let all = self.topology.hosts;
            if host >= all {
                let text = format!("{host} is no host; there are {all}, from 0");
                self.wrong("receiver", text);
            }
            receiver = Receiver::Host(self.known("receiver", host)?);
        }
        let spacing = self.spacing(p)?;
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
                receiver,
                request: p.request.map_or(0, Bytes::get),
                response: p.response.get(),
                degree: p.degree,
                flows_per_server: p.flows_per_server,
                spacing,
            };
            self.generate(Generator::Incast(Incast::new(self.random(), shape)));
        }
        Some(SourceKind::Open)
    }
}
