import numpy as np
import pytest

import lcma
from lcma.schemes_db import Q
from lcma.schemes_db.costs import growth_factor
from lcma.schemes_db.scheme import Scheme
from lcma.verify.stability import UNIT_ROUNDOFF, error_bound, measure, prefactor


def plain_prefactor(scheme):
    """The definition, output by output and product by product."""
    u, v, w = (factor.dense.reshape(scheme.rank, -1) != 0 for factor in scheme.factors)
    return max(
        (u[r].sum() - 1) + (v[r].sum() - 1) + (w[:, s].sum() - 1)
        for s in range(w.shape[1])
        for r in np.flatnonzero(w[:, s])
    )


@pytest.mark.parametrize("name", ["strassen", "winograd", "laderman", "eca-stage1", "eca-stage2", "naive:3x4x2"])
def test_prefactor_is_its_definition(name):
    scheme = lcma.resolve(name)[0]
    assert prefactor(scheme) == plain_prefactor(scheme)


@pytest.mark.parametrize(
    ("scales", "divisor", "more"),
    [((2, 1, 4), 1, 0), ((3, 1, 1), 1, 1), ((3, 5, 1), 1, 2), ((1, 1, 1), 3, 2), ((1, 1, 1), 4, 0)],
)
def test_coefficients_that_round_are_counted(strassen, scales, divisor, more):
    arrays = (factor.dense * scale for factor, scale in zip(strassen.factors, scales, strict=True))
    scaled = Scheme.from_arrays(strassen.target, *arrays, Q, denominators=(divisor, 1, 1))
    assert prefactor(scaled) == prefactor(strassen) + more


@pytest.mark.parametrize("levels", [0, 1, 2, 3])
def test_the_bound_is_the_published_formula(strassen, levels):
    leaf, e, q = 64 // 2**levels, growth_factor(strassen), prefactor(strassen)
    assert error_bound(strassen, 64, levels, "float32") == (leaf + q * levels) * leaf * e**levels * 2.0**-24


@pytest.mark.parametrize("name", ["strassen", "winograd", "laderman", "eca-stage1", "eca-stage2"])
@pytest.mark.parametrize("dtype", list(UNIT_ROUNDOFF))
def test_measured_errors_are_above_none_and_below_the_bound(name, dtype):
    measured = measure(lcma.resolve(name)[0], dtype)
    assert 0 < measured.error < measured.bound
    assert measured.classical > 0
    assert 0 < measured.frobenius < 1e3 * UNIT_ROUNDOFF[dtype]


def test_errors_grow_with_levels_and_with_the_growth_factor(strassen):
    errors = [measure(strassen, "float32", levels, leaf=32 // 2**levels).error for levels in (1, 4)]
    assert errors[0] < errors[1]
    winograd = lcma.resolve("winograd")[0]
    assert growth_factor(winograd) > growth_factor(strassen)
    assert error_bound(winograd, 64, 2) > error_bound(strassen, 64, 2)


def test_a_callable_is_measured_in_the_place_of_evaluation(strassen):
    exact = measure(strassen, "float32", call=lambda a, b: a.astype(np.float64) @ b.astype(np.float64))
    assert exact.error < measure(strassen, "float32").error / 100
    plain = measure(strassen, "float32", call=np.matmul)
    assert plain.error == plain.classical
