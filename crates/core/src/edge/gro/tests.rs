use super::*;
use crate::units::Time;
use proptest::prelude::*;

/// One receive queue that writes down what goes up: segments as first and last packet, packets
/// being bytes 1, 2, …
struct Bench {
    offload: Offload<u32, u32>,
    up: Vec<Up>,
}

#[derive(Clone, Debug, PartialEq)]
struct Up {
    flow: u32,
    packets: Vec<u32>,
    cause: Cause,
}

fn us(n: u64) -> Time {
    Time::from_us(n)
}

/// Packet `number` of `flow`: one byte of payload, behind an initial sequence number of its own.
fn packet(flow: u32, isn: u32, number: u32, flowcell: u16) -> Arrival<u32> {
    Arrival {
        flow,
        hash: flow.wrapping_mul(0x9E37_79B9),
        path: 0,
        seq: isn.wrapping_add(number - 1),
        len: 1,
        merge: 0,
        headers: 40,
        flowcell,
        flags: tcp::ACK,
        id: IpId::NONE,
        is_whole: false,
    }
}

/// The flowcell that the published example puts a packet into.
fn cell(number: u32) -> u16 {
    if number <= 5 { 1 } else { 2 }
}

fn stock() -> Bench {
    Bench::new(OffloadParams::Stock(StockGroParams::default()))
}
fn presto(rules: Rules) -> Bench {
    Bench::new(OffloadParams::Presto(PrestoGroParams {
        rules,
        min: us(10),
        ..PrestoGroParams::default()
    }))
}
/// All kinds to which an oracle of ordering applies.
fn both_rules() -> [Bench; 2] {
    [presto(Rules::Literal), presto(Rules::Safe)]
}

impl Bench {
    fn new(params: OffloadParams) -> Bench {
        Bench { offload: Offload::new(&params), up: Vec::new() }
    }
    fn arrive(&mut self, at: u64, arrival: Arrival<u32>) {
        let number = arrival.seq.wrapping_add(1);
        let up = &mut self.up;
        self.offload.receive(us(at), &arrival, number, &mut |r| up.push(Up::of(&r)));
    }
    fn flush(&mut self, at: Time) -> Vec<Up> {
        let up = &mut self.up;
        self.offload.flush(at, &mut |r| up.push(Up::of(&r)));
        std::mem::take(up)
    }
    /// A poll: packets with their flowcells. Gives segments as (first, last).
    fn poll_cells(&mut self, at: u64, packets: &[(u32, u16)]) -> Vec<(u32, u32)> {
        self.poll_causes(at, packets).into_iter().map(|(range, _)| range).collect()
    }
    fn poll_causes(&mut self, at: u64, packets: &[(u32, u16)]) -> Vec<((u32, u32), Cause)> {
        for (number, flowcell) in packets {
            self.arrive(at, packet(1, 0, *number, *flowcell));
        }
        let up = self.flush(us(at));
        up.iter().map(|up| ((up.packets[0], up.packets[up.packets.len() - 1]), up.cause)).collect()
    }
    fn poll(&mut self, at: u64, packets: &[u32]) -> Vec<(u32, u32)> {
        let cells: Vec<_> = packets.iter().map(|number| (*number, cell(*number))).collect();
        self.poll_cells(at, &cells)
    }
    /// As the oracles begin: the next byte is 0, of flowcell 1.
    fn opened(mut self) -> Bench {
        let mut first = packet(1, 0, 1, 1);
        (first.len, first.flags) = (0, tcp::SYN | tcp::ACK);
        first.seq = u32::MAX;
        self.arrive(0, first);
        assert_eq!(self.up.remove(0).cause, Cause::Single);
        self
    }
    fn delay(&self) -> Time {
        let Offload::Presto(presto) = &self.offload else { panic!("no Presto") };
        presto.delay_of(packet(1, 0, 1, 1).hash, 1)
    }
}

impl Up {
    fn of(released: &Released<'_, u32, u32>) -> Up {
        assert!(!released.packets.is_empty());
        assert_eq!(released.packets[0], released.seq.wrapping_add(1));
        Up { flow: released.flow, packets: released.packets.to_vec(), cause: released.cause }
    }
}

