"""Progress in a terminal or a notebook, and what runs report."""

from __future__ import annotations

import logging
import warnings
from typing import Any, Optional

from ._errors import ScenarioWarning

_LOG = logging.getLogger("millpond")
# A run that is shorter shows nothing.
_DELAY_S = 0.5


class Listener:
    """Receives what runs report; shows progress by `tqdm.auto` if it is installed.

    Notes go to the logger `millpond`, warnings to `warnings`.
    """

    def __init__(self, name: str, shown: bool) -> None:
        self._name, self._shown = name, shown
        self._bar: Optional[Any] = None

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def progress(self, done: float, of: float, text: str) -> None:
        """So much is done."""
        if not self._shown:
            return
        if self._bar is None:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._shown = False
                return
            form = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]"
            self._bar = tqdm(
                total=of, desc=self._name, leave=False, delay=_DELAY_S, bar_format=form
            )
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)

    def note(self, text: str) -> None:
        """A user may like to read this."""
        _LOG.info(text)

    def warn(self, text: str) -> None:
        """A user must read this."""
        warnings.warn(text.removeprefix("warning: "), ScenarioWarning, stacklevel=3)
