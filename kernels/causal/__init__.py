"""Triangular and masked products, and exact causal attention on them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..planning.tuning import tune as tune
    from ..torch.attention import causal_attention as causal_attention
    from .choose import planned as planned
    from .masked import masked_matmul as masked_matmul
    from .products import causal_pv as causal_pv
    from .products import causal_qk as causal_qk
    from .products import syrk as syrk
    from .products import trmm as trmm

_MODULES = {
    "causal_attention": ".torch.attention",
    "causal_pv": "products",
    "causal_qk": "products",
    "masked_matmul": "masked",
    "planned": "choose",
    "syrk": "products",
    "trmm": "products",
    "tune": ".planning.tuning",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
