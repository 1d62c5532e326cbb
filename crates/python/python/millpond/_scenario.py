"""Scenarios, and what is run of them."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, TypeVar, Union
from urllib.parse import quote

from . import _native, _toml
from ._errors import Interrupted, ScenarioWarning, UsageError
from ._flows import flows
from ._progress import Listener
from ._results import Comparison, Reproduction, Run, Sweep
from ._summary import Summary

Place = Union[str, Path]
Seeds = Union[int, range, None]
Result = TypeVar("Result")
# The largest whole number of the native module.
_MOST = 2**64 - 1


class Scenario:
    """A scenario: a network, its traffic, and variants of both.

    `source` is a path of a TOML file or of a run's results folder, a TOML text (with a newline in
    it), or a dict with the keys of a scenario. Raises `ScenarioError` with file, line, key and the
    nearest name if it is wrong.
    """

    def __init__(
        self, source: Union[Place, Mapping[str, Any]], *, name: Optional[str] = None
    ) -> None:
        # Calls that make the native scenario, for a copy in another process.
        self._calls: list[tuple[str, tuple[Any, ...]]]
        if isinstance(source, Mapping):
            self._calls = [("parse", (name or "scenario", _toml.document(source)))]
            self._native = _native.Scenario.parse(*self._calls[0][1])
        elif isinstance(source, str) and "\n" in source:
            self._calls = [("parse", (name or "scenario", source))]
            self._native = _native.Scenario.parse(*self._calls[0][1])
        else:
            self._calls = [("open", (Path(source).absolute(),))]
            self._native = _native.Scenario.open(source)

    def with_(self, overrides: Optional[Mapping[str, Any]] = None, /, **more: Any) -> Scenario:
        """The scenario with these keys, as `--set` of the command.

        Keys have dots: `with_({"transport.kind": "cubic"})`. A text is read as the command reads
        it, so that `"10us"` and `"{ kind = 'ecn' }"` both work; other values become TOML.
        """
        given = {**(overrides or {}), **more}
        pairs = [(key, _toml.override(value)) for key, value in given.items()]
        return self._of([*self._calls, ("set", (pairs,))], self._native.set(pairs))

    def with_flows(self, source: Any, traffic: str) -> Scenario:
        """The scenario with these flows in the place of those of `traffic`, of kind `flows`.

        `source` is that of `millpond.flows`.
        """
        rows = flows(source)["rows"]
        return self.with_({f"traffic.{traffic}.file": "off", f"traffic.{traffic}.rows": rows})

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def text(self) -> str:
        """The TOML text as it was read."""
        return self._native.text

    @property
    def variants(self) -> list[str]:
        """The names of its variants."""
        return self._native.variants

    def resolved(self, variant: Optional[str] = None) -> str:
        """A variant as TOML, with every default written out. Warns as `run` does."""
        text, told = self._native.plan(variant)
        for warning in told:
            warnings.warn(warning, ScenarioWarning, stacklevel=2)
        return text

    def run(
        self,
        *,
        seed: Optional[int] = None,
        variant: Optional[str] = None,
        shows: Sequence[str] = (),
        into: Optional[Place] = None,
        threads: Optional[int] = None,
        force: bool = False,
        progress: bool = True,
    ) -> Run:
        """Runs it once.

        `into` keeps the results folder; without it the folder is a temporary one, which is removed
        with the returned `Run`. `force` replaces a folder that holds something else.
        """
        native = self._native if seed is None else self._native.seed(_bounded("seed", seed, 0))
        native = native.shows(list(shows)) if shows else native
        above = tempfile.mkdtemp(prefix="millpond-") if into is None else None
        folder = Path(above or "", into or "run")
        try:
            with Listener(self.name, progress) as listener:
                text, at, stopped = _native.run(
                    listener, native, variant, folder, _threads(threads), force
                )
        except BaseException:
            if above is not None:
                shutil.rmtree(above, ignore_errors=True)
            raise
        run = Run(at, Summary._of(json.loads(text)))
        if above is not None:
            weakref.finalize(run, shutil.rmtree, above, ignore_errors=True)
        return _whole(run, stopped)

    def compare(
        self,
        *,
        seeds: Seeds = None,
        vary: Optional[Mapping[str, Any]] = None,
        shows: Sequence[str] = (),
        into: Optional[Place] = None,
        threads: Optional[int] = None,
        force: bool = False,
        progress: bool = True,
    ) -> Comparison:
        """Runs its variants, and the combinations of the values in `vary`, beside each other.

        `seeds` is a number of seeds or a `range`. Results go to `into`, without it to
        `out/NAME-compare` as those of the command, so that the same call goes on with a comparison
        that was interrupted.
        """
        native = self._native.shows(list(shows)) if shows else self._native
        folder = Path(into or _default(self.name, "compare"))
        with Listener("compare", progress) as listener:
            text, at, stopped = _native.compare(
                listener, native, _axes(vary), _seeds(seeds), folder, _threads(threads), force
            )
        return _whole(Comparison(at, json.loads(text)), stopped)

    def sweep(
        self,
        grid: Optional[Mapping[str, Any]] = None,
        *,
        seeds: Seeds = None,
        variants: bool = False,
        skip_invalid: bool = False,
        keep: str = "all",
        shows: Sequence[str] = (),
        into: Optional[Place] = None,
        threads: Optional[int] = None,
        force: bool = False,
        progress: bool = True,
        on: Optional[str] = None,
        address: Optional[str] = None,
        shards: Optional[int] = None,
    ) -> Sweep:
        """Runs every point of a grid: the product of the keys' values, and of the variants.

        The values of a key are an iterable, or a text such as `"0.2..0.8/0.2"`. `keep` is what
        stays of each run: `"all"`, `"queries"` or `"summary"`. Results go to `into`, without it to
        `out/NAME-sweep`; the same call goes on with a sweep that was interrupted.

        `on="ray"` makes `shards` tasks (at most 64 unless given) on the Ray cluster at `address`,
        each with `threads` processors; `into` must be on storage that all nodes share.
        """
        if on not in (None, "ray"):
            raise UsageError(f'on is None or "ray", not {on!r}')
        if on is None and (address, shards) != (None, None):
            raise UsageError('address and shards are of on="ray"')
        if shards is not None and shards < 1:
            raise UsageError(f"shards is at least 1, not {shards}")
        native = self._native.shows(list(shows)) if shows else self._native
        request = (native, _axes(grid), _seeds(seeds), variants, skip_invalid)
        folder = Path(into or _default(self.name, "sweep"))
        merged: Sequence[Path] = ()
        with Listener("sweep", progress) as listener:
            if on == "ray":
                from ._ray import make

                runs = _native.sweep_runs(*request)
                count = min(shards or _SHARDS, runs)
                # The native scenario stays here: a task makes its own.
                calls = [*self._calls, ("shows", (list(shows),))] if shows else self._calls
                work = (calls, (*request[1:], keep))
                merged = make(work, count, folder, threads or 1, force, address, listener)
            text, stopped = _native.sweep(
                listener, *request, keep, None, merged, folder, _threads(threads), force
            )
        return _whole(Sweep(folder, json.loads(text)), stopped)

    @classmethod
    def _of(
        cls, calls: list[tuple[str, tuple[Any, ...]]], native: Optional[_native.Scenario] = None
    ) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._calls = calls
        if native is None:
            native = _native.Scenario  # type: ignore[assignment]  # its first call is a static one
            for name, arguments in calls:
                native = getattr(native, name)(*arguments)
        scenario._native = native  # type: ignore[assignment]
        return scenario

    def __reduce__(self) -> Any:
        return Scenario._of, (self._calls,)

    def __repr__(self) -> str:
        variants = f" with variants {', '.join(self.variants)}" if self.variants else ""
        return f"<scenario {self.name}{variants}>"


def reproduce(
    paper: str,
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    seeds: Seeds = None,
    into: Optional[Place] = None,
    threads: Optional[int] = None,
    force: bool = False,
    progress: bool = True,
) -> Reproduction:
    """Runs a paper's experiments in the simulator, and decides its claims.

    `paper` is one of `papers()`, or a folder with a `paper.toml`. Results go to `into`, without it
    to `out/reproduce-PAPER`; the same call goes on with a reproduction that was interrupted.
    """
    suffix = "-quick" if quick else ""
    folder = Path(into or Path("out", f"reproduce-{quote(Path(paper).name, safe=_SAFE)}{suffix}"))
    with Listener(paper, progress) as listener:
        text, stopped = _native.reproduce(
            listener, paper, quick, list(only), _seeds(seeds), folder, _threads(threads), force
        )
    return _whole(Reproduction(folder, paper, json.loads(text)), stopped)


def papers() -> list[str]:
    """The papers that are built in."""
    return _native.papers()


# Shards of a sweep on Ray: so many tasks share it, and a lost task loses at most one run in work.
_SHARDS = 64
# Characters that names of folders keep.
_SAFE = "-_=+,@."


def _default(name: str, suffix: str) -> Path:
    return Path("out", quote(f"{name}-{suffix}", safe=_SAFE))


def _axes(grid: Optional[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(key, _toml.listed(values)) for key, values in (grid or {}).items()]


def _bounded(name: str, value: Optional[int], least: int) -> Any:
    if value is not None and not least <= value <= _MOST:
        raise UsageError(f"{name} is a whole number from {least} to {_MOST}, not {value!r}")
    return value


def _threads(threads: Optional[int]) -> Optional[int]:
    return _bounded("threads", threads, 1)


def _seeds(seeds: Seeds) -> Optional[tuple[int, int]]:
    """The first and the last."""
    if seeds is None:
        return None
    of = seeds if isinstance(seeds, range) else range(1, int(seeds) + 1)
    if len(of) == 0 or of.step != 1 or of.start < 0 or of.stop > _MOST + 1:
        raise UsageError(f"seeds is a number of seeds or a range of step 1, not {seeds!r}")
    return of.start, of.stop - 1


def _whole(result: Result, stopped: bool) -> Result:
    """Raises `Interrupted` with the result if Ctrl-C came."""
    if stopped:
        raise Interrupted("interrupted; `result` has what is finished", result)
    return result
