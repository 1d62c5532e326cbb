#!/usr/bin/env bash
# The figures of docs/lab.md: rate and lateness of the lab's thread, the simulator beside the lab,
# systems under kernel TCP, and connections a second. Needs root, and a machine with nothing else to do. About ten minutes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo build --release --locked -p millpond-cli
cargo build --release --locked -p millpond-lab --example rate
millpond=target/release/millpond
out=out/bench-lab

echo "== packet-hops a second, and lateness"
target/release/examples/rate
echo "== the simulator beside the lab"
for scenario in incast:200 dumbbell:200 leaf-spine:500 slow-receiver:200; do
    name=${scenario%:*}
    # 4: some run was invalid, as its row says.
    { $millpond compare "scenarios/lab/$name.toml" --worlds sim,lab --scale "${scenario#*:}" \
        --seeds 3 --force --out "$out/$name" || [ $? -eq 4 ]; } |
        grep -vE '^(warning|note|          )'
done
echo "== systems under kernel TCP"
for scenario in "papers/tlt/testbed.toml --vary traffic.incast.flows-per-server=1,5,10,16,22" \
    scenarios/lab/canary.toml scenarios/lab/presto.toml; do
    name=${scenario%%.toml*}
    # shellcheck disable=SC2086
    { $millpond compare $scenario --worlds lab --seeds 3 --force --out "$out/${name##*/}" || [ $? -eq 4 ]; } |
        grep -vE '^(warning|note|          )'
done
echo "== connections a second"
cargo test --release --locked -q -p millpond-lab --test load connections_a_second -- \
    --ignored --nocapture
