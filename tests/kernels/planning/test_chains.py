"""The beam search over chains of levels (dense products on a processor)."""

import numpy as np
import pytest

from lcma.kernels import Profile, Request
from lcma.kernels.cpu.cost_model import CpuCostModel
from lcma.kernels.dense.chains import cost_table
from lcma.kernels.dense.pool import SchemePool
from lcma.kernels.planning.profile import GemmRate
from lcma.schemes_db.shipped import shipped


@pytest.mark.parametrize("size", [2048, 4096, 8192])
def test_more_schemes_never_make_the_best_chain_slower(size):
    """Large grids, in all their orientations, must not crowd out the small ones that a further level extends."""
    small = SchemePool.of([shipped("strassen").scheme])
    names = ("strassen", "5x5x7-r127", "5x5x6-r110", "4x5x8-r118", "4x5x7-r104", "4x6x7-r125", "4x5x6-r90")
    large = SchemePool.of([shipped(name).scheme for name in names])
    rates = [
        GemmRate("float32", n, n, n, rate, mode)
        for n, rate in ((128, 6e10), (256, 1.2e11), (512, 1.7e11), (1024, 2e11))
        for mode in ("whole", "tasks")
    ]
    profile = Profile("test", "test", gemm=tuple(rates), combine_rate=3e10, bandwidth=3e10, call_overhead=3e-5)
    model, request = CpuCostModel(profile, 2), Request(size, size, size)

    def best(pool):
        depths = cost_table(request, model, pool.costs)
        return min(np.nanmin(seconds) for depth in depths for _, seconds, _ in depth.methods)

    assert best(large) <= best(small) * (1 + 1e-9)
