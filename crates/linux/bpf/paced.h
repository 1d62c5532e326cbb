/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which connections are paced, and what they were before: so that a limit that changes or goes
 * takes its pace with it, and an application's own SO_MAX_PACING_RATE stays. A rate of ~0 is none,
 * as the kernel has it.
 */
#ifndef MILLPOND_PACED_H
#define MILLPOND_PACED_H

#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47

/* Bytes a second. */
struct limit_paced {
	/* What the application asked for. */
	__u32 own;
	/* What was set last; the application has set anything else since. */
	__u32 set;
	/* Whether the connection is over loopback. */
	__u16 loopback;
	/* How deep the cgroup is whose limits decide; 0: not known. */
	__u16 level;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct limit_paced);
} paced SEC(".maps");

/* Whether an address is of loopback: ::1, or one of 127.0.0.0/8 in either form. */
static __always_inline bool is_loopback4(__be32 a)
{
	return bpf_ntohl(a) >> 24 == 127;
}

static __always_inline bool is_loopback6(__be32 a, __be32 b, __be32 c, __be32 d)
{
	if (a || b)
		return false;
	return c == bpf_htonl(0xffff) ? is_loopback4(d) : c == 0 && d == bpf_htonl(1);
}

#endif
