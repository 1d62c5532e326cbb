//! The places of the packet path at which a scenario chooses a mechanism, table by table. This list
//! is the only one: the reader, the resolved text, the catalogue with its schema, explanations and
//! reference, the composition and the plan walk it.
//!
//! A line is a field and the registry behind it. The registry has the key: `"switch.path"` is the
//! key `path` of the table `[switch]`.
//!
//! Not here are the four tables that are a kind by themselves, with keys that all their kinds
//! share: `[topology]`, `[transport]`, `[[limit]]` and `[[traffic]]`.
//!
//! Invariant: a table's struct holds one choice for each of its places, and every walk meets them
//! in the order below.

use crate::jitter::JitterParams;
use crate::nic::NicChoiceParams;
use crate::rdma::RecoveryParams;
use millpond_core::edge::flowcell::LoadBalancingParams;
use millpond_core::edge::gro::OffloadParams;
use millpond_core::edge::{OrderingParams, RankParams};
use millpond_core::host::virtual_switch::VirtualSwitchParams;
use millpond_core::importance::ImportanceParams;
use millpond_core::registry::Choice;
use millpond_core::switch::admission::AdmissionParams;
use millpond_core::switch::buffer::BufferParams;
use millpond_core::switch::deflection::DeflectionParams;
use millpond_core::switch::marking::MarkingParams;
use millpond_core::switch::occupancy::OccupancyParams;
use millpond_core::switch::overflow::OverflowParams;
use millpond_core::switch::path::PathParams;
use millpond_core::switch::pause::PauseParams;
use millpond_core::switch::queue::QueueParams;

/// A visitor that looks at the choices.
pub trait Visit {
    /// The next one.
    fn choice<C: Choice>(&mut self, choice: &C);
}

/// A visitor that makes the choices.
pub(crate) trait VisitMut {
    /// The next one.
    fn choice<C: Choice>(&mut self, choice: &mut C);
}

/// The choices of one table.
pub(crate) trait Choices: Default {
    /// Shows each of them.
    fn each(&self, visitor: &mut impl Visit);
    /// Hands out each of them.
    fn each_mut(&mut self, visitor: &mut impl VisitMut);
    /// Whether a place of the table has this key.
    fn has(&self, key: &str) -> bool {
        struct Has<'a>(&'a str, bool);
        impl Visit for Has<'_> {
            fn choice<C: Choice>(&mut self, _: &C) {
                self.1 |= key_of(C::place().path) == self.0;
            }
        }
        let mut has = Has(key, false);
        self.each(&mut has);
        has.1
    }
}

/// A place's key in its table: `path` of `switch.path`.
pub(crate) fn key_of(place: &'static str) -> &'static str {
    place.rsplit('.').next().unwrap_or(place)
}

macro_rules! choices {
    ($(
        $(#[$about:meta])*
        $Table:ident { $($(#[$meaning:meta])* $field:ident: $Params:ty,)+ }
    )+) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $Table { $($(#[$meaning])* pub $field: $Params),+ }

        impl Choices for $Table {
            fn each(&self, visitor: &mut impl Visit) { $(visitor.choice(&self.$field);)+ }
            fn each_mut(&mut self, visitor: &mut impl VisitMut) {
                $(visitor.choice(&mut self.$field);)+
            }
        }
    )+};
}

choices! {
    /// The places of `[host]`.
    HostChoices {
        /// How exact they are.
        jitter: JitterParams,
        /// The packets that receivers merge.
        receive_offload: OffloadParams,
    }
    /// The places of `[host.nic]`.
    NicChoices {
        /// Which NIC of a host with several.
        choice: NicChoiceParams,
    }
    /// The places of `[switch]`.
    SwitchChoices {
        /// Where packets wait.
        buffer: BufferParams,
        /// Which get CE.
        marking: MarkingParams,
        /// Which may join a queue.
        admission: AdmissionParams,
        /// Which is served next.
        queue: QueueParams,
        /// Which port of several.
        path: PathParams,
        /// Where else when refused.
        deflection: DeflectionParams,
        /// The outcome of it where there is no room.
        overflow: OverflowParams,
        /// How old the lengths of queues are by which a switch decides.
        occupancy: OccupancyParams,
        /// Whom to stop.
        pause: PauseParams,
    }
    /// The places of `[transport]`.
    TransportChoices {
        /// Which packets are important.
        importance: ImportanceParams,
        /// Their rank.
        rank: RankParams,
        /// Whether receivers restore order below the transport.
        ordering: OrderingParams,
    }
    /// The places of `[rdma]`.
    RdmaChoices {
        /// How queue pairs repair losses.
        recovery: RecoveryParams,
    }
    /// The places of `[edge]`.
    EdgeChoices {
        /// How hosts spread what they send.
        load_balancing: LoadBalancingParams,
        /// Where packets wait in the host.
        virtual_switch: VirtualSwitchParams,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field is called as its key is, and a table's places have its name before theirs.
    #[test]
    fn fields_are_keys() {
        struct Paths(Vec<&'static str>);
        impl Visit for Paths {
            fn choice<C: Choice>(&mut self, _: &C) {
                self.0.push(C::place().path);
            }
        }
        fn check<T: Choices + std::fmt::Debug>(table: &str) {
            let mut paths = Paths(Vec::new());
            T::default().each(&mut paths);
            let text = format!("{:#?}", T::default());
            let fields =
                text.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
            let fields: Vec<&str> =
                fields.map(|(field, _)| field).filter(|field| !field.starts_with(' ')).collect();
            let expected: Vec<String> =
                fields.iter().map(|f| format!("{table}.{}", f.replace('_', "-"))).collect();
            assert_eq!(paths.0, expected);
        }
        check::<HostChoices>("host");
        check::<NicChoices>("host.nic");
        check::<SwitchChoices>("switch");
        check::<TransportChoices>("transport");
        check::<RdmaChoices>("rdma");
        check::<EdgeChoices>("edge");
    }
}
