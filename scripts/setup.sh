#!/usr/bin/env bash
# Installs what building needs and this machine lacks, and says so, one line each; silent where nothing is missing.
#   scripts/setup.sh            Rust (the version in rust-toolchain.toml), a C compiler, and clang and libelf for eBPF
#   scripts/setup.sh --sim      Rust and a C compiler, which links: all that a build without the Linux part needs
#   scripts/setup.sh --test     and what some tests use: Chromium, tshark, iperf3, taplo; without, they are skipped
#   scripts/setup.sh --python   Rust, a C compiler, and an environment of Python (target/python) for the package's tests; without
#                               Python 3.9 and its module venv they are skipped
#   scripts/setup.sh --musl     Rust, a C compiler, and Rust's library for static programs
#   scripts/setup.sh --dist     and llvm-profdata, which makes the profile of `make dist`; without, it builds without a profile
#   scripts/setup.sh --deb      and what packs a program for Debian: dpkg-dev, binutils, python3
#   scripts/setup.sh --book     Rust, a C compiler, and mdBook (into target/tools)
#   scripts/setup.sh --gate     and valgrind, which counts instructions
#   scripts/setup.sh --bench    and python3, valgrind and ns-3; without ns-3 or valgrind the benchmarks skip that part
#   scripts/setup.sh --fuzz     and what fuzzing needs: a C++ compiler, Rust's nightly, cargo-fuzz
#   scripts/setup.sh --limit    and what the rig of bandwidth limits needs: python3, iproute2, bpftool; without bpftool no cost a packet
#   scripts/setup.sh --virtual  and the kernel of the world `virtual` (some minutes, once); on another architecture than x86_64, or
#                               without its source, that world's tests are skipped
# Works as root or with sudo. What the installers print goes to target/setup.log.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=target/setup.log
rust_host=https://static.rust-lang.org
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

say() { echo "setup: $*" >&2; }
fail() {
    say "$*"
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
logged() {
    mkdir -p target
    "$@" >>"$log" 2>&1
}

as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        logged "$@"
    else
        # Where a terminal is there, sudo may ask for the password on it.
        logged sudo "$@"
    fi
}

# install_packages WHAT PACKAGE…: with the system's package manager; false if that did not work.
install_packages() {
    local what=$1
    shift
    if ! have apt-get; then
        say "$what is missing and there is no apt-get: install it with your package manager (Debian: $*)"
        return 1
    fi
    if [[ $(id -u) -ne 0 ]] && ! have sudo; then
        say "$what is missing: run as root, or: apt-get install $*"
        return 1
    fi
    say "installing $what ($*)"
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends)
    as_root "${apt[@]}" install "$@" && return
    # The list of packages may be absent or old.
    if as_root "${apt[@]}" update && as_root "${apt[@]}" install "$@"; then
        return
    fi
    say "apt-get could not install $*; see $log"
    return 1
}

fetch() {
    if have curl; then
        curl --proto '=https' --tlsv1.2 -sSf --retry 3 -o "$2" "$1" 2>>"$log"
    else
        wget -q -O "$2" "$1" 2>>"$log"
    fi
}

install_rustup() {
    local channel=$1 triple dir
    case $(uname -m) in
    x86_64) triple=x86_64-unknown-linux-gnu ;;
    aarch64 | arm64) triple=aarch64-unknown-linux-gnu ;;
    *) fail "no Rust installer is known for $(uname -m): install Rust $channel by hand (https://rustup.rs)" ;;
    esac
    have curl || have wget || install_packages "curl" curl ca-certificates || exit 1
    say "installing Rust $channel from $rust_host"
    mkdir -p target
    dir=$(mktemp -d)
    # shellcheck disable=SC2064  # the folder of now
    trap "rm -rf '$dir'" EXIT
    if ! fetch "$rust_host/rustup/dist/$triple/rustup-init" "$dir/rustup-init" ||
        ! fetch "$rust_host/rustup/dist/$triple/rustup-init.sha256" "$dir/sum"; then
        fail "could not download the Rust installer from $rust_host; see $log"
    fi
    if [[ $(cut -d' ' -f1 "$dir/sum") != $(sha256sum "$dir/rustup-init" | cut -d' ' -f1) ]]; then
        fail "the Rust installer's checksum is wrong: not run"
    fi
    chmod +x "$dir/rustup-init"
    # A Rust without rustup may be there already, and too old.
    logged env RUSTUP_INIT_SKIP_PATH_CHECK=yes "$dir/rustup-init" -y --no-modify-path --profile minimal \
        --default-toolchain "$channel" --component rustfmt --component clippy || fail "the Rust installer failed; see $log"
}

