//! Flow queues and overlay together: senders behind one link, a receiver that is slow and stalls,
//! and a network that loses words. Time goes by packets of the link.

use super::*;
use crate::flow_queues::headroom::{self, Loop, Peak};
use crate::flow_queues::{self, Arrival, Class, FlowQueues};
use crate::random::{Random, Stream};
use crate::units::{Bytes, Rate};
use std::collections::VecDeque;

const LEN: u32 = 1_500;
const RATE: Rate = Rate::from_gbps(10);
/// In a row, of one flow's words.
const LOSSES: u64 = 2;

#[derive(Clone, Debug)]
struct World {
    flows: u16,
    /// How long a packet and a word travel.
    way: u64,
    /// The application takes a packet each so many.
    service: u64,
    stalls: Vec<(u64, u64)>,
    /// Which datagrams are lost, unless that were too many in a row.
    is_lost: Vec<bool>,
    /// Losses that headroom is made for.
    losses: u64,
}

fn world() -> impl Strategy<Value = World> {
    let stalls = prop::collection::vec((0u64..2_000, 1u64..600), 0..4);
    let is_lost = prop::collection::vec(prop::bool::weighted(0.3), 50);
    (1u16..6, 1u64..20, 2u64..12, stalls, is_lost).prop_map(
        |(flows, way, service, stalls, is_lost)| World {
            flows,
            way,
            service,
            stalls,
            is_lost,
            losses: LOSSES,
        },
    )
}

impl World {
    fn feedback(&self) -> Time {
        RATE.transmission_time(u64::from(LEN)) * (2 * self.way)
    }
    fn queues(&self) -> FlowQueues<u16, u64> {
        let feedback = Loop { feedback: self.feedback(), fabric: Bytes(0), losses: self.losses };
        let peak = Peak { rate: RATE, nic: Bytes(0), batch: Bytes(u64::from(LEN)) };
        let headroom = feedback.of_flows(&vec![peak; usize::from(self.flows)]);
        let config = flow_queues::Config {
            segments: 40,
            headroom_segments: headroom::segments(headroom, LEN, u64::from(self.flows)),
            bytes: Bytes(30_000),
            headroom,
            batch: 1,
            feedback: self.feedback(),
            ..flow_queues::Config::default()
        };
        FlowQueues::new(config, Random::from(Stream::new(1, "joined")))
    }
    /// Runs for `ticks`, of which the senders send in the first half. Returns what was refused,
    /// arrived and departed; and the pauses that were asked for.
    fn run(&self, ticks: u64) -> flow_queues::Counters {
        let config =
            Config { feedback: self.feedback(), ttl: self.feedback() * 5, ..Config::default() };
        let (mut notifier, mut keeper, mut queues) =
            (Notifier::new(config), Keeper::new(config), self.queues());
        let (mut packets, mut words) = (VecDeque::new(), VecDeque::new());
        let (mut turn, mut lost_in_row, mut datagrams) = (0, vec![0; usize::from(self.flows)], 0);
        for at in 0..ticks {
            let now = RATE.transmission_time(u64::from(LEN)) * at;
            while let Some((_, record)) =
                words.pop_front_if(|(due, _): &mut (u64, Record)| *due <= at)
            {
                keeper.on_record(now, 2, &record);
            }
            while keeper.expire(now).is_some() {}
            let may_send = |number: &u16| at < ticks / 2 && !keeper.is_held(2, &flow(*number));
            if let Some(number) = (0..self.flows).map(|by| (turn + by) % self.flows).find(may_send)
            {
                turn = number + 1;
                packets.push_back((at + self.way, number));
            }
            while let Some((_, number)) = packets.pop_front_if(|(due, _)| *due <= at) {
                let arrival = Arrival {
                    flow: number,
                    hash: u32::from(number),
                    packet: at,
                    len: LEN,
                    class: Class::Data,
                };
                if queues.enqueue(now, &arrival).is_notified {
                    notifier.arrived(now, 1, &flow(number));
                }
            }
            let is_stalled = self.stalls.iter().any(|(from, by)| (*from..from + by).contains(&at));
            if at % self.service == 0 && !is_stalled {
                queues.dequeue(now);
            }
            while let Some(signal) = queues.next_signal() {
                match signal.is_pause {
                    true => notifier.pause(now, 1, target(signal.flow), signal.queued.0),
                    false => notifier.resume(now, 1, target(signal.flow)),
                }
            }
            let records = notifier.poll(now, 1, RECORDS);
            if records.is_empty() {
                continue;
            }
            let of = |record: &Record| match record.target {
                Target::Flow(flow) => usize::from(flow.source_port),
                _ => unreachable!("few flows are named one by one"),
            };
            datagrams += 1;
            let is_lost = self.is_lost[datagrams % self.is_lost.len()]
                && records.iter().all(|record| lost_in_row[of(record)] < LOSSES);
            for record in records {
                lost_in_row[of(&record)] = if is_lost { lost_in_row[of(&record)] + 1 } else { 0 };
                if !is_lost {
                    words.push_back((at + self.way, record));
                }
            }
        }
        queues.counters()
    }
}

proptest! {
    /// With headroom for so many losses nothing is refused.
    #[test]
    fn nothing_is_refused_whatever_is_lost(world in world()) {
        let counters = world.run(6_000);
        prop_assert_eq!(counters.held, 0);
        prop_assert!(counters.arrived > 0);
    }
}

/// Headroom for no losses is too little where the first pause and its repetition are lost.
#[test]
fn headroom_for_no_losses_is_too_little() {
    let mut is_lost = vec![false; 50];
    (is_lost[1], is_lost[2]) = (true, true);
    let world =
        World { flows: 1, way: 20, service: 4, stalls: vec![(0, 2_000)], is_lost, losses: LOSSES };
    let enough = world.run(6_000);
    assert_eq!((enough.held, enough.arrived), (0, enough.departed));
    assert!(World { losses: 0, ..world }.run(6_000).held > 0);
}
