"""Solver call shared by the models: one worker, a seed and deterministic time, so that results are reproducible."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Any

TICK = 0.25
"""Seconds between two reports of a solver at work."""

PATIENCE = 1.0
"""Seconds that a solver gets to end after an interruption; one that needs longer is left behind on its thread."""

OnTick = Callable[[str], None]


def solved(model: Any, *, seconds: float, seed: int, on_tick: OnTick = lambda text: None) -> tuple[Any, str, bool]:
    """Solve a model on a thread of its own, so that Ctrl-C arrives in this one.

    Returns the solver with its values; `optimal`, `found`, `infeasible` or `unknown`; and whether it was interrupted.

    Args:
        seconds: deterministic time: about as long on a current machine, with the same results everywhere.
        on_tick: called several times a second with the seconds so far, the best objective and its bound.

    Raises:
        KeyboardInterrupt: interrupted before a solution was found, or the solver has not ended after PATIENCE.
    """
    from ortools.sat.python import cp_model

    class _Best(cp_model.CpSolverSolutionCallback):
        """Records the objective of the best solution."""

        def on_solution_callback(self) -> None:
            state["best"] = f"{self.objective_value:g}" if model.has_objective() else "one"

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = seconds
    # The solver's own handler would end the process, or report a time limit.
    solver.parameters.catch_sigint_signal = False
    state: dict[str, Any] = {"best": "none", "bound": "none"}
    if model.has_objective():
        solver.best_bound_callback = lambda bound: state.update(bound=f"{bound:g}")

    def run() -> None:
        try:
            state["status"] = solver.solve(model, _Best())
        except BaseException as error:
            state["error"] = error

    thread, begin, interrupted = Thread(target=run, daemon=True), time.perf_counter(), False
    thread.start()
    try:
        while thread.is_alive():
            thread.join(TICK)
            bound = f", bound {state['bound']}" if model.has_objective() else ""
            on_tick(f"{time.perf_counter() - begin:.0f} s: best solution {state['best']}{bound}")
    except KeyboardInterrupt:
        interrupted, end = True, time.perf_counter() + PATIENCE
        while thread.is_alive():  # a solver that is still starting misses the first request
            if time.perf_counter() > end:
                raise
            solver.stop_search()
            thread.join(0.05)
    if "error" in state:
        raise state["error"]
    words: dict[Any, str] = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "found", cp_model.INFEASIBLE: "infeasible"}
    word = words.get(state.get("status"), "unknown")
    if interrupted and word not in ("optimal", "found"):
        raise KeyboardInterrupt
    return solver, word, interrupted
