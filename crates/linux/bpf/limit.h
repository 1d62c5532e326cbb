/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The limiter's decision in integers: the twin of crates/core/src/limit, function by function, where the reasons are.
 * Compiled for eBPF and, for the test that proves both equal, natively. Includes nothing: whoever includes it has __u32, __u64 and
 * __s64, from vmlinux.h or <linux/types.h>.
 */
#ifndef MILLPOND_LIMIT_H
#define MILLPOND_LIMIT_H

#define LIMIT_POINT 24
#define LIMIT_IDLE_MAX 1000000000ull
#define LIMIT_SMALL 120
#define LIMIT_FLOOR 4

enum limit_form { LIMIT_CREDIT, LIMIT_LOCK_FREE, LIMIT_EDT };
enum limit_reaction { LIMIT_LINEAR, LIMIT_STEP, LIMIT_RTT_AWARE };
enum limit_flag { LIMIT_NO_CWR = 1, LIMIT_MARK_ONLY = 2, LIMIT_OBSERVE = 4 };
enum limit_verdict { LIMIT_DROP = 1, LIMIT_CE = 2, LIMIT_CWR = 4, LIMIT_BYPASS = 8, LIMIT_BEHIND = 16 };

struct limit_settings {
	__u64 rate;
	__u64 cost;
	__s64 burst;
	__s64 mark;
	__s64 drop;
	__s64 drop_large;
	__s64 bypass;
	__u32 reference_rtt;
	__u32 form;
	__u32 reaction;
	__u32 flags;
};

struct limit_state {
	__u64 last;
	__s64 credit;
};

struct limit_charge {
	__s64 behind;
	__s64 cost;
	__u64 send;
};

struct limit_ask {
	__u32 bytes;
	__u32 charged;
	__u32 in_flight;
	__u32 rtt;
	__u32 tcp;
	__u32 ecn;
};

#define LIMIT_INLINE static inline __attribute__((always_inline))