/// A segment forced out of a flow's share fills no gap: nothing is learned of the path's delay.
#[test]
fn a_release_that_is_forced_is_no_sample_of_the_delay() {
    for rules in [Rules::Literal, Rules::Safe] {
        let params = PrestoGroParams {
            rules,
            min: us(10),
            flow_held_max: crate::Bytes(2),
            ..Default::default()
        };
        let mut bench = Bench::new(OffloadParams::Presto(params)).opened();
        let before = bench.delay();
        // The next byte is missing; then three flowcells, of which two may wait.
        (3..=5).for_each(|number| bench.arrive(0, packet(1, 0, number, number as u16)));
        let up = bench.flush(us(0));
        assert_eq!(up[0].cause, Cause::Forced, "{rules:?}");
        assert_eq!(bench.delay(), before, "{rules:?}");
    }
}

#[test]
fn oracle_a_reordering_between_flowcells() {
    let arrivals = [1, 2, 3, 6, 4, 7, 5, 8, 9];
    assert_eq!(stock().poll(0, &arrivals), [(1, 3), (6, 6), (4, 4), (7, 7), (5, 5), (8, 9)]);
    for bench in both_rules() {
        assert_eq!(bench.opened().poll(0, &arrivals), [(1, 5), (6, 9)]);
    }
}

#[test]
fn oracle_b_loss_inside_a_flowcell() {
    let arrivals = [1, 3, 6, 4, 7, 5, 8, 9];
    assert_eq!(
        stock().poll(0, &arrivals),
        [(1, 1), (3, 3), (6, 6), (4, 4), (7, 7), (5, 5), (8, 9)]
    );
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll(0, &arrivals), [(1, 1), (3, 5), (6, 9)]);
        assert_eq!(bench.offload.deadline(), None, "nothing waits");
    }
}

#[test]
fn oracle_c_loss_at_the_boundary() {
    let arrivals = [1, 2, 3, 4, 7, 5, 8, 9];
    assert_eq!(stock().poll(0, &arrivals), [(1, 4), (7, 7), (5, 5), (8, 9)]);
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll(0, &arrivals), [(1, 5)]);
        assert_eq!(bench.poll(150, &[]), []);
        assert_eq!(bench.poll_causes(201, &[]), [((7, 9), Cause::Timeout)]);
        // `expected` and `last` follow: the rest of the flowcell is case 1, what was lost is older.
        assert_eq!(bench.poll_causes(210, &[(10, 2)]), [((10, 10), Cause::SameCell)]);
        assert_eq!(bench.poll_causes(220, &[(6, 1)]), [((6, 6), Cause::Older)]);
    }
}

#[test]
fn oracle_d_a_whole_flowcell_early() {
    let mut bench = stock();
    assert_eq!(bench.poll(0, &[6, 7, 8, 9]), [(6, 9)]);
    assert_eq!(bench.poll(60, &[1, 2, 3, 4, 5]), [(1, 5)]);
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll(0, &[6, 7, 8, 9]), []);
        assert_eq!(bench.poll(60, &[1, 2, 3, 4, 5]), [(1, 5), (6, 9)]);
        assert_eq!(bench.delay(), us(95));
    }
}

#[test]
fn oracle_e_over_several_polls() {
    let polls: [&[u32]; 4] = [&[1, 2], &[3, 6], &[4, 7], &[5, 8, 9]];
    let mut bench = stock();
    let up: Vec<_> =
        polls.iter().enumerate().map(|(i, poll)| bench.poll(i as u64 * 10, poll)).collect();
    assert_eq!(
        up,
        [vec![(1, 2)], vec![(3, 3), (6, 6)], vec![(4, 4), (7, 7)], vec![(5, 5), (8, 9)]]
    );
    for bench in both_rules() {
        let mut bench = bench.opened();
        let up: Vec<_> =
            polls.iter().enumerate().map(|(i, poll)| bench.poll(i as u64 * 10, poll)).collect();
        assert_eq!(up, [vec![(1, 2)], vec![(3, 3)], vec![(4, 4)], vec![(5, 5), (6, 9)]]);
        assert_eq!(bench.delay(), us(90));
    }
}

#[test]
fn oracle_f_a_boundary_loss_repaired() {
    let mut bench = presto(Rules::Literal).opened();
    assert_eq!(bench.poll(0, &[1, 2, 3, 4, 7, 5, 8, 9]), [(1, 5)]);
    assert_eq!(
        bench.poll_causes(100, &[(6, 3)]),
        [((6, 6), Cause::InOrder), ((7, 9), Cause::Older)]
    );
    assert_eq!(bench.poll_causes(110, &[(10, 3), (11, 3)]), [((10, 11), Cause::SameCell)]);
}

