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
echo "$(uname -r): all of it works"
