"""Results: a run, a comparison, a sweep, a reproduction, each in its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Union

from . import _native
from ._errors import ResultsError
from ._native import Table
from ._summary import Number, Summary, number

# The key that makes a run write a table.
_ASKED_BY = {"queues": "[capture] queues", "connections": "[capture] connections"}


class _Folder:
    """A results folder and its tables."""

    def __init__(self, folder: Union[str, Path]) -> None:
        self.folder = Path(folder)

    @property
    def report(self) -> Path:
        """The page of the folder."""
        return self.folder / "report.html"

    @property
    def flows(self) -> Table:
        """A row for each counted flow."""
        return self.table("flows")

    @property
    def queries(self) -> Table:
        """A row for each counted query."""
        return self.table("queries")

    def table(self, name: str) -> Table:
        """A table of the folder by its name, such as `sizes`.

        Raises `ResultsError` if the folder has none of that name.
        """
        path = self.folder / f"{name}.parquet"
        if path.is_file():
            table = Table(path)
            return table
        there = sorted(path.stem for path in self.folder.glob("*.parquet"))
        asked = f"; the scenario's {_ASKED_BY[name]} asks for it" if name in _ASKED_BY else ""
        text = f"{self.folder} has no table {name!r}: it has {', '.join(there) or 'none'}{asked}"
        raise ResultsError(text, self.folder)


class Run(_Folder):
    """A run: its `summary`, its tables, and its `folder`."""

    def __init__(self, folder: Union[str, Path], summary: Summary) -> None:
        super().__init__(folder)
        self.summary = summary

    @property
    def sizes(self) -> Table:
        """Slowdown by flow size."""
        return self.table("sizes")

    @property
    def queues(self) -> Table:
        """Samples of queues; the scenario's `[capture] queues` asks for them."""
        return self.table("queues")

    @property
    def connections(self) -> Table:
        """Samples of connections; the scenario's `[capture] connections` asks for them."""
        return self.table("connections")

    def __repr__(self) -> str:
        return f"<run in {self.folder}: {self.summary!r}>"


@dataclass(frozen=True)
class Estimate:
    """A number over seeds."""

    mean: Number
    interval: Optional[tuple[float, float]]
    """Of the mean; `None` for fewer than two seeds."""
    interval_kind: Optional[str]
    n: int
    """Seeds that have it."""
    at_least: bool = False
    """Whether it is a lower bound, since flows or queries are open."""

    def __repr__(self) -> str:
        ends = ""
        if self.interval is not None:
            ends = f" [{number(self.interval[0])}, {number(self.interval[1])}]"
        sign = "≥ " if self.at_least else ""
        return f"<{sign}{number(self.mean)}{ends}, {self.n} seeds>"


@dataclass(frozen=True)
class Difference(Estimate):
    """A number's difference to the first variant, paired by seed."""

    relative: Number = None
    """Over the first variant's mean: −0.5 is half of it."""
    relative_interval: Optional[tuple[float, float]] = None
    """Of `relative`; not below −1."""
    noise: str = "unknown"
    """`beyond`, `agreed`, `within`, `identical`, `open` or `unknown`."""

    def __repr__(self) -> str:
        share = "–" if self.relative is None else f"{100 * self.relative:+.1f} %"
        return f"<{number(self.mean)} ({share}, {self.noise}), {self.n} seeds>"


class _Numbers:
    """Numbers over seeds, by the path that they have in `summary.json`."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._statistics = data.get("statistics") or {}
        self._differences = data.get("differences") or {}
        self._shows = data.get("shows") or {}

    def __getitem__(self, path: str) -> Estimate:
        """A number by its path (`fct_us.all.p99`), or by its name in `shows`."""
        return Estimate(**_ends(self._leaf(self._statistics, path, "estimate")))

    def difference(self, path: str) -> Optional[Difference]:
        """A number's difference to that of the first variant; `None` for that one itself."""
        if not self._differences:
            return None
        return Difference(**_ends(self._leaf(self._differences, path, "difference")))

    def _leaf(self, tree: Mapping[str, Any], path: str, shown: str) -> Mapping[str, Any]:
        if path in self._shows:
            number = dict(self._shows[path])
            difference = number.pop("difference", None)
            return difference if shown == "difference" and difference else number
        at: Any = tree
        for part in path.split("."):
            if not isinstance(at, Mapping) or part not in at:
                known = ", ".join(at) if isinstance(at, Mapping) else "nothing"
                raise KeyError(f"{path}: there is no {part!r}; there are {known}")
            at = at[part]
        if not isinstance(at, Mapping) or "n" not in at:
            raise KeyError(f"{path} is a table; it has {', '.join(at)}")
        return at


def _ends(leaf: Mapping[str, Any]) -> dict[str, Any]:
    ends = {key: leaf[key] for key in ("interval", "relative_interval") if leaf.get(key)}
    return {**leaf, **{key: tuple(interval) for key, interval in ends.items()}}


class Variant(_Numbers):
    """A variant of a comparison: `variant["fct_us.all.p99"]` is a number over its seeds."""

    def __init__(self, data: Mapping[str, Any], folder: Path) -> None:
        super().__init__(data)
        self.name: str = data["variant"]
        self.seeds: list[int] = data["seeds"]
        self.status: str = data["status"]
        self.warnings: list[str] = data["warnings"]
        self._folder = folder

    @property
    def runs(self) -> list[Run]:
        """Its runs, by seed."""
        found = (path.parent for path in self._folder.glob("**/summary.json"))
        runs = [Run(path, Summary._of(json.loads(_native.read_run(path)))) for path in found]
        return sorted(runs, key=lambda run: run.summary.seed)

    def __repr__(self) -> str:
        return f"<variant {self.name}, seeds {_range(self.seeds)}, {self.status}>"


