"""The view of a Kronecker-sparse matrix for scipy."""

import sys

import numpy as np
import pytest

from lcma import kronecker
from lcma.kernels.kronecker import FactoredMatrix

from ...refusal import refuses


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_the_operator_is_the_matrix_and_its_adjoint(dtype):
    pytest.importorskip("scipy")
    matrix = FactoredMatrix.random(kronecker.monarch(24, 36, 3), dtype=dtype)
    operator, full = kronecker.linear_operator(matrix), matrix.dense()
    assert (operator.shape, operator.dtype) == (full.shape, full.dtype)
    rng, rtol = np.random.default_rng(0), 1e-4 if dtype == "float32" else 1e-12
    x, y = rng.standard_normal((36, 5)), rng.standard_normal((24, 5))
    np.testing.assert_allclose(operator @ x, full @ x, rtol, rtol)
    np.testing.assert_allclose(operator @ x[:, 0], full @ x[:, 0], rtol, rtol)
    np.testing.assert_allclose(operator @ x[:, :1], full @ x[:, :1], rtol, rtol)
    np.testing.assert_allclose(operator.H @ y, full.conj().T @ y, rtol, rtol)
    np.testing.assert_allclose(operator.H @ y[:, 0], full.conj().T @ y[:, 0], rtol, rtol)
    np.testing.assert_allclose(operator @ (x + 1j * x), full @ (x + 1j * x), rtol, rtol)


def test_least_squares_by_scipy_solves():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    matrix = FactoredMatrix.random(kronecker.Pattern(2, 12, 4, 3), dtype="float64")
    x = np.random.default_rng(0).standard_normal(24)
    found = linalg.lsmr(kronecker.linear_operator(matrix), matrix.dense() @ x, atol=1e-14, btol=1e-14, conlim=0)[0]
    np.testing.assert_allclose(found, x, rtol=1e-6, atol=1e-6)


def test_what_cannot_be_viewed_is_refused(monkeypatch):
    matrix = FactoredMatrix.random(kronecker.dense(4, 4), dtype="float16")
    if "scipy" in sys.modules:
        refuses("convert the matrix to float32", kronecker.linear_operator, matrix)
    monkeypatch.setitem(sys.modules, "scipy.sparse.linalg", None)
    refuses("pip install", kronecker.linear_operator, matrix)
