//! Every interleaving of a ring's two ends (loom).
//!
//! The crate's own source is compiled here a second time, with loom's atomics for std's.

#[allow(dead_code)]
#[path = "../src/ring.rs"]
mod ring;

mod sync {
    pub use loom::sync::atomic::{AtomicU64, Ordering};

    /// There are no cache lines here, and no words between what is shared.
    pub const LINE: usize = 1;
}

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

#[derive(Clone)]
struct Words(Arc<Vec<AtomicU64>>);

impl AsRef<[AtomicU64]> for Words {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// Two places, three words: each is taken once and in order, and none before it is there.
#[test]
fn words_arrive_once_and_in_order() {
    loom::model(|| {
        let words = Words(Arc::new((0..ring::words(2)).map(|_| AtomicU64::new(0)).collect()));
        let mut producer = ring::Producer::new(words.clone(), 2);
        let writing = thread::spawn(move || {
            let mut next = 1;
            for _ in 0..4 {
                if next <= 3 && producer.room() > 0 {
                    producer.push(next);
                    producer.publish();
                    next += 1;
                }
            }
            (producer, next)
        });
        let (mut consumer, mut expected) = (ring::Consumer::new(words, 2), 1);
        let mut take = |consumer: &mut ring::Consumer<Words>| {
            while let Some(word) = consumer.peek().expect("nobody means harm") {
                assert_eq!(word, expected);
                expected += 1;
                consumer.advance();
                consumer.release();
            }
        };
        take(&mut consumer);
        let (mut producer, mut next) = writing.join().expect("the producer ends");
        take(&mut consumer);
        while next <= 3 {
            assert!(producer.room() > 0);
            producer.push(next);
            producer.publish();
            next += 1;
        }
        take(&mut consumer);
        assert_eq!(expected, 4);
    });
}
