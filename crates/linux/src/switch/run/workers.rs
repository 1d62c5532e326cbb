//! Workers: poll loops that share the work of a switch, and nothing else.
//!
//! Each worker is a whole switch on a thread: it has a queue of each port, the table of addresses,
//! its own merging and flow state, and with each peer a tunnel of its own. Worker `i` of both
//! switches use the ports of the paths' addresses plus `i`, so a tunnel has its own session: its
//! numbers and its window are one worker's. Each worker probes its own paths, since routers may
//! send another port's datagrams another way.
//!
//! The first worker answers requests, and opens ports for all (`Order`). A worker whose tunnel the
//! peer does not answer, because that has fewer workers, gives its frames to the first worker.
//!
//! Invariant: workers wait for each other only when the configuration changes or is read; a panic
//! outside the work for a frame or a part of a round ends the process, and with it the switch.

use super::Switch;
use crate::dataplane::port::{Port, Presence};
use crate::switch::config::Config;
use crate::switch::control::{Asking, Request};
use crate::switch::error::Error;
use crate::switch::order::{Handed, Order};
use crate::switch::reading::{FlowReading, Reading};
use crate::switch::state::State;
use crate::switch::supervise::PANICKED;
use crate::switch::table::Place;
use crate::tunnel::session;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{Builder, JoinHandle};

/// A worker's place among the workers of its switch.
#[derive(Default)]
pub struct Team {
    /// Its own number; the first one's is 0.
    number: usize,
    /// For the first worker all others in order, and for others the first.
    others: Vec<Asking>,
    threads: Vec<JoinHandle<()>>,
    /// The number of the process in its probes for loops.
    pub(super) prober: u64,
}

impl Team {
    pub fn alone() -> Team {
        let mut team = Team::default();
        team.prober = session::draw()
            .map_or(0, |[a, b, c, d, e, f, g, h, ..]| u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        team
    }

    /// The first of the `config`'s workers; the others start.
    pub fn start(config: &Config, state: &State, first: &Asking) -> Result<Team, Error> {
        let mut team = Team::alone();
        let prober = team.prober;
        for number in 1..config.switch.workers as usize {
            let (asking, requests, wake) = Asking::new()?;
            let (own, state, first) = (config.clone(), state.clone(), first.clone());
            let work = move || {
                let team = Team { number, others: vec![first], threads: Vec::new(), prober };
                Switch::of_team(state, &own, requests, wake, team).run()
            };
            team.threads.push(spawn(number, work)?);
            team.others.push(asking);
        }
        Ok(team)
    }

    /// Whether it is the first worker, who opens ports and answers for all.
    pub fn leads(&self) -> bool {
        self.number == 0
    }
    /// Whether it is the only one.
    pub fn is_alone(&self) -> bool {
        self.others.is_empty()
    }
    pub fn number(&self) -> usize {
        self.number
    }
    /// How many workers the first one's switch has.
    pub fn size(&self) -> usize {
        1 + self.others.len()
    }

    /// Whether a configuration has as many workers; one of several follows the first.
    pub fn fits(&self, config: &Config) -> bool {
        !self.leads() || self.size() == config.switch.workers as usize
    }

    /// The others become switches of `config`. Returns their paths that are not open, and why.
    pub fn change(&self, config: &Config) -> Vec<(String, String)> {
        let mut waiting = Vec::new();
        for (other, number) in self.others.iter().zip(1..) {
            match other.apply(config.clone()) {
                Ok(done) => waiting.extend(done.waiting),
                Err(error) => log::warn!("worker {number} does not change: {error}"),
            }
        }
        // A key that cannot be read is each worker's.
        waiting.retain(|(what, _)| !what.starts_with("the key of"));
        waiting
    }
    /// Hands each of the others a queue of a port.
    pub fn opened(&self, index: usize, queues: Vec<Port>, mtu: usize) {
        for (other, port) in self.others.iter().zip(queues) {
            other.order(Order::Opened { index, port: Box::new(port), mtu });
        }
    }
    /// Sends each of the others an order.
    pub fn order(&self, order: impl Fn() -> Order) {
        self.others.iter().for_each(|other| other.order(order()));
    }
    pub fn readings(&self) -> Vec<Reading> {
        self.others.iter().filter_map(|other| other.show().ok()).collect()
    }
    /// The flows that the others send to peers.
    pub fn flows(&self) -> Vec<FlowReading> {
        self.others.iter().filter_map(|other| other.flows().ok()).flatten().collect()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if self.leads() {
            self.order(|| Order::End);
            self.threads.drain(..).for_each(|thread| drop(thread.join()));
        }
    }
}

#[cfg(test)]
impl Team {
    /// A worker that is not the first.
    pub fn follower(number: usize, first: Asking) -> Team {
        Team { number, others: vec![first], threads: Vec::new(), prober: 0 }
    }
}

/// Starts a worker. Its panic ends the process, as that of a process's only thread does: a switch
/// without one of its workers would lose the flows of that one.
pub(super) fn spawn(
    number: usize,
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            if std::thread::panicking() {
                std::process::exit(PANICKED);
            }
        }
    }
    let guarded = move || {
        let _guard = Guard;
        if let Err(error) = work() {
            log::error!("worker {number}: {error}");
            std::process::exit(1);
        }
    };
    Builder::new()
        .name(format!("worker {number}"))
        .spawn(guarded)
        .map_err(|e| Error::kernel("starting a worker", e))
}

