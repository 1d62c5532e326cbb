"""Exceptions, one for each error of the Rust library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Sequence


class Error(Exception):
    """Why a scenario was not read, planned or run."""


@dataclass(frozen=True)
class Problem:
    """One problem of a scenario, with its place."""

    file: str
    """The scenario's file or name; `with_` for an override, `flows` for a caller's flows."""
    line: int
    """From 1; of flows the row."""
    column: int
    """From 1, in characters."""
    key: Optional[str]
    """The key or column that is wrong, unknown or missing."""
    nearest: Optional[str]
    """The name that was most likely meant, if one is near."""
    message: str
    """The problem, with the repair if there is one."""


class ScenarioError(Error):
    """The scenario, an override, a variant, or a caller's flows are wrong.

    The attributes are those of the first problem; `problems` has all.
    """

    def __init__(self, message: str, problems: Sequence[tuple[Any, ...]]) -> None:
        super().__init__(message)
        self.problems = [Problem(*problem) for problem in problems]
        first = self.problems[0]
        self.file, self.line, self.column = first.file, first.line, first.column
        self.key, self.nearest = first.key, first.nearest


class PointError(ScenarioError):
    """One point of a grid makes no valid scenario."""

    def __init__(self, message: str, problems: Sequence[tuple[Any, ...]], point: str) -> None:
        super().__init__(message, problems)
        self.point = point


class UsageError(Error):
    """The request cannot be met."""


class ResultsError(Error):
    """Results cannot be written or read."""

    def __init__(self, message: str, file: Optional[Path] = None) -> None:
        super().__init__(message)
        self.file = None if file is None else Path(file)


class RunsError(Error):
    """Some of many runs failed."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the work. The message reports what is kept; `result` has it, if it is whole."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class ScenarioWarning(UserWarning):
    """A scenario has a legal value that is hardly meant, or a run ended in an unusual way."""
