"""Every structure of one table, and what the tests of their products share."""

import pytest

from lcma.kernels.structured.block_low_rank import parse_structure

from ..cases import table

STRUCTURES = table(__file__, "structures")


@pytest.fixture(params=STRUCTURES)
def structure(request):
    """Every structure of the table."""
    return parse_structure(request.param)


@pytest.fixture(params=[text for text in STRUCTURES if not text.startswith("(")])
def block_structure(request):
    """Every low-rank, Monarch and BLAST structure of the table."""
    return parse_structure(request.param)


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
