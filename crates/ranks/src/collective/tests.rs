//! Schedules by hand, and over an ideal network.

use super::*;
use crate::{Driver, Job, Message, Pace, Span, Worker};
use millpond_core::random::mix64;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A network in which a message of c bytes takes α + βc, and nothing waits for anything else.
struct Ideal {
    now: Time,
    /// By (time, number): what happens to whom.
    due: BTreeMap<(Time, u64), (u32, Option<Message>)>,
    next: u64,
    from: u32,
    message: fn(u64) -> Time,
    sent: Vec<u64>,
    spans: Vec<(u32, Span)>,
}

impl Ideal {
    fn push(&mut self, at: Time, what: (u32, Option<Message>)) {
        self.next += 1;
        self.due.insert((at, self.next), what);
    }
}

impl Driver for Ideal {
    fn send(&mut self, to: u32, _channel: u32, message: Message) {
        assert_ne!(to, self.from);
        self.sent[self.from as usize] += message.bytes;
        self.push(self.now + (self.message)(message.bytes), (to, Some(message)));
    }
    fn wake(&mut self, at: Time) {
        self.push(at, (self.from, None));
    }
    fn ended(&mut self, span: Span) {
        self.spans.push((self.from, span));
    }
    fn matched(&mut self, _sender: u32, _operation: u32) {
        unreachable!("a collective has no rendezvous");
    }
}

/// Runs a job to its end: when, what each rank sent, and its spans.
fn run(job: &Job, message: fn(u64) -> Time) -> (Time, Vec<u64>, Vec<(u32, Span)>) {
    let ranks = job.collective.ranks;
    let mut workers: Vec<Worker> = (0..ranks).map(Worker::new).collect();
    let mut net = Ideal {
        now: Time::ZERO,
        due: BTreeMap::new(),
        next: 0,
        from: 0,
        message,
        sent: vec![0; ranks as usize],
        spans: Vec::new(),
    };
    for rank in 0..ranks {
        net.from = rank;
        workers[rank as usize].start(Time::ZERO, job, &mut net);
    }
    while let Some(((at, _), (rank, what))) = net.due.pop_first() {
        (net.now, net.from) = (at, rank);
        match what {
            Some(message) => workers[rank as usize].arrived(at, &message, job, &mut net),
            None => workers[rank as usize].wake(at, job, &mut net),
        }
    }
    assert!(workers.iter().all(|worker| worker.is_done(job)), "a rank waits for ever");
    assert!(workers.iter().all(Worker::is_settled), "a message was not awaited");
    (net.now, net.sent, net.spans)
}

fn collective(operation: Operation, algorithm: Algorithm, ranks: u32, bytes: u64) -> Collective {
    Collective {
        micro_batches: 4,
        stage: (Time::from_us(2), Time::from_us(4)),
        ..Collective::plain(operation, algorithm, ranks, bytes)
    }
}

fn job(collective: Collective) -> Job {
    Job { collective, rounds: 1, pace: Pace::default() }
}

fn all() -> Vec<(Operation, Algorithm)> {
    let each = Operation::ALL.iter().flat_map(|operation| {
        algorithms(*operation).iter().map(|algorithm| (*operation, *algorithm))
    });
    each.collect()
}

/// 1 µs, and 1 ns a byte.
fn alpha_beta(bytes: u64) -> Time {
    Time::from_us(1) + Time::from_ns(bytes)
}

/// The steps' table: α and β by hand, with N = 8 and S = 8,000.
#[test]
fn times_without_contention_are_the_closed_forms() {
    use Algorithm::*;
    let us = |alpha: u64, bytes: u64| Time::from_us(alpha) + Time::from_ns(bytes);
    for (operation, algorithm, time) in [
        (Operation::AllReduce, Ring, us(14, 14_000)),
        (Operation::ReduceScatter, Ring, us(7, 7_000)),
        (Operation::AllGather, Ring, us(7, 7_000)),
        (Operation::AllReduce, HalvingDoubling, us(6, 14_000)),
        (Operation::AllReduce, HalvingDoublingFar, us(6, 14_000)),
        (Operation::AllReduce, RecursiveDoubling, us(3, 24_000)),
        (Operation::Broadcast, Binomial, us(3, 24_000)),
        (Operation::Reduce, Binomial, us(3, 24_000)),
        (Operation::AllToAll, Pairwise, us(7, 7_000)),
        (Operation::AllToAll, Bruck, us(3, 12_000)),
        (Operation::Barrier, Dissemination, us(3, 3)),
    ] {
        let collective = collective(operation, algorithm, 8, 8_000);
        assert_eq!(collective.closed_form(alpha_beta), time, "{operation:?} {algorithm:?}");
        let (end, ..) = run(&job(collective), alpha_beta);
        assert_eq!(end, time, "{operation:?} {algorithm:?}");
    }
}

