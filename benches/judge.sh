#!/usr/bin/env bash
# The table of notes/judge.md: twelve scenes in the simulator and on kernels in virtual time, seeds 1
# to 3. Needs no root, and a kernel of `make setup-virtual`. About ten minutes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
millpond=${MILLPOND:-target/release/millpond}
[ -n "${MILLPOND:-}" ] || cargo build --release --locked -p millpond-cli
out=out/judge

for scenario in scenarios/judge/*.toml; do
    scene=$(basename "$scenario" .toml)
    $millpond compare "$scenario" --worlds sim,virtual --seeds 3 --force --out "$out/$scene" \
        >/dev/null
done
benches/judge.py "$out"
