"""Masked arrays as operands: refused, because numpy drops a mask without a word where it converts an array."""

from __future__ import annotations

import numpy as np

from ..errors import PlanError


def mask_reason(name: str, value: object) -> str | None:
    """Return the reason why an operand is refused: it is a masked array or tensor, or a list of such; or None."""
    if type(value) is np.ndarray:
        return None
    if isinstance(value, np.ma.MaskedArray):
        mend = f"{name}.filled(0)"
    elif type(value).__name__ == "MaskedTensor":  # by name: torch is not imported here
        mend = f"{name}.to_tensor(0)"
    elif isinstance(value, list | tuple) and any(mask_reason(name, item) for item in value):
        mend = f"np.ma.stack({name}).filled(0)"
    else:
        return None
    return f"{name} has a mask, which would be lost; fill it first: {mend}"


def refuse_masks(**operands: object) -> None:
    """Check that no operand has a mask.

    Raises:
        PlanError: one has; the message names the call that fills it.
    """
    for name, value in operands.items():
        if reason := mask_reason(name, value):
            raise PlanError(reason)
