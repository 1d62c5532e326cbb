//! Loops: frames of the switch's own that come back.
//!
//! A switch sends a probe out of each port that others can be bridged to, now and then: a frame to
//! a group that bridges pass on and hosts ignore. One that comes back, at a port or from a peer,
//! proves a loop. The port that it was sent from is blocked, or of two ports the later one: no
//! frame enters or leaves there but probes, so that the switch finds the end of the loop.
//!
//! Two switches on one segment find the same loop. The one with the larger number blocks its port;
//! the other does so if that does not end the loop.
//!
//! | bytes of the content | what |
//! |---|---|
//! | 0 to 3 | `mpl1` |
//! | 4 to 11 | the number of the switch's process, drawn at random |
//! | 12, 13 | the port |
//! | 14 to 17 | the probe's number, of that port |
//!
//! Invariant: a probe counts for so long as its port sends few others, so a copy of an old one
//! blocks nothing. A port is blocked for [`RETRY`] after the last probe that came back.

use super::frame::{Mac, View, vlan};
use millpond_core::Time;

/// How long a port stays blocked after the last probe that came back.
pub const RETRY: Time = Time::from_s(10);
/// Between two probes of a port: of one in doubt, of one that is blocked, and of another.
const DOUBT: Time = Time::from_ms(100);
const BLOCKED: Time = Time::from_s(1);
const CALM: Time = Time::from_s(5);
/// Probes that come back before a port is blocked which another switch should block.
const RETURNS: u32 = 3;
/// Probes of a port whose return counts.
const RECENT: u32 = 16;
const GROUP: Mac = Mac([0x03, 0, 0, 0x6d, 0x70, 0x6c]);
/// IEEE 802's second EtherType for local experiments.
const ETHERTYPE: u16 = 0x88b6;
const MAGIC: [u8; 4] = *b"mpl1";
/// An Ethernet frame without its check sequence.
const LENGTH: usize = 60;
/// The bytes of a frame that are looked at.
pub const FRONT: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The process that has sent it.
    pub sender: u64,
    pub port: u16,
    /// Its number among those of the port.
    pub number: u32,
}

impl Probe {
    /// As a frame, with the tag of a VLAN or without.
    fn write(&self, vlan: Option<u16>) -> Vec<u8> {
        // Of each port another address: a switch that receives two takes none for a forgery.
        let [.., a, b, c] = self.sender.to_be_bytes();
        let [d, e] = self.port.to_be_bytes();
        let mut frame = [&GROUP.0[..], &[2, a, b, c, d, e]].concat();
        if let Some(vlan) = vlan {
            frame.extend(vlan::ETHERTYPE.to_be_bytes());
            frame.extend(vlan.to_be_bytes());
        }
        frame.extend(ETHERTYPE.to_be_bytes());
        frame.extend(MAGIC);
        frame.extend(self.sender.to_be_bytes());
        frame.extend(self.port.to_be_bytes());
        frame.extend(self.number.to_be_bytes());
        frame.resize(LENGTH.max(frame.len()), 0);
        frame
    }

    /// The probe that a frame is.
    #[inline]
    pub fn read(frame: &[u8], view: &View) -> Option<Probe> {
        if view.destination != GROUP {
            return None;
        }
        let content: &[u8; 20] = frame.get(view.ethernet - 2..)?.first_chunk()?;
        let (head, rest) = content.split_at(6);
        let is_ours = head[..2] == ETHERTYPE.to_be_bytes() && head[2..] == MAGIC;
        is_ours.then_some(Probe {
            sender: u64::from_be_bytes(*rest.first_chunk()?),
            port: u16::from_be_bytes([rest[8], rest[9]]),
            number: u32::from_be_bytes(*rest.last_chunk()?),
        })
    }
}

/// The place where a port's frames come back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Back {
    at: String,
    last: Time,
}

/// The search for loops at one port.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    sent: Time,
    due: Time,
    number: u32,
    /// The turn of a trunk's VLANs.
    turn: usize,
    /// Probes that have come back in a row.
    returns: u32,
    /// Whether a switch with a smaller number is behind the port.
    yields: bool,
    back: Option<Back>,
    /// How often the port was blocked.
    count: u64,
}

