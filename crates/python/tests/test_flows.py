"""A caller's own traffic: rows, columns and Arrow tables, and their errors."""

from __future__ import annotations

import math

import pytest

import millpond

COLUMNS = {
    "start_us": [0.0, 2.5, 10.0],
    "src": [0, 1, 0],
    "dst": [1, 0, 1],
    "bytes": [1000, 20000, 3],
    "class": ["a", "b", "a"],
}


def run(pair: dict, flows: object) -> millpond.Run:
    return millpond.Scenario({**pair, "traffic": [millpond.flows(flows)]}).run()


def rows_of(found: millpond.Run) -> list:
    columns = ("start_us", "src", "dst", "bytes", "class")
    return sorted(zip(*(found.flows.column(name) for name in columns)))


WANTED = [(0, 0, 1, 1000, "a"), (2.5, 1, 0, 20000, "b"), (10, 0, 1, 3, "a")]


def test_rows_dicts_and_columns_are_the_same_flows(pair):
    rows = list(zip(*COLUMNS.values()))
    assert rows_of(run(pair, iter(rows))) == WANTED
    assert rows_of(run(pair, [dict(zip(COLUMNS, row)) for row in rows])) == WANTED
    assert rows_of(run(pair, COLUMNS)) == WANTED


@pytest.mark.parametrize("library", ["polars", "pyarrow", "pandas"])
def test_arrow_tables_are_flows(pair, library):
    module = pytest.importorskip(library)
    if library == "pandas":
        pytest.importorskip("pyarrow")
    make = module.table if library == "pyarrow" else module.DataFrame
    assert rows_of(run(pair, make(COLUMNS))) == WANTED


def test_a_categorical_class_and_small_integers_are_read(pair):
    polars = pytest.importorskip("polars")
    types = {"src": polars.UInt8, "dst": polars.Int16, "class": polars.Categorical}
    assert rows_of(run(pair, polars.DataFrame(COLUMNS).cast(types))) == WANTED


def test_a_class_of_nulls_is_no_class(pair):
    pyarrow = pytest.importorskip("pyarrow")
    found = run(pair, pyarrow.table({**COLUMNS, "class": [None] * 3}))
    assert [row[-1] for row in rows_of(found)] == ["flows"] * 3


def test_flows_of_a_result_are_flows_again(pair):
    first = run(pair, COLUMNS)
    assert rows_of(run(pair, first.flows)) == WANTED


def test_a_flow_waits_for_those_that_it_names(pair):
    columns = {
        "start_us": [0, 0], "src": [0, 1], "dst": [1, 0], "bytes": [100_000, 1000],
        "id": ["first", None], "after": [None, "first"],
    }  # fmt: skip
    flows = run(pair, columns).flows
    starts = dict(zip(flows.column("bytes"), flows.column("start_us")))
    assert starts[1000] > 80


def test_flows_replace_those_of_a_traffic(pair, tmp_path):
    (tmp_path / "flows.csv").write_text("start_us,src,dst,bytes\n0,0,1,7\n")
    traffic = {"name": "trace", "kind": "flows", "file": str(tmp_path / "flows.csv")}
    scenario = millpond.Scenario({**pair, "traffic": [traffic]})
    assert rows_of(scenario.run()) == [(0, 0, 1, 7, "trace")]
    assert rows_of(scenario.with_flows(COLUMNS, "trace").run()) == WANTED
    with pytest.raises(millpond.ScenarioError):
        scenario.with_flows(COLUMNS, "tracing").run()


def test_the_scenario_of_the_result_has_the_flows(pair, tmp_path):
    scenario = millpond.Scenario({**pair, "traffic": [millpond.flows(COLUMNS)]})
    first = scenario.run(into=tmp_path / "first")
    assert rows_of(millpond.Scenario(first.folder).run()) == WANTED


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("bytes", math.nan), ("bytes", -5), ("bytes", 0), ("bytes", 1.5), ("bytes", None),
        ("bytes", 2.0**60), ("start_us", -1), ("start_us", math.inf), ("src", -1), ("dst", 0.5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["columns", "rows", "polars"])
def test_numbers_out_of_range_name_row_and_column(pair, column, value, form):
    columns = {**COLUMNS, column: [float(COLUMNS[column][0]), value, 1.0]}
    flows = columns
    if form == "rows":
        flows = list(zip(*columns.values()))
    elif form == "polars":
        flows = pytest.importorskip("polars").DataFrame(columns)
    with pytest.raises(millpond.ScenarioError) as caught:
        run(pair, flows)
    error = caught.value
    assert (error.file, error.line, error.key) == ("flows", 2, column)


@pytest.mark.parametrize("library", [None, "polars"])
def test_a_missing_column_names_the_near_one(pair, library):
    columns = {("byte" if name == "bytes" else name): of for name, of in COLUMNS.items()}
    flows = pytest.importorskip(library).DataFrame(columns) if library else columns
    with pytest.raises(millpond.ScenarioError, match='rename it to "bytes"') as caught:
        run(pair, flows)
    assert (caught.value.key, caught.value.nearest) == ("bytes", "byte")


def test_hosts_and_columns_that_do_not_fit_are_errors(pair):
    with pytest.raises(millpond.ScenarioError, match="host"):
        run(pair, [(0, 0, 7, 1000)])
    with pytest.raises(millpond.ScenarioError, match="`dst` has 1 values"):
        millpond.flows({"start_us": [0, 1], "src": [0, 0], "dst": [1], "bytes": [1, 1]})
    with pytest.raises(millpond.ScenarioError, match="flows:1: expected"):
        millpond.flows([(0, 1)])
    with pytest.raises(millpond.ScenarioError) as caught:
        millpond.flows([{"start_us": 0, "src": 0, "dst": 1, "byte": 9}])
    assert caught.value.key == "byte"
    with pytest.raises(TypeError):
        millpond.flows(7)
