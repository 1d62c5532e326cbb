//! The state of another switch: which of the paths there work, and what both have agreed on.
//!
//! Each path is probed; by the answers `millpond_core::edge::liveness` decides which paths carry
//! data. Where the two share a key, probes also agree on a session, and frames go sealed.
//!
//! Invariant: with a key nothing of what comes counts unless the peer has made it for this process,
//! and nothing leaves that is not sealed.

use super::config::PeerParams;
use super::journal::Lasting;
use super::overlay::Talk;
use crate::encapsulation;
use crate::tunnel::probe::{self, Padded, Probe, Wrong};
use crate::tunnel::secret::{Nonce, Secrets};
use crate::tunnel::sent::Sent;
use crate::tunnel::session::{self, Session};
use millpond_core::Time;
use millpond_core::edge::liveness::{Liveness, Standing, Terms};
use millpond_core::edge::path_size::PathSize;
use std::path::Path;

/// The state of one path by its probes, beside its liveness.
struct Way {
    /// The newest probe that has come: when it was sent, and when it came.
    newest: Option<(Time, Time)>,
    padded: Option<Padded>,
    /// When the padded probe was sent that the peer has confirmed last.
    answered: Time,
    /// The probes that the peer may answer.
    asked: Sent,
    size: PathSize,
    /// The longest datagram that the path carries, where the last search found one too short for
    /// the ports. It holds while another search is under way, and while nothing answers.
    found: Option<usize>,
    /// The longest datagram that the kernel has a way for, where it reports that.
    room: Option<usize>,
    sent: u64,
}

impl Way {
    /// The longest datagram that may be sent over it; `None`: nothing is known to be too long.
    fn most(&self) -> Option<usize> {
        self.room.into_iter().chain(self.found).min()
    }
}

pub struct Peer {
    pub name: String,
    params: PeerParams,
    mine: Nonce,
    /// The peer's nonce; zeros: no probe of it has come.
    theirs: Nonce,
    liveness: Liveness,
    ways: Vec<Way>,
    session: Option<Session>,
    /// The overlay, where the two speak it.
    talk: Option<Box<Talk>>,
    /// Why nothing goes there: its key cannot be read.
    blocked: Option<String>,
    next: Time,
    /// How its paths stand, for the log.
    pub news: Lasting,
    /// Whether it is lost, for the log: a line that does not wait for those of its paths.
    contact: Lasting,
    was_reached: bool,
}

/// A datagram to send over one path.
pub struct Sending {
    pub label: u16,
    pub datagram: Vec<u8>,
}

impl Peer {
    pub fn new(name: &str, params: &PeerParams, paths: usize) -> Peer {
        let terms =
            Terms { probe: params.probe, dead_after: params.dead_after, skew_max: params.skew_max };
        let way = || Way {
            newest: None,
            padded: None,
            answered: Time::ZERO,
            asked: Sent::default(),
            size: PathSize::new(probe::LENGTH as u32, 0),
            found: None,
            room: None,
            sent: 0,
        };
        let mut peer = Peer {
            name: name.into(),
            params: params.clone(),
            mine: [0; 16],
            theirs: [0; 16],
            liveness: Liveness::new(terms, paths),
            ways: (0..paths).map(|_| way()).collect(),
            session: None,
            talk: (params.overlay && params.key.is_some()).then(|| Box::new(Talk::new(params))),
            blocked: None,
            next: Time::ZERO,
            news: Lasting::default(),
            contact: Lasting::default(),
            was_reached: false,
        };
        match session::draw() {
            Ok(drawn) => peer.mine = drawn,
            Err(error) => peer.blocked = Some(error.to_string()),
        }
        peer.read_key();
        peer
    }

    /// Whether the peer is lost (`true`) or back (`false`), if that has changed and has lasted. A
    /// peer that was never reached is not lost.
    pub fn contact(&mut self, now: Time, is_reached: bool) -> Option<bool> {
        self.was_reached |= is_reached;
        let is_lost = self.was_reached && !is_reached;
        let state = if is_lost { "lost" } else { "" };
        self.contact.of(now, state.into(), usize::from(is_lost)).map(|state| state == "lost")
    }

    pub fn has(&self, params: &PeerParams) -> bool {
        self.params == *params
    }

