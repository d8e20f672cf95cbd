"""Planning of a request: enumerate, bound, price, check limits, rank; and the candidates that are worth measuring."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from typing import Any, Protocol

from ...errors import PlanError, unknown_name
from ..request import Request
from .limits import FreeBytes, exceeds_kept, margin, margins_text, memory_shortage, refusal, smallness
from .machine import Machine
from .profile import ESTIMATED
from .strategy import Candidate, Plan, Proposal, Source, Stage, Strategy
from .wisdom import PART, CandidateKey

MOST_PRICED = 64
"""Maximum number of proposals that are priced and checked, in order of their bounds, before the baseline is chosen."""

NOTHING_TIMED = (
    "nothing was timed on this machine yet: auto runs the baseline, and learns from the calls whether another is faster"
)
"""The reason for the baseline where rates are only estimated: such predictions order candidates, and choose none."""

NOTHING = "there is nothing to multiply"

Strategies = Mapping[tuple[str, str], Strategy]
"""The strategies of a device by family and name."""


@dataclass(frozen=True)
class Decision:
    """The chosen plan, the baseline's plan, all proposals by their bounds, refusals, and the reason.

    `measured`: the choice is based on measured times of this request class (wisdom), not on predictions.
    """

    request: Request
    machine: Machine
    plan: Plan
    baseline: Plan
    proposals: tuple[Proposal, ...]
    refused: tuple[tuple[str, str], ...]
    reason: str
    measured: bool = False

    @property
    def seconds(self) -> float | None:
        """Seconds of the plan: measured if the choice is based on measurements, else predicted; None: unknown."""
        return self._seconds(self.plan)

    @property
    def baseline_seconds(self) -> float | None:
        """Seconds of the baseline's plan, likewise."""
        return self._seconds(self.baseline)

    def _seconds(self, plan: Plan) -> float | None:
        if self.measured:
            return next((one.bound for one in self.proposals if one.candidate == plan.candidate), None)
        return plan.seconds

    @property
    def gain(self) -> float:
        """Predicted seconds of the baseline over those of the plan; NaN if either is unknown."""
        if self.plan.seconds is None or self.baseline.seconds is None:
            return math.nan
        return self.baseline.seconds / self.plan.seconds if self.plan.seconds else 1.0

    @property
    def is_baseline(self) -> bool:
        return self.plan.candidate == self.baseline.candidate


def decide(request: Request, machine: Machine, strategies: Strategies, strategy: str | None = None) -> Decision:
    """Return the plan with the least predicted (or measured) time; the baseline if no candidate gains its margin.

    `strategy` names the only one to consider, as "scheme" or, with its method,
    "scheme:tasks".

    Raises:
        PlanError: no candidate can run the request within its limits, or there is no such strategy.
    """
    only, method = _named(request, strategies, strategy)
    if strategy is not None and not request.is_empty:
        return _by_strategy(request, machine, only, _baseline_or_none(request, machine, strategies), method)
    baseline = baseline_plans(request, machine, strategies)[0]
    if machine.wisdom is not None and (known := _measured(request, machine, strategies)):
        return known
    if reason := NOTHING if request.is_empty else smallness(request):
        return Decision(request, machine, baseline, baseline, (), (), reason)
    search = _Search(request, machine, only, baseline)
    best = search.best(request)
    if search.short_of_memory and request.max_workspace is None:
        # Retry as if the caller had limited the memory: then methods with little memory are proposed, too.
        most = int(min(search.free_bytes(), machine.kept_bytes))
        best = search.best(replace(request, max_workspace=most))
    if best is None or machine.profile.source == ESTIMATED:
        reason = NOTHING_TIMED if best else search.reason_for_baseline()
        return Decision(request, machine, baseline, baseline, search.proposals, tuple(search.refused), reason)
    return Decision(request, machine, best, baseline, search.proposals, tuple(search.refused), "fastest by prediction")


