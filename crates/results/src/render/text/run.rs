//! Results as text: one run, and variants beside each other, at most 100 columns wide.
//!
//! Invariant: plain text without colour or control characters, whatever names a scenario gives.

use crate::model::program::Program;
use crate::model::summary::{Collectives, Summary};
use crate::model::{Estimate, Ordered, Tree, clean};
use crate::render::format::{self, NONE, bytes, count, digits, percent, ratio, time, whole};
use crate::render::text::layout::{Warnings, fitted, listed, short};
use crate::statistics::censoring::shown;
use crate::statistics::numbers::statistics;
use crate::statistics::shows::{Column, columns};

pub fn run_table(summary: &Summary, warnings: Warnings) -> String {
    let mut lines = vec![title(summary), String::new()];
    lines.extend(classes(summary));
    lines.extend(chosen(summary));
    lines.push(String::new());
    let packets = &summary.packets;
    let not_started = match summary.flows.not_started {
        0 => String::new(),
        n => format!("{} never started, ", whole(n)),
    };
    lines.push(format!(
        "flows     {} started, {} completed ({}), {}{} delivered, goodput {}",
        whole(summary.flows.started),
        whole(summary.flows.completed),
        percent(
            (summary.flows.started > 0)
                .then(|| summary.flows.completed as f64 / summary.flows.started as f64)
        ),
        not_started,
        bytes(summary.flows.bytes_delivered),
        summary.flows.goodput_gbps.map_or(NONE.into(), |g| format!("{} Gb/s", digits(g))),
    ));
    let of_packets = [
        ("sent", packets.sent),
        ("delivered", packets.delivered),
        ("dropped", packets.dropped),
        ("marked", packets.ecn_marked),
        ("deflected", packets.deflected),
        ("sent again", packets.retransmitted),
        ("out of order", packets.out_of_order),
    ];
    lines.extend(listed("packets", &of_packets.map(|(name, n)| format!("{} {name}", whole(n)))));
    let drops: Vec<String> = packets
        .dropped_by
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(name, n)| format!("{} {name}", whole(*n)))
        .collect();
    lines.extend(listed("drops", &drops));
    lines.extend(other_lines(summary));
    lines.extend(warnings.lines(&summary.warnings));
    lines.extend(program_lines(summary));
    lines.join("\n") + "\n"
}

/// How programs ended; nothing of a run without them.
fn program_lines(summary: &Summary) -> Vec<String> {
    let one = |program: &Program| format!("{}: {}", clean(&program.name), clean(&program.status));
    match summary.programs.iter().map(one).collect::<Vec<_>>() {
        parts if parts.is_empty() => Vec::new(),
        parts => listed("programs", &parts),
    }
}

fn title(summary: &Summary) -> String {
    let variant = summary.variant.as_ref().map_or(String::new(), |v| format!(" · {}", clean(v)));
    let world = summary.world.name();
    format!(
        "{}{variant} · seed {} · {world} · {}",
        clean(&summary.name),
        summary.seed,
        summary.status.name()
    )
}

/// The numbers that the scenario shows.
fn chosen(summary: &Summary) -> Vec<String> {
    if summary.shows.is_empty() {
        return Vec::new();
    }
    let tree = statistics(summary);
    let names: Vec<String> = summary.shows.iter().map(|(name, _)| name.to_string()).collect();
    let number = |column: &Column| {
        let value = shown(&tree, &column.path).text(|number| format::of(column.form, number));
        format!("{} {value}", clean(&column.name))
    };
    let parts: Vec<String> = columns(&names, &[&tree]).iter().map(number).collect();
    [vec![String::new()], listed("shows", &parts)].concat()
}

