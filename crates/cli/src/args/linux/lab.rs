//! Arguments of `millpond lab`.

use crate::args::{OutputArgs, Overrides, Scale, Seeds, Shows};
use clap::Args;
use std::path::PathBuf;

/// What `lab` takes.
#[derive(Args, Debug)]
pub struct LabArgs {
    /// The scenario (TOML; - is standard input)
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub shows: Shows,
    /// Run this variant of the scenario [default: all, beside each other]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    #[command(flatten)]
    pub scale: Scale,
    #[command(flatten)]
    pub seeds: Seeds,
    #[command(flatten)]
    pub output: OutputArgs,
}