# Whether version $1 is at least version $2.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

need_rust() {
    local channel present
    channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
    if have rustup; then
        if ! rustup toolchain list 2>/dev/null | grep -q "^$channel-"; then
            say "installing Rust $channel from $rust_host"
            logged rustup toolchain install "$channel" --profile minimal --component rustfmt --component clippy \
                --no-self-update || fail "rustup could not install Rust $channel; see $log"
        fi
    elif have cargo && have rustc; then
        present=$(rustc --version | cut -d' ' -f2)
        at_least "$present" "$channel" || install_rustup "$channel"
    else
        install_rustup "$channel"
    fi
}

bench=false
book=false
deb=false
dist=false
fuzz=false
gate=false
limit=false
musl=false
virtual=false
linux=true
python=false
test=false
for option in "$@"; do
    case $option in
    --bench) bench=true ;;
    --book) book=true linux=false ;;
    --deb) deb=true ;;
    --dist) dist=true ;;
    --fuzz) fuzz=true ;;
    --gate) gate=true ;;
    --limit) limit=true ;;
    --virtual) virtual=true ;;
    --musl) musl=true linux=false ;;
    --python) python=true linux=false ;;
    --sim) linux=false ;;
    --test) test=true ;;
    *) fail "unknown option $option: --sim, --test, --dist, --deb, --book, --musl, --python, --gate, --bench, --fuzz, --limit or --virtual" ;;
    esac
done

have cc || install_packages "a C compiler" gcc libc6-dev || exit 1
# The eBPF programs of `millpond limit`, and what libbpf is built with.
if $linux; then
    have clang || install_packages "clang, for eBPF" clang || exit 1
    if ! have pkg-config || ! pkg-config --exists libelf zlib; then
        install_packages "what libbpf needs" make pkg-config libelf-dev zlib1g-dev || exit 1
    fi
fi
need_rust
if $test; then
    have chromium || install_packages "Chromium" chromium || say "without Chromium: the test that opens a report is skipped"
    have iperf3 || install_packages "iperf3" iperf3 || say "without iperf3: the test of limits in a real kernel is skipped"
    have tshark || install_packages "tshark" tshark || say "without tshark: the test that reads captures is skipped"
    python3 -c 'import yaml' 2>/dev/null || install_packages "Python's YAML" python3 python3-yaml ||
        say "without Python's YAML: the test that reads action.yml is skipped"
    if ! have taplo && ! [[ -x target/taplo/bin/taplo ]]; then
        say "installing taplo into target/taplo"
        { logged python3 -m venv target/taplo && logged target/taplo/bin/pip install "taplo==0.9.3"; } ||
            say "without taplo: the test of the schema for editors is skipped; see $log"
    fi
fi
# Packages that a test needs for itself may be missing: that test is skipped.
python_packages() {
    local pip=target/python/bin/pip package
    [[ -x $pip ]] || logged python3 -m venv target/python || return 1
    if ! [[ -x target/python/bin/maturin && -x target/python/bin/pytest ]]; then
        say "installing maturin and pytest into target/python"
        logged "$pip" install "maturin>=1.9,<2" "pytest>=7" || return 1
    fi
    for package in matplotlib tqdm polars pyarrow pandas duckdb nbclient ipykernel ray; do
        [[ -d $(echo target/python/lib/python3*/site-packages)/$package ]] && continue
        logged "$pip" install "$package" || say "without $package: tests that use it are skipped"
    done
}
if $python; then
    have python3 || install_packages "Python" python3 python3-venv || true
    if ! python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        say "without Python 3.9 and its module venv: the tests of the Python package are skipped"
    elif ! python_packages; then
        say "without maturin and pytest: the tests of the Python package are skipped; see $log"
        rm -f target/python/bin/maturin
    fi
