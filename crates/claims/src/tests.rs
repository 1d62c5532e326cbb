//! The tables of the papers fit their scenarios, their claims and each other.

use crate::claim::is_of_group;
use crate::*;
use millpond_results::ClaimKind;
use std::fs;
use std::path::Path;

#[test]
fn the_tables_of_papers_fit_their_scenarios() {
    for paper in papers() {
        experiments_fit(paper);
        claims_fit(paper);
    }
}

/// Plans have all points, published curves name schemes, and the scenario is the one on disk.
fn experiments_fit(paper: &Paper) {
    for experiment in &paper.experiments {
        for effort in [Effort::Full, Effort::Quick] {
            if let Ok(runs) = experiment.runs(effort) {
                let points = experiment.schemes.len() * runs.loads.len();
                let prepared = experiment
                    .prepare(runs, None, false)
                    .unwrap_or_else(|e| panic!("{}: {e:?}", experiment.name));
                assert_eq!(prepared.design.sweep.points.len(), points, "{}", experiment.name);
            }
        }
        let has = |variant: &str| experiment.schemes.iter().any(|(name, _)| *name == variant);
        for curve in &experiment.published {
            assert!(has(&curve.variant), "{}: {}", experiment.name, curve.variant);
            assert_eq!(
                (curve.loads.len(), curve.loads.len()),
                (curve.mean_s.len(), curve.p99_s.len())
            );
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&experiment.scenario);
        assert_eq!(fs::read_to_string(file).unwrap(), experiment.text);
    }
}

/// Claims have names of their own, name schemes and loads of their experiments, and can fail.
fn claims_fit(paper: &Paper) {
    let mut ids: Vec<&str> = paper.claims.iter().map(|claim| claim.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), paper.claims.len(), "two claims of {} have one name", paper.name);
    for claim in &paper.claims {
        let experiment = paper.experiments.iter().find(|e| e.name == claim.experiment());
        let experiment = experiment.unwrap_or_else(|| panic!("{} is of no experiment", claim.id));
        for scheme in claim.measure.schemes() {
            assert!(
                experiment.schemes.iter().any(|(name, _)| *name == scheme),
                "{}: {scheme}",
                claim.id
            );
        }
        if let Some(load) = claim.measure.load {
            assert!(
                experiment.full.loads.iter().any(|(of, _)| *of == load),
                "{}: {load} %",
                claim.id
            );
        }
        assert!(claim.accept().iter().any(Option::is_some), "{} cannot fail", claim.id);
    }
}

/// A claim that nobody can hold against a baseline might hold without its mechanism.
#[test]
fn every_claim_has_a_baseline_or_says_why_not() {
    for paper in papers() {
        let ids = || paper.claims.iter().map(|claim| &claim.id);
        for claim in &paper.claims {
            let experiment =
                paper.experiments.iter().find(|e| e.name == claim.experiment()).unwrap();
            let has = |variant: &str| experiment.schemes.iter().any(|(name, _)| *name == variant);
            match paper.baselines.of(experiment, claim) {
                Baseline::Variants(pairs) => {
                    let (of, id) = (claim.measure.subjects(experiment), &claim.id);
                    for (on, off) in pairs {
                        assert!(
                            of.contains(&on.as_str()) && has(&off) && on != off,
                            "{}-{id}: {on}, {off}",
                            paper.name
                        );
                    }
                }
                Baseline::None(why) => assert!(!why.is_empty()),
                Baseline::Missing => {
                    panic!("{}-{}: neither a baseline nor a reason", paper.name, claim.id)
                }
            }
        }
        for group in paper
            .baselines
            .of
            .iter()
            .map(|of| &of.0)
            .chain(paper.baselines.none.iter().map(|none| &none.0))
        {
            assert!(ids().any(|id| is_of_group(group, id)), "{}: {group} is no claim", paper.name);
        }
    }
}

