//! Results that are not what was written: damaged by a disk, or made by somebody else. Reading them
//! ends in rows, in a page or in an error that names the file, in a time that grows with their
//! size.

use crate::common::Dir;
use crate::cost::assert_growth;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use millpond_core::{Bytes, Time};
use millpond_results::*;

/// A run of a few flows in three classes.
fn write_run(dir: &Path) {
    write_seed(dir, 1);
}

/// The identity of the scenario of all runs.
const IDENTITY: &str = "0123456789abcdef";

/// The same with this seed.
fn write_seed(dir: &Path, seed: u64) {
    let header = Header {
        name: "run".into(),
        seed,
        variant: None,
        world: World::Sim,
        classes: vec!["web".into(), "bulk".into()],
        mice: Bytes(100_000),
        elephants: Bytes(1_000_000),
        size_bins: SizeBins::default(),
        jobs: Vec::new(),
    };
    let mut writer = RunWriter::new(dir, header).unwrap();
    for flow in 0..40 {
        let (start, finish) =
            (Time::from_us(u64::from(flow)), Time::from_us(1_000 + u64::from(flow * flow)));
        let record = FlowRecord {
            flow,
            class: flow as u16 % 2,
            src: flow % 5,
            dst: 7,
            bytes: 1 << (flow % 22),
            start: start + Time::from_ns(seed),
            finish: (flow % 9 != 0).then_some(finish),
            sender_first: Some(start),
            sender_last: None,
            ideal: Time::from_us(10),
            counted: true,
            ..FlowRecord::default()
        };
        writer.flow(&record).unwrap();
    }
    for query in 0..5 {
        let (start, finish) =
            (Time::from_us(query.into()), (query > 0).then_some(Time::from_us(700)));
        let record = QueryRecord {
            query,
            class: 0,
            client: 1,
            degree: 2,
            start,
            finish,
            completed: 1,
            counted: true,
        };
        writer.query(&record).unwrap();
    }
    let audit = Audit { conserved: true, ..Audit::default() };
    let totals = Totals {
        horizon: Time::from_ms(10),
        measured: Time::from_ms(10),
        audit,
        ..Totals::default()
    };
    let identity = IDENTITY.to_string();
    writer.finish(totals, Manifest { identity, ..Manifest::new("0", "") }).unwrap();
}

/// All files below a folder, relative to it, with their bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut places) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(dir.join(&place)).unwrap() {
            let entry = entry.unwrap();
            let below = place.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => places.push(below),
                false => drop(found.insert(below, fs::read(entry.path()).unwrap())),
            }
        }
    }
    found
}

