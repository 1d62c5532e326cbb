//! The claims, with their intervals.

use super::{
    AT_HOSTS, BURST, CALLS, INCAST_P99, LOOKS, MEDIAN, MESSAGES_P99, MESSAGES_P999, NEIGHBOUR_GOODPUT, Name, SPREAD,
    STOPS, STREAM_P50, STREAM_P99, SWING, VICTIM_CALLS, VICTIM_GOODPUT, VICTIM_P99,
};
use crate::claim::{Claim, Value};
use crate::measure::Measure;
use crate::statistic::Statistic;
use Value::{Arithmetic, Fitted, Ours, Published, Shape};

const ABSTRACT: Name = "Backdraft, NSDI 2022, abstract";
const SLIDES: Name = "Backdraft, NSDI 2022, slides";
const POINTS: Name = "Backdraft, NSDI 2022, slides' points, fitted";
const RELEASE: Name = "Backdraft's release, points of an older plot";
const ASKED: Name = "the bound is ours";
const SETTING: Name = "the setting";

const WORK_OF: Name = "the work of a service";
const STALL: Name = "the other task's turn of 100 us";

const fn claim((id, source): (Name, Name), statement: Name, paper: Value, measure: Measure) -> Claim {
    Claim { id, source, statement, paper, accept: [Some(100.0), None], measure, quick: None, note: "" }
}
const fn accept(low: Option<f64>, high: Option<f64>, claim: Claim) -> Claim {
    Claim { accept: [low, high], ..claim }
}
const fn at_most(most: f64, claim: Claim) -> Claim {
    accept(None, Some(most), claim)
}
const fn at_least(least: f64, claim: Claim) -> Claim {
    accept(Some(least), None, claim)
}
const fn noted(note: Name, claim: Claim) -> Claim {
    Claim { note, ..claim }
}

const fn part(experiment: Name, load: f64, statistic: Statistic, of: Name, whole: f64) -> Measure {
    Measure::Part { experiment, load, statistic, of, whole }
}
const fn plain(experiment: Name, load: f64, statistic: Statistic, of: Name) -> Measure {
    Measure::Plain { experiment, load, statistic, of }
}
const fn change(experiment: Name, load: f64, statistic: Statistic, of: Name, than: Name) -> Measure {
    Measure::Change { experiment, load, statistic, of, than }
}
const fn growth(experiment: Name, statistic: Statistic, of: Name, from: f64, to: f64) -> Measure {
    Measure::Growth { experiment, statistic, of, from, to }
}
const fn order(experiment: Name, load: f64, statistic: Statistic, groups: &'static [&'static [Name]]) -> Measure {
    Measure::Order { experiment, load, statistic, groups, slack: &[] }
}
const fn beyond(experiment: Name, load: f64, statistic: Statistic, of: Name, than: Name) -> Measure {
    Measure::Beyond { experiment, load, statistic, of, than }
}
/// Backdraft below the lossy switch, where it is furthest.
const fn below_lossy(experiment: Name) -> Measure {
    Measure::BestOf { experiment, statistic: INCAST_P99, pairs: &[("backdraft", "lossy")] }
}

const TWENTY: Name = "an application's p99 is up to 20 times lower than with a lossy virtual switch";
/// What D1 and D2 are of.
const TAS: Name =
    "with the stack of the paper's applications, TAS: its rates and its timers (first 400 us, least 200 us)";
const TAS_LARGE: Name = "the same; connections begin at 1 Gb/s, since a message is a connection of its own here, and at TAS' \
                         first rate of 10 Mb/s 100 KB take 69 ms";
