#!/usr/bin/env python3
"""Draws the 32 combinations of `millpond reproduce combinations` as one SVG file.

    python3 scripts/heatmap.py out/reproduce-combinations docs/img/combinations.svg

A cell is the change against the network without the five systems, paired by seed, with the
program's 95 % interval (`sweep.json` of each scene). The file follows the reader's light or dark
mode. Its bytes depend on the results alone.
"""

import json
import math
import sys
from pathlib import Path

SYSTEMS = ["backdraft", "canary", "nrm", "presto", "tlt"]
LABELS = {"backdraft": "Backdraft", "canary": "Canary", "nrm": "NRM", "presto": "Presto", "tlt": "TLT"}
SIZES = ["", "alone", "two", "three", "four", "all five"]
# Scene, heading, and two numbers: where they are in the statistics, and how the column is called.
SCENES = [
    ("bursts", "Bursts", (("qct_us", "p99"), "queries p99"), (("fct_us", "pages", "p99"), "pages p99")),
    ("elephants", "Elephants", (("fct_us", "backup", "mean"), "5 MB mean"),
     (("fct_us", "pages", "p99"), "pages p99")),
    ("slow", "Slow receivers", (("latency_us", "reads", "p95"), "reads p95"),
     (("latency_us", "writes", "mean"), "writes mean")),
    ("tenants", "Limited tenants", (("latency_us", "calls", "p95"), "calls p95"),
     (("latency_us", "bulk", "mean"), "bulk mean")),
]
STYLE = """
:root{--text:#1a2126;--faint:#56626b;--rule:#c5cdd2;--back:#fff;--less:#5aa9dd;--more:#f0924a}
@media(prefers-color-scheme:dark){:root{--text:#eef2f4;--faint:#a8b4bd;--rule:#3a454d;
--back:#0d1117;--less:#1d6ca6;--more:#a8541a}}
.back{fill:var(--back)}.less{fill:var(--less)}.more{fill:var(--more)}
text{font:12px system-ui,Roboto,"Noto Sans",sans-serif;fill:var(--text);text-anchor:middle}
.left{text-anchor:start}.right{text-anchor:end}.faint{fill:var(--faint)}
.head{font-size:14px;font-weight:600}.main{font-weight:600}
.dot{fill:var(--text)}.none{fill:var(--rule)}
.rule{stroke:var(--rule);fill:none}.doubtful{stroke:var(--faint);stroke-dasharray:2 2;fill:none}
"""
SIZE_WIDTH, DOT, CELL, ROW, GAP, TOP = 62, 62, 84, 22, 10, 92


def points(folder, scene):
    """The statistics and differences of each variant of a scene, by its name."""
    path = Path(folder, scene, "sweep.json")
    try:
        sweep = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}; `millpond reproduce combinations` writes it")
    found = {point["values"]["variant"]: point for point in sweep["points"]}
    if "plain" not in found:
        sys.exit(f"{path}: no variant \"plain\" to compare with")
    return found


def number(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def variant(systems):
    """The name of a subset in the scenario, whose order of systems is another."""
    order = ["presto", "backdraft", "tlt", "nrm", "canary"]
    return "-".join(system for system in order if system in systems) or "plain"


def subsets():
    """All subsets, by size, then by name."""
    masks = [[s for at, s in enumerate(SYSTEMS) if mask >> at & 1] for mask in range(32)]
    return sorted(masks, key=lambda systems: (len(systems), systems))


def time(us):
    return f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.0f} µs"


def cell(x, y, difference, is_main):
    """A rectangle by how far the change is, on a scale of factors, and the change in percent."""
    change = difference["relative"]
    if change is None or difference["noise"] == "unknown":
        return f'<text class="faint" x="{x + CELL / 2}" y="{y + 15}">–</text>'
    is_sure = difference["noise"] in ("beyond", "agreed", "identical")
    strength = min(1.0, abs(math.log2(max(1 + change, 1e-3))) / 2)
    percent = round(change * 100)
    text = f"{percent:+d} %".replace("-", "−") if percent else "0 %"
    parts = [
        f'<rect class="{"less" if change < 0 else "more"}" x="{x + 1}" y="{y + 1}" '
        f'width="{CELL - 2}" height="{ROW - 2}" fill-opacity="{strength if is_sure else strength / 3:.2f}"/>'
    ]
    if not is_sure:
        parts.append(
            f'<rect class="doubtful" x="{x + 2.5}" y="{y + 2.5}" width="{CELL - 5}" height="{ROW - 5}"/>'
        )
        text = f"({text})"
    kind = ' class="main"' if is_main else ""
    parts.append(f'<text{kind} x="{x + CELL / 2}" y="{y + 15}">{text}</text>')
    return "".join(parts)


