//! Every key that a scenario knows, at the ends of what can be written: there is a plan or an
//! error, never a panic, and what can be planned can be run. Sums that wrap panic here, since tests
//! check arithmetic.

use crate::common::{self, Records};
use millpond_core::params::{Form, Key};
use millpond_core::registry::Place;
use millpond_scenario::catalogue::{KeyInfo, places, tables};
use millpond_scenario::{Plan, Scenario};
use std::sync::mpsc;
use std::time::Duration;

/// A run of one case takes milliseconds. A case that takes so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something of everything, for a tenth of a millisecond.
const NETWORK: &str = r#"
duration = "100us"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts-per-leaf = 2
[transport]
rank = { kind = "remaining-bytes" }
[[traffic]]
name = "list"
kind = "flows"
rows = [["1us", 0, 2, 30_000], ["1us", 1, 2, 30_000], ["2us", 3, 2, 1]]
"#;

/// A scenario and one key of it: the whole, and what changes it.
struct Case {
    text: String,
    set: Vec<(String, String)>,
}

/// The values that a key can be given: those of its form at both ends, and some that are none.
fn values(key: &Key) -> Vec<String> {
    let texts = |list: &[&str]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
    let mut values = match key.form {
        Form::Bool => texts(&["true", "false", "1"]),
        Form::Int => texts(&["0", "1", "65535", "4294967295", "18446744073709551615", "-1", "1.5"]),
        Form::Float => {
            texts(&["0", "1", "-1", "1e-300", "1e308", "18446744073709551615", "nan", "inf"])
        }
        Form::Time => {
            texts(&["0us", "1ps", "1us", "1000s", "1000000s", "18446744073709551615ps", "-1us"])
        }
        Form::Bytes => texts(&[
            "0",
            "1",
            "1500",
            "4GiB",
            "1000TB",
            "18446744073709551615",
            "4611686018427387904B",
        ]),
        Form::Rate => {
            texts(&["0bps", "1bps", "1Kbps", "8Tbps", "1000Tbps", "18446744073709551615bps"])
        }
        Form::Choice(words) => texts(words),
        Form::Text | Form::List => texts(&[
            "",
            "x",
            "all",
            "0",
            "18446744073709551615",
            "0-1",
            "0..18446744073709551615",
            "[]",
            "[\"x\"]",
        ]),
    };
    if key.optional {
        values.push("off".into());
    }
    values
}

/// The table of a place, and a scenario that has it.
fn home(place: &str, kind: &str) -> (String, String) {
    match place {
        "traffic" => {
            let own = if kind == "flows" { "rows = [[1, 0, 1, 500]]\n" } else { "" };
            (
                "traffic.it".into(),
                format!("{NETWORK}[[traffic]]\nname = \"it\"\nkind = \"{kind}\"\n{own}"),
            )
        }
        "limit" => {
            let limit = format!("[[limit]]\nname = \"it\"\nkind = \"{kind}\"\nhosts = \"all\"\n");
            ("limit.it".into(), format!("{NETWORK}{limit}"))
        }
        _ => (place.into(), NETWORK.into()),
    }
}

/// Where else something must be so that the kind can be.
fn company(place: &Place, kind: &str) -> Vec<(String, String)> {
    let pairs: &[(&str, &str)] = match (place.path, kind) {
        ("switch.pause", _) => &[("switch.buffer.kind", "pools")],
        ("edge.load-balancing", "hedera") => &[("switch.path.kind", "labels")],
        ("switch.deflection", "vertigo") => &[("switch.queue.kind", "srpt")],
        _ => &[],
    };
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |text: &str, set: &[(String, String)], path: String, key: &KeyInfo| {
        for value in values(&key.key) {
            let mut set = set.to_vec();
            set.push((path.clone(), value));
            cases.push(Case { text: text.to_string(), set });
        }
    };
    for info in places() {
        for kind in &info.kinds {
            let (table, text) = home(info.place.path, kind.mechanism.kind);
            let mut set = company(info.place, kind.mechanism.kind);
            if table == info.place.path {
                set.push((format!("{table}.kind"), kind.mechanism.kind.into()));
            }
            for key in &kind.keys {
                add(&text, &set, format!("{table}.{}", key.name), key);
            }
        }
    }
    for table in tables() {
        let (path, text) = home(table.path, if table.path == "limit" { "nrm" } else { "poisson" });
        for key in &table.keys {
            let whole =
                if path.is_empty() { key.name.clone() } else { format!("{path}.{}", key.name) };
            add(&text, &[], whole, key);
        }
    }
    cases
}