/// Makes a folder hold these files and no others.
fn restore(dir: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    let _ = fs::remove_dir_all(dir);
    for (name, bytes) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Damaged copies of a file: flipped bits all over it, and cuts; about `n` of each.
fn damaged(whole: &[u8], n: usize) -> Vec<Vec<u8>> {
    let step = (whole.len() / n).max(1);
    let flip = |at: usize| {
        let mut bent = whole.to_vec();
        bent[at] ^= 1 << (at / step % 8);
        bent
    };
    let flips = (0..whole.len()).step_by(step).chain([whole.len() - 1]).map(flip);
    flips.chain((0..whole.len()).step_by(step).map(|length| whole[..length].to_vec())).collect()
}

/// Two points and two seeds, with every file of every run.
fn plan() -> Sweep {
    let grid = vec![Axis { key: "host.mtu".into(), values: vec!["1500".into(), "9000".into()] }];
    let points = ["1500", "9000"].map(|value| (vec![value.to_string()], Ok(IDENTITY.to_string())));
    Sweep::new("run", "0", grid, vec![1, 2], points.into())
}

/// Opens a sweep, makes the runs that are missing, and ends it. Gives the reasons of what is
/// damaged.
fn sweep_again(dir: &Path) -> (Vec<String>, usize) {
    let plan = plan();
    let folder = SweepFolder::open(dir, &plan, false).unwrap();
    let missing: Vec<&SweepRun> =
        plan.runs().map(|(_, run)| run).filter(|run| !folder.has(run)).collect();
    for run in &missing {
        let place = folder.begin(run).unwrap();
        write_seed(&place, run.seed);
        folder.end(run, &place).unwrap();
    }
    finish_sweep(&folder, &plan, &[], Manifest::new("0", "")).unwrap();
    (folder.damaged().to_vec(), missing.len())
}

/// The files that a sweep makes of its runs.
const POOLED: [&str; 6] = [
    "flows.parquet",
    "queries.parquet",
    "sizes.parquet",
    "sweep.parquet",
    "sweep.json",
    "report.html",
];

#[test]
fn damaged_run_of_a_sweep_is_named_and_run_again() {
    let dir = Dir::new("sweep");
    assert_eq!(sweep_again(&dir.0), (Vec::new(), 4));
    let good = files(&dir.0);
    assert_eq!(sweep_again(&dir.0), (Vec::new(), 0), "nothing is damaged");
    let run = Path::new("runs/host.mtu=1500/seed-2");
    let own: Vec<&PathBuf> = good.keys().filter(|name| name.starts_with(run)).collect();
    assert_eq!(own.len(), 6, "{own:?}");
    let plan = plan();
    let (_, of_plan) = plan.runs().find(|(_, of)| Path::new(&of.folder) == run).unwrap();
    for name in own {
        let bent = damaged(&good[name], 300);
        assert!(bent.len() >= 600, "{name:?}: {}", bent.len());
        for (at, bytes) in bent.iter().enumerate() {
            fs::write(dir.0.join(name), bytes).unwrap();
            assert!(of_plan.finished(&dir.0).is_none(), "{name:?}: damage {at} goes unnoticed");
        }
        for bytes in bent.iter().step_by(150) {
            fs::write(dir.0.join(name), bytes).unwrap();
            let (reasons, runs) = sweep_again(&dir.0);
            assert!(runs == 1 && reasons.len() == 1, "{name:?}: {runs} runs again: {reasons:?}");
            assert!(reasons[0].contains("seed-2") && reasons[0].contains("damaged"), "{reasons:?}");
            for pooled in POOLED {
                assert!(
                    fs::read(dir.0.join(pooled)).unwrap() == good[Path::new(pooled)],
                    "{name:?}: {pooled} differs"
                );
            }
        }
    }
}

/// Files that the sweep makes of its runs are made again; without its plan, runs are known by their
/// manifests.
#[test]
fn sweep_with_a_damaged_plan_or_table_keeps_its_runs() {
    let dir = Dir::new("plan");
    sweep_again(&dir.0);
    let good = files(&dir.0);
    for name in POOLED.iter().chain(&["manifest.json"]) {
        for bytes in damaged(&good[Path::new(name)], 3) {
            fs::write(dir.0.join(name), bytes).unwrap();
            assert_eq!(sweep_again(&dir.0).1, 0, "{name}");
            for pooled in POOLED {
                assert!(
                    fs::read(dir.0.join(pooled)).unwrap() == good[Path::new(pooled)],
                    "{name}: {pooled} differs"
                );
            }
        }
    }
    // A run of something else is not taken for one of the plan's.
    fs::write(dir.0.join("sweep.json"), "{").unwrap();
    let other = dir.0.join("runs/host.mtu=9000/seed-7");
    write_seed(&other, 7);
    let refused = SweepFolder::open(&dir.0, &plan(), false).unwrap_err().to_string();
    assert!(
        refused.contains("sweep.json is damaged, and runs/host.mtu=9000/seed-7 is no run"),
        "{refused}"
    );
    assert!(SweepFolder::open(&dir.0, &plan(), true).is_ok() && !other.exists());
}

#[test]
fn damaged_run_of_an_interrupted_compare_is_named_and_run_again() {
    let dir = Dir::new("compare");
    let (out, owner) = (dir.0.join("c"), Owner::new(Kind::Compare, "run"));
    let open = || Folder::resume(&out, &owner, false, &|_, _| true).unwrap();
    let folder = open();
    for name in ["a", "b"] {
        write_run(&folder.subfolder(&[name]).unwrap());
    }
    drop(folder);
    let partial = dir.0.join("c.partial");
    let good = files(&partial);
    for (name, bytes) in good.iter().filter(|(name, _)| name.starts_with("a")) {
        for bytes in damaged(bytes, 6) {
            fs::write(partial.join(name), bytes).unwrap();
            let folder = open();
            assert_eq!(folder.damaged().len(), 1, "{name:?}");
            assert!(folder.damaged()[0].contains("c.partial/a/"), "{:?}", folder.damaged());
            assert!(!partial.join("a").exists() && partial.join("b").exists());
            drop(folder);
            restore(&partial, &good);
        }
    }
    assert_eq!(open().damaged(), [] as [String; 0]);
}

/// The result of a command on a folder: its output, or the error.
type Reading = fn(&Path) -> std::result::Result<Vec<u8>, Error>;

fn csv(dir: &Path, table: &str) -> std::result::Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    write_csv(dir, table, &mut out, Path::new("stdout")).map(|_| out)
}

