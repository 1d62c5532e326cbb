/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An iterator over TCP sockets that gives each paced connection the rate of the limits that it is
 * below now, and lets each receive window go that a limit holds. limit_sockets does both to
 * connections while limits are in force; this runs once after each change of them, and after their
 * end.
 *
 * Invariant: only connections that limit_sockets knows, none of them faster than its application
 * asked for, and no window larger.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "layout.h"
#include "paced.h"
#include "held.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Whether limits hold for loopback. */
const volatile __u32 loopback = 0;

/*
 * By cgroup: what connections of it, and of those below without a rate of their own, are paced at.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} rates SEC(".maps");

/* Of the nearest cgroup that has one. */
static __always_inline __u32 limited_to(struct tcp_sock *tp)
{
	struct cgroup *cgroup = tp->inet_conn.icsk_inet.sk.sk_cgrp_data.cgroup;

	for (int i = 0; i < LIMIT_DEPTH && cgroup; i++) {
		__u64 id = BPF_CORE_READ(cgroup, kn, id);
		__u32 *rate = bpf_map_lookup_elem(&rates, &id);

		if (rate)
			return *rate;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return ~0u;
}

/* Lets a window go; a limit that is still in force holds it again with the next segment. */
static __always_inline void let_go(struct tcp_sock *tp)
{
	struct limit_held *of = bpf_sk_storage_get(&held, tp, NULL, 0);
	__u32 own;

	if (!of)
		return;
	own = of->own;
	if (of->set != ~0u && tp->window_clamp == of->set)
		bpf_setsockopt(tp, IPPROTO_TCP, TCP_WINDOW_CLAMP, &own, sizeof(own));
	of->set = ~0u;
	of->level = 0;
}

static __always_inline void follow_pace(struct tcp_sock *tp)
{
	struct limit_paced *of = bpf_sk_storage_get(&paced, tp, NULL, 0);
	__u32 rate, now;

	if (!of)
		return;
	__u64 wide = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;

	now = wide < ~0u ? (__u32)wide : ~0u;
	if (now != of->set)
		of->own = now;
	rate = of->loopback && !loopback ? ~0u : limited_to(tp);
	if (rate > of->own)
		rate = of->own;
	if (rate != now && bpf_setsockopt(tp, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)))
		return;
	of->set = rate;
	of->level = 0;
}

SEC("iter/tcp")
int follow(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : NULL;

	if (!tp)
		return 0;
	follow_pace(tp);
	let_go(tp);
	return 0;
}
