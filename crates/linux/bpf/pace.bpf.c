/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An iterator over TCP sockets that gives each connection the rate of the limits that it is below
 * now, and lets each receive window go that a limit holds. limit_sockets does both to connections
 * that are made while limits are in force; this runs once after each change of them, and after their
 * end. A connection that is older than its limits becomes known to them here. It then asks for its
 * share and its window as others do, where the kernel lets it (Linux 6.12).
 *
 * Invariant: only connections that are below a limit or were, none of them faster than its
 * application asked for, and no window larger.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>
#include "layout.h"
#include "paced.h"
#include "held.h"

#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Whether limits hold for loopback. */
const volatile __u32 loopback = 0;

/* What the limits above a connection are to it. */
struct followed {
	/* Bytes a second. */
	__u32 rate;
	/* LIMIT_PACE, LIMIT_SHARES, LIMIT_WINDOWS. */
	__u32 flags;
};

/* By cgroup: of its connections, and of those below without one of their own. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct followed);
} limited SEC(".maps");

/* How many connections cannot ask, since the kernel has no way to let them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} deaf SEC(".maps");

/* Of the nearest cgroup that has one. */
static __always_inline struct followed *limits_of(struct tcp_sock *tp)
{
	struct cgroup *cgroup = tp->inet_conn.icsk_inet.sk.sk_cgrp_data.cgroup;

	for (int i = 0; i < LIMIT_DEPTH && cgroup; i++) {
		__u64 id = BPF_CORE_READ(cgroup, kn, id);
		struct followed *of = bpf_map_lookup_elem(&limited, &id);

		if (of)
			return of;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return NULL;
}

/* Whether a connection stays on this host, as limit_sockets has it. */
static __always_inline bool is_local(const struct sock_common *of)
{
	if (of->skc_family != AF_INET6)
		return is_loopback4(of->skc_daddr) || of->skc_daddr == of->skc_rcv_saddr;
	if (!bpf_core_field_exists(of->skc_v6_daddr))
		return false;
	const __be32 *there = of->skc_v6_daddr.in6_u.u6_addr32;
	const __be32 *here = of->skc_v6_rcv_saddr.in6_u.u6_addr32;

	return is_loopback6(there[0], there[1], there[2], there[3]) ||
	       (there[0] == here[0] && there[1] == here[1] && there[2] == here[2] && there[3] == here[3]);
}

/* The least rate that was asked for; what the kernel calls none is ~0 here, too. */
static __always_inline __u32 pace_of(const struct tcp_sock *tp)
{
	__u64 wide = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;

	return wide < ~0u ? (__u32)wide : ~0u;
}

/* Makes a connection known that was there before its limits. */
static __always_inline void adopt(struct tcp_sock *tp, const struct followed *to)
{
	const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	int flags = tp->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	__u32 now = pace_of(tp), zero = 0;

	if (common->skc_state != TCP_ESTABLISHED && common->skc_state != TCP_CLOSE_WAIT)
		return;
	bool local = is_local(common);

	if (local && !loopback)
		return;
	struct limit_paced pace = { .own = now, .set = now, .loopback = local };
	struct limit_held window = { .own = WINDOW_ANY, .set = ~0u, .loopback = local };

	if (to->flags & LIMIT_PACE)
		bpf_sk_storage_get(&paced, tp, &pace, BPF_SK_STORAGE_GET_F_CREATE);
	if (to->flags & LIMIT_WINDOWS)
		bpf_sk_storage_get(&held, tp, &window, BPF_SK_STORAGE_GET_F_CREATE);
	if (!(to->flags & (LIMIT_SHARES | LIMIT_WINDOWS)) || flags == tp->bpf_sock_ops_cb_flags)
		return;
	if (!bpf_setsockopt(tp, IPPROTO_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return;
	__u64 *count = bpf_map_lookup_elem(&deaf, &zero);

	if (count)
		__sync_fetch_and_add(count, 1);
}

/* Lets a window go; a limit that is still in force holds it again with the next segment. */
static __always_inline void let_go(struct tcp_sock *tp)
{
	struct limit_held *of = bpf_sk_storage_get(&held, tp, NULL, 0);
	__u32 own, usual = DELACK_MAX;

	if (!of)
		return;
	own = of->own;
	if (of->set != ~0u && tp->window_clamp == of->set)
		bpf_setsockopt(tp, IPPROTO_TCP, TCP_WINDOW_CLAMP, &own, sizeof(own));
	if (of->pause)
		bpf_setsockopt(tp, IPPROTO_TCP, TCP_BPF_DELACK_MAX, &usual, sizeof(usual));
	of->set = ~0u;
	of->pause = 0;
	of->level = 0;
}

static __always_inline void follow_pace(struct tcp_sock *tp, const struct followed *to)
{
	struct limit_paced *of = bpf_sk_storage_get(&paced, tp, NULL, 0);
	__u32 rate, now;

	if (!of)
		return;
	now = pace_of(tp);
	if (now != of->set)
		of->own = now;
	rate = to && (!of->loopback || loopback) ? to->rate : ~0u;
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
	struct followed *to = limits_of(tp);

	if (to)
		adopt(tp, to);
	follow_pace(tp, to);
	let_go(tp);
	return 0;
}
