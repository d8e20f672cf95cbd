"""Least squares: the normal matrix against its naive twin, steps, finds of small formats."""

import numpy as np
import pytest

from lcma.schemes_db import parse_target
from lcma.search.leastsquares.arrays import Arrays
from lcma.search.leastsquares.equations import Equations


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
