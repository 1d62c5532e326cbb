//! The sheet's rules on single packets, by their names there.

use super::bench::*;
use super::frames::{PLAIN, Seg, Style, frame, read};
use crate::dataplane::frame::Version;
use crate::dataplane::frame::parse::tcp::{ACK, CWR, ECE, FIN, RST, SYN, URG};
use crate::edge::importance::{Reason, ShimParams};
use millpond_core::Time;

const BLOCK: u32 = 1000;

#[test]
fn first_data_packet_is_important_and_others_wait_for_its_echo() {
    for version in [Version::V4, Version::V6] {
        let mut bench = Bench::open(Style { version, ..PLAIN });
        let sent: Vec<u8> = (0..4).map(|i| bench.send(i * BLOCK, BLOCK)).collect();
        assert_eq!(sent, [IMPORTANT, RED, RED, RED]);
        assert_eq!(bench.ack(BLOCK, ECHO, &[]), Some(CONTROL), "the host receives no importance");
        assert_eq!(bench.send(4 * BLOCK, BLOCK), IMPORTANT);
        assert_eq!(bench.send(5 * BLOCK, BLOCK), RED);
    }
}

#[test]
fn e4_forces_a_byte_without_loss_and_a_segment_with_loss() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..4);
    bench.ack(BLOCK, ECHO, &[]);
    assert_eq!(bench.send(4 * BLOCK, BLOCK), IMPORTANT);
    // All of the round is acknowledged: one byte.
    bench.send(5 * BLOCK, BLOCK);
    bench.ack(5 * BLOCK, ECHO, &[]);
    let due = bench.shim.deadline().unwrap();
    assert_eq!(due, bench.now + Time::from_us(30));
    assert!(bench.due_at(due - Time::from_ps(1)).is_empty());
    let forced = &bench.due_at(due)[0];
    assert_eq!((forced.importance(), forced.payload.len()), (FORCED, 1));
    assert_eq!(offset(forced), 5 * BLOCK);
    // Its echo shows that the rest of the segment was lost: the rest at once.
    bench.ack(5 * BLOCK + 1, FORCED_ECHO, &[]);
    let forced = &bench.due()[0];
    assert_eq!((offset(forced), forced.payload.len()), (5 * BLOCK + 1, BLOCK as usize - 1));
    assert_eq!(forced.payload[..], bytes(5 * BLOCK + 1, BLOCK - 1)[..]);
    assert_eq!(bench.shim.counters().forced.packets, 2);
}

#[test]
fn e6_adds_a_lost_range_as_an_important_packet() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..4);
    bench.ack(BLOCK, ECHO, &[]);
    bench.send(4 * BLOCK, BLOCK);
    bench.ack(BLOCK, ECHO, &[(4 * BLOCK, 5 * BLOCK)]);
    assert_eq!(bench.send(5 * BLOCK, BLOCK), RED);
    let lost = &bench.due_at(bench.now)[0];
    assert_eq!((lost.importance(), offset(lost)), (IMPORTANT, BLOCK));
    assert_eq!(lost.payload, bytes(BLOCK, BLOCK));
}

/// A flow with short round trips: a wait that the host has ended does not shorten the next one.
#[test]
fn each_echo_gives_the_host_its_whole_time() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..2);
    bench.ack(BLOCK, ECHO, &[]);
    bench.now += Time::from_us(20);
    assert_eq!(bench.send(2 * BLOCK, BLOCK), IMPORTANT);
    assert_eq!(bench.shim.deadline(), None);
    bench.ack(3 * BLOCK - 1, ECHO, &[]);
    assert_eq!(bench.shim.deadline(), Some(bench.now + Time::from_us(30)));
}

