//! Why an experiment was not planned, run or decided.

use millpond_scenario::Errors;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario is wrong, perhaps with a grid's values only.
    #[error("the scenario has errors")]
    Scenario {
        /// The point of the grid (`KEY=VALUE KEY=VALUE`); empty if it has but one.
        at: String,
        errors: Errors,
    },
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Results(#[from] millpond_results::Error),
    /// Some of many runs, or their folder.
    #[error("{0}")]
    Runs(String),
    /// The user has stopped it, with a last message.
    #[error("interrupted; {0}")]
    Stopped(String),
}

impl From<Errors> for Error {
    fn from(errors: Errors) -> Error {
        Error::Scenario { at: String::new(), errors }
    }
}

/// An error of a table, with the nearest of the words that it lists for a wrong one.
pub(crate) fn hinted(name: &str, error: &toml::de::Error) -> String {
    let text = error.message();
    let mut words = text.split('`').skip(1).step_by(2);
    let wrong = words.next().unwrap_or_default();
    let nearest = millpond_scenario::nearest(wrong, words).filter(|_| text.starts_with("unknown"));
    match nearest {
        Some(nearest) => format!("{name}: is `{wrong}` meant to be `{nearest}`? {text}"),
        None => format!("{name}: {text}"),
    }
}
