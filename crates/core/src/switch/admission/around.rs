//! The facts that an admission's amounts follow from where a scenario leaves them to a rule
//! ("auto").
//!
//! Invariant: an amount that is written is that amount at every port.

use super::AdmissionParams;
use crate::switch::buffer::{Capacity, size_by_rate};
use crate::switch::marking::Threshold;
use crate::switch::site::PortSite;
use crate::units::{Bytes, Time};

/// A port and what lies around it.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    pub site: PortSite,
    /// The most that it can hold.
    pub capacity: Capacity,
    /// From where on it marks; `None`: never.
    pub marks: Option<Threshold>,
    /// The longest round trip of the empty network.
    pub round_trip: Time,
}

impl Default for Around {
    /// A leaf's port of 10 Gb/s with the memory that it has by default, without marks.
    fn default() -> Self {
        let site = PortSite::default();
        let capacity = Capacity { bytes: size_by_rate(site.rate), packets: u32::MAX };
        Around { site, capacity, marks: None, round_trip: Time::ZERO }
    }
}

impl Around {
    /// Bytes that the port can hold. A port without a limit counts as one with the memory that a
    /// port of its rate has by default.
    pub fn held(&self) -> u64 {
        let packets = match self.capacity.packets {
            u32::MAX => u64::MAX,
            packets => u64::from(packets).saturating_mul(self.site.packet_max),
        };
        match self.capacity.bytes.min(packets) {
            u64::MAX => size_by_rate(self.site.rate),
            held => held,
        }
    }

    /// So many quarters of what the port can hold.
    pub(super) fn quarters(&self, quarters: u64) -> Bytes {
        Bytes((u128::from(self.held()) * u128::from(quarters) / 4) as u64)
    }

    /// Bytes from which on the port marks.
    pub(super) fn marks_from(&self) -> Option<u64> {
        Some(match self.marks? {
            Threshold::Packets(packets) => u64::from(packets).saturating_mul(self.site.packet_max),
            Threshold::Bytes(bytes) | Threshold::Average(bytes) => bytes.get(),
        })
    }
}

impl AdmissionParams {
    /// Their values at one port: what is left to a rule as plain numbers.
    pub fn at_port(&self, around: &Around) -> AdmissionParams {
        match self {
            AdmissionParams::Color(p) => AdmissionParams::Color(p.at_port(around)),
            AdmissionParams::LastPacket(p) => AdmissionParams::LastPacket(p.at_port(around)),
            AdmissionParams::Probabilistic(p) => AdmissionParams::Probabilistic(p.at_port(around)),
            AdmissionParams::Red(p) => AdmissionParams::Red(p.at_port(around)),
            AdmissionParams::Wred(p) => AdmissionParams::Wred(p.at_port(around)),
            AdmissionParams::Aifo(_)
            | AdmissionParams::Distribution(_)
            | AdmissionParams::DropTail(_) => self.clone(),
        }
    }

    /// The key that decides from where on such a port refuses anybody, and that queue in bytes;
    /// `None` for a policy that is off.
    pub fn refuses_from(&self, around: &Around) -> Option<(&'static str, u64)> {
        let whole = around.held();
        let headroom = |k: f64| (k.clamp(0.0, 1.0) * whole as f64) as u64;
        Some(match self.at_port(around) {
            AdmissionParams::DropTail(_) => return None,
            AdmissionParams::Color(p) => match p.at_least() {
                0 => return None,
                bytes => ("threshold", bytes),
            },
            AdmissionParams::Aifo(p) => ("burst-headroom", headroom(p.burst_headroom)),
            AdmissionParams::Distribution(p) => ("burst-headroom", headroom(p.burst_headroom)),
            AdmissionParams::Probabilistic(p) if p.burst_headroom >= 1.0 => {
                ("burst-headroom", whole)
            }
            AdmissionParams::Probabilistic(p) => ("min-threshold", p.at_least()),
            AdmissionParams::LastPacket(p) => ("threshold", p.at_least()),
            AdmissionParams::Red(p) => p.at_least(),
            AdmissionParams::Wred(p) => p.at_least(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Choice;
    use crate::units::Rate;

    fn at(gbps: u64, bytes: u64) -> Around {
        let site = PortSite { rate: Rate::from_gbps(gbps), ..PortSite::default() };
        Around { site, capacity: Capacity { bytes, packets: u32::MAX }, ..Around::default() }
    }

    /// Whatever memory a port has, each policy refuses somebody before it is full, if nothing but
    /// its name is written.
    #[test]
    fn every_policy_acts_by_its_name_alone() {
        for mechanism in
            AdmissionParams::place().mechanisms.iter().filter(|m| m.kind != "drop-tail")
        {
            let params = AdmissionParams::of_kind(mechanism.kind).expect("it is registered");
            for bytes in [10_000, 60_000, 300_000, 3_000_000] {
                for (gbps, us) in [(1, 1_000), (10, 24), (100, 24), (400, 400)] {
                    let around = Around { round_trip: Time::from_us(us), ..at(gbps, bytes) };
                    let (key, from) = params.refuses_from(&around).expect("it is on");
                    // The distribution's k is 0.9.
                    assert!(from <= bytes / 10 * 9, "{} of {bytes}: {key} {from}", mechanism.kind);
                }
            }
        }
    }

    /// RED's published thresholds are those of a port of 300 KB.
    #[test]
    fn thresholds_are_shares_of_the_memory() {
        let AdmissionParams::Red(red) = AdmissionParams::of_kind("red").unwrap() else {
            panic!("red")
        };
        let AdmissionParams::Wred(wred) = AdmissionParams::of_kind("wred").unwrap() else {
            panic!("wred")
        };
        assert_eq!(red.at_port(&at(10, 300_000)).at_least(), ("min-threshold", 75_000));
        assert_eq!(red.at_port(&at(10, 100_000)).at_least(), ("min-threshold", 25_000));
        assert_eq!(wred.at_port(&at(10, 300_000)).at_least(), ("min-threshold", 75_000));
        let unlimited = Around { capacity: Capacity::UNLIMITED, ..at(40, 0) };
        assert_eq!(red.at_port(&unlimited).at_least(), ("min-threshold", 300_000));
    }

    /// TLT: the marking threshold or what the link carries in a round trip, whichever is larger;
    /// half of the memory at most.
    #[test]
    fn a_color_threshold_follows_marks_round_trip_and_memory() {
        let AdmissionParams::Color(color) = AdmissionParams::of_kind("color-aware").unwrap() else {
            panic!("color")
        };
        let of = |around: Around| color.at_port(&around).at_least();
        let tlt = Around { round_trip: Time::from_us(80), ..at(40, 2_000_000) };
        assert_eq!(of(tlt), 400_000);
        assert_eq!(of(Around { marks: Some(Threshold::Bytes(Bytes(500_000))), ..tlt }), 500_000);
        let small = Around {
            round_trip: Time::from_us(24),
            marks: Some(Threshold::Packets(65)),
            ..at(10, 300_000)
        };
        assert_eq!(of(small), 97_500);
        assert_eq!(of(Around { round_trip: Time::from_ms(1), ..small }), 150_000);
    }
}
