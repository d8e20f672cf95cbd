"""torch, imported when a module first uses it: plans for a GPU are made without it, and its import takes a second."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

Tensor = Any
"""A `torch.Tensor`."""

if TYPE_CHECKING:
    import torch as torch
else:

    class _Torch:
        """The name `torch` in the modules of this package, until one of them uses it: then all of them have torch."""

        def __getattr__(self, name):
            torch = import_module("torch")
            for one, module in [*sys.modules.items()]:
                if one.startswith("lcma.") and vars(module).get("torch") is self:
                    module.torch = torch
            return getattr(torch, name)

    torch = _Torch()
