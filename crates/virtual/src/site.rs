//! A host of the network: a guest, its two interfaces by the calendar, and the stages between the
//! guest and its link.
//!
//! The interface of the link sends one frame of the guest's after another, and gives its buffers
//! back when the last bit has left, so that the kernel's queues below TCP wait as above a real one.
//! Arriving frames interrupt the guest at once, and after that no sooner than `throttle` later.
//!
//! Invariant: what happens at a host happens in the order of its time, whatever the wall clock
//! does.

use crate::cost::Cores;
use crate::device::{FROM_GUEST, TO_GUEST};
use crate::error::Error;
use crate::guest::{CONTROL, Guest, LINK};
use millpond_agent::wire::{ETHERTYPE, FRAME_MAX};
use millpond_core::Time;
use millpond_lab::state::State;
use millpond_linux::dataplane::buffers::Frame;
use millpond_linux::dataplane::frame::Offload;
use millpond_linux::dataplane::port::Port;
use millpond_linux::dataplane::port::vhost::frames::Taken;
use millpond_linux::fabric::{Left, Paused};
use std::collections::VecDeque;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
const FRAME_MIN: usize = 60;

/// An agent whose ring is full gets an order so many nanoseconds later.
const RETRY: u64 = 1_000;

/// A time in whole nanoseconds, rounded up.
pub fn ns(time: Time) -> u64 {
    time.as_ps().div_ceil(1000)
}

/// The zero of the plan's time on the guests' clocks; `None`: guests boot, and no frame leaves.
pub type Zero = Option<u64>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Its time, by the guests' clocks.
    pub at: u64,
    pub host: u32,
    /// Messages, as `wire` has them.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Frames, of whatever length, that the guest has sent.
    pub sent: u64,
    pub received: u64,
    /// Frames that found no buffer of the guest's.
    pub refused: u64,
    /// Frames that found the ring of their core full.
    pub ring_drops: u64,
    pub interrupts: u64,
}

pub struct Site {
    host: u32,
    pub guest: Guest,
    throttle: u64,
    /// The cost of receiving, if anything.
    cores: Option<Cores>,
    /// When the interface has sent what it has taken, in nanoseconds as all here.
    sending: Option<u64>,
    /// Until when a neighbour's pause holds the interface.
    held: Option<u64>,
    pauses: VecDeque<Paused>,
    /// Packets that will have arrived.
    arriving: VecDeque<Left>,
    /// Frames for the guest, by when it has them.
    up: VecDeque<(u64, Offload, Vec<u8>)>,
    interrupted: Option<u64>,
    orders: VecDeque<(u64, Vec<u8>)>,
    /// Whether buffers of a report go back.
    reported: Option<u64>,
    /// Its agent's reports that nobody has taken.
    pub reports: Vec<Reported>,
    pub counts: Counts,
    frame: Vec<u8>,
}

impl Site {
    pub fn new(host: u32, guest: Guest, throttle: u64, cores: Option<Cores>) -> Site {
        Site {
            host,
            guest,
            throttle,
            cores,
            sending: None,
            held: None,
            pauses: VecDeque::new(),
            arriving: VecDeque::new(),
            up: VecDeque::new(),
            interrupted: None,
            orders: VecDeque::new(),
            reported: None,
            reports: Vec::new(),
            counts: Counts::default(),
            frame: vec![0; 2048],
        }
    }

    /// A packet reaches the host at its time, which is not before the present window.
    pub fn arrives(&mut self, left: Left) {
        self.arriving.push_back(left);
    }

    /// A pause frame reaches the host's interface at its time, not before the present window.
    pub fn pauses(&mut self, paused: Paused) {
        self.pauses.push_back(paused);
    }

