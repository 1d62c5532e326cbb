//! Amounts that differ from port to port: by the tier of the switch, and by the rate of the link.
//!
//! A threshold or a buffer is written once in a scenario. It can be one amount for all ports, an
//! amount by tier ([`ByTier`]), an amount by tier or rate ([`ByPort`]), proportional to the link's
//! rate (the key `per`, [`scaled`]), or left to the mechanism's own rule ([`Auto`]). Which amount a
//! port gets is settled before the first packet.
//!
//! Invariant: an amount that is written as one number, without `per`, is that number at every port.

use crate::params::{Field, Form, Value, ValueError};
use crate::units::Rate;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortSite {
    pub rate: Rate,
    /// Its switch's tier: 0 for leaf and edge (and for a host's NIC), 1 for spine and aggregation,
    /// 2 for core.
    pub tier: u8,
    /// Bytes on the wire of the largest packet.
    pub packet_max: u64,
}

impl PortSite {
    /// Full packets that its link sends in a second.
    pub fn packet_rate(&self) -> f64 {
        self.rate.bps() as f64 / (8 * self.packet_max.max(1)) as f64
    }
}

impl Default for PortSite {
    /// A leaf's port of 10 Gb/s and Ethernet's packets: the port that published thresholds are for.
    fn default() -> Self {
        PortSite { rate: Rate::from_gbps(10), tier: 0, packet_max: 1500 }
    }
}

/// `amount`, which is for a link of rate `per`, at a link of rate `rate`: proportional, rounded
/// down, and at least one. Without `per` the amount is the same at every link.
pub fn scaled(amount: u64, per: Option<Rate>, rate: Rate) -> u64 {
    match per {
        Some(per) if per.bps() > 0 => {
            let product = u128::from(amount) * u128::from(rate.bps()) / u128::from(per.bps());
            u64::try_from(product).unwrap_or(u64::MAX).max(1)
        }
        _ => amount,
    }
}

/// The name of a tier: "leaf" and "edge" are 0, "spine" and "aggregation" 1, "core" 2; "tier-3" and
/// on have no others.
pub fn tier_of(name: &str) -> Option<u8> {
    match name {
        "leaf" | "edge" => Some(0),
        "spine" | "aggregation" => Some(1),
        "core" => Some(2),
        _ => name.strip_prefix("tier-").and_then(|number| number.parse().ok()),
    }
}

/// All names of tiers but "tier-N".
pub const TIER_NAMES: &[&str] = &["leaf", "spine", "edge", "aggregation", "core"];

/// The name under which a table by tier holds the amount of all tiers that it does not name.
pub const OTHERS: &str = "others";

/// An amount for all tiers, or amounts by tier: `{ leaf = 65, spine = 260 }`. A tier that is not
/// named has the value of `others`, or without that the key's default.
#[derive(Clone, Debug, PartialEq)]
pub struct ByTier<T> {
    others: T,
    named: Vec<(String, u8, T)>,
}

impl<T> ByTier<T> {
    pub const fn all(amount: T) -> Self {
        ByTier { others: amount, named: Vec::new() }
    }
    pub fn at(&self, tier: u8) -> &T {
        self.named
            .iter()
            .find(|(_, named, _)| *named == tier)
            .map_or(&self.others, |(_, _, amount)| amount)
    }
    /// All amounts that some tier may have.
    pub fn amounts(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.others).chain(self.named.iter().map(|(_, _, amount)| amount))
    }
}

impl<T> From<T> for ByTier<T> {
    fn from(amount: T) -> Self {
        ByTier::all(amount)
    }
}