fn page(dir: &Path) -> std::result::Result<Vec<u8>, Error> {
    write_report(dir).map(|()| fs::read(dir.join("report.html")).unwrap())
}

/// Damages each file of a folder in turn: each reading gives what it gave before, or names a file.
fn reads_or_refuses(dir: &Path, readings: &[Reading]) {
    let good = files(dir);
    let before: Vec<Vec<u8>> = readings.iter().map(|read| read(dir).unwrap()).collect();
    let mut refused = 0;
    for (name, bytes) in &good {
        for bent in damaged(bytes, 3) {
            restore(dir, &good);
            fs::write(dir.join(name), bent).unwrap();
            for (read, before) in readings.iter().zip(&before) {
                match read(dir) {
                    Ok(now) => assert!(now == *before, "{name:?} is damaged, and nobody noticed"),
                    Err(error) => {
                        refused += 1;
                        let text = error.to_string();
                        assert!(
                            text.contains(".parquet") || text.contains(".json"),
                            "{name:?}: {text}"
                        );
                    }
                }
            }
        }
    }
    restore(dir, &good);
    assert!(refused > 20, "{refused}");
}

#[test]
fn export_and_report_refuse_damaged_files_of_a_run() {
    let dir = Dir::new("read-run");
    write_run(&dir.0);
    let fct: Reading = |dir| {
        let mut out = Vec::new();
        write_fct(dir, &mut out, Path::new("stdout")).map(|_| out)
    };
    let readings: [Reading; 5] = [
        |dir| csv(dir, "flows"),
        |dir| csv(dir, "queries"),
        |dir| csv(dir, default_table(dir)?),
        fct,
        page,
    ];
    reads_or_refuses(&dir.0, &readings);
}

#[test]
fn export_and_report_refuse_damaged_files_of_a_compare_and_of_a_sweep() {
    let dir = Dir::new("read-compare");
    let out = dir.0.join("c");
    let folder = Folder::create(&out, &Owner::new(Kind::Compare, "run"), false).unwrap();
    for name in ["a", "b"] {
        write_run(&folder.subfolder(&[name]).unwrap());
    }
    let variants = ["a", "b"].map(|name| VariantRuns {
        name: name.to_string(),
        seeds: vec![1],
        ..VariantRuns::default()
    });
    finish_compare(&folder, &variants, false, Manifest::new("0", "")).unwrap();
    folder.commit().unwrap();
    reads_or_refuses(&out, &[|dir| csv(dir, default_table(dir)?), |dir| csv(dir, "flows"), page]);
    let out = dir.0.join("s");
    sweep_again(&out);
    reads_or_refuses(&out, &[|dir| csv(dir, default_table(dir)?), |dir| csv(dir, "sizes"), page]);
}

/// A page that is made again does not make its run a damaged one.
#[test]
fn report_keeps_the_checksums_true() {
    let dir = Dir::new("page");
    sweep_again(&dir.0);
    let run = dir.0.join("runs/host.mtu=9000/seed-1");
    fs::write(run.join("report.html"), "").unwrap();
    write_report(&run).unwrap();
    assert!(Manifest::verified(&run).is_ok());
    assert_eq!(sweep_again(&dir.0), (Vec::new(), 0));
}

/// Makes a run's manifest one of before there were checksums.
fn without_checksums(dir: &Path) {
    let manifest = dir.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"checksum\"", "\"unknown\"")).unwrap();
}

