#!/usr/bin/env bash
# Builds the fastest millpond, target/fast/millpond: optimised at link time, and by a profile of short runs of this tree's
# own scenarios. Its results are the same to the byte; it takes some ten minutes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

profiles=$PWD/target/fast/profiles
merged=$PWD/target/fast/millpond.profdata
sysroot=$(rustc --print sysroot)
profdata=$(find "$sysroot/lib/rustlib" -name llvm-profdata -type f | head -n 1)
if [[ -z $profdata ]]; then
    echo "fast: llvm-profdata is missing: scripts/setup.sh --fast installs it" >&2
    exit 1
fi
# The host's triple is named so that build scripts and procedural macros stay as they are.
triple=$(rustc --version --verbose | sed -n 's/^host: //p')

echo "fast: building the program that profiles itself" >&2
rm -rf "$profiles"
RUSTFLAGS="-Cprofile-generate=$profiles" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    cargo build --release --locked -p millpond-cli --target "$triple" --target-dir target/fast/profiled
program=target/fast/profiled/$triple/release/millpond

# train SCENARIO [OPTION…]: one short run.
train() {
    echo "fast: profiling $*" >&2
    "$program" run "$@" --seed 1 --threads 1 --quiet --out target/fast/run --force >target/fast/run.log 2>&1 ||
        { cat target/fast/run.log >&2 && return 1; }
}
train benches/scenarios/ls128.toml --set traffic.stride.size=1MB
train benches/scenarios/ft1024.toml --set traffic.stride.size=200KB
train benches/scenarios/hard320.toml --set duration=3ms
for variant in dctcp tlt; do
    train benches/scenarios/tlt96.toml --variant "$variant" --set duration=5ms
done
for variant in ecmp aifo dibs canary vertigo; do
    train scenarios/papers/canary/leaf-spine-10g.toml --variant "$variant" --set duration=10ms \
        --set traffic.background.stop=10ms --set traffic.incast.stop=10ms
done
"$profdata" merge -o "$merged" "$profiles"

echo "fast: building with what was learned" >&2
# What changed since is built without a profile, and that is no fault.
RUSTFLAGS="-Cprofile-use=$merged" \
    cargo build --release --locked -p millpond-cli --target "$triple" --target-dir target/fast/built
cp "target/fast/built/$triple/release/millpond" target/fast/millpond
echo "fast: target/fast/millpond" >&2
