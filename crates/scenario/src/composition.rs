//! Composition: what each chosen mechanism assumes of the path, and which other one takes it away.
//!
//! It warns and never forbids: to see the damage is a use of the tool. A need that one mechanism breaks and another
//! restores is not a warning.

use crate::settings::{NicChoice, Settings};
use millpond_core::registry::{About, Choice};

/// A mechanism that a scenario has chosen.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// Where: "switch.path".
    pub place: &'static str,
    /// Which: "spray".
    pub kind: &'static str,
    /// What it says of itself.
    pub about: &'static About,
}

fn of<C: Choice>(choice: &C) -> Chosen {
    Chosen { place: C::place().path, kind: choice.kind(), about: choice.about() }
}

/// All mechanisms of a scenario, along the packet's path.
pub fn chosen(s: &Settings) -> Vec<Chosen> {
    let mut list = vec![
        of(&s.transport_kind),
        of(&s.importance),
        of(&s.rank),
        of(&s.ordering),
        of(&s.load_balancing),
        of(&s.virtual_switch),
        of(&s.receive_offload),
        of(&s.switch.buffer),
        of(&s.switch.marking),
        of(&s.switch.admission),
        of(&s.switch.queue),
        of(&s.switch.path),
        of(&s.switch.deflection),
        of(&s.switch.occupancy),
        of(&s.switch.pause),
    ];
    if let NicChoice::Own(marking) = &s.nic.marking {
        list.push(of(marking));
    }
    list
}

/// One sentence for each need of a mechanism that another one breaks, with the consequence and the repair. Where no host
/// has several paths to another (`multipath` is false) path choice breaks nothing.
pub fn check(chosen: &[Chosen], multipath: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for needy in chosen {
        for need in needy.about.needs {
            if chosen.iter().any(|c| c.about.restores.contains(need)) {
                continue;
            }
            let breaks = |c: &&Chosen| c.about.breaks.contains(need) && (multipath || c.place != "switch.path");
            for breaker in chosen.iter().filter(breaks) {
                warnings.push(format!(
                    "{} \"{}\" needs {}, which {} \"{}\" breaks: {}",
                    needy.place,
                    needy.kind,
                    need.name(),
                    breaker.place,
                    breaker.kind,
                    need.consequence()
                ));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::registry::PathProperty;

    const TCP: About =
        About { summary: "", source: "", needs: &[PathProperty::FifoPerFlow], breaks: &[], restores: &[] };
    const SPRAY: About =
        About { summary: "", source: "", needs: &[], breaks: &[PathProperty::FifoPerFlow], restores: &[] };
    const ORDER: About =
        About { summary: "", source: "", needs: &[], breaks: &[], restores: &[PathProperty::FifoPerFlow] };

    #[test]
    fn a_broken_need_is_named_unless_restored_or_without_effect() {
        let tcp = Chosen { place: "transport", kind: "newreno", about: &TCP };
        let spray = Chosen { place: "switch.path", kind: "spray", about: &SPRAY };
        let order = Chosen { place: "transport.ordering", kind: "timeout", about: &ORDER };
        let warnings = check(&[tcp, spray], true);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].contains("newreno") && warnings[0].contains("fifo-per-flow") && warnings[0].contains("spray")
        );
        assert!(check(&[tcp, spray, order], true).is_empty());
        assert!(check(&[tcp, spray], false).is_empty());
        assert!(check(&[tcp], true).is_empty());
    }
}
