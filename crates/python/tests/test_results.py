"""Runs, comparisons and sweeps: the command's results, read by others without a copy."""

from __future__ import annotations

import gc
import json
import shutil

import pytest

import millpond


def test_a_summary_has_units_in_its_names_and_reads_well(scenario):
    summary = scenario.run(seed=7, variant="dctcp").summary
    data = summary.data
    assert summary.seed == 7 and summary.status == "complete" and summary.conserved
    assert summary.fct_p99_us == data["fct_us"]["all"]["p99"] > 0
    assert summary.classes["web"].slowdown_p99 == data["slowdown"]["web"]["p99"]
    assert summary.qct_p99_us == data["qct_us"]["p99"]
    assert repr(summary).startswith("<summary small/dctcp, seed 7, complete: ")


def test_a_run_without_a_folder_leaves_nothing(scenario):
    run = scenario.run(seed=1)
    folder = run.folder
    assert folder.is_dir() and len(run.flows) > 0
    del run
    gc.collect()
    assert not folder.exists() and not folder.parent.exists()


def test_tables_have_what_the_summary_counts(scenario):
    run = scenario.run(seed=3)
    table = run.flows
    times = table.column("fct_us")
    assert len(table) == len(times) == run.summary.flows_started
    assert sum(time == time for time in times) == run.summary.flows_completed
    assert set(table.column("class")) == {"web", "queries"}
    assert table.meanings["fct_us"].startswith("start to last byte")
    assert len(run.queues) > 0 and len(run.connections) > 0
    with pytest.raises(KeyError, match="fct_us"):
        table.column("fct")


def test_a_table_that_nobody_asked_for_is_an_error_that_names_the_key(scenario):
    run = scenario.with_({"capture.queues": "off"}).run()
    with pytest.raises(millpond.ResultsError, match=r"\[capture\] queues"):
        run.queues


def test_polars_reads_every_column(scenario):
    polars = pytest.importorskip("polars")
    run = scenario.run(seed=3)
    for table in (run.flows, run.queries, run.queues, run.connections, run.sizes):
        frame = polars.DataFrame(table)
        assert frame.equals(polars.read_parquet(table.path)), table


def test_pyarrow_reads_every_column(scenario):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    run = scenario.run(seed=3)
    table = pyarrow.table(run.flows)
    assert table.to_pydict() == parquet.read_table(run.flows.path).to_pydict()


def test_pandas_reads_every_column(scenario):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("this pandas has no DataFrame.from_arrow")
    run = scenario.run(seed=3)
    frame = pandas.DataFrame.from_arrow(run.flows)
    assert len(frame) == len(run.flows) and frame["bytes"].sum() == sum(run.flows.column("bytes"))


def test_duckdb_reads_every_column(scenario):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    flows = scenario.run(seed=3).flows
    query = duckdb.sql("select count(*), sum(bytes) from flows").fetchall()
    assert query[0] == (len(flows), int(sum(flows.column("bytes"))))


def test_a_stream_outlives_its_run(scenario):
    polars = pytest.importorskip("polars")
    run = scenario.run(seed=3)
    flows, count = run.flows, len(run.flows)
    del run
    gc.collect()
    assert len(polars.DataFrame(flows)) == count


def test_a_damaged_table_is_an_error_and_no_short_table(scenario, tmp_path):
    run = scenario.run(into=tmp_path / "run")
    path = run.folder / "flows.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:8] + bytes(64) + whole[72:])
    with pytest.raises(millpond.ResultsError, match="flows.parquet"):
        millpond.read(run.folder)
    path.write_bytes(whole[:100])
    with pytest.raises(millpond.ResultsError):
        millpond.Table(path)


def test_read_returns_what_run_returned(scenario, tmp_path):
    run = scenario.run(seed=5, variant="cubic", into=tmp_path / "run")
    again = millpond.read(tmp_path / "run")
    assert isinstance(again, millpond.Run) and again.summary == run.summary


def test_an_older_form_is_an_error_that_says_what_to_do(scenario, tmp_path):
    scenario.run(into=tmp_path / "run")
    manifest = tmp_path / "run" / "manifest.json"
    text = json.loads(manifest.read_text())
    del text["checksum"]
    manifest.write_text(json.dumps({**text, "schema": 0}))
    with pytest.raises(millpond.ResultsError, match="has form 0.*run its scenario again"):
        millpond.read(tmp_path / "run")
    with pytest.raises(millpond.ResultsError, match="no results folder"):
        millpond.read(tmp_path)


def test_another_result_is_not_replaced_without_force(scenario, tmp_path):
    scenario.run(variant="cubic", into=tmp_path / "run")
    before = (tmp_path / "run" / "summary.json").read_bytes()
    with pytest.raises(millpond.ResultsError, match="force=True") as caught:
        scenario.run(variant="dctcp", into=tmp_path / "run")
    assert caught.value.file == tmp_path / "run"
    assert (tmp_path / "run" / "summary.json").read_bytes() == before
    run = scenario.run(variant="dctcp", into=tmp_path / "run", force=True)
    assert run.summary.variant == "dctcp"


