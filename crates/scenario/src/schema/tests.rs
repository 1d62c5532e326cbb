//! The schema against a validator: scenarios that run are valid, and a slip is one error at its own
//! place.

use super::*;
use crate::error::Report;
use crate::tree::{Datum, Node, parse};
use crate::{Plan, Scenario};
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use std::path::{Path, PathBuf};

fn validator() -> Validator {
    jsonschema::draft7::new(&schema()).unwrap()
}

fn json(text: &str) -> Value {
    let mut report = Report::default();
    let root = parse(0, text, &mut report);
    assert!(report.is_clean(), "{text}\n{:?}", report.problems);
    Node { datum: Datum::Table(root), span: Default::default() }.to_json()
}

/// The faults of a text: (place, key or empty), all errors.
fn errors(validator: &Validator, text: &str) -> Vec<(String, String)> {
    let instance = json(text);
    let error = |error: jsonschema::ValidationError<'_>| {
        let key = match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => unexpected.join(","),
            ValidationErrorKind::Required { property } => {
                property.as_str().unwrap_or_default().to_string()
            }
            _ => String::new(),
        };
        (error.instance_path().to_string(), key)
    };
    validator.iter_errors(&instance).map(error).collect()
}

fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|e| e == "toml") {
            found.push(path);
        }
    }
}

fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    ["scenarios", "benches/scenarios"]
        .iter()
        .for_each(|folder| scenarios(&root.join(folder), &mut found));
    assert!(found.len() > 30, "{}", found.len());
    found
}

#[test]
fn every_shipped_scenario_is_valid_as_written_and_as_resolved() {
    let validator = validator();
    for path in shipped() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(errors(&validator, &text), [], "{}", path.display());
        let scenario = Scenario::load(&path).unwrap();
        let names: Vec<Option<&str>> =
            [None].into_iter().chain(scenario.variants().into_iter().map(Some)).collect();
        for name in names {
            let Ok(Plan { resolved, .. }) = scenario.plan(name, &[], None) else { continue };
            assert_eq!(
                errors(&validator, &resolved),
                [],
                "{} {name:?}\n{resolved}",
                path.display()
            );
        }
    }
}

const HEAD: &str = "duration = \"1ms\"\n";

/// Mistakes that people write: (scenario, place of the error, key).
const SLIPS: &[(&str, &str, &str)] = &[
    ("durration = \"1ms\"", "", "durration"),
    (
        "[switch]\nmarking = { kind = \"ecn\", treshold-packets = 65 }",
        "/switch/marking",
        "treshold-packets",
    ),
    ("[switch]\nmarking = { kind = \"wred\" }", "/switch/marking/kind", ""),
    ("[switch.buffer]\nkind = \"per-port\"\nalpha = 1.0", "/switch/buffer", "alpha"),
    ("[switch]\nbufer = { kind = \"shared\" }", "/switch", "bufer"),
    ("[switch]\npath = \"spray\"", "/switch/path", ""),
    ("[topology]\nhost-link = { rate = \"10Gb\" }", "/topology/host-link/rate", ""),
    ("[topology]\nhost-link = { rate = \"10GBps\" }", "/topology/host-link/rate", ""),
    ("mice = \"10Kb\"", "/mice", ""),
    ("warm-up = \"1US\"", "/warm-up", ""),
    (
        "[topology]\nhost-link = { rate = \"10Gbps\", latency = \"1us\" }",
        "/topology/host-link",
        "latency",
    ),
    ("[topology]\nkind = \"fat-tree\"\nleaves = 4", "/topology", "leaves"),
    ("[transport]\nkind = \"cubic\"\ndctcp-g = 0.1", "/transport", "dctcp-g"),
    ("[transport]\nmin-rto = 10", "/transport/min-rto", ""),
    ("[transport]\nimportance = { kind = \"tlt\", x = 1 }", "/transport/importance", "x"),
    ("[[traffic]]\nkind = \"incast\"\ndegre = 4", "/traffic/0", "degre"),
    ("[[traffic]]\nname = \"a\"\nload = 0.5", "/traffic/0", "kind"),
    (
        "[[traffic]]\nkind = \"poisson\"\nsizes = { file = \"x\", shape = 1 }",
        "/traffic/0/sizes",
        "shape",
    ),
    ("[[traffic]]\nkind = \"flows\"\nrows = [[\"0us\", 0, 1]]", "/traffic/0/rows/0", ""),
    ("[[failure]]\nlink = [\"leaf0\", \"spine0\"]", "/failure/0", "at"),
    ("[host.nic]\nbuffer = \"unlimitted\"", "/host/nic/buffer", ""),
    ("[host.nic]\nbuffer = { kind = \"per-port\", sise = \"1MB\" }", "/host/nic/buffer", "sise"),
    (
        "[switch]\nmarking = { threshold-packets = { roof = 65 } }",
        "/switch/marking/threshold-packets",
        "roof",
    ),
    (
        "[switch]\nmarking = { threshold-packets = \"many\" }",
        "/switch/marking/threshold-packets",
        "",
    ),
    (
        "[[variant]]\nname = \"a\"\nset = { \"switch.path.knid\" = \"spray\" }",
        "/variant/0/set",
        "switch.path.knid",
    ),
    (
        "[[variant]]\nname = \"a\"\nset = { \"switch.path.kind\" = \"spry\" }",
        "/variant/0/set/switch.path.kind",
        "",
    ),
    ("[[limit]]\nhosts = 0\nrate = \"1Gbps\"\nscope = [\"a\"]", "/limit/0", "scope"),
];

