"""Programs of tensor products and direct sums, composed of the programs of their parts.

A sum over blocks of blocks is one sum for each of the inner blocks, so the additions of a tensor product are those of
the outer program times the inner blocks, and those of the inner program times the outer rank. Of a direct sum along n
both parts form sums of the same A; equal ones are formed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from ..errors import TargetError
from .flatten import flatten
from .program import Coefficient, Lin, Load, Op, Product, Program, Store
from .ring import Ring, Z
from .target import Target

Value = tuple[Coefficient, int]
"""A coefficient and the id of a value; the coefficient 0 is zero, whatever the id."""

AXES = "mkn"


class _Writer:
    """Ops of one program; a load or a sum that is there already is not written again."""

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._known: dict[object, int] = {}
        self._stored: dict[tuple[int, int], list[Value]] = {}

    def load(self, operand: str, block: tuple[int, int]) -> Value:
        return 1, self._once(("load", operand, block), lambda dst: Load(dst, operand, block))

    def lin(self, terms: list[Value]) -> Value:
        """The sum of some values; one value alone is itself."""
        left = [(coefficient, value) for coefficient, value in terms if coefficient]
        if len(left) < 2:
            return left[0] if left else (0, -1)
        key = tuple(sorted(left, key=lambda term: term[1]))
        return 1, self._once(("lin", key), lambda dst: Lin(dst, tuple(left)))

    def plain(self, value: Value) -> int:
        """The id of a value with the coefficient 1, for a product."""
        coefficient, source = value
        if coefficient == 1:
            return source
        return self._once(("lin", (value,)), lambda dst: Lin(dst, (value,)))

    def product(self, left: Value, right: Value) -> Value:
        factors = self.plain(left), self.plain(right)
        self._ops.append(Product(dst := len(self._ops), *factors))
        return 1, dst

    def _once(self, key: object, make: Callable[[int], Op]) -> int:
        if key not in self._known:
            self._known[key] = len(self._ops)
            self._ops.append(make(len(self._ops)))
        return self._known[key]

    def work(self, program: Program, at: Sequence[int]) -> None:
        """Add the ops of a program to what is there; its blocks begin at this row of A, row of B and column of B."""
        values: dict[int, Value] = {}
        for op in program.ops:
            match op:
                case Load(dst, operand, (i, j)):
                    rows, cols = at[:2] if operand == "A" else at[1:]
                    values[dst] = self.load(operand, (i + rows, j + cols))
                case Lin(dst, terms):
                    values[dst] = self.lin([_scaled(coefficient, values[source]) for coefficient, source in terms])
                case Product(dst, left, right):
                    values[dst] = self.product(values[left], values[right])
                case Store((i, j), terms):
                    sums = [_scaled(coefficient, values[source]) for coefficient, source in terms]
                    self._stored.setdefault((i + at[0], j + at[2]), []).extend(sums)

    def program(self, target: Target, ring: Ring) -> Program:
        """The program of all that was added."""
        sums = {block: tuple(term for term in terms if term[0]) for block, terms in self._stored.items()}
        return Program(target, ring, (*self._ops, *(Store(block, terms) for block, terms in sums.items() if terms)))


def tensor_program(outer: Program, inner: Program) -> Program:
    """The program of the tensor product: the outer one over blocks of blocks, the inner one for each of its products.

    Raises:
        TargetError: one is not of a full product, or they are over rings of different characteristic.
    """
    target = _target(outer, inner, tuple(x * y for x, y in zip(outer.target.shape, inner.target.shape, strict=True)))
    writer = _Writer()
    writer.work(flatten(outer, inner), (0, 0, 0))
    return writer.program(target, _ring(outer, inner))


def sum_program(first: Program, second: Program, axis: str) -> Program:
    """The program of the direct sum along an axis: both, on their parts of A, B and C.

    Raises:
        TargetError: one is not of a full product, their sizes differ in another axis, or their rings do not agree.
    """
    place = AXES.index(axis)
    shapes = first.target.shape, second.target.shape
    if any(x != y for q, (x, y) in enumerate(zip(*shapes, strict=True)) if q != place):
        raise TargetError(f"{first.target} and {second.target} differ in more than {axis}: no direct sum along it")
    whole = tuple(x + (y if q == place else 0) for q, (x, y) in enumerate(zip(*shapes, strict=True)))
    target, writer = _target(first, second, whole), _Writer()
    for program, offset in ((first, 0), (second, shapes[0][place])):
        writer.work(program, [offset if q == place else 0 for q in range(3)])
    return writer.program(target, _ring(first, second))


def _scaled(coefficient: Coefficient, value: Value) -> Value:
    scaled = Fraction(coefficient) * value[0]
    return int(scaled) if scaled.denominator == 1 else scaled, value[1]


def _target(first: Program, second: Program, shape: tuple[int, ...]) -> Target:
    if not (first.target.is_general and second.target.is_general):
        raise TargetError(f"programs of {first.target} and {second.target} are composed of full products only")
    if first.ring.characteristic != second.ring.characteristic:
        raise TargetError(f"programs over {first.ring} and {second.ring} are not composed")
    m, k, n = shape
    return Target.general(m, k, n)


def _ring(first: Program, second: Program) -> Ring:
    return first.ring if second.ring is Z else second.ring
