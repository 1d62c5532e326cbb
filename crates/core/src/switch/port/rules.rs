//! The rules that a port judges packets by, in one line for all ports alike.
//!
//! Invariant: rules follow from the port's configuration and never change.

use super::{LinkRate, PortConfig};
use crate::switch::QueueView;
use crate::switch::admission::Admission;
use crate::switch::buffer::Capacity;
use crate::switch::queue::Queue;
use std::sync::Arc;

/// The rules that a port judges packets by: a cache line that ports alike share.
#[derive(Clone, Debug, PartialEq)]
#[repr(align(64))]
pub(super) struct Rules {
    pub(super) rate: LinkRate,
    pub(super) capacity: Capacity,
    /// The least queue, in packets or in bytes, for which the marking is to be asked.
    pub(super) marks_from: QueueView,
    /// The admission is to be asked: drop-tail always admits, and most ports have it.
    pub(super) asks: bool,
    /// Marking or admission act on departures.
    pub(super) watches: bool,
    /// The queue keeps pauses of flows, and its clock.
    pub(super) has_flows: bool,
    /// A packet that finds nothing before it can go past the queue and those who watch it.
    pub(super) passes: bool,
}

const _: () = assert!(size_of::<Rules>() == 64);

impl Rules {
    pub(super) fn new(config: &PortConfig) -> Rules {
        let watches = config.marking.marks_at_dequeue()
            || config.marking.watches_departures()
            || config.admission.watches_departures();
        // The others keep something of every packet.
        let forgets =
            matches!(config.queue, Queue::Fifo(_) | Queue::StrictPriority(_) | Queue::Srpt(_));
        Rules {
            rate: LinkRate::new(config.rate),
            capacity: config.capacity,
            marks_from: config.marking.asked_from(),
            asks: !matches!(config.admission, Admission::DropTail(_)),
            watches,
            has_flows: matches!(config.queue, Queue::DynamicQueues(_)),
            passes: forgets && !watches,
        }
    }

    /// Those of a switch's ports, of which ports alike share one line.
    pub(super) fn of_all(configs: &[PortConfig]) -> impl Iterator<Item = Arc<Rules>> + '_ {
        let mut known: Vec<Arc<Rules>> = Vec::new();
        configs.iter().map(move |config| {
            let rules = Rules::new(config);
            if let Some(same) = known.iter().find(|it| ***it == rules) {
                return same.clone();
            }
            known.push(Arc::new(rules));
            known[known.len() - 1].clone()
        })
    }
}
