//! Requests and answers over ports of shared memory, with a timeout that does not favour anybody.
//!
//! A client keeps a window of requests open, or sends bursts at random. It retransmits requests by
//! RFC 6298 (smoothed round trip and four deviations, no less than `rto`, doubled each time), the
//! same in all arms. An answer carries the number of its transmission, so each is a sample, as with
//! TCP's timestamps. While its flow is paused a client's timers stand still. A server answers every
//! request it receives, retransmissions too.
//!
//! Invariant: a request that is open at the end counts with its age, and one that the port did not
//! take at once counts from its arrival.

use millpond_core::random::Stream;
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
/// Frames that are read at once.
const BATCH: usize = 16;
/// Of all that is known to exist: a packet that says where its sender is.
const HELLO: u64 = u64::MAX;
/// A server that looks for work no later than this has worked without a break.
const LATE: Duration = Duration::from_micros(100);
/// The flow of hellos.
const HELLO_FLOW: u32 = 0;
/// The flow of everything else.
const FLOW: u32 = 1;

/// A sender or receiver: the last byte of its addresses.
pub type Station = u8;

fn interval(random: &mut Stream, mean: Duration) -> Duration {
    Duration::from_secs_f64(random.exponential(mean.as_secs_f64()))
}

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

/// When requests come about.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// As many as `window` are open, and `gap` passes from one to the next at least.
    Closed {
        /// How many.
        window: usize,
        /// How long.
        gap: Duration,
    },
    /// Bursts, whatever is open, at exponential intervals.
    Bursts {
        /// Requests of each.
        size: usize,
        /// Between two, on average.
        mean: Duration,
        /// Where the intervals come from.
        random: Stream,
    },
}

#[derive(Clone, Copy, Debug)]
struct Request {
    /// It has come about.
    first: Instant,
    /// The last time.
    sent: Instant,
    /// Since when it may have been lost.
    last: Instant,
    /// Sendings but for the first.
    tries: u32,
}

/// The measurements of a client.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Of requests that came about while it was measured: the time to the answer; of those that
    /// are open at the end, their age.
    pub times: Vec<Duration>,
    /// Those that are open at the end.
    pub open: usize,
    /// Requests that were answered, whenever they came about.
    pub answered: u64,
    /// Packets that were sent, those sent again among them.
    pub sent: u64,
    /// Those sent again.
    pub again: u64,
    /// How often its flow was found paused.
    pub paused: u64,
}

/// The asker.
pub struct Client {
    port: Port,
    own: Station,
    server: Station,
    arrivals: Arrivals,
    /// Requests that have come about, and that the port has not taken.
    arrived: VecDeque<Instant>,
    length: usize,
    rto_min: Duration,
    smoothed: Option<(Duration, Duration)>,
    open: BTreeMap<u64, Request>,
    next: u64,
    /// When the next one comes about; nothing before the first turn.
    due: Option<Instant>,
    frames: Vec<Frame>,
    /// Since when it is measured.
    since: Option<Instant>,
    measured: Measured,
}

impl Client {
    /// At a port, asking a server.
    pub fn new(
        port: Port,
        [own, server]: [Station; 2],
        arrivals: Arrivals,
        length: usize,
    ) -> Client {
        Client {
            port,
            own,
            server,
            arrivals,
            arrived: VecDeque::new(),
            length,
            rto_min: Duration::from_millis(1),
            smoothed: None,
            open: BTreeMap::new(),
            next: 0,
            due: None,
            frames: vec![Frame::default(); 64],
            since: None,
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
    /// Counts what comes about from now on.
    pub fn measure(&mut self) {
        self.since = Some(Instant::now());
        self.measured = Measured::default();
    }
    /// The measured values.
    pub fn end(mut self) -> Measured {
        let now = Instant::now();
        let open = self.open.values().map(|request| request.first);
        let open = open.chain(self.arrived.iter().copied());
        let ages: Vec<Duration> =
            open.filter(|first| self.counts(*first)).map(|first| now - first).collect();
        self.measured.open = ages.len();
        self.measured.times.extend(ages);
        self.measured
    }
    /// Whether a request counts that came about at `first`.
    fn counts(&self, first: Instant) -> bool {
        self.since.is_some_and(|since| first >= since)
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
        self.measured.sent += u64::from(is_sent && self.since.is_some());
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
            self.measured.answered += u64::from(self.since.is_some());
            if self.counts(request.first) {
                self.measured.times.push(now - request.first);
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
            self.measured.again += u64::from(self.since.is_some());
            if let Some(request) = self.open.get_mut(number) {
                (request.sent, request.last, request.tries) = (now, now, tries);
            }
        }
        count + late.len() + self.begin(now) > 0
    }

    /// Sends what comes about; how many requests.
    fn begin(&mut self, now: Instant) -> usize {
        let due = self.due.get_or_insert_with(|| match &mut self.arrivals {
            Arrivals::Closed { .. } => now,
            Arrivals::Bursts { mean, random, .. } => now + interval(random, *mean),
        });
        match &mut self.arrivals {
            Arrivals::Closed { window, gap } => {
                if self.arrived.is_empty() && self.open.len() < *window && now >= *due {
                    self.arrived.push_back(now);
                    *due = (*due).max(now - *gap) + *gap;
                }
            }
            Arrivals::Bursts { size, mean, random } => {
                while now >= *due {
                    self.arrived.extend(std::iter::repeat_n(*due, *size));
                    *due += interval(random, *mean);
                }
            }
        }
        let mut begun = 0;
        while let Some(first) = self.arrived.front().copied().filter(|_| begun < BATCH) {
            if !self.post(self.next, 0) {
                break;
            }
            self.arrived.pop_front();
            self.open.insert(self.next, Request { first, sent: now, last: now, tries: 0 });
            self.next += 1;
            begun += 1;
        }
        begun
    }
}

/// The side that answers, after some work.
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
        // Work that was waiting began when the work before it ended, however late this is called.
        let began = if now - self.until < LATE { self.until } else { now };
        self.until = began + self.work * served;
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
