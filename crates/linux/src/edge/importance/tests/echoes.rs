//! The receiver's rules on single packets (sheet §12.7), and a shim's own echo at the sender.

use super::bench::*;
use super::frames::{PLAIN, Seg, Style, frame};
use crate::dataplane::frame::Version;
use crate::dataplane::frame::parse::tcp::{ACK, SYN};
use crate::edge::importance::ShimParams;
use crate::edge::importance::options;
use millpond_core::Time;

const BLOCK: u32 = 1000;
const FIRST: u32 = PLAIN.isn[1] + 1;

/// Data of host 1 to the shim's host.
fn arriving(at: u32, len: u32, importance: u8) -> Seg {
    Seg {
        seq: FIRST.wrapping_add(at),
        ack: PLAIN.isn[0] + 1,
        flags: ACK,
        window: 1000,
        stamps: Some((200, 100)),
        payload: vec![3; len as usize],
        class: importance << 2 | 1,
        ..Seg::default()
    }
}

/// An acknowledgement of the shim's host.
fn acknowledgement(at: u32, sack: &[(u32, u32)]) -> Seg {
    let sack = sack.iter().map(|(a, b)| (FIRST + a, FIRST + b)).collect();
    Seg { ack: FIRST + at, sack, ..data(0, 0) }
}

fn report(seg: &Seg) -> Vec<(u32, u32)> {
    let echo = options::read(&seg.extra).unwrap().echo.expect("a shim's echo");
    echo.as_slice().iter().map(|(a, b)| (a - FIRST, b - FIRST)).collect()
}

#[test]
fn the_hosts_next_acknowledgement_is_the_echo() {
    for (importance, echo) in [(IMPORTANT, ECHO), (FORCED, FORCED_ECHO)] {
        let mut bench = Bench::open(PLAIN);
        let seg = bench.receive(&arriving(0, BLOCK, importance)).unwrap();
        assert_eq!(seg.class, 1, "the host receives ECN, and no importance");
        // One of an earlier packet is not it, nor is data.
        assert_eq!(bench.transmit(&acknowledgement(0, &[])).importance(), CONTROL);
        assert_eq!(
            bench.transmit(&Seg { ack: FIRST + BLOCK, ..data(0, 5) }).importance(),
            IMPORTANT
        );
        assert_eq!(bench.transmit(&acknowledgement(BLOCK, &[])).importance(), echo);
        assert_eq!(bench.transmit(&acknowledgement(BLOCK, &[])).importance(), CONTROL, "one each");
        assert!(bench.due().is_empty());
        assert_eq!(bench.shim.counters().echoes_marked, 1);
    }
}

#[test]
fn a_sack_or_dsack_of_the_important_packet_is_its_echo() {
    let mut bench = Bench::open(PLAIN);
    bench.receive(&arriving(3 * BLOCK, BLOCK, IMPORTANT));
    let sack = [(3 * BLOCK, 4 * BLOCK)];
    assert_eq!(bench.transmit(&acknowledgement(0, &sack)).importance(), ECHO);
    bench.transmit(&acknowledgement(4 * BLOCK, &[]));
    bench.receive(&arriving(BLOCK, 1, FORCED));
    assert_eq!(bench.transmit(&acknowledgement(4 * BLOCK, &[])).importance(), FORCED_ECHO);
}

#[test]
fn every_important_packet_has_one_echo_within_ten_microseconds() {
    for (at, name) in [
        (0, "in order"),
        (2 * BLOCK, "out of order"),
        (u32::MAX - 500, "old"),
        (1 << 24, "beyond the window"),
    ] {
        let mut bench = Bench::open(PLAIN);
        for repeated in 0..2 {
            bench.receive(&arriving(at, BLOCK, IMPORTANT));
            assert_eq!(bench.shim.deadline(), Some(bench.now + Time::from_us(10)), "{name}");
            let echoes = bench.due();
            assert_eq!(echoes.len(), 1, "{name} {repeated}");
            assert_eq!((echoes[0].importance(), echoes[0].ack), (ECHO, FIRST), "{name}");
            assert!(echoes[0].payload.is_empty() && echoes[0].sack.is_empty());
        }
        assert!(bench.due().is_empty());
    }
}

