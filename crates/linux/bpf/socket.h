/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sockets' pacing rates, by the limits that they are charged to; and when sockets are asked about.
 *
 * Invariant: a rate that an application has asked for is never exceeded, and is kept to be given back.
 */
#ifndef MILLPOND_SOCKET_H
#define MILLPOND_SOCKET_H

#include "paced.h"
#include "scope.h"
#include "window.h"

#define TCP_BPF_IW 1001

/*
 * Whether a connection stays on this host: its packets then go over loopback. What device they take
 * cannot be asked here. An address of this host that the connection does not itself have, at its
 * other end, is taken for another host's.
 */
static __always_inline bool is_local(struct bpf_sock_ops *ops)
{
	__u32 here = ops->local_ip4, there = ops->remote_ip4;

	/*
	 * The verifier takes no address inside the context, which the compiler would make of two
	 * reads in two branches.
	 */
	barrier_var(here);
	barrier_var(there);
	if (ops->family != AF_INET6)
		return is_loopback4(there) || there == here;
	__u32 a = ops->remote_ip6[0], b = ops->remote_ip6[1], c = ops->remote_ip6[2], d = ops->remote_ip6[3];

	barrier_var(d);
	if (is_loopback6(a, b, c, d))
		return true;
	return a == ops->local_ip6[0] && b == ops->local_ip6[1] && c == ops->local_ip6[2] && d == ops->local_ip6[3];
}

/*
 * The rate of the tightest scope, or the least share, though no less than that of the floor, in bytes
 * a second; ~0: beyond 32 bits there is nothing to pace.
 */
__attribute__((noinline)) __u32 pace_of(const struct limit_chain *chain, __u32 bank, __u32 shares)
{
	__u32 rate = ~0u;

	if (!chain)
		return rate;
	for (__u32 i = 0; i < LIMIT_CHAIN; i++) {
		__u32 id = chain->scopes[i];

		if (i >= chain->count)
			break;
		struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);

		if (!banks)
			continue;
		const struct limit_settings *settings = &banks->bank[bank & 1].settings;
		__u64 bytes = settings->rate * 1000000000ull >> LIMIT_POINT;

		if (settings->flags & LIMIT_OBSERVE)
			continue;
		if (shares && settings->flags & LIMIT_SHARE) {
			struct limit_queue *queue = bpf_map_lookup_elem(&queues, &id);

			if (queue && queue->share.pace)
				bytes = queue->share.pace;
		}
		if (bytes < rate)
			rate = (__u32)bytes;
	}
	__u32 floor = chain->floor - 1u;
	struct limit_queue *queue = shares && chain->floor ? bpf_map_lookup_elem(&queues, &floor) : NULL;

	if (queue && queue->share.pace > rate)
		rate = (__u32)limit_least(queue->share.pace, ~0u);
	return rate;
}

/*
 * Sets a new connection's pace, unless it has a lower one: of a limit further down, or of the
 * application.
 */
static __always_inline void pace_at(struct bpf_sock_ops *ops, __u32 rate, bool local)
{
	struct bpf_sock *sk = ops->sk;
	__u32 present = 0;

	/* Linux before 6.1 cannot tell. */
	if (bpf_getsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &present, sizeof(present)) || present == 0)
		present = ~0u;
	struct limit_paced before = { .own = present, .set = present, .loopback = local };
	struct limit_paced *of = sk ? bpf_sk_storage_get(&paced, sk, &before, BPF_SK_STORAGE_GET_F_CREATE) : NULL;

	if (present <= rate || bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)))
		return;
	if (of)
		of->set = rate;
}

/*
 * Where round trips are short a segment is as large as the window, and at a pace a window hardly
 * grows. So a new connection begins with what its share brings in 2^-11 s, 0.5 ms: 40 at once are 20 ms
 * behind. Its pace spaces what follows. A wider window of the route stays, and so does one that a
 * lost SYN has closed.
 */
