"""Figures of the Python package: import, a run beside the command, ten million flows to polars.

    python benches/python.py target/release/millpond [--runs N]

Needs polars and pyarrow. Each figure is the least of several measurements that take turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, NamedTuple

SCENARIO = """
name = "second"
duration = "1s"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts-per-leaf = 4
host-link = { rate = "10Gbps", delay = "1us" }
fabric-link = { rate = "10Gbps", delay = "1us" }
[[traffic]]
name = "web"
kind = "poisson"
sizes = "web-search"
load = 0.5
"""
FLOWS = 10_000_000


Times = NamedTuple("Times", [("wall", float), ("cpu", float)])


def least(of: int, *works: Callable[[], object]) -> list[Times]:
    """The least seconds of each by the clock and of the processor; they take turns."""
    times: list[list[tuple[float, float]]] = [[] for _ in works]
    for _ in range(of):
        for work, own in zip(works, times):
            began, used = time.perf_counter(), processor()
            result = work()
            own.append((time.perf_counter() - began, processor() - used))
            del result
    return [Times(*map(min, zip(*own))) for own in times]


def processor() -> float:
    """Processor seconds of this process and of its children that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def ratio(one: Times, other: Times) -> str:
    wall, cpu = one.wall / other.wall, one.cpu / other.cpu
    return f"{one.wall:.2f} s beside {other.wall:.2f} s: {wall:.2f} ×, of the processor {cpu:.2f} ×"


def imports(runs: int) -> None:
    def start(program: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", program], check=True)

    nothing, package = least(runs, start("pass"), start("import millpond"))
    wall, cpu = (1e3 * (one - other) for one, other in zip(package, nothing))
    print(f"import millpond: {wall:.0f} ms ({cpu:.0f} ms of the processor) above an empty program")


def one_run(command: str, runs: int, folder: Path) -> None:
    """A program that imports and runs, beside the command."""
    file = folder / "second.toml"
    file.write_text(SCENARIO)
    program = (
        f"import millpond; millpond.Scenario({str(file)!r}).run("
        f"into={str(folder / 'python')!r}, progress=False)"
    )
    words = [command, "run", str(file), "--out", str(folder / "command"), "--quiet"]
    by_command, by_python = least(
        runs,
        lambda: subprocess.run(words, check=True),
        lambda: subprocess.run([sys.executable, "-c", program], check=True),
    )
    print(f"run of 1 s, Python beside the command: {ratio(by_python, by_command)}")


def flows(runs: int, folder: Path) -> None:
    """A run's flows, repeated to ten million with other times, written as millpond writes them."""
    import millpond
    import polars
    import pyarrow
    import pyarrow.compute as compute
    import pyarrow.parquet as parquet

    run = millpond.Scenario(SCENARIO).run(progress=False)
    own = pyarrow.table(run.flows)
    table = pyarrow.concat_tables([own] * (FLOWS // len(own) + 1)).slice(0, FLOWS)
    for at, name in enumerate(table.column_names):
        if name in ("start_us", "fct_us", "fct_sender_us", "slowdown"):
            other = compute.multiply(table[name], compute.random(FLOWS, initializer=at))
            table = table.set_column(at, name, other)
    path = folder / "flows.parquet"
    plain = ("flow", "query", "start_us", "fct_us", "fct_sender_us", "slowdown")
    parquet.write_table(
        table,
        path,
        row_group_size=1 << 17,
        use_dictionary=[name for name in table.column_names if name not in plain],
        column_encoding={"flow": "DELTA_BINARY_PACKED"},
    )
    del table
    megabytes = os.path.getsize(path) / 1e6
    ours = millpond.Table(path)
    to_polars, read_polars = least(
        runs, lambda: polars.DataFrame(ours), lambda: polars.read_parquet(path)
    )
    to_arrow, read_arrow = least(
        runs, lambda: pyarrow.table(ours), lambda: parquet.read_table(path)
    )
    print(f"{FLOWS / 1e6:.0f} M flows, a file of {megabytes:.0f} MB, beside a library's own read")
    print(f"    polars: {ratio(to_polars, read_polars)}")
    print(f"    pyarrow: {ratio(to_arrow, read_arrow)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command")
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        imports(given.runs)
        one_run(given.command, given.runs, Path(folder))
        flows(given.runs, Path(folder))


if __name__ == "__main__":
    main()