/// What D5 and D6 rest on.
const TIMERS: Name = "the least RTO of 10 ms is ours; D1 and D2 have the paper's stack";
const TEN_MS: Name = "with DCTCP and a least RTO of 10 ms the p99 of small messages is a tenth or less";
const TEN_MS_LARGE: Name = "and so is that of messages of 100 KB";
const LOSSLESS: Name = "Backdraft loses nothing at the host";
const VICTIM: Name = "Backdraft: the victim's p99 is at most twice that without a neighbour";
const WORST: &[&[Name]] = &[&["lossy", "flow-queues", "doorbells", "backdraft"], &["backpressure"]];
/// Which switches bring as much through as others; 5 % are a tie.
const fn throughput(experiment: Name, load: f64) -> Measure {
    const GROUPS: &[&[Name]] = &[&["lossy"], &["backpressure", "flow-queues"], &["backdraft"]];
    Measure::Order { experiment, load, statistic: Statistic::Goodput, groups: GROUPS, slack: &[1.05, 1.05] }
}
const THROUGHPUT: Name =
    "throughput: Backdraft has at least that of backpressure and of flow queues, and these at least a lossy switch's";
/// All of a burst ends with its slowest messages; 5 % are a tie.
const fn whole_bursts(experiment: Name, load: f64) -> Measure {
    const GROUPS: &[&[Name]] = &[&["backdraft"], &["backpressure", "flow-queues"], &["lossy"]];
    Measure::Order { experiment, load, statistic: INCAST_P99, groups: GROUPS, slack: &[1.05, 1.05] }
}
const BURSTS: Name =
    "bursts are served as soon with Backdraft as with backpressure or flow queues, and sooner than lossy";
const OF_UDP: Name = "the authors' neighbour sends UDP";
/// Goodput of the slow application by component of Backdraft, as E7h's.
const fn component(name: (Name, Name), statement: Name, of: Name) -> Claim {
    let measure = part("neighbour", 100.0, NEIGHBOUR_GOODPUT, of, 9.733);
    accept(Some(95.0), Some(105.0), claim(name, statement, Ours, measure))
}

