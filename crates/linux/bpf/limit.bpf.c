/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The programs at a cgroup's two packet hooks: NRM's virtual queues (Brakmo, Starovoitov, Linux Plumbers Conference 2018; limit.h has the decision).
 * A packet's charges go to every scope of its cgroup; the most congested one decides; a drop refunds all. A scope that only observes judges for
 * itself, and takes no part in the decision.
 *
 * Invariant: whatever is missing or does not add up, the packet passes.
 */
#define MILLPOND_NO_CORE
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "packet.h"
#include "maps.h"
#include "paced.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* For tests only: above 0, packets are charged to the scopes 0 to trial - 1, whatever their cgroup. A constant, so it costs nothing. */
const volatile __u32 trial = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct limit_head);
} head SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct limit_scopes);
} scopes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct limit_queue);
} queues SEC(".maps");

/* One value an attached cgroup, which the kernel hands to the program without a search. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
	__type(key, __u64);
	__type(value, struct limit_attachment);
} attachments SEC(".maps");

/* For the command only: which limit a scope belongs to, and what was applied, as text in pieces. By bank << 16 | number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct limit_label);
} labels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct limit_text);
} texts SEC(".maps");

/* For the command: flows whose senders cannot be told by their packets. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} reports SEC(".maps");

/* When each of them was last reported. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct limit_flow);
	__type(value, __u64);
} told SEC(".maps");

/* By connection: what it has lost to a limit. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct limit_loss);
} losses SEC(".maps");

/* What a scope has to do with it. */
struct part {
	__s64 behind;
	__s64 cost;
	__u32 bytes;
	/* Whether the scope only observes. */
	__u16 observes;
	/* Races that it lost. */
	__u16 retries;
};

/* What becomes of it. */
struct fate {
	__u32 verdict;
	/* What the program returns. */
	__u32 returned;
	/* Whether this scope decided. */
	__u8 decided;
	/* Whether a floor let it pass. */
	__u8 floored;
	/* Whether its sender is told by another way. */
	__u8 told;
	/* Whether the hook's own way, or the other, gets there. */
	__u8 heard;
	/* Whether its charge is taken back. */
	__u8 refunded;
	__u8 egress;
};

/* Whether another attached cgroup is closer to the packet's socket: its program charges these scopes as well, and decides. */
static __always_inline bool nearer(struct __sk_buff *skb, const struct limit_chain *chain, __u32 bank, int direction)
{
	for (__u32 down = 1; down <= LIMIT_DEPTH; down++) {
		__u64 id = bpf_skb_ancestor_cgroup_id(skb, chain->level + down);

		if (id == 0)
			return false;
		__u32 *bits = bpf_map_lookup_elem(&attached, &id);

		if (bits && *bits >> (2 * bank + direction) & 1)
			return true;
	}
	return false;
}

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
					 __s64 behind)
{
	__u64 at = *(volatile __u64 *)&queue->share.at;

	if (now < at + LIMIT_SHARE_EVERY || __sync_val_compare_and_swap(&queue->share.at, at, now) != at)
		return;
	struct limit_share share = { .at = at, .level = queue->share.level };

	limit_adjust(&share, settings, now, behind);
	queue->share.level = share.level;
	queue->share.pace = share.pace;
	queue->share.largest = share.largest;
}

/*
 * The functions below are global: the verifier takes each by itself. As parts of one program they would be walked once for every scope
 * and every path before it, which is more than it can do.
 */

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
		adjust_share(queue, &scope->settings, p->now, charge.behind);
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