#[test]
fn e2_the_host_receives_no_duplicate_ack_of_a_forced_packet() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..3);
    bench.ack(BLOCK, ECHO, &[]);
    assert_eq!(bench.due().len(), 1);
    let dsack = (BLOCK, BLOCK + 1);
    // Its DSACK is all that it says.
    assert_eq!(bench.ack(3 * BLOCK, CONTROL, &[]), Some(CONTROL));
    assert_eq!(bench.ack(3 * BLOCK, FORCED_ECHO, &[dsack]), None);
    assert_eq!(bench.shim.counters().acks_swallowed, 1);
    // Stale.
    assert_eq!(bench.ack(2 * BLOCK, FORCED_ECHO, &[]), None);
    // It acknowledges more, moves the window, or echoes congestion: the host receives it.
    bench.send_blocks(3..6);
    assert!(bench.ack(4 * BLOCK, FORCED_ECHO, &[]).is_some());
    let wider = Seg { window: 2000, ..ack_of(4 * BLOCK, FORCED_ECHO, &[]) };
    assert!(bench.receive(&wider).is_some());
    assert_eq!(bench.receive(&wider), None);
    let congested = Seg { flags: ACK | ECE, ..wider };
    assert!(bench.receive(&congested).is_some());
    // It reports another block, for the first time.
    let blocks = [dsack, (5 * BLOCK, 6 * BLOCK)];
    let news = Seg { window: 2000, ..ack_of(4 * BLOCK, FORCED_ECHO, &blocks) };
    let passed = bench.receive(&news).unwrap();
    assert_eq!(passed.sack, [wire((5 * BLOCK, 6 * BLOCK))]);
    assert_eq!(bench.receive(&news), None);
    assert_eq!(bench.shim.counters().dsacks_stripped, 1);
}

#[test]
fn dsack_is_stripped_only_after_the_shim_has_forced_a_packet() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..3);
    let seg = ack_of(BLOCK, ECHO, &[(0, BLOCK), (2 * BLOCK, 3 * BLOCK)]);
    assert_eq!(bench.receive(&seg).unwrap().sack.len(), 2);
    assert_eq!(bench.due().len(), 1);
    let bytes = frame(Version::V4, 1, &seg);
    assert_eq!(read(&bench.incoming(&bytes).unwrap()).sack.len(), 1);
    // A partial checksum stays what it is; a wrong one is not repaired.
    let at = 14 + 20 + 16;
    let pseudo = {
        let sum: u32 =
            (26..34).step_by(2).map(|i| u32::from(bytes[i]) << 8 | u32::from(bytes[i + 1])).sum();
        let sum = sum + 6 + (bytes.len() - 34) as u32;
        ((sum & 0xffff) + (sum >> 16)) as u16
    };
    let mut partial = bytes.clone();
    partial[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
    let out = bench.incoming(&partial).unwrap();
    assert_eq!((&out[at..at + 2], out[14 + 20 + 12 + 20 + 3]), (&partial[at..at + 2], 10));
    let mut wrong = bytes.clone();
    wrong[at] ^= 0x55;
    assert_eq!(bench.incoming(&wrong).unwrap()[34..], wrong[34..]);
}

#[test]
fn forced_packets_carry_the_latest_timestamp_acknowledgement_and_window() {
    let mut bench = Bench::open(PLAIN);
    let seg = |at: u32, stamp: u32| Seg { stamps: Some((stamp, 7)), ..data(at, BLOCK) };
    for wraps in [1 << 31, u32::MAX - 9] {
        bench.transmit(&seg(0, wraps));
    }
    bench.transmit(&Seg { ack: PLAIN.isn[1] + 51, window: 321, ..seg(BLOCK, 2) });
    // Older than the last.
    bench.transmit(&Seg { ack: PLAIN.isn[1] + 51, window: 321, ..seg(BLOCK, u32::MAX - 5) });
    bench.ack(BLOCK, ECHO, &[]);
    let forced = &bench.due()[0];
    assert_eq!(forced.stamps, Some((2, 7)));
    assert_eq!((forced.ack, forced.window, forced.flags), (PLAIN.isn[1] + 51, 321, ACK));
    let mut bench = Bench::open(Style { stamps: false, ..PLAIN });
    (0..2).for_each(|i| drop(bench.transmit(&Seg { stamps: None, ..data(i * BLOCK, BLOCK) })));
    bench.receive(&Seg { stamps: None, ..ack_of(BLOCK, ECHO, &[]) });
    assert_eq!(bench.due()[0].stamps, None);
}

#[test]
fn a_zero_window_stops_forced_packets_until_it_opens() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..3);
    bench.receive(&Seg { window: 0, ..ack_of(BLOCK, ECHO, &[]) });
    assert!(bench.due().is_empty());
    assert_eq!(bench.shim.counters().refused, 1);
    bench.receive(&Seg { window: 1, ..ack_of(BLOCK, CONTROL, &[]) });
    assert!(bench.due().is_empty(), "128 bytes are fewer than the segment");
    bench.receive(&ack_of(BLOCK, CONTROL, &[]));
    assert_eq!(bench.due().len(), 1);
}

