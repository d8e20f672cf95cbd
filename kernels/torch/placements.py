"""Sharding rules of products of DTensors: the placements for which local products need no communication."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch.distributed.tensor import Partial, Placement, Replicate, Shard

from ...errors import PlanError

Placements = tuple[Placement, ...]
"""One placement for every dimension of a device mesh."""


@dataclass(frozen=True)
class ShardedOperand:
    """The placements and the global shape of a DTensor."""

    placements: Placements
    shape: tuple[int, ...]

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def transposed(self) -> ShardedOperand:
        """Return the operand of the transpose of a matrix."""
        placements = (Shard(1 - one.dim % 2) if type(one) is Shard else one for one in self.placements)
        return ShardedOperand(tuple(placements), self.shape[::-1])

    def position(self, placement: Placement) -> int | None:
        """Return the dimension that a placement shards, counted from the end (-1); None for other placements."""
        if type(placement) is not Shard:  # not _StridedShard, whose parts are not contiguous
            return None
        return placement.dim - self.dim if placement.dim >= 0 else placement.dim

    def varies_along(self, position: int) -> bool:
        """Return whether the operand has this dimension, counted from the end, and does not broadcast it."""
        return self.dim >= -position and self.shape[position] != 1


@dataclass(frozen=True)
class ShardingRule:
    """The placements of a result and of its operands' gradients, for a gradient of the result that has its dual."""

    result: Placements
    grads: tuple[Placements, ...]


def product_rule(a: ShardedOperand, b: ShardedOperand) -> ShardingRule:
    """Return the rule for A (..., m, k) and B (..., k, n) on one mesh, found for every mesh dimension by itself.

    Column-parallel: A replicated, B sharded along n, so C is sharded along n. Row-parallel: both sharded along k,
    so C is partial. Data-parallel: A sharded along m or a batch dimension that B lacks, B replicated. Batches that
    both operands shard alike, replicated operands, and one partial operand beside a replicated one.

    Raises:
        PlanError: the placements need a redistribution.
    """
    found = [_one(*pair, a, b) for pair in zip(a.placements, b.placements, strict=True)]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        raise PlanError(_refusal(a, b))
    result, *grads = zip(*known, strict=True)
    return ShardingRule(result, tuple(grads))


def layer_rule(x: ShardedOperand, axis: int, factors: Sequence[ShardedOperand], low_rank: bool = False) -> ShardingRule:
    """Return the rule for an input with features along `axis` and the factors of a structured weight, on one mesh.

    Replicated factors allow an input that is replicated, partial or sharded along another dimension. A low-rank
    weight U V, with U (outputs, rank) and V (rank, inputs), also allows on every mesh dimension: U sharded along the
    outputs; V along the inputs, as x is; or both along the rank.

    Raises:
        PlanError: the placements have no such rule.
    """
    found = []
    for place, of_x in enumerate(x.placements):
        of_factors = tuple(one.placements[place] for one in factors)
        one = _batch(of_x, axis, of_factors) or (_low_rank(of_x, axis, *of_factors) if low_rank else None)
        if one is None:
            raise PlanError(_layer_refusal(x, axis, factors, low_rank))
        found.append(one)
    result, *grads = zip(*found, strict=True)
    return ShardingRule(result, tuple(grads))


def dual(placement: Placement) -> Placement:
    """Return the placement of the gradient of a tensor with this placement: partial sums share one gradient."""
    return Replicate() if placement.is_partial() else placement


def is_sum(placement: Placement) -> bool:
    """Return whether this is a pending sum, the only reduction that commutes with products."""
    return type(placement) is Partial and placement.reduce_op == "sum"


def has_whole_parts(placements: Iterable[Placement]) -> bool:
    """Return whether all are replicated or shards of contiguous parts, so that a weight has a rule with some input."""
    return all(one.is_replicate() or type(one) is Shard for one in placements)


def shown(placements: Iterable[Placement]) -> str:
    """Return placements as Python writes them in a call, e.g. `[Shard(1), Replicate()]`."""
    return "[" + ", ".join(_text(one) for one in placements) + "]"


def fitting_left(a: tuple[int, ...], b: ShardedOperand) -> Placements:
    """Return placements of an A of this shape that have a rule with those of B; replicated where none has."""
    left = ShardedOperand((), a)

    def one(placement: Placement) -> Placement:
        position = b.position(placement)
        if position == -2:
            return Shard(left.dim - 1)
        if position is not None and position < -2 and left.varies_along(position):
            return Shard(left.dim + position)
        return Replicate()

    return tuple(map(one, b.placements))


