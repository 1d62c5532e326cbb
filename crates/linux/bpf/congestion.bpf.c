/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The congestion control of a cgroup's new TCP connections, where its limit names one. Of several
 * cgroups above a connection the nearest that names one decides: its program is called first.
 *
 * A connection that is opened gets it before its SYN, a listener before its first, so that what
 * needs ECN negotiates it. Connections to a listener that is older get it when they are
 * established, without ECN where the host does not negotiate it by itself.
 *
 * Invariant: what the kernel refuses leaves the connection as it was.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define TCP_CONGESTION 13

const volatile char name[16] = "";

/* By socket: what was decided last, so that those further up leave it. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} chosen SEC(".maps");

SEC("sockops")
int limit_congestion(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	__u32 op = ops->op;

	if (op != BPF_SOCK_OPS_TCP_CONNECT_CB && op != BPF_SOCK_OPS_TCP_LISTEN_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (!sk)
		return 1;
	__u32 *of = bpf_sk_storage_get(&chosen, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	/* A socket may connect more than once, and passes each of these calls once at a time. */
	if (!of || *of == op)
		return 1;
	char wanted[16];

	for (int i = 0; i < 16; i++)
		wanted[i] = name[i];
	bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, wanted, sizeof(wanted));
	*of = op;
	return 1;
}
