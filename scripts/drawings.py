#!/usr/bin/env python3
"""Draws the pictures of the book that explain: a packet's walk, the crates, an incast in time.

    python3 scripts/drawings.py                     all into docs/img
    python3 scripts/drawings.py packet-walk house   these alone
    python3 scripts/drawings.py --check             packet-walk and house as they are committed

packet-walk reads tests/stable/keys.txt: a place without a key there is an error. house reads
crates/*/Cargo.toml: a crate without a place, or one that depends on a higher layer, is an error.
incast-timeline runs scenarios/incast.toml with the program that MILLPOND names (default
target/release/millpond) and has it drawn by `plot`. The other files follow the reader's light or
dark mode. The bytes of all depend on these inputs alone.
"""

import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "img"
STYLE = """
:root{--text:#1a2126;--faint:#56626b;--rule:#8b979f;--band:#f1f4f6;--box:#fff;--back:#fff;
--s1:#d55e00;--s2:#00835f;--s3:#b0508c;--s4:#b97f00;--s5:#3b8fc4}
@media(prefers-color-scheme:dark){:root{--text:#e6eaed;--faint:#a8b4bd;--rule:#75828b;
--band:#161d24;--box:#222b33;--back:#0d1117;--s1:#ff8c42;--s2:#2fc49a;--s3:#e39ac6;--s4:#edbb45;
--s5:#6fb7e8}}
.back{fill:var(--back)}.band{fill:var(--band)}.box{fill:var(--box);stroke:var(--rule)}
text{font:12px system-ui,Roboto,"Noto Sans",sans-serif;fill:var(--text);text-anchor:middle}
.left{text-anchor:start}.right{text-anchor:end}.faint{fill:var(--faint)}
.head{font-size:14px;font-weight:600}.main{font-size:13px;font-weight:600}.bold{font-weight:600}
.line{stroke:var(--faint);stroke-width:1.5;fill:none;marker-end:url(#tip)}
.link{stroke:var(--text);stroke-width:2.5;fill:none;marker-end:url(#tip)}
.dashed{stroke-dasharray:5 4}.tip{fill:var(--faint)}.axis{stroke:var(--rule);fill:none}.grid{stroke:var(--rule);stroke-opacity:.35;fill:none}
.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}.s4{color:var(--s4)}.s5{color:var(--s5)}
.ink{color:var(--text)}.pill{fill:currentColor;fill-opacity:.22;stroke:currentColor}.bar{fill:currentColor}
.over{stroke:currentColor;stroke-width:2;fill:none;marker-end:url(#tip)}
.area{fill:currentColor;fill-opacity:.3;stroke:currentColor}
.limit{stroke:currentColor;stroke-width:1.3;stroke-dasharray:5 4;fill:none}
"""
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
)


def drawing(width, height, title, description, parts):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}</title>'
        f"<desc>{escape(description)}</desc><style>{STYLE}</style>{TIP}"
        f'<rect class="back" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "</svg>\n"
    )


def text(x, y, words, kind=""):
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:g}" y="{y:g}">{escape(words)}</text>'


def line(path, kind="line"):
    return f'<path class="{kind}" d="{path}"/>'


def band(x, y, width, height, title):
    return (
        f'<rect class="band" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
        + text(x + 12, y + 21, title, "left head")
    )


class Box:
    """A rectangle by its left upper corner, with a name and a line below it."""

    def __init__(self, x, y, width, height=44):
        self.x, self.y, self.width, self.height = x, y, width, height
        self.right, self.bottom = x + width, y + height
        self.across, self.middle = x + width / 2, y + height / 2

    def draw(self, name, note, kind="box"):
        return (
            f'<rect class="{kind}" x="{self.x:g}" y="{self.y}" width="{self.width:g}" '
            f'height="{self.height}" rx="5"/>'
            + text(self.across, self.middle - 3, name, "main")
            + text(self.across, self.middle + 14, note, "faint")
        )


# A packet's walk