#[test]
fn priority_and_ecn_stay_in_marked_and_forced_packets() {
    for version in [Version::V4, Version::V6] {
        for class in [0b1010_0010, 0b0111_1101, 0] {
            let mut bench = Bench::open(Style { version, ..PLAIN });
            let marked = bench.transmit(&Seg { class, ..data(0, BLOCK) });
            assert_eq!(marked.class, class & 0b1110_0011 | IMPORTANT << 2);
            bench.transmit(&Seg { class, ..data(BLOCK, BLOCK) });
            bench.ack(BLOCK, ECHO, &[]);
            assert_eq!(bench.due()[0].class, class & 0b1110_0011 | FORCED << 2);
        }
    }
}

#[test]
fn e7_a_retransmission_after_a_silent_clock_is_important() {
    let mut bench = Bench::open(PLAIN);
    bench.send_blocks(0..3);
    assert_eq!(bench.send(0, BLOCK), RED, "a retransmission is data as any other");
    bench.now += Time::from_ms(200);
    assert_eq!(bench.send(0, BLOCK), IMPORTANT);
    assert_eq!(bench.shim.counters().rearmed, 1);
}

#[test]
fn a_peer_without_a_shim_makes_the_flow_green() {
    let mut bench = Bench::open(PLAIN);
    let mut sent = Vec::new();
    for i in 0..5 {
        sent.push(bench.send(2 * i * BLOCK, BLOCK));
        sent.push(bench.send((2 * i + 1) * BLOCK, BLOCK));
        bench.now += Time::from_ms(101);
    }
    assert_eq!(sent[..6], [IMPORTANT, RED, IMPORTANT, RED, IMPORTANT, RED]);
    assert_eq!(sent[6..], [CONTROL; 4]);
    assert_eq!(bench.untracked(), vec![Reason::NoEcho]);
}

#[test]
fn whatever_the_shim_does_not_understand_leaves_green() {
    let mut restarted = Bench::new(ShimParams::default());
    assert_eq!(restarted.send(0, BLOCK), CONTROL, "after a restart");
    assert_eq!(restarted.shim.counters().untracked_packets, 1);
    let extra = |kind: u8| Seg { extra: vec![kind, 4, 0, 0], ..data(BLOCK, BLOCK) };
    for (odd, reason) in [
        (extra(30), Reason::Option),
        (extra(19), Reason::Option),
        (Seg { flags: ACK | URG, ..data(BLOCK, BLOCK) }, Reason::Urgent),
        (Seg { payload: vec![1, 2, 3], ..data(0, BLOCK) }, Reason::Stream),
        (Seg { seq: 5001 + (1 << 30), ..data(0, BLOCK) }, Reason::Stream),
    ] {
        let mut bench = Bench::open(PLAIN);
        assert_eq!(bench.send(0, BLOCK), IMPORTANT);
        let out = bench.outgoing(&frame(Version::V4, 0, &odd));
        assert_eq!(out, frame(Version::V4, 0, &odd), "{reason:?}");
        assert_eq!(bench.send(BLOCK, BLOCK), CONTROL);
        assert_eq!((bench.untracked(), bench.shim.flows()), (vec![reason], 0));
        assert_eq!((bench.shim.cached(), bench.shim.deadline()), (0, None));
    }
}

#[test]
fn odd_handshakes_are_not_tracked() {
    let syn = |bench: &mut Bench, change: fn(&mut Seg)| {
        let mut seg = syn_of(&PLAIN, 0);
        change(&mut seg);
        bench.outgoing(&frame(Version::V4, 0, &seg));
        bench.incoming(&frame(Version::V4, 1, &syn_of(&PLAIN, 1)));
        assert_eq!(bench.send(0, BLOCK), CONTROL);
        bench.untracked()
    };
    let bench = || Bench::new(ShimParams::default());
    assert_eq!(syn(&mut bench(), |s| s.extra.extend([34, 2, 1, 1])), [Reason::Option]);
    assert_eq!(syn(&mut bench(), |s| s.payload = vec![0; 9]), [Reason::SynData]);
    let mut full = Bench::new(ShimParams { flows_max: 0, ..ShimParams::default() });
    assert_eq!(syn(&mut full, |_| ()), [Reason::Full, Reason::Full]);
    // Accurate ECN is accepted.
    let mut bench = bench();
    bench.outgoing(&frame(Version::V4, 0, &Seg { flags: SYN | ECE | CWR, ..syn_of(&PLAIN, 0) }));
    let accepts = Seg { flags: SYN | ACK | CWR, ..syn_of(&PLAIN, 1) };
    bench.incoming(&frame(Version::V4, 1, &accepts));
    assert_eq!((bench.send(0, BLOCK), bench.untracked()), (CONTROL, vec![Reason::AccurateEcn]));
}

