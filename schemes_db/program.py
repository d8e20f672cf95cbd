"""The straight-line form of a scheme: linear combinations of blocks, products of them, sums of products."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from ..arguments import need
from ..errors import PlanError, SchemeFormatError
from .display import line
from .grids import Kind
from .ring import Ring
from .target import Target

Coefficient = int | Fraction
Terms = tuple[tuple[Coefficient, int], ...]


class ProductKind(StrEnum):
    """The computed part of a product: all of it, or one triangle of its output or of an operand.

    The triangle is the lower one unless the name says upper; it includes the diagonal.
    """

    FULL = "full"
    HALF_OUT = "half-out"
    HALF_LEFT = "half-left"
    HALF_RIGHT = "half-right"
    HALF_OUT_UPPER = "half-out-upper"
    HALF_LEFT_UPPER = "half-left-upper"
    HALF_RIGHT_UPPER = "half-right-upper"

    @property
    def half(self) -> bool:
        return self is not ProductKind.FULL

    @property
    def of_upper(self) -> bool:
        """True if the triangle is the upper one."""
        return self.value.endswith("upper")

    @property
    def side(self) -> str:
        """`out`, `left`, `right`, or `full`."""
        return self.value.split("-")[1] if self.half else "full"

    def reason_against(self, outer: Target, inner: Target) -> str | None:
        """Return the reason why schemes for `inner` do not compute products of this kind of `outer`'s blocks, or None.

        Blocks of a full product are general matrices. The inner target must cover all parts of both operands that may
        be nonzero, and all outputs that are wanted. The one rule for levels of every device and family.
        """
        if not outer.block_recursive:
            return f"{outer} is exact for scalars only: its products can't be computed by blocks"
        if inner.is_general or (self.half and _covers(inner, self)):
            return None
        triangle = f" or for tri-{self.value.removeprefix('half-').replace('-', ':')}" if self.half else ""
        needs = f"the level below needs a scheme for general products{triangle}"
        return f"{inner} does not compute the {self} products of {outer}; {needs}"


def _covers(target: Target, kind: ProductKind) -> bool:
    """Return whether a target has all operand parts and outputs of a half product."""
    if not target.block_recursive or target.shared:
        return False
    half = Kind.UPPER if kind.of_upper else Kind.LOWER
    for side, grid in zip(("left", "right", "out"), (target.a, target.b, target.c), strict=True):
        triangular = side == kind.side and len(grid) == len(grid[0])
        for i, row in enumerate(grid):
            for j, block in enumerate(row):
                outside = triangular and (i > j if kind.of_upper else i < j)
                if not (block is Kind.FULL or outside or (triangular and i == j and block is half)):
                    return False
    return True


@dataclass(frozen=True)
class Load:
    """dst = block (row, col) of operand "A" or "B"."""

    dst: int
    operand: str
    block: tuple[int, int]

    @property
    def uses(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True)
class Lin:
    """dst = sum of coefficient * value."""

    dst: int
    terms: Terms

    @property
    def uses(self) -> tuple[int, ...]:
        return tuple(src for _, src in self.terms)


@dataclass(frozen=True)
class Product:
    """dst = left * right, of which `kind` says how much is computed; by the inner program where there is one."""

    dst: int
    left: int
    right: int
    kind: ProductKind = ProductKind.FULL

    @property
    def uses(self) -> tuple[int, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Store:
    """Block (row, col) of C = sum of coefficient * value."""

    block: tuple[int, int]
    terms: Terms

    @property
    def uses(self) -> tuple[int, ...]:
        return tuple(src for _, src in self.terms)


Op = Load | Lin | Product | Store


@dataclass(frozen=True)
class Program:
    """A straight-line program over blocks: ops on value ids, each id set once, before it is used.

    `inner` is the nesting: for a kind of product, the program that works a product of that kind on
    the next level of blocks. A kind that is not in `inner` is a leaf: a GEMM, or a structured leaf.

    Raises:
        SchemeFormatError: an op uses a value that is not set yet, sets one twice, or names a block
            outside the grid.
    """

    target: Target
    ring: Ring
    ops: tuple[Op, ...]
    inner: tuple[tuple[ProductKind, Program], ...] = ()

    def __post_init__(self) -> None:
        need(Target, target=self.target)
        need(Ring, ring=self.ring)
        need(tuple, ops=self.ops, inner=self.inner)
        known: set[int] = set()
        grids = {"A": (self.target.m, self.target.k), "B": (self.target.k, self.target.n)}
        for position, op in enumerate(self.ops):
            if missing := [src for src in op.uses if src not in known]:
                raise SchemeFormatError(f"op {position} uses value {missing[0]}, which no earlier op sets")
            if isinstance(op, Load | Store):
                rows, cols = grids.get(op.operand, (0, 0)) if isinstance(op, Load) else (self.target.m, self.target.n)
                if not (0 <= op.block[0] < rows and 0 <= op.block[1] < cols):
                    raise SchemeFormatError(f"op {position} names block {op.block}, outside the grid of {self.target}")
            if not isinstance(op, Store):
                if op.dst in known:
                    raise SchemeFormatError(f"op {position} sets value {op.dst} a second time")
                known.add(op.dst)

    def __repr__(self) -> str:
        depth = f", {self.levels} levels" if self.inner else ""
        return line(f"program {self.target}:{self.rank} over {self.ring}, {self.additions} additions{depth}")

    @property
    def levels(self) -> int:
        """The number of levels of recursion, this program included."""
        return 1 + max((program.levels for _, program in self.inner), default=0)

    @property
    def products(self) -> tuple[Product, ...]:
        return tuple(op for op in self.ops if isinstance(op, Product))

    @property
    def rank(self) -> int:
        return len(self.products)

    @property
    def additions(self) -> int:
        """Block additions on this level: one less than the terms of every sum."""
        return sum(max(len(op.terms) - 1, 0) for op in self.ops if isinstance(op, Lin | Store))

    @cached_property
    def live_ranges(self) -> dict[int, tuple[int, int]]:
        """For every value that an op computes (loads are not counted): positions of its birth and last use."""
        ranges: dict[int, tuple[int, int]] = {}
        loads = {op.dst for op in self.ops if isinstance(op, Load)}
        for position, op in enumerate(self.ops):
            for src in op.uses:
                if src not in loads:
                    ranges[src] = (ranges[src][0], position)
            if isinstance(op, Lin | Product):
                ranges[op.dst] = (position, position)
        return ranges

    @property
    def peak_live_tiles(self) -> int:
        """The most computed values that are alive at once when the ops run in order."""
        events = sorted(
            (when, change)
            for birth, death in self.live_ranges.values()
            for when, change in ((birth, 1), (death + 1, -1))
        )
        peak = alive = 0
        for _, change in events:
            alive += change
            peak = max(peak, alive)
        return peak

    def check_inner(self, inner: Mapping[ProductKind, Program]) -> None:
        """Check that programs compute the products of their kinds.

        Raises:
            PlanError: one does not: see `ProductKind.reason_against`.
        """
        for kind, program in inner.items():
            if reason := kind.reason_against(self.target, program.target):
                raise PlanError(reason)

    def nested(self, inner: Mapping[ProductKind, Program]) -> Program:
        """This program with its products of the given kinds computed by other programs.

        Raises:
            PlanError: as `check_inner`.
        """
        self.check_inner(inner)
        return Program(self.target, self.ring, self.ops, tuple(sorted(inner.items())))

    @cached_property
    def digest(self) -> str:
        """The sha256 (hex) of the JSON form."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, object]:
        """The program as JSON values; coefficients are integers or "p/q"."""
        return {
            "lcma_program": 1,
            "target": self.target.name,
            "ring": self.ring.name,
            "ops": [_op_to_json(op) for op in self.ops],
            "inner": {kind.value: program.to_json() for kind, program in self.inner},
        }

    @classmethod
    def from_json(cls, data: object) -> Program:
        """The inverse of `to_json`.

        Raises:
            SchemeFormatError: not a program, or one whose ops do not fit together.
        """
        from .ring import parse_ring
        from .target import parse_target

        if not isinstance(data, dict) or data.get("lcma_program") != 1:
            raise SchemeFormatError('not an lcma program: expected an object with "lcma_program": 1')
        try:
            ops = tuple(_op_from_json(item) for item in data["ops"])
            inner = tuple(sorted((ProductKind(kind), cls.from_json(item)) for kind, item in data["inner"].items()))
            return cls(parse_target(data["target"], files=False), parse_ring(data["ring"]), ops, inner)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
            raise SchemeFormatError(f"not a well-formed program: {error}") from error
        except RecursionError:
            raise SchemeFormatError("not a well-formed program: its levels are nested too deep") from None


