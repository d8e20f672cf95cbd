"""Suite "blr": the 16 layers of the block low-rank paper, by every kind of matrix and in every form of the product."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ....errors import PlanError
from ....kernels import Plan, Request
from ....kernels.arrays import torch
from ....kernels.cuda.bench import CudaBench
from ....kernels.factored import UNLIMITED, factored_request
from ....kernels.plans.tuning import bench_for
from ....kernels.structured.block_low_rank import BlockLowRank
from ....kernels.structured.strategy import chain_in
from ...products import require_memory
from ..baselines import Baseline, named_plan, prepared
from ..baselines.block_low_rank import multiply_permuted
from ..blr_ablation import ablation, steps_between
from ..case import Case, Options, Say, barred
from ..contest import Call, Calls, Contest, CudaClock, FlushedClock, Timings, require_right
from ..gpu_products import graphed, peak_bytes
from ..table import LIMITS
from ..workloads import KINDS, TABLE, BlrLayer

CPU_TOKENS, CPU_SIDE = (1, 1024), 8192
"""On a processor layers with sides up to CPU_SIDE are timed, for these numbers of inputs."""


@barred
def cases(options: Options) -> Iterator[Case]:
    on_cpu = options.device == "cpu"
    for dtype in options.dtypes or (("float32",) if on_cpu else ("bfloat16",)):
        for layer in _layers(options):
            for n in options.sizes or (CPU_TOKENS if on_cpu and layer.tokens != (1,) else layer.tokens):
                for kind in KINDS:
                    if (structure := layer.structure(kind)) is None:
                        continue
                    key, of = f"{layer.model} {layer.name} {kind} n={n} {dtype}", (structure, n, dtype)
                    ahead = None if on_cpu else partial(run_blank, *of)
                    yield Case(key, partial(figures_of, *of, options), ahead=ahead)


def _layers(options: Options) -> Sequence[BlrLayer]:
    """All rows on a GPU, those of moderate sides on a processor; with --sample evenly many of them."""
    known = [one for one in TABLE if options.device == "cuda" or max(one.inputs, one.outputs) <= CPU_SIDE]
    count = min(options.sample or len(known), len(known))
    return [known[place * len(known) // count] for place in range(count)]


AUTO, FREE, DENSE, BASELINE, COMPILED = "auto", "auto or dense", "dense", "permuted", "compiled"

FORMS = (DENSE, BASELINE, "strided", "tiled", "decode", AUTO, FREE)
"""The dense matrix, the papers' form, ours, and the planner's choice without the dense matrix (AUTO) and with it
(FREE); on a GPU `COMPILED`, torch.compile of the papers' form, too."""

FEW = 16
"""Up to so many inputs are timed on a GPU with a flushed cache: a model reads every weight once for them."""


@dataclass(frozen=True)
class Form:
    """A form that can run: the call, its relative error, and the bytes that it takes beside operands and result."""

    call: Callable[[], object]
    error: float
    peak: int
    plan: str


def forms_of(request: Request, seed: int, say: Say) -> tuple[dict[str, Form], dict[str, str]]:
    """Those of the forms that can run, checked, and the reasons of the others; all with the steps of the ablation."""
    require_memory(request)
    bench, on_gpu = bench_for(request), request.device == "cuda"
    a, b, out = bench.operands(request, seed)
    error_of = bench.errors(request, a, b)
    found: dict[str, Form] = {}
    reasons: dict[str, str] = {}

    def add(name: str, call: Call, error: float, plan: str, workspace: int | None = None) -> None:
        require_right(name, error, LIMITS["product"][request.dtype], "relative error")
        peak = peak_bytes(call) if on_gpu else _peak_on_cpu(call) if workspace is None else workspace
        found[name] = Form(call, error, peak, plan)

    for name in FORMS:
        say(f"checking {name}")
        named = replace(request, max_extra_bytes=UNLIMITED) if name in (DENSE, FREE) else request
        try:
            plan = _plan_of(named, name)
            call, error = prepared(plan, request, a, b, out, error_of)
        except PlanError as refusal:
            reasons[name] = str(refusal)
            continue
        add(name, call, error, str(plan.candidate), plan.workspace)
    for name, call in steps_between(chain_in(request), a, b, out).items():
        add(name, call, error_of(call()), "ablation")
    if on_gpu:
        call = _compiled(request, a, b)
        add(COMPILED, call, error_of(call()), "torch.compile of the papers' form")
    return found, reasons


