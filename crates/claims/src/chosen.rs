//! The parts of a paper that are asked for.
//!
//! Invariant: a word that means nothing is refused, with the nearest that means something.

use crate::claim::{Claim, is_of_group};
use crate::error::Error;
use crate::paper::Paper;
use millpond_results::{ClaimKind, World};
use millpond_scenario::nearest;

/// The choice of `--only`.
#[derive(Debug)]
pub struct Chosen {
    /// Experiments that are run.
    pub experiments: Vec<&'static str>,
    /// Claims' names, without the paper's.
    pub claims: Vec<String>,
}

impl Chosen {
    /// Claims by name or by group (`S1` is S1a, S1b, …; `T1a` is T1a1, T1a2), with the experiments
    /// that they need; experiments with the claims that they decide. All without `--only`.
    ///
    /// # Errors
    /// [`Error::Usage`] if a word of `only` names no experiment, claim or group of claims of the
    /// paper; it suggests the nearest name.
    pub fn of(paper: &'static Paper, only: &[String]) -> Result<Chosen, Error> {
        let mut chosen = Chosen { experiments: Vec::new(), claims: Vec::new() };
        for word in only.iter().map(|word| word.trim()) {
            let plain = word
                .strip_prefix(paper.name)
                .and_then(|rest| rest.strip_prefix('-'))
                .unwrap_or(word);
            let named = |claim: &&Claim| is_of_group(plain, claim.id);
            let before = chosen.claims.len();
            let is_experiment = paper.experiments.iter().any(|experiment| experiment.name == word);
            let claims = paper
                .claims
                .iter()
                .filter(|c| if is_experiment { c.experiment() == word } else { named(c) });
            for claim in claims {
                chosen.claims.push(claim.id.to_string());
                chosen.experiments.push(claim.experiment());
            }
            if is_experiment {
                chosen
                    .experiments
                    .extend(paper.experiments.iter().map(|e| e.name).filter(|name| *name == word));
            } else if chosen.claims.len() == before {
                let claims = paper.claims.iter().map(|claim| claim.id);
                let all: Vec<&str> =
                    paper.experiments.iter().map(|e| e.name).chain(claims).collect();
                let meant = nearest(plain, all.iter().copied());
                let help = meant.map_or(format!("there are: {}", all.join(", ")), |best| {
                    format!("did you mean `{best}`?")
                });
                let text = format!(
                    "--only {word}: {} has no such experiment or claim; {help}",
                    paper.name
                );
                return Err(Error::Usage(text));
            }
        }
        if only.is_empty() {
            chosen.experiments =
                paper.experiments.iter().map(|experiment| experiment.name).collect();
            chosen.claims = all_claims(paper).map(|(id, _)| id).collect();
        }
        Ok(chosen)
    }

    /// The same without the experiments that other worlds than these run. Their claims are decided
    /// by the runs that the results folder has.
    pub fn only_in(mut self, paper: &Paper, worlds: &[World]) -> Chosen {
        let runs = |name: &str| {
            paper.experiments.iter().any(|e| e.name == name && worlds.contains(&e.world))
        };
        self.experiments.retain(|name| runs(name));
        self
    }
}

/// Name and kind of all claims.
pub fn all_claims(paper: &'static Paper) -> impl Iterator<Item = (String, ClaimKind)> {
    paper.claims.iter().map(|claim| (claim.id.to_string(), claim.kind()))
}