#[test]
fn groups_and_numbers_that_are_no_power_of_two_have_their_closed_forms() {
    let own = collective(Operation::AllReduce, Algorithm::Hierarchical, 8, 8_000);
    // Two groups of four: six steps of 2,000 bytes in the groups, two of 1,000 between them.
    let own = Collective { group: 4, ..own };
    let time = Time::from_us(8) + Time::from_ns(6 * 2_000 + 2 * 1_000);
    assert_eq!((own.closed_form(alpha_beta), run(&job(own), alpha_beta).0), (time, time));
    // Two steps more; of six ranks the last one would overlap.
    let own = collective(Operation::AllReduce, Algorithm::RecursiveDoubling, 7, 1_000);
    let time = Time::from_us(4) + Time::from_ns(4 * 1_000);
    assert_eq!((own.closed_form(alpha_beta), run(&job(own), alpha_beta).0), (time, time));
    let own = collective(Operation::Broadcast, Algorithm::Ring, 5, 8_000);
    let own = Collective { chunk: Some(1_000), ..own };
    // The ideal network carries all pieces at once. A link carries one after the other: the first
    // hop takes the whole, the three others add a piece each.
    assert_eq!(own.closed_form(alpha_beta), Time::from_us(4) + Time::from_ns(11_000));
    assert_eq!(run(&job(own), alpha_beta).0, Time::from_us(4) + Time::from_ns(4_000));
}

/// On an ideal network each channel takes the time of its share, and sends that share.
#[test]
fn four_channels_do_a_quarter_each() {
    for (operation, algorithm) in all() {
        if operation == Operation::Barrier {
            continue;
        }
        let chunk = Some(500);
        let quarter = Collective { chunk, ..collective(operation, algorithm, 8, 8_000) };
        let whole = Collective { channels: 4, bytes: 32_000, ..quarter.clone() };
        let ((time, sent, _), (end, bytes, _)) =
            (run(&job(quarter), alpha_beta), run(&job(whole), alpha_beta));
        let four: Vec<u64> = sent.iter().map(|bytes| 4 * bytes).collect();
        assert_eq!((end, bytes), (time, four), "{operation:?} {algorithm:?}");
    }
}

/// Through one NIC, in µs: a step of 1,000 bytes takes the time of a part, 1.25, those of 2,000 and
/// 4,000 bytes that of their bytes, and the last one of 4,000 the time of a message, 5.
#[test]
fn closed_form_of_channels_hides_the_delay_of_a_step() {
    let one = collective(Operation::AllReduce, Algorithm::HalvingDoubling, 8, 8_000);
    let four = Collective { channels: 4, ..one };
    assert_eq!(four.closed_form(alpha_beta), Time::from_ns(2 * 1_250 + 2 * 2_000 + 4_000 + 5_000));
    // A group of one has no ring of its own: two steps of 4,000 bytes.
    let own = Collective { ranks: 2, algorithm: Algorithm::Hierarchical, ..four };
    assert_eq!(own.closed_form(alpha_beta), Time::from_ns(4_000 + 5_000));
}

