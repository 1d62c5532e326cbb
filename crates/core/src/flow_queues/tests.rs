use super::headroom::{Loop, Peak};
use super::*;
use crate::random::Stream;
use crate::units::Rate;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Queues = FlowQueues<u32, u32>;

fn random() -> Random {
    Random::from(Stream::new(1, "flow-queues"))
}
fn packet(flow: u32, packet: u32, len: u32) -> Arrival<u32, u32> {
    Arrival { flow, hash: flow.wrapping_mul(0x9E37_79B9), packet, len, class: Class::Data }
}
fn hash(flow: u32) -> u32 {
    packet(flow, 0, 0).hash
}
fn signals(queues: &mut Queues) -> Vec<(u32, bool)> {
    std::iter::from_fn(|| queues.next_signal()).map(|s| (s.flow, s.is_pause)).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Arrive(u32, u32, Class),
    Serve(u32),
    Hold(u32),
    Release(u32),
    Later(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let class =
        prop_oneof![8 => Just(Class::Data), 1 => Just(Class::Ack), 1 => Just(Class::Control)];
    prop_oneof![
        12 => (0u32..6, 1u32..3_000, class)
            .prop_map(|(flow, len, class)| Step::Arrive(flow, len, class)),
        5 => (1u32..5).prop_map(Step::Serve),
        1 => (0u32..6).prop_map(Step::Hold),
        1 => (0u32..6).prop_map(Step::Release),
        2 => (0u64..80).prop_map(Step::Later),
    ]
}

fn tight() -> impl Strategy<Value = Config> {
    let segments = (0u64..5, 0u64..4, 0u64..2);
    (segments, 2_000u64..60_000, 0u64..20_000, prop_oneof![1u32..4, Just(16)]).prop_map(
        |((segments, headroom_segments, reserved), bytes, headroom, max_queues)| Config {
            segments,
            headroom_segments,
            reserved,
            bytes: Bytes(bytes),
            headroom: Bytes(headroom),
            max_queues,
            batch: 1,
            idle: Time::from_us(50),
            feedback: Time::from_us(10),
            ..Config::default()
        },
    )
}

/// A queue a flow, without memory.
#[derive(Default)]
struct Model {
    data: BTreeMap<u32, VecDeque<(u32, u32)>>,
    control: BTreeMap<u32, VecDeque<(u32, bool)>>,
    held: BTreeSet<u32>,
    notified: BTreeSet<u32>,
}

impl Model {
    fn bytes(&self) -> u64 {
        self.data.values().flatten().map(|(_, len)| u64::from(*len)).sum()
    }
    fn hear(&mut self, queues: &mut Queues) {
        for (flow, is_pause) in signals(queues) {
            let is_news =
                if is_pause { self.notified.insert(flow) } else { self.notified.remove(&flow) };
            assert!(is_news, "flow {flow} is told twice, pause: {is_pause}");
        }
    }
    fn arrive(
        &mut self,
        queues: &mut Queues,
        now: Time,
        number: u32,
        (flow, len, class): (u32, u32, Class),
    ) {
        let verdict = queues.enqueue(now, &Arrival { class, ..packet(flow, number, len) });
        self.hear(queues);
        assert_eq!(verdict.is_notified, self.notified.contains(&flow));
        let is_ack = class == Class::Ack;
        match (verdict.outcome, class) {
            (Outcome::Queued, Class::Data) => {
                self.data.entry(flow).or_default().push_back((number, len))
            }
            (Outcome::Queued, _) => {
                self.control.entry(flow).or_default().push_back((number, is_ack))
            }
            (Outcome::Coalesced(older), _) => {
                let waiting = self.control.get_mut(&flow).expect("something waits");
                let newest = waiting
                    .iter_mut()
                    .rev()
                    .find(|(_, is_ack)| *is_ack)
                    .expect("an acknowledgement");
                assert!(is_ack && newest.0 == older);
                newest.0 = number;
            }
            (Outcome::Hold, Class::Data) => {
                let number = queues.flows.find(hash(flow), flow).expect("it was told");
                let room = queues.queues[queues.flows[number].queue as usize].data.room();
                let no_slot = room == 0 && !queues.segments.clone().take(1, true);
                assert!(
                    no_slot || !queues.bytes.clone().take(u64::from(len), true),
                    "there was memory"
                );
                assert!(verdict.is_notified && verdict.rung == Rung::Source);
            }
            (Outcome::Hold, _) => {
                let number = queues.flows.find(hash(flow), flow).expect("it is known");
                let waiting = queues.queues[queues.flows[number].queue as usize].control.len();
                let no_memory = queues.reserved == 0 && queues.segments.shared() == 0;
                assert!(waiting == SLOTS || no_memory, "there was a place for control");
            }
        }
    }
    fn serve(&mut self, queues: &mut Queues, now: Time) -> bool {
        let departure = queues.dequeue(now);
        self.hear(queues);
        let has_control = self.control.values().any(|waiting| !waiting.is_empty());
        let Some(gone) = departure else {
            assert!(!has_control);
            let alone = queues.config.max_queues >= 6;
            let stands = |(flow, waiting): (&u32, &VecDeque<_>)| {
                waiting.is_empty() || self.held.contains(flow)
            };
            assert!(!alone || self.data.iter().all(stands), "somebody may send");
            assert!(!self.held.is_empty() || self.bytes() == 0);
            return false;
        };
        if has_control {
            let first = self.control.get_mut(&gone.flow).and_then(VecDeque::pop_front);
            assert_eq!(first.map(|(number, _)| number), Some(gone.packet));
        } else {
            assert!(!self.held.contains(&gone.flow), "a held flow sends");
            let first = self.data.get_mut(&gone.flow).and_then(VecDeque::pop_front);
            assert_eq!(first, Some((gone.packet, gone.len)));
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever comes, with however little memory: what was taken leaves once and in its flow's
    /// order, held flows send nothing, budgets are exact, each pause has its resume, and all comes
    /// back.
    #[test]
    fn it_does_what_a_queue_a_flow_does(
        config in tight(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let (mut queues, mut model) = (Queues::new(config, random()), Model::default());
        let mut now = Time::ZERO;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Arrive(flow, len, class) => {
                    model.arrive(&mut queues, now, number as u32, (flow, len, class))
                }
                Step::Serve(n) => (0..n).for_each(|_| {
                    model.serve(&mut queues, now);
                }),
                Step::Hold(flow) => {
                    model.held.insert(flow);
                    queues.hold(now, hash(flow), flow);
                }
                Step::Release(flow) => {
                    model.held.remove(&flow);
                    queues.release(now, hash(flow), flow);
                }
                Step::Later(by) => {
                    now += Time::from_us(by);
                    queues.expire(now);
                    model.hear(&mut queues);
                }
            }
            prop_assert_eq!(queues.bytes.used(), model.bytes());
            prop_assert_eq!(queues.queues.iter().map(|q| q.bytes).sum::<u64>(), model.bytes());
        }
        model.held.clear();
        queues.set_where(now, false, |_| true);
        while model.serve(&mut queues, now) {}
        queues.expire(now);
        model.hear(&mut queues);
        prop_assert!(model.notified.is_empty(), "{:?} wait for ever", model.notified);
        queues.expire(now + Time::from_us(50));
        prop_assert_eq!(
            (queues.segments_used(), queues.queued(), queues.flow_count()),
            (0, Bytes(0), 0)
        );
        let counters = queues.counters();
        prop_assert_eq!(counters.arrived, counters.departed + counters.coalesced);
        prop_assert_eq!(counters.pauses, counters.resumes);
    }

    /// Flows that have something waiting send the same, within two quanta and a packet, over any
    /// time.
    #[test]
    fn turns_are_fair(
        lens in prop::collection::vec(prop::collection::vec(40u32..=1_500, 150), 2..5),
        quantum in 1_500u32..6_000,
    ) {
        let mut queues = Queues::new(Config { quantum, ..Config::default() }, random());
        for (flow, lens) in lens.iter().enumerate() {
            for (number, len) in lens.iter().enumerate() {
                queues.enqueue(Time::ZERO, &packet(flow as u32, number as u32, *len));
            }
        }
        let mut sent = vec![0i64; lens.len()];
        let mut bounds = vec![(0i64, 0i64); lens.len()];
        loop {
            let gone = queues.dequeue(Time::ZERO).expect("all have something");
            sent[gone.flow as usize] += i64::from(gone.len);
            for flow in 1..sent.len() {
                let ahead = sent[flow] - sent[0];
                bounds[flow] = (bounds[flow].0.min(ahead), bounds[flow].1.max(ahead));
            }
            if gone.packet == 149 {
                break;
            }
        }
        for (behind, ahead) in bounds {
            prop_assert!(ahead - behind <= i64::from(2 * quantum + 1_500), "{behind} to {ahead}");
        }
    }

    /// With headroom by the formula nothing is refused, whatever the senders' number, the
    /// feedback's length, the receiver's speed and stalls.
    #[test]
    fn headroom_suffices(case in congested()) {
        prop_assert_eq!(case.run(Headroom::OfFlows).held, 0);
        prop_assert_eq!(case.run(Headroom::OfLink).held, 0);
    }
}

/// Whether there is headroom, and for what.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Headroom {
    None,
    /// Each flow is asked to pause for itself.
    OfFlows,
    /// The application is paused as a whole as soon as shared memory is gone.
    OfLink,
    /// As much, but each flow is asked for itself.
    OfLinkApart,
}

/// Senders behind one link that hear of a pause a feedback time later, and a receiver that is slow
/// and stalls. Time goes by packets of the link.
#[derive(Clone, Debug)]
struct Congested {
    flows: u32,
    feedback: u64,
    len: u32,
    /// The receiver takes a packet each so many, but for some stalls.
    service: u64,
    stalls: Vec<(u64, u64)>,
}

fn congested() -> impl Strategy<Value = Congested> {
    let stalls = prop::collection::vec((0u64..4_000, 1u64..800), 0..4);
    (1u32..20, 1u64..60, 64u32..=1_500, 2u64..12, stalls).prop_map(
        |(flows, feedback, len, service, stalls)| Congested {
            flows,
            feedback,
            len,
            service,
            stalls,
        },
    )
}

impl Congested {
    fn run(&self, kind: Headroom) -> Counters {
        let rate = Rate::from_gbps(10);
        let tick = rate.transmission_time(u64::from(self.len));
        let feedback = tick * self.feedback;
        let way = Loop { feedback, fabric: Bytes(0), losses: 0 };
        let peak = Peak { rate, nic: Bytes(0), batch: Bytes(u64::from(self.len)) };
        let flows = vec![peak; self.flows as usize];
        let headroom = match kind {
            Headroom::None => Bytes(0),
            Headroom::OfFlows => way.of_flows(&flows),
            Headroom::OfLink | Headroom::OfLinkApart => {
                way.of_link(rate, &flows, &[Bytes(u64::from(self.len))])
            }
        };
        let config = Config {
            segments: 40,
            headroom_segments: headroom::segments(headroom, self.len, u64::from(self.flows)),
            bytes: Bytes(40_000),
            headroom,
            batch: 1,
            feedback,
            ..Config::default()
        };
        let mut queues = Queues::new(config, random());
        let mut paused = vec![false; self.flows as usize];
        let mut news: VecDeque<(u64, u32, bool)> = VecDeque::new();
        let (mut turn, mut is_app_paused) = (0, false);
        // The application's pause and its end are news of nobody's flow.
        let mut app_news: VecDeque<(u64, bool)> = VecDeque::new();
        let mut is_app_told = false;
        for at in 0..5_000u64 {
            let now = tick * at;
            while let Some((_, flow, is_pause)) = news.pop_front_if(|(due, ..)| *due <= at) {
                paused[flow as usize] = is_pause;
            }
            while let Some((_, is_pause)) = app_news.pop_front_if(|(due, _)| *due <= at) {
                is_app_paused = is_pause;
            }
            // The link serves the next sender that may send.
            let may_send = |flow: &u32| !paused[*flow as usize] && !is_app_paused;
            if let Some(flow) = (0..self.flows).map(|by| (turn + by) % self.flows).find(may_send) {
                turn = flow + 1;
                let rung = queues.enqueue(now, &packet(flow, at as u32, self.len)).rung;
                if kind == Headroom::OfLink && rung > Rung::Calm && !is_app_told {
                    is_app_told = true;
                    app_news.push_back((at + self.feedback, true));
                }
            }
            let is_stalled = self.stalls.iter().any(|(from, by)| (*from..from + by).contains(&at));
            if at % self.service == 0 && !is_stalled {
                queues.dequeue(now);
                if is_app_told && queues.is_headroom_full() && queues.rung() == Rung::Calm {
                    is_app_told = false;
                    app_news.push_back((at + self.feedback, false));
                }
            }
            news.extend(
                signals(&mut queues)
                    .into_iter()
                    .map(|(flow, is_pause)| (at + self.feedback, flow, is_pause)),
            );
        }
        assert!(queues.counters().departed > 0);
        queues.counters()
    }
}

#[test]
fn without_headroom_packets_are_refused() {
    let case =
        Congested { flows: 8, feedback: 40, len: 1_500, service: 4, stalls: vec![(1_000, 500)] };
    assert_eq!(case.run(Headroom::OfFlows).held, 0);
    let without = case.run(Headroom::None);
    assert!(without.held > 0, "{without:?}");
    // Flows that are asked one after the other fill the link in turn.
    assert_eq!(case.run(Headroom::OfLink).held, 0);
    assert!(case.run(Headroom::OfLinkApart).held > 0);
}

/// A burst of 4096 packets finds room in segments of 64, and memory goes as they do.
#[test]
fn a_queue_grows_and_shrinks() {
    let mut queues = Queues::new(Config::default(), random());
    for number in 0..4_096 {
        let verdict = queues.enqueue(Time::ZERO, &packet(1, number, 1_500));
        assert_eq!(verdict.outcome, Outcome::Queued);
    }
    // The flow was asked to pause at 7/8 of 4096.
    assert_eq!(queues.counters().pauses, 1);
    // At 64 segments more than 7/8 were used.
    assert_eq!(queues.segments_used(), 74);
    for number in 0..4_096 {
        assert_eq!(queues.dequeue(Time::ZERO).map(|gone| gone.packet), Some(number));
        let waiting = u64::from(4_095 - number).div_ceil(64);
        assert!(queues.segments_used() <= waiting + 11, "{} at {number}", queues.segments_used());
    }
    queues.expire(Time::from_ms(100));
    assert_eq!(
        (queues.segments_used(), queues.flow_count(), queues.dequeue(Time::ZERO)),
        (0, 0, None)
    );
}

/// The memory for 100,000 flows that sent and are silent is below 64 MiB, all lists counted; and a
/// port with few flows has little, whatever it may have.
#[test]
fn memory_follows_what_waits() {
    let config = Config { max_queues: 1 << 17, ..Config::default() };
    let mut queues = Queues::new(config, random());
    for flow in 0..100_000 {
        assert_eq!(queues.enqueue(Time::ZERO, &packet(flow, flow, 1_500)).outcome, Outcome::Queued);
        assert_eq!(queues.dequeue(Time::ZERO).map(|gone| gone.packet), Some(flow));
    }
    assert_eq!(queues.flow_count(), 100_000);
    let memory = queues.memory();
    assert!(memory <= 64 << 20, "{memory} bytes");
    queues.expire(Time::from_ms(100));
    assert_eq!((queues.segments_used(), queues.flow_count()), (0, 0));

    let mut few = Queues::new(config, random());
    (0..100).for_each(|flow| {
        assert_eq!(few.enqueue(Time::ZERO, &packet(flow, 0, 64)).outcome, Outcome::Queued)
    });
    assert!(few.memory() < 300 << 10, "{} bytes", few.memory());
}

#[test]
fn acknowledgements_pass_a_pause_and_are_bounded() {
    let mut queues =
        Queues::new(Config { reserved: 1, segments: 4, ..Config::default() }, random());
    queues.enqueue(Time::ZERO, &packet(1, 0, 1_500));
    queues.hold(Time::ZERO, hash(1), 1);
    assert_eq!(queues.dequeue(Time::ZERO), None);
    for number in 1..=64 {
        let ack = Arrival { class: Class::Ack, ..packet(1, number, 84) };
        assert_eq!(queues.enqueue(Time::ZERO, &ack).outcome, Outcome::Queued);
    }
    let newer = Arrival { class: Class::Ack, ..packet(1, 65, 84) };
    assert_eq!(queues.enqueue(Time::ZERO, &newer).outcome, Outcome::Coalesced(64));
    let syn = Arrival { class: Class::Control, ..packet(1, 66, 84) };
    assert_eq!(queues.enqueue(Time::ZERO, &syn).outcome, Outcome::Hold);
    let sent: Vec<u32> =
        std::iter::from_fn(|| queues.dequeue(Time::ZERO)).map(|gone| gone.packet).collect();
    assert_eq!(sent, (1..=63).chain([65]).collect::<Vec<_>>());
    queues.release(Time::ZERO, hash(1), 1);
    assert_eq!(queues.dequeue(Time::ZERO).map(|gone| gone.packet), Some(0));
}

/// The bound is on what waits, not on what has passed since the queue was empty.
#[test]
fn control_flows_through_a_queue_that_is_never_empty() {
    let mut queues =
        Queues::new(Config { reserved: 2, segments: 0, ..Config::default() }, random());
    let grant = |number| Arrival { class: Class::Control, ..packet(1, number, 84) };
    (0..40).for_each(|number| {
        assert_eq!(queues.enqueue(Time::ZERO, &grant(number)).outcome, Outcome::Queued)
    });
    for number in 40..1_000 {
        assert_eq!(queues.enqueue(Time::ZERO, &grant(number)).outcome, Outcome::Queued, "{number}");
        assert_eq!(queues.dequeue(Time::ZERO).map(|gone| gone.packet), Some(number - 40));
    }
    while queues.dequeue(Time::ZERO).is_some() {}
    assert_eq!(queues.segments_used(), 0);
}

/// Control of a port whose memory is all taken finds the reserve.
#[test]
fn control_never_waits_for_the_memory_of_data() {
    let config = Config { segments: 1, headroom_segments: 0, reserved: 1, ..Config::default() };
    let mut queues = Queues::new(config, random());
    assert_eq!(queues.enqueue(Time::ZERO, &packet(1, 0, 100)).outcome, Outcome::Queued);
    assert_eq!(queues.enqueue(Time::ZERO, &packet(2, 1, 100)).outcome, Outcome::Hold);
    let grant = Arrival { class: Class::Control, ..packet(2, 2, 84) };
    assert_eq!(queues.enqueue(Time::ZERO, &grant).outcome, Outcome::Queued);
    assert_eq!(queues.dequeue(Time::ZERO).map(|gone| gone.packet), Some(2));
}

#[test]
fn a_pause_of_a_shared_queue_names_all_its_flows() {
    let config =
        Config { max_queues: 1, bytes: Bytes(1 << 20), cap: 10, batch: 1, ..Config::default() };
    let mut queues = Queues::new(config, random());
    for number in 0..9 {
        queues.enqueue(Time::ZERO, &packet(number % 3, number, 1_500));
    }
    assert_eq!((signals(&mut queues), queues.counters().shared), (vec![], 2));
    queues.enqueue(Time::ZERO, &packet(1, 9, 1_500));
    assert_eq!(signals(&mut queues), [(0, true), (1, true), (2, true)]);
    // A flow that joins later is asked when it comes.
    queues.enqueue(Time::ZERO, &packet(3, 10, 1_500));
    assert_eq!(signals(&mut queues), [(3, true)]);
    // Flow 0 has left when the rest may go on, and is notified nevertheless.
    (0..11).for_each(|_| assert!(queues.dequeue(Time::ZERO).is_some()));
    let mut resumed = signals(&mut queues);
    resumed.sort();
    assert_eq!(resumed, [(0, false), (1, false), (2, false), (3, false)]);
    assert_eq!(queues.flow_count(), 1);
}

/// The rungs in their order: the longest queue is asked first, then applications and peers are
/// named, and at last the source.
#[test]
fn exhaustion_goes_rung_by_rung() {
    let config = Config {
        segments: 64,
        bytes: Bytes(30_000),
        headroom: Bytes(12_000),
        batch: 8,
        ..Config::default()
    };
    let mut queues = Queues::new(config, random());
    for number in 0..20 {
        let flow = if number < 12 { 1 } else { 2 + number % 2 };
        assert!(queues.enqueue(Time::ZERO, &packet(flow, number, 1_500)).rung < Rung::Application);
    }
    assert_eq!(signals(&mut queues), []);
    let mut rungs = Vec::new();
    for number in 20..29 {
        rungs.push(queues.enqueue(Time::ZERO, &packet(4, number, 1_500)).rung);
    }
    assert_eq!(
        signals(&mut queues),
        [(1, true), (4, true)],
        "the longest, and the one that arrives"
    );
    use Rung::*;
    assert_eq!(rungs, [Flows, Flows, Flows, Application, Application, Peer, Peer, Peer, Source]);
    assert_eq!(queues.counters().held, 1);
    queues.lose(1_500);
    assert_eq!((queues.counters().loss_pool, queues.counters().loss_pool_bytes), (1, 1_500));
}

/// A new flow gets the queue that has been idle for longest before it shares one.
#[test]
fn idle_queues_give_way() {
    let mut queues = Queues::new(Config { max_queues: 2, ..Config::default() }, random());
    for flow in [1, 2] {
        queues.enqueue(Time::ZERO, &packet(flow, flow, 1_500));
        queues.dequeue(Time::ZERO);
    }
    assert_eq!((queues.segments_used(), queues.flow_count()), (0, 2));
    queues.enqueue(Time::ZERO, &packet(3, 3, 1_500));
    assert!(queues.flows.find(hash(1), 1).is_none() && queues.flows.find(hash(2), 2).is_some());
    assert_eq!(queues.counters().shared, 0);
}

/// Pauses of an application or a peer cover flows that are known, and flows may be held before they
/// are.
#[test]
fn a_held_flow_stands_and_others_pass() {
    let mut queues = Queues::new(Config::default(), random());
    queues.hold(Time::ZERO, hash(9), 9);
    assert!(queues.is_held(hash(9), 9));
    for flow in [1, 2, 9] {
        let verdict = queues.enqueue(Time::ZERO, &packet(flow, flow, 100));
        assert_eq!(verdict.is_new, flow != 9);
    }
    queues.set_where(Time::ZERO, true, |flow| *flow == 1);
    assert_eq!(queues.dequeue(Time::ZERO).map(|gone| gone.flow), Some(2));
    assert_eq!(queues.dequeue(Time::ZERO), None);
    queues.set_where(Time::ZERO, false, |flow| *flow == 1);
    assert_eq!(queues.dequeue(Time::ZERO).map(|gone| gone.flow), Some(1));
    queues.release(Time::ZERO, hash(9), 9);
    assert_eq!(queues.dequeue(Time::ZERO).map(|gone| gone.flow), Some(9));
}
