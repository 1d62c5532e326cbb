#!/usr/bin/env bash
# Builds what is measured and runs the benchmarks; see benches/bench.py --help.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

cargo build --release --locked -p millpond-cli
for example in event_queue skeleton; do
    cargo build --release --locked -p millpond-sim --example "$example" ||
        echo "the benchmark $example did not build: left out" >&2
done
for example in decision importance receive_offload; do
    cargo build --release --locked -p millpond-core --example "$example" ||
        echo "the benchmark $example did not build: left out" >&2
done
exec python3 benches/bench.py "$@"