def heading(plain):
    """The names of systems and of columns, and what the plain network has in each."""
    parts = []
    y = TOP - 42
    for at, system in enumerate(SYSTEMS):
        x = GAP + SIZE_WIDTH + at * DOT + DOT / 2
        parts.append(f'<text class="main" x="{x}" y="{y + 16}">{LABELS[system]}</text>')
    for at, (scene, title, *columns) in enumerate(SCENES):
        x = left(at, 0)
        parts.append(f'<text class="head" x="{x + CELL}" y="{y - 8}">{title}</text>')
        parts.append(f'<path class="rule" d="M{x + 2} {y - 1}h{2 * CELL - 4}"/>')
        for side, (path, name) in enumerate(columns):
            middle = left(at, side) + CELL / 2
            kind = "" if side else ' class="main"'
            value = number(plain[scene]["plain"]["statistics"], path)["mean"]
            parts.append(f'<text{kind} x="{middle}" y="{y + 16}">{name}</text>')
            parts.append(f'<text class="faint" x="{middle}" y="{y + 34}">{time(value)}</text>')
    x = GAP + SIZE_WIDTH + len(SYSTEMS) * DOT
    parts.append(f'<text class="faint right" x="{x}" y="{y + 34}">plain network: the mean over seeds</text>')
    return parts


def left(scene, side):
    return GAP + SIZE_WIDTH + len(SYSTEMS) * DOT + GAP + scene * (2 * CELL + GAP) + side * CELL


def legend(y):
    parts = [f'<text class="left" x="{GAP}" y="{y + 15}">Change against the plain network:</text>']
    x = 220
    for change in (-0.75, -0.5, -0.25, 0.33, 1.0, 3.0):
        parts.append(cell(x, y, {"relative": change, "noise": "beyond"}, False))
        x += CELL
    parts.append(f'<text class="left" x="{x + 8}" y="{y + 15}">blue takes less time, orange more</text>')
    x, y = 220, y + ROW + 4
    parts.append(cell(x, y, {"relative": 0.1, "noise": "within"}, False))
    parts.append(
        f'<text class="left" x="{x + CELL + 8}" y="{y + 15}">the 95 % interval holds no change</text>'
    )
    return parts


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, target = sys.argv[1:]
    found = {scene: points(folder, scene) for scene, *_ in SCENES}
    parts, y, size = heading(found), TOP, 0
    for systems in subsets()[1:]:
        name = variant(systems)
        if len(systems) != size:
            size = len(systems)
            y += GAP
            parts.append(f'<text class="left faint" x="{GAP}" y="{y + 15}">{SIZES[size]}</text>')
        for at, system in enumerate(SYSTEMS):
            x = GAP + SIZE_WIDTH + at * DOT + DOT / 2
            kind, radius = ("dot", 5) if system in systems else ("none", 2)
            parts.append(f'<circle class="{kind}" cx="{x}" cy="{y + ROW / 2}" r="{radius}"/>')
        for at, (scene, _, *columns) in enumerate(SCENES):
            if name not in found[scene]:
                sys.exit(f'{folder}/{scene}: no variant "{name}"')
            differences = found[scene][name]["differences"]
            for side, (path, _) in enumerate(columns):
                parts.append(cell(left(at, side), y, number(differences, path), side == 0))
        y += ROW
    parts += legend(y + 2 * GAP)
    width, height = left(len(SCENES), 0), y + 2 * ROW + 4 * GAP
    Path(target).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>Change of eight times by each '
        f"combination of five systems</title><style>{STYLE}</style>"
        f'<rect class="back" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "</svg>\n",
        encoding="utf-8",
    )


main()
