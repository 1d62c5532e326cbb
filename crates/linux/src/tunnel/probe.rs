//! Probes: small datagrams by which two switches find out which paths between them work.
//!
//! ```text
//! 0    0x6d, version 2 << 4            2
//! 2    label: the path, of the sender  2
//! 4    number of the secret; 0: none   2
//! 6    length of the datagram          2
//! 8    what the sender has drawn      16
//! 24   its record of the peer's draw  16
//! 40   when it was sent                8   ns, of the sender's clock
//! 48   the newest probe received here: 8   when that was sent, of the peer's clock; 0: none
//! 56   for how long it has waited      8   ns
//! 64   the newest padded one: when     8   of the peer's clock; 0: none
//! 72   and its length                  2
//! 74   zeros                           6
//! 80   tag; zeros without a secret    16
//! 96   padding                            zeros
//! ```
//!
//! Numbers are big-endian. The tag covers what is before it; the length shows the padding.
//!
//! Invariant: what was read is written as the same bytes; with secrets, it was made by who has one.

use super::secret::{Nonce, Secrets};
use millpond_core::Time;

/// Bytes of a probe without padding.
pub const LENGTH: usize = 96;
const MARK: u8 = 0x6d;
const VERSION: u8 = 2 << 4;
const TAG: usize = 80;

/// A padded probe that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padded {
    /// When it was sent, of its sender's clock.
    pub sent: Time,
    /// Of the datagram, in bytes.
    pub length: u16,
}

/// The message of one end over one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The path, as the sender numbers it.
    pub label: u16,
    /// The sender's nonce.
    pub from: Nonce,
    /// The peer's nonce, as the sender has it; zeros: it has none.
    pub to: Nonce,
    /// When it was sent.
    pub sent: Time,
    /// When the newest probe received over this path was sent, by the peer's clock.
    pub newest: Option<Time>,
    /// How long that has waited.
    pub waited: Time,
    /// The newest padded probe that was received.
    pub padded: Option<Padded>,
    /// Of the datagram.
    pub length: u16,
}

/// Why a datagram is no probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Another version's, or cut off.
    Malformed,
    /// Nobody with a secret has made it.
    Stranger,
}

fn ns(time: Time) -> [u8; 8] {
    (time.as_ps() / 1000).to_be_bytes()
}

/// Whether a datagram has the form of a probe.
pub fn is_probe(datagram: &[u8]) -> bool {
    matches!(datagram, [MARK, VERSION, ..])
}

