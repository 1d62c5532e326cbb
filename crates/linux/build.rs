//! Compiles the eBPF programs, and for the tests the decision natively.
//!
//! The objects are part of the library, so that the finished command needs no compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: &[&str] =
    &["limit", "heed", "kick", "pace", "congestion", "foreign", "dctcp", "trial"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // The headers of the libbpf that is linked.
    let include = std::env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_string());
    for name in PROGRAMS {
        compile(&clang, &include, Path::new("bpf"), name, &out);
    }
    // Linked by the test alone that compares both.
    cc::Build::new().file("bpf/native.c").cargo_metadata(false).compile("millpond_native");
    println!("cargo:rustc-link-search=native={}", out.display());
}

fn compile(clang: &str, include: &str, sources: &Path, name: &str, out: &Path) {
    let object = out.join(format!("{name}.bpf.o"));
    // Paths of the machine that builds have no place in what it builds.
    let here = std::env::current_dir().expect("the crate's folder");
    let done = Command::new(clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-fno-ident"])
        .arg(format!("-fdebug-prefix-map={}=.", here.display()))
        .arg(format!("-fdebug-prefix-map={include}=include"))
        .arg(format!("-I{include}"))
        .arg("-c")
        .arg(sources.join(format!("{name}.bpf.c")))
        .arg("-o")
        .arg(&object)
        .output();
    match done {
        Ok(done) if done.status.success() => {}
        Ok(done) => panic!(
            "{clang} could not compile {name}.bpf.c:\n{}",
            String::from_utf8_lossy(&done.stderr)
        ),
        Err(error) => panic!(
            "the eBPF programs need clang, and {clang:?} does not run ({error}): install clang 14 \
             or later (Debian: apt-get install clang libelf-dev zlib1g-dev pkg-config), or name \
             it in CLANG"
        ),
    }
}
