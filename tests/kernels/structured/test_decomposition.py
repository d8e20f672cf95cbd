"""From dense weights to block low-rank factors."""

import numpy as np
import pytest
import torch

from lcma.kernels.block_low_rank import Blast, FactoredMatrix, LowRank, Monarch
from lcma.kernels.structured import decomposition
from lcma.kernels.structured.decomposition import decompose, least_error
from lcma.kernels.structured.truncation import gram_values, truncated, truncated_by_gram

EXACT = [LowRank(64, 48, 9), Monarch(64, 48, 4, 4, 3), Monarch(64, 48, 3, 8, 3, interleaved=True)]


@pytest.mark.parametrize("structure", EXACT, ids=repr)
@pytest.mark.parametrize("tensors", [False, True])
def test_planted_factors_are_found_by_svd(structure, tensors):
    planted = FactoredMatrix.random(structure, 1, "float64").dense()
    if tensors:
        found = decompose(torch.from_numpy(planted), structure)
        factors = [weights.numpy() for weights in found.factors]
    else:
        found = decompose(planted, structure)
        factors = found.factors
    assert found.error < 1e-12
    np.testing.assert_allclose(FactoredMatrix.of(structure, factors).dense(), planted, atol=1e-10)


def test_truncated_svds_are_optimal_and_the_error_is_told():
    weight = np.random.default_rng(0).standard_normal((24, 36))
    singular = np.linalg.svd(weight, compute_uv=False)
    assert decompose(weight, LowRank(24, 36, 5)).error == pytest.approx(
        np.linalg.norm(singular[5:]) / np.linalg.norm(singular)
    )
    structure = Monarch(24, 36, 3, 4, 2)
    found = decompose(weight, structure)
    blocks = weight.reshape(4, 6, 3, 12).swapaxes(1, 2)
    left = np.linalg.svd(blocks, compute_uv=False)[..., 2:]
    assert found.error == pytest.approx(np.linalg.norm(left) / np.linalg.norm(weight))
    full = FactoredMatrix.of(structure, found.factors).dense()
    assert found.error == pytest.approx(np.linalg.norm(weight - full) / np.linalg.norm(weight))


