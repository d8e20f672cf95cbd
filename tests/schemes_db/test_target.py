import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lcma
from lcma.schemes_db.target import Target

NAMES = [
    *("2x2x2", "3x4x5", "1x1x1", "4x4x4:tri-out", "4x4x4:tri-left", "3x3x2:tri-left:upper", "2x3x3:tri-right"),
    *("4x2x4:tri-out:upper", "2x2x2:blocks(F./FF,FF/FF,L./FL)", "3x3x3:tri-left:upper+tri-right"),
    *("3x3x3:tri-left:upper+tri-right:upper+tri-out:upper", "4x4x4:tri-left+band(1)"),
]


@pytest.mark.parametrize("name", [*NAMES, "3x2x3:gram:upper", "3x3x3:tri-left:upper+gram"])
def test_the_name_of_a_target_reads_back_as_the_target(name):
    target = lcma.parse_target(name)
    assert target.name == name
    assert lcma.parse_target(target.name) == target


@pytest.mark.parametrize("name", NAMES)
def test_three_rotations_and_two_transpositions_or_reversals_are_the_identity(name):
    target = lcma.parse_target(name)
    assert target.rotated().rotated().rotated() == target
    assert target.transposed().transposed() == target
    assert target.reversed().reversed() == target


def test_terms_are_the_matrix_product():
    target = lcma.parse_target("2x3x4")
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (2, 3)), rng.integers(-9, 9, (3, 4))
    c = np.zeros(8, dtype=np.int64)
    for p, q, s in target.terms:
        c[s] += a.ravel()[p] * b.ravel()[q]
    assert (c.reshape(2, 4) == a @ b).all()


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_the_tensor_product_of_general_targets_is_general(m, k, n, p, q, r):
    assert Target.general(m, k, n).tensor(Target.general(p, q, r)) == Target.general(m * p, k * q, n * r)
