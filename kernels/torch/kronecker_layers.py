"""Linear layers whose weight is a product of Kronecker-sparse factors, and a feed-forward block of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...arguments import need
from ...errors import PlanError
from ..factored import BATCH_FIRST
from ..structured.approximation import factorize
from ..structured.chain import KroneckerSparse
from ..structured.layouts import from_layout, to_layout
from ..structured.matrix import FactoredMatrix
from ..structured.pattern import Pattern
from .factored_layer import FactoredLinear
from .processor import stored_array, stored_tensor

PatternLike = Pattern | tuple[int, int, int, int]


class KSLinear(FactoredLinear):
    """`torch.nn.Linear` with the weight W = K1 K2 ... KL of Kronecker-sparse factors, left-most first.

    `patterns` is one (a, b, c, d) or a list. Parameters are `factors`, each (a, d, b, c) for every strategy, and
    `bias` (rows,); factors are drawn from U(+-1/sqrt(c)), the bias from U(+-1/sqrt(cols)). Inputs of layout "bsf"
    are (..., cols), of "bsl" (cols, ...); so are results. Between factors the batch is last. `precision` is how float32
    is multiplied on a GPU, forward and backward: "ieee" (strict), "tf32", "fp32-accurate" (three products of tf32 or
    of float16 halves, about as accurate as float32; gradients of parameters stay strict), or None for torch's setting.

    Raises:
        PlanError: the patterns do not compose, or there is no such layout or precision.
    """

    structure: KroneckerSparse

    def __init__(
        self,
        patterns: PatternLike | Sequence[PatternLike],
        bias: bool = True,
        layout: str = BATCH_FIRST,
        device: Any = None,
        dtype: Any = None,
        *,
        strategy: str | None = None,
        precision: str | None = None,
    ) -> None:
        super().__init__(KroneckerSparse(_patterns(patterns)), bias, device, dtype, layout, strategy, precision)

    def _register(self, factors: list[Tensor]) -> None:
        self.factors = nn.ParameterList(factors)

    def weights(self) -> list[Tensor]:
        """See `FactoredLinear`."""
        found: list[Any] = [*self.factors._parameters.values()]  # in a tenth of the time that iterating the list takes
        return found if len(found) == len(self.structure.patterns) else list(self.factors)  # some are parametrized

    @classmethod
    def from_matrix(cls, matrix: FactoredMatrix, bias: Tensor | None = None, layout: str = BATCH_FIRST) -> KSLinear:
        """Return the layer of a stored matrix; its factors are copied.

        Raises:
            PlanError: the bias has another size, or the outputs of a Monarch matrix are not interleaved.
        """
        matrix = matrix.kronecker
        layer = cls.of_structure(matrix.structure, bias is not None, layout=layout, dtype=getattr(torch, matrix.dtype))
        return layer.load_factors(matrix.factors, bias)

    @classmethod
    def from_dense(
        cls,
        linear: nn.Linear,
        patterns: PatternLike | Sequence[PatternLike],
        layout: str = BATCH_FIRST,
        by: str = "hierarchical",
    ) -> KSLinear:
        """Return a layer that approximates a dense one, by `lcma.kronecker.factorize`; the bias is copied.

        Raises:
            PlanError: the list does not match the weight's size, or is not chainable and `by` is "hierarchical".
        """
        weight = linear.weight.detach().cpu()
        plain = weight.float() if weight.dtype in (torch.float16, torch.bfloat16) else weight
        found = factorize(plain.numpy(), _patterns(patterns), by).matrix
        return cls.from_matrix(found, linear.bias, layout).to(linear.weight.device, linear.weight.dtype)

    def load_layout(self, weights: Sequence[Tensor], layout: str, bias: Tensor | None = None) -> KSLinear:
        """Load parameters of other code: "bmm" (ad, b, c), "kernel" (adc, b), "abcd" or "dense", left-most first.

        The bias may be (rows,) or (rows, 1). Dense factors must be zero outside their patterns' supports:
        `from_dense` approximates other weights.

        Raises:
            PlanError: the number of arrays or their shapes do not match the layer's patterns, or a dense factor has
                nonzero entries outside the support; no factor is changed then.
        """
        patterns = self.structure.patterns
        if len(weights) != len(patterns):
            raise PlanError(f"the layer has {len(patterns)} factors, not {len(weights)}; list them left-most first")
        pairs = zip(weights, patterns, strict=True)
        found = [from_layout(stored_array(given), pattern, layout) for given, pattern in pairs]
        return self.load_factors(FactoredMatrix.of(self.structure, found).factors, bias)

    def in_layout(self, layout: str) -> list[Tensor]:
        """Return the factors in a layout of other code; see `load_layout`."""
        pairs = zip(self.factors, self.structure.patterns, strict=True)
        return [stored_tensor(to_layout(stored_array(w), pattern, layout)) for w, pattern in pairs]

    def extra_repr(self) -> str:
        names = "".join(map(str, self.structure.patterns))
        precision = f", precision={self.precision}" if self.precision else ""
        return f"{names}, bias={self.bias is not None}, layout={self.layout}{precision}"


def _patterns(given: PatternLike | Sequence[PatternLike]) -> tuple[Pattern, ...]:
    need(Pattern | tuple | list, patterns=given)
    if isinstance(given, Pattern):
        return (given,)
    listed: Sequence[Any] = given
    if listed and all(isinstance(size, int) for size in listed):
        listed = (listed,)
    for one in listed:
        if not isinstance(one, Pattern) and len(one) != 4:
            raise PlanError(f"a Kronecker-sparse pattern has four sizes (a, b, c, d), not {tuple(one)}")
    return tuple(one if isinstance(one, Pattern) else Pattern(*one) for one in listed)


class KSFeedForward(nn.Module):
    """x + down(gelu(up(norm(x)))) with Kronecker-sparse `up` and `down`; the norm and the residual are optional.

    `up` and `down` are patterns or lists of patterns, as for `KSLinear`. Inputs and results of layout "bsf" are
    (..., features), of "bsl" (features, ...). From the first factor of `up` to the last of `down` the batch is last
    in either layout: biases and the activation are applied so, and nothing is transposed in between. `precision` is
    that of `KSLinear`.

    Raises:
        PlanError: `down` does not fit the outputs of `up`, or a residual is requested and sizes differ.
    """

    def __init__(
        self,
        up: PatternLike | Sequence[PatternLike],
        down: PatternLike | Sequence[PatternLike],
        bias: bool = True,
        layout: str = BATCH_FIRST,
        device: Any = None,
        dtype: Any = None,
        *,
        norm: bool = True,
        residual: bool = True,
        approximate: str = "none",
        precision: str | None = None,
    ) -> None:
        need(bool, norm=norm, residual=residual)
        need(str, approximate=approximate)
        super().__init__()
        first, second = (
            KSLinear(patterns, bias, layout, device, dtype, precision=precision) for patterns in (up, down)
        )
        if first.out_features != second.in_features:
            raise PlanError(f"up gives {first.out_features} features and down takes {second.in_features}")
        if residual and first.in_features != second.out_features:
            sizes = f"{first.in_features} features become {second.out_features}"
            raise PlanError(f"a residual needs equal sizes, and {sizes}; pass residual=False")
        self.norm = nn.LayerNorm(first.in_features, device=device, dtype=dtype) if norm else None
        self.up, self.down = first, second
        self.layout, self.residual, self.approximate = layout, residual, approximate

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output in the layout of x.

        Raises:
            PlanError: x has another number of features, or another dtype.
        """
        columns = self.up.as_columns(x)
        hidden = columns if self.norm is None else self._normed(columns)
        hidden = functional.gelu(self.up.columns(hidden), approximate=self.approximate)
        first = self.layout == BATCH_FIRST
        result = self.down.columns(hidden, last=first)
        if self.residual:
            result = result + columns
        return self.down.from_columns(result, x)

    def _normed(self, columns: Tensor) -> Tensor:
        """Apply the layer norm to the columns of (features, n), in their layout."""
        norm = self.norm
        assert norm is not None
        if self.layout == BATCH_FIRST:
            normed: Tensor = norm(columns.T)
            return normed.T
        wide = columns.float() if columns.dtype in (torch.float16, torch.bfloat16) else columns
        variance, mean = torch.var_mean(wide, 0, correction=0, keepdim=True)
        normed = ((wide - mean) * torch.rsqrt(variance + norm.eps)).to(columns.dtype)
        return normed * norm.weight[:, None] + norm.bias[:, None]