/// Completion times by class, with the queries'.
fn classes(summary: &Summary) -> Vec<String> {
    const TIMES: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p999", "max"];
    const SLOWDOWNS: [&str; 3] = ["p50", "p95", "p99"];
    let heads = |text: &str| text.split(' ').map(|cell| cell.replace('_', "")).collect::<Vec<_>>();
    let mut rows = vec![
        heads("_ _ _ _ _ _ _ _ _ _ slow slow slow"),
        heads("class flows open mean p50 p90 p95 p99 p99.9 max p50 p95 p99"),
    ];
    let of = |class: Option<&Tree<Estimate>>,
              keys: &[&str],
              form: fn(Option<f64>) -> String|
     -> Vec<String> {
        let text = |key: &&str| class.map_or(NONE.into(), |class| shown(class, &[key]).text(form));
        keys.iter().map(text).collect()
    };
    let numbers = statistics(summary);
    let branch = |object: &str| numbers.branch(&[object]).map(Ordered::iter).into_iter().flatten();
    let slowdowns =
        branch("slowdown").map(|(_, slowdown)| Some(slowdown)).chain(std::iter::repeat(None));
    for (((class, times), slowdown), (_, fct)) in
        branch("fct_us").zip(slowdowns).zip(summary.fct_us.iter())
    {
        let row = vec![short(class), whole(fct.count), whole(fct.unfinished)];
        rows.push([row, of(Some(times), &TIMES, time), of(slowdown, &SLOWDOWNS, ratio)].concat());
    }
    let qct = &summary.qct_us;
    if qct.started > 0 {
        let row = vec![
            "queries".to_string(),
            whole(qct.completed),
            whole(qct.started.saturating_sub(qct.completed)),
        ];
        rows.push(
            [row, of(numbers.at(&["qct_us"]), &TIMES, time), vec![String::new(); SLOWDOWNS.len()]]
                .concat(),
        );
    }
    fitted(rows)
}

fn collective(name: &str, job: &Collectives) -> Vec<String> {
    let rate =
        |rate: Option<f64>| rate.map_or(NONE.into(), |rate| format!("{} GB/s", digits(rate)));
    let mut parts = vec![
        format!("{} {}", clean(&job.operation), clean(&job.algorithm)),
        format!("{} ranks", whole(job.ranks.into())),
        bytes(job.bytes),
        format!("{} rounds", whole(job.rounds)),
        format!("time p50 {} p99 {}", time(job.time_us.p50), time(job.time_us.p99)),
        format!("{} of the closed form", ratio(job.ratio)),
        format!("busbw {}", rate(job.busbw_gbytes)),
        format!("skew {}", time(job.skew_us.mean)),
        format!("exposed {}", time(job.exposed_us.mean)),
    ];
    if job.unfinished > 0 {
        parts.push(format!("{} rounds unfinished", whole(job.unfinished)));
    }
    listed(&short(name), &parts)
}