/// The bytes that a rank sends in all, by the table; the ranks of one job send alike.
#[test]
fn bytes_sent_by_a_rank_are_the_tables() {
    use Algorithm::*;
    for (operation, algorithm, bytes) in [
        (Operation::AllReduce, Ring, 14_000),
        (Operation::AllReduce, HalvingDoubling, 14_000),
        (Operation::AllReduce, RecursiveDoubling, 24_000),
        (Operation::AllToAll, Pairwise, 7_000),
        (Operation::AllToAll, Linear, 7_000),
        (Operation::AllToAll, Bruck, 12_000),
    ] {
        let (_, sent, _) = run(&job(collective(operation, algorithm, 8, 8_000)), alpha_beta);
        assert_eq!(sent, [bytes; 8], "{algorithm:?}");
    }
    let own = collective(Operation::AllReduce, Hierarchical, 8, 8_000);
    let (_, sent, _) = run(&job(Collective { group: 4, ..own }), alpha_beta);
    // 2 (G − 1)/G · S in the server, 2 (R − 1)/R · S/G on the rail.
    assert_eq!(sent, [12_000 + 2_000; 8]);
}

/// NCCL's trees of eight ranks, by hand.
#[test]
fn double_binary_tree_is_nccls() {
    let children = |tree: u32| -> Vec<Vec<u32>> {
        let of = |rank| tree::kin(8, tree, rank).1.iter().flatten().copied().collect();
        (0..8).map(of).collect()
    };
    let none = Vec::new;
    assert_eq!(
        children(0),
        [vec![4], none(), vec![1, 3], none(), vec![2, 6], none(), vec![5, 7], none()]
    );
    assert_eq!(
        children(1),
        [none(), vec![2, 0], none(), vec![5, 1], none(), vec![6, 4], none(), vec![3]]
    );
    for ranks in 2..70 {
        let inner = |tree: u32| -> BTreeSet<u32> {
            let is_inner = |rank: &u32| tree::kin(ranks, tree, *rank).1 != [None, None];
            (0..ranks).filter(is_inner).collect()
        };
        let roots: BTreeSet<u32> = (0..2)
            .flat_map(|tree| (0..ranks).filter(move |r| tree::kin(ranks, tree, *r).0.is_none()))
            .collect();
        let both: Vec<u32> = inner(0).intersection(&inner(1)).copied().collect();
        assert!(both.iter().all(|rank| roots.contains(rank)), "{ranks}: {both:?}");
    }
}

/// A pipeline of p stages and m micro-batches idles for (p − 1)/(m + p − 1) of its time.
#[test]
fn pipeline_has_the_bubble_of_its_closed_form() {
    let own = collective(Operation::Pipeline, Algorithm::OneForwardOneBackward, 4, 1_000);
    for batches in [1, 3, 4, 16] {
        let own = Collective { micro_batches: batches, ..own.clone() };
        let (end, _, spans) = run(&job(own.clone()), |_| Time::ZERO);
        assert_eq!(end, Time::from_us(6) * u64::from(batches + 3));
        assert_eq!(own.closed_form(|_| Time::ZERO), end);
        let busy = Time::from_us(6) * u64::from(batches);
        assert!(spans.iter().all(|(_, span)| span.computed == busy));
    }
}

#[test]
fn bus_bandwidth_does_not_depend_on_the_number_of_ranks() {
    for ranks in [2, 7, 64] {
        let own = collective(Operation::AllReduce, Algorithm::Ring, ranks, 1 << 30);
        let time = own.closed_form(|bytes| Time::from_ps(bytes * 80));
        let bus = own.algorithm_bandwidth(time).unwrap() * own.bus_factor();
        assert!((bus / 12.5e9 - 1.0).abs() < 1e-6, "{bus}");
    }
    let barrier = collective(Operation::Barrier, Algorithm::Dissemination, 4, 1);
    assert_eq!(barrier.algorithm_bandwidth(Time::from_us(1)), None);
}

