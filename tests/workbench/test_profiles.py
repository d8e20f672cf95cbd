"""Measuring a processor or a GPU and storing the figures in a profile; no GPU is needed."""

import pytest

from lcma.kernels import Profile
from lcma.kernels.cuda.cost_model import CudaCostModel, alignment_efficiency
from lcma.kernels.cuda.level import CudaMethod
from lcma.kernels.cuda.stack import fits_stack
from lcma.workbench import cpu_profile, gpu_profile
from lcma.workbench.gpu_profile import DTYPES, Point, points, rate_of


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_measured(dtype):
    found = list(points(dtype))
    assert len(set(found)) == len(found)
    assert {None, CudaMethod.BATCHED} <= {point.method for point in found}
    assert any(len(set(point.sizes)) == 1 for point in found)
    assert any(len(set(point.sizes)) == 3 for point in found)
    for point in found:
        assert point.bytes <= 16 << 30
        assert alignment_efficiency(dtype, *point.sizes[1:]) == 1.0
        if point.method is CudaMethod.STACK:
            assert fits_stack(point.count, *point.sizes[:2], dtype)


def test_a_measured_point_is_a_rate():
    point = next(p for p in points("tf32") if p.method is CudaMethod.BATCHED and len(set(p.sizes)) == 3)
    row = rate_of(point, 0.01)
    assert (row.mode, row.m, row.k, row.n) == (f"batched {point.count}", *point.sizes)
    model = CudaCostModel(Profile("x", "", (("multiprocessors", "132"),), (row,)))
    assert model.gemm("tf32", *point.sizes, point.count, "batched") == pytest.approx(0.01)


@pytest.fixture
def on_cpu(monkeypatch):
    """Tensors that are asked for on a GPU come on the CPU."""
    torch = pytest.importorskip("torch")
    for name in ("randn", "empty"):
        made = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda shape, device, dtype, made=made: made(shape, dtype=dtype))
    return torch


@pytest.mark.parametrize("way", [None, CudaMethod.BATCHED])
def test_the_products_of_a_point_are_worked(way, on_cpu, monkeypatch):
    written = []
    mm, bmm = on_cpu.mm, on_cpu.bmm
    monkeypatch.setattr(on_cpu, "mm", lambda a, b, out: written.append((a, b, mm(a, b, out=out))))
    monkeypatch.setattr(on_cpu, "bmm", lambda a, b, out: written.append((a, b, bmm(a, b, out=out))))
    gpu_profile._products(Point((6, 4, 10), way, 1 if way is None else 3, "float64"))()
    assert len(written) == 1
    for a, b, c in written:
        assert (a.shape[-2:], b.shape[-2:]) == ((6, 4), (4, 10))
        assert b.stride(-2) == 10
        on_cpu.testing.assert_close(c, a @ b)
    assert sum(c.numel() for *_, c in written) == 60 * (1 if way is None else 3)


def test_every_point_is_visited_there_and_back(monkeypatch):
    torch = pytest.importorskip("torch")
    visited = []
    monkeypatch.setattr(gpu_profile, "missing_accelerator", lambda device: "it has none")
    monkeypatch.setattr(gpu_profile, "_products", lambda point: visited.append(point))
    monkeypatch.setattr(gpu_profile, "settled", lambda call, spent: 1e-3 * len(visited))
    before = torch.backends.cuda.matmul.allow_tf32
    memory = 1 << 30
    rates = list(gpu_profile._rates(memory, lambda _: None))
    assert torch.backends.cuda.matmul.allow_tf32 == before
    wanted = [p for dtype in DTYPES for p in points(dtype) if p.method is not CudaMethod.STACK and p.bytes <= memory]
    assert [(r.dtype, r.m, r.k, r.n) for r in rates] == [(p.dtype, *p.sizes) for p in wanted]
    first = [point for point in wanted if point.dtype == DTYPES[0]]
    assert visited[: 2 * len(first)] == first + first[::-1]
    assert len(visited) == gpu_profile.VISITS * len(wanted)
    # Both visits count: the mean place of a point in a way there and back is the middle one.
    assert rates[0] == rate_of(first[0], 1e-3 * (1 + 2 * len(first)) / 2)


def test_products_that_are_measured_find_their_operands_in_memory(monkeypatch):
    monkeypatch.setattr(cpu_profile, "caches", lambda: (1 << 15, 1 << 25))
    assert cpu_profile._turns(1 << 20, 1e8, False) == 64  # twice the last cache
    assert cpu_profile._turns(1 << 20, 1e9, False) == 10
    assert cpu_profile._turns(1 << 30, 1e11, False) == 1
    assert cpu_profile._turns(1 << 16, 1e8, True) == 3  # numpy's own loops would take a second a turn
    monkeypatch.setattr(cpu_profile, "caches", lambda: ())
    assert cpu_profile._turns(1 << 20, 1e8, False) == 64
