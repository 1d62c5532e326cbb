//! Our own small generator and name hash, so that no dependency can ever change a result.
//!
//! The generator is xoshiro256++ (Blackman, Vigna: "Scrambled linear pseudorandom number
//! generators", 2019), seeded by SplitMix64. A [`Stream`] is derived from the scenario's seed and
//! the *stable name* of the component that draws from it ("switch/leaf3", "traffic/background"), so
//! adding a component never shifts the numbers of another.
//!
//! Invariant: the same seed and name give the same sequence on every machine and in every version.

use crate::units::Time;
use std::cell::Cell;

/// Vigna's SplitMix64 finaliser: a bijection on `u64` that mixes every input bit into every output
/// bit.
#[inline]
pub const fn mix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The lot that a link with this number draws for its arrivals of one instant: the least comes
/// first, so no link is always the first.
#[inline]
pub const fn lot(at: Time, number: u32) -> u64 {
    mix64(mix64(at.as_ps()) ^ number as u64)
}

/// FNV-1a over a name, finished by [`mix64`]: stable across versions and machines.
pub const fn hash_name(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut h = 0xCBF2_9CE4_8422_2325u64;
    let mut i = 0;
    while i < bytes.len() {
        h = (h ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01B3);
        i += 1;
    }
    mix64(h)
}

#[derive(Clone, Debug)]
pub struct Stream {
    s: [u64; 4],
}

impl Stream {
    /// The stream that belongs to `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Stream {
        Stream::from_key(mix64(seed) ^ hash_name(name))
    }

    /// A stream from an already mixed key.
    pub fn from_key(key: u64) -> Stream {
        let mut x = key;
        let mut next = || {
            let word = mix64(x);
            x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            word
        };
        Stream { s: [next(), next(), next(), next()] }
    }

    /// The stream's next 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.s;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..n` without bias (Lemire's multiply and reject). `n` must not be zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "nothing to choose from");
        let mut product = self.bits() as u128 * n as u128;
        if (product as u64) < n {
            let floor = n.wrapping_neg() % n;
            while (product as u64) < floor {
                product = self.bits() as u128 * n as u128;
            }
        }
        (product >> 64) as u64
    }

    /// Uniform in [0, 1), with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A stream of its own, for a part of the component that owns this one.
    pub fn fork(&mut self) -> Stream {
        Stream::from_key(self.bits())
    }

    /// Exponential with the given mean: the gap of a Poisson process. The logarithm is `libm`'s,
    /// not the platform's.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// Normal with the given mean and standard deviation (Box and Muller, 1958). The functions are
    /// `libm`'s.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        mean + deviation * radius * libm::cos(2.0 * core::f64::consts::PI * self.unit())
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// A node's random numbers: a [`Stream`] that is drawn from through a shared reference, so that a
/// decision and what it looks at can hold the same one. It belongs to one thread.
#[derive(Clone, Debug)]
pub struct Random {
    words: Cell<[u64; 4]>,
}

impl From<Stream> for Random {
    fn from(stream: Stream) -> Random {
        Random { words: Cell::new(stream.s) }
    }
}

impl Random {
    #[inline]
    fn draw<T>(&self, draw: impl FnOnce(&mut Stream) -> T) -> T {
        let mut stream = Stream { s: self.words.get() };
        let drawn = draw(&mut stream);
        self.words.set(stream.s);
        drawn
    }
    /// As [`Stream::bits`].
    #[inline]
    pub fn bits(&self) -> u64 {
        self.draw(Stream::bits)
    }
    /// As [`Stream::below`].
    #[inline]
    pub fn below(&self, n: u64) -> u64 {
        self.draw(|stream| stream.below(n))
    }
    /// As [`Stream::unit`].
    #[inline]
    pub fn unit(&self) -> f64 {
        self.draw(Stream::unit)
    }
}

/// Draws indices of `0..n` without replacement, all equally likely, without memory of its own for
/// up to 64 of them.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    n: usize,
    left: usize,
    /// Bit i: index i was drawn.
    drawn: u64,
}

impl Draw {
    /// Of at most 64 candidates; those beyond are never drawn.
    pub fn new(n: usize) -> Draw {
        let n = n.min(64);
        Draw { n, left: n, drawn: 0 }
    }
    /// The next index; `None` when all are drawn.
    #[inline]
    pub fn next(&mut self, random: &Random) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        let mut skip = random.below(self.left as u64);
        self.left -= 1;
        let mut free = !self.drawn & (u64::MAX >> (64 - self.n));
        while skip > 0 {
            free &= free - 1;
            skip -= 1;
        }
        self.drawn |= 1 << free.trailing_zeros();
        Some(free.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published SplitMix64 sequence for seed 0 (Vigna's reference code) pins the mixer.
    #[test]
    fn splitmix64_reference_values() {
        assert_eq!(mix64(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix64(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }

    /// xoshiro256++ from state 1, 2, 3, 4: the first outputs of the reference implementation.
    #[test]
    fn xoshiro_reference_values() {
        let mut s = Stream { s: [1, 2, 3, 4] };
        assert_eq!([s.bits(), s.bits(), s.bits()], [41_943_041, 58_720_359, 3_588_806_011_781_223]);
    }

    #[test]
    fn names_separate_streams_and_pin_them() {
        let (mut a, mut b) = (Stream::new(1, "switch/leaf0"), Stream::new(1, "switch/leaf1"));
        assert_ne!(a.bits(), b.bits());
        assert_eq!(Stream::new(1, "switch/leaf0").bits(), Stream::new(1, "switch/leaf0").bits());
        assert_ne!(Stream::new(1, "x").bits(), Stream::new(2, "x").bits());
    }

    #[test]
    fn a_nodes_numbers_are_its_streams() {
        let mut stream = Stream::new(3, "node");
        let random = Random::from(stream.clone());
        for n in 1..100 {
            assert_eq!((random.bits(), random.below(n)), (stream.bits(), stream.below(n)));
            assert_eq!(random.unit(), stream.unit());
        }
    }

    #[test]
    fn below_is_uniform_and_exponential_has_its_mean() {
        let mut s = Stream::new(7, "test");
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[s.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
        let mean = (0..100_000).map(|_| s.exponential(3.0)).sum::<f64>() / 100_000.0;
        assert!((2.95..3.05).contains(&mean), "{mean}");
    }

    #[test]
    fn normal_has_its_mean_deviation_and_tails() {
        let mut s = Stream::new(7, "normal");
        let draws: Vec<f64> = (0..100_000).map(|_| s.normal(20.0, 3.0)).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let deviation = (draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5).sqrt();
        assert!(
            (19.97..20.03).contains(&mean) && (2.97..3.03).contains(&deviation),
            "{mean} {deviation}"
        );
        let beyond_two = draws.iter().filter(|x| (**x - 20.0).abs() > 6.0).count();
        assert!(
            (4_300..4_800).contains(&beyond_two),
            "{beyond_two} of 100,000; 4.55 % are expected"
        );
    }

    #[test]
    fn a_draw_is_without_replacement_and_fair() {
        let random = Random::from(Stream::new(1, "t"));
        let mut first = [0; 5];
        for _ in 0..5000 {
            let mut draw = Draw::new(5);
            let mut all: Vec<usize> = std::iter::from_fn(|| draw.next(&random)).collect();
            first[all[0]] += 1;
            all.sort();
            assert_eq!(all, [0, 1, 2, 3, 4]);
        }
        assert!(first.iter().all(|c| (900..1100).contains(c)), "{first:?}");
        assert_eq!(Draw::new(0).next(&random), None);
        assert!(Draw::new(64).next(&random).is_some());
    }
}
