//! Flows begin: arrivals, closed loops, probes, and the two sides of a connection.

use super::*;
use crate::nics::Asks;
use millpond_core::host::{Conditions, EgressStages, Label};

impl Hosts {
    /// A query is asked; its flows follow.
    pub fn expect(&mut self, query: Query) {
        self.queries.insert(query.query, Pending { query, completed: 0 });
    }

    pub fn start(&mut self, now: Time, arrival: &Arrival, fabric: &mut Fabric) {
        let role = if arrival.response > 0 {
            Role::Request { response: arrival.response }
        } else {
            Role::OneWay
        };
        let opening = Opening {
            bytes: arrival.bytes,
            query: arrival.query,
            ..Opening::new(now, arrival.flow, arrival.class, role, (arrival.src, arrival.dst))
        };
        self.note_start(arrival.flow);
        self.begin(now, opening, fabric);
    }

    /// The closed loops that begin at this partition's host `host`.
    pub fn start_loops(&mut self, now: Time, source: u16, host: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let id = self.hosts[host as usize].id;
        match &shared.plan.traffic.sources[source as usize].kind {
            SourceKind::Open => {}
            SourceKind::Job(job) => self.start_rank(now, source, job, host, fabric),
            SourceKind::Shuffle { concurrency, .. } => {
                for _ in 0..*concurrency {
                    self.next_of_shuffle(now, source, host, fabric);
                }
            }
            SourceKind::Rpc { connections, request, .. } => {
                for (index, (client, server)) in connections.iter().enumerate() {
                    if *client == id {
                        let ends = (*client, *server);
                        self.open_rpc(now, source, index as u32, ends, *request, fabric);
                    }
                }
            }
            SourceKind::Probe { pairs, stop, first_flow, .. } => {
                for (index, pair) in pairs.iter().enumerate().filter(|(_, pair)| pair.src == id) {
                    let (at, flow) =
                        (now.saturating_add(pair.phase), first_flow + 2 * index as u32);
                    if at < *stop {
                        fabric.call(at, host, HostEvent::Probe(flow));
                    }
                }
            }
        }
    }

    /// Opens a connection, on which its first bytes are written.
    fn begin(&mut self, now: Time, opening: Opening, fabric: &mut Fabric) {
        self.count_start();
        let slot = self.open(now, opening, self.shared.handshake, fabric);
        self.senders.at(slot).sender.write(now, opening.bytes);
        self.pump(now, slot, fabric);
    }

    pub(super) fn count_start(&mut self) {
        self.counters.started += 1;
        self.counters.active += 1;
    }

    /// Starts the host's next flow of a shuffle, if there is one.
    pub(super) fn next_of_shuffle(
        &mut self,
        now: Time,
        source: u16,
        host: u32,
        fabric: &mut Fabric,
    ) {
        let shared = self.shared.clone();
        let SourceKind::Shuffle { size, stop, order, first_flow, .. } =
            &shared.plan.traffic.sources[source as usize].kind
        else {
            return;
        };
        let src = self.hosts[host as usize].id;
        let destinations = &order[src as usize];
        let started = self.shuffled.entry((source, host)).or_insert(0);
        let Some(&dst) = destinations.get(*started as usize) else { return };
        if now >= *stop {
            return;
        }
        let flow = first_flow + src * destinations.len() as u32 + *started;
        *started += 1;
        let class = shared.plan.traffic.sources[source as usize].class;
        let opening = Opening::new(now, flow, class, Role::Shuffle, (src, dst));
        let opening = Opening { bytes: *size, ..opening };
        self.begin(now, opening, fabric);
    }

    pub(super) fn open_rpc(
        &mut self,
        now: Time,
        source: u16,
        index: u32,
        ends: (HostId, HostId),
        request: u64,
        fabric: &mut Fabric,
    ) {
        let traffic = &self.shared.plan.traffic.sources[source as usize];
        let SourceKind::Rpc { first_flow, .. } = traffic.kind else { return };
        let flow = first_flow + 2 * index;
        let opening = Opening::new(now, flow, traffic.class, Role::RpcRequests, ends);
        let opening = Opening { bytes: request, ..opening };
        self.begin(now, opening, fabric);
    }

