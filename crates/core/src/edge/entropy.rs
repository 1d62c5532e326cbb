//! Entropy values: by which path does a packet of a sprayed connection go? (uet-htsim; REPS, Bonato
//! et al.)
//!
//! Switches hash the value that a packet carries, and its acknowledgement repeats it. So a sender
//! learns which values lead over good paths without a list of paths.
//!
//! | kind | next value | what it learns |
//! |---|---|---|
//! | oblivious | a counter, turned round by a number that changes each round | nothing |
//! | bitmap | as oblivious, without those that have a penalty | marks, trimmed packets, timeouts |
//! | reps | the oldest of eight that came unmarked, once; else at random | what came unmarked |
//! | mixed | the oldest that came unmarked, once; else as bitmap | both |
//!
//! Invariant: every value is below the number of values.

use crate::random::mix64;
use crate::units::Time;
use std::collections::VecDeque;

crate::choice! {
    /// How a packet's entropy value is chosen, by which switches choose its path.
    pub enum UetPathChoice {
        /// One after another, in an order that changes each round.
        Oblivious = "oblivious",
        /// The same, without those that packets were marked, trimmed or lost on.
        Bitmap = "bitmap",
        /// Those of packets that came unmarked, each once; otherwise at random (REPS).
        Reps = "reps",
        /// Those of packets that came unmarked; otherwise as "bitmap".
        Mixed = "mixed",
    }
}

/// The fate of a packet that had a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Good,
    Marked,
    Trimmed,
    Lost,
}

impl Fate {
    /// Its addition to the penalty of its value.
    fn penalty(self) -> u8 {
        match self {
            Fate::Good => 0,
            Fate::Marked => 1,
            Fate::Trimmed => 4,
            Fate::Lost => 15,
        }
    }
}

const PENALTY_MAX: u8 = 15;
const KEPT: usize = 8;
/// How long REPS goes on with what it has after a timeout, and how many are random then.
const FROZEN: Time = Time::from_ms(10);
const RANDOM_AFTER: u32 = 16;

/// REPS's values, the oldest first; those that were used are kept for a time of trouble.
#[derive(Clone, Debug, Default)]
struct Reps {
    kept: VecDeque<(u16, bool)>,
    frozen_until: Option<Time>,
    /// Values that are drawn although some are kept.
    random: u32,
    /// While it is frozen: the next one.
    turn: usize,
}

impl Reps {
    fn next(&mut self, now: Time) -> Option<u16> {
        if let Some(until) = self.frozen_until {
            if now < until && !self.kept.is_empty() {
                self.turn = (self.turn + 1) % self.kept.len();
                return Some(self.kept[self.turn].0);
            }
            (self.frozen_until, self.random) = (None, RANDOM_AFTER);
            self.kept.clear();
        }
        if self.random > 0 {
            self.random -= 1;
            return None;
        }
        let fresh = self.kept.iter_mut().find(|(_, is_fresh)| *is_fresh)?;
        fresh.1 = false;
        Some(fresh.0)
    }

    fn put(&mut self, value: u16) {
        if self.frozen_until.is_some() {
            return;
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((value, true));
    }
}

/// The choice of entropy values for one connection's packets.
#[derive(Clone, Debug)]
pub struct Entropy {
    kind: UetPathChoice,
    /// One less than the number of values, a power of two.
    mask: u32,
    seed: u64,
    drawn: u64,
    counter: u32,
    turn: u32,
    /// By value; empty until one has a penalty.
    penalties: Vec<u8>,
    /// Values that came unmarked, of "mixed".
    good: VecDeque<u16>,
    reps: Reps,
}

impl Entropy {
    /// Of so many values, a power of two, and a seed of the connection's own.
    pub fn new(kind: UetPathChoice, paths: u32, seed: u64) -> Entropy {
        let mut entropy = Entropy {
            kind,
            mask: paths.max(1) - 1,
            seed,
            drawn: 0,
            counter: 0,
            turn: 0,
            penalties: Vec::new(),
            good: VecDeque::new(),
            reps: Reps::default(),
        };
        entropy.turn = entropy.draw();
        entropy
    }

    fn draw(&mut self) -> u32 {
        self.drawn += 1;
        mix64(self.seed ^ mix64(self.drawn)) as u32 & self.mask
    }

    /// The next value in the order of this round.
    fn in_turn(&mut self) -> u16 {
        let value = (self.counter ^ self.turn) & self.mask;
        self.counter += 1;
        if self.counter > self.mask {
            self.counter = 0;
            self.turn = self.draw();
        }
        value as u16
    }

    /// The same without those that have a penalty, of which the first that is passed over loses
    /// one.
    fn unpunished(&mut self) -> u16 {
        let mut value = self.in_turn();
        if self.penalties.is_empty() {
            return value;
        }
        let first = usize::from(value);
        for skipped in 0..=self.mask {
            if self.penalties[usize::from(value)] == 0 || skipped == self.mask {
                break;
            }
            value = self.in_turn();
        }
        self.penalties[first] = self.penalties[first].saturating_sub(1);
        value
    }

