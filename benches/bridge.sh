#!/usr/bin/env bash
# The plain switch beside the kernel's bridge: one stream between two namespaces over the bridge, over `millpond switch`
# between taps, and over it by packet sockets in the place of the bridge. In turn, medians; exits with 1 if a switch has
# less than half of the bridge's throughput. Root.    benches/bridge.sh [REPETITIONS [SECONDS]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
millpond=${MILLPOND:-target/release/millpond}
repetitions=${1:-5} seconds=${2:-3}
folder=$(mktemp -d)
a=mpbridge$$a b=mpbridge$$b middle=mpbridge$$m

clear() {
    "$millpond" switch --state "$folder/state" remove --all >/dev/null 2>&1 || true
    for space in $a $b $middle; do ip netns del "$space" 2>/dev/null || true; done
}
trap 'clear; rm -rf "$folder"' EXIT

pairs() { # veth pairs from the namespace in the middle to the others
    local end=1 space
    for space in $a $b; do
        ip -n "$middle" link add "port$end" type veth peer name mp0 netns "$space"
        ip -n "$middle" link set "port$end" up
        ip -n "$space" addr add "10.77.0.$end/24" dev mp0
        ip -n "$space" link set mp0 up
        end=$((end + 1))
    done
}
start() { # a switch of the file on standard input
    cat >"$folder/switch.toml"
    "$millpond" switch --state "$folder/state" apply "$folder/switch.toml" >/dev/null
}
run() {
    clear
    for space in $a $b $middle; do
        ip netns add "$space"
        ip netns exec "$space" sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save'
    done
    case $1 in
    bridge)
        pairs
        ip -n "$middle" link add bridge type bridge
        for port in port1 port2; do ip -n "$middle" link set "$port" master bridge; done
        ip -n "$middle" link set bridge up
        ;;
    taps)
        start <<END
[[port]]
name = "1"
device = "mp0"
namespace = "$a"
addresses = ["10.77.0.1/24"]
[[port]]
name = "2"
device = "mp0"
namespace = "$b"
addresses = ["10.77.0.2/24"]
END
        ;;
    af-packet)
        pairs
        start <<END
[[port]]
name = "port1"
kind = "af-packet"
namespace = "$middle"
[[port]]
name = "port2"
kind = "af-packet"
namespace = "$middle"
END
        ;;
    esac
    ip netns exec "$b" benches/limit/load.py server 10.77.0.2:7000 &
    local server=$!
    sleep 0.5
    ip netns exec "$a" benches/limit/load.py client 10.77.0.2:7000 --flows 1x100MB --duration "${seconds}s" |
        sed 's/.*"mbps": \([0-9.]*\), "max_second.*/\1/' >>"$folder/$1"
    wait "$server"
}
median() { sort -n "$folder/$1" | awk '{ all[NR] = $1 } END { print (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'; }

for ((turn = 0; turn < repetitions; turn++)); do
    for arm in bridge taps af-packet; do run "$arm"; done
done
failed=0
for arm in bridge taps af-packet; do
    awk -v arm="$arm" -v mbps="$(median "$arm")" -v bridge="$(median bridge)" 'BEGIN {
        printf "%-10s %7.2f Gb/s  %.3f of the bridge\n", arm, mbps / 1e3, mbps / bridge
        exit mbps < bridge / 2
    }' || failed=1
done
exit $failed