SYSTEMS = {
    "Presto": ("s5", "a label for each flowcell of up to 64 KB, paths by label, receive offload by flowcell"),
    "TLT": ("s1", "one packet of a flow is important, and admission by color keeps it"),
    "Canary": ("s2", "path by queue length, admission by rank, deflection, and order at the receiver"),
    "NRM": ("s4", "limits without a queue, on the way out and on the way in"),
    "Backdraft": ("s3", "a virtual switch in the place of ring and core, whose overlay pauses flows at their source"),
}
# Name, line below it, systems, and the place or table in a scenario.
SENDING = [
    ("application", "writes data", (), "traffic"),
    ("transport", "makes segments", ("Backdraft",), "transport"),
    ("limit", "passes or refuses", ("NRM",), "limit"),
    ("importance", "green or red", ("TLT",), "transport.importance"),
    ("rank", "first or later", ("Canary",), "transport.rank"),
    ("label", "the path to take", ("Presto",), "edge.load-balancing"),
    ("NIC queue", "sends packets", (), "host.nic"),
]
PLACES = [
    ("path", ("Presto", "Canary")), ("admission", ("TLT", "Canary")), ("buffer", ()),
    ("marking", ()), ("queue", ()),
]
BELOW = ["deflection", "overflow", "pause"]
RECEIVING = [
    ("ring", "holds packets", (), "host.receive-offload"),
    ("core", "polls the ring", (), "host.receive-cpu"),
    ("receive offload", "merges packets", ("Presto",), "host.receive-offload"),
    ("order", "waits for gaps", ("Canary",), "transport.ordering"),
    ("limit", "passes or drops", ("NRM",), "limit"),
    ("transport", "acknowledges", (), "transport"),
    ("application", "reads data", (), "application"),
]
STAGE, STEP = 116, 129


def pills(across, y, systems):
    """Names of systems side by side around a place."""
    widths = [16 + 7 * len(name) for name in systems]
    x, parts = across - (sum(widths) + 4 * (len(widths) - 1)) / 2, []
    for name, width in zip(systems, widths):
        parts.append(
            f'<g class="{SYSTEMS[name][0]}"><rect class="pill" x="{x:g}" y="{y}" width="{width}" '
            f'height="18" rx="9"/>{text(x + width / 2, y + 13, name)}</g>'
        )
        x += width + 4
    return parts


def stages(y, names):
    """A host's stages from left to right, and their boxes."""
    parts, boxes = [], [Box(49 + at * STEP, y + 56, STAGE) for at in range(len(names))]
    for box, (name, note, systems, _) in zip(boxes, names):
        parts += pills(box.across, y + 34, systems) + [box.draw(name, note)]
    parts += [line(f"M{a.right} {a.middle:g}H{b.x}") for a, b in zip(boxes, boxes[1:])]
    return parts, boxes


def wrap(start, end, y):
    """A link from the end of one row to the start of the next."""
    path = f"M{start.right} {start.middle:g}H962V{y}H26V{end.middle:g}H{end.x}"
    return [line(path, "link"), text(490, y - 6, "link", "faint")]


def switch(y):
    """A switch's places, with their ways to deflection, overflow and pause."""
    parts, boxes = [], {}
    for at, (name, systems) in enumerate(PLACES):
        box = boxes[name] = Box(72 + at * 178, y + 56, 124)
        parts += pills(box.across, y + 34, systems) + [box.draw(name, f"switch.{name}")]
    row = list(boxes.values())
    parts += [line(f"M{a.right} {a.middle:g}H{b.x}") for a, b in zip(row, row[1:])]
    low = y + 146
    other = Box(row[0].x, low, 124)
    deflection = Box((row[1].x + row[2].x) / 2, low, 124)
    overflow = Box(row[3].x, low, 124)
    pause = Box(row[4].x, low, 124)
    parts += [
        other.draw("another port", "asks its places"),
        deflection.draw("deflection", "switch.deflection"),
        overflow.draw("overflow", "drop or trim"),
        pause.draw("pause", "switch.pause"),
        line(f"M{row[1].across} {row[1].bottom}V{low - 22}H{deflection.across - 30}V{low}"),
        line(f"M{row[2].across} {row[2].bottom}V{low - 22}H{deflection.across + 30}V{low}"),
        text(row[1].across - 8, low - 27, "refused", "right"),
        text(row[2].across - 8, low - 27, "full", "right"),
        line(f"M{deflection.x} {deflection.middle:g}H{other.right}"),
        text((deflection.x + other.right) / 2, deflection.middle - 6, "to a port with room"),
        line(f"M{deflection.right} {deflection.middle:g}H{overflow.x}"),
        text((deflection.right + overflow.x) / 2, deflection.middle - 6, "none has room"),
        line(f"M{row[2].across + 40} {row[2].bottom}V{low - 22}H{overflow.across}V{low}"),
        text(row[2].across + 48, low - 27, "full, and can be trimmed", "left"),
        line(f"M{row[4].across} {row[4].bottom}V{low}"),
        text(row[4].across - 8, low - 18, "memory fills", "right"),
        line(f"M{pause.across} {pause.bottom}V{low + 64}", "line dashed"),
        text(pause.across - 8, low + 62, "stops or starts a neighbour", "right"),
    ]
    return parts + pills(deflection.across, deflection.bottom + 6, ("Canary",)), row


