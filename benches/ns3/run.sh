#!/usr/bin/env bash
# Runs one case of ns-3.37 and prints its result as a line of JSON. Builds the driver first where it is missing or old.
#   benches/ns3/run.sh TOPOLOGY PATH PACKETS      for example: benches/ns3/run.sh ls128 balanced 6850
# Exit code 77: ns-3 is not installed, the case was skipped.
set -euo pipefail

if [[ $# -ne 3 ]]; then
    echo "usage: $0 ls128|ls1024|ft128|ft1024 balanced|ecmp PACKETS" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$here/../../target/ns3
cxx=${CXX:-g++}

if ! command -v "$cxx" >/dev/null; then
    echo "skipped: no C++ compiler (apt-get install g++)" >&2
    exit 77
fi
if [[ ! -x $out/clos || $here/clos.cc -nt $out/clos || $here/../clos.h -nt $out/clos ]]; then
    if ! echo '#include "ns3/core-module.h"' | "$cxx" -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
        echo "skipped: ns-3 is not installed (apt-get install libns3-dev)" >&2
        exit 77
    fi
    mkdir -p "$out"
    "$cxx" -std=c++17 -O3 -DNDEBUG -Wall -Wextra "$here/clos.cc" -o "$out/clos.new" \
        -lns3-point-to-point -lns3-internet -lns3-traffic-control -lns3-network -lns3-core
    mv "$out/clos.new" "$out/clos"
fi
exec "$out/clos" "--topology=$1" "--path=$2" "--flows-packets=$3"
