//! The calendar: guests and network in one virtual time.
//!
//! Time passes in windows. A window is no longer than a packet needs from any host to its switch,
//! so what a guest sends within one reaches the fabric after it: the guests of a window need
//! nothing of each other, and run one after another, or side by side.
//!
//! Invariant: results depend on times, numbers of hosts and order at one host, never on the wall
//! clock or on how many guests run side by side.

use crate::cost::Cores;
use crate::error::Error;
use crate::guest::{self, Boot, Guest, Stop};
use crate::modelled::Modelled;
use crate::site::{Reported, Site, Zero, ns};
use millpond_core::Time;
use millpond_lab::state::State;
use millpond_worlds::World;

/// While guests boot nothing crosses the network, and windows are long.
const BOOT_WINDOW: u64 = 1_000_000;
/// Guests that do not boot within this of virtual time never will.
const BOOT_MAX: u64 = 20_000_000_000;
/// The plan's time begins at a multiple of this.
const ROUND: u64 = 10_000_000;
const INSTANT: Time = Time::from_ps(1);
/// How often hosts forget what is idle.
const AGE: u64 = 1_000_000;

/// Orders for agents, each with its host, and when it is due by the plan's time.
pub type Orders = Vec<(Time, u32, Vec<u8>)>;

/// Steers the agents of a world.
pub trait Steering {
    /// When it has something to order, by the plan's time.
    fn next(&mut self) -> Option<Time>;
    fn on_time(&mut self, now: Time, orders: &mut Orders);
    /// An agent has sent a report.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn on_report(
        &mut self,
        now: Time,
        host: u32,
        report: &[u8],
        orders: &mut Orders,
    ) -> Result<(), String>;
    /// Takes what modelled hosts have recorded, at times of the plan's.
    fn on_records(&mut self, modelled: &mut Modelled<'_>);
    /// Whether the run ends at `now`. Called once a window.
    fn is_over(
        &mut self,
        now: Time,
        state: &mut State,
        modelled: Option<&mut Modelled<'_>>,
        orders: &mut Orders,
    ) -> bool;
}

/// Guests, the network between them, and their time.
pub struct Calendar {
    pub state: State,
    /// The kernels, in the order of hosts.
    pub sites: Vec<Site>,
    /// By number of host: its site; that of a modelled host is none.
    at: Vec<usize>,
    zero: Zero,
    /// The length of a window in nanoseconds.
    window: u64,
    /// Guests that run side by side.
    parallel: usize,
    pub windows: u64,
    aged: u64,
}