#[test]
fn a_full_cache_leaves_green() {
    let params = ShimParams { cache_max: 3000, ..ShimParams::default() };
    let mut bench = Bench::new(params);
    bench.handshake(&PLAIN);
    let sent: Vec<u8> = (0..4).map(|i| bench.send(i * BLOCK, BLOCK)).collect();
    assert_eq!(sent, [IMPORTANT, RED, CONTROL, CONTROL]);
    bench.ack(2 * BLOCK, ECHO, &[]);
    // Nothing of what is outstanding can be forced; the next data that fits is important.
    assert!(bench.due().is_empty());
    assert_eq!((bench.shim.counters().refused, bench.send(4 * BLOCK, BLOCK)), (1, IMPORTANT));
}

#[test]
fn handshakes_fins_and_resets_are_green() {
    let mut bench = Bench::new(ShimParams::default());
    let green = |bench: &mut Bench, seg: &Seg| bench.transmit(seg).importance() == CONTROL;
    assert!(green(&mut bench, &syn_of(&PLAIN, 0)));
    bench.receive(&syn_of(&PLAIN, 1));
    assert!(green(&mut bench, &Seg { flags: ACK | FIN, ..data(0, BLOCK) }));
    assert!(green(&mut bench, &Seg { flags: ACK | FIN, ..data(BLOCK, 0) }));
    assert!(green(&mut bench, &Seg { flags: RST, ..data(BLOCK, 0) }));
    assert_eq!(bench.shim.flows(), 0, "the host has reset it");
}

#[test]
fn only_a_reset_at_the_exact_number_ends_a_flow() {
    for (seq, flows) in [(PLAIN.isn[1] + 1, 0), (PLAIN.isn[1] + 2, 1)] {
        let mut bench = Bench::open(PLAIN);
        bench.send(0, BLOCK);
        let reset = Seg { seq, flags: RST, ..Seg::default() };
        assert!(bench.receive(&reset).is_some());
        assert_eq!(bench.shim.flows(), flows);
    }
}

#[test]
fn a_simultaneous_open_is_tracked() {
    let mut bench = Bench::new(ShimParams::default());
    let (ours, theirs) = (syn_of(&PLAIN, 0), syn_of(&PLAIN, 1));
    bench.transmit(&ours);
    bench.receive(&Seg { flags: SYN, ack: 0, ..theirs.clone() });
    bench.transmit(&Seg { flags: SYN | ACK, ack: PLAIN.isn[1] + 1, ..ours });
    bench.receive(&theirs);
    assert_eq!((bench.send(0, BLOCK), bench.shim.counters().tracked), (IMPORTANT, 1));
}

#[test]
fn a_strangers_syn_changes_nothing_and_the_hosts_own_begins_anew() {
    let mut bench = Bench::open(PLAIN);
    assert_eq!(bench.send(0, BLOCK), IMPORTANT);
    bench.receive(&Seg { flags: SYN, seq: 7, ack: 0, ..syn_of(&PLAIN, 1) });
    assert_eq!(bench.send(BLOCK, BLOCK), RED);
    bench.transmit(&Seg { seq: 77, ..syn_of(&PLAIN, 0) });
    assert_eq!((bench.send(2 * BLOCK, BLOCK), bench.shim.cached()), (CONTROL, 0));
}

#[test]
fn idle_flows_are_forgotten_and_busy_ones_are_not() {
    let mut bench = Bench::open(PLAIN);
    bench.send(0, BLOCK);
    bench.now += Time::from_s(599);
    bench.send(BLOCK, BLOCK);
    bench.now += Time::from_s(10);
    bench.shim.evict(bench.now);
    assert_eq!(bench.shim.flows(), 1);
    bench.now += Time::from_s(591);
    bench.shim.evict(bench.now);
    assert_eq!((bench.shim.flows(), bench.shim.cached()), (0, 0));
    // A handshake that nobody answers.
    bench.receive(&Seg { flags: SYN, ..syn_of(&PLAIN, 1) });
    bench.now += Time::from_s(6);
    bench.shim.evict(bench.now);
    assert_eq!((bench.shim.flows(), bench.shim.cached()), (0, 0));
}
