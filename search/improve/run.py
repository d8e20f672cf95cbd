"""Run of an improvement of the catalogue: turns on targets until the time limit, recorded in a folder if named."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import PlanError
from ...schemes_db import Scheme, Target, Z, parse_ring, parse_target
from ..cluster.engine import engine_on
from ..turn_fleet import Stop
from .catalogue import CatalogueUpdater
from .events import Control, Event, Kept, OnEvent
from .folder import ImproveConfig, ImproveFolder, ImproveState
from .gaps import Gap
from .general import GeneralImprovement, formats_of
from .structured import FrontUpdater, StructuredImprovement

SHARE = 0.05
"""Share of the total time for a turn."""

SHORTEST = 10.0
"""Least seconds of a turn, unless fewer are left: its starts, and the choice of members of its island, take 2 to 3."""

LONGEST = 60.0
"""Maximum seconds of a turn whose ranks do not fall any more; then the format with the highest expected gain has the
next."""


@dataclass(frozen=True)
class Improved:
    """The result of an improvement.

    Attributes:
        kept: the schemes that this call stored in the catalogue, in order.
        gained: ranks gained on full products over the ring, plus schemes stored of structured targets.
        turns: number of turns of every target.
        closed: whether no gap to the best known ranks was left.
        exhausted: formats with a gap that are no longer searched, as every route to them is a dead end.
        fronts: the known front of every structured target, as text.
    """

    kept: tuple[Scheme, ...]
    gained: int
    turns: dict[str, int]
    seconds: float
    closed: bool
    interrupted: bool
    fronts: dict[str, str]
    exhausted: tuple[str, ...] = ()


Part = GeneralImprovement | StructuredImprovement


def _parts(control: Control, stack: ExitStack) -> list[Part]:
    """Return the improvements of a configuration: of full products, and of structured targets."""
    config, jobs, on_event, _, on_start = control
    cluster, parts = config.cluster, list[Part]()
    engine_on(config.device, cluster)
    general, structured = split_targets(config)
    if structured and cluster is not None:
        raise PlanError(f"workers of a cluster take no turns on structured targets ({structured[0]}): leave --ray out")
    fronts = stack.enter_context(FrontUpdater(structured, config.ring, jobs, on_event)) if structured else None
    if general:
        over = Z if config.ring == "ZT" else parse_ring(config.ring)
        updater = stack.enter_context(CatalogueUpdater(over, jobs, on_event, on_start))
        parts.append(GeneralImprovement(updater, general, control, stack))
    if fronts is not None:
        parts.append(StructuredImprovement(fronts, structured, control))
    return parts


def _fronts(parts: Sequence[Part]) -> dict[str, str]:
    walks = (walk for part in parts if isinstance(part, StructuredImprovement) for walk in part.walks)
    return {walk.target.name: str(walk.front) for walk in walks}


def split_targets(config: ImproveConfig) -> tuple[list[Target], list[Target]]:
    """Return the full products of a configuration, and its structured targets.

    Raises:
        TargetError: one is not known.
    """
    named = [parse_target(name) for name in config.targets]
    general = formats_of([one for one in named if one.is_general], config.up_to, config.closure)
    return general, [one for one in named if not one.is_general]


class ImprovementPlan(NamedTuple):
    """What an improvement searches: the gaps of full products in order of the expected gain, and the fronts of
    structured targets, by name."""

    gaps: list[Gap]
    fronts: dict[str, str]


def plan(config: ImproveConfig) -> ImprovementPlan:
    """Return what would be searched, without a search.

    Raises:
        LcmaError: see `improve`.
    """
    with ExitStack() as stack:
        parts = _parts(Control(config, stop=lambda: True), stack)
        gaps = [gap for part in parts if isinstance(part, GeneralImprovement) for gap in part.gaps()]
        return ImprovementPlan(gaps, _fronts(parts))


def improve(
    targets: Sequence[str] | ImproveConfig = (),
    *,
    jobs: int = 1,
    out: str | Path | None = None,
    on_event: OnEvent = lambda event: None,
    stop: Stop = lambda: False,
    **settings: Any,
) -> Improved:
    """Improve the catalogue for some targets in turns, each of a twentieth of the time, from 10 to 60 s.

    A turn on a full product whose lowest rank fell in the second half of its time goes on.

    Full products have turns while the catalogue's rank is above the best known one, in proportion to what that rank
    would take from the mean gap of the table, with compositions; structured targets to improve their fronts of products
    and full products. Every improvement is certified and stored at once; several processes may share the catalogue.

    Args:
        targets: names, with the other fields of `ImproveConfig` as `settings`, or a whole configuration.
        jobs: threads that lift finds beside the walks, or walk on a processor.
        out: a new folder, to continue from with `resume_improvement`.
        stop: called between turns and launches; True ends the improvement.

    Raises:
        PlanError: the device is unknown or missing, or has no walks over the ring, or no targets are given.
        TargetError: a target is not known.
        RunFolderError: `out` contains a run already, or can't be written.
    """
    config = targets if isinstance(targets, ImproveConfig) else ImproveConfig(targets=tuple(targets), **settings)
    if not config.targets and not config.closure:
        raise PlanError("nothing is to be improved: name a target")
    control = Control(config, jobs, on_event, stop)
    if out is None:
        return _go(control)
    split_targets(config)  # an invalid target must not leave a folder behind
    with ImproveFolder.create(out, config) as folder:
        return _go(control, folder)


def resume_improvement(
    path: str | Path,
    *,
    seconds: float | None = None,
    address: str = "",
    workers: int = 0,
    jobs: int = 1,
    on_event: OnEvent = lambda event: None,
    stop: Stop = lambda: False,
) -> Improved:
    """Continue the improvement in a folder: its turns, starts and time, or a new limit of the total time.

    `address` and `workers` select another cluster, or another number of workers.

    Raises:
        RunFolderError: the folder contains no improvement, was made by other code, is locked or damaged.
    """
    with ImproveFolder.open(path) as folder:
        config = folder.config if seconds is None else replace(folder.config, seconds=seconds)
        config = replace(config, address=address or config.address, workers=workers or config.workers)
        return _go(Control(config, jobs, on_event, stop), folder)


def _go(control: Control, folder: ImproveFolder | None = None) -> Improved:
    """Run turns until the time limit, no target is left, or `stop` returns True."""
    before, config, stop = folder.state() if folder else ImproveState({}), control.config, control.stop
    append: Callable[[str, Scheme], None] = folder.append if folder else lambda name, scheme: None
    kept: list[Scheme] = []

    def tell(event: Event) -> None:
        if isinstance(event, Kept):
            kept.append(event.scheme)
            append("found.jsonl", event.scheme)
        control.on_event(event)

    begin = time.perf_counter() - before.seconds
    with ExitStack() as stack:
        parts = _parts(control._replace(on_event=tell, on_start=partial(append, "starts.jsonl")), stack)
        for part in parts:
            part.turns.update({name: turns for name, turns in before.turns.items() if name in part.names})
            if folder is not None and isinstance(part, GeneralImprovement):
                for scheme in folder.schemes("starts.jsonl"):
                    part.updater.remember(scheme)

        def saved(done: bool) -> ImproveState:
            turns = {name: count for part in parts for name, count in part.turns.items()}
            gained = before.gained + sum(part.updater.gained for part in parts)
            state = ImproveState(turns, time.perf_counter() - begin, gained, done)
            if folder is not None:
                folder.save(state)
            return state

        open_parts = list(parts)
        turned = 0
        try:
            while open_parts and not stop():
                left = config.seconds - (time.perf_counter() - begin)
                if left <= 1 and turned:
                    break
                part = open_parts[turned % len(open_parts)]
                left = max(left, 1.0)
                if not part.turn(min(LONGEST, max(SHORTEST, SHARE * config.seconds), left), left):
                    open_parts.remove(part)
                    continue
                turned += 1
                saved(done=False)
            stopped = stop()
        except KeyboardInterrupt:
            stopped = True
        for part in parts if stopped else ():
            part.updater.abandon()  # does not wait for lifts: what has been found is stored already
    end = saved(done=not stopped)
    exhausted = tuple(name for part in parts for name in part.exhausted)
    return Improved(
        tuple(kept),
        end.gained,
        end.turns,
        end.seconds,
        closed=not open_parts and not exhausted,
        interrupted=stopped,
        exhausted=exhausted,
        fronts=_fronts(parts),
    )
