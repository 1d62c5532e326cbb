#!/usr/bin/env python3
"""The flows that TLT's released simulator of TCP draws with a seed, as files for `kind = "flows"`.

Its harness draws 300 background flows and the gaps between them from two streams of ns-3's
generator (MRG32k3a, L'Ecuyer 1999). Both have stream number 0, so they are the same numbers, of
which a flow takes three from the one (source, destination, size) and one from the other (the gap).
The receivers of the incasts follow in the first. Load 0.4, a tenth of it incast, sizes from a table
of 1,001 quantiles of web search.

    python3 scenarios/papers/tlt/released-flows.py 1 background > out/background.csv
    python3 scenarios/papers/tlt/released-flows.py 1 foreground > out/foreground.csv
"""
import math
import sys

M1, M2 = 4294967087, 4294944443
A1 = ((0, 1, 0), (0, 0, 1), (-810728, 1403580, 0))
A2 = ((0, 1, 0), (0, 0, 1), (-1370589, 0, 527612))
WEB_SEARCH = ((0, 0), (10_000, .15), (20_000, .2), (30_000, .3), (50_000, .4), (80_000, .53), (200_000, .6),
              (1_000_000, .7), (2_000_000, .8), (5_000_000, .9), (10_000_000, .97), (30_000_000, 1))
HOSTS, FLOWS, LINK, LOAD, INCAST = 96, 300, 40e9, .4, .1
EACH, RESPONSE = 4, 16_000  # flows of each server of an incast, and their size


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


def draw(seed):
    """Background and foreground, as rows of start in seconds, source, destination and bytes."""
    sizes = quantiles()
    mean = sum(sizes) / len(sizes)
    # Flows a second, and incasts: the load is of the uplinks, half as many as hosts, and headers
    # count.
    wire = 8 * 1538 / 1480
    rate = LINK * LOAD * (1 - INCAST) / (wire * mean) / 2 * HOSTS
    period = 2 * wire * EACH * RESPONSE / (LINK * LOAD * INCAST)
    picks, gaps, now = Stream(seed), Stream(seed), 0.0
    background, foreground = [], []
    for _ in range(FLOWS):
        src, dst = int(picks.uniform() * HOSTS), int(picks.uniform() * (HOSTS - 1))
        size = sizes[int(picks.uniform() * len(sizes))]
        background.append((now, src, dst + (dst >= src), size or 1))
        now -= math.log(gaps.uniform()) / rate
    now = period
    while now < background[-1][0]:
        dst = int(picks.uniform() * HOSTS)
        foreground += [(now, src, dst, RESPONSE) for src in range(HOSTS) if src != dst for _ in range(EACH)]
        now += period
    return {"background": background, "foreground": foreground}


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[1].isdigit() or sys.argv[2] not in ("background", "foreground"):
        sys.exit("usage: released-flows.py SEED background|foreground")
    print("start_us,src,dst,bytes")
    for start, *row in draw(int(sys.argv[1]))[sys.argv[2]]:
        print("%.6f,%d,%d,%d" % (start * 1e6, *row))
