"""Products that are repeated without checks are those of checked runs, and any other operands are checked again."""

import pytest

torch = pytest.importorskip("torch")

from lcma.kernels.factored import factored_request  # noqa: E402
from lcma.kernels.plans.families import machine_for, strategies  # noqa: E402
from lcma.kernels.structured.block_low_rank import Blast, LowRank, Monarch  # noqa: E402
from lcma.kernels.structured.chain import KroneckerSparse  # noqa: E402
from lcma.kernels.structured.executor import StructuredExecutor  # noqa: E402
from lcma.kernels.structured.pattern import Pattern  # noqa: E402
from lcma.kernels.torch.structured_products import _Repeat  # noqa: E402


@pytest.mark.parametrize(
    ("family", "structure"),
    [
        ("structured", LowRank(48, 32, 8)),
        ("structured", Monarch(48, 32, 2, 4, 8)),
        ("structured", Blast(48, 32, 2, 4, 8)),
        ("structured", KroneckerSparse.of(Pattern(2, 6, 4, 4))),
        ("structured", KroneckerSparse((Pattern(1, 12, 8, 4), Pattern(4, 8, 8, 1)))),
    ],
)
def test_a_repeated_product_has_the_bits_of_a_run(family, structure):
    request = factored_request(structure, 5, "float32", device="cuda")
    strategy = strategies("cuda")[family, "strided"]
    candidate = strategy.restore("", (), request)
    executor = strategy.build(candidate, request, machine_for(request))
    assert isinstance(executor, StructuredExecutor)
    factors = [torch.randn(shape) for shape in structure.factor_shapes]
    x = torch.randn(5, 32)
    assert torch.equal(executor.again(factors, x.T), executor.run(factors, x.T))


SHAPES = (48, 8), (8, 32)


def factors_of(*shapes, dtype=torch.float32):
    return [torch.zeros(shape, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize(
    ("factors", "fit"),
    [
        (factors_of(*SHAPES), True),
        (factors_of(*SHAPES, (1, 1)), False),
        (factors_of((48, 8)), False),
        (factors_of((48, 8), (8, 31)), False),
        (factors_of(*SHAPES, dtype=torch.float64), False),
        ([torch.zeros(8, 48).T, torch.zeros(8, 32)], False),
        ([torch.zeros(48, 8, device="meta"), torch.zeros(8, 32)], False),
    ],
)
def test_only_factors_that_pass_the_checks_are_multiplied_without_them(factors, fit):
    repeat = _Repeat(None, SHAPES, "float32")
    assert repeat.fits(factors, torch.float32, torch.device("cpu")) is fit