#[test]
fn oracle_g_a_late_flowcell() {
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll(0, &[1, 2, 3, 4, 5]), [(1, 5)]);
        assert_eq!(bench.poll_cells(10, &[(10, 3), (11, 3)]), []);
        assert_eq!(bench.poll_causes(220, &[]), [((10, 11), Cause::Timeout)]);
        assert_eq!(
            bench.poll_causes(260, &[(6, 2), (7, 2), (8, 2), (9, 2)]),
            [((6, 9), Cause::Older)]
        );
        assert_eq!(bench.poll_causes(300, &[(12, 4), (13, 4)]), [((12, 13), Cause::InOrder)]);
    }
}

#[test]
fn oracle_h_a_retransmission_overtakes() {
    let steps: [(u64, &[(u32, u16)]); 4] = [
        (0, &[(1, 1), (3, 1), (4, 1), (5, 1)]),
        (40, &[(2, 3)]),
        (50, &[(6, 2), (7, 2), (8, 2), (9, 2)]),
        (60, &[(10, 4)]),
    ];
    let run = |mut bench: Bench| steps.map(|(at, packets)| bench.poll_causes(at, packets));
    assert_eq!(
        run(presto(Rules::Literal).opened()),
        [
            vec![((1, 1), Cause::SameCell), ((3, 5), Cause::SameCell)],
            vec![((2, 2), Cause::Overlap)],
            vec![((6, 9), Cause::Older)],
            vec![], // nothing is missing, and it waits
        ]
    );
    assert_eq!(
        run(presto(Rules::Safe).opened()),
        [
            vec![((1, 1), Cause::SameCell), ((3, 5), Cause::SameCell)],
            vec![((2, 2), Cause::Overlap)],
            vec![((6, 9), Cause::InOrder)],
            vec![((10, 10), Cause::InOrder)],
        ]
    );
}

/// A retransmission in a newer flowcell fills the gap at once; what is in flight behind it is not
/// older for that.
#[test]
fn a_retransmission_that_fills_the_gap_leaves_order_on() {
    let mut bench = presto(Rules::Safe).opened();
    assert_eq!(bench.poll(0, &[1, 2, 3, 4, 7, 5]), [(1, 5)]);
    assert_eq!(
        bench.poll_causes(100, &[(6, 3)]),
        [((6, 6), Cause::InOrder), ((7, 7), Cause::Older)]
    );
    assert_eq!(bench.poll_causes(110, &[(10, 3)]), [], "8 and 9 are on another path");
    assert_eq!(
        bench.poll_causes(120, &[(8, 2), (9, 2)]),
        [((8, 9), Cause::SameCell), ((10, 10), Cause::InOrder)]
    );
}

/// Whatever number a sender that was started anew begins with, and wherever: order is restored from
/// its first segment that continues the stream.
#[test]
fn a_sender_that_begins_anew_is_in_order_again() {
    for first in [2, 1_000, 32_768, 32_769, 50_638, u16::MAX, 0] {
        for from in [6, 4] {
            let mut bench = presto(Rules::Safe).opened();
            assert_eq!(bench.poll(0, &[1, 2, 3, 4, 5]), [(1, 5)]);
            let cells = |numbers: &[u32], cell: u16| -> Vec<_> {
                numbers.iter().map(|n| (*n, cell)).collect()
            };
            let (one, two) = (first, first.wrapping_add(1));
            let begun: Vec<u32> = (from..=7).collect();
            assert_eq!(bench.poll_cells(10, &cells(&begun, one)), [(from, 7)]);
            let mixed = [cells(&[10, 11], two), cells(&[8], one)].concat();
            assert_eq!(bench.poll_cells(20, &mixed), [(8, 8)], "{first}: 10 waits for 9");
            assert_eq!(bench.poll_cells(30, &cells(&[9], one)), [(9, 9), (10, 11)]);
        }
    }
}

