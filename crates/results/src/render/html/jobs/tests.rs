//! Pages of jobs with one variant and with many.

use super::super::{compare_page, run_page};
use crate::model::{CollectiveRecord, FlowRecord, Manifest, RankRecord, VariantResult, run_folder};
use crate::statistics::compare::compare;
use crate::write::{Header, JobHeader, RunWriter};
use crate::{Audit, Totals};
use millpond_core::Time;
use std::path::Path;

const RANKS: u32 = 8;

/// A run of a ring with a buffer of so many bytes, whose ranks compute 10 µs before each of two
/// rounds and 5 µs within, and send for 30 µs. `factor` makes its time longer.
fn run(dir: &Path, algorithm: &str, bytes: u64, factor: u64) -> crate::Summary {
    let us = Time::from_us;
    let job = JobHeader {
        class: 0,
        operation: "all-reduce".into(),
        algorithm: algorithm.into(),
        ranks: RANKS,
        bytes,
        bus_factor: 1.75,
    };
    let header = Header {
        name: "jobs".into(),
        classes: vec!["a<b".into()],
        jobs: vec![job],
        ..Header::default()
    };
    let mut writer = RunWriter::new(dir, header).unwrap();
    for round in 0..2 {
        let began = us(100) * u64::from(round);
        for rank in 0..RANKS {
            let flow = FlowRecord {
                flow: round * RANKS + rank,
                src: 20 + rank,
                dst: 20 + (rank + 1) % RANKS,
                bytes: 1_000,
                start: began + us(10),
                finish: Some(began + us(40)),
                ideal: us(30),
                counted: true,
                ..FlowRecord::default()
            };
            writer.flow(&flow).unwrap();
            let part = RankRecord {
                round,
                rank,
                host: 20 + rank,
                began,
                ready: began + us(10),
                ended: began + us(50),
                computed: us(15),
                computations: vec![(began + us(45), began + us(50))],
                ..RankRecord::default()
            };
            writer.rank(&part).unwrap();
        }
        let ended = began + us(10) + us(40) * factor;
        let time = (ended - began - us(10)).as_s_f64();
        let record = CollectiveRecord {
            round,
            began,
            begin: began + us(10),
            first_end: ended,
            end: Some(ended),
            computed: us(15),
            closed_form: us(40),
            algbw: Some(bytes as f64 / time),
            busbw: Some(1.75 * bytes as f64 / time),
            counted: true,
            ..CollectiveRecord::default()
        };
        writer.collective(&record).unwrap();
    }
    let none = crate::Amount::default;
    let totals = Totals {
        horizon: us(200),
        measured: us(200),
        audit: Audit::of(none(), none(), none(), none()),
        ..Totals::default()
    };
    writer.finish(totals, Manifest::default()).unwrap()
}

/// The page of so many variants: two algorithms in turn, each pair with four times the buffer.
fn page(count: u64) -> String {
    let dir = crate::test_dir("jobs");
    let mut all = Vec::new();
    for at in 0..count {
        let algorithm = if at % 2 == 0 { "ring" } else { "halving-doubling" };
        let name = format!("{algorithm} {at}");
        let folder = run_folder(&dir, &name, 0, false);
        std::fs::create_dir_all(&folder).unwrap();
        all.push((name, vec![run(&folder, algorithm, 1_000 << (2 * (at / 2)), 1 + at / 2)]));
    }
    let results: Vec<VariantResult> = compare(&all).unwrap();
    compare_page(&dir, &results, &Manifest::default()).unwrap()
}

#[test]
fn pages_of_1_2_7_and_28_variants_draw_the_ranks_of_the_first() {
    for (count, drawn) in [(1, 1), (2, 2), (7, 4), (28, 4)] {
        let page = page(count);
        assert_eq!(page.matches("<svg class=\"gantt\"").count(), drawn, "{count}");
        let left = count as usize - drawn;
        let further = format!("{left} further drawings");
        assert_eq!(page.contains(&further), left > 0, "{count}");
        // Several sizes of two algorithms are two lines, on either scale; one size has no chart.
        let lines = page.matches("data-name=\"a&lt;b: all-reduce").count();
        assert_eq!(lines, if count > 2 { 4 } else { 0 }, "{count}");
        assert!(page.contains("a&lt;b: ranks over time") && !page.contains("a<b"), "{count}");
        assert_eq!(page, self::page(count), "the bytes depend on the results alone");
    }
}

#[test]
fn bars_are_the_computations_and_messages_of_a_rank() {
    let dir = crate::test_dir("bars");
    let summary = run(&dir, "ring", 1_000, 1);
    let page = run_page(&dir, &summary, &Manifest::default()).unwrap();
    let csv = page.split("data-csv=\"").nth(1).unwrap().split('"').next().unwrap();
    // From 0 to 150 µs in stretches of 0.625 µs.
    let of_rank: Vec<&str> = csv.split("&#10;").filter(|line| line.starts_with("3,")).collect();
    let [before, sent, within, again] = ["0,10", "10,40", "45,50", "100,110"];
    for (does, time) in [("computes", before), ("computes", within), ("computes", again)] {
        assert!(of_rank.contains(&format!("3,{does},{time}").as_str()), "{of_rank:?}");
    }
    assert!(of_rank.contains(&format!("3,sends,{sent}").as_str()), "{of_rank:?}");
    assert_eq!(of_rank.len(), 6, "{of_rank:?}");
    std::fs::remove_file(dir.join("ranks.parquet")).unwrap();
    let page = run_page(&dir, &summary, &Manifest::default()).unwrap();
    assert!(page.contains("Ranks and collectives") && !page.contains("<svg class=\"gantt\""));
}
