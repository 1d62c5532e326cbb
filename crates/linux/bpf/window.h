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
/* The least that Linux takes, and a bit more than half of it. */
#define WINDOW_LEAST 1152
#define USUAL_MSS 1460
/* Linux' initial window, in segments. */
#define USUAL_WINDOW 10
#define PAUSED_LEFT (WINDOW_LEAST / 2 + 4)

/* What a connection is to offer. */
struct offer {
	/* Of its connection: the least round trip in microseconds, and the bytes of a segment. */
	__u32 rtt;
	__u32 mss;
	/* Bytes; ~0: no scope has a say. */
	__u32 window;
	/* How long its acknowledgements may wait, in microseconds. */
	__u32 pause;
};

/* Lowers an offer to a scope's. */
__attribute__((noinline)) int lower(__u32 id, __u32 bank, __u64 now, struct offer *offer)
{
	if (!offer)
		return 0;
	struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);
	struct limit_queue *queue = bpf_map_lookup_elem(&queues, &id);

	if (!banks || !queue)
		return 0;
	const struct limit_settings *settings = &banks->bank[bank & 1].settings;

	if (settings->flags & LIMIT_OBSERVE)
		return 0;
	struct limit_state state = {
		.last = *(volatile __u64 *)&queue->state.last,
		.credit = *(volatile __s64 *)&queue->state.credit,
	};
	__s64 behind = limit_behind(&state, settings, now);
	__u32 window = limit_window(settings, behind, offer->rtt, offer->mss);
	__u32 pause = window <= offer->mss ? limit_pause(settings, behind) : 0;

	if (window < offer->window)
		offer->window = window;
	if (pause > offer->pause)
		offer->pause = pause;
	return 1;
}

/* Lowers an offer to that of all scopes. */
static __always_inline void lower_all(const struct limit_chain *chain, __u32 bank, __u64 now, struct offer *offer)
{
	for (__u32 i = 0; i < LIMIT_CHAIN; i++) {
		if (i >= chain->count)
			break;
		lower(chain->scopes[i], bank, now, offer);
	}
}

/* The first window of a connection, in segments; ~0: as the kernel has it. A sender fills it before any other comes. */
static __always_inline __u32 first_window(const struct limit_chain *chain, __u32 bank)
{
	struct offer offer = { .rtt = ~0u, .mss = USUAL_MSS, .window = ~0u };

	if (!(chain->flags & LIMIT_WINDOWS))
		return ~0u;
	lower_all(chain, bank, bpf_ktime_get_ns(), &offer);
	__u32 segments = offer.window / USUAL_MSS;

	if (segments >= USUAL_WINDOW)
		return ~0u;
	return segments ? segments : 1;
}

/* Lets a new connection ask. */
static __always_inline void hold_window(struct bpf_sock_ops *ops, bool local)
{
	struct limit_held before = { .own = WINDOW_ANY, .set = ~0u, .loopback = local };
	struct bpf_sock *sk = ops->sk;

	if (sk && bpf_sk_storage_get(&held, sk, &before, BPF_SK_STORAGE_GET_F_CREATE))
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

/*
 * Lets acknowledgements wait for so long. Of the kernel's clock at least two ticks are taken, which
 * are 2, 8 or 20 ms.
 */
static __always_inline void pause_acks(struct bpf_sock_ops *ops, struct limit_held *of, __u32 pause)
{
	__u32 wanted = pause ? pause : DELACK_MAX, near = of->pause >> 3;

	if (pause == of->pause || (pause && pause <= of->pause + near && pause >= of->pause - near))
		return;
	of->pause = pause;
	for (int i = 0; i < 3; i++) {
		if (!bpf_setsockopt(ops, IPPROTO_TCP, TCP_BPF_DELACK_MAX, &wanted, sizeof(wanted)))
			return;
		wanted = wanted < 8000 ? 8000 : 20000;
	}
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
	struct offer offer = { .rtt = ops->rtt_min, .mss = ops->mss_cache, .window = ~0u };

	lower_all(chain, bank, now, &offer);
	pause_acks(ops, of, offer.pause ? offer.pause : LIMIT_PAUSE_LEAST);
	of->paused = offer.pause != 0;
	__u32 window = offer.pause ? offer.mss + PAUSED_LEFT : offer.window;
	__u32 near = of->set >> 3;
	bool holds = window != ~0u;

	if (window > of->own)
		window = of->own;
	if (!holds && of->set == ~0u)
		return;
	if (!offer.pause && holds && of->set != ~0u && now < of->at + WINDOW_AGAIN && window <= of->set + near &&
	    window >= of->set - near)
		return;
	/* Linux before 6.1 cannot tell. */
	if (!bpf_getsockopt(ops, IPPROTO_TCP, TCP_WINDOW_CLAMP, &present, sizeof(present)) &&
	    present != of->set)
		of->own = present;
	if (!holds || window > of->own)
		window = of->own;
	if (present != window && bpf_setsockopt(ops, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, sizeof(window)))
		return;
	of->at = now;
	of->set = holds ? window : ~0u;
	/* An acknowledgement: narrow_window is called when it has its window. */
	if (offer.pause && ops->args[0] == 0 && !ops->skb_len)
		bpf_reserve_hdr_opt(ops, 4, 0);
}

/*
 * While it is paused a connection counts on less than it has offered, as soon as that has been offered. Otherwise it
 * would acknowledge a segment as soon as it is read, to offer its room anew.
 */
static __always_inline void narrow_window(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct limit_held *of = sk ? bpf_sk_storage_get(&held, sk, NULL, 0) : NULL;
	__u32 least = WINDOW_LEAST;

	if (of && of->paused && of->set > least && !bpf_setsockopt(ops, IPPROTO_TCP, TCP_WINDOW_CLAMP, &least, sizeof(least)))
		of->set = least;
}

#endif
