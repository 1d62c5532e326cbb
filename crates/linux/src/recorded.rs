//! A simulated network's run as conformance tests replay it.

use crate::dataplane::frame::parse::tcp;
use millpond_core::Packet;
use millpond_core::packet::{Kind, flags};
use millpond_results::{FlowRecord, PacketRecord, PauseRecord, QueryRecord};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_sim::{Observer, Outcome, PollRecord, Standing};
use std::convert::Infallible;

/// The records of a run.
#[derive(Default)]
pub struct Records {
    pub flows: Vec<FlowRecord>,
    pub packets: Vec<PacketRecord>,
    pub pauses: Vec<PauseRecord>,
    pub polls: Vec<PollRecord>,
}

impl Observer for Records {
    type Error = Infallible;
    fn flow(&mut self, record: &FlowRecord) -> Result<(), Infallible> {
        self.flows.push(*record);
        Ok(())
    }
    fn query(&mut self, _: &QueryRecord) -> Result<(), Infallible> {
        Ok(())
    }
    fn packet(&mut self, record: &PacketRecord) -> Result<(), Infallible> {
        self.packets.push(record.clone());
        Ok(())
    }
    fn pause(&mut self, record: &PauseRecord) -> Result<(), Infallible> {
        self.pauses.push(*record);
        Ok(())
    }
    fn poll(&mut self, record: &PollRecord) -> Result<(), Infallible> {
        self.polls.push(record.clone());
        Ok(())
    }
    fn edge(&mut self, _: &Standing) -> Result<bool, Infallible> {
        Ok(true)
    }
}

/// Runs a scenario with some keys set; with `polls`, receive queues tell theirs.
pub fn record(
    text: &str,
    seed: u64,
    set: &[(&str, &str)],
    polls: bool,
) -> (Plan, Records, Outcome) {
    let set: Vec<(String, String)> =
        set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let scenario = Scenario::parse("conformance", text).unwrap_or_else(|e| panic!("{e}"));
    let mut plan = scenario.plan(None, &set, Some(seed)).unwrap_or_else(|e| panic!("{e}"));
    plan.capture.polls = polls;
    let mut records = Records::default();
    let Ok(outcome) = millpond_sim::run(&plan, 1, &mut records);
    assert!(outcome.audit.is_conserved());
    (plan, records, outcome)
}

/// A packet's flags as TCP has them.
pub fn tcp_flags(packet: &Packet) -> u8 {
    let pairs = [(flags::CWR, tcp::CWR), (flags::ECE, tcp::ECE)];
    let kind = match packet.kind() {
        Kind::Syn => tcp::SYN,
        Kind::SynAck => tcp::SYN | tcp::ACK,
        _ => tcp::ACK,
    };
    pairs.iter().filter(|(flag, _)| packet.has(*flag)).fold(kind, |set, (_, bit)| set | bit)
}
