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
    pub experiments: Vec<String>,
    pub claims: Vec<String>,
}

impl Chosen {
    /// Claims by name or by group (`S1` is S1a, S1b, …; `T1a` is T1a1, T1a2), with the experiments
    /// that they need; experiments with the claims that they decide. All without `--only`.
    ///
    /// # Errors
    /// [`Error::Usage`] if an element of `only` names no experiment, claim or group of claims of
    /// the paper; it suggests the nearest name.
    pub fn of(paper: &Paper, only: &[String]) -> Result<Chosen, Error> {
        let names = || paper.experiments.iter().map(|experiment| &experiment.name);
        let mut chosen = Chosen { experiments: Vec::new(), claims: Vec::new() };
        for word in only.iter().map(|word| word.trim()) {
            let plain = word
                .strip_prefix(paper.name.as_str())
                .and_then(|rest| rest.strip_prefix('-'))
                .unwrap_or(word);
            let before = chosen.claims.len();
            let is_experiment = paper.experiment(word).is_some();
            let is_meant = |claim: &&Claim| match is_experiment {
                true => claim.experiment() == word,
                false => is_of_group(plain, &claim.id),
            };
            for claim in paper.claims.iter().filter(is_meant) {
                chosen.claims.push(claim.id.clone());
                chosen.experiments.push(claim.experiment().to_string());
            }
            if is_experiment {
                chosen.experiments.push(word.to_string());
            } else if chosen.claims.len() == before {
                let all: Vec<&String> = names().chain(paper.claims.iter().map(|c| &c.id)).collect();
                let meant = nearest(plain, all.iter().map(|name| name.as_str()));
                let help = match meant {
                    Some(best) => format!("did you mean `{best}`?"),
                    None => {
                        let all: Vec<&str> = all.iter().map(|name| name.as_str()).collect();
                        format!("there are: {}", all.join(", "))
                    }
                };
                return Err(Error::Usage(format!(
                    "--only {word}: {} has no such experiment or claim; {help}",
                    paper.name
                )));
            }
        }
        if only.is_empty() {
            chosen.experiments = names().cloned().collect();
            chosen.claims = all_claims(paper).map(|(id, _)| id).collect();
        }
        Ok(chosen)
    }

    /// The same without the experiments that other worlds than these run. Their claims are decided
    /// by the runs that the results folder has.
    pub fn only_in(mut self, paper: &Paper, worlds: &[World]) -> Chosen {
        let runs =
            |name: &String| paper.experiment(name).is_some_and(|e| worlds.contains(&e.world));
        self.experiments.retain(runs);
        self
    }
}

/// Name and kind of all claims.
pub fn all_claims(paper: &Paper) -> impl Iterator<Item = (String, ClaimKind)> {
    paper.claims.iter().map(|claim| (claim.id.clone(), claim.kind))
}
