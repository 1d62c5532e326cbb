//! Holds the book in `docs/` to the program: every mechanism has its page, the reference is what
//! the program prints, and every command of the start and guide pages works.

use millpond_core::registry::Mechanism;
use millpond_scenario::catalogue::{page_name, places};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MILLPOND: &str = env!("CARGO_BIN_EXE_millpond");
/// Places whose kinds are no mechanisms of the packet path; `docs/scenario.md` has them.
const IN_SCENARIO_PAGE: [&str; 2] = ["topology", "traffic"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    let path = repository().join("docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("docs/{name}: {e}"))
}

/// A folder of a test's own, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("millpond-docs-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The mechanisms that are built; "none" is no mechanism.
fn mechanisms() -> Vec<Mechanism> {
    let kinds = places()
        .into_iter()
        .filter(|p| !IN_SCENARIO_PAGE.contains(&p.place.path))
        .flat_map(|p| p.kinds);
    kinds.map(|k| k.mechanism).filter(|mechanism| mechanism.kind != "none").collect()
}

#[test]
fn every_mechanism_has_its_page() {
    for mechanism in mechanisms() {
        let (Mechanism { place, kind, .. }, name) = (mechanism, page_name(&mechanism));
        let file = format!("mechanisms/{name}.md");
        let text = fs::read_to_string(repository().join("docs").join(&file)).unwrap_or_else(|e| {
            panic!(
                "{place} \"{kind}\" has no page docs/{file} ({e}): write one, see CONTRIBUTING.md"
            )
        });
        assert_eq!(
            text.lines().next(),
            Some(format!("# {name}").as_str()),
            "the title of docs/{file}"
        );
        let says = format!("`{place} = {{ kind = \"{kind}\" }}`");
        assert!(name == kind || text.contains(&says), "docs/{file} does not say {says}");
    }
}

/// All Markdown files below a folder.
fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(pages_below(&path));
        } else if path.extension().is_some_and(|e| e == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// mdBook builds the book from this table (`book.toml`); a page that it lacks cannot be reached.
#[test]
fn the_summary_lists_every_page_once() {
    let folder = repository().join("docs");
    let file = |path: PathBuf| path.strip_prefix(&folder).unwrap().display().to_string();
    let mut pages: Vec<String> =
        pages_below(&folder).into_iter().map(file).filter(|name| name != "SUMMARY.md").collect();
    let text = page("SUMMARY.md");
    let links = text
        .lines()
        .filter_map(|line| Some(line.split_once("](")?.1.split_once(')')?.0.to_string()));
    let mut listed: Vec<String> = links.collect();
    pages.sort();
    listed.sort();
    assert_eq!(listed, pages);
}

/// A kind that two places have is found by both together.
#[test]
fn a_kind_of_two_places_has_a_page_at_each() {
    let pages: Vec<String> =
        mechanisms().iter().filter(|m| m.kind == "red").map(page_name).collect();
    assert_eq!(pages, ["switch.marking.red", "switch.admission.red"]);
    assert!(mechanisms().iter().any(|m| page_name(m) == "wred"));
}

#[test]
fn every_key_of_a_mechanism_is_on_its_page() {
    let places = places();
    for kind in
        places.iter().filter(|p| !IN_SCENARIO_PAGE.contains(&p.place.path)).flat_map(|p| &p.kinds)
    {
        if kind.mechanism.kind != "none" {
            let name = page_name(&kind.mechanism);
            let text = page(&format!("mechanisms/{name}.md"));
            for key in &kind.keys {
                let row = format!("| `{}` |", key.name);
                assert!(text.contains(&row), "docs/mechanisms/{name}.md has no row {row}");
            }
        }
    }
}

#[test]
fn every_page_is_of_a_mechanism() {
    let names: BTreeSet<String> = mechanisms().iter().map(page_name).collect();
    for entry in fs::read_dir(repository().join("docs/mechanisms")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let page = name.strip_suffix(".md").unwrap_or(&name);
        assert!(names.contains(page), "docs/mechanisms/{name} is of no mechanism that is built");
    }
}

#[test]
fn the_scenario_page_has_every_topology_and_traffic() {
    let text = page("scenario.md");
    for place in places().into_iter().filter(|p| IN_SCENARIO_PAGE.contains(&p.place.path)) {
        for kind in place.kinds {
            let name = format!("`{}`", kind.mechanism.kind);
            assert!(text.contains(&name), "docs/scenario.md lacks {} {name}", place.place.path);
        }
    }
}

#[test]
fn the_reference_is_what_the_program_prints() {
    let printed = Command::new(MILLPOND).arg("reference").output().unwrap();
    assert!(printed.status.success());
    let printed = String::from_utf8(printed.stdout).unwrap();
    let written = page("reference.md");
    let differ = written.lines().zip(printed.lines()).position(|(a, b)| a != b);
    let line = differ.unwrap_or(written.lines().count().min(printed.lines().count())) + 1;
    assert!(
        written == printed,
        "docs/reference.md is not what the program prints, from line {line} on; write it anew:\n  \
         cargo run --release -p millpond-cli -- reference > docs/reference.md"
    );
}

/// Where a heading's link leads, as Markdown's renderers form it.
fn anchor(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    // A heading's own links count by their names.
    while let Some((before, link)) = rest.split_once("](") {
        text.push_str(before);
        rest = link.split_once(')').map_or("", |(_, behind)| behind);
    }
    text.push_str(rest);
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    text.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The anchors that links to a page may name: its headings, and anchors set by hand.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            anchors.insert(anchor(heading.trim_start_matches('#').trim()));
        }
        if let Some((_, id)) = line.split_once("<a id=\"") {
            anchors.extend(id.split_once('"').map(|(id, _)| id.to_string()));
        }
    }
    anchors
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = repository();
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .iter()
        .map(|name| root.join(name))
        .collect();
    pages.extend(["docs", "notes"].iter().flat_map(|folder| pages_below(&root.join(folder))));
    let mut links = 0;
    for path in &pages {
        let text = fs::read_to_string(path).unwrap();
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let named = text.lines().filter_map(|line| Some(line.split_once("]: ")?.1.trim()));
        let named = named.filter(|target| !target.contains(' '));
        for link in inline.chain(named) {
            if link.contains("://") {
                continue;
            }
            links += 1;
            let (target, place) = link.split_once('#').unwrap_or((link, ""));
            let file = if target.is_empty() { path.clone() } else { path.with_file_name(target) };
            assert!(file.exists(), "{}: broken link {link}", path.display());
            if !place.is_empty() && file.extension().is_some_and(|e| e == "md") {
                let text = fs::read_to_string(&file).unwrap();
                assert!(
                    anchors(&text).contains(place),
                    "{}: {link} names no heading",
                    path.display()
                );
            }
        }
    }
    assert!(links > 500, "only {links} links were found");
}

