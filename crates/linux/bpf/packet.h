/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a packet at a cgroup's hook is, as far as a limit is concerned: its lengths, its ECN field, and its connection's state.
 */
#ifndef MILLPOND_PACKET_H
#define MILLPOND_PACKET_H

#include "flow.h"

#define IPPROTO_UDP 17

/* What a packet is, as far as it matters here. */
struct packet {
	struct limit_ask ask;
	__u32 segments;
	/* IP and transport headers. */
	__u32 headers;
	/* Those of IP alone. */
	__u32 ip;
	__u32 cwnd;
	__u32 bank;
	/* Whether several scopes have to be compared. */
	__u32 several;
	/* Whether it is within its floor. */
	__u32 within;
	__u64 now;
	/* EDT: when it may leave. */
	__u64 send;
	/* How congested the scope is that was charged last; not in its part, since there are eight of those, and little stack. */
	__s64 congestion;
};

/* The first bytes of the IP header: where the packet has them at hand, without a call. */
static __always_inline void read_first(struct __sk_buff *skb, __u8 first[10])
{
	const __u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	if (data + 10 <= end) {
		first[0] = data[0];
		first[1] = data[1];
		first[6] = data[6];
		first[9] = data[9];
	} else if (bpf_skb_load_bytes(skb, 0, first, 10)) {
		first[0] = 0;
	}
}

static __always_inline void read_packet(struct __sk_buff *skb, int direction, struct packet *p)
{
	__u8 protocol = 0, first[10] = {};
	__u32 ip = 20;

	p->ask.bytes = skb->len;
	p->segments = skb->gso_segs;
	p->ask.in_flight = ~0u;
	read_first(skb, first);
	if (first[0] >> 4 == 4) {
		ip = (first[0] & 15) * 4;
		p->ask.ecn = first[1] & 3;
		protocol = first[9];
	} else if (first[0] >> 4 == 6) {
		p->ask.ecn = first[1] >> 4 & 3;
		protocol = first[6];
		ip = ipv6_transport(skb, &protocol);
	}
	p->headers = ip;
	p->ip = ip;
	if (protocol == IPPROTO_TCP) {
		p->ask.tcp = 1;
		if (p->segments > 1) {
			__u8 length = 0x50;

			bpf_skb_load_bytes(skb, ip + 12, &length, 1);
			p->headers = ip + (length >> 4) * 4;
		}
		struct bpf_sock *sk = skb->sk;
		struct bpf_tcp_sock *tcp = sk ? bpf_tcp_sock(sk) : NULL;

		if (tcp) {
			/* What the peer has in flight is not known here. */
			if (direction == LIMIT_EGRESS)
				p->ask.in_flight = tcp->packets_out;
			p->ask.rtt = tcp->srtt_us >> 3;
			p->cwnd = tcp->snd_cwnd;
		}
	} else if (protocol == IPPROTO_UDP) {
		p->headers = ip + 8;
	}
}

#endif
