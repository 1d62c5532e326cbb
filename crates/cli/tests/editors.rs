//! Editors take the schema as it is printed: taplo, which completes and checks TOML in editors,
//! accepts every shipped scenario by it and refuses wrong ones. Skipped, with a message, where
//! there is no taplo.

use crate::common::{Dir, millpond, root, succeed, text};
use millpond_worlds::needs;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The one that `make setup-test` installs, or the one of the `PATH`.
fn taplo() -> Result<PathBuf, &'static str> {
    let runs = |name: &PathBuf| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let candidates = [root().join("target/taplo/bin/taplo"), PathBuf::from("taplo")];
    candidates.into_iter().find(runs).ok_or("taplo, to check scenarios (make setup-test)")
}

/// All scenarios below a folder.
fn scenarios(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(scenarios(&path));
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Checks files by the schema that `millpond schema` prints.
fn lint(taplo: &Path, dir: &Dir, files: &[PathBuf]) -> Output {
    let schema = dir.at("millpond.schema.json");
    if !schema.exists() {
        fs::write(&schema, succeed(&mut millpond(["schema"])).stdout).unwrap();
    }
    let mut command = Command::new(taplo);
    command.args(["lint", "--colors", "never"]).args(files).current_dir(dir.path());
    command.arg("--schema").arg(format!("file://{}", schema.display())).output().unwrap()
}

#[test]
fn taplo_accepts_every_shipped_scenario() {
    let taplo = needs!(taplo());
    let dir = Dir::new("taplo");
    let files = scenarios(&root().join("scenarios"));
    assert!(files.len() > 50, "{files:?}");
    let output = lint(&taplo, &dir, &files);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found = format!("total={}", files.len());
    assert!(text(&output.stderr).contains(&found), "{}", text(&output.stderr));
}

#[test]
fn taplo_refuses_wrong_keys_kinds_and_forms() {
    let taplo = needs!(taplo());
    let dir = Dir::new("taplo-bad");
    let wrong = [
        ("key.toml", "name = \"x\"\nhosts = 3\n", "'hosts' was unexpected"),
        ("kind.toml", "[topology]\nkind = \"leaf-spin\"\n", "\"leaf-spin\" is not one of"),
        (
            "form.toml",
            "[topology]\nkind = \"single-switch\"\nhosts = \"many\"\n",
            "\"many\" is not",
        ),
    ];
    for (name, scenario, error) in wrong {
        let output = lint(&taplo, &dir, &[dir.write(name, scenario)]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {told}");
        assert!(told.contains(error) && told.contains(name), "{name}: {told}");
    }
}
