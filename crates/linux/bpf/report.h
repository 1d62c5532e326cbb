/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Senders on other hosts, who cannot be told by the packet: the command hears of their flows.
 *
 * Invariant: a flow is reported at most once in its round-trip time; if nobody reads, nothing waits.
 */
#ifndef MILLPOND_REPORT_H
#define MILLPOND_REPORT_H

#include "packet.h"

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
static __attribute__((noinline)) int report(struct __sk_buff *skb, __u32 scope, const struct packet *p)
{
	if (!p)
		return 0;
	__u64 now = p->now;
	struct limit_report report = { .scope = scope, .at = now };
	__u8 version = 0;

	if (!p->ask.tcp || !read_addresses(skb, &report.flow, &version) ||
	    bpf_skb_load_bytes(skb, p->ip, &report.flow.source_port, 4))
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

#endif
