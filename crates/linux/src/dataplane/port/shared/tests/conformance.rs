//! Both drivers of the flow queues decide alike: what arrives at a simulated host's virtual switch,
//! and what the cores of its application do, is replayed through a port of shared memory.
//!
//! A scene is drawn: how much memory there is, how slow an application is and for how long it
//! stalls, and which flows of three senders want to send what and when. The simulator's host plays
//! it: its virtual switch, and those of the senders, which hold what they are asked to. The replay
//! has an application in this process, the switch's slot for it, and both ends of the overlay with
//! each sender. After every step of the host the verdicts must be the same: what waits, in bytes;
//! how many frames found no memory; which flows have been asked to pause and to go on; every word
//! that is said, with its number, and who it holds; and in which order frames reach the
//! application. A second replay has the senders on the same switch, and notifies them directly.
//!
//! Differences between the worlds, and their treatment here:
//!
//! | | simulator | Linux | here |
//! |---|---|---|---|
//! | no memory for a frame | its ring keeps it, unpolled | lost (`loss-pool`) | offered again |
//! | the same of an application here | none | it keeps it, and others go on | offered again |
//! | a receive ring that is full | drops (`receive-ring`) | none | not offered |
//! | nothing waits | a frame passes its queue | it goes past the queues | below |
//! | senders that are silent | remembered | forgotten once a second | remembered |
//! | the time of which Xon takes what a queue sends | `feedback` | 20 us | 20 us |
//! | acknowledgements, handshakes | pass by | have a queue | data alone |
//! | slots | for packets of 64 bytes | of 256 bytes | enough |
//! | headroom | of a formula, beside memory | a part of memory | as many bytes |
//! | an application, to words | one core of it | address, port, protocol | one of each |
//! | words of a datagram | 6 | 22 | at most 6 are due |
//! | a word's number is forgotten | after 50 ms | after a second | no trace lasts as long |
//! | a word's way | a packet's | a path's | none is lost or takes time |
//! | a pause of all that a peer sends | never said | never said | never said |
//!
//! A frame that need not wait goes straight to an application on Linux. So its flow's queue counts
//! nothing as sent, by which Xon is less for a feedback time or two, and its sender is not notified
//! with the others before a frame of it has waited. Here a flow of its own fills the application's
//! ring whenever nothing waits, and a frame of each sender waits before all others.

mod replay;
mod simulated;

use crate::tests::same;
use millpond_core::Time;
use millpond_core::overlay::Word;
use proptest::prelude::*;
use replay::{Behind, Replayed, replay};
use simulated::simulate;

/// Senders, and flows, of which each sender has every third. One more fills the application's ring.
const SENDERS: u32 = 3;
const FLOWS: u32 = 6;
/// The longest frame.
const FRAME: u32 = 1536;

/// The input that both get.
#[derive(Clone, Debug)]
struct Scene {
    /// Memory that anybody may take.
    memory: u64,
    headroom: u64,
    /// Eighths of the memory that is left at which a flow is notified.
    alpha: u32,
    /// The bytes of a turn, and of the longest frame.
    quantum: u32,
    /// From telling a flow until nothing more comes.
    feedback: Time,
    /// Of the application: frames that its ring holds, that it takes at a time, and its time for
    /// one.
    ring: u32,
    batch: u32,
    work: Time,
    /// How long it stalls, every 200 us in the mean.
    stall: Time,
    seed: u64,
    wants: Vec<Want>,
}

/// A flow would send a frame.
#[derive(Clone, Copy, Debug)]
struct Want {
    /// After the one before.
    gap: Time,
    flow: u32,
    size: u16,
    /// It is under way already when its flow is asked to pause.
    is_late: bool,
}

/// A step of the receiving host.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// A sender keeps its frame, for its flow is paused.
    Kept,
    /// A frame, by its number.
    Comes(u32),
    /// The receive ring had no place for it.
    Dropped,
    /// The switch takes a batch of what has come.
    Round,
    /// The application has done with a frame.
    Serves,
    /// The overlay's time has come, at either end.
    Words,
}

/// A word of the overlay.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spoken {
    to: u32,
    word: Word,
    /// None: the application.
    flow: Option<u32>,
    number: u64,
    queued: u32,
    ttl: u32,
}

/// How it stands after a step, to everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Stand {
    waiting: u64,
    pauses: u64,
    resumes: u64,
    /// Offers that found no memory.
    refused: u64,
    /// Frames that the application has done with.
    served: usize,
}

/// The outcome of a step.
#[derive(Clone, Debug, Default, PartialEq)]
struct After {
    stand: Stand,
    said: Vec<Spoken>,
    /// By flow: its sender may not send.
    held: Vec<bool>,
}

/// A scene as it was played.
#[derive(Clone, Debug, Default)]
struct Trace {
    steps: Vec<(Time, Event, After)>,
    /// By number: a frame's flow and its length.
    frames: Vec<(u32, u16)>,
    /// The numbers of frames, in the order in which the application had them.
    served: Vec<u32>,
}

/// Compares what the simulator made of `scene` with what Linux makes of it as `replayed`.
fn agree(scene: &Scene, replayed: &Scene) -> Result<Trace, String> {
    let trace = simulate(scene);
    let behind_peers = replay(&trace, replayed, Behind::Peers)?;
    let ours: Vec<_> = trace.steps.iter().map(|(at, event, after)| (at, event, after)).collect();
    let steps = trace.steps.iter().zip(&behind_peers.after);
    let theirs: Vec<_> = steps.map(|((at, event, _), after)| (at, event, after)).collect();
    same("step", &ours, &theirs)?;
    let behind_ports = replay(&trace, replayed, Behind::Applications)?;
    let stands = |replayed: &Replayed| -> Vec<_> {
        let stood = replayed.after.iter().zip(&replayed.told);
        let steps = trace.steps.iter().zip(stood);
        steps.map(|((at, event, _), (it, told))| (*at, *event, it.stand, told.clone())).collect()
    };
    same("step of peers and applications", &stands(&behind_peers), &stands(&behind_ports))?;
    for (who, served) in [("peers", &behind_peers.served), ("applications", &behind_ports.served)] {
        same(&format!("frames of {who}"), &trace.served, served)?;
    }
    Ok(trace)
}