/// Lines of a page that are neither a table, a heading nor code, with their numbers.
fn prose(page: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut is_code = false;
    for (number, line) in page.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_set_apart = is_code || is_fence || line.trim_start().starts_with(['|', '#']);
        lines.push((number + 1, if is_set_apart { "" } else { line }));
    }
    lines
}

/// The style of prose, as far as it can be counted, on all pages but those of papers and the
/// reference that the program prints.
#[test]
fn prose_names_its_subjects_within_100_columns() {
    let root = repository();
    let mut pages = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    pages.push(root.join("CONTRIBUTING.md"));
    pages.extend(["docs", "notes"].iter().flat_map(|folder| pages_below(&root.join(folder))));
    let mut faults = Vec::new();
    for path in &pages {
        let name = path.file_name().unwrap().to_string_lossy();
        if name == "reference.md" || name.starts_with("reproduce") {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let mut before = "";
        for (number, line) in prose(&text) {
            let at = || format!("{}:{number}", path.display());
            if line.chars().count() > 100 {
                faults.push(format!("{}: more than 100 columns", at()));
            }
            let ends = before.is_empty() || before.ends_with(['.', '!', '?']);
            let start = line.trim_start_matches([' ', '-', '*']);
            let first = (ends || start.len() < line.len()).then_some(start);
            let sentences = first.into_iter().chain(line.split(". ").skip(1));
            for sentence in sentences.map(|s| s.trim_start_matches(['*', '_'])) {
                let word = sentence.split(' ').next().unwrap_or_default();
                if ["What", "Who", "That", "Which"].contains(&word) && !sentence.contains('?') {
                    faults.push(format!("{}: a sentence begins with {word}", at()));
                }
            }
            before = line.trim_end();
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// README repeats the counts of the papers' generated pages.
#[test]
fn readme_has_the_counts_of_the_papers_pages() {
    let root = repository();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for paper in ["presto", "tlt", "canary", "nrm", "backdraft"] {
        let page = fs::read_to_string(root.join("papers").join(paper).join("page.md")).unwrap();
        let (counts, _) = page.split_once(" fail. ").expect("the page begins with its counts");
        let counts = counts.rsplit('\n').next().unwrap().replace(" claims", "");
        assert!(readme.contains(&format!("[{counts} fail]")), "README on {paper}: {counts} fail");
    }
}

/// Each figure of `docs/enable` has a scenario and the command that makes it again: no page names a
/// scenario that is not there, and no scenario lacks a page.
#[test]
fn pages_of_enable_name_the_commands_of_their_figures() {
    const COMMAND: &str = "millpond compare scenarios/enable/";
    let mut named = BTreeSet::new();
    for entry in fs::read_dir(repository().join("docs/enable")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let at = path.display();
        assert!(text.len() <= 6_000, "{at}: {} bytes, at most 6,000", text.len());
        for (line, number) in text.lines().zip(1..) {
            assert!(line.chars().count() <= 100, "{at}:{number}: more than 100 columns");
        }
        let commands: Vec<&str> = text.split(COMMAND).skip(1).collect();
        assert!(!commands.is_empty(), "{at}: no command");
        for command in commands {
            let (name, rest) = command.split_once(".toml --seeds ").unwrap_or((command, ""));
            let seeds: String = rest.chars().take_while(char::is_ascii_digit).collect();
            assert!(seeds.parse::<u32>().is_ok_and(|n| n >= 6), "{at}: seeds of {name}");
            let file = repository().join(format!("scenarios/enable/{name}.toml"));
            let scenario =
                fs::read_to_string(&file).unwrap_or_else(|e| panic!("{at}: {name}: {e}"));
            let line = format!("{COMMAND}{name}.toml --seeds {seeds}\n");
            assert!(scenario.contains(&line), "{}: its head has not {line}", file.display());
            named.insert(format!("{name}.toml"));
        }
    }
    let files = fs::read_dir(repository().join("scenarios/enable")).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(named, files.collect::<BTreeSet<String>>());
}

/// The fenced blocks of a page: what follows the opening fence, and the lines.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(info) => {
                open = !open;
                if open {
                    blocks.push((info.trim(), Vec::new()));
                }
            }
            None if open => blocks.last_mut().expect("a block is open").1.push(line),
            None => {}
        }
    }
    assert!(!open, "a fence is not closed");
    blocks
}

