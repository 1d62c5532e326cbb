//! Liveness of paths: *which of the paths to a peer may carry data now?*
//!
//! Section 3.3 of Presto (SIGCOMM 2015) leaves a failed path to the switches' fast failover first,
//! and then to a controller, which sends the edges new lists of labels. An edge over an ordinary
//! network has neither. It finds out by probes each way, as BFD does (RFC 5880, asynchronous mode):
//! a probe reports to the peer which of its probes came last, and for how long that has waited
//! here.
//!
//! A path's liveness is one number: the sending time of the newest probe that the peer has
//! confirmed. A path is dead when its number falls behind the peer's other paths'. So an end that
//! sleeps, a peer that is busy, or a fabric that is gone as a whole makes no path dead. The same
//! answers measure a path's delay.
//!
//! Invariant: a peer with paths has at least one that is used. Where none works, all are used: a
//! peer that does not answer probes is sent to as if there were none.

use crate::units::Time;

/// Delays that a path's delay is the least of: queueing at either end is not the path's.
const DELAYS: usize = 16;
/// How long a path that was dead must answer before it is used again.
const HOLD: Time = Time::from_ms(100);
/// The most, of a path that fails again and again.
const HOLD_MAX: Time = Time::from_s(10);
/// A path that was used for so long before it failed is none of those.
const STEADY: Time = Time::from_s(10);

/// The demands on the paths to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Between two probes of a path.
    pub probe: Time,
    /// A path is dead when the newest probe confirmed over it is older than that over another
    /// by more than this and its delay.
    pub dead_after: Time,
    /// A path is left out when its delay one way is longer than the fastest's by more.
    pub skew_max: Time,
}