    /// An order reaches the agent at a time, which is not before the present window.
    pub fn order(&mut self, at: u64, bytes: &[u8]) {
        // Orders of one time share frames: the agent's socket holds so many bytes of these.
        if let Some((last, frame)) = self.orders.back_mut()
            && *last == at
            && frame.len() + bytes.len() <= ETHERNET + FRAME_MAX
        {
            return frame.extend_from_slice(bytes);
        }
        let mut frame = vec![0xff; 6];
        frame.extend_from_slice(&[0x02, 0, 0, 0, 0, 1]);
        frame.extend_from_slice(&ETHERTYPE.to_be_bytes());
        frame.extend_from_slice(bytes);
        self.orders.push_back((at, frame));
    }

    fn interrupt_at(&self, due: u64) -> u64 {
        self.interrupted.map_or(due, |last| due.max(last + self.throttle))
    }

    /// When something happens to the guest that it does not do itself.
    fn local(&self, state: &State, zero: Zero) -> Option<u64> {
        let arrival = self.arriving.front().map(|left| ns(left.at) + zero.unwrap_or(0));
        let up = self.up.front().map(|(at, ..)| self.interrupt_at(*at));
        let order = self.orders.front().map(|(at, _)| *at);
        let deadline = zero.and_then(|zero| {
            state.hosts[self.host as usize].deadline().map(|at| ns(at).saturating_add(zero))
        });
        let pause = self.pauses.front().map(|paused| ns(paused.at) + zero.unwrap_or(0));
        let all = [arrival, up, order, deadline, pause, self.held, self.sending, self.reported];
        all.into_iter().flatten().min()
    }

    pub fn next(&self, state: &State, zero: Zero) -> Option<u64> {
        self.local(state, zero).into_iter().chain(self.guest.schedule.wanted()).min()
    }

    /// Goes on before `end`, until the guest runs or nothing is left to do. Whether it runs.
    pub fn advance(&mut self, end: u64, state: &mut State, zero: Zero) -> Result<bool, Error> {
        loop {
            let local = self.local(state, zero).unwrap_or(u64::MAX);
            let own = self.guest.schedule.wanted().unwrap_or(u64::MAX);
            if local.min(own) >= end {
                return Ok(false);
            }
            if own < local {
                self.guest.schedule.run(own, local.min(end))?;
                return Ok(true);
            }
            self.guest.schedule.set(local);
            self.happen(local, state, zero)?;
        }
    }

    /// Does what is due at `now`.
    fn happen(&mut self, now: u64, state: &mut State, zero: Zero) -> Result<(), Error> {
        if let Some(zero) = zero {
            while let Some(paused) = self.pauses.pop_front_if(|it| ns(it.at) + zero <= now) {
                self.held = Some(now + ns(paused.frame.duration));
            }
        }
        if self.held.take_if(|at| *at <= now).is_some() {
            self.transmit(now, state, zero)?;
        }
        if self.sending.is_some_and(|at| at <= now) {
            self.sending = None;
            self.guest.devices[LINK].complete()?;
            self.transmit(now, state, zero)?;
            self.guest.devices[LINK].interrupt(FROM_GUEST)?;
        }
        if let Some(zero) = zero {
            self.receive(now, zero, state);
        }
        if self.up.front().is_some_and(|(at, ..)| self.interrupt_at(*at) <= now) {
            self.interrupted = Some(now);
            self.counts.interrupts += 1;
            while let Some((_, offload, frame)) = self.up.pop_front_if(|(at, ..)| *at <= now) {
                match self.guest.devices[LINK].give(&offload, &frame)? {
                    true => self.counts.received += 1,
                    false => self.counts.refused += 1,
                }
            }
            self.guest.devices[LINK].interrupt(TO_GUEST)?;
        }
        if self.orders.front().is_some_and(|(at, _)| *at <= now) {
            while let Some((_, frame)) = self.orders.pop_front_if(|(at, _)| *at <= now) {
                let mut padded = frame.clone();
                padded.resize(frame.len().max(FRAME_MIN), 0);
                if !self.guest.devices[CONTROL].give(&Offload::default(), &padded)? {
                    // Its ring is full, or it is not up yet: a moment later.
                    self.orders.push_front((now + RETRY, frame));
                    break;
                }
            }
            self.guest.devices[CONTROL].interrupt(TO_GUEST)?;
        }
        if self.reported.take_if(|at| *at <= now).is_some() {
            self.guest.devices[CONTROL].complete()?;
            self.guest.devices[CONTROL].interrupt(FROM_GUEST)?;
        }
        self.guest.devices.iter_mut().try_for_each(|device| device.await_answers())
    }

