"""What the models share: one worker, a seed and deterministic time, so that the same question has the same answer."""

from __future__ import annotations

from typing import Any


def solved(model: Any, *, seconds: float, seed: int) -> tuple[Any, str]:
    """The solver after its work on a model, and `optimal`, `found`, `infeasible` or `unknown`.

    `seconds` are of deterministic time: about as long on a machine of today, and the same everywhere.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = seconds
    # An interruption belongs to whoever asked for the solution: the solver would take it for a limit.
    solver.parameters.catch_sigint_signal = False
    words = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "found", cp_model.INFEASIBLE: "infeasible"}
    return solver, words.get(solver.solve(model), "unknown")
