#!/usr/bin/env bash
# Runs one case of htsim and prints its result as a line of JSON. Builds the driver first where it is missing or old.
#   benches/htsim/run.sh TOPOLOGY PATH PACKETS      for example: benches/htsim/run.sh ls128 balanced 6850
# HTSIM names a checkout of csg-htsim. Without it, the pinned commit is fetched into target/htsim, once.
# Exit code 77: there is no source or no compiler, the case was skipped.
set -euo pipefail

url=https://github.com/Broadcom/csg-htsim
commit=841d9e7be46bb968eece766aa4b6c044c7799f67
# The queues' file refers to loggers and NDP's packets.
files=(config dctcp ecnqueue eth_pause_packet eventlist fairpullqueue logfile loggers mtcp ndppacket network pipe queue
    route tcp tcppacket)

if [[ $# -ne 3 ]]; then
    echo "usage: $0 ls128|ls1024|ft128|ft1024 balanced|ecmp PACKETS" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=$(cd "$here/../.." && pwd)/target
out=$target/htsim-build
cxx=${CXX:-g++}

skip() {
    echo "skipped: $1" >&2
    exit 77
}

fetch() {
    git init --quiet "$1"
    git -C "$1" sparse-checkout set --no-cone '/sim/*.cpp' '/sim/*.h'
    git -C "$1" fetch --quiet --depth 1 --filter=blob:none "$url" "$commit"
    git -C "$1" -c advice.detachedHead=false checkout --quiet FETCH_HEAD
}

source=${HTSIM:-$target/htsim}
if [[ ! -f $source/sim/dctcp.cpp ]]; then
    [[ -z ${HTSIM:-} ]] || skip "HTSIM=$HTSIM is no checkout of csg-htsim"
    command -v git >/dev/null || skip "htsim is not there and git is not installed (HTSIM=DIR names a checkout)"
    rm -rf "$source" "$source.new"
    mkdir -p "$target"
    GIT_TERMINAL_PROMPT=0 fetch "$source.new" 2>/dev/null ||
        { rm -rf "$source.new"; skip "git cannot fetch htsim from $url (HTSIM=DIR names a checkout)"; }
    mv "$source.new" "$source"
fi
stale() {
    local file
    for file in "$here/clos.cpp" "$here/../clos.h" "$here/run.sh"; do
        [[ $file -nt $out/clos ]] && return
    done
    [[ $(<"$out/source") != "$source" ]]
}
if [[ ! -x $out/clos ]] || stale; then
    command -v "$cxx" >/dev/null || skip "no C++ compiler (apt-get install g++)"
    mkdir -p "$out"
    sources=("${files[@]/#/$source/sim/}")
    sources=("${sources[@]/%/.cpp}")
    # Optimised as millpond is: at link time, without assertions; and for this machine, which millpond is not.
    "$cxx" -std=c++17 -O3 -march=native -flto -DNDEBUG -w -I"$source/sim" "$here/clos.cpp" \
        "${sources[@]}" -o "$out/clos.new"
    mv "$out/clos.new" "$out/clos"
    printf '%s' "$source" >"$out/source"
fi
exec "$out/clos" "$1" "$2" "$3"
