"""Least squares: the normal matrix against its naive twin, steps, finds of small formats."""

from fractions import Fraction

import numpy as np
import pytest

from lcma.schemes_db import Z, parse_target
from lcma.schemes_db.shipped import shipped
from lcma.search.leastsquares.arrays import Arrays, Cholesky
from lcma.search.leastsquares.discretise import scheme_of
from lcma.search.leastsquares.equations import Equations
from lcma.search.leastsquares.fleet import SquaresFleet
from lcma.verify import certify


def jacobian(equations, x):
    """The naive twin: the derivative of every equation by every coefficient, from the differences of a cubic."""
    size, step = equations.size, 1.0
    columns = []
    for i in range(size):
        moved = np.repeat(x, 2, axis=0)
        moved[0, i] += step
        moved[1, i] -= step
        plus, minus = equations.residual(moved)
        columns.append((plus - minus).reshape(-1) / (2 * step))  # linear in each coefficient: exact
    return np.array(columns).T


@pytest.mark.parametrize("name", ["2x3x2", "3x2x4", "2x2x2"])
def test_normal_matrix_gradient_and_direction_are_those_of_the_jacobian(name):
    equations = Equations(parse_target(name), 5, Arrays())
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, equations.size))
    damping = rng.random((2, equations.size)) + 0.1
    damping[:, equations.reduced :] = np.repeat(rng.random((2, 5)) + 0.1, equations.dims[2], axis=1)
    residual = equations.residual(x)
    gradient = equations.gradient(x, residual)
    normal = equations.normal(x)
    direction, solved = equations.direction(x, gradient, damping)
    assert solved.all()
    for i in range(2):
        j = jacobian(equations, x[i : i + 1])
        assert np.allclose(gradient[i], j.T @ residual[i].reshape(-1))
        assert np.allclose(normal[i], j.T @ j)
        assert np.allclose(direction[i], np.linalg.solve(j.T @ j + np.diag(damping[i]), -gradient[i]))


@pytest.mark.parametrize("order", [1, 100, 150, 700])
def test_blocked_cholesky_solves_as_numpy(order):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(order)
    half = rng.standard_normal((3, order, order))
    matrices = half @ half.swapaxes(1, 2) + np.eye(order)
    matrices[2] = -matrices[2]
    right = rng.standard_normal((3, order))
    factor = Cholesky(torch.asarray(matrices.copy()))
    assert factor.positive.tolist() == [True, True, False]
    assert np.allclose(
        factor.solve(torch.asarray(right))[:2], np.linalg.solve(matrices[:2], right[:2, :, None])[:, :, 0]
    )


def test_a_basis_vector_is_scaled_until_denominators_vanish():
    strassen = shipped("strassen").scheme
    u, v, w = (np.vectorize(Fraction, otypes=[object])(f.dense.reshape(7, -1)) for f in strassen.factors)
    u[:, [1, 3]] *= 2  # the second column of A, and the second row of B by its inverse
    v[:, [2, 3]] /= 2
    scheme = scheme_of(strassen.target, [u / 3, v, w * 3])
    assert (scheme.ring, scheme.ternary) == (Z, True)
    assert scheme_of(strassen.target, [u, v, 2 * w]) is None


def test_a_fleet_has_rational_schemes():
    fleet = SquaresFleet(parse_target("2x2x2"), 7, None, seed=1, device="cpu", stop=lambda: False)
    while fleet.score[0] > 7 and fleet.launches < 20:
        fleet.launch(fleet.STEPS)
    assert fleet.score.tolist() == [7]
    scheme = fleet.scheme(0)
    assert (scheme.rank, certify(scheme).rank) == (7, 7)
    stopped = SquaresFleet(parse_target("2x2x2"), 7, scheme, seed=1, device="cpu", stop=lambda: True)
    stopped.launch(stopped.STEPS)
    assert stopped.scheme(0).rank == 8
