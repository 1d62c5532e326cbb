//! The events of a switch, as lines on standard error.
//!
//! A service's lines begin with their level as systemd reads it (sd-daemon(3)), so `journalctl -p`
//! sorts them; others begin with the time.
//!
//! Invariant: a line an event, however often its cause repeats within [`QUIET`]; after [`AT_ONCE`]
//! lines one a second at most, and the next line has the number of those left out. Frames are
//! counted and never logged.

use log::{Level, LevelFilter, Log, Metadata, Record};
use millpond_core::Time;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// How long the same line of one subject is not repeated.
const QUIET: Time = Time::from_s(10);
/// A state that comes and goes is logged after it has lasted so long.
const LASTS: Time = Time::from_s(1);
/// Lines that may come at once: a switch that starts has one a port.
const AT_ONCE: f64 = 30.0;

struct Lines {
    is_service: bool,
    started: Instant,
    allowance: Mutex<Allowance>,
}

/// A bucket of lines, to which one a second is added.
struct Allowance {
    lines: f64,
    at: Time,
    left_out: u64,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { lines: AT_ONCE, at: Time::ZERO, left_out: 0 }
    }
}

impl Allowance {
    /// Returns how many lines were left out before this one; `None`: this one is left out.
    fn take(&mut self, now: Time) -> Option<u64> {
        let passed = now.saturating_sub(self.at).as_us_f64() / 1e6;
        (self.lines, self.at) = ((self.lines + passed).min(AT_ONCE), now);
        if self.lines < 1.0 {
            self.left_out += 1;
            return None;
        }
        self.lines -= 1.0;
        Some(std::mem::take(&mut self.left_out))
    }
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
        let now = Time::from_ns(self.started.elapsed().as_nanos() as u64);
        let mut allowance = self.allowance.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match allowance.take(now) {
            Some(0) => record.args().to_string(),
            Some(left_out) => format!("{} ({left_out} lines before left out)", record.args()),
            None => return,
        };
        let text = line(self.is_service, record.level(), &text);
        // Nobody is there to be notified that nobody reads.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
    fn flush(&self) {}
}

/// Whether `JOURNAL_STREAM` names the file that standard error is. Programs that a service starts
/// inherit the variable, and may write elsewhere.
fn is_journal(stream: &str, device: u64, inode: u64) -> bool {
    let named = stream.split_once(':').map(|(device, inode)| (device.parse(), inode.parse()));
    named == Some((Ok(device), Ok(inode)))
}

fn writes_to_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let error = std::fs::metadata("/proc/self/fd/2");
    error.is_ok_and(|file| is_journal(&stream, file.dev(), file.ino()))
}

/// From now on this process logs events down to `level`.
pub fn start(level: LevelFilter) {
    let is_service = writes_to_journal();
    let lines = Lines { is_service, started: Instant::now(), allowance: Mutex::default() };
    // Another in this process has done so: a test's.
    if log::set_boxed_logger(Box::new(lines)).is_ok() {
        log::set_max_level(level);
    }
}

/// Counts that go up, of which a rise is an event now and then.
#[derive(Default)]
pub struct Rises {
    /// By subject: the count logged last, and when.
    last: BTreeMap<String, (u64, Time)>,
}

impl Rises {
    /// By how much the subject's count has risen since it was logged, if a line is due now.
    pub fn of(&mut self, now: Time, subject: &str, count: u64) -> Option<u64> {
        let last = self.last.get(subject).copied();
        let (before, at) = last.unwrap_or((0, Time::ZERO));
        if count <= before || last.is_some() && now.saturating_sub(at) < QUIET {
            return None;
        }
        self.last.insert(subject.into(), (count, now));
        Some(count - before)
    }
}

/// A state that may come and go, of which a line is due once it has lasted.
#[derive(Default)]
pub struct Lasting {
    last: String,
    /// The number of things lost in the state that was logged last.
    lost: usize,
    /// The state that was last seen, and since when.
    seen: Option<(String, Time)>,
    at: Option<Time>,
}

