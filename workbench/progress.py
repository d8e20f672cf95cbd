"""How a long command says on stderr that it is alive."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

QUIET_SECONDS = 5.0
"""Off a terminal a line is written at most this often."""


class Progress:
    """A line on stderr that keeps changing on a terminal, and is written now and then elsewhere."""

    def __init__(self, text: str = "") -> None:
        self._status: Any = None
        self._last = time.monotonic()
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status(text)

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def update(self, text: str) -> None:
        """Say how things stand."""
        if self._status is not None:
            self._status.update(text)
        elif time.monotonic() - self._last >= QUIET_SECONDS:
            self._last = time.monotonic()
            print(text, file=sys.stderr, flush=True)