/// Follows the start and guide pages, each in a folder of its own: writes the files that a page
/// asks to save (`file=NAME` beside the fence), and runs the commands (`$ …` in a `console` block)
/// one after the other.
#[cfg(unix)]
#[test]
fn every_command_of_the_start_and_guide_pages_works() {
    let docs = repository().join("docs");
    let pages = ["start", "guides"].iter().flat_map(|folder| pages_below(&docs.join(folder)));
    // The pages call the program by its name.
    let folder = Path::new(MILLPOND).parent().map(Path::to_path_buf);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let programs =
        std::env::join_paths(folder.into_iter().chain(std::env::split_paths(&others))).unwrap();
    let mut commands = 0;
    for path in pages {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let scratch = Scratch::new(&name);
        let text = fs::read_to_string(&path).unwrap();
        for (info, lines) in blocks(&text) {
            if let Some(file) = info.split_whitespace().find_map(|word| word.strip_prefix("file="))
            {
                let file = scratch.0.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, lines.join("\n") + "\n").unwrap();
            }
            if info != "console" {
                continue;
            }
            for command in lines.iter().filter_map(|line| line.strip_prefix("$ ")) {
                let done = Command::new("sh")
                    .args(["-c", command])
                    .env("PATH", &programs)
                    .current_dir(&scratch.0)
                    .output()
                    .unwrap();
                let errors = String::from_utf8_lossy(&done.stderr);
                assert!(
                    done.status.success(),
                    "{}: `{command}` failed ({}): {errors}",
                    path.display(),
                    done.status
                );
                commands += 1;
            }
        }
    }
    assert!(commands >= 20, "only {commands} commands were found");
}