impl Lasting {
    /// Returns the state if it has lasted for [`LASTS`] and is not the one that was logged last:
    /// one in which more is lost at once, others at most once in [`QUIET`].
    pub fn of(&mut self, now: Time, state: String, lost: usize) -> Option<String> {
        let since = match &self.seen {
            Some((seen, since)) if *seen == state => *since,
            _ => now,
        };
        self.seen = Some((state.clone(), since));
        let is_quiet =
            lost <= self.lost && self.at.is_some_and(|at| now.saturating_sub(at) < QUIET);
        if state == self.last || is_quiet || now.saturating_sub(since) < LASTS {
            return None;
        }
        (self.last, self.lost, self.at) = (state.clone(), lost, Some(now));
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_said_once_it_has_lasted() {
        let mut state = Lasting::default();
        let mut at = |s: u64, text: &str| {
            state.of(Time::from_s(s), text.into(), usize::from(text == "down"))
        };
        assert_eq!((at(0, "up"), at(1, "up")), (None, Some("up".into())));
        // It flaps, once a second.
        for s in 2..60 {
            assert_eq!(at(s, if s % 2 == 0 { "down" } else { "up" }), None, "{s}");
        }
        assert_eq!((at(60, "down"), at(61, "down")), (None, Some("down".into())));
        // Again within ten seconds.
        for s in 62..71 {
            assert_eq!(at(s, "up"), None, "{s}");
        }
        assert_eq!(at(71, "up"), Some("up".into()));
        // A loss waits for no earlier line.
        assert_eq!((at(72, "down"), at(73, "down")), (None, Some("down".into())));
    }

    #[test]
    fn flapping_path_is_reported_twice_in_ten_seconds_while_another_is_dead() {
        let mut state = Lasting::default();
        let states = [("up, dead", 1), ("dead, dead", 2)];
        // The first path changes every two seconds.
        let lines: Vec<u64> = (0..60)
            .filter(|s| {
                let (text, lost) = states[(*s / 2 % 2) as usize];
                state.of(Time::from_s(*s), text.into(), lost).is_some()
            })
            .collect();
        // Each report of a loss follows one of a return, which waits.
        assert_eq!(lines, [1, 3, 13, 15, 25, 27, 37, 39, 49, 51]);
    }

    #[test]
    fn many_events_are_a_line_a_second() {
        let mut allowance = Allowance::default();
        let mut times = (0..1000).map(|i| Time::from_ms(10 * i));
        let lines: Vec<u64> = times.by_ref().filter_map(|at| allowance.take(at)).collect();
        assert!((39..=40).contains(&lines.len()), "{lines:?}");
        let left_out: u64 = lines.iter().sum();
        assert_eq!(left_out + allowance.left_out + lines.len() as u64, 1000);
    }

    #[test]
    fn lines_are_journalds_or_have_the_time() {
        assert_eq!(line(true, Level::Warn, "port a\nwaits"), "<4>port a waits\n");
        let text = line(false, Level::Info, "port a is open");
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{text}");
        assert_eq!(rest, "info port a is open\n");
    }

    #[test]
    fn inherited_journal_stream_is_no_journal() {
        assert!(is_journal("8:123", 8, 123));
        for (stream, device, inode) in [("8:123", 8, 124), ("", 8, 123), ("8", 8, 123)] {
            assert!(!is_journal(stream, device, inode), "{stream:?}");
        }
    }

    #[test]
    fn what_repeats_is_said_now_and_then_and_all_of_it() {
        let mut rises = Rises::default();
        let last: Vec<u64> =
            (0..30u64).filter_map(|s| rises.of(Time::from_s(s), "a", 10 * s)).collect();
        assert_eq!(last, [10, 100, 100]);
        assert_eq!(rises.of(Time::from_s(30), "b", 0), None);
    }
}
