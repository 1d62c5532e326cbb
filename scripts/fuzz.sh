#!/usr/bin/env bash
# Runs fuzz targets: fuzz.sh [SECONDS [TARGET…]]; a minute each, and all of them, unless it is told. What was found before is
# gone on with: fuzz/corpus has inputs that are kept, fuzz/found what came besides, and fuzz/artifacts what failed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

seconds=${1:-60}
shift || true
if [[ ! $seconds =~ ^[0-9]+$ ]]; then
    echo "fuzz: seconds, and then targets: fuzz.sh 60 overlay" >&2
    exit 2
fi
mapfile -t all < <(cargo +nightly fuzz list)
targets=("$@")
[[ $# -gt 0 ]] || targets=("${all[@]}")
for target in "${targets[@]}"; do
    if [[ ! " ${all[*]} " == *" $target "* ]]; then
        echo "fuzz: there is no target $target; there are: ${all[*]}" >&2
        exit 2
    fi
done

failed=()
for target in "${targets[@]}"; do
    echo "fuzz: $target for $seconds s" >&2
    mkdir -p "fuzz/found/$target" "fuzz/corpus/$target"
    # A datagram between switches or a frame is at most 64 KB; what takes longer than ten seconds does not end.
    cargo +nightly fuzz run "$target" "fuzz/found/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=65536 -timeout=10 -print_final_stats=1 -verbosity=0 || failed+=("$target")
done
if [[ ${#failed[@]} -gt 0 ]]; then
    echo "fuzz: failed: ${failed[*]}" >&2
    exit 1
fi
