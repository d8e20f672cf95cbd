"""Other people's methods that ratios are taken to: each is the product by definition."""

import itertools

import numpy as np
import pytest

from lcma.errors import PlanError
from lcma.kernels import Request
from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.factored import factored_request
from lcma.kernels.kronecker import FactoredMatrix, Pattern, monarch
from lcma.kernels.request import Layout, structures_of
from lcma.schemes_db.symmetry import SIDES, Triangle
from lcma.workbench.bench.baselines import NAMES, baseline, causal, kronecker

STRUCTURES = [
    Monarch(24, 36, 3, 4, 5),
    Monarch(24, 36, 3, 4, 5, interleaved=True),
    Blast(24, 36, 3, 4, 7),
    LowRank(24, 36, 5),
]


def check(name, matrix, dtype, library):
    """By any layouts of x and of the result, of factors as they are and rewritten before."""
    full, factors = matrix.dense(), matrix.factors
    for first, last, n in itertools.product((Layout.ROWS, Layout.COLUMNS), (Layout.ROWS, Layout.COLUMNS), (1, 6)):
        request = factored_request(matrix.structure, n, dtype, layouts=(first, last))
        x = np.random.default_rng(n).standard_normal((full.shape[1], n)).astype(dtype)
        given = np.asfortranarray(x) if first is Layout.COLUMNS else x
        out = np.full((full.shape[0], n), np.nan, dtype, order="F" if last is Layout.COLUMNS else "C")
        if library == "torch":
            torch = pytest.importorskip("torch")
            factors, given = [torch.from_numpy(one) for one in matrix.factors], torch.from_numpy(given)
            target = torch.from_numpy(out)
        else:
            target = out
        found = baseline(request, name)
        assert found.candidate.strategy == name
        assert found.workspace > 0
        for operand in (factors, found.prepare(factors)):
            out[...] = np.nan
            assert found.build().run(operand, given, target) is target
            np.testing.assert_allclose(out, full @ x, atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda one: f"{one.kind}{len(one.sizes)}")
@pytest.mark.parametrize("name", NAMES["block-low-rank"])
def test_a_block_low_rank_baseline_is_the_product(name, structure, library):
    check(name, FactoredMatrix.random(structure, dtype="float64"), "float64", library)


LISTS = {
    "one factor": (Pattern(2, 3, 4, 5),),
    "d of 1": (Pattern(3, 5, 2, 1),),
    "monarch": monarch(24, 36, 3),
    "not chainable": (Pattern(1, 8, 8, 3), Pattern(6, 4, 16, 1)),
}


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("patterns", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("name", NAMES["kronecker"])
def test_a_kronecker_sparse_baseline_is_the_product(name, patterns, dtype, library):
    if name != "einsum":
        pytest.importorskip("torch")
    check(name, FactoredMatrix.random(patterns, dtype=dtype), dtype, library)


@pytest.mark.parametrize("name", NAMES["causal"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_halving_is_the_triangular_product(name, side, upper, monkeypatch):
    """On a processor, and as on a GPU by plain torch: triangles of several sizes, with Strassen's scheme in squares."""
    torch = pytest.importorskip("torch")
    for limit, value in (("CPU_BASE", 16), ("BASE", 16), ("CPU_SCHEME_ABOVE", 40), ("SCHEME_ABOVE", 40)):
        monkeypatch.setattr(causal, limit, value)
    m, k, n = {"out": (90, 41, 90), "left": (90, 90, 41), "right": (41, 90, 90)}[side]
    cut = np.triu if upper else np.tril
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    clean = cut(a) if side == "left" else a, cut(b) if side == "right" else b
    wanted = clean[0] @ clean[1]
    wanted = cut(wanted) if side == "out" else wanted
    for device in ("cpu", "cuda"):
        request = Request(m, k, n, "float64", device=device, structures=structures_of(Triangle(side, upper)))
        out = np.full((m, n), np.nan)
        given = [one if device == "cpu" else torch.from_numpy(one) for one in (a, b, out)]
        baseline(request, name).run(*given)
        np.testing.assert_allclose(out, wanted, atol=1e-11)


def test_einsum_runs_without_torch(monkeypatch):
    monkeypatch.setattr(kronecker, "has_torch", lambda dtype: False)
    check("einsum", FactoredMatrix.random(monarch(24, 36, 3), dtype="float64"), "float64", "numpy")


def test_what_torchs_sparse_products_lack_is_said_in_one_line(monkeypatch):
    torch = pytest.importorskip("torch")
    matrix = FactoredMatrix.random((Pattern(2, 3, 4, 5),))

    def fail(*_, **__):
        raise RuntimeError("not implemented for 'Half'\nand more")

    monkeypatch.setattr(torch, "matmul", fail)
    found = baseline(factored_request(matrix.structure, 8, order="bsl"), "bsr")
    with pytest.raises(PlanError, match=r"torch does not multiply this sparse matrix: not implemented for 'Half'$"):
        found.run([torch.from_numpy(matrix.factors[0])], torch.randn(40, 8), torch.empty(30, 8))
