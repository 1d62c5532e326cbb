//! The barrier at a window's edge: the last thread to arrive runs the serial part, then all go on.
//!
//! Waiting threads spin briefly and then sleep. Spinning makes short windows cheap; sleeping frees
//! the core, so that a thread that the kernel has put aside for another program gets to run on it
//! (a barrier that only spins collapses on a busy machine).
//!
//! Invariant: no thread leaves generation n before every thread has arrived in it and the serial
//! part has run.

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, atomic::AtomicUsize};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, atomic::AtomicUsize};

#[cfg(loom)]
use loom::hint::spin_loop;
#[cfg(not(loom))]
use std::hint::spin_loop;

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

#[cfg(loom)]
const SPINS: u32 = 1;
/// About 20 µs: longer than the gap between two threads' ends of a window, shorter than a
/// scheduler's time slice.
#[cfg(not(loom))]
const SPINS: u32 = 4_000;

/// A reusable barrier for a fixed number of threads.
pub struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    asleep: Mutex<()>,
    wake: Condvar,
}

impl Barrier {
    /// For this many threads (at least one).
    pub fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            asleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits for all threads; the last to arrive runs `serial` while the others wait.
    pub fn wait(&self, serial: impl FnOnce()) {
        let generation = self.generation.load(Acquire);
        if self.arrived.fetch_add(1, AcqRel) + 1 == self.threads {
            serial();
            self.arrived.store(0, Release);
            // Under the lock, so that a thread that is about to sleep cannot miss it.
            let guard = self.asleep.lock().expect("no thread panics while it holds this lock");
            self.generation.store(generation.wrapping_add(1), Release);
            drop(guard);
            self.wake.notify_all();
            return;
        }
        for _ in 0..SPINS {
            if self.generation.load(Acquire) != generation {
                return;
            }
            spin_loop();
        }
        let mut guard = self.asleep.lock().expect("no thread panics while it holds this lock");
        while self.generation.load(Acquire) == generation {
            guard = self.wake.wait(guard).expect("no thread panics while it holds this lock");
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_move_in_step() {
        let barrier = Barrier::new(3);
        let edges = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..2_000 {
                        assert_eq!(edges.load(Acquire), round);
                        barrier.wait(|| {
                            edges.fetch_add(1, AcqRel);
                        });
                    }
                });
            }
        });
        assert_eq!(edges.load(Acquire), 2_000);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;

    /// Every interleaving of two threads over two windows: the serial part runs once a window,
    /// before anyone goes on.
    #[test]
    fn every_interleaving_of_two_windows() {
        loom::model(|| {
            let barrier = Arc::new(Barrier::new(2));
            let edges = Arc::new(AtomicUsize::new(0));
            let go = |barrier: Arc<Barrier>, edges: Arc<AtomicUsize>| {
                for round in 0..2 {
                    barrier.wait(|| {
                        assert_eq!(edges.fetch_add(1, AcqRel), round);
                    });
                    assert_eq!(edges.load(Acquire).max(round + 1), edges.load(Acquire));
                }
            };
            let (b, e) = (barrier.clone(), edges.clone());
            let other = loom::thread::spawn(move || go(b, e));
            go(barrier, edges.clone());
            other.join().unwrap();
            assert_eq!(edges.load(Acquire), 2);
        });
    }
}
