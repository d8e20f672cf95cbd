"""Suite "falcon": layer sizes of large models over a grid of M, the planner's choice against the best library."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ....kernels import Request, matmul, plan_for
from ....schemes_db.resolve import resolve
from ..case import Case, Figures, Options, Say, barred
from ..cpu_products import compete, libraries, operands
from ..gpu_layers import layer_cases
from ..rivals import compiled_formula, tasks_adding
from ..workloads import sample

SAMPLE = 24
"""Products taken of the paper's 960 unless --sample says otherwise: one of every layer."""

FORMULAS = 8
"""Every so many products the formula under torch.compile competes, too: each takes a compilation."""

GPU_SAMPLE, GPU_SPENT = 96, 0.05
"""Products of each dtype on a GPU, and the seconds that a contender runs in a round."""

ON_GPU = ("float32", "bfloat16")


@barred
def cases(options: Options) -> Iterator[Case]:
    if options.device == "cuda":
        yield from layer_cases(options, ON_GPU, GPU_SAMPLE, GPU_SPENT)
        return
    for i, (m, layer) in enumerate(sample(options.sample or SAMPLE)):
        one = 1e-11 * m * layer.k * layer.n  # at 200 Gflop/s
        rounds = options.rounds or (7 if one < 1.5 else 3)
        key = f"{layer.model} {layer.layer} {m}x{layer.k}x{layer.n}"
        sizes = m, layer.k, layer.n
        compiled = i % FORMULAS == FORMULAS // 2
        yield Case(key, partial(_product, sizes, rounds, options.seed, compiled))


def _product(sizes: tuple[int, int, int], rounds: int, seed: int, compiled: bool, say: Say) -> Figures:
    a, b, out = operands(sizes, "float32", seed)
    plan = plan_for(Request.of(a, b, out))
    say(str(plan.candidate))
    ours = {"auto": lambda: matmul(a, b, out=out)}
    if not any(size % 2 for size in sizes):
        scheme = resolve("strassen")[0]
        ours["R tasks adding into C"] = tasks_adding(scheme, a, b)
        if compiled and (call := compiled_formula(scheme, a, b, say)) is not None:
            ours["formula under torch.compile"] = call
    figures = compete(a, b, libraries(a, b), ours, rounds)
    chosen = plan.candidate.strategy != "vendor"
    return {**figures, "plan": str(plan.candidate), "by_scheme": chosen, "predicted_s": plan.seconds}
