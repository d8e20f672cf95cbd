"""torch modules whose products use schemes."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...arguments import INTEGER, need
from ...errors import PlanError
from ...schemes_db.scheme import Scheme
from ..cuda.dtypes import check_dense_precision
from . import dispatch
from .modules import is_conv1d, is_plain, is_sharded
from .ops import bilinear_mm, is_small, is_the_vendors, recipe_of
from .packed_weight import PackedModule, PackedWeight, unwatch, watch
from .recipe import AUTO, ProductRecipe

SchemeLike = str | Scheme | Sequence[str | Scheme]


class FastModule(PackedModule):
    """A linear layer whose product uses a scheme, for any storage of its weight; base of the classes below."""

    lcma_fast = True
    """Marks these layers for the walk over a model."""

    transposed: bool
    """True if the weight is stored as (out_features, in_features)."""

    bias: Any
    source: type[nn.Module] = nn.Linear
    recipe: str

    def _set_recipe(self, scheme: SchemeLike, levels: int | None, precision: str | None = None) -> None:
        check_dense_precision(precision)
        recipe = recipe_of(scheme, levels)
        ProductRecipe.parse(recipe).require_general("a layer multiplies")
        self.recipe = recipe + (f";precision={precision}" if precision else "")
        self._packed = None

    @classmethod
    def convert_(cls, module: nn.Module) -> Self:
        """Change the class of a linear layer in place: parameters, hooks and references to it stay as they are.

        Raises:
            PlanError: it is an instance of another class, whose forward may not be the same product.
        """
        if not is_plain(module) or cls.transposed is is_conv1d(module):
            raise PlanError(f"a {type(module).__name__} cannot be converted in place to a {cls.__name__}")
        layer: Any = module
        if not isinstance(module, cls.source):
            layer.source = type(module)
        layer.__class__ = cls
        layer._set_recipe(AUTO, None)
        return layer

    def revert_(self) -> nn.Module:
        """Change the class of this layer back in place; undoes `convert_`."""
        unwatch(self)
        layer: Any = self
        source = layer.source
        for name in ("recipe", "_packed", "source"):
            vars(layer).pop(name, None)
        layer.__class__ = source
        return layer

    @property
    def right(self) -> Tensor:
        """The right operand (in_features, out_features) of the product: a view of the weight."""
        return self.weight.t() if self.transposed else self.weight

    def _by_vendor(self, x: Tensor) -> Tensor:
        """Compute the layer by torch's own kernel, which also adds the bias."""
        raise NotImplementedError

    def pack(self, rows: int) -> bool:
        """Compute the sums of the weight's blocks once, for products of about so many rows; False if none gain.

        They are used until the weight changes, and need up to three times its memory. A step of an
        optimizer, `load_state_dict` and every access to `weight.data` drop them; writes through an earlier alias
        by `.data`, or to the weight under a compiled graph, are not detected: pack after them. Weights that
        are sharded (DTensor) are not packed, and packed sums are not used once a module is sharded.

        Raises:
            PlanError: the weight is not on a GPU, is sharded, or nothing can run the layer's scheme.
        """
        if reason := unpackable(self.weight):
            raise PlanError(reason)
        made = dispatch.pack(ProductRecipe.parse(self.recipe), self.right.detach(), rows)
        if made is None:
            self._packed = None
            return False
        watch(self)
        self._packed = (made[1], str(made[0]), weakref.ref(self.weight), self._state())
        return True

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., in_features) to (..., out_features); a DTensor by the local parts of x and the weight.

        Raises:
            PlanError: x and the weight are DTensors of placements whose product needs communication.
        """
        if is_sharded(x):
            from .sharding import dense_linear

            return dense_linear(x, self.weight, self.bias, self.recipe, self.transposed)
        if self._packed is None and self.recipe == AUTO and is_small(x, self.weight, self.transposed):
            return self._by_vendor(x)
        right = self.right
        rows = x.unsqueeze(0) if x.dim() == 1 else x
        recipe, packed = self._current()
        if packed is None and recipe == AUTO and not torch.compiler.is_compiling() and is_the_vendors(rows, right):
            return self._by_vendor(x)
        product = bilinear_mm(rows, right, recipe, packed)
        result = product.squeeze(0) if x.dim() == 1 else product
        return result if self.bias is None else result + self.bias.to(result.dtype)

    def explain(self, rows: int) -> str:
        """Describe what runs for so many rows on the weight's GPU (its local part), and its predicted time.

        Raises:
            PlanError: the weight is not on a GPU, or nothing can run the layer's scheme.
        """
        if not self.weight.is_cuda:
            return f"{self}: on {self.weight.device} as lcma.matmul"
        recipe, packed = self._current()
        right = self.right.detach()
        if is_sharded(right):
            right = cast(Any, right).to_local()
        plan = dispatch.plan_for_rows(ProductRecipe.parse(recipe), right, rows, static=packed is not None)
        time = "" if plan.seconds is None else f", predicted {1e3 * plan.seconds:.3g} ms"
        return f"{plan.request}: {plan.candidate}{time}"

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, recipe={self.recipe}"

    def _state(self) -> tuple[Any, ...]:
        """Return the identity of the weight's content, to detect changes after packing."""
        weight = self.weight
        return weight.data_ptr(), weight._version, weight.dtype, weight.device

    def _current(self) -> tuple[str, Tensor | None]:
        """Return the recipe to run, and B~ if it was computed from the current weight."""
        if self._packed is None:
            return self.recipe, None
        stack, recipe, of, state = self._packed
        if torch.compiler.is_compiling():  # the weight's state cannot be read in a graph
            return (self.recipe, None) if self.training else (recipe, stack)
        # another parameter in its place, as under FSDP, may reuse the memory and the version
        kept = of() is self.weight and state == self._state()
        return (recipe, stack) if kept else (self.recipe, None)