/// Titles, each with what may stand before the colon in front of it: the last of its authors, or
/// the first with *et al.*
const AUTHORS: &[(&str, &[&str])] = &[
    ("backdraft: a lossless virtual switch", &["Sanaee, Shahinfar, Antichi, Stephens"]),
    ("burst-tolerant datacenter networks", &["Abdous, Sharafzadeh, Ghorbani", "Abdous et al."]),
    (
        "presto: edge-based load balancing",
        &["He et al.", "He, Rozner, Agarwal, Felter, Carter, Akella"],
    ),
    ("towards timeout-less transport", &["Lim, Bai, Zhu, Jung, Han", "Lim et al."]),
    ("hpcc: high precision congestion control", &["Li et al."]),
    ("backpressure flow control", &["Goyal et al.", "Goyal and others"]),
    ("dibs: just-in-time", &["Zarifis et al."]),
    ("programmable packet scheduling with a single", &["Yu et al."]),
    ("programmable packet scheduling at line", &["Sivaraman et al."]),
    ("sp-pifo: approximating", &["Gran Alcoz et al."]),
    ("conga: distributed", &["Alizadeh et al."]),
    ("plb: congestion signals", &["Qureshi et al."]),
    ("harnessing tcp's burstiness", &["Sinha, Kandula, Katabi"]),
    ("let it flow", &["Vanini, Pan, Alizadeh, Taheri, Edsall"]),
    ("on the impact of packet spraying", &["Dixit, Prakash, Hu, Kompella"]),
    (
        "hedera: dynamic flow scheduling",
        &["Al-Fares, Radhakrishnan, Raghavan, Huang, Vahdat", "Al-Fares and others"],
    ),
    ("drill: micro load balancing", &["Ghorbani, Yang, Godfrey, Ganjali, Firoozshahian"]),
    ("picnic: predictable", &["Kumar and others"]),
    ("efficient fair queuing", &["Shreedhar, Varghese"]),
    ("random early detection gateways", &["Floyd, Jacobson"]),
];

/// Documents, code and scenarios below a folder.
fn texts(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            texts(&path, found);
        } else if [".md", ".rs", ".toml", ".py"].iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}

/// A citation credits the authors of its paper.
#[test]
fn papers_are_cited_with_their_authors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "docs", "notes", "scenarios"] {
        texts(&root.join(folder), &mut files);
    }
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let mut cited = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let words =
            text.split_whitespace().filter(|word| !["//!", "///", "//", "#", "\\"].contains(word));
        let text = words.collect::<Vec<_>>().join(" ");
        // Of the same length, so that places are the same in both.
        let small = text.to_ascii_lowercase();
        for (title, authors) in AUTHORS {
            for (at, _) in small.match_indices(title) {
                let before = text[..at].trim_end_matches('*').strip_suffix(": ");
                // A name alone before the colon is the mechanism's.
                let is_list = |before: &&str| {
                    let of_two = before.rsplit(' ').nth(1).is_some_and(|word| word.ends_with(','));
                    of_two || before.ends_with("et al.") || before.ends_with("others")
                };
                let Some(before) = before.filter(is_list) else { continue };
                let credited = authors.iter().any(|authors| before.ends_with(authors));
                let from = before.char_indices().rev().nth(60).map_or(0, |(at, _)| at);
                assert!(credited, "{}: {:?} before {title:?}", file.display(), &before[from..]);
                cited += 1;
            }
        }
    }
    assert!(cited > 30, "citations are found: {cited}");
}

#[test]
fn counts_read_well() {
    let kinds = |of: &[(ClaimKind, usize)]| {
        Kinds::of(of.iter().flat_map(|&(kind, n)| std::iter::repeat_n(kind, n)))
    };
    let claims = kinds(&[(ClaimKind::Fitted, 4), (ClaimKind::Published, 21)]);
    let of = Counts { claims, experiments: 6, runs: 350, finished: 12 };
    let text =
        "25 claims (published 21, fitted 4), 6 experiments, 350 runs, of which 12 are finished";
    assert_eq!(of.to_string(), text);
    let one =
        Counts { claims: kinds(&[(ClaimKind::Derived, 1)]), experiments: 1, runs: 1, finished: 0 };
    assert_eq!(one.to_string(), "1 claim (derived 1), 1 experiment, 1 run");
    assert_eq!(Counts::default().to_string(), "0 claims, 0 experiments, 0 runs");
}

/// No claim that is remembered, fitted or ours is reported as published.
#[test]
fn a_claims_kind_fits_its_source() {
    let all = papers()
        .iter()
        .flat_map(|paper| paper.claims.iter().map(move |claim| (&paper.name, claim)));
    for (paper, claim) in all {
        let says = |word: &str| claim.source.contains(word) || claim.statement.contains(word);
        let id = format!("{paper}-{}", claim.id);
        assert_eq!(claim.kind == ClaimKind::Remembered, says("as remembered"), "{id}");
        assert_eq!(claim.kind == ClaimKind::Fitted, says("fitted"), "{id}");
        assert_eq!(claim.kind == ClaimKind::Ours, says("bound is ours"), "{id}");
        let is_measured =
            claim.source.contains("run unmodified") && claim.kind != ClaimKind::Derived;
        assert_eq!(claim.kind == ClaimKind::Released, is_measured, "{id}");
    }
    let presto = papers().iter().find(|paper| paper.name == "presto").unwrap();
    let of = |kind| -> Vec<&str> {
        presto
            .claims
            .iter()
            .filter(|claim| claim.kind == kind)
            .map(|claim| claim.id.as_str())
            .collect()
    };
    assert_eq!(of(ClaimKind::Fitted), ["P6a", "P6b", "P6c", "P9a", "P9b"]);
    assert!(of(ClaimKind::Remembered).iter().all(|id| id.starts_with('M')), "and its name says so");
    assert!(of(ClaimKind::Published).iter().all(|id| id.starts_with('P')));
    let tlt = papers().iter().find(|paper| paper.name == "tlt").unwrap();
    let kinds = Kinds::of(tlt.claims.iter().map(|claim| claim.kind));
    let released = kinds.iter().find(|(kind, _)| *kind == ClaimKind::Released);
    assert_eq!(released, Some((ClaimKind::Released, 54)), "46 of RDMA's table, 8 of TCP's");
}

