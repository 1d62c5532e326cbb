//! A session: frames that are sealed for one peer, and opened once.
//!
//! ```text
//! 0    0x6d, version 3 << 4 | flags      2
//! 2    label: the path                   2
//! 4    flowcell                          2
//! 6    number of the key                 2
//! 8    number of the datagram            8   of this path, ascending
//! 16   the frame, encrypted
//! ..   tag                              16
//! ```
//!
//! The sixteen bytes before the frame are authenticated as they are. Label and number are the
//! nonce: numbers never begin anew while the process lives, and another process has other keys.
//!
//! Each path has a window of numbers, since paths overtake each other by more than a window.
//! Datagrams of one path change places in a queue by priority at most.
//!
//! Invariant: no nonce is used twice with a key; a datagram is opened at most once.

use super::secret::{Nonce, Secrets};
use crate::encapsulation::Encapsulation;
use millpond_core::overlay;
use ring::aead::{self, Aad, LessSafeKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes before a sealed frame.
pub const HEAD: usize = 16;
/// Bytes behind it.
pub const TAG: usize = 16;
const MARK: u8 = 0x6d;
const VERSION: u8 = 3 << 4;
const PARTIAL: u8 = 1;
/// Numbers that may come late, of one path.
const WINDOW: u64 = 2048;
/// Processes of the peer that have ended, which are not believed again.
const RETIRED: usize = 256;
/// The most paths that windows are kept for.
const LABELS: usize = 256;

/// Why a datagram was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is no sealed frame of this version.
    Malformed,
    /// The peer has not made it, or not for this process.
    Stranger,
    /// It has come before, or far too late.
    Replayed,
}

/// The numbers of one path that have come.
#[derive(Clone)]
struct Window {
    /// The greatest, and one.
    next: u64,
    bits: [u64; (WINDOW / 64) as usize],
}

impl Window {
    fn new() -> Window {
        Window { next: 0, bits: [0; (WINDOW / 64) as usize] }
    }
    /// Whether a number has not come and may still.
    fn is_open(&self, number: u64) -> bool {
        if number >= self.next {
            return true;
        }
        self.next - number <= WINDOW
            && self.bits[(number % WINDOW / 64) as usize] & 1 << (number % 64) == 0
    }
    /// It has come. Only for what is authentic: the window moves.
    fn close(&mut self, number: u64) {
        if number >= self.next {
            let gone = (number + 1 - self.next).min(WINDOW);
            for skipped in number + 1 - gone..=number {
                self.bits[(skipped % WINDOW / 64) as usize] &= !(1 << (skipped % 64));
            }
            self.next = number + 1;
        }
        self.bits[(number % WINDOW / 64) as usize] |= 1 << (number % 64);
    }
}

/// The keys that open the frames of one process of the peer.
struct Opening {
    theirs: Nonce,
    /// A key for each secret, by its number.
    keys: Vec<(u16, LessSafeKey)>,
    windows: Vec<Window>,
}

impl Opening {
    fn new(secrets: &Secrets, theirs: Nonce, mine: &Nonce) -> Opening {
        let keys = secrets.all().iter().map(|secret| secret.frames(&theirs, mine)).collect();
        Opening { theirs, keys, windows: Vec::new() }
    }
    fn key(&self, id: u16) -> Option<&LessSafeKey> {
        self.keys.iter().find(|(known, _)| *known == id).map(|(_, key)| key)
    }
}

/// The agreement of this process with one peer.
pub struct Session {
    secrets: Secrets,
    mine: Nonce,
    sealing: Option<(u16, LessSafeKey)>,
    /// Of the process that is there.
    current: Option<Opening>,
    /// Of a peer whose probe has come and that may lack this process's nonce: it is there when one
    /// of its frames opens, since those are made for this process.
    candidate: Option<Opening>,
    retired: VecDeque<Nonce>,
    /// The next datagram's number, by path. Never anew, whoever the peer is.
    numbers: Vec<u64>,
}

fn nonce(label: u16, number: u64) -> aead::Nonce {
    let mut bytes = [0; aead::NONCE_LEN];
    bytes[..2].copy_from_slice(&label.to_be_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    aead::Nonce::assume_unique_for_key(bytes)
}

/// Returns sixteen random bytes.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn draw() -> std::io::Result<Nonce> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("the kernel gives no random bytes"))?;
    Ok(bytes)
}

