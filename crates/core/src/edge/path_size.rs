//! The size of a path: *how large a packet does it carry?*
//!
//! As packetization-layer path MTU discovery does (RFC 8899): some probes are padded to the size
//! that is wanted, and the peer reports which of them came. Routers that drop without a word cannot
//! hide that. Where the wanted size does not come, the largest that does is searched by halving.
//!
//! Invariant: a size is known to be carried only after the peer has confirmed a probe of it, and
//! stops being so when probes of it are lost again and again while plain ones after them are not.
//! So a path that dies is not taken for a small one.

use crate::units::Time;

/// How often a probe of one size is lost before it counts as too large.
const TRIES: u32 = 4;
/// Between two padded probes while something is searched.
const SEARCH: Time = Time::from_ms(20);
/// The same once it is found: whether it still is so.
const CONFIRM: Time = Time::from_s(1);
/// After so long a size that did not come is tried again.
const RETRY: Time = Time::from_s(30);
/// The search ends when it is this near.
const NEAR: u32 = 16;

/// The packet size that one path carries.
#[derive(Clone, Debug)]
pub struct PathSize {
    wanted: u32,
    /// Known to be carried; what plain probes have at first.
    carried: u32,
    /// Known not to be; above `wanted` where nothing is.
    refused: u32,
    /// The size on trial, how many probes of it were lost, and when the one was sent of which
    /// nothing is known yet.
    trial: u32,
    lost: u32,
    open: Option<Time>,
    next: Time,
    /// When `refused` was found.
    refused_at: Time,
}

impl PathSize {
    /// Of a path that carries `least`, and is to carry `wanted`.
    pub fn new(least: u32, wanted: u32) -> PathSize {
        let wanted = wanted.max(least);
        PathSize {
            wanted,
            carried: least,
            refused: wanted + 1,
            trial: wanted,
            lost: 0,
            open: None,
            next: Time::ZERO,
            refused_at: Time::ZERO,
        }
    }

    /// Starts the search anew, if the wanted size has changed.
    pub fn want(&mut self, least: u32, wanted: u32) {
        if wanted.max(least) != self.wanted {
            *self = PathSize::new(least, wanted);
        }
    }

    /// The size that a probe of now is padded to; `None`: it is not. The newest plain
    /// probe that the peer has confirmed was sent at `answered`.
    pub fn probe(&mut self, now: Time, answered: Option<Time>) -> Option<u32> {
        if now < self.next {
            return None;
        }
        if let (Some(sent), Some(answered)) = (self.open, answered)
            && answered > sent
        {
            (self.lost, self.open) = (self.lost + 1, None);
        }
        if self.lost >= TRIES {
            self.refuse(now, self.trial);
        }
        if self.is_settled()
            && self.refused <= self.wanted
            && now.saturating_sub(self.refused_at) > RETRY
        {
            (self.refused, self.trial, self.lost, self.open) =
                (self.wanted + 1, self.wanted, 0, None);
        }
        let is_confirming = self.trial == self.carried && self.lost == 0 && self.open.is_none();
        self.open.get_or_insert(now);
        self.next = now + if is_confirming { CONFIRM } else { SEARCH };
        Some(self.trial)
    }

    /// The peer has confirmed a probe of this size.
    pub fn on_answer(&mut self, size: u32) {
        if size != self.trial {
            return;
        }
        (self.lost, self.open) = (0, None);
        self.carried = size;
        self.search();
    }

    /// The kernel refuses this size as too large.
    pub fn refuse(&mut self, now: Time, size: u32) {
        if size != self.trial {
            return;
        }
        (self.refused, self.refused_at) = (size, now);
        (self.lost, self.open) = (0, None);
        if self.carried >= size {
            // It was carried before: the path has changed.
            self.carried = 0;
        }
        self.search();
    }

    /// Whether nothing larger is being searched for.
    pub fn is_settled(&self) -> bool {
        self.refused - self.carried <= NEAR || self.carried == self.wanted
    }
    fn search(&mut self) {
        self.trial = match self.is_settled() {
            true => self.carried.max(1),
            false => self.carried + (self.refused - self.carried) / 2,
        };
    }

    /// The largest size that is known to be carried.
    pub fn carried(&self) -> u32 {
        self.carried
    }
    /// Whether it is known to be too small.
    pub fn is_narrow(&self) -> bool {
        self.refused <= self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A path of this size for so long, on which only each `nth` probe is lost beside.
    fn run(
        size: &mut PathSize,
        now: &mut Time,
        carries: u32,
        ms: u64,
        loses: impl Fn(u32) -> bool,
    ) {
        let end = *now + Time::from_ms(ms);
        let mut count = 0;
        while *now < end {
            *now += Time::from_ms(10);
            // The plain probe of before was heard.
            if let Some(probe) = size.probe(*now, Some(now.saturating_sub(Time::from_ms(9)))) {
                count += 1;
                if probe <= carries && !loses(count) {
                    size.on_answer(probe);
                }
            }
        }
    }

    #[test]
    fn the_wanted_size_is_found_at_once_and_confirmed_each_second() {
        let (mut size, mut now) = (PathSize::new(96, 1472), Time::ZERO);
        run(&mut size, &mut now, 1500, 10, |_| false);
        assert_eq!((size.carried(), size.is_narrow()), (1472, false));
        let mut probes = 0;
        for _ in 0..1000 {
            now += Time::from_ms(10);
            if let Some(probe) = size.probe(now, Some(now)) {
                size.on_answer(probe);
                probes += 1;
            }
        }
        assert!((9..=11).contains(&probes), "{probes}");
    }

    #[test]
    fn a_smaller_path_is_measured() {
        let (mut size, mut now) = (PathSize::new(96, 1472), Time::ZERO);
        run(&mut size, &mut now, 1300, 2_000, |_| false);
        assert!(size.is_narrow() && (1300 - NEAR..=1300).contains(&size.carried()), "{size:?}");
        // It grows: found after the retry.
        run(&mut size, &mut now, 1500, 31_000, |_| false);
        assert_eq!((size.carried(), size.is_narrow()), (1472, false));
        // And shrinks: found within seconds.
        run(&mut size, &mut now, 1000, 5_000, |_| false);
        assert!(size.is_narrow() && (1000 - NEAR..=1000).contains(&size.carried()), "{size:?}");
    }

    #[test]
    fn a_path_that_is_dead_is_not_small() {
        let (mut size, mut now) = (PathSize::new(96, 1472), Time::ZERO);
        run(&mut size, &mut now, 1500, 100, |_| false);
        let answered = Some(now);
        for _ in 0..1000 {
            now += Time::from_ms(10);
            size.probe(now, answered);
        }
        assert_eq!((size.carried(), size.is_narrow()), (1472, false));
    }

    proptest! {
        /// Whatever it carries, and with every third padded probe lost: found, never overrated.
        #[test]
        fn found_with_loss(carries in 100u32..2000, wanted in 200u32..9000, phase in 0u32..3) {
            let (mut size, mut now) = (PathSize::new(96, wanted), Time::ZERO);
            run(&mut size, &mut now, carries, 10_000, |count| count % 3 == phase);
            prop_assert!(size.carried() <= carries.min(wanted));
            prop_assert!(size.carried() + NEAR >= carries.min(wanted), "{:?}", size);
            prop_assert_eq!(size.is_narrow(), carries < wanted);
        }
    }
}
