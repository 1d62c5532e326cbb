#!/usr/bin/env bash
# What a virtual switch at every host costs: instructions of scenarios/microburst.toml over 6 ms, by valgrind, with each kind and
# an application that costs nothing, beside hosts without. A minute. Without valgrind it prints "skipped" and succeeds. MILLPOND
# names another binary (then nothing is built).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

if ! command -v valgrind >/dev/null; then
    echo "skipped: valgrind is not installed (apt-get install valgrind)" >&2
    exit 0
fi
millpond=${MILLPOND:-target/release/millpond}
[[ -n ${MILLPOND:-} ]] || cargo build --quiet --release --locked -p millpond-cli
out=target/bench/virtual-switch
mkdir -p "$out"

# count KIND [KEY=VALUE…]: the instructions of a run with this kind of switch.
count() {
    local kind=$1 sets=()
    shift
    {
        cat scenarios/microburst.toml
        [[ $kind == none ]] || printf '[edge]\nvirtual-switch = { kind = "%s" }\n[[application]]\nname = "all"\nwork = "0ns"\n' "$kind"
        [[ $kind == none ]] || printf 'traffic = ["background", "queries"]\n'
    } >"$out/$kind.toml"
    for set in "$@"; do sets+=(--set "$set"); done
    if ! valgrind --tool=callgrind --callgrind-out-file=/dev/null "$millpond" run "$out/$kind.toml" --set duration=6ms \
        --set warm-up=1ms "${sets[@]}" --threads 1 --quiet --out "$out/run" --force >"$out/$kind.log" 2>&1; then
        grep -v '^==' "$out/$kind.log" | tail -n 5 >&2 || true
        echo "the run with $kind failed; see $out/$kind.log" >&2
        return 1
    fi
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$out/$kind.log"
}

none=$(count none)
printf '%-14s %15s %8s %8s\n' "switch" "instructions" "times" "speed"
row() { awk -v name="$1" -v n="$2" -v none="$none" 'BEGIN { printf "%-14s %15.0f %8.2f %8.2f\n", name, n, n / none, none / n }'; }
row none "$none"
row lossy "$(count lossy)"
row flow-queues "$(count flow-queues edge.virtual-switch.doorbells=true)"
row backdraft "$(count backdraft)"
