/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the maps hold: the twin of crates/linux/src/limit/layout.rs. Whatever changes here changes LIMIT_LAYOUT there and here, since maps outlive
 * the program that made them.
 *
 * All that a user sets exists twice, in two banks. The programs read the one that limit_head.bank names; a change is written into the other,
 * and takes effect when that number is turned over, all at once.
 */
#ifndef MILLPOND_LAYOUT_H
#define MILLPOND_LAYOUT_H

#include "limit.h"

#define LIMIT_LAYOUT 2
#define LIMIT_CHAIN 8
/* How many levels of cgroups are looked through, up or down. */
#define LIMIT_DEPTH 64
#define LIMIT_BACKLOGS 24
/*
 * The time between two reports of one flow, in microseconds: a round trip, since a window is reduced once in that time, whoever asks; within bounds,
 * and where it is not known.
 */
#define LIMIT_TELL_LEAST 100
#define LIMIT_TELL_MOST 100000
#define LIMIT_TELL_UNKNOWN 1000

enum limit_direction { LIMIT_EGRESS, LIMIT_INGRESS };
enum limit_head_flag { LIMIT_LOOPBACK = 1, LIMIT_NOTIFY = 2 };
enum limit_chain_flag { LIMIT_NESTED = 1, LIMIT_PACE = 2, LIMIT_SHARES = 4, LIMIT_WINDOWS = 8 };

struct limit_head {
	__u32 layout;
	__u32 bank;
	__u32 flags[2];
};

struct limit_scope {
	struct limit_settings settings;
	/* 1: all packets of a super-segment, each with headers and framing; 0: the IP length. */
	__u32 wire;
	__u32 framing;
};

struct limit_scopes {
	struct limit_scope bank[2];
};

/* A cache line of its own. */
struct limit_queue {
	/* The command writes and reads a queue whole under it; the programs use atomic operations. */
	struct bpf_spin_lock lock;
	__u32 spare;
	struct limit_state state;
	/* Zero in queues that an earlier version has made. */
	struct limit_share share;
	__u64 line[1];
};

struct limit_chain {
	__u16 count;
	__u16 flags;
	/* The cgroup's own depth, where packets of others that are attached below it are left to those. */
	__u32 level;
	/* 1 + the scope of the rate below which it is never held; 0: none. */
	__u16 floor;
	__u16 spare;
	__u16 scopes[LIMIT_CHAIN];
};

struct limit_attachment {
	/* By bank and direction. */
	struct limit_chain chain[2][2];
};

struct limit_counts {
	/* Counts of crates/core/src/limit/scopes.rs. */
	__u64 packets;
	__u64 bytes;
	__u64 dropped;
	__u64 dropped_bytes;
	__u64 marked;
	__u64 marked_bytes;
	__u64 reduced;
	__u64 bypassed;
	__u64 decided;
	/* Packets while it was so far behind that senders are told; let through by a floor. */
	__u64 behind;
	__u64 floored;
	/* What the programs returned, of the scopes that decided. */
	__u64 returned[4];
	__u64 cwnd_sum;
	__u64 cwnd_packets;
	__u64 rtt_sum_us;
	__u64 rtt_packets;
	/* Of the credit (timed forms: of what may be sent at once), in bytes or nanoseconds. */
	__s64 credit_sum;
	__s64 credit_min;
	__u64 super_segments;
	__u64 retries;
	__u64 kicks;
	__u64 told;
	__u64 first;
	__u64 last;
	/* Packets by how far behind they found the queue: none, then 1 us, 2 us, 4 us … */
	__u64 backlog[LIMIT_BACKLOGS];
};

/* One direction of a TCP connection; IPv4 in IPv6, in the network's order. */
struct limit_flow {
	__be32 source[4];
	__be32 destination[4];
	__be16 source_port;
	__be16 destination_port;
};

/* What a limit at ingress reports: this flow's sender should slow down. */
struct limit_report {
	struct limit_flow flow;
	/* The scope that decided. */
	__u32 scope;
	/* Of the kernel's clock. */
	__u64 at;
};

struct limit_label {
	char name[64];
	__u32 direction;
	__u32 spare;
	__u64 cgroup;
};

struct limit_text {
	/* The length of the whole text. */
	__u32 length;
	char piece[4092];
};

#endif
