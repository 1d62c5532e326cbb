//! A datagram: records of one switch for another.
//!
//! ```text
//! 0   "mpbd"                        4
//! 4   version 1, records, zeros     4
//! 8   from, to                      8
//! 16  epochs: from's; to's, as far  8
//!     as from has it, or 0
//! 24  number of the datagram        8
//! 32  records                      60 each, at most 22
//! ..  HMAC-SHA256 of it all        16, the first of 32 bytes
//!
//! 0   word, scope, protocol, zero   4
//! 4   source, destination          32
//! 36  source port, destination's    4
//! 40  sequence number               8
//! 48  queued, rate, TTL in us      12
//! ```
//!
//! Numbers are big-endian. Fields that a scope does not have are zero. A datagram without records
//! greets: it carries the epochs. The layout is fixed, so nothing is parsed before the tag was
//! looked at but the number of records.
//!
//! Invariant: whatever the bytes, decoding ends with what somebody with the key has written, or
//! with an error; and what was decoded encodes to the same bytes.

use super::{FlowKey, PeerId, Record, Target, Word};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Records of a datagram, at most: so many fit an Ethernet frame with room for a tunnel's headers.
pub const RECORDS: usize = 22;
/// A secret has at least so many bytes.
pub const SECRET_LEAST: usize = 16;

const MAGIC: [u8; 5] = *b"mpbd\x01";
const HEAD: usize = 32;
const RECORD: usize = 60;
const TAG: usize = 16;

/// The key that two switches share, and nobody else.
#[derive(Clone, Debug)]
pub struct Key {
    seals: Hmac<Sha256>,
    /// Any of them opens: a secret may be about to be changed.
    opens: Vec<Hmac<Sha256>>,
}

fn keyed(secret: &[u8]) -> Option<Hmac<Sha256>> {
    (secret.len() >= SECRET_LEAST).then(|| Hmac::new_from_slice(secret).ok()).flatten()
}
fn over(key: &Hmac<Sha256>, bytes: &[u8]) -> Hmac<Sha256> {
    let mut tag = key.clone();
    tag.update(bytes);
    tag
}

impl Key {
    /// From a secret, for both directions; `None`: it is too short.
    pub fn new(secret: &[u8]) -> Option<Key> {
        Key::between(secret, &[secret])
    }
    /// From a secret to send with, and those to receive with; `None`: one is too short.
    pub fn between<S: AsRef<[u8]>>(seals: &[u8], opens: &[S]) -> Option<Key> {
        let opens =
            opens.iter().map(|secret| keyed(secret.as_ref())).collect::<Option<Vec<_>>>()?;
        Some(Key { seals: keyed(seals)?, opens })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub from: PeerId,
    pub to: PeerId,
    pub epoch: u32,
    /// The receiver's, as far as the sender has it, else 0.
    pub to_epoch: u32,
    /// Ascending from 1 in the speaker's epoch.
    pub number: u64,
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
    fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_be_bytes)
    }
}

/// The datagram for at most [`RECORDS`] records.
pub fn encode(head: &Head, records: &[Record], key: &Key) -> Vec<u8> {
    let records = &records[..records.len().min(RECORDS)];
    let mut bytes = Vec::with_capacity(HEAD + records.len() * RECORD + TAG);
    bytes.extend(MAGIC);
    bytes.extend([records.len() as u8, 0, 0]);
    for word in [head.from, head.to, head.epoch, head.to_epoch] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(head.number.to_be_bytes());
    records.iter().for_each(|record| put(&mut bytes, record));
    let tag = over(&key.seals, &bytes).finalize().into_bytes();
    bytes.extend(&tag[..TAG]);
    bytes
}

/// Bytes of a datagram of so many records.
pub const fn length(records: usize) -> usize {
    HEAD + records * RECORD + TAG
}

fn put(bytes: &mut Vec<u8>, record: &Record) {
    let word = match record.word {
        Word::Pause => 1,
        Word::Resume => 2,
        Word::Refresh => 3,
        Word::Ask => 4,
        Word::Grant => 5,
        Word::Rate => 6,
    };
    let nobody =
        FlowKey { source: 0, destination: 0, source_port: 0, destination_port: 0, protocol: 0 };
    let (scope, flow) = match record.target {
        Target::Flow(flow) => (1, flow),
        Target::Application { address, port, protocol } => {
            (2, FlowKey { destination: address, destination_port: port, protocol, ..nobody })
        }
        Target::Peer => (3, nobody),
    };
    bytes.extend([word, scope, flow.protocol, 0]);
    bytes.extend(flow.source.to_be_bytes());
    bytes.extend(flow.destination.to_be_bytes());
    bytes.extend(flow.source_port.to_be_bytes());
    bytes.extend(flow.destination_port.to_be_bytes());
    bytes.extend(record.seq.to_be_bytes());
    for number in [record.queued, record.rate, record.ttl] {
        bytes.extend(number.to_be_bytes());
    }
}

/// A datagram's claims about itself, which nobody has vouched for yet. `None`: it is no datagram.
pub fn head(datagram: &[u8]) -> Option<Head> {
    let mut reader = Reader(datagram);
    let (magic, [records, 0, 0]) = (reader.take()?, reader.take()?) else { return None };
    let len = HEAD + usize::from(records) * RECORD + TAG;
    if magic != MAGIC || usize::from(records) > RECORDS || datagram.len() != len {
        return None;
    }
    Some(Head {
        from: reader.u32()?,
        to: reader.u32()?,
        epoch: reader.u32()?,
        to_epoch: reader.u32()?,
        number: reader.u64()?,
    })
}

/// Whether a datagram begins as those of the overlay do.
pub fn is_overlay(datagram: &[u8]) -> bool {
    datagram.starts_with(&MAGIC)
}

/// Whether somebody with `key` made the datagram as it is. A comparison in constant time: one that
/// ends early would reveal how much of a tag was guessed.
pub fn is_authentic(datagram: &[u8], key: &Key) -> bool {
    let Some((sealed, tag)) = datagram.split_last_chunk::<TAG>() else { return false };
    key.opens.iter().any(|key| over(key, sealed).verify_truncated_left(tag).is_ok())
}

/// The records of a datagram. `None`: one has no meaning.
pub fn records(datagram: &[u8]) -> Option<Vec<Record>> {
    head(datagram)?;
    let (_, rest) = datagram.split_at_checked(HEAD)?;
    let (records, _) = rest.split_last_chunk::<TAG>()?;
    records.chunks_exact(RECORD).map(record).collect()
}

fn record(bytes: &[u8]) -> Option<Record> {
    let mut reader = Reader(bytes);
    let [word, scope, protocol, 0] = reader.take()? else { return None };
    let (source, destination) = (reader.u128()?, reader.u128()?);
    let (source_port, destination_port) = (reader.u16()?, reader.u16()?);
    let target = match (scope, source, source_port) {
        (1, ..) => {
            Target::Flow(FlowKey { source, destination, source_port, destination_port, protocol })
        }
        (2, 0, 0) => Target::Application { address: destination, port: destination_port, protocol },
        (3, 0, 0) if (destination, destination_port, protocol) == (0, 0, 0) => Target::Peer,
        _ => return None,
    };
    let word = match word {
        1 => Word::Pause,
        2 => Word::Resume,
        3 => Word::Refresh,
        4 => Word::Ask,
        5 => Word::Grant,
        6 => Word::Rate,
        _ => return None,
    };
    Some(Record {
        word,
        target,
        seq: reader.u64()?,
        queued: reader.u32()?,
        rate: reader.u32()?,
        ttl: reader.u32()?,
    })
}
