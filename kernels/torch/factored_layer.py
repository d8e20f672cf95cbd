"""The base of linear layers whose weight is a factored matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...arguments import need
from ...errors import PlanError
from ..cuda.dtypes import check_precision
from ..factored import BATCH_FIRST, BATCH_LAST, check_order
from ..structured.chain import FactorChain
from ..structured.matrix import FactoredMatrix
from .modules import is_sharded
from .packed_weight import PackedModule
from .processor import stored_array, stored_tensor
from .structured import dense_where_faster, multiply_factors


class FactoredLinear(PackedModule):
    """`torch.nn.Linear` with a weight W that is a chain of factors.

    Parameters are the factors, in the shapes of the structure, and `bias` (out_features,). Factors are drawn from a
    uniform distribution so that outputs have a third of the variance of inputs, as with nn.Linear; the bias from
    U(+-1/sqrt(in_features)). `pack` lets the layer use the dense weight where that is faster. Inputs of layout "bsf"
    are (..., in_features), of "bsl" (in_features, ...); so are results.

    Raises:
        PlanError: there is no such layout or precision.
    """

    structure: FactorChain
    bias: nn.Parameter | None

    def __init__(
        self,
        structure: FactorChain,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        layout: str = BATCH_FIRST,
        strategy: str | None = None,
        precision: str | None = None,
    ) -> None:
        need(bool, bias=bias)
        need(str, layout=layout)
        need(str | None, strategy=strategy, precision=precision)
        super().__init__()
        check_order(layout)
        check_precision(precision)
        self.structure, self.layout, self.strategy, self.precision = structure, layout, strategy, precision
        self.in_features, self.out_features = structure.cols, structure.rows
        self._register([torch.empty(shape, device=device, dtype=dtype) for shape in structure.factor_shapes])
        empty = torch.empty(self.out_features, device=device, dtype=dtype)
        self.register_parameter("bias", nn.Parameter(empty) if bias else None)
        self.reset_parameters()

    factors: Any

    def _register(self, factors: list[Tensor]) -> None:
        """Make the factors parameters, with the names `factor_names` of the structure."""
        for name, weights in zip(self.structure.factor_names, factors, strict=True):
            self.register_parameter(name, nn.Parameter(weights))

    def weights(self) -> list[Tensor]:
        """Return the factors, left-most first."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Draw new factors and a new bias."""
        for place, (weights, pattern) in enumerate(zip(self.weights(), self.structure.patterns, strict=True)):
            bound = ((self.structure.gain if place else 1.0) / pattern.c) ** 0.5
            nn.init.uniform_(weights, -bound, bound)
        if self.bias is not None:
            bound = self.in_features**-0.5
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., in_features) to (..., out_features); layout "bsl": (in_features, ...) to (out_features, ...).

        Raises:
            PlanError: x has another number of features, or another dtype, or placements without a sharding rule.
        """
        self._check_features(x)
        if is_sharded(x):
            from .sharding import factored_linear

            options = self.layout == BATCH_FIRST, self.strategy, self.precision
            return factored_linear(x, [*self.weights()], self.bias, self.structure.text, options)
        weight = None if self._packed is None else self._dense_weight(x)
        if self.layout == BATCH_LAST:
            columns = x.reshape(self.in_features, -1)
            y = self.columns(columns) if weight is None else self._biased(weight @ columns)
            return self.from_columns(y, x)
        if weight is not None:
            return functional.linear(x, weight, self.bias)
        rows = x if x.dim() == 2 else x.reshape(-1, self.in_features)
        y = multiply_factors(rows.T, self.weights(), self.structure, (True, self.strategy, self.precision)).T
        y = y if self.bias is None else y + self.bias.to(y.dtype)
        return y if x.dim() == 2 else y.reshape(*x.shape[:-1], self.out_features)

    def as_columns(self, x: Tensor) -> Tensor:
        """Return inputs in the layer's layout as the columns of a matrix (cols, n), without a copy if x is contiguous.

        Raises:
            PlanError: x has another number of features.
        """
        self._check_features(x)
        if self.layout == BATCH_FIRST:
            return x.T if x.dim() == 2 else x.reshape(-1, self.in_features).T
        return x.reshape(self.in_features, -1)

    def columns(self, x: Tensor, last: bool = False) -> Tensor:
        """Compute W x + bias (rows, n) for x (cols, n) of any strides: contiguous, or with `last` its transpose is."""
        y = multiply_factors(x, self.weights(), self.structure, (last, self.strategy, self.precision))
        return self._biased(y, last)

    def _biased(self, y: Tensor, last: bool = False) -> Tensor:
        """Return y (rows, n) plus the bias: contiguous, or with `last` the transpose is."""
        if self.bias is None:
            return y
        return (y.T + self.bias.to(y.dtype)).T if last else y + self.bias.to(y.dtype)[:, None]

    def from_columns(self, y: Tensor, x: Tensor) -> Tensor:
        """Return results (rows, n) in the layer's layout, with the leading or trailing sizes of its input x."""
        if self.layout == BATCH_FIRST:
            return y.T if x.dim() == 2 else y.T.reshape(*x.shape[:-1], self.out_features)
        return y.reshape(self.out_features, *x.shape[1:])

    def _check_features(self, x: Tensor) -> None:
        first, count = self.layout == BATCH_FIRST, self.in_features
        if x.dim() < 1 or x.shape[-1 if first else 0] != count:
            shape, wanted = tuple(x.shape), f"(..., {count})" if first else f"({count}, ...)"
            fits = shape and shape[0 if first else -1] == count
            other = BATCH_LAST if first else BATCH_FIRST
            mend = f'; transpose x, or make a KSLinear with layout="{other}"' if fits else ""
            raise PlanError(f"inputs of layout {self.layout} have shape {wanted}, not {shape}{mend}")

    @classmethod
    def of_structure(cls, structure: FactorChain, *arguments: Any, **more: Any) -> Self:
        """Return the layer of a structure of this class, by the other arguments of `FactoredLinear`."""
        layer = cls.__new__(cls)
        FactoredLinear.__init__(layer, structure, *arguments, **more)
        return layer

    def matrix(self) -> FactoredMatrix:
        """Return the factors as a matrix of numpy arrays, for storage or analysis."""
        return FactoredMatrix.of(self.structure, list(map(stored_array, self.weights())))

    def dense(self) -> Tensor:
        """Return the weight (out_features, in_features)."""
        return self.structure.dense(self.weights())

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

    def load_factors(self, factors: Sequence[Any], bias: Tensor | None = None) -> Self:
        """Copy factors of the structure, arrays or tensors, and a bias (out_features,) or (out_features, 1).

        A bias that the layer does not have, or of another size, is refused before anything is changed.
        """
        if bias is not None and (self.bias is None or bias.numel() != self.out_features):
            raise PlanError(f"a bias of {bias.numel()} entries is not one of this layer of {self.out_features} outputs")
        with torch.no_grad():
            for parameter, weights in zip(self.weights(), factors, strict=True):
                parameter.copy_(weights if isinstance(weights, Tensor) else stored_tensor(weights))
            if bias is not None and self.bias is not None:
                self.bias.copy_(bias.reshape(-1))
        return self
