"""What the kernel reads of a policy, as arrays of numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..policy import Policy

(STARTS, PLUS_AFTER, MARGIN, RESTART_AFTER, TRAP_RANK, RANK_WEIGHT, COST_WEIGHT) = range(7)
"""Places of the numbers that the kernel reads."""

FAILS = 40
"""So many draws of a factor without active slots in a row mean that a walker can't flip."""

LONGEST = 1 << 30
"""The largest `restart_after` that the kernel counts to."""


def numbers_of(policy: Policy, starts: int) -> npt.NDArray[np.int64]:
    """(7,): see the places above; `starts` is the number of schemes that a restart draws from."""
    return np.array(
        [
            starts,
            policy.plus_after,
            policy.margin,
            min(policy.restart_after, LONGEST),
            policy.trap_rank,
            policy.rank_weight,
            policy.cost_weight,
        ],
        dtype=np.int64,
    )


def thresholds_of(policy: Policy) -> npt.NDArray[np.uint32]:
    """(16,): of 65536 flips that raise the cost by so much, how many are accepted."""
    return np.array([min(65536 * policy.chance**rise, 65536) for rise in range(16)]).astype(np.uint32)
