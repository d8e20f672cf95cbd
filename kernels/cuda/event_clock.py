"""The clock of calls on a GPU: events that nobody waits for."""

from __future__ import annotations

from typing import Any


class EventClock:
    """A `planning.trials.clock.Clock` of the current stream: two events a call, read once they have passed."""

    watched = 8

    def begin(self) -> Any:
        """See `Clock`."""
        return _recorded()

    def end(self, began: Any) -> tuple[Any, Any]:
        """See `Clock`."""
        return began, _recorded()

    def seconds(self, reading: tuple[Any, Any]) -> float | None:
        """See `Clock`."""
        began, ended = reading
        return float(began.elapsed_time(ended)) / 1e3 if ended.query() else None


def _recorded() -> Any:
    import torch

    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
