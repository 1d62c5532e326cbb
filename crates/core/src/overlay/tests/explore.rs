//! Two switches, and all that can happen between them in a bounded time: each message may come, be
//! late, be lost, come twice, or overtake another; the receiver may stand still; either switch may
//! restart. Breadth first, over the real [`Notifier`] and [`Keeper`].
//!
//! Time goes by ticks, in which the sender sends one packet if it may. A packet takes a tick, a
//! message one or two. So two ticks at most lie between a word and the sender's silence, and one
//! more until the last packet has come: the feedback time of four ticks is rounded up to be halved.
//!
//! Two claims: the queue never exceeds what the headroom's formula gives for the losses and
//! restarts that were allowed; and from every state the sender sends again, whether from then on
//! all messages are lost or none.

use super::*;
use std::collections::BTreeSet;

const TICK: Time = Time::from_us(10);
const FEEDBACK: u8 = 4;
const XOFF: u8 = 3;
const XON: u8 = 1;
const LOSSES: u8 = 2;
const B: PeerId = 2;
const A: PeerId = 1;

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// A pause holds until it is taken back, as in the authors' second generation.
    NoExpiry,
    /// A peer's words from before its restart count on, and order its words now.
    IgnoresEpochs,
    /// Data that arrives from a paused flow causes no word.
    NoRepair,
}

/// The events that may happen, and what the queue may hold.
#[derive(Clone, Copy)]
struct World {
    mutant: Mutant,
    ticks: u64,
    losses: u8,
    doubles: u8,
    restarts: u8,
    capacity: u8,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    records: Vec<Record>,
    epoch: u8,
    to_epoch: u8,
    is_late: bool,
}

/// Switch A sends, switch B receives.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    keeper: Keeper,
    epoch: u8,
    /// B's epoch, as far as A knows it, and A's, as far as B does.
    known: u8,
    notifier: Notifier,
    b_epoch: u8,
    b_known: u8,
    queue: u8,
    is_told: bool,
    words: Vec<Message>,
    /// A's epoch, on its way to B.
    greeting: Option<u8>,
    packet: bool,
    losses: u8,
    doubles: u8,
    restarts: u8,
}

/// All sequences of choices, one after the other.
#[derive(Default)]
struct Choices {
    made: Vec<(u8, u8)>,
    at: usize,
}

impl Choices {
    fn of(&mut self, count: u8) -> u8 {
        if self.at == self.made.len() {
            self.made.push((0, count));
        }
        self.at += 1;
        self.made[self.at - 1].0
    }
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((choice, count)) = self.made.pop() {
            if choice + 1 < count {
                self.made.push((choice + 1, count));
                return true;
            }
        }
        false
    }
}

fn flow() -> FlowKey {
    FlowKey { source: 1, destination: 2, source_port: 3, destination_port: 4, protocol: 17 }
}

