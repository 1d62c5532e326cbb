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
#define LIMIT_SHORT 1000
#define LIMIT_SHARE_EVERY 50000
#define LIMIT_SHARE_SPREAD 6
#define LIMIT_SEGMENT_LEAST 6000
#define LIMIT_SEGMENT_MOST 65536
#define LIMIT_SHARE_SLOW 4
#define LIMIT_HORIZON_LEAST 2000000
#define LIMIT_HORIZON_MOST (1ull << 40)
#define LIMIT_OCTAVE (1 << 16)
#define LIMIT_LEVEL_LEAST (-LIMIT_OCTAVE / 2)
#define LIMIT_LEVEL_MOST (12 * LIMIT_OCTAVE)
#define LIMIT_PACE_LEAST 30000
#define LIMIT_WINDOW_OCTAVES 10
#define LIMIT_WINDOW_SEGMENTS 3
#define LIMIT_PAUSE_LATE 12000
#define LIMIT_PAUSE_LEAST 2000
#define LIMIT_PAUSE_MOST 200000
#define LIMIT_RTT_MOST 1000000
#define LIMIT_WINDOW_MOST (1 << 30)

enum limit_form { LIMIT_CREDIT, LIMIT_LOCK_FREE, LIMIT_EDT };
enum limit_reaction { LIMIT_LINEAR, LIMIT_STEP, LIMIT_RTT_AWARE };
enum limit_flag { LIMIT_NO_CWR = 1, LIMIT_MARK_ONLY = 2, LIMIT_OBSERVE = 4, LIMIT_SHARE = 8, LIMIT_SPACED = 16, LIMIT_HELD = 32, LIMIT_WAITS = 64 };
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
	__u32 share;
};

struct limit_loss {
	__u64 at;
	__s64 level;
	__u32 end;
	__u32 open;
};

struct limit_arrival {
	__u64 now;
	__u32 end;
	__u32 expected;
	__u32 rtt;
	__u32 data;
	__u32 last;
	__u32 held;
};

struct limit_share {
	__u64 at;
	__u64 pace;
	__s64 level;
	__u64 largest;
};

#define LIMIT_INLINE static inline __attribute__((always_inline))

