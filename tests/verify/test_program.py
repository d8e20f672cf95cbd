import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import lcma
from lcma.errors import PlanError
from lcma.schemes_db import ProductKind, Program, Q
from lcma.schemes_db.program import Lin, Load, Product, Store
from lcma.schemes_db.scheme import Scheme
from lcma.schemes_db.shipped import kept_program, shared_additions, shipped
from lcma.verify import check_exact, check_program
from lcma.verify.program import scheme_of


def with_ops(program, ops):
    return dataclasses.replace(program, ops=tuple(ops))


def nested(name, inner, kinds=(ProductKind.FULL,)):
    program = lcma.program_of(lcma.resolve(name)[0])
    below = lcma.program_of(lcma.resolve(inner)[0])
    return dataclasses.replace(program, inner=tuple((kind, below) for kind in kinds))  # as read from a file: unchecked


def assert_proven(scheme, program):
    outcome = check_program(program)
    assert outcome.ok
    assert outcome.method == outcome.proof.method == "program"
    assert outcome.equations == scheme.target.equations
    assert scheme_of(program) == scheme


def test_the_program_of_a_scheme_is_proven_and_expands_to_it_and_its_additions_are_those_of_the_table(shipped_name):
    scheme = shipped(shipped_name).scheme
    program = lcma.program_of(scheme)
    assert_proven(scheme, program)
    assert shared_additions()[shipped_name] == (kept_program(shipped_name) or program).additions


def test_the_program_without_shared_sums_too(representative):
    scheme = shipped(representative).scheme
    assert_proven(scheme, lcma.program_of(scheme, cse=False))


def test_every_changed_coefficient_of_a_program_is_rejected():
    program = lcma.program_of(lcma.resolve("winograd")[0])
    seen = 0
    for position, op in enumerate(program.ops):
        if not isinstance(op, Lin | Store):
            continue
        for i, (coefficient, src) in enumerate(op.terms):
            terms = (*op.terms[:i], (coefficient + 1, src), *op.terms[i + 1 :])
            bad = with_ops(
                program, [*program.ops[:position], dataclasses.replace(op, terms=terms), *program.ops[position + 1 :]]
            )
            outcome = check_program(bad)
            assert not outcome.ok
            assert outcome.wrong == check_exact(scheme_of(bad)).wrong > 0
            seen += 1
    assert seen > 20


def test_a_nest_is_proven_level_by_level():
    good = nested("strassen", "winograd")
    outcome = check_program(good)
    assert outcome.ok
    assert outcome.equations == 128
    inner = good.inner[0][1]
    *rest, last = inner.ops
    broken = with_ops(inner, [*rest, dataclasses.replace(last, terms=last.terms[1:])])
    outcome = check_program(good.nested({ProductKind.FULL: broken}))
    assert not outcome.ok
    assert outcome.explain().startswith("the inner program of full products: ")


@pytest.mark.parametrize(
    ("outer", "inner", "kind", "ok"),
    [
        ("eca-stage1", "eca-stage1", ProductKind.HALF_OUT, True),
        ("eca-stage1", "strassen", ProductKind.HALF_OUT, True),
        ("eca-stage1", "eca-stage2", ProductKind.HALF_OUT, False),
        ("eca-stage1", "eca-stage1", ProductKind.FULL, False),
        ("eca-stage1", "naive:4x4x4:gram", ProductKind.HALF_OUT, False),  # their B is not their A^T
        ("strassen", "naive:4x4x4:gram", ProductKind.FULL, False),
        ("eca-stage1", "naive:3x3x3:tri-out:upper", ProductKind.HALF_OUT, False),
        ("naive:2x2x2:tri-out:upper", "naive:3x3x3:tri-out:upper", ProductKind.HALF_OUT_UPPER, True),
        ("eca-stage2", "eca-stage2", ProductKind.HALF_LEFT, True),
        ("naive:2x2x3:tri-left", "naive:2x2x1:tri-left", ProductKind.HALF_LEFT, True),
        ("naive:3x2x2:tri-right", "naive:1x3x3:tri-right", ProductKind.HALF_RIGHT, True),
    ],
)
def test_an_inner_program_must_serve_its_kind_of_product(outer, inner, kind, ok):
    program = nested(outer, inner, (kind,))
    assert check_program(program).ok is ok
    if ok:
        # The same said by numbers: the nest evaluated on integers, garbage where nothing may be read.
        from lcma.verify import check_traced

        grids = [np.array(program.target.shape), np.array(lcma.resolve(inner)[0].target.shape)]
        sizes = tuple(int(size) for size in 2 * np.prod(grids, axis=0))
        assert check_traced(lambda a, b: lcma.evaluate(program, a, b), program.target, sizes=sizes, error_log2=-4).ok
    else:
        assert f"does not compute the {kind} products of" in check_program(program).explain()
        with pytest.raises(PlanError, match="does not compute the"):
            dataclasses.replace(program, inner=()).nested(dict(program.inner))


