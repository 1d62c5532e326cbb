#!/usr/bin/env bash
# Builds what is measured and runs a rig: run.sh live|vm [options]; see benches/limit/live.py --help and vm.py --help.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:/usr/sbin:/sbin"

rig=${1:?live or vm}
shift
case $rig in
live | vm) ;;
*)
    echo "run.sh: $rig is neither live nor vm" >&2
    exit 1
    ;;
esac
cargo build --release --locked -p millpond-rpc
cargo build --release --locked -p millpond-cli
exec python3 "benches/limit/$rig.py" "$@"