impl Probe {
    /// As a datagram of `length` bytes, or as many as it needs.
    pub fn write(&self, secrets: Option<&Secrets>) -> Vec<u8> {
        let length = usize::from(self.length).max(LENGTH);
        let secret = secrets.and_then(Secrets::first);
        let mut bytes = vec![0; length];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&[MARK, VERSION]);
        put(&self.label.to_be_bytes());
        put(&secret.map_or(0, |secret| secret.id).to_be_bytes());
        put(&(length as u16).to_be_bytes());
        put(&self.from);
        put(&self.to);
        put(&ns(self.sent));
        put(&ns(self.newest.unwrap_or(Time::ZERO)));
        put(&ns(self.waited));
        let padded = self.padded.unwrap_or_default();
        put(&ns(padded.sent));
        put(&padded.length.to_be_bytes());
        if let Some(secret) = secret {
            let tag = secret.tag(&bytes[..TAG]);
            bytes[TAG..LENGTH].copy_from_slice(&tag);
        }
        bytes
    }

    /// Reads a probe. With `secrets`, its tag must be of one of them.
    ///
    /// # Errors
    /// [`Wrong::Malformed`] if the datagram is no probe of this version, [`Wrong::Stranger`] if its
    /// tag is of no secret, or has one where none is expected.
    pub fn read(datagram: &[u8], secrets: Option<&Secrets>) -> Result<Probe, Wrong> {
        let head: &[u8; LENGTH] = datagram.first_chunk().ok_or(Wrong::Malformed)?;
        let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let time_at = |at: usize| {
            let ns = u64::from_be_bytes(std::array::from_fn(|i| head[at + i]));
            // Nobody's clock goes beyond what a time can be.
            (ns <= u64::MAX / 1000).then(|| Time::from_ns(ns)).ok_or(Wrong::Malformed)
        };
        let nonce_at = |at: usize| -> Nonce { std::array::from_fn(|i| head[at + i]) };
        if !is_probe(datagram)
            || usize::from(u16_at(6)) != datagram.len()
            || head[74..TAG] != [0; 6]
        {
            return Err(Wrong::Malformed);
        }
        let tag: [u8; 16] = std::array::from_fn(|i| head[TAG + i]);
        match secrets {
            Some(secrets) => {
                let secret = secrets.find(u16_at(4)).ok_or(Wrong::Stranger)?;
                if !secret.is_tag(&head[..TAG], &tag) {
                    return Err(Wrong::Stranger);
                }
            }
            None if u16_at(4) != 0 || tag != [0; 16] => return Err(Wrong::Stranger),
            None => {}
        }
        if datagram[LENGTH..].iter().any(|byte| *byte != 0) {
            return Err(Wrong::Malformed);
        }
        let newest = time_at(48)?;
        let padded = Padded { sent: time_at(64)?, length: u16_at(72) };
        if padded.length == 0 && padded.sent > Time::ZERO {
            return Err(Wrong::Malformed);
        }
        Ok(Probe {
            label: u16_at(2),
            from: nonce_at(8),
            to: nonce_at(24),
            sent: time_at(40)?,
            newest: (newest > Time::ZERO).then_some(newest),
            waited: time_at(56)?,
            padded: (padded.length > 0).then_some(padded),
            length: datagram.len() as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secrets(text: &str) -> Secrets {
        Secrets::parse(text).unwrap()
    }

    proptest! {
        #[test]
        fn is_read_as_it_was_written(
            label: u16,
            from: Nonce,
            to: Nonce,
            times in proptest::array::uniform4(0u64..1 << 50),
            padded in proptest::option::of(1u16..),
            length in LENGTH as u16..9000,
            with_key: bool,
        ) {
            let time = |i: usize| Time::from_ns(times[i]);
            let probe = Probe {
                label,
                from,
                to,
                sent: time(0),
                newest: (times[1] > 0).then(|| time(1)),
                waited: time(2),
                padded: padded.map(|length| Padded { sent: time(3), length }),
                length,
            };
            let keys = secrets("0123456789abcdef\nanother one of them");
            let keys = with_key.then_some(&keys);
            let bytes = probe.write(keys);
            prop_assert_eq!(bytes.len(), usize::from(length));
            prop_assert_eq!(Probe::read(&bytes, keys), Ok(probe));
        }
        /// A bit that is turned before the padding is noticed by who has a key.
        #[test]
        fn forgeries_are_strangers(bit in 16usize..LENGTH * 8) {
            let keys = secrets("0123456789abcdef");
            let mut bytes = Probe { label: 3, ..Probe::default() }.write(Some(&keys));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Probe::read(&bytes, Some(&keys)).is_err());
        }
        #[test]
        fn any_bytes(mut bytes: Vec<u8>, like: bool) {
            if like && bytes.len() > 1 {
                (bytes[0], bytes[1]) = (MARK, VERSION);
            }
            let _ = Probe::read(&bytes, None);
            prop_assert!(Probe::read(&bytes, Some(&secrets("0123456789abcdef"))).is_err());
        }
    }

    #[test]
    fn who_has_a_key_hears_nobody_without_and_the_other_way_round() {
        let (keys, probe) = (secrets("0123456789abcdef"), Probe::default());
        assert_eq!(Probe::read(&probe.write(None), Some(&keys)), Err(Wrong::Stranger));
        assert_eq!(Probe::read(&probe.write(Some(&keys)), None), Err(Wrong::Stranger));
        // A key that is being changed: either end knows both.
        let (before, after) = (
            secrets("0123456789abcdef\nthe next one ...."),
            secrets("the next one ....\n0123456789abcdef"),
        );
        assert!(Probe::read(&probe.write(Some(&before)), Some(&after)).is_ok());
        assert!(Probe::read(&probe.write(Some(&after)), Some(&before)).is_ok());
        assert_eq!(Probe::read(&probe.write(Some(&after)), Some(&keys)), Err(Wrong::Stranger));
    }
}