/// Data before the next byte says nothing of where the stream is.
#[test]
fn what_is_late_leaves_the_last_flowcell_alone() {
    let mut bench = presto(Rules::Safe).opened();
    assert_eq!(bench.poll(0, &[1, 2, 3, 4, 5]), [(1, 5)]);
    assert_eq!(bench.poll_cells(10, &[(10, 3)]), []);
    assert_eq!(bench.poll_causes(220, &[]), [((10, 10), Cause::Timeout)]);
    assert_eq!(bench.poll_causes(230, &[(6, 2), (7, 2), (8, 2), (9, 2)]), [((6, 9), Cause::Older)]);
    assert_eq!(
        bench.poll_causes(240, &[(12, 3)]),
        [((12, 12), Cause::SameCell)],
        "a gap inside of flowcell 3"
    );
}

#[test]
fn oracle_i_a_segment_that_grows_waits_on() {
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll(0, &[1, 2, 3, 4, 5]), [(1, 5)]);
        assert_eq!(bench.poll(0, &[7]), []);
        assert_eq!(bench.poll(190, &[8]), []);
        assert_eq!(bench.poll(205, &[]), []);
        assert_eq!(bench.offload.deadline(), Some(us(240) + Time::from_ps(1)));
        assert_eq!(bench.poll_causes(241, &[]), [((7, 8), Cause::Timeout)]);
        assert_eq!(bench.offload.deadline(), None);
    }
}

#[test]
fn timers_without_traffic() {
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll(0, &[7]), []);
        let due = bench.offload.deadline().unwrap();
        assert_eq!(due, us(200) + Time::from_ps(1));
        assert!(bench.flush(due.saturating_sub(Time::from_ps(1))).is_empty());
        assert_eq!(bench.flush(due).len(), 1);
        assert_eq!(bench.offload.deadline(), None);
    }
}

#[test]
fn sequence_numbers_and_flowcells_wrap() {
    for bench in both_rules() {
        let mut bench = bench;
        let isn = u32::MAX - 2;
        let mut up = Vec::new();
        for (number, flowcell) in
            [(1, u16::MAX), (2, u16::MAX), (5, 0), (3, u16::MAX), (4, u16::MAX), (6, 0)]
        {
            bench.arrive(0, packet(1, isn, number, flowcell));
        }
        up.extend(bench.flush(us(0)));
        assert_eq!(
            up.iter().map(|up| (up.packets.len(), up.cause)).collect::<Vec<_>>(),
            [(4, Cause::SameCell), (2, Cause::InOrder)]
        );
        bench.arrive(1, packet(1, isn, 8, 1));
        assert_eq!(bench.flush(us(1)), [], "1 is newer than 0");
        bench.arrive(2, packet(1, isn, 7, 0));
        assert_eq!(bench.flush(us(2)).len(), 2);
    }
}

#[test]
fn flows_are_told_apart_whatever_their_sequence_numbers() {
    for mut bench in both_rules() {
        let isn = 0xC000_0000;
        let arrivals = [1, 2, 6, 3, 7, 4, 8, 5, 9];
        for number in arrivals {
            bench.arrive(0, packet(1, 0, number, cell(number)));
            bench.arrive(0, packet(2, isn, number, cell(number)));
        }
        let up = bench.flush(us(0));
        for (flow, isn) in [(1, 0), (2, isn)] {
            let numbers: Vec<u32> = up
                .iter()
                .filter(|up| up.flow == flow)
                .flat_map(|up| &up.packets)
                .map(|n| n.wrapping_sub(isn))
                .collect();
            assert_eq!(numbers, (1..=9).collect::<Vec<_>>());
        }
        // And each waits for its own gap.
        bench.arrive(10, packet(1, 0, 11, 3));
        bench.arrive(10, packet(2, isn, 10, 3));
        assert_eq!(bench.flush(us(10)).iter().map(|up| up.flow).collect::<Vec<_>>(), [2]);
    }
}

#[test]
fn a_duplicate_goes_up() {
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(
            bench.poll(0, &[1, 2, 2, 3]),
            [(1, 2), (2, 3)],
            "3 continues the segment that was begun last"
        );
        assert_eq!(bench.poll(1, &[7, 7]), []);
        assert_eq!(bench.poll(2, &[4, 5, 6]), [(4, 5), (6, 6), (7, 7), (7, 7)]);
    }
}

