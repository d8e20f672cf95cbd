"""Choosing how to run: candidates, what they should cost, which are refused, which is best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...errors import PlanError
from ...schemes_db.scheme import Scheme
from ..cpu.memory import shortage
from ..dense.arrangements import arrangements, levels_of
from ..request import Request
from .error import error_bound
from .profile import Profile, unmeasured
from .strategy import Candidate, Plan, strategies


def plan(
    request: Request,
    scheme: Scheme | Sequence[Scheme | Sequence[Scheme]],
    levels: int = 1,
    profile: Profile | None = None,
    strategy: str | None = None,
) -> Plan:
    """The best plan for a request with these schemes, which the caller has certified.

    `strategy` names the only one to consider. Candidates are ranked by predicted seconds, those that the
    profile knows nothing of last, then by arithmetic and by bytes moved.

    Raises:
        PlanError: no candidate can run; the message gives every reason.
    """
    profile = unmeasured() if profile is None else profile
    known = strategies(request.device)
    if strategy is not None and strategy not in known:
        raise PlanError(f"strategy {strategy!r} is not known; choose one of {', '.join(sorted(known))}")
    chosen = [name for name in known if strategy in (None, name)]
    plans: list[Plan] = []
    refused: list[tuple[str, str]] = []
    for label, program in arrangements(levels_of(scheme, levels)):
        for name in chosen:
            candidate = Candidate(program, name, label)
            found = considered(candidate, request, profile)
            if isinstance(found, Plan):
                plans.append(found)
            else:
                refused.append((str(candidate), found))
    if not plans:
        reasons = "; ".join(dict.fromkeys(reason for _, reason in refused))
        raise PlanError(f"{request} cannot be run: {reasons}")
    plans.sort(key=_rank)
    best = plans[0]
    beaten = [(str(option.candidate), _slower(option, best)) for option in plans[1:]]
    return replace(best, refused=(*refused, *beaten))


def considered(candidate: Candidate, request: Request, profile: Profile) -> Plan | str:
    """A plan of one candidate, or the reason why it is refused."""
    program, way = candidate.program, strategies(request.device)[candidate.strategy]
    if reason := way.can_run(program, request, profile):
        return reason
    workspace = way.workspace(program, request)
    if request.max_workspace is not None and workspace > request.max_workspace:
        return f"needs {workspace} bytes of workspace, more than the {request.max_workspace} allowed"
    if request.device == "cpu" and (reason := shortage(workspace)):
        return reason
    if request.max_error is not None and (bound := error_bound(program, request)) > request.max_error:
        return f"its error can reach {bound:.2g}, more than the {request.max_error:.2g} allowed"
    stages = tuple(way.predict(program, request, profile))
    return Plan(request, candidate, way.version, stages, workspace, (), profile.id)


def _rank(option: Plan) -> tuple[float, int, int, str]:
    return math.inf if option.seconds is None else option.seconds, *_work(option), str(option.candidate)


def _slower(option: Plan, best: Plan) -> str:
    if option.seconds is not None and best.seconds is not None:
        return f"predicted {option.seconds:.3g} s, the plan {best.seconds:.3g} s"
    (flops, moved), (best_flops, best_moved) = _work(option), _work(best)
    return f"{flops:.4g} flops and {moved:.4g} bytes, the plan {best_flops:.4g} and {best_moved:.4g}"


def _work(option: Plan) -> tuple[int, int]:
    """Arithmetic operations, and bytes moved."""
    return sum(stage.flops for stage in option.stages), sum(stage.bytes for stage in option.stages)
