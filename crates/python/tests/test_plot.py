"""Figures as SVG and PDF, the same bytes for the same results."""

from __future__ import annotations

import pytest

import millpond

pytest.importorskip("matplotlib")
from millpond import plot  # noqa: E402


def files(tmp_path, name: str) -> list:
    return [tmp_path / f"{name}.svg", tmp_path / f"{name}.pdf"]


def check(paths: list, *words: str) -> None:
    text = paths[0].read_text()
    assert text.startswith("<?xml") and all(word in text for word in words), words
    assert paths[1].read_bytes().startswith(b"%PDF")


def test_every_figure_is_drawn_of_a_comparison(scenario, tmp_path):
    found = scenario.compare(seeds=2, into=tmp_path / "compare")
    for name, words in {
        "fct_cdf": ["FCT (µs)", "dctcp", "cubic"],
        "slowdown_by_size": ["slowdown, p99", "KB"],
        "queue": ["queue (KB)", "port"],
        "timeseries": ["cwnd_bytes"],
        "compare": ["fct_us.all.p99", "dctcp"],
    }.items():
        paths = files(tmp_path, name)
        getattr(plot, name)(found, save=paths)
        check(paths, *words)
        before = [path.read_bytes() for path in paths]
        getattr(plot, name)(found, save=paths)
        assert [path.read_bytes() for path in paths] == before, name


def test_runs_have_labels_and_classes(scenario, tmp_path):
    runs = {"one": scenario.run(seed=1), "two": scenario.run(seed=2)}
    path = tmp_path / "cdf.svg"
    figure = plot.fct_cdf(runs, of="web", save=path)
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == ["one", "two"]
    assert "share of flows of web" in path.read_text()
    xs, ys = lines[0].get_xdata(), lines[0].get_ydata()
    fct = runs["one"].summary.classes["web"]
    assert len(xs) == fct.completed and max(xs) == fct.fct_max_us
    assert ys[-1] == pytest.approx(fct.completed / (fct.completed + fct.unfinished))


def test_a_label_may_have_runs_of_several_seeds(scenario):
    runs = [scenario.run(seed=seed) for seed in (1, 2)]
    figure = plot.slowdown_by_size({"both": runs, "first": runs[0]}, statistic="mean")
    both, first = figure.axes[0].get_lines()
    means = [
        [size["mean"] for size in run.summary.data["slowdown_by_fixed_size"].values()]
        for run in runs
    ]
    # Both seeds have flows of the smallest size, so the first bin is the same.
    assert first.get_ydata()[0] == means[0][0]
    assert both.get_ydata()[0] == pytest.approx((means[0][0] + means[1][0]) / 2)


def test_a_notebook_shows_a_figure_without_pyplot(scenario):
    figure = plot.fct_cdf(scenario.run())
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_nothing_to_draw_is_an_error(scenario):
    run = scenario.run()
    with pytest.raises(millpond.UsageError, match="nothing to draw"):
        plot.fct_cdf()
    with pytest.raises(millpond.UsageError, match="no flows of class 'wbe'"):
        plot.fct_cdf(run, of="wbe")
    with pytest.raises(millpond.UsageError, match="p98"):
        plot.slowdown_by_size(run, statistic="p98")
    with pytest.raises(millpond.UsageError, match="no sample"):
        plot.queue(run, node="leaf9")
