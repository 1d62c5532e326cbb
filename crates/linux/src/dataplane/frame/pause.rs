//! Pause frames: of a link (IEEE 802.3 annex 31B) and of priorities (IEEE 802.1Qbb, in 802.3 annex
//! 31D).
//!
//! A time is a number of quanta, each 512 bit times of the link. A frame of priorities has a bit
//! and a time for each of the eight; a frame of the link has one time, for all of them. A time of
//! zero lets go on.
//!
//! Invariant: MAC control frames are the link's: what is read here is never forwarded.

use super::Mac;

/// The EtherType of MAC control.
pub const ETHERTYPE: u16 = 0x8808;
/// The group that both kinds are sent to; no bridge forwards it (IEEE 802.1Q, table 8-1).
pub const GROUP: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 1]);
/// A frame's bytes, without its check sequence: the least that Ethernet has.
pub const LENGTH: usize = 60;
/// Bytes of the link's time in a quantum.
pub const QUANTUM_BYTES: u64 = 64;

const OF_LINK: u16 = 0x0001;
const OF_PRIORITIES: u16 = 0x0101;

/// The quanta for which a frame stops each priority; `None`: not in the frame.
pub type Quanta = [Option<u16>; 8];

/// Whether these bytes are a MAC control frame, of whatever kind.
#[inline]
pub fn is_control(frame: &[u8]) -> bool {
    frame.get(12..14).is_some_and(|kind| kind == ETHERTYPE.to_be_bytes())
}

/// Reads a MAC control frame. `None`: it is of another kind, or cut off.
pub fn read(frame: &[u8]) -> Option<Quanta> {
    let word = |at: usize| frame.get(at..at + 2).map(|w| u16::from_be_bytes([w[0], w[1]]));
    match word(14).filter(|_| is_control(frame))? {
        OF_LINK => Some([Some(word(16)?); 8]),
        OF_PRIORITIES => {
            let (enabled, _) = (word(16)?, word(32)?);
            Some(std::array::from_fn(|p| word(18 + 2 * p).filter(|_| enabled >> p & 1 == 1)))
        }
        _ => None,
    }
}

/// A frame with these quanta.
pub fn write(from: Mac, quanta: &Quanta) -> [u8; LENGTH] {
    let mut frame = [0; LENGTH];
    frame[..6].copy_from_slice(&GROUP.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
    frame[14..16].copy_from_slice(&OF_PRIORITIES.to_be_bytes());
    for (priority, quanta) in quanta.iter().enumerate() {
        if let Some(quanta) = quanta {
            frame[17] |= 1 << priority;
            frame[18 + 2 * priority..20 + 2 * priority].copy_from_slice(&quanta.to_be_bytes());
        }
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_by_hand() {
        let mut quanta = [None; 8];
        quanta[3] = Some(0xfffe);
        let frame = write(Mac([2, 0, 0, 0, 0, 7]), &quanta);
        assert_eq!(frame[..12], [0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 7]);
        assert_eq!(frame[12..18], [0x88, 0x08, 0x01, 0x01, 0, 0b1000]);
        assert_eq!(frame[18..28], [0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0]);
        assert!(frame[28..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn one_time_is_for_all_priorities() {
        let mut frame = write(Mac::default(), &[None; 8]);
        assert_eq!(read(&frame), Some([None; 8]));
        frame[14..18].copy_from_slice(&[0, 1, 0x12, 0x34]);
        assert_eq!(read(&frame), Some([Some(0x1234); 8]));
        assert_eq!((read(&frame[..18]), read(&frame[..17])), (Some([Some(0x1234); 8]), None));
        frame[15] = 2;
        assert!(read(&frame).is_none() && is_control(&frame), "of another kind");
        frame[13] = 0;
        assert!(!is_control(&frame));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(quanta: [Option<u16>; 8]) {
            prop_assert_eq!(read(&write(Mac::default(), &quanta)), Some(quanta));
        }
        #[test]
        fn any_bytes_are_a_frame_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..70),
            opcode in 0..3u16,
        ) {
            let mut bytes = bytes;
            if let (Some(kind), 1..) = (bytes.get_mut(12..16), opcode) {
                kind.copy_from_slice(&[0x88, 0x08, (opcode - 1) as u8, 1]);
            }
            if let Some(quanta) = read(&bytes) {
                prop_assert_eq!(read(&write(Mac::default(), &quanta)), Some(quanta));
            }
        }
    }
}