def figures_of(structure: BlockLowRank, n: int, dtype: str, options: Options, say: Say) -> dict[str, Any]:
    """Figures of one row; ratios are of medians, more than 1 is faster than the dense layer.

    `over_best` is of the plan where the dense matrix is allowed (`max_extra_bytes`) over the faster of dense and
    torch.compile, `over_best_factored` of the one without it, which has bars of memory and error, too.
    """
    request = factored_request(structure, n, dtype, device=options.device)
    forms, reasons = forms_of(request, options.seed, say)
    timings = timed({name: form.call for name, form in forms.items()}, n, options, say)
    seconds = timings.medians
    rivals = [seconds[name] for name in (DENSE, COMPILED) if name in seconds]
    item = request.itemsize
    figures = {
        "chosen": forms[AUTO].plan,
        "chosen_or_dense": forms[FREE].plan,
        "ratio": seconds[DENSE] / seconds[AUTO],
        "over_best": min(rivals) / seconds[FREE],
        "over_best_factored": min(rivals) / seconds[AUTO],
        "over_baseline": seconds[BASELINE] / seconds[AUTO],
        "ratios": timings.ratios(timings[DENSE]),
        "ms": timings.ms,
        "weight_bytes": structure.parameters * item,
        "dense_weight_bytes": structure.rows * structure.cols * item,
        "peak_bytes": {name: form.peak for name, form in forms.items()},
        "peak_over_strided": (forms[AUTO].peak + 1) / (forms["strided"].peak + 1),
        "error": forms[AUTO].error,
        "errors": {name: form.error for name, form in forms.items()},
        "error_over_strided": forms[AUTO].error / forms["strided"].error,
        "not_run": reasons,
    }
    return figures | {"ablation": ablation(structure.kind, figures)}


def timed(calls: Calls, n: int, options: Options, say: Say, graphs: bool = True) -> Timings:
    """All calls in turns.

    On a GPU as CUDA graphs, since launches would hide small products; with `graphs` False calls bring their own.
    """
    rounds = options.rounds or 7
    if options.device == "cpu":
        return Contest(calls, rounds, say=say).run()
    replays = {name: graphed(call) for name, call in calls.items()} if graphs else calls
    if n <= FEW:
        return Contest(replays, max(rounds, 20), FlushedClock(), say).run()
    return Contest(replays, rounds, CudaClock(warmed=True), say).run()


def run_blank(structure: BlockLowRank, n: int, dtype: str) -> None:
    """Run every form of a GPU that can run on operands without data, for `Case.ahead`."""
    request = factored_request(structure, n, dtype, device="cuda", max_extra_bytes=UNLIMITED)
    a, b, out = CudaBench().operands(request, 0, blank=True)
    for name in FORMS:
        with suppress(PlanError):
            executor: Any = _plan_of(request, name).build()
            executor.run(executor.prepare(a), b, out)


def _plan_of(request: Request, name: str) -> Plan | Baseline:
    return named_plan(request, AUTO if name == FREE else name)


def _compiled(request: Request, factors: Any, x: Any) -> Callable[[], Any]:
    structure = chain_in(request)
    torch.compiler.reset()  # after eight rows torch would run this function uncompiled
    product = torch.compile(lambda rows, *given: multiply_permuted(structure, given, rows))
    rows = x.T.contiguous()
    return lambda: product(rows, *factors).T


def _peak_on_cpu(call: Callable[[], object]) -> int:
    """Bytes that a call of numpy takes at most beside what was there."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
