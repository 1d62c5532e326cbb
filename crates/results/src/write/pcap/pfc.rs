//! The frame of priority-based flow control (IEEE 802.1Qbb; 802.3 annex 31D): address, length/type,
//! opcode, the priorities that it is of, a time for each. Its source address is of no node and ends
//! with the capture's number.

use crate::model::PauseRecord;
use millpond_core::packet::PRIORITIES;

/// Without its check sequence: the least of Ethernet.
const LENGTH: usize = 60;
/// Times are counted in times of 512 bits.
const QUANTUM_BYTES: u64 = 64;

/// Puts a frame for one priority into `out`.
pub(super) fn frame(out: &mut Vec<u8>, record: &PauseRecord, priority: u8) {
    let quantum = record.rate.time(QUANTUM_BYTES).as_ps().max(1);
    let quanta = u16::try_from(record.frame.duration.as_ps().div_ceil(quantum)).unwrap_or(u16::MAX);
    let [high, low] = record.tap.to_be_bytes();
    out.clear();
    out.extend_from_slice(&[
        0x01, 0x80, 0xC2, 0, 0, 1, 0x02, 0xFF, 0, 0, high, low, 0x88, 0x08, 0x01, 0x01,
    ]);
    out.extend_from_slice(&(1u16 << priority).to_be_bytes());
    for it in 0..PRIORITIES {
        let quanta = if it == usize::from(priority) { quanta } else { 0 };
        out.extend_from_slice(&quanta.to_be_bytes());
    }
    out.resize(LENGTH, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::switch::pause::{PauseFrame, PauseTarget};
    use millpond_core::switch::port::LinkRate;
    use millpond_core::{Rate, Time};

    #[test]
    fn a_pause_by_hand() {
        let mut out = Vec::new();
        // 512 bits take 51.2 ns.
        let rate = LinkRate::new(Rate::from_gbps(10));
        let record = |ps| {
            let frame =
                PauseFrame { target: PauseTarget::Priority(3), duration: Time::from_ps(ps) };
            PauseRecord { at: Time::ZERO, tap: 7, outgoing: true, frame, rate }
        };
        frame(&mut out, &record(0xFFFE * 51_200), 3);
        assert_eq!(out[..12], [0x01, 0x80, 0xC2, 0, 0, 1, 2, 0xFF, 0, 0, 0, 7]);
        assert_eq!(out[12..18], [0x88, 0x08, 0x01, 0x01, 0, 0b1000]);
        assert_eq!(out[18..28], [0, 0, 0, 0, 0, 0, 0xFF, 0xFE, 0, 0]);
        assert!(out.len() == 60 && out[28..].iter().all(|byte| *byte == 0));
        for (ps, quanta) in [(0, 0), (1, 1), (51_200, 1), (51_201, 2), (51_200 * 70_000, 0xFFFF)] {
            frame(&mut out, &record(ps), 3);
            assert_eq!(out[24..26], u16::to_be_bytes(quanta), "{ps} ps");
        }
    }
}
