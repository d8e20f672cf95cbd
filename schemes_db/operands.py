"""Operands as arrays: what users pass as a matrix, converted or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..arguments import shown
from ..errors import PlanError
from .masks import refuse_masks


def array_of(name: str, value: object) -> npt.NDArray[Any]:
    """The value as an array of numbers, in the byte order of this machine.

    Raises:
        PlanError: it has a mask, or is no array of numbers.
    """
    refuse_masks(**{name: value})
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise PlanError(f"{name} is no array: {str(error).splitlines()[0]}") from None
    if array.dtype.kind in "SUMm" or (array.dtype.kind == "O" and not array.ndim):
        raise PlanError(f"{name} must be an array of numbers, not {shown(value)}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
