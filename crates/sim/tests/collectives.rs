//! Collectives over packets, by hand: one switch, equal links, exact hosts.
//!
//! Links of 100 Gb/s and 1 µs, packets of 4,000 bytes of payload and 40 of headers. A message of c
//! bytes in k packets takes T(c) = 8(c + 40k + 4040)/R + 2 µs if k ≥ 2. Acknowledgements of 44
//! bytes share the links: a hop of one takes 3.52 ns.

use crate::common::{self, Records, assert_nothing_changes, exact, simulate};
use millpond_core::Time;
use std::collections::BTreeSet;

/// Queue pairs that send at line rate and answer each message once.
const NETWORK: &str = "duration = \"1s\"\nuntil = \"flows-complete\"\n\
    [topology]\nkind = \"single-switch\"\nhosts = HOSTS\n\
    host-link = { rate = \"100Gbps\", delay = \"1us\" }\n\
    [host]\nmtu = 4040\n\
    [switch]\nbuffer = { kind = \"per-port\", size = \"100MB\" }\nmarking = { kind = \"none\" }\n\
    [transport]\nkind = \"dcqcn\"\n[rdma]\nack-interval = 1000000\n";

fn text(hosts: u32, keys: &str) -> String {
    let network = NETWORK.replace("HOSTS", &hosts.to_string());
    format!("{network}[[traffic]]\nkind = \"collective\"\n{keys}\n")
}

fn run(hosts: u32, keys: &str) -> Records {
    simulate(&exact(&text(hosts, keys), &[]), 1).1
}

/// The time of a collective's only round.
fn time(hosts: u32, keys: &str) -> Time {
    let records = run(hosts, keys);
    assert_eq!((records.collectives.len(), records.ranks.len()), (1, hosts as usize));
    records.collectives[0].time().expect("the round is over")
}

/// A message of 1 MB: 250 packets, 80.8 µs on each link, one of them 0.3232 µs, 2 µs of delay.
const T_1MB: u64 = 83_123_200;
/// An acknowledgement of 44 bytes on a link.
const ANSWER: u64 = 3_520;

#[test]
fn ring_of_four_takes_six_messages_and_five_answers() {
    let records = run(4, "size = \"4MB\"");
    let [ring] = records.collectives[..] else { panic!("{:?}", records.collectives) };
    assert_eq!(ring.closed_form, Time::from_ps(6 * T_1MB));
    // Each step but the first shares the link with the answer to the step before.
    assert_eq!(ring.time(), Some(Time::from_ps(6 * T_1MB + 5 * ANSWER)));
    assert_eq!(ring.first_end, ring.end.unwrap(), "all ranks end at once");
    let bus = ring.busbw.unwrap() / 1e9;
    assert!((bus - 6.0 / ring.time().unwrap().as_us_f64() * 1e3).abs() < 1e-9, "{bus}");
    assert_eq!(records.flows.len(), 24);
    let (messages, slowest) = (&records.flows, records.flows.iter().map(|flow| flow.ideal).max());
    assert!(messages.iter().all(|flow| flow.is_call && flow.bytes == 1_000_000));
    assert_eq!(slowest, Some(Time::from_ps(T_1MB)));
}

/// A queue pair opens at once: with one for each message a ring takes as long, and its messages
/// have ids of their own.
#[test]
fn queue_pairs_for_each_message_cost_nothing() {
    let records = run(4, "size = \"4MB\"\nconnections = \"per-message\"");
    assert_eq!(records.collectives[0].time(), Some(Time::from_ps(6 * T_1MB + 5 * ANSWER)));
    let ids: BTreeSet<u32> = records.flows.iter().map(|flow| flow.flow).collect();
    assert_eq!((records.flows.len(), ids.len()), (24, 24));
    let lasting: BTreeSet<u32> =
        run(4, "size = \"4MB\"").flows.iter().map(|flow| flow.flow).collect();
    assert_eq!(lasting.len(), 4);
}

