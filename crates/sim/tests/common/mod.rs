//! Runs scenarios written in a test and keeps their records.

#![allow(dead_code)]

use millpond_core::Time;
use millpond_results::{FlowRecord, PacketRecord, QueryRecord, QueueRecord};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_sim::{Observer, Outcome, Standing};
use std::convert::Infallible;

/// What a run gave.
#[derive(Debug, Default)]
pub struct Records {
    pub flows: Vec<FlowRecord>,
    pub queries: Vec<QueryRecord>,
    pub rtts: Vec<Time>,
    pub queues: Vec<QueueRecord>,
    pub packets: Vec<PacketRecord>,
    /// End the run when this many flows are over.
    pub stop_after: Option<u64>,
}

impl Observer for Records {
    type Error = Infallible;
    fn flow(&mut self, record: &FlowRecord) -> Result<(), Infallible> {
        self.flows.push(*record);
        Ok(())
    }
    fn query(&mut self, record: &QueryRecord) -> Result<(), Infallible> {
        self.queries.push(*record);
        Ok(())
    }
    fn rtt(&mut self, rtt: Time) -> Result<(), Infallible> {
        self.rtts.push(rtt);
        Ok(())
    }
    fn queue(&mut self, record: &QueueRecord) -> Result<(), Infallible> {
        self.queues.push(*record);
        Ok(())
    }
    fn packet(&mut self, record: &PacketRecord) -> Result<(), Infallible> {
        self.packets.push(*record);
        Ok(())
    }
    fn edge(&mut self, standing: &Standing) -> Result<bool, Infallible> {
        Ok(self.stop_after.is_none_or(|n| standing.completed < n))
    }
}

/// The plan of a scenario's text.
pub fn plan(text: &str, set: &[(&str, &str)]) -> Plan {
    let set: Vec<(String, String)> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let scenario = Scenario::parse("test", text).unwrap_or_else(|e| panic!("{e}"));
    scenario.plan(None, &set, None).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs it; the audit must hold.
pub fn simulate(plan: &Plan, threads: usize) -> (Outcome, Records) {
    let mut records = Records::default();
    let outcome = match millpond_sim::run(plan, threads, &mut records) {
        Ok(outcome) => outcome,
        Err(never) => match never {},
    };
    assert!(outcome.audit.is_conserved(), "{:?}", outcome.audit);
    (outcome, records)
}
