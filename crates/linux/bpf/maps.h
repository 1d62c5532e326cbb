/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The pinned maps that more than one object uses. The loader gives every object the same ones, by name; so their shapes are written once.
 */
#ifndef MILLPOND_MAPS_H
#define MILLPOND_MAPS_H

#include "layout.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct limit_counts);
} counts SEC(".maps");

/*
 * Cgroups that programs are attached to, by id: in which banks and directions (bit 2 * bank + direction), and 1 + its own scope in the
 * upper half.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u32);
} attached SEC(".maps");

#endif
