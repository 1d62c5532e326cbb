//! The action for continuous integration: its script as the action runs it, and the names in
//! `action.yml`.

use crate::common::{Dir, MILLPOND, Ran, root};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const SCENARIO: &str = r#"
name = "burst"
until = "flows-complete"
topology = { kind = "single-switch", hosts = 33 }

[switch]
buffer = { kind = "per-port", size = "150KB" }

[transport]
kind = "dctcp"
min-rto = "10ms"

[[traffic]]
name = "queries"
kind = "incast"
degree = 32
response = "64KB"
period = "20ms"
count = 4

[[variant]]
name = "plain"

[[variant]]
name = "short-timeout"
set = { "transport.min-rto" = "1ms" }
"#;

/// The results of the script.
struct Left {
    ran: Ran,
    summary: String,
    output: String,
}

/// Runs the script in a folder, with the files that a workflow's step has.
fn script(dir: &Dir, variables: &[(&str, &str)]) -> Left {
    let (summary, output) = (dir.at("summary.md"), dir.at("output.txt"));
    let _ = (fs::remove_file(&summary), fs::remove_file(&output));
    let mut command = Command::new(root().join("scripts/ci-figure.sh"));
    for name in ["MILLPOND", "SCENARIO", "FIGURE", "TOLERANCE", "BASELINE", "SEEDS", "RESULTS"] {
        command.env_remove(name);
    }
    command.current_dir(dir.path()).env("MILLPOND", MILLPOND);
    command.env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_OUTPUT", &output);
    let ran = Ran::from(command.envs(variables.iter().copied()).output().unwrap());
    let text = |path| fs::read_to_string(path).unwrap_or_default();
    Left { ran, summary: text(summary), output: text(output) }
}

#[test]
fn the_script_passes_without_a_regression_and_fails_with_one() {
    let dir = Dir::new("ci");
    dir.write("burst.toml", SCENARIO);
    let recorded = dir.run(&["compare", "burst.toml", "--seeds", "2", "--json"]).ends(0);
    dir.write("baseline.json", &recorded.out);
    let common = [
        ("SCENARIO", "burst.toml"),
        ("FIGURE", "queries.qct.p99"),
        ("TOLERANCE", "5"),
        ("SEEDS", "2"),
        ("BASELINE", "baseline.json"),
        ("RESULTS", "results"),
    ];
    let same = script(&dir, &common);
    let Left { ran, summary, output } = same;
    let ran = ran.ends(0);
    assert!(summary.starts_with("## millpond: burst.toml\n\n| variant | number |"), "{summary}");
    assert!(summary.contains("| plain | queries.qct.p99 |") && summary.contains("| within |"));
    assert!(!summary.contains("| worse |") && summary.contains(ran.out.trim()), "{summary}");
    assert_eq!(output, "results=results\nregressed=false\n");
    assert!(dir.at("results/report.html").is_file());

    // A longer timeout is a regression of the tail of one variant alone.
    dir.write("burst.toml", &SCENARIO.replace("\"10ms\"", "\"15ms\""));
    let Left { ran, summary, output } = script(&dir, &common);
    let ran = ran.ends(5);
    assert!(ran.err.contains("worse than tolerated: plain: queries.qct.p99 "), "{}", ran.err);
    let worse: Vec<&str> = summary.lines().filter(|line| line.contains("| worse |")).collect();
    assert!(matches!(worse[..], [one] if one.starts_with("| plain |")), "{summary}");
    assert_eq!(output, "results=results\nregressed=true\n");
    // Seeds that are not the baseline's are reported before a run.
    let words = ["compare", "burst.toml", "--seeds", "3", "--baseline", "baseline.json"];
    let seeds = dir.run(&[&words[..], &["--tolerate", "queries.qct.p99=900"]].concat()).ends(0);
    let place = |text: &str| seeds.err.find(text).unwrap_or_else(|| panic!("{}", seeds.err));
    let warning = "plain: the baseline has 2 seeds from 1 on, this comparison 3 from 1 on";
    assert!(place(warning) < place("at its end this command replaces"), "{}", seeds.err);
    let missing = [
        &["compare", "burst.toml", "--tolerate", "queries.qct.p99=5"][..],
        &["--baseline", "none.json"],
    ];
    let missing = dir.run(&missing.concat()).ends(2);
    assert!(missing.err.contains("--baseline: ") && missing.err.contains("none.json"));
    // A tolerance above the change passes.
    let tolerant = [&common[..], &[("TOLERANCE", "900")]].concat();
    assert_eq!(script(&dir, &tolerant).ran.ends(0).code, Some(0));
}

