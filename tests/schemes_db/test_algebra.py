import numpy as np
import pytest

import lcma
from lcma.schemes_db import costs
from lcma.schemes_db.algebra import reverse, rotate, transpose
from lcma.schemes_db.costs import full_and_half
from lcma.schemes_db.symmetry import ATTENTION_PRODUCTS, SIDES, Triangle, attention_schemes, derive, triangle_of
from lcma.schemes_db.target import parse_target

SHIPPED = ["strassen", "winograd", "laderman", "eca-stage1", "eca-stage2"]
RECTANGULAR = ["naive:2x3x4", "naive:3x2x3:tri-out", "naive:3x3x2:tri-left:upper"]


@pytest.mark.parametrize("name", SHIPPED + RECTANGULAR)
@pytest.mark.parametrize("change", [rotate, transpose, reverse])
def test_symmetries_keep_the_tensor_the_rank_and_the_halves(name, change):
    scheme = lcma.resolve(name)[0]
    moved = change(scheme)
    assert lcma.check(moved).ok
    assert costs.full_and_half(moved) == costs.full_and_half(scheme)
    assert moved.provenance.parents == (scheme.digest,)


def test_the_operator_is_of_schemes_alone(strassen):
    with pytest.raises(TypeError, match="unsupported operand"):
        strassen @ 7


STORED = ("eca-stage1", "eca-stage2", "4x4x4-tri-out-r34")


@pytest.mark.parametrize("name", STORED)
def test_the_six_products_are_exact_and_as_cheap(name):
    stored = lcma.resolve(name)[0]
    schemes = attention_schemes(stored)
    assert set(schemes) == {"QK", "PV", "dV", "dP", "dQ", "dK"}
    for product, scheme in schemes.items():
        assert lcma.check(scheme).ok, product
        assert triangle_of(scheme.target) == ATTENTION_PRODUCTS[product]
        assert full_and_half(scheme) == full_and_half(stored)


def test_the_six_products_on_numbers():
    """Each scheme on random integers, with garbage where its target says nothing is."""
    rng, size = np.random.default_rng(0), 16
    schemes = attention_schemes(lcma.resolve("eca-stage1")[0])
    q, k, v, do, garbage = (rng.integers(-9, 9, (size, size)) for _ in range(5))
    lower = np.tril(rng.integers(-9, 9, (size, size)))
    spoiled = lower + np.triu(garbage, 1)
    truth = {
        "QK": (q, k.T, np.tril(q @ k.T)),
        "PV": (spoiled, v, lower @ v),
        "dV": (spoiled.T, do, lower.T @ do),
        "dP": (do, v.T, np.tril(do @ v.T)),
        "dQ": (spoiled, k, lower @ k),
        "dK": (spoiled.T, q, lower.T @ q),
    }
    for product, (a, b, expected) in truth.items():
        np.testing.assert_array_equal(lcma.evaluate(lcma.program_of(schemes[product]), a, b), expected, err_msg=product)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("upper", [False, True])
def test_every_triangle_is_reached(side, upper):
    wanted = Triangle(side, upper).target(4, 4, 4)
    made = derive(lcma.resolve("eca-stage2")[0], wanted)
    assert made.target == wanted == parse_target(f"4x4x4:{Triangle(side, upper)}")
    assert lcma.check(made).ok
