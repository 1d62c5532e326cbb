/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The first stage: a packet is charged to each scope, whose queue says how far behind it is.
 *
 * The functions of the stages are global: the verifier takes each by itself. As parts of one program
 * they would be walked once for every scope and every path before it, which is more than it can do.
 * Those that take the context are static: a kernel without BTF knows no context in a global one.
 *
 * Invariant: what is charged is counted once, however many processors charge at once; a queue that
 * could not be charged has nothing to be refunded.
 */
#ifndef MILLPOND_CHARGE_H
#define MILLPOND_CHARGE_H

#include "packet.h"
#include "scope.h"

/*
 * limit_charge_credit on a copy, whose difference is then added: a lock would cost as much as all the
 * rest. Of processors that come at once one counts the time, and the others only what they take.
 * Until the next packet credit may so be less than it is, by what was taken meanwhile.
 */
static __always_inline struct limit_charge charge_credit(struct limit_state *state, const struct limit_settings *settings,
							 __u64 now, __u32 bytes, __u32 *retries)
{
	struct limit_state was = {
		.last = *(volatile __u64 *)&state->last,
		.credit = *(volatile __s64 *)&state->credit,
	};
	struct limit_state is = was;
	struct limit_charge charge = limit_charge_credit(&is, settings, now, bytes);

	if (is.last != was.last && __sync_val_compare_and_swap(&state->last, was.last, is.last) != was.last) {
		*retries += 1;
		charge.cost = bytes;
		is.credit = was.credit - bytes;
	}
	__s64 change = is.credit - was.credit;

	charge.behind = -(__sync_fetch_and_add(&state->credit, change) + change);
	return charge;
}

#define CAS_TRIES 8

static __always_inline struct limit_charge charge_queue(struct limit_queue *queue, const struct limit_settings *settings,
							__u64 now, __u32 bytes, __u32 *retries)
{
	struct limit_charge charge = {};

	if (settings->form == LIMIT_CREDIT)
		return charge_credit(&queue->state, settings, now, bytes, retries);
	/* Linux 6.1 does not take the loop as one. */
#pragma unroll
	for (int i = 0; i < CAS_TRIES; i++) {
		__u64 last = *(volatile __u64 *)&queue->state.last, empty;

		charge = limit_charge_timed(last, &empty, settings, now, bytes);
		if (__sync_val_compare_and_swap(&queue->state.last, last, empty) == last)
			return charge;
		*retries += 1;
	}
	/* Others were faster each time: nothing was taken, so nothing is to be refunded. */
	charge.cost = 0;
	return charge;
}

static __always_inline void refund_queue(struct limit_queue *queue, const struct limit_settings *settings, __s64 cost)
{
	if (settings->form == LIMIT_CREDIT)
		__sync_fetch_and_add(&queue->state.credit, cost);
	else
		__sync_fetch_and_add(&queue->state.last, (__u64)-cost);
}

/* Lets the connections' pace follow the queue; of processors that come at once, one does it. */
static __always_inline void adjust_share(struct limit_queue *queue,
					 const struct limit_settings *settings, __u64 now,
					 const struct limit_charge *charge)
{
	__u64 at = *(volatile __u64 *)&queue->share.at;

	if (now < at + LIMIT_SHARE_EVERY || __sync_val_compare_and_swap(&queue->share.at, at, now) != at)
		return;
	struct limit_share share = { .at = at, .level = queue->share.level };

	limit_adjust(&share, settings, now, charge->behind, charge->cost);
	queue->share.level = share.level;
	queue->share.pace = share.pace;
	queue->share.largest = share.largest;
}

/* Charges the packet to a scope; 0 if there is no such scope. */
__attribute__((noinline)) int charge_scope(__u32 id, struct packet *p, struct part *part)
{
	if (!p || !part)
		return 0;
	struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);
	struct limit_queue *queue = bpf_map_lookup_elem(&queues, &id);

	if (!banks || !queue)
		return 0;
	const struct limit_scope *scope = &banks->bank[p->bank & 1];
	__u32 bytes = scope->wire ? limit_wire_bytes(p->ask.bytes, p->segments, p->headers, scope->framing) : p->ask.bytes;
	__u32 retries = 0;
	struct limit_charge charge = charge_queue(queue, &scope->settings, p->now, bytes, &retries);

	part->bytes = bytes;
	part->behind = charge.behind;
	part->cost = charge.cost;
	part->retries = retries;
	part->observes = (scope->settings.flags & LIMIT_OBSERVE) != 0;
	if (part->observes)
		return 1;
	if (scope->settings.flags & LIMIT_SHARE) {
		adjust_share(queue, &scope->settings, p->now, &charge);
		__u32 share = (__u32)*(volatile __u64 *)&queue->share.largest;

		if (p->ask.share == 0 || share < p->ask.share)
			p->ask.share = share;
	}
	if (charge.send > p->send)
		p->send = charge.send;
	/*
	 * With one scope there is nothing to compare, and among scopes that all have credit it does not matter which says that the packet
	 * passes: the division is saved.
	 */
	if (p->several)
		p->congestion = charge.behind > 0 ? limit_congestion(&scope->settings, charge.behind) : charge.behind;
	return 1;
}

#endif