fn wants() -> impl Strategy<Value = Vec<Want>> {
    let want =
        (0..600u64, 0..FLOWS + 4, 200..1514u16, 0..3u8).prop_map(|(gap, flow, size, late)| Want {
            gap: Time::from_ns(gap),
            // One flow has half of it all.
            flow: flow.saturating_sub(4),
            size,
            is_late: late == 0,
        });
    proptest::collection::vec(want, 200..700)
}

fn scenes() -> impl Strategy<Value = Scene> {
    let memory = prop_oneof![Just(48u64 << 10), Just(160 << 10), Just(400 << 10)];
    let application =
        (0..3u32, prop_oneof![Just(1u32), Just(8), Just(32)], 400..4000u64, 0..100u64);
    (memory, 0..3u64, application, any::<u64>(), wants()).prop_map(
        |(memory, headroom, (ring, batch, work, stall), seed, wants)| Scene {
            memory,
            headroom: memory / 8 * headroom,
            alpha: 8,
            quantum: FRAME,
            feedback: Time::from_us(20),
            ring: 16 << (2 * ring),
            batch,
            work: Time::from_ns(work),
            stall: Time::from_us(stall),
            seed,
            wants,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn flow_queues_alike(scene in scenes()) {
        if let Err(difference) = agree(&scene, &scene) {
            prop_assert!(false, "{}", difference);
        }
    }
}

/// One flow after the other sends more than an application takes, beside all others: all comes
/// about that is compared. Of ten frames `late` are under way when their flow is asked to pause.
fn busy(memory: u64, late: u32, seed: u64) -> Scene {
    let want = |n: u32| Want {
        gap: Time::from_ns(u64::from(n * 37 % 300)),
        flow: if n.is_multiple_of(3) { n % FLOWS } else { n / 500 % FLOWS },
        size: (200 + n * 211 % 1300) as u16,
        is_late: n % 10 < late,
    };
    Scene {
        memory,
        headroom: memory / 8,
        alpha: 8,
        quantum: FRAME,
        feedback: Time::from_us(20),
        ring: 16,
        batch: 8,
        work: Time::from_ns(500),
        stall: Time::from_us(80),
        seed,
        wants: (0..3000).map(want).collect(),
    }
}

#[test]
fn busy_queues_alike_and_everything_is_compared() {
    let mut seen = [0usize; 7];
    for (memory, late, seed) in
        [(48 << 10, 5, 1), (160 << 10, 5, 2), (400 << 10, 5, 3), (400 << 10, 1, 4)]
    {
        let scene = busy(memory, late, seed);
        let trace = agree(&scene, &scene)
            .unwrap_or_else(|difference| panic!("{memory} bytes: {difference}"));
        let (_, _, last) = trace.steps.last().unwrap();
        let count = |is: &dyn Fn(&Event) -> bool| {
            trace.steps.iter().filter(|(_, event, _)| is(event)).count()
        };
        let said = |is: &dyn Fn(&Spoken) -> bool| -> usize {
            trace
                .steps
                .iter()
                .map(|(_, _, after)| after.said.iter().filter(|it| is(it)).count())
                .sum()
        };
        let more = [
            last.stand.refused as usize,
            last.stand.pauses as usize,
            count(&|event| *event == Event::Kept),
            said(&|it| it.word == Word::Pause && it.flow.is_some()),
            said(&|it| it.word == Word::Pause && it.flow.is_none()),
            said(&|it| it.word == Word::Refresh),
            said(&|it| it.word == Word::Resume),
        ];
        seen.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        assert_eq!((last.stand.waiting, last.stand.pauses), (0, last.stand.resumes), "{memory}");
        assert!(last.held.iter().all(|held| !held) && !trace.served.is_sorted(), "{memory}");
        let came = count(&|event| matches!(event, Event::Comes(_)));
        assert_eq!(trace.served.len(), came, "{memory}: nothing is lost");
    }
    assert!(seen.iter().all(|count| *count > 5), "{seen:?}");
}

/// Another threshold, quantum, amount of memory or time in one of the two is seen.
#[test]
fn what_is_not_alike_is_seen() {
    let scene = busy(400 << 10, 5, 3);
    agree(&scene, &scene).unwrap();
    let other = |change: &dyn Fn(&mut Scene)| {
        let mut other = scene.clone();
        change(&mut other);
        other
    };
    let differ = |what: &str, ours: &Scene, theirs: &Scene| {
        agree(ours, theirs).map(|_| ()).expect_err(what);
    };
    // The threshold: Linux's is fixed, so the simulator's is the one that differs.
    differ("alpha", &other(&|it| it.alpha = 7), &scene);
    differ("quantum", &scene, &other(&|it| it.quantum = 2048));
    differ("memory", &scene, &other(&|it| it.memory -= u64::from(FRAME)));
    differ("headroom", &scene, &other(&|it| it.headroom /= 2));
    differ("ring", &scene, &other(&|it| it.ring = 32));
    differ("feedback", &scene, &other(&|it| it.feedback = Time::from_us(30)));
}