def _one(
    of_a: Placement, of_b: Placement, a: ShardedOperand, b: ShardedOperand
) -> tuple[Placement, Placement, Placement] | None:
    """Return the placements of C, dA and dB along one mesh dimension, or None if local products do not suffice."""
    rank = max(a.dim, b.dim)
    left, right = a.position(of_a), b.position(of_b)
    if of_a.is_replicate() and of_b.is_replicate():
        return Replicate(), Replicate(), Replicate()
    if left is not None and of_b.is_replicate():
        rows = left == -2 or (left < -2 and not b.varies_along(left))
        return (Shard(rank + left), of_a, Partial()) if rows else None
    if right is not None and of_a.is_replicate():
        columns = right == -1 or (right < -2 and not a.varies_along(right))
        return (Shard(rank + right), Partial(), of_b) if columns else None
    if left is not None and right is not None:
        if (left, right) == (-1, -2):
            return Partial(), of_a, of_b
        same = left == right and left < -2 and a.shape[left] == b.shape[right]
        return (Shard(rank + left), of_a, of_b) if same else None
    if is_sum(of_a) and of_b.is_replicate():
        return Partial(), Replicate(), Partial()
    if of_a.is_replicate() and is_sum(of_b):
        return Partial(), Partial(), Replicate()
    return None


def _batch(of_x: Placement, axis: int, of_factors: Placements) -> Placements | None:
    """Return the placements of the result and of the gradients of x and of replicated factors, or None."""
    if not all(one.is_replicate() for one in of_factors):
        return None
    if of_x.is_replicate():
        return Replicate(), Replicate(), *of_factors
    if type(of_x) is Shard and of_x.dim != axis:
        return of_x, of_x, *(Partial() for _ in of_factors)
    return (Partial(), Replicate(), *(Partial() for _ in of_factors)) if is_sum(of_x) else None


def _low_rank(of_x: Placement, axis: int, of_u: Placement, of_v: Placement) -> Placements | None:
    """Return the placements of the result and of the gradients of x, U and V, or None."""
    rules: dict[tuple[Placement, ...], Placements] = {
        (Replicate(), Shard(0), Replicate()): (Shard(axis), Partial(), Shard(0), Partial()),
        (Shard(axis), Replicate(), Shard(1)): (Partial(), Shard(axis), Partial(), Shard(1)),
        (Replicate(), Shard(1), Shard(0)): (Partial(), Partial(), Shard(1), Shard(0)),
    }
    given = (of_x, of_u, of_v)
    return rules.get(given) if has_whole_parts(given) else None  # a _StridedShard may equal a Shard


def _layer_refusal(x: ShardedOperand, axis: int, factors: Sequence[ShardedOperand], low_rank: bool) -> str:
    """Return the line that names all placements and the mend."""
    kept = all(one.is_replicate() for factor in factors for one in factor.placements)
    mend = (Replicate(),) * len(x.placements)
    given = (
        f"x {x.shape} has the placements {shown(x.placements)} and the factors "
        f"{', '.join(shown(factor.placements) for factor in factors)}; "
    )
    if kept:
        return f"{given}features cannot be sharded here: call x.redistribute(placements={shown(mend)}) first"
    if low_rank:
        return (
            f"{given}on a mesh dimension x is replicated and U Shard(0), or x Shard({axis}) and V Shard(1), or x "
            "replicated, U Shard(1) and V Shard(0): redistribute x, or distribute the factors so"
        )
    return (
        f"{given}parts of these factors are no factors of a part of the weight: distribute_tensor each with "
        f"{shown(mend)}, and shard x along a batch dimension"
    )


def _text(placement: Placement) -> str:
    if type(placement) is Shard:
        return f"Shard({placement.dim})"
    return f"{type(placement).__name__}()" if placement.is_replicate() or is_sum(placement) else repr(placement)


def _refusal(a: ShardedOperand, b: ShardedOperand) -> str:
    """Return the line that names both placements and the call that mends them."""
    plain = all(one.is_replicate() or is_sum(one) or type(one) is Shard for one in b.placements)
    name, mend = ("a", fitting_left(a.shape, b)) if plain else ("b", (Replicate(),) * len(b.placements))
    return (
        f"a {a.shape} has the placements {shown(a.placements)} and b {b.shape} {shown(b.placements)} (of a layer: its "
        "input, and its weight transposed), for which local products do not suffice; "
        f"call {name}.redistribute(placements={shown(mend)}) first"
    )
