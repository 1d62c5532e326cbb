#!/usr/bin/env bash
# The table of notes/judge.md: twelve scenes in the simulator and on kernels in virtual time. A row
# has 600 flows at least where chance decides which are lost. Needs no root, and a kernel of
# `make setup-virtual`. About half an hour.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
millpond=${MILLPOND:-target/release/millpond}
[ -n "${MILLPOND:-}" ] || cargo build --release --locked -p millpond-cli
out=out/judge

for scenario in scenarios/judge/*.toml; do
    scene=$(basename "$scenario" .toml)
    case $scene in failure) seeds=12 ;; leaf-spine | loss) seeds=6 ;; *) seeds=3 ;; esac
    $millpond compare "$scenario" --worlds sim,virtual --seeds $seeds --force \
        --out "$out/$scene" >/dev/null
done
benches/judge.py "$out"
