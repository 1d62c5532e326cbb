//! Agents and their kernels as they are where nothing is lost: every byte takes as long, and every
//! connection is alone.

use crate::calendar::Orders;
use millpond_agent::wire::{self, Order, Report};
use millpond_core::Time;
use millpond_lab::address;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// From any host to any other.
const DELAY: Time = Time::from_us(10);
/// At 10 Gb/s.
const BYTE: u64 = 800;

enum Event {
    Connected(u32),
    /// Bytes arrive, which are the rest of a message or not.
    Arrives(u32, u64),
    Acknowledged(u32),
    Reports(Report),
}

struct End {
    peer: u32,
    is_server: bool,
    to_send: u64,
    to_receive: u64,
    message: (u64, u64),
    calls: bool,
    is_watched: bool,
    received: u64,
}

#[derive(Default)]
pub struct Network {
    /// By time, and then in the order in which they were set.
    events: BTreeMap<(Time, u64), (u32, Event)>,
    set: u64,
    ends: BTreeMap<(u32, u32), End>,
    pub taken: BTreeSet<(u32, u16)>,
    pub dead: BTreeSet<u32>,
    /// Whether acknowledgements have no time stamps.
    pub is_unstamped: bool,
}

impl Network {
    fn set(&mut self, at: Time, host: u32, event: Event) {
        self.events.insert((at, self.set), (host, event));
        self.set += 1;
    }

    pub fn next(&self) -> Option<Time> {
        self.events.keys().next().map(|(at, _)| *at)
    }

    /// Ends that no agent was ordered to close.
    pub fn open(&self) -> usize {
        self.ends.len()
    }

    /// Takes the next thing that happens: a report, or nothing that the world learns of.
    pub fn step(&mut self) -> Option<(Time, u32, Report)> {
        let ((now, _), (host, event)) = self.events.pop_first()?;
        match event {
            Event::Reports(report) => return Some((now, host, report)),
            Event::Connected(connection) => {
                self.set(now, host, Event::Reports(Report::Opened { connection }));
                self.send(now, host, connection);
            }
            Event::Acknowledged(connection) => {
                if self.ends.contains_key(&(host, connection)) && !self.is_unstamped {
                    let report = Report::Acknowledged { connection, stamp: 0, info: Vec::new() };
                    self.set(now, host, Event::Reports(report));
                }
            }
            Event::Arrives(connection, bytes) => self.arrive(now, host, connection, bytes),
        }
        None
    }

    fn arrive(&mut self, now: Time, host: u32, connection: u32, bytes: u64) {
        let Some(end) = self.ends.get_mut(&(host, connection)) else { return };
        end.received += bytes;
        end.to_receive = end.to_receive.checked_sub(bytes).expect("no more than was to come");
        if end.to_receive > 0 {
            return;
        }
        let (receive, answer) = end.message;
        let goes_on = answer > 0 && (end.is_server || end.calls);
        if goes_on {
            (end.to_receive, end.to_send) = (receive, answer);
        }
        let report = Report::Received { connection, info: Vec::new() };
        self.set(now, host, Event::Reports(report));
        if goes_on {
            self.send(now, host, connection);
        }
    }

    /// Sends what an end has to send, in two parts.
    fn send(&mut self, now: Time, host: u32, connection: u32) {
        let Some(end) = self.ends.get_mut(&(host, connection)) else { return };
        let (bytes, peer, is_watched) = (end.to_send, end.peer, end.is_watched);
        end.to_send = 0;
        if bytes == 0 || self.dead.contains(&peer) {
            return;
        }
        let after = |bytes: u64| now + DELAY + Time::from_ps(bytes * BYTE);
        let half = bytes / 2;
        if half > 0 {
            self.set(after(half), peer, Event::Arrives(connection, half));
        }
        self.set(after(bytes), peer, Event::Arrives(connection, bytes - half));
        if is_watched {
            self.set(after(bytes) + DELAY, host, Event::Acknowledged(connection));
        }
    }

    pub fn obey(&mut self, orders: &mut Orders) {
        for (at, host, bytes) in orders.drain(..) {
            let mut bytes = &bytes[..];
            while let Some(order) = wire::read::<Order>(&mut bytes).unwrap() {
                self.obey_one(at, host, order);
            }
        }
    }

    fn obey_one(&mut self, at: Time, host: u32, order: Order) {
        let of = |address: [u8; 4]| address::host_of(Ipv4Addr::from(address), 1000).unwrap();
        match order {
            Order::Await { connection, peer, receive, answer, is_watched, .. } => {
                let end = End {
                    peer: of(peer),
                    is_server: true,
                    to_send: 0,
                    to_receive: receive,
                    message: (receive, answer),
                    calls: false,
                    is_watched,
                    received: 0,
                };
                assert!(self.ends.insert((host, connection), end).is_none(), "one at a time");
            }
            Order::Open { connection, from, to, send, receive, calls, .. } => {
                if self.taken.contains(&(host, from)) {
                    let report = Report::Failed { connection, errno: libc_addr_in_use() };
                    return self.set(at, host, Event::Reports(report));
                }
                let end = End {
                    peer: of(to),
                    is_server: false,
                    to_send: send,
                    to_receive: receive,
                    message: (receive, send),
                    calls,
                    is_watched: receive == 0,
                    received: 0,
                };
                assert!(self.ends.insert((host, connection), end).is_none(), "one at a time");
                if !self.dead.contains(&of(to)) {
                    self.set(at + DELAY + DELAY, host, Event::Connected(connection));
                }
            }
            Order::Send { connection, send, receive, is_watched } => {
                let end = self.ends.get_mut(&(host, connection)).expect("it is open");
                end.to_send += send;
                end.to_receive += receive;
                end.is_watched = is_watched;
                self.send(at, host, connection);
            }
            Order::Cease { connection } => {
                self.ends.get_mut(&(host, connection)).expect("it is open").calls = false;
            }
            Order::Close { connection } => {
                self.ends.remove(&(host, connection));
            }
            Order::Sample(which) => self.sample(at, host, &which),
            Order::Count => {
                let list = vec![("TCPTimeouts".to_string(), u64::from(host))];
                self.set(at, host, Event::Reports(Report::Counters(list)));
            }
            other => panic!("{other:?}"),
        }
    }

    fn sample(&mut self, at: Time, host: u32, which: &[u32]) {
        let is_asked = |connection: u32| which.is_empty() || which.contains(&connection);
        let reports: Vec<Report> = self
            .ends
            .iter()
            .filter(|((of, connection), _)| *of == host && is_asked(*connection))
            .map(|((_, connection), end)| Report::Sampled {
                connection: *connection,
                is_server: end.is_server,
                received: end.received,
                unsent: end.to_send,
                info: vec![1; 8],
            })
            .chain([Report::SampleEnds])
            .collect();
        reports.into_iter().for_each(|report| self.set(at, host, Event::Reports(report)));
    }
}

/// `EADDRINUSE` on Linux.
fn libc_addr_in_use() -> u32 {
    rustix::io::Errno::ADDRINUSE.raw_os_error() as u32
}
