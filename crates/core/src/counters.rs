//! Counts: the closed list of reasons for which a packet may be dropped, and what mechanisms count
//! by name.
//!
//! A mechanism reports its counts by name ([`Named`]). Code that carries them to the results has
//! neither names nor meanings: only the rule by which the counts of several instances become one
//! number ([`Count`]).
//!
//! Invariant: every packet that is injected is delivered, dropped for exactly one of these reasons,
//! or in flight. Named counts are the same in whatever order instances report them.

use crate::units::Time;
use std::collections::BTreeMap;

crate::named! {
    /// Why a packet was dropped.
    #[repr(u8)]
    pub enum DropReason {
        /// It did not fit the port's own buffer.
        QueueFull = "queue-full",
        /// It did not fit its share of a shared buffer.
        SharedBuffer = "shared-buffer",
        /// An admission policy refused it although it would have fitted.
        Early = "early",
        /// Its color was refused beyond the color threshold.
        Color = "color",
        /// Its queue refused it and no other would take it.
        NoDeflection = "no-deflection",
        /// It fitted the switch's length of the queue, and not the true one.
        OverflowStale = "overflow-stale",
        /// It was removed from a queue for a more important one.
        Evicted = "evicted",
        /// A watchdog of pauses emptied its queue, or kept it out.
        Watchdog = "watchdog",
        Ttl = "ttl",
        /// The receiving host's ring was full.
        ReceiveRing = "receive-ring",
        /// A virtual switch had no room for it.
        VirtualSwitch = "virtual-switch",
        Limit = "limit",
        LinkDown = "link-down",
        /// It was lost on purpose: a failure's `loss`, or a test.
        Injected = "injected",
    }
}

/// The counts of a mechanism's instances under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    Sum(u64),
    Max(u64),
    /// The sum of times, reported in microseconds.
    Micros(Time),
    /// The mean of numbers, rounded down: their sum, and how many they are. The mean of none is 0.
    Mean(u128, u64),
    /// The median of numbers from 0 on: how often each occurred. The median of none is 0.
    Median(Vec<u64>),
}

impl From<u64> for Count {
    fn from(count: u64) -> Count {
        Count::Sum(count)
    }
}

impl Count {
    /// Adds another instance's.
    ///
    /// # Panics
    /// Where it is of another sort: one name means one thing.
    fn add(&mut self, other: Count) {
        match (self, other) {
            (Count::Sum(mine), Count::Sum(its)) => *mine += its,
            (Count::Max(mine), Count::Max(its)) => *mine = its.max(*mine),
            (Count::Micros(mine), Count::Micros(its)) => *mine = mine.saturating_add(its),
            (Count::Mean(sum, of), Count::Mean(its_sum, its_of)) => {
                *sum += its_sum;
                *of += its_of;
            }
            (Count::Median(mine), Count::Median(its)) => {
                mine.resize(mine.len().max(its.len()), 0);
                mine.iter_mut().zip(its).for_each(|(mine, its)| *mine += its);
            }
            (mine, its) => panic!("{mine:?} and {its:?} have one name"),
        }
    }

    /// The counter as one number: its sum, or its largest value.
    pub fn number(&self) -> u64 {
        match self {
            Count::Sum(number) | Count::Max(number) => *number,
            Count::Micros(time) => time.as_us_f64().round() as u64,
            Count::Mean(sum, of) => sum.checked_div(u128::from(*of)).unwrap_or(0) as u64,
            Count::Median(counts) => {
                let (total, mut seen) = (counts.iter().sum::<u64>(), 0);
                let reaches = |count: &u64| {
                    seen += count;
                    2 * seen >= total
                };
                counts.iter().position(reaches).filter(|_| total > 0).unwrap_or(0) as u64
            }
        }
    }
}

/// The counts of a mechanism, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named(BTreeMap<String, Count>);

impl Named {
    /// Adds what an instance has counted.
    pub fn add(&mut self, name: impl Into<String>, count: impl Into<Count>) {
        use std::collections::btree_map::Entry;
        match self.0.entry(name.into()) {
            Entry::Vacant(entry) => _ = entry.insert(count.into()),
            Entry::Occupied(mut entry) => entry.get_mut().add(count.into()),
        }
    }

    /// The number of this name; 0 if nothing was reported under it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, Count::number)
    }
}

/// The counts of all mechanisms, by the mechanism's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, Named>);

impl Counters {
    /// Those of a mechanism, which is among them from now on though it may have counted nothing.
    pub fn of(&mut self, mechanism: &str) -> &mut Named {
        self.0.entry(mechanism.to_string()).or_default()
    }

    /// A mechanism's number of this name; 0 if there is none.
    pub fn get(&self, mechanism: &str, name: &str) -> u64 {
        self.0.get(mechanism).map_or(0, |named| named.get(name))
    }

    /// Whether a mechanism is among them.
    pub fn has(&self, mechanism: &str) -> bool {
        self.0.contains_key(mechanism)
    }

    pub fn merge(&mut self, other: Counters) {
        for (mechanism, named) in other.0 {
            let own = self.of(&mechanism);
            named.0.into_iter().for_each(|(name, count)| own.add(name, count));
        }
    }

    /// Every counter as a number, by the mechanism's name and the counter's.
    pub fn numbers(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let of = |named: &Named| {
            named.0.iter().map(|(name, count)| (name.clone(), count.number())).collect()
        };
        self.0.iter().map(|(mechanism, named)| (mechanism.clone(), of(named))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(counts: &[Count]) -> u64 {
        let mut named = Named::default();
        counts.iter().for_each(|count| named.add("x", count.clone()));
        named.get("x")
    }

    #[test]
    fn counts_of_instances_become_one_number() {
        use Count::{Max, Mean, Median, Micros, Sum};
        assert_eq!(told(&[Sum(3), Sum(4)]), 7);
        assert_eq!(told(&[Max(3), Max(4), Max(2)]), 4);
        assert_eq!(
            told(&[Micros(Time::from_ns(1_300)), Micros(Time::from_ns(1_200))]),
            3,
            "rounded once, at the end"
        );
        assert_eq!((told(&[Mean(10, 3), Mean(1, 1)]), told(&[Mean(0, 0)])), (2, 0));
        assert_eq!(
            (told(&[Median(vec![0, 1]), Median(vec![0, 0, 0, 2])]), told(&[Median(vec![0; 4])])),
            (3, 0)
        );
        assert_eq!(told(&[Median(vec![1, 1])]), 0, "the lower of two in the middle");
    }

    #[test]
    #[should_panic(expected = "have one name")]
    fn one_name_means_one_thing() {
        told(&[Count::Sum(1), Count::Max(1)]);
    }

    #[test]
    fn a_mechanism_that_counted_nothing_is_there() {
        let mut counters = Counters::default();
        counters.of("pfc");
        counters.of("tlt").add("echoes", 2);
        counters.of("tlt").add("echoes", 3);
        assert!(counters.has("pfc") && !counters.has("none"));
        assert_eq!((counters.get("tlt", "echoes"), counters.get("pfc", "echoes")), (5, 0));
        let numbers = counters.numbers();
        assert_eq!(numbers.keys().collect::<Vec<_>>(), ["pfc", "tlt"]);
        assert_eq!(numbers["tlt"]["echoes"], 5);
    }
}