impl World {
    fn config(&self) -> Config {
        let ttl = if self.mutant == Mutant::NoExpiry { Time::from_s(1) } else { TICK * 16 };
        Config { feedback: TICK * u64::from(FEEDBACK), ttl, longest: ttl * 2, ..Config::default() }
    }
    fn start(&self) -> State {
        State {
            keeper: Keeper::new(self.config()),
            epoch: 1,
            known: 1,
            notifier: Notifier::new(self.config()),
            b_epoch: 1,
            b_known: 1,
            queue: 0,
            is_told: false,
            words: Vec::new(),
            greeting: None,
            packet: false,
            losses: self.losses,
            doubles: self.doubles,
            restarts: self.restarts,
        }
    }
    /// The outcome of the messages to A: deliver, late, lose, double, as far as budgets go.
    fn deliver(&self, state: &mut State, now: Time, choices: &mut Choices) {
        let mut come = Vec::new();
        for mut message in std::mem::take(&mut state.words) {
            let mut ways = vec![0];
            ways.extend((!message.is_late).then_some(1));
            ways.extend((state.losses > 0).then_some(2));
            ways.extend((state.doubles > 0).then_some(3));
            let way = ways[choices.of(ways.len() as u8) as usize];
            state.losses -= u8::from(way == 2);
            state.doubles -= u8::from(way == 3);
            if way == 0 || way == 3 {
                come.push(message.clone());
            }
            if way == 1 || way == 3 {
                message.is_late = true;
                state.words.push(message);
            }
        }
        if come.len() > 1 && choices.of(2) == 1 {
            come.reverse();
        }
        for message in come {
            self.on_record(state, now, message);
        }
    }
    fn on_record(&self, state: &mut State, now: Time, message: Message) {
        if self.mutant != Mutant::IgnoresEpochs {
            if message.epoch < state.known {
                return;
            }
            if message.epoch > state.known {
                state.known = message.epoch;
                state.keeper.forget(B, &mut |_| ());
            }
            if message.to_epoch != state.epoch {
                state.greeting = Some(state.epoch);
                return;
            }
        }
        for record in message.records {
            state.keeper.on_record(now, B, &record);
        }
    }
    /// B's tick, after a packet may have come.
    fn receive(&self, state: &mut State, now: Time, has_come: bool, drains: bool) {
        let target = Target::Flow(flow());
        state.queue += u8::from(has_come);
        if !state.is_told && state.queue >= XOFF {
            state.is_told = true;
            state.notifier.pause(now, A, target, u64::from(state.queue));
        } else if state.is_told && has_come && self.mutant != Mutant::NoRepair {
            state.notifier.arrived(now, A, &flow());
        }
        state.queue -= u8::from(drains && state.queue > 0);
        if state.is_told && state.queue <= XON {
            state.is_told = false;
            state.notifier.resume(now, A, target);
        }
    }
    fn restart(&self, state: &mut State, which: u8) {
        match which {
            1 => {
                state.keeper = Keeper::new(self.config());
                (state.epoch, state.known, state.greeting) =
                    (state.epoch + 1, 0, Some(state.epoch + 1));
            }
            2 => {
                state.notifier = Notifier::new(self.config());
                (state.b_epoch, state.b_known, state.queue, state.is_told) =
                    (state.b_epoch + 1, 0, 0, false);
                state.greeting = None;
                let greeting =
                    Message { records: vec![], epoch: state.b_epoch, to_epoch: 0, is_late: false };
                state.words.push(greeting);
            }
            _ => return,
        }
        state.restarts -= 1;
    }
    /// One tick; `drains`: whether B's application takes a packet, if that is no choice. Whether A
    /// has sent.
    fn tick(
        &self,
        state: &mut State,
        now: Time,
        choices: &mut Choices,
        drains: Option<bool>,
    ) -> bool {
        let greeting = state.greeting.take();
        self.deliver(state, now, choices);
        while state.keeper.expire(now).is_some() {}
        let sends = !state.keeper.is_held(B, &flow());
        let has_come = std::mem::replace(&mut state.packet, sends);
        let drains = drains.unwrap_or_else(|| choices.of(2) == 1);
        self.receive(state, now, has_come, drains);
        if let Some(epoch) = greeting {
            let is_lost = state.losses > 0 && choices.of(2) == 1;
            state.losses -= u8::from(is_lost);
            if !is_lost && epoch > state.b_known {
                state.b_known = epoch;
                state.notifier.restarted(now, A);
            }
        }
        let records = state.notifier.poll(now, A, wire::RECORDS);
        if !records.is_empty() {
            let message =
                Message { records, epoch: state.b_epoch, to_epoch: state.b_known, is_late: false };
            state.words.push(message);
        }
        if state.restarts > 0 {
            let which = choices.of(3);
            self.restart(state, which);
        }
        sends
    }
    /// Whether A sends again, with all messages lost from now on, or none.
    fn goes_on(&self, state: &State, at: u64, is_silent: bool) -> bool {
        let mut state = State { losses: 0, doubles: 0, restarts: 0, ..state.clone() };
        (1..24).any(|by| {
            if is_silent {
                state.words.clear();
                state.greeting = None;
            }
            self.tick(&mut state, TICK * (at + by), &mut Choices::default(), Some(true))
        })
    }
    /// Goes through all states, and says how many there are, or what went wrong.
    fn explore(&self) -> Result<usize, String> {
        let mut level = vec![self.start()];
        let mut count = 0;
        for at in 1..=self.ticks {
            let mut next = BTreeSet::new();
            for state in &level {
                let mut choices = Choices::default();
                loop {
                    let mut after = state.clone();
                    self.tick(&mut after, TICK * at, &mut choices, None);
                    if after.queue > self.capacity {
                        return Err(format!("overflow at tick {at}"));
                    }
                    next.insert(after);
                    if !choices.advance() {
                        break;
                    }
                }
            }
            level = next.into_iter().collect();
            count += level.len();
            for state in &level {
                for is_silent in [false, true] {
                    if !self.goes_on(state, at, is_silent) {
                        return Err(format!("paused for ever from tick {at}, silent: {is_silent}"));
                    }
                }
            }
        }
        Ok(count)
    }
}

