#!/usr/bin/env python3
"""How much of a collective could an engine skip that jumps over repeating states ("orbits")?

An engine may jump by a period P only where the normalised state of a component repeats. Then its
packets repeat, too: same hosts, same sizes, same instants but for the shift. The script records
every packet that 32 ranks send, cuts time at the data packets of rank 0, and finds intervals whose
packets equal those of the interval p earlier, p of them in a row (a whole period), within 1 ns, for
any p of up to three steps of the collective. No exact engine can skip more than these: the share is
an upper bound, since equal packets do not prove equal states. The table of notes/orbits.md.

Jitter is off and all ranks start together, which is as regular as a collective can be; two cases
draw the computation before a round. MILLPOND names the binary. Needs numpy; minutes.
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
MILLPOND = os.environ.get("MILLPOND", str(ROOT / "target/release/millpond"))
RANKS = 32

SCENARIO = """
name = "orbits"
until = "flows-complete"
duration = "1s"
[topology]
kind = "leaf-spine"
leaves = 4
spines = 8
hosts-per-leaf = 8
host-link = {{ rate = "100Gbps", delay = "1us" }}
fabric-link = {{ rate = "100Gbps", delay = "1us" }}
[host]
jitter = "off"
mtu = 4000
[switch]
{switch}
[transport]
{transport}
[[traffic]]
name = "job"
kind = "collective"
op = "{op}"
algorithm = "{algorithm}"
size = "{size}"
repeat = {repeat}
placement = "{placement}"
{more}
[capture]
pcap = [{hosts}]
"""
TRIM = 'queue = { kind = "strict-priority" }\noverflow = { kind = "trim" }'
TRANSPORTS = {
    "NSCC": ('kind = "uet"', TRIM),
    "RCCC": ('kind = "uet"\nuet-control = "rccc"', TRIM),
    "DCTCP": ('kind = "dctcp"', 'marking = { kind = "ecn", threshold-bytes = "150KB" }'),
    "queue pairs, no control": ('kind = "dcqcn"', 'marking = { kind = "none" }'),
}
RING = dict(op="all-reduce", algorithm="ring", size="8MB", repeat=2, more="")
PAIRS = dict(op="all-to-all", algorithm="pairwise", size="8MB", repeat=3, more="")
LINEAR = dict(op="all-to-all", algorithm="linear", size="8MB", repeat=3, more="")
LATE = 'compute = "20us"\ncompute-jitter = 0.05'
# Name, traffic, placement.
CASES = [
    ("ring, neighbours in order", RING, "packed"),
    ("ring, placed at random", RING, "random"),
    ("ring in order, computation ± 5 %", dict(RING, more=LATE), "packed"),
    ("the same, messages of 1 MB", dict(RING, size="32MB", repeat=1, more=LATE), "packed"),
    ("ring at random, messages of 1 MB", dict(RING, size="32MB", repeat=1), "random"),
    ("ring in order, messages of 1 MB", dict(RING, size="32MB", repeat=1), "packed"),
    ("all-to-all, pair by pair", PAIRS, "packed"),
    ("all-to-all, all at once", LINEAR, "packed"),
]


def packets(path):
    """Times (ns) and lengths of the packets that the host of this capture sent."""
    data = path.read_bytes()
    at, out, resolution = 0, [], 1_000_000
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + length - 4]
        if kind == 1:  # an interface: option 9 is the resolution of its times
            option = 8
            while option + 4 <= len(body):
                code, size = struct.unpack_from("<HH", body, option)
                if code == 9:
                    resolution = 10 ** body[option + 4]
                option += 4 + (size + 3) // 4 * 4
        elif kind == 6:
            _, high, low, kept, whole = struct.unpack_from("<IIIII", body)
            flags, option = 0, 20 + (kept + 3) // 4 * 4
            while option + 4 <= len(body):
                code, size = struct.unpack_from("<HH", body, option)
                if code == 2:
                    flags = struct.unpack_from("<I", body, option + 4)[0]
                option += 4 + (size + 3) // 4 * 4
            if flags & 3 != 1:  # not inbound
                out.append((((high << 32) | low) * 1_000_000_000 // resolution, whole))
        at += length
    return out


def run(folder, text):
    """Runs a scenario; returns (time, host, length) of all packets sent, by time."""
    scenario, out = folder / "orbits.toml", folder / "out"
    scenario.write_text(text)
    command = [MILLPOND, "run", str(scenario), "--quiet", "--threads", "1", "--force"]
    done = subprocess.run(command + ["--out", str(out)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    rows = []
    for host in range(RANKS):
        (path,) = out.rglob(f"host{host}.pcapng")
        rows += [(time, host, length) for time, length in packets(path)]
    return np.array(sorted(rows), dtype=np.int64)


def skippable(rows, message, tolerance=1):
    """The share of all packets in intervals that repeat, and how many intervals there are."""
    data = rows[:, 2] > 1000
    anchors = rows[(rows[:, 1] == 0) & data][:, 0]
    cuts = np.searchsorted(rows[:, 0], anchors)
    counts = np.diff(cuts)
    intervals = []
    for i, (first, last) in enumerate(zip(cuts[:-1], cuts[1:])):
        part = rows[first:last]
        order = np.lexsort((part[:, 0], part[:, 2], part[:, 1]))
        intervals.append((part[order, 1] * 65536 + part[order, 2], part[order, 0] - anchors[i]))
    keys = [hash(who.tobytes()) for who, _ in intervals]
    n = len(intervals)
    skipped = np.zeros(n, dtype=bool)
    step = message // 3_900 + 1
    for period in range(1, min(3 * step, n // 2)):
        row = 0
        for j in range(period, n):
            same = keys[j] == keys[j - period] and bool(
                np.all(np.abs(intervals[j][1] - intervals[j - period][1]) <= tolerance)
            )
            row = row + 1 if same else 0
            if row >= period:
                skipped[j - period + 1 : j + 1] = True
    return counts[skipped].sum() / max(counts.sum(), 1), n, len(rows)


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else None
    print("| collective | " + " | ".join(TRANSPORTS) + " |")
    print("|---|" + "---|" * len(TRANSPORTS))
    with tempfile.TemporaryDirectory() as name:
        for title, traffic, placement in CASES:
            if only and only not in title:
                continue
            cells = []
            message = int(traffic["size"].removesuffix("MB")) * 1_000_000 // RANKS
            for transport, switch in TRANSPORTS.values():
                text = SCENARIO.format(
                    switch=switch,
                    transport=transport,
                    placement=placement,
                    hosts=", ".join(f'"host{host}"' for host in range(RANKS)),
                    **traffic,
                )
                share, intervals, sent = skippable(run(pathlib.Path(name), text), message)
                print(f"{title}: {intervals} intervals, {sent} packets", file=sys.stderr)
                cells.append(f"{share:.0%}")
            print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
