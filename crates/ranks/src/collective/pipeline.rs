//! A pipeline of stages, one forward one backward.
//!
//! Stage s of p first computes up to p − 1 − s micro-batches forward, then alternates one forward
//! and one backward, and ends with the backward steps that are left. Activations go to the next
//! stage, gradients to the one before.
//!
//! Invariant: a stage takes its 2m steps in this order, each when its input is there.

use super::{Collective, Send, Step};
use millpond_core::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Forward(u32),
    Backward(u32),
}

/// Micro-batches that a stage computes forward before its first backward step.
fn warm_up(collective: &Collective, stage: u32) -> u32 {
    (collective.ranks - 1 - stage).min(collective.micro_batches)
}

/// A stage's step by its number.
fn pass(collective: &Collective, stage: u32, step: u32) -> Option<Pass> {
    let (warm, batches) = (warm_up(collective, stage), collective.micro_batches);
    let rest = batches - warm;
    if step < warm {
        return Some(Pass::Forward(step));
    }
    let k = step - warm;
    if k < 2 * rest {
        let pass =
            if k.is_multiple_of(2) { Pass::Forward(warm + k / 2) } else { Pass::Backward(k / 2) };
        return Some(pass);
    }
    let batch = rest + (k - 2 * rest);
    (batch < batches).then_some(Pass::Backward(batch))
}

/// The number of a stage's step.
fn number(collective: &Collective, stage: u32, pass: Pass) -> u32 {
    let warm = warm_up(collective, stage);
    let rest = collective.micro_batches - warm;
    match pass {
        Pass::Forward(batch) if batch < warm => batch,
        Pass::Forward(batch) => warm + 2 * (batch - warm),
        Pass::Backward(batch) if batch < rest => warm + 2 * batch + 1,
        Pass::Backward(batch) => warm + rest + batch,
    }
}

/// The needs of a stage's step.
pub(super) fn step(collective: &Collective, stage: u32, step: u32) -> Option<Step> {
    let (forward, backward): (Time, Time) = collective.stage;
    let (has_input, work) = match pass(collective, stage, step)? {
        Pass::Forward(_) => (stage > 0, forward),
        Pass::Backward(_) => (stage + 1 < collective.ranks, backward),
    };
    Some(Step { awaits: u32::from(has_input) * collective.channels, work })
}

/// The message that a stage's step hands on.
pub(super) fn sends(collective: &Collective, stage: u32, step: u32, each: &mut dyn FnMut(Send)) {
    let Some(pass) = pass(collective, stage, step) else {
        return;
    };
    let to = match pass {
        Pass::Forward(_) => (stage + 1 < collective.ranks).then_some(stage + 1),
        Pass::Backward(_) => stage.checked_sub(1),
    };
    if let Some(to) = to {
        each(Send { to, bytes: collective.bytes, step: number(collective, to, pass) });
    }
}
