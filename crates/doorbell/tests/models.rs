//! Every interleaving of the doorbell protocol, and of mutants that must fail (loom).
//!
//! The crate's own source is compiled here a second time, with loom's atomics for std's. Bounded
//! preemptions suffice for all mutants; the ignored tests lift the bound.

#[allow(dead_code)]
#[path = "../src/bells.rs"]
mod bells;

mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};

    /// There are no cache lines here, and no words between what is shared.
    pub const LINE: usize = 1;
}

use bells::{Consumer, Doorbells, Wake};
use loom::sync::{Arc, Notify};
use loom::thread;
use sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use sync::{AtomicBool, AtomicUsize, fence};

fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}
const BOUND: Option<usize> = Some(3);

/// A data queue without its packets: what was published.
type Data = Arc<AtomicUsize>;

/// Looks at every queue that is to be served, until none is; what has been seen of each.
fn serve<W: Wake>(
    bells: &Doorbells<W>,
    consumer: &mut Consumer,
    data: &[Data],
    seen: &mut [usize],
) {
    while let Some(queue) = consumer.next(bells) {
        // A turn is one packet.
        let (published, seen) = (data[queue as usize].load(Acquire), &mut seen[queue as usize]);
        *seen = published.min(*seen + 1);
        if *seen < published {
            consumer.more(bells, queue);
        }
    }
}

/// Two queues; one producer publishes twice in one and once in the other, while they are served.
fn ring_and_serve() {
    let bells = Arc::new(Doorbells::new(2, ()));
    let data: [Data; 2] = std::array::from_fn(|_| Arc::new(AtomicUsize::new(0)));
    let producer = thread::spawn({
        let (bells, data) = (bells.clone(), data.clone());
        move || {
            for (queue, published) in [(0, 1), (1, 1), (0, 2)] {
                data[queue].store(published, Release);
                bells.ring(queue as u32);
            }
        }
    });
    let (mut consumer, mut seen) = (Consumer::default(), [0; 2]);
    serve(&bells, &mut consumer, &data, &mut seen);
    producer.join().expect("the producer ends");
    serve(&bells, &mut consumer, &data, &mut seen);
    assert_eq!(seen, [2, 1], "lost wakeup");
}

/// One queue that rings, is served, and is paused and resumed by a third thread.
fn pause_and_park() {
    let bells = Arc::new(Doorbells::new(1, ()));
    let data: [Data; 1] = [Arc::new(AtomicUsize::new(0))];
    let producer = thread::spawn({
        let (bells, data) = (bells.clone(), data.clone());
        move || {
            for published in 1..=2 {
                data[0].store(published, Release);
                bells.ring(0);
            }
        }
    });
    let pauser = thread::spawn({
        let bells = bells.clone();
        move || {
            bells.pause(0);
            bells.resume(0);
        }
    });
    let (mut consumer, mut seen) = (Consumer::default(), [0]);
    serve(&bells, &mut consumer, &data, &mut seen);
    producer.join().expect("the producer ends");
    pauser.join().expect("the pauser ends");
    serve(&bells, &mut consumer, &data, &mut seen);
    assert_eq!(seen, [2], "lost wakeup");
}

struct Bell(Arc<Notify>);

impl Wake for Bell {
    fn wake(&self) {
        self.0.notify();
    }
}

/// A consumer that sleeps where nothing rings. A wakeup that is lost is a deadlock.
fn sleep_and_wake() {
    let notify = Arc::new(Notify::new());
    let bells = Arc::new(Doorbells::new(1, Bell(notify.clone())));
    let data: [Data; 1] = [Arc::new(AtomicUsize::new(0))];
    let producer = thread::spawn({
        let (bells, data) = (bells.clone(), data.clone());
        move || {
            data[0].store(1, Release);
            bells.ring(0);
        }
    });
    let (mut consumer, mut seen) = (Consumer::default(), [0]);
    serve(&bells, &mut consumer, &data, &mut seen);
    while seen[0] < 1 {
        if consumer.may_sleep(&bells) {
            notify.wait();
            consumer.awake(&bells);
        }
        serve(&bells, &mut consumer, &data, &mut seen);
    }
    producer.join().expect("the producer ends");
}

#[test]
fn a_ring_is_never_lost() {
    explore(BOUND, ring_and_serve);
}
#[test]
fn a_parked_queue_is_never_lost() {
    explore(BOUND, pause_and_park);
}
#[test]
fn a_sleeper_is_always_woken() {
    explore(BOUND, sleep_and_wake);
}