pub(super) const CLAIMS: &[Claim] = &[
    accept(
        Some(85.0),
        Some(115.0),
        claim(
            ("E1a", POINTS),
            "memcached with values of 4.8 KB has 100 Gb/s on 32 cores",
            Fitted(100.0, WORK_OF),
            part("cores", 32.0, Statistic::Goodput, "memcached", 100.0),
        ),
    ),
    accept(
        Some(85.0),
        Some(115.0),
        claim(
            ("E1b", POINTS),
            "nginx with files of 1 MB has 100 Gb/s on 14 cores",
            Fitted(100.0, WORK_OF),
            part("cores", 14.0, Statistic::Goodput, "nginx", 100.0),
        ),
    ),
    accept(
        Some(83.0),
        Some(117.0),
        claim(
            ("E1c", POINTS),
            "iperf3 has 100 Gb/s on 6 cores",
            Fitted(100.0, WORK_OF),
            part("cores", 6.0, Statistic::Goodput, "iperf3", 100.0),
        ),
    ),
    accept(
        Some(1743.0),
        Some(2359.0),
        claim(
            ("E1d", RELEASE),
            "memcached on 33 cores has 20.5 times the throughput of one (9,600 and 468); here on 32",
            Published(2051.0),
            growth("cores", Statistic::Goodput, "memcached", 1.0, 32.0),
        ),
    ),
    at_most(
        -5.0,
        claim(
            ("E2a", ASKED),
            "another task on the same cores lowers the median of throughput",
            Ours,
            change("variation", 100.0, MEDIAN, "background", "memcached"),
        ),
    ),
    at_least(
        100.0,
        claim(
            ("E2b", ASKED),
            "and its range from the 10th to the 90th percentile is twice as wide",
            Ours,
            change("variation", 100.0, SPREAD, "background", "memcached"),
        ),
    ),
    claim(
        ("E3", POINTS),
        "throughput changes by 40 Gb/s within 100 us",
        Fitted(100.0, STALL),
        part("variation", 100.0, SWING, "background", 40.0),
    ),
    at_least(
        2000.0,
        claim(
            ("E4b", ASKED),
            "half more work than can be done: the messages' p99 is 20 times that at three quarters of it",
            Ours,
            growth("homa-slow", MESSAGES_P99, "lossy", 75.0, 150.0),
        ),
    ),
    at_least(
        2000.0,
        claim(
            ("E4c", ASKED),
            "and at least a RESEND's 2 ms above that of a ring that holds all of it",
            Ours,
            beyond("homa-slow", 150.0, MESSAGES_P99, "lossy", "deep"),
        ),
    ),
    at_most(
        95.0,
        claim(
            ("E4d", ASKED),
            "and goodput is below what the application could serve, 1.36 Gb/s",
            Ours,
            part("homa-slow", 150.0, Statistic::Goodput, "lossy", 1.36),
        ),
    ),
    accept(
        Some(100.0),
        Some(250.0),
        claim(
            ("E5a", SETTING),
            "two packets a message: of 1 % lost the p99 is a RESEND's 2 ms",
            Arithmetic,
            part("homa-loss", 100.0, MESSAGES_P99, "loss-1e-2", 2000.0),
        ),
    ),
    accept(
        Some(100.0),
        Some(250.0),
        claim(
            ("E5b", SETTING),
            "and of 0.1 % the p99.9 is",
            Arithmetic,
            part("homa-loss", 100.0, MESSAGES_P999, "loss-1e-3", 2000.0),
        ),
    ),
    accept(
        Some(-5.0),
        Some(5.0),
        claim(
            ("E5c", SETTING),
            "and of 0.001 % the p99 is that without losses",
            Arithmetic,
            change("homa-loss", 100.0, MESSAGES_P99, "loss-1e-5", "lossy"),
        ),
    ),
    noted(TAS, at_most(-90.0, claim(("D1", ABSTRACT), TWENTY, Published(-95.0), below_lossy("incast-tas")))),
    noted(
        TAS_LARGE,
        at_most(-90.0, claim(("D2", ABSTRACT), TWENTY, Published(-95.0), below_lossy("incast-tas-large"))),
    ),
    at_most(
        -50.0,
        claim(
            ("D3", ASKED),
            "with a least RTO of 1 ms for all it is still half or less",
            Ours,
            below_lossy("incast-rto"),
        ),
    ),
    at_most(-90.0, claim(("D4", ABSTRACT), TWENTY, Published(-95.0), below_lossy("incast-homa"))),
    noted(TIMERS, at_most(-90.0, claim(("D5", ASKED), TEN_MS, Ours, below_lossy("incast-small")))),
    noted(TIMERS, at_most(-90.0, claim(("D6", ASKED), TEN_MS_LARGE, Ours, below_lossy("incast-large")))),
    at_most(0.0, claim(("E6a", ABSTRACT), LOSSLESS, Shape, plain("incast-small", 400.0, AT_HOSTS, "backdraft"))),
    at_most(
        100.0,
        claim(("E6b", ASKED), VICTIM, Ours, change("incast-small", 400.0, STREAM_P99, "backdraft", "alone")),
    ),
    claim(("E6c", ASKED), BURSTS, Ours, whole_bursts("incast-small", 400.0)),
    at_most(0.0, claim(("E6d", ABSTRACT), LOSSLESS, Shape, plain("incast-large", 16.0, AT_HOSTS, "backdraft"))),
    at_most(100.0, claim(("E6e", ASKED), VICTIM, Ours, change("incast-large", 16.0, STREAM_P99, "backdraft", "alone"))),
    claim(("E6f", ASKED), BURSTS, Ours, whole_bursts("incast-large", 16.0)),
    at_most(0.0, claim(("E6g", ABSTRACT), LOSSLESS, Shape, plain("incast-homa", 400.0, AT_HOSTS, "backdraft"))),
    at_most(100.0, claim(("E6h", ASKED), VICTIM, Ours, change("incast-homa", 400.0, STREAM_P99, "backdraft", "alone"))),
    claim(
        ("E6i", SLIDES),
        "credits cost an extra round trip: the victim's median is higher than with Backdraft",
        Shape,
        order("admission", 16.0, STREAM_P50, &[&["backdraft"], &["credits"]]),
    ),
    at_most(
        0.0,
        claim(("E6j", ASKED), "credits lose nothing at the host", Ours, plain("admission", 400.0, AT_HOSTS, "credits")),
    ),
    at_most(
        5.0,
        claim(
            ("E6k", ASKED),
            "and serve bursts as soon as Backdraft does, within 5 %",
            Ours,
            change("admission", 400.0, INCAST_P99, "credits", "backdraft"),
        ),
    ),
    at_most(
        -50.0,
        claim(
            ("E6m", ASKED),
            "PicNIC's rates lose less than half of what the lossy switch does",
            Ours,
            change("admission", 400.0, AT_HOSTS, "picnic", "lossy"),
        ),
    ),
    claim(("E6n", SLIDES), THROUGHPUT, Shape, throughput("incast-homa", 400.0)),
    claim(("E6o", SLIDES), THROUGHPUT, Shape, throughput("incast-homa-large", 16.0)),
    at_most(0.0, claim(("E6p", ABSTRACT), LOSSLESS, Shape, plain("incast-homa-large", 16.0, AT_HOSTS, "backdraft"))),
    noted(
        OF_UDP,
        claim(
            ("E7a", SLIDES),
            "plain backpressure blocks the head of the line: a victim that does not wait has a higher p99 than with a \
             lossy switch",
            Shape,
            order("neighbour-open", 100.0, STREAM_P99, &[&["lossy"], &["backpressure"]]),
        ),
    ),
    claim(("E7b", ASKED), "and it is the worst of all", Ours, order("neighbour", 100.0, VICTIM_P99, WORST)),
    claim(
        ("E7c", SLIDES),
        "queues of flows prevent that: the victim's p99 is lower than with backpressure",
        Shape,
        order("neighbour", 100.0, VICTIM_P99, &[&["flow-queues"], &["backpressure"]]),
    ),
    at_most(100.0, claim(("E7d", ASKED), VICTIM, Ours, change("neighbour", 100.0, VICTIM_P99, "backdraft", "alone"))),
    at_least(
        -10.0,
        claim(
            ("E7e", ASKED),
            "Backdraft: the victim has 90 % of its calls",
            Ours,
            change("neighbour", 100.0, VICTIM_CALLS, "backdraft", "alone"),
        ),
    ),
    at_most(0.0, claim(("E7f", ABSTRACT), LOSSLESS, Shape, plain("neighbour", 100.0, AT_HOSTS, "backdraft"))),
    at_least(
        1.0,
        claim(
            ("E7g", ASKED),
            "a lossy switch wastes what was sent: 1 % of the packets is lost",
            Ours,
            plain("neighbour", 100.0, Statistic::Lost, "lossy"),
        ),
    ),
    accept(
        Some(95.0),
        Some(105.0),
        claim(
            ("E7h", SETTING),
            "Backdraft: the slow application has what it can serve, 1,460 bytes in 1.2 us",
            Arithmetic,
            part("neighbour", 100.0, NEIGHBOUR_GOODPUT, "backdraft", 9.733),
        ),
    ),
    claim(
        ("E7i", ASKED),
        "and less with a lossy switch",
        Ours,
        order("neighbour", 100.0, NEIGHBOUR_GOODPUT, &[&["lossy"], &["backdraft"]]),
    ),
    at_most(
        100.0,
        claim(
            ("E7j", ASKED),
            "Backdraft: the p99 of a victim that does not wait is at most twice that without a neighbour",
            Ours,
            change("neighbour-open", 100.0, STREAM_P99, "backdraft", "alone"),
        ),
    ),
    component(("E7k1", ASKED), "goodput by component: backpressure has what the application can serve", "backpressure"),
    component(("E7k2", ASKED), "and so have flow queues with doorbells", "doorbells"),
    claim(
        ("E7k3", ASKED),
        "flow queues that are polled have less than these",
        Ours,
        order("neighbour", 100.0, NEIGHBOUR_GOODPUT, &[&["flow-queues"], &["backpressure", "doorbells"]]),
    ),
    at_most(
        0.0,
        claim(
            ("E8a", ASKED),
            "a queue that grows takes bursts of 4,096 packets, and polling never stops",
            Ours,
            plain("bursts", 4096.0, STOPS, "growing"),
        ),
    ),
    at_most(0.0, claim(("E8b", ASKED), "and nothing is dropped", Ours, plain("bursts", 4096.0, AT_HOSTS, "growing"))),
    at_least(
        1.0,
        claim(
            ("E8c", ASKED),
            "a queue of 64 packets stops polling at 512",
            Ours,
            plain("bursts", 512.0, STOPS, "static"),
        ),
    ),
    at_least(
        1.0,
        claim(("E8d", ASKED), "and drops packets at 4,096", Ours, plain("bursts", 4096.0, AT_HOSTS, "static")),
    ),
    accept(
        Some(760.0),
        Some(840.0),
        claim(
            ("E8e", SETTING),
            "time grows with the burst: 4,096 packets take 8 times as long as 512",
            Arithmetic,
            growth("bursts", BURST, "growing", 512.0, 4096.0),
        ),
    ),
    accept(
        Some(90.0),
        Some(110.0),
        claim(
            ("E9a", ASKED),
            "with doorbells throughput is the same within 10 % beside 2 and 4,096 silent queues",
            Ours,
            growth("doorbells", CALLS, "doorbells", 2.0, 4096.0),
        ),
    ),
    accept(
        Some(24.0),
        Some(33.0),
        claim(
            ("E9b", SETTING),
            "without, it falls as queues are more: 1,089 and 4,161 looks a round make 28 % of it",
            Arithmetic,
            growth("doorbells", CALLS, "polled", 1024.0, 4096.0),
        ),
    ),
    at_most(
        10.0,
        claim(
            ("E9c", ASKED),
            "beside two silent queues doorbells are no more than 10 % faster",
            Ours,
            change("doorbells", 2.0, CALLS, "doorbells", "polled"),
        ),
    ),
    accept(
        Some(90.0),
        Some(110.0),
        claim(
            ("E9d", ASKED),
            "with doorbells a packet costs as many looks beside 2 and 4,096 silent queues",
            Ours,
            growth("doorbells", LOOKS, "doorbells", 2.0, 4096.0),
        ),
    ),
    claim(
        ("E10a", SLIDES),
        "PFC spreads congestion: the victim has less than without a slow receiver",
        Shape,
        order("spreading", 2.0, VICTIM_GOODPUT, &[&["pfc"], &["alone"]]),
    ),
    at_most(
        -50.0,
        claim(("E10b", ASKED), "it has half or less", Ours, change("spreading", 2.0, VICTIM_GOODPUT, "pfc", "alone")),
    ),
    claim(
        ("E10c", SLIDES),
        "BFC cannot keep it from spreading: with 96 flows to the slow receiver the victim has less",
        Shape,
        order("spreading", 32.0, VICTIM_GOODPUT, &[&["bfc"], &["alone"]]),
    ),
    at_most(
        -5.0,
        claim(
            ("E10d", ASKED),
            "and 5 % less than with Backdraft",
            Ours,
            change("spreading", 32.0, VICTIM_GOODPUT, "bfc", "backdraft"),
        ),
    ),
    at_least(
        -5.0,
        claim(
            ("E10e", ASKED),
            "Backdraft: the victim has 95 % of what it has alone, beside 96 flows",
            Ours,
            change("spreading", 32.0, VICTIM_GOODPUT, "backdraft", "alone"),
        ),
    ),
    at_most(
        5.0,
        claim(
            ("E10g", ASKED),
            "Backdraft: the fabric's queue is short: a probe's p99.9 is at most 5 us above that alone, 6 flows",
            Ours,
            beyond("spreading", 2.0, Statistic::ProbeP999, "backdraft", "alone"),
        ),
    ),
    claim(
        ("E10h", ASKED),
        "and shorter than with PFC",
        Ours,
        order("spreading", 2.0, Statistic::ProbeP999, &[&["backdraft"], &["pfc"]]),
    ),
    at_most(0.0, claim(("E10i", ABSTRACT), LOSSLESS, Shape, plain("spreading", 32.0, AT_HOSTS, "backdraft"))),
];
