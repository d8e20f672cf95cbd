"""The decision, plan and executor of a request, by the one planner and through the one cache."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ...arguments import shown
from ...errors import PlanError
from ..cpu.threads import thread_count
from ..planning.cache import plan_cache
from ..request import INT8, Request, class_request

if TYPE_CHECKING:
    from ...schemes_db.scheme import Scheme
    from ..codegen.certified import SchemeLike
    from ..planning.machine import Machine
    from ..planning.planner import Decision
    from ..planning.strategy import Executor, Plan
    from ..planning.trials.lesson import LearningExecutor
    from ..ring import ExactRing

AUTO = "auto"

PREDICT = "predict"


def decision_for(
    request: Request,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    *,
    strategy: str | None = None,
    where_faster: bool = False,
    effort: str = PREDICT,
    machine: Machine | None = None,
) -> Decision:
    """Return how a request would be run, and why. `strategy`, `scheme` and `levels` are as in `matmul`.

    With `where_faster` a named scheme is replaced by the baseline if it is not predicted to be
    faster. `machine` replaces the one that the request would run on.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    from ..planning.planner import decide, decide_among
    from .families import check_device_of, check_not_removed, machine_for, strategies

    if effort not in (PREDICT, "measure"):
        raise PlanError(f'effort must be "predict" or "measure", not {effort!r}')
    automatic = isinstance(scheme, str) and scheme == AUTO
    if request.ring is not None and isinstance(scheme, Sequence) and not is_single(scheme) and not scheme:
        raise PlanError("no level of a scheme is named; name one, or leave it to auto")
    if automatic and levels is not None:
        raise PlanError('levels is for a scheme that is named; name one, or leave levels out with scheme="auto"')
    check_not_removed(strategy if automatic else strategy or "scheme", request)
    check_device_of(strategy, request.device)
    machine = machine_for(request, measure=automatic) if machine is None else machine
    known = strategies(request.device, request.family)
    if automatic:
        if effort == "measure" and strategy is None and not (machine.wisdom and machine.wisdom.record(request)):
            from .tuning import tune

            tune(request, machine=machine)
            machine = machine_for(request)
        return decide(request, machine, known, strategy)
    sources = _sources(request, scheme, 1 if levels is None else levels)
    return decide_among(request, machine, known, sources, strategy, where_faster=where_faster)


def plan_for(
    request: Request,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    *,
    strategy: str | None = None,
    where_faster: bool = False,
    machine: Machine | None = None,
) -> Plan:
    """Return the plan that `matmul` uses for such a request; `machine` replaces the one that it would run on.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    if machine is not None:
        return decision_for(request, scheme, levels, strategy=strategy, where_faster=where_faster, machine=machine).plan
    near = class_request(request)
    key = _key(near, scheme, levels, strategy, where_faster)
    decision = plan_cache.get(key)
    if decision is None:
        decided = decision_for(near, scheme, levels, strategy=strategy, where_faster=where_faster)
        decision = plan_cache.put(key, decided)
    plan: Plan = decision.plan
    try:
        return plan.for_request(request)
    except PlanError:  # the request is of the class but cannot be run with its plan: plan for its own sizes
        return decision_for(request, scheme, levels, strategy=strategy, where_faster=where_faster).plan


def executor_for(
    request: Request,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    *,
    strategy: str | None = None,
    effort: str = PREDICT,
) -> Executor:
    """Return the executor that `matmul` uses for such a request.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    return plan_and_executor(request, scheme, levels, strategy, effort)[1]


def learns(request: Request) -> bool:
    """Return whether `auto` learns from the calls of such a request now.

    Not from exact products and prepared operands: predictions choose these.
    """
    if not _is_learnable(request):
        return False
    from ..learning import allowed

    return allowed()


def defer(request: Request) -> None:
    """Queue the class of a request for shadow calls, if it is met where calls are deferred.

    Records have no limits: of a product with limits nothing could be stored.
    """
    from ..learning import Mode, learner, mode

    limited = request.max_error is not None or request.max_workspace is not None
    if mode() is Mode.DEFERS and not limited and _is_learnable(request):
        learner.defer((class_request(request), _place(request)), _cached_plan)


def _is_learnable(request: Request) -> bool:
    exact = request.ring is not None or request.dtype == INT8
    return not (exact or request.is_empty or request.static == "B")


def learning_executor(request: Request, wait: bool = True) -> LearningExecutor | None:
    """Return the executor that learns from the calls of a request.

    Without `wait`, None while the class is prepared in the background: the vendor's product is to be run.

    Raises:
        PlanError: nothing can run the request.
    """
    place = _place(request)
    key = ("learning", request, place)
    executor: LearningExecutor | None = plan_cache.get(key)
    if executor is None:
        from ..learning import learner

        executor = learner.executor(request, (class_request(request), place), wait)
        if executor is not None:
            executor.place = place
            plan_cache.put(key, executor)
    return executor


