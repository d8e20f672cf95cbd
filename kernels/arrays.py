"""The types of matrices, and torch, imported when a module first uses it.

Plans for a GPU are made without torch, and its import takes a second.
"""

from __future__ import annotations

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
        """Stands for the module `torch`, whose namespace it shares from its first use on."""

        def __getattr__(self, name):
            torch = import_module("torch")
            self.__dict__ = torch.__dict__
            return getattr(torch, name)

    torch = _Torch()
