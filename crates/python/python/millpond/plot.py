"""Figures of results in one line each, in the style of the report.

>>> from millpond import plot
>>> plot.fct_cdf(comparison, save=["fct.svg", "fct.pdf"])

Needs matplotlib (`pip install millpond[plot]`). Every function takes runs, comparisons, or mappings
from labels to a run or to runs of several seeds; it draws into `ax` if one is given, writes the
files of `save`, and returns the figure, which a notebook shows. Text in an SVG stays text, and the
fonts of a PDF are embedded as TrueType. `plt.style.use(plot.STYLE)` gives other figures the style.
"""

from __future__ import annotations

from array import array
from io import BytesIO
from math import isnan
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

try:
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"millpond.plot needs matplotlib: pip install 'millpond[plot]' ({error})", name=error.name
    ) from None

from ._errors import UsageError
from ._results import Comparison, Run
from ._summary import Number

Results = Union[Run, Comparison, Mapping[str, Union[Run, Sequence[Run]]]]
Save = Union[str, Path, Sequence[Union[str, Path]], None]

COLORS = (
    "#0072b2", "#d55e00", "#00835f", "#b0508c", "#b97f00", "#3b8fc4", "#5b666e", "#7d4a1c",
)  # fmt: skip
# Connections that are drawn unless the caller names some.
_CONNECTIONS = 4
# The report's style, as parameters of matplotlib.
STYLE: Any = {
    "axes.prop_cycle": cycler(color=COLORS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8b979f",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dce1e4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.figsize": (6.0, 3.6),
    "figure.constrained_layout.use": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "millpond",
    "pdf.fonttype": 42,
}


def fct_cdf(
    *results: Results, of: Optional[str] = None, ax: Any = None, save: Save = None
) -> Figure:
    """The share of flows that completed within a time; of one class, if `of` names it.

    A flow that is open at the end never completes, so its curve ends below 1.
    """
    with _drawing(ax, save) as drawing:
        for label, runs in _series(results):
            times, count = array("d"), 0
            for run in runs:
                values = _of_class(run, "fct_us", of)
                count += len(values)
                times.extend(value for value in values if not isnan(value))
            if count == 0:
                raise UsageError(f"{label}: there are no flows{f' of class {of!r}' if of else ''}")
            ordered = sorted(times)
            shares = [(at + 1) / count for at in range(len(ordered))]
            drawing.ax.step(ordered, shares, where="post", label=label)
        drawing.ax.set(xscale="log", ylim=(0, 1.02))
        drawing.label("FCT (µs)", f"share of flows{f' of {of}' if of else ''}")
    return drawing.figure


def slowdown_by_size(
    *results: Results, statistic: str = "p99", ax: Any = None, save: Save = None
) -> Figure:
    """Slowdown by flow size: a statistic (`mean`, `p50`, `p95`, `p99`) of each bin.

    Of several seeds it is the mean over the seeds that have the bin.
    """
    if statistic not in ("mean", "p50", "p95", "p99"):
        raise UsageError(f"statistic is mean, p50, p95 or p99, not {statistic!r}")
    with _drawing(ax, save) as drawing:
        series: dict[str, dict[int, list[float]]] = {}
        for label, runs in _series(results):
            bins = series.setdefault(label, {})
            for run in runs:
                by_size = run.summary.data.get("slowdown_by_fixed_size")
                for one in (by_size or run.summary.data["slowdown_by_size"]).values():
                    if one[statistic] is not None:
                        bins.setdefault(one["to_bytes"], []).append(one[statistic])
        edges = sorted({edge for bins in series.values() for edge in bins})
        for label, bins in series.items():
            points = sorted((edges.index(edge), sum(of) / len(of)) for edge, of in bins.items())
            xs, ys = zip(*points) if points else ((), ())
            drawing.ax.plot(xs, ys, marker="o", markersize=4, label=label)
        names = [f"≤ {_bytes(edge)}" for edge in edges]
        drawing.ax.set_xticks(range(len(edges)), names, rotation=45)
        drawing.label("flow size", f"slowdown, {statistic}")
    return drawing.figure


def queue(
    *results: Results,
    node: Optional[str] = None,
    port: Optional[int] = None,
    ax: Any = None,
    save: Save = None,
) -> Figure:
    """The bytes that wait at a port over time; without `node` and `port` at the fullest port.

    The scenario's `[capture] queues` makes the samples.
    """
    with _drawing(ax, save) as drawing:
        for label, runs in _series(results):
            table = runs[0].queues
            times, waiting = table.column("time_us"), table.column("queue_bytes")
            places = list(zip(table.column("node"), map(int, table.column("port"))))
            fits = [
                at
                for at, (name, number) in enumerate(places)
                if node in (None, name) and port in (None, number)
            ]
            if not fits:
                raise UsageError(f"{label}: there is no sample of node {node!r}, port {port!r}")
            place = places[max(fits, key=waiting.__getitem__)]
            rows = [at for at in fits if places[at] == place]
            drawing.ax.step(
                [times[at] / 1e3 for at in rows],
                [waiting[at] / 1e3 for at in rows],
                where="post",
                label=f"{label}: {place[0]} port {place[1]}",
            )
        drawing.label("time (ms)", "queue (KB)")
    return drawing.figure


def timeseries(
    *results: Results,
    column: str = "cwnd_bytes",
    flows: Optional[Sequence[int]] = None,
    ax: Any = None,
    save: Save = None,
) -> Figure:
    """A column of `connections` over time, a line for each of `flows`.

    Without `flows` it draws the four connections that have the most samples. The scenario's
    `[capture] connections` makes the samples.
    """
    with _drawing(ax, save) as drawing:
        for label, runs in _series(results):
            table = runs[0].connections
            lines: dict[int, tuple[list[float], list[float]]] = {}
            columns = (table.column("flow"), table.column("time_us"), table.column(column))
            for flow, time, value in zip(*columns):
                if flows is None or int(flow) in flows:
                    xs, ys = lines.setdefault(int(flow), ([], []))
                    xs.append(time / 1e3)
                    ys.append(value)
            if not lines:
                raise UsageError(f"{label}: there is no sample of these connections")
            most = sorted(lines, key=lambda flow: -len(lines[flow][0]))
            for flow in sorted(most if flows is not None else most[:_CONNECTIONS]):
                xs, ys = lines[flow]
                drawing.ax.plot(xs, ys, label=f"{label}: flow {flow}")
        drawing.label("time (ms)", column)
    return drawing.figure


def compare(
    comparison: Comparison,
    number: str = "fct_us.all.p99",
    *,
    ax: Any = None,
    save: Save = None,
) -> Figure:
    """A number of each variant as a bar, with the interval of its mean over seeds.

    `number` is a path in `summary.json`, or a name of the scenario's `shows`.
    """
    with _drawing(ax, save) as drawing:
        for at, variant in enumerate(comparison):
            estimate = variant[number]
            mean = estimate.mean
            if mean is None:
                continue
            ends = estimate.interval
            error = None if ends is None else [[mean - ends[0]], [ends[1] - mean]]
            color = COLORS[at % len(COLORS)]
            drawing.ax.bar(variant.name, mean, yerr=error, capsize=3, color=color)
        drawing.ax.grid(False, axis="x")
        drawing.label("", number)
    return drawing.figure


class _Figure(Figure):
    """A figure that a notebook shows; it needs no pyplot, which would keep it."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


class _drawing:
    """Axes in the style of the report, and the files that are written at the end."""

    def __init__(self, ax: Any, save: Save) -> None:
        self._style = matplotlib.rc_context(STYLE)
        self._ax = ax
        one = isinstance(save, (str, Path))
        self._files: list[Any] = [save] if one else list(save or ())  # type: ignore[arg-type]

    def __enter__(self) -> _drawing:
        self._style.__enter__()
        # A figure of its own, which no backend keeps.
        self.ax: Any = self._ax if self._ax is not None else _Figure().add_subplot()
        self.figure: Figure = self.ax.figure  # type: ignore[assignment]
        return self

    def label(self, x: str, y: str) -> None:
        """Labels the axes, and names the lines if there are several."""
        self.ax.set(xlabel=x, ylabel=y)
        if len(self.ax.get_legend_handles_labels()[1]) > 1:
            self.ax.legend(fontsize="small")

    def __exit__(self, failed: Any, error: Any, trace: Any) -> None:
        try:
            if failed is None:
                for path in self._files:
                    # Without the date the same figure is the same file.
                    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
                    self.figure.savefig(path, metadata=dates.get(Path(path).suffix))
        finally:
            self._style.__exit__(failed, error, trace)


def _series(results: Sequence[Results]) -> Iterator[tuple[str, list[Run]]]:
    """The labels with their runs."""
    if not results:
        raise UsageError("there is nothing to draw: give a run or a comparison")
    for result in results:
        if isinstance(result, Comparison):
            for variant in result:
                yield variant.name, variant.runs
        elif isinstance(result, Mapping):
            for label, runs in result.items():
                yield label, [runs] if isinstance(runs, Run) else list(runs)
        else:
            summary = result.summary
            yield summary.variant or summary.name, [result]


def _of_class(run: Run, column: str, of: Optional[str]) -> Sequence[float]:
    values: Sequence[float] = run.flows.column(column)
    if of is None:
        return values
    return [value for value, name in zip(values, run.flows.column("class")) if name == of]


def _bytes(count: Number) -> str:
    """A number of bytes, briefly."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count is not None and count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"
