//! The computing time of work whose input grows eightfold: some eight times as much, and not
//! sixty-four times, as with a search or a copy of all for each part.

use std::time::Duration;

/// The computing time of this thread so far: other work on the machine does not count. `schedstat`
/// will not do: it is counted up at a tick, every 4 ms where there are 250 a second.
fn computed() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn cost(work: impl Fn()) -> Duration {
    let before = computed();
    work();
    computed() - before
}

/// The least of three times for the small input, and one of three within the bound for the large.
pub fn assert_growth(small: impl Fn(), large: impl Fn(), what: usize) {
    let small = (0..3).map(|_| cost(&small)).min().unwrap();
    let most = small * 24 + Duration::from_millis(20);
    let mut times = (0..3).map(|_| cost(&large));
    assert!(
        times.any(|time| time < most),
        "{what}: {small:?}, eight times as much takes over {most:?}"
    );
}
