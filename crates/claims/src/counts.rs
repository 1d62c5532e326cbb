//! How much a reproduction is, said before it is run.
//!
//! Invariant: these are the counts that its end tells.

use std::fmt;

/// What is chosen of a paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Claims, those of emulated Linux, too.
    pub claims: usize,
    /// Experiments that they need.
    pub experiments: usize,
    /// Their runs.
    pub runs: usize,
    /// Of the runs, those that are there already.
    pub finished: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { claims, experiments, runs, finished } = *self;
        let of = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        write!(f, "{}, {}, {}", of(claims, "claim"), of(experiments, "experiment"), of(runs, "run"))?;
        if finished > 0 { write!(f, ", of which {finished} are finished") } else { Ok(()) }
    }
}
