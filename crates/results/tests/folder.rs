//! A results folder from end to end: written, read back, replaced, and left by failures and kills.

use crate::common::{Dir, names};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use millpond_core::{Bytes, Time};
use millpond_results::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

const EVIL: &str = "<script>alert('x')</script> & \"quotes\" \u{1b}[31m";

fn header() -> Header {
    Header {
        name: "microburst".into(),
        seed: 7,
        variant: Some(EVIL.into()),
        world: World::Sim,
        classes: vec!["background".into(), "incast".into(), "from the CSV <b>".into()],
        mice: Bytes(100_000),
        elephants: Bytes(1_000_000),
        size_bins: SizeBins::default(),
        jobs: Vec::new(),
    }
}

/// A repeatable record: some unfinished, some of the warm-up, some without an ideal.
fn record(n: u32, seed: u64) -> FlowRecord {
    let mut x = (u64::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed;
    x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = x ^ (x >> 32);
    let start = Time::from_ns(u64::from(n) * 100);
    let finish =
        (!x.is_multiple_of(50)).then(|| start + Time::from_ps(10_000_000 + x % 5_000_000_000));
    FlowRecord {
        flow: n,
        class: (x >> 8) as u16 % 3,
        src: (x >> 16) as u32 % 320,
        dst: (x >> 24) as u32 % 320,
        bytes: 1 + (x >> 20) % 3_000_000,
        start,
        finish,
        sender_first: Some(start + Time::from_ns(5)),
        sender_last: finish.map(|t| t + Time::from_ns(7)),
        ideal: if x.is_multiple_of(7) { Time::ZERO } else { Time::from_us(10) },
        retransmitted: (x % 3) as u32,
        timeouts: (x % 2) as u32,
        out_of_order: Some(u32::MAX - n),
        path_changes: Some(1),
        is_call: false,
        query: x.is_multiple_of(4).then_some(n / 40),
        srtt: Time::from_us(u64::from(n % 200)),
        rto: Time::from_ms(4),
        counted: n >= 100,
    }
}

fn totals() -> Totals {
    let amount = |packets| Amount { packets, bytes: packets * 1500 };
    Totals {
        horizon: Time::from_ms(10),
        measured: Time::from_ms(8),
        bytes_delivered: 5_000_000,
        sent: 1000,
        delivered: 960,
        dropped_by: BTreeMap::from([("queue-full", 30), ("ttl", 5)]),
        ecn_marked: 77,
        fairness_jain: jain(&[1.0, 2.0]),
        mechanisms: BTreeMap::from([(
            "dibs".to_string(),
            BTreeMap::from([("deflections".to_string(), 3)]),
        )]),
        warnings: vec![EVIL.into()],
        audit: Audit::of(amount(1000), amount(960), amount(35), amount(5)),
        run: RunInfo { wall_s: 1.25, simulated_s: 0.01, threads: 2, ..RunInfo::default() },
        ..Totals::default()
    }
}

fn manifest() -> Manifest {
    Manifest::new("0.1.0 (test)", "name = \"microburst\" # <i>\n")
}

/// Of what [`write`] writes.
fn owner() -> Owner {
    Owner { kind: Kind::Run, name: header().name, variant: header().variant }
}

fn write_run(dir: &Path, header: Header, flows: u32, totals: Totals) -> Result<Summary> {
    let seed = header.seed;
    let mut writer = RunWriter::new(dir, header)?;
    for n in 0..flows {
        writer.flow(&record(n, seed))?;
    }
    for n in 0..flows / 40 {
        let start = Time::from_us(u64::from(n));
        let finish = (n % 10 != 0).then(|| start + Time::from_us(100 + u64::from(n)));
        let counted = n > 1;
        writer.query(&QueryRecord {
            query: n,
            class: 1,
            client: n,
            degree: 40,
            start,
            finish,
            completed: 39,
            counted,
        })?;
    }
    writer.rtt(Time::from_us(9))?;
    writer.finish(totals, manifest())
}

fn write(out: &Path, force: bool) -> Result<(PathBuf, Summary)> {
    let folder = Folder::create(out, &owner(), force)?;
    folder.progress(&Progress {
        fraction: Some(0.5),
        status: "running".into(),
        ..Progress::default()
    })?;
    let summary = write_run(folder.path(), header(), 5_000, totals())?;
    Ok((folder.commit()?, summary))
}

fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let rank = p * (sorted.len().checked_sub(1)?) as f64;
    let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    Some(low + (high - low) * rank.fract())
}

