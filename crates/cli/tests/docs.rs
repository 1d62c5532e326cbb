//! Holds the book in `docs/` to the program: every mechanism has its page, links lead somewhere,
//! also into the reference that the program prints, and every command of the start and guide pages
//! works.

use crate::common::{Dir, MILLPOND};
use millpond_core::registry::Mechanism;
use millpond_scenario::catalogue::{page_name, places};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Places whose kinds are no mechanisms of the packet path; `docs/scenario.md` has them.
const IN_SCENARIO_PAGE: [&str; 2] = ["topology", "traffic"];

/// The page `reference.md` of the book.
static REFERENCE: LazyLock<String> = LazyLock::new(|| {
    let printed = Command::new(MILLPOND).arg("reference").output().unwrap();
    assert!(printed.status.success());
    String::from_utf8(printed.stdout).unwrap()
});

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    let path = repository().join("docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("docs/{name}: {e}"))
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

/// The text of a page, if it exists; the reference is what the program prints.
fn text_of(path: &Path) -> Option<String> {
    match path.ends_with("reference.md") {
        true => Some(REFERENCE.clone()),
        false => fs::read_to_string(path).ok(),
    }
}

/// mdBook builds the book from this table (`book.toml`); a page that it lacks cannot be reached.
/// `scripts/book.sh` adds the mechanisms.
#[test]
fn the_summary_lists_every_page_once() {
    let folder = repository().join("docs");
    let file = |path: PathBuf| path.strip_prefix(&folder).unwrap().display().to_string();
    let mut pages: Vec<String> = pages_below(&folder).into_iter().map(file).collect();
    pages.retain(|name| name != "SUMMARY.md" && !name.starts_with("mechanisms/"));
    pages.push("reference.md".to_string());
    let text = page("SUMMARY.md");
    assert!(text.contains(" docs/mechanisms "), "the line that scripts/book.sh replaces");
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

/// Where the reference has the keys of a kind: the anchor of its heading.
fn keys_of(place: &str, kind: &str) -> String {
    let (mut headings, mut is_there) = (BTreeMap::new(), false);
    for heading in REFERENCE.lines().filter(|line| line.starts_with('#')) {
        let id = numbered(anchor(heading.trim_start_matches('#').trim()), &mut headings);
        if heading.starts_with("## ") {
            let titles = [format!("## `{place}`: kinds"), format!("## `[{place}]`: kinds")];
            is_there = titles.iter().any(|title| title == heading);
        } else if is_there && heading == format!("### `{kind}`") {
            return id;
        }
    }
    panic!("the reference has no kind {kind} of {place}");
}

#[test]
fn pages_of_mechanisms_link_their_keys() {
    let places = places();
    let mut links = 0;
    for place in places.iter().filter(|p| !IN_SCENARIO_PAGE.contains(&p.place.path)) {
        let kinds = place.kinds.iter().filter(|kind| !kind.keys.is_empty());
        for mechanism in kinds.map(|kind| &kind.mechanism).filter(|m| m.kind != "none") {
            let name = page_name(mechanism);
            let text = page(&format!("mechanisms/{name}.md"));
            let link = format!("](../reference.md#{})", keys_of(mechanism.place, mechanism.kind));
            assert!(text.contains(&link), "docs/mechanisms/{name}.md has no link {link}");
            links += 1;
        }
    }
    assert!(links > 50, "{links} pages link their keys");
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

/// An anchor as it is where earlier headings have the same: with their number.
fn numbered(anchor: String, headings: &mut BTreeMap<String, u32>) -> String {
    let count = headings.entry(anchor.clone()).or_default();
    *count += 1;
    if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
}

/// The anchors that links to a page may name: its headings, and anchors set by hand.
fn anchors(page: &str) -> BTreeSet<String> {
    let (mut anchors, mut headings) = (BTreeSet::new(), BTreeMap::new());
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            let id = anchor(heading.trim_start_matches('#').trim());
            anchors.insert(numbered(id, &mut headings));
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
    pages.push(root.join("docs/reference.md"));
    let mut links = 0;
    for path in &pages {
        let text = text_of(path).unwrap();
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
            let text = text_of(&file);
            let is_there = text.is_some() || file.exists();
            assert!(is_there, "{}: broken link {link}", path.display());
            if !place.is_empty() && file.extension().is_some_and(|e| e == "md") {
                let text = text.unwrap();
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
        let scratch = Dir::new(&name);
        let text = fs::read_to_string(&path).unwrap();
        for (info, lines) in blocks(&text) {
            if let Some(file) = info.split_whitespace().find_map(|word| word.strip_prefix("file="))
            {
                let file = scratch.at(file);
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
                    .current_dir(scratch.path())
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
