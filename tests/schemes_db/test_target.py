import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lcma
from lcma.schemes_db import Kind
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


def test_masked_output_rotates_into_triangular_operands():
    target = lcma.parse_target("4x4x4:tri-out")
    assert target.rotated().name == "4x4x4:tri-right:upper"
    assert target.rotated().rotated().name == "4x4x4:tri-left:upper"
    assert target.reversed().name == "4x4x4:tri-out:upper"


@pytest.mark.parametrize(("name", "equations", "terms"), [
    ("2x2x2", 64, 8), ("2x3x4", 6 * 12 * 8, 24), ("4x4x4:tri-out", 2560, 40), ("4x4x4:tri-left", 2560, 40),
])  # fmt: skip
def test_equations_and_terms_are_counted(name, equations, terms):
    target = lcma.parse_target(name)
    assert (target.equations, len(target.terms)) == (equations, terms)


def test_terms_are_the_matrix_product():
    target = lcma.parse_target("2x3x4")
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (2, 3)), rng.integers(-9, 9, (3, 4))
    c = np.zeros(8, dtype=np.int64)
    for p, q, s in target.terms:
        c[s] += a.ravel()[p] * b.ravel()[q]
    assert (c.reshape(2, 4) == a @ b).all()


def test_forms_of_different_matrices_are_joined():
    both = lcma.parse_target("3x3x3:tri-left:upper+tri-right")
    assert both.a == lcma.parse_target("3x3x3:tri-left:upper").a
    assert both.b == lcma.parse_target("3x3x3:tri-right").b
    assert both.transposed() == both
    assert len(both.terms) == 14
    square = lcma.parse_target("4x4x4:tri-left:upper+gram")
    assert square.shared
    # One triangle of A A^T with A upper triangular is the product of two upper triangular matrices, rotated.
    copies = lcma.parse_target("4x4x4:tri-left:upper+tri-right+tri-out")
    product = lcma.parse_target("4x4x4:tri-left:upper+tri-right:upper+tri-out:upper")
    assert copies.terms.tolist() == square.terms.tolist()
    assert product in copies.orbit()


def test_the_orbit_of_a_target_has_all_its_roles_and_orientations():
    names = {target.name for target in lcma.parse_target("4x2x4:tri-out").orbit()}
    forms = {name.partition(":")[0]: set() for name in names}
    for name in names:
        forms[name.partition(":")[0]].add(name.partition(":")[2])
    assert forms == {
        "4x2x4": {"tri-out", "tri-out:upper"},
        "2x4x4": {"tri-right", "tri-right:upper"},
        "4x4x2": {"tri-left", "tri-left:upper"},
    }
    assert len(lcma.parse_target("3x4x5").orbit()) == 6
    assert len(lcma.parse_target("2x2x2").orbit()) == 1


def test_half_blocks_are_half():
    assert [kind.half for kind in Kind] == [False, False, True, True]
    assert Kind.LOWER.mirrored is Kind.UPPER
    assert lcma.parse_target("2x2x2:tri-out").c == ((Kind.LOWER, Kind.ABSENT), (Kind.FULL, Kind.LOWER))


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_the_tensor_product_of_general_targets_is_general(m, k, n, p, q, r):
    assert Target.general(m, k, n).tensor(Target.general(p, q, r)) == Target.general(m * p, k * q, n * r)


@pytest.mark.parametrize("form", ["tri-left", "tri-right:upper", "tri-out", "gram"])
def test_what_is_left_of_half_blocks_is_a_triangle_of_blocks(form):
    assert lcma.parse_target(f"3x3x3:{form}").cut(2, 2, 2) == lcma.parse_target(f"6x6x6:{form}")
    with pytest.raises(lcma.TargetError, match="half blocks, which can't be cut into"):
        lcma.parse_target(f"3x3x3:{form}").cut(2, 3, 4)


def test_half_blocks_of_an_inner_target_stay_half():
    outer_general = Target.general(2, 1, 1).tensor(lcma.parse_target("2x2x2:tri-left"))
    assert outer_general.a[2] == (Kind.LOWER, Kind.ABSENT)