    /// Reads the key file, which may have changed. A file that has become wrong changes nothing.
    pub fn read_key(&mut self) {
        let Some(file) = &self.params.key else { return };
        match (Secrets::read(Path::new(file)), &mut self.session) {
            (Ok(secrets), Some(session)) => {
                self.blocked = None;
                if !session.secrets().is_same(&secrets) {
                    session.set_secrets(secrets);
                    if let Some((talk, key)) = self.talk.as_mut().zip(session.overlay_key()) {
                        talk.rekey(key);
                    }
                }
            }
            (Ok(secrets), None) => {
                (self.session, self.blocked) = (Some(Session::new(secrets, self.mine)), None);
            }
            (Err(why), _) => {
                if self.blocked.as_ref() != Some(&why) {
                    log::warn!("the key of {}: {why}", self.name);
                }
                self.blocked = Some(why);
            }
        }
    }
    /// Why nothing goes there, or what is wrong with its key.
    pub fn blocked(&self) -> Option<&str> {
        self.blocked.as_deref()
    }
    /// Whether frames must be sealed.
    pub fn has_key(&self) -> bool {
        self.params.key.is_some()
    }
    /// The session that seals frames, where they must be sealed.
    pub fn session(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }
    /// The overlay, where the two speak it.
    #[inline]
    pub fn talk(&mut self) -> Option<&mut Talk> {
        self.talk.as_deref_mut()
    }
    pub fn overlay(&self) -> Option<&Talk> {
        self.talk.as_deref()
    }
    /// Speaks the overlay with the process of the peer that is there.
    pub fn greet(&mut self, now: Time) {
        let (Some(talk), Some(session)) = (&mut self.talk, &self.session) else { return };
        if let Some(theirs) = session.theirs().filter(|theirs| !talk.is_with(theirs))
            && let Some(key) = session.overlay_key()
        {
            log::info!("overlay with {}: begins", self.name);
            talk.meet(now, theirs, key);
        }
    }
    /// Bytes that a frame needs beside its own.
    pub fn overhead(&self) -> usize {
        if self.has_key() { session::HEAD + session::TAG } else { encapsulation::LENGTH }
    }

    /// A probe has come over the path of this label.
    pub fn on_probe(&mut self, now: Time, label: u16, datagram: &[u8]) -> Result<(), Wrong> {
        let secrets = match (self.has_key(), &self.session) {
            (false, _) => None,
            (true, Some(session)) => Some(session.secrets()),
            (true, None) => return Err(Wrong::Stranger),
        };
        let probe = Probe::read(datagram, secrets)?;
        if probe.from == self.mine {
            // Its own, sent back.
            return Err(Wrong::Stranger);
        }
        if probe.from != self.theirs {
            log::info!(
                "peer {} {}",
                self.name,
                if self.theirs == [0; 16] { "answers" } else { "has started anew" }
            );
        }
        if let Some(session) = &mut self.session {
            session.greeted(probe.from, probe.to);
            if session.is_retired(&probe.from) {
                return Err(Wrong::Stranger);
            }
        }
        if probe.from != self.theirs {
            self.theirs = probe.from;
            self.ways.iter_mut().for_each(|way| (way.newest, way.padded) = (None, None));
        }
        let Some(way) = self.ways.get_mut(usize::from(label)) else { return Ok(()) };
        if way.newest.is_none_or(|(sent, _)| probe.sent > sent) {
            way.newest = Some((probe.sent, now));
            if usize::from(probe.length) > probe::LENGTH {
                way.padded = Some(Padded { sent: probe.sent, length: probe.length });
            }
        }
        // Its times for a former process's probes are of another clock.
        if probe.to == self.mine {
            // An answer to a probe that was never sent would outlast all true ones.
            let was_sent = |padded: &Padded| way.asked.length(padded.sent) == Some(padded.length);
            if let Some(padded) =
                probe.padded.filter(|padded| padded.sent > way.answered && was_sent(padded))
            {
                way.answered = padded.sent;
                way.size.on_answer(padded.length.into());
            }
            if let Some(sent) = probe.newest.filter(|sent| way.asked.length(*sent).is_some()) {
                self.liveness.on_answer(now, label.into(), sent, probe.waited);
            }
        }
        Ok(())
    }

    /// Whether it answers, and frames can go there.
    #[inline]
    pub fn answers(&self, now: Time) -> bool {
        let is_fresh = self.liveness.newest().is_some_and(|at| now.saturating_sub(at) <= SILENCE);
        is_fresh && (!self.has_key() || self.session.as_ref().is_some_and(Session::is_open))
    }

