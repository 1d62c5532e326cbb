/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * For tests only: runs the functions of limit.h on cases from a map, so that the kernel's own execution of them can be compared with
 * the Rust core.
 */
#define MILLPOND_NO_CORE
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "trial.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TRIAL_CASES);
	__type(key, __u32);
	__type(value, struct trial_case);
} cases SEC(".maps");

__attribute__((noinline)) int run_case(__u32 index)
{
	struct trial_case *c = bpf_map_lookup_elem(&cases, &index);

	if (!c)
		return 1;
	trial_run(c);
	return 0;
}

SEC("syscall")
int run_cases(void *ctx)
{
	for (__u32 i = 0; i < TRIAL_CASES; i++)
		if (run_case(i))
			return 1;
	return 0;
}

/* What a packet costs where nothing is done for it: for comparison. */
SEC("cgroup_skb/egress")
int nothing(struct __sk_buff *skb)
{
	return 1;
}
