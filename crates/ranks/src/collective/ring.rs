//! Rings: each rank sends to the next and receives from the one before.
//!
//! Reduce-scatter: in step k rank r sends chunk r − k; after N − 1 steps it owns chunk r + 1.
//! All-gather: it sends chunk r + 1 − k. All-reduce is the one and then the other. A
//! buffer that is larger than N chunks of the bound takes several turns around the ring.
//!
//! Invariant: in step i > 0 a rank waits for one message, which the rank before it sent in step
//! i − 1.

use super::{Collective, Operation, Schedule, Send, Slot, share};

/// Steps of one turn, of which each sends a message.
fn turn(collective: &Collective) -> u32 {
    let once = collective.ranks - 1;
    if collective.operation == Operation::AllReduce { 2 * once } else { once }
}

fn turns(collective: &Collective) -> u32 {
    let most = collective.chunk.map(|chunk| chunk.max(1) * u64::from(collective.ranks));
    most.map_or(1, |most| collective.bytes.div_ceil(most).max(1) as u32)
}

pub(super) const RING: Schedule = Schedule { awaits, sends };

/// Messages that a step waits for.
fn awaits(collective: &Collective, Slot { step, .. }: Slot) -> Option<u32> {
    (step <= turns(collective) * turn(collective)).then_some(u32::from(step > 0))
}

fn sends(collective: &Collective, Slot { rank, lane, step }: Slot, each: &mut dyn FnMut(Send)) {
    let (ranks, once) = (collective.ranks, turn(collective));
    let (turns, bytes) = (turns(collective), collective.bytes);
    if step >= turns * once {
        return;
    }
    let (turn, k) = (step / once, step % once);
    let bytes = match collective.chunk {
        Some(chunk) if turns > 1 => {
            let most = chunk.max(1) * u64::from(ranks);
            most.min(bytes - u64::from(turn) * most)
        }
        _ => bytes,
    };
    let scatters = collective.operation != Operation::AllGather && k < ranks - 1;
    let chunk = match (scatters, collective.operation) {
        (true, _) => rank + ranks - k,
        (false, Operation::AllGather) => rank + 1 + ranks - k,
        (false, _) => rank + 1 + ranks - (k - (ranks - 1)),
    } % ranks;
    let chunk = share(bytes, ranks, chunk);
    let bytes = share(chunk, collective.slices, lane);
    each(Send { to: (rank + 1) % ranks, bytes, step: step + 1 });
}
