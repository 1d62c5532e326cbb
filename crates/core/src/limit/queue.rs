//! The virtual queue: how far behind its rate the traffic of a scope is.
//!
//! Three forms with one meaning. *Credit* (the slides): bytes that may still be sent, which grow
//! with time and may go negative. *Lock-free*: one number, the time at which the queue would be
//! empty (GCRA's theoretical arrival time), so that a compare-and-swap is enough. *EDT*: the same
//! number is the packet's earliest departure, for a pacing qdisc below. Credit is whole bytes: time
//! that has not become one is counted later, so that packets that come more often than bytes do not
//! starve a slow limit.
//!
//! Invariant: no more than `burst` is ever saved up, a clock that goes backwards adds nothing,
//! however dense the packets credit grows by the rate, and a refund takes back exactly what the
//! charge took.

use super::{FLOOR, IDLE_MAX, POINT, Settings};

crate::choice! {
    pub enum Form {
        /// Bytes of credit.
        Credit = "credit",
        /// The time at which it would be empty, by compare-and-swap.
        LockFree = "lock-free",
        /// The packet's earliest departure, for a qdisc that paces (fq).
        Edt = "edt",
    }
}

/// State of one virtual queue. A new one is all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct State {
    /// Nanoseconds. Credit: the time that `credit` has counted; 0: none yet. Otherwise: when the
    /// queue would be empty.
    pub last: u64,
    /// Bytes that may still be sent; only [`Form::Credit`] uses it.
    pub credit: i64,
}

/// The effect of one packet on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Charge {
    /// How far behind the queue is: bytes with the packet (credit), nanoseconds with it (lock-free)
    /// or before it (EDT). Negative: so much may still be sent at once.
    pub behind: i64,
    /// The amount taken, for [`refund`].
    pub cost: i64,
    /// EDT: when the packet may leave, in nanoseconds; otherwise 0.
    pub send: u64,
}

/// Charges a packet of `bytes` at `now` nanoseconds, before anything is decided about it.
#[inline]
pub fn charge(state: &mut State, settings: &Settings, now: u64, bytes: u32) -> Charge {
    if settings.form == Form::Credit as u32 {
        return charge_credit(state, settings, now, bytes);
    }
    let cost = ((bytes as u64 * settings.cost) >> POINT) as i64;
    let saved = now.saturating_sub(settings.burst as u64);
    let send = state.last.max(saved);
    let floor = now.saturating_add((FLOOR * settings.drop) as u64);
    let empty = send.saturating_add(cost as u64).min(floor.max(send));
    state.last = empty;
    let edt = settings.form == Form::Edt as u32;
    Charge {
        behind: if edt { send } else { empty }.wrapping_sub(now) as i64,
        cost: (empty - send) as i64,
        send: if edt { send } else { 0 },
    }
}

#[inline]
fn charge_credit(state: &mut State, settings: &Settings, now: u64, bytes: u32) -> Charge {
    if state.last == 0 {
        state.credit = settings.burst;
        state.last = now;
    } else if now > state.last {
        let idle = (now - state.last).min(IDLE_MAX);
        let grown = idle * settings.rate;
        let rest = grown % (1 << POINT);
        state.credit += (grown >> POINT) as i64;
        state.last = now;
        if state.credit >= settings.burst {
            state.credit = settings.burst;
        } else if rest > 0 {
            state.last -= rest / settings.rate; // not a byte yet
        }
    }
    let floor = -FLOOR * settings.drop;
    let cost = (bytes as i64).min((state.credit - floor).max(0));
    state.credit -= cost;
    Charge { behind: -state.credit, cost, send: 0 }
}

/// How far behind a queue is at `now` without a packet, in its own unit; not above 0: not at all.
#[inline]
pub fn behind(state: &State, settings: &Settings, now: u64) -> i64 {
    if settings.form == Form::Credit as u32 {
        let idle = now.saturating_sub(state.last).min(IDLE_MAX);
        return -state.credit - ((idle * settings.rate) >> POINT) as i64;
    }
    state.last.wrapping_sub(now) as i64
}

/// Takes a charge back: its packet was dropped.
#[inline]
pub fn refund(state: &mut State, settings: &Settings, charge: &Charge) {
    if settings.form == Form::Credit as u32 {
        state.credit += charge.cost;
    } else {
        state.last -= charge.cost as u64;
    }
}