impl<T: Field + Default> Field for ByTier<T> {
    const FORM: Form = T::FORM;
    const OPTIONAL: bool = T::OPTIONAL;
    const AUTO: bool = T::AUTO;
    const TIERED: bool = true;
    fn to_value(&self) -> Value {
        if self.named.is_empty() {
            return self.others.to_value();
        }
        let named = self.named.iter().map(|(name, _, amount)| (name.clone(), amount.to_value()));
        Value::Tiers(named.chain([(OTHERS.to_string(), self.others.to_value())]).collect())
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        let Value::Tiers(tiers) = value else { return Ok(ByTier::all(T::from_value(value)?)) };
        let mut amounts = ByTier::all(T::default());
        for (name, value) in tiers {
            let amount = T::from_value(value)?;
            if name == OTHERS {
                amounts.others = amount;
                continue;
            }
            let tier = tier_of(name).ok_or_else(|| {
                ValueError(format!(
                    "there is no tier {name:?}; there are {}, others",
                    TIER_NAMES.join(", ")
                ))
            })?;
            if let Some((twice, ..)) = amounts.named.iter().find(|(_, other, _)| *other == tier) {
                return Err(ValueError(format!("{twice} and {name} are the same tier")));
            }
            amounts.named.push((name.clone(), tier, amount));
        }
        Ok(amounts)
    }
}

/// The ports that a table of [`ByPort`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    Tier(u8),
    Rate(Rate),
}

impl Ports {
    fn of(name: &str) -> Result<Ports, ValueError> {
        let rate = || name.parse::<Rate>().ok().filter(|rate| rate.bps() > 0).map(Ports::Rate);
        tier_of(name).map(Ports::Tier).or_else(rate).ok_or_else(|| {
            ValueError(format!(
                "there is no tier or rate {name:?}; there are {}, others, and rates such as \
                 \"50Gbps\"",
                TIER_NAMES.join(", ")
            ))
        })
    }

    fn has(self, site: &PortSite) -> bool {
        match self {
            Ports::Tier(tier) => tier == site.tier,
            Ports::Rate(rate) => rate == site.rate,
        }
    }
}

/// An amount for all ports, or amounts by the rate of the link or the tier of the switch:
/// `{ 50Gbps = "10KB", 100Gbps = "400KB", others = "100KB" }`. The first entry that names a port
/// decides. A table has an amount for all `others`.
#[derive(Clone, Debug, PartialEq)]
pub struct ByPort<T> {
    others: T,
    named: Vec<(String, Ports, T)>,
}

impl<T> ByPort<T> {
    pub const fn all(amount: T) -> Self {
        ByPort { others: amount, named: Vec::new() }
    }
    pub fn at(&self, site: &PortSite) -> &T {
        self.named
            .iter()
            .find(|(_, ports, _)| ports.has(site))
            .map_or(&self.others, |(_, _, amount)| amount)
    }
    /// All amounts that some port may have.
    pub fn amounts(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.others).chain(self.named.iter().map(|(_, _, amount)| amount))
    }
}

impl<T> From<T> for ByPort<T> {
    fn from(amount: T) -> Self {
        ByPort::all(amount)
    }
}

impl<T: Field> Field for ByPort<T> {
    const FORM: Form = T::FORM;
    const OPTIONAL: bool = T::OPTIONAL;
    const AUTO: bool = T::AUTO;
    const TIERED: bool = true;
    const RATED: bool = true;
    fn to_value(&self) -> Value {
        if self.named.is_empty() {
            return self.others.to_value();
        }
        let named = self.named.iter().map(|(name, _, amount)| (name.clone(), amount.to_value()));
        Value::Tiers(named.chain([(OTHERS.to_string(), self.others.to_value())]).collect())
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        let Value::Tiers(entries) = value else { return Ok(ByPort::all(T::from_value(value)?)) };
        let (mut others, mut named) = (None, Vec::<(String, Ports, T)>::new());
        for (name, value) in entries {
            let amount = T::from_value(value)?;
            if name == OTHERS {
                others = Some(amount);
                continue;
            }
            let ports = Ports::of(name)?;
            if let Some((twice, ..)) = named.iter().find(|(_, other, _)| *other == ports) {
                return Err(ValueError(format!("{twice} and {name} are the same ports")));
            }
            named.push((name.clone(), ports, amount));
        }
        let missing = "a table needs `others`, the amount of ports that it does not name";
        let others = others.ok_or_else(|| ValueError(missing.into()))?;
        Ok(ByPort { others, named })
    }
}

/// An amount, or `"auto"`: the mechanism's own rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Auto<T> {
    #[default]
    Auto,
    Given(T),
}

