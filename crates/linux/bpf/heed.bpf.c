/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The sending end of the side channel: a TCP connection that another host has asked to slow down reduces its window, by the way that NRM has for a
 * limit of its own (the hook's return value 3; Brakmo, Starovoitov, Linux Plumbers Conference 2018). `millpond limit serve` writes the connections
 * down and is attached here as long as it runs.
 *
 * Invariant: no packet is dropped, and each thing that was written down reduces one window once, or none if it is old.
 */
#define MILLPOND_NO_CORE
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "flow.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Until when it counts, in nanoseconds of the kernel's clock. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct limit_flow);
	__type(value, __u64);
} reported SEC(".maps");

/* Packets that were sent with CWR. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} heeded SEC(".maps");

SEC("cgroup_skb/egress")
int limit_heed(struct __sk_buff *skb)
{
	struct limit_flow flow = {};
	__u32 zero = 0;

	if (!read_flow(skb, &flow))
		return 1;
	__u64 *until = bpf_map_lookup_elem(&reported, &flow);

	if (!until)
		return 1;
	bool counts = bpf_ktime_get_ns() < *until;

	/* Of two processors that come at once, one takes it. */
	if (bpf_map_delete_elem(&reported, &flow) || !counts)
		return 1;
	__u64 *sum = bpf_map_lookup_elem(&heeded, &zero);

	if (sum)
		*sum += 1;
	return 3;
}
