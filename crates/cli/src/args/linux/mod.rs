//! Arguments of the commands that need Linux.

mod lab;
mod limit;
mod switch;

pub use lab::*;
pub use limit::*;
pub use switch::*;

use clap::Args;
use std::time::Duration;

/// How the counters of a daemon are shown, again and again or once.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// Again and again, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// As JSON, one line a reading
    #[arg(long)]
    pub json: bool,
    /// Over how many seconds rates are taken [default: 0.5; with --watch 1]
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    pub interval: Option<f64>,
}

impl ShowArgs {
    /// Between two readings.
    pub fn pause(&self) -> Duration {
        Duration::from_secs_f64(self.interval.unwrap_or(if self.watch { 1.0 } else { 0.5 }))
    }
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds, 0 to 3600".to_string()),
    }
}
