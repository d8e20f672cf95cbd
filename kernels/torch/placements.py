"""Sharding rules of products of DTensors: the placements for which local products need no communication."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from torch.distributed.tensor import Partial, Placement, Replicate, Shard

from ...errors import PlanError

Placements = tuple[Placement, ...]
"""One placement for every dimension of a device mesh."""

Labels = Sequence[str | int | None]
"""A label for every dimension of an operand or result, as in Einstein's notation; None: it can't be sharded."""


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
    rank = max(a.dim, b.dim)

    def batch(x: ShardedOperand, other: ShardedOperand) -> list[int | None]:
        """Label leading dimensions by their positions; None where x has one matrix for several of the other operand."""
        return [one if x.varies_along(one) or not other.varies_along(one) else None for one in range(-x.dim, -2)]

    labels = (*batch(a, b), *"mk"[-a.dim :]), (*batch(b, a), *"kn"[-b.dim :])
    return _rule((a, b), labels, (*range(-rank, -2), "m", "n"), partial(_refusal, a, b))


def layer_rule(x: ShardedOperand, axis: int, factors: Sequence[ShardedOperand], low_rank: bool = False) -> ShardingRule:
    """Return the rule for an input with features along `axis` and the factors of a structured weight, on one mesh.

    Replicated factors allow an input that is replicated, partial or sharded along another dimension. A low-rank
    weight U V, with U (outputs, rank) and V (rank, inputs), also allows on every mesh dimension: U sharded along the
    outputs; V along the inputs, as x is; or both along the rank.

    Raises:
        PlanError: the placements have no such rule.
    """
    of_x = [("inputs" if low_rank else None) if dim == axis else dim for dim in range(x.dim)]
    of_factors = (("outputs", "rank"), ("rank", "inputs")) if low_rank else ((None,) * one.dim for one in factors)
    result = ["outputs" if dim == axis else dim for dim in range(x.dim)]
    return _rule((x, *factors), (of_x, *of_factors), result, partial(_layer_refusal, x, axis, factors, low_rank))


def _rule(
    operands: Sequence[ShardedOperand], labels: Sequence[Labels], result: Labels, refusal: Callable[[], str]
) -> ShardingRule:
    """Return the rule for a product of these operands, found for every mesh dimension by itself.

    Raises:
        PlanError: a mesh dimension has no rule, for the reason of `refusal`.
    """
    found = [_placed(given, labels, result) for given in zip(*(one.placements for one in operands), strict=True)]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        raise PlanError(refusal())
    placed, *grads = zip(*known, strict=True)
    return ShardingRule(placed, tuple(grads))


def _placed(given: Placements, labels: Sequence[Labels], result: Labels) -> Placements | None:
    """Return the placements of the result and of all gradients along one mesh dimension; None if there is no rule.

    There is one if all operands are replicated, or all but a pending sum; or if those that have a label are sharded
    along it and the others are replicated: then the result is sharded too or, without the label, a pending sum.
    """
    along = {of[one.dim] for one, of in zip(given, labels, strict=True) if type(one) is Shard}
    if not along:
        sums = [is_sum(one) for one in given]
        if sum(sums) > 1 or not all(is_sum(one) or one.is_replicate() for one in given):
            return None
        of_others = Partial() if any(sums) else Replicate()
        return of_others, *(Replicate() if one else of_others for one in sums)
    label = along.pop()
    parts = zip(given, labels, strict=True)
    whole = (type(one) is Shard and of[one.dim] == label if label in of else one.is_replicate() for one, of in parts)
    if label is None or along or not all(whole):
        return None
    place = Shard(result.index(label)) if label in result else Partial()
    return place, *(one if label in of else Partial() for one, of in zip(given, labels, strict=True))


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
