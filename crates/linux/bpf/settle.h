/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The third stage: a packet is counted in each scope, and refunded where it was dropped.
 *
 * Invariant: each scope that was charged is settled once.
 */
#ifndef MILLPOND_SETTLE_H
#define MILLPOND_SETTLE_H

#include "judge.h"
#include "charge.h"

/* How far behind, as the number of binary digits of its microseconds. */
static __always_inline __u32 backlog_slot(const struct limit_settings *settings, __s64 behind)
{
	__u64 us = 0;
	__u32 slot = 0;

	if (behind <= 0)
		return 0;
	us = (__u64)behind;
	if (settings->form == LIMIT_CREDIT) {
		if (us > 1ull << 26)
			us = 1ull << 26;
		us = us * (settings->cost >> 10) >> (LIMIT_POINT - 10);
	}
	/* Thousandths, to 0.02 %: a division costs as much as all the rest. */
	us = (us * 4195 >> 22) + 1;
	if (us >> 16) {
		us >>= 16;
		slot += 16;
	}
	if (us >> 8) {
		us >>= 8;
		slot += 8;
	}
	if (us >> 4) {
		us >>= 4;
		slot += 4;
	}
	if (us >> 2) {
		us >>= 2;
		slot += 2;
	}
	if (us >> 1)
		slot += 1;
	slot += 1;
	return slot < LIMIT_BACKLOGS ? slot : LIMIT_BACKLOGS - 1;
}

static __always_inline void count_packet(struct limit_counts *c, const struct packet *p, const struct part *part)
{
	__s64 credit = -part->behind;

	if (c->packets == 0) {
		c->first = p->now;
		c->credit_min = credit;
	}
	c->packets += 1;
	c->bytes += part->bytes;
	c->last = p->now;
	c->credit_sum += credit;
	if (credit < c->credit_min)
		c->credit_min = credit;
	if (p->segments > 1)
		c->super_segments += 1;
	if (p->cwnd) {
		c->cwnd_sum += p->cwnd;
		c->cwnd_packets += 1;
	}
	if (p->ask.rtt) {
		c->rtt_sum_us += p->ask.rtt;
		c->rtt_packets += 1;
	}
}

static __always_inline void count_verdict(struct limit_counts *c, const struct fate *fate, __u32 bytes)
{
	c->decided += 1;
	c->floored += fate->floored;
	c->told += fate->told;
	if (fate->verdict & LIMIT_DROP) {
		c->dropped += 1;
		c->dropped_bytes += bytes;
	}
	if (fate->verdict & LIMIT_CE) {
		c->marked += 1;
		c->marked_bytes += bytes;
	}
	/* At ingress the hook cannot tell a sender anything. */
	if (fate->verdict & LIMIT_CWR && fate->heard)
		c->reduced += 1;
	if (fate->verdict & LIMIT_BYPASS)
		c->bypassed += 1;
	c->returned[fate->returned & 3] += 1;
}

/* Counts the packet in a scope and, if it is to be, refunds it. What passes with credit left needs neither settings nor queue. */
__attribute__((noinline)) int settle_scope(__u32 id, const struct packet *p, const struct part *part, const struct fate *fate)
{
	if (!p || !part || !fate)
		return 0;
	struct limit_counts *c = bpf_map_lookup_elem(&counts, &id);

	if (!c)
		return 0;
	count_packet(c, p, part);
	if (part->retries)
		c->retries += part->retries;
	if (fate->decided)
		count_verdict(c, fate, part->bytes);
	if (part->behind <= 0 && !fate->refunded) {
		c->backlog[0] += 1;
		return 1;
	}
	struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);
	struct limit_queue *queue = bpf_map_lookup_elem(&queues, &id);

	if (!banks || !queue)
		return 0;
	const struct limit_settings *settings = &banks->bank[p->bank & 1].settings;
	__u32 slot = backlog_slot(settings, part->behind);

	if (slot < LIMIT_BACKLOGS)
		c->backlog[slot] += 1;
	if (part->behind > settings->mark)
		c->behind += 1;
	if (fate->refunded)
		refund_queue(queue, settings, part->cost);
	return 1;
}

/* As settle_scope, of a scope that only observes: it counts what it would do, and what it would drop it is refunded, too. */
__attribute__((noinline)) int observe_scope(__u32 id, const struct packet *p, const struct part *part, const struct fate *fate)
{
	struct fate own = {};
	__u32 flags = 0;

	if (!p || !part || !fate)
		return 0;
	own.returned = 1;
	own.decided = 1;
	own.heard = fate->egress;
	own.verdict = judge(id, p, part, &flags);
	heed_floor(&own, p);
	own.refunded = fate->refunded || own.verdict & LIMIT_DROP;
	return settle_scope(id, p, part, &own);
}

#endif