/// The table of parameters that the reference has for a kind, if it has keys.
fn parameters(reference: &str, place: &str, kind: &str) -> Option<String> {
    let place = [format!("## `{place}`: kinds\n"), format!("## `[{place}]`: kinds\n")]
        .iter()
        .find_map(|heading| Some(reference.split_once(heading)?.1.to_string()))?;
    let place = place.split("\n## ").next()?;
    let kind = place.split_once(&format!("### `{kind}`\n"))?.1.split("\n### ").next()?;
    let rows: Vec<&str> = kind.lines().filter(|line| line.starts_with('|')).collect();
    (!rows.is_empty()).then(|| rows.join("\n"))
}

/// The place and the kind that a mechanism's page is of, by its first line of code.
fn place_of<'a>(page: &'a str, name: &'a str) -> (&'a str, &'a str) {
    let code = page.split('`').nth(1).unwrap_or_default();
    let kind = code.split('"').nth(1).unwrap_or(name);
    match code.split_once(" = ").map(|(key, _)| key) {
        Some(key) => (key.strip_suffix(".kind").unwrap_or(key), kind),
        None => ("limit", kind),
    }
}

/// Tables of parameters are those of the reference, which the code's declarations give.
/// `MILLPOND_BLESS=1` writes them.
#[test]
fn tables_of_parameters_are_what_the_code_declares() {
    let reference = page("reference.md");
    let mut tables = 0;
    for entry in fs::read_dir(repository().join("docs/mechanisms")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (place, kind) = place_of(&text, &name);
        let Some(table) = parameters(&reference, place, kind) else { continue };
        let (before, section) = text.split_once("## Parameters\n").unwrap();
        let (section, after) = section.split_once("\n## ").unwrap_or((section, ""));
        let is_row = |line: &&str| line.starts_with('|');
        let written: Vec<&str> = section.lines().filter(is_row).collect();
        tables += 1;
        if written.join("\n") == table {
            continue;
        }
        assert!(
            std::env::var_os("MILLPOND_BLESS").is_some(),
            "{}: its parameters are not what `millpond reference` prints of {place} {kind}",
            path.display()
        );
        let head: Vec<&str> = section.lines().take_while(|line| !is_row(line)).collect();
        let rest = section.lines().skip(head.len()).filter(|line| !is_row(line));
        let rest = rest.collect::<Vec<_>>().join("\n");
        let section = [head.join("\n").trim(), &table, rest.trim()].join("\n\n");
        let section = format!("\n{}\n", section.trim());
        let after = if after.is_empty() { String::new() } else { format!("\n## {after}") };
        fs::write(&path, format!("{before}## Parameters\n{section}{after}")).unwrap();
    }
    assert!(tables > 50, "{tables} pages have a table of parameters");
}
