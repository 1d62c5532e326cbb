//! Progress on stderr, notes and warnings, Ctrl-C.

use crate::eprint;
use indicatif::{ProgressBar, ProgressStyle};
use millpond::{Control, Progress, Runs};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C (or SIGTERM) asks runs to end at their next edge; a second one ends the
/// program.
pub fn catch_interrupts() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // Where no handler can be set, Ctrl-C just ends the program, and the partial folder shows
        // that it did.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
    });
}

/// Whether the user has asked to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Fits 80 columns: what is too long is cut, and the message takes what is left of the terminal's
/// width.
const LINE: &str = "{prefix:14!} [{bar:10}] {percent:>3}%  eta {eta:>3}  {wide_msg}";

/// Steps of the progress bar for one run.
const STEPS: u64 = 1000;

fn styled(bar: ProgressBar) -> ProgressBar {
    let style = ProgressStyle::with_template(LINE);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar
}

fn message(p: &Progress) -> String {
    let (at, rate) = (p.simulated_s * 1e3, p.packet_hops_per_s / 1e6);
    format!("{at:.3} ms {rate:.1} Mhop/s {}/{} flows", p.flows_completed, p.flows_started)
}

/// Shows runs on stderr: a bar on a terminal, a line a minute elsewhere (a log of a long job), and
/// nothing but warnings where the user wants quiet.
pub struct Terminal {
    quiet: bool,
    /// Before the progress of a run by itself.
    name: String,
    bar: Mutex<Option<ProgressBar>>,
    /// Of lines where there is no bar.
    log: Option<Mutex<Pace>>,
}

/// When the next line of progress is due: one after a minute, then one a minute.
#[derive(Debug)]
struct Pace {
    last: Instant,
}

impl Pace {
    const EVERY: Duration = Duration::from_secs(60);

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.last) >= Pace::EVERY;
        if is_due {
            self.last = now;
        }
        is_due
    }
}

impl Terminal {
    /// For runs that are named by their own reports, or for a run of this name.
    pub fn new(quiet: bool, name: &str) -> Terminal {
        let has_lines = !quiet && !std::io::stderr().is_terminal();
        let log = has_lines.then(|| Mutex::new(Pace { last: Instant::now() }));
        Terminal { quiet, name: name.to_string(), bar: Mutex::new(None), log }
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A line where there is no bar, once a minute.
    fn line(&self, text: impl FnOnce() -> String) {
        let Some(pace) = &self.log else { return };
        let mut pace = pace.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if pace.is_due(Instant::now()) {
            eprint(text());
        }
    }

    /// A bar of so many steps.
    fn open(&self, steps: u64, prefix: &str) -> ProgressBar {
        let bar = if self.quiet { ProgressBar::hidden() } else { styled(ProgressBar::new(steps)) };
        bar.set_prefix(prefix.to_string());
        bar
    }

    pub fn close(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.close();
    }
}

impl Control for Terminal {
    fn is_stopped(&self) -> bool {
        interrupted()
    }

    fn progress(&self, progress: &Progress) {
        self.line(|| {
            let share = progress.fraction.map_or(String::new(), |f| format!("{:.0}% ", f * 100.0));
            format!("{}: {share}{}", self.name, message(progress))
        });
        let mut bar = self.bar();
        let bar = bar.get_or_insert_with(|| self.open(STEPS, &self.name));
        bar.set_position((progress.fraction.unwrap_or(0.0) * STEPS as f64) as u64);
        bar.set_message(message(progress));
    }

    fn runs(&self, runs: &Runs<'_>) {
        if runs.is_over {
            return self.close();
        }
        self.line(|| format!("{}: {} of {} runs have ended", runs.label, runs.ended, runs.all));
        let mut bar = self.bar();
        let bar = bar.get_or_insert_with(|| {
            let bar = self.open(runs.all as u64, runs.label);
            bar.set_position(runs.ended as u64);
            bar.reset_eta();
            bar
        });
        bar.set_position(runs.ended as u64);
        bar.set_message(match runs.failed {
            0 => runs.latest.to_string(),
            n => format!("{n} failed"),
        });
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    fn warn(&self, text: &str) {
        match &*self.bar() {
            Some(bar) => bar.suspend(|| eprint(text)),
            None => eprint(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{ProgressDrawTarget, TermLike};
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal of this width that remembers what is written.
    #[derive(Clone, Debug)]
    struct Screen(u16, Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            self.0
        }
        fn move_cursor_up(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)?;
            self.write_str("\n")
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.1.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write_str("\n")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_has_a_line_a_minute() {
        let start = Instant::now();
        let mut pace = Pace { last: start };
        let due: Vec<u64> =
            (0..=300).filter(|s| pace.is_due(start + Duration::from_secs(*s))).collect();
        assert_eq!(due, [60, 120, 180, 240, 300]);
    }

    #[test]
    fn progress_fits_eighty_columns() {
        let standing = Progress {
            simulated_s: 1.234_567,
            packet_hops_per_s: 12.3e6,
            flows_started: 123_456_789,
            flows_completed: 98_765_432,
            ..Progress::default()
        };
        for name in [
            "x",
            "a scenario whose name is longer than a line of any terminal that there is, by far",
        ] {
            let screen = Screen(80, Arc::default());
            let target = ProgressDrawTarget::term_like_with_hz(Box::new(screen.clone()), 255);
            let bar = styled(ProgressBar::with_draw_target(Some(STEPS), target));
            bar.set_prefix(name);
            bar.set_message(message(&standing));
            bar.set_position(333);
            bar.force_draw();
            let text = screen.1.lock().unwrap().clone();
            let longest = text.lines().map(|line| line.trim_end().chars().count()).max().unwrap();
            assert!(
                text.contains(" 33%  eta ") && text.contains("1234.567 ms 12.3 Mhop/s"),
                "{text:?}"
            );
            assert!(longest <= 80, "{longest}: {text:?}");
            bar.abandon();
        }
        let usual = Progress {
            flows_started: 5_678,
            flows_completed: 1_234,
            simulated_s: 0.0123,
            ..standing
        };
        assert!(
            message(&usual).chars().count() <= 80 - 43,
            "nothing is cut as a rule: {}",
            message(&usual)
        );
    }
}
