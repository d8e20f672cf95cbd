"""torch modules whose products run by schemes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...errors import PlanError
from ...schemes_db.scheme import Scheme
from ..cuda.dtypes import name_of
from ..cuda.executor import request_of
from ..cuda.machine import index_of
from . import dispatch
from .ops import bilinear_mm, is_the_vendors, recipe_of
from .recipe import AUTO, Recipe


class FastLinear(nn.Linear):
    """`torch.nn.Linear` whose product runs by a scheme: same signature, parameters and state_dict.

    `scheme` and `levels` are as in `lcma.matmul`; with "auto" every shape takes what is predicted
    to be fastest, which for small ones is torch's own linear. Any leading dimensions.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        scheme: str | Scheme | Sequence[str | Scheme] = AUTO,
        levels: int | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self.recipe = recipe_of(scheme, levels)
        self._packed: tuple[str, Tensor, tuple[Any, ...]] | None = None

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, scheme: str | Scheme | Sequence[str | Scheme] = AUTO, levels: int | None = None
    ) -> FastLinear:
        """A layer with the parameters of another: shared, not copied."""
        layer = cls(
            linear.in_features, linear.out_features, linear.bias is not None, "meta", scheme=scheme, levels=levels
        )
        layer.weight, layer.bias = linear.weight, linear.bias
        return layer.train(linear.training)

    def pack(self, rows: int) -> bool:
        """Make the sums of the weight's blocks once, for products of about so many rows; False where none gain.

        They are used as long as the weight stays as it is, and take up to three times its memory.
        Compiled graphs use them in evaluation mode: pack before compiling, and again after the
        weight has changed.

        Raises:
            PlanError: the weight is not on a GPU, or nothing can run the layer's scheme.
        """
        if not self.weight.is_cuda:
            raise PlanError(f"the weight is on {self.weight.device}; move the layer to a GPU before packing")
        made = dispatch.pack(Recipe.parse(self.recipe), self.weight.detach().t(), rows)
        self._packed = None if made is None else (str(made[0]), made[1], self._state())
        return made is not None

    def unpack(self) -> None:
        """Give the memory of the packed sums back."""
        self._packed = None

    def forward(self, x: Tensor) -> Tensor:
        """x (..., in_features) to (..., out_features)."""
        weight = self.weight.t()
        rows = x.unsqueeze(0) if x.dim() == 1 else x
        recipe, packed = self._current()
        if packed is None and recipe == AUTO and not torch.compiler.is_compiling() and is_the_vendors(rows, weight):
            return functional.linear(x, self.weight, self.bias)  # it adds the bias on the way
        product = bilinear_mm(rows, weight, recipe, packed)
        result = product.squeeze(0) if x.dim() == 1 else product
        return result if self.bias is None else result + self.bias.to(result.dtype)

    def explain(self, rows: int) -> str:
        """What runs for so many rows on the weight's GPU, and what it is predicted to take.

        Raises:
            PlanError: the weight is not on a GPU, or nothing can run the layer's scheme.
        """
        if not self.weight.is_cuda:
            return f"{self}: on {self.weight.device} as lcma.matmul"
        recipe, packed = self._current()
        weight = self.weight.detach().t()
        request = request_of(
            weight.new_empty((rows, self.in_features)),
            weight,
            name_of(weight),
            static="B" if packed is not None else None,
        )
        plan = dispatch.plan_of(Recipe.parse(recipe), request, index_of(weight.device))
        time = "" if plan.seconds is None else f", predicted {1e3 * plan.seconds:.3g} ms"
        return f"{request}: {plan.candidate}{time}"

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, recipe={self.recipe}"

    def _state(self) -> tuple[Any, ...]:
        """What the weight was when it was packed."""
        weight = self.weight
        return weight.data_ptr(), weight._version, weight.dtype, weight.device

    def _current(self) -> tuple[str, Tensor | None]:
        """The recipe to run, and B~ where there is one of the weight as it is."""
        if self._packed is None:
            return self.recipe, None
        recipe, stack, state = self._packed
        if torch.compiler.is_compiling():  # what the weight is cannot be asked in a graph
            return (self.recipe, None) if self.training else (recipe, stack)
        return (recipe, stack) if state == self._state() else (self.recipe, None)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.unpack()
        super()._load_from_state_dict(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packed": None}
