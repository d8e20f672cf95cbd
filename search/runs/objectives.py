"""Objectives by name: scores that compare the schemes of a run."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ...errors import PlanError, unknown_name
from ...schemes_db import Scheme
from ...schemes_db.costs import additions, level_products, nonzeros, one_level_cost, recursive_cost
from ..groups.product_rank import FORMATS, PREFIX, inner_format, sum_of_ranks

Score = Callable[[Scheme], Fraction]

_OBJECTIVES: dict[str, Score] = {
    "rank": lambda scheme: Fraction(scheme.rank),
    "cost": level_products,
    "recursive": lambda scheme: one_level_cost(scheme) if (cost := recursive_cost(scheme)) is None else cost,
    "additions": lambda scheme: Fraction(additions(scheme)),
    "nonzeros": lambda scheme: Fraction(sum(nonzeros(scheme))),
    "coefficients": lambda scheme: Fraction(max(int(abs(factor.values).max()) for factor in scheme.factors)),
}

HALF_OBJECTIVES = ("cost", "recursive")
"""Objectives that half products improve."""


def register_objective(name: str, score: Score) -> None:
    """Register an objective: lower scores are better.

    Raises:
        PlanError: the name is registered already.
    """
    if name in _OBJECTIVES:
        raise PlanError(f"an objective named {name!r} is registered already")
    _OBJECTIVES[name] = score


def score_of(name: str, scheme: Scheme) -> Fraction:
    """Return the score of a scheme; lower is better.

    Raises:
        PlanError: the objective is unknown.
    """
    if name.startswith(PREFIX):
        return Fraction(inner_format(name).product_rank(scheme))
    if name == FORMATS:
        return Fraction(sum_of_ranks(scheme))
    refuse_objective(name)
    return _OBJECTIVES[name](scheme)


def refuse_objective(name: str) -> None:
    """Raise a PlanError if an objective is unknown."""
    if name.startswith(PREFIX):
        inner_format(name)
    elif name != FORMATS and name not in _OBJECTIVES:
        raise unknown_name("objective", name, (*_OBJECTIVES, f"{PREFIX}MxKxN", FORMATS))
