//! The commands that need Linux: `lab`, `limit` and `switch`. `without_linux.rs` stands in for this
//! folder where the feature `linux` is off, or the target is another system.

mod doctor;
mod lab;
mod limit;
mod standing;
mod switch;

pub use lab::lab;
pub use limit::limit;
pub use switch::switch;

use crate::failure::Failure;

impl From<millpond_linux::limit::Error> for Failure {
    fn from(error: millpond_linux::limit::Error) -> Failure {
        use millpond_linux::limit::Error;
        match error {
            Error::Config(errors) => Failure::Scenario(errors),
            Error::Request(_) => Failure::Usage(error.to_string()),
            _ => Failure::Runs(error.to_string()),
        }
    }
}

impl From<millpond_linux::switch::Error> for Failure {
    fn from(error: millpond_linux::switch::Error) -> Failure {
        use millpond_linux::switch::Error;
        match error {
            Error::Config(errors) => Failure::Scenario(errors),
            _ => Failure::Runs(error.to_string()),
        }
    }
}
