//! Work on a thread of its own, while the calling thread serves Python: its signals and a listener
//! of progress.
//!
//! Invariant: the calling thread has the interpreter only between two waits, and waits no longer
//! than [`LOOK`]. A signal ends the work at its next edge, and what is finished is kept.

use crate::error::raise;
use millpond::{Control, Error, Progress, Runs};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::mem::take;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// Between two looks at signals.
const LOOK: Duration = Duration::from_millis(20);

/// Receives what runs report, for the calling thread.
#[derive(Default)]
pub struct Watch {
    is_stopped: AtomicBool,
    reports: Mutex<Reports>,
}

#[derive(Default)]
struct Reports {
    /// The latest: done, of how many, and a text.
    progress: Option<(f64, f64, String)>,
    notes: Vec<String>,
    warnings: Vec<String>,
}

impl Watch {
    fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Calls the listener with what has come since the last call.
    fn report(&self, listener: &Bound<'_, PyAny>) -> PyResult<()> {
        let reports = take(&mut *self.reports());
        if let Some(progress) = reports.progress {
            listener.call_method1("progress", progress)?;
        }
        for note in reports.notes {
            listener.call_method1("note", (note,))?;
        }
        for warning in reports.warnings {
            listener.call_method1("warn", (warning,))?;
        }
        Ok(())
    }
}

impl Control for Watch {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn progress(&self, progress: &Progress) {
        let text = format!("{}/{} flows", progress.flows_completed, progress.flows_started);
        self.reports().progress = Some((progress.fraction.unwrap_or(0.0), 1.0, text));
    }

    fn runs(&self, runs: &Runs<'_>) {
        let text = match runs.failed {
            0 => runs.latest.to_string(),
            failed => format!("{failed} failed"),
        };
        self.reports().progress = Some((runs.ended as f64, runs.all as f64, text));
    }

    fn note(&self, text: &str) {
        self.reports().notes.push(text.to_string());
    }

    fn warn(&self, text: &str) {
        self.reports().warnings.push(text.to_string());
    }
}

/// Does `work` with the interpreter released. Returns its result, and whether Ctrl-C ended it.
///
/// # Errors
/// The error of the work; or the exception that a signal handler or the listener raised, other than
/// `KeyboardInterrupt`.
pub fn watched<T: Send>(
    listener: &Bound<'_, PyAny>,
    work: impl FnOnce(&Watch) -> Result<T, Error> + Send,
) -> PyResult<(T, bool)> {
    let (py, watch) = (listener.py(), Watch::default());
    let (done, raised) = thread::scope(|scope| {
        let (sender, mut receiver) = channel();
        let worker = scope.spawn(|| {
            // The receiver outlives the worker.
            let _ = sender.send(work(&watch));
            drop(sender);
        });
        let mut raised = None;
        loop {
            let results = &mut receiver;
            let done = py.detach(move || results.recv_timeout(LOOK));
            match py.check_signals().and_then(|()| watch.report(listener)) {
                Ok(()) => {}
                Err(error) => {
                    watch.is_stopped.store(true, Ordering::Relaxed);
                    raised.get_or_insert(error);
                }
            }
            match done {
                Ok(done) => return (done, raised),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => match worker.join() {
                    Err(panic) => resume_unwind(panic),
                    Ok(()) => unreachable!("a worker that ends has sent its result"),
                },
            }
        }
    });
    match (done, raised) {
        (_, Some(error)) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
        (Ok(value), raised) => Ok((value, raised.is_some())),
        (Err(error), _) => Err(raise(py, error)),
    }
}
