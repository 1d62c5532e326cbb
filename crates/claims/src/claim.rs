//! A claim of a paper: what is published, what is measured in its place, and what is accepted.

use crate::measure::Measure;
use millpond_results::ClaimKind;

/// One claim.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its name, without the paper's.
    pub id: &'static str,
    /// Where it is made.
    pub source: &'static str,
    /// Its statement.
    pub statement: &'static str,
    /// The published value, and whose the claim is.
    pub paper: Value,
    /// The accepted interval, ends included; `None` is an open end.
    pub accept: [Option<f64>; 2],
    /// How ours is found. All measures are in percent, but for those that say otherwise.
    pub measure: Measure,
    /// Why `--quick` does not decide it, if it does not.
    pub quick: Option<&'static str>,
    /// Facts that the reader must know; empty if there are none.
    pub note: &'static str,
}

/// The ground of a claim: a number, or an order or a bound without one; and how far it is the
/// paper's.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A number as published.
    Published(f64),
    /// A number that the authors' released code gives when this project runs it unmodified.
    Released(f64),
    /// A number that is computed from published or released ones alone; how.
    Derived(f64, &'static str),
    /// A published number from which a parameter was solved; which.
    Fitted(f64, &'static str),
    /// A published order or bound.
    Shape,
    /// An order or a bound that follows from the setting by arithmetic.
    Arithmetic,
    /// An order or a bound from memory. A number from memory is none.
    Remembered,
    /// An order or a bound that this project asks for.
    Ours,
}

impl Value {
    /// The number, if there is one.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Value::Published(value)
            | Value::Released(value)
            | Value::Derived(value, _)
            | Value::Fitted(value, _) => Some(value),
            Value::Shape | Value::Arithmetic | Value::Remembered | Value::Ours => None,
        }
    }

    /// Whose it is.
    fn kind(&self) -> ClaimKind {
        match self {
            Value::Published(_) | Value::Shape => ClaimKind::Published,
            Value::Released(_) => ClaimKind::Released,
            Value::Derived(..) | Value::Arithmetic => ClaimKind::Derived,
            Value::Fitted(..) => ClaimKind::Fitted,
            Value::Remembered => ClaimKind::Remembered,
            Value::Ours => ClaimKind::Ours,
        }
    }

    /// How it came about, for the note.
    pub(crate) fn how(&self) -> Option<String> {
        match *self {
            Value::Derived(_, how) => Some(format!("the paper's number is derived: {how}")),
            Value::Fitted(_, what) => Some(format!(
                "{what} was fitted to this number: the claim asks whether the model gives it back"
            )),
            Value::Published(_)
            | Value::Released(_)
            | Value::Shape
            | Value::Arithmetic
            | Value::Remembered
            | Value::Ours => None,
        }
    }
}

impl Claim {
    /// The experiment that it is measured in.
    pub fn experiment(&self) -> &'static str {
        self.measure.experiment()
    }

    /// Whose it is.
    pub fn kind(&self) -> ClaimKind {
        self.paper.kind()
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