    /// The kernel refused a datagram over this path.
    pub fn failed(&mut self, now: Time, label: u16) {
        self.liveness.failed(now, label.into());
    }
    /// The kernel refused a datagram of this length as too long for the path.
    pub fn too_long(&mut self, now: Time, label: u16, length: usize) {
        if let Some(way) = self.ways.get_mut(usize::from(label)) {
            way.size.refuse(now, length as u32);
        }
    }

    /// The kernel has a way over this path for datagrams of so many bytes. Where it has no way, the
    /// last one counts.
    pub fn set_room(&mut self, label: u16, room: Option<usize>) {
        if let Some(way) = self.ways.get_mut(usize::from(label)) {
            way.room = room.or(way.room);
        }
    }
    /// The longest frame that all paths have room for by the kernel's word.
    pub fn room(&self) -> Option<usize> {
        let least = self.ways.iter().filter_map(|way| way.room).min()?;
        Some(least.saturating_sub(self.overhead()))
    }
    /// Whether it has answered once and answers no more, on any path.
    pub fn is_silent(&self, now: Time) -> bool {
        // Paths that fail at this host, without a link or a route, forget their answers.
        let newest = self.liveness.newest();
        newest.map_or(self.was_reached, |at| now.saturating_sub(at) > SILENCE)
    }
    /// Whether a path to it is used.
    pub fn is_reached(&self) -> bool {
        (0..self.ways.len()).any(|label| self.liveness.standing(label) == Standing::Used)
    }
    /// The longest frame that each path which is used carries; `None`: nothing is known to be too
    /// long.
    pub fn frame_max(&self) -> Option<usize> {
        let is_used = |label: &usize| self.liveness.standing(*label) == Standing::Used;
        let least = (0..self.ways.len())
            .filter(is_used)
            .filter_map(|label| self.ways[label].most())
            .min()?;
        Some(least.saturating_sub(self.overhead()))
    }

    /// When [`Peer::tick`] is due.
    pub fn due(&self) -> Time {
        self.next
    }
    /// Judges paths and probes them; `widest` is the longest frame of a port. Returns the datagrams
    /// to send, and whether other paths carry data than before.
    pub fn tick(&mut self, now: Time, widest: usize) -> (Vec<Sending>, bool) {
        if now < self.next {
            return (Vec::new(), false);
        }
        self.next = now + self.params.probe;
        let wanted = (widest + self.overhead()) as u32;
        for (label, way) in self.ways.iter_mut().enumerate() {
            // The path need not try lengths that the kernel has no way for.
            let reach = way.room.map_or(wanted, |room| wanted.min(room as u32));
            way.size.want(probe::LENGTH as u32, reach);
            if way.size.is_settled() {
                way.found = way.size.is_narrow().then(|| way.size.carried() as usize);
            }
            // A path that is tried again stays narrow until it has carried what is wanted: else it
            // would take long packets, and change which paths are used, in each trial.
            let was_narrow = way.found.is_some_and(|found| found < reach as usize);
            let is_narrow = way.size.is_narrow() || was_narrow || reach < wanted;
            self.liveness.set_narrow(label, is_narrow);
        }
        let changed = self.liveness.judge(now);
        let mut out = Vec::new();
        for label in 0..self.ways.len() as u16 {
            out.push(self.probe(now, label, probe::LENGTH));
            let way = &mut self.ways[usize::from(label)];
            let confirmed = self.liveness.confirmed(label.into());
            if let Some(size) = way.size.probe(now, confirmed) {
                // A moment later, so that the two are distinguished.
                out.push(self.probe(now + Time::from_ns(1), label, size as usize));
            }
        }
        (out, changed)
    }

    fn probe(&mut self, now: Time, label: u16, length: usize) -> Sending {
        let way = &mut self.ways[usize::from(label)];
        way.sent += u64::from(length == probe::LENGTH);
        let bytes = length.min(u16::MAX.into()) as u16;
        way.asked.note(now, bytes);
        let probe = Probe {
            label,
            from: self.mine,
            to: self.theirs,
            sent: now,
            newest: way.newest.map(|(sent, _)| sent),
            waited: way.newest.map_or(Time::ZERO, |(_, at)| now.saturating_sub(at)),
            padded: way.padded,
            length: bytes,
        };
        let secrets = self.session.as_ref().map(Session::secrets);
        Sending { label, datagram: probe.write(secrets) }
    }

