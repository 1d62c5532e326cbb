#!/usr/bin/env python3
"""Completion times of a captured run without the handshake: from the SYN-ACK's arrival at the sender.

The released TCP simulator counts so; `fct_us` here begins at the flow's start. The run has to capture
all of its hosts (`capture.pcap`); the n-th SYN from one host to another is of their n-th flow. Needs
tshark.

    millpond export out/captured --table flows --csv out/captured.csv
    python3 papers/tlt/after-handshake.py out/captured.csv out/captured/host*.pcapng
"""
import csv
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

FIELDS = ("frame.time_epoch", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "tcp.flags.ack")


def address(host):
    """As captures have it."""
    return f"10.0.{(host + 1) >> 8}.{(host + 1) & 255}"


def handshakes(captures):
    """Of each pair of addresses: when a SYN left and when its SYN-ACK arrived, in us, in the order of the SYNs."""
    left, arrived = {}, {}
    for capture in captures:
        host = address(int(Path(capture).stem.removeprefix("host")))
        fields = [word for field in FIELDS for word in ("-e", field)]
        command = ["tshark", "-r", capture, "-Y", "tcp.flags.syn == 1", "-T", "fields", *fields]
        for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
            time, src, dst, srcport, dstport, ack = line.split("\t")
            is_answer = ack in ("1", "True")
            if is_answer and dst == host:
                arrived.setdefault((dst, src, dstport, srcport), float(time) * 1e6)
            elif not is_answer and src == host:
                left.setdefault((src, dst, srcport, dstport), float(time) * 1e6)
    of_pair = defaultdict(list)
    for connection, time in sorted(left.items(), key=lambda item: item[1]):
        if connection in arrived:
            of_pair[connection[:2]].append((time, arrived[connection]))
    return of_pair


def line(name, times):
    """Mean and percentiles, ms."""
    times = sorted(times)
    at = [times[min(len(times) - 1, int(share * len(times)))] / 1e3 for share in (.5, .99, .999)]
    print(f"{name:<32}{sum(times) / len(times) / 1e3:9.3f}" + "".join(f"{time:9.3f}" for time in at))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if not shutil.which("tshark"):
        sys.exit("tshark is not installed")
    of_pair, classes = handshakes(sys.argv[2:]), defaultdict(list)
    with open(sys.argv[1], newline="") as file:
        for flow in sorted(csv.DictReader(file), key=lambda flow: float(flow["start_us"])):
            start, fct = float(flow["start_us"]), float(flow["fct_us"])
            pair = of_pair[address(int(flow["src"])), address(int(flow["dst"]))]
            if not pair:
                sys.exit(f"host{flow['src']} is not captured, or another run is: flow {flow['flow']} has no SYN there")
            _, answered = pair.pop(0)
            classes[flow["class"]].append((fct, answered - start, start + fct - answered))
    print(f"{'ms':<32}{'mean':>9}{'p50':>9}{'p99':>9}{'p99.9':>9}")
    for name, flows in classes.items():
        for kind, times in zip(("with the handshake", "the handshake", "after it"), zip(*flows)):
            line(f"{name}, {kind}", times)


if __name__ == "__main__":
    main()
