//! The changes by a plan's failures while its lab is up: which links switches take to be down,
//! routes, and the labels that hosts send with.
//!
//! Follows the simulator: all of it is known from the plan (`millpond_sim`'s `failing`,
//! `convergence`, `labels`), so nothing is measured, and no message is exchanged.
//!
//! Invariant: changes are handed out once, in the order of time.

use crate::host::Host;
use millpond_core::Time;
use millpond_core::switch::route::Routes;
use millpond_linux::fabric::Fabric;
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::End;
use millpond_sim::labels::LabelPlan;
use millpond_sim::{convergence, failing};
use std::collections::VecDeque;

enum Change {
    /// A switch learns that the link at a port is up, or down.
    Alive {
        switch: u32,
        port: u16,
        alive: bool,
    },
    Routes(u32, Routes),
    /// The controller has given hosts other labels.
    Labels,
}

pub struct Changes {
    due: VecDeque<(Time, Change)>,
    labels: Option<LabelPlan>,
}

/// By link that fails: what the switches at its ends learn.
fn notices(plan: &Plan) -> impl Iterator<Item = (Time, Change)> {
    let links = 0..plan.topology.links.len() as u32;
    links.flat_map(|link| {
        let site = &plan.topology.links[link as usize];
        let ends = [site.a, site.b].into_iter().filter_map(|end| match end {
            End::Switch { switch, port } => Some((switch, port)),
            End::Host(_) => None,
        });
        let times = failing::noticed(plan, link);
        ends.flat_map(move |(switch, port)| {
            let both = |(down, up)| [(down, false), (up, true)];
            let all: Vec<_> = times.iter().copied().flat_map(both).collect();
            all.into_iter().map(move |(at, alive)| (at, Change::Alive { switch, port, alive }))
        })
    })
}

/// The routes that switches have after links have failed.
fn routes(plan: &Plan) -> impl Iterator<Item = (Time, Change)> {
    convergence::epochs(plan).into_iter().flat_map(|epoch| {
        let own = |switch: u32| &plan.topology.routes[switch as usize];
        let changed = epoch.changed.into_iter();
        let routes = changed.map(|(switch, it)| Change::Routes(switch, own(switch).amended(&it)));
        routes.map(|change| (epoch.from, change)).collect::<Vec<_>>()
    })
}

impl Changes {
    /// Of a plan whose hosts send with these labels.
    pub fn new(plan: &Plan, labels: Option<LabelPlan>) -> Changes {
        let lists = labels.as_ref().into_iter().flat_map(LabelPlan::changes);
        let lists = lists.filter(|at| *at > Time::ZERO).map(|at| (at, Change::Labels));
        let mut due: Vec<_> = notices(plan).chain(routes(plan)).chain(lists).collect();
        due.retain(|(at, _)| *at < Time::MAX);
        due.sort_by_key(|(at, _)| *at);
        Changes { due: due.into(), labels }
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Time> {
        self.due.front().map(|(at, _)| *at)
    }

    pub fn make(&mut self, fabric: &mut Fabric, hosts: &mut [Host]) {
        let Some((at, change)) = self.due.pop_front() else { return };
        match change {
            Change::Alive { switch, port, alive } => {
                fabric.switch_mut(switch as usize).set_alive(port, alive);
            }
            Change::Routes(switch, routes) => fabric.switch_mut(switch as usize).set_routes(routes),
            Change::Labels => {
                for (host, it) in (0..).zip(hosts) {
                    it.set_labels(|peer| {
                        self.labels.as_ref().map_or(&[], |labels| labels.between(at, host, peer))
                    });
                }
            }
        }
    }
}
