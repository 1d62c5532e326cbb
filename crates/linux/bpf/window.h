/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Connections' receive windows, by the limits that what they receive is charged to (limit.h has the
 * law). A connection asks before each segment that it sends, also before an acknowledgement, since
 * that is what offers the window.
 *
 * Invariant: a window that an application has asked for is never exceeded, and what was before is
 * kept to be given back.
 */
#ifndef MILLPOND_WINDOW_H
#define MILLPOND_WINDOW_H

#include "held.h"
#include "scope.h"

/* The kernel's own buffers grow in between, and raise what was set: it is set again this often. */
#define WINDOW_AGAIN 1000000

/* A scope's window; ~0: it has no say. */
__attribute__((noinline)) __u32 window_at(__u32 id, __u32 bank, __u64 now, __u32 rtt, __u32 mss)
{
	struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);
	struct limit_queue *queue = bpf_map_lookup_elem(&queues, &id);

	if (!banks || !queue)
		return ~0u;
	const struct limit_settings *settings = &banks->bank[bank & 1].settings;

	if (settings->flags & LIMIT_OBSERVE)
		return ~0u;
	struct limit_state state = {
		.last = *(volatile __u64 *)&queue->state.last,
		.credit = *(volatile __s64 *)&queue->state.credit,
	};

	return limit_window(settings, limit_behind(&state, settings, now), rtt, mss);
}

/* The least window of all scopes; ~0: none has a say. */
static __always_inline __u32 window_of(const struct limit_chain *chain, __u32 bank, __u64 now, __u32 rtt, __u32 mss)
{
	__u32 least = ~0u;

	for (__u32 i = 0; i < LIMIT_CHAIN; i++) {
		if (i >= chain->count)
			break;
		__u32 window = window_at(chain->scopes[i], bank, now, rtt, mss);

		if (window < least)
			least = window;
	}
	return least;
}

/* Lets a new connection ask. */
static __always_inline void hold_window(struct bpf_sock_ops *ops, bool local)
{
	struct limit_held before = { .own = WINDOW_ANY, .set = ~0u, .loopback = local };
	struct bpf_sock *sk = ops->sk;

	if (sk && bpf_sk_storage_get(&held, sk, &before, BPF_SK_STORAGE_GET_F_CREATE))
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

/* Gives a connection that is about to send anything the window as it is now. */
static __always_inline void follow_window(struct bpf_sock_ops *ops, const struct limit_chain *chain,
					  __u32 bank, bool loopback)
{
	struct bpf_sock *sk = ops->sk;
	struct limit_held *of = sk ? bpf_sk_storage_get(&held, sk, NULL, 0) : NULL;
	__u64 now = bpf_ktime_get_ns();
	__u32 present = 0;

	/* The nearest cgroup's program knows all scopes. */
	if (!of || (of->loopback && !loopback) || chain->level < of->level)
		return;
	of->level = chain->level;
	__u32 window = window_of(chain, bank, now, ops->rtt_min, ops->mss_cache);
	__u32 near = of->set >> 3;
	bool holds = window != ~0u;

	if (window > of->own)
		window = of->own;
	if (!holds && of->set == ~0u)
		return;
	if (holds && of->set != ~0u && now < of->at + WINDOW_AGAIN && window <= of->set + near &&
	    window >= of->set - near)
		return;
	/* Linux before 6.1 cannot tell. */
	if (!bpf_getsockopt(ops, IPPROTO_TCP, TCP_WINDOW_CLAMP, &present, sizeof(present)) &&
	    present != of->set)
		of->own = present;
	if (!holds || window > of->own)
		window = of->own;
	if (bpf_setsockopt(ops, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, sizeof(window)))
		return;
	of->at = now;
	of->set = holds ? window : ~0u;
}

#endif
