"""Linear layers whose weight is a low-rank, Monarch or BLAST matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ...arguments import INTEGER, need
from ...errors import PlanError
from ..structured.block_low_rank import Blast, BlockLowRank, LowRank, Monarch
from ..structured.chain import FactorChain, KroneckerSparse
from ..structured.matrix import FactoredMatrix
from ..structured.published_layouts import SCALES, from_layout, to_layout
from .factored_layer import FactoredLinear
from .kronecker_layers import KSLinear
from .modules import is_conv1d
from .processor import stored_array, stored_tensor


class BlockLowRankLinear(FactoredLinear):
    """A linear layer with a block low-rank weight; subclasses choose the kind. Parameters are U, V and BLAST's S."""

    structure: BlockLowRank
    kind: ClassVar[type[Any]]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        blocks: int | tuple[int, ...],
        rank: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        **more: bool,
    ) -> None:
        need(INTEGER | tuple, blocks=blocks)
        both = blocks if isinstance(blocks, tuple) else (blocks, blocks)
        if len(both) != (0 if self.kind is LowRank else 2):
            raise PlanError(f"blocks must be one number, or (b1, b2), not {blocks}")
        need(INTEGER, in_features=in_features, out_features=out_features, rank=rank)
        super().__init__(self.kind(out_features, in_features, *both, rank, **more), bias, device, dtype)

    def weights(self) -> list[Tensor]:
        """See `FactoredLinear`."""
        own: dict[str, Any] = self._parameters  # in a tenth of the time of getattr, which finds parametrized ones
        return [own[name] if name in own else getattr(self, name) for name in self.structure.axes]

    factors = property(weights)

    @classmethod
    def from_matrix(cls, matrix: FactoredMatrix, bias: Tensor | None = None) -> BlockLowRankLinear:
        """Return the layer of a stored matrix, of the class of its structure; factors are copied.

        Raises:
            PlanError: the matrix is Kronecker-sparse, or the bias has another size.
        """
        if not isinstance(matrix.structure, BlockLowRank):
            raise PlanError(f"{matrix!r} is the matrix of a KSLinear; use KSLinear.from_matrix")
        layer: Any = layer_of(matrix.structure, bias is not None, dtype=getattr(torch, matrix.dtype))
        return layer.load_factors(matrix.factors, bias)

    def load_layout(
        self, v: Tensor, u: Tensor, s: Tensor | None = None, scales: str = SCALES[0], bias: Tensor | None = None
    ) -> Self:
        """Load factors in the papers' layouts, see `lcma.block_low_rank.from_layout`.

        Raises:
            PlanError: shapes do not match the layer's structure.
        """
        left, right = stored_array(u), stored_array(v)
        middle = None if s is None else stored_array(s)
        return self.load_factors(from_layout(self.structure, right, left, middle, scales).factors, bias)

    def in_layout(self, scales: str = SCALES[0]) -> dict[str, Tensor]:
        """Return the factors "V", "U" and, for BLAST, "S" in the papers' layouts."""
        return {name: stored_tensor(w) for name, w in to_layout(self.matrix(), scales).items()}

    def extra_repr(self) -> str:
        return f"{self.structure.name}, bias={self.bias is not None}"


class LowRankLinear(BlockLowRankLinear):
    """A linear layer with W = U V: parameters U (out, rank) and V (rank, in).

    Raises:
        PlanError: the rank exceeds a side.
    """

    kind = LowRank

    def __init__(
        self, in_features: int, out_features: int, rank: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(in_features, out_features, (), rank, bias, device, dtype)


class MonarchLinear(BlockLowRankLinear):
    """A linear layer with blocks of rank `rank`: parameters U (b2, q, b1, rank) and V (b1, rank, b2, p).

    `blocks` is b1 = b2, or (b1, b2). Outputs are (b2, q), without a permutation; with `interleaved` (q, b2), as
    in the papers' code.

    Raises:
        PlanError: blocks do not divide a side, or the rank exceeds that of a block.
    """

    kind = Monarch

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
    ) -> None:
        super().__init__(in_features, out_features, blocks, rank, bias, device, dtype, interleaved=interleaved)