#[track_caller]
fn close(a: Option<f64>, b: Option<f64>) {
    match (a, b) {
        (Some(a), Some(b)) => assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}"),
        _ => assert_eq!(a, b),
    }
}

#[test]
fn five_thousand_flows_come_back() {
    let dir = Dir::new("round-trip");
    let (out, summary) = write(&dir.at("x"), false).unwrap();
    let files = [
        "flows.parquet",
        "manifest.json",
        "queries.parquet",
        "report.html",
        "sizes.parquet",
        "summary.json",
    ];
    assert_eq!(names(&out), files);
    assert_eq!(Summary::read(&out).unwrap(), summary);
    let reader = SerializedFileReader::new(File::open(out.join("flows.parquet")).unwrap()).unwrap();
    let columns = "flow class src dst bytes start_us fct_us fct_sender_us slowdown retransmitted \
                   timeouts out_of_order path_changes query";
    let schema = reader.metadata().file_metadata().schema_descr();
    let found: Vec<_> = schema.columns().iter().map(|c| c.name()).collect();
    assert_eq!(found, columns.split_whitespace().collect::<Vec<_>>());
    let classes = header().classes;
    let optional = |value: Option<f64>| value.map_or(Field::Null, Field::Double);
    let mut rows = reader.get_row_iter(None).unwrap();
    for flow in (0..5_000).map(|n| record(n, 7)).filter(|flow| flow.counted) {
        let row: Vec<Field> =
            rows.next().unwrap().unwrap().into_columns().into_iter().map(|(_, f)| f).collect();
        let expected = [
            Field::UInt(flow.flow),
            Field::Str(classes[flow.class as usize].clone()),
            Field::UInt(flow.src),
            Field::UInt(flow.dst),
            Field::Long(flow.bytes as i64),
            Field::Double(flow.start.as_us_f64()),
            optional(flow.fct().map(Time::as_us_f64)),
            optional(flow.fct_sender().map(Time::as_us_f64)),
            optional(flow.slowdown()),
            Field::UInt(flow.retransmitted),
            Field::UInt(flow.timeouts),
            flow.out_of_order.map_or(Field::Null, Field::UInt),
            flow.path_changes.map_or(Field::Null, Field::UInt),
            flow.query.map_or(Field::Null, Field::UInt),
        ];
        assert_eq!(row, expected);
    }
    assert!(rows.next().is_none());
    let queries =
        SerializedFileReader::new(File::open(out.join("queries.parquet")).unwrap()).unwrap();
    assert_eq!(queries.metadata().file_metadata().num_rows(), 123);
}

