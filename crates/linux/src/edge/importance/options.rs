//! TCP options: what a shim understands, and the option of an echo that a shim sends itself.
//!
//! Follows RFC 9293 §3.1, RFC 7323 (timestamps, window scale), RFC 2018 and RFC 2883 (SACK, DSACK)
//! and RFC 6994 (experiments).
//!
//! Invariant: a list that holds an unknown or malformed option gives `None`.

const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const STAMPS: u8 = 8;
/// RFC 6994's option for experiments, and this experiment's number.
const EXPERIMENT: u8 = 254;
const NUMBER: [u8; 2] = [0x54, 0x4c];
/// The largest shift of a window (RFC 7323 §2.3).
const SCALE_MAX: u8 = 14;
/// Ranges that an option of 40 bytes has room for.
pub(super) const RANGES_MAX: usize = 4;

/// Ranges of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocks {
    list: [(u32, u32); RANGES_MAX],
    count: usize,
}

impl Blocks {
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.list[..self.count]
    }
    fn read(body: &[u8]) -> Option<Blocks> {
        let mut blocks = Blocks::default();
        let (pairs, rest) = body.as_chunks::<8>();
        if !rest.is_empty() || pairs.len() > RANGES_MAX {
            return None;
        }
        for (place, [a, b, c, d, e, f, g, h]) in blocks.list.iter_mut().zip(pairs) {
            *place = (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]));
        }
        blocks.count = pairs.len();
        Some(blocks)
    }
}

/// Offers of a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    /// The longest segment that its sender takes; 0: not in the packet.
    pub mss: u16,
    pub scale: Option<u8>,
    pub sack: bool,
    /// TSval and TSecr.
    pub stamps: Option<(u32, u32)>,
}

/// The options of a packet that is not a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// TSval and TSecr.
    pub stamps: Option<(u32, u32)>,
    pub sack: Blocks,
    /// Where the SACK option is in the list, and its length.
    pub sack_at: Option<(usize, usize)>,
    /// Ranges that have passed the peer's shim, if the shim has sent the packet.
    pub echo: Option<Blocks>,
}

/// Calls `each` with kind, place and body of each option; whether all were understood.
fn walk(list: &[u8], mut each: impl FnMut(u8, usize, &[u8]) -> Option<()>) -> Option<()> {
    let mut at = 0;
    while let Some(&kind) = list.get(at) {
        match kind {
            0 => return Some(()),
            1 => at += 1,
            _ => {
                let length = usize::from(*list.get(at + 1)?);
                each(kind, at, list.get(at + 2..at + length)?)?;
                at += length;
            }
        }
    }
    Some(())
}

/// Reads a SYN's options.
pub(super) fn offer(list: &[u8]) -> Option<Offer> {
    let mut offer = Offer::default();
    walk(list, |kind, _, body| {
        match (kind, body) {
            (MSS, [a, b]) => offer.mss = u16::from_be_bytes([*a, *b]),
            (SCALE, [shift]) => offer.scale = Some((*shift).min(SCALE_MAX)),
            (SACK_PERMITTED, []) => offer.sack = true,
            (STAMPS, [a, b, c, d, e, f, g, h]) => {
                let stamps = [[*a, *b, *c, *d], [*e, *f, *g, *h]].map(u32::from_be_bytes);
                offer.stamps = Some((stamps[0], stamps[1]));
            }
            _ => return None,
        }
        Some(())
    })?;
    Some(offer)
}

/// Reads the options of a packet that is not a SYN.
pub(super) fn read(list: &[u8]) -> Option<Options> {
    let mut options = Options::default();
    walk(list, |kind, at, body| {
        match (kind, body) {
            (STAMPS, [a, b, c, d, e, f, g, h]) => {
                let stamps = [[*a, *b, *c, *d], [*e, *f, *g, *h]].map(u32::from_be_bytes);
                options.stamps = Some((stamps[0], stamps[1]));
            }
            (SACK, _) if options.sack_at.is_none() => {
                options.sack = Blocks::read(body)?;
                options.sack_at = Some((at, body.len() + 2));
            }
            (EXPERIMENT, [a, b, ranges @ ..]) if [*a, *b] == NUMBER => {
                options.echo = Some(Blocks::read(ranges)?);
            }
            _ => return None,
        }
        Some(())
    })?;
    Some(options)
}

/// Appends the timestamps, aligned as Linux has them.
pub(super) fn write_stamps(list: &mut Vec<u8>, value: u32, echo: u32) {
    list.extend([1, 1, STAMPS, 10]);
    list.extend(value.to_be_bytes());
    list.extend(echo.to_be_bytes());
}

