#!/usr/bin/env python3
"""The flows that TLT's released simulators draw with a seed, as files for `kind = "flows"`.

Their harness draws 300 background flows and the gaps between them from two streams of ns-3's
generator (MRG32k3a, L'Ecuyer 1999). Both have stream number 0, so they are the same numbers, of
which a flow takes three from the one (source, destination, size) and one from the other (the gap).
The receivers of the incasts follow in the first. Load 0.4, a tenth of it incast, sizes from a table
of 1,001 quantiles of web search. That of RDMA takes links for 50 Gb/s, and its incasts go on until
where a 301st flow would start.

    python3 papers/tlt/released-flows.py 1 background > out/background.csv
    python3 papers/tlt/released-flows.py 1 foreground > out/foreground.csv
    python3 papers/tlt/released-flows.py 1 foreground rdma > out/foreground.csv
"""
import math
import sys
from collections import namedtuple

M1, M2 = 4294967087, 4294944443
A1 = ((0, 1, 0), (0, 0, 1), (-810728, 1403580, 0))
A2 = ((0, 1, 0), (0, 0, 1), (-1370589, 0, 527612))
WEB_SEARCH = ((0, 0), (10_000, .15), (20_000, .2), (30_000, .3), (50_000, .4), (80_000, .53), (200_000, .6),
              (1_000_000, .7), (2_000_000, .8), (5_000_000, .9), (10_000_000, .97), (30_000_000, 1))
HOSTS, FLOWS, LOAD, INCAST = 96, 300, .4, .1
# Bytes of a packet and of its payload; flows of each server of an incast, and their size.
Setting = namedtuple("Setting", "link packet payload each response beyond_last")
TCP = Setting(40e9, 1538, 1480, 4, 16_000, False)
RDMA = Setting(50e9, 1048, 1000, 5, 8_000, True)


def times(a, b, m):
    return [[sum(a[i][k] * b[k][j] for k in range(3)) % m for j in range(3)] for i in range(3)]


def skip(a, steps, seed, m):
    """The state that is so many steps after three times the seed."""
    power = [[int(i == j) for j in range(3)] for i in range(3)]
    while steps:
        if steps & 1:
            power = times(power, a, m)
        a, steps = times(a, a, m), steps >> 1
    return [sum(row) * seed % m for row in power]


class Stream:
    """Stream 2^63 (what ns-3 makes of number 0), run 1."""

    def __init__(self, seed):
        steps = (1 << 63 << 127) + (1 << 76)
        self.x, self.y = skip(A1, steps, seed, M1), skip(A2, steps, seed, M2)

    def uniform(self):
        self.x = [*self.x[1:], (1403580 * self.x[1] - 810728 * self.x[0]) % M1]
        self.y = [*self.y[1:], (527612 * self.y[2] - 1370589 * self.y[0]) % M2]
        return ((self.x[2] - self.y[2]) % M1 or M1) / (M1 + 1)


def quantiles():
    table = []
    for (low, _), (high, p) in zip(WEB_SEARCH, WEB_SEARCH[1:]):
        start, end = len(table), int(p * 1000)
        table += [int(low + (high - low) * i / (end - start)) for i in range(end - start)]
    return table + [WEB_SEARCH[-1][0]]


def draw(seed, of):
    """Background and foreground, as rows of start in seconds, source, destination and bytes."""
    sizes = quantiles()
    mean = sum(sizes) / len(sizes)
    # Flows a second, and incasts: the load is of the uplinks, half as many as hosts, and headers
    # count.
    wire = 8 * of.packet / of.payload
    rate = of.link * LOAD * (1 - INCAST) / (wire * mean) / 2 * HOSTS
    period = 2 * wire * of.each * of.response / (of.link * LOAD * INCAST)
    picks, gaps, now = Stream(seed), Stream(seed), 0.0
    background, foreground = [], []
    for _ in range(FLOWS):
        src, dst = int(picks.uniform() * HOSTS), int(picks.uniform() * (HOSTS - 1))
        size = sizes[int(picks.uniform() * len(sizes))]
        background.append((now, src, dst + (dst >= src), size or 1))
        now -= math.log(gaps.uniform()) / rate
    end = now if of.beyond_last else background[-1][0]
    now = period
    while now < end:
        dst = int(picks.uniform() * HOSTS)
        foreground += [(now, src, dst, of.response) for src in range(HOSTS) if src != dst for _ in range(of.each)]
        now += period
    return {"background": background, "foreground": foreground}


if __name__ == "__main__":
    words = sys.argv[1:]
    of = RDMA if words[2:] == ["rdma"] else TCP
    if len(words) != 2 + (of is RDMA) or not words[0].isdigit() or words[1] not in ("background", "foreground"):
        sys.exit("usage: released-flows.py SEED background|foreground [rdma]")
    print("start_us,src,dst,bytes")
    for start, *row in draw(int(words[0]), of)[words[1]]:
        print("%.6f,%d,%d,%d" % (start * 1e6, *row))
