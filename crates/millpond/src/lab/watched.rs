//! The observer of a run with real kernels, which several threads have.
//!
//! Invariant: after the observer's first error it is called no more, and the run ends with that.

use super::{LOOK, limits, limits_of};
use crate::{ConnectionRecord, Error, FlowRecord, Observer, QueryRecord, Standing, Time};
use millpond_lab::load::Sink;
use millpond_lab::{Lab as Up, Lateness, Record, Records, output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The observer, as the threads of a run have it.
pub(crate) struct Watched<'a> {
    state: Mutex<(&'a mut dyn Observer, Option<Error>)>,
    completed: AtomicU64,
    /// Completion times of flows, and response times of programs.
    times: Mutex<Lateness>,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer) -> Watched<'a> {
        let (state, times) = (Mutex::new((observer, None)), Mutex::default());
        Watched { state, completed: AtomicU64::new(0), times }
    }

    fn took(&self, time: Time) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).add(time);
    }

    /// Passes something on, unless that has failed before; whether the run goes on.
    pub(crate) fn pass(&self, work: impl FnOnce(&mut dyn Observer) -> Result<bool, Error>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1.is_some() {
            return false;
        }
        match work(state.0) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                state.1 = Some(error);
                false
            }
        }
    }

    /// Reports the run's progress to the observer until the run is over, and passes on what the lab
    /// records. Returns what limits had counted at `warm`.
    pub(crate) fn look(
        &self,
        lab: &Up,
        records: &Records,
        warm: Instant,
        stop: &AtomicBool,
        is_over: &AtomicBool,
    ) -> Result<limits::Reading, Error> {
        let (began, mut then) = (lab.began(), None);
        while !is_over.load(Relaxed) {
            if then.is_none() && warm <= Instant::now() {
                then = Some(limits_of(lab));
            }
            let standing = Standing {
                simulated: Time::from_ns(began.elapsed().as_nanos() as u64),
                hops: lab.hops(),
                started: 0,
                completed: self.completed.load(Relaxed),
            };
            if !self.pass(|observer| observer.edge(&standing)) {
                stop.store(true, Relaxed);
            }
            let next = Instant::now() + LOOK;
            while let Some(left) = next.checked_duration_since(Instant::now())
                && let Some(batch) = records.next(left)
            {
                self.recorded(&batch);
            }
        }
        then.unwrap_or_else(|| limits_of(lab))
    }

    /// Passes on what the world has recorded; whether the run goes on.
    pub(crate) fn recorded(&self, batch: &[Record]) -> bool {
        batch.iter().all(|record| {
            self.pass(|observer| match record {
                Record::Queue(queue) => observer.queue(queue).map(|()| true),
                Record::Packet(packet) => observer.packet(packet).map(|()| true),
            })
        })
    }

    /// The median of completion and response times.
    pub(crate) fn end(self) -> Result<Time, Error> {
        let times = self.times.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (_, error) = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(times.quantile(0.5)), Err)
    }
}

impl Sink for &Watched<'_> {
    fn flow(&mut self, record: FlowRecord) -> bool {
        self.completed.fetch_add(1, Relaxed);
        if let Some(fct) = record.fct() {
            self.took(fct);
        }
        self.pass(|observer| observer.flow(&record).map(|()| true))
    }
    fn query(&mut self, record: QueryRecord) -> bool {
        self.pass(|observer| observer.query(&record).map(|()| true))
    }
    fn rtt(&mut self, rtt: Time) -> bool {
        self.pass(|observer| observer.rtt(rtt).map(|()| true))
    }
    fn connection(&mut self, record: ConnectionRecord) -> bool {
        self.pass(|observer| observer.connection(&record).map(|()| true))
    }
}

impl output::Sink for &Watched<'_> {
    fn output(&mut self, program: &str, stream: &str, bytes: &[u8]) {
        self.pass(|observer| observer.output(program, stream, bytes).map(|()| true));
    }
    fn response(&mut self, class: &str, time: Time) {
        self.took(time);
        self.pass(|observer| observer.response(class, time).map(|()| true));
    }
}
