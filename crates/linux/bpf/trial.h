/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For tests only: one case of the decision, from its input to all that it gives. Compiled for eBPF and natively. */
#ifndef MILLPOND_TRIAL_H
#define MILLPOND_TRIAL_H

#include "limit.h"

#define TRIAL_CASES 256

struct trial_case {
	struct limit_settings settings;
	struct limit_state state;
	struct limit_ask ask;
	__u32 gap;
	__u64 now;
	__u32 draw;
	__u32 segments;
	__u32 headers;
	__u32 framing;
	struct limit_share share;
	struct limit_loss loss;
	struct limit_arrival arrival;
	/* What it gives. */
	struct limit_charge charge;
	struct limit_state charged;
	struct limit_state refunded;
	struct limit_share adjusted;
	__s64 congestion;
	struct limit_loss lost;
	__u32 verdict;
	__u32 wire;
	__u32 spaced;
	__u32 window;
	__s64 behind;
	__u32 pause;
	__u32 spare;
};

LIMIT_INLINE void trial_run(struct trial_case *c)
{
	struct limit_state state = c->state;

	c->wire = limit_wire_bytes(c->ask.bytes, c->segments, c->headers, c->framing);
	c->charge = limit_charge(&state, &c->settings, c->now, c->ask.charged);
	c->charged = state;
	c->adjusted = c->share;
	limit_adjust(&c->adjusted, &c->settings, c->now, c->charge.behind, c->charge.cost);
	limit_refund(&state, &c->settings, &c->charge);
	c->refunded = state;
	c->congestion = limit_congestion(&c->settings, c->charge.behind);
	c->verdict = limit_decide(&c->settings, c->charge.behind, &c->ask, c->draw);
	c->behind = limit_behind(&c->charged, &c->settings, c->arrival.now);
	c->window = limit_window(&c->settings, c->charge.behind, c->arrival.rtt, c->arrival.data);
	c->pause = limit_pause(&c->settings, c->charge.behind);
	c->lost = c->loss;
	c->spaced = limit_space(&c->lost, &c->settings, c->charge.behind, &c->ask, &c->arrival, c->verdict);
}

#endif
