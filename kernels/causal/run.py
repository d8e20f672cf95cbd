"""One call for all triangular products, on every device."""

from __future__ import annotations

from typing import Any

from ..plans import AUTO, executor_for
from ..request import Request

STRATEGIES = ("vendor", "strips", "kernel")
"""Those without a program; "halving" and "halving:DENSE" are programs, as schemes are."""


def run_triangular(request: Request, a: Any, b: Any, out: Any = None, way: str | None = None) -> Any:
    """The triangular product of a request, by a strategy or a scheme's name, or by the planner's choice."""
    if way is None or way in STRATEGIES:
        return executor_for(request, AUTO, strategy=way).run(a, b, out)
    return executor_for(request, way).run(a, b, out)
