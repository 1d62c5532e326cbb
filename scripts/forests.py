#!/usr/bin/env python3
"""Draws the changes of a comparison's numbers as one SVG file, two charts in a row: a row for each
variant with its ratio to the first one and the 95 % interval.

    python3 scripts/forests.py out/demo/compare.json docs/img/five.svg

The file follows the reader's light or dark mode. Its bytes depend on the comparison alone.
"""

import json
import math
import sys

STYLE = """
:root{--text:#1a2126;--faint:#56626b;--rule:#dce1e4;--axis:#8b979f;--back:#fff;
--s1:#d55e00;--s2:#00835f;--s3:#b0508c;--s4:#b97f00;--s5:#3b8fc4;--s6:#5b666e;--s7:#7d4a1c}
@media(prefers-color-scheme:dark){:root{--text:#e6eaed;--faint:#9eabb4;--rule:#2f383f;
--axis:#6b7780;--back:#0d1117;--s1:#ff8c42;--s2:#2fc49a;--s3:#e39ac6;--s4:#edbb45;--s5:#a3d3f2;
--s6:#b4bec5;--s7:#cda67e}}
.back{fill:var(--back)}
text{font:11px system-ui,Roboto,"Noto Sans",sans-serif;fill:var(--faint)}
.caption{font-size:13px;font-weight:600;fill:var(--text)}.row{fill:var(--text);font-weight:600}
.title{font-style:italic}.grid{stroke:var(--rule);stroke-width:.8;fill:none}
.axis{stroke:var(--axis)}.line{stroke:currentColor;stroke-width:2;fill:none}
.mark{fill:currentColor;stroke:currentColor;stroke-width:1.4}.hollow{fill:var(--back)}
.doubtful{opacity:.75}
"""
WIDTH, GAP, CAPTION, ROW, LEFT = 480, 24, 24, 21, 100
TICKS = {1 / 16: "1/16×", 1 / 8: "⅛×", 1 / 4: "¼×", 1 / 2: "½×", 0.8: "0.8×"}
TICKS |= {1: "1×", 1.25: "1.25×", 2: "2×"}


def ratios(variants, name):
    """The rows of a chart: variant, ratio, its ends, and whether it is beyond the noise."""
    for variant in variants[1:]:
        change = variant["shows"][name]["difference"]
        ends = change["relative_interval"] or [change["relative"]] * 2
        values = [1 + change["relative"], *(1 + end for end in ends)]
        yield variant["variant"], values, change["noise"] == "beyond"


def chart(rows):
    least = min(1, *(low for _, (_, low, _), _ in rows)) * 0.95
    most = max(1, *(high for _, (_, _, high), _ in rows)) * 1.05
    width = math.log(most / least)

    def place(ratio):
        return LEFT + (WIDTH - LEFT - 20) * math.log(ratio / least) / width

    bottom, parts = 6 + ROW * len(rows), []
    marks = [tick for tick in TICKS if least < tick < most]
    wide = width > math.log(3)
    for tick in (tick for tick in marks if not (wide and tick in (0.8, 1.25))):
        kind, x = "axis" if tick == 1 else "grid", place(tick)
        parts.append(f'<path class="{kind}" d="M{x:.1f} 6V{bottom}"/>')
        at = f'x="{x:.1f}" y="{bottom + 16}" text-anchor="middle"'
        parts.append(f"<text {at}>{TICKS[tick]}</text>")
    at = f'x="460" y="{bottom + 35}" text-anchor="end"'
    parts.append(f'<text class="title" {at}>ratio, logarithmic</text>')
    for number, (name, (ratio, low, high), is_beyond) in enumerate(rows):
        y = 6 + ROW * number
        doubtful, hollow = ("", "") if is_beyond else (" doubtful", " hollow")
        parts.append(
            f'<path class="grid" d="M0 {y}H460"/>'
            f'<text class="row" x="0" y="{y + 14.5}">{name}</text>'
            f'<g class="s{number % 7 + 1}{doubtful}">'
            f'<path class="line" d="M{place(low):.1f} {y + 10.5}H{place(high):.1f}"/>'
            f'<circle class="mark{hollow}" cx="{place(ratio):.1f}" cy="{y + 10.5}" r="2.8"/></g>'
        )
    return "".join(parts), bottom + 41


def caption(name):
    place, metric, number = name.split(".")
    return f"{place}: {metric.upper() if metric in ('fct', 'qct') else metric} {number}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        variants = json.load(file)
    names = list(variants[0]["shows"])
    drawn = [(caption(name), *chart(list(ratios(variants, name)))) for name in names]
    heights = [height + CAPTION + GAP for _, _, height in drawn]
    rows = [max(heights[at : at + 2]) for at in range(0, len(drawn), 2)]
    width, height = 2 * WIDTH + 3 * GAP, sum(rows) + GAP
    parts = []
    for number, (title, drawing, _) in enumerate(drawn):
        x = GAP + (number % 2) * (WIDTH + GAP)
        y = GAP + sum(rows[: number // 2])
        parts.append(
            f'<g transform="translate({x} {y})"><text class="caption" x="0" y="11">{title}</text>'
            f'<g transform="translate(0 {CAPTION})">{drawing}</g></g>'
        )
    colours = "".join(f".s{n}{{color:var(--s{n})}}" for n in range(1, 8))
    with open(target, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img"><style>{STYLE}{colours}</style>'
            f'<rect class="back" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "</svg>\n"
        )


main()
