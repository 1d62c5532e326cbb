//! The records of a run, for the tests of each crate that runs the simulator.

#![allow(dead_code)]

use millpond_core::Time;
use millpond_results::{
    CollectiveRecord, ConnectionRecord, FlowRecord, PacketRecord, PauseRecord, QueryRecord,
    QueueRecord, RankRecord,
};
use millpond_sim::{Observer, PollRecord, Standing};
use std::convert::Infallible;

/// The results of a run.
#[derive(Debug, Default)]
pub struct Records {
    pub flows: Vec<FlowRecord>,
    pub queries: Vec<QueryRecord>,
    pub rtts: Vec<Time>,
    pub queues: Vec<QueueRecord>,
    pub connections: Vec<ConnectionRecord>,
    pub packets: Vec<PacketRecord>,
    pub pauses: Vec<PauseRecord>,
    pub polls: Vec<PollRecord>,
    pub ranks: Vec<RankRecord>,
    pub collectives: Vec<CollectiveRecord>,
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
    fn connection(&mut self, record: &ConnectionRecord) -> Result<(), Infallible> {
        self.connections.push(record.clone());
        Ok(())
    }
    fn packet(&mut self, record: &PacketRecord) -> Result<(), Infallible> {
        self.packets.push(record.clone());
        Ok(())
    }
    fn pause(&mut self, record: &PauseRecord) -> Result<(), Infallible> {
        assert!(
            self.packets.last().is_none_or(|packet| packet.at <= record.at),
            "frames come in the order of time"
        );
        self.pauses.push(*record);
        Ok(())
    }
    fn poll(&mut self, record: &PollRecord) -> Result<(), Infallible> {
        self.polls.push(record.clone());
        Ok(())
    }
    fn rank(&mut self, record: &RankRecord) -> Result<(), Infallible> {
        self.ranks.push(record.clone());
        Ok(())
    }
    fn collective(&mut self, record: &CollectiveRecord) -> Result<(), Infallible> {
        self.collectives.push(*record);
        Ok(())
    }
    fn edge(&mut self, standing: &Standing) -> Result<bool, Infallible> {
        Ok(self.stop_after.is_none_or(|n| standing.completed < n))
    }
}
