//! An edge becomes that of another configuration, and reports which paths it uses.
//!
//! Invariant: a path whose keys are the same keeps its socket and its counters. A peer whose keys
//! and paths are the same keeps its session, too: nothing that it sends or is sent is lost.

use super::{Paths, Uplink};
use crate::edge::Edge;
use crate::switch::config::Config;
use crate::switch::overlay::Homes;
use crate::switch::path::Path;
use crate::switch::peer::Peer;
use millpond_core::Time;
use millpond_core::edge::liveness::Standing;
use millpond_core::edge::schedule::weighted;

impl Uplink {
    /// Makes paths and peers those of `config`. `is_edge_new`: the edge's keys have changed, and
    /// flows begin anew.
    pub fn change(&mut self, config: &Config, is_edge_new: bool) {
        if is_edge_new {
            let (rule, offload) = (config.edge.rule(), &config.edge.receive_offload.0);
            self.edge = Edge::new(rule, Vec::new(), offload);
        }
        self.renew(config);
    }

    pub(super) fn renew(&mut self, config: &Config) {
        let names = config.peers();
        let Paths { paths: mut old, peers } = std::mem::take(&mut self.paths);
        let mut peers: Vec<Option<Peer>> = peers.into_iter().map(Some).collect();
        // The peers that are as before, by their paths and by their keys.
        let kept: Vec<Option<Peer>> = names
            .iter()
            .map(|name| {
                let is_it = |peer: &Option<Peer>| peer.as_ref().is_some_and(|it| it.name == *name);
                let at = peers.iter().position(is_it)?;
                let before = old.iter().filter(|path| path.peer == at).map(|path| &path.params);
                let now = config.paths.iter().filter(|path| path.peer == *name);
                let params = config.peer(name);
                peers[at].take_if(|peer| peer.has(&params) && before.eq(now))
            })
            .collect();
        let mut paths: Vec<Path> = Vec::new();
        for params in &config.paths {
            let peer = names.iter().position(|name| *name == params.peer).unwrap_or(0);
            let label = paths.iter().filter(|path| path.peer == peer).count() as u16;
            let same = old.iter().position(|path| path.params == *params);
            let same = same.map(|at| old.swap_remove(at));
            let mut path = same.unwrap_or_else(|| Path::new(params.clone(), peer, label));
            (path.peer, path.label) = (peer, label);
            paths.push(path);
        }
        // Sockets whose addresses others may want.
        drop(old);
        let count = |peer| paths.iter().filter(|path| path.peer == peer).count();
        let new = |peer: usize| Peer::new(&names[peer], &config.peer(&names[peer]), count(peer));
        let peers = kept.into_iter().enumerate();
        let peers = peers.map(|(at, kept)| kept.unwrap_or_else(|| new(at))).collect();
        self.paths = Paths { paths, peers };
        let has_overlay = self.paths.peers.iter().any(|peer| peer.overlay().is_some());
        self.homes = has_overlay.then(Homes::default);
        self.edge.set_peers((0..names.len()).map(|peer| self.labels(peer)).collect());
        self.open();
    }

    /// The paths that lead to a peer, each as often as its weight.
    pub(super) fn labels(&self, peer: usize) -> Vec<u16> {
        let Paths { paths, peers, .. } = &self.paths;
        let is_used =
            |path: &&Path| path.peer == peer && peers[peer].standing(path.label) == Standing::Used;
        let used = paths.iter().filter(is_used);
        let weights: Vec<(u16, u64)> =
            used.map(|path| (path.label, u64::from(path.params.weight))).collect();
        weighted(&weights)
    }

    /// Logs how the paths to each peer stand, if that has changed and has lasted.
    pub(super) fn report(&mut self, now: Time) {
        let Paths { paths, peers, .. } = &mut self.paths;
        for (at, peer) in peers.iter_mut().enumerate() {
            let of_peer = paths.iter().filter(|path| path.peer == at);
            let standings: Vec<(String, Standing)> = of_peer
                .map(|path| (path.params.local.to_string(), peer.standing(path.label)))
                .collect();
            // Where no path answers, none is worse than another, and all still count as used.
            let is_silent = peer.is_silent(now);
            let is_used = |standing: &Standing| !is_silent && *standing == Standing::Used;
            let is_reached = standings.iter().any(|(_, standing)| is_used(standing));
            match peer.contact(now, is_reached) {
                Some(true) => log::warn!("peer {} is lost: none of its paths answers", peer.name),
                Some(false) => log::info!("peer {} is reached again", peer.name),
                None => {}
            }
            let unused = standings.iter().filter(|(_, standing)| !is_used(standing)).count();
            let name = |how: &Standing| if is_silent { "silent" } else { how.name() };
            let text: Vec<String> =
                standings.iter().map(|(local, how)| format!("{local} {}", name(how))).collect();
            if let Some(text) = peer.news.of(now, text.join(", "), unused) {
                let level = if unused == 0 { log::Level::Info } else { log::Level::Warn };
                log::log!(level, "paths to {}: {text}", peer.name);
            }
        }
    }
}