impl Watch {
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.back.is_some()
    }
    /// Where its frames come back, if it is blocked.
    pub fn back(&self) -> Option<&str> {
        self.back.as_ref().map(|back| &back.at[..])
    }
    pub fn count(&self) -> u64 {
        self.count
    }
    /// When its next probe is due.
    pub fn due(&self) -> Time {
        self.due
    }
    pub fn hurry(&mut self, now: Time) {
        if now.saturating_sub(self.sent) >= DOUBT || self.number == 0 {
            self.due = now;
        }
    }
    /// The next probe of a port with these VLANs. Whether the port was blocked, and is no more.
    pub fn probe(&mut self, now: Time, sender: u64, port: u16, vlans: &[u16]) -> (Vec<u8>, bool) {
        let ends = self.back.as_ref().is_some_and(|back| now.saturating_sub(back.last) > RETRY);
        if ends {
            (self.back, self.returns) = (None, 0);
        }
        (self.number, self.turn, self.sent) = (self.number + 1, self.turn + 1, now);
        self.due = now + if self.is_blocked() { BLOCKED } else { CALM };
        let vlan = vlans.get(self.turn.checked_rem(vlans.len()).unwrap_or(0)).copied();
        (Probe { sender, port, number: self.number }.write(vlan), ends)
    }
    /// Whether a probe of the port was sent of late.
    pub fn is_recent(&self, number: u32) -> bool {
        number <= self.number && self.number - number < RECENT
    }
    /// Another switch's probe has come from the port.
    pub fn on_foreign(&mut self, now: Time, is_smaller: bool) {
        self.yields |= is_smaller;
        if now.saturating_sub(self.sent) >= BLOCKED {
            self.due = now;
        }
    }
    /// A probe of the port has come back from a peer: whether the port is to be blocked.
    pub fn returned(&mut self, now: Time) -> bool {
        self.returns += 1;
        if self.back.is_none() {
            self.due = self.due.min(self.sent.max(now) + DOUBT);
        }
        self.yields || self.returns >= RETURNS || self.is_blocked()
    }
    /// Blocks the port, or keeps it blocked. Whether it was not blocked before.
    pub fn block(&mut self, now: Time, at: &str) -> bool {
        let is_new = self.back.is_none();
        self.count += u64::from(is_new);
        self.back = Some(Back { at: at.into(), last: now });
        is_new
    }
    /// Takes over the first worker's finding.
    pub fn set_blocked(&mut self, is_blocked: bool) {
        let back = || Back { at: String::new(), last: Time::ZERO };
        self.back = is_blocked.then(back);
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::parse;
    use super::*;

    #[test]
    fn probe_is_read_as_it_was_written() {
        let probe = Probe { sender: 0x0102_0304_0506_0708, port: 9, number: 77 };
        for vlan in [None, Some(5)] {
            let frame = probe.write(vlan);
            let view = parse(&frame).unwrap();
            assert_eq!((view.vlan, Probe::read(&frame, &view)), (vlan, Some(probe)));
            assert!(!view.source.is_group() && view.destination.is_group());
            for length in view.ethernet..view.ethernet + 18 {
                assert_eq!(Probe::read(&frame[..length], &view), None);
            }
        }
    }

    #[test]
    fn port_is_blocked_until_nothing_has_come_back_for_a_while() {
        let (mut watch, mut now) = (Watch::default(), Time::ZERO);
        let (mut blocked, mut last) = (Vec::new(), 0);
        for ms in 0..60_000u64 {
            now = Time::from_ms(ms);
            if watch.due() <= now {
                let (_, ends) = watch.probe(now, 1, 0, &[]);
                assert_eq!(ends, last == 1 && !watch.is_blocked());
                // The loop is there for twenty seconds.
                if ms < 20_000 && watch.returned(now) {
                    watch.block(now, "peer b");
                }
            }
            if u64::from(watch.is_blocked()) != last {
                last = u64::from(watch.is_blocked());
                blocked.push(ms);
            }
        }
        let [from, to] = blocked[..] else { panic!("{blocked:?}") };
        assert!(from <= 300 && (29_000..=31_500).contains(&to), "{blocked:?}");
        assert!(watch.count() == 1 && watch.due() > now);
        // Another switch should block it: the third probe that comes back proves that it does not.
        let mut watch = Watch::default();
        assert_eq!([(); 3].map(|()| watch.returned(now)), [false, false, true]);
        let mut watch = Watch::default();
        watch.on_foreign(now, true);
        assert!(watch.returned(now));
    }

    #[test]
    fn copy_of_an_old_probe_does_not_count() {
        let mut watch = Watch::default();
        for second in 0..40 {
            watch.probe(Time::from_s(second), 1, 0, &[]);
        }
        assert!(watch.is_recent(40) && watch.is_recent(25));
        assert!(!watch.is_recent(24) && !watch.is_recent(41));
    }
}
