#!/usr/bin/env python3
"""The table of notes/judge.md, from the folders of `compare --worlds sim,virtual` below one folder.

Each cell is simulator / kernels, a mean over the seeds. A difference is bold if it is over 10 % of
the median or 20 % of the 99th percentile of FCT.
"""

import json
import pathlib
import re
import statistics
import sys
import urllib.parse

MOST_P50, MOST_P99 = 0.10, 0.20


def runs(folder):
    """Summaries by variant and world, in the order of the numbers in variants' names."""
    found = {}
    paths = folder.glob("*/seed-*/summary.json")
    for path in sorted(paths, key=lambda path: (numbers(path.parts[-3]), path)):
        variant, world = urllib.parse.unquote(path.parts[-3]).rsplit(" ", 1)
        summary = json.loads(path.read_text())
        if summary["status"] != "complete":
            sys.exit(f"{path}: the run is {summary['status']}")
        found.setdefault(variant, {}).setdefault(world, []).append(summary)
    return found


def numbers(text):
    return [int(digits) for digits in re.findall(r"\d+", urllib.parse.unquote(text))]


def mean(summaries, read):
    return statistics.fmean(read(summary) for summary in summaries)


def pair(ours, kernels, most):
    """Two times in one unit, with their difference; in bold if it is over the limit."""
    unit, scale = ("ms", 1000) if max(ours, kernels) >= 1000 else ("us", 1)
    difference = ours / kernels - 1
    percent = f"{100 * difference:+.0f} %".replace("-", "−")
    bold = "**" if abs(difference) > most else ""
    return f"{ours / scale:.3g} / {kernels / scale:.3g} {unit} {bold}{percent}{bold}"


def row(scene, variant, worlds):
    sim, virtual = worlds["sim"], worlds["virtual"]
    cells = [scene, variant]
    for key, most in (("p50", MOST_P50), ("p99", MOST_P99)):
        ours, kernels = (mean(of, lambda s: s["fct_us"]["all"][key]) for of in (sim, virtual))
        cells.append(pair(ours, kernels, most))
    for read in (
        lambda s: s["packets"]["retransmitted"],
        lambda s: s["timeouts"],
        lambda s: s["packets"]["ecn_marked"],
    ):
        both = [f"{mean(of, read):,.0f}" for of in (sim, virtual)]
        cells.append("0" if both == ["0", "0"] else " / ".join(both))
    return ("| " + " | ".join(cells) + " |").replace("|  |", "| |")


def main():
    print("| scene | transport | FCT p50 | FCT p99 | retransmitted | timeouts | marks |")
    print("|---|---|---|---|---|---|---|")
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        last = None
        for variant, worlds in runs(folder).items():
            *point, transport = variant.split()
            scene = " ".join([folder.name, *point])
            print(row("" if scene == last else scene, transport, worlds))
            last = scene


main()
