/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The second stage: what becomes of a packet, by the scope that is furthest behind, its floor, and
 * what its connection has lost before (limit.h has the decisions).
 *
 * Invariant: what is missing changes no verdict.
 */
#ifndef MILLPOND_JUDGE_H
#define MILLPOND_JUDGE_H

#include "packet.h"
#include "held.h"
#include "paced.h"
#include "scope.h"

#define TCP_PSH 8

/* By connection: what it has lost to a limit. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct limit_loss);
} losses SEC(".maps");

/* What a scope would do if it alone spoke for the packet. */
__attribute__((noinline)) __u32 judge(__u32 id, const struct packet *p, const struct part *part, __u32 *flags)
{
	if (!p || !part || !flags)
		return 0;
	struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);

	if (!banks)
		return 0;
	const struct limit_settings *settings = &banks->bank[p->bank & 1].settings;

	*flags = settings->flags;
	return limit_decide(settings, part->behind, &p->ask, part->behind > 0 ? bpf_get_prandom_u32() : 0);
}

/*
 * How large a segment of the packet's connection may be: as its scopes have it, or its floor where
 * that allows more (`floor` is 1 + its scope, or 0). 0: it follows no share, since it was there
 * before its first limit.
 */
static __attribute__((noinline)) __u32 largest_of(struct __sk_buff *skb, __u32 floor, __u32 largest)
{
	struct bpf_sock *sk = skb->sk;
	struct limit_paced *of = sk ? bpf_sk_storage_get(&paced, sk, NULL, 0) : NULL;
	__u32 id = floor - 1;

	if (!of || !of->level)
		return 0;
	struct limit_queue *queue = floor ? bpf_map_lookup_elem(&queues, &id) : NULL;

	return queue && queue->share.largest > largest ? (__u32)queue->share.largest : largest;
}

/* Where a packet stands in its connection, and what it would get. */
struct arriving {
	struct limit_arrival arrival;
	__u32 verdict;
};

/* What a packet gets whose scope loses one at a time. */
__attribute__((noinline)) __u32 judge_loss(__u32 id, const struct packet *p, const struct part *part,
					   struct limit_loss *loss, const struct arriving *of)
{
	if (!p || !part || !loss || !of)
		return 0;
	struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);

	if (!banks)
		return of->verdict;
	return limit_space(loss, &banks->bank[p->bank & 1].settings, part->behind, &p->ask, &of->arrival, of->verdict);
}

/* What an arriving packet of a connection gets that its limit would drop or mark. */
static __attribute__((noinline)) __u32 space_losses(struct __sk_buff *skb, __u32 id, const struct packet *p,
						    const struct part *part, __u32 verdict)
{
	struct bpf_sock *sk = skb->sk;
	struct bpf_tcp_sock *tcp = sk ? bpf_tcp_sock(sk) : NULL;
	__be32 sequence = 0;
	/* The header's length, and the flags. */
	__u8 word[2] = {};

	if (!tcp)
		return verdict;
	struct arriving of = {
		.arrival = { .now = p->now, .expected = tcp->rcv_nxt, .rtt = tcp->rtt_min },
		.verdict = verdict,
	};

	if (bpf_skb_load_bytes(skb, p->ip + 4, &sequence, 4) || bpf_skb_load_bytes(skb, p->ip + 12, word, 2))
		return verdict;
	__u32 headers = p->ip + (word[0] >> 4) * 4;

	struct limit_held *held_to = bpf_sk_storage_get(&held, sk, NULL, 0);

	of.arrival.held = held_to && held_to->level ? held_to->paused ? 2 : 1 : 0;
	of.arrival.data = p->ask.bytes > headers ? p->ask.bytes - headers : 0;
	of.arrival.last = word[1] & TCP_PSH && p->segments <= 1;
	of.arrival.end = bpf_ntohl(sequence) + of.arrival.data;
	struct limit_loss *loss = bpf_sk_storage_get(&losses, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	return loss ? judge_loss(id, p, part, loss, &of) : verdict;
}

/* Within its floor a packet passes, whatever the other scopes say. */
static __always_inline void heed_floor(struct fate *fate, const struct packet *p)
{
	if (p->within && fate->verdict & ~(__u32)LIMIT_BEHIND) {
		fate->verdict = LIMIT_BEHIND;
		fate->floored = 1;
	}
}

/* What a verdict is at the hook. A drop returns 2 where the sender must be told (TCP), and where it must not get EPERM (all but TCP). */
static __always_inline int returned(int direction, const struct packet *p, __u32 verdict)
{
	if (direction == LIMIT_INGRESS)
		return verdict & LIMIT_DROP ? 0 : 1;
	if (verdict & LIMIT_DROP)
		return verdict & LIMIT_CWR || !p->ask.tcp ? 2 : 0;
	return verdict & LIMIT_CWR ? 3 : 1;
}

#endif
