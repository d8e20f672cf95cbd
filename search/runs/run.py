"""Searches: rounds of many walks; each find is certified and lifted before it counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...arguments import INTEGER, PATH, need
from ...errors import ArgumentError, PlanError
from ...schemes_db import Ring, Scheme, Target, Z
from ..flipgraph.policy import Policy
from ..groups.product_rank import by_products
from ..turn_fleet import Stop
from .config import RunConfig
from .folder import RunFolder
from .locked_folder import check_field_types
from .plan import LadderPlan
from .result import Progress, Result
from .search_run import SearchRun

OnEvent = Callable[[Progress], None]
"""Function called after every round with the progress of the run."""


def find(
    target: Target | str,
    *,
    rank: int | None = None,
    ring: Ring | str = Z,
    seed: int = 0,
    walks: int = 0,
    steps: int = 0,
    rounds: int | None = None,
    seconds: float | None = None,
    count: int = 1,
    walk: str = "",
    policy: Policy | Mapping[str, float | str] | None = None,
    command: str = "",
    start: Scheme | None = None,
    ladder: Sequence[str] | None = None,
    plan: LadderPlan | None = None,
    device: str = "cpu",
    objective: str = "rank",
    method: str = "walks",
    naive_too: bool = False,
    address: str = "",
    workers: int = 0,
    jobs: int = 1,
    out: str | Path | None = None,
    on_event: OnEvent | None = None,
    stop: Stop = lambda: False,
) -> Result:
    """Search schemes of rank at most `rank` for a target, by walks over GF(2) or GF(3) and lifts, or over {-1, 0, 1}.

    A run is a sequence of rounds; in each, every walk takes `steps` steps or stops at the rank wanted.
    Finds are collected between rounds, in walk order, in a sparse basis where the target allows it, and
    a walk with a find returns to its start. Without `rank`, every improvement of the lowest rank so
    far is a find. The finds depend on seed, walks, steps and rounds only: `jobs` threads share the
    walks, and `seconds` ends the run after a round.

    Args:
        target: the target, or its name.
        ring: Z2 or Z3 (nothing is lifted), Z, Q (which allows fractions), or "ZT": walks over {-1, 0, 1}.
        out: a new folder for the run: every find is written to it at once, and `resume` continues from there.
        on_event: called after every round.
        stop: called after every round, and between its parts on a processor; True ends the run, and the result has
            `interrupted` set. A round that is broken off is not saved: `resume` repeats it.
        jobs: the number of threads that share the walks.

    The other arguments are the settings of the run, see `RunConfig`.

    A KeyboardInterrupt aborts the round; the result has the finds of the earlier rounds.

    Raises:
        PlanError: the target does not fit a walk, the start is as good as the rank wanted, the
            bounds do not apply to the target, or nothing limits the search.
        TargetError: the target or the ring is not known.
        RunFolderError: `out` contains a run already, or can't be written.
    """
    need(Target | str, target=target)
    need(Ring | str, ring=ring)
    need(tuple | list | None, ladder=ladder)
    need(Policy | Mapping | None, policy=policy)
    need(LadderPlan | None, plan=plan)
    need(Scheme | None, start=start)
    need(PATH | None, out=out)
    need(Callable | None, on_event=on_event)
    need(Callable, stop=stop)
    need(INTEGER, least=1, jobs=jobs)
    need(INTEGER, least=0, seed=seed)
    numbers = {"seed": seed, "walks": walks, "steps": steps, "rounds": rounds, "count": count, "workers": workers}
    texts = {"walk": walk, "command": command, "device": device, "objective": objective, "method": method}
    settings: dict[str, Any] = {"rank": rank, "seconds": seconds, "naive_too": naive_too, "address": address}
    settings |= {**numbers, **texts}
    try:
        check_field_types(RunConfig, settings)
    except TypeError as error:
        raise ArgumentError(str(error)) from None
    config = RunConfig(
        target.name if isinstance(target, Target) else target.strip(),
        ring=ring.name if isinstance(ring, Ring) else ring.strip().upper(),
        policy=policy,
        start=start,
        ladder=None if ladder is None else tuple(ladder),
        plan=plan,
        **settings,
    )
    return carry_out(config, jobs=jobs, out=out, on_event=on_event, stop=stop)


def carry_out(
    config: RunConfig,
    *,
    jobs: int = 1,
    out: str | Path | None = None,
    on_event: OnEvent | None = None,
    stop: Stop = lambda: False,
) -> Result:
    """Run the search of a configuration; see `find`."""
    state = _run_of(config)  # before the folder is created: a target that fits no walk must not leave one behind
    if out is None:
        return _go(state, jobs, on_event, stop)
    with RunFolder.create(out, config) as state.folder:
        return _go(state, jobs, on_event, stop)


def resume(
    path: str | Path,
    *,
    rounds: int | None = None,
    seconds: float | None = None,
    count: int | None = None,
    address: str = "",
    workers: int = 0,
    jobs: int = 1,
    on_event: OnEvent | None = None,
    stop: Stop = lambda: False,
) -> Result:
    """Continue the run in a folder from its last checkpoint; an interrupted round is repeated.

    Limits count from the beginning of the run; the run's own apply where none is given. The result has all finds
    of the run, which are those of an uninterrupted run. `address` and `workers` select another cluster, or
    another number of workers.

    Raises:
        RunFolderError: the folder contains no run, was made by other code, is locked or damaged.
    """
    given = {"rounds": rounds, "seconds": seconds, "count": count, "address": address, "workers": workers}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value}
    with RunFolder.open(path) as folder:
        config = replace(folder.config, **changes) if changes else folder.config
        return _go(_run_of(config, folder), jobs, on_event, stop)


def _run_of(config: RunConfig, folder: RunFolder | None = None) -> SearchRun:
    """Create the run of the configuration's method."""
    if config.method == "walks" and not by_products(config.objective):
        from .walk_run import WalkRun

        return WalkRun(config, folder)
    from .fleet_run import FleetRun

    return FleetRun(config, folder)


def _go(state: SearchRun, jobs: int, on_event: OnEvent | None, stop: Stop) -> Result:
    """Advance a run until a limit or an interruption.

    Raises:
        PlanError: `jobs` is below 1.
    """
    if jobs < 1:
        raise PlanError("jobs must be at least 1")
    state.stop = stop
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while not state.done and not stop() and not state.broken:
                state.advance(pool if jobs > 1 else None)
                if on_event:
                    on_event(state.progress())
            if not state.broken:
                state.save()
            return replace(state.result(), interrupted=not state.done)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            return replace(state.result(nearest=False), interrupted=True)
