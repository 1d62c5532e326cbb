#!/bin/sh
# Holds the pods of one Kubernetes node to the rates of their annotations kubernetes.io/egress-bandwidth and
# kubernetes.io/ingress-bandwidth. It runs as root on the node, or in a privileged pod of a DaemonSet with the node's
# /sys/fs/cgroup and /sys/fs/bpf mounted; its service account may list pods. `millpond limit serve` beside it gives pods
# their limits when their cgroups come.
#
#   NODE    the node's name                            (the host's name)
#   FILE    where the limits are written               (/run/millpond/pods.toml)
#   EVERY   seconds from one look at the pods to the next; 0: one look and no more   (10)
#   BPFFS   the bpf file system where limits are kept  (/sys/fs/bpf)
set -eu

node=${NODE:-$(hostname)}
file=${FILE:-/run/millpond/pods.toml}
every=${EVERY:-10}
bpffs=${BPFFS:-/sys/fs/bpf}
mkdir -p "$(dirname "$file")"

# Where the list cannot be had or read, what is in force stays.
look() {
    kubectl get pods --all-namespaces --field-selector "spec.nodeName=$node" -o json >"$file.json" || return
    millpond limit pods "$file.json" >"$file.next" || return
    # Pods come and go without their limits changing; what failed to apply is tried again.
    cmp -s "$file.next" "$file" && [ -e "$file.applied" ] && return
    rm -f "$file.applied"
    mv "$file.next" "$file"
    millpond limit --bpffs "$bpffs" apply "$file" --wait && touch "$file.applied"
}

while :; do
    if look; then done=0; else done=1; fi
    [ "$every" = 0 ] && exit "$done"
    sleep "$every"
done
