"""The nodes that the parser of text makes: numbers, linear forms, sums, products, lists, tables and calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..inexact import Coefficient
from .arithmetic import times

LinearForm = dict[str, Coefficient]
"""Name -> coefficient, without zeros; a bare number has the name ""."""


class Listed(list[Any]):
    """The items of a list; `scales` where a number before it multiplies them (`2*[..]` repeats a Python list)."""

    def __init__(self, items: Any = (), scales: bool = False) -> None:
        super().__init__(items)
        self.scales = scales


class Table(dict[str, Any]):
    """The values of `{name: value, ...}`."""


@dataclass(frozen=True)
class Rows:
    """Rows of items that blanks or semicolons part, as in `[A1 A2; 0 1]`."""

    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class ProductNode:
    """A number times other things."""

    scalar: Coefficient
    factors: tuple[Any, ...]


@dataclass(frozen=True)
class Total:
    """A sum with other things than names in it."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Inverse:
    node: Any


@dataclass(frozen=True)
class Transposed:
    node: Any


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Item:
    """A part of an array, such as A[:h, h:]."""

    name: str
    index: str


@dataclass(frozen=True)
class Call:
    """A call; of a method the first argument is the object, and the name begins with a dot."""

    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


Node = Any
"""A number, a LinearForm, or one of the classes above."""


def is_number(node: Node) -> bool:
    return not isinstance(node, dict | list | ProductNode | Total | Call | Text | Rows | Item | Inverse | Transposed)


def sole_name(node: Node) -> str:
    """The name that a node is, or nothing."""
    if isinstance(node, dict) and not isinstance(node, Table) and list(node.values()) == [1]:
        return str(next(iter(node)))
    return ""


def key_of(node: Node) -> str | None:
    """The text or name that a node is, or None."""
    return node.text if isinstance(node, Text) else sole_name(node) or None


def scaled(node: Node, factor: Coefficient) -> Node:
    """A number times a node."""
    if type(factor) is int and factor == 1:
        return node
    if is_number(node):
        return times(node, factor)
    if isinstance(node, ProductNode):
        return ProductNode(times(node.scalar, factor), node.factors)
    if isinstance(node, dict) and not isinstance(node, Table):
        return {name: value for name, old in node.items() if (value := times(old, factor))}
    return ProductNode(factor, (node,))


def described(node: Node) -> str:
    """What a node is, in a few words."""
    if isinstance(node, Call):
        return f"{node.name.lstrip('.')}(...)"
    if isinstance(node, list | Rows | Table):
        return "a list"
    if isinstance(node, Text):
        return repr(node.text[:20])
    if isinstance(node, Item):
        return f"{node.name}[{node.index[:20]}]"
    return sole_name(node)[:20] or "a sum or product of names"


def children(node: Node) -> Iterator[Node]:
    """The parts of a node."""
    if isinstance(node, Table):
        yield from node.values()
    elif isinstance(node, list):
        yield from node
    elif isinstance(node, Rows):
        for row in node.rows:
            yield from row
    elif isinstance(node, ProductNode):
        yield from node.factors
    elif isinstance(node, Total):
        yield from node.parts
    elif isinstance(node, Call):
        yield from (*node.arguments, *node.keywords.values())
    elif isinstance(node, Inverse | Transposed):
        yield node.node


def names_in(node: Node) -> Iterator[str]:
    """Every name in a node, in order."""
    if isinstance(node, dict) and not isinstance(node, Table):
        yield from filter(None, node)
    elif isinstance(node, Item):
        yield node.name
    else:
        for child in children(node):
            yield from names_in(child)


def rows_of(node: Node) -> list[list[Node]]:
    """The rows of a matrix; none where it is no matrix."""
    if isinstance(node, Rows):
        return [list(row) for row in node.rows]
    if isinstance(node, list) and node and all(isinstance(row, list) for row in node):
        return [list(row) for row in node]
    return []
