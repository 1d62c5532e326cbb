//! Flows end: completions, answers, queries, and the records of them.
//!
//! Invariant: each flow that started makes exactly one record.

use super::*;
use millpond_scenario::{Ends, Exchange};

impl Hosts {
    /// The receiver has all bytes of a flow or of a message.
    pub(super) fn complete(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let receiving = self.receivers.at(slot);
        let opening = receiving.opening;
        let (out_of_order, path_changes) = (receiving.out_of_order, receiving.path_changes);
        if opening.role.is_of_ranks() {
            return self.take_messages(now, slot, fabric);
        }
        if opening.role.is_persistent() {
            return self.complete_message(now, slot, fabric);
        }
        let note = Note::Delivered { flow: opening.flow, at: now, out_of_order, path_changes };
        self.notify(now, opening.src, note, fabric);
        match opening.role {
            Role::Request { response } => self.think(now, slot, response, fabric),
            _ => {
                if let Some(query) = opening.query {
                    self.answered(now, query);
                }
                self.notify_delivered(now, &opening, fabric);
            }
        }
    }

    /// A whole request or response of a persistent connection has arrived: answer it, or record it
    /// and ask again.
    pub(super) fn complete_message(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let receiving = self.receivers.at(slot);
        let opening = receiving.opening;
        receiving.ends += opening.bytes;
        if opening.role == Role::Pongs {
            return self.probed(now, slot, fabric);
        }
        let rtt = receiving.handshake.sample();
        let pair = if matches!(opening.role, Role::RpcRequests | Role::Pings) {
            opening.flow + 1
        } else {
            opening.flow - 1
        };
        if opening.role == Role::RpcResponses {
            let record = call_record(&self.shared, receiving, Some(now));
            receiving.asked = now;
            self.flow_records.push((now, record));
            self.counters.completed += 1;
            self.counters.active -= 1;
            if now >= self.shared.rpc_stop(opening.flow) {
                self.receivers.at(slot).asked = Time::MAX;
                return;
            }
            self.count_start();
        }
        if let Some(slot) = self.senders.slot_of(pair) {
            let sending = self.senders.at(slot);
            let bytes = sending.opening.bytes;
            if let Some(rtt) = rtt {
                sending.sender.on_rtt(rtt, &self.shared.transport);
            }
            sending.sender.write_next(now, bytes);
            self.pump(now, slot, fabric);
        }
    }

    pub(super) fn answered(&mut self, now: Time, query: u32) {
        let Some(pending) = self.queries.get_mut(&query) else { return };
        pending.completed += 1;
        if pending.completed == pending.query.degree {
            let record = query_record(pending, Some(now), self.shared.plan.warm_up);
            self.queries.remove(&query);
            self.query_records.push((now, record));
        }
    }

    /// All bytes of a flow are acknowledged.
    pub(super) fn end(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let Some(ended) = self.senders.remove(slot) else { return };
        ended.timer.cancel(ended.timer_key(), &mut fabric.events);
        self.leave_turn(&ended, slot);
        let opening = ended.opening;
        self.forget(ended.host, opening.flow);
        self.count_sent(&ended);
        // Read at the next edge, even where it stays in this partition: what the receiver answers
        // to a late copy, which a capture shows, must not depend on where it is.
        fabric.post(self.shared.partition_of_host(opening.dst), Note::Release(opening.flow));
        match opening.role {
            // Its record is the response's.
            Role::Request { .. } => return,
            // Its receiver made the record.
            Role::Message => return self.message_ended(now, &opening, fabric),
            _ => {}
        }
        self.counters.completed += 1;
        self.counters.active -= 1;
        let record = flow_record(&self.shared, &ended, Some(now));
        self.flow_records.push((now, record));
        if opening.role == Role::Shuffle {
            let source = self.shared.shuffle_of(opening.flow);
            let host = self.shared.local_host(self.shared.hosts_of(&opening).0);
            self.next_of_shuffle(now, source, host, fabric);
        }
    }

