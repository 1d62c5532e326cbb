//! The namespaces that a demo makes, and what is measured between them.
//!
//! Invariant: the namespaces and all in them are gone when the demo ends, whether it succeeds or
//! not.

use super::counters::{Counters, processor_time};
use super::load::Load;
use crate::dataplane::port;
use millpond_core::Rate;
use millpond_worlds::{Namespace, World};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Before what is measured begins.
const WARM_UP: Duration = Duration::from_millis(500);
/// Of the sender and the receiver.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

/// Namespaces, while this lives.
pub struct Namespaces {
    /// Where files may be that end with the namespaces.
    pub world: World,
    all: Vec<Namespace>,
}

fn failed(error: millpond_worlds::Error) -> port::Error {
    port::Error::Kernel { what: error.what, reason: error.source.to_string() }
}

/// Runs `ip`.
pub fn ip(args: &[&str]) -> Result<(), port::Error> {
    millpond_worlds::ip::ip(args).map_err(failed)
}

impl Namespaces {
    /// So many.
    pub fn new(count: usize) -> Result<Namespaces, port::Error> {
        let world = World::new("demo").map_err(failed)?;
        let labels: Vec<String> = (0..count).map(|end| end.to_string()).collect();
        let all = world.namespaces(&labels).map_err(failed)?;
        let made = Namespaces { world, all };
        // One run's knowledge of the path must not help or hurt the next.
        (0..count).try_for_each(|end| made.set(end, "tcp_no_metrics_save", "1"))?;
        Ok(made)
    }
    /// One's name.
    pub fn name(&self, end: usize) -> &str {
        self.all[end].name()
    }
    /// Sets a key of one's TCP.
    pub fn set(&self, end: usize, key: &str, value: &str) -> Result<(), port::Error> {
        self.all[end].set(&format!("ipv4/{key}"), value).map_err(failed)
    }
}

/// The measured values.
pub struct Measured {
    /// Read by the receiving application.
    pub bytes: u64,
    /// Meanwhile.
    pub seconds: f64,
    /// Used by this process.
    pub processor: Duration,
    /// TCPOFOQueue of the receiver.
    pub out_of_order: u64,
    /// InSegs of the receiver.
    pub segments: u64,
    /// RetransSegs of the sender.
    pub retransmitted: u64,
}

/// Sends from the first namespace to the second, and measures when the window has opened.
pub fn measure(
    namespaces: &Namespaces,
    duration: Duration,
    pacing: Option<Rate>,
) -> std::io::Result<Measured> {
    let (a, b) = (namespaces.name(0), namespaces.name(1));
    let load = Load::start(a, b, (ADDRESSES[1], 7007).into(), pacing)?;
    let during = || -> std::io::Result<Measured> {
        std::thread::sleep(WARM_UP);
        let (sender, receiver) = (Counters::read(a)?, Counters::read(b)?);
        let (start, bytes, processor) = (Instant::now(), load.received(), processor_time());
        std::thread::sleep(duration);
        let (bytes, processor) =
            (load.received() - bytes, processor_time().saturating_sub(processor));
        let seconds = start.elapsed().as_secs_f64();
        let (sender_now, receiver_now) = (Counters::read(a)?, Counters::read(b)?);
        Ok(Measured {
            bytes,
            seconds,
            processor,
            out_of_order: receiver_now.since(&receiver, "TcpExt.TCPOFOQueue"),
            segments: receiver_now.since(&receiver, "Tcp.InSegs"),
            retransmitted: sender_now.since(&sender, "Tcp.RetransSegs"),
        })
    };
    let measured = during();
    let ended = load.end();
    measured.and_then(|m| ended.map(|()| m))
}

/// The middle one; the mean of the two in the middle.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
