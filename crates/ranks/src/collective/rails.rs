//! The hierarchical all-reduce over rails: groups are servers, and equal members of all groups are
//! on one rail.
//!
//! A reduce-scatter ring in each group, an all-reduce ring of a member's share among the equal
//! members of all groups, and an all-gather ring in each group.
//!
//! Invariant: in step i > 0 a rank waits for one message, that of step i − 1 of the rank before it
//! in the ring of that step.

use super::{Collective, Schedule, Send, Slot, share};

/// Steps of each of the three rings.
fn phases(collective: &Collective) -> [u32; 3] {
    let (group, groups) = (collective.group, collective.ranks / collective.group);
    [group - 1, 2 * (groups - 1), group - 1]
}

pub(super) const RAILS: Schedule = Schedule { awaits, sends };

/// Messages that a step waits for.
fn awaits(collective: &Collective, Slot { step, .. }: Slot) -> Option<u32> {
    (step <= phases(collective).iter().sum()).then_some(u32::from(step > 0))
}

fn sends(collective: &Collective, Slot { rank, step, .. }: Slot, each: &mut dyn FnMut(Send)) {
    let (group, groups) = (collective.group, collective.ranks / collective.group);
    let (own, member) = (rank / group, rank % group);
    let [inner, outer, _] = phases(collective);
    let in_group = own * group + (member + 1) % group;
    // The chunk that the rank owns after the first ring.
    let owned = |chunk: u32| share(collective.bytes, group, chunk % group);
    let (to, bytes) = if step < inner {
        (in_group, owned(member + group - step))
    } else if step < inner + outer {
        let k = step - inner;
        let chunk = match k < groups - 1 {
            true => own + groups - k,
            false => own + 1 + groups - (k - (groups - 1)),
        };
        let to = (own + 1) % groups * group + member;
        (to, share(owned(member + 1), groups, chunk % groups))
    } else if step < 2 * inner + outer {
        (in_group, owned(member + 1 + group - (step - inner - outer)))
    } else {
        return;
    };
    each(Send { to, bytes, step: step + 1 });
}
