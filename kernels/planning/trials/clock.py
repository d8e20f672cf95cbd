"""The interface of clocks that time calls, and the processor's clock. A GPU's clock is that of its events."""

from __future__ import annotations

import time
from typing import Any, Protocol

Reading = Any
"""What a clock returned for one call; its seconds may become known later."""


class Clock(Protocol):
    """Times calls of one device without waiting for them."""

    def begin(self) -> Any:
        """Return the start of a call."""

    def end(self, began: Any) -> Reading:
        """Return the reading of a call that began there and whose host part has returned."""

    def seconds(self, reading: Reading) -> float | None:
        """Return the seconds of a call, or None while it is not known."""


class HostClock:
    """The processor's own clock: calls have finished when they return."""

    def begin(self) -> float:
        return time.perf_counter()

    def end(self, began: float) -> float:
        return time.perf_counter() - began

    def seconds(self, reading: float) -> float:
        return reading
