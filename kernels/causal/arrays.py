"""What users pass as matrices: numpy arrays, what numpy makes arrays of, or torch tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy.typing as npt

from ...errors import PlanError

Matrix = npt.NDArray[Any]
Array = Any
"""A numpy array, what numpy makes one of, or a torch tensor."""


def is_tensor(value: object) -> bool:
    """Whether this is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def all_tensors(*values: object) -> bool:
    """Whether the operands are torch tensors.

    Raises:
        PlanError: some are and some are not.
    """
    kinds = {is_tensor(value) for value in values}
    if len(kinds) > 1:
        raise PlanError("torch tensors and other arrays do not mix; convert one kind with torch.from_numpy or .numpy()")
    return kinds == {True}
