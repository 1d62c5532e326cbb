//! Jobs in a results folder: their tables, their numbers, and what a run without them lacks.

use crate::common::Dir;
use millpond_core::{Bytes, Time};
use millpond_results::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::path::Path;

fn header() -> Header {
    let job = JobHeader {
        class: 1,
        operation: "all-reduce".into(),
        algorithm: "ring".into(),
        ranks: 4,
        bytes: 4_000_000,
        bus_factor: 1.5,
    };
    Header {
        name: "jobs".into(),
        classes: vec!["other".into(), "reduce".into()],
        mice: Bytes(100_000),
        elephants: Bytes(1_000_000),
        jobs: vec![job],
        ..Header::default()
    }
}

/// A round of 400 µs and one of 600, both after 100 µs of computation, and one that has not ended.
fn rounds() -> [CollectiveRecord; 3] {
    let us = Time::from_us;
    let round = |round, end: Option<u64>| CollectiveRecord {
        class: 1,
        round,
        began: us(900),
        begin: us(1_000),
        first_end: us(1_390),
        end: end.map(us),
        computed: us(100),
        closed_form: us(400),
        algbw: end.map(|end| 4e12 / (end - 1_000) as f64),
        busbw: end.map(|end| 6e12 / (end - 1_000) as f64),
        counted: true,
    };
    [round(0, Some(1_400)), round(1, Some(1_600)), round(2, None)]
}

fn totals() -> Totals {
    let horizon = Time::from_ms(10);
    Totals {
        horizon,
        measured: horizon,
        audit: Audit::of(
            Amount::default(),
            Amount::default(),
            Amount::default(),
            Amount::default(),
        ),
        ..Totals::default()
    }
}

#[test]
fn rounds_become_rows_and_statistics() {
    let dir = Dir::new("rows");
    let mut writer = RunWriter::new(&dir.0, header()).unwrap();
    let rank = RankRecord {
        class: 1,
        round: 1,
        rank: 3,
        host: 7,
        began: Time::from_us(900),
        ready: Time::from_us(1_000),
        ended: Time::from_us(1_600),
        computed: Time::from_us(100),
        computations: vec![(Time::from_us(1_100), Time::from_us(1_150))],
    };
    writer.rank(&rank).unwrap();
    rounds().iter().for_each(|round| writer.collective(round).unwrap());
    assert!(matches!(
        writer.collective(&CollectiveRecord { class: 2, ..rounds()[0] }),
        Err(Error::UnknownClass { class: 2, .. })
    ));
    let summary = writer.finish(totals(), Manifest::default()).unwrap();
    let job = summary.collectives.get("reduce").unwrap();
    assert_eq!((job.rounds, job.unfinished, job.ranks), (2, 1, 4));
    assert_eq!((job.time_us.mean, job.time_us.max), (Some(500.0), Some(600.0)));
    assert_eq!((job.iteration_us.p50, job.exposed_us.p50), (Some(600.0), Some(500.0)));
    assert_eq!(job.skew_us.mean, Some((10.0 + 210.0) / 2.0));
    // Of the mean time: 4 MB in 500 µs.
    assert_eq!((job.algbw_gbytes, job.busbw_gbytes), (Some(8.0), Some(12.0)));
    assert_eq!(job.ratio, Some((1.0 + 1.5) / 2.0));
    let table = run_table(&summary, Warnings::First);
    assert!(table.contains("reduce    all-reduce ring, 4 ranks"), "{table}");
    assert!(table.contains("busbw 12.0 GB/s") && table.contains("1 rounds unfinished"), "{table}");
    let read = |name: &str| -> Vec<String> {
        let file = File::open(dir.0.join(name)).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
    };
    let rows = read("collectives.parquet");
    assert_eq!(rows.len(), 3);
    assert!(rows[0].contains("time_us: 400") && rows[0].contains("busbw_gbytes: 15"), "{rows:?}");
    assert!(rows[2].contains("end_us: null") && rows[2].contains("ratio: null"), "{rows:?}");
    let rows = read("ranks.parquet");
    assert!(rows.len() == 1 && rows[0].contains("host: 7"), "{rows:?}");
    for (table, rows, column) in
        [("collectives", 3, "busbw_gbytes"), ("ranks", 1, "host"), ("computations", 1, "begin_us")]
    {
        let mut text = Vec::new();
        let count = write_csv(&dir.0, table, &mut text, Path::new("out.csv")).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (head, _) = text.split_once('\n').unwrap();
        assert_eq!((count, text.lines().count()), (rows, rows as usize + 1), "{text}");
        assert!(head.split(',').any(|name| name == column), "{text}");
    }
}

#[test]
fn a_run_without_jobs_has_neither_file_nor_field() {
    let dir = Dir::new("none");
    let writer = RunWriter::new(&dir.0, Header { jobs: Vec::new(), ..header() }).unwrap();
    writer.finish(totals(), Manifest::default()).unwrap();
    let text = std::fs::read_to_string(dir.0.join("summary.json")).unwrap();
    assert!(!text.contains("collectives"), "{text}");
    assert!(!dir.0.join("collectives.parquet").exists() && !dir.0.join("ranks.parquet").exists());
}