/// Any byte of a table may be any other.
#[test]
fn no_flipped_bit_and_no_cut_makes_reading_panic() {
    let dir = Dir::new("flips");
    write_run(&dir.0);
    let path = dir.0.join("flows.parquet");
    // So that the reader meets what is damaged.
    without_checksums(&dir.0);
    let whole = fs::read(&path).unwrap();
    let (mut read, mut refused) = (0, 0);
    let mut check = |bytes: &[u8], page: bool| {
        fs::write(&path, bytes).unwrap();
        let target = Path::new("stdout");
        for done in [write_csv(&dir.0, "flows", &mut Vec::new(), target).map(|_| ())]
            .into_iter()
            .chain(page.then(|| write_report(&dir.0)))
        {
            match done {
                Ok(()) => read += 1,
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().contains("flows.parquet"), "{error}");
                }
            }
        }
    };
    for at in 0..whole.len() {
        for bits in [0xff, 1 << (at % 8)] {
            let mut bent = whole.clone();
            bent[at] ^= bits;
            check(&bent, at % 97 == 0);
        }
    }
    (0..whole.len()).step_by(7).for_each(|length| check(&whole[..length], false));
    assert!(read > 100 && refused > 100, "{read} were read and {refused} refused");
}

/// Eight times as much of it costs some eight times as much; with a search for each it would be
/// sixty-four times.
fn grows_with_its_input(work: impl Fn(usize), n: usize) {
    assert_growth(|| work(n), || work(8 * n), n);
}

#[test]
fn a_page_of_many_names_takes_its_time_once() {
    let dir = Dir::new("names");
    let run = |n: usize| {
        let at = dir.0.join(n.to_string());
        if !at.exists() {
            fs::create_dir(&at).unwrap();
            write_run(&at);
            without_checksums(&at);
            let path = at.join("summary.json");
            let mut summary: serde_json::Value =
                serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let many = |value: &dyn Fn(usize) -> serde_json::Value| -> serde_json::Value {
                (0..n)
                    .map(|i| (format!("name-{i}"), value(i)))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            };
            summary["mechanisms"] = many(&|i| serde_json::json!({ "counter": i }));
            summary["drops_by_place"] = many(&|i| serde_json::json!({ "queue-full": i }));
            let fct = summary["fct_us"]["all"].clone();
            summary["fct_us"] = many(&|_| fct.clone());
            fs::write(&path, summary.to_string()).unwrap();
        }
        write_report(&at).unwrap();
    };
    grows_with_its_input(run, 2_500);
}

/// A folder's name may end in a dot that means nothing.
#[test]
fn a_folder_named_with_a_dot_is_written_again_and_again() {
    let dir = Dir::new("dot");
    let out = dir.0.join("t").join(".");
    for _ in 0..3 {
        let folder = Folder::create(&out, &Owner::new(Kind::Run, "run"), false).unwrap();
        write_run(folder.path());
        assert_eq!(folder.commit().unwrap(), dir.0.join("t"));
    }
    let sweep = Sweep::new("t", "0", Vec::new(), vec![1], vec![(Vec::new(), Ok(String::new()))]);
    for _ in 0..2 {
        let folder = SweepFolder::open(&dir.0.join("s").join("."), &sweep, false).unwrap();
        assert_eq!(folder.path(), dir.0.join("s"));
    }
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 2);
}

/// Seeds have 64 bits, and keep them.
#[test]
fn seeds_beyond_the_signed_numbers_stay_apart() {
    let dir = Dir::new("seeds");
    let seeds = vec![0, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX];
    let sweep =
        Sweep::new("t", "0", Vec::new(), seeds.clone(), vec![(Vec::new(), Ok(String::new()))]);
    let folder = SweepFolder::open(&dir.0, &sweep, false).unwrap();
    let failures: Vec<(u32, String)> =
        sweep.runs().map(|(_, run)| (run.run, "for the test".into())).collect();
    finish_sweep(&folder, &sweep, &failures, Manifest::new("0", "")).unwrap();
    let mut csv = Vec::new();
    write_csv(&dir.0, "sweep", &mut csv, Path::new("stdout")).unwrap();
    let text = String::from_utf8(csv).unwrap();
    let read: Vec<u64> =
        text.lines().skip(1).map(|row| row.split(',').nth(2).unwrap().parse().unwrap()).collect();
    assert_eq!(read, seeds);
}