/// A TCP connection for each message opens by a handshake and begins with its first window.
#[test]
fn tcp_connections_for_each_message_begin_anew() {
    let of = |connections: &str, size: &str| {
        let keys = format!("size = \"{size}\"\nconnections = \"{connections}\"");
        let text = text(4, &keys).replace("dcqcn", "newreno").replace("[rdma]\nack-interval", "#");
        let records = simulate(&exact(&text, &[]), 1).1;
        let ideal = records.flows.iter().map(|flow| flow.ideal).min().unwrap();
        (records.collectives[0].time().unwrap(), ideal)
    };
    // A message is a packet. SYN and SYN-ACK take two links of 1 us each way, and some nanoseconds
    // on them.
    let ((lasting, alone), (anew, opened)) = (of("lasting", "16KB"), of("per-message", "16KB"));
    let handshake = opened - alone;
    assert!(handshake > Time::from_us(4) && handshake < Time::from_ns(4_050), "{handshake}");
    // The first message opens a connection in both cases.
    let beyond = (anew - lasting).as_ps() as f64 / (5 * handshake.as_ps()) as f64;
    assert!((beyond - 1.0).abs() < 0.01, "{lasting} {anew} {beyond}");
    // The window of a message of 250 packets grows from ten packets for a round trip at least.
    let ((lasting, _), (anew, _)) = (of("lasting", "4MB"), of("per-message", "4MB"));
    assert!(anew > lasting + Time::from_us(5 * (4 + 4)), "{lasting} {anew}");
}

/// The link never idles between slices: all bytes, one packet and the delays of the last hop, and
/// at most an answer for each slice on each of two links.
#[test]
fn slices_hide_the_delay_of_a_step() {
    let records = run(4, "size = \"4MB\"\nslices = 4");
    let [ring] = records.collectives[..] else { panic!("{:?}", records.collectives) };
    let bytes = Time::from_ps(6 * 80_800_000 + 323_200 + 2_000_000);
    assert_eq!(ring.closed_form, bytes);
    let beyond = ring.time().unwrap() - bytes;
    assert!(beyond <= Time::from_ps(2 * 24 * ANSWER), "{beyond:?}");
}

/// Each rank serves its children one after the other, and a child that is served hands on at once:
/// as many messages in a row as there are rounds.
#[test]
fn binomial_broadcast_takes_a_message_for_each_round() {
    for (hosts, rounds) in [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (13, 4), (16, 4)] {
        for connections in ["lasting", "per-message"] {
            let op = "op = \"broadcast\"\nalgorithm = \"binomial\"\nsize = \"1MB\"";
            let time = time(hosts, &format!("{op}\nconnections = \"{connections}\""));
            let (least, most) = (rounds * 80_800_000, rounds * (T_1MB + 2 * ANSWER));
            let range = Time::from_ps(least)..=Time::from_ps(most);
            assert!(range.contains(&time), "{hosts} {connections}: {time}");
        }
    }
}

/// So with every family, and in one that pauses: alone in the network each message is sent whole
/// before the next begins.
#[test]
fn messages_of_a_lane_leave_one_after_the_other() {
    let op = "op = \"broadcast\"\nsize = \"1MB\"";
    for transport in ["dcqcn", "hpcc", "timely", "homa", "uet", "dctcp", "mptcp"] {
        let mut text = text(8, op).replace("dcqcn", transport);
        if transport == "homa" {
            text = text.replace("[switch]\n", "[switch]\nqueue = { kind = \"strict-priority\" }\n");
        }
        if transport != "dcqcn" {
            text = text.replace("[rdma]\nack-interval = 1000000\n", "");
        }
        if ["dctcp", "mptcp"].contains(&transport) {
            let keys = format!("\"{transport}\"\ninitial-window = 250\nhandshake = false\n");
            text = text.replace(&format!("\"{transport}\"\n"), &keys);
        }
        let (_, records) = simulate(&exact(&text, &[]), 1);
        let [round] = records.collectives[..] else { panic!("{:?}", records.collectives) };
        let ratio = round.time().unwrap().as_us_f64() / round.closed_form.as_us_f64();
        assert!((0.99..1.15).contains(&ratio), "{transport}: {ratio}");
    }
}

/// The own sends of a rank that begins late in an exchange do not share its NIC.
#[test]
fn exchanges_of_five_ranks_wait_for_their_own_sends() {
    let op = "op = \"all-reduce\"\nalgorithm = \"recursive-doubling\"\nsize = \"1MB\"";
    // Rank 0 receives from ranks 4 and 1 at once, in two messages' time; then three in a row.
    let time = time(5, op);
    assert!(time <= Time::from_ps(5 * (T_1MB + 2 * ANSWER)), "{time}");
}

/// A chain's closed form: the first rank sends all, and each between hands on the last pieces of
/// its channels.
#[test]
fn chain_takes_its_closed_form() {
    for hosts in [3, 4, 8, 16] {
        for (chunk, channels) in [("16KB", 1), ("64KB", 1), ("64KB", 2), ("500KB", 4), ("1MB", 1)] {
            let records = run(
                hosts,
                &format!(
                    "op = \"broadcast\"\nalgorithm = \"ring\"\nsize = \"1MB\"\nchunk = \
                     \"{chunk}\"\nchannels = {channels}"
                ),
            );
            let chain = records.collectives[0];
            let ratio = chain.time().unwrap().as_us_f64() / chain.closed_form.as_us_f64();
            assert!((0.98..1.01).contains(&ratio), "{hosts} {chunk} {channels}: {ratio}");
        }
    }
}

