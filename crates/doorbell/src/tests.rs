use super::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;

/// Empties the bells, a queue at a time.
fn all(bells: &Doorbells<()>, consumer: &mut Consumer) -> Vec<u32> {
    std::iter::from_fn(|| consumer.next(bells)).collect()
}

#[test]
fn a_queue_rings_once_until_it_is_served() {
    let (bells, mut consumer) = (Doorbells::new(3, ()), Consumer::default());
    for queue in [2, 0, 2, 2, 0] {
        bells.ring(queue);
    }
    assert_eq!(all(&bells, &mut consumer), [2, 0]);
    bells.ring(2);
    assert_eq!(all(&bells, &mut consumer), [2]);
}

/// The ring has a place for each queue, so all may ring at once, round after round.
#[test]
fn all_queues_ring_at_once() {
    let (bells, mut consumer) = (Doorbells::new(5, ()), Consumer::default());
    for _ in 0..7 {
        (0..5).for_each(|queue| bells.ring(queue));
        (0..5).for_each(|queue| bells.ring(queue));
        assert_eq!(all(&bells, &mut consumer), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn what_has_more_takes_turns_with_what_rings() {
    let (bells, mut consumer) = (Doorbells::new(3, ()), Consumer::default());
    bells.ring(0);
    assert_eq!(consumer.next(&bells), Some(0));
    consumer.more(&bells, 0);
    bells.ring(1);
    bells.ring(2);
    // Queue 0 has its token in the list: its producer's ring adds none.
    bells.ring(0);
    let mut served = all(&bells, &mut consumer);
    assert_eq!(served.len(), 3);
    assert!(served[..2].contains(&0), "it waits behind no more than one");
    served.sort();
    assert_eq!(served, [0, 1, 2]);
}

#[test]
fn a_paused_queue_is_parked_and_comes_back() {
    let (bells, mut consumer) = (Doorbells::new(2, ()), Consumer::default());
    bells.pause(1);
    bells.ring(1);
    bells.ring(0);
    assert_eq!(all(&bells, &mut consumer), [0]);
    bells.ring(1);
    assert_eq!((all(&bells, &mut consumer), bells.is_paused(1)), (vec![], true));
    bells.resume(1);
    bells.resume(1);
    assert_eq!((all(&bells, &mut consumer), bells.is_paused(1)), (vec![1], false));
    // A pause that ends before the consumer comes leaves one token.
    bells.ring(1);
    bells.pause(1);
    bells.resume(1);
    assert_eq!(all(&bells, &mut consumer), [1]);
}

/// Words that anybody writes: queues that there are, a call that ends, a list that stays short.
#[test]
fn whatever_the_words_say_calls_and_memory_are_bounded() {
    let words: std::sync::Arc<[AtomicU32]> =
        (0..Doorbells::<()>::words(5)).map(|_| AtomicU32::new(0)).collect();
    let bells = Doorbells::over(words.clone(), 5, ());
    let mut consumer = Consumer::default();
    let mut state = 1u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    for _ in 0..100_000 {
        let at = draw() as usize % words.len();
        words[at].store(if draw() % 2 == 0 { draw() } else { draw() % 8 }, SeqCst);
        if let Some(queue) = consumer.next(&bells) {
            assert!(queue < 5);
            consumer.more(&bells, queue);
        }
        consumer.may_sleep(&bells);
        assert!(consumer.list_len() <= 5);
    }
}

struct Channel(mpsc::Sender<()>);

impl Wake for Channel {
    fn wake(&self) {
        self.0.send(()).expect("the consumer is there");
    }
}

/// Threads that ring, pause and resume at will, and a consumer that sleeps: everything arrives.
#[test]
fn nothing_is_lost_between_threads() {
    const QUEUES: usize = 64;
    const EACH: u64 = 20_000;
    let (wake, woken) = mpsc::channel();
    let bells = Doorbells::new(QUEUES as u32, Channel(wake));
    let published: Vec<AtomicU64> = (0..QUEUES).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (bells, published) = (&bells, &published);
            scope.spawn(move || {
                for n in 0..EACH {
                    let queue = (n as usize * 7 + thread) % (QUEUES / 4) * 4 + thread;
                    published[queue].fetch_add(1, SeqCst);
                    bells.ring(queue as u32);
                    if n % 97 == 0 {
                        bells.pause(queue as u32);
                        bells.resume(queue as u32);
                    }
                }
            });
        }
        let (mut consumer, mut taken, mut total) = (Consumer::default(), [0u64; QUEUES], 0);
        while total < 4 * EACH {
            while let Some(queue) = consumer.next(&bells) {
                // A turn is three packets.
                let there = published[queue as usize].load(SeqCst) - taken[queue as usize];
                taken[queue as usize] += there.min(3);
                total += there.min(3);
                if there > 3 {
                    consumer.more(&bells, queue);
                }
            }
            if total < 4 * EACH && consumer.may_sleep(&bells) {
                woken.recv_timeout(std::time::Duration::from_secs(20)).expect("it is woken");
                consumer.awake(&bells);
            }
        }
    });
}
