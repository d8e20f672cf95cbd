"""Linear layers whose weight is a low-rank, Monarch or BLAST matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import PlanError
from ..block_low_rank.layouts import SCALES, from_layout, to_layout
from ..block_low_rank.matrix import BlockLowRankMatrix
from ..block_low_rank.structure import Blast, BlockLowRank, LowRank, Monarch
from ..block_low_rank.transposition import output_order
from ..request import check_intermediate
from .bilinear import is_sharded
from .block_low_rank import block_low_rank_mm, structure_of
from .ops import bilinear_mm
from .recipe import AUTO


class BlockLowRankLinear(nn.Module):
    """`torch.nn.Linear` with a block low-rank weight; subclasses choose the structure.

    Parameters are the factors in the canonical layout, named by `names`, and `bias` (out_features,). Factors are drawn
    so that outputs have a third of the variance of inputs, as with nn.Linear; the bias from U(+-1/sqrt(in_features)).
    `intermediate` "fp8" or "int8" rounds the results between the steps; the layer then runs without gradients only. It
    may be set later.
    """

    names: ClassVar[tuple[str, ...]] = ("U", "V")
    bias: nn.Parameter | None

    def __init__(
        self,
        structure: BlockLowRank,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        strategy: Any = None,
        intermediate: str | None = None,
    ) -> None:
        super().__init__()
        if intermediate is not None:
            check_intermediate(intermediate)
        self.structure, self.strategy, self.intermediate = structure, strategy, intermediate
        self.in_features, self.out_features = structure.cols, structure.rows
        for name, shape in zip(self.names, structure.factor_shapes, strict=True):
            self.register_parameter(name, nn.Parameter(torch.empty(shape, device=device, dtype=dtype)))
        empty = torch.empty(self.out_features, device=device, dtype=dtype)
        self.register_parameter("bias", nn.Parameter(empty) if bias else None)
        self.reset_parameters()

    @property
    def factors(self) -> list[Tensor]:
        """The factors, left-most first."""
        return [getattr(self, name) for name in self.names]

    def reset_parameters(self) -> None:
        """Draw new factors and a new bias."""
        terms = [np.prod(shape[self.structure._term_axes(shape) :]) for shape in self.structure.factor_shapes]
        for place, (weights, count) in enumerate(zip(self.factors, terms, strict=True)):
            bound = float((1.0 if place == 0 else 3.0) / count) ** 0.5
            nn.init.uniform_(weights, -bound, bound)
        if self.bias is not None:
            bound = self.in_features**-0.5
            nn.init.uniform_(self.bias, -bound, bound)

    @classmethod
    def from_matrix(cls, matrix: BlockLowRankMatrix, bias: Tensor | None = None) -> BlockLowRankLinear:
        """Return the layer of a stored matrix, of the class of its structure; factors are copied.

        Raises:
            PlanError: the matrix is bfloat16, which numpy does not support, or the bias has another size.
        """
        if matrix.dtype == "bfloat16":
            raise PlanError("a bfloat16 matrix is not read here; store it as float32, and convert the layer with .to")
        layer = layer_of(matrix.structure, bias is not None, dtype=getattr(torch, matrix.dtype))
        layer._take(matrix, bias)
        return layer

    def matrix(self) -> BlockLowRankMatrix:
        """Return the factors as a matrix of numpy arrays, for storage or analysis."""
        return BlockLowRankMatrix.of(self.structure, [w.detach().cpu().numpy() for w in self.factors])

    def load_layout(
        self, v: Tensor, u: Tensor, s: Tensor | None = None, scales: str = SCALES[0], bias: Tensor | None = None
    ) -> Self:
        """Load factors in the papers' layouts, see `lcma.block_low_rank.from_layout`.

        Raises:
            PlanError: shapes do not match the layer's structure.
        """
        given = [None if w is None else w.detach().cpu().numpy() for w in (v, u, s)]
        assert given[0] is not None
        assert given[1] is not None
        self._take(from_layout(self.structure, given[0], given[1], given[2], scales), bias)
        return self

    def in_layout(self, scales: str = SCALES[0]) -> dict[str, Tensor]:
        """Return the factors "V", "U" and, for BLAST, "S" in the papers' layouts."""
        return {name: torch.from_numpy(np.array(w)) for name, w in to_layout(self.matrix(), scales).items()}

    def dense(self) -> Tensor:
        """Return the weight (out_features, in_features), as the product with the identity."""
        identity = torch.eye(self.in_features, dtype=self.factors[0].dtype, device=self.factors[0].device)
        return block_low_rank_mm(identity, self.factors, self.structure, self.strategy).T

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., in_features) to (..., out_features).

        Raises:
            PlanError: x has another number of features, another dtype, or placements without a sharding rule; or
                `intermediate` is set, and gradients are recorded or x is a DTensor.
        """
        if x.dim() < 1 or x.shape[-1] != self.in_features:
            raise PlanError(f"inputs have shape (..., {self.in_features}), not {tuple(x.shape)}")
        if is_sharded(x):
            if self.intermediate is not None:
                raise PlanError("intermediate is for tensors on one device, not for a DTensor; leave it out")
            kind, sizes = self.structure.kind, list(self.structure.sizes)
            return _sharded_linear(x, self.factors, self.bias, kind, sizes, self.strategy)
        rows = x.reshape(-1, self.in_features)
        y = block_low_rank_mm(rows, self.factors, self.structure, self.strategy, self.intermediate)
        y = y if self.bias is None else y + self.bias.to(y.dtype)
        return y.reshape(*x.shape[:-1], self.out_features)

    def _take(self, matrix: BlockLowRankMatrix, bias: Tensor | None) -> None:
        with torch.no_grad():
            for parameter, weights in zip(self.factors, matrix.factors, strict=True):
                parameter.copy_(torch.from_numpy(np.array(weights)))
            if bias is not None:
                if self.bias is None or bias.numel() != self.out_features:
                    raise PlanError(f"a bias of {bias.numel()} entries is not one of {self.out_features} outputs")
                self.bias.copy_(bias.reshape(-1))

    def extra_repr(self) -> str:
        narrow = "" if self.intermediate is None else f", intermediate={self.intermediate!r}"
        return f"{self.structure.name}, bias={self.bias is not None}{narrow}"


class LowRankLinear(BlockLowRankLinear):
    """A linear layer with W = U V: parameters U (out, rank) and V (rank, in).

    Raises:
        PlanError: the rank exceeds a side.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        rank: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        intermediate: str | None = None,
    ) -> None:
        super().__init__(LowRank(out_features, in_features, rank), bias, device, dtype, intermediate=intermediate)


