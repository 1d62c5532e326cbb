#!/usr/bin/env python3
"""Writes the charts "Change of …" of a comparison's report as one SVG file, two in a row.

    python3 scripts/forests.py out/demo/report.html docs/img/five.svg

The file follows the reader's light or dark mode. Its bytes depend on the report alone.
"""

import re
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
.axis{stroke:var(--axis);fill:none}.line{stroke:currentColor;stroke-width:2;fill:none}
.mark{fill:currentColor;stroke:currentColor;stroke-width:1.4}.hollow{fill:var(--back)}
.doubtful{opacity:.75}
"""
WIDTH, GAP, CAPTION = 480, 24, 24


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        page = file.read()
    found = re.findall(
        r'<figure class="change"><figcaption><b>(.*?)</b>.*?'
        r'<svg class="forest" viewBox="0 0 \d+ (\d+)"[^>]*>(.*?)</svg></figure>',
        page,
        re.S,
    )
    if not found:
        sys.exit(f"{source}: the report has no chart \"Change of …\": compare at least two variants")
    heights = [int(height) + CAPTION + GAP for _, height, _ in found]
    rows = [max(heights[at : at + 2]) for at in range(0, len(found), 2)]
    width, height = 2 * WIDTH + 3 * GAP, sum(rows) + GAP
    parts = []
    for number, (caption, _, drawing) in enumerate(found):
        x = GAP + (number % 2) * (WIDTH + GAP)
        y = GAP + sum(rows[: number // 2])
        drawing = re.sub(r' data-[a-z]+="[^"]*"', "", drawing)
        parts.append(
            f'<g transform="translate({x} {y})"><text class="caption" x="0" y="11">{caption}</text>'
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
