"""Sweeps on a Ray cluster of this machine: nodes die, results stay those of one machine."""

from __future__ import annotations

import pickle
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from conftest import TEXT

import millpond
from millpond import _progress, _ray

# Results that have no time of day in them.
TABLES = ("sweep.json", "sweep.parquet", "flows.parquet", "queries.parquet", "sizes.parquet")
GRID = {"traffic.web.load": [0.2, 0.4, 0.6], "transport.min-rto": ["5ms", "10ms"]}


def sweep(scenario: millpond.Scenario, into: Path, **options) -> millpond.Sweep:
    return scenario.sweep(GRID, seeds=4, into=into, force=True, **options)


def tables(folder: Path) -> dict:
    return {name: (folder / name).read_bytes() for name in TABLES}


def finished(folder: Path) -> dict:
    """The finished runs of all shards, with the time of their last file."""
    while True:
        try:
            found = list(folder.parent.glob(f"{folder.name}.shard-*/**/manifest.json"))
            ended = (path for path in found if ".running" not in path.parts)
            return {path: path.stat().st_mtime_ns for path in ended}
        except FileNotFoundError:
            continue  # a run ended meanwhile, and its folder has its name now


def test_a_scenario_can_be_sent_to_another_process(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    for source in (TEXT, path, {"topology": {"kind": "single-switch", "hosts": 3}}):
        scenario = millpond.Scenario(source)
        changed = scenario.with_({"duration": "3ms"}) if source is not path else scenario
        again = pickle.loads(pickle.dumps(changed))
        assert (again.name, again.text) == (changed.name, changed.text)
        if source is TEXT:
            assert 'duration = "3ms"' in again.resolved()


def test_options_of_ray_need_ray(scenario):
    with pytest.raises(millpond.UsageError, match="not 'slurm'"):
        scenario.sweep(GRID, on="slurm")
    with pytest.raises(millpond.UsageError, match='on="ray"'):
        scenario.sweep(GRID, shards=4)
    with pytest.raises(millpond.UsageError, match="at least 1"):
        scenario.sweep(GRID, on="ray", shards=0)


def test_without_ray_the_error_names_the_extra(scenario, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(millpond.UsageError, match=r"pip install \"millpond\[ray\]\""):
        sweep(scenario, tmp_path / "out", on="ray")


class Tasks:
    """The part of Ray that waiting for tasks uses: one ends, one is lost, Ctrl-C may come."""

    class exceptions:
        class RayError(Exception):
            pass

    def __init__(self, is_interrupted: bool) -> None:
        self.is_interrupted, self.cancelled = is_interrupted, []

    def wait(self, refs: list, timeout: float) -> tuple:
        if self.is_interrupted and len(refs) == 1:
            raise KeyboardInterrupt
        return refs[:1], refs[1:]

    def get(self, ref: str) -> None:
        if ref == "lost":
            raise self.exceptions.RayError("the node died\nwith a long trace")

    def cancel(self, ref: str) -> None:
        self.cancelled.append(ref)


def test_a_shard_that_is_lost_for_good_is_named():
    listener = _progress.Listener("sweep", False)
    reasons = _ray._wait(Tasks(False), {"done": 1, "lost": 2}, 2, listener)
    assert reasons == {2: "RayError: the node died"}


def test_ctrl_c_cancels_what_is_left():
    tasks = Tasks(True)
    with pytest.raises(millpond.Interrupted, match="same call goes on"):
        _ray._wait(tasks, {"done": 1, "lost": 2}, 2, _progress.Listener("sweep", False))
    assert tasks.cancelled == ["lost"]


@pytest.fixture
def cluster(monkeypatch):
    """A head without processors, and two nodes with one each."""
    ray = pytest.importorskip("ray", reason="Ray is missing: pip install ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(Path(millpond.__file__).parents[1]))
    # A short path, since Ray's sockets are below it.
    folder = tempfile.mkdtemp(prefix="ray-")
    monkeypatch.setenv("RAY_TMPDIR", folder)
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [made.add_node(num_cpus=1) for _ in range(2)]
    made.wait_for_nodes()
    yield made, nodes
    ray.shutdown()
    made.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.filterwarnings("ignore")  # of Ray's own
def test_a_node_that_is_killed_loses_no_run_and_changes_no_byte(cluster, scenario, tmp_path):
    made, (doomed, _) = cluster
    scenario = scenario.with_({"duration": "30ms", "capture": {}})
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    sweep(scenario, alone)
    before, left = {}, []

    def kill() -> None:
        while len(finished(shared)) < 4:
            time.sleep(0.01)
        before.update(finished(shared))
        made.remove_node(doomed, allow_graceful=False)
        left.append(24 - len(finished(shared)))

    killer = threading.Thread(target=kill)
    killer.start()
    found = sweep(scenario, shared, on="ray", address=made.address, shards=6, progress=False)
    killer.join()
    assert left[0] > 0, "the node was killed after the last run"
    after = finished(shared)
    assert len(after) == 24 and all(after[path] == time_ns for path, time_ns in before.items())
    assert found.status == "complete" and len(found) == 6
    assert tables(shared) == tables(alone)

    # The same call again finds everything.
    sweep(scenario, shared, on="ray", address=made.address, shards=6, progress=False)
    assert finished(shared) == after and tables(shared) == tables(alone)
