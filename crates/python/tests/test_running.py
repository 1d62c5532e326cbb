"""The interpreter is free while a run lasts; Ctrl-C, signals, progress, two writers."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest
from conftest import TEXT

import millpond

LONG = {"duration": "1000s"}


def interrupt_after(seconds: float, which: int = signal.SIGINT) -> threading.Timer:
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), which))
    timer.start()
    return timer


def test_ctrl_c_stops_at_once_and_keeps_what_is_finished(scenario, tmp_path):
    sent = []
    timer = threading.Timer(
        0.5, lambda: (sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT))
    )
    timer.start()
    with pytest.raises(millpond.Interrupted) as caught:
        scenario.with_({**LONG, "capture.queues": "off", "capture.connections": "off"}).run(
            into=tmp_path / "run"
        )
    took = time.monotonic() - sent[0]
    run = caught.value.result
    assert isinstance(caught.value, KeyboardInterrupt)
    assert run.summary.status == "interrupted" and len(run.flows) > 0
    # 20 ms for the look at signals, the rest for writing; a second for a machine that is busy.
    assert took < 1, f"{took:.3f} s"


def test_another_threads_work_goes_on_while_a_run_lasts(scenario):
    ticks, is_over = [0], threading.Event()

    def tick() -> None:
        while not is_over.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    scenario.with_({"duration": "40ms"}).run()
    took = time.monotonic() - began
    is_over.set()
    thread.join()
    assert took > 0.05 and ticks[0] > took * 100


def test_an_exception_of_a_signal_handler_ends_the_run(scenario):
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        interrupt_after(0.3, signal.SIGUSR1)
        with pytest.raises(Stop):
            scenario.with_(LONG).run()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupted_sweep_goes_on(scenario, tmp_path):
    grid = {"traffic.web.load": [0.1, 0.2, 0.3, 0.4], "duration": ["30ms"]}
    interrupt_after(0.6)
    with pytest.raises(millpond.Interrupted, match="goes on"):
        scenario.sweep(grid, seeds=20, keep="summary", threads=1, into=tmp_path / "sweep")
    part = millpond.read(tmp_path / "sweep")
    finished = {path: path.stat().st_mtime_ns for path in part.folder.glob("runs/*/*/summary.json")}
    assert 0 < len(finished) < 80
    whole = scenario.sweep(grid, seeds=20, keep="summary", into=tmp_path / "sweep")
    assert whole.status == "complete" and len(whole.rows) == 80
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in finished.items())


def test_two_writers_of_one_folder_exclude_each_other(tmp_path):
    """The second is refused with the first's process; the first's result is whole."""
    program = textwrap.dedent(
        f"""
        import millpond
        scenario = millpond.Scenario({TEXT!r}).with_({{"duration": "400ms"}})
        print("started", flush=True)
        scenario.run(into={str(tmp_path / "run")!r})
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as first:
        assert first.stdout.readline() == b"started\n"
        partial = tmp_path / "run.partial"
        until = time.monotonic() + 30
        while not partial.exists() and time.monotonic() < until:
            time.sleep(0.005)
        with pytest.raises(millpond.ResultsError, match="another run"):
            millpond.Scenario(TEXT).run(into=tmp_path / "run")
        assert first.wait(timeout=120) == 0
    assert millpond.read(tmp_path / "run").summary.status == "complete"


def test_progress_is_shown_by_tqdm(scenario, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    # However fast the machine is.
    monkeypatch.setattr("millpond._progress._DELAY_S", 0)
    scenario.with_({"duration": "1s"}).run()
    assert "small" in capsys.readouterr().err
    scenario.with_({"duration": "1s"}).run(progress=False)
    assert capsys.readouterr().err == ""


def test_a_stalled_run_is_a_result_with_a_warning(pair):
    link = {"link": ["host0", "switch0"], "at": "1us"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", millpond.ScenarioWarning)
        run = millpond.Scenario(
            {**pair, "traffic": [millpond.flows([(0, 0, 1, 1_000_000)])], "failure": [link]}
        ).run()
    assert run.summary.status == "stalled" and run.summary.warnings


def test_numbers_beyond_their_range_are_refused(scenario, tmp_path):
    for name, value in ("seed", -1), ("seed", 2**64), ("threads", 0), ("threads", -1):
        with pytest.raises(millpond.UsageError, match=f"{name} is a whole number from . to "):
            scenario.run(**{name: value})
    for seeds in range(-3, 0), range(2**64, 2**64 + 2), 0:
        with pytest.raises(millpond.UsageError, match="seeds is a number of seeds or a range"):
            scenario.compare(seeds=seeds, into=tmp_path / "compare")


def test_plot_without_matplotlib_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "millpond.plot", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"needs matplotlib: pip install 'millpond\[plot"):
        importlib.import_module("millpond.plot")