/* The Rust core saturates where these could wrap; the settings keep both from happening. */
LIMIT_INLINE __u64 limit_sub(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

/* queue.rs: charge, with credit under the caller's lock. */
LIMIT_INLINE struct limit_charge limit_charge_credit(struct limit_state *state, const struct limit_settings *settings,
						     __u64 now, __u32 bytes)
{
	if (state->last == 0) {
		state->credit = settings->burst;
		state->last = now;
	} else if (now > state->last) {
		__u64 idle = now - state->last;

		if (idle > LIMIT_IDLE_MAX)
			idle = LIMIT_IDLE_MAX;
		__u64 grown = idle * settings->rate;
		__u64 rest = grown % (1 << LIMIT_POINT);

		state->credit += (__s64)(grown >> LIMIT_POINT);
		state->last = now;
		if (state->credit >= settings->burst)
			state->credit = settings->burst;
		else if (rest > 0)
			state->last -= rest / settings->rate; /* not a byte yet */
	}
	__s64 room = state->credit + LIMIT_FLOOR * settings->drop;
	__s64 cost = bytes;

	if (room < 0)
		room = 0;
	if (cost > room)
		cost = room;
	state->credit -= cost;
	return (struct limit_charge){ .behind = -state->credit, .cost = cost };
}

/* queue.rs: charge, of the two forms that are one number; `*empty` is what `last` becomes. */
LIMIT_INLINE struct limit_charge limit_charge_timed(__u64 last, __u64 *empty, const struct limit_settings *settings,
						    __u64 now, __u32 bytes)
{
	__u64 cost = (__u64)bytes * settings->cost >> LIMIT_POINT;
	__u64 saved = limit_sub(now, (__u64)settings->burst);
	__u64 send = last > saved ? last : saved;
	__u64 floor = now + (__u64)(LIMIT_FLOOR * settings->drop);
	__u64 end = send + cost;

	if (floor < send)
		floor = send;
	if (end > floor)
		end = floor;
	*empty = end;
	if (settings->form == LIMIT_EDT)
		return (struct limit_charge){ .behind = (__s64)(send - now), .cost = (__s64)(end - send), .send = send };
	return (struct limit_charge){ .behind = (__s64)(end - now), .cost = (__s64)(end - send) };
}

LIMIT_INLINE struct limit_charge limit_charge(struct limit_state *state, const struct limit_settings *settings,
					      __u64 now, __u32 bytes)
{
	if (settings->form == LIMIT_CREDIT)
		return limit_charge_credit(state, settings, now, bytes);
	return limit_charge_timed(state->last, &state->last, settings, now, bytes);
}

/* queue.rs: refund. */
LIMIT_INLINE void limit_refund(struct limit_state *state, const struct limit_settings *settings,
			       const struct limit_charge *charge)
{
	if (settings->form == LIMIT_CREDIT)
		state->credit += charge->cost;
	else
		state->last -= (__u64)charge->cost;
}

/* scopes.rs: congestion. */
LIMIT_INLINE __s64 limit_congestion(const struct limit_settings *settings, __s64 behind)
{
	__u64 drop = settings->drop > 1 ? (__u64)settings->drop : 1;
	__u64 far = behind < 0 ? 0 - (__u64)behind : (__u64)behind;

	if (far > 1ull << 39)
		far = 1ull << 39;
	__s64 part = (__s64)((far << 16) / drop);

	return behind < 0 ? -part : part;
}

/* decide.rs: share. */
LIMIT_INLINE __u32 limit_share(const struct limit_settings *settings, const struct limit_ask *ask)
{
	if (settings->reaction != LIMIT_RTT_AWARE || ask->rtt <= settings->reference_rtt)
		return 1 << 16;
	return (__u32)(((__u64)settings->reference_rtt << 16) / ask->rtt);
}

/* decide.rs: reduces. */
LIMIT_INLINE int limit_reduces(const struct limit_settings *settings, __s64 behind, const struct limit_ask *ask,
			       __u32 draw)
{
	if (settings->reaction == LIMIT_STEP)
		return 1;
	__s64 region = settings->drop_large - settings->mark;
	__s64 over = behind - settings->mark;

	if (region < 1)
		region = 1;
	if (over < 0)
		over = 0;
	__u64 at = (__u64)region * (draw >> 8) >> 24;

	return ((__u64)over * limit_share(settings, ask) >> 16) >= at;
}

/* decide.rs: decide. */
LIMIT_INLINE __u32 limit_decide(const struct limit_settings *settings, __s64 behind, const struct limit_ask *ask,
				__u32 draw)
{
	int ecn = ask->ecn != 0;
	int tcp = ask->tcp != 0;
	int large = ask->bytes > LIMIT_SMALL;
	int too_far = behind > settings->drop || (large && behind > settings->drop_large);
	int paced = settings->form == LIMIT_EDT;
	__s64 told_from = tcp || ecn || paced ? settings->mark : 0;

	if (!too_far && behind <= told_from)
		return 0;
	__u32 verdict = LIMIT_BEHIND;

	if (too_far) {
		verdict |= tcp && !ecn ? LIMIT_DROP | LIMIT_CWR : LIMIT_DROP;
		if (tcp && ask->in_flight <= 1 && behind <= settings->bypass)
			verdict = LIMIT_BEHIND | LIMIT_BYPASS | LIMIT_CWR;
	} else if (ecn) {
		if ((draw >> 16) < limit_share(settings, ask))
			verdict |= LIMIT_CE;
	} else if (tcp) {
		if (limit_reduces(settings, behind, ask, draw))
			verdict |= LIMIT_CWR;
	} else if (large) {
		verdict |= LIMIT_DROP;
	}
	if (ecn && ((verdict & LIMIT_BYPASS) || ((settings->flags & LIMIT_MARK_ONLY) && (verdict & LIMIT_DROP))))
		verdict |= LIMIT_CE;
	if (settings->flags & LIMIT_MARK_ONLY)
		verdict &= ~(__u32)LIMIT_DROP;
	if (settings->flags & LIMIT_NO_CWR)
		verdict &= ~(__u32)LIMIT_CWR;
	return verdict;
}

/* length.rs: wire_bytes. */
LIMIT_INLINE __u32 limit_wire_bytes(__u32 bytes, __u32 segments, __u32 headers, __u32 framing)
{
	__u32 more = segments > 1 ? segments - 1 : 0;

	return bytes + framing + more * (headers + framing);
}

#endif