def unpackable(weight: Tensor) -> str | None:
    """Return the reason why the sums of a weight cannot be precomputed, or None."""
    if type(weight) not in (Tensor, nn.Parameter, PackedWeight):
        return f"the weight is a {type(weight).__name__}, a part of a sharded one; its sums are not packed"
    return None if weight.is_cuda else f"the weight is on {weight.device}; move the layer to a GPU before packing"


class FastLinear(FastModule, nn.Linear):
    """`torch.nn.Linear` whose product uses a scheme: same signature, parameters and state_dict.

    `scheme` and `levels` are as in `lcma.matmul`; with "auto" every shape uses the plan predicted
    to be fastest, which for small ones is torch's own linear. Any leading dimensions. `precision` is as in
    `lcma.matmul`; with "fp8" the layer is for inference, and `pack` quantises the weight once.

    Raises:
        PlanError: there is no such precision, or the levels are invalid.
    """

    transposed = True

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        scheme: SchemeLike = AUTO,
        levels: int | None = None,
        precision: str | None = None,
    ) -> None:
        need(INTEGER, least=0, in_features=in_features, out_features=out_features)
        need(bool, bias=bias)
        need(INTEGER | None, least=0, levels=levels)
        need(str | None, precision=precision)
        super().__init__(in_features, out_features, bias, device, dtype)
        self._set_recipe(scheme, levels, precision)

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, scheme: SchemeLike = AUTO, levels: int | None = None, precision: str | None = None
    ) -> FastLinear:
        """Return a layer with the parameters of another: shared, not copied."""
        options: dict[str, Any] = {"scheme": scheme, "levels": levels, "precision": precision}
        layer = cls(linear.in_features, linear.out_features, linear.bias is not None, "meta", **options)
        layer.weight, layer.bias = linear.weight, linear.bias
        return layer.train(linear.training)

    def _by_vendor(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


class FastConv1D(FastModule):
    """transformers' `Conv1D`, a linear layer with the weight (in_features, out_features), whose product uses a scheme.

    Built by `convert_` only.
    """

    transposed = False

    @property
    def in_features(self) -> int:
        """The number of inputs."""
        return int(self.weight.shape[0])

    @property
    def out_features(self) -> int:
        """The number of outputs."""
        return int(self.weight.shape[1])

    def _by_vendor(self, x: Tensor) -> Tensor:
        assert self.bias is not None
        flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return flat.view(*x.shape[:-1], self.out_features)
