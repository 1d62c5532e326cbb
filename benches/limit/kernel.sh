# Limits from nothing to nothing, in a guest: whether its kernel takes the programs, of all directions, scopes and floors.
#   python3 benches/limit/vm.py --script benches/limit/kernel.sh
fail() {
    echo "kernel.sh: $* failed on $(uname -r)"
    exit 1
}
mkdir -p /sys/fs/cgroup/load/one
limits() {
    cat <<TOML
[[limit]]
name = "batch"
cgroup = "load/one"
rate = "$1"
scopes = ["uplink"]

[[limit]]
name = "uplink"
rate = "1Gbps"

[[limit]]
name = "in"
cgroup = "load"
rate = "500Mbps"
direction = "ingress"

[[limit]]
name = "slides"
cgroup = "load/slides"
rate = "1Gbps"
profile = "published"

[[floor]]
cgroup = "load/one"
rate = "10Mbps"
TOML
}
mkdir -p /sys/fs/cgroup/load/slides
limits 100Mbps >/limit.toml
millpond limit apply /limit.toml || fail apply
millpond limit show || fail show
millpond limit set batch rate=200Mbps || fail set
limits 300Mbps >/limit.toml
millpond limit apply /limit.toml || fail "apply of a change"
millpond limit observe /limit.toml || fail observe
millpond limit remove --all || fail remove
# A connection that is older than its limit: it is paced, and follows a share where the kernel can let it.
mkdir -p /sys/fs/cgroup/older
ip link set lo up
millpond-rpc server 127.0.0.1:7000 --once >/dev/null &
sleep 0.2
millpond-rpc client 127.0.0.1:7000 --flows 1x1MB --cgroup /sys/fs/cgroup/older --duration 5s --warm-up 30s >/older.txt &
CLIENT=$!
sleep 0.5
# It would leave apply no processor.
kill -STOP $CLIENT
printf 'loopback = true\n[[limit]]\nname = "older"\ncgroup = "older"\nrate = "100Mbps"\n' >/limit.toml
millpond limit apply /limit.toml || fail "apply beside a connection"
kill -CONT $CLIENT
wait $CLIENT || fail "the connection"
while read -r word rate rest; do
	[ "$word" = together ] || continue
	echo "older: $rate $rest"
	[ "${rate%.*}" -ge 80 ] && [ "${rate%.*}" -le 105 ] || fail "a connection older than its limit has $rate Mb/s of 100"
done </older.txt
millpond limit show || fail "show"
millpond limit remove --all || fail "remove at the end"
echo "$(uname -r): all of it works"
