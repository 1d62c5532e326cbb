/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * DCTCP (RFC 8257) as a congestion control of our own, for kernels without one.
 *
 * Once a window of data (3.3) the fraction of acknowledged data that was marked is averaged into alpha, alpha += (fraction - alpha) / 16; a window in which
 * there was a mark ends up smaller by alpha / 2, at most once a window. A receiver tells marks one by one (3.2): when the CE state changes
 * while an acknowledgement is held back, that one is sent first, for the state before.
 *
 * Invariant: the window is never below two packets, and alpha between 0 and 1.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define ALPHA_ONE 1024u
#define GAIN_SHIFT 4
#define CONG_NEEDS_ECN 2
#define ECN_DEMAND_CWR 4
#define ACK_TIMER 2
#define STATE_OPEN 0
#define STATE_RECOVERY 3

enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS, CA_EVENT_ECN_NO_CE, CA_EVENT_ECN_IS_CE };

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
	__u32 flags;
};

/* In the socket's private space. */
struct dctcp {
	__u32 alpha;
	/* The end of the window that is watched, and what was delivered when it began. */
	__u32 window_end;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 rcv_nxt;
	__u32 ce;
	__u32 loss_cwnd;
};

static __always_inline struct dctcp *state_of(struct sock *sk)
{
	return (struct dctcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline void begin_window(const struct tcp_sock *tp, struct dctcp *ca)
{
	ca->window_end = tp->snd_nxt;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

SEC("struct_ops/mp_dctcp_init")
void BPF_PROG(mp_dctcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);

	/* 3.3: from 1, so that the first mark is taken seriously. */
	ca->alpha = ALPHA_ONE;
	ca->rcv_nxt = tp->rcv_nxt;
	ca->ce = 0;
	ca->loss_cwnd = 0;
	begin_window(tp, ca);
}

SEC("struct_ops/mp_dctcp_ssthresh")
__u32 BPF_PROG(mp_dctcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);
	__u32 cwnd = tp->snd_cwnd;
	__u32 less = (__u32)((__u64)cwnd * ca->alpha >> 11);

	ca->loss_cwnd = cwnd;
	return cwnd > less + 2 ? cwnd - less : 2;
}

SEC("struct_ops/mp_dctcp_in_ack_event")
void BPF_PROG(mp_dctcp_in_ack_event, struct sock *sk, __u32 flags)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);

	if (before(tp->snd_una, ca->window_end))
		return;
	__u32 all = tp->delivered - ca->delivered;
	__u32 marked = tp->delivered_ce - ca->delivered_ce;
	__u32 alpha = ca->alpha;
	/* Small values decay to nothing: the shift alone would stop at 15. */
	__u32 less = alpha >> GAIN_SHIFT;

	alpha -= less ? less : alpha;
	if (marked) {
		__u32 share = (__u32)(((__u64)marked << (10 - GAIN_SHIFT)) / (all ? all : 1));

		alpha += share;
		if (alpha > ALPHA_ONE)
			alpha = ALPHA_ONE;
	}
	ca->alpha = alpha;
	begin_window(tp, ca);
}

/* 3.4 and 3.5: growth as ever, slow start below the threshold and a packet a window beyond. */
SEC("struct_ops/mp_dctcp_cong_avoid")
void BPF_PROG(mp_dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_of(sk);
	__u32 cwnd = tp->snd_cwnd, most = tp->snd_cwnd_clamp;

	/* A window that was not used does not grow: in slow start up to twice what was in flight in the last window. (What is in flight now is no
	 * measure: what this acknowledgement covers is gone from it.) */
	if (!BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) && (cwnd >= tp->snd_ssthresh || cwnd >= 2 * tp->max_packets_out))
		return;
	if (cwnd < tp->snd_ssthresh) {
		__u32 to = cwnd + acked;

		if (to > tp->snd_ssthresh)
			to = tp->snd_ssthresh;
		acked -= to - cwnd;
		cwnd = to;
	}
	if (acked) {
		__u32 grown = tp->snd_cwnd_cnt + acked;

		if (grown >= cwnd) {
			grown -= cwnd;
			cwnd += 1;
			if (grown > cwnd)
				grown = cwnd;
		}
		tp->snd_cwnd_cnt = grown;
	}
	tp->snd_cwnd = cwnd < most ? cwnd : most;
}

SEC("struct_ops/mp_dctcp_set_state")
void BPF_PROG(mp_dctcp_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);

	/* 3.5: a loss halves, as in any other TCP. */
	if (new_state == STATE_RECOVERY && ((struct inet_connection_sock *)sk)->icsk_ca_state != STATE_RECOVERY) {
		__u32 half = tp->snd_cwnd >> 1;

		ca->loss_cwnd = tp->snd_cwnd;
		tp->snd_ssthresh = half > 2 ? half : 2;
	}
}

SEC("struct_ops/mp_dctcp_cwnd_event")
void BPF_PROG(mp_dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct dctcp *ca = state_of(sk);

	if (event == CA_EVENT_LOSS) {
		__u32 half = tp->snd_cwnd >> 1;

		ca->loss_cwnd = tp->snd_cwnd;
		tp->snd_ssthresh = half > 2 ? half : 2;
		return;
	}
	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	__u32 ce = event == CA_EVENT_ECN_IS_CE;

	if (ca->ce != ce) {
		/* 3.2: what is held back belongs to the state before. */
		if (icsk->icsk_ack.pending & ACK_TIMER) {
			if (ca->ce)
				tp->ecn_flags |= ECN_DEMAND_CWR;
			else
				tp->ecn_flags &= ~ECN_DEMAND_CWR;
			bpf_tcp_send_ack(tp, ca->rcv_nxt);
		}
		ca->ce = ce;
	}
	ca->rcv_nxt = tp->rcv_nxt;
	if (ce)
		tp->ecn_flags |= ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~ECN_DEMAND_CWR;
}

SEC("struct_ops/mp_dctcp_undo_cwnd")
__u32 BPF_PROG(mp_dctcp_undo_cwnd, struct sock *sk)
{
	struct dctcp *ca = state_of(sk);
	__u32 cwnd = tcp_of(sk)->snd_cwnd;

	return cwnd > ca->loss_cwnd ? cwnd : ca->loss_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops mp_dctcp = {
	.init = (void *)mp_dctcp_init,
	.ssthresh = (void *)mp_dctcp_ssthresh,
	.cong_avoid = (void *)mp_dctcp_cong_avoid,
	.in_ack_event = (void *)mp_dctcp_in_ack_event,
	.set_state = (void *)mp_dctcp_set_state,
	.cwnd_event = (void *)mp_dctcp_cwnd_event,
	.undo_cwnd = (void *)mp_dctcp_undo_cwnd,
	.flags = CONG_NEEDS_ECN,
	.name = "mp_dctcp",
};
