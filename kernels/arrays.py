"""The types of matrices, and torch, imported when a module first uses it.

Plans for a GPU are made without torch, and its import takes a second.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

Matrix = npt.NDArray[Any]

Tensor = Any
"""A `torch.Tensor`."""

Sizes = tuple[int, int, int]
"""m, k and n of a product."""

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
