/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which connections' receive windows are held, and what they were before: so that a limit that
 * changes or goes takes its hold with it, and an application's own TCP_WINDOW_CLAMP stays.
 */
#ifndef MILLPOND_HELD_H
#define MILLPOND_HELD_H

#define TCP_WINDOW_CLAMP 10
#define TCP_BPF_DELACK_MAX 1003
/* The kernel's own, in microseconds. */
#define DELACK_MAX 200000
/* More than any receiver can offer: no bound. */
#define WINDOW_ANY (1u << 30)

struct limit_held {
	/* When it was set last, in nanoseconds. */
	__u64 at;
	/* What it was: the application's, or the kernel's own, which grows. */
	__u32 own;
	/* What was set last; somebody else has set anything else since. ~0: nothing. */
	__u32 set;
	/* Whether the connection is over loopback. */
	__u16 loopback;
	/* How deep the cgroup is whose limits decide; 0: not known. */
	__u16 level;
	/* How long its acknowledgements may wait, in microseconds, as it was set; 0: nothing was. */
	__u32 pause : 31;
	/* Whether it offers one segment, and waits. */
	__u32 paused : 1;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct limit_held);
} held SEC(".maps");

#endif
