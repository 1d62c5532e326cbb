//! The rules of the house that no tool checks: the width of lines (rustfmt leaves macro bodies,
//! strings, attributes and tables as they are), that imports have no circles, and that each file of
//! tests is compiled.

mod circles;

use std::fs;
use std::path::{Path, PathBuf};

/// Columns of a line, at most.
const WIDTH: usize = 100;

/// The Rust sources below `folder`, in order, without build folders and hidden ones.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
            found.append(&mut sources(&path));
        } else if name.ends_with(".rs") && path.is_file() {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_line_is_longer_than_100_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let sources = sources(&root);
    assert!(sources.len() > 100, "{} has {} Rust sources", root.display(), sources.len());
    let mut long = String::new();
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let place = path.strip_prefix(&root).unwrap().display();
        for (line, number) in text.lines().zip(1..) {
            let columns = line.chars().count();
            if columns > WIDTH {
                long += &format!("{place}:{number}: {columns} columns\n");
            }
        }
    }
    assert!(long.is_empty(), "lines of more than {WIDTH} columns:\n{long}");
}

/// A crate without automatic test programs would leave out a file that no program names.
#[test]
fn every_file_of_tests_belongs_to_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut left_out = Vec::new();
    for entry in fs::read_dir(&root).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let Ok(mut text) = fs::read_to_string(&manifest) else { continue };
        if !text.contains("autotests = false") {
            continue;
        }
        let folder = manifest.with_file_name("tests");
        let mut files = sources(&folder);
        files.retain(|path| path.parent() == Some(&folder));
        files.iter().for_each(|path| text += &fs::read_to_string(path).unwrap());
        files.retain(|path| {
            let name = path.file_stem().unwrap().to_string_lossy();
            ![format!("tests/{name}.rs\""), format!("mod {name};")]
                .iter()
                .any(|is| text.contains(is))
        });
        left_out.extend(files);
    }
    assert_eq!(left_out, [""; 0].map(PathBuf::from), "no `mod` in a program of the crate's tests");
}

#[test]
fn imports_have_no_circles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut crates: Vec<PathBuf> =
        fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    crates.retain(|source| source.is_dir());
    crates.sort();
    assert!(crates.len() > 10, "{} has {} crates", root.display(), crates.len());
    let circles: Vec<String> = crates.iter().flat_map(|source| circles::circles(source)).collect();
    assert!(circles.is_empty(), "imports in a circle:\n{}", circles.join("\n"));
}

/// Files of `crates/*/src` whose code has an identifier that begins with `name`.
fn files_that_name(name: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let crates = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let mut found = crates.filter(|source| source.is_dir()).flat_map(|s| sources(&s)).collect();
    let names = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let mut words =
            code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        words.any(|word| word.starts_with(name))
    };
    Vec::retain(&mut found, names);
    found
}

/// CONTRIBUTING counts the files that an addition touches: of code there are two.
#[test]
fn a_path_choice_and_a_control_law_are_named_in_their_own_file_and_the_registry() {
    for name in ["LetFlow", "Drill", "Timely", "Powertcp"] {
        let files = files_that_name(name);
        assert_eq!(files.len(), 2, "{name}: {files:?}");
    }
}