#[test]
fn a_slip_is_one_error_at_its_place() {
    let validator = validator();
    for (slip, place, key) in SLIPS {
        let text = format!("{}{slip}\n", if slip.starts_with("dur") { "" } else { HEAD });
        assert_eq!(errors(&validator, &text), [(place.to_string(), key.to_string())], "{text}");
        assert!(Scenario::parse("s", &text).is_err(), "the reader takes {text}");
    }
}

#[test]
fn several_slips_are_as_many_errors() {
    let text = "duration = \"1ms\"\nsede = 2\n[switch]\nmarking = { kind = \"ecn\", treshold = 65 \
                }\n[transport]\nkind = \"tcp\"\n[[traffic]]\nkind = \"incast\"\ndegree = \
                \"four\"\n";
    let mut found: Vec<String> =
        errors(&validator(), text).into_iter().map(|(place, _)| place).collect();
    found.sort();
    assert_eq!(found, ["", "/switch/marking", "/traffic/0/degree", "/transport/kind"]);
}

#[test]
fn values_of_every_form_are_valid() {
    let text = "seed = 2\nduration = \"1.5ms\"\nuntil = \"off\"\n[host]\nreceive-cpu = {}\nnic = \
                { buffer = \"switch\", marking = { kind = \"ecn\" } }\n[switch]\nbuffer = { size \
                = { leaf = \"1MB\", others = \"auto\" }, packets = 100, per = \"10 Gbit\" \
                }\nmarking = { threshold-packets = { edge = 20, tier-3 = \"auto\" } \
                }\n[transport]\ndupack-threshold = \"off\"\n[[limit]]\nname = \"a\"\nhosts = \
                [\"0-3\", \"7\"]\nrate = \"1Gbps\"\n[[traffic]]\nname = \"a b\"\nkind = \
                \"poisson\"\nsizes = { points = [[100, 0], [200, 1]] }\n[[variant]]\nname = \
                \"x\"\nset = { \"traffic.\\\"a b\\\".load\" = 0.5, \"switch.buffer.size.spine\" = \
                \"1MB\", \"switch.buffer\" = { kind = \"shared\" }, seed = 3, switch = { path = { \
                kind = \"spray\" } } }\n";
    assert_eq!(errors(&validator(), text), []);
}

#[test]
fn every_key_and_kind_is_in_the_schema() {
    let text = schema().to_string();
    for place in places() {
        for kind in place.kinds {
            assert!(text.contains(&format!("{{\"const\":\"{}\"}}", kind.mechanism.kind)));
            for key in kind.keys {
                let leaf = key.name.rsplit('.').next().unwrap_or("").to_string();
                assert!(text.contains(&format!("\"{leaf}\":{{")), "{}", key.path);
            }
        }
    }
    let schema = schema();
    assert_eq!(schema["properties"]["seed"]["default"], json!(1));
    let leaf_spine = &schema["properties"]["topology"]["allOf"][0]["then"]["properties"];
    assert_eq!(leaf_spine["host-link"]["properties"]["rate"]["default"], "10Gbps");
    assert_eq!(schema["additionalProperties"], json!(false));
}