impl Calendar {
    /// Boots guests for hosts of a network. `nic`: the interrupt throttle and cores of each.
    pub fn boot<'a>(
        world: &World,
        state: State,
        boots: impl Iterator<Item = Boot<'a>>,
        window: Time,
        parallel: usize,
        nic: impl Fn() -> (Time, Option<Cores>),
    ) -> Result<Calendar, Error> {
        let mut sites = Vec::new();
        let mut at = vec![usize::MAX; state.hosts.len()];
        for boot in boots {
            let (throttle, cores) = nic();
            at[boot.host as usize] = sites.len();
            sites.push(Site::new(boot.host, Guest::boot(world, &boot)?, ns(throttle), cores));
        }
        let window = (window.as_ps() / 1000).max(1);
        let parallel = parallel.max(1);
        let mut calendar =
            Calendar { state, sites, at, zero: None, window, parallel, windows: 0, aged: 0 };
        // Up to their first wait, at the beginning of time.
        let all: Vec<usize> = (0..calendar.sites.len()).collect();
        for site in all {
            calendar.serve(&mut vec![site], 1)?;
        }
        Ok(calendar)
    }

    /// Passes agents' reports on until `is_ready`; then the plan's time begins. `on_report` returns
    /// frames of orders, which are due at once, or why the host cannot be set up.
    pub fn begin(
        &mut self,
        mut on_report: impl FnMut(&Reported) -> Result<Vec<Vec<u8>>, String>,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        while !is_ready() {
            let now = self.sites.iter().filter_map(|site| site.next(&self.state, None)).min();
            let Some(now) = now.filter(|now| *now < BOOT_MAX) else {
                let site = &self.sites[0];
                return Err(site.guest.fails("the kernels run, and their agents are not ready"));
            };
            let end = now + BOOT_WINDOW;
            self.run(end)?;
            for report in self.reports() {
                let site = self.site(report.host);
                let orders = on_report(&report).map_err(|reason| site.guest.fails(reason))?;
                orders.iter().for_each(|order| site.order(end, order));
            }
        }
        let latest = self.sites.iter().map(|site| site.guest.schedule.now()).max().unwrap_or(0);
        let zero = (latest + BOOT_WINDOW).next_multiple_of(ROUND);
        self.run(zero)?;
        self.zero = Some(zero);
        Ok(())
    }

    fn site(&mut self, host: u32) -> &mut Site {
        &mut self.sites[self.at[host as usize]]
    }

    /// Runs until it is over, with the network's modelled hosts.
    pub fn go(
        &mut self,
        steering: &mut dyn Steering,
        mut modelled: Option<&mut Modelled<'_>>,
    ) -> Result<(), Error> {
        let Some(zero) = self.zero else { return Ok(()) };
        let (mut orders, mut reached) = (Orders::new(), zero);
        loop {
            let sites = self.sites.iter().filter_map(|site| site.next(&self.state, self.zero));
            let others = self.state.deadline().into_iter().chain(steering.next());
            let others = others.chain(modelled.as_mut().and_then(|it| it.next()));
            let others = others.map(|at| ns(at).saturating_add(zero));
            let Some(now) = sites.chain(others).min() else { return Ok(()) };
            // The orders that follow from a report can be due before the end of the report's
            // window, and guests have passed that time.
            let now = now.max(reached);
            let end = now + self.window;
            reached = end;
            let plan = |at: u64| Time::from_ns(at - zero);
            let own = modelled.as_deref_mut();
            if steering.is_over(plan(now), &mut self.state, own, &mut orders) {
                return Ok(());
            }
            while let Some(at) = steering.next().filter(|at| ns(*at) + zero < end) {
                steering.on_time(at.max(plan(now)), &mut orders);
            }
            self.send(&mut orders, zero);
            self.state.advance(plan(end).saturating_sub(INSTANT));
            while let Some(left) = self.state.leave() {
                self.site(left.host).arrives(left);
            }
            while let Some(paused) = self.state.fabric.paused() {
                match (self.at[paused.host as usize], &mut modelled) {
                    (usize::MAX, Some(modelled)) => modelled.pauses(paused),
                    (site, _) => self.sites[site].pauses(paused),
                }
            }
            if let Some(modelled) = &mut modelled {
                modelled.run(plan(end), &mut self.state);
            }
            self.run(end)?;
            for Reported { at, host, bytes } in self.reports() {
                let passed = steering.on_report(plan(at.max(zero)), host, &bytes, &mut orders);
                passed.map_err(|reason| self.site(host).guest.fails(reason))?;
            }
            // The orders that follow from a report reach other hosts a window later.
            orders.iter_mut().for_each(|(at, ..)| *at = (*at).max(plan(end)));
            self.send(&mut orders, zero);
            if now - self.aged >= AGE {
                self.aged = now;
                self.state.hosts.iter_mut().for_each(|host| host.age(plan(now)));
                self.state.hand_over(plan(now));
                if let Some(modelled) = &mut modelled {
                    steering.on_records(modelled);
                }
            }
        }
    }

    fn send(&mut self, orders: &mut Orders, zero: u64) {
        for (at, host, bytes) in orders.drain(..) {
            self.site(host).order(ns(at) + zero, &bytes);
        }
    }

    /// The agents' reports in this window, in the order of time and of hosts.
    fn reports(&mut self) -> Vec<Reported> {
        let mut all: Vec<Reported> =
            self.sites.iter_mut().flat_map(|site| std::mem::take(&mut site.reports)).collect();
        all.sort_by_key(|report| (report.at, report.host));
        all
    }

    /// Runs all guests up to the end of a window.
    fn run(&mut self, end: u64) -> Result<(), Error> {
        self.windows += 1;
        let (mut busy, mut next) = (Vec::new(), 0);
        loop {
            while busy.len() < self.parallel && next < self.sites.len() {
                if self.advance(next, end)? {
                    busy.push(next);
                }
                next += 1;
            }
            if busy.is_empty() {
                return Ok(());
            }
            self.serve(&mut busy, end)?;
        }
    }

    fn advance(&mut self, site: usize, end: u64) -> Result<bool, Error> {
        let Calendar { state, sites, zero, .. } = self;
        let site = &mut sites[site];
        site.advance(end, state, *zero).map_err(|error| blame(site, error))
    }

    /// Serves guests that run, until one of them has nothing more to do in this window.
    fn serve(&mut self, busy: &mut Vec<usize>, end: u64) -> Result<(), Error> {
        let before = busy.len();
        while busy.len() == before {
            let at = match busy[..] {
                [_] => 0,
                _ => guest::first(busy.iter().map(|site| &self.sites[*site].guest))?,
            };
            let which = busy[at];
            let Calendar { state, sites, zero, .. } = &mut *self;
            let site = &mut sites[which];
            match site.guest.next()? {
                Stop::Kick(device, ring) => {
                    let answered = site.kicked(device, ring, state, *zero);
                    answered.map_err(|error| blame(site, error))?;
                }
                Stop::Waits => {
                    if !self.advance(which, end)? {
                        busy.swap_remove(at);
                    }
                }
            }
        }
        Ok(())
    }
}

/// An error of a guest, with the last lines of its console.
fn blame(site: &Site, error: Error) -> Error {
    match error {
        Error::Protocol(_) | Error::System { .. } => site.guest.fails(error.to_string()),
        other => other,
    }
}