#[test]
fn kept_flows_give_their_times_to_the_last_acknowledgement() {
    let dir = Dir::new("acknowledged");
    let keeping = |keep, out: &Path| {
        let mut writer = RunWriter::keeping(keep, out, header()).unwrap();
        (0..500).for_each(|n| writer.flow(&record(n, 1)).unwrap());
        writer.finish(totals(), manifest()).unwrap();
    };
    let out = dir.at("flows");
    keeping(Keep::Flows, &out);
    assert_eq!(names(&out), ["flows.parquet", "manifest.json", "queries.parquet", "summary.json"]);
    let times = acknowledged_times(&out).unwrap().unwrap();
    let of = |class: Option<u16>| {
        let flows = (0..500)
            .map(|n| record(n, 1))
            .filter(|flow| flow.counted && class.is_none_or(|c| c == flow.class));
        let mut all: Vec<f64> =
            flows.filter_map(|flow| flow.fct_sender()).map(Time::as_us_f64).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    assert_eq!(times.get("all"), Some(&of(None)));
    for (class, name) in (0..).zip(&header().classes) {
        assert_eq!(times.get(name), Some(&of(Some(class))), "{name}");
    }
    let out = dir.at("summary");
    keeping(Keep::Summary, &out);
    assert_eq!(acknowledged_times(&out).unwrap(), None);
}

/// The statistics of a class are those of its sorted values.
fn is_of_sorted(of_class: &[&FlowRecord], fct: &Fct, slowdown: &Slowdown) {
    let mut times: Vec<f64> = of_class.iter().filter_map(|f| Some(f.fct()?.as_us_f64())).collect();
    times.sort_by(f64::total_cmp);
    assert_eq!(
        (fct.count, fct.unfinished),
        (times.len() as u64, (of_class.len() - times.len()) as u64)
    );
    let sum: f64 = times.iter().sum();
    let open: f64 = of_class
        .iter()
        .filter(|f| f.finish.is_none())
        .map(|f| 10_000.0 - f.start.as_us_f64())
        .sum();
    close(fct.mean, Some(sum / times.len() as f64));
    close(fct.mean_restricted, Some((sum + open) / of_class.len() as f64));
    close(fct.max, times.last().copied());
    for (got, p) in
        [(fct.p50, 0.5), (fct.p90, 0.9), (fct.p95, 0.95), (fct.p99, 0.99), (fct.p999, 0.999)]
    {
        close(got, quantile(&times, p));
    }
    close(fct.completed_fraction, Some(times.len() as f64 / of_class.len() as f64));
    let age = |f: &&&FlowRecord| 10_000.0 - f.start.as_us_f64();
    let ages: Vec<f64> = of_class.iter().filter(|f| f.finish.is_none()).map(|f| age(&f)).collect();
    assert!(!ages.is_empty());
    let with = |open: &dyn Fn(f64) -> f64| {
        let mut all: Vec<f64> =
            times.iter().copied().chain(ages.iter().map(|&age| open(age))).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (low, high) = (with(&|age| age), with(&|_| f64::INFINITY));
    for (got, p) in [(fct.at_least.p50, 0.5), (fct.at_least.p95, 0.95), (fct.at_least.max, 1.0)] {
        close(got, quantile(&low, p));
    }
    for (got, p) in [(fct.at_most.p50, 0.5), (fct.at_most.p95, 0.95), (fct.at_most.max, 1.0)] {
        close(got, quantile(&high, p).filter(|bound| bound.is_finite()));
    }
    assert!(
        slowdown.at_least.p50 >= Some(1.0) && slowdown.at_most.max.is_none(),
        "open ones bound slowdowns"
    );
    assert!(fct.kaplan_meier.p50 >= fct.p50 && fct.kaplan_meier.p50 <= fct.at_most.p50);
    let mut slowdowns: Vec<f64> = of_class.iter().filter_map(|f| f.slowdown()).collect();
    slowdowns.sort_by(f64::total_cmp);
    for (got, p) in
        [(slowdown.p50, 0.5), (slowdown.p95, 0.95), (slowdown.p99, 0.99), (slowdown.p999, 0.999)]
    {
        close(got, quantile(&slowdowns, p));
    }
}

#[test]
fn the_summary_is_that_of_sorting_everything() {
    let dir = Dir::new("statistics");
    let (out, summary) = write(&dir.at("x"), false).unwrap();
    let flows: Vec<FlowRecord> =
        (0..5_000).map(|n| record(n, 7)).filter(|flow| flow.counted).collect();
    let classes = ["all", "mice", "elephants", "background", "incast", "from the CSV <b>"];
    assert_eq!(summary.fct_us.iter().map(|(name, _)| name).collect::<Vec<_>>(), classes);
    for (at, class) in classes.into_iter().enumerate() {
        let of_class: Vec<_> = flows
            .iter()
            .filter(|f| match at {
                0 => true,
                1 => f.bytes < 100_000,
                2 => f.bytes > 1_000_000,
                _ => usize::from(f.class) == at - 3,
            })
            .collect();
        is_of_sorted(
            &of_class,
            summary.fct_us.get(class).unwrap(),
            summary.slowdown.get(class).unwrap(),
        );
    }
    assert_eq!(summary.flows.started, 4_900);
    assert_eq!(summary.flows.goodput_gbps, Some(5.0));
    assert_eq!((summary.qct_us.started, summary.qct_us.completed), (123, 111));
    assert_eq!(summary.packets.dropped, 35);
    assert_eq!(summary.packets.dropped_by.iter().count(), DROP_REASONS.len());
    assert_eq!(
        (summary.rtt_us.count, summary.rtt_us.p95, summary.rtt_us.p99),
        (1, Some(9.0), Some(9.0))
    );
    assert!(
        summary.warnings[1].contains("of queries (QCT) completed by the end"),
        "{:?}",
        summary.warnings
    );
    assert_eq!(summary.warnings.len(), 3);
    shows_itself(&out, &summary);
}

/// The page needs nothing from elsewhere and can be made again; the table fits a terminal.
fn shows_itself(out: &Path, summary: &Summary) {
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert_eq!(report.matches("<script").count(), 1, "the page's own");
    assert!(!report.contains("://") && !report.contains('\u{1b}') && !report.contains("<i>"));
    assert!(
        report.contains("name=\"viewport\"")
            && report.contains("prefers-color-scheme")
            && report.contains("<svg")
    );
    let table = run_table(summary, Warnings::First);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(!table.contains('\u{1b}'));
    fs::remove_file(out.join("report.html")).unwrap();
    write_report(out).unwrap();
    assert_eq!(fs::read_to_string(out.join("report.html")).unwrap(), report);
}

#[test]
fn nothing_has_null_statistics() {
    let dir = Dir::new("nothing");
    let summary =
        write_run(&dir.0, header(), 0, Totals { audit: totals().audit, ..Totals::default() })
            .unwrap();
    assert_eq!(summary.fct_us.get("all"), Some(&Fct::default()));
    assert_eq!(summary.slowdown.get("mice"), Some(&Slowdown::default()));
    assert_eq!((summary.qct_us, summary.flows.goodput_gbps), (Qct::default(), None));
    let broken = write_run(&dir.0, header(), 0, Totals::default()).unwrap();
    assert_eq!(broken.status, Status::Failed, "nothing is conserved unless the world says so");
}

#[test]
fn equal_inputs_give_equal_bytes() {
    let dir = Dir::new("identity");
    let (a, _) = write(&dir.at("a"), false).unwrap();
    let mut other = totals();
    other.run = RunInfo { wall_s: 99.0, threads: 8, ..RunInfo::default() };
    let folder = Folder::create(&dir.at("b"), &owner(), false).unwrap();
    write_run(folder.path(), header(), 5_000, other).unwrap();
    let b = folder.commit().unwrap();
    for name in ["flows.parquet", "queries.parquet", "sizes.parquet", "report.html"] {
        assert_eq!(fs::read(a.join(name)).unwrap(), fs::read(b.join(name)).unwrap(), "{name}");
    }
    let without_run =
        |dir: &Path| Summary { run: RunInfo::default(), ..Summary::read(dir).unwrap() }.to_json();
    assert_eq!(without_run(&a), without_run(&b));
}

#[test]
fn only_results_are_replaced_without_force() {
    let dir = Dir::new("replace");
    let out = dir.at("x");
    write(&out, false).unwrap();
    write(&out, false).unwrap();
    fs::write(out.join("notes.txt"), "").unwrap();
    let error = write(&out, false).unwrap_err();
    assert!(
        matches!(error, Error::ForeignFiles(..)) && error.to_string().contains("(notes.txt)"),
        "{error}"
    );
    assert!(out.join("notes.txt").exists());
    write(&out, true).unwrap();
    assert!(!out.join("notes.txt").exists());
    let other = Folder::create(&out, &Owner::new(Kind::Sweep, "microburst"), false).unwrap_err();
    assert!(matches!(other, Error::OtherResult { .. }), "{other}");
    let mine = dir.at("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("manifest.json"), r#"{"name":"a web app"}"#).unwrap();
    let error = write(&mine, false).unwrap_err();
    assert!(matches!(error, Error::NotAResult(..)) && error.to_string().contains("--force"));
    assert!(mine.join("manifest.json").exists());
    write(&mine, true).unwrap();
    assert_eq!(dir.names(), ["mine", "x"]);
}

#[test]
fn bad_records_are_errors_and_leave_nothing() {
    let dir = Dir::new("bad");
    let mut writer = RunWriter::new(&dir.0, header()).unwrap();
    assert!(matches!(
        writer.flow(&FlowRecord { class: 3, ..record(1, 1) }),
        Err(Error::UnknownClass { .. })
    ));
    let backwards =
        FlowRecord { start: Time::from_us(2), finish: Some(Time::from_us(1)), ..record(1, 1) };
    assert!(matches!(writer.flow(&backwards), Err(Error::EndsEarly(1))));
    assert!(matches!(
        writer.query(&QueryRecord { class: 9, ..QueryRecord::default() }),
        Err(Error::UnknownClass { .. })
    ));
    drop(writer);
    assert!(dir.names().is_empty());
    for bad in [vec!["a".to_string(), "a".into()], vec!["mice".to_string()]] {
        let bad = Header { classes: bad, ..header() };
        assert!(matches!(RunWriter::new(&dir.0, bad), Err(Error::ClassName(..))));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file_and_leaves_nothing() {
    for file in [
        "flows.parquet",
        "queries.parquet",
        "sizes.parquet",
        "summary.json",
        ".report.html",
        ".manifest.json",
        ".progress.json",
    ] {
        let dir = Dir::new("full-disk");
        let out = dir.at("x");
        write(&out, false).unwrap();
        let before = fs::read(out.join("flows.parquet")).unwrap();
        let folder = Folder::create(&out, &owner(), false).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join(file)).unwrap();
        let result = write_run(folder.path(), header(), 5_000, totals())
            .and_then(|_| folder.progress(&Progress::default()))
            .map(|()| folder);
        let error = result.map(drop).unwrap_err();
        assert!(
            matches!(error, Error::Io { .. }) && error.to_string().contains(file),
            "{file}: {error}"
        );
        assert_eq!(dir.names(), ["x"], "{file}");
        assert_eq!(fs::read(out.join("flows.parquet")).unwrap(), before);
    }
}

#[test]
fn a_compare_holds_all_variants() {
    let dir = Dir::new("compare");
    let out = dir.at("x");
    let runs =
        |name: &str| VariantRuns { name: name.into(), seeds: vec![1, 2], ..VariantRuns::default() };
    let variants = ["ecmp", EVIL].map(runs);
    let folder = Folder::create(&out, &Owner::new(Kind::Compare, "microburst"), false).unwrap();
    for (at, VariantRuns { name, seeds, .. }) in variants.iter().enumerate() {
        for &seed in seeds {
            let place = run_folder(folder.path(), name, seed, true);
            fs::create_dir_all(&place).unwrap();
            let header = Header { seed, variant: Some(name.clone()), ..header() };
            write_run(&place, header, 1_000 * (1 + at as u32), totals()).unwrap();
        }
    }
    let manifest = Manifest { name: "microburst".into(), ..manifest() };
    let results = finish_compare(&folder, &variants, true, manifest).unwrap();
    let out = folder.commit().unwrap();
    assert_eq!(read_compare(&out).unwrap(), results);
    assert!(out.join("ecmp/seed-2/flows.parquet").exists());
    let mean = results[0].statistics.leaf(&["fct_us", "all", "count"]).unwrap();
    let counts: Vec<f64> = [1, 2]
        .map(|seed| {
            Summary::read(&run_folder(&out, "ecmp", seed, true))
                .unwrap()
                .fct_us
                .get("all")
                .unwrap()
                .count as f64
        })
        .to_vec();
    assert_eq!((mean.mean, mean.n), (Some((counts[0] + counts[1]) / 2.0), 2));
    assert!(results[1].differences.as_ref().unwrap().leaf(&["fct_us", "mice", "p99"]).is_some());
    let table = compare_table(&results, Warnings::First);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert_eq!(report.matches("<script").count(), 1, "the page's own");
    assert!(!report.contains("://"));
    write_report(&out).unwrap();
    assert_eq!(fs::read_to_string(out.join("report.html")).unwrap(), report);
    assert_eq!(Manifest::read(&out).unwrap().kind, Kind::Compare);
}

#[test]
fn racing_runs_exclude_each_other() {
    let dir = Dir::new("race");
    let out = dir.at("x");
    let race = || {
        let mut won = 0;
        for _ in 0..50 {
            match Folder::create(&out, &Owner::default(), false) {
                Ok(folder) => {
                    let mark = folder.path().join("mark");
                    assert!(!mark.exists());
                    fs::write(&mark, "").unwrap();
                    manifest().write(folder.path()).unwrap();
                    folder.commit().unwrap();
                    won += 1;
                }
                Err(error) => assert!(matches!(error, Error::Busy { .. }), "{error}"),
            }
        }
        won
    };
    let won: i32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(won > 0);
    assert_eq!(dir.names(), ["x"]);
    assert_eq!(names(&out), ["manifest.json", "mark"]);
}

const CHILD: &str = "MILLPOND_TEST_CHILD_WRITES_TO";

/// Not a test of its own: the process that the next one kills.
#[test]
#[ignore = "the child of a_killed_run_leaves_only_a_partial_folder"]
fn child_that_never_ends() {
    let Some(out) = std::env::var_os(CHILD) else { return };
    let folder = Folder::create(Path::new(&out), &owner(), false).unwrap();
    let mut writer = RunWriter::new(folder.path(), header()).unwrap();
    for n in 0.. {
        writer.flow(&record(n, 1)).unwrap();
        if n % 1_000 == 0 {
            folder
                .progress(&Progress { flows_completed: u64::from(n), ..Progress::default() })
                .unwrap();
        }
    }
}

#[test]
fn a_killed_run_leaves_only_a_partial_folder() {
    let dir = Dir::new("killed");
    let (out, progress) = (dir.at("x"), dir.at("x.partial/progress.json"));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "folder::child_that_never_ends", "--ignored"])
        .env(CHILD, &out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let far = |text: Vec<u8>| {
        serde_json::from_slice::<Progress>(&text).is_ok_and(|p| p.flows_completed > 300_000)
    };
    while !fs::read(&progress).is_ok_and(far) {
        assert!(Instant::now() < deadline, "the child makes no progress");
        std::thread::sleep(Duration::from_millis(5));
    }
    let busy = Folder::create(&out, &owner(), true).map(drop);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(busy, Err(Error::Busy { holder: Some(pid), .. }) if pid == child.id()));
    assert_eq!(dir.names(), ["x.partial"]);
    assert!(!is_result(&dir.at("x.partial")));
    assert!(names(&dir.at("x.partial")).iter().all(|name| !name.contains("spill")));
    write(&out, false).unwrap();
    assert_eq!(dir.names(), ["x"]);
}

/// `cargo test -p millpond-results -- --ignored ten_million`: takes ten seconds.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "long: ten million flows"]
fn ten_million_flows_stay_flat() {
    let dir = Dir::new("ten-million");
    let mut peaks = Vec::new();
    for flows in [500_000, 10_000_000] {
        let began = Instant::now();
        write_run(&dir.0, header(), flows, totals()).unwrap();
        peaks.push(peak_rss_bytes().unwrap());
        println!(
            "{flows} flows: {:.1?}, peak {} MB",
            began.elapsed(),
            peaks.last().unwrap() / 1_000_000
        );
    }
    assert!(peaks[1] < peaks[0] + 60_000_000, "{peaks:?}");
}
