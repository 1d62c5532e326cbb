/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The programs at a cgroup's two packet hooks: NRM's virtual queues (Brakmo, Starovoitov, Linux Plumbers Conference 2018; limit.h has the decision).
 * A packet's charges go to every scope of its cgroup; the most congested one decides; a drop refunds all. A scope that only observes judges for
 * itself, and takes no part in the decision.
 *
 * packet.h reads the packet, charge.h charges it, judge.h says what becomes of it, settle.h counts it and refunds; report.h tells of senders
 * that another host must tell, socket.h sets sockets' pacing rates.
 *
 * Invariant: whatever is missing or does not add up, the packet passes.
 */
#define MILLPOND_NO_CORE
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "maps.h"
#include "charge.h"
#include "judge.h"
#include "settle.h"
#include "report.h"
#include "socket.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* For tests only: above 0, packets are charged to the scopes 0 to trial - 1, whatever their cgroup. A constant, so it costs nothing. */
const volatile __u32 trial = 0;

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
	if (p.ask.share)
		p.ask.share = p.ask.tcp ? largest_of(skb, chain->floor, p.ask.share) : 0;
	/* With credit it passes, but for a segment that is larger than its share. */
	if (worst < LIMIT_CHAIN && (parts[worst].behind > 0 || p.ask.share))
		fate.verdict = judge(scope_at(chain, worst), &p, &parts[worst], &flags);
	if (direction == LIMIT_INGRESS && fate.verdict & (LIMIT_DROP | LIMIT_CE) && p.ask.tcp && flags & LIMIT_SPACED)
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
	/* Only a pacing qdisc (fq) heeds it. The sender's own time stays where it is later. */
	if (direction == LIMIT_EGRESS && !p.within && p.send > skb->tstamp && !(fate.verdict & LIMIT_DROP))
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
