//! `millpond switch` as a user meets it, as far as that needs no root; `crates/linux/tests/switch.rs` has the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn millpond(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).output().unwrap()
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// A folder of a test's own, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("millpond-switch-cli-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_wrong_file_is_told_with_its_place() {
    let scratch = Scratch::new("wrong");
    let file = scratch.file("a.toml", "[[port]]\nname = \"a\"\nmtu = 1500\nadresses = [\"10.0.0.1/24\"]\n");
    let state = scratch.0.join("state");
    let output = millpond(&["switch", "--state", state.to_str().unwrap(), "apply", &file]);
    assert_eq!(output.status.code(), Some(2));
    let text = said(&output.stderr);
    assert!(text.contains("adresses") && text.contains("a.toml:4:1") && text.contains("addresses"), "{text}");
    assert!(!state.exists(), "nothing was touched");
    let missing = millpond(&["switch", "apply", "no-such-file.toml"]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn without_a_switch_there_is_nothing_to_show_or_remove() {
    let scratch = Scratch::new("none");
    let state = scratch.0.join("state");
    let state = state.to_str().unwrap();
    let output = millpond(&["switch", "--state", state, "show"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output.stderr).contains("no switch is running"), "{}", said(&output.stderr));
    let output = millpond(&["switch", "--state", state, "remove", "--all"]);
    assert!(output.status.success() && said(&output.stdout).contains("no switch is here"));
    assert_eq!(millpond(&["switch", "remove"]).status.code(), Some(2));
}

#[test]
fn the_demo_refuses_what_makes_no_sense() {
    for (args, what) in [
        (&["--pacing", "fast"][..], "--pacing fast"),
        (&["--rate", "0bps"], "no rate"),
        (&["--arms", "magic"], "magic"),
        (&["--paths", "0"], "0"),
        (&["--rack", "maybe"], "maybe"),
    ] {
        let output = millpond(&[&["switch", "demo", "presto"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(said(&output.stderr).contains(what), "{}", said(&output.stderr));
    }
}

/// Every file that the book shows has no errors.
#[test]
fn the_books_examples_are_right() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/switch.md");
    let page = fs::read_to_string(page).unwrap();
    let scratch = Scratch::new("book");
    let here = page.split("<<'END_OF_FILE'\n").skip(1).filter_map(|rest| rest.split("END_OF_FILE\n").next());
    let fenced = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for text in here.chain(fenced) {
        let file = scratch.file("book.toml", text);
        let output = millpond(&["switch", "apply", "--dry-run", &file]);
        assert!(output.status.success(), "{text}\n{}", said(&output.stderr));
        count += 1;
    }
    assert_eq!(count, 5);
}
