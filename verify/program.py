"""Check of straight-line programs: expanded to their bilinear form and proven equation by equation.

A nested program is proven level by level: the outer one over blocks that do not commute, then each
inner one against the requirements of its kind of products. That is sufficient, since a block identity
holds for every exact method of computing the block products.
"""

from __future__ import annotations

import dataclasses
import time

from ..arguments import need
from ..errors import SchemeFormatError, VerificationError
from ..schemes_db import Kind, Program, Proof, Scheme
from ..schemes_db.formats.reading import Entries, factor_of
from ..schemes_db.gaussian import MAX_BITS, bits
from ..schemes_db.program import Coefficient, Load, Product, Store, Terms
from .exact import check_exact
from .outcome import Outcome

Form = dict[int, Coefficient]
"""A linear combination: of flat block indices of A or B, or of products by their position."""

_SLOTS = {"left": (0, "left operand"), "right": (1, "right operand"), "out": (2, "outputs")}


def check_program(program: Program) -> Outcome:
    """Decide whether a program computes its target: all equations of all levels, no chance involved.

    A product declared half must satisfy the rule for half products: its outputs, or the blocks of that
    operand, are all the same half. `wrong` and `first` are those of the level that fails first.
    """
    need(Program, program=program)
    start = time.perf_counter()
    outcome = _check(program, {})
    proof = outcome.proof and dataclasses.replace(outcome.proof, method="program")
    return dataclasses.replace(outcome, method="program", proof=proof, seconds=time.perf_counter() - start)


def scheme_of(program: Program) -> Scheme:
    """Return the scheme of a program's outermost level, with its sums expanded.

    Raises:
        VerificationError: the program is not bilinear, or stores a block twice.
        SchemeFormatError: its coefficients do not fit its ring, or it uses a block outside its target.
    """
    target = program.target
    values: dict[int, tuple[str, Form]] = {}
    sides: list[tuple[Form, Form]] = []
    outputs: dict[int, Form] = {}
    for position, op in enumerate(program.ops):
        if isinstance(op, Load):
            cols = target.k if op.operand == "A" else target.n
            values[op.dst] = op.operand, {op.block[0] * cols + op.block[1]: 1}
        elif isinstance(op, Product):
            (left, left_form), (right, right_form) = values[op.left], values[op.right]
            if (left, right) != ("A", "B"):
                raise VerificationError(
                    f"op {position} multiplies values of {left} and {right}; only A times B is bilinear"
                )
            values[op.dst] = "products", {len(sides): 1}
            sides.append((left_form, right_form))
        elif isinstance(op, Store):
            space, form = _combined(op.terms, values, position)
            if space != "products":
                raise VerificationError(f"op {position} stores values of {space}, not of products")
            block = op.block[0] * target.n + op.block[1]
            if block in outputs:
                raise VerificationError(f"op {position} stores block {op.block} a second time")
            outputs[block] = form
        else:
            values[op.dst] = _combined(op.terms, values, position)
    if not sides:
        raise VerificationError("the program has no products")
    by_product: list[Form] = [{} for _ in sides]
    for block, form in outputs.items():
        for r, coefficient in form.items():
            by_product[r][block] = coefficient
    m, k, n = target.shape
    columns = [left for left, _ in sides], [right for _, right in sides], by_product
    u, v, w = (
        factor_of(Entries.of([list(form.items()) for form in forms], cols), rows, cols, name)
        for forms, (rows, cols), name in zip(columns, ((m, k), (k, n), (m, n)), "UVW", strict=True)
    )
    return Scheme(target, u, v, w, program.ring)


def _combined(terms: Terms, values: dict[int, tuple[str, Form]], position: int) -> tuple[str, Form]:
    """Return the space of a sum and its form, without terms that cancel."""
    spaces = sorted({values[src][0] for _, src in terms})
    if len(spaces) != 1:
        raise VerificationError(f"op {position} adds values of {' and '.join(spaces) or 'nothing'}")
    total: Form = {}
    for coefficient, src in terms:
        for key, value in values[src][1].items():
            total[key] = total.get(key, 0) + coefficient * value
    if any(bits(value) > MAX_BITS for value in total.values()):
        raise VerificationError(f"op {position} has a coefficient beyond 2^{MAX_BITS}")
    return spaces[0], {key: value for key, value in total.items() if value}


def _check(program: Program, proven: dict[str, Outcome]) -> Outcome:
    """Check a program and all inner ones, each distinct one once."""
    if program.digest in proven:
        return proven[program.digest]
    try:
        scheme = scheme_of(program)
    except (VerificationError, SchemeFormatError) as error:
        return _failure(program, str(error))
    if reason := undue_half(program, scheme) or _unfit_inner(program):
        return _failure(program, reason)
    outcome = check_exact(scheme)
    if outcome.proof is None:
        return outcome
    equations = outcome.equations
    primes = dict.fromkeys(outcome.proof.primes)
    for kind, inner in program.inner:
        nested = _check(inner, proven)
        if nested.proof is None:
            return dataclasses.replace(nested, reason=f"the inner program of {kind} products: {nested.explain()}")
        equations += nested.equations
        primes |= dict.fromkeys(nested.proof.primes)
    half = sum(op.kind.half for op in program.products)
    proof = Proof("program", equations=equations, primes=tuple(primes), full=program.rank - half, half=half)
    proven[program.digest] = Outcome("program", proof, equations, 0.0)
    return proven[program.digest]


def _failure(program: Program, reason: str) -> Outcome:
    return Outcome("program", None, program.target.equations, 0.0, wrong=None, reason=reason)


def undue_half(program: Program, scheme: Scheme) -> str:
    """Return the fault of the first product that is declared half and is not, or an empty string."""
    for r, op in enumerate(program.products):
        if not op.kind.half:
            continue
        slot, words = _SLOTS[op.kind.side]
        factor, kinds = scheme.factors[slot], scheme.target.kind_arrays[slot].ravel()
        wanted = Kind.UPPER if op.kind.of_upper else Kind.LOWER
        support = factor.indices[factor.indptr[r] : factor.indptr[r + 1]]
        if (kinds[support] != wanted).any():
            return f"product {r + 1} is declared {op.kind}, but not all its {words} are {wanted.name.lower()} halves"
    return ""


def _unfit_inner(program: Program) -> str:
    """Return the reason why an inner program cannot compute its kind of products, or an empty string."""
    for kind, inner in program.inner:
        if reason := kind.reason_against(program.target, inner.target):
            return reason
        if inner.ring.characteristic != program.ring.characteristic:
            return f"the inner program of {kind} products is over {inner.ring}, the outer one over {program.ring}"
    return ""
