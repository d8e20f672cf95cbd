"""Exact products of tensors: plans for a GPU, predictions beside what an H200 took, tensors of a processor."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lcma
from lcma.kernels import Request, decision_for
from lcma.kernels.exact.level import corners
from lcma.kernels.exact.schemes import ExactMap
from lcma.kernels.exact.tensor_sums import TensorSums
from lcma.kernels.request import BITS
from lcma.kernels.ring import GF2, exact_ring

from ..cases import each
from ..gpu import H200


def test_tensors_are_multiplied_as_arrays_and_small_blocks_are_named_or_tuned_only():
    torch = pytest.importorskip("torch")
    a = torch.arange(12).reshape(3, 4)
    assert (lcma.matmul(a, a.T, ring="GF(7)") == a @ a.T % 7).all()
    assert (lcma.matmul(a, a.T, "strassen", ring="Z2") == a @ a.T % 2).all()
    named = decision_for(Request(16384, 16384, 16384, "bit", ring=GF2, device="cuda"), "4x4x4:47")
    assert named.plan.candidate.strategy == "scheme"
    assert named.plan.seconds is None


def test_kernels_of_sums_get_all_operands_on_the_device_of_the_blocks(monkeypatch):
    """A processor's memory would be refused by a GPU, and the interpreter takes anything."""
    torch = pytest.importorskip("torch")
    devices = []

    class Recorder:
        def __getitem__(self, grid):
            return lambda *given, **_: devices.extend(x.device.type for x in given if isinstance(x, torch.Tensor))

    monkeypatch.setitem(sys.modules, "lcma.kernels.exact.triton_bits", SimpleNamespace(sum_blocks=Recorder()))
    blocks = torch.zeros((6, 5), dtype=torch.int64, device="meta")
    sums = ExactMap(np.array([0, 2]), np.array([0, 1]), np.array([1, 1]))
    source, target = (blocks, corners(2, 1, 3, 0)), (blocks[:3], corners(1, 1, 3, 5))
    TensorSums().combine(0, sums, source, target, (3, 5), 1)
    assert devices == ["meta"] * 7


@pytest.mark.parametrize(
    ("ring", "strategy"), [("GF(1021)", "digits"), ("GF(8388593)", "digits"), ("GF(2^61-1)", "leaf")]
)
def test_digits_and_float64_compete_by_prices(ring, strategy):
    request = Request(8192, 8192, 8192, "int64", ring=exact_ring(ring), device="cuda")
    assert decision_for(request).plan.candidate.strategy == strategy


def test_the_bench_moves_operands_there_and_back_and_finds_wrong_entries():
    torch = pytest.importorskip("torch")
    from lcma.kernels.exact.bench import ExactBench
    from lcma.kernels.exact.tensor_bench import ExactTensorBench, to_host, to_tensor

    for request in (Request(5, 70, 9, "bit", ring=GF2), Request(5, 70, 9, "int64", ring=exact_ring("GF(101)"))):
        a, b, _ = ExactBench().operands(request, 0)
        found = to_host(to_tensor(a, "cpu"), 70, request)
        assert (found == a) if request.dtype == "bit" else np.array_equal(found, a)
        error_of = ExactTensorBench().errors(request, *(to_tensor(x, "cpu") for x in (a, b)))
        product = to_tensor(lcma.matmul(a, b, ring=request.ring), "cpu")
        assert error_of(product) == 0
        product[0, 0] ^= 1
        assert error_of(product) > 0
    assert torch.is_tensor(product)


pytest.importorskip("torch")

ROWS = json.loads(Path(__file__).with_name("measured_h200.json").read_text(encoding="utf-8"))
"""Ring, size, scheme, strategy, milliseconds."""


def request_over(ring, size):
    return Request(size, size, size, BITS if ring == "Z2" else "int64", device="cuda", ring=exact_ring(ring))


@pytest.mark.parametrize(("ring", "size", "scheme", "strategy", "milliseconds"), ROWS)
def test_products_take_what_is_predicted(ring, size, scheme, strategy, milliseconds):
    levels = scheme.split("/")
    named = levels if len(levels) > 1 else scheme
    plan = decision_for(request_over(ring, size), named, strategy=strategy, machine=H200).plan
    assert 1e3 * plan.seconds == pytest.approx(milliseconds, rel=0.1 if ring == "Z2" else 0.13)


@each("ring, size, candidate", __file__, "fastest")
def test_the_fastest_that_was_measured_is_chosen(ring, size, candidate):
    assert str(decision_for(request_over(ring, size), machine=H200).plan.candidate) == candidate