impl Session {
    /// Of a process that has drawn `mine`.
    pub fn new(secrets: Secrets, mine: Nonce) -> Session {
        Session {
            secrets,
            mine,
            sealing: None,
            current: None,
            candidate: None,
            retired: VecDeque::new(),
            numbers: Vec::new(),
        }
    }
    /// The secrets, for probes.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }
    /// Whether frames can be sealed.
    pub fn is_open(&self) -> bool {
        self.sealing.is_some()
    }
    /// The nonce of the peer's process, as far as it is known.
    pub fn theirs(&self) -> Option<Nonce> {
        self.current.as_ref().map(|current| current.theirs)
    }

    /// The key that authenticates control datagrams between the two processes; `None`: there is no
    /// session yet.
    pub fn overlay_key(&self) -> Option<overlay::Key> {
        let theirs = self.theirs()?;
        let ours = self.secrets.first()?.overlay(&self.mine, &theirs);
        let others: Vec<_> =
            self.secrets.all().iter().map(|secret| secret.overlay(&theirs, &self.mine)).collect();
        overlay::Key::between(&ours, &others)
    }

    /// Whether that process of the peer has ended.
    pub fn is_retired(&self, drawn: &Nonce) -> bool {
        self.retired.contains(drawn)
    }

    /// The key file has changed. The agreement stays, as far as the secrets do.
    pub fn set_secrets(&mut self, secrets: Secrets) {
        self.secrets = secrets;
        self.candidate = None;
        if let Some(Opening { theirs, windows, .. }) = self.current.take() {
            let opening = Opening { windows, ..Opening::new(&self.secrets, theirs, &self.mine) };
            self.agree(opening);
        }
    }

    /// An authentic probe: the peer has drawn `theirs`, and `to` is the one of ours that it has.
    /// Whether a session has begun by it.
    pub fn greeted(&mut self, theirs: Nonce, to: Nonce) -> bool {
        if self.theirs() == Some(theirs) || self.is_retired(&theirs) {
            return false;
        }
        let known = self.candidate.take().filter(|candidate| candidate.theirs == theirs);
        let opening = known.unwrap_or_else(|| Opening::new(&self.secrets, theirs, &self.mine));
        // Only a peer with this process's nonce is there now: else an old probe, sent again,
        // could bring back a process that has ended.
        let is_there = to == self.mine;
        if is_there {
            self.agree(opening);
        } else {
            self.candidate = Some(opening);
        }
        is_there
    }

    fn agree(&mut self, opening: Opening) {
        if let Some(old) = self.theirs().filter(|old| *old != opening.theirs) {
            self.retired.push_back(old);
            if self.retired.len() > RETIRED {
                self.retired.pop_front();
            }
        }
        self.sealing =
            self.secrets.first().map(|secret| secret.frames(&self.mine, &opening.theirs));
        self.current = Some(opening);
    }