#[test]
fn a_fin_counts_one_and_waits_its_turn() {
    for bench in both_rules() {
        let mut bench = bench.opened();
        let fin =
            |number, len| Arrival { len, flags: tcp::ACK | tcp::FIN, ..packet(1, 0, number, 2) };
        bench.arrive(0, packet(1, 0, 6, 2));
        bench.arrive(0, fin(7, 1));
        assert_eq!(bench.flush(us(0)), [], "held with its segment");
        assert_eq!(bench.poll(1, &[1, 2, 3, 4, 5]), [(1, 5), (6, 7)]);
        let mut bench = presto(Rules::Safe).opened();
        bench.arrive(0, fin(6, 0));
        assert_eq!(bench.flush(us(0)), [], "without payload too");
        assert_eq!(bench.poll(1, &[1, 2, 3, 4, 5]), [(1, 5), (6, 6)]);
    }
}

#[test]
fn segments_are_as_large_as_ip_allows() {
    for mut bench in [stock(), presto(Rules::Literal)] {
        for i in 0..60u32 {
            let mut arrival = packet(1, 0, 1 + i * 1448, 1);
            (arrival.len, arrival.headers) = (1448, 52);
            bench.arrive(0, arrival);
        }
        let up = bench.flush(us(0));
        let lens: Vec<_> = up.iter().map(|up| up.packets.len()).collect();
        assert_eq!(lens, [45, 15]);
    }
}

#[test]
fn headers_that_differ_part_segments() {
    let data = |number| packet(1, 0, number, 1);
    let cases: [(Arrival<u32>, usize, usize); 6] = [
        (data(2), 1, 1),
        (Arrival { merge: 1, ..data(2) }, 2, 2),
        (Arrival { flags: tcp::ACK | tcp::ECE, ..data(2) }, 2, 2),
        (Arrival { flags: tcp::ACK | tcp::CWR, ..data(2) }, 2, 2),
        (Arrival { len: 2, ..data(2) }, 2, 2),
        (Arrival { path: 1, ..data(2) }, 1, 1),
    ];
    for (second, in_stock, in_presto) in cases {
        for (mut bench, expected) in
            [(stock(), in_stock), (presto(Rules::Literal).opened(), in_presto)]
        {
            bench.arrive(0, data(1));
            bench.arrive(0, second);
            assert_eq!(bench.flush(us(0)).len(), expected, "{second:?}");
        }
    }
    // With its label a path is a flow of its own: the packets of each merge although they
    // alternate.
    let params = StockGroParams { labels: Labels::Kept, ..StockGroParams::default() };
    let mut bench = Bench::new(OffloadParams::Stock(params));
    for (number, path) in [(1, 0), (11, 1), (2, 0), (12, 1)] {
        bench.arrive(0, Arrival { path, ..packet(1, 0, number, 1) });
    }
    assert_eq!(bench.flush(us(0)).len(), 2);
    let mut bench = stock();
    for (number, path) in [(1, 0), (11, 1), (2, 0), (12, 1)] {
        bench.arrive(0, Arrival { path, ..packet(1, 0, number, 1) });
    }
    assert_eq!(bench.flush(us(0)).len(), 4);
}

#[test]
fn a_short_packet_or_a_push_ends_a_segment() {
    let long = |number, flags| Arrival { len: 10, flags, ..packet(1, 0, number, 1) };
    for mut bench in [stock(), presto(Rules::Literal)] {
        bench.arrive(0, long(1, tcp::ACK));
        bench.arrive(0, Arrival { len: 4, ..long(11, tcp::ACK) });
        bench.arrive(0, long(15, tcp::ACK));
        bench.arrive(0, long(25, tcp::ACK | tcp::PSH));
        bench.arrive(0, long(35, tcp::ACK));
        let up = bench.flush(us(0));
        assert_eq!(
            up.iter().map(|up| up.packets.clone()).collect::<Vec<_>>(),
            [vec![1, 11], vec![15, 25], vec![35]]
        );
    }
}

#[test]
fn stock_holds_eight_segments_a_bucket() {
    let mut bench = stock();
    for flow in 0..9 {
        bench.arrive(0, Arrival { hash: 3, ..packet(flow, 0, 1, 1) });
    }
    assert_eq!(
        bench.up.iter().map(|up| (up.flow, up.cause)).collect::<Vec<_>>(),
        [(0, Cause::Oldest)]
    );
    assert_eq!(
        bench.flush(us(0)).iter().map(|up| up.flow).collect::<Vec<_>>(),
        (0..9).collect::<Vec<_>>()
    );
}