def decide_among(
    request: Request,
    machine: Machine,
    strategies: Strategies,
    sources: Iterable[Source],
    strategy: str | None = None,
    *,
    where_faster: bool = False,
) -> Decision:
    """Return the best plan among given programs; with `where_faster` the baseline if none gains its margin.

    `strategy` names the only one, as "scheme" or, with its method, "scheme:tasks". Candidates are ranked by
    predicted seconds, those of unknown time last, by arithmetic and bytes.

    Raises:
        PlanError: no candidate can run; the message gives every reason.
    """
    chosen, method = _named(request, strategies, strategy)
    plans: list[Plan] = []
    refused: list[tuple[str, str]] = []
    free = cache(machine.free_bytes)
    for source in sources:
        for one in chosen.values():
            for candidate in one.candidates_of(source):
                if method and candidate.method != method:
                    continue
                found = plan_candidate(one, candidate, request, machine, free)
                if isinstance(found, Plan):
                    plans.append(found)
                else:
                    refused.append((str(candidate), found))
    if not plans:
        reasons = "; ".join(dict.fromkeys(reason for _, reason in refused)) or "no strategy takes a scheme"
        raise PlanError(f"{request} cannot be run: {reasons}")
    plans.sort(key=lambda plan: (plan.seconds is None, plan.seconds or 0.0, *_work(plan.stages), str(plan.candidate)))
    best = plans[0]
    beaten = [(str(plan.candidate), _slower(plan, best)) for plan in plans[1:]]
    baseline = _baseline_or_none(request, machine, strategies) or best
    proposals = tuple(Proposal(math.nan if plan.seconds is None else plan.seconds, plan.candidate) for plan in plans)
    if where_faster and not gains(best, baseline):
        reason = "the scheme is not predicted to be faster"
        return Decision(request, machine, baseline, baseline, proposals, (*refused, *beaten), reason)
    return Decision(request, machine, best, baseline, proposals, (*refused, *beaten), "named")


def gains(plan: Plan, baseline: Plan) -> bool:
    """Return whether a plan is predicted to stay below its margin of the baseline's seconds."""
    if plan.seconds is None or baseline.seconds is None:
        return False
    return plan.seconds < margin(plan.candidate.family, plan.request, plan.stages) * baseline.seconds


def baseline_plans(request: Request, machine: Machine, strategies: Strategies) -> list[Plan]:
    """Return the plans of the baseline of the request's family: its own, and one more for each library that can run.

    Raises:
        PlanError: none can run the request within its limits.
    """
    refused: list[str] = []
    family = request.family
    for strategy in strategies.values():
        if strategy.baseline and strategy.family == family:
            proposed = strategy.propose(request, machine)
            candidates = () if isinstance(proposed, str) else [proposal.candidate for proposal in proposed]
            found = [plan_candidate(strategy, one, request, machine, machine.free_bytes) for one in candidates]
            if plans := [plan for plan in found if isinstance(plan, Plan)]:
                return plans
            refused += [reason for reason in found if isinstance(reason, str)]
    reasons = "; ".join(dict.fromkeys(refused)) or f"no strategy takes it on {request.device}"
    raise PlanError(f"{request} cannot be run: {reasons}")


def vendor_plans(request: Request, machine: Machine, strategies: Strategies) -> list[Plan]:
    """Return the baseline's plans to measure: one for each library, or the only one.

    Raises:
        PlanError: as `baseline_plans`.
    """
    first, *named = baseline_plans(request, machine, strategies)
    return named or [first]


def _baseline_or_none(request: Request, machine: Machine, strategies: Strategies) -> Plan | None:
    try:
        return baseline_plans(request, machine, strategies)[0]
    except PlanError:
        return None


def _named(request: Request, strategies: Strategies, text: str | None) -> tuple[Strategies, str]:
    """Return the strategies of the request's family, or the one that a text names, and the method that it names."""
    name, _, method = (text or "").partition(":")
    found = {key: strategy for key, strategy in strategies.items() if strategy.family == request.family}
    named = {key: strategy for key, strategy in found.items() if name in ("", strategy.name)}
    if name and not named:
        raise unknown_name(f"{request.family} strategy", name, sorted({strategy.name for strategy in found.values()}))
    return named, method


def _by_strategy(request: Request, machine: Machine, only: Strategies, baseline: Plan | None, method: str) -> Decision:
    """Return the best candidate of one strategy (of one method, if named), regardless of its gain.

    If the baseline does not meet the limits, the plan replaces it in the decision.
    """
    search = _Search(request, machine, only, None, method)
    best = search.best(request)
    if best is None:
        (name, *_) = {strategy.name for strategy in only.values()}
        nothing = f"strategy {':'.join(filter(None, (name, method)))} has no candidate for it; name another or none"
        refused = [reason for _, reason in search.refused]
        told = refused or [search.silence] if search.silence else refused or _refusals(request, machine, only.values())
        reasons = "; ".join(dict.fromkeys(told)) or nothing
        raise PlanError(f"{request} cannot be run: {reasons}")
    return Decision(request, machine, best, baseline or best, search.proposals, tuple(search.refused), "named")