/// Appends the option of a packet that a shim has sent, with the ranges that have passed it. The
/// list stays within 40 bytes.
pub(super) fn write_echo(list: &mut Vec<u8>, ranges: impl Iterator<Item = (u32, u32)>) {
    let start = list.len();
    list.extend([EXPERIMENT, 4, NUMBER[0], NUMBER[1]]);
    for (from, to) in ranges.take((40 - list.len()) / 8) {
        list.extend(from.to_be_bytes());
        list.extend(to.to_be_bytes());
    }
    list[start + 1] = (list.len() - start) as u8;
}

/// Whether the first block reports a duplicate (RFC 2883 §4): it lies below the acknowledgement, or
/// within the second block.
pub(super) fn has_dsack(ack: u32, blocks: &Blocks) -> bool {
    let is_within = |(from, to): (u32, u32), (low, high): (u32, u32)| {
        from.wrapping_sub(low) as i32 >= 0 && high.wrapping_sub(to) as i32 >= 0
    };
    match blocks.as_slice() {
        [first, rest @ ..] => {
            ack.wrapping_sub(first.1) as i32 >= 0
                || rest.first().is_some_and(|second| is_within(*first, *second))
        }
        [] => false,
    }
}

/// Takes the first block out of the SACK option at `at`. The list keeps its length; NOPs fill it.
pub(super) fn strip_first(list: &mut [u8], at: usize, length: usize) {
    let end = at + length;
    if length <= 10 {
        list[at..end].fill(1);
        return;
    }
    list.copy_within(at + 10..end, at + 2);
    list[end - 8..end].fill(1);
    list[at + 1] = (length - 8) as u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINUX_SYN: [u8; 20] = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];

    #[test]
    fn syn_options_of_linux_are_known_and_others_are_not() {
        let known = Offer { mss: 1460, scale: Some(7), sack: true, stamps: Some((9, 0)) };
        assert_eq!(offer(&LINUX_SYN), Some(known));
        assert_eq!(offer(&[]), Some(Offer::default()));
        for kind in [6, 19, 29, 30, 34, 253, 254] {
            assert_eq!(offer(&[kind, 2, 0, 0]), None, "option {kind}");
            assert_eq!(read(&[1, 1, kind, 2]), None, "option {kind}");
        }
        for malformed in [&[2u8, 0][..], &[2, 1], &[2], &[2, 9, 1, 1], &[3, 2], &[8, 4, 1, 1]] {
            assert_eq!(offer(malformed), None);
            assert_eq!(read(malformed), None);
        }
    }

    #[test]
    fn stripping_a_dsack_leaves_the_other_blocks_and_nops() {
        let mut list = vec![1, 1, SACK, 18];
        for edge in [100u32, 200, 1000, 2000] {
            list.extend(edge.to_be_bytes());
        }
        let options = read(&list).unwrap();
        assert!(has_dsack(500, &options.sack), "below the acknowledgement");
        assert!(!has_dsack(50, &options.sack), "a block of its own");
        let (at, length) = options.sack_at.unwrap();
        strip_first(&mut list, at, length);
        let left = read(&list).unwrap();
        assert_eq!(left.sack.as_slice(), [(1000, 2000)]);
        assert_eq!(list[12..], [1; 8]);
        let (at, length) = left.sack_at.unwrap();
        strip_first(&mut list, at, length);
        assert_eq!(list, [1; 20]);
        let nested = Blocks { list: [(110, 120), (100, 200), (0, 0), (0, 0)], count: 2 };
        assert!(has_dsack(50, &nested), "within the second block");
        let wrapped = Blocks { list: [(u32::MAX - 5, 3), (0, 0), (0, 0), (0, 0)], count: 1 };
        assert!(has_dsack(3, &wrapped) && !has_dsack(2, &wrapped));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(list in prop::collection::vec(0u8..40, 0..40)) {
            let _ = offer(&list);
            if let Some(Options { sack_at: Some(at), .. }) = read(&list) {
                let mut stripped = list.clone();
                strip_first(&mut stripped, at.0, at.1);
                prop_assert_eq!(stripped.len(), list.len());
                prop_assert!(read(&stripped).is_some());
            }
        }

        #[test]
        fn an_echo_is_read_as_it_was_written(
            ranges in prop::collection::vec(any::<(u32, u32)>(), 0..6),
            stamps: Option<(u32, u32)>,
        ) {
            let mut list = Vec::new();
            if let Some(stamps) = stamps {
                write_stamps(&mut list, stamps.0, stamps.1);
            }
            write_echo(&mut list, ranges.iter().copied());
            prop_assert!(list.len() <= 40 && list.len().is_multiple_of(4));
            let options = read(&list).unwrap();
            let count = ranges.len().min(if stamps.is_some() { 3 } else { 4 });
            prop_assert_eq!(options.stamps, stamps);
            let echo = options.echo.unwrap();
            prop_assert_eq!(echo.as_slice(), &ranges[..count]);
        }
    }
}
