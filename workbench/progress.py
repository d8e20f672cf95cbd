"""Progress of long commands, shown on stderr."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Self

QUIET_SECONDS = 5.0
"""Off a terminal a line is written at most this often."""

COMPILING = "compiling the walk, about 15 s the first time"
"""What a search does before its first round."""

SOLVING = "solving the equations of the first chains"
"""What a search by least squares does instead."""

SILENT_SECONDS = 1.0
"""Off a terminal the first text is written after this time, if it is still the current one."""


class Progress:
    """A line on stderr that keeps changing on a terminal, and is written now and then elsewhere."""

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._status: Any = None
        self._last = time.monotonic()
        self._first = threading.Timer(SILENT_SECONDS, self.announce)
        self._first.daemon = True
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status(text)

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        elif self._text:
            self._first.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._first.cancel()
        if self._status is not None:
            self._status.stop()

    def announce(self) -> None:
        """Say what begins, off a terminal too."""
        if self._status is None:
            print(f"lcma: {self._text}", file=sys.stderr, flush=True)

    def update(self, text: str) -> None:
        """Say how things stand."""
        self._first.cancel()
        if self._status is not None:
            self._status.update(text)
        elif time.monotonic() - self._last >= QUIET_SECONDS:
            self._last = time.monotonic()
            print(text, file=sys.stderr, flush=True)


class CountedProgress(Progress):
    """Progress of a known number of steps: on a terminal a bar with the remaining time."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._total, self._done = total, 0
        if self._status is not None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._status = RichProgress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._status.add_task("", total=total)

    def update(self, text: str) -> None:
        """Say what the present step does."""
        if self._status is None:
            super().update(f"{self._done + 1}/{self._total} {text}")
        else:
            self._status.update(self._task, description=text)

    def step(self) -> None:
        """Count a step as done."""
        self._done += 1
        if self._status is not None:
            self._status.advance(self._task)
