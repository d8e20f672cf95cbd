"""Sums of products in Einstein's notation whose pairs of operands are products of matrices."""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from ..arguments import need
from ..errors import PlanError
from ..schemes_db.operands import array_of
from .api import matmul
from .arrays import Array, all_tensors, module_of
from .codegen.certified import SchemeLike
from .plans.decisions import AUTO

Term = tuple[Array, str]
"""An operand and the labels of its dimensions, one letter each."""


def einsum(
    equation: str,
    *operands: Array,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    strategy: str | None = None,
) -> Array:
    """Compute a sum of products as `np.einsum` does, each pair of operands by one product of `lcma.matmul`.

    `equation` is "ij,jk->ik" and the like: batch sizes, `...`, transposed and repeated indices, an output in any order
    or left out. The operands are two or more, numpy arrays or torch tensors; tensors are differentiable. They are
    permuted and reshaped to matrices (..., M, K) and (..., K, N), which copies where the strides need it. More than
    two are multiplied in the order of `np.einsum_path`. `scheme`, `levels` and `strategy` are those of `matmul`.

    Raises:
        PlanError: the equation does not fit the operands, or as `matmul`.
    """
    need(str, equation=equation)
    if len(operands) < 2:
        raise PlanError(f"einsum multiplies two or more operands, not {len(operands)}; use np.einsum for one")
    tensors = all_tensors(*operands)
    arrays = list(operands) if tensors else [array_of(f"operand {i + 1}", x) for i, x in enumerate(operands)]
    inputs, output = _parsed(equation, [len(x.shape) for x in arrays])
    sizes = _sizes(equation, zip(arrays, inputs, strict=True))
    terms = [_distinct(x, labels, sizes) for x, labels in zip(arrays, inputs, strict=True)]
    for places in _order(terms, output):
        chosen = [terms.pop(place) for place in sorted(places, reverse=True)]
        found = chosen.pop()
        while chosen:
            other = chosen.pop()
            kept = set(output).union(*(labels for _, labels in (*chosen, *terms)))
            found = _product(found, other, kept, scheme=scheme, levels=levels, strategy=strategy)
        terms.append(found)
    ((result, labels),) = terms
    return _permuted(result, labels, output)


def _parsed(equation: str, dimensions: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of the inputs and of the output, with letters in place of `...`.

    Raises:
        PlanError: the equation is none, or is for other operands.
    """
    left, arrow, output = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    used = set(left.replace(",", "").replace("...", "") + output.replace("...", ""))
    if not used <= set(string.ascii_letters):
        raise PlanError(f"einsum takes letters, commas, '...' and '->', not {equation!r}; write \"ij,jk->ik\"")
    if len(inputs) != len(dimensions):
        raise PlanError(f"{equation!r} has {len(inputs)} operands, and {len(dimensions)} are given")
    widths = [count - len(one.replace("...", "")) for one, count in zip(inputs, dimensions, strict=True)]
    for one, count, width in zip(inputs, dimensions, widths, strict=True):
        if width < 0 or (width and "..." not in one):
            raise PlanError(f"{one!r} in {equation!r} is for another operand than one of {count} dimensions")
    longest = max(widths)
    dots = "".join(letter for letter in string.ascii_letters if letter not in used)[:longest]
    inputs = [one.replace("...", dots[longest - width :]) for one, width in zip(inputs, widths, strict=True)]
    if not arrow:
        named = "".join(inputs)
        output = "..." + "".join(sorted(letter for letter in used if named.count(letter) == 1))
    if longest and "..." not in output:
        raise PlanError(f"the output of {equation!r} leaves '...' out; add it")
    output = output.replace("...", dots)
    if len(set(output)) < len(output) or not set(output) <= set("".join(inputs)):
        raise PlanError(f"the output of {equation!r} must have indices of the operands, each once")
    return inputs, output


def _sizes(equation: str, terms: Iterable[Term]) -> dict[str, int]:
    """Return the size of every label; one of 1 is repeated, as numpy does.

    Raises:
        PlanError: a label has two sizes.
    """
    sizes: dict[str, int] = {}
    for x, labels in terms:
        own: dict[str, int] = {}
        for label, size in zip(labels, x.shape, strict=True):
            known = sizes.setdefault(label, size)
            if own.setdefault(label, size) != size or (known != size and 1 not in (known, size)):
                raise PlanError(f"an index of {equation!r} has the sizes {known} and {size}")
            sizes[label] = size if known == 1 else known
    return sizes


def _distinct(x: Array, labels: str, sizes: dict[str, int]) -> Term:
    """Take the diagonal of repeated labels, and drop those that are repeated in size."""
    once = "".join(dict.fromkeys(labels))
    if once != labels:
        x, labels = module_of(x).einsum(f"{labels}->{once}", x), once
    for label in labels:
        if x.shape[place := labels.index(label)] != sizes[label]:
            x, labels = x.squeeze(place), labels.replace(label, "")
    return x, labels


def _order(terms: Sequence[Term], output: str) -> list[tuple[int, ...]]:
    """Return the places of the operands of every step; a step's result is appended to those that are left."""
    if len(terms) == 2:
        return [(0, 1)]
    text = ",".join(labels for _, labels in terms) + f"->{output}"
    empty = [np.broadcast_to(np.int8(0), tuple(x.shape)) for x, _ in terms]  # sizes alone count
    return list(np.einsum_path(text, *empty, optimize="greedy")[0][1:])  # the first says that it is a path


def _product(left: Term, right: Term, kept: Collection[str], **options: Any) -> Term:
    """Multiply two operands and sum over the labels that nothing else needs."""
    (x, rows), (y, cols) = (
        _summed(*one, [label for label in one[1] if label not in kept and label not in other[1]])
        for one, other in ((left, right), (right, left))
    )
    both = [label for label in rows if label in cols]
    batch, inner = ([label for label in both if (label in kept) is wanted] for wanted in (True, False))
    outer = [[label for label in labels if label not in both] for labels in (rows, cols)]
    size = dict(zip(rows + cols, (*x.shape, *y.shape), strict=True))
    b, m, k, n = ([size[label] for label in labels] for labels in (batch, outer[0], inner, outer[1]))
    a = _permuted(x, rows, [*batch, *outer[0], *inner]).reshape([*b, math.prod(m), math.prod(k)])
    c = _permuted(y, cols, [*batch, *inner, *outer[1]]).reshape([*b, math.prod(k), math.prod(n)])
    product = matmul(a, c, **options) if outer[0] or outer[1] or inner else a * c
    return product.reshape([*b, *m, *n]), "".join([*batch, *outer[0], *outer[1]])


def _summed(x: Array, labels: str, gone: Iterable[str]) -> Term:
    for label in gone:
        x, labels = x.sum(labels.index(label), dtype=x.dtype), labels.replace(label, "")
    return x, labels


def _permuted(x: Array, labels: str, order: Iterable[str]) -> Array:
    places = [labels.index(label) for label in order]
    return np.transpose(x, places) if isinstance(x, np.ndarray | np.generic) else x.permute(places)
