#!/bin/sh
# Gives each of Docker's containers that is labelled so a port of `millpond switch`, in the place of a network of Docker's:
#
#   docker run --network none --label millpond …
#
# It runs as root beside Docker, and follows containers as they start, end and start again. Its own end changes nothing;
# when it is started anew it makes up for what it has missed. It ends when Docker does, for a service to start it again.
#
#   NETWORK   the network, as the Container Network Interface writes it    (/etc/cni/net.d/10-millpond.conf)
#   CNI_PATH  where plugins that give out addresses are                     (/opt/cni/bin)
#   DEVICE    what a container's interface is called                        (eth0)
#   RECORD    a folder with a file for each container that has a port       (/run/millpond/docker)
#   STATE     the switch's state folder                                     (/run/millpond/switch)
set -u

network=${NETWORK:-/etc/cni/net.d/10-millpond.conf}
record=${RECORD:-/run/millpond/docker}
state=${STATE:-/run/millpond/switch}
export CNI_PATH="${CNI_PATH:-/opt/cni/bin}" CNI_IFNAME="${DEVICE:-eth0}"

# plugin COMMAND ID [NAMESPACE]
plugin() {
    CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=${3-} millpond switch --state "$state" cni <"$network"
}

detach() {
    plugin DEL "$1" && rm -f "$record/$1"
}

attach() {
    place=$(docker inspect --format '{{.NetworkSettings.SandboxKey}}' "$1") && [ -n "$place" ] || return
    plugin CHECK "$1" "$place" >/dev/null 2>&1 && return
    # Its port may be where it ran before.
    : >"$record/$1" && plugin DEL "$1" && plugin ADD "$1" "$place" >/dev/null && echo "container $1 has a port" ||
        echo "container $1 has no port" >&2
}

mkdir -p "$record" && [ -r "$network" ] || exit
# What happens from now on is heard below, some of it twice.
now=$(date +%s)
running=$(docker ps --quiet --no-trunc --filter label=millpond) || exit
for id in $running; do
    attach "$id"
done
for file in "$record"/*; do
    id=${file##*/}
    case " $(echo $running) " in *" $id "*) continue ;; esac
    [ ! -e "$file" ] || detach "$id"
done
docker events --since "$now" --filter type=container --filter label=millpond --filter event=start --filter event=die \
    --format '{{.Action}} {{.Actor.ID}}' |
    while read -r action id; do
        case $action in
        start) attach "$id" ;;
        die) detach "$id" ;;
        esac
    done
