"""On a GPU only: operands of more than 2^31 elements, batch 25088 by 131072 features."""

import pytest
import torch

from lcma.kernels import decision_for
from lcma.kernels.cuda.bench import CudaBench
from lcma.kernels.factored import factored_request
from lcma.kernels.kronecker import KroneckerSparse, Pattern
from lcma.kernels.precision import fields_of

BATCH = 25_088

LIMITS = {"float16": 5e-3, "float32": 1e-5, "fp32-accurate": 1e-5}

LARGE = Pattern(1, 64, 1024, 128), Pattern(1, 1024, 64, 128)

CASES = [
    ("strided", "float16", "bsl", LARGE),
    ("tiled", "float16", "bsf", LARGE),
    ("transposed", "float16", "bsf", LARGE),
    ("transposed", "float32", "bsf", LARGE),
    ("split", "fp32-accurate", "bsf", LARGE),
    ("gather", "float16", "bsf", (Pattern(4, 2, 32, 1024),)),
]


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="operands of 13 GB need a GPU")
@pytest.mark.parametrize(
    ("strategy", "dtype", "layout", "pattern"), [(*case, one) for *case, patterns in CASES for one in patterns], ids=str
)
def test_the_product_is_right_beyond_two_billion_elements(strategy, dtype, layout, pattern):
    request = factored_request(KroneckerSparse.of(pattern), BATCH, **fields_of(dtype), order=layout, device="cuda")
    bench = CudaBench()
    a, b, out = bench.operands(request, 0)
    out.fill_(torch.nan)
    assert max(b.numel(), out.numel()) > 2**31
    found = decision_for(request, strategy=strategy).plan.build().run(a, b, out)
    assert bench.errors(request, a, b)(found) <= LIMITS[dtype]