#[test]
fn without_a_baseline_variants_are_judged_by_the_first() {
    let dir = Dir::new("ci-first");
    dir.write("burst.toml", SCENARIO);
    let variables = [("SCENARIO", "burst.toml"), ("FIGURE", "queries.qct.p99"), ("SEEDS", "2")];
    let left = script(&dir, &variables);
    left.ran.ends(0);
    assert!(left.summary.contains("| short-timeout | queries.qct.p99 |"), "{}", left.summary);
    assert!(dir.at("out/millpond-ci/compare.json").is_file());
    let reversed = SCENARIO.replace("min-rto = \"10ms\"", "min-rto = \"1ms\"");
    dir.write(
        "burst.toml",
        &reversed.replace("\"transport.min-rto\" = \"1ms\"", "\"transport.min-rto\" = \"10ms\""),
    );
    let left = script(&dir, &variables);
    left.ran.ends(5);
    assert!(left.output.contains("regressed=true"), "{}", left.output);
}

#[test]
fn wrong_inputs_are_errors_without_a_run() {
    let dir = Dir::new("ci-wrong");
    dir.write("burst.toml", SCENARIO);
    dir.write("damaged.json", "{");
    let of = |variables: &[(&str, &str)]| script(&dir, variables);
    let burst = ("SCENARIO", "burst.toml");
    let figure = ("FIGURE", "queries.qct.p99");
    for (variables, error) in [
        (vec![figure], "SCENARIO is empty"),
        (vec![burst], "FIGURE is empty"),
        (vec![burst, ("FIGURE", "queries.qct")], "no number is called queries.qct"),
        (vec![burst, ("FIGURE", "packets.marked")], "neither more nor less of packets.marked"),
        (vec![burst, figure, ("TOLERANCE", "much")], "a number from 0 to 10000"),
    ] {
        let left = of(&variables);
        let ran = left.ran.ends(2);
        assert!(ran.err.contains(error), "{error}: {}", ran.err);
        assert!(left.summary.is_empty() && !left.output.contains("true"), "{}", left.summary);
    }
    for (file, code) in [("damaged.json", 1), ("absent.json", 2)] {
        let ran = of(&[burst, figure, ("BASELINE", file)]).ran.ends(code);
        assert!(ran.err.contains(file), "{}", ran.err);
    }
    assert!(!dir.at("out").exists(), "a run was made");
}

/// The indented names below a key of `action.yml`, up to the next key of its level.
fn names_below<'a>(text: &'a str, key: &str) -> BTreeSet<&'a str> {
    let mut lines = text.lines().skip_while(|line| *line != format!("{key}:"));
    lines.next();
    let own = lines.take_while(|line| line.starts_with(' '));
    let names = own.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| Some(line.trim().split_once(':')?.0)).collect()
}

/// The names behind `prefix` in expressions.
fn used<'a>(text: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    let end = |rest: &'a str| {
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').next()
    };
    text.split(prefix).skip(1).filter_map(end).collect()
}

#[test]
fn the_action_uses_the_inputs_that_it_declares() {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let declared = names_below(&text, "inputs");
    assert_eq!(used(&text, "inputs."), declared);
    assert!(declared.contains("scenario") && declared.contains("figure"));
    for input in &declared {
        let body = text.split(&format!("\n  {input}:\n")).nth(1).unwrap();
        let own: Vec<&str> = body.lines().take_while(|line| line.starts_with("    ")).collect();
        let has = |key: &str| own.iter().any(|line| line.trim_start().starts_with(key));
        assert!(has("description:") && (has("required: true") || has("default:")), "{input}");
    }
    // The script reads the variables that the step sets, and writes the outputs that it names.
    let script = fs::read_to_string(root().join("scripts/ci-figure.sh")).unwrap();
    let step = text.split("      env:\n").nth(1).unwrap();
    let set = step.lines().take_while(|line| line.starts_with("        "));
    let set: Vec<&str> = set.filter_map(|line| Some(line.trim().split_once(':')?.0)).collect();
    assert_eq!(set.len(), 7, "{set:?}");
    for variable in set {
        assert!(script.contains(&format!("${{{variable}:-")), "{variable} is not read");
    }
    for output in used(&text, "steps.figure.outputs.") {
        assert!(script.contains(&format!("{output}=%s")), "{output} is not written");
    }
    assert_eq!(used(&text, "steps.figure.outputs."), names_below(&text, "outputs"));
    assert!(text.contains("/scripts/ci-figure.sh") && text.contains("scripts/setup.sh --sim"));
}

/// Where there is Python's YAML, the file is read by it.
#[test]
fn the_action_is_yaml() {
    let read = "import sys, yaml; action = yaml.safe_load(open(sys.argv[1])); \
                print(action['runs']['using'], len(action['runs']['steps']))";
    let has_yaml = Command::new("python3").args(["-c", "import yaml"]).output();
    let has_yaml = has_yaml.is_ok_and(|output| output.status.success());
    millpond_worlds::needs!(has_yaml, "Python's module yaml");
    let output = Command::new("python3").args(["-c", read]).arg(root().join("action.yml")).output();
    let ran = Ran::from(output.unwrap()).ends(0);
    assert_eq!(ran.out.trim(), "composite 2");
}
