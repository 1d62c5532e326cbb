#!/usr/bin/env bash
# Builds the program as it is shipped, target/dist/millpond: link-time optimisation, and
# optimisation by a profile of short runs of every family of mechanisms.
#   scripts/dist.sh            makes the profile if there is none, and builds with it; without
#                              llvm-profdata it warns and builds without a profile
#   scripts/dist.sh --profile  makes the profile anew and stops: target/pgo/millpond.profdata
#   scripts/dist.sh --plain    builds without a profile
# PROFILE names another profile, such as one that a package pins. Arguments after `--` go to cargo
# (`-- --no-default-features`).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

mode=build
case ${1:-} in
--profile | --plain)
    mode=${1#--}
    shift
    ;;
esac
[[ ${1:-} == -- ]] && shift
if [[ ${1:-} == --* && ${1:-} != --no-default-features && ${1:-} != --features* ]]; then
    echo "dist: unknown option $1 (known: --profile, --plain)" >&2
    exit 2
fi

work=target/pgo
profile=${PROFILE:-$PWD/$work/millpond.profdata}
host=$(rustc -vV | sed -n 's/^host: //p')
# A relative path in flags would be read from each crate's folder.
[[ $profile == /* ]] || profile=$PWD/$profile

# build DIRECTORY FLAGS [ARGUMENT…]: builds for this machine's target by name, so that the flags
# reach the program and neither build scripts nor macros.
build() {
    local directory=$1 flags=$2
    shift 2
    RUSTFLAGS="${RUSTFLAGS:-} $flags" cargo build --profile dist --locked -p millpond-cli \
        --target "$host" --target-dir "$directory" "$@"
}

# Short runs of each family, one thread each: counters of several threads would lose counts.
exercise() {
    local millpond=$1 out=$work/run
    run() { "$millpond" run "benches/scenarios/$1.toml" "${@:2}" --threads 1 --quiet --out "$out" \
        --force >/dev/null; }
    compare() { "$millpond" compare "scenarios/$1.toml" --seeds 1 --threads 1 --quiet \
        --out "$out" --force >/dev/null; }
    # Long flows, fast ports: these are most of what users run, and weigh most.
    run ls128 --set traffic.stride.size=2MB
    run ls128 --set traffic.stride.size=1MB --set switch.path.kind=ecmp
    run ft128 --set traffic.stride.size=1MB
    run ft1024 --set traffic.stride.size=146000B
    # Queue pairs, general ports, shared memory, deflection, importance.
    run ls128 --set traffic.stride.size=1MB --set transport.kind=hpcc
    run ls128 --set traffic.stride.size=1MB --set transport.kind=dcqcn
    run hard320 --set duration=3ms
    run hard320 --set duration=3ms --set engine.ports=auto
    for variant in ecmp canary vertigo; do
        run canary320 --set duration=3ms --variant $variant
    done
    run tlt96 --set duration=3ms
    # And each family's own scenario.
    for scenario in deflection rdma lossless homa mptcp edge path-choice limit virtual-switch bfc \
        swift-incast ordering hedera admission rpc plb; do
        compare $scenario
    done
}

make_profile() {
    local tool raw=$PWD/$work/raw
    tool=$(scripts/profdata.sh)
    rm -rf "$raw"
    mkdir -p "$raw"
    build "$work/instrumented" "-Cprofile-generate=$raw" "$@"
    # One file for all runs, which add to it.
    LLVM_PROFILE_FILE=$raw/%m.profraw exercise "$work/instrumented/$host/dist/millpond"
    "$tool" merge --output="$work/millpond.profdata" "$raw"/*.profraw
    rm -rf "$raw" "$work/run"
}

if [[ -n ${PROFILE:-} && $mode == build && ! -f $profile ]]; then
    echo "dist: there is no profile $PROFILE" >&2
    exit 2
fi
if [[ $mode == profile || ($mode == build && ! -f $profile) ]] && ! scripts/profdata.sh >/dev/null; then
    major=$(scripts/profdata.sh --major)
    echo "dist: llvm-profdata of LLVM $major is missing: rustup component add llvm-tools," \
        "or your distribution's package llvm-$major" >&2
    [[ $mode == build ]] || exit 2
    echo "dist: building without a profile: the same results, about a tenth slower" >&2
    mode=plain
fi

case $mode in
plain)
    cargo build --profile dist --locked -p millpond-cli "$@"
    ;;
profile)
    make_profile "$@"
    ls -l "$work/millpond.profdata"
    exit
    ;;
build)
    [[ -f $profile ]] || make_profile "$@"
    build target "-Cprofile-use=$profile" "$@"
    mkdir -p target/dist
    cp "target/$host/dist/millpond" target/dist/millpond
    ;;
esac
ls -l target/dist/millpond