/* The Rust core saturates where these could wrap; the settings keep both from happening. */
LIMIT_INLINE __u64 limit_sub(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

/* queue.rs: charge, of credit. */
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

/* queue.rs: behind. */
LIMIT_INLINE __s64 limit_behind(const struct limit_state *state, const struct limit_settings *settings, __u64 now)
{
	__u64 idle = limit_sub(now, state->last);

	if (settings->form != LIMIT_CREDIT)
		return (__s64)(state->last - now);
	if (idle > LIMIT_IDLE_MAX)
		idle = LIMIT_IDLE_MAX;
	return -state->credit - (__s64)(idle * settings->rate >> LIMIT_POINT);
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
	int paced = settings->form == LIMIT_EDT;
	int shared = tcp && ask->share != 0;
	int waits = (settings->flags & LIMIT_WAITS) != 0;
	int alone = tcp && ask->in_flight <= 1;
	__s64 told_from = tcp || ecn || paced ? settings->mark : 0;
	__s64 drop = settings->drop, drop_large = settings->drop_large;

	if (waits && !tcp && !ecn)
		told_from = drop;
	if (shared) {
		if (drop < settings->bypass)
			drop = settings->bypass;
		drop_large = drop;
		told_from = drop;
	}
	int too_far = behind > drop || (large && behind > drop_large);

	if (!too_far && behind <= told_from) {
		if (!shared || ask->bytes <= ask->share)
			return 0;
		return ecn ? LIMIT_CE : settings->flags & LIMIT_NO_CWR ? 0 : LIMIT_CWR;
	}
	__u32 verdict = LIMIT_BEHIND;

	if (too_far) {
		verdict |= tcp && !ecn ? LIMIT_DROP | LIMIT_CWR : LIMIT_DROP;
		if (alone && (shared || waits) && settings->bypass > 0 && behind < LIMIT_FLOOR * settings->drop)
			return LIMIT_BEHIND | LIMIT_BYPASS;
		if (alone && behind <= settings->bypass)
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

/* loss.rs: is_long. */
LIMIT_INLINE int limit_is_long(__u32 rtt)
{
	return rtt >= LIMIT_SHORT && rtt != ~0u;
}

/* loss.rs: spares. */
LIMIT_INLINE int limit_spares(struct limit_loss *loss, __s64 behind, const struct limit_ask *ask,
			      const struct limit_arrival *arrival)
{
	if (loss->open) {
		if ((__s32)(arrival->expected - loss->end) < 0)
			return 1;
		loss->at = arrival->now;
		loss->level = behind;
		loss->open = 0;
		return 1;
	}
	__u32 rtt = arrival->rtt == ~0u ? 0 : arrival->rtt;

	if (ask->ecn != 0 || limit_is_long(arrival->rtt)) {
		if (limit_sub(arrival->now, loss->at) < rtt * 1000ull)
			return 1;
		if (behind <= loss->level) {
			loss->at = arrival->now;
			loss->level = behind;
			return 1;
		}
	}
	loss->end = arrival->end;
	loss->open = 1;
	return 0;
}

/* loss.rs: space. */
LIMIT_INLINE __u32 limit_space(struct limit_loss *loss, const struct limit_settings *settings, __s64 behind,
			       const struct limit_ask *ask, const struct limit_arrival *arrival, __u32 verdict)
{
	if (!(settings->flags & LIMIT_SPACED) || !ask->tcp || behind > settings->bypass)
		return verdict;
	if (arrival->held && ask->ecn != 0 && limit_is_long(arrival->rtt))
		return LIMIT_BEHIND | (behind > settings->drop ? LIMIT_BYPASS : 0) |
		       (behind > (settings->drop + settings->bypass) >> 1 ? LIMIT_CE : 0);
	if (!(verdict & LIMIT_DROP))
		return verdict;
	if (arrival->data && !arrival->last && arrival->held < 2 && !limit_spares(loss, behind, ask, arrival))
		return verdict;
	return LIMIT_BEHIND | LIMIT_BYPASS | (ask->ecn ? LIMIT_CE : settings->flags & LIMIT_NO_CWR ? 0 : LIMIT_CWR);
}

/* share.rs: nanoseconds. */
LIMIT_INLINE __u64 limit_nanoseconds(const struct limit_settings *settings, __u64 amount)
{
	if (settings->form == LIMIT_CREDIT) {
		if (amount > 1ull << 26)
			amount = 1ull << 26;
		return amount * (settings->cost >> 10) >> (LIMIT_POINT - 10);
	}
	return amount > 1ull << 39 ? 1ull << 39 : amount;
}

/* share.rs: lowered. */
LIMIT_INLINE __u64 limit_lowered(const struct limit_settings *settings, __s64 octaves)
{
	__u64 full = settings->rate * 1000000000ull >> LIMIT_POINT;
	__u64 least = full < LIMIT_PACE_LEAST ? full : LIMIT_PACE_LEAST;

	if (octaves < -LIMIT_OCTAVE)
		octaves = -LIMIT_OCTAVE;
	if (octaves > LIMIT_LEVEL_MOST)
		octaves = LIMIT_LEVEL_MOST;
	octaves += LIMIT_OCTAVE;
	__u64 part = 2 * full * (__u64)(2 * LIMIT_OCTAVE - (octaves & (LIMIT_OCTAVE - 1))) >> 17;
	__u64 pace = part >> ((__u64)octaves >> 16);

	if (pace < least)
		pace = least;
	return pace < 1 ? 1 : pace;
}

LIMIT_INLINE __u64 limit_least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* window.rs: window. */
LIMIT_INLINE __u32 limit_window(const struct limit_settings *settings, __s64 behind, __u32 rtt, __u32 mss)
{
	if (!(settings->flags & LIMIT_HELD))
		return ~0u;
	if (behind <= settings->mark)
		behind = 0;
	__u64 drop = limit_nanoseconds(settings, (__u64)settings->drop);
	__u64 trip = rtt == ~0u ? 0 : limit_least(rtt, LIMIT_RTT_MOST) * 1000;
	__u64 octave = drop / LIMIT_WINDOW_OCTAVES;

	if (octave < trip + trip / 2)
		octave = trip + trip / 2;
	if (octave < 1)
		octave = 1;
	__u64 far = limit_least(limit_nanoseconds(settings, (__u64)behind), 16 * octave);
	__u64 rate = limit_least(settings->rate * 1000000000ull >> LIMIT_POINT, 1ull << 33);
	__u64 part = 2 * LIMIT_OCTAVE - (far % octave) * LIMIT_OCTAVE / octave;
	__u64 bytes = rate * (limit_least(drop, 1000000000) + trip) / 1000000000;

	bytes = limit_least(bytes, LIMIT_WINDOW_MOST) * part >> 17 >> far / octave;
	if (bytes < LIMIT_WINDOW_SEGMENTS * (__u64)mss)
		bytes = mss;
	return (__u32)limit_least(bytes, LIMIT_WINDOW_MOST);
}

/* window.rs: pause. */
LIMIT_INLINE __u32 limit_pause(const struct limit_settings *settings, __s64 behind)
{
	__s64 over = behind - settings->mark;
	__u64 pause = over > 0 ? limit_nanoseconds(settings, (__u64)over) / 1000 : 0;

	pause = limit_sub(pause, LIMIT_PAUSE_LATE);
	if (pause < LIMIT_PAUSE_LEAST)
		pause = LIMIT_PAUSE_LEAST;
	return (__u32)limit_least(pause, LIMIT_PAUSE_MOST);
}

/* share.rs: largest. */
LIMIT_INLINE __u64 limit_largest(__u64 fair)
{
	__u64 largest = fair >> LIMIT_SHARE_SPREAD;

	return largest < LIMIT_SEGMENT_LEAST ? LIMIT_SEGMENT_LEAST : largest;
}

/* share.rs: horizon. */
LIMIT_INLINE __u64 limit_horizon(__u64 fair, __u64 least)
{
	__u64 largest = limit_largest(fair);

	if (largest > LIMIT_SEGMENT_MOST)
		largest = LIMIT_SEGMENT_MOST;
	__u64 horizon = 2 * largest * 1000000000ull / fair;

	if (horizon < least)
		horizon = least;
	return horizon > LIMIT_HORIZON_MOST ? LIMIT_HORIZON_MOST : horizon;
}

/* share.rs: adjust. */
LIMIT_INLINE void limit_adjust(struct limit_share *share, const struct limit_settings *settings, __u64 now,
			       __s64 behind, __s64 cost)
{
	__s64 beyond = cost - (settings->burst >> 1);

	if (beyond > 0)
		behind -= beyond;
	__u64 least = 2 * limit_nanoseconds(settings, settings->mark < 0 ? 0 : (__u64)settings->mark);
	__u64 since = share->at == 0 ? ~0ull : limit_sub(now, share->at);
	__u64 far = limit_nanoseconds(settings, behind < 0 ? 0 - (__u64)behind : (__u64)behind);

	if (least < LIMIT_HORIZON_LEAST)
		least = LIMIT_HORIZON_LEAST;
	if (least > LIMIT_HORIZON_MOST)
		least = LIMIT_HORIZON_MOST;
	share->at = now;
	if (behind < -(settings->burst >> 1)) {
		share->level -= (__s64)((limit_least(since, 16 * least) << 16) / least);
	} else {
		__u64 horizon = limit_horizon(limit_lowered(settings, share->level), least);
		__u64 part = (limit_least(far, horizon) << 16) / horizon;
		__s64 moved = (__s64)(part * limit_least(since, horizon) / (LIMIT_SHARE_SLOW * horizon));

		share->level += behind < 0 ? -moved : moved;
	}
	if (share->level < LIMIT_LEVEL_LEAST)
		share->level = LIMIT_LEVEL_LEAST;
	if (share->level > LIMIT_LEVEL_MOST)
		share->level = LIMIT_LEVEL_MOST;
	__u64 fair = limit_lowered(settings, share->level);
	__u64 horizon = limit_horizon(fair, least);
	__u64 part = (limit_least(far, 16 * horizon) << 10) / horizon;
	__u64 pace = behind < 0 ? fair * (1024 + limit_least(part, 1024)) >> 10 : (fair << 10) / (1024 + part);

	share->largest = limit_largest(fair);
	share->pace = pace < 1 ? 1 : pace;
}

/* length.rs: wire_bytes. */
LIMIT_INLINE __u32 limit_wire_bytes(__u32 bytes, __u32 segments, __u32 headers, __u32 framing)
{
	__u32 more = segments > 1 ? segments - 1 : 0;

	return bytes + framing + more * (headers + framing);
}

#endif
