#!/usr/bin/env python3
"""The table of docs/judge.md, from the folders of `compare --worlds sim,virtual` below one folder.

A number is the mean over the seeds. A row is flagged if the worlds differ by more than 10 % in the
median or 20 % in the 99th percentile of FCT.
"""

import json
import pathlib
import statistics
import sys
import urllib.parse

MOST_P50, MOST_P99 = 0.10, 0.20


def runs(folder):
    """Summaries by variant and world."""
    found = {}
    for path in sorted(folder.glob("*/seed-*/summary.json")):
        variant, world = urllib.parse.unquote(path.parts[-3]).rsplit(" ", 1)
        summary = json.loads(path.read_text())
        if summary["status"] != "complete":
            sys.exit(f"{path}: the run is {summary['status']}")
        found.setdefault(variant, {}).setdefault(world, []).append(summary)
    return found


def mean(summaries, read):
    return statistics.fmean(read(summary) for summary in summaries)


def time(us):
    unit, scale = ("ms", 1000) if us >= 1000 else ("us", 1)
    return f"{us / scale:.3g} {unit}"


def row(scene, variant, worlds):
    sim, virtual = worlds["sim"], worlds["virtual"]
    cells, flags = [scene, variant], []
    for key, most in (("p50", MOST_P50), ("p99", MOST_P99)):
        ours, kernels = (mean(of, lambda s: s["fct_us"]["all"][key]) for of in (sim, virtual))
        difference = ours / kernels - 1
        cells += [f"{time(ours)} / {time(kernels)}", f"{100 * difference:+.0f} %"]
        flags += [key] if abs(difference) > most else []
    for read in (
        lambda s: s["packets"]["dropped"],
        lambda s: s["packets"]["retransmitted"],
        lambda s: s["timeouts"],
        lambda s: s["packets"]["ecn_marked"],
    ):
        cells.append(" / ".join(f"{mean(of, read):,.0f}" for of in (sim, virtual)))
    return "| " + " | ".join(cells + [" ".join(flags)]) + " |"


def main():
    head = ["scene", "variant", "p50 sim / virtual", "", "p99 sim / virtual", ""]
    head += ["drops", "retransmitted", "timeouts", "marks", "over"]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        for variant, worlds in runs(folder).items():
            print(row(folder.name, variant, worlds))


main()
