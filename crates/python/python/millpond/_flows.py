"""A caller's own traffic."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from . import _native
from ._errors import ScenarioError
from ._toml import Raw

_NAMES = ("start_us", "src", "dst", "bytes", "class", "id", "after")


def flows(source: Any, name: str = "flows", **keys: Any) -> dict[str, Any]:
    """Returns a `[[traffic]]` table of these flows, for a scenario's `traffic`.

    `source` is an iterable of rows (`(start_us, src, dst, bytes)`, with a class at the end if need
    be, or mappings), a dict of columns, or a table with the Arrow PyCapsule interface. Columns are
    `start_us`, `src`, `dst`, `bytes`, and if need be `class`, `id` and `after` (ids with spaces
    between them: the flow starts when these are delivered). `keys` are further keys of the table,
    such as `start="10us"`.

    Raises `ScenarioError` if a column is missing or a value is out of range.
    """
    table = source
    if isinstance(source, Mapping):
        table = dict(source)
    elif not hasattr(source, "__arrow_c_stream__"):
        table = _columns(source)
    return {"name": name, "kind": "flows", "rows": Raw(_native.rows(table)), **keys}


def _columns(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """The columns of an iterable's rows."""
    columns: dict[str, list[Any]] = {column: [] for column in _NAMES}
    for number, row in enumerate(rows, 1):
        if isinstance(row, Mapping):
            unknown = [key for key in row if key not in _NAMES]
            if unknown:
                raise _wrong(number, str(unknown[0]), f"there is no column {unknown[0]!r}")
            values = [row.get(column) for column in _NAMES]
        else:
            values = list(row)
            if len(values) not in (4, 5):
                text = "expected (start_us, src, dst, bytes) with a class at the end if need be"
                raise _wrong(number, "bytes", f"{text}, got {row!r}")
            values += [None] * (len(_NAMES) - len(values))
        for column, value in zip(columns.values(), values):
            column.append(value)
    needed = _NAMES[:4]
    return {
        name: column
        for name, column in columns.items()
        if name in needed or any(value is not None for value in column)
    }


def _wrong(row: int, key: str, message: str) -> ScenarioError:
    return ScenarioError(f"flows:{row}: {message}", [("flows", row, 1, key, None, message)])