def _coefficient_to_json(value: Coefficient) -> int | str:
    return int(value) if value == int(value) else str(value)


def _coefficient_from_json(value: object) -> Coefficient:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise SchemeFormatError(f'coefficient {value!r} must be an integer or "p/q"')
    fraction = Fraction(value)
    return int(fraction) if fraction.denominator == 1 else fraction


def _op_to_json(op: Op) -> list[object]:
    match op:
        case Load(dst, operand, block):
            return ["load", dst, operand, list(block)]
        case Lin(dst, terms):
            return ["lin", dst, [[_coefficient_to_json(c), src] for c, src in terms]]
        case Product(dst, left, right, kind):
            return ["product", dst, left, right, kind.value]
        case Store(block, terms):
            return ["store", list(block), [[_coefficient_to_json(c), src] for c, src in terms]]


def _op_from_json(item: list[object]) -> Op:
    match item:
        case ["load", int(dst), str(operand), [int(i), int(j)]]:
            return Load(dst, operand, (i, j))
        case ["lin", int(dst), list(terms)]:
            return Lin(dst, tuple((_coefficient_from_json(c), src) for c, src in terms))
        case ["product", int(dst), int(left), int(right), str(kind)]:
            return Product(dst, left, right, ProductKind(kind))
        case ["store", [int(i), int(j)], list(terms)]:
            return Store((i, j), tuple((_coefficient_from_json(c), src) for c, src in terms))
    raise SchemeFormatError(f"not an op: {item!r}")
