"""Parameters of a policy for the kernel, as arrays of numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....schemes_db.factor import IntArray
from ..policy import Policy

(STARTS, PLUS_AFTER, MARGIN, RESTART_AFTER, TRAP_RANK, RANK_WEIGHT, COST_WEIGHT) = range(7)
"""Indices of the parameters of the kernel."""

FAILS = 40
"""Number of consecutive draws of a factor without active slots after which a walker is assumed to have no flips."""

LONGEST = 1 << 30
"""The largest `restart_after` that the kernel supports."""


def numbers_of(policy: Policy, starts: int) -> IntArray:
    """Return (7,): the parameters in the order above; `starts` is the number of schemes that a restart draws from."""
    events = (policy.plus_after, policy.margin, min(policy.restart_after, LONGEST), policy.trap_rank)
    return np.array([starts, *events, policy.rank_weight, policy.cost_weight], dtype=np.int64)


def thresholds_of(policy: Policy) -> npt.NDArray[np.uint32]:
    """Return (16,): the acceptance probability times 65536 of flips that raise the cost by 0 to 15."""
    return np.array([min(65536 * policy.chance**rise, 65536) for rise in range(16)]).astype(np.uint32)