def test_a_product_declared_half_must_be_half():
    program = lcma.program_of(lcma.resolve("eca-stage1")[0])
    full = next(op for op in program.products if op.kind is ProductKind.FULL)
    half = next(op for op in program.products if op.kind is ProductKind.HALF_OUT)

    def redeclared(one, kind):
        return with_ops(program, [dataclasses.replace(op, kind=kind) if op is one else op for op in program.ops])

    for kind in list(ProductKind)[1:]:
        outcome = check_program(redeclared(full, kind))
        assert not outcome.ok
        assert f"is declared {kind}, but not all its" in outcome.explain()
    assert not check_program(redeclared(half, ProductKind.HALF_OUT_UPPER)).ok
    outcome = check_program(redeclared(half, ProductKind.FULL))
    assert outcome.ok
    assert (outcome.proof.full, outcome.proof.half) == (25, 9)


@pytest.mark.parametrize(
    ("ops", "words"),
    [
        ([Load(0, "A", (0, 0)), Load(1, "B", (0, 0)), Product(2, 1, 0), Store((0, 0), ((1, 2),))], "only A times B"),
        ([Load(0, "A", (0, 0)), Load(1, "B", (0, 0)), Lin(2, ((1, 0), (1, 1)))], "adds values of A and B"),
        ([Load(0, "A", (0, 0)), Load(1, "B", (0, 0)), Product(2, 0, 1), Product(3, 2, 1)], "products and B"),
        ([Load(0, "A", (0, 0)), Store((0, 0), ((1, 0),))], "stores values of A"),
        ([Load(0, "A", (0, 0))], "no products"),
        ([Load(0, "A", (0, 0)), Lin(1, ())], "adds values of nothing"),
        (
            [Load(0, "A", (0, 0)), Load(1, "B", (0, 0)), Product(2, 0, 1), *[Store((0, 0), ((1, 2),))] * 2],
            "a second time",
        ),
    ],
)
def test_what_is_not_bilinear_is_refused_with_the_op(ops, words):
    target = lcma.parse_target("1x1x1")
    outcome = check_program(Program(target, lcma.schemes_db.Z, tuple(ops)))
    assert not outcome.ok
    assert words in outcome.explain()


def test_fractions_and_rings():
    target = lcma.parse_target("1x1x1")
    ops = (
        Load(0, "A", (0, 0)),
        Lin(1, ((Fraction(1, 3), 0),)),
        Load(2, "B", (0, 0)),
        Product(3, 1, 2),
        Store((0, 0), ((3, 3),)),
    )
    assert check_program(Program(target, Q, ops)).ok
    assert "denominator 3" in check_program(Program(target, lcma.schemes_db.Z, ops)).explain()
    over_z2 = lcma.program_of(lcma.resolve("strassen")[0].over_z2())
    assert check_program(over_z2).ok
    mixed = lcma.program_of(lcma.resolve("strassen")[0]).nested({ProductKind.FULL: over_z2})
    assert "is over Z2, the outer one over Z" in check_program(mixed).explain()


def test_an_absent_block_may_not_be_used():
    scheme = lcma.resolve("naive:2x2x2:tri-left")[0]
    program = lcma.program_of(scheme)
    ops = [
        Load(op.dst, "A", (0, 1)) if isinstance(op, Load) and op.block == (1, 0) and op.operand == "A" else op
        for op in program.ops
    ]
    assert "has no such block" in check_program(with_ops(program, ops)).explain()


@pytest.mark.parametrize(("doublings", "said"), [
    (100, f"is {2**100}, wanted 1"), (8000, "is a number of 8001 bits, wanted 1"),
    (8200, "op 8193 has a coefficient beyond 2^8192"),
])  # fmt: skip
def test_a_chain_of_doublings_ends_in_a_line_not_in_an_overflow(doublings, said):
    ops = [Load(0, "A", (0, 0)), Load(1, "B", (0, 0))]
    ops += [Lin(i + 2, ((1, i + 1 if i else 0), (1, i + 1 if i else 0))) for i in range(doublings)]
    ops += [Product(doublings + 2, doublings + 1, 1), Store((0, 0), ((1, doublings + 2),))]
    outcome = check_program(Program(lcma.parse_target("1x1x1"), lcma.schemes_db.Z, tuple(ops)))
    assert not outcome.ok
    assert said in outcome.explain()


def test_scheme_of_is_the_inverse_of_program_of_for_rationals(strassen):
    u, v, w = (factor.dense for factor in strassen.factors)
    scheme = Scheme.from_arrays(strassen.target, u * 3, v, w * 2, Q, denominators=(3, 5, 2))
    assert scheme_of(lcma.program_of(scheme)) == scheme
