//! A claim of a paper: what is published, what is measured in its place, and what is accepted.

use crate::measure::Measure;
use millpond_results::ClaimKind;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    pub id: String,
    pub source: String,
    pub statement: String,
    pub kind: ClaimKind,
    /// The number that it rests on; none: an order or a bound.
    pub paper: Option<f64>,
    /// How a derived number is computed, or which parameter a fitted one gave.
    pub how: Option<String>,
    /// The least accepted value; `None` is an open end.
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    /// How ours is found. All measures are in percent, unless their doc has another unit.
    pub measure: Measure,
    /// Why `--quick` does not decide it, if it does not.
    pub quick: Option<String>,
    /// A note for the reader; empty if there is none.
    #[serde(default)]
    pub note: String,
}

impl Claim {
    /// The experiment that it is measured in.
    pub fn experiment(&self) -> &str {
        &self.measure.experiment
    }

    /// The accepted interval, ends included; what is no number is no end.
    pub fn accept(&self) -> [Option<f64>; 2] {
        [self.at_least, self.at_most].map(|end| end.filter(|value| value.is_finite()))
    }

    /// How its number came about, for the note.
    pub(crate) fn origin(&self) -> Option<String> {
        let how = self.how.as_ref().filter(|_| self.paper.is_some())?;
        match self.kind {
            ClaimKind::Derived => Some(format!("the paper's number is derived: {how}")),
            ClaimKind::Fitted => Some(format!(
                "{how} was fitted to this number: the claim asks whether the model gives it back"
            )),
            _ => None,
        }
    }

    /// Whether its kind goes with its number, or why not.
    pub(crate) fn is_grounded(&self) -> Result<(), String> {
        let name = self.kind.name();
        match (self.kind, self.paper, &self.how) {
            (ClaimKind::Released | ClaimKind::Fitted, None, _) => {
                Err(format!("a {name} claim needs the number `paper`"))
            }
            (ClaimKind::Derived | ClaimKind::Fitted, Some(_), None) => {
                Err(format!("a {name} number needs `how`"))
            }
            (ClaimKind::Remembered | ClaimKind::Ours, Some(_), _) => {
                Err("a claim that is remembered or ours has no number `paper`".into())
            }
            _ => Ok(()),
        }
    }
}

/// Whether a claim is of a group, or has its name. Capitals do not matter.
pub(crate) fn is_of_group(group: &str, claim: &str) -> bool {
    let (id, group) = (claim.to_lowercase(), group.to_lowercase());
    id.strip_prefix(&group).is_some_and(|rest| is_member(&group, rest))
}

/// Whether a claim whose name goes on with `rest` is of this group. A group has a number; what
/// goes on with a digit after a digit is another number's.
fn is_member(group: &str, rest: &str) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let ends = is_digit(group.chars().last()) && is_digit(rest.chars().next());
    rest.is_empty() || group.contains(|c: char| c.is_ascii_digit()) && !ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_all_of_its_claims_and_no_other_numbers() {
        for (group, rest) in [("s1", ""), ("s1", "a"), ("t1", "a1"), ("t1a", "1"), ("v55", "-ecmp")]
        {
            assert!(is_member(group, rest), "{group} {rest}");
        }
        for (group, rest) in [("r1", "0"), ("s", "1a"), ("", "s1"), ("m", "12b")] {
            assert!(!is_member(group, rest), "{group} {rest}");
        }
    }
}