    /// A probe is due: asks, on a connection that is taken to have been open for ever.
    pub fn on_probe(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let slot = match self.senders.slot_of(flow) {
            Some(slot) => slot,
            None => {
                let Some((class, probe, pair)) = self.shared.probe_of(flow) else { return };
                let opening = Opening::new(now, flow, class, Role::Pings, (pair.src, pair.dst));
                let opening = Opening { bytes: probe.size, ..opening };
                self.open(now, opening, false, fabric)
            }
        };
        if let Some(answers) = self.receivers.slot_of(flow + 1) {
            self.receivers.at(answers).asked = now;
        }
        let sending = self.senders.at(slot);
        let bytes = sending.opening.bytes;
        sending.sender.write_next(now, bytes);
        self.pump(now, slot, fabric);
    }

    /// A probe is answered: measures it, and asks again when the period is over.
    pub(super) fn probed(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let receiving = self.receivers.at(slot);
        let (flow, asked) = (receiving.opening.flow, receiving.asked);
        if asked >= self.shared.plan.warm_up {
            self.rtts.push((now, flow, now.saturating_sub(asked)));
        }
        let Some((_, probe, _)) = self.shared.probe_of(flow - 1) else { return };
        let next = asked.saturating_add(probe.period).max(now);
        if next < probe.stop {
            fabric.call(next, self.receivers.at(slot).host, HostEvent::Probe(flow - 1));
        }
    }

    /// Makes the sending side of a connection and notifies the receiving host of it.
    pub(super) fn open(
        &mut self,
        now: Time,
        mut opening: Opening,
        handshake: bool,
        fabric: &mut Fabric,
    ) -> u32 {
        let mut paths = None;
        if self.shared.nics.is_some() {
            opening = self.placed(now, opening);
            paths = self.first_paths(now, &opening, Asks::Sender);
        }
        let shared = &self.shared;
        let host = shared.local_host(opening.src);
        let which = shared.plan.traffic.transports[opening.class as usize];
        let hash = five_tuple_hash(opening.src, opening.dst, opening.flow);
        let line = shared.plan.topology.links[opening.src as usize].rate;
        let place = shared.transport.nic_pulls().then_some(opening.flow);
        let is_by_packets = shared.transport.is_by_packets(which);
        let stages = EgressStages {
            conditions: Conditions {
                is_limited: self.hosts[host as usize].node.is_limited(),
                is_scheduled: shared.transport.is_scheduled(which),
                is_by_packets,
                is_switched: shared.has_overlay && !is_by_packets,
                is_split: paths.as_ref().is_some_and(|paths| paths.have_queues()),
                ..Conditions::default()
            },
            place,
            marker: shared.markers[usize::from(which)].clone().map(Box::new),
            ranker: shared.ranker.clone().map(Box::new),
            label: label(shared, opening.flow, hash, true),
        };
        let bound = shared.transport.nic_bound(which).or(shared.nic_limit);
        let nics = || shared.plan.topology.nics(shared.plan.topology.host_of(opening.src)).count();
        let bound = bound.map(|bytes| bytes * paths.as_ref().map_or(1, |_| nics() as u64));
        let sending = Sending {
            sender: Sender::new(which, handshake, line, opening.flow, &shared.transport),
            host,
            opening,
            peer: NONE,
            hash,
            priority: shared.plan.traffic.priorities[opening.class as usize],
            is_awaited: false,
            timer: Timer::UNSET,
            first_sent: None,
            delivered: None,
            egress: Egress::new(bound, stages),
            paths,
        };
        let slot = self.senders.insert(opening.flow, sending);
        opening.sender_slot = slot;
        self.senders.at(slot).opening = opening;
        // Neither a queue pair nor a message opens by one.
        let opens_by_handshake = handshake && self.shared.plan.opens_by_handshake(opening.class);
        if self.shared.has_overlay && !opens_by_handshake {
            self.settle_held(now, slot, fabric);
        }
        self.notify(now, opening.dst, Note::Open { opening, at: now }, fabric);
        slot
    }