def _refusals(request: Request, machine: Machine, strategies: Iterable[Strategy]) -> list[str]:
    """Return the reasons why strategies that need no source propose no candidate for a request."""
    candidates = ((strategy, strategy.restore("", (), request)) for strategy in strategies)
    found = (strategy.can_run(one, request, machine) for strategy, one in candidates if one and not one.source)
    return [reason for reason in found if reason]


class _Search:
    """Best-first search over proposals: the next is priced only if its bound is below the best price."""

    def __init__(
        self, request: Request, machine: Machine, strategies: Strategies, baseline: Plan | None, method: str = ""
    ) -> None:
        self.request, self.machine, self.strategies, self.baseline = request, machine, strategies, baseline
        self.free_bytes = cache(machine.free_bytes)  # reading it takes longer than pricing: once per search
        self.method = method
        self.proposals: tuple[Proposal, ...] = ()
        self.refused: list[tuple[str, str]] = []
        self.short_of_memory = False
        self.silence = ""

    def best(self, request: Request) -> Plan | None:
        """Return the best plan for the search's request among the proposals for `request`; None: the baseline."""
        found: list[Proposal] = []
        for strategy in self.strategies.values():
            if self.baseline is not None and strategy.baseline:
                continue
            proposed = strategy.propose(request, self.machine)
            if isinstance(proposed, str):
                self.silence = self.silence or proposed
            else:
                found += [one for one in proposed if not self.method or one.candidate.method == self.method]
        found.sort(key=lambda one: (math.isnan(one.bound), one.bound))
        self.proposals = tuple(found)
        best: Plan | None = None
        for proposal in found[:MOST_PRICED]:
            if best is not None and best.seconds is not None and not proposal.bound < best.seconds:
                break
            if self.baseline is not None and not proposal.bound < (self.baseline.seconds or 0.0):
                break
            plan = self._priced(proposal.candidate, best)
            if plan is not None:
                best = plan
                if plan.seconds is None:
                    break
        return best

    def _priced(self, candidate: Candidate, best: Plan | None) -> Plan | None:
        """Return a plan that is better than the best so far and gains its margin; else None, recording refusals."""
        strategy = self.strategies[candidate.family, candidate.strategy]

        def better() -> Plan | None:
            plan = Plan.of(strategy, candidate, self.request, self.machine, 0)
            if self.baseline is not None and not gains(plan, self.baseline):
                return None
            # Of equal candidates, such as those that name a library, the first.
            return plan if best is None or (plan.seconds or math.inf) < (best.seconds or math.inf) else None

        # Beside a baseline most lose by their price, which takes less than the limits; a named one may not be priced.
        plan = None if self.baseline is None else better()
        if plan is None and self.baseline is not None:
            return None
        reason, workspace = refusal(strategy, candidate, self.request, self.machine, self.free_bytes)
        if reason is not None and memory_shortage(workspace, self.free_bytes):
            self.short_of_memory = True
        if reason is None and self.request.max_workspace is None and self.baseline is not None:
            reason = exceeds_kept(workspace, self.machine)
            self.short_of_memory |= reason is not None
        if reason is not None:
            self.refused.append((str(candidate), reason))
            return None
        plan = plan or better()
        return None if plan is None else replace(plan, workspace=workspace)

    def reason_for_baseline(self) -> str:
        """Return the reason why the baseline was chosen."""
        if self.silence and not self.proposals:
            return self.silence
        free = self.request.max_workspace is None and self.request.max_error is None and not self.short_of_memory
        within = "" if free else " within these limits"
        assert self.baseline is not None
        needed = margins_text(self.request.device, self.baseline.candidate.family)
        return f"nothing is predicted to be faster than the baseline{within} by its margin ({needed})"


def plan_candidate(
    strategy: Strategy, candidate: Candidate, request: Request, machine: Machine, free_bytes: FreeBytes | None = None
) -> Plan | str:
    """Return the plan of one candidate, or the reason why it is refused."""
    reason, workspace = refusal(strategy, candidate, request, machine, free_bytes or machine.free_bytes)
    return reason or Plan.of(strategy, candidate, request, machine, workspace)


