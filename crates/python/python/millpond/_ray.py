"""Sweeps on a Ray cluster: a task for each shard, into folders that the caller merges."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Optional

from . import _native
from ._errors import Error, Interrupted, ResultsError, RunsError, UsageError
from ._progress import Listener

# Ray starts a task again on another node this often after its worker or its node died.
_RETRIES = 8
# A worker of a dead node may live on for seconds, and holds its shard's folder until it ends.
_TRIES, _PAUSE_S = 10, 1.0


def make(
    work: tuple[Any, ...],
    shards: int,
    folder: Path,
    threads: int,
    force: bool,
    address: Optional[str],
    listener: Listener,
) -> list[Path]:
    """Makes all shards of a sweep beside `folder`, and returns their folders.

    Runs that a shard's folder has are not made again. Raises `RunsError` if shards fail for good;
    what they have finished stays.
    """
    try:
        import ray
    except ImportError as error:
        raise UsageError('on="ray" needs Ray: pip install "millpond[ray]"') from error
    places = _places(folder, shards)
    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init(address=address, log_to_driver=False)
    try:
        task = ray.remote(num_cpus=threads, max_retries=_RETRIES)(_shard)
        options = (threads, force, Path.cwd())
        refs = {
            task.remote(work, (at, shards), place, *options): at
            for at, place in enumerate(places, 1)
        }
        failures = _wait(ray, refs, shards, listener)
    finally:
        if is_ours:
            ray.shutdown()
    if failures:
        text = "; ".join(f"{at}/{shards}: {reason}" for at, reason in sorted(failures.items()))
        raise RunsError(
            f"{len(failures)} of {shards} shards failed ({text}); finished runs stay, and the same "
            "call goes on"
        )
    if not all(place.is_dir() for place in places):
        raise UsageError(f"{folder.parent} is not on storage that all nodes of the cluster share")
    return places


def _places(folder: Path, shards: int) -> list[Path]:
    """The folders of the shards, which lie beside that of the sweep."""
    folder = folder.absolute()
    return [folder.with_name(f"{folder.name}.shard-{n}-of-{shards}") for n in range(1, shards + 1)]


def _wait(ray: Any, refs: dict[Any, int], shards: int, listener: Listener) -> dict[int, str]:
    """Waits for all tasks; returns why shards failed."""
    failures, pending = {}, dict(refs)
    try:
        while pending:
            listener.progress(shards - len(pending), shards, f"{shards} shards on Ray")
            for ref in ray.wait(list(pending), timeout=0.5)[0]:
                at = pending.pop(ref)
                try:
                    reason = ray.get(ref)
                except ray.exceptions.RayError as error:
                    reason = f"{type(error).__name__}: {error}".splitlines()[0]
                if reason is not None:
                    failures[at] = reason
    except KeyboardInterrupt:
        for ref in pending:
            ray.cancel(ref)
        raise Interrupted("interrupted; finished runs stay, and the same call goes on") from None
    return failures


def _shard(
    work: tuple[Any, ...],
    shard: tuple[int, int],
    place: Path,
    threads: int,
    force: bool,
    cwd: Path,
) -> Optional[str]:
    """Makes a shard in a worker; returns why it failed."""
    from ._scenario import Scenario

    calls, request = work
    with _in_folder(cwd):
        for tries_left in reversed(range(_TRIES)):
            try:
                native = Scenario._of(calls)._native
                listener = Listener("shard", False)
                _native.sweep(listener, native, *request, shard, (), place, threads, force)
                return None
            except ResultsError as error:
                if not tries_left:
                    return str(error)
                time.sleep(_PAUSE_S)
            except Error as error:
                return str(error)
    return None


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Works in the caller's folder, to which a scenario's files may be relative, if it is there."""
    before = Path.cwd()
    if folder.is_dir():
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