    pub fn standing(&self, label: u16) -> Standing {
        self.liveness.standing(label.into())
    }
    /// Of a path, for people; `widest` is the longest frame that a port may have now.
    pub fn reading(&self, now: Time, label: u16, widest: usize) -> Health {
        let path = usize::from(label);
        let way = &self.ways[path];
        let silence = self.liveness.newest().map(|at| now.saturating_sub(at));
        Health {
            state: match self.liveness.answers(path) {
                None => "untried",
                // Nothing comes over any path.
                Some(_) if silence.is_none_or(|silence| silence > SILENCE) => "silent",
                Some(_) => self.standing(label).name(),
            }
            .into(),
            delay_us: self.liveness.round_trip(path).map(|delay| delay.as_us_f64() / 2.0),
            probes_sent: way.sent,
            probes_received: self.liveness.answered_probes(path),
            size: way
                .found
                .map_or(way.size.carried(), |found| found as u32)
                .saturating_sub(self.overhead() as u32),
            is_narrow: way.most().is_some_and(|most| most < widest + self.overhead()),
            is_sealed: self.has_key(),
        }
    }
}

/// A peer without a probe for longer is silent.
const SILENCE: Time = Time::from_s(1);

/// The known state of a path.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Health {
    /// used, dead, narrow, slow; untried: the peer has not answered yet; silent: it does no more.
    pub state: String,
    /// One way: half of the least round trip of late.
    pub delay_us: Option<f64>,
    pub probes_sent: u64,
    /// Those that the peer has confirmed.
    #[serde(rename = "probes_heard")]
    pub probes_received: u64,
    /// The longest frame that it is known to carry, in bytes with its Ethernet header.
    pub size: u32,
    /// Whether that is too short for the ports.
    pub is_narrow: bool,
    /// Whether what goes there is authenticated and encrypted.
    pub is_sealed: bool,
}

