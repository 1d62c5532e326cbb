//! The amount of work of a reproduction, printed before it runs.
//!
//! Invariant: these are the counts that its end reports, by the kind of the claims as there.

use millpond_results::ClaimKind;
use std::fmt;

/// How many claims there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds([usize; ClaimKind::ALL.len()]);

impl Kinds {
    pub fn of(claims: impl Iterator<Item = ClaimKind>) -> Kinds {
        let mut kinds = Kinds::default();
        for claim in claims {
            for (kind, n) in ClaimKind::ALL.into_iter().zip(&mut kinds.0) {
                *n += usize::from(kind == claim);
            }
        }
        kinds
    }

    /// Each kind that occurs, and how many claims are of it.
    pub fn iter(&self) -> impl Iterator<Item = (ClaimKind, usize)> {
        ClaimKind::ALL.into_iter().zip(self.0).filter(|(_, n)| *n > 0)
    }

    pub fn all(&self) -> usize {
        self.0.iter().sum()
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.iter().map(|(kind, n)| format!("{} {n}", kind.name())).collect();
        f.write_str(&parts.join(", "))
    }
}

/// The size of the chosen part of a paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub claims: Kinds,
    pub experiments: usize,
    pub runs: usize,
    /// Of the runs, those that are there already.
    pub finished: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { claims, experiments, runs, finished } = *self;
        let of =
            |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        f.write_str(&of(claims.all(), "claim"))?;
        if claims.all() > 0 {
            write!(f, " ({claims})")?;
        }
        write!(f, ", {}, {}", of(experiments, "experiment"), of(runs, "run"))?;
        if finished > 0 { write!(f, ", of which {finished} are finished") } else { Ok(()) }
    }
}
