//! Requests and answers over ports of shared memory, with a timeout that does not favour anybody.
//!
//! A client has a window of requests open. What is not answered in time is sent again: by RFC 6298
//! (smoothed round trip and four deviations, no less than `rto`, doubled each time), the same in
//! all arms. An answer tells which sending it is of, so each is a sample, as with TCP's timestamps.
//! While its flow is paused a client's timers stand still, as a transport's do that knows of
//! pauses. A server answers what it gets, and does not know what was sent again.
//!
//! Invariant: a request that is open at the end counts with its age.

use millpond_port::{Frame, Port, Unsent};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// The timeout before a round trip was measured (RFC 6298, section 2).
const RTO_FIRST: Duration = Duration::from_secs(1);
/// The longest timeout.
const RTO_MAX: Duration = Duration::from_secs(1);
/// Ethernet, IPv4, UDP; then the request's number, and when it began to matter.
const HEADERS: usize = 42;
/// In a number: where the count of sendings before this one begins.
const TRIES: u32 = 48;
/// The shortest packet.
const LENGTH_MIN: usize = HEADERS + 8;
/// What is read at once.
const BATCH: usize = 16;
/// Of all that is known to exist: a packet that says where its sender is.
const HELLO: u64 = u64::MAX;
/// The flow of hellos.
const HELLO_FLOW: u32 = 0;
/// The flow of everything else.
const FLOW: u32 = 1;

/// Who sends or receives: the last byte of its addresses.
pub type Station = u8;

/// A packet of UDP with a number.
fn packet(to: Option<Station>, from: Station, number: u64, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length.max(LENGTH_MIN)];
    let total = (frame.len() - 14) as u16;
    let to_mac = to.map_or([0xff; 6], |to| [2, 0, 0, 0, 2, to]);
    frame[..6].copy_from_slice(&to_mac);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 2, from]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17]);
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[26..30].copy_from_slice(&[10, 78, 0, from]);
    frame[30..34].copy_from_slice(&[10, 78, 0, to.unwrap_or(255)]);
    frame[34..36].copy_from_slice(&7000u16.to_be_bytes());
    frame[36..38].copy_from_slice(&7000u16.to_be_bytes());
    frame[38..40].copy_from_slice(&(total - 20).to_be_bytes());
    frame[42..50].copy_from_slice(&number.to_be_bytes());
    frame
}
/// Its sender and number.
fn read(frame: &Frame) -> Option<(Station, u64)> {
    let bytes = frame.bytes();
    let number = bytes.get(42..50)?.try_into().ok()?;
    Some((bytes[11], u64::from_be_bytes(number)))
}
/// Says where a station is.
pub fn hello(port: &mut Port, own: Station) {
    let _ = port.try_send(HELLO_FLOW, &packet(None, own, HELLO, 0));
}

#[derive(Clone, Copy, Debug)]
struct Request {
    first: Instant,
    /// The last time.
    sent: Instant,
    /// Since when it may have been lost.
    last: Instant,
    /// Sendings but for the first.
    tries: u32,
}

/// What a client has measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// From the first sending to the answer; of those that are open, their age.
    pub times: Vec<Duration>,
    /// Requests that were answered.
    pub answered: u64,
    /// Packets that were sent, those sent again among them.
    pub sent: u64,
    /// Those sent again.
    pub again: u64,
    /// How often its flow was found paused.
    pub paused: u64,
}

/// Who asks.
pub struct Client {
    port: Port,
    own: Station,
    server: Station,
    window: usize,
    /// Between two requests at least.
    gap: Duration,
    length: usize,
    rto_min: Duration,
    smoothed: Option<(Duration, Duration)>,
    open: BTreeMap<u64, Request>,
    next: u64,
    due: Instant,
    frames: Vec<Frame>,
    is_measuring: bool,
    measured: Measured,
}

impl Client {
    /// At a port, asking a server.
    pub fn new(
        port: Port,
        [own, server]: [Station; 2],
        window: usize,
        gap: Duration,
        length: usize,
    ) -> Client {
        Client {
            port,
            own,
            server,
            window,
            gap,
            length,
            rto_min: Duration::from_millis(1),
            smoothed: None,
            open: BTreeMap::new(),
            next: 0,
            due: Instant::now(),
            frames: vec![Frame::default(); 64],
            is_measuring: false,
            measured: Measured::default(),
        }
    }
    /// The least timeout.
    pub fn with_rto(mut self, least: Duration) -> Client {
        self.rto_min = least;
        self
    }
    /// Whether its server was heard: an answer to nothing, or a hello.
    pub fn hears(&mut self) -> bool {
        hello(&mut self.port, self.own);
        let count = self.port.recv(&mut self.frames);
        self.frames[..count]
            .iter()
            .any(|frame| read(frame).is_some_and(|(from, _)| from == self.server))
    }
    /// What begins from now on counts.
    pub fn measure(&mut self) {
        self.is_measuring = true;
        self.measured = Measured::default();
        // What is open counts from now on.
        let now = Instant::now();
        self.open.values_mut().for_each(|request| request.first = now);
    }
    /// What was measured.
    pub fn end(mut self) -> Measured {
        let now = Instant::now();
        self.measured.times.extend(self.open.values().map(|request| now - request.first));
        self.measured
    }

