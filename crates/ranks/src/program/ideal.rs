//! All ranks of a program over LogGOPS' network, in which nothing waits but ranks and their NICs.
//! A message of a collective takes 2o + L + (s − 1)G, and occupies no cpu.
//!
//! Invariant: the finish times depend on the program and the parameters alone.

use super::carrier::{Carrier, Costs, Piece, Unmatched};
use super::executor::{Event, Executor, Moment};
use super::matching::Arrival;
use super::{Program, ProgramError};
use millpond_core::Time;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// L: from one rank's network to another's.
    pub latency: Time,
    pub costs: Costs,
}

impl Default for Network {
    /// LogGOPSim's own: L 2,500 ns, o 1,500 ns, g 1,000 ns, G 6 ns, O 0, S 65,535 bytes.
    fn default() -> Network {
        let costs = Costs {
            message: Time::from_ns(1_500),
            byte: Time::ZERO,
            gap: Time::from_ns(1_000),
            gap_byte: Time::from_ns(6),
            eager: Some(65_535),
        };
        Network { latency: Time::from_ns(2_500), costs }
    }
}

/// The events of all ranks, and their times.
struct Line {
    now: Time,
    rank: u32,
    latency: Time,
    costs: Costs,
    next: u64,
    due: BTreeMap<(Time, u64), (u32, Event)>,
}

impl Line {
    fn push(&mut self, at: Time, rank: u32, event: Event) {
        self.due.insert((at, self.next), (rank, event));
        self.next += 1;
    }
}

impl Carrier for Line {
    fn send(&mut self, to: u32, message: Arrival) {
        self.push(self.now.saturating_add(self.latency), to, Event::Arrived(message));
    }
    fn send_piece(&mut self, to: u32, piece: Piece) {
        let Costs { message, gap_byte, .. } = self.costs;
        let rest = gap_byte.saturating_mul(piece.bytes.saturating_sub(1));
        let at = self.now + message + self.latency + message + rest;
        self.push(at, to, Event::Piece(piece));
    }
    fn match_of(&mut self, message: &Arrival) {
        self.push(self.now, message.from, Event::Matched(message.operation));
    }
    fn wake(&mut self, at: Time) {
        self.push(at, self.rank, Event::Wake);
    }
}

/// Runs a program; returns when each rank has finished.
///
/// # Errors
/// What is left at a rank when nothing happens any more.
pub fn ideal(program: &Program, network: &Network) -> Result<Vec<Time>, ProgramError> {
    let numbers = 0..program.ranks.len() as u32;
    let mut ranks: Vec<Executor> =
        numbers.map(|rank| Executor::new(rank, program, network.costs)).collect();
    let mut line = Line {
        now: Time::ZERO,
        rank: 0,
        latency: network.latency,
        costs: network.costs,
        next: 0,
        due: BTreeMap::new(),
    };
    for (rank, executor) in (0..).zip(&mut ranks) {
        line.rank = rank;
        executor.act(Event::Start, &mut Moment { now: Time::ZERO, program, carrier: &mut line });
    }
    while let Some(((at, _), (rank, event))) = line.due.pop_first() {
        (line.now, line.rank) = (at, rank);
        let mut moment = Moment { now: at, program, carrier: &mut line };
        ranks[rank as usize].act(event, &mut moment);
    }
    for (rank, executor) in (0..).zip(&ranks) {
        if let Some(what) = program.left(rank, &executor.unmatched()) {
            return Err(ProgramError { place: format!("rank {rank}"), message: what });
        }
    }
    Ok(ranks.iter().map(Executor::finish).collect())
}

impl Program {
    /// The rest of a rank at the end of a run, by names; `None`: nothing.
    pub fn left(&self, rank: u32, left: &Unmatched) -> Option<String> {
        const NAMED: usize = 3;
        let own = &self.ranks[rank as usize];
        let mut parts = Vec::new();
        let mut part = |what: &str, names: Vec<String>| {
            if !names.is_empty() {
                let more = if names.len() > NAMED { ", …" } else { "" };
                let first = names[..names.len().min(NAMED)].join(", ");
                parts.push(format!("{} {what}: {first}{more}", names.len()));
            }
        };
        let name = |operation: &u32| own.name(*operation);
        part("receives without a message", left.receives.iter().map(name).collect());
        let of_other = |(from, operation): &(u32, u32)| {
            format!("{} of rank {from}", self.ranks[*from as usize].name(*operation))
        };
        part("messages without a receive", left.messages.iter().map(of_other).collect());
        part("collectives that others did not end", left.calls.iter().map(name).collect());
        part("sends that wait for their receive", left.sends.iter().map(name).collect());
        if left.waiting > 0 {
            parts.push(format!("{} operations never began", left.waiting));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