    /// Leaves a note for the partition of `host`, which may be this one. Where connections move,
    /// another cell reads it at the window's edge: until then that cell may be ahead or behind.
    pub(super) fn notify(&mut self, now: Time, host: HostId, note: Note, fabric: &mut Fabric) {
        let partition = self.shared.partition_of_host(host);
        let cell = || fabric.events.of_host(self.shared.local_host(host));
        let is_here = partition == fabric.partition;
        if is_here && (self.shared.nics.is_none() || cell() == fabric.events.here()) {
            self.read(now, note, fabric);
        } else {
            fabric.post(partition, note);
        }
    }

    pub fn read(&mut self, now: Time, note: Note, fabric: &mut Fabric) {
        match note {
            Note::Open { opening, at } => {
                self.accept(at, opening, fabric);
                self.catch_up(&opening, at, now, fabric);
            }
            Note::Delivered { flow, at, out_of_order, path_changes } => {
                if let Some(slot) = self.senders.slot_of(flow) {
                    self.senders.at(slot).delivered =
                        Some(Delivered { at, out_of_order, path_changes });
                }
            }
            Note::Posted { flow, message } => self.expect_message(flow, message),
            Note::Matched { rank, operation, at } => self.expect_match(rank, operation, at, fabric),
            Note::News { node, at } => {
                self.waiting.under_way -= 1;
                self.on_news(node, at, fabric);
            }
            Note::Release(flow) => {
                if let Some(slot) = self.receivers.slot_of(flow)
                    && let Some(mut ended) = self.receivers.remove(slot)
                {
                    let key = Key::from(Due::Host(ended.host, HostEvent::ReceiverTimer(flow)));
                    fabric.events.cancel(ended.timer_at, key);
                    self.close(&mut ended, fabric);
                    self.count_received(&ended);
                    self.ranks.connections.close(flow);
                }
            }
        }
    }

    /// Makes the receiving side of a connection.
    pub(super) fn accept(&mut self, now: Time, opening: Opening, fabric: &mut Fabric) {
        let mut receiving = Receiving {
            receiver: Receiver::new(
                self.shared.plan.traffic.transports[opening.class as usize],
                &self.shared.transport,
            ),
            host: self.shared.local_host(opening.dst),
            opening,
            hash: five_tuple_hash(opening.dst, opening.src, opening.flow),
            priority: self.shared.plan.traffic.priorities[opening.class as usize],
            timer_at: Time::MAX,
            delivered: 0,
            // The messages of a job are announced one by one.
            ends: if opening.role.is_of_ranks() { u64::MAX } else { opening.bytes },
            asked: opening.start,
            measured: 0,
            out_of_order: 0,
            path_changes: 0,
            path: 0,
            hops: 0,
            any: false,
            handshake: Handshake::new(),
            ingress: None,
            paths: None,
        };
        if self.shared.nics.is_some() {
            receiving.paths = self.first_paths(now, &opening, Asks::Receiver);
        }
        receiving.ingress =
            label(&self.shared, opening.flow, receiving.hash, false).map(Ingress::labelled);
        self.receivers.insert(opening.flow, receiving);
        if opening.role == Role::Pings {
            self.open(now, opening.back(Role::Pongs), false, fabric);
        }
        if opening.role == Role::RpcRequests {
            // The server's half of the connection: its responses go out on the next flow id.
            let traffic = &self.shared.plan.traffic.sources;
            let bytes = traffic.iter().find_map(|source| match &source.kind {
                SourceKind::Rpc { connections, response, first_flow, .. }
                    if opening.flow >= *first_flow
                        && opening.flow - first_flow < 2 * connections.len() as u32 =>
                {
                    Some(*response)
                }
                _ => None,
            });
            let (bytes, request) = (bytes.unwrap_or(0), opening.bytes);
            let responses = Opening { bytes, request, ..opening.back(Role::RpcResponses) };
            self.open(now, responses, false, fabric);
        }
    }
}

/// The labels of one direction of a connection, if hosts spread what they send; `is_data`: the
/// direction of its data.
fn label(shared: &Shared, flow: FlowId, hash: u32, is_data: bool) -> Option<Box<Label>> {
    let plan = shared.labels.as_ref()?;
    let key = mix64(mix64(plan.seed) ^ (u64::from(flow) << 1 | u64::from(is_data)));
    Some(Box::new(Label::new(&plan.rule, key, hash, 0)))
}
