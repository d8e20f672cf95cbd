"""Suite "blr": the 16 layers of the block low-rank paper, by every kind of matrix and every form of the product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..blr_layers import KINDS, TABLE, BlrLayer
from ..blr_products import figures_of, run_blank
from ..case import Bar, Case, Options

CPU_TOKENS, CPU_SIDE = (1, 1024), 8192
"""On a processor layers with sides up to CPU_SIDE are timed, for these numbers of inputs."""

BARS = (
    Bar("over_best", 0.99),
    Bar("peak_over_strided", 1.0, at_most=True),
    Bar("error_over_strided", 1.1, at_most=True),
)
"""Bars on a GPU: the plan chosen where the dense matrix is allowed (`max_extra_bytes`) is never slower than dense and
torch.compile; the one without it takes no more memory than the GEMMs on views, and is as accurate. Its own ratio to
the faster of dense and torch.compile is the figure `over_best_factored`."""


def cases(options: Options) -> Iterator[Case]:
    on_cpu = options.device == "cpu"
    for dtype in options.dtypes or (("float32",) if on_cpu else ("bfloat16",)):
        for layer in _layers(options):
            for n in options.sizes or (CPU_TOKENS if on_cpu and layer.tokens != (1,) else layer.tokens):
                for kind in KINDS:
                    if (structure := layer.structure(kind)) is None:
                        continue
                    yield Case(
                        f"{layer.model} {layer.name} {kind} n={n} {dtype}",
                        partial(figures_of, structure, n, dtype, options),
                        () if on_cpu else BARS,
                        None if on_cpu else partial(run_blank, structure, n, dtype),
                    )


def _layers(options: Options) -> Sequence[BlrLayer]:
    """All rows on a GPU, those of moderate sides on a processor; with --sample evenly many of them."""
    known = [one for one in TABLE if options.device == "cuda" or max(one.inputs, one.outputs) <= CPU_SIDE]
    count = min(options.sample or len(known), len(known))
    return [known[place * len(known) // count] for place in range(count)]