#[test]
fn neither_handshakes_nor_unimportant_packets_have_echoes() {
    let mut bench = Bench::new(ShimParams::default());
    bench.handshake(&PLAIN);
    bench.receive(&Seg { flags: SYN | ACK, ..arriving(0, 0, IMPORTANT) });
    bench.receive(&arriving(0, BLOCK, RED));
    bench.receive(&arriving(0, BLOCK, CONTROL));
    assert!(bench.due().is_empty());
}

#[test]
fn a_shims_echo_acknowledges_what_the_host_has_and_reports_what_passed() {
    for stamps in [true, false] {
        let mut bench = Bench::open(Style { stamps, ..PLAIN });
        let strip = |seg: Seg| Seg { stamps: seg.stamps.filter(|_| stamps), ..seg };
        bench.receive(&strip(arriving(0, BLOCK, RED)));
        bench.transmit(&strip(Seg { window: 700, ..acknowledgement(BLOCK, &[]) }));
        for at in [1, 3, 5, 7, 9, 11] {
            bench.receive(&strip(arriving(at * BLOCK, BLOCK, RED)));
        }
        bench.receive(&strip(arriving(12 * BLOCK, BLOCK, IMPORTANT)));
        let echo = bench.due().remove(0);
        assert_eq!((echo.ack, echo.window, echo.flags), (FIRST + BLOCK, 700, ACK));
        assert_eq!(echo.seq, PLAIN.isn[0] + 1);
        let lowest = [1, 3, 5, 7].map(|at| (at * BLOCK, (at + 1) * BLOCK));
        assert_eq!(report(&echo), lowest[..if stamps { 3 } else { 4 }]);
        assert_eq!(echo.stamps.is_some(), stamps);
    }
}

/// The frame of a shim's echo that host 1 sends.
fn echo_frame(at: u32, ranges: &[(u32, u32)]) -> Vec<u8> {
    let mut extra = Vec::new();
    options::write_echo(&mut extra, ranges.iter().copied().map(wire));
    frame(Version::V4, 1, &Seg { extra, ..ack_of(at, ECHO, &[]) })
}

#[test]
fn the_host_never_receives_a_shims_echo() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..3);
    // Its kernel delays its acknowledgement of what has passed the peer's shim.
    assert_eq!(bench.incoming(&echo_frame(0, &[(0, BLOCK)])), None);
    let forced = bench.due().remove(0);
    assert_eq!((offset(&forced), forced.payload.len()), (BLOCK, 1000), "what has not passed");
    assert_eq!(forced.importance(), FORCED);
    let mut restarted = Bench::new(ShimParams::default());
    assert_eq!(restarted.incoming(&echo_frame(0, &[(0, BLOCK)])), None);
    assert_eq!(restarted.shim.counters().consumed, 1);
}

#[test]
fn nothing_is_forced_once_all_has_passed_the_peers_shim() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..3);
    // In two ranges, and not in their order.
    let ranges = [(BLOCK, 3 * BLOCK), (0, BLOCK)];
    assert_eq!(bench.incoming(&echo_frame(0, &ranges)), None);
    assert!(bench.due().is_empty(), "no probe can tell more");
    let next = bench.transmit(&data(3 * BLOCK, BLOCK));
    assert_eq!(next.importance(), IMPORTANT, "and the clock goes on with the next data");
}

#[test]
fn a_report_of_a_hole_forces_what_is_missing() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..4);
    let ranges = [(0, BLOCK), (2 * BLOCK, 4 * BLOCK)];
    assert_eq!(bench.incoming(&echo_frame(0, &ranges)), None);
    let forced = bench.due().remove(0);
    assert_eq!((offset(&forced), forced.payload), (BLOCK, bytes(BLOCK, BLOCK)));
}