def test_descent_finds_planted_blast_factors_and_tells_every_step():
    structure, rng = Blast(64, 64, 4, 4, 8), np.random.default_rng(3)
    u, v = (rng.standard_normal(shape) for shape in (structure.factor_shapes[0], structure.factor_shapes[2]))
    planted = FactoredMatrix.of(structure, [u, rng.uniform(0, 1, (8, 4, 4)), v]).dense()
    seen = []
    found = decompose(planted, structure, on_step=lambda step, error: seen.append((step, error)))
    assert [step for step, _ in seen] == list(range(1, 301))
    assert found.error == min(error for _, error in seen) < 1e-3
    full = FactoredMatrix.of(structure, found.factors).dense()
    assert np.linalg.norm(full - planted) == pytest.approx(found.error * np.linalg.norm(planted), abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_momentum_finds_planted_factors_of_three_quarters_of_a_block_and_balances_them(seed):
    structure, rng = Blast(128, 128, 4, 4, 24), np.random.default_rng(seed)
    planted = list(structure.draw(rng, "float64"))
    planted[1] = rng.uniform(0, 1, planted[1].shape)
    weight = FactoredMatrix.of(structure, planted).dense()
    found = decompose(weight, structure)
    assert found.error < 1e-6
    u, s, v = found.factors
    np.testing.assert_allclose(FactoredMatrix.of(structure, list(found.factors)).dense(), weight, atol=1e-5)
    norms = [(x * x).sum(axes) for x, axes in ((u, (0, 1)), (s, (1, 2)), (v, (0, 2)))]
    np.testing.assert_allclose(norms[0], norms[1])
    np.testing.assert_allclose(norms[0], norms[2])


def test_blast_is_as_good_as_low_rank_on_low_rank_weights_and_better_on_others():
    rng = np.random.default_rng(0)
    low = rng.standard_normal((64, 12)) @ rng.standard_normal((12, 64))
    assert decompose(low, Blast(64, 64, 4, 4, 12)).error < 1e-3
    decaying = low + 0.3 * rng.standard_normal((64, 64))
    least = decompose(decaying, LowRank(64, 64, 12)).error
    assert decompose(decaying, Blast(64, 64, 4, 4, 12)).error <= 1.02 * least + 1e-3


@pytest.mark.parametrize("tensors", [False, True])
def test_least_errors_are_those_of_the_factors(tensors):
    weight = np.random.default_rng(4).standard_normal((24, 36))
    weight = torch.from_numpy(weight) if tensors else weight
    for structure in (LowRank(24, 36, 5), Monarch(24, 36, 3, 4, 2), Monarch(24, 36, 3, 4, 2, interleaved=True)):
        assert least_error(weight, structure) == pytest.approx(decompose(weight, structure).error, rel=1e-12)
    assert least_error(weight, LowRank(24, 36, 24)) < 1e-12
    assert least_error(weight * 0, LowRank(24, 36, 3)) == 0


@pytest.mark.parametrize("shape", [(5, 12, 7), (3, 7, 12)])
def test_gram_matrices_give_the_factors_of_truncated_svds(shape):
    matrix = torch.randn(shape)
    (u, v, dropped), (first, second, least) = truncated_by_gram(matrix, 4), truncated(matrix, 4, shared=True)
    torch.testing.assert_close(u @ v, first @ second, rtol=1e-4, atol=1e-4)
    assert dropped == pytest.approx(least, rel=1e-5)
    assert float(((matrix - u @ v) ** 2).sum()) == pytest.approx(least, rel=1e-4)
    torch.testing.assert_close((u * u).sum(1), (v * v).sum(2), rtol=1e-4, atol=1e-4)


def test_squared_singular_values_are_those_of_gram_matrices():
    for shape in ((5, 12, 7), (2, 3, 7, 12)):
        matrix = torch.randn(shape)
        values = gram_values(matrix).flip(-1).sqrt()
        torch.testing.assert_close(values, torch.linalg.svdvals(matrix.double()), rtol=1e-6, atol=1e-6)


def test_the_scales_of_the_factors_stay_together_which_changes_no_step(monkeypatch):
    """Momentum lets them drift: for 384 x 384 with b = 16, r = 36 factors in float32 overflowed after 59 steps."""
    weight, structure = np.random.default_rng(5).standard_normal((128, 128)), Blast(128, 128, 16, 16, 8)
    errors, spreads, even = {}, {}, decomposition._even_scales
    for name, scales in (("even", even), ("drifting", lambda point: (1.0, 1.0, 1.0))):
        errors[name], spreads[name] = [], []

        def scaled(point, scales=scales, kept=spreads[name]):
            factors = scales(point)
            norms = [np.linalg.norm(one) * factor for one, factor in zip(point, factors, strict=True)]
            kept.append(max(norms) / min(norms))
            return factors

        monkeypatch.setattr(decomposition, "_even_scales", scaled)
        decompose(weight, structure, 60, on_step=lambda _, error, kept=errors[name]: kept.append(error))
    assert errors["even"] == errors["drifting"]
    assert max(spreads["even"]) <= 4 < 1e3 < max(spreads["drifting"])
    for given in (weight, torch.from_numpy(weight).float()):
        scales = even([given, 1e-9 * given, 3e4 * given])
        assert np.prod(scales) == 1
        assert all(np.log2(one) == round(np.log2(one)) for one in scales)


def test_a_step_that_leaves_the_range_is_dropped(monkeypatch):
    weight, swept, errors = np.random.default_rng(5).standard_normal((24, 24)), decomposition._swept, []

    def broken(*arguments):
        found, squares = swept(*arguments)
        return found, squares if len(errors) not in (3, 4) else np.nan

    monkeypatch.setattr(decomposition, "_swept", broken)
    found = decompose(weight, Blast(24, 24, 2, 2, 5), 12, on_step=lambda _, error: errors.append(error))
    assert errors[2] == errors[3] == errors[4] > errors[5]
    assert found.error == min(errors)
    assert np.isfinite(found.factors[0]).all()


def test_a_descent_with_a_tolerance_ends_where_ten_steps_gain_less():
    weight, structure = np.random.default_rng(5).standard_normal((64, 64)), Blast(64, 64, 8, 8, 14)
    every, some = [], []
    whole = decompose(weight, structure, 200, on_step=lambda _, error: every.append(error))
    found = decompose(weight, structure, 200, on_step=lambda _, error: some.append(error), tolerance=0.01)
    assert len(every) == 200
    assert 10 < len(some) < 100
    assert every[: len(some) - 1] == some[:-1]
    gains = [1 - some[step] / some[step - 10] for step in range(10, len(some) - 1)]
    assert min(gains[:-1]) >= 0.01 > gains[-1]
    assert whole.error < found.error < 1.05 * whole.error


def test_a_weight_of_zeros_has_no_error():
    for structure in (LowRank(4, 4, 2), Monarch(4, 4, 2, 2, 1), Blast(4, 4, 2, 2, 2)):
        assert decompose(np.zeros((4, 4)), structure).error == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("structure", [LowRank(24, 16, 3), Monarch(24, 16, 2, 2, 3), Blast(24, 16, 2, 2, 3)], ids=repr)
def test_tensors_of_half_precision_are_decomposed_in_float32(structure, dtype):
    weight = torch.randn(24, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    found, wide = (decompose(one, structure, 20) for one in (weight, weight.float()))
    assert found.error == wide.error
    assert {one.dtype for one in found.factors} == {torch.float32}