class Comparison(_Folder):
    """Variants beside each other. `comparison["tlt"]` is a variant, by name or by position.

    `flows` and `queries` have the rows of all runs, with their variant and seed.
    """

    def __init__(self, folder: Union[str, Path], data: list[Mapping[str, Any]]) -> None:
        super().__init__(folder)
        names = _folders(self.folder)
        found = [Variant(one, names.get(one["variant"], self.folder)) for one in data]
        self.variants: dict[str, Variant] = {variant.name: variant for variant in found}

    def __getitem__(self, which: Union[str, int]) -> Variant:
        if isinstance(which, int):
            return list(self.variants.values())[which]
        if which not in self.variants:
            raise KeyError(f"there is no variant {which!r}; there are {', '.join(self.variants)}")
        return self.variants[which]

    def __iter__(self) -> Iterator[Variant]:
        return iter(self.variants.values())

    def __len__(self) -> int:
        return len(self.variants)

    def __repr__(self) -> str:
        return f"<comparison in {self.folder} of {', '.join(self.variants)}>"


class Point(_Numbers):
    """A point of a sweep: its `values`, its runs, and numbers over its seeds."""

    def __init__(self, data: Mapping[str, Any], folder: Path) -> None:
        super().__init__(data)
        self.values: dict[str, str] = data["values"]
        self.skipped: Optional[str] = data["skipped"]
        self.warnings: list[str] = data["warnings"]
        self.failures: dict[int, str] = {
            run["seed"]: run["reason"] for run in data["runs"] if run["reason"] is not None
        }
        done = [run for run in data["runs"] if run["status"] is not None]
        self._folders = [folder / run["folder"] for run in done if run["reason"] is None]

    @property
    def runs(self) -> list[Run]:
        """Its finished runs, by seed."""
        read = ((path, json.loads(_native.read_run(path))) for path in self._folders)
        return [Run(path, Summary._of(data)) for path, data in read]

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={value}" for key, value in self.values.items())
        return f"<point {values or 'base'}: {len(self._folders)} runs>"


class Sweep(_Folder):
    """The points of a grid. `rows` is a table with a row for each run."""

    def __init__(self, folder: Union[str, Path], data: Mapping[str, Any]) -> None:
        super().__init__(folder)
        self.name: str = data["name"]
        self.status: str = data["status"]
        self.seeds: list[int] = data["seeds"]
        self.points = [Point(point, self.folder) for point in data["points"]]

    @property
    def rows(self) -> Table:
        """A row for each run: its values, its seed and its numbers."""
        return self.table("sweep")

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        points, seeds = len(self.points), _range(self.seeds)
        return f"<sweep in {self.folder}: {points} points, seeds {seeds}, {self.status}>"


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: `status` is `holds`, `fails` or `not-evaluated`.

    `measured` is in `unit`; `data` has all that `claims.json` has of the claim.
    """

    id: str
    status: str
    statement: str
    measured: Number
    unit: str
    data: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"<claim {self.id} {self.status}: {self.statement}>"


class Reproduction(_Folder):
    """The claims of a paper, decided."""

    def __init__(self, folder: Union[str, Path], paper: str, data: list[Any]) -> None:
        super().__init__(folder)
        self.paper = paper
        self.claims = [_claim(claim) for claim in data]

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.claims)

    def __repr__(self) -> str:
        holds = sum(claim.status == "holds" for claim in self.claims)
        return f"<reproduction of {self.paper}: {holds} of {len(self.claims)} claims hold>"


def _claim(data: Mapping[str, Any]) -> Claim:
    names = ("id", "status", "statement", "measured", "unit")
    return Claim(**{name: data[name] for name in names}, data=data)


def _range(seeds: list[int]) -> str:
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]}..{seeds[-1]}" if seeds else "none"


def _folders(root: Path) -> dict[str, Path]:
    """The folder of each variant of a compare."""
    found = {}
    for path in root.glob("*/**/summary.json"):
        name = json.loads(path.read_bytes()).get("variant")
        found[name] = root / path.relative_to(root).parts[0]
    return found


def read(folder: Union[str, Path]) -> Union[Run, Comparison, Sweep, Reproduction]:
    """Reads a results folder, of this package or of the command.

    Raises `ResultsError` if it holds no result, a damaged one, or one of another version's form.
    """
    folder = Path(folder)
    kind = _kind(folder)
    if kind == "run":
        return Run(folder, Summary._of(json.loads(_native.read_run(folder))))
    if kind == "compare":
        return Comparison(folder, json.loads(_native.read_compare(folder)))
    if kind == "sweep":
        return Sweep(folder, json.loads(_native.read_sweep(folder)))
    data = _json(folder / "reproduce.json")
    return Reproduction(folder, data["paper"], data["claims"])


def _kind(folder: Path) -> str:
    manifest = folder / "manifest.json"
    if manifest.is_file():
        kind = _json(manifest).get("kind")
        if kind in ("run", "compare", "sweep", "reproduce"):
            return str(kind)
        raise ResultsError(f"{manifest}: holds {kind!r}, which is no kind of result", manifest)
    if (folder / "sweep.json").is_file():
        return "sweep"  # that is under way, or was stopped
    raise ResultsError(f"{folder} is no results folder: it has no manifest.json", folder)


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: {error}", path) from error
    if not isinstance(data, dict):
        raise ResultsError(f"{path}: holds no object", path)
    return data
