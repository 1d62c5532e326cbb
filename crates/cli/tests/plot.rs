//! `millpond plot`, and `--format` of `compare`: results for papers and for other programs.

use crate::common::{self, Dir, names};
use std::fs;

/// A compare of two seeds with queues and goodput.
fn compared(name: &str) -> Dir {
    let dir = Dir::small(name);
    let sampled = ["--set", "capture.queues=50us", "--set", "capture.goodput=100us"];
    let words = ["compare", "small.toml", "--seeds", "2", "--out", "both", "--quiet"];
    dir.run(&[&words[..], &sampled].concat()).ends(0);
    dir
}

/// Checks that a text is one element of SVG that needs nothing else, and returns it.
fn drawing(dir: &Dir, name: &str) -> String {
    let text = fs::read_to_string(dir.at(name)).unwrap();
    assert_eq!(xml_of(&text, name), 1, "{name}");
    assert!(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width="), "{name}");
    for foreign in ["var(", "<script", "href", "url("] {
        assert!(!text.contains(foreign), "{name} has {foreign}");
    }
    text
}

/// Parses each drawing of a page, or of a file, as XML, and returns their number. A drawing within
/// another is a part of it.
fn xml_of(page: &str, name: &str) -> usize {
    let (mut rest, mut drawings) = (page, 0);
    while let Some(start) = rest.find("<svg ") {
        let (mut end, mut open) = (start, 0);
        loop {
            let closes = end + rest[end..].find("</svg>").expect("each drawing has an end");
            open += rest[end..closes].matches("<svg ").count();
            open -= 1;
            end = closes + "</svg>".len();
            if open == 0 {
                break;
            }
        }
        let svg = &rest[start..end];
        if let Err(error) = roxmltree::Document::parse(svg) {
            let line = svg.lines().nth(error.pos().row as usize - 1).unwrap_or_default();
            let from = line.char_indices().nth((error.pos().col as usize).saturating_sub(60));
            let near: String = line[from.map_or(0, |(at, _)| at)..].chars().take(120).collect();
            panic!("{name}: {error}: {near}");
        }
        (rest, drawings) = (&rest[end..], drawings + 1);
    }
    drawings
}

/// A network with all that has a drawing of its own: samples of queues, goodput and connections, a
/// failure, a job, and names that are markup or no XML.
const EVERYTHING: &str = r#"
[capture]
queues = "50us"
goodput = "100us"
connections = { every = "20us", max = 4 }

[[failure]]
link = ["leaf0", "spine1"]
at = "1ms"
until = "2ms"

[[traffic]]
name = "R&D's \uffff"
kind = "permutation"
size = "100KB"

[[traffic]]
name = "job"
kind = "collective"
ranks = 4
size = "40KB"
compute = "5us"
repeat = 2
"#;

#[test]
fn every_drawing_of_every_command_is_xml() {
    let dir = Dir::new("xml");
    dir.write("all.toml", &format!("{}{EVERYTHING}", common::SMALL));
    dir.run(&["run", "all.toml", "--variant", "cubic", "--out", "one", "-q"]).ends(0);
    dir.run(&["compare", "all.toml", "--seeds", "2", "--out", "both", "-q"]).ends(0);
    let keys = ["transport.min-rto=1ms,2ms", "switch.marking.threshold-packets=20,65"];
    let grid = ["--grid", keys[0], "--grid", keys[1]];
    dir.run(&[&["sweep", "all.toml", "--out", "grid", "-q"][..], &grid].concat()).ends(0);
    dir.run(&["reproduce", "all", "--page", "papers", "--recorded", "-q"]).ends(0);
    for (page, least) in [
        ("one/report.html", 12),
        ("both/report.html", 20),
        ("grid/report.html", 10),
        ("papers/gallery.html", 50),
    ] {
        let text = fs::read_to_string(dir.at(page)).unwrap();
        let drawings = xml_of(&text, page);
        assert!(drawings >= least, "{page} has {drawings} drawings");
    }
    assert!(fs::read_to_string(dir.at("grid/report.html")).unwrap().contains("class=\"heat\""));
    for of in ["one", "both", "grid"] {
        let out = format!("plots-{of}");
        dir.run(&["plot", of, "--out", &out]).ends(0);
        for file in names(&dir.at(&out)) {
            drawing(&dir, &format!("{out}/{file}"));
        }
    }
    let files = names(&dir.at("plots-both"));
    for figure in ["goodput.svg", "queue.svg", "queue-1.svg", "timeline.svg"] {
        assert!(files.contains(&figure.to_string()), "{figure} is not among {files:?}");
    }
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
    // The page draws no flow alone.
    for file in files.iter().filter(|file| *file != "timeline.svg") {
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
