//! A panic in the work for one frame costs that frame, and no other frame of any tenant.
//!
//! [`caught`] stands around the work for each frame: of a port, of a path, of a queue, of the
//! switch itself. A reader that panics loses its guest or application, merging begins anew, and a
//! shim begins anew. Memory is sound after a panic of safe code. A packet that the frame had put
//! into a queue stays there.
//!
//! Invariant: a frame whose work panicked is counted once, as `internal-error`, and the first bytes
//! of the last such frames are kept for the report.

use super::counters::Drop;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

const KEPT: usize = 8;
/// Bytes that are kept of a frame: all headers, and an ordinary packet.
const BYTES: usize = 1600;

/// Faults of all workers of the process: how many, and the last ones.
static FAULTS: Mutex<(u64, VecDeque<Fault>)> = Mutex::new((0, VecDeque::new()));

thread_local! {
    /// The place of this thread's last panic.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// The work: reading a port, a path, or a part of a round.
    pub work: String,
    /// The panic's message, with file and line.
    pub message: String,
    /// Bytes of the frame; zero if the work was for no single frame.
    pub length: usize,
    /// Its first bytes, in hexadecimal.
    pub frame: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    pub count: u64,
    pub last: Vec<Fault>,
}

/// A panic whose frame is not kept yet.
#[derive(Debug)]
pub struct Panic(String);

/// Does work that may panic.
///
/// # Errors
/// The panic.
#[inline]
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let place = PLACE.with_borrow_mut(std::mem::take);
        Panic(format!("{place}{}", text.unwrap_or_default()))
    })
}

impl Panic {
    /// Keeps the frame for the report, unless this second has enough of this work. Returns the
    /// reason to drop it.
    #[cold]
    pub fn keep(self, work: impl Into<String>, frame: &[u8]) -> Drop {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        let (work, message, length) = (work.into(), self.0, frame.len());
        let mut faults = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
        faults.0 += 1;
        // A flood of such frames costs no reports, and hides no fault of other work.
        let is_alike = |fault: &Fault| fault.unix_s == unix_s && fault.work == work;
        if faults.1.len() == KEPT && faults.1.iter().all(is_alike) {
            return Drop::InternalError;
        }
        let bytes = frame.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect();
        if faults.1.len() == KEPT {
            faults.1.pop_front();
        }
        faults.1.push_back(Fault { unix_s, work, message, length, frame: bytes });
        Drop::InternalError
    }
}

pub fn faults() -> Faults {
    let faults = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    Faults { count: faults.0, last: faults.1.iter().cloned().collect() }
}

/// From now on panics print at most once a second, and faults have their places.
pub fn install() {
    static PRINTED: AtomicU64 = AtomicU64::new(0);
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(|at| format!("{}:{}: ", at.file(), at.line()));
        PLACE.with_borrow_mut(|last| *last = place.unwrap_or_default());
        let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        if PRINTED.swap(second, Relaxed) != second {
            print(info);
        }
    }));
}

/// In tests: bytes of a frame for which its forwarding panics, as a fault of the program would.
#[cfg(test)]
pub const INJECTED: [u8; 16] = *b"panic at a frame";
/// The same for the reader of its port, and for the writer.
#[cfg(test)]
pub const AT_READER: [u8; 16] = *b"panic at reading";
/// See [`AT_READER`].
#[cfg(test)]
pub const AT_WRITER: [u8; 16] = *b"panic at writing";

/// Panics for a frame with these bytes in it.
#[cfg(test)]
pub fn inject(frame: &[u8], fault: [u8; 16]) {
    assert!(!frame.windows(fault.len()).any(|bytes| bytes == fault), "an injected fault");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_frames_and_counts_all() {
        let before = faults().count;
        for length in 0..3000 {
            let panic = caught(|| panic!("length {length}")).unwrap_err();
            assert_eq!(panic.keep("a test", &vec![7; length]), Drop::InternalError);
        }
        assert!(faults().count >= before + 3000);
        assert!(faults().last.len() == KEPT);
        assert!(faults().last.iter().all(|fault| fault.frame.len() <= 2 * BYTES));
        assert!(matches!(caught(|| 3), Ok(3)));
    }
}
