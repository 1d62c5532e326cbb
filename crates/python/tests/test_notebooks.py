"""The notebooks of `examples/` run, show figures, and describe what they show."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("matplotlib")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

EXAMPLES = Path(__file__).parents[3] / "examples"
# A notebook's paragraph, as conditions on the names that its cells define.
READINGS = {
    "ablation": """
        mean = {variant.name: variant["fct_us.backup.mean"].mean for variant in comparison}
        noise = {
            variant.name: variant.difference("fct_us.backup.mean").noise
            for variant in list(comparison)[1:]
        }
        assert round(1 - mean["Presto"] / mean["ECMP"], 2) == 0.33
        assert round(mean["no offload"] / mean["ECMP"] - 1, 2) == 0.56
        assert noise["no flowcells"] == "within"
        assert noise["Presto"] == noise["no offload"] == "beyond"
    """,
    "bus-bandwidth": """
        ring, halving = bandwidth["ring"], bandwidth["halving-doubling"]
        assert all(2 < halving[size] / ring[size] < 2.2 for size in ("4KB", "16KB"))
        assert halving["256KB"] > ring["256KB"] and halving["1MB"] < ring["1MB"]
        assert round(ring["4MB"]) == 11 and round(halving["4MB"]) == 9
    """,
    "fairness-over-time": """
        def unfair(name, start, end):
            return max(time for time, j in index[name] if start < time <= end and j < 0.95)
        assert all(unfair("swift", at, at + 5) < at + 3 for at in (5, 10, 15))
        assert unfair("dctcp", 5, 10) == 10 and unfair("dctcp", 10, 15) == 15
        assert 22 < unfair("dctcp", 15, 40) < 23
        assert unfair("hpcc", 5, 10) < 6
        assert all(0.75 < j < 0.79 for time, j in index["hpcc"] if time > 20)
    """,
    "fct-cdf": """
        classes = run.summary.classes
        flows = zip(*(run.flows.column(name) for name in ("class", "fct_us", "timeouts")))
        waited = [(fct, timeouts) for name, fct, timeouts in flows if name == "queries"]
        assert 290 < classes["queries"].fct_p50_us < 300
        assert sum(fct > 10_000 for fct, _ in waited) == sum(t > 0 for _, t in waited) == 46
        assert round(100 * 46 / len(waited), 1) == 2.6
        times = {name: ax.lines[at].get_xdata() for at, name in enumerate(("q", "web", "backup"))}
        assert (round(min(times["web"])), round(max(times["web"]), -3)) == (11, 49_000)
        assert round(min(times["backup"]), -2) == 3500 and round(max(times["backup"]), -3) == 20_000
    """,
    "incast-tail": """
        line = {degree: degree * 64e3 * 8 / 10e9 * 1e3 for degree in degrees}
        assert all(tail[at] < 1.35 * line[at] for tail in tails.values() for at in degrees[:5])
        assert all(tails["DCTCP"][degree] > 10.85 for degree in (40, 48, 60))
        costs = [tails["TLT"][degree] / tails["window of 2"][degree] - 1 for degree in degrees]
        assert (round(min(costs), 2), round(max(costs), 2)) == (0.08, 0.17)
        dropped = [(point.values["variant"], point["packets.dropped"].mean) for point in sweep]
        assert max(count for name, count in dropped if name == "window of 2") == 0
        assert min(count for name, count in dropped if name == "TLT") > 0
    """,
    "pfc-pauses": """
        dropped = {name: over_degree(name, "packets.dropped") for name in ("pfc", "irn")}
        assert dropped["pfc"] == [0] * 6
        assert dropped["irn"][:3] == [0] * 3 and all(count > 0 for count in dropped["irn"][3:])
        assert min(answers["irn"][3:]) > 450 and max(answers["irn"][:3]) < 120
        assert min(over_degree("irn", "timeouts")[3:]) > 0
        assert round(answers["pfc"][-1]) == 213
        assert round(pages["pfc"][-1] / pages["irn"][-1], 1) == 3.3
    """,
    "queue-over-time": """
        lines = {variant.name: ax.lines[at] for at, variant in enumerate(comparison)}
        late = {
            name: [y for x, y in zip(line.get_xdata(), line.get_ydata()) if x > 10]
            for name, line in lines.items()
        }
        assert max(late["newreno"]) > 290 and min(late["newreno"]) > 150
        assert min(late["dctcp"]) < 65 * 1.5 < max(late["dctcp"]) < 110
        assert 65 < min(late["swift"]) and max(late["swift"]) < 80
        goodput = [variant.runs[0].summary.goodput_gbps for variant in comparison]
        assert (round(min(goodput), 1), round(max(goodput), 1)) == (9.5, 9.7)
    """,
    "reordering": """
        assert late["ecmp"] == again["ecmp"] == 0 and tails["ecmp"] == max(tails.values())
        assert all(variant["packets.dropped"].mean == 0 for variant in comparison)
        assert (round(late["drill"]), round(again["drill"], 1)) == (9, 0.2)
        assert (round(late["flowcells"]), round(again["flowcells"], 1)) == (6, 2.5)
    """,
    "slowdown-by-size": """
        curves = {line.get_label(): line.get_ydata() for line in ax.lines}
        low, middle, high = (curves[f"load {load}"] for load in (0.2, 0.6, 0.8))
        assert all(a < b for a, b in zip(low, high))
        assert (round(high[0] / low[0], 1), round(high[3] / low[3], 1)) == (1.8, 2.7)
        assert all(min(curve[:2]) > max(curve[2:]) for curve in curves.values())
        assert any(a > b for a, b in zip(middle, high))
    """,
    "tenants": """
        htb = {name: rates["htb", name] for name in ("gold", "bronze")}
        assert min(htb["gold"][8:]) > 3.7 and max(htb["gold"]) < 4 and htb["bronze"][13] > 0.8
        assert max(htb["bronze"]) < 1.1
        burst, *later = rates["nrm", "bronze"][13:]
        assert round(burst, 1) == 2.4 and min(later) < 0.1
        assert max(later[:11]) < 1 < later[11]      # of the sample that begins at 125 ms
        assert round(round_trips["htb", "bronze"] / 1e3, 1) == 4.9
        assert round(round_trips["nrm", "bronze"] / 1e3, 1) == 1.5
    """,
}


def notebooks() -> list[Path]:
    return sorted(EXAMPLES.glob("*.ipynb"))


def test_every_notebook_has_a_reading_and_a_line_in_the_guide():
    guide = (EXAMPLES.parent / "docs/python.md").read_text()
    names = [path.stem for path in notebooks()]
    assert names == sorted(READINGS)
    assert all(f"examples/{name}.ipynb" in guide for name in names)


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs(path):
    assert path.stat().st_size < 10_000
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
        assert all(len(line.rstrip("\n")) <= 100 for line in cell["source"])


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own packages
def test_notebook_shows_the_figure_that_it_describes(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    count = len(book.cells)
    book.cells.append(nbformat.v4.new_code_cell(dedent(READINGS[path.stem])))
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=120, resources=resources).execute()
    shown = [output for cell in book.cells[:count] for output in cell.get("outputs", [])]
    images = [output for output in shown if "image/png" in output.get("data", {})]
    assert images, [output.get("output_type") for output in shown]
    assert len(images[-1]["data"]["image/png"]) > 10_000