/* What an arriving packet of a connection gets that its limit would drop. */
__attribute__((noinline)) __u32 space_losses(struct __sk_buff *skb, __u32 id, const struct packet *p,
					     const struct part *part, __u32 verdict)
{
	if (!p || !part)
		return verdict;
	struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);
	struct bpf_sock *sk = skb->sk;
	struct bpf_tcp_sock *tcp = sk ? bpf_tcp_sock(sk) : NULL;
	__be32 sequence = 0;
	__u8 length = 0;

	if (!banks || !tcp)
		return verdict;
	const struct limit_settings *settings = &banks->bank[p->bank & 1].settings;
	struct limit_arrival arrival = { .now = p->now, .expected = tcp->rcv_nxt, .rtt = tcp->rtt_min };

	if (!(settings->flags & LIMIT_SPACED) || bpf_skb_load_bytes(skb, p->ip + 4, &sequence, 4) ||
	    bpf_skb_load_bytes(skb, p->ip + 12, &length, 1))
		return verdict;
	__u32 headers = p->ip + (length >> 4) * 4;

	arrival.data = p->ask.bytes > headers ? p->ask.bytes - headers : 0;
	arrival.end = bpf_ntohl(sequence) + arrival.data;
	struct limit_loss *loss = bpf_sk_storage_get(&losses, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	return loss ? limit_space(loss, settings, part->behind, &p->ask, &arrival, verdict) : verdict;
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

/* Within its floor a packet passes, whatever the other scopes say. */
static __always_inline void heed_floor(struct fate *fate, const struct packet *p)
{
	if (p->within && fate->verdict & ~(__u32)LIMIT_BEHIND) {
		fate->verdict = LIMIT_BEHIND;
		fate->floored = 1;
	}
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

/* What a verdict is at the hook. A drop returns 2 where the sender must be told (TCP), and where it must not get EPERM (all but TCP). */
static __always_inline int returned(int direction, const struct packet *p, __u32 verdict)
{
	if (direction == LIMIT_INGRESS)
		return verdict & LIMIT_DROP ? 0 : 1;
	if (verdict & LIMIT_DROP)
		return verdict & LIMIT_CWR || !p->ask.tcp ? 2 : 0;
	return verdict & LIMIT_CWR ? 3 : 1;
}

/* Microseconds from one report of a flow to the next. */
static __always_inline __u32 tell_every(__u32 rtt)
{
	if (rtt == 0)
		return LIMIT_TELL_UNKNOWN;
	if (rtt < LIMIT_TELL_LEAST)
		return LIMIT_TELL_LEAST;
	return rtt > LIMIT_TELL_MOST ? LIMIT_TELL_MOST : rtt;
}

/* Reports the packet's flow, unless it was just reported; 1 if it did. Whoever reads the reports may be gone: then they are full. */
__attribute__((noinline)) int report(struct __sk_buff *skb, __u32 scope, const struct packet *p)
{
	if (!p)
		return 0;
	__u64 now = p->now;
	struct limit_report report = { .scope = scope, .at = now };

	if (!read_flow(skb, &report.flow))
		return 0;
	__u64 *last = bpf_map_lookup_elem(&told, &report.flow);

	if (last && now - *last < tell_every(p->ask.rtt) * 1000ull)
		return 0;
	if (bpf_ringbuf_output(&reports, &report, sizeof(report), 0))
		return 0;
	if (last)
		*last = now;
	else
		bpf_map_update_elem(&told, &report.flow, &now, BPF_ANY);
	return 1;
}

static __always_inline __u32 scope_at(const struct limit_chain *chain, __u32 i)
{
	return trial ? i : chain->scopes[i & (LIMIT_CHAIN - 1)];
}

static __always_inline int limit_packet(struct __sk_buff *skb, int direction)
{
	struct limit_attachment *attachment = bpf_get_local_storage(&attachments, 0);
	__u32 zero = 0, count, worst = LIMIT_CHAIN, flags = 0;
	struct limit_head *h = bpf_map_lookup_elem(&head, &zero);
	struct part parts[LIMIT_CHAIN] = {};
	struct packet p = {};
	struct fate fate = {};
	__s64 most = 0;

	if (!h)
		return 1;
	p.bank = *(volatile __u32 *)&h->bank & 1;
	const struct limit_chain *chain = &attachment->chain[p.bank][direction];

	count = trial ? trial : chain->count;
	if (count == 0)
		return 1;
	if (skb->ifindex == 1 && !(h->flags[p.bank] & LIMIT_LOOPBACK))
		return 1;
	if (!trial && chain->flags & LIMIT_NESTED && nearer(skb, chain, p.bank, direction))
		return 1;
	read_packet(skb, direction, &p);
	p.now = bpf_ktime_get_ns();
	p.several = count > 1;

	for (__u32 i = 0; i < LIMIT_CHAIN; i++) {
		if (i >= count)
			break;
		if (!charge_scope(scope_at(chain, i), &p, &parts[i]))
			return 1;
		if (!parts[i].observes && (worst == LIMIT_CHAIN || p.congestion > most)) {
			most = p.congestion;
			worst = i;
		}
	}
	/* With credit it passes, but for a segment that is larger than its share. */
	if (worst < LIMIT_CHAIN && (parts[worst].behind > 0 || p.ask.share))
		fate.verdict = judge(scope_at(chain, worst), &p, &parts[worst], &flags);
	if (direction == LIMIT_INGRESS && fate.verdict & LIMIT_DROP && p.ask.tcp)
		fate.verdict = space_losses(skb, scope_at(chain, worst), &p, &parts[worst], fate.verdict);
	/* A chain with a floor leaves the last place to it: the stack has no more room. */
	struct part *floor = &parts[LIMIT_CHAIN - 1];
	__u32 floor_id = chain->floor - 1;
	bool floored = !trial && chain->floor && count < LIMIT_CHAIN && charge_scope(floor_id, &p, floor);

	p.within = floored && floor->behind <= 0;
	heed_floor(&fate, &p);
	if (fate.verdict & LIMIT_CE && !bpf_skb_ecn_set_ce(skb)) {
		/* It could not be written: a TCP is told in the other way. */
		fate.verdict &= ~(__u32)LIMIT_CE;
		if (p.ask.tcp && !(flags & LIMIT_NO_CWR))
			fate.verdict |= LIMIT_CWR;
	}
	fate.returned = returned(direction, &p, fate.verdict);
	fate.refunded = fate.verdict & LIMIT_DROP;
	/* What egress returns as CWR, another host has to be asked for. */
	if (direction == LIMIT_INGRESS && fate.verdict & LIMIT_CWR && h->flags[p.bank & 1] & LIMIT_NOTIFY)
		fate.told = report(skb, scope_at(chain, worst), &p);
	fate.egress = direction == LIMIT_EGRESS;
	fate.heard = fate.egress || fate.told;
	for (__u32 i = 0; i < LIMIT_CHAIN; i++) {
		if (i >= count)
			break;
		fate.decided = i == worst;
		if (parts[i].observes)
			observe_scope(scope_at(chain, i), &p, &parts[i], &fate);
		else
			settle_scope(scope_at(chain, i), &p, &parts[i], &fate);
	}
	if (floored) {
		fate.decided = fate.floored;
		settle_scope(floor_id, &p, floor, &fate);
	}
	/* Only a pacing qdisc (fq) heeds it. */
	if (direction == LIMIT_EGRESS && p.send && !(fate.verdict & LIMIT_DROP))
		skb->tstamp = p.send;
	return fate.returned & (direction == LIMIT_EGRESS ? 3 : 1);
}

SEC("cgroup_skb/egress")
int limit_egress(struct __sk_buff *skb)
{
	return limit_packet(skb, LIMIT_EGRESS);
}

SEC("cgroup_skb/ingress")
int limit_ingress(struct __sk_buff *skb)
{
	return limit_packet(skb, LIMIT_INGRESS);
}

#define AF_INET6 10

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
		return bpf_ntohl(there) >> 24 == 127 || there == here;
	__u32 a = ops->remote_ip6[0], b = ops->remote_ip6[1], c = ops->remote_ip6[2], d = ops->remote_ip6[3];

	barrier_var(d);
	if (a == 0 && b == 0 && (c == bpf_htonl(0xffff) ? bpf_ntohl(d) >> 24 == 127 : c == 0 && d == bpf_htonl(1)))
		return true;
	return a == ops->local_ip6[0] && b == ops->local_ip6[1] && c == ops->local_ip6[2] && d == ops->local_ip6[3];
}

/*
 * The rate of the tightest scope, or the least share, in bytes a second; ~0: beyond 32 bits there
 * is nothing to pace.
 */
static __always_inline __u32 pace_of(const struct limit_chain *chain, __u32 bank, bool shares)
{
	__u32 rate = ~0u;

	for (__u32 i = 0; i < LIMIT_CHAIN; i++) {
		__u32 id = chain->scopes[i];

		if (i >= chain->count)
			break;
		struct limit_scopes *banks = bpf_map_lookup_elem(&scopes, &id);

		if (!banks)
			continue;
		const struct limit_settings *settings = &banks->bank[bank].settings;
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
 * the connection asks again before each segment that it sends.
 */
SEC("sockops")
int limit_pace(struct bpf_sock_ops *ops)
{
	struct limit_attachment *attachment = bpf_get_local_storage(&attachments, 0);
	__u32 zero = 0, op = ops->op;
	struct limit_head *h = bpf_map_lookup_elem(&head, &zero);
	bool sends = op == BPF_SOCK_OPS_HDR_OPT_LEN_CB;

	if (!h || (!sends && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB))
		return 1;
	/* Without data it is asked for a length, or an acknowledgement leaves. */
	if (sends && ops->skb_len == 0)
		return 1;
	__u32 bank = *(volatile __u32 *)&h->bank & 1;
	const struct limit_chain *chain = &attachment->chain[bank][LIMIT_EGRESS];

	if (!(chain->flags & LIMIT_PACE))
		return 1;
	if (sends) {
		if (chain->flags & LIMIT_SHARES)
			follow_share(ops, chain, bank, h->flags[bank] & LIMIT_LOOPBACK);
		return 1;
	}
	bool local = is_local(ops);

	if (local && !(h->flags[bank] & LIMIT_LOOPBACK))
		return 1;
	__u32 rate = pace_of(chain, bank, false);

	if (rate == ~0u)
		return 1;
	pace_at(ops, rate, local);
	if (chain->flags & LIMIT_SHARES)
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	return 1;
}
