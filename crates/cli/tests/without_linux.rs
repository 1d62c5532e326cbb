//! A build without the feature `linux`: its commands refuse, and its dependencies need no C
//! compiler.

use std::process::Command;

#[cfg(not(feature = "linux"))]
#[test]
fn linux_commands_name_the_feature_that_they_need() {
    for arguments in [
        &["limit", "show", "--json"][..],
        &["limit"],
        &["switch", "--state", "x", "apply", "a.toml"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(
            text,
            "error: this build has no Linux part; build with --features linux (it needs clang and \
             libelf)\n"
        );
    }
}

/// Crates that compile C, or of which the Linux part is made.
const LINUX: [&str; 7] =
    ["cc", "libbpf-rs", "libbpf-sys", "millpond-linux", "millpond-port", "ring", "vhost"];

#[test]
fn a_build_without_linux_needs_only_rust() {
    let crates = |features: &[&str]| -> Vec<String> {
        let mut tree = Command::new(env!("CARGO"));
        tree.args([
            "tree",
            "--locked",
            "--offline",
            "--prefix",
            "none",
            "--format",
            "{lib}",
            "--edges",
            "normal,build",
        ]);
        tree.args(["--package", "millpond-cli"]).args(features).env_remove("RUSTFLAGS");
        let output = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| line.trim_end_matches(" (*)").replace('_', "-"))
            .collect()
    };
    let found = |features: &[&str]| {
        let crates = crates(features);
        LINUX
            .into_iter()
            .filter(|name| crates.iter().any(|found| found == name))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&["--no-default-features"]), [""; 0]);
    assert_eq!(found(&["--target", "x86_64-unknown-linux-gnu"]), LINUX);
}
