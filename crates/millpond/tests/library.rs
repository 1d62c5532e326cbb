//! The library as a user meets it: memory and folder agree, values are scenarios, the API is small.

use millpond::{Control, Error, Options, Progress, Scenario, Status, Summary, run, run_into};
use serde_json::json;
use std::sync::Mutex;

const TEXT: &str = r#"
name = "library"
duration = "4ms"
shows = ["all.fct.p99", "timeouts"]
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts-per-leaf = 4
host-link = { rate = "10Gbps", delay = "1us" }
fabric-link = { rate = "10Gbps", delay = "1us" }
[[traffic]]
name = "web"
kind = "poisson"
sizes = "web-search"
load = 0.6
[[traffic]]
name = "queries"
kind = "incast"
degree = 3
response = "20KB"
rate = 5000
[capture]
queues = "100us"
timers = true
[[variant]]
name = "cubic"
set = { "transport.kind" = "cubic" }
"#;

/// Without what the machine decides.
fn result(summary: Summary) -> Summary {
    Summary { run: Default::default(), ..summary }
}

#[test]
fn memory_and_folder_have_the_same_summary_for_any_threads() {
    let plan = Scenario::parse("library.toml", TEXT).unwrap().plan(Some("cubic")).unwrap();
    let folder = std::env::temp_dir().join(format!("millpond-library-{}", std::process::id()));
    let one = Options { threads: Some(1), ..Options::default() };
    let two = Options { threads: Some(2), ..Options::default() };
    let written = run_into(&plan, &folder, &one).unwrap();
    assert!(
        folder.join("queues.parquet").exists()
            && written.summary.variant.as_deref() == Some("cubic")
    );
    std::fs::remove_dir_all(&folder).unwrap();
    let in_memory = run(&plan, &two).unwrap();
    assert_eq!((written.summary.run.threads, in_memory.run.threads), (1, 2));
    assert_eq!(result(in_memory), result(written.summary));
}

#[test]
fn values_are_scenarios() {
    let value = json!({
        "name": "library", "duration": "4ms", "seed": null,
        "topology": {
            "kind": "single-switch", "hosts": 4,
            "host-link": { "rate": "10Gbps", "delay": "1us" },
        },
        "traffic": [{ "name": "a b", "kind": "permutation", "size": "1MB" }],
        "variant": [{ "name": "cubic", "set": { "transport.kind": "cubic" } }],
    });
    let text = "name = \"library\"\nduration = \"4ms\"\n[topology]\nkind = \
                \"single-switch\"\nhosts = 4\nhost-link = { rate = \"10Gbps\", delay = \"1us\" \
                }\n[[traffic]]\nname = 'a b'\nkind = \"permutation\"\nsize = \
                \"1MB\"\n[[variant]]\nname = \"cubic\"\nset = { \"transport.kind\" = \"cubic\" }\n";
    let resolved =
        |scenario: Scenario| scenario.plan(Some("cubic")).unwrap().resolved().to_string();
    let of_text = resolved(Scenario::parse("a.toml", text).unwrap());
    assert_eq!(resolved(Scenario::from_value("a.toml", &value).unwrap()), of_text);
    assert!(matches!(Scenario::from_value("a", &7), Err(Error::Usage(_))));
}

/// Stops at the first report, and remembers it.
#[derive(Default)]
struct Stop(Mutex<Option<Progress>>);

impl Control for Stop {
    fn is_stopped(&self) -> bool {
        self.0.lock().unwrap().is_some()
    }
    fn progress(&self, progress: &Progress) {
        self.0.lock().unwrap().get_or_insert_with(|| progress.clone());
    }
}

#[test]
fn callers_follow_a_run_and_stop_it() {
    let plan =
        Scenario::parse("library.toml", TEXT).unwrap().set("duration", "1000s").plan(None).unwrap();
    let stop = Stop::default();
    let summary = run(&plan, &Options { control: &stop, ..Options::default() }).unwrap();
    assert_eq!(summary.status, Status::Interrupted);
    assert!(stop.0.lock().unwrap().as_ref().is_some_and(|progress| progress.simulated_s > 0.0));
}

#[test]
fn the_api_has_forty_items_at_most() {
    let text = include_str!("../src/lib.rs");
    let api = text.split("#[doc(hidden)]").next().unwrap();
    // Worlds that features add are not counted.
    let worlds = api.split("\n#[cfg(all(feature = ");
    let after = |part: &str| part.split_once(';').map_or(part, |(_, rest)| rest).to_string();
    let api = worlds.enumerate().map(|(n, part)| if n == 0 { part.into() } else { after(part) });
    let api = api.collect::<String>();
    let lines = api.lines().filter_map(|line| line.strip_prefix("pub use "));
    let names = lines.map(|line| line.split(',').count()).sum::<usize>();
    assert!(
        api.matches("\npub ").count() == api.matches("\npub use ").count()
            && (1..=40).contains(&names),
        "{names}"
    );
    println!("{} public items", names);
}
