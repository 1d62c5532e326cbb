//! The outcome of a key of the input.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is honoured: what it has become.
    Becomes(String),
    /// It names the files that the other simulator writes.
    Output,
    /// It has no effect there either, and why.
    Unused(String),
    /// It changes results there and is not modelled, and what that means.
    Missing(String),
    /// No simulator of the family that is known here has it: what its value makes likely.
    Unknown(String),
    /// A line of data that is left out, and why.
    LeftOut(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `config.txt:12`.
    pub place: String,
    pub text: String,
    pub fate: Fate,
}

impl Outcome {
    /// Whether the scenario lacks something that the input has.
    pub fn is_missing(&self) -> bool {
        matches!(self.fate, Fate::Missing(_) | Fate::Unknown(_) | Fate::LeftOut(_))
    }
}
