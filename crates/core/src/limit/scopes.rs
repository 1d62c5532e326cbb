//! Several limits on one packet: its cgroup, the parent slice, the uplink, a tenant.
//!
//! Every scope of a packet is charged; then the most congested one decides alone; if that drops the
//! packet, every charge is refunded (NRM's slides). Scopes of different rates are compared by how
//! far they are behind *as a part of their drop threshold*. A scope that only observes takes no
//! part in this: it judges for itself, counts that, and is refunded also what it alone would drop.
//!
//! Invariant: a dropped packet leaves every scope as it was but for the time that has passed, and
//! what is enforced does not depend on what is observed beside it.

use super::{Ask, Charge, Settings, State, Verdict, charge, decide, flags, refund};

/// The counts of a scope. The names are those of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Counts {
    /// Packets offered.
    pub packets: u64,
    /// Bytes offered.
    pub bytes: u64,
    /// Packets dropped by this scope's decision.
    pub dropped: u64,
    /// Bytes of the dropped packets.
    pub dropped_bytes: u64,
    /// Packets given CE.
    pub marked: u64,
    /// Bytes of the marked packets.
    pub marked_bytes: u64,
    /// Requests to a local sender to reduce its window.
    pub reduced: u64,
    /// Let through beyond the drop threshold.
    pub bypassed: u64,
    /// Decisions that this scope made: it was the most congested, or only observes.
    pub decided: u64,
}

/// One virtual queue with its settings and counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope {
    pub settings: Settings,
    pub state: State,
    pub counts: Counts,
}

#[derive(Clone, Debug, Default)]
pub struct Scopes {
    pub scopes: Vec<Scope>,
    /// Charges of the packet at hand.
    charges: Vec<Charge>,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    pub verdict: Verdict,
    /// The scope that decided; none if all only observe.
    pub by: Option<u16>,
    /// When the packet may leave, in nanoseconds; 0: now.
    pub send: u64,
}

/// How congested a queue is: how far behind, in 1/65536 of its drop threshold. Comparable across
/// rates and forms.
#[inline]
pub fn congestion(settings: &Settings, behind: i64) -> i64 {
    let drop = settings.drop.max(1) as u64;
    // Half a terabyte, or nine minutes: beyond anything that a floor allows, and small enough for
    // the product.
    let far = behind.unsigned_abs().min(1 << 39);
    let part = ((far << 16) / drop) as i64;
    if behind < 0 { -part } else { part }
}

impl Scopes {
    pub fn new(settings: impl IntoIterator<Item = Settings>) -> Scopes {
        let scopes =
            settings.into_iter().map(|settings| Scope { settings, ..Scope::default() }).collect();
        Scopes { scopes, charges: Vec::new() }
    }

    /// Charges the packet to the scopes `ids` (each once) and lets the most congested of those that
    /// do not only observe decide, the first among equals.
    #[inline]
    pub fn decide(&mut self, ids: &[u16], now: u64, ask: &Ask, draw: u32) -> Outcome {
        self.charges.clear();
        let mut worst: Option<(i64, usize)> = None;
        let mut send = 0;
        for (at, &id) in ids.iter().enumerate() {
            let scope = &mut self.scopes[id as usize];
            let mut charged = charge(&mut scope.state, &scope.settings, now, ask.charged);
            scope.counts.packets += 1;
            scope.counts.bytes += ask.charged as u64;
            if scope.settings.flags & flags::OBSERVE != 0 {
                scope.observe(&mut charged, ask, draw);
            } else {
                send = charged.send.max(send);
                let level = congestion(&scope.settings, charged.behind);
                if worst.is_none_or(|(most, _)| level > most) {
                    worst = Some((level, at));
                }
            }
            self.charges.push(charged);
        }
        let Some((_, at)) = worst else { return Outcome::default() };
        let by = ids[at];
        let scope = &mut self.scopes[by as usize];
        let verdict = decide(&scope.settings, self.charges[at].behind, ask, draw);
        scope.counts.count(verdict, ask.charged);
        if verdict.has(Verdict::DROP) {
            for (&id, charged) in ids.iter().zip(&self.charges) {
                let scope = &mut self.scopes[id as usize];
                refund(&mut scope.state, &scope.settings, charged);
            }
        }
        Outcome { verdict, by: Some(by), send }
    }
}

impl Scope {
    /// Judges a packet that this scope does not touch, and takes the charge back if it would drop
    /// it.
    #[inline]
    fn observe(&mut self, charged: &mut Charge, ask: &Ask, draw: u32) {
        let verdict = decide(&self.settings, charged.behind, ask, draw);
        self.counts.count(verdict, ask.charged);
        if verdict.has(Verdict::DROP) {
            refund(&mut self.state, &self.settings, charged);
            charged.cost = 0; // it is taken back once
        }
    }
}

impl Counts {
    /// Counts what this scope has decided.
    #[inline]
    fn count(&mut self, verdict: Verdict, bytes: u32) {
        self.decided += 1;
        if verdict.has(Verdict::DROP) {
            self.dropped += 1;
            self.dropped_bytes += bytes as u64;
        }
        if verdict.has(Verdict::CE) {
            self.marked += 1;
            self.marked_bytes += bytes as u64;
        }
        self.reduced += u64::from(verdict.has(Verdict::CWR));
        self.bypassed += u64::from(verdict.has(Verdict::BYPASS));
    }
}
