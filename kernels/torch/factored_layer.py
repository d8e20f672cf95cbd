"""The base of linear layers whose weight is a factored matrix."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from ...errors import PlanError
from ..structured.chain import FactorChain
from ..structured.matrix import FactoredMatrix
from .bilinear import is_sharded
from .packed_weight import PackedModule
from .processor import stored_array, stored_tensor
from .structured import dense_where_faster


class FactoredLinear(PackedModule):
    """`torch.nn.Linear` with a weight W that is a chain of factors; subclasses store the factors and multiply by them.

    Parameters are the factors, in the shapes of the structure, and `bias` (out_features,). Factors are drawn from a
    uniform distribution so that outputs have a third of the variance of inputs, as with nn.Linear; the bias from
    U(+-1/sqrt(in_features)). `pack` lets the layer use the dense weight where that is faster.
    """

    structure: FactorChain
    strategy: str | None
    bias: nn.Parameter | None

    def _begin(self, structure: FactorChain, bias: bool, strategy: str | None, device: Any, dtype: Any) -> None:
        """Set the sizes and allocate the bias."""
        self.structure, self.strategy = structure, strategy
        self.in_features, self.out_features = structure.cols, structure.rows
        empty = torch.empty(self.out_features, device=device, dtype=dtype)
        self.register_parameter("bias", nn.Parameter(empty) if bias else None)

    factors: Any
    precision: str | None = None

    def weights(self) -> list[Tensor]:
        """Return the factors, left-most first."""
        found: list[Tensor] = self.factors
        return found

    def reset_parameters(self) -> None:
        """Draw new factors and a new bias."""
        for place, (weights, pattern) in enumerate(zip(self.weights(), self.structure.patterns, strict=True)):
            bound = ((self.structure.gain if place else 1.0) / pattern.c) ** 0.5
            nn.init.uniform_(weights, -bound, bound)
        if self.bias is not None:
            bound = self.in_features**-0.5
            nn.init.uniform_(self.bias, -bound, bound)

    def matrix(self) -> FactoredMatrix:
        """Return the factors as a matrix of numpy arrays, for storage or analysis."""
        return FactoredMatrix.of(self.structure, list(map(stored_array, self.weights())))

    def dense(self) -> Tensor:
        """Return the weight (out_features, in_features)."""
        found: Tensor = self.structure.dense(self.weights())
        return found

    def pack(self, rows: int, max_extra_bytes: int) -> bool:
        """Store the dense weight for calls without gradients, if the planner takes it for so many inputs.

        The planner takes the dense weight if it needs at most `max_extra_bytes` and has the shorter predicted or
        measured time. The factors remain the parameters. Calls that record gradients, `train()`, `to`,
        `load_state_dict` and changes of the factors free the dense weight. Changes of the factors in a compiled graph
        are not detected: call `pack` again after them. Returns whether the weight is stored.

        Raises:
            PlanError: the factors are sharded, the layer has a precision of its own, or nothing runs the product.
        """
        if self.precision is not None:
            raise PlanError("a dense weight is multiplied as torch is set; make the layer without precision=")
        self.unpack()
        if any(is_sharded(one) for one in self.weights()):
            raise PlanError("the factors are sharded (DTensor); a dense weight is stored on one device only")
        weight = dense_where_faster(self.weights(), self.structure, rows, max_extra_bytes, self.strategy)
        self._packed = None if weight is None else (weight, self._state())
        return weight is not None

    def _state(self) -> tuple[Any, ...]:
        """Return the identity of the factors' content, to detect changes after packing."""
        factors = self.weights()
        versions = (0 if one.is_inference() else one._version for one in factors)
        return tuple((id(one), one.data_ptr(), version) for one, version in zip(factors, versions, strict=True))

    def _dense_weight(self, x: Tensor) -> Tensor | None:
        """Return the stored weight if it is that of the factors, x fits it and no gradients are recorded."""
        if self._packed is None:
            return None
        weight, state = self._packed
        recorded = torch.is_grad_enabled() and any(one.requires_grad for one in (x, *self.weights()))
        if not torch.compiler.is_compiling() and (recorded or state != self._state()):
            self.unpack()
            return None
        fits = x.device == weight.device and (x.dtype == weight.dtype or torch.is_autocast_enabled(x.device.type))
        return weight if fits and not recorded else None

    def train(self, mode: bool = True) -> Self:
        """Set the training mode; True drops the dense weight."""
        if mode:
            self.unpack()
        return super().train(mode)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.unpack()
        return super()._apply(*args, **kwargs)

    def _take(self, matrix: FactoredMatrix, bias: Tensor | None) -> None:
        """Copy the factors of a matrix of the layer's structure, and a bias (out_features,) or (out_features, 1).

        A bias that the layer does not have, or of another size, is refused before anything is changed.
        """
        if bias is not None and (self.bias is None or bias.numel() != self.out_features):
            raise PlanError(f"a bias of {bias.numel()} entries is not one of this layer of {self.out_features} outputs")
        with torch.no_grad():
            for parameter, weights in zip(self.weights(), matrix.factors, strict=True):
                parameter.copy_(stored_tensor(weights))
            if bias is not None and self.bias is not None:
                self.bias.copy_(bias.reshape(-1))
