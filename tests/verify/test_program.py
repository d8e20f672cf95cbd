import dataclasses
import tomllib
from fractions import Fraction
from pathlib import Path

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

CASES = tomllib.loads(Path(__file__).with_name("programs.toml").read_text(encoding="utf-8"))


def with_ops(program, ops):
    return dataclasses.replace(program, ops=tuple(ops))


def nested(name, inner, kind):
    """A nest as read from a file: unchecked."""
    program, below = (lcma.program_of(lcma.resolve(one)[0]) for one in (name, inner))
    return dataclasses.replace(program, inner=((kind, below),))


def proven(scheme, **options):
    """The program of a scheme, which is proven and expands to it."""
    program = lcma.program_of(scheme, **options)
    outcome = check_program(program)
    assert outcome.ok
    assert outcome.method == outcome.proof.method == "program"
    assert outcome.equations == scheme.target.equations
    assert scheme_of(program) == scheme
    return program


def test_the_program_of_a_scheme_is_proven_and_its_additions_are_those_of_the_table(shipped_name):
    program = proven(shipped(shipped_name).scheme)
    assert shared_additions()[shipped_name] == (kept_program(shipped_name) or program).additions


def test_the_program_without_shared_sums_too(representative):
    proven(shipped(representative).scheme, cse=False)


def test_every_changed_coefficient_of_a_program_is_rejected():
    program, seen = lcma.program_of(lcma.resolve("winograd")[0]), 0
    for position, op in enumerate(program.ops):
        for i, (coefficient, src) in enumerate(op.terms if isinstance(op, Lin | Store) else ()):
            wrong = dataclasses.replace(op, terms=(*op.terms[:i], (coefficient + 1, src), *op.terms[i + 1 :]))
            bad = with_ops(program, [*program.ops[:position], wrong, *program.ops[position + 1 :]])
            outcome = check_program(bad)
            assert not outcome.ok
            assert outcome.wrong == check_exact(scheme_of(bad)).wrong > 0
            seen += 1
    assert seen > 20


def test_a_nest_is_proven_level_by_level():
    good = nested("strassen", "winograd", ProductKind.FULL)
    outcome = check_program(good)
    assert outcome.ok
    assert outcome.equations == 128
    inner = good.inner[0][1]
    *rest, last = inner.ops
    broken = with_ops(inner, [*rest, dataclasses.replace(last, terms=last.terms[1:])])
    outcome = check_program(good.nested({ProductKind.FULL: broken}))
    assert not outcome.ok
    assert outcome.explain().startswith("the inner program of full products: ")


@pytest.mark.parametrize(("outer", "inner", "kind", "ok"), CASES["nests"])
def test_an_inner_program_must_serve_its_kind_of_product(outer, inner, kind, ok):
    kind = ProductKind[kind]
    program = nested(outer, inner, kind)
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


@pytest.mark.parametrize(("words", "ops"), CASES["refused"].items())
def test_what_is_not_bilinear_is_refused_with_the_op(words, ops):
    loads = [Load(0, "A", (0, 0)), Load(1, "B", (0, 0))][: ops["loads"]]
    later = eval(ops["then"], {"Lin": Lin, "Product": Product, "Store": Store})
    outcome = check_program(Program(lcma.parse_target("1x1x1"), lcma.schemes_db.Z, (*loads, *later)))
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
    program = lcma.program_of(lcma.resolve("naive:2x2x2:tri-left")[0])
    present = next(op for op in program.ops if isinstance(op, Load) and (op.operand, op.block) == ("A", (1, 0)))
    absent = dataclasses.replace(present, block=(0, 1))
    ops = [absent if op is present else op for op in program.ops]
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


def test_the_program_of_a_rational_scheme_is_proven(strassen):
    u, v, w = (factor.dense for factor in strassen.factors)
    proven(Scheme.from_arrays(strassen.target, u * 3, v, w * 10, Q, denominators=(3, 5, 2)))
