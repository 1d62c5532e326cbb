"""Values as TOML."""

from __future__ import annotations

import json
from typing import Any, Mapping


class Raw(str):
    """A text that is TOML already."""


def value(of: Any) -> str:
    """A value as TOML. Members that are `None` are left out."""
    if isinstance(of, Raw):
        return str(of)
    if isinstance(of, str):
        # JSON's escapes are those of a basic string, but for DEL.
        return json.dumps(of, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(of, bool):
        return "true" if of else "false"
    if isinstance(of, (int, float)):
        # `nan` and `inf` are TOML: the scenario's reader reports them with their key.
        return repr(float(of)) if isinstance(of, float) else repr(int(of))
    if isinstance(of, Mapping):
        members = [f"{value(str(key))} = {value(member)}" for key, member in there(of)]
        return "{ " + ", ".join(members) + " }"
    if hasattr(of, "item") and getattr(of, "ndim", None) == 0:  # a number of numpy
        return value(of.item())
    if hasattr(of, "__iter__"):
        return "[" + ", ".join(value(member) for member in of if member is not None) + "]"
    raise TypeError(f"a scenario has no value of type {type(of).__name__}: {of!r}")


def there(of: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The members that are not `None`."""
    return [(key, member) for key, member in of.items() if member is not None]


def document(of: Mapping[str, Any]) -> str:
    """A document: a line for each key."""
    return "".join(f"{value(str(key))} = {value(member)}\n" for key, member in there(of))


def override(of: Any) -> str:
    """The value of an override: a text as the command's `--set` reads it, all else as TOML."""
    return of if isinstance(of, str) else value(of)


def listed(of: Any) -> str:
    """The values of a grid's key, as the command's `--grid` reads them."""
    if isinstance(of, str):
        return of

    def one(member: Any) -> str:
        is_plain = isinstance(member, str) and not any(c in member for c in ',"[]{}')
        return member if is_plain else value(member)

    return ",".join(one(member) for member in of)
