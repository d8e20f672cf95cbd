"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: the Triton kernels on tensors of a processor.

Sizes are no multiples of a tile, fresh memory is NaN, and results lie in the middle of a canvas whose border must stay
as it was.
"""

import pytest
import torch
import triton
import triton.language as tl

from lcma.kernels import decision_for
from lcma.kernels.block_low_rank import Blast, FactoredMatrix, LowRank, Monarch
from lcma.kernels.factored import factored_request
from lcma.kernels.kronecker import KroneckerSparse, Pattern
from lcma.kernels.structured.decode_kernel import wait_for_all
from lcma.kernels.structured.handover import mix, place, relaid
from lcma.kernels.structured.views import view_chain

CANARY = 7.5
LIMITS = {"float32": 1e-6, "float16": 3e-3, "bfloat16": 2e-2}
CASES = [
    ("tiled", Monarch(72, 48, 3, 4, 8)),
    ("tiled", Monarch(72, 48, 3, 4, 8, interleaved=True)),
    ("tiled", Monarch(40, 144, 2, 5, 8)),
    ("tiled", Blast(24, 36, 3, 4, 7)),
    ("tiled", Blast(60, 80, 20, 5, 9)),
    ("decode", LowRank(33, 700, 9)),
    ("decode", LowRank(5, 4, 1)),
    ("decode", Monarch(24, 36, 3, 4, 5)),
    ("decode", Monarch(70, 48, 3, 2, 16)),
    ("decode", Monarch(24, 36, 3, 4, 5, interleaved=True)),
    ("decode", Blast(24, 36, 3, 4, 7)),
    ("decode", Blast(40, 75, 5, 20, 5)),
    ("decode", KroneckerSparse((Pattern(1, 6, 15, 4), Pattern(3, 20, 12, 1)))),
    ("tiled", LowRank(33, 70, 9)),
    ("transposed", Monarch(24, 36, 3, 4, 5, interleaved=True)),
    ("gather", Monarch(24, 36, 3, 4, 5, interleaved=True)),
    ("gather", Blast(24, 36, 3, 4, 7)),
    ("fused", Blast(24, 36, 3, 4, 2)),
]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("strategy", "structure"), CASES, ids=lambda one: getattr(one, "kind", one))
def test_only_the_result_is_written_and_it_is_the_product(strategy, structure, dtype):
    if dtype == "float32" and strategy == "tiled" and not isinstance(structure, LowRank):
        return
    kind = getattr(torch, dtype)
    factors = [torch.from_numpy(w).to(kind) for w in FactoredMatrix.random(structure).factors]
    full = torch.from_numpy(FactoredMatrix.of(structure, [w.double().numpy() for w in factors]).dense())
    for n in (1, 3, 16) if strategy == "decode" else (1, 21, 130):
        x = torch.randn(n, structure.cols, dtype=torch.float64).to(kind)
        canvas = torch.full((n + 4, structure.rows), CANARY, dtype=kind)
        out = canvas[2:-2].T
        out.fill_(torch.nan)
        executor = decision_for(factored_request(structure, n, dtype, device="cuda"), strategy=strategy).plan.build()
        executor.run(executor.prepare(factors), x.T, out)
        truth = full @ x.T.double()
        # The mean norm of such a product: that of one column of rank 1 is far smaller where its single sum cancels.
        typical = full.norm() * x.double().norm() / structure.cols**0.5
        assert (out.double() - truth).norm() <= LIMITS[dtype] * typical
        out.fill_(CANARY)
        assert (canvas == CANARY).all()


def test_the_handover_is_where_the_second_products_read_for_any_tile():
    structure = Monarch(70, 144, 3, 5, 8)
    factors = [torch.from_numpy(w).half() for w in FactoredMatrix.random(structure).factors]
    x = torch.randn(37, structure.cols).half().T
    plain = torch.empty(structure.b1 * structure.rank * structure.b2, 37).half()
    view_chain(structure, True, True).launches[0](factors[1], x, plain)
    wanted = plain.reshape(3, 8, 5, 37).permute(2, 3, 0, 1).reshape(5, 37, 24)
    for tile in ((16, 16, 16), (32, 64, 32), (128, 256, 64)):
        found = torch.full((5, 37, 24), torch.nan, dtype=torch.float16)
        place(structure, relaid(factors, structure)[1], x, found, tile)
        torch.testing.assert_close(found, wanted, atol=3e-3, rtol=3e-3)


def test_the_mixture_is_that_of_the_vendor_for_any_tile():
    structure = Blast(24, 36, 3, 4, 7)
    factors = [torch.from_numpy(w).half() for w in FactoredMatrix.random(structure).factors]
    inner = torch.randn(21, 40).half()[:, :37]
    wanted = factors[1].float() @ inner.reshape(7, 3, 37).float()
    for tile in ((16, 1), (16, 4), (64, 3)):
        mixed = torch.full((28, 40), torch.nan, dtype=torch.float16)[:, :37]
        mix(structure, factors[1], inner, mixed, tile)
        torch.testing.assert_close(mixed.reshape(7, 4, 37).float(), wanted, atol=3e-3, rtol=3e-3)


@triton.jit
def pass_once(counter, passed, programs):
    wait_for_all(counter, programs)
    tl.store(passed, 1)


def test_the_last_to_come_passes_the_barrier_and_leaves_the_counter_ready_for_the_next():
    counter, programs = torch.tensor([0], dtype=torch.int32), 528
    for flipped in (-(1 << 31), 0, -(1 << 31)):
        passed = torch.zeros(1, dtype=torch.int32)
        counter += programs - 1
        pass_once[(1,)](counter, passed, programs)
        assert passed.item() == 1
        assert counter.item() == flipped