#[test]
fn an_acknowledgement_passes_and_leaves_what_waits() {
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll(0, &[6, 7]), []);
        bench.arrive(5, packet(1, 0, 1, 1));
        bench.arrive(5, Arrival { len: 0, ..packet(1, 0, 8, 2) });
        assert_eq!(
            bench.up.iter().map(|up| up.packets[0]).collect::<Vec<_>>(),
            [1, 8],
            "behind what is ready"
        );
        bench.up.clear();
        assert_eq!(bench.poll(6, &[2, 3, 4, 5]), [(2, 5), (6, 7)]);
    }
    // One of a flow that is not known leaves no trace.
    let mut bench = presto(Rules::Literal);
    bench.arrive(0, Arrival { len: 0, ..packet(9, 0, 1, 1) });
    let Offload::Presto(presto) = &bench.offload else { panic!("no Presto") };
    assert_eq!((presto.flows(), bench.up.len()), (0, 1));
}

#[test]
fn a_reset_takes_along_what_waits() {
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll_cells(0, &[(8, 3), (6, 2)]), []);
        bench.arrive(5, Arrival { len: 0, flags: tcp::RST, ..packet(1, 0, 9, 3) });
        assert_eq!(bench.up.iter().map(|up| up.packets[0]).collect::<Vec<_>>(), [6, 8, 9]);
        assert_eq!(bench.offload.deadline(), None);
    }
}

#[test]
fn what_waits_is_bounded() {
    let params = PrestoGroParams {
        flow_held_max: Bytes(10),
        held_max: Bytes(15),
        ..PrestoGroParams::default()
    };
    let mut bench = Bench::new(OffloadParams::Presto(params)).opened();
    let early: Vec<_> = (0..20).map(|i| (100 + i * 2, 2 + i as u16)).collect();
    let up = bench.poll_causes(0, &early);
    assert_eq!(up.len(), 10, "each behind a gap of its own; the first in sequence went up");
    assert!(
        up.iter()
            .enumerate()
            .all(|(i, up)| *up == ((100 + i as u32 * 2, 100 + i as u32 * 2), Cause::Forced))
    );
    for i in 0..10 {
        bench.arrive(1, packet(2, 500, 1, 1));
        bench.arrive(1, packet(2, 500, 3 + 2 * i, 2 + i as u16));
    }
    bench.flush(us(1));
    assert!(bench.offload.counters().held_bytes_max <= 20);
    let Offload::Presto(presto) = &bench.offload else { panic!("no Presto") };
    assert!(presto.kept_bytes() <= 15, "{}", presto.kept_bytes());
}

#[test]
fn a_delay_beyond_the_wait_is_learned() {
    let mut bench = presto(Rules::Literal).opened();
    let mut at = 0;
    for i in 0..8u32 {
        bench.poll_cells(at, &[(3 + 2 * i, 2 + i as u16)]);
        let due = bench.offload.deadline().unwrap();
        assert_eq!(bench.flush(due)[0].cause, Cause::Timeout);
        at += 1_000;
    }
    assert_eq!((bench.delay(), bench.offload.counters().doubled), (us(200), 1));
}

/// A poll that leaves packets ends no waits, by an earlier time; how long a gap took is not shorter
/// for that.
#[test]
fn a_gap_that_fills_in_an_unfinished_poll_is_learned_as_it_was() {
    for bench in both_rules() {
        let mut bench = bench.opened();
        assert_eq!(bench.poll(100, &[6, 7, 8, 9]), []);
        for number in 1..=5 {
            bench.arrive(160, packet(1, 0, number, 1));
        }
        assert_eq!(bench.flush(us(100)).len(), 2);
        assert_eq!(bench.delay(), us(95), "60 us, an eighth of it new");
        assert_eq!(bench.offload.counters().filled_wait, (us(60), us(60)));
    }
}

#[test]
fn giving_up_keeps_order_where_it_is_safe() {
    // Flowcell 4 waits first, then 3 comes in front of it with a gap on either side. 4's time is
    // over first.
    let run = |rules| {
        let mut bench = presto(rules).opened();
        assert_eq!(bench.poll_cells(0, &[(9, 4)]), []);
        assert_eq!(bench.poll_cells(100, &[(7, 3)]), []);
        bench.poll_causes(201, &[])
    };
    assert_eq!(run(Rules::Literal), [((9, 9), Cause::Timeout)]);
    assert_eq!(run(Rules::Safe), [((7, 7), Cause::Timeout), ((9, 9), Cause::Timeout)]);
}