class MonarchLinear(BlockLowRankLinear):
    """A linear layer with blocks of rank `rank`: parameters U (b2, q, b1, rank) and V (b1, rank, b2, p).

    `blocks` is b1 = b2, or (b1, b2). Outputs are (b2, q), without a permutation; with `interleaved` (q, b2), as
    in the papers' code.

    Raises:
        PlanError: blocks do not divide a side, or the rank exceeds that of a block.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        blocks: int | tuple[int, int],
        rank: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        interleaved: bool = False,
        intermediate: str | None = None,
    ) -> None:
        b1, b2 = (blocks, blocks) if isinstance(blocks, int) else blocks
        structure = Monarch(out_features, in_features, b1, b2, rank, interleaved)
        super().__init__(structure, bias, device, dtype, intermediate=intermediate)


class BlastLinear(BlockLowRankLinear):
    """A linear layer with blocks U[k] diag(S[:, k, l]) V[l].

    Parameters are U (b2, q, rank), S (rank, b2, b1) and V (b1, rank, p). `blocks` is b1 = b2, or (b1, b2).

    Raises:
        PlanError: blocks do not divide a side, or the rank exceeds a side.
    """

    names = ("U", "S", "V")

    def __init__(
        self,
        in_features: int,
        out_features: int,
        blocks: int | tuple[int, int],
        rank: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        intermediate: str | None = None,
    ) -> None:
        b1, b2 = (blocks, blocks) if isinstance(blocks, int) else blocks
        structure = Blast(out_features, in_features, b1, b2, rank)
        super().__init__(structure, bias, device, dtype, intermediate=intermediate)


def layer_of(
    structure: BlockLowRank,
    bias: bool = True,
    device: Any = None,
    dtype: Any = None,
    intermediate: str | None = None,
) -> BlockLowRankLinear:
    """Return the layer of a structure."""
    i, o, options = structure.cols, structure.rows, (bias, device, dtype)
    narrow: dict[str, Any] = {"intermediate": intermediate}
    if isinstance(structure, LowRank):
        return LowRankLinear(i, o, structure.rank, *options, **narrow)
    assert isinstance(structure, Monarch | Blast)
    blocks = structure.b1, structure.b2
    if isinstance(structure, Blast):
        return BlastLinear(i, o, blocks, structure.rank, *options, **narrow)
    return MonarchLinear(i, o, blocks, structure.rank, *options, interleaved=structure.interleaved, **narrow)


@torch.compiler.allow_in_graph  # dynamo would try gradients with the placements of the result, which may be partial
def _sharded_linear(
    x: Tensor, factors: list[Tensor], bias: Tensor | None, kind: str, sizes: list[int], strategy: str | None
) -> Tensor:
    """Map a DTensor x (..., inputs) to (..., outputs) by the local parts of x and the factors.

    Raises:
        PlanError: the placements have no rule.
    """
    from .sharding import sharded_layer  # torch.distributed.tensor is slow to import

    structure = structure_of(kind, sizes)

    def run(part: Tensor, *weights: Tensor) -> Tensor:
        y = block_low_rank_mm(part.reshape(-1, structure.cols), weights, structure, strategy)
        return y.reshape(*part.shape[:-1], structure.rows)

    def low_rank(part: Tensor, u: Tensor, v: Tensor) -> Tensor:  # of parts the rank may exceed a side
        rows = part.unsqueeze(0) if part.dim() == 1 else part
        y = bilinear_mm(bilinear_mm(rows, v.t(), AUTO), u.t(), AUTO)
        return y.squeeze(0) if part.dim() == 1 else y

    by_factors = low_rank if isinstance(structure, LowRank) else None
    return sharded_layer(run, by_factors, x, factors, bias, structure.rows)


def fold_into(layers: Sequence[MonarchLinear], following: nn.Linear, norm: nn.Module | None = None) -> None:
    """Move the interleaving of Monarch outputs into the next static weight: outputs become (b2, q), in place.

    Only for layers whose outputs are read only by elementwise operations, a norm and `following`: not before a
    residual, a split into heads or a rotary embedding. Layers whose outputs are combined elementwise, as gate
    and up, are passed together; the weight and bias of a `norm` in between are permuted too.

    Raises:
        PlanError: a layer is not interleaved, blocks differ, or sizes do not fit.
    """
    structures = [layer.structure for layer in layers]
    if not structures or not all(isinstance(one, Monarch) and one.interleaved for one in structures):
        raise PlanError("only interleaved Monarch layers have a permutation to move")
    first = structures[0]
    assert isinstance(first, Monarch)
    if any((one.rows, one.b2) != (first.rows, first.b2) for one in structures):  # type: ignore[attr-defined]
        raise PlanError("layers that are combined elementwise must have the same outputs and b2")
    if following.in_features != first.rows:
        raise PlanError(f"the next layer takes {following.in_features} features, not {first.rows}")
    order = torch.as_tensor(output_order(first), device=following.weight.device)
    given = [] if norm is None else [getattr(norm, name, None) for name in ("weight", "bias")]
    vectors = [vector for vector in given if vector is not None]
    if any(tuple(vector.shape) != (first.rows,) for vector in vectors):
        raise PlanError("the norm between has other features than the layers")
    with torch.no_grad():
        following.weight.copy_(following.weight[:, order])
        for vector in [*vectors, *(layer.bias for layer in layers if layer.bias is not None)]:
            vector.copy_(vector[order.to(vector.device)])
    for layer, one in zip(layers, structures, strict=True):
        layer.structure = Monarch(*one.sizes[:5])