#[test]
#[ignore = "minutes: preemptions without a bound"]
fn every_interleaving_of_rings() {
    explore(None, ring_and_serve);
}
#[test]
#[ignore = "minutes: preemptions without a bound"]
fn every_interleaving_of_pauses() {
    explore(None, pause_and_park);
}
#[test]
#[ignore = "minutes: preemptions without a bound"]
fn every_interleaving_of_sleep() {
    explore(None, sleep_and_wake);
}

/// How a variant of arm and disarm goes about it.
#[derive(Clone, Copy, PartialEq)]
enum Disarm {
    /// As the crate does: both sides read, modify and write.
    Swap,
    /// Plain loads and stores, with a fence on both sides: right as well.
    Fenced,
    /// A plain store.
    Store,
    /// A swap, after the data was read.
    Late,
}

/// One producer that publishes twice, one queue, one consumer; the ring is a flag.
fn disarm_by(how: Disarm) {
    let data = Arc::new(AtomicUsize::new(0));
    let armed = Arc::new(AtomicBool::new(false));
    let ring = Arc::new(AtomicBool::new(false));
    let producer = thread::spawn({
        let (data, armed, ring) = (data.clone(), armed.clone(), ring.clone());
        move || {
            for published in 1..=2 {
                data.store(published, Release);
                let was_armed = if how == Disarm::Fenced {
                    fence(SeqCst);
                    let was_armed = armed.load(Relaxed);
                    if !was_armed {
                        armed.store(true, Relaxed);
                    }
                    was_armed
                } else {
                    armed.swap(true, AcqRel)
                };
                if !was_armed {
                    ring.store(true, Release);
                }
            }
        }
    });
    let mut seen = 0;
    let mut turn = || {
        if !ring.load(Acquire) {
            return;
        }
        ring.store(false, Relaxed);
        if how == Disarm::Late {
            seen = data.load(Acquire);
        }
        match how {
            Disarm::Swap | Disarm::Late => {
                armed.swap(false, AcqRel);
            }
            Disarm::Fenced => {
                armed.store(false, Relaxed);
                fence(SeqCst);
            }
            Disarm::Store => armed.store(false, Release),
        }
        if how != Disarm::Late {
            seen = data.load(Acquire);
        }
    };
    turn();
    turn();
    producer.join().expect("the producer ends");
    turn();
    assert_eq!(seen, 2, "lost wakeup");
}

#[test]
fn read_modify_writes_suffice() {
    explore(BOUND, || disarm_by(Disarm::Swap));
}
#[test]
fn fences_suffice() {
    explore(BOUND, || disarm_by(Disarm::Fenced));
}
#[test]
#[should_panic(expected = "lost wakeup")]
fn a_plain_store_loses_a_ring() {
    explore(BOUND, || disarm_by(Disarm::Store));
}
#[test]
#[should_panic(expected = "lost wakeup")]
fn disarming_after_reading_loses_a_ring() {
    explore(BOUND, || disarm_by(Disarm::Late));
}

/// PAUSED and PARKED in words of their own: the consumer parks a queue that was just resumed.
#[test]
#[should_panic(expected = "lost wakeup")]
fn pause_and_park_in_two_words_lose_a_queue() {
    explore(BOUND, || {
        let paused = Arc::new(AtomicBool::new(true));
        let parked = Arc::new(AtomicBool::new(false));
        let ring = Arc::new(AtomicBool::new(true));
        let resumer = thread::spawn({
            let (paused, parked, ring) = (paused.clone(), parked.clone(), ring.clone());
            move || {
                paused.swap(false, AcqRel);
                if parked.swap(false, AcqRel) {
                    ring.store(true, Release);
                }
            }
        });
        let mut is_served = false;
        let mut turn = || {
            if ring.load(Acquire) {
                ring.store(false, Relaxed);
                if paused.load(Acquire) {
                    parked.swap(true, AcqRel);
                } else {
                    is_served = true;
                }
            }
        };
        turn();
        resumer.join().expect("the resumer ends");
        turn();
        assert!(is_served, "lost wakeup");
    });
}

/// Without fences the ringing thread may miss the sleeper, and the sleeper the ring.
#[test]
#[should_panic(expected = "lost wakeup")]
fn sleeping_without_fences_loses_a_ring() {
    explore(BOUND, || {
        let sleeping = Arc::new(AtomicBool::new(false));
        let ring = Arc::new(AtomicBool::new(false));
        let woken = Arc::new(AtomicBool::new(false));
        let producer = thread::spawn({
            let (sleeping, ring, woken) = (sleeping.clone(), ring.clone(), woken.clone());
            move || {
                ring.store(true, Release);
                woken.store(sleeping.load(Acquire), Release);
            }
        });
        sleeping.store(true, Release);
        let is_rung = ring.load(Acquire);
        producer.join().expect("the producer ends");
        assert!(is_rung || woken.load(Acquire), "lost wakeup");
    });
}
