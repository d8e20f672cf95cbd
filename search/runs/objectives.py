"""What makes one scheme of a run better than another: objectives by name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ...errors import PlanError
from ...schemes_db import Scheme
from ...schemes_db.costs import additions, full_and_half, nonzeros

Score = Callable[[Scheme], Fraction]


def _one_level(scheme: Scheme) -> Fraction:
    """(F + H/2) products on blocks, one level of recursion."""
    full, half = full_and_half(scheme)
    return full + Fraction(half, 2)


def _recursive(scheme: Scheme) -> Fraction:
    """F / (m k n - H): what the scheme costs where its half products are computed by itself."""
    full, half = full_and_half(scheme)
    m, k, n = scheme.target.shape
    return Fraction(full, m * k * n - half)


_OBJECTIVES: dict[str, Score] = {
    "rank": lambda scheme: Fraction(scheme.rank),
    "cost": _one_level,
    "recursive": _recursive,
    "additions": lambda scheme: Fraction(additions(scheme)),
    "nonzeros": lambda scheme: Fraction(sum(nonzeros(scheme))),
    "coefficients": lambda scheme: Fraction(max(int(abs(factor.values).max()) for factor in scheme.factors)),
}

HALF_OBJECTIVES = ("cost", "recursive")
"""Those that half products are good for."""


def register_objective(name: str, score: Score) -> None:
    """Enter an objective: lower scores are better.

    Raises:
        PlanError: the name is taken.
    """
    if name in _OBJECTIVES:
        raise PlanError(f"an objective named {name!r} is registered already")
    _OBJECTIVES[name] = score


def objective_names() -> tuple[str, ...]:
    """The names that a run knows."""
    return tuple(_OBJECTIVES)


def score_of(name: str, scheme: Scheme) -> Fraction:
    """How a scheme scores; lower is better.

    Raises:
        PlanError: no such objective.
    """
    if name not in _OBJECTIVES:
        raise PlanError(f"objective {name!r} is not known; choose one of {', '.join(_OBJECTIVES)}")
    return _OBJECTIVES[name](scheme)
