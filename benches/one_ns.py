#!/usr/bin/env python3
"""How much one flow completion time (FCT) is worth: one flow starts 1 ns later, and the FCTs of
all others are compared with the run in which it does not. The table of notes/one-fct.md.

Each case takes ten seeds. For each the arrivals are drawn once and written to a file, and the
file is run as it is and with one start moved: that of the largest flow of the first half.
MILLPOND names the binary. About five minutes.
"""

import csv
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MILLPOND = os.environ.get("MILLPOND", str(ROOT / "target/release/millpond"))
SEEDS = range(1, 11)
SHIFT_US = 0.001

NETWORK = """
name = "one-ns"
until = "flows-complete"
duration = "{duration}"
[topology]
kind = "leaf-spine"
leaves = 4
spines = 4
hosts-per-leaf = 8
host-link = {{ rate = "{rate}", delay = "1us" }}
fabric-link = {{ rate = "{rate}", delay = "1us" }}
[host]
jitter = "off"
[switch]
path = {{ kind = "ecmp" }}
[transport]
kind = "{transport}"
"""
WEB = '[[traffic]]\nkind = "poisson"\nsizes = "web-search"\nload = {load}\nstop = "{stop}"\n'
RING = '[[traffic]]\nkind = "stride"\noffset = 8\nsize = "4MB"\nstagger = "{stagger}ns"\n'
FILE = '[[traffic]]\nkind = "flows"\nfile = "flows.csv"\n'

# Name, link rate, transport, traffic.
CASES = [
    ("web search, load 0.3, DCTCP", "10Gbps", "dctcp", lambda _: WEB.format(load=0.3, stop="60ms")),
    ("web search, load 0.8, DCTCP", "10Gbps", "dctcp", lambda _: WEB.format(load=0.8, stop="30ms")),
    ("web search, load 0.8, DCTCP", "100Gbps", "dctcp", lambda _: WEB.format(load=0.8, stop="4ms")),
    ("web search, load 0.8, CUBIC", "10Gbps", "cubic", lambda _: WEB.format(load=0.8, stop="30ms")),
    ("web search, load 0.8, HPCC", "100Gbps", "hpcc", lambda _: WEB.format(load=0.8, stop="4ms")),
    # Stagger by seed: the ring has no arrivals to draw.
    ("32 flows in a ring, DCTCP", "10Gbps", "dctcp", lambda seed: RING.format(stagger=90 + seed)),
]


def run(folder, text, seed):
    """Runs a scenario, and returns its flows in the order of their starts."""
    scenario, table = folder / "scenario.toml", folder / "result.csv"
    scenario.write_text(text)
    out = folder / "out"
    command = [MILLPOND, "run", scenario, "--seed", str(seed), "--threads", "1"]
    command += ["--out", out, "--force", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    export = [MILLPOND, "export", out, "--csv", table]
    subprocess.run(export, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(table) as file:
        rows = [row for row in csv.DictReader(file) if row["fct_us"]]
    return sorted(rows, key=lambda row: (float(row["start_us"]), int(row["src"])))


def write(folder, flows, moved):
    """Writes flows as a traffic file; the one numbered `moved` starts later."""
    lines = ["start_us,src,dst,bytes"]
    for number, flow in enumerate(flows):
        start = float(flow["start_us"]) + (SHIFT_US if number == moved else 0.0)
        lines.append(f"{start:.6f},{flow['src']},{flow['dst']},{flow['bytes']}")
    (folder / "flows.csv").write_text("\n".join(lines) + "\n")


def pair(folder, network, traffic, seed):
    """FCTs of all flows but the moved one, without and with the move."""
    flows = run(folder, network + traffic, seed)
    half = flows[: max(len(flows) // 2, 1)]
    moved = max(range(len(half)), key=lambda number: int(half[number]["bytes"]))
    times = []
    for which in (None, moved):
        write(folder, flows, which)
        rows = run(folder, network + FILE, seed)
        assert len(rows) == len(flows), "a flow did not end"
        # Starts can change places: who sends what to whom names a flow.
        key = lambda row: (row["src"], row["dst"], row["bytes"], float(row["start_us"]))
        rows = sorted(rows, key=key)
        gone = sorted(flows, key=key).index(flows[moved])
        times.append([float(row["fct_us"]) for n, row in enumerate(rows) if n != gone])
    return times


def percentile(values, share):
    """Linear between neighbours."""
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def main():
    # Of a mean or a percentile: its change, as the mean over seeds and the largest.
    print("| traffic | links | flows a seed | flows changed | p95 | largest "
          "| mean FCT | p99 FCT |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rate, transport, traffic in CASES:
        changes, means, tails, counts = [], [], [], []
        with tempfile.TemporaryDirectory() as folder:
            network = NETWORK.format(rate=rate, transport=transport, duration="10s")
            for seed in SEEDS:
                before, after = pair(pathlib.Path(folder), network, traffic(seed), seed)
                counts.append(len(before))
                changes += [abs(b / a - 1) for a, b in zip(before, after)]
                means.append(abs(statistics.fmean(after) / statistics.fmean(before) - 1))
                tails.append(abs(percentile(after, 0.99) / percentile(before, 0.99) - 1))
        # Beyond 0.01 %: not the nanosecond itself.
        moved = sum(change > 1e-4 for change in changes) / len(changes)
        print(f"| {name} | {rate[:-4]} Gb/s | {statistics.median(counts):.0f} "
              f"| {100 * moved:.0f} % "
              f"| {100 * percentile(changes, 0.95):.1f} % | {100 * max(changes):.0f} % "
              f"| {100 * statistics.fmean(means):.2f} (≤ {100 * max(means):.2f}) % "
              f"| {100 * statistics.fmean(tails):.2f} (≤ {100 * max(tails):.1f}) % |", flush=True)


if __name__ == "__main__":
    main()