def packet_walk():
    keys = (ROOT / "tests/stable/keys.txt").read_text(encoding="utf-8")
    wanted = [key for *_, key in SENDING + RECEIVING] + ["edge.virtual-switch"]
    wanted += [f"switch.{name}" for name in [name for name, _ in PLACES] + BELOW]
    lost = [key for key in wanted if not re.search(rf"^{re.escape(key)}(?:[.:]|$)", keys, re.M)]
    if lost:
        sys.exit(f"tests/stable/keys.txt: no key of {lost[0]}: has scripts/drawings.py its old name?")
    tops = [14, 170, 446]
    parts = [
        band(40, tops[0], 908, 116, "Sending host"),
        band(40, tops[1], 908, 226, "Each switch"),
        band(40, tops[2], 908, 174, "Receiving host"),
    ]
    sending, out = stages(tops[0], SENDING)
    places, row = switch(tops[1])
    receiving, up = stages(tops[2], RECEIVING)
    virtual = Box(up[0].x, up[0].bottom + 20, up[1].right - up[0].x)
    held = out[1].across - (16 + 7 * len("Backdraft")) / 2
    parts += sending + places + receiving
    parts += wrap(out[-1], row[0], 156) + wrap(row[-1], up[0], 428)
    parts += [
        virtual.draw("or a virtual switch", "edge.virtual-switch"),
        line(f"M{up[0].across} {up[0].bottom}V{virtual.y}", "line dashed"),
        line(f"M{virtual.right} {virtual.middle:g}H{up[2].across}V{up[2].bottom}", "line dashed"),
        '<g class="s3">'
        + line(f"M{virtual.x} {virtual.middle:g}H10V{tops[0] + 43}H{held:g}", "over dashed") + "</g>",
    ]
    parts += pills(up[3].x + 12, virtual.middle - 9, ("Backdraft",))
    parts.append(
        text(up[3].x + 62, virtual.middle + 4, "its overlay pauses a flow in the sending host", "left faint")
    )
    y = tops[2] + 190
    for name, (_, words) in SYSTEMS.items():
        parts += pills(80, y, (name,)) + [text(130, y + 13, words, "left")]
        y += 24
    return drawing(
        988, y + 8, "A packet's walk",
        "Stages of the sending host, places of a switch and stages of the receiving host, in the order "
        "in which a packet passes them, and the parts of Presto, TLT, Canary, NRM and Backdraft in them.",
        parts,
    )


# The crates

LAYERS = ["core", "engine", "worlds", "façade", "command"]
# Layer, left upper corner, width, and content of each crate.
CRATES = {
    "cli": ("command", 190, 24, 140, "the command"),
    "python": ("command", 480, 24, 140, "Python package"),
    "millpond": ("façade", 190, 100, 740, "the library's API, 40 public items at most"),
    "import": ("engine", 32, 262, 140, "foreign files"),
    "claims": ("engine", 190, 262, 140, "papers' claims"),
    "sim": ("engine", 350, 262, 140, "virtual time"),
    "results": ("engine", 370, 342, 120, "results folder"),
    "scenario": ("engine", 190, 422, 140, "TOML to a plan"),
    "ranks": ("core", 190, 516, 140, "schedules of jobs"),
    "core": ("core", 370, 516, 560, "decisions of every world: packet, switch, host, control laws"),
    "virtual": ("worlds", 770, 190, 160, "kernels in virtual time"),
    "lab": ("worlds", 570, 262, 160, "kernel TCP"),
    "agent": ("worlds", 770, 262, 160, "first process of a host"),
    "linux": ("worlds", 570, 342, 160, "limits, edge, switch"),
    "worlds": ("worlds", 770, 342, 160, "namespaces, cgroups"),
    "port": ("worlds", 570, 422, 160, "shared-memory port"),
    "doorbell": ("worlds", 770, 422, 160, "queues with data"),
}
ROUTES = {
    ("cli", "millpond"): "M260 68V100",
    ("cli", "import"): "M204 68V84H102V262",
    ("python", "millpond"): "M550 68V100",
    ("millpond", "claims"): "M260 144V262",
    ("millpond", "sim"): "M430 144V262",
    ("millpond", "lab"): "M704 144V262",
    ("millpond", "virtual"): "M850 144V190",
    ("import", "scenario"): "M102 306V444H190",
    ("claims", "scenario"): "M260 306V422",
    ("claims", "results"): "M312 306L390 342",
    ("sim", "results"): "M430 306V342",
    ("sim", "scenario"): "M362 306L304 422",
    ("virtual", "lab"): "M790 234L720 262",
    ("lab", "agent"): "M730 284H770",
    ("lab", "sim"): "M570 284H490",
    ("lab", "linux"): "M650 306V342",
    ("linux", "scenario"): "M578 386L330 440",
    ("linux", "worlds"): "M730 364H770",
    ("linux", "port"): "M650 386V422",
    ("port", "doorbell"): "M730 444H770",
    ("scenario", "ranks"): "M260 466V516",
    ("results", "core"): "M430 386V516",
    ("ranks", "core"): "M330 538H370",
}