crate::named! {
    /// Whether a path carries data, and why not.
    pub enum Standing {
        /// It does.
        Used = "used",
        /// The peer receives nothing over it.
        Dead = "dead",
        /// Another one carries larger packets.
        Narrow = "narrow",
        /// Another one is faster by more than is allowed.
        Slow = "slow",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The peer has reported nothing of it.
    Untried,
    /// It works, since then.
    Up(Time),
    /// It does not.
    Down,
}

#[derive(Clone, Debug)]
struct Path {
    state: State,
    /// When the newest probe was sent that the peer has confirmed.
    confirmed: Option<Time>,
    /// Since when it answers, where it does.
    answers_since: Option<Time>,
    /// Probes sent before count for nothing: the kernel refused them.
    void_before: Time,
    /// How long it must answer before it is used again.
    hold: Time,
    /// Of the last answers, round trips.
    delays: [Time; DELAYS],
    answers: u64,
    is_narrow: bool,
    standing: Standing,
}

impl Path {
    fn new() -> Path {
        Path {
            state: State::Untried,
            confirmed: None,
            answers_since: None,
            void_before: Time::ZERO,
            hold: HOLD,
            delays: [Time::MAX; DELAYS],
            answers: 0,
            is_narrow: false,
            standing: Standing::Used,
        }
    }

    /// The least of its last round trips.
    fn round_trip(&self) -> Option<Time> {
        self.delays.iter().copied().min().filter(|delay| *delay < Time::MAX)
    }
    /// Whether it keeps up with the path of the latest confirmation.
    fn is_fresh(&self, newest: Time, terms: &Terms) -> bool {
        let patience = terms.dead_after + self.round_trip().unwrap_or(Time::ZERO);
        self.confirmed.is_some_and(|at| newest.saturating_sub(at) <= patience)
    }

    fn fail(&mut self, now: Time) {
        if let State::Up(since) = self.state {
            let again = now.saturating_sub(since) < STEADY;
            self.hold = if again { (self.hold + self.hold).min(HOLD_MAX) } else { HOLD };
            self.state = State::Down;
        }
        self.answers_since = None;
    }

    fn judge(&mut self, now: Time, newest: Time, terms: &Terms, others_answer: bool) {
        let is_fresh = self.is_fresh(newest, terms);
        match self.state {
            State::Untried if is_fresh => self.state = State::Up(now),
            // Without an answer while the peer's other paths have some: it has had its time.
            State::Untried if others_answer => self.state = State::Down,
            State::Untried => {}
            State::Up(_) if !is_fresh => self.fail(now),
            State::Up(_) => {}
            State::Down if !is_fresh => self.answers_since = None,
            State::Down => {
                let since = *self.answers_since.get_or_insert(now);
                if now.saturating_sub(since) >= self.hold {
                    self.state = State::Up(now);
                }
            }
        }
    }
}

/// The paths to one peer.
#[derive(Clone, Debug)]
pub struct Liveness {
    terms: Terms,
    paths: Vec<Path>,
    /// When they were judged first.
    first: Option<Time>,
}

impl Liveness {
    /// Of so many paths.
    pub fn new(terms: Terms, paths: usize) -> Liveness {
        Liveness { terms, paths: vec![Path::new(); paths], first: None }
    }
    /// The demands on them.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The peer has received the probe that was sent over `path` at `sent`, and reported it
    /// `waited` later.
    pub fn on_answer(&mut self, now: Time, path: usize, sent: Time, waited: Time) {
        let Some(path) = self.paths.get_mut(path) else { return };
        let is_new = path.confirmed.is_none_or(|confirmed| sent > confirmed);
        // A peer that is wrong, or forges, cannot make a path live longer than by answering.
        if !is_new || sent > now || sent < path.void_before {
            return;
        }
        path.confirmed = Some(sent);
        path.delays[(path.answers % DELAYS as u64) as usize] =
            now.saturating_sub(sent).saturating_sub(waited);
        path.answers += 1;
    }

    /// The kernel refused a packet over `path`.
    pub fn failed(&mut self, now: Time, path: usize) {
        if let Some(path) = self.paths.get_mut(path) {
            path.void_before = now;
            path.confirmed = None;
            path.fail(now);
        }
    }

    /// Whether `path` carries all that ports give it.
    pub fn set_narrow(&mut self, path: usize, is_narrow: bool) {
        if let Some(path) = self.paths.get_mut(path) {
            path.is_narrow = is_narrow;
        }
    }

    /// Judges them all, after what had come was looked at; whether a standing has changed.
    pub fn judge(&mut self, now: Time) -> bool {
        let terms = self.terms;
        let first = *self.first.get_or_insert(now);
        let newest = self.newest().unwrap_or(Time::ZERO);
        let others_answer = newest > first + terms.dead_after;
        self.paths.iter_mut().for_each(|path| path.judge(now, newest, &terms, others_answer));
        self.stand()
    }

    /// When the newest probe was sent that the peer has confirmed over any path.
    pub fn newest(&self) -> Option<Time> {
        self.paths.iter().filter_map(|path| path.confirmed).max()
    }

    fn stand(&mut self) -> bool {
        let is_up = |path: &Path| matches!(path.state, State::Up(_));
        let any_up = self.paths.iter().any(is_up);
        let any_wide = self.paths.iter().any(|path| is_up(path) && !path.is_narrow);
        let carries = |path: &Path| is_up(path) && !(any_wide && path.is_narrow);
        let fastest =
            self.paths.iter().filter(|path| carries(path)).filter_map(Path::round_trip).min();
        // Round trips, so twice the difference. One that is left out comes back at three quarters.
        let allowed = self.terms.skew_max + self.terms.skew_max;
        let standings: Vec<Standing> = self
            .paths
            .iter()
            .map(|path| {
                let skew = path
                    .round_trip()
                    .unwrap_or(Time::ZERO)
                    .saturating_sub(fastest.unwrap_or(Time::MAX));
                let allowed =
                    if path.standing == Standing::Slow { allowed * 3 / 4 } else { allowed };
                match () {
                    () if !any_up => Standing::Used,
                    () if !is_up(path) => Standing::Dead,
                    () if any_wide && path.is_narrow => Standing::Narrow,
                    () if skew > allowed => Standing::Slow,
                    () => Standing::Used,
                }
            })
            .collect();
        let mut changed = false;
        for (path, standing) in self.paths.iter_mut().zip(standings) {
            changed |= path.standing != standing;
            path.standing = standing;
        }
        changed
    }

    /// The findings of `path` when they were judged last.
    pub fn standing(&self, path: usize) -> Standing {
        self.paths.get(path).map_or(Standing::Used, |path| path.standing)
    }
    /// Whether the peer receives over `path`; `None`: it has never reported it.
    pub fn answers(&self, path: usize) -> Option<bool> {
        match self.paths.get(path)?.state {
            State::Untried => None,
            State::Up(_) => Some(true),
            State::Down => Some(false),
        }
    }
    /// When the newest probe of `path` was sent that the peer has confirmed.
    pub fn confirmed(&self, path: usize) -> Option<Time> {
        self.paths.get(path)?.confirmed
    }
    /// How long a probe takes there and back, at least.
    pub fn round_trip(&self, path: usize) -> Option<Time> {
        self.paths.get(path)?.round_trip()
    }
    /// How many probes the peer has received, of those that it has reported.
    pub fn answered_probes(&self, path: usize) -> u64 {
        self.paths.get(path).map_or(0, |path| path.answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TERMS: Terms = Terms {
        probe: Time::from_ms(10),
        dead_after: Time::from_ms(30),
        skew_max: Time::from_us(500),
    };

    /// Two ends' worth: each probe is answered after a path's round trip, where `works` says so.
    struct World {
        liveness: Liveness,
        delays: Vec<Time>,
        now: Time,
        under_way: Vec<(Time, usize, Time)>,
    }

    impl World {
        fn new(delays_us: &[u64]) -> World {
            let delays = delays_us.iter().map(|us| Time::from_us(*us)).collect::<Vec<_>>();
            World {
                liveness: Liveness::new(TERMS, delays.len()),
                delays,
                now: Time::ZERO,
                under_way: Vec::new(),
            }
        }
        /// Runs for so long, in steps of a probe; how often standings changed.
        fn run(&mut self, ms: u64, works: impl Fn(usize) -> bool) -> u32 {
            let (end, mut changes) = (self.now + Time::from_ms(ms), 0);
            while self.now < end {
                for path in 0..self.delays.len() {
                    if works(path) {
                        self.under_way.push((self.now + self.delays[path], path, self.now));
                    }
                }
                self.now += TERMS.probe;
                for (at, path, sent) in self.under_way.extract_if(.., |(at, ..)| *at <= self.now) {
                    self.liveness.on_answer(self.now, path, sent, self.now.saturating_sub(at));
                }
                changes += u32::from(self.liveness.judge(self.now));
            }
            changes
        }
        fn standings(&self) -> Vec<Standing> {
            (0..self.delays.len()).map(|path| self.liveness.standing(path)).collect()
        }
    }

    use Standing::{Dead, Narrow, Slow, Used};

    #[test]
    fn a_path_that_dies_is_left_out_within_fifty_milliseconds_and_comes_back_later() {
        let mut world = World::new(&[50, 50, 50, 50]);
        assert_eq!(world.run(100, |_| true), 0);
        let died = world.now;
        while world.standings() == [Used; 4] {
            world.run(10, |path| path != 0);
        }
        assert_eq!(world.standings(), [Dead, Used, Used, Used]);
        assert!(
            world.now.saturating_sub(died) <= Time::from_ms(50),
            "{}",
            world.now.saturating_sub(died)
        );
        // Three answers are not enough: it may fail again at once.
        world.run(30, |_| true);
        assert_eq!(world.standings()[0], Dead);
        world.run(250, |_| true);
        assert_eq!(world.standings(), [Used; 4]);
    }

    #[test]
    fn a_path_that_flaps_is_used_ever_less() {
        let mut world = World::new(&[50, 50]);
        world.run(100, |_| true);
        let mut used = Vec::new();
        for _ in 0..6 {
            world.run(200, |path| path != 0);
            let mut steps = 0;
            for _ in 0..80 {
                world.run(10, |_| true);
                steps += u32::from(world.standings()[0] == Used);
            }
            used.push(steps);
        }
        assert!(used.is_sorted_by(|a, b| a >= b) && used[0] > 50 && used[5] == 0, "{used:?}");
        // Its hold has a bound: it comes back when it has answered for so long.
        world.run(10_050, |_| true);
        assert_eq!(world.standings()[0], Used);
    }

    #[test]
    fn where_nothing_answers_everything_is_used() {
        let mut world = World::new(&[50, 50]);
        assert_eq!(world.run(1_000, |_| false), 0, "a peer without probes");
        assert_eq!(world.standings(), [Used; 2]);
        world.run(100, |_| true);
        world.run(100, |_| false);
        assert_eq!(world.standings(), [Used; 2], "a peer that has died");
        let silence = world.now.saturating_sub(world.liveness.newest().unwrap());
        assert!(silence >= Time::from_ms(100), "{silence}");
        (0..2).for_each(|path| world.liveness.failed(world.now, path));
        world.liveness.judge(world.now);
        assert_eq!((world.standings(), world.liveness.answers(0)), (vec![Used; 2], Some(false)));
    }

    #[test]
    fn a_path_that_never_worked_is_dead_when_others_work() {
        let mut world = World::new(&[50, 50]);
        world.run(100, |path| path == 1);
        assert_eq!((world.standings(), world.liveness.answers(0)), (vec![Dead, Used], Some(false)));
    }

    #[test]
    fn the_kernels_word_counts_at_once() {
        let mut world = World::new(&[50, 50]);
        world.run(100, |_| true);
        world.liveness.failed(world.now, 1);
        assert!(world.liveness.judge(world.now));
        assert_eq!(world.standings(), [Used, Dead]);
        // Probes from before do not revive it.
        world.liveness.on_answer(
            world.now,
            1,
            world.now.saturating_sub(Time::from_ms(1)),
            Time::ZERO,
        );
        world.run(50, |path| path == 0);
        assert_eq!(world.standings(), [Used, Dead]);
    }

    #[test]
    fn slow_and_narrow_paths_are_left_out_while_there_are_others() {
        let mut world = World::new(&[100, 10_000, 900]);
        world.run(200, |_| true);
        assert_eq!(world.standings(), [Used, Slow, Used]);
        assert_eq!(world.liveness.round_trip(1), Some(Time::from_ms(10)));
        world.liveness.set_narrow(0, true);
        world.run(10, |_| true);
        assert_eq!(world.standings(), [Narrow, Slow, Used]);
        // Alone, each will do.
        world.run(100, |path| path == 1);
        assert_eq!(world.standings(), [Dead, Used, Dead]);
        (1..3).for_each(|path| world.liveness.set_narrow(path, true));
        world.run(500, |_| true);
        assert_eq!(world.standings(), [Used, Slow, Used], "all are narrow, so none is");
    }

    #[test]
    fn who_sleeps_blames_no_path() {
        let mut world = World::new(&[50, 50]);
        world.run(100, |_| true);
        world.now += Time::from_ms(500);
        assert!(!world.liveness.judge(world.now));
        assert_eq!((world.standings(), world.liveness.answers(0)), (vec![Used; 2], Some(true)));
        assert_eq!(world.run(100, |_| true), 0);
    }

    proptest! {
        /// Whatever works when: at least one path is used, and one that has answered all the time.
        #[test]
        fn something_is_used(
            pattern in proptest::collection::vec(0u8..16, 1..60),
            steady in 0usize..4,
        ) {
            let mut world = World::new(&[50, 300, 20, 700]);
            world.run(100, |_| true);
            for bits in pattern {
                world.run(40, |path| path == steady || bits & 1 << path != 0);
                prop_assert_eq!(world.standings()[steady], Used);
            }
        }
    }
}