def plan_and_executor(
    request: Request,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    strategy: str | None = None,
    effort: str = PREDICT,
) -> tuple[Plan, Executor]:
    """Return the plan of a request and its executor, from the cache if available.

    Where `auto` learns from calls, the plan is the current leader's.
    """
    free = isinstance(scheme, str) and scheme == AUTO and strategy is None and effort == PREDICT
    if free and learns(request):
        learning = cast("LearningExecutor", learning_executor(request))
        return learning.lesson.plan, learning
    if free:
        defer(request)
    key = ("executor", effort, *_key(request, scheme, levels, strategy, False))
    pair = plan_cache.get(key)
    if pair is None:
        if effort == PREDICT:
            plan = plan_for(request, scheme, levels, strategy=strategy)
        else:
            plan = decision_for(request, scheme, levels, strategy=strategy, effort=effort).plan
        pair = plan_cache.put(key, (plan, plan.build()))
    return cast("tuple[Plan, Executor]", pair)


def _key(request: Request, scheme: Any, levels: int | None, strategy: str | None, where_faster: bool) -> Any:
    if isinstance(scheme, str) and (scheme == AUTO or request.triangle is not None):
        digests: Any = scheme  # for a triangular product also SCHEME/DENSE, which is no scheme
    else:
        digests = _by_level(scheme, lambda one: _proven(one, request.ring).digest)
    return request, digests, levels, strategy, where_faster, _place(request)


def _cached_plan(request: Request) -> Plan | None:
    """Return the plan that `auto` would use for a request where nothing is learned, if it is cached."""
    decision: Decision | None = plan_cache.get(_key(class_request(request), AUTO, None, None, False))
    return None if decision is None else decision.plan


def _place(request: Request) -> int:
    """Return the number of threads, or the index of the current GPU."""
    if request.device == "cpu":
        return thread_count()
    torch = sys.modules.get("torch")
    return torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else -1


def _sources(request: Request, scheme: SchemeLike | Sequence[Any], levels: int) -> list[Any]:
    """Return the programs of proven schemes: one for all levels, or those of every level."""
    if request.ring is not None:
        from ..exact.schemes import given_chain

        return [given_chain(scheme, levels, request.ring)]
    if request.triangle is not None:
        from ..causal.candidates import named_sources

        return named_sources(scheme, request.triangle)
    from ..dense.arrangements import given

    return list(given(_by_level(scheme, _proven), levels))


def _by_level(scheme: Any, read: Callable[[Any], Any]) -> Any:
    """Return `read` of the one scheme of an argument, or of every scheme of its levels, as tuples by level."""
    if is_single(scheme):
        return read(scheme)
    return tuple((read(one),) if is_single(one) else tuple(map(read, _entries(one))) for one in _entries(scheme))


def _entries(scheme: object) -> Sequence[Any]:
    if not isinstance(scheme, Sequence) or isinstance(scheme, str | bytes):
        raise PlanError(
            f"scheme must be a name, a scheme, a pair (scheme, certificate), or a list of these, not {shown(scheme)}"
        )
    return scheme


def replan_with_less_memory(
    request: Request, scheme: SchemeLike | Sequence[Any], levels: int | None, strategy: str | None, failed: Plan
) -> tuple[Plan, Executor]:
    """Return the replacement, for this and later calls, of a plan that ran out of memory.

    Raises:
        PlanError: the plan needed no memory of its own, or no named scheme needs less.
    """
    from ..cpu.workspace import shared_pool

    shared_pool.trim()
    if not failed.workspace:
        raise PlanError(f"out of memory: {request} has no room for its result") from None
    limited = replace(request, max_workspace=failed.workspace // 2)
    decision = decision_for(limited, scheme, levels, strategy=strategy)
    plan = replace(decision.plan, request=request)
    key = _key(request, scheme, levels, strategy, False)
    plan_cache.put(key, replace(decision, request=request, plan=plan))
    return plan_cache.put(("executor", PREDICT, *key), (plan, plan.build()))


def _proven(scheme: SchemeLike, ring: ExactRing | None = None) -> Scheme:
    """See `certified`, which the library's own product does not need."""
    from ..codegen.certified import certified

    return certified(scheme, ring)


def is_single(scheme: object) -> bool:
    """Return whether this is a name, a scheme, or a pair (scheme, certificate), and no list of levels."""
    if isinstance(scheme, str):
        return True
    from ...schemes_db.certificate import Certificate
    from ...schemes_db.scheme import Scheme

    pair = isinstance(scheme, tuple) and len(scheme) == 2 and isinstance(scheme[1], Certificate | None)
    return isinstance(scheme, Scheme) or pair