/// A straggler delays a ring's end by its delay, and next rounds do not wait for other ranks.
#[test]
fn straggler_delays_the_ring_by_its_delay() {
    let own = job(collective(Operation::AllReduce, Algorithm::Ring, 4, 4_000));
    let (end, ..) = run(&own, alpha_beta);
    let pace = Pace {
        stragglers: BTreeSet::from([1]),
        straggler_delay: Time::from_us(200),
        ..Pace::default()
    };
    let late = Job { pace, rounds: 3, ..own.clone() };
    let (late_end, _, spans) = run(&Job { rounds: 1, ..late.clone() }, alpha_beta);
    assert_eq!(late_end, end + Time::from_us(200));
    assert_eq!(spans.len(), 4);
    let (_, _, spans) = run(&late, alpha_beta);
    assert_eq!(spans.len(), 12);
    let gap = Pace { gap: Time::from_us(5), ..Pace::default() };
    let (twice, ..) = run(&Job { rounds: 2, pace: gap, ..own }, alpha_beta);
    assert_eq!(twice, end + end + Time::from_us(5));
}

#[test]
fn hot_rank_receives_its_multiple_of_the_mean() {
    let own = collective(Operation::AllToAll, Algorithm::Linear, 8, 8_000);
    let own = Collective { skew: 3.0, ..own };
    assert_eq!(own.block(1, 0), 3_000);
    let (_, sent, _) = run(&job(own.clone()), alpha_beta);
    assert_eq!(sent[0], 7 * own.block(0, 1));
    assert_eq!(sent[1], 3_000 + 6 * own.block(0, 1));
    let balanced = Collective { skew: 1.0, ..own.clone() };
    let beta = |bytes: u64| Time::from_ns(bytes);
    let (hot, even) = (own.closed_form(beta), balanced.closed_form(beta));
    assert_eq!(hot.as_ps(), 3 * even.as_ps());
}

/// By hand: rank 0 sends 100 and 300 bytes, rank 1 nothing to rank 2, rank 2 nothing at all.
#[test]
fn a_matrix_names_each_block() {
    let matrix: Arc<[u64]> = [9, 100, 300, 50, 9, 0, 0, 0, 9].into();
    for (algorithm, time) in [
        // The steps go to the next rank and to the one after: 100 bytes, then 300.
        (Algorithm::Pairwise, Time::from_us(2) + Time::from_ns(400)),
        // Rank 0 sends 400.
        (Algorithm::Linear, Time::from_us(1) + Time::from_ns(400)),
    ] {
        let own = collective(Operation::AllToAll, algorithm, 3, 159);
        let own = Collective { matrix: Some(Matrix::new(matrix.clone())), ..own };
        let (_, sent, spans) = run(&job(own.clone()), alpha_beta);
        assert_eq!((sent, spans.len()), (vec![400, 50, 0], 3));
        assert_eq!(own.closed_form(alpha_beta), time, "{algorithm:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the numbers and the order of arrival: all ranks end, and no message is left over.
    #[test]
    fn every_message_is_awaited_once(
        which in 0usize..32, ranks in 2u32..40, bytes in 1u64..100_000, channels in 1u32..4,
        slices in 1u32..5, chunk in prop::option::of(1_000u64..50_000), rounds in 1u32..4,
        skew in 0u8..2, batches in 1u32..9, seed in any::<u64>(), has_matrix in any::<bool>(),
    ) {
        let all = all();
        let (operation, algorithm) = all[which % all.len()];
        let group = (1..=ranks).rev().find(|group| ranks % group == 0 && *group <= 4).unwrap();
        let skew = match algorithm {
            Algorithm::Bruck => 1.0,
            _ => f64::from(skew) * f64::from(ranks - 1) + 1.0,
        };
        // A third of the blocks is empty.
        let block = |at: u64| mix64(seed ^ at) % 3 * (mix64(seed ^ at) >> 40);
        let blocks = || (0..u64::from(ranks * ranks)).map(block).collect::<Arc<[u64]>>();
        let takes_one = matches!(algorithm, Algorithm::Pairwise | Algorithm::Linear);
        let matrix = (has_matrix && takes_one).then(|| Matrix::new(blocks()));
        let own = Collective {
            channels, slices, chunk, group, skew, matrix, micro_batches: batches,
            ..collective(operation, algorithm, ranks, bytes)
        };
        // Messages overtake each other, but for those of equal size.
        let scatter = |bytes: u64| Time::from_ns(1 + bytes * 7_919 % 1_009);
        let (_, _, spans) = run(&Job { rounds, ..job(own) }, scatter);
        prop_assert_eq!(spans.len() as u32, ranks * rounds);
    }
}
