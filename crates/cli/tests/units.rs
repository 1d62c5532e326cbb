//! The units of systemd in `packaging`.

#![cfg(all(feature = "linux", target_os = "linux"))]

use crate::common::{Dir, MILLPOND};
use millpond_worlds::needs;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const INSTALLED: &str = "/usr/local/bin/millpond";

fn units() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn commands_of_units_are_known() {
    let units = units();
    assert_eq!(units.len(), 2);
    for unit in units {
        let text = fs::read_to_string(unit).unwrap().replace("\\\n    ", "");
        for line in text.lines().filter(|line| line.starts_with("Exec")) {
            let (_, command) = line.split_once(&format!("{INSTALLED} ")).unwrap();
            let out = Command::new(MILLPOND).args(command.split(' ')).arg("--help").output();
            let out = out.unwrap();
            assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
}

#[test]
fn units_are_as_systemd_wants_them() {
    let dir = Dir::new("units");
    for unit in units() {
        let text = fs::read_to_string(&unit).unwrap();
        let path = dir.path().join(unit.file_name().unwrap());
        fs::write(&path, text.replace(INSTALLED, MILLPOND)).unwrap();
        let out = Command::new("systemd-analyze").arg("verify").arg(&path).output();
        let out = needs!(out.map_err(|e| format!("systemd-analyze: {e}")));
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{told}");
        // A key that it does not know is no failure there.
        assert!(!told.contains(unit.file_name().unwrap().to_str().unwrap()), "{told}");
    }
}
