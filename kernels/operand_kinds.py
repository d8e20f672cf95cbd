"""Types that users pass as matrices: numpy arrays, objects convertible to them, or torch tensors."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import PlanError

Array = Any
"""A numpy array, an object convertible to one, or a torch tensor."""


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
