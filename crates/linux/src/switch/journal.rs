//! What happens to a switch, as lines on standard error.
//!
//! A service's lines begin with their level as systemd reads it (sd-daemon(3)), so `journalctl -p`
//! sorts them; others begin with the time.
//!
//! Invariant: a line an event, however often its cause repeats within [`QUIET`]; frames are counted
//! and never logged.

use log::{Level, LevelFilter, Log, Metadata, Record};
use millpond_core::Time;
use std::collections::BTreeMap;
use std::io::Write;

/// The same is said again of one subject after so long.
const QUIET: Time = Time::from_s(10);

/// Writes lines.
struct Lines {
    is_service: bool,
}

/// As sd-daemon(3) numbers levels.
fn number(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

fn line(is_service: bool, level: Level, text: &str) -> String {
    // One line an event, whatever a name or a reason has in it.
    let text = text.replace(['\n', '\r'], " ");
    match is_service {
        true => format!("<{}>{text}\n", number(level)),
        false => {
            let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
            format!("{now} {} {text}\n", level.as_str().to_ascii_lowercase())
        }
    }
}

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        let text = line(self.is_service, record.level(), &record.args().to_string());
        // Nobody is there to be told that nobody reads.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
    fn flush(&self) {}
}

/// From now on this process says what happens, down to `level`.
pub fn start(level: LevelFilter) {
    let lines = Lines { is_service: std::env::var_os("JOURNAL_STREAM").is_some() };
    // Another in this process has done so: a test's.
    if log::set_boxed_logger(Box::new(lines)).is_ok() {
        log::set_max_level(level);
    }
}

/// Counts that go up, of which a rise is an event now and then.
#[derive(Default)]
pub struct Rises {
    /// By subject: what was said last, and when.
    said: BTreeMap<String, (u64, Time)>,
}

impl Rises {
    /// By how much the subject's count has risen since it was said, if it is to be said now.
    pub fn of(&mut self, now: Time, subject: &str, count: u64) -> Option<u64> {
        let said = self.said.get(subject).copied();
        let (before, at) = said.unwrap_or((0, Time::ZERO));
        if count <= before || said.is_some() && now.saturating_sub(at) < QUIET {
            return None;
        }
        self.said.insert(subject.into(), (count, now));
        Some(count - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_journalds_or_have_the_time() {
        assert_eq!(line(true, Level::Warn, "port a\nwaits"), "<4>port a waits\n");
        let text = line(false, Level::Info, "port a is open");
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{text}");
        assert_eq!(rest, "info port a is open\n");
    }

    #[test]
    fn what_repeats_is_said_now_and_then_and_all_of_it() {
        let mut rises = Rises::default();
        let said: Vec<u64> =
            (0..30u64).filter_map(|s| rises.of(Time::from_s(s), "a", 10 * s)).collect();
        assert_eq!(said, [10, 100, 100]);
        assert_eq!(rises.of(Time::from_s(30), "b", 0), None);
    }
}
