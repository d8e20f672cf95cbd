"""Block low-rank products of a GPU on tensors of a processor: views, the papers' form, plans, the Triton kernels."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from lcma.errors import PlanError  # noqa: E402
from lcma.kernels import Machine, decision_for  # noqa: E402
from lcma.kernels.block_low_rank import (  # noqa: E402
    Blast,
    FactoredMatrix,
    LowRank,
    Monarch,
)
from lcma.kernels.cuda.cost_model import CudaCostModel  # noqa: E402
from lcma.kernels.cuda.h200 import h200  # noqa: E402
from lcma.kernels.factored import factored_request  # noqa: E402
from lcma.kernels.plans.families import machine_for  # noqa: E402
from lcma.kernels.request import Layout  # noqa: E402
from lcma.kernels.structured.cuda import CudaStructured, decode_tile  # noqa: E402
from lcma.kernels.structured.decode import DECODE_TILES, few_tile  # noqa: E402
from lcma.kernels.structured.pattern import Pattern  # noqa: E402
from lcma.kernels.structured.views import multiply_strided  # noqa: E402

STRUCTURES = [
    Monarch(24, 36, 3, 4, 5),
    Monarch(24, 36, 3, 4, 5, interleaved=True),
    Blast(24, 36, 3, 4, 7),
    LowRank(24, 36, 5),
]
ids = pytest.mark.parametrize("structure", STRUCTURES, ids=lambda one: f"{one.kind}{len(one.sizes)}")


@ids
@pytest.mark.parametrize("strategy", ["strided", "dense"])
def test_every_strategy_is_the_product_by_definition(structure, strategy):
    matrix = FactoredMatrix.random(structure, dtype="float64")
    factors = [torch.from_numpy(weights) for weights in matrix.factors]
    full = torch.from_numpy(matrix.dense())
    layouts = (Layout.ROWS, Layout.COLUMNS)
    for first, last, n in itertools.product(layouts, layouts, (1, 6, 17, 0)):
        request = factored_request(structure, n, "float64", device="cuda", layouts=(first, last), max_extra_bytes=10**6)
        x = torch.randn(structure.cols, n, dtype=torch.float64)
        given = x if first is Layout.ROWS else x.T.contiguous().T
        executor = decision_for(request, strategy=strategy).plan.build()
        for operand in (factors, executor.prepare(factors)):
            found = executor.run(operand, given)
            torch.testing.assert_close(found, full @ x)
            assert n < 2 or found.stride() == ((n, 1) if last is Layout.ROWS else (1, structure.rows))


class Recorder(TorchDispatchMode):
    """Names of the operators that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@ids
def test_strided_products_are_gemms_and_nothing_else(structure):
    """Interleaved outputs lie d apart in a batch-first result, and are permuted within its columns by one copy."""
    factors = [torch.from_numpy(weights) for weights in FactoredMatrix.random(structure).factors]
    x = torch.randn(16, structure.cols).T
    out = torch.empty(16, structure.rows).T
    with Recorder() as seen:
        multiply_strided(structure, factors, x, out)
    gemms = [name for name in seen.names if name.split(".")[1] in ("mm", "bmm")]
    assert len(gemms) == len(structure.factor_shapes)
    copies = [name for name in seen.names if "copy" in name or "clone" in name or "contiguous" in name]
    assert len(copies) == (structure.row_order is None and structure.patterns[0].d > 1)


def test_operands_and_kernels_that_do_not_fit_are_refused():
    monarch = Monarch(24, 36, 3, 4, 5)
    for structure, dtype, n, strategy, message in (
        (monarch, "bfloat16", 64, "tiled", "whole 16 bytes"),
        (monarch, "float32", 64, "tiled", "multiplies float16 and bfloat16"),
        (Blast(256, 256, 128, 2, 5), "bfloat16", 64, "tiled", "at most 64 blocks"),
        (monarch, "bfloat16", 17, "decode", "up to 16 columns, not 17"),
        (monarch, "complex64", 7, "decode", "sums in float32"),
        (monarch, "float16", 64, "gather", "outputs of this matrix are in block order"),
    ):
        with pytest.raises(PlanError, match=message):
            decision_for(factored_request(structure, n, dtype, device="cuda"), strategy=strategy)
    rows = factored_request(Monarch(64, 64, 2, 2, 8), 32, "bfloat16", "bsl", device="cuda")
    with pytest.raises(PlanError, match="batch-first X"):
        decision_for(rows, strategy="tiled")


