//! Scenarios: from TOML to a validated plan.
//!
//! A [`Scenario`] is the text with the place of every key; a [`Plan`] is the numbers and graphs
//! that a run needs. The way between is one-way and happens once: text → tree (with places) →
//! overrides → [`settings::Settings`] → [`Plan`].
//!
//! Invariant: whoever runs a plan reads no text and finds no error in it; whoever writes a scenario
//! learns of all of its errors at once, each with file, line and column.

pub mod application;
mod assemble;
mod bounds;
mod capture;
pub mod catalogue;
pub mod cdf;
pub mod choices;
pub mod composition;
mod error;
mod excerpt;
pub mod explain;
mod families;
mod file_name;
mod files;
mod follow;
mod half;
mod host;
mod ideal;
mod identity;
mod idle;
pub mod jitter;
mod keys;
pub mod limit;
mod names;
pub mod nic;
mod numbers;
pub mod offered;
mod overrides;
pub mod plan;
mod ports;
pub mod program;
pub mod rdma;
mod read;
pub mod reference;
mod resolved;
mod scenario;
pub mod schema;
pub mod settings;
mod several_nics;
mod shows;
mod sizes;
mod slowed;
mod source;
pub mod stack;
mod switch;
mod toml_text;
pub mod topology;
pub mod traffic;
pub mod transport;
mod tree;
mod unreached;

pub use error::{Errors, PROBLEMS_LISTED, Problem, ScenarioError, meant, nearest};
pub use files::folder_of;
pub use host::{HEADER_BYTES, TIMESTAMP_BYTES};
pub use ideal::{Ends, Exchange, IdealTimes};
pub use plan::Plan;
pub use read::document;
pub use scenario::Scenario;
pub use settings::capture::{CaptureParams, FlowSet};
pub use settings::failure::FailureParams;
pub use sizes::SizeBins;
pub use slowed::slowed;
pub use toml_text::built_in;
