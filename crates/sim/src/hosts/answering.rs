//! Answering: a server thinks and then sends its response, on the connection of the request.
//!
//! A thinking server's request connection may end meanwhile (its last acknowledgement arrives, its
//! slots are recycled), so what is to be sent is kept apart from it.
//!
//! Invariant: from the delivery of a request until its response is opened there is either an answer
//! here, which makes the flow's record if the run ends, or nothing to wait for.

use super::*;

pub(super) struct Answer {
    response: Opening,
    rtt: Option<Time>,
    /// When the server had the request.
    asked: Time,
}

/// An accepting end's knowledge of the round-trip time by its handshake: from its SYN-ACK to the
/// first data, as Linux and INET measure it. If the SYN-ACK had to be sent again it is unknown
/// which of them the data follows (Karn's rule), and data that was sent before has waited for a
/// timer.
///
/// A time in eight bytes, since there are as many of these as connections: while nothing has
/// arrived, when the SYN-ACK left; after that, the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handshake(Time);

impl Handshake {
    const NONE: Time = Time::MAX;
    /// There will be no sample. (No SYN-ACK leaves at time zero.)
    const USELESS: Time = Time::ZERO;

    pub(super) fn new() -> Handshake {
        Handshake(Self::NONE)
    }
    /// A SYN-ACK leaves before any data has arrived.
    pub(super) fn answered(&mut self, now: Time) {
        self.0 = if self.0 == Self::NONE { now } else { Self::USELESS };
    }
    pub(super) fn first_data(&mut self, now: Time, retransmission: bool) {
        let known = self.0 != Self::NONE && self.0 != Self::USELESS && !retransmission;
        self.0 = if known { now.saturating_sub(self.0) } else { Self::USELESS };
    }
    /// The sample, once; to be asked only after the first data.
    pub(super) fn sample(&mut self) -> Option<Time> {
        let sample = std::mem::replace(&mut self.0, Self::USELESS);
        (sample != Self::USELESS).then_some(sample)
    }
}

impl Hosts {
    /// A server has a request that asks for this many bytes.
    pub(super) fn think(&mut self, now: Time, slot: u32, response: u64, fabric: &mut Fabric) {
        let receiving = self.receivers.at(slot);
        let (request, host, rtt) =
            (receiving.opening, receiving.host, receiving.handshake.sample());
        let (bytes, back) = (response, request.back(Role::Response));
        let response = Opening { bytes, request: request.bytes, ..back };
        let answer = Answer { response, rtt, asked: now };
        match self.shared.thinks(response.class, response.flow) {
            Time::ZERO => self.answer(now, &answer, fabric),
            time => {
                self.answers.insert(request.flow, answer);
                fabric.call(now.saturating_add(time), host, HostEvent::Answer(request.flow));
            }
        }
    }

    pub fn on_answer(&mut self, now: Time, request: FlowId, fabric: &mut Fabric) {
        if let Some(answer) = self.answers.remove(&request) {
            self.answer(now, &answer, fabric);
        }
    }

    fn answer(&mut self, now: Time, answer: &Answer, fabric: &mut Fabric) {
        let response = self.since(answer.response, (answer.asked, now));
        let slot = self.open(now, response, false, fabric);
        let sending = self.senders.at(slot);
        if let Some(rtt) = answer.rtt {
            sending.sender.on_rtt(rtt, &self.shared.transport);
        }
        sending.sender.write(now, answer.response.bytes);
        self.pump(now, slot, fabric);
    }

    /// The run is over: the records of what servers still think about.
    pub(super) fn unanswered(&mut self, records: &mut Vec<FlowRecord>) {
        for Answer { response: o, .. } in std::mem::take(&mut self.answers).into_values() {
            let (src, dst) = self.shared.hosts_of(&o);
            records.push(FlowRecord {
                flow: o.flow,
                class: o.class,
                src,
                dst,
                bytes: o.bytes,
                start: o.start,
                query: o.query,
                out_of_order: Some(0),
                path_changes: Some(0),
                counted: o.start >= self.shared.plan.warm_up,
                ..FlowRecord::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_needs_one_syn_ack_and_data_that_was_not_sent_before() {
        let us = Time::from_us;
        let mut it = Handshake::new();
        it.answered(us(5));
        it.first_data(us(30), false);
        assert_eq!((it.sample(), it.sample()), (Some(us(25)), None));
        let mut it = Handshake::new();
        it.answered(us(5));
        it.first_data(us(30), true);
        assert_eq!(it.sample(), None);
        let mut it = Handshake::new();
        (1..4).for_each(|i| it.answered(us(i)));
        it.first_data(us(30), false);
        assert_eq!(it.sample(), None);
        let mut it = Handshake::new();
        it.first_data(us(30), false);
        assert_eq!(it.sample(), None, "without a handshake");
    }
}
