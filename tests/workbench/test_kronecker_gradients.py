"""The rows of `lcma bench ks --measure gradients`, and what rests on a GPU's clock, without one."""

import statistics
from types import SimpleNamespace

import pytest

from lcma.kernels.cuda import clock
from lcma.kernels.kronecker import Pattern
from lcma.kernels.structured.naive import multiply
from lcma.workbench.bench.ks_measures import gradient_lines, permuted_product
from lcma.workbench.bench.suites.ks import worth_timing

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("first", [True, False])
def test_the_baseline_multiplies_and_is_differentiable(first):
    pattern = Pattern(2, 3, 4, 5)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(pattern.parameter_shape, generator=generator, dtype=torch.float64, requires_grad=True)
    x = torch.randn(pattern.cols, 7, generator=generator, dtype=torch.float64)
    found = permuted_product(x.T.contiguous() if first else x, weights, pattern, first)
    truth = multiply([weights.detach().numpy()], [pattern], x.numpy())
    torch.testing.assert_close((found.T if first else found).detach(), torch.from_numpy(truth))
    found.sum().backward()
    assert weights.grad.abs().min() > 0


def test_what_cannot_be_the_best_is_not_timed():
    def kept(pattern, dense, device="cuda", chosen=1e-3, strided=None):
        known = {"dense": dense, "auto": chosen}
        some = tuple(
            SimpleNamespace(
                what=name,
                plan=SimpleNamespace(seconds=known.get(name), request=SimpleNamespace(device=device, n=25088)),
            )
            for name in ("bmm", "dense", "bsr", "csr", "auto")
        )
        return [one.what for one in worth_timing(some, pattern, "bsl", strided)]

    everything = ["bmm", "dense", "bsr", "csr", "auto"]
    assert kept(Pattern(2, 4, 4, 1), 7e-3) == everything
    assert kept(Pattern(2, 4, 4, 1), 9e-3) == ["bmm", "bsr", "csr", "auto"]
    assert kept(Pattern(2, 4, 4, 2), 9e-3) == ["bmm", "csr", "auto"]
    assert kept(Pattern(4, 1024, 1024, 1), 9e-3) == ["bmm", "bsr", "auto"]
    assert kept(Pattern(4, 1024, 1024, 1), 9e-3, strided=2e-2) == ["bmm", "auto"]
    assert kept(Pattern(4, 1024, 1024, 1), 9e-3, strided=5e-2) == ["bmm", "bsr", "auto"]
    assert kept(Pattern(4, 1024, 1024, 2), 9e-3, "cpu") == ["bmm", "dense", "auto"]
    assert kept(Pattern(4, 1024, 1024, 2), 90.0, "cpu", chosen=10.0) == everything
    assert kept(Pattern(4, 1024, 1024, 2), 9e-3, chosen=None) == everything


def test_the_table_of_gradients():
    rows = [
        {"key": f"gradients bsf float32 (1,{size},8,2)", "refused": None, "figures": {"ratio": ratio}}
        for size, ratio in ((8, 0.5), (16, 1.5), (32, 2.5))
    ]
    assert list(gradient_lines(rows))[-1] == "| float32 | bsf | 3 | 66.7 | 1.5 | 0.5 | 2.5 |"


def test_a_hopeless_contender_has_few_rounds(monkeypatch):
    spent = {"quick": 1.0, "near": 3.0, "slow": 40.0}
    monkeypatch.setattr(clock, "seconds_of", lambda call, repeats=1: spent[call()])
    times = clock.interleaved({name: lambda name=name: name for name in spent}, 5, spent=0.1)
    assert {name: len(seconds) for name, seconds in times.items()} == {"quick": 5, "near": 5, "slow": clock.FEW}
    assert [statistics.median(seconds) for seconds in times.values()] == [1.0, 3.0, 40.0]