impl<T: Copy> Auto<T> {
    /// The amount that is written, or else the rule's.
    pub fn or(self, rule: impl FnOnce() -> T) -> T {
        match self {
            Auto::Auto => rule(),
            Auto::Given(amount) => amount,
        }
    }
}

impl<T: Field> Field for Auto<T> {
    const FORM: Form = T::FORM;
    const OPTIONAL: bool = T::OPTIONAL;
    const AUTO: bool = true;
    fn to_value(&self) -> Value {
        match self {
            Auto::Auto => Value::Text(AUTO.to_string()),
            Auto::Given(amount) => amount.to_value(),
        }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::Text(word) if word == AUTO => Ok(Auto::Auto),
            other => T::from_value(other).map(Auto::Given),
        }
    }
}

/// The word for [`Auto::Auto`].
pub const AUTO: &str = "auto";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_follow_the_rate_only_where_they_are_told_to() {
        let rate = Rate::from_gbps;
        assert_eq!(scaled(65, None, rate(100)), 65);
        assert_eq!(scaled(65, Some(rate(10)), rate(100)), 650);
        assert_eq!(scaled(65, Some(rate(10)), rate(25)), 162);
        assert_eq!(scaled(1, Some(rate(10)), rate(1)), 1);
        assert_eq!(scaled(u64::MAX, Some(Rate(1)), rate(100)), u64::MAX);
    }

    #[test]
    fn tiers_have_the_names_of_all_topologies() {
        let value =
            Value::Tiers(vec![("edge".into(), Value::Int(20)), ("core".into(), Value::Int(80))]);
        let amounts = ByTier::<Auto<u32>>::from_value(&value).unwrap();
        assert_eq!(
            (amounts.at(0), amounts.at(1), amounts.at(2)),
            (&Auto::Given(20), &Auto::Auto, &Auto::Given(80))
        );
        let Value::Tiers(written) = amounts.to_value() else { unreachable!() };
        assert_eq!(written[2], ("others".into(), Value::Text("auto".into())));
        assert_eq!(ByTier::from_value(&Value::Tiers(written)).unwrap(), amounts);
        let twice =
            Value::Tiers(vec![("edge".into(), Value::Int(1)), ("leaf".into(), Value::Int(2))]);
        assert!(ByTier::<Auto<u32>>::from_value(&twice).unwrap_err().0.contains("the same tier"));
        let strange = Value::Tiers(vec![("roof".into(), Value::Int(1))]);
        assert!(
            ByTier::<Auto<u32>>::from_value(&strange).unwrap_err().0.contains("no tier \"roof\"")
        );
        assert_eq!(tier_of("tier-7"), Some(7));
    }

    #[test]
    fn a_table_by_rate_gives_each_port_the_amount_of_its_link() {
        let site = |gbps, tier| PortSite { rate: Rate::from_gbps(gbps), tier, packet_max: 1500 };
        let table = |entries: &[(&str, u64)]| {
            Value::Tiers(
                entries
                    .iter()
                    .map(|(name, amount)| (name.to_string(), Value::Int(*amount)))
                    .collect(),
            )
        };
        let by_rate = table(&[("50Gbps", 10), ("100Gbps", 400), ("core", 7), ("others", 1)]);
        let amounts = ByPort::<u64>::from_value(&by_rate).unwrap();
        let at = |gbps, tier| *amounts.at(&site(gbps, tier));
        assert_eq!([at(50, 2), at(100, 0), at(25, 2), at(25, 1)], [10, 400, 7, 1]);
        assert_eq!(amounts.to_value(), by_rate);
        let fails =
            |entries: &[(&str, u64)]| ByPort::<u64>::from_value(&table(entries)).unwrap_err().0;
        assert!(fails(&[("50Gbps", 1)]).contains("needs `others`"));
        assert!(
            fails(&[("50Gbps", 1), ("50000Mbps", 2), ("others", 3)]).contains("the same ports")
        );
        assert!(fails(&[("roof", 1), ("others", 3)]).contains("no tier or rate \"roof\""));
    }
}
