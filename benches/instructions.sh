#!/usr/bin/env bash
# How many instructions a packet-hop costs, counted by valgrind: repeatable to a fraction of a percent on any machine of
# the same architecture, unlike a time. Two flow sizes are run and the difference is taken, so that start-up cancels.
#   benches/instructions.sh [--gate] [--json] [SCENARIO [--set k=v]…]
#     --gate   fail where it is more than the number in benches/instructions.max; then count, on a short FT1024, the
#              misses a packet-hop of a first-level cache of 48 KB and a second-level one of 2 MB, and fail where they
#              are more than those in benches/cache.max
#     --json   print the result as a line of JSON
#     SCENARIO a name in benches/scenarios, ls128 unless given; its traffic must be named "stride"
# Without valgrind it prints "skipped" and succeeds. MILLPOND names another binary (then nothing is built).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

# The smaller flow ends after slow start, so the difference is 400 packets a host in steady state.
small_packets=200
large_packets=600

gate=false
json=false
while [[ ${1:-} == --gate || ${1:-} == --json ]]; do
    [[ $1 == --gate ]] && gate=true
    [[ $1 == --json ]] && json=true
    shift
done
scenario=${1:-ls128}
[[ $# -gt 0 ]] && shift
file=benches/scenarios/$scenario.toml
if [[ ! -f $file ]]; then
    echo "no such scenario: $file" >&2
    exit 2
fi
if ! command -v valgrind >/dev/null; then
    echo "skipped: valgrind is not installed (apt-get install valgrind)" >&2
    exit 0
fi

# A large network starts the program anew with huge pages, where valgrind would not follow it.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=0

millpond=${MILLPOND:-target/release/millpond}
[[ -n ${MILLPOND:-} ]] || cargo build --quiet --release --locked -p millpond-cli
out=target/bench/instructions
mkdir -p "$out"

# count PACKETS [--set k=v]…: prints the instructions and the packet-hops of a run.
count() {
    local packets=$1 instructions hops
    shift
    if ! valgrind --tool=callgrind --callgrind-out-file=/dev/null "$millpond" run "$file" \
        --set "traffic.stride.size=$((packets * 1460))B" "$@" \
        --threads 1 --json --quiet --out "$out/run-$packets" --force \
        >"$out/$packets.json" 2>"$out/$packets.log"; then
        grep -v '^==' "$out/$packets.log" | tail -n 5 >&2 || true
        echo "the run with $packets packets a flow failed; see $out/$packets.log" >&2
        return 1
    fi
    instructions=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$out/$packets.log")
    hops=$(grep -oE '"packet_hops": *[0-9]+' "$out/$packets.json" | grep -oE '[0-9]+$')
    echo "$instructions $hops"
}

# cache_gate: misses a packet-hop over the whole of a run of 300 packets a flow on FT1024, whose
# packets in flight are several times what the second level holds. Simulated caches, so the same on
# any machine.
cache_gate() {
    local log=$out/cache.log hops first second first_max second_max
    valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null \
        --I1=32768,8,64 --D1=49152,12,64 --LL=2097152,16,64 \
        "$millpond" run benches/scenarios/ft1024.toml --set traffic.stride.size=438000B \
        --threads 1 --json --quiet --out "$out/run-cache" --force >"$out/cache.json" 2>"$log" ||
        { echo "the run on FT1024 failed; see $log" >&2 && return 1; }
    hops=$(grep -oE '"packet_hops": *[0-9]+' "$out/cache.json" | grep -oE '[0-9]+$')
    # "D1  misses:  10,725,408  (…": the total of reads and writes.
    first=$(sed -n 's/.*D1  misses: *\([0-9,]*\).*/\1/p' "$log" | tr -d ,)
    second=$(sed -n 's/.*LLd misses: *\([0-9,]*\).*/\1/p' "$log" | tr -d ,)
    read -r first_max second_max <benches/cache.max
    awk -v first="$first" -v second="$second" -v hops="$hops" -v a="$first_max" -v b="$second_max" 'BEGIN {
        if (first == "" || second == "" || hops <= 0) exit 1
        printf "ft1024: %.2f first-level and %.2f second-level misses a packet-hop (limits %s and %s)\n",
            first / hops, second / hops, a, b
        exit first / hops > a || second / hops > b
    }' || { echo "more than benches/cache.max allows, or not counted; see $log" >&2 && return 1; }
}

# Counts are the same beside other work, so the runs go side by side.
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
count "$small_packets" "$@" >"$out/small" &
counting=($!)
if $gate; then
    cache_gate >"$out/cache" 2>&1 &
    counting+=($!)
fi
count "$large_packets" "$@" >"$out/large"
wait "${counting[0]}"
read -r instructions hops < <(
    awk -v small="$(cat "$out/small")" -v large="$(cat "$out/large")" 'BEGIN {
        split(small, a, " "); split(large, b, " ")
        hops = b[2] - a[2]
        if (hops <= 0) exit 1
        printf "%.1f %d\n", (b[1] - a[1]) / hops, hops
    }'
) || { echo "no packet-hops between the two sizes; see $out/small and $out/large" >&2 && exit 1; }

limit=$(cat benches/instructions.max)
if $json; then
    printf '{"scenario":"%s","instructions_per_hop":%s,"packet_hops":%s,"limit":%s}\n' \
        "$scenario" "$instructions" "$hops" "$limit"
else
    echo "$scenario${*:+ $*}: $instructions instructions a packet-hop (over $hops packet-hops; limit $limit)"
fi
$gate || exit 0
code=0
if awk -v x="$instructions" -v limit="$limit" 'BEGIN { exit !(x > limit) }'; then
    echo "more than benches/instructions.max allows: $instructions > $limit" >&2
    code=1
fi
wait "${counting[1]}" || code=1
cat "$out/cache"
exit "$code"