impl Health {
    /// The share of the probes since then that was answered; `None`: too few. An unanswered
    /// probe was lost there or back.
    pub fn answered_since(&self, before: &Health) -> Option<f64> {
        let sent = self.probes_sent.checked_sub(before.probes_sent).filter(|sent| *sent >= 10)?;
        let received = self.probes_received.checked_sub(before.probes_received)?;
        Some((received as f64 / sent as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_file(text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("millpond-peer-{}-{number}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.to_string_lossy().into_owned()
    }
    fn peer(key: Option<&String>, paths: usize) -> Peer {
        Peer::new("other", &PeerParams { key: key.cloned(), ..PeerParams::default() }, paths)
    }

    /// Both ends for so long; which paths work, by direction, and how long a datagram may be.
    fn run(
        ends: &mut [Peer; 2],
        now: &mut Time,
        ms: u64,
        works: impl Fn(usize, u16) -> bool,
        longest: usize,
    ) {
        run_over(ends, now, ms, |from, label| if works(from, label) { longest } else { 0 });
    }

    /// The same with the longest datagram by direction and path.
    fn run_over(
        ends: &mut [Peer; 2],
        now: &mut Time,
        ms: u64,
        longest: impl Fn(usize, u16) -> usize,
    ) {
        let end = *now + Time::from_ms(ms);
        while *now < end {
            *now += Time::from_ms(1);
            for from in 0..2 {
                let (sendings, _) = ends[from].tick(*now, 1514);
                for Sending { label, datagram } in sendings {
                    if datagram.len() <= longest(from, label) {
                        ends[1 - from]
                            .on_probe(*now + Time::from_us(50), label, &datagram)
                            .unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn loss_of_a_peer_is_reported_once_it_lasts_and_its_return_after_it() {
        let mut other = peer(None, 2);
        let mut at = |s: u64, is_reached: bool| other.contact(Time::from_s(s), is_reached);
        assert_eq!((at(0, false), at(5, false)), (None, None), "it was never reached");
        assert_eq!((at(6, true), at(8, true)), (None, None), "nothing was lost");
        assert_eq!((at(9, false), at(10, false)), (None, Some(true)));
        assert_eq!((at(11, false), at(20, true)), (None, None));
        assert_eq!(at(21, true), Some(false));
        assert_eq!((at(22, false), at(23, false)), (None, Some(true)), "a loss waits for no line");
    }

    #[test]
    fn two_switches_find_out_what_works_and_agree_on_a_session() {
        let file = key_file("0123456789abcdef");
        let mut ends = [peer(Some(&file), 2), peer(Some(&file), 2)];
        let mut now = Time::from_ms(5);
        run(&mut ends, &mut now, 100, |_, _| true, 9000);
        for end in &mut ends {
            assert!(end.session().unwrap().is_open());
            let health = end.reading(now, 1, 1514);
            assert_eq!((&health.state[..], health.size, health.is_narrow), ("used", 1514, false));
            assert!(health.delay_us.unwrap() < 1_100.0 && health.probes_received > 5, "{health:?}");
        }
        // One direction of one path dies: neither end uses it.
        run(&mut ends, &mut now, 60, |from, label| (from, label) != (0, 1), 9000);
        assert_eq!(ends.each_ref().map(|end| end.standing(1)), [Standing::Dead; 2]);
        assert_eq!(ends.each_ref().map(|end| end.standing(0)), [Standing::Used; 2]);
        assert!(!ends[0].is_silent(now) && ends[0].is_reached());
        run(&mut ends, &mut now, 2_000, |_, _| false, 9000);
        assert!(ends[0].is_silent(now) && ends[0].is_reached(), "its best path stays in use");
        assert_eq!(
            (ends[0].standing(0), &ends[0].reading(now, 0, 1514).state[..]),
            (Standing::Used, "silent")
        );
        // The other end starts anew.
        ends[1] = peer(Some(&file), 2);
        run(&mut ends, &mut now, 400, |_, _| true, 9000);
        let mut frame = Vec::new();
        let stamp = crate::encapsulation::Encapsulation { label: 0, flowcell: 0, partial: false };
        assert!(ends[0].session().unwrap().seal(&stamp, [b"a", b"b"], &mut frame));
        assert!(ends[1].session().unwrap().open(&mut frame).is_ok());
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_path_that_is_too_small_is_found() {
        let mut ends = [peer(None, 1), peer(None, 1)];
        let mut now = Time::from_ms(5);
        run(&mut ends, &mut now, 3_000, |_, _| true, 1300);
        let health = ends[0].reading(now, 0, 1514);
        assert!(health.is_narrow && (1276..=1292).contains(&health.size), "{health:?}");
        assert_eq!(ends[0].standing(0), Standing::Used, "there is no other");
        assert_eq!(ends[0].frame_max(), Some(health.size as usize));
        assert!(!ends[0].reading(now, 0, 1200).is_narrow, "no port has longer ones");
    }

    /// Both are too small for the ports, and one is smaller: what frames may have is the smaller
    /// one's size, and stays so while either is tried again.
    #[test]
    fn narrow_paths_stay_narrow_while_they_are_tried_again() {
        let mut ends = [peer(None, 2), peer(None, 2)];
        let mut now = Time::from_ms(5);
        let sizes = |_: usize, label: u16| [1308, 1448][usize::from(label)];
        run_over(&mut ends, &mut now, 5_000, sizes);
        let first = ends[0].frame_max().unwrap();
        assert!((1284..=1300).contains(&first), "{first}");
        for _ in 0..1000 {
            run_over(&mut ends, &mut now, 100, sizes);
            let most = ends[0].frame_max().unwrap();
            assert!((first..=1300).contains(&most), "{most} at {now}");
            let shown = [0, 1].map(|label| ends[0].reading(now, label, 1514).size as usize);
            assert!(shown[0] == most && (1424..=1440).contains(&shown[1]), "{shown:?} at {now}");
        }
        // One that becomes wide is used alone.
        run_over(&mut ends, &mut now, 40_000, |_, label| [1308, 9000][usize::from(label)]);
        assert_eq!([0, 1].map(|it| ends[0].standing(it)), [Standing::Narrow, Standing::Used]);
        assert_eq!(ends[0].frame_max(), None);
    }

    #[test]
    fn a_peer_is_lost_too_where_this_host_has_no_link() {
        let mut ends = [peer(None, 2), peer(None, 2)];
        let mut now = Time::from_ms(5);
        run(&mut ends, &mut now, 3_000, |_, _| true, 1500);
        assert_eq!(ends[0].contact(now, !ends[0].is_silent(now)), None);
        for _ in 0..3 {
            for label in [0, 1] {
                ends[0].failed(now, label);
            }
            run(&mut ends, &mut now, 500, |_, _| false, 1500);
        }
        assert!(ends[0].is_silent(now));
        let later = now + Time::from_s(1);
        let heard = [now, later].map(|at| ends[0].contact(at, !ends[0].is_silent(at)));
        assert_eq!(heard, [None, Some(true)]);
    }

    #[test]
    fn room_of_a_path_stays_while_nothing_answers_and_while_it_is_searched_again() {
        let mut ends = [peer(None, 1), peer(None, 1)];
        let mut now = Time::from_ms(5);
        ends[0].set_room(0, Some(1472));
        run(&mut ends, &mut now, 3_000, |_, _| true, 1300);
        let frame_max = ends[0].frame_max().unwrap();
        // Beyond the time after which a longer size is tried again, the kernel without a route.
        ends[0].set_room(0, None);
        for _ in 0..350 {
            run(&mut ends, &mut now, 100, |_, _| false, 1300);
            assert_eq!(ends[0].frame_max(), Some(frame_max), "{now}");
        }
        assert!(ends[0].is_silent(now) && ends[0].is_reached());
        for _ in 0..700 {
            run(&mut ends, &mut now, 50, |_, _| true, 1300);
            assert!(ends[0].frame_max().unwrap().abs_diff(frame_max) <= 16, "{now}");
        }
        run(&mut ends, &mut now, 32_000, |_, _| true, 9000);
        assert_eq!(ends[0].frame_max(), ends[0].room(), "it has become wide");
    }

    #[test]
    fn an_answer_to_no_probe_hides_neither_a_small_path_nor_loss() {
        let file = key_file("0123456789abcdef");
        let secrets = Secrets::read(Path::new(&file)).unwrap();
        let mut ends = [peer(Some(&file), 1), peer(Some(&file), 1)];
        let mut now = Time::from_ms(5);
        run(&mut ends, &mut now, 100, |_, _| true, 9000);
        let before = ends[0].reading(now, 0, 1514);
        let far = Time::from_ns((1 << 54) - 1);
        for i in 1..=1000 {
            let lie = Probe {
                from: ends[1].mine,
                to: ends[0].mine,
                sent: now + Time::from_ns(i),
                newest: Some(Time::from_us(90_000 + i)),
                padded: Some(Padded { sent: far, length: 1546 }),
                ..Probe::default()
            };
            ends[0].on_probe(now, 0, &lie.write(Some(&secrets))).unwrap();
        }
        let after = ends[0].reading(now, 0, 1514);
        assert!(after.probes_received <= before.probes_received + 2, "{before:?} {after:?}");
        run(&mut ends, &mut now, 5_000, |_, _| true, 1300);
        let health = ends[0].reading(now, 0, 1514);
        assert!(health.is_narrow && (1252..=1268).contains(&health.size), "{health:?}");
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn what_the_kernel_has_no_way_for_is_not_tried() {
        let mut ends = [peer(None, 2), peer(None, 2)];
        let mut now = Time::from_ms(5);
        assert_eq!((ends[0].frame_max(), ends[0].room()), (None, None));
        ends.iter_mut().for_each(|end| end.set_room(0, Some(1472)));
        run(&mut ends, &mut now, 200, |_, _| true, 9000);
        // One is enough for all.
        assert_eq!(
            ends.each_ref().map(|end| (end.standing(0), end.standing(1))),
            [(Standing::Narrow, Standing::Used); 2]
        );
        assert_eq!((ends[0].frame_max(), ends[0].room()), (None, Some(1464)));
        ends.iter_mut().for_each(|end| end.set_room(1, Some(1472)));
        run(&mut ends, &mut now, 200, |_, _| true, 9000);
        assert_eq!((ends[0].standing(0), ends[0].frame_max()), (Standing::Used, Some(1464)));
        assert_eq!(ends[0].reading(now, 0, 1514).size, 1464, "exactly");
    }

    #[test]
    fn strangers_and_echoes_do_not_count() {
        let (file, other) = (key_file("0123456789abcdef"), key_file("another one of them"));
        let mut us = peer(Some(&file), 1);
        let now = Time::from_ms(5);
        for mut them in [peer(Some(&other), 1), peer(None, 1)] {
            let datagram = them.tick(now, 1514).0.remove(0).datagram;
            assert_eq!(us.on_probe(now, 0, &datagram), Err(Wrong::Stranger));
        }
        let own = us.tick(now, 1514).0.remove(0).datagram;
        assert_eq!(us.on_probe(now, 0, &own), Err(Wrong::Stranger));
        assert!(us.session().unwrap().theirs().is_none() && us.blocked().is_none());
        // A key file that is gone keeps the key; one that was never there lets nothing through.
        [&file, &other].into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
        us.read_key();
        assert!(us.blocked().is_some() && us.session().is_some());
        let mut none = peer(Some(&file), 1);
        assert!(none.blocked().is_some() && none.session().is_none() && none.has_key());
    }
}
