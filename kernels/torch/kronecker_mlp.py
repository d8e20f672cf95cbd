"""A feed-forward block of Kronecker-sparse layers with batch-last intermediate results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...arguments import need
from ...errors import PlanError
from ..factored import BATCH_FIRST
from .kronecker_layers import KSLinear, PatternLike


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