impl Switch {
    /// The first of the `config`'s workers, with the others; `asking` asks this one.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel gives no thread or no event.
    pub fn with_workers(
        state: State,
        config: Config,
        asking: &Asking,
        requests: Receiver<Request>,
        wake: Arc<OwnedFd>,
    ) -> Result<Switch, Error> {
        let team = Team::start(&config, &state, asking)?;
        let mut switch = Switch::of_team(state, &config, requests, wake, team);
        switch.change(config);
        switch.wait_for_predecessor();
        Ok(switch)
    }

    /// Does what another worker asks; whether to go on.
    pub(super) fn obey(&mut self, order: Order) -> bool {
        let (now, leads) = (self.now(), self.team.leads());
        match order {
            Order::Opened { index, port, mtu } if index < self.node.slots.len() => {
                self.node.lose(index);
                let slot = &mut self.node.slots[index];
                (slot.port, slot.mtu) = (Some(*port), mtu);
                slot.counters.rises_from(0);
            }
            Order::Lost(index) if index < self.node.slots.len() => self.node.lose(index),
            Order::Opened { .. } | Order::Lost(_) => {}
            Order::Probes(seen) => {
                seen.into_iter().for_each(|seen| self.judge_probe(now, seen));
            }
            Order::Blocked { index, is_blocked } => {
                if let Some(slot) = self.node.slots.get_mut(index) {
                    slot.watch.set_blocked(is_blocked);
                    self.node.table.forget(Place::Port(index));
                }
            }
            Order::Learned(news) if leads => {
                news.into_iter().for_each(|news| self.node.table.judge(now, news));
            }
            Order::Learned(news) => {
                news.into_iter().for_each(|news| self.node.table.obey(now, news));
            }
            Order::Handed(frames) => {
                for frame in frames {
                    self.uplink.take_handed(now, frame, &mut self.buffers, &mut self.node);
                }
            }
            Order::Watched(name, mirror) => {
                let slot = self.node.slots.iter_mut().find(|slot| slot.name == name);
                slot.into_iter().for_each(|slot| slot.mirror = Some(mirror.another()));
            }
            Order::End => return false,
        }
        true
    }

    /// Sends other workers what a round has for them.
    pub(super) fn report_to_team(&mut self) {
        if self.team.is_alone() {
            return;
        }
        let news = self.node.table.take_news();
        if !news.is_empty() {
            self.team.order(|| Order::Learned(news.clone()));
        }
        let handed: Vec<Handed> = self.uplink.take_away();
        if let Some(first) = self.team.others.first().filter(|_| !handed.is_empty()) {
            first.order(Order::Handed(handed));
        }
    }

    /// Work that need not be done at once, for a worker that is not the first.
    pub(super) fn follow_ports(&mut self) {
        for index in 0..self.node.slots.len() {
            let slot = &mut self.node.slots[index];
            let presence = slot.port.as_mut().map_or(Presence::Same, Port::follow);
            if presence == Presence::Gone {
                slot.lose();
            }
            slot.renew_mtu();
            if slot.port.is_none() {
                self.node.table.forget(Place::Port(index));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The test runs itself as another process, which ends in another status than a failed test's
    /// if its main thread lives on.
    #[test]
    fn a_worker_that_panics_ends_the_process() {
        const ROLE: &str = "MILLPOND_TEST_PANIC";
        if std::env::var_os(ROLE).is_some() {
            let _thread = spawn(1, || panic!("a worker's")).unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
            std::process::exit(0);
        }
        let name = "switch::run::workers::tests::a_worker_that_panics_ends_the_process";
        let mut program = Command::new(std::env::current_exe().unwrap());
        let start = std::time::Instant::now();
        let ended = program.args(["--exact", name, "--nocapture"]).env(ROLE, "1").output().unwrap();
        assert_eq!(ended.status.code(), Some(PANICKED));
        assert!(start.elapsed().as_secs() < 30);
    }
}
