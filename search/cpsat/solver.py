"""Solver call shared by the models: one worker, a seed and deterministic time, so that results are reproducible."""

from __future__ import annotations

from typing import Any


def solved(model: Any, *, seconds: float, seed: int) -> tuple[Any, str]:
    """Solve a model; return the solver, and `optimal`, `found`, `infeasible` or `unknown`.

    `seconds` is deterministic time: about as long on a current machine, with the same results everywhere.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = seconds
    # The caller handles an interruption: the solver would treat it as a time limit.
    solver.parameters.catch_sigint_signal = False
    words = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "found", cp_model.INFEASIBLE: "infeasible"}
    return solver, words.get(solver.solve(model), "unknown")