#[test]
fn idle_flows_are_forgotten_and_those_that_wait_are_not() {
    let mut bench = presto(Rules::Literal);
    for flow in 0..10_000 {
        bench.arrive(0, packet(flow, 0, 1, 1));
    }
    bench.flush(us(0));
    bench.arrive(1, packet(5, 0, 9, 2));
    bench.flush(us(1));
    let calls = (0..100).map(|_| bench.offload.evict(Time::from_s(31)));
    assert_eq!(calls.sum::<usize>(), 9_999);
    assert_eq!(bench.offload.evict(Time::from_s(31)), 0);
    assert_eq!(bench.flush(Time::from_s(31)).len(), 1);
    assert_eq!((0..100).map(|_| bench.offload.evict(Time::from_s(62))).sum::<usize>(), 1);
}

#[test]
fn drained_it_is_empty() {
    for mut bench in [stock(), presto(Rules::Literal).opened(), presto(Rules::Safe).opened()] {
        bench.arrive(0, packet(1, 0, 9, 2));
        bench.arrive(0, packet(2, 0, 9, 2));
        bench.flush(us(0));
        bench.arrive(1, packet(1, 0, 7, 2));
        let mut count = bench.up.len();
        bench.offload.drain(&mut |r| count += r.packets.len());
        assert!(bench.flush(us(10_000)).is_empty() && bench.offload.deadline().is_none());
        let counters = *bench.offload.counters();
        assert_eq!(counters.bytes, 3);
    }
}

