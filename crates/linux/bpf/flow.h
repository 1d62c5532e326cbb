/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which TCP connection and direction a packet belongs to, by what it says itself. IPv4 addresses are in IPv6 (::ffff:a.b.c.d), so that there is one
 * form; the order of bytes is the network's.
 */
#ifndef MILLPOND_FLOW_H
#define MILLPOND_FLOW_H

#include "layout.h"

#define IPV6_EXTENSIONS 6

/* The transport header after IPv6 extension headers: its offset, with the protocol in *next. */
static __always_inline __u32 ipv6_transport(struct __sk_buff *skb, __u8 *next)
{
	__u32 at = 40;

	for (int i = 0; i < IPV6_EXTENSIONS; i++) {
		__u8 part[2];

		/* Hop-by-hop, routing, fragment, destination options, mobility; AH counts in units of four. */
		if (*next != 0 && *next != 43 && *next != 44 && *next != 60 && *next != 135 && *next != 51)
			break;
		if (bpf_skb_load_bytes(skb, at, part, 2))
			break;
		if (*next == 44)
			at += 8;
		else if (*next == 51)
			at += (part[1] + 2) * 4;
		else
			at += (part[1] + 1) * 8;
		*next = part[0];
	}
	return at;
}

/* The first byte and the addresses; false if they cannot be read. */
static __always_inline bool read_addresses(struct __sk_buff *skb, struct limit_flow *flow, __u8 *version)
{
	if (bpf_skb_load_bytes(skb, 0, version, 1))
		return false;
	if (*version >> 4 == 4) {
		flow->source[2] = flow->destination[2] = bpf_htonl(0xffff);
		return !bpf_skb_load_bytes(skb, 12, &flow->source[3], 4) && !bpf_skb_load_bytes(skb, 16, &flow->destination[3], 4);
	}
	return *version >> 4 == 6 && !bpf_skb_load_bytes(skb, 8, flow->source, 16) &&
	       !bpf_skb_load_bytes(skb, 24, flow->destination, 16);
}

/* False if it is no TCP packet, or cannot be read. */
static __always_inline bool read_flow(struct __sk_buff *skb, struct limit_flow *flow)
{
	__u8 version = 0, protocol = 0;
	bool is_v4;
	__u32 at;

	if (!read_addresses(skb, flow, &version))
		return false;
	is_v4 = version >> 4 == 4;
	if (bpf_skb_load_bytes(skb, is_v4 ? 9 : 6, &protocol, 1))
		return false;
	at = is_v4 ? (version & 15) * 4 : ipv6_transport(skb, &protocol);
	return protocol == IPPROTO_TCP && !bpf_skb_load_bytes(skb, at, &flow->source_port, 4);
}

#endif
