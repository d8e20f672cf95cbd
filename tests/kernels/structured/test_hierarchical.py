"""Dense to Kronecker-sparse: errors are true, two factors are optimal, bounds hold, other algorithms serve any list."""

import itertools
import math

import numpy as np
import pytest

from lcma import kronecker
from lcma.kernels.kronecker import FactoredMatrix, Pattern, factorize
from lcma.kernels.structured.approximation import ALGORITHMS, two_factors
from lcma.kernels.structured.naive import support
from lcma.kernels.structured.pattern import chain_pattern, chain_rank

from ...refusal import refuses

CHAINABLE = {
    "monarch": kronecker.monarch(32, 64, 4),
    "low rank": kronecker.low_rank(20, 30, 5),
    "rank 2 blocks": (Pattern(1, 4, 4, 4), Pattern(2, 4, 3, 2)),
    "dyadic": kronecker.square_dyadic(32),
    "block butterfly": kronecker.block_butterfly(24, 3),
    "one factor": (Pattern(2, 3, 4, 5),),
}
DOWN = (Pattern(1, 16, 8, 3), Pattern(6, 4, 16, 1))
"""Composes, and is not chainable."""


def noisy(patterns, dtype="float64", noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    full = FactoredMatrix.random(patterns, seed, dtype).dense()
    return full + (noise * abs(full).mean() * rng.standard_normal(full.shape)).astype(full.real.dtype)


def distance(found, dense):
    return np.linalg.norm(found.matrix.dense() - dense) / np.linalg.norm(dense)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("name", CHAINABLE)
def test_a_product_of_such_factors_is_found_again(name, dtype):
    dense = noisy(CHAINABLE[name], dtype, noise=0.0)
    found = factorize(dense, CHAINABLE[name])
    limit = 1e-5 if dtype == "float32" else 1e-13
    assert distance(found, dense) < limit
    assert found.error < limit
    assert found.matrix.dtype == dtype


@pytest.mark.parametrize("name", CHAINABLE)
def test_the_error_is_true_and_within_its_bound(name):
    patterns = CHAINABLE[name]
    dense = noisy(patterns)
    said = []
    found = factorize(dense, patterns, on_event=said.append)
    assert found.error == pytest.approx(distance(found, dense), rel=1e-9)
    assert found.least <= found.error * (1 + 1e-12)
    assert found.error <= found.bound * (1 + 1e-12)
    assert found.bound <= math.sqrt(max(1, len(patterns) - 1)) * found.least * (1 + 1e-9)
    assert len(said) == len(patterns) - 1


def test_two_factors_are_at_the_optimum_and_the_left_one_is_orthonormal():
    for name in ("monarch", "low rank", "rank 2 blocks"):
        left, right = CHAINABLE[name]
        dense = noisy((left, right))
        found = factorize(dense, (left, right))
        assert found.error == pytest.approx(found.least, rel=1e-12)
        # The optimum by definition: what truncated SVDs of the blocks of equal support lose, block by block.
        whole, rank, lost = support(chain_pattern((left, right))), 0, 0.0
        columns, rows = support(left), support(right)
        classes = {}
        for n in range(left.cols):
            classes.setdefault((columns[:, n].tobytes(), rows[n].tobytes()), []).append(n)
        for members in classes.values():
            block = dense[np.ix_(columns[:, members[0]], rows[members[0]])]
            rank = len(members)
            lost += (np.linalg.svd(block, compute_uv=False)[rank:] ** 2).sum()
        assert rank == chain_rank(left, right)
        lost += (dense[~whole] ** 2).sum()
        assert found.error == pytest.approx(math.sqrt(lost) / np.linalg.norm(dense), rel=1e-10)
    left, right = CHAINABLE["rank 2 blocks"]
    weights = np.random.default_rng(0).standard_normal(chain_pattern((left, right)).parameter_shape)
    u, _, dropped = two_factors(weights, left, right)
    assert dropped > 0
    groups = u.reshape(left.a, left.d, left.b, right.a // left.a, -1)
    grams = np.einsum("ijpgk,ijpgl->ijgkl", groups, groups)
    np.testing.assert_allclose(grams, np.broadcast_to(np.eye(grams.shape[-1]), grams.shape), atol=1e-12)


@pytest.mark.parametrize("patterns", [CHAINABLE["monarch"], DOWN], ids=["monarch", "down"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_alternating_squares_serve_any_list_that_composes(patterns, dtype):
    dense, by = noisy(patterns, dtype), "alternating"
    found = factorize(dense, patterns, by)
    assert found.error == pytest.approx(distance(found, dense), rel=1e-6)
    assert (found.bound, found.least) == (None, None)
    if patterns is not DOWN:
        assert found.error <= 1.001 * factorize(dense, patterns).error
    assert found.error < 0.3
    again = factorize(dense, patterns, by)
    assert again.error == found.error
    assert factorize(dense, patterns, by, seed=1).matrix.factors[0][0, 0, 0, 0] != found.matrix.factors[0][0, 0, 0, 0]


def test_alternating_squares_never_grow_the_error_and_zeros_have_factors_of_zeros():
    said = []
    factorize(noisy(DOWN), DOWN, "alternating", on_event=said.append)
    errors = [float(line.rpartition(" ")[2]) for line in said]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(errors))
    for by in ALGORITHMS:
        found = factorize(np.zeros((32, 64)), CHAINABLE["monarch"], by)
        assert np.isfinite(found.error)
        assert np.abs(found.matrix.dense()).max() < 1e-6


def test_a_linear_layer_becomes_a_sparse_one():
    torch = pytest.importorskip("torch")
    import lcma

    dense = torch.nn.Linear(64, 32, dtype=torch.float64)
    layer = lcma.KSLinear.from_dense(dense, CHAINABLE["monarch"])
    wanted = factorize(dense.weight.detach().numpy(), CHAINABLE["monarch"]).matrix.dense()
    x = torch.randn(5, 64, dtype=torch.float64)
    torch.testing.assert_close(layer(x), x @ torch.from_numpy(wanted).T + dense.bias)
    refuses("not chainable", lcma.KSLinear.from_dense, torch.nn.Linear(96, 48), DOWN)
    assert lcma.KSLinear.from_dense(torch.nn.Linear(96, 48), DOWN, by="alternating").in_features == 96