    /// Hands packets that have arrived to the stages above the link, and takes what these let up.
    fn receive(&mut self, now: u64, zero: u64, state: &mut State) {
        let plan = Time::from_ns(now - zero);
        let State { fabric, hosts, buffers, .. } = state;
        let host = &mut hosts[self.host as usize];
        let mut is_due = host.deadline().is_some_and(|at| ns(at) + zero <= now);
        while let Some(left) = self.arriving.pop_front_if(|left| ns(left.at) + zero <= now) {
            host.arrive(plan, left, buffers);
            is_due = true;
        }
        if is_due {
            host.flush(plan, plan, fabric, buffers);
        }
        if let Some(Port::Caller(port)) = &mut host.slot.port {
            for (offload, frame) in port.frames.drain(..) {
                let due = match &mut self.cores {
                    None => Some(now),
                    Some(cores) => cores.work(plan, &offload, &frame).map(|at| ns(at) + zero),
                };
                let Some(due) = due else {
                    self.counts.ring_drops += 1;
                    continue;
                };
                let at = self.up.partition_point(|(other, ..)| *other <= due);
                self.up.insert(at, (due, offload, frame));
            }
        }
    }

    /// The link is free at `now`: sends the guest's next frame, or has it kick for one.
    fn transmit(&mut self, now: u64, state: &mut State, zero: Zero) -> Result<(), Error> {
        while self.sending.is_none() && self.held.is_none() {
            let State { fabric, hosts, buffers, .. } = state;
            let device = &mut self.guest.devices[LINK];
            let Some(buffer) = buffers.take() else {
                return Err(Error::Protocol("no buffer is left for its frames".into()));
            };
            let taken = device.take(buffers.bytes_mut(buffer));
            let host = &mut hosts[self.host as usize];
            match taken {
                Ok(Taken::Frame(length, offload)) => {
                    self.counts.sent += 1;
                    self.sending = Some(now);
                    if let Some(zero) = zero {
                        let frame = Frame { buffer, start: 0, length, offload };
                        let plan = Time::from_ns(now - zero);
                        host.leave(plan, frame, fabric, buffers);
                        self.sending = Some(now.max(ns(host.sends_until()) + zero));
                    }
                }
                Ok(Taken::Bad) => self.sending = Some(now),
                Ok(Taken::Nothing) | Err(_) => {}
            }
            buffers.release(buffer);
            if taken? == Taken::Nothing && !self.guest.devices[LINK].arm()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The guest has kicked, and stands still.
    pub fn kicked(
        &mut self,
        device: usize,
        ring: usize,
        state: &mut State,
        zero: Zero,
    ) -> Result<(), Error> {
        let now = self.guest.schedule.now();
        if ring == FROM_GUEST {
            match device {
                LINK => self.transmit(now, state, zero)?,
                _ => self.report(now)?,
            }
        }
        // It may have been given something to wait for.
        if let Some(local) = self.local(state, zero) {
            self.guest.schedule.bound(local.max(now));
        }
        self.guest.devices[device].answer()
    }

    fn report(&mut self, now: u64) -> Result<(), Error> {
        let device = &mut self.guest.devices[CONTROL];
        loop {
            match device.take(&mut self.frame)? {
                Taken::Frame(length, _) => {
                    self.reported = Some(now);
                    // Other frames are the kernel's own, such as of its neighbour discovery.
                    if length > ETHERNET && self.frame[12..ETHERNET] == ETHERTYPE.to_be_bytes() {
                        let bytes = self.frame[ETHERNET..length].to_vec();
                        self.reports.push(Reported { at: now, host: self.host, bytes });
                    }
                }
                Taken::Bad => self.reported = Some(now),
                Taken::Nothing => {
                    if !device.arm()? {
                        return Ok(());
                    }
                }
            }
        }
    }
}
