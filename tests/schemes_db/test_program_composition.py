"""Composed programs: exact, with the additions that the parts promise, and the table of them is right."""

import numpy as np
import pytest

from lcma.schemes_db.additions_table import fewest_additions, program_named, recipes
from lcma.schemes_db.algebra import tensor
from lcma.schemes_db.constructions import direct_sum
from lcma.schemes_db.program import Lin, Load, Product, Store
from lcma.schemes_db.program_composition import sum_program, tensor_program
from lcma.schemes_db.resolve import resolve
from lcma.schemes_db.shipped import kept_program, shared_additions, shipped
from lcma.schemes_db.straightline import program_of
from lcma.verify.program import check_program, scheme_of


def program(name):
    return kept_program(name) or program_of(resolve(name)[0])


@pytest.mark.parametrize("outer", ["strassen", "winograd", "2x2x3", "3x4x5-r47-additions"])
@pytest.mark.parametrize("inner", ["winograd", "2x3x3"])
def test_a_tensor_product_takes_the_additions_of_both(outer, inner):
    first, second = (resolve(name)[0] for name in (outer, inner))
    made = tensor_program(program(outer), program(inner))
    assert check_program(made).ok
    assert scheme_of(made).digest == tensor(first, second).digest
    m, k, n = second.target.shape
    blocks = max(m * k, k * n, m * n)
    assert made.additions <= program(outer).additions * blocks + first.rank * program(inner).additions


@pytest.mark.parametrize("axis", "mkn")
def test_a_direct_sum_forms_equal_sums_once(axis):
    scheme, one = resolve("winograd")[0], program("winograd")
    made = sum_program(one, one, axis)
    assert check_program(made).ok
    assert scheme_of(made).digest == direct_sum(scheme, scheme, axis).digest
    # 15 each; along n the 4 of A are shared, along m the 4 of B, along k the 4 blocks of C are added.
    assert made.additions == {"m": 26, "k": 34, "n": 26}[axis]


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_is_what_the_table_says(name):
    recipe, made = recipes()[name], program_named(name)
    assert check_program(made).ok
    assert (made.target, made.rank, made.additions) == (recipe.target, recipe.rank, recipe.additions)
    how = "polished" if recipe.do == "polish" else "composed"
    assert name == f"{recipe.target.name}-r{recipe.rank}-{how}"
    assert recipe.do != "polish" or made.additions < program(recipe.first).additions


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_multiplies_matrices(name):
    """Run line by line on matrices of large integers, and count: nothing of the proofs is used."""
    made = program_named(name)
    m, k, n = made.target.shape
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-(10**6), 10**6, shape).astype(object) for shape in ((m, k), (k, n)))
    values, out, additions, products = {}, np.zeros((m, n), dtype=object), 0, 0
    for op in made.ops:
        match op:
            case Load(dst, operand, block):
                values[dst] = (a if operand == "A" else b)[block]
            case Product(dst, left, right):
                values[dst] = values[left] * values[right]
                products += 1
            case Lin(dst, terms):
                values[dst] = sum(coefficient * values[source] for coefficient, source in terms)
                additions += len(terms) - 1
            case Store(block, terms):
                out[block] = sum(coefficient * values[source] for coefficient, source in terms)
                additions += len(terms) - 1
        if isinstance(op, Lin | Store):
            assert {abs(coefficient) for coefficient, _ in op.terms} == {1}  # a multiplication is no addition
    assert (out == a @ b).all()
    assert (products, additions) == (recipes()[name].rank, recipes()[name].additions)


def test_the_fewest_additions_are_those_of_the_programs():
    rows = fewest_additions()
    assert len({row.target for row in rows}) == len(rows)
    for row in rows:
        if row.name in recipes() or kept_program(row.name):
            made = program_named(row.name)
            assert (made.target, made.rank, made.additions) == (row.target, row.rank, row.additions)
        else:  # its program is computed where the table of shared additions is tested
            scheme = shipped(row.name).scheme
            assert (scheme.target, scheme.rank, shared_additions()[row.name]) == (row.target, row.rank, row.additions)
    compared = [row.difference for row in rows if row.difference is not None]
    assert sum(one <= 0 for one in compared) >= 34
    assert sum(one < 0 for one in compared) >= 29