    pub(super) fn count_sent(&mut self, it: &Sending) {
        self.aborted += u64::from(it.sender.aborted());
        let sent = it.sender.counters();
        self.counters.retransmitted += sent.retransmitted as u64;
        self.counters.timeouts += sent.timeouts as u64;
        if let Some(marker) = it.egress.as_ref().and_then(|egress| egress.marked()) {
            self.counters.marking.add(marker);
        }
    }

    /// The bytes delivered so far, by class: all bytes in order, of whatever time; probes do not
    /// count.
    pub fn delivered(&self) -> Vec<u64> {
        let mut by_class = self.gone.clone();
        for (_, it) in self.receivers.iter().filter(|(_, it)| !it.opening.role.is_probe()) {
            by_class[it.opening.class as usize] += it.delivered;
        }
        by_class
    }

    pub(super) fn count_received(&mut self, it: &Receiving) {
        self.counters.out_of_order += it.out_of_order as u64;
        self.aborted += u64::from(it.receiver.aborted());
        if let Some(gone) = self.gone.get_mut(it.opening.class as usize)
            && !it.opening.role.is_probe()
        {
            *gone += it.delivered;
        }
        if it.measured > 0 && !it.opening.role.is_probe() {
            self.counters.measured_bytes += it.measured;
            *self.pairs.entry(self.shared.hosts_of(&it.opening)).or_insert(0) += it.measured;
        }
    }

    /// A receiving side is over: what its host has of it is freed.
    pub(super) fn close(&mut self, ended: &mut Receiving, fabric: &mut Fabric) {
        let flow = ended.opening.flow;
        if let Some(pacer) = self.pacers.get_mut(ended.host as usize) {
            pacer.forget(flow);
        }
        if let Some(ingress) = &mut ended.ingress {
            let (_, mut link) = at_host!(self, self.reordering_nic(ended.host), fabric);
            ingress.close(flow, &mut link);
        }
        self.forget(ended.host, flow);
    }

    /// The run is over: makes the records of what is not, and counts what the open connections
    /// hold.
    pub fn finish(&mut self, end: Time, fabric: &mut Fabric) {
        let warm_up = self.shared.plan.warm_up;
        let mut rest: Vec<FlowRecord> = Vec::new();
        let senders = std::mem::take(&mut self.senders);
        for (_, it) in senders.iter() {
            self.count_sent(it);
            if let Some(since) = it.egress.as_ref().and_then(|egress| egress.queue.held_since()) {
                self.counters.held += end.saturating_sub(since);
            }
            let o = &it.opening;
            let sent_all_before = it.delivered.is_some_and(|delivered| delivered.at < warm_up);
            if end > warm_up && !o.role.is_probe() && !it.sender.is_done() && !sent_all_before {
                // Had something to send: it counts among those that shared the network, whatever
                // arrived.
                self.pairs.entry(self.shared.hosts_of(o)).or_insert(0);
            }
            match it.opening.role {
                Role::RpcRequests
                | Role::RpcResponses
                | Role::Pings
                | Role::Pongs
                | Role::Messages
                | Role::Message => {}
                // The response that has not begun is what did not finish.
                Role::Request { response } => {
                    if it.delivered.is_none() {
                        let o = it.opening;
                        let record = flow_record(&self.shared, it, None);
                        rest.push(FlowRecord {
                            flow: o.flow + 1,
                            src: record.dst,
                            dst: record.src,
                            bytes: response,
                            finish: None,
                            out_of_order: Some(0),
                            path_changes: Some(0),
                            ..record
                        });
                    }
                }
                _ => rest.push(flow_record(&self.shared, it, None)),
            }
        }
        self.senders = senders;
        self.unanswered(&mut rest);
        self.not_arrived(&mut rest);
        let mut received = std::mem::take(&mut self.receivers);
        for mut it in received.drain() {
            self.close(&mut it, fabric);
            if it.opening.role == Role::RpcResponses && it.asked != Time::MAX && it.asked < end {
                rest.push(call_record(&self.shared, &it, None));
            }
            if !it.opening.role.is_persistent() && !it.opening.role.is_of_ranks() {
                self.open_counts.push((it.opening.flow, it.out_of_order, it.path_changes));
            }
            self.count_received(&it);
        }
        rest.sort_by_key(|record| (record.flow, record.start));
        self.flow_records.extend(rest.into_iter().map(|record| (Time::MAX, record)));
        for pending in std::mem::take(&mut self.queries).into_values() {
            if pending.query.at < end {
                self.query_records.push((Time::MAX, query_record(&pending, None, warm_up)));
            }
        }
    }
}