/// Timeouts, pauses, probes, mechanisms, cost, audit, warnings.
fn other_lines(summary: &Summary) -> Vec<String> {
    let mut lines = listed(
        "other",
        &[
            format!("{} timeouts", whole(summary.timeouts)),
            format!("{} PAUSE frames", whole(summary.pause_frames)),
            format!("{} overlay pauses", whole(summary.overlay_pauses)),
            format!("fairness (Jain) {}", ratio(summary.fairness_jain)),
        ],
    );
    for recovery in summary.goodput_over_time.iter().flat_map(|it| &it.recovery) {
        let level = format!("95 % of {} Gb/s", digits(recovery.before_gbps));
        let text = match recovery.recovery_us {
            Some(0.0) => format!("goodput stays at {level}"),
            Some(us) => format!("goodput is back at {level} after {}", time(Some(us))),
            None => format!("goodput does not come back to {level}"),
        };
        lines.extend(listed("failure", &[format!("at {}", time(Some(recovery.at_us))), text]));
    }
    let rtt = &summary.rtt_us;
    if rtt.count > 0 {
        let parts = [
            ("p50", rtt.p50),
            ("p90", rtt.p90),
            ("p95", rtt.p95),
            ("p99", rtt.p99),
            ("p99.9", rtt.p999),
        ];
        let parts = parts.map(|(name, value)| format!("{name} {}", time(value)));
        lines.extend(listed(
            "probes",
            &[vec![format!("{} round trips", whole(rtt.count))], parts.to_vec()].concat(),
        ));
    }
    lines.extend(summary.collectives.iter().flat_map(|(name, job)| collective(name, job)));
    for (name, counters) in &summary.mechanisms {
        let counters: Vec<_> =
            counters.iter().map(|(key, n)| format!("{} {}", whole(*n), clean(key))).collect();
        lines.extend(listed(&short(name), &counters));
    }
    let run = &summary.run;
    lines.extend(listed(
        "run",
        &[
            format!("{:.2} s set-up", run.setup_s),
            format!("{:.2} s wall", run.wall_s),
            format!("{} simulated", time(Some(run.simulated_s * 1e6))),
            format!("{} packet-hops", whole(run.packet_hops)),
            format!("{} packet-hops/s", count(Some(run.packet_hops_per_s.round()))),
            run.peak_rss_bytes
                .map_or("memory unknown".into(), |n| format!("{} of memory", bytes(n))),
            format!("{} thread{}", run.threads, if run.threads == 1 { "" } else { "s" }),
        ],
    ));
    let audit =
        if summary.audit.conserved { "packets and bytes are conserved" } else { "NOT CONSERVED" };
    lines.push(format!("audit     {audit}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::summary::{Fct, Packets, Qct};
    use crate::model::{Flows, Ordered};
    use crate::render::text::compare::compare_table;
    use crate::render::text::layout::WIDTH;

    fn summary(seed: u64, times: f64) -> Summary {
        let fct = Fct {
            count: 9,
            mean: Some(times),
            p50: Some(times),
            p99: Some(times * 9.9),
            ..Fct::default()
        };
        let qct = Qct {
            completed_fraction: Some(0.9996),
            mean: Some(times),
            p99: Some(times),
            ..Qct::default()
        };
        let packets =
            Packets { dropped: 99_000 + seed, ecn_marked: 123_456 * seed, ..Packets::default() };
        let flows = Flows { started: 100_000, completed: 99_999, ..Flows::default() };
        let fct_us = ["all", "mice", "elephants"].map(|class| (class.to_string(), fct.clone()));
        Summary {
            seed,
            flows,
            fct_us: Ordered::from(Vec::from(fct_us)),
            qct_us: qct,
            packets,
            timeouts: 70_001,
            ..Summary::default()
        }
    }

    fn table(seeds: u64, factor: impl Fn(u64) -> f64) -> String {
        let runs = |factor: &dyn Fn(u64) -> f64| {
            (1..=seeds).map(|s| summary(s, 1_230.0 * factor(s))).collect()
        };
        let one: (String, Vec<Summary>) =
            ("a name that is far too long".into(), runs(&|s| 1.0 + s as f64 / 10.0));
        let other = (
            "another name that is far too long".into(),
            runs(&|s| (1.0 + s as f64 / 10.0) * factor(s)),
        );
        compare_table(&crate::compare(&[one, other]).unwrap(), Warnings::First)
    }

    #[test]
    fn what_is_beyond_the_noise_is_marked_and_explained() {
        let clear = table(8, |_| 1.25);
        assert!(
            clear.contains("+25%*") && clear.contains("\n*         beyond the noise"),
            "{clear}"
        );
        let noise = table(8, |seed| if seed % 2 == 0 { 1.2 } else { 0.8 });
        assert!(
            !noise.contains('*') && noise.contains("no difference is beyond the noise"),
            "{noise}"
        );
        let few = table(3, |_| 1.25);
        assert!(few.contains("+25%~") && few.contains("one time in 4"), "{few}");
        assert!(few.contains("0%=") && few.contains("\n=         the same in every seed"), "{few}");
        let one = table(1, |_| 1.25);
        assert!(!one.contains('~') && one.contains("one seed"), "{one}");
        for text in [clear, noise, few, one, table(6, |_| 98.765), table(6, |_| 12_345.0)] {
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        }
    }

    #[test]
    fn verdict_names_the_changes_beyond_the_noise_the_better_ones_first() {
        let worse = table(8, |_| 1.25);
        let (_, verdict) =
            worse.split_once("\nVerdict: changes from a name that is far too long").unwrap();
        assert!(verdict.contains("worse: ") && verdict.contains("(+25%"), "{verdict}");
        assert!(verdict.contains("with 95 % intervals over 8 seeds"), "{verdict}");
        assert!(!verdict.contains("better: ") && !verdict.contains("timeouts"), "{verdict}");
        // A quarter more of each seed: the ratio of means has no spread.
        let flat = verdict.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, of_mice) = flat.split_once("mice: FCT p99").unwrap();
        let (inside, _) = of_mice.split_once('(').unwrap().1.split_once(')').unwrap();
        let number = |text: &str| text.trim_end_matches('%').parse::<f64>().unwrap();
        let (change, ends) = inside.split_once(", ").unwrap();
        let (low, high) = ends.split_once(" to ").unwrap();
        assert_eq!([low, change, high].map(number), [25.0; 3], "{inside}");
        assert!(high.ends_with('%'), "{inside}");
        assert!(worse.lines().all(|line| line.chars().count() <= WIDTH), "{worse}");
        assert!(table(8, |_| 0.5).contains("better: "), "half the time is better");
        for unclear in [table(8, |seed| if seed % 2 == 0 { 1.2 } else { 0.8 }), table(3, |_| 1.25)]
        {
            assert!(!unclear.contains("Verdict"), "{unclear}");
        }
    }
}