def restored(
    key: CandidateKey, request: Request, machine: Machine, strategies: Strategies, free_bytes: FreeBytes | None = None
) -> tuple[Candidate | None, Plan | str]:
    """Return the candidate of a key, None if it no longer exists, and its plan or the reason why it cannot run."""
    family, name, source, parameters = key
    strategy = strategies.get((family, name)) if family == request.family else None
    candidate = None if strategy is None else strategy.restore(source, parameters, request)
    if strategy is None or candidate is None:
        return None, "it no longer exists"
    return candidate, plan_candidate(strategy, candidate, request, machine, free_bytes)


def _measured(request: Request, machine: Machine, strategies: Strategies) -> Decision | None:
    """Return the decision by wisdom, or None if no times of this request, or of its baseline, were measured."""
    assert machine.wisdom is not None
    record = machine.wisdom.record(request)
    if record is None:
        return None
    refused: list[tuple[str, str]] = []
    times: list[tuple[float, Plan]] = []
    # Of the vendor's libraries the fastest is the baseline. One that was not measured is not compared with.
    for plan in baseline_plans(request, machine, strategies):
        if not math.isnan(seconds := record.seconds(plan.candidate.key)):
            times.append((seconds, plan))
    if not times:
        return None
    base, baseline = min(times, key=itemgetter(0))
    free, vendors = cache(machine.free_bytes), {plan.candidate.key for _, plan in times}
    for entry in record.entries:
        if entry.key in vendors:
            continue
        candidate, found = restored(entry.key, request, machine, strategies, free)
        if isinstance(found, Plan):
            times.append((entry.seconds, found))
        elif candidate is not None:
            refused.append((str(candidate), found))
    times.sort(key=itemgetter(0))
    seconds, best = times[0] if times[0][0] < PART * base else (base, baseline)
    reason = f"measured {record.when}: {seconds / base:.3f} of the baseline's time"
    proposals = tuple(Proposal(each, plan.candidate) for each, plan in times)
    return Decision(request, machine, best, baseline, proposals, tuple(refused), reason, measured=True)


def _slower(plan: Plan, best: Plan) -> str:
    if plan.seconds is not None and best.seconds is not None:
        return f"predicted {plan.seconds:.3g} s, the plan {best.seconds:.3g} s"
    (flops, moved), (best_flops, best_moved) = _work(plan.stages), _work(best.stages)
    return f"{flops:.4g} flops and {moved:.4g} bytes, the plan {best_flops:.4g} and {best_moved:.4g}"


def _work(stages: Sequence[Stage]) -> tuple[float, float]:
    """Return the arithmetic operations and the bytes moved."""
    return sum(stage.flops for stage in stages), sum(stage.bytes for stage in stages)


TOP = 6
"""Default number of candidates measured in addition to the baseline."""

WITHIN = 1.15
"""Candidates are measured if their predicted seconds are at most this multiple of the baseline's."""


class Bench(Protocol):
    """Operands, checks and interleaved timing of calls on one device."""

    def operands(self, request: Request, seed: int) -> tuple[Any, Any, Any]:
        """Return random A and B, and an array for C, with the request's layouts and structures."""

    def errors(self, request: Request, a: Any, b: Any) -> Callable[[Any], float]:
        """Return a function from C = A B to its relative Frobenius error on some rows; their reference is stored."""

    def interleaved(self, calls: Mapping[str, Callable[[], object]], rounds: int) -> Mapping[str, Sequence[float]]:
        """Measure the seconds of every call, interleaved: each once per round, after an untimed round."""


@dataclass(frozen=True)
class Tuned:
    """One measured candidate: its plan, median seconds and ratio to the fastest library (above 1: faster)."""

    plan: Plan
    seconds: float
    ratio: float
    quartiles: tuple[float, float]
    error: float


def candidates(request: Request, machine: Machine, strategies: Strategies, top: int = TOP) -> list[Plan]:
    """Return the baseline's plans, one a library, and those of the `top` best candidates by prediction that can run."""
    unwise = replace(machine, wisdom=None)
    plans = vendor_plans(request, unwise, strategies)
    most = len(plans) + top
    decision = decide(request, unwise, strategies)
    baseline = decision.baseline
    for proposal in decision.proposals:
        if len(plans) >= most or (baseline.seconds and proposal.bound > WITHIN * baseline.seconds):
            break
        candidate = proposal.candidate
        if any(plan.candidate == candidate for plan in plans):
            continue
        strategy = strategies[candidate.family, candidate.strategy]
        found = plan_candidate(strategy, candidate, request, unwise)
        if isinstance(found, Plan) and (request.max_workspace is not None or not exceeds_kept(found.workspace, unwise)):
            plans.append(found)
    return plans