/// The same flow alone in the empty network.
fn ideal(shared: &Shared, o: &Opening) -> Time {
    let Shared { plan, ideal, .. } = shared;
    let (src, dst) = shared.hosts_of(o);
    let (class, ends) = (o.class, |src, dst| Ends { class: o.class, src, dst });
    let (opener, whole) = match o.role {
        Role::Response => {
            let thinks = shared.thinks(class, o.flow);
            let client = ends(dst, src);
            let sizes = Exchange { request: o.request, response: o.bytes };
            (client, ideal.exchange(plan, client, sizes, thinks))
        }
        _ => (ends(src, dst), ideal.flow(plan, ends(src, dst), o.bytes)),
    };
    match plan.opens_by_handshake(class) {
        true => whole,
        false => whole.saturating_sub(ideal.handshake(plan, opener)),
    }
}

/// A flow as it stands; `ended`: when its last byte was acknowledged.
fn flow_record(shared: &Shared, it: &Sending, ended: Option<Time>) -> FlowRecord {
    let (o, sent) = (&it.opening, it.sender.counters());
    let (src, dst) = shared.hosts_of(o);
    FlowRecord {
        flow: o.flow,
        class: o.class,
        src,
        dst,
        bytes: o.bytes,
        start: o.start,
        finish: it.delivered.map(|d| d.at),
        sender_first: it.first_sent,
        sender_last: ended,
        ideal: if it.delivered.is_some() { ideal(shared, o) } else { Time::ZERO },
        retransmitted: sent.retransmitted,
        timeouts: sent.timeouts,
        // The receiver counts; of an open flow it reports at the end.
        out_of_order: it.delivered.map(|d| d.out_of_order),
        path_changes: it.delivered.map(|d| d.path_changes),
        is_call: false,
        query: o.query,
        srtt: it.sender.srtt(),
        rto: it.sender.rto(),
        counted: o.start >= shared.plan.warm_up,
    }
}

/// One call of a persistent connection, as its client saw it.
fn call_record(shared: &Shared, it: &Receiving, finish: Option<Time>) -> FlowRecord {
    let Shared { plan, ideal, .. } = shared;
    let o = &it.opening;
    let (server, client) = shared.hosts_of(o);
    let ideal = finish.map(|_| {
        // The first call waits for the connection.
        let opens = it.asked == o.start && plan.opens_by_handshake(o.class);
        let ends = Ends { class: o.class, src: client, dst: server };
        let handshake = if opens { ideal.handshake(plan, ends) } else { Time::ZERO };
        let sizes = Exchange { request: o.request, response: o.bytes };
        handshake.saturating_add(ideal.call(plan, ends, sizes))
    });
    FlowRecord {
        flow: o.flow,
        class: o.class,
        src: server,
        dst: client,
        bytes: o.bytes,
        start: it.asked,
        finish,
        ideal: ideal.unwrap_or_default(),
        is_call: true,
        counted: it.asked >= plan.warm_up,
        ..FlowRecord::default()
    }
}

fn query_record(pending: &Pending, finish: Option<Time>, warm_up: Time) -> QueryRecord {
    let q = &pending.query;
    QueryRecord {
        query: q.query,
        class: q.class,
        client: q.client,
        degree: q.degree,
        start: q.at,
        finish,
        completed: pending.completed,
        counted: q.at >= warm_up,
    }
}
