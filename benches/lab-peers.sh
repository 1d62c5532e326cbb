#!/usr/bin/env bash
# A dumbbell of 2 to 16 CUBIC flows over the lab, and over what users take today: namespaces and two
# Linux bridges, the link between them shaped by `tc tbf`, or by HTB with a FIFO as Mininet does.
# Prints goodput against the link's rate, and flows' smoothed round-trip times (TCP_INFO), whose
# maximum is that of a full buffer where a buffer has the intended size.
# Needs root and iperf3. About four minutes; `FLOWS` and `SECONDS_EACH` shorten it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
millpond=${MILLPOND:-target/release/millpond}
[[ -n ${MILLPOND:-} ]] || cargo build --release --locked -p millpond-cli
for tool in iperf3 tc; do
    command -v "$tool" >/dev/null && continue
    echo "$tool is missing: apt-get install iperf3 iproute2" >&2
    exit 2
done
flows=${FLOWS:-2 4 8 16}
seconds=${SECONDS_EACH:-15}
rate=100                            # Mb/s of the link
buffer=150000                       # bytes at it: 12 ms
hosts=16                            # on either side
work=$(mktemp -d)
lab=peers-$$
prefix=mplp$$
up=()

cleanup() {
    "$millpond" lab down --lab "$lab" >/dev/null 2>&1 || true
    for name in "${up[@]}"; do ip netns del "$name" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT INT TERM

# Runs a command on a host: 0 to 15 send, 16 to 31 receive.
on_lab() { local host=$1; shift; "$millpond" lab exec --lab "$lab" "$host" -- "$@"; }
on_bridge() { local host=$1; shift; ip netns exec "$prefix-$host" "$@"; }

address_lab() { echo "10.213.0.$(($1 + 1))"; }
address_bridge() { echo "10.99.0.$(($1 + 1))"; }

# One row: name of the path, flows.
measure() {
    local path=$1 n=$2 kind=$3 pids=() host
    rm -f "$work"/*.json
    for ((host = 0; host < n; host++)); do
        "on_$kind" $((host + hosts)) iperf3 -s -1 >/dev/null 2>&1 &
        pids+=($!)
    done
    sleep 1
    for ((host = 0; host < n; host++)); do
        "on_$kind" "$host" iperf3 -J -C cubic -t "$seconds" -O 2 \
            -c "$("address_$kind" $((host + hosts)))" >"$work/$host.json" &
        pids+=($!)
    done
    wait "${pids[@]}" || true
    python3 - "$path" "$n" "$rate" "$buffer" "$work" <<'PY'
import glob, json, sys
path, n, rate, buffer, work = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
ends = [json.load(open(f))["end"] for f in glob.glob(work + "/*.json")]
got = sum(end["sum_received"]["bits_per_second"] for end in ends) / 1e6
# A packet of 1,500 bytes has 1,448 of payload and 1,514 on an Ethernet link.
most = rate * 1448 / 1514
rtts = [end["streams"][0]["sender"] for end in ends]
mean = sum(of["mean_rtt"] for of in rtts) / len(rtts) / 1e3
top, full = max(of["max_rtt"] for of in rtts) / 1e3, buffer * 8 / rate / 1e3
print(f"| {path} | {n} | {got:.1f} | {100 * (got / most - 1):+.1f} % | {mean:.1f} | {top:.1f} "
      f"| {100 * (top / full - 1):+.0f} % |", flush=True)
PY
}

# Namespaces on two bridges in a namespace of their own; the second bridge's side is shaped.
bridge_up() {
    local middle=$prefix-m i
    ip netns add "$middle"; up+=("$middle")
    ip -n "$middle" link add left type bridge
    ip -n "$middle" link add right type bridge
    ip -n "$middle" link add to-right type veth peer name to-left
    ip -n "$middle" link set to-right master left
    ip -n "$middle" link set to-left master right
    for ((i = 0; i < 2 * hosts; i++)); do
        ip netns add "$prefix-$i"; up+=("$prefix-$i")
        ip link add "p$i" netns "$middle" type veth peer name eth0 netns "$prefix-$i"
        ip -n "$prefix-$i" addr add "$(address_bridge "$i")/24" dev eth0
        ip -n "$prefix-$i" link set eth0 up
        ip -n "$middle" link set "p$i" master "$([[ $i -lt $hosts ]] && echo left || echo right)" up
    done
    for i in left right to-right to-left; do ip -n "$middle" link set "$i" up; done
}

shape() {
    local middle=$prefix-m
    tc -n "$middle" qdisc del dev to-right root 2>/dev/null || true
    case $1 in
    tbf) tc -n "$middle" qdisc add dev to-right root tbf rate "${rate}mbit" burst 15k limit $buffer ;;
    htb) # As Mininet's TCLink: class 5:1, quantum and burst by default, a queue in packets.
        tc -n "$middle" qdisc add dev to-right root handle 5: htb default 1
        tc -n "$middle" class add dev to-right parent 5: classid 5:1 htb rate "${rate}mbit" burst 15k
        tc -n "$middle" qdisc add dev to-right parent 5:1 handle 10: pfifo limit $((buffer / 1500)) ;;
    esac
}

cat >"$work/dumbbell.toml" <<TOML
name = "peers"
duration = "1s"
[topology]
kind = "dumbbell"
hosts-per-side = $hosts
host-link = { rate = "1Gbps", delay = "10us" }
bottleneck = { rate = "${rate}Mbps", delay = "10us" }
[switch]
buffer = { kind = "per-port", size = "${buffer}B" }
[transport]
kind = "cubic"
TOML

for qdisc in sch_tbf sch_htb sch_netem; do
    zcat /proc/config.gz 2>/dev/null | grep "CONFIG_NET_${qdisc^^}=[ym]" >/dev/null ||
        echo "this kernel has no $qdisc"
done
echo "| path | flows | goodput, Mb/s | against the link | RTT mean, ms | RTT max, ms | max against a full buffer (12 ms) |"
echo "|---|---|---|---|---|---|---|"
"$millpond" lab up "$work/dumbbell.toml" --scale 1 --name "$lab" --detach >/dev/null 2>&1
for n in $flows; do measure "lab" "$n" lab; done
"$millpond" lab down --lab "$lab" >/dev/null 2>&1
bridge_up
for kind in tbf htb; do
    shape $kind
    for n in $flows; do measure "bridge, $kind" "$n" bridge; done
done