def test_a_comparison_has_numbers_over_seeds_and_differences(scenario, tmp_path):
    found = scenario.compare(seeds=3, into=tmp_path / "compare")
    assert list(found.variants) == ["dctcp", "cubic"] and len(found) == 2
    estimate = found["dctcp"]["fct_us.all.p99"]
    single = [run.summary.fct_p99_us for run in found["dctcp"].runs]
    assert estimate.n == 3 and estimate.mean == pytest.approx(sum(single) / 3)
    assert estimate.interval[0] <= estimate.mean <= estimate.interval[1]
    shown = found["dctcp"]["all.fct.p99"]
    assert shown.at_least and shown.mean >= estimate.mean and repr(shown).startswith("<≥ ")
    assert found[0].difference("fct_us.all.p99") is None
    difference = found["cubic"].difference("fct_us.all.p99")
    assert difference.mean == pytest.approx(found["cubic"]["fct_us.all.p99"].mean - estimate.mean)
    assert repr(difference).startswith("<") and difference.noise in repr(difference)
    assert len(found.flows) == sum(
        run.summary.flows_started for variant in found for run in variant.runs
    )
    with pytest.raises(KeyError, match="p99"):
        found["dctcp"]["fct_us.all.p98"]
    with pytest.raises(KeyError, match="dctcp, cubic"):
        found["reno"]
    again = millpond.read(tmp_path / "compare")
    assert again["cubic"]["fct_us.all.p99"] == found["cubic"]["fct_us.all.p99"]


def test_values_are_varied_beside_each_other(scenario, tmp_path):
    # Variants and values multiply, and all are compared with the first.
    with pytest.warns(millpond.ScenarioWarning, match="every row is compared with"):
        found = scenario.compare(
            vary={"transport.initial-window": [1, 10]}, seeds=range(2, 4), into=tmp_path / "vary"
        )
    assert [variant.name for variant in found][:2] == [
        "dctcp initial-window=1",
        "dctcp initial-window=10",
    ]
    assert found[0].seeds == [2, 3]


def test_a_sweep_goes_on_with_what_is_finished(scenario, tmp_path):
    grid = {"traffic.web.load": [0.2, 0.4], "transport.initial-window": "1..3"}
    found = scenario.sweep(grid, seeds=2, keep="summary", into=tmp_path / "sweep")
    assert found.status == "complete" and len(found) == 6
    assert found.points[0].values == {
        "traffic.web.load": "0.2",
        "transport.initial-window": "1",
    }
    assert len(found.rows) == 12 and found.points[5].runs[1].summary.seed == 2
    kept = found.points[0].runs[0].folder
    stamp = (kept / "summary.json").stat().st_mtime_ns
    shutil.rmtree(found.points[5].runs[1].folder)
    again = scenario.sweep(grid, seeds=2, keep="summary", into=tmp_path / "sweep")
    assert (kept / "summary.json").stat().st_mtime_ns == stamp
    assert again.points[5].runs[1].summary.status == "complete"
    with pytest.raises(millpond.ResultsError, match="another sweep.*force=True"):
        scenario.sweep({"traffic.web.load": [0.3]}, into=tmp_path / "sweep")


def test_a_wrong_grid_is_an_error_before_anything_runs(scenario, tmp_path):
    with pytest.raises(millpond.ScenarioError):
        scenario.sweep({"traffic.web.lod": [0.2]}, into=tmp_path / "sweep")
    with pytest.raises(millpond.UsageError, match="seeds"):
        scenario.sweep(seeds=0, into=tmp_path / "sweep")
    with pytest.raises(millpond.UsageError, match="nothing to sweep"):
        scenario.sweep(into=tmp_path / "sweep")
    with pytest.raises(millpond.PointError) as caught:
        scenario.sweep({"traffic.web.load": [0.2, -1]}, into=tmp_path / "sweep")
    assert "-1" in caught.value.point
    assert not (tmp_path / "sweep").exists()


def test_reproduce_names_the_papers_that_there_are(tmp_path):
    assert "canary" in millpond.papers()
    with pytest.raises(millpond.UsageError, match="canary"):
        millpond.reproduce("no such paper", into=tmp_path / "out")


PAPER = """
name = "mine"
title = "A small network"
year = 2026
[baselines]
off = [["cubic", "plain"]]
[[experiment]]
name = "small"
title = "two transports"
scenario = "net.toml"
schemes = [["plain", "DCTCP"], ["cubic", "CUBIC"]]
load-axis = "load"
full = { loads = [[30, ""]], seeds = [1, 2] }
quick = { seeds = [1, 1] }
[[claim]]
id = "A1"
source = "page 1"
statement = "CUBIC is no faster"
kind = "ours"
at-least = -50
measure = { kind = "change", experiment = "small", load = 30, of = "cubic", than = "plain",
            statistic = { flows = ["web", "mean"] } }
"""


def test_a_paper_of_a_folder_is_reproduced_and_read_back(tmp_path):
    (tmp_path / "paper.toml").write_text(PAPER)
    (tmp_path / "net.toml").write_text(
        'duration = "1ms"\ntopology = { kind = "single-switch", hosts = 4 }\n'
        'traffic = [{ name = "web", kind = "poisson", sizes = "10KB", load = 0.3 }]\n'
        'variant = [{ name = "plain" }, { name = "cubic", set = { "transport.kind" = "cubic" } }]\n'
    )
    found = millpond.reproduce(str(tmp_path), into=tmp_path / "out", progress=False)
    (claim,) = found.claims
    assert (claim.id, claim.status, claim.unit) == ("mine-A1", "holds", "percent")
    assert claim.statement == "CUBIC is no faster" and claim.measured >= -50
    assert millpond.read(tmp_path / "out").claims == found.claims