    /// Appends a sealed datagram to `out`; `parts` are the frame. Whether it could: else there is
    /// no session yet.
    pub fn seal(&mut self, stamp: &Encapsulation, parts: [&[u8]; 2], out: &mut Vec<u8>) -> bool {
        let Some((id, key)) = &self.sealing else { return false };
        let at = usize::from(stamp.label);
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, 0);
        }
        let number = self.numbers[at];
        self.numbers[at] += 1;
        let start = out.len();
        let mut head = [0; HEAD];
        head[..2].copy_from_slice(&[MARK, VERSION | if stamp.partial { PARTIAL } else { 0 }]);
        for (place, word) in [stamp.label, stamp.flowcell, *id].into_iter().enumerate() {
            head[2 + 2 * place..4 + 2 * place].copy_from_slice(&word.to_be_bytes());
        }
        head[8..].copy_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&head);
        parts.iter().for_each(|part| out.extend_from_slice(part));
        let frame = &mut out[start + HEAD..];
        let sealed =
            key.seal_in_place_separate_tag(nonce(stamp.label, number), Aad::from(head), frame);
        match sealed {
            Ok(tag) => out.extend_from_slice(tag.as_ref()),
            // Only a frame of 64 GB is refused.
            Err(_) => out.truncate(start),
        }
        sealed.is_ok()
    }

    /// Opens a datagram in place. Returns its stamp, and the range of the frame in it.
    ///
    /// # Errors
    /// [`Refused::Malformed`] if it is no sealed frame of this version, [`Refused::Stranger`] if
    /// the peer did not make it for this process, [`Refused::Replayed`] if it came before or too
    /// late.
    pub fn open(&mut self, datagram: &mut [u8]) -> Result<(Encapsulation, Range<usize>), Refused> {
        let Some((head, sealed)) = datagram.split_first_chunk_mut::<HEAD>() else {
            return Err(Refused::Malformed);
        };
        let [MARK, kind, rest @ ..] = *head else { return Err(Refused::Malformed) };
        if kind & !PARTIAL != VERSION || sealed.len() < TAG {
            return Err(Refused::Malformed);
        }
        let u16_at = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
        let (label, flowcell, id) = (u16_at(0), u16_at(2), u16_at(4));
        let number = u64::from_be_bytes(std::array::from_fn(|i| rest[6 + i]));
        let place = usize::from(label);
        if place >= LABELS || number == u64::MAX {
            return Err(Refused::Malformed);
        }
        let has_key = |opening: &&mut Opening| opening.key(id).is_some();
        let is_current = self.current.as_ref().is_some_and(|current| current.key(id).is_some());
        let opening = if is_current { &mut self.current } else { &mut self.candidate };
        let opening = opening.as_mut().filter(has_key).ok_or(Refused::Stranger)?;
        if opening.windows.get(place).is_some_and(|window| !window.is_open(number)) {
            return Err(Refused::Replayed);
        }
        let key = opening.key(id).ok_or(Refused::Stranger)?;
        let opened = key.open_in_place(nonce(label, number), Aad::from(&*head), sealed);
        let length = opened.map_err(|_| Refused::Stranger)?.len();
        if opening.windows.len() <= place {
            opening.windows.resize(place + 1, Window::new());
        }
        opening.windows[place].close(number);
        if !is_current && let Some(candidate) = self.candidate.take() {
            self.agree(candidate);
        }
        Ok((Encapsulation { label, flowcell, partial: kind & PARTIAL != 0 }, HEAD..HEAD + length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn secrets(text: &str) -> Secrets {
        Secrets::parse(text).unwrap()
    }
    fn pair() -> [Session; 2] {
        let session = |drawn: u8| Session::new(secrets("0123456789abcdef"), [drawn; 16]);
        let [mut a, mut b] = [session(1), session(2)];
        assert!(a.greeted([2; 16], [1; 16]) && b.greeted([1; 16], [2; 16]));
        [a, b]
    }
    fn seal(from: &mut Session, label: u16, frame: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let (front, rest) = frame.split_at(frame.len() / 2);
        assert!(from.seal(
            &Encapsulation { label, flowcell: 7, partial: true },
            [front, rest],
            &mut out
        ));
        out
    }

    #[test]
    fn a_datagram_is_opened_once_and_by_its_peer() {
        let [mut a, mut b] = pair();
        let sealed = seal(&mut a, 3, b"a frame");
        assert_eq!(sealed.len(), HEAD + 7 + TAG);
        assert!(!sealed.windows(7).any(|part| part == b"a frame"), "encrypted");
        let mut copy = sealed.clone();
        let (stamp, frame) = b.open(&mut copy).unwrap();
        assert_eq!(stamp, Encapsulation { label: 3, flowcell: 7, partial: true });
        assert_eq!(&copy[frame], b"a frame");
        assert_eq!(b.open(&mut sealed.clone()), Err(Refused::Replayed));
        // Sent back to who made it; and to another process.
        assert_eq!(a.open(&mut sealed.clone()), Err(Refused::Stranger));
        let mut later = Session::new(secrets("0123456789abcdef"), [9; 16]);
        assert_eq!(later.open(&mut sealed.clone()), Err(Refused::Stranger));
        assert!(later.greeted([1; 16], [9; 16]));
        assert_eq!(later.open(&mut sealed.clone()), Err(Refused::Stranger));
    }

    #[test]
    fn a_frame_opens_before_its_sender_is_known_to_know_us() {
        let session = |drawn: u8| Session::new(secrets("0123456789abcdef"), [drawn; 16]);
        let [mut a, mut b] = [session(1), session(2)];
        // `b` has others `a`'s first probe, and `a` has its answer: frames overtake the next probe.
        assert!(!b.greeted([1; 16], [0; 16]) && a.greeted([2; 16], [1; 16]));
        assert!(!b.is_open());
        let sealed = seal(&mut a, 0, b"x");
        assert!(b.open(&mut sealed.clone()).is_ok() && b.is_open() && b.theirs() == Some([1; 16]));
        assert_eq!(b.open(&mut sealed.clone()), Err(Refused::Replayed));
        // Heard of alone, nobody takes the place of who is there.
        assert!(!b.greeted([7; 16], [0; 16]) && b.theirs() == Some([1; 16]));
    }

    #[test]
    fn a_process_that_has_ended_does_not_come_back() {
        let [mut a, mut b] = pair();
        let old = seal(&mut a, 0, b"before");
        // `a` starts anew; `b` hears of that only from who knows `b`.
        assert!(!b.greeted([3; 16], [0; 16]));
        assert!(b.greeted([3; 16], [2; 16]) && b.theirs() == Some([3; 16]));
        assert!(!b.greeted([1; 16], [2; 16]), "a probe of before, sent again");
        assert_eq!(b.open(&mut old.clone()), Err(Refused::Stranger));
    }

    #[test]
    fn a_secret_is_changed_without_loss() {
        let [mut a, mut b] = pair();
        let (old, both, new) = (
            "0123456789abcdef",
            "0123456789abcdef\nfedcba9876543210",
            "fedcba9876543210\n0123456789abcdef",
        );
        let last = "fedcba9876543210";
        let mut frames = Vec::new();
        for (to_a, to_b) in
            [(old, both), (both, both), (both, new), (new, new), (new, last), (last, last)]
        {
            a.set_secrets(secrets(to_a));
            b.set_secrets(secrets(to_b));
            let sealed = seal(&mut a, 0, b"x");
            assert!(b.open(&mut sealed.clone()).is_ok(), "{to_a:?} {to_b:?}");
            let back = seal(&mut b, 0, b"y");
            assert!(a.open(&mut back.clone()).is_ok(), "{to_a:?} {to_b:?}");
            frames.push(sealed);
        }
        // Windows go on: nothing counts twice.
        assert_eq!(b.open(&mut frames[4].clone()), Err(Refused::Replayed));
        assert_eq!(b.open(&mut frames[0].clone()), Err(Refused::Stranger));
    }

    proptest! {
        /// In any order, with copies: each at most once, and all that are within a window.
        #[test]
        fn opened_at_most_once(order in proptest::collection::vec((0u16..3, 0usize..400), 1..600)) {
            let [mut a, mut b] = pair();
            let sealed: Vec<Vec<Vec<u8>>> = (0..3)
                .map(|label| (0..400).map(|i: u32| seal(&mut a, label, &i.to_be_bytes())).collect())
                .collect();
            let mut seen = BTreeSet::new();
            for (label, at) in order {
                let opened = b.open(&mut sealed[usize::from(label)][at].clone());
                prop_assert_eq!(opened.is_ok(), seen.insert((label, at)));
            }
        }
        #[test]
        fn a_window_remembers(numbers in proptest::collection::vec(0u64..6000, 1..400)) {
            let (mut window, mut seen, mut greatest) = (Window::new(), BTreeSet::new(), 0);
            for number in numbers {
                let is_late = greatest > number + WINDOW;
                let expected = !is_late && !seen.contains(&number);
                prop_assert_eq!(window.is_open(number), expected, "{}", number);
                if expected {
                    window.close(number);
                    seen.insert(number);
                    greatest = greatest.max(number + 1);
                }
            }
        }
        #[test]
        fn any_bytes_and_any_turned_bit(mut bytes: Vec<u8>, bit in 0usize..1000, label: u16) {
            let [mut a, mut b] = pair();
            let mut sealed = seal(&mut a, label % 256, &[5; 60]);
            let bit = bit % (sealed.len() * 8);
            sealed[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(b.open(&mut sealed).is_err());
            prop_assert!(b.open(&mut bytes).is_err());
        }
    }
}