#[test]
fn the_number_of_a_claim_stands_in_the_chart_of_its_experiment() {
    let tlt = papers().iter().find(|paper| paper.name == "tlt").unwrap();
    let released = tlt.experiments.iter().find(|experiment| experiment.name == "released").unwrap();
    let found = Found { name: "released".into(), ..Found::default() };
    let shown = released.shown(&tlt.claims, &found, "");
    let of = |variant: &str, number: &str| {
        shown
            .published_numbers
            .iter()
            .find(|p| p.variant == variant && p.number == number)
            .map(|p| p.value)
    };
    assert_eq!(of("baseline", "ACKed p99.9"), Some(12_400.0));
    assert_eq!(of("tlt-released", "timeouts"), Some(0.0));
    let nrm = papers().iter().find(|paper| paper.name == "nrm").unwrap();
    let t5 = nrm.experiments.iter().find(|experiment| experiment.name == "t5").unwrap();
    let shown = t5.shown(&nrm.claims, &Found { name: "t5".into(), ..Found::default() }, "");
    let mut numbers: Vec<(&str, f64)> =
        shown.published_numbers.iter().map(|p| (p.number.as_str(), p.value)).collect();
    numbers.sort_by(|a, b| a.1.total_cmp(&b.1));
    assert_eq!(numbers.len(), 26, "two rates, six tails and six medians of each class");
    assert_eq!(
        numbers[..3],
        [("goodput_gbps", 0.945), ("goodput_gbps", 4.63), ("small p50_us", 200.0)]
    );
    assert!(numbers.contains(&("large p999_us", 18_500.0)));
}

/// HPCC's scenario is the released network: 320 hosts, 20 switches above them, and 36 above these.
#[test]
fn the_fat_tree_of_hpcc_has_the_released_links() {
    let hpcc = papers().iter().find(|paper| paper.name == "hpcc").unwrap();
    let example = &hpcc.experiments[0];
    let scenario = millpond_scenario::Scenario::parse(&example.scenario, &example.text).unwrap();
    let topology = scenario.plan(Some("hpcc"), &[], None).unwrap().topology;
    let links = |rate| {
        topology
            .links
            .iter()
            .filter(|link| link.rate == millpond_core::Rate::from_gbps(rate))
            .count()
    };
    assert_eq!((topology.hosts, topology.switches.len()), (320, 56));
    assert_eq!((links(100), links(400), topology.links.len()), (320, 160, 480));
}

fn kinds(paper: &Paper) -> Kinds {
    Kinds::of(paper.claims.iter().map(|claim| claim.kind))
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// The cells of the one table in a page with this header.
fn table(page: &str, header: &str) -> Vec<Vec<String>> {
    assert_eq!(page.matches(&format!("\n{header}\n")).count(), 1, "{header}");
    let cells = |line: &str| {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()
    };
    let rows = page.lines().skip_while(|line| *line != header).skip(2);
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// Papers whose recorded run is a quick one have the outcomes in full in their analysis: each kind
/// with its number, shared out among three outcomes in full and with `--quick`.
#[test]
fn the_pages_tables_of_outcomes_count_as_the_claims_do() {
    const OUTCOMES: &str = "| kind | claims | in full: hold | fail | not evaluated | `--quick`: \
                            hold | fail | not evaluated |";
    for paper in papers().iter().filter(|p| ["presto", "canary"].contains(&p.name.as_str())) {
        let file = format!("reproduce-{}.md", paper.name);
        let rows = table(&page(&file), OUTCOMES);
        let counted: Vec<(String, usize)> =
            kinds(paper).iter().map(|(kind, n)| (kind.name().to_string(), n)).collect();
        let told = |row: &Vec<String>| (row[0].clone(), row[1].parse().unwrap());
        assert_eq!(rows.iter().map(told).collect::<Vec<(String, usize)>>(), counted, "{file}");
        for row in &rows {
            let sum = |cells: &[String]| {
                cells.iter().map(|cell| cell.parse::<usize>().unwrap_or(0)).sum::<usize>()
            };
            assert_eq!([sum(&row[2..5]), sum(&row[5..8])], [sum(&row[1..2]); 2], "{file}: {row:?}");
        }
    }
}