class BlastLinear(BlockLowRankLinear):
    """A linear layer with blocks U[k] diag(S[:, k, l]) V[l].

    Parameters are U (b2, q, rank), S (rank, b2, b1) and V (b1, rank, p). `blocks` is b1 = b2, or (b1, b2).

    Raises:
        PlanError: blocks do not divide a side, or the rank exceeds a side.
    """

    kind = Blast


LAYERS: dict[type[FactorChain], type[FactoredLinear]] = {
    KroneckerSparse: KSLinear,
    **{one.kind: one for one in (LowRankLinear, MonarchLinear, BlastLinear)},
}
"""The layers by their structures."""


def layer_of(structure: FactorChain, bias: bool = True, device: Any = None, dtype: Any = None) -> FactoredLinear:
    """Return the layer of a structure."""
    return LAYERS[type(structure)].of_structure(structure, bias, device, dtype)


def fold_into(layers: Sequence[MonarchLinear], following: nn.Module, norm: nn.Module | None = None) -> None:
    """Move the interleaving of Monarch outputs into the next static weight: outputs become (b2, q), in place.

    Only for layers whose outputs are read only by elementwise operations, a norm and `following`: not before a
    residual, a split into heads or a rotary embedding. Layers whose outputs are combined elementwise, as gate
    and up, are passed together; the weight and bias of a `norm` in between are permuted too. `following` is a
    nn.Linear, Hugging Face's Conv1D or a LowRankLinear, whose inputs can be in any order.

    Raises:
        PlanError: a layer is not interleaved, or is given twice, blocks differ, or sizes do not fit; nothing was
            changed.
    """
    need(tuple | list, layers=layers)
    need(nn.Module, following=following)
    need(nn.Module | None, norm=norm)
    structures: list[Any] = [getattr(layer, "structure", None) for layer in layers]
    if not structures or not all(isinstance(one, Monarch) and one.interleaved for one in structures):
        raise PlanError("only interleaved Monarch layers have a permutation to move")
    if len({id(layer) for layer in layers}) < len(layers):
        raise PlanError("a layer is given twice; its permutation is moved once")
    first = structures[0]
    if any((one.rows, one.b2) != (first.rows, first.b2) for one in structures):
        raise PlanError("layers that are combined elementwise must have the same outputs and b2")
    weight = _input_weight(following)
    if weight.shape[1] != first.rows:
        raise PlanError(f"the next layer takes {weight.shape[1]} features, not {first.rows}")
    given = [] if norm is None else [getattr(norm, name, None) for name in ("weight", "bias")]
    vectors = [vector for vector in given if vector is not None]
    if any(tuple(vector.shape) != (first.rows,) for vector in vectors):
        raise PlanError("the norm between has other features than the layers")
    order = torch.as_tensor(first.block_order, device=weight.device)
    with torch.no_grad():
        weight.copy_(weight[:, order])
        for vector in [*vectors, *(layer.bias for layer in layers if layer.bias is not None)]:
            vector.copy_(vector[order.to(vector.device)])
    for layer, one in zip(layers, structures, strict=True):
        layer.unpack()
        layer.structure = Monarch(*one.sizes[:5])


def _input_weight(module: nn.Module) -> Tensor:
    """Return the factor of a layer that multiplies its inputs, as (..., inputs), a view, if any order will do."""
    if isinstance(module, LowRankLinear):
        return module.factors[1]
    weight = getattr(module, "weight", None)
    if isinstance(weight, Tensor) and (isinstance(module, nn.Linear) or is_conv1d(module)):
        return weight if isinstance(module, nn.Linear) else weight.T
    raise PlanError(
        f"the next layer is a {type(module).__name__}, whose inputs can't be in any order; a permutation is folded "
        "into nn.Linear, Conv1D and LowRankLinear"
    )
