"""Products by a block low-rank layer with one optimisation after the other, from the papers' form to ours.

After Figures 5 to 8 of Abillama et al., "Memory-Efficient Acceleration of Block Low-Rank Foundation Models on Resource
Constrained GPUs". `relaid` and `handed-over` are Monarch's first two optimisations; the other forms are strategies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...kernels.structured.block_low_rank import Monarch
from ...kernels.structured.blocks import contiguous
from ...kernels.structured.chain import FactorChain
from ...kernels.structured.views import padded, steps_of
from .baselines import Array, batched_product, empty
from .table import rows

RELAID, HANDED_OVER = "relaid", "handed-over"


STEPS = rows("blr_steps")
"""Forms of a kind's chain, with one optimisation more than that above it, or another in its place."""


def ablation(kind: str, figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for every form of a kind's chain that was run: times, speed-ups over the first and the last, and bytes."""
    milliseconds = figures["ms"]
    found: list[dict[str, Any]] = []
    for step in STEPS:
        if step.kind == kind and (form := step.form) in milliseconds:
            found.append(
                {
                    "form": form,
                    "optimisation": step.optimisation,
                    "ms": milliseconds[form],
                    "over_first": found[0]["ms"] / milliseconds[form] if found else 1.0,
                    "over_last": found[-1]["ms"] / milliseconds[form] if found else 1.0,
                    "over_dense": milliseconds["dense"] / milliseconds[form],
                    "weight_bytes": figures["weight_bytes"],
                    "peak_bytes": figures["peak_bytes"][form],
                    "error": figures["errors"][form],
                }
            )
    return found


def relay(structure: Monarch, right: Array) -> Array:
    """V (b1, b2 rank, p), the rows of one block of outputs together."""
    return contiguous(right.swapaxes(1, 2)).reshape(structure.b1, structure.b2 * structure.rank, structure.p)


def multiply_relaid(structure: Monarch, left: Array, right: Array, x: Array, out: Array) -> Array:
    """out (rows, n) = W x with V of `relay`: a copy between the products, and one behind them."""
    b1, b2, r, n = structure.b1, structure.b2, structure.rank, x.shape[1]
    inner = x.T.reshape(n, b1, structure.p).swapaxes(0, 1) @ right.swapaxes(1, 2)  # (b1, n, b2 r)
    parts = inner.reshape(b1, n, b2, r).swapaxes(0, 2)  # (b2, n, b1, r)
    blocks = parts.reshape(b2, n, b1 * r) @ left.reshape(b2, structure.q, b1 * r).swapaxes(1, 2)  # (b2, n, q)
    _blocks_of(structure, out)[...] = blocks
    return out


def multiply_handed_over(structure: Monarch, left: Array, right: Array, x: Array, out: Array) -> Array:
    """out (rows, n) = W x without a copy between the products, and with one behind them."""
    n, (first, second) = x.shape[1], steps_of(structure)
    blocks, inner = empty(x, (structure.b2, n, structure.q)), empty(x, (first.pattern.rows, padded(n)))[:, :n]
    u, v = (one.reshape(-1, *one.shape[2:]) for one in structure.canonical((left, right)))
    batched_product(v, first.source.view(x)[:, 0], first.target.view(inner)[:, 0])
    batched_product(u, second.source.view(inner)[0], blocks.swapaxes(1, 2))
    _blocks_of(structure, out)[...] = blocks
    return out


def steps_between(structure: FactorChain, factors: Sequence[Array], x: Array, out: Array) -> dict[str, Any]:
    """Calls of the forms that are no strategies, by name; each writes `out` (rows, n) and returns it."""
    if not isinstance(structure, Monarch):
        return {}
    left, right = factors
    return {
        RELAID: partial(multiply_relaid, structure, left, relay(structure, right), x, out),
        HANDED_OVER: partial(multiply_handed_over, structure, left, right, x, out),
    }


def _blocks_of(structure: Monarch, out: Array) -> Array:
    """The result (b2, n, q), a view of out (rows, n)."""
    n = out.shape[1]
    if structure.interleaved:
        return out.reshape(structure.q, structure.b2, n).swapaxes(0, 1).swapaxes(1, 2)
    return out.reshape(structure.b2, structure.q, n).swapaxes(1, 2)
