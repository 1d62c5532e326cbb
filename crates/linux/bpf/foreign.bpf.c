/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sockets that a limit does not reach, or still reaches, since their process has moved: a socket
 * stays in the cgroup in which it was made. An iterator over open files compares the cgroup of each
 * socket with that of its process, and writes a record where a limited cgroup has one without the
 * other.
 *
 * Invariant: it changes nothing.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "layout.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Limited cgroups, by id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} limited SEC(".maps");

struct foreign {
	/* The limited cgroup. */
	__u64 cgroup;
	__s32 pid;
	/* 1: the socket is in it and the process is not; 0: the reverse. */
	__u32 taken;
	char command[16];
	__be32 there[4];
	__u16 family;
	__u16 port;
	__be16 port_there;
	__u16 spare;
};

/* The nearest limited cgroup at or above one; 0: there is none. */
static __always_inline __u64 limited_by(struct cgroup *cgroup)
{
	for (int i = 0; i < LIMIT_DEPTH && cgroup; i++) {
		__u64 id = BPF_CORE_READ(cgroup, kn, id);

		if (bpf_map_lookup_elem(&limited, &id))
			return id;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return 0;
}

/* Whether a cgroup is this one or below it. */
static __always_inline bool is_within(struct cgroup *cgroup, __u64 above)
{
	for (int i = 0; i < LIMIT_DEPTH && cgroup; i++) {
		if (BPF_CORE_READ(cgroup, kn, id) == above)
			return true;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return false;
}

SEC("iter/task_file")
int find_foreign(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;

	if (!task || !file)
		return 0;
	struct socket *socket = bpf_sock_from_file(file);
	struct sock *sk = socket ? socket->sk : NULL;

	if (!sk)
		return 0;
	struct foreign found = { .family = sk->__sk_common.skc_family };

	if (found.family != AF_INET && found.family != AF_INET6)
		return 0;
	struct cgroup *of_socket = sk->sk_cgrp_data.cgroup;
	struct cgroup *of_task = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	__u64 made = limited_by(of_socket), runs = limited_by(of_task);

	if (made == runs)
		return 0;
	if (runs && !is_within(of_socket, runs)) {
		found.cgroup = runs;
	} else if (made && !is_within(of_task, made)) {
		found.cgroup = made;
		found.taken = 1;
	} else {
		return 0;
	}
	found.pid = task->tgid;
	found.port = sk->__sk_common.skc_num;
	found.port_there = sk->__sk_common.skc_dport;
	if (found.family == AF_INET)
		found.there[0] = sk->__sk_common.skc_daddr;
	else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		BPF_CORE_READ_INTO(&found.there, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32);
	BPF_CORE_READ_STR_INTO(&found.command, task, comm);
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}