#[test]
fn linear_exchange_takes_its_bound() {
    let time = time(4, "op = \"all-to-all\"\nalgorithm = \"linear\"\nsize = \"4MB\"");
    // Three blocks of 1 MB into each port, one behind the other: W = 1.01 MB each.
    let port = 3 * 80_800_000 + 323_200 + 2_000_000;
    assert_eq!(time, Time::from_ps(port));
}

#[test]
fn two_ranks_exchange_once_or_twice() {
    let of = |keys: &str| time(2, &format!("size = \"2MB\"\n{keys}"));
    let ring = of("");
    assert_eq!(ring, Time::from_ps(2 * T_1MB + ANSWER));
    assert_eq!(of("algorithm = \"halving-doubling\""), ring);
    assert_eq!(of("op = \"all-to-all\""), Time::from_ps(T_1MB));
}

#[test]
fn halves_of_an_all_reduce_sum_up_to_it() {
    let of = |op: &str| run(4, &format!("op = {op:?}\nsize = \"4MB\"")).collectives[0];
    let [all, scatter, gather] = ["all-reduce", "reduce-scatter", "all-gather"].map(of);
    assert_eq!(scatter.closed_form + gather.closed_form, all.closed_form);
    // Of one after the other the second's first step meets no answer.
    let sum = scatter.time().unwrap() + gather.time().unwrap() + Time::from_ps(ANSWER);
    assert_eq!(sum, all.time().unwrap());
}

#[test]
fn straggler_delays_the_end_by_its_delay() {
    // Out of step, ranks meet up to nine answers instead of five.
    let late = "size = \"4MB\"\nstragglers = [\"1\"]\nstraggler-delay = \"200us\"";
    let beyond = (time(4, late) - Time::from_ps(200_000_000 + 6 * T_1MB)).as_ps();
    assert!(beyond.is_multiple_of(ANSWER) && beyond / ANSWER <= 9, "{beyond}");
}

#[test]
fn hot_rank_takes_its_multiple_of_the_time() {
    let op = "op = \"all-to-all\"\nalgorithm = \"linear\"\nsize = \"8MB\"\n";
    let (even, hot) = (time(4, op), time(4, &format!("{op}skew = 3.0")));
    // Bytes alone are three times as many; the last packet's hop and the delays are not.
    let fixed = Time::from_ps(2_323_200);
    let beyond = (hot - fixed).as_ps() - 3 * (even - fixed).as_ps();
    assert!(beyond <= 3 * ANSWER, "an answer to each sender: {beyond}");
}

/// Rounds follow each other, with pauses; each makes a record, and the run ends with the last.
#[test]
fn rounds_follow_each_other() {
    let keys = "size = \"400KB\"\nrepeat = 3\ngap = \"10us\"\ncompute = \"5us\"";
    let (outcome, records) = simulate(&exact(&text(4, keys), &[]), 1);
    assert_eq!((records.collectives.len(), records.ranks.len()), (3, 12));
    let times: Vec<Time> = records.collectives.iter().filter_map(|round| round.time()).collect();
    assert_eq!(times, [times[0]; 3]);
    for (before, after) in records.collectives.iter().zip(&records.collectives[1..]) {
        assert_eq!(after.began - before.end.unwrap(), Time::from_us(10));
        assert_eq!(
            (after.begin - after.began, after.computed),
            (Time::from_us(5), Time::from_us(5))
        );
    }
    assert!(outcome.standstill.is_none() && outcome.simulated < Time::from_ms(1));
    assert_eq!(outcome.hosts.started, outcome.hosts.completed);
}

/// A compute time is no end of progress, however long, and a cut job is one.
#[test]
fn a_rank_that_computes_is_no_standstill() {
    let keys = "size = \"40KB\"\nrepeat = 2\ngap = \"300s\"";
    let plan = exact(&text(2, keys), &[("duration", "1000s")]);
    let (outcome, records) = simulate(&plan, 1);
    assert_eq!((records.collectives.len(), outcome.is_stalled()), (2, false));
    let cut = "\n[[failure]]\nlink = [\"host1\", \"switch0\"]\nat = \"5us\"";
    let plan = exact(&(text(2, "size = \"4MB\"") + cut), &[("duration", "1000s")]);
    let (outcome, records) = simulate(&plan, 1);
    assert!(outcome.is_stalled() && records.collectives.is_empty());
    let open = records.flows.iter().filter(|flow| flow.finish.is_none()).count();
    assert_eq!(open, 2, "each of two messages has a record");
}