    fn timeout(&self) -> Duration {
        let estimated = self.smoothed.map_or(RTO_FIRST, |(mean, deviation)| mean + 4 * deviation);
        estimated.max(self.rto_min)
    }
    fn sample(&mut self, time: Duration) {
        self.smoothed = Some(match self.smoothed {
            None => (time, time / 2),
            Some((mean, deviation)) => {
                ((7 * mean + time) / 8, (3 * deviation + mean.abs_diff(time)) / 4)
            }
        });
    }
    fn post(&mut self, number: u64, tries: u32) -> bool {
        let number = number | u64::from(tries.min(0x7fff)) << TRIES;
        let frame = packet(Some(self.server), self.own, number, self.length);
        let is_sent = self.port.try_send(FLOW, &frame).is_ok();
        self.measured.sent += u64::from(is_sent && self.is_measuring);
        is_sent
    }

    /// Does what is due. Whether there was something.
    pub fn turn(&mut self) -> bool {
        let now = Instant::now();
        let count = self.port.recv(&mut self.frames);
        let numbers: Vec<u64> = self.frames[..count]
            .iter()
            .filter_map(read)
            .filter(|(from, _)| *from == self.server)
            .map(|r| r.1)
            .collect();
        for number in numbers {
            let (number, tries) = (number & ((1 << TRIES) - 1), (number >> TRIES) as u32);
            let Some(request) = self.open.remove(&number) else { continue };
            if tries == request.tries {
                self.sample(now - request.sent);
            } else if tries == 0 {
                self.sample(now - request.first);
            }
            if self.is_measuring {
                self.measured.times.push(now - request.first);
                self.measured.answered += 1;
            }
        }
        let is_paused = self.port.paused(FLOW);
        self.measured.paused += u64::from(is_paused);
        let timeout = self.timeout();
        let mut late = Vec::new();
        for (number, request) in &mut self.open {
            if is_paused {
                request.last = now;
            } else if now - request.last >= RTO_MAX.min(timeout * (1 << request.tries.min(16))) {
                late.push(*number);
            }
        }
        for number in &late {
            let tries = self.open.get(number).map_or(0, |request| request.tries + 1);
            if !self.post(*number, tries) {
                break;
            }
            self.measured.again += u64::from(self.is_measuring);
            if let Some(request) = self.open.get_mut(number) {
                (request.sent, request.last, request.tries) = (now, now, tries);
            }
        }
        let mut begun = 0;
        while self.open.len() < self.window
            && now >= self.due
            && begun < BATCH
            && self.post(self.next, 0)
        {
            self.open.insert(self.next, Request { first: now, sent: now, last: now, tries: 0 });
            self.next += 1;
            self.due = self.due.max(now - self.gap) + self.gap;
            begun += 1;
        }
        count + late.len() + begun > 0
    }
}

/// Who answers, after some work.
pub struct Server {
    port: Port,
    own: Station,
    /// For each request.
    work: Duration,
    until: Instant,
    frames: Vec<Frame>,
    /// Answers that could not be sent yet.
    waiting: VecDeque<(Station, u64)>,
    said: Instant,
}

impl Server {
    /// At a port.
    pub fn new(port: Port, own: Station, work: Duration) -> Server {
        let (frames, now) = (vec![Frame::default(); BATCH], Instant::now());
        Server { port, own, work, until: now, frames, waiting: VecDeque::new(), said: now }
    }
    /// Does what is due; how long there is nothing to do, if that is known.
    pub fn turn(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if now - self.said > Duration::from_millis(50) {
            self.said = now;
            hello(&mut self.port, self.own);
        }
        while let Some((to, number)) = self.waiting.front() {
            match self.port.try_send(FLOW, &packet(Some(*to), self.own, *number, LENGTH_MIN)) {
                Err(Unsent::WouldBlock) => break,
                _ => drop(self.waiting.pop_front()),
            }
        }
        if now < self.until {
            return Some(self.until - now);
        }
        let count = self.port.recv(&mut self.frames);
        let requests =
            self.frames[..count].iter().filter_map(read).filter(|(_, number)| *number != HELLO);
        let before = self.waiting.len();
        self.waiting.extend(requests);
        let served = (self.waiting.len() - before) as u32;
        self.until = now + self.work * served;
        (served == 0).then_some(Duration::from_micros(20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::flow::named;
    use crate::dataplane::frame::parse;

    #[test]
    fn a_packet_is_a_flow_of_the_overlay() {
        let bytes = packet(Some(3), 4, 77, 1000);
        let view = parse(&bytes).unwrap();
        let layers = view.layers().expect("it is UDP");
        assert_eq!((layers.end, bytes.len()), (1000, 1000));
        let flow = named(&bytes, layers);
        assert_eq!((flow.destination as u8, flow.source as u8, flow.protocol), (3, 4, 17));
        assert_eq!(
            parse(&packet(None, 4, HELLO, 0)).unwrap().layers().map(|l| l.end),
            Some(LENGTH_MIN)
        );
    }
}
