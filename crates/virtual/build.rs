//! Builds the agent of hosts: a static program, since it is the only file of a guest's image.
//!
//! Invariant: its bytes depend on its sources, the compiler and the lock file alone.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Set by Cargo.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn main() {
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    for watched in ["crates/agent/src", "crates/agent/Cargo.toml"] {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let place = out.join("agent");
    let architecture = variable("CARGO_CFG_TARGET_ARCH");
    let system = variable("CARGO_CFG_TARGET_OS");
    if architecture != "x86_64" || system != "linux" {
        // No kernel runs there, either.
        std::fs::write(&place, []).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
        return;
    }
    let target = "x86_64-unknown-linux-gnu";
    let mut cargo = Command::new(variable("CARGO"));
    // The variables that Cargo has set for this build are not meant for that one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_own = name.starts_with("CARGO_") && name != "CARGO_HOME" || name.starts_with("RUST");
        if is_own && !["RUSTUP_HOME", "RUSTUP_TOOLCHAIN"].contains(&name.as_str()) {
            cargo.env_remove(name);
        }
    }
    let folder = root.canonicalize().unwrap_or(root.clone());
    let flags = [
        "-Ctarget-feature=+crt-static",
        "-Crelocation-model=static",
        "-Cpanic=abort",
        &format!("--remap-path-prefix={}=.", folder.display()),
    ];
    let done = cargo
        .args(["build", "--release", "--locked", "--package", "millpond-agent", "--bin"])
        .args(["millpond-agent", "--target", target, "--target-dir"])
        .arg(out.join("target"))
        .args(["--config", "profile.release.debug=false"])
        .args(["--config", "profile.release.strip=true"])
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .current_dir(&folder)
        .status();
    match done {
        Ok(status) if status.success() => {}
        other => panic!("the agent of world virtual does not build: {other:?}"),
    }
    let built = out.join("target").join(target).join("release/millpond-agent");
    std::fs::copy(&built, &place).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
}