def dependencies():
    """Of each crate those in the workspace that it depends on, and whether by a feature alone."""
    found = {}
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        section, used = "", {}
        for row in manifest.read_text(encoding="utf-8").split("\n"):
            if row.startswith("["):
                section = row
            is_read = section == "[dependencies]" or re.match(r"\[target\..*\.dependencies\]$", section)
            match = re.match(r"millpond(?:-(\w+))?(?:\.workspace)?\s*=(.*)", row)
            if is_read and match:
                used[match[1] or "millpond"] = "optional = true" in match[2]
        found[manifest.parent.name] = used
    return found


def reaches(graph, start, end, with_features):
    seen, rest = set(), [start]
    while rest:
        crate = rest.pop()
        if crate == end:
            return True
        if crate not in seen:
            seen.add(crate)
            rest += [c for c, optional in graph[crate].items() if with_features or not optional]
    return False


def arrows(graph):
    """The dependencies that do not follow from another without a feature."""
    for crate, used in sorted(graph.items()):
        always = [other for other, optional in used.items() if not optional]
        for other, optional in sorted(used.items()):
            if not any(reaches(graph, via, other, optional) for via in always if via != other):
                yield crate, other, optional


def house():
    graph = dependencies()
    if set(graph) != set(CRATES):
        sys.exit(f"scripts/drawings.py: CRATES lacks, or has too many: {set(graph) ^ set(CRATES)}")
    for crate, used in graph.items():
        for other in used:
            if LAYERS.index(CRATES[other][0]) > LAYERS.index(CRATES[crate][0]):
                sys.exit(f"crates/{crate}/Cargo.toml: {crate} depends on {other}, of a higher layer")
    found = {(crate, other): optional for crate, other, optional in arrows(graph)}
    if set(found) != set(ROUTES):
        sys.exit(f"scripts/drawings.py: ROUTES lacks, or has too many: {set(found) ^ set(ROUTES)}")
    parts = [
        band(14, 14, 934, 64, "command, Python"),
        band(14, 90, 934, 64, "façade"),
        band(14, 226, 492, 256, "engine"),
        band(554, 178, 394, 304, "worlds on Linux"),
        band(14, 506, 934, 64, "core"),
    ]
    for ends, route in ROUTES.items():
        parts.append(line(route, "line dashed" if found[ends] else "line"))
    for name, (_, x, y, width, note) in CRATES.items():
        parts.append(Box(x, y, width).draw(name, note))
    parts += [
        text(26, 594, "An arrow leads from a crate to one that it needs; a dashed one is a feature's.", "left"),
        text(26, 614, "A dependency that follows from others has no arrow: each crate of the engine imports core.",
             "left"),
    ]
    return drawing(
        962, 626, "The crates of millpond, in layers",
        "Dependencies among the workspace's crates by their Cargo.toml. No crate depends on one of a "
        "higher layer: command and Python, façade, worlds on Linux, engine, core.",
        parts,
    )


# An incast in time

SCENARIO = "scenarios/incast.toml"
SETTINGS = ["duration=20ms", 'capture.queues={every="10us",ports=["switch0->host0"]}']
VARIANTS = "dctcp,small-window"


def command(*arguments):
    program = os.environ.get("MILLPOND", "target/release/millpond")
    try:
        subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except OSError as error:
        sys.exit(f"{program}: {error}; MILLPOND names the program, `make drawings` builds it")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{program} {' '.join(arguments)}: exit code {error.returncode}\n{error.stderr}")


def incast_timeline():
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as folder:
        burst = str(Path(folder, "burst"))
        command("compare", SCENARIO, "--variant", VARIANTS, *settings, "--out", burst, "--quiet")
        command("plot", burst, "--figure", "timeline", "--out", folder)
        return Path(folder, "timeline.svg").read_text(encoding="utf-8")


PICTURES = {"packet-walk": packet_walk, "house": house, "incast-timeline": incast_timeline}
# Those that need no program.
CHECKED = ["packet-walk", "house"]


def main():
    names = sys.argv[1:]
    is_check = names == ["--check"]
    unknown = [name for name in names if name not in PICTURES]
    if unknown and not is_check:
        sys.exit(f"{unknown[0]}: no such picture; there are {', '.join(PICTURES)}\n\n{__doc__}")
    for name in CHECKED if is_check else names or PICTURES:
        file, drawn = IMAGES / f"{name}.svg", PICTURES[name]()
        if not is_check:
            file.write_text(drawn, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != drawn:
            sys.exit(f"docs/img/{name}.svg: not as the sources are now; run scripts/drawings.py {name}")


main()