/// A failure has no name by which an override could find it.
fn failures() -> Vec<Case> {
    let table = tables().into_iter().find(|table| table.path == "failure").expect("there is one");
    let quoted = |value: &str| match value.parse::<f64>() {
        Ok(_) if !value.contains('n') => value.to_string(),
        _ if value == "true" || value == "false" || value.starts_with('[') => value.to_string(),
        _ => format!("{value:?}"),
    };
    let mut cases = Vec::new();
    for key in &table.keys {
        for value in values(&key.key) {
            let mut keys = vec![
                ("link", "[\"leaf0\", \"spine0\"]".to_string()),
                ("at", "\"2us\"".to_string()),
            ];
            keys.retain(|(name, _)| *name != key.name);
            keys.push((&key.name, quoted(&value)));
            let lines: String =
                keys.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
            cases.push(Case { text: format!("{NETWORK}[[failure]]\n{lines}"), set: Vec::new() });
        }
    }
    cases
}

/// Plans and runs a case. Says whether it could be run.
fn survive(case: &Case) -> bool {
    let Some(plan) = planned(case) else { return false };
    let mut records = Records::default();
    // A run that has no end ends when its flows do.
    let Ok(outcome) = millpond_sim::run(&plan, 1, &mut records);
    assert!(outcome.audit.is_conserved(), "{:?}", outcome.audit);
    true
}

/// The plan, if there is one; it resolves to a scenario with the same plan.
fn planned(case: &Case) -> Option<Plan> {
    let scenario = Scenario::parse("case.toml", &case.text).ok()?;
    match scenario.plan(None, &case.set, None) {
        Ok(plan) => {
            let again = Scenario::parse("again.toml", &plan.resolved)
                .expect("what is resolved can be read");
            let again = again
                .plan(None, &[], None)
                .unwrap_or_else(|e| panic!("what is resolved can be planned: {e}"));
            assert_eq!(again.resolved, plan.resolved);
            Some(plan)
        }
        Err(errors) => {
            assert!(!errors.to_string().is_empty());
            None
        }
    }
}

#[test]
fn every_key_at_its_ends_is_refused_or_runs() {
    let cases: Vec<Case> = cases().into_iter().chain(failures()).collect();
    let (all, mut ran, mut wrong) = (cases.len(), 0, Vec::new());
    for case in cases {
        let told = format!("{:?} on …{}", case.set, &case.text[NETWORK.len()..]);
        let (done, result) = mpsc::channel();
        // A case that hangs is left behind with its thread; the others go on.
        let thread = std::thread::spawn(move || done.send(survive(&case)));
        match result.recv_timeout(PATIENCE) {
            Ok(has_run) => ran += usize::from(has_run),
            Err(mpsc::RecvTimeoutError::Timeout) => wrong.push(format!("hangs: {told}")),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let panic = thread.join().expect_err("it has sent nothing");
                let text = panic.downcast_ref::<String>().cloned();
                let text =
                    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
                wrong.push(format!("panics: {told}: {}", text.unwrap_or_default()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all > 1_000 && ran > all / 4, "{ran} of {all} ran");
}

/// Virtual time ends before the numbers do: a flow that nothing lets through backs off for months.
#[test]
fn a_run_without_a_duration_ends_at_the_end_of_time() {
    let text = "until = \"flows-complete\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines \
                = 2\nhosts-per-leaf = 4\n[transport]\nmax-rto = \"1000000s\"\n[[failure]]\nlink = \
                [\"leaf1\", \"spine0\"]\nat = \"0us\"\nconverge = \"never\"\n[[failure]]\nlink = \
                [\"host7\", \"leaf1\"]\nat = \"0us\"\nloss = 0.9\n[[traffic]]\nkind = \
                \"flows\"\nrows = [[\"1000000s\", 0, 4, 1000], [\"1000000s\", 1, 5, 1000], \
                [\"1000000s\", 2, 6, 1000], [\"1000000s\", 3, 7, 1000]]\nstart = \"1000000s\"\n";
    let plan = common::plan(text, &[]);
    let (outcome, records) = common::simulate(&plan, 1);
    assert_eq!((outcome.simulated, outcome.is_stalled()), (millpond_core::Time::END, true));
    let open = records.flows.iter().filter(|flow| flow.finish.is_none()).count();
    assert!(
        (1..4).contains(&open) && outcome.hosts.timeouts < 200,
        "{open} {}",
        outcome.hosts.timeouts
    );
}

/// More at a time than there are others means all at once, in no time.
#[test]
fn a_shuffle_is_as_wide_as_the_network() {
    let text = |concurrency: u32| {
        format!(
            "until = \"flows-complete\"\n[topology]\nkind = \"single-switch\"\nhosts = \
             4\n[[traffic]]\nkind = \"shuffle\"\nsize = 1000\nconcurrency = {concurrency}\n"
        )
    };
    let run = |concurrency| common::fingerprint(&common::plan(&text(concurrency), &[]), 1);
    assert_eq!(run(u32::MAX), run(3));
    assert_ne!(run(3), run(1));
}
