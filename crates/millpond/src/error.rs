//! Why a scenario was not read, planned or run.

use crate::ScenarioErrors;
use std::fmt;

/// Why a scenario was not read, planned or run.
///
/// ```
/// use millpond::{Error, Scenario};
///
/// let missing = Scenario::open("no-such-file.toml").unwrap_err();
/// assert!(matches!(missing, Error::Scenario(_)));
/// assert!(format!("{missing:?}").starts_with("no-such-file.toml:1:1: "));
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario, an override or a variant is wrong.
    #[error("{0}")]
    Scenario(#[from] ScenarioErrors),
    /// One point of a grid makes no valid scenario.
    #[error("at {0}: {1}")]
    Point(String, ScenarioErrors),
    /// The request cannot be met.
    #[error("{0}")]
    Usage(String),
    /// Results cannot be written or read.
    #[error(transparent)]
    Results(#[from] millpond_results::Error),
    /// Some of many runs failed, or their folder did.
    #[error("{0}")]
    Runs(String),
    /// [`Control::is_stopped`](crate::Control::is_stopped) ended the work; the text reports what is
    /// kept.
    #[error("interrupted; {0}")]
    Stopped(String),
}

/// The same text as `Display`: a `main` that returns an error prints its `Debug` form.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<millpond_claims::Error> for Error {
    fn from(error: millpond_claims::Error) -> Error {
        use millpond_claims::Error as Of;
        match error {
            Of::Scenario { at, errors } if at.is_empty() => Error::Scenario(errors),
            Of::Scenario { at, errors } => Error::Point(at, errors),
            Of::Usage(text) => Error::Usage(text),
            Of::Results(error) => Error::Results(error),
            Of::Runs(text) => Error::Runs(text),
            Of::Stopped(text) => Error::Stopped(text),
        }
    }
}