def test_kernels_without_a_measurement_are_never_chosen():
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    for n, structure in itertools.product((4, 1024, 8192), (LowRank(4096, 4096, 64), Monarch(4096, 4096, 16, 16, 64))):
        decision = decision_for(factored_request(structure, n, "bfloat16", device="cuda"), machine=machine)
        assert decision.plan.candidate.strategy == "strided"
        assert decision.seconds is not None


def test_one_column_is_priced_by_the_weights_and_read_in_one_launch():
    pytest.importorskip("triton")
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    for structure in (LowRank(11008, 4096, 1488), Monarch(11008, 4096, 16, 16, 96), Blast(11008, 4096, 16, 16, 1488)):
        decision = decision_for(factored_request(structure, 1, "bfloat16", device="cuda"), machine=machine)
        assert decision.plan.candidate.strategy == "decode"
        assert decision.seconds == pytest.approx(24.5e-6, rel=0.05)  # an H200 took 23.7 to 26.3 us
        (stage,) = decision.plan.stages
        assert stage.flops == structure.flops(1)
        for n, dtype in ((3, "bfloat16"), (1, "float32")):
            request = factored_request(structure, n, dtype, device="cuda")
            assert decision_for(request, machine=machine, strategy="decode").seconds is None


def test_the_middle_of_many_columns_is_by_our_kernel():
    pytest.importorskip("triton")
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    layer = Blast(3456, 1152, 9, 9, 384)  # on an H200, 8192 columns: 0.102 ms, by batched GEMMs 0.269 ms
    chosen = decision_for(factored_request(layer, 8192, "bfloat16", device="cuda"), machine=machine)
    assert chosen.plan.candidate.strategy == "tiled"
    assert chosen.seconds == pytest.approx(0.102e-3, rel=0.1)
    single = decision_for(factored_request(layer, 8192, "float32", device="cuda"), machine=machine)
    assert single.plan.candidate.strategy == "strided"  # our kernel takes halves


def test_decode_has_a_candidate_a_tile_which_wisdom_finds_again():
    pytest.importorskip("triton")
    request = factored_request(Blast(64, 64, 2, 2, 8), 1, "bfloat16", device="cuda")
    strategy = CudaStructured("decode")
    found = [proposal.candidate for proposal in strategy.propose(request, machine_for(request))]
    assert [decode_tile(one.parameters) for one in found] == list(DECODE_TILES)
    assert [strategy.restore("", one.parameters, request) for one in found] == found
    assert strategy.restore("", (), request) is None
    assert strategy.restore("", (*found[0].parameters[:-1], ("weights", 3)), request) is None
    assert decision_for(request, strategy="decode").plan.candidate == found[0]
    assert "programs 4" in str(found[0])


def test_items_have_the_rows_whose_rounds_read_least():
    assert few_tile(Pattern(1, 1488, 4096, 1), 528, 4096, False) == (
        1,
        4096,
    )  # 3 rounds of 4096 weights; by 2 rows 2 of 8192
    assert few_tile(Pattern(16, 688, 1488, 1), 528, 4096, False) == (8, 512)  # 3 rounds; by 1 row 21
    assert few_tile(Pattern(16, 1536, 256, 1), 528, 4096, False) == (8, 256)
    assert few_tile(Pattern(1, 2304, 192, 1), 528, 4096, False) == (8, 256)  # 1 round, though half of the programs wait
    assert few_tile(Pattern(1, 9, 20, 1), 528, 64, False)[0] in (1, 2, 4)
    assert few_tile(Pattern(1, 1488, 4096, 1), 264, 4096, True) == (16, 256)
