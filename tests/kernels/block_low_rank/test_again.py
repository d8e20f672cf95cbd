"""Products that are repeated without checks are those of checked runs, and any other operands are checked again."""

import pytest

torch = pytest.importorskip("torch")

from lcma.kernels import plans  # noqa: E402
from lcma.kernels.factored import request_of  # noqa: E402
from lcma.kernels.families import machine_for, strategies  # noqa: E402
from lcma.kernels.planning.cache import plan_cache  # noqa: E402
from lcma.kernels.structured.block_low_rank import Blast, LowRank, Monarch  # noqa: E402
from lcma.kernels.structured.chain import KroneckerSparse  # noqa: E402
from lcma.kernels.structured.executor import StructuredExecutor  # noqa: E402
from lcma.kernels.structured.pattern import Pattern  # noqa: E402


@pytest.mark.parametrize(
    ("family", "structure"),
    [
        ("block-low-rank", LowRank(48, 32, 8)),
        ("block-low-rank", Monarch(48, 32, 2, 4, 8)),
        ("block-low-rank", Blast(48, 32, 2, 4, 8)),
        ("kronecker", KroneckerSparse.of(Pattern(2, 6, 4, 4))),
        ("kronecker", KroneckerSparse((Pattern(1, 12, 8, 4), Pattern(4, 8, 8, 1)))),
    ],
)
def test_a_repeated_product_has_the_bits_of_a_run(family, structure):
    request = request_of(structure, 5, "float32", device="cuda")
    strategy = strategies("cuda")[family, "strided"]
    candidate = strategy.restore("", (), request)
    executor = strategy.build(candidate, request, machine_for(request))
    assert isinstance(executor, StructuredExecutor)
    factors = [torch.randn(shape) for shape in structure.factor_shapes]
    x = torch.randn(5, 32)
    assert torch.equal(executor.again(factors, x.T), executor.run(factors, x.T))


class Counting:
    def __init__(self):
        self.repeated = 0

    def again(self, a, b):
        self.repeated += 1
        return a + b


def test_only_what_was_run_with_checks_is_repeated():
    plan_cache.clear()
    executor, runs = Counting(), []

    def run():
        runs.append(1)
        return executor, "checked"

    assert plans.again("one", run, 1, 2) == "checked"
    assert plans.again("one", run, 1, 2) == 3
    assert plans.again("another", run, 1, 2) == "checked"
    assert plans.again("none", lambda: (object(), "checked"), 1, 2) == "checked"
    assert plans.again("none", lambda: (object(), "checked"), 1, 2) == "checked"
    assert (len(runs), executor.repeated) == (2, 1)
    plan_cache.clear()
    assert plans.again("one", run, 1, 2) == "checked"