/// A packet on its way: when it arrives, which it is, its flowcell.
fn spray(cells: Vec<(u32, u64)>) -> Vec<(u64, u32, u16)> {
    let mut packets = Vec::new();
    let mut number = 1;
    for (index, (count, delay)) in cells.into_iter().enumerate() {
        for _ in 0..count {
            packets.push((u64::from(number) + delay, number, index as u16));
            number += 1;
        }
    }
    packets.sort(); // a path is FIFO: a flowcell's packets keep their order
    packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the paths' delays, as long as they are within the wait: everything leaves in order.
    #[test]
    fn order_is_restored_within_the_wait(
        cells in prop::collection::vec((1u32..20, 0u64..20), 1..30),
        poll in 1usize..40,
        is_safe in any::<bool>(),
    ) {
        // The expected delay never falls below 20us, and no packet is later than that.
        let rules = if is_safe { Rules::Safe } else { Rules::Literal };
        let params =
            PrestoGroParams { rules, min: us(20), initial: us(20), ..PrestoGroParams::default() };
        let mut bench = Bench::new(OffloadParams::Presto(params)).opened();
        let packets = spray(
            cells.iter().enumerate().map(|(i, (n, d))| (*n, if i == 0 { 0 } else { *d })).collect(),
        );
        let mut out = Vec::new();
        for batch in packets.chunks(poll) {
            // A poll is when its last packet is there: by the time of its first, those behind it
            // would seem to have waited.
            let (now, ..) = batch[batch.len() - 1];
            for (_, number, cell) in batch {
                bench.arrive(now, packet(1, 0, *number, *cell + 1));
            }
            out.extend(bench.flush(us(now)));
        }
        let numbers: Vec<u32> = out.iter().flat_map(|up| up.packets.clone()).collect();
        prop_assert_eq!(numbers, (1..=packets.len() as u32).collect::<Vec<_>>());
        prop_assert!(bench.offload.deadline().is_none());
    }

    /// In one poll as many segments leave as there are flowcells, at most.
    #[test]
    fn a_poll_gives_a_segment_a_flowcell(
        cells in prop::collection::vec((1u32..20, 0u64..200), 1..10),
    ) {
        let count = cells.len();
        let mut bench = presto(Rules::Literal).opened();
        let packets: Vec<_> =
            spray(cells).into_iter().map(|(_, number, cell)| (number, cell + 1)).collect();
        let up = bench.poll_cells(0, &packets);
        prop_assert!(up.len() <= count);
        prop_assert!(up.windows(2).all(|w| w[0].1 + 1 == w[1].0), "{:?}", up);
    }

    /// Losses, copies, retransmissions, any order, any polls, several flows: what goes in comes out
    /// once, nothing waits longer than it may, and a driver that looks at the deadline only is
    /// never late.
    #[test]
    fn nothing_is_lost_doubled_or_late(
        arrivals in prop::collection::vec((0u64..60, 0u32..3, 1u32..60, 0u16..8, 0u8..20), 1..400),
        is_safe in any::<bool>(),
        poll in 1usize..20,
    ) {
        let rules = if is_safe { Rules::Safe } else { Rules::Literal };
        let params = PrestoGroParams {
            rules,
            initial: us(50),
            min: us(50),
            max: us(50),
            ..PrestoGroParams::default()
        };
        let (longest, quiet) = (us(100), us(25));
        let mut offload: Offload<u32, usize> = Offload::new(&OffloadParams::Presto(params));
        let mut seen = vec![(Time::ZERO, 0); arrivals.len()];
        let (mut now, mut latest) = (Time::ZERO, Time::ZERO);
        let mut check =
            |now: Time, released: Released<'_, u32, usize>, seen: &mut Vec<(Time, u32)>| {
                let last = seen[released.packets[released.packets.len() - 1]].0;
                let bound = (released.first + longest).max(last + quiet) + us(60);
                assert!(now <= bound, "{now} is later than {bound}");
                let mut next = released.seq;
                for packet in released.packets {
                    seen[*packet].1 += 1;
                    next += 1;
                }
                assert_eq!(next, released.seq + released.bytes.max(released.packets.len() as u32));
                latest = now;
            };
        for (i, (gap, flow, number, cell, flags)) in arrivals.iter().enumerate() {
            let arrives = if i % poll == 0 { now + us(*gap) } else { now };
            while let Some(due) = offload.deadline().filter(|due| *due <= arrives) {
                offload.flush(due, &mut |r| check(due, r, &mut seen));
            }
            now = arrives;
            seen[i].0 = now;
            let mut arrival = packet(*flow, *flow << 30, *number, *cell);
            arrival.flags |= match flags {
                0 => tcp::FIN,
                1 => tcp::PSH,
                2 => tcp::RST,
                3 => tcp::URG,
                4 => tcp::SYN,
                _ => 0,
            };
            offload.receive(now, &arrival, i, &mut |r| check(now, r, &mut seen));
            if (i + 1) % poll == 0 {
                offload.flush(now, &mut |r| check(now, r, &mut seen));
            }
        }
        offload.flush(now, &mut |r| check(now, r, &mut seen));
        while let Some(due) = offload.deadline() {
            offload.flush(due, &mut |r| check(due, r, &mut seen));
        }
        prop_assert!(seen.iter().all(|(_, count)| *count == 1), "{:?}", seen);
        prop_assert_eq!(offload.counters().packets, arrivals.len() as u64);
    }

    /// The kernel's engine never changes the order of a flow, and holds nothing over a poll.
    #[test]
    fn stock_keeps_the_order_of_arrival(
        arrivals in prop::collection::vec((0u32..40, 1u32..30, any::<bool>(), 0u8..6), 1..300),
    ) {
        let mut offload: Offload<u32, usize> =
            Offload::new(&OffloadParams::Stock(StockGroParams::default()));
        let mut out = vec![Vec::new(); 40];
        for (i, (flow, number, ends, flags)) in arrivals.iter().enumerate() {
            let mut arrival = packet(*flow, 0, *number, 0);
            arrival.flags |= match flags {
                0 => tcp::FIN,
                1 => tcp::PSH,
                _ => 0,
            };
            offload.receive(us(0), &arrival, i, &mut |r| {
                out[r.flow as usize].extend_from_slice(r.packets)
            });
            if *ends {
                offload.flush(us(0), &mut |r| out[r.flow as usize].extend_from_slice(r.packets));
            }
        }
        offload.flush(us(0), &mut |r| out[r.flow as usize].extend_from_slice(r.packets));
        for (flow, out) in out.iter().enumerate() {
            let came: Vec<usize> = arrivals
                .iter()
                .enumerate()
                .filter(|(_, a)| a.0 == flow as u32)
                .map(|(i, _)| i)
                .collect();
            prop_assert_eq!(out, &came);
        }
    }
}
