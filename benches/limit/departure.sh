# BBR and datagrams behind HTB, shares and departure times (profile "edt" over fq), in a guest.
#   python3 benches/limit/vm.py --script benches/limit/departure.sh --duration 120
# BBR has 1, 4 and 8 connections that send all the time. Datagrams of 1,200 bytes are offered at 90 % of the limit:
# evenly, and 64 at once, as QUIC sends after a wait. RATES has the limits in Mb/s.
fail() {
	echo "departure.sh: $* failed on $(uname -r)"
	exit 1
}
ip netns add a && ip netns add b && ip link add va netns a type veth peer name vb netns b || fail namespaces
for host in a b; do
	ip -n $host link set lo up && ip -n $host link set v$host up || fail links
	nsenter --net=/run/netns/$host dash -c 'echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save'
done
ip -n a addr add 10.0.0.1/24 dev va && ip -n b addr add 10.0.0.2/24 dev vb || fail addresses
mkdir /sys/fs/cgroup/load
inside() {
	space=$1
	shift
	nsenter --net=/run/netns/$space "$@"
}
# The number behind a key of a line of JSON.
number() {
	text=${2#*\"$1\":}
	echo "${text%%[,\}]*}"
}
limit() {
	printf '[[limit]]\nname = "load"\ncgroup = "load"\nrate = "%sMbps"\nprofile = "%s"\n' "$1" "$2" >/limit.toml
	inside a millpond limit apply /limit.toml >/said 2>&1 || fail "apply: $(cat /said)"
}
bbr() {
	inside b millpond-rpc server 10.0.0.2:7000 --once --cc bbr &
	sleep 0.1
	inside a millpond-rpc client 10.0.0.2:7000 --cc bbr --flows $2x100MB --duration $3s --warm-up 1s --cgroup /sys/fs/cgroup/load >/told || fail client
	wait $!
	while read -r word mbps rest; do
		[ "$word" = together ] && echo "$1 bbr $2: $mbps $rest"
	done </told
}
datagrams() {
	inside b millpond-rpc udp-sink 10.0.0.2:7001 >/got &
	sleep 0.1
	sent=$(inside a millpond-rpc udp-send 10.0.0.2:7001 --rate $(($2 * 870))Kbps --size 1200B --burst $3 --duration $4s --cgroup /sys/fs/cgroup/load) || fail send
	wait $!
	read -r got </got
	echo "$1 datagrams, $3 at once: $(number accepted "$sent") sent, $(number count "$got") received"
}
for rate in ${RATES:-15 100 1000}; do
	seconds=$((rate < 1000 ? 4 : 2))
	for limiter in htb shares edt; do
		case $limiter in
		htb) tc -n a qdisc add dev va root handle 1: htb default 1 && tc -n a class add dev va parent 1: classid 1:1 htb rate ${rate}mbit || fail htb ;;
		shares) limit $rate shares ;;
		edt) tc -n a qdisc add dev va root fq && limit $rate edt || fail fq ;;
		esac
		for flows in 1 4 8; do bbr "$rate $limiter" $flows $seconds; done
		for burst in 1 64; do datagrams "$rate $limiter" $rate $burst $seconds; done
		millpond limit remove --all >/said
		tc -n a qdisc del dev va root 2>/said
	done
done