/// Xoff, a feedback time, and half of one for each loss.
const FOR_LOSSES: u8 = XOFF + FEEDBACK + LOSSES * FEEDBACK / 2;

fn lossy() -> World {
    World {
        mutant: Mutant::None,
        ticks: 22,
        losses: LOSSES,
        doubles: 1,
        restarts: 0,
        capacity: FOR_LOSSES,
    }
}
/// A sender that has forgotten costs a feedback time more: headroom may be in use already.
fn restarting() -> World {
    World {
        losses: 1,
        doubles: 0,
        restarts: 1,
        ticks: 18,
        capacity: FOR_LOSSES + FEEDBACK,
        ..lossy()
    }
}

#[test]
fn losses_neither_overflow_nor_pause_for_ever() {
    let states = lossy().explore().unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{states} states");
    assert!(states > 1_000, "{states} states are not all");
}
#[test]
fn restarts_neither_overflow_nor_pause_for_ever() {
    let states = restarting().explore().unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{states} states");
    assert!(states > 1_000, "{states} states are not all");
}

/// Without losses, for as long as a restart takes to show.
fn restarting_for_long() -> World {
    World { losses: 0, ticks: 26, capacity: XOFF + 2 * FEEDBACK, ..restarting() }
}
#[test]
fn restarts_do_no_harm_later() {
    assert!(restarting_for_long().explore().is_ok());
}

/// The oracle is live: it finds what each mutant does wrong.
#[test]
fn without_expiry_a_pause_may_last_for_ever() {
    let found = World { mutant: Mutant::NoExpiry, ..lossy() }.explore();
    assert!(found.as_ref().is_err_and(|wrong| wrong.starts_with("paused for ever")), "{found:?}");
}
#[test]
fn without_headroom_for_losses_the_queue_overflows() {
    let found = World { capacity: XOFF + FEEDBACK - 1, ..lossy() }.explore();
    assert!(found.as_ref().is_err_and(|wrong| wrong.starts_with("overflow")), "{found:?}");
}
#[test]
fn without_repair_on_arrival_the_queue_overflows() {
    // Refreshes alone come half as often.
    let found = World { mutant: Mutant::NoRepair, ..lossy() }.explore();
    assert!(found.as_ref().is_err_and(|wrong| wrong.starts_with("overflow")), "{found:?}");
}
#[test]
fn without_epochs_a_restart_makes_the_queue_overflow() {
    let found = World { mutant: Mutant::IgnoresEpochs, ..restarting_for_long() }.explore();
    assert!(found.as_ref().is_err_and(|wrong| wrong.starts_with("overflow")), "{found:?}");
}
