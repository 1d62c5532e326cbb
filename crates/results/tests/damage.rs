//! Results that are not what was written: damaged by a disk, or made by somebody else. Reading them
//! ends in rows, in a page or in an error that names the file, in a time that grows with their
//! size.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use millpond_core::{Bytes, Time};
use millpond_results::*;

/// A fresh folder for one test, removed with it.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("millpond-damage-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A run of a few flows in three classes.
fn write_run(dir: &Path) {
    let header = Header {
        name: "run".into(),
        seed: 1,
        variant: None,
        world: World::Sim,
        classes: vec!["web".into(), "bulk".into()],
        mice: Bytes(100_000),
        elephants: Bytes(1_000_000),
        size_bins: SizeBins::default(),
    };
    let mut writer = RunWriter::new(dir, header).unwrap();
    for flow in 0..40 {
        let (start, finish) = (Time::from_us(u64::from(flow)), Time::from_us(1_000 + u64::from(flow * flow)));
        let record = FlowRecord {
            flow,
            class: flow as u16 % 2,
            src: flow % 5,
            dst: 7,
            bytes: 1 << (flow % 22),
            start,
            finish: (flow % 9 != 0).then_some(finish),
            sender_first: Some(start),
            sender_last: None,
            ideal: Time::from_us(10),
            counted: true,
            ..FlowRecord::default()
        };
        writer.flow(&record).unwrap();
    }
    let totals = Totals { horizon: Time::from_ms(10), measured: Time::from_ms(10), ..Totals::default() };
    writer.finish(totals, Manifest::new("0", "name = \"run\"\n")).unwrap();
}

/// Any byte of a table may be any other.
#[test]
fn no_flipped_bit_and_no_cut_makes_reading_panic() {
    let dir = Dir::new("flips");
    write_run(&dir.0);
    let path = dir.0.join("flows.parquet");
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

/// What this thread has computed so far: other work on the machine does not count. `schedstat` will not do: it is
/// counted up at a tick, every 4 ms where there are 250 a second.
fn computed() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// The least of three times.
fn cost(work: impl Fn()) -> Duration {
    let one = || {
        let before = computed();
        work();
        computed() - before
    };
    (0..3).map(|_| one()).min().unwrap()
}

/// Eight times as much of it costs some eight times as much; with a search for each it would be
/// sixty-four times.
fn grows_with_its_input(work: impl Fn(usize), n: usize) {
    let (small, large) = (cost(|| work(n)), cost(|| work(8 * n)));
    assert!(large < small * 24 + Duration::from_millis(20), "{n}: {small:?}, eight times as much: {large:?}");
}

#[test]
fn a_page_of_many_names_takes_its_time_once() {
    let dir = Dir::new("names");
    let run = |n: usize| {
        let at = dir.0.join(n.to_string());
        if !at.exists() {
            fs::create_dir(&at).unwrap();
            write_run(&at);
            let path = at.join("summary.json");
            let mut summary: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let many = |value: &dyn Fn(usize) -> serde_json::Value| -> serde_json::Value {
                (0..n).map(|i| (format!("name-{i}"), value(i))).collect::<serde_json::Map<_, _>>().into()
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
    let sweep = Sweep::new("t", "0", Vec::new(), seeds.clone(), vec![(Vec::new(), Ok(String::new()))]);
    let folder = SweepFolder::open(&dir.0, &sweep, false).unwrap();
    let failures: Vec<(u32, String)> = sweep.runs().map(|(_, run)| (run.run, "for the test".into())).collect();
    finish_sweep(&folder, &sweep, &failures, Manifest::new("0", "")).unwrap();
    let mut csv = Vec::new();
    write_csv(&dir.0, "sweep", &mut csv, Path::new("stdout")).unwrap();
    let text = String::from_utf8(csv).unwrap();
    let read: Vec<u64> = text.lines().skip(1).map(|row| row.split(',').nth(2).unwrap().parse().unwrap()).collect();
    assert_eq!(read, seeds);
}
