//! `millpond new` as a user and as a script run it: answers on a pipe, options, and what becomes of
//! the file.

use crate::common::{Dir, Ran};
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// Runs the command with these lines as standard input.
fn answered(dir: &Dir, words: &[&str], lines: &str) -> Ran {
    let mut child = dir.command(words).stdin(Stdio::piped()).spawn().unwrap();
    // A command that asks nothing may have ended before.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn enter_five_times_writes_a_scenario_that_checks_and_compares() {
    let dir = Dir::new("new-defaults");
    let ran = answered(&dir, &["new", "first.toml"], "\n\n\n\n\n").ends(0);
    for question in ["1 of 5", "2 of 5", "3 of 5", "4 of 5", "5 of 5", "[leaf-spine:4x4x8]"] {
        assert!(ran.err.contains(question), "{}", ran.err);
    }
    assert!(ran.out.contains("written: first.toml"), "{}", ran.out);
    let by_answers = fs::read_to_string(dir.at("first.toml")).unwrap();
    let checked = dir.run(&["check", "first.toml"]).ends(0);
    assert!(!checked.out.contains("warning") && checked.err.is_empty(), "{checked:?}");
    let words = ["compare", "first.toml", "--seeds", "2", "--threads", "2", "--json", "--quiet"];
    let compared = dir.run(&words).ends(0);
    let results: serde_json::Value = serde_json::from_str(&compared.out).unwrap();
    let variants: Vec<&str> =
        results.as_array().unwrap().iter().map(|one| one["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, ["plain", "tlt"]);
    for one in results.as_array().unwrap() {
        assert_eq!(one["status"], "complete", "{one}");
        assert!(one["statistics"]["flows"]["completed"]["mean"].as_f64().unwrap() > 50.0);
    }
    // --yes gives the same.
    dir.run(&["new", "fifth.toml", "--yes"]).ends(0);
    let by_defaults = fs::read_to_string(dir.at("fifth.toml")).unwrap();
    assert_eq!(by_defaults.replace("fifth", "first"), by_answers);
}

#[test]
fn a_wrong_answer_is_asked_again_with_the_nearest_name() {
    let dir = Dir::new("new-again");
    let lines =
        "dumbell:4\ndumbbell:4\n10Gbps\ndctpc\ncubic\nincast:9\nincast:7\npresto\nnrm,tlt\n";
    let ran = answered(&dir, &["new", "again.toml"], lines).ends(0);
    for error in [
        "unknown topology `dumbell`; did you mean `dumbbell`?",
        "unknown transport `dctpc`; did you mean `dctcp`?",
        "incast: 1 to 7 servers, all hosts but the receiver",
        "mechanism `presto` needs several paths: leaf-spine or fat-tree (got dumbbell)",
    ] {
        assert!(ran.err.contains(error), "{error}: {}", ran.err);
    }
    let text = fs::read_to_string(dir.at("again.toml")).unwrap();
    let options = "--topology dumbbell:4 --rate 10Gbps --transport cubic\n#     --traffic incast:7 \
                   --mechanisms nrm,tlt";
    assert!(text.contains(options), "{text}");
    // The options in its head make the file again, without a question.
    let words = options.replace("\n#", " ");
    let mut command = vec!["new", "again.toml", "--force"];
    command.extend(words.split_whitespace());
    let again = dir.run(&command).ends(0);
    assert!(!again.err.contains("of 5"), "{}", again.err);
    assert_eq!(fs::read_to_string(dir.at("again.toml")).unwrap(), text);
}

#[test]
fn a_wrong_option_is_an_error_before_any_question() {
    let dir = Dir::new("new-option");
    for (option, value, error) in [
        ("--topology", "leafspine", "--topology: unknown topology `leafspine`; did you mean"),
        ("--rate", "fast", "--rate: unknown rate `fast`; known here: 1Gbps"),
        ("--transport", "tcp", "--transport: unknown transport `tcp`"),
        ("--traffic", "incst", "--traffic: unknown traffic `incst`; did you mean `incast`?"),
        ("--mechanisms", "canery", "--mechanisms: unknown mechanism `canery`; did you mean"),
    ] {
        let ran = dir.run(&["new", "x.toml", option, value, "--yes"]).ends(2);
        assert!(ran.err.contains(error) && !ran.err.contains("of 5"), "{}", ran.err);
    }
    assert_eq!(dir.names(), Vec::<String>::new());
}

#[test]
fn a_closed_standard_input_names_the_option_that_is_missing() {
    let dir = Dir::new("new-closed");
    let ran = dir.run(&["new", "x.toml"]).ends(2);
    let error = "standard input ended before the answer to question 1: give --topology, or take \
                 the defaults with --yes";
    assert!(ran.err.contains(error), "{}", ran.err);
    let ran = answered(&dir, &["new", "x.toml", "--rate", "40Gbps"], "fat-tree\n").ends(2);
    assert!(ran.err.contains("question 3: give --transport"), "{}", ran.err);
    assert_eq!(dir.names(), Vec::<String>::new());
}

#[test]
fn a_file_is_replaced_only_with_force() {
    let dir = Dir::new("new-force");
    dir.write("mine.toml", "# mine\n");
    let ran = answered(&dir, &["new", "mine.toml"], "\n\n\n\n\n").ends(2);
    assert!(ran.err.contains("mine.toml is there already; --force replaces it"), "{}", ran.err);
    assert!(!ran.err.contains("of 5"), "{}", ran.err);
    assert_eq!(fs::read_to_string(dir.at("mine.toml")).unwrap(), "# mine\n");
    dir.run(&["new", "mine.toml", "--yes", "--force"]).ends(0);
    assert!(fs::read_to_string(dir.at("mine.toml")).unwrap().contains("name = \"mine\""));
    let ran = dir.run(&["new", "no/folder.toml", "--yes"]).ends(1);
    assert!(ran.err.contains("no/folder.toml"), "{}", ran.err);
}

#[test]
fn standard_output_takes_a_scenario_that_check_reads() {
    let dir = Dir::new("new-pipe");
    let words = ["new", "-", "--yes", "--transport", "uet", "--mechanisms", "trim"];
    let ran = dir.run(&words).ends(0);
    assert_eq!(dir.names(), Vec::<String>::new());
    let checked = answered(&dir, &["check", "-"], &ran.out).ends(0);
    assert!(checked.out.contains("(trim)") && !checked.out.contains("warning"), "{checked:?}");
}