static __always_inline void widen(struct bpf_sock_ops *ops, __u64 share)
{
	/* Never zero. */
	__u32 mss = ops->mss_cache | 1;
	__u64 segments = limit_least(share >> 11, LIMIT_SEGMENT_MOST) / mss;
	int window = (int)segments;

	if (ops->rtt_min < LIMIT_SHORT && ops->snd_cwnd >= USUAL_WINDOW && ops->snd_cwnd < segments)
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_BPF_IW, &window, sizeof(window));
}

/* Gives a connection that is about to send its share as it is now. */
static __always_inline void follow_share(struct bpf_sock_ops *ops, const struct limit_chain *chain,
					 __u32 bank, bool loopback)
{
	struct bpf_sock *sk = ops->sk;
	struct limit_paced *of = sk ? bpf_sk_storage_get(&paced, sk, NULL, 0) : NULL;
	__u32 present = 0;

	/* The nearest cgroup's program knows all scopes. */
	if (!of || (of->loopback && !loopback) || chain->level < of->level)
		return;
	of->level = chain->level;
	__u32 rate = pace_of(chain, bank, true);
	__u32 near = of->set >> 5;

	if (rate > of->own)
		rate = of->own;
	if (rate == of->set || (rate <= of->set + near && rate >= of->set - near))
		return;
	if (!bpf_getsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &present, sizeof(present)) &&
	    present != of->set) {
		/* Its application has asked for another one since. */
		of->own = present;
		if (rate > present)
			rate = present;
	}
	if (!bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)))
		of->set = rate;
}

/*
 * A new TCP connection sends no faster than the tightest limit that it is charged to: its own timer spaces what it sends, and no qdisc is needed. A
 * virtual queue alone cannot hold a flow whose smallest window, two segments a round trip, is already more than the limit. With shares,
 * the connection asks again before each segment that it sends. What it receives is bounded by its window.
 */
SEC("sockops")
int limit_sockets(struct bpf_sock_ops *ops)
{
	struct limit_attachment *attachment = bpf_get_local_storage(&attachments, 0);
	__u32 zero = 0, op = ops->op;
	struct limit_head *h = bpf_map_lookup_elem(&head, &zero);
	bool sends = op == BPF_SOCK_OPS_HDR_OPT_LEN_CB;

	if (op == BPF_SOCK_OPS_RWND_INIT && h) {
		__u32 in_force = *(volatile __u32 *)&h->bank & 1;

		ops->reply = first_window(&attachment->chain[in_force][LIMIT_INGRESS], in_force);
		return 1;
	}
	if (op == BPF_SOCK_OPS_WRITE_HDR_OPT_CB) {
		narrow_window(ops);
		return 1;
	}
	if (!h || (!sends && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB))
		return 1;
	__u32 bank = *(volatile __u32 *)&h->bank & 1;
	const struct limit_chain *leaving = &attachment->chain[bank][LIMIT_EGRESS];
	const struct limit_chain *arriving = &attachment->chain[bank][LIMIT_INGRESS];
	bool loopback = h->flags[bank] & LIMIT_LOOPBACK;

	if (sends) {
		if (arriving->flags & LIMIT_WINDOWS)
			follow_window(ops, arriving, bank, loopback);
		/* Without data it is asked for a length, or an acknowledgement leaves. */
		if (ops->skb_len && leaving->flags & LIMIT_PACE && leaving->flags & LIMIT_SHARES)
			follow_share(ops, leaving, bank, loopback);
		return 1;
	}
	bool local = is_local(ops);

	if (local && !loopback)
		return 1;
	if (arriving->flags & LIMIT_WINDOWS)
		hold_window(ops, local);
	__u32 rate = leaving->flags & LIMIT_PACE ? pace_of(leaving, bank, false) : ~0u;

	if (rate == ~0u)
		return 1;
	pace_at(ops, rate, local);
	if (!(leaving->flags & LIMIT_SHARES))
		return 1;
	widen(ops, pace_of(leaving, bank, true));
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	return 1;
}

#endif
