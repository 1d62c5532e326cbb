//! `millpond plot`, and `--format` of `compare`: results for papers and for other programs.

mod common;

use common::{Dir, names};
use std::fs;

/// A compare of two seeds with queues and goodput.
fn compared(name: &str) -> Dir {
    let dir = Dir::small(name);
    let sampled = ["--set", "capture.queues=50us", "--set", "capture.goodput=100us"];
    let words = ["compare", "small.toml", "--seeds", "2", "--out", "both", "--quiet"];
    dir.run(&[&words[..], &sampled].concat()).ends(0);
    dir
}

/// Checks that a text is one well-formed element of SVG that needs nothing else, and returns it.
fn drawing(dir: &Dir, name: &str) -> String {
    let text = fs::read_to_string(dir.at(name)).unwrap();
    let mut open: Vec<&str> = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("{name}: `<{tag}` is open"));
        let word = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
        match () {
            () if tag.starts_with('/') => assert_eq!(open.pop(), Some(word), "{name}"),
            () if tag.ends_with('/') => {}
            () => open.push(word),
        }
    }
    assert!(open.is_empty(), "{name}: {open:?} is open");
    assert!(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width="), "{name}");
    for foreign in ["var(", "<script", "href", "url("] {
        assert!(!text.contains(foreign), "{name} has {foreign}");
    }
    text
}

#[test]
fn every_chart_of_the_page_is_a_file_of_its_own() {
    let dir = compared("plot");
    let said = dir.run(&["plot", "both", "--out", "plots"]).ends(0);
    let files = names(&dir.at("plots"));
    assert_eq!(said.out.lines().count(), files.len());
    for name in ["fct.svg", "qct.svg", "slowdown-p99-by-size.svg", "goodput.svg", "queue.svg"] {
        assert!(files.contains(&name.to_string()), "{name} is not among {files:?}");
    }
    for file in &files {
        let text = drawing(&dir, &format!("plots/{file}"));
        assert!(text.contains(">ecmp</text>") && text.contains(">cubic</text>"), "{file}");
        // The page has the same lines.
        let line = text.split("<path class=\"line").nth(3).unwrap().split("d=\"").nth(1).unwrap();
        let line = line.split('"').next().unwrap();
        let page = fs::read_to_string(dir.at("both/report.html")).unwrap();
        assert!(page.contains(line), "{file}: the page does not have {line}");
    }
    let before = fs::read(dir.at("plots/fct.svg")).unwrap();
    dir.run(&["plot", "both", "--out", "plots", "--figure", "fct"]).ends(0);
    assert!(fs::read(dir.at("plots/fct.svg")).unwrap() == before);
}

#[test]
fn several_results_are_in_one_chart() {
    let dir = Dir::small("plot-several");
    for seed in ["1", "2"] {
        dir.run(&["run", "small.toml", "--seed", seed, "--out", &format!("s{seed}"), "-q"]).ends(0);
    }
    dir.run(&["plot", "s1", "s2", "--figure", "fct,qct", "--out", "."]).ends(0);
    for name in ["fct.svg", "qct.svg"] {
        let text = drawing(&dir, name);
        assert!(text.contains(">s1: small</text>") && text.contains(">s2: small</text>"), "{text}");
        assert!(text.contains("class=\"s0\"") && text.contains("class=\"s1\""), "{text}");
    }
}

/// The charts of the sweep's page, over its key, with a line for each combination of the others.
#[test]
fn a_sweep_is_drawn_over_its_longest_key() {
    let dir = Dir::small("plot-sweep");
    let words = ["sweep", "small.toml", "--grid", "transport.kind=dctcp,cubic"];
    let more = ["--grid", "switch.marking.threshold-packets=20,40,65", "--seeds", "2"];
    dir.run(&[&words[..], &more[..], &["--out", "grid", "-q"]].concat()).ends(0);
    dir.run(&["plot", "grid", "--out", "plots"]).ends(0);
    let files = names(&dir.at("plots"));
    assert!(files.contains(&"mean-fct.svg".to_string()), "{files:?}");
    let page = fs::read_to_string(dir.at("grid/report.html")).unwrap();
    for file in &files {
        let text = drawing(&dir, &format!("plots/{file}"));
        for name in [">dctcp</text>", ">cubic</text>"] {
            assert!(text.contains(name), "{file}: {name}");
        }
        let line = text.split("<path class=\"line").nth(3).unwrap().split("d=\"").nth(1).unwrap();
        let line = line.split('"').next().unwrap();
        assert!(page.contains(line), "{file}: the page does not have {line}");
    }
}

#[test]
fn a_figure_or_a_folder_that_is_none_is_refused() {
    let dir = Dir::small("plot-wrong");
    dir.run(&["run", "small.toml", "--out", "one", "-q"]).ends(0);
    let refused = dir.run(&["plot", "one", "--figure", "fct,cdf", "--out", "plots"]).ends(2);
    assert!(refused.err.contains("--figure cdf") && refused.err.contains("fct, "), "{refused:?}");
    assert!(!dir.at("plots").exists());
    dir.run(&["sweep", "small.toml", "--seeds", "2", "--out", "many", "-q"]).ends(0);
    let refused = dir.run(&["plot", "many"]).ends(1);
    assert!(refused.err.contains("without a key of two values"), "{}", refused.err);
    let refused = dir.run(&["plot", "many", "one"]).ends(1);
    assert!(refused.err.contains("is drawn alone"), "{}", refused.err);
    fs::write(dir.at("one/flows.parquet"), "damaged").unwrap();
    let refused = dir.run(&["plot", "one"]).ends(1);
    assert!(refused.err.contains("flows.parquet"), "{}", refused.err);
}

#[test]
fn a_compare_is_printed_for_junit_and_as_markdown_and_nothing_else() {
    let dir = Dir::small("format");
    let words = ["compare", "small.toml", "--seeds", "2", "--out", "both", "--format"];
    let junit = dir.run(&[&words[..], &["junit"]].concat()).ends(0).out;
    assert!(junit.starts_with("<?xml") && junit.trim_end().ends_with("</testsuites>"), "{junit}");
    assert!(junit.contains("tests=\"2\" failures=\"0\""), "{junit}");
    assert!(junit.contains("<testcase classname=\"millpond.compare.small\" name=\"cubic\">"));
    let markdown = dir.run(&[&words[..], &["markdown"]].concat()).ends(0).out;
    let lines: Vec<&str> = markdown.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 4, "{markdown}");
    assert!(lines.iter().all(|line| line.starts_with('|') && line.ends_with('|')), "{markdown}");
    assert!(lines[2].starts_with("| ecmp |") && lines[3].contains('%'), "{markdown}");
    let both = dir.run(&[&words[..], &["junit", "--json"]].concat()).ends(2);
    assert!(both.err.contains("--json"), "{}", both.err);
}