/// The scenarios of `scenarios/ai` run to their end, and each job makes its rounds.
#[test]
fn shipped_scenarios_make_all_their_rounds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/ai");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        let scenario = millpond_scenario::Scenario::load(&path).unwrap_or_else(|e| panic!("{e}"));
        let variant = scenario.variants().last().map(|variant| variant.to_string());
        let plan = scenario.plan(variant.as_deref(), &[], None).unwrap_or_else(|e| panic!("{e}"));
        let (outcome, records) = simulate(&plan, 2);
        let rounds: u32 = plan.traffic.jobs().map(|(_, job)| job.work.rounds()).sum();
        let ended = records.collectives.iter().filter(|round| round.end.is_some()).count();
        assert!(rounds > 0 && ended == rounds as usize, "{path:?}: {ended} of {rounds}");
        assert!(!outcome.is_stalled() && outcome.audit.dropped_total().packets == 0, "{path:?}");
    }
}

/// A ring whose ranks are placed at random in `scenarios/ai/segments.toml` is slower by a hash than
/// by any other choice of paths, and than one whose ranks follow each other by segment.
#[test]
fn hashed_paths_slow_a_ring_across_segments() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/ai/segments.toml");
    let scenario =
        millpond_scenario::Scenario::load(path.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let set = [("traffic.reduce.repeat".to_string(), "1".to_string())];
    let time = |variant: &str| {
        let plan = scenario.plan(Some(variant), &set, None).unwrap_or_else(|e| panic!("{e}"));
        simulate(&plan, 2).1.collectives[0].time().expect("the round is over").as_us_f64()
    };
    let hashed = time("hashed");
    for variant in ["packed", "sprayed", "reps"] {
        let other = time(variant);
        assert!(other * 1.2 < hashed, "{variant}: {other} of {hashed}");
    }
}

/// Every algorithm ends on a network that shares links, with any transport, threads and partitions.
#[test]
fn runs_are_the_same_for_any_threads_and_partitions() {
    let network = "duration = \"50ms\"\nuntil = \"flows-complete\"\n\
        [topology]\nleaves = 3\nspines = 2\nhosts-per-leaf = 4\n\
        host-link = { rate = \"10Gbps\", delay = \"1us\" }\n\
        fabric-link = { rate = \"10Gbps\", delay = \"1us\" }\n";
    for (transport, keys) in [
        ("dctcp", "size = \"1MB\"\nslices = 3\nchannels = 2\nchunk = \"20KB\""),
        ("dcqcn", "algorithm = \"double-binary-tree\"\nsize = \"600KB\"\nchunk = \"50KB\""),
        ("dctcp", "algorithm = \"halving-doubling\"\nchannels = 3\nsize = \"300KB\"\nrepeat = 2"),
        ("homa", "op = \"all-to-all\"\nalgorithm = \"pxn\"\ngroup = 4\nsize = \"600KB\""),
        ("newreno", "op = \"pipeline\"\nsize = \"50KB\"\nranks = 6\nmicro-batches = 5"),
        ("dctcp", "connections = \"per-message\"\nsize = \"1MB\"\nslices = 3\nchannels = 2"),
        ("homa", "connections = \"per-message\"\nsize = \"300KB\"\nrepeat = 3"),
        ("uet", "connections = \"per-message\"\nop = \"all-to-all\"\nsize = \"600KB\""),
        ("hpcc", "connections = \"per-message\"\nop = \"all-to-all\"\nalgorithm = \"linear\""),
        ("cubic", "op = \"barrier\"\nrepeat = 5\ncompute = \"20us\"\ncompute-jitter = 0.2"),
    ] {
        let text = format!(
            "{network}[transport]\nkind = \"{transport}\"\n[[traffic]]\nkind = \"collective\"\n\
             placement = \"random\"\n{keys}\n[[traffic]]\nname = \"other\"\n\
             kind = \"permutation\"\nsize = \"100KB\"\n"
        );
        let (_, records) = simulate(&common::plan(&text, &[]), 1);
        assert!(records.collectives.iter().all(|round| round.end.is_some()), "{keys}");
        assert!(!records.collectives.is_empty(), "{keys}");
        assert_nothing_changes(&text, &[], &[2, 3]);
    }
}
