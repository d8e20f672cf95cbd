"""One table of structures, and what the tests of their products share."""

import pytest

from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.kronecker import KroneckerSparse, Pattern, monarch, square_dyadic

STRUCTURES = {
    "d above a": KroneckerSparse.of(Pattern(2, 3, 5, 3)),
    "a above d": KroneckerSparse.of(Pattern(5, 4, 2, 3)),
    "d of 1": KroneckerSparse.of(Pattern(3, 5, 2, 1)),
    "pair": KroneckerSparse.of(monarch(24, 36, 3)),
    "butterfly": KroneckerSparse.of(square_dyadic(16)),
    "not chainable": KroneckerSparse.of((Pattern(1, 8, 8, 3), Pattern(6, 4, 16, 1))),
    "low-rank": LowRank(24, 36, 5),
    "low-rank 1x1": LowRank(1, 1, 1),
    "monarch": Monarch(24, 36, 3, 4, 5),
    "monarch interleaved": Monarch(24, 36, 3, 4, 5, interleaved=True),
    "monarch b1=1": Monarch(35, 33, 1, 7, 3),
    "blast": Blast(24, 36, 3, 4, 7),
    "blast 1x1": Blast(10, 9, 1, 1, 9),
}
"""Structures whose sides no tile divides, by name; few values of d, for each of which kernels are compiled."""


@pytest.fixture(params=STRUCTURES.values(), ids=STRUCTURES)
def structure(request):
    """Every structure of the table."""
    return request.param


@pytest.fixture(params=[name for name in STRUCTURES if name.startswith(("low", "monarch", "blast"))])
def block_structure(request):
    """Every low-rank, Monarch and BLAST structure of the table."""
    return STRUCTURES[request.param]


@pytest.fixture
def recorder():
    """recorder(): a context with `seen`, the names of the operators of torch that run within it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Recorder(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

        @property
        def copies(self):
            return [name for name in self.seen if "copy" in name or "clone" in name or "contiguous" in name]

    return Recorder
