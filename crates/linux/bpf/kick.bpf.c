/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kick: restarts limited TCP connections that have data to send and nothing in flight. No acknowledgement will clock them, so they would
 * wait for a probe timer of at least 200 ms; the slides' kernel had 20 ms (Brakmo, Starovoitov, Linux Plumbers Conference 2018).
 * An iterator over TCP sockets sets TCP_NODELAY, which pushes what is pending, and takes it back where the application had not set it.
 *
 * Invariant: only sockets of limited cgroups, and an application's own TCP_NODELAY stays what it was.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "layout.h"
#include "maps.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define TCP_ESTABLISHED 1
#define TCP_CLOSE_WAIT 8
#define TCP_NODELAY 1

/* Of the nearest limited cgroup: which banks it is attached in, and its scope; 0: none. */
static __always_inline __u32 limited(struct tcp_sock *tp)
{
	struct cgroup *cgroup = tp->inet_conn.icsk_inet.sk.sk_cgrp_data.cgroup;

	for (int i = 0; i < LIMIT_DEPTH && cgroup; i++) {
		__u64 id = BPF_CORE_READ(cgroup, kn, id);

		__u32 *found = bpf_map_lookup_elem(&attached, &id);

		if (found)
			return *found;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return 0;
}

SEC("iter/tcp")
int kick(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp;
	int on = 1, off = 0, had = 0;
	__u32 of, scope;

	if (!common || (common->skc_state != TCP_ESTABLISHED && common->skc_state != TCP_CLOSE_WAIT))
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp || tp->packets_out != 0 || tp->write_seq == tp->snd_nxt)
		return 0;
	of = limited(tp);
	if (!of)
		return 0;
	if (bpf_getsockopt(tp, IPPROTO_TCP, TCP_NODELAY, &had, sizeof(had)))
		return 0;
	if (bpf_setsockopt(tp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		return 0;
	if (!had)
		bpf_setsockopt(tp, IPPROTO_TCP, TCP_NODELAY, &off, sizeof(off));
	scope = (of >> 16) - 1;
	struct limit_counts *c = bpf_map_lookup_elem(&counts, &scope);

	if (c)
		c->kicks += 1;
	return 0;
}
