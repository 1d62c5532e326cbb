/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Where a limit's scopes lie, what the command keeps beside them, and what a packet has to do with one.
 *
 * Invariant: settings are of two banks, of which the head names the one in force; queues and counts
 * are of both.
 */
#ifndef MILLPOND_SCOPE_H
#define MILLPOND_SCOPE_H

#include "layout.h"

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

/* What a scope has to do with a packet. */
struct part {
	__s64 behind;
	__s64 cost;
	__u32 bytes;
	/* Whether the scope only observes. */
	__u16 observes;
	/* Races that it lost. */
	__u16 retries;
};

/* What becomes of a packet. */
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

#endif
