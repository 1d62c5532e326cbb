//! A number over seeds, and its difference to another's.

use serde::{Deserialize, Serialize};

use crate::model::interval::{IntervalKind, excludes_zero};
use crate::model::words::words;

/// A statistic over the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean over the seeds that have it; `null` if none has.
    pub mean: Option<f64>,
    /// The interval of the mean; `null` for fewer than two seeds.
    pub interval: Option<[f64; 2]>,
    /// The kind of the interval's ends; `null` where there is none.
    pub interval_kind: Option<IntervalKind>,
    /// Seeds that have it.
    pub n: u32,
}

words! {
    /// The verdict on a difference.
    #[derive(Default)]
    pub enum Noise {
        /// It is beyond the noise: the 95 % interval of the paired difference excludes zero.
        Beyond = "beyond",
        /// All seeds agree on the sign, but they are too few for an interval that holds 95 %.
        Agreed = "agreed",
        /// It is within the noise: the interval holds zero.
        Within = "within",
        /// It is the same in every seed: the seeds do not vary it, so nothing distinguishes it from
        /// noise.
        Identical = "identical",
        /// The variant that seems to be less has flows or queries open at the end, which could undo
        /// the difference.
        Open = "open",
        /// There is no interval: one seed.
        #[default]
        Unknown = "unknown",
    }
}

impl Noise {
    /// Of the mean of paired differences.
    pub(crate) fn of(estimate: &Estimate) -> Noise {
        match (estimate.interval, estimate.interval_kind) {
            (None, _) | (_, None) => Noise::Unknown,
            (_, Some(IntervalKind::Identical)) => Noise::Identical,
            (Some(ends), _) if !excludes_zero(ends) => Noise::Within,
            (_, Some(IntervalKind::Range)) => Noise::Agreed,
            (_, Some(IntervalKind::Bootstrap95 | IntervalKind::Normal95)) => Noise::Beyond,
        }
    }
}

/// A statistic's difference to the first variant over the seeds that both have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Mean of this variant's value less the first one's, in the statistic's unit.
    pub mean: Option<f64>,
    /// The same over the first variant's mean: −0.5 is half of it; `null` if that is zero.
    pub relative: Option<f64>,
    /// The interval of `relative`, which is not below −1; `null` where either is.
    pub relative_interval: Option<[f64; 2]>,
    /// The interval of the mean; `null` for fewer than two seeds.
    pub interval: Option<[f64; 2]>,
    /// The kind of the interval's ends; `null` where there is none.
    pub interval_kind: Option<IntervalKind>,
    /// Seeds that both have.
    pub n: u32,
    /// The verdict on it.
    pub noise: Noise,
}

/// A shown number in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShownNumber {
    /// Over the seeds, as tables show it.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Whether it is only a lower bound, since flows or queries are open.
    pub at_least: bool,
    /// To the first variant, or to the point that this one is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}