    /// The value of the next packet.
    pub fn next(&mut self, now: Time) -> u16 {
        match self.kind {
            UetPathChoice::Oblivious => self.in_turn(),
            UetPathChoice::Bitmap => self.unpunished(),
            UetPathChoice::Reps => match self.reps.next(now) {
                Some(value) => value,
                None => self.draw() as u16,
            },
            UetPathChoice::Mixed => match self.good.pop_front() {
                Some(value) => value,
                None => self.unpunished(),
            },
        }
    }

    /// Learns what has become of a packet with this value. `can_freeze`: a packet without
    /// an answer is a sign of a failure, since switches trim.
    pub fn learn(&mut self, now: Time, value: u16, fate: Fate, can_freeze: bool) {
        let value = value & self.mask as u16;
        let has_penalties = matches!(self.kind, UetPathChoice::Bitmap | UetPathChoice::Mixed);
        if has_penalties && fate != Fate::Good {
            if self.penalties.is_empty() {
                self.penalties = vec![0; self.mask as usize + 1];
            }
            let penalty = &mut self.penalties[usize::from(value)];
            *penalty = (*penalty + fate.penalty()).min(PENALTY_MAX);
        }
        match (self.kind, fate) {
            (UetPathChoice::Mixed, Fate::Good) => self.good.push_back(value),
            (UetPathChoice::Reps, Fate::Good) => self.reps.put(value),
            (UetPathChoice::Reps, Fate::Lost) if can_freeze => {
                self.reps.frozen_until.get_or_insert(now + FROZEN);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_us(1);

    fn round(entropy: &mut Entropy, count: usize) -> Vec<u16> {
        (0..count).map(|_| entropy.next(NOW)).collect()
    }

    #[test]
    fn each_round_has_every_value_once_in_another_order() {
        let mut entropy = Entropy::new(UetPathChoice::Oblivious, 16, 1);
        let rounds: Vec<Vec<u16>> = (0..8).map(|_| round(&mut entropy, 16)).collect();
        for one in &rounds {
            let mut sorted = one.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..16).collect::<Vec<u16>>());
        }
        assert!(rounds.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_value_with_a_penalty_of_four_is_skipped_in_four_rounds() {
        let mut entropy = Entropy::new(UetPathChoice::Bitmap, 8, 1);
        entropy.learn(NOW, 3, Fate::Trimmed, true);
        let mut skipped = 0;
        while !round(&mut entropy, 7).contains(&3) {
            skipped += 1;
            assert!(skipped < 20);
        }
        assert!((4..=5).contains(&skipped), "{skipped}");
        // With all of them bad one is taken.
        (0..8).for_each(|value| entropy.learn(NOW, value, Fate::Lost, true));
        assert!(entropy.next(NOW) < 8);
    }

    #[test]
    fn reps_uses_what_came_once_and_freezes_after_a_timeout() {
        let mut reps = Entropy::new(UetPathChoice::Reps, 256, 1);
        (1..=10).for_each(|value| reps.learn(NOW, value, Fate::Good, true));
        reps.learn(NOW, 99, Fate::Marked, true);
        // It keeps eight, the newest.
        assert_eq!(round(&mut reps, 8), (3..=10).collect::<Vec<u16>>());
        reps.learn(NOW, 5, Fate::Lost, true);
        reps.learn(NOW, 77, Fate::Good, true);
        let mut frozen = round(&mut reps, 16);
        frozen.sort_unstable();
        frozen.dedup();
        assert_eq!(frozen, (3..=10).collect::<Vec<u16>>());
        let later = NOW + FROZEN;
        let drawn: Vec<u16> = (0..RANDOM_AFTER).map(|_| reps.next(later)).collect();
        assert!(drawn.iter().any(|value| *value > 10));
        reps.learn(later, 77, Fate::Good, true);
        assert_eq!(reps.next(later), 77);
    }

    #[test]
    fn after_a_window_no_packet_takes_the_marked_path_of_many() {
        let mut reps = Entropy::new(UetPathChoice::Reps, 16, 7);
        let window = round(&mut reps, 8);
        let marked = window[0];
        for value in window {
            let fate = if value == marked { Fate::Marked } else { Fate::Good };
            reps.learn(NOW, value, fate, true);
        }
        let came = reps.reps.kept.len();
        assert!(came > 0 && !round(&mut reps, came).contains(&marked));
    }

    #[test]
    fn mixed_takes_what_came_and_else_what_has_no_penalty() {
        let mut mixed = Entropy::new(UetPathChoice::Mixed, 4, 1);
        mixed.learn(NOW, 2, Fate::Good, true);
        mixed.learn(NOW, 1, Fate::Good, true);
        mixed.learn(NOW, 3, Fate::Lost, true);
        assert_eq!(round(&mut mixed, 2), [2, 1]);
        assert!(!round(&mut mixed, 9).contains(&3));
    }

    #[test]
    fn one_value_is_the_only_one() {
        for kind in [UetPathChoice::Oblivious, UetPathChoice::Bitmap, UetPathChoice::Mixed] {
            let mut entropy = Entropy::new(kind, 1, 5);
            entropy.learn(NOW, 0, Fate::Lost, true);
            assert_eq!(round(&mut entropy, 4), [0; 4]);
        }
    }
}
