"""The types of matrices, and torch, imported when a module first uses it.

Plans for a GPU are made without torch, and its import takes a second.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError

Matrix = npt.NDArray[Any]

Tensor = Any
"""A `torch.Tensor`."""

Array = Any
"""A numpy array, an object convertible to one, or a torch tensor."""

Sizes = tuple[int, int, int]
"""m, k and n of a product."""


def read_only(matrix: Matrix) -> Matrix:
    """Return a read-only view: numba compiles a kernel once for arrays that may be written and once for others."""
    view = matrix.view()
    view.setflags(write=False)
    return view


class Memory:
    """Memory that numpy takes for an array by its array interface, and the object that owns it."""

    def __init__(self, owner: object, **interface: Any) -> None:
        self.owner, self.__array_interface__ = owner, interface


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


def module_of(matrix: Array) -> Any:
    """Return numpy or torch, for functions that both have: the one that an array or tensor is of."""
    if isinstance(matrix, np.ndarray):
        return np
    import torch

    return torch


def zeros(shape: Sequence[int], like: Array) -> Array:
    """Return zeros of the same kind and dtype."""
    return np.zeros(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_zeros(shape)


def is_tensor(value: object) -> bool:
    """Return whether this is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def all_tensors(*values: object) -> bool:
    """Return whether all operands are torch tensors.

    Raises:
        PlanError: only some of them are.
    """
    kinds = {is_tensor(value) for value in values}
    if len(kinds) > 1:
        raise PlanError("torch tensors and other arrays do not mix; convert one kind with torch.from_numpy or .numpy()")
    return kinds == {True}