fi
if $musl; then
    have python3 || install_packages "python3" python3 || exit 1
    target=$(uname -m)-unknown-linux-musl
    if ! [[ -d $(rustc --print sysroot)/lib/rustlib/$target ]]; then
        say "installing Rust's library for $target from $rust_host"
        { have rustup && logged rustup target add "$target"; } ||
            say "without Rust's library for $target: glibc is linked statically; see $log"
    fi
fi
if $dist && ! scripts/profdata.sh >/dev/null; then
    llvm=$(scripts/profdata.sh --major)
    say "installing llvm-profdata of LLVM $llvm"
    { have rustup && logged rustup component add llvm-tools; } ||
        install_packages "llvm-profdata" "llvm-$llvm" ||
        say "without llvm-profdata: the program is built without a profile"
fi
if $deb; then
    have dpkg-shlibdeps || install_packages "dpkg-shlibdeps" dpkg-dev || exit 1
    have strip || install_packages "strip" binutils || exit 1
    have python3 || install_packages "python3" python3 || exit 1
    have git || install_packages "git" git || exit 1
fi
if $book && ! [[ -x target/tools/bin/mdbook ]]; then
    say "installing mdBook"
    # Unoptimised it is built in a third of the time, and the book takes it seconds.
    CARGO_PROFILE_DEV_DEBUG=0 logged cargo install mdbook --version 0.4.52 --debug --locked \
        --no-default-features --root target/tools ||
        fail "cargo could not install mdBook; see $log"
fi
if $gate; then
    have valgrind || install_packages "valgrind" valgrind || exit 1
fi
if $bench; then
    have python3 || install_packages "python3" python3 || exit 1
    have valgrind || install_packages "valgrind" valgrind || say "without valgrind: instructions are not counted"
    have g++ || install_packages "a C++ compiler" g++ || true
    if ! echo '#include "ns3/core-module.h"' | g++ -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
        install_packages "ns-3" libns3-dev || say "without ns-3: its column stays empty"
    fi
fi
if $fuzz; then
    have g++ || install_packages "a C++ compiler, for libFuzzer" g++ || exit 1
    if ! rustup toolchain list 2>/dev/null | grep -q '^nightly-'; then
        say "installing Rust's nightly from $rust_host"
        logged rustup toolchain install nightly --profile minimal --no-self-update || fail "rustup could not; see $log"
    fi
    if ! cargo fuzz --version >/dev/null 2>&1; then
        say "installing cargo-fuzz"
        logged cargo install cargo-fuzz --locked || fail "cargo could not install cargo-fuzz; see $log"
    fi
fi
if $limit; then
    # ip, tc and bpftool are where a user's PATH does not look.
    export PATH="$PATH:/usr/sbin:/sbin"
    have python3 || install_packages "python3" python3 || exit 1
    if ! have ip || ! have tc; then install_packages "ip and tc" iproute2 || exit 1; fi
    have nsenter || install_packages "nsenter" util-linux || exit 1
    have bpftool || install_packages "bpftool" bpftool || say "without bpftool: the cost a packet is not measured"
fi
if $virtual && [[ $(uname -m) == x86_64 ]]; then
    have python3 || install_packages "python3" python3 || say "without python3: no figures of world virtual"
    have iperf3 || install_packages "iperf3" iperf3 || say "without iperf3: no figures of limits in real kernels"
    packages=()
    [[ -f /usr/src/${MILLPOND_KERNEL_SOURCE:-linux-source-6.12}.tar.xz ]] || packages+=("${MILLPOND_KERNEL_SOURCE:-linux-source-6.12}")
    have flex || packages+=(flex)
    have bison || packages+=(bison)
    have bc || packages+=(bc)
    have pahole || packages+=(dwarves)
    have xz || packages+=(xz-utils)
    have make || packages+=(make)
    [[ ${#packages[@]} -eq 0 ]] || install_packages "what the kernel of the world virtual is built with" "${packages[@]}" || true
    scripts/kernel.sh || say "without that kernel: the world virtual does not run, and its tests are skipped"
fi
