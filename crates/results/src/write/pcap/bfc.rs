//! The frame of backpressure flow control, as it is modelled: a MAC control frame with an opcode
//! that IEEE 802.3 leaves free, the number of one flow, and for how long it stops. BFC's own has a
//! Bloom filter of all flows that are paused, and no published format.

use crate::model::PauseRecord;

/// Without its check sequence: the least of Ethernet.
const LENGTH: usize = 60;

/// Puts a frame for one flow into `out`; its time is in nanoseconds, 0 to go on.
pub(super) fn frame(out: &mut Vec<u8>, record: &PauseRecord, vfid: u16) {
    let ns = u32::try_from(record.frame.duration.as_ps().div_ceil(1_000)).unwrap_or(u32::MAX);
    let [high, low] = record.tap.to_be_bytes();
    out.clear();
    out.extend_from_slice(&[
        0x01, 0x80, 0xC2, 0, 0, 1, 0x02, 0xFF, 0, 0, high, low, 0x88, 0x08, 0x0B, 0xFC,
    ]);
    out.extend_from_slice(&vfid.to_be_bytes());
    out.extend_from_slice(&ns.to_be_bytes());
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
        let pause = PauseFrame { target: PauseTarget::Flow(0x1234), duration: Time::from_us(100) };
        let rate = LinkRate::new(Rate::from_gbps(10));
        let record = PauseRecord { at: Time::ZERO, tap: 7, outgoing: true, frame: pause, rate };
        let mut out = Vec::new();
        frame(&mut out, &record, 0x1234);
        assert_eq!(out[10..22], [0, 7, 0x88, 0x08, 0x0B, 0xFC, 0x12, 0x34, 0, 1, 0x86, 0xA0]);
        assert!(out.len() == 60 && out[22..].iter().all(|byte| *byte == 0));
    }
}
