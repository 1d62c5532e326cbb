#!/usr/bin/env bash
# Builds what is measured and runs the benchmarks; see benches/bench.py --help.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

cargo build --release --locked -p millpond-cli
cargo build --release --locked -p millpond-sim --example event_queue ||
    echo "the event queue's own benchmark did not build: left out" >&2
cargo build --release --locked -p millpond-core --example decision ||
    echo "the decision's own benchmark did not build: left out" >&2
cargo build --release --locked -p millpond-core --example receive_offload ||
    echo "the benchmark of receive offload did not build: left out" >&2
exec python3 benches/bench.py "$@"
