"""Arrays as people write them down: JSON, code that binds names to them, lists of products, or tables of numbers.

AlphaEvolve's files are tuples of three arrays (entries, R) each, columns are products, C transposed: every
`name = (array(..), array(..), array(..))` of a Python file or a notebook is one scheme.

Maple's are `TriadSet([Triad([Matrix(..), Matrix(..), Matrix(..)]), ...])`, as the FMM catalogue has them, Mathematica's
{A, B, C^T} a product, matrices as lists of rows in braces: one after the other, in a list, or in a list of schemes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from ...errors import SchemeFormatError
from . import equations
from .arrays import (
    ROLES,
    Array,
    as_array,
    check_beside,
    factor_names,
    named_factors,
    numbered_together,
    one_array,
    reading_of_unlabelled,
)
from .bindings import Bindings, read_bindings
from .candidates import Shape, reading_of_coefficients
from .coefficients import sparse_products
from .header import RANK, SIZES
from .lines import without_block_comments
from .listed import agreeing, listed_text
from .parts import HOW
from .patterns import changes_all, check_setting, pattern
from .reading import C_TRANSPOSED, Reading, Wanted
from .strict_json import loads, need
from .tables import bit_masks, groups, has_tables, reading_of_words, says_gf2, settings_beside, three_tables

_LISTED = pattern(
    r"(?::(?=\s*+\[\[)|=|<-)\s*+(?:[-+]?\d[\d./]*+\s*+\*\s*+)?(?:[A-Za-z_][\w.]*+[\[(](?:\s*+(?:\d++|[A-Z]\w*+(?:\(\))?)\s*+,)*+)*\s*+(?:[A-Za-z]++(?:8|16|32|64)?\s*+)?(?:[\[({<][\[({<\s&]*+|\[[\[(\s]*+[A-Za-z_][\w.]*+\([\[(\s]*+)[-+]?[\d.\"'F]|\w\{\{[{\s]*+[-+]?\d|=\s*+(?:\$\s*+)?(?:\\left\W\s*+)?\\begin\{"
)
_BEGINS = pattern(r"\s*[\[{(]\s*(?:[\[({\"']|\w+\(\[)")
_FENCE = pattern(r"(?m)^[ \t]*(?:```|~~~)[^\n]*$")
_MAGIC = pattern(r"\s*(?:%%(?!time|capture|prun)|%(?:run|load|store|macro|pylab|exec)\b)|.*\brun_(?:line|cell)_magic\(")
"""Statements of a notebook that may set any name."""

_TRIAD = pattern(r"\bTriad\s*\(\s*\[")
_BRACES = pattern(r"\s*(?:[A-Za-z]\w*\s*:?=\s*)?(?:\{\s*){3,5}[-+]?\s*[\d.I]")
_TUPLES = pattern(r"(?:[A-Za-z_]\w*=)?\({1,4}(?:\w+\.)?array\(")
_NUMBERS = pattern(r"(?<![\w\])])\[(?:\s*+\[){0,40}+\s*+[-+]?[\d.]")
_SIZES, _RANK = pattern(SIZES), pattern(RANK)
_LIES = {"alphaevolve": "products as columns", "maple": "", "mathematica": ""}
"""How the arrays of formats lie that say so, with the third factor by C^T."""


def _body(text: str) -> str:
    """The code cells of a notebook, the text between code fences, or the whole text if there are none."""
    if text.lstrip().startswith("{") and '"nbformat"' in text:
        cells = [cell for cell in need(loads(text), "cells", list) if isinstance(cell, dict)]
        code = _sources([cell for cell in cells if cell.get("cell_type") == "code"])
        words = _sources([cell for cell in cells if cell.get("cell_type") != "code"])
        changes = [line for line in code.splitlines() if _MAGIC.match(line)]
    else:
        parts = _FENCE.split(text)
        if len(parts) < 3:
            return text
        code, words, changes = "\n".join(parts[1::2]), "\n".join(parts[::2]), []
    if changes := changes or [line for line in words.splitlines() if changes_all(line)]:
        raise SchemeFormatError(f"{changes[0].strip()[:40]!r} is said of the numbers beside it, or changes them")
    return code


def _sources(cells: list[dict[str, Any]]) -> str:
    """The text of cells of a notebook."""
    sources = [cell.get("source") for cell in cells]
    return "\n".join("".join(map(str, source)) for source in sources if isinstance(source, str | list))


def sniff(text: str) -> bool:
    """Return whether it has three arrays of numbers under names, or in one list."""
    body = _body(text)
    return _BEGINS.match(body) is not None or _LISTED.search(body[:20_000]) is not None or has_tables(body)


def sniff_alphaevolve(text: str) -> bool:
    """Return whether a name is set to a tuple of arrays."""
    if text.lstrip().startswith("{"):
        return '"nbformat"' in text and "array(" in text
    return _TUPLES.search(re.sub(r"\s", "", text[:20_000])) is not None


def sniff_mathematica(text: str) -> bool:
    """Return whether lists of numbers in braces come first, three to five deep."""
    return _BRACES.match(without_block_comments(text[:20_000])) is not None


def sniff_maple(text: str) -> bool:
    """Return whether there is a triad."""
    return _TRIAD.search(text) is not None


def parse(text: str, wanted: Wanted) -> list[Reading]:
    """Read every scheme of a text.

    Raises:
        SchemeFormatError: no three arrays that could be factors, or something that may change them.
    """
    name, body = wanted.format, _body(text)
    if (masks := bit_masks(body)) is not None:
        return [_fitting(reading_of_words(wanted, masks[0], body, masks[1]), settings_beside(body))]
    if tables := three_tables(body):
        return [_fitting(reading_of_unlabelled(wanted, tables), settings_beside(body))]
    found = read_bindings(body)
    listed = [line for line, statement in found.unknown if _NUMBERS.search(statement)]
    if fault := next((one for one in found.faults.values() if name in _LIES and one.line in listed), None):
        raise fault
    flat = {one for one, value in found.arrays.items() if _depth(value) == 1}
    found.account(found.arrays.keys() - (flat - found.used - set(factor_names(flat))))
    if found.loose and (found.arrays or "" in found.faults):
        raise found.faults.get("") or SchemeFormatError("arrays with names and without in one file")
    value: Any = found.arrays or found.loose
    if len(found.loose) == 1 and not (name == "mathematica" and _depth(value) == 4):  # one product, or all of them
        value = found.loose[0]
    elif found.loose and name not in _LIES and not all(isinstance(one, dict) for one in value):
        raise SchemeFormatError(f"{len(value)} arrays without names")
    words, names = _words(value) if says_gf2(body) else ([], [])
    settings = _settings(value, found)
    if words:
        _check_settings(settings, names)
        return [_fitting(reading_of_words(wanted, words, body, list(_sizes(settings))), settings)]
    if value:
        readings = list(_schemes(wanted, value, found))
        written = listed_text(value)
        if readings:
            return [agreeing(one, written) for one in readings]
        if written := listed_text(value, alone=True):
            return [_fitting(one.noting("equations in JSON"), settings) for one in equations.parse(written, wanted)]
    among = f" among {', '.join(list(value)[:6])}" if isinstance(value, dict) and value else ""
    if found.faults:
        raise list(found.faults.values())[-1]
    if len(groups(body)) == 1:
        raise SchemeFormatError(f"one table of numbers; {HOW}")
    raise SchemeFormatError(f"no three arrays of numbers here{among}; name them u, v and w, (R, entries) each")


def _schemes(wanted: Wanted, value: Any, found: Bindings, depth: int = 0) -> Iterator[Reading]:
    """The readings of all schemes in nested values; of several ways to find factors the first that fits together."""
    if depth > 3 or not isinstance(value, list | dict) or not value:
        return
    failure: SchemeFormatError | None = None
    settings = _settings(value, found)
    readings: list[Reading] = []
    documented = (C_TRANSPOSED, _LIES[wanted.format]) if wanted.format in _LIES else None
    for factors, note in _factors(wanted.format, value, found):
        try:
            reading = reading_of_unlabelled(wanted, factors, documented, others=wanted.format == "alphaevolve")
            readings.append(_fitting(reading.noting(note), settings))
            break
        except SchemeFormatError as error:
            failure = failure or error
    if isinstance(value, list) and (listed := sparse_products(_parts_of_products(value))):
        try:  # a list of three coefficients [i, j, value] has the form of a 3x3 matrix, too
            readings.append(_fitting(reading_of_coefficients(wanted, len(value), listed), settings))
        except SchemeFormatError:
            if not readings:
                raise
    if readings:
        yield dataclasses.replace(
            readings[0],
            candidates=tuple(chain.from_iterable(one.candidates for one in readings)),
            approximations=tuple(chain.from_iterable(one.approximations for one in readings)),
        )
        return
    if failure is not None and isinstance(value, dict):
        raise failure  # of factors that are named no other reading is meant
    items = value.values() if isinstance(value, dict) else value
    inner = [list(_schemes(wanted, item, Bindings(), depth + 1)) for item in items]
    if isinstance(value, dict) and any(inner):
        _check_settings(settings, {key for key, readings in zip(value, inner, strict=True) if readings})
    if failure is not None and not any(inner):
        raise failure
    if isinstance(value, list) and any(inner) and not all(inner):
        raise SchemeFormatError("a list of schemes with one that is none")
    yield from (_fitting(reading, settings) for found_here in inner for reading in found_here)


def _factors(name: str, value: list[Any] | dict[str, Any], found: Bindings) -> Iterator[tuple[list[Any], str]]:
    """Every way to find three factors in a value, and how.

    Raises:
        SchemeFormatError: one of them is set to something that is not understood, or a setting changes them.
    """
    if isinstance(value, dict):
        if name not in _LIES:
            yield from _named(value, found)
        return
    if name in _LIES:
        if three := _by_products(value) if name != "alphaevolve" else _arrays(value):
            yield three, ""
        return
    if (parts := _arrays(value)) is not None:
        yield parts, "three arrays in the order of the file"
    if (stacked := _by_products(value)) is not None:
        yield stacked, "factors product by product"
    array = as_array(value)
    if array is not None and (one := one_array(array)):
        yield one, "one array of all three factors"


def _named(value: dict[str, Any], found: Bindings) -> Iterator[tuple[list[Any], str]]:
    """The factors among values with names, which no other of them may change."""
    single = _arrays_in(value)
    arrays = numbered_together(single)
    letters = {role for names in ROLES for role in names} | {name.rstrip("0123456789") for name in arrays}
    for part in found.numbered:
        if part not in arrays and {part, part.lower()} & letters:
            raise SchemeFormatError(f"a matrix of {part} is set, but not of each product and factor")
    named = named_factors(arrays)
    present = {name.lower() for name in arrays}
    for name, fault in found.faults.items():
        key = name.lower() if arrays.keys() == single.keys() else name.lower().rstrip("0123456789_")
        others = [set(names) - {key} for names in zip(*ROLES, strict=True) if key in names]
        if any(one <= present or named is None for one in others):
            raise SchemeFormatError(f"{name}: {fault.message}", line=fault.line)
    if named is not None:
        known = {name for name, array in single.items() if array.ndim > 1} | found.used
        _check_settings(_settings(value, found), known)
        beside = {name for name in single.keys() - found.used if not _SIZES.fullmatch(name)}
        check_beside({name: single[name] for name in beside}, named[0])
        yield named[0], "; ".join(named[1])


def _fitting(reading: Reading, settings: dict[str, Any]) -> Reading:
    """A reading by what has the rank and the sizes, such as `shape: [2, 2, 3]`, that are said beside the factors.

    Raises:
        SchemeFormatError: nothing has.
    """
    ranks = {said for name, said in settings.items() if _RANK.fullmatch(name) and isinstance(said, int)}
    return reading.fitting(ranks, set(_sizes(settings)))


def _settings(value: Any, found: Bindings) -> dict[str, Any]:
    """What is said by name beside the factors in a value, and in the text that it stands in."""
    return found.values | (value if isinstance(value, dict) else {})


def _sizes(settings: dict[str, Any]) -> Iterator[Shape]:
    """The values of settings that are the sizes of a product: `shape: [2, 2, 3]`, or m, k and n."""
    for name, sizes in (*settings.items(), ("sizes", [settings.get(size) for size in "mkn"])):
        three = isinstance(sizes, list) and len(sizes) == 3 and all(type(size) is int and size > 0 for size in sizes)
        if _SIZES.fullmatch(name) and three:
            yield sizes[0], sizes[1], sizes[2]


def _words(value: Any) -> tuple[list[list[int]], list[str]]:
    """The bit masks in a list of three a product, or in three lists with the names of factors, and these names."""
    arrays = _arrays_in(value if isinstance(value, dict) else {"": value})
    names = [name for name, array in arrays.items() if array.ndim > 1]
    lists = factor_names(name for name, array in arrays.items() if array.ndim == 1)
    words: list[list[Any]] = []
    if len(names) == 1 and arrays[names[0]].shape[1:] == (3,):
        words = arrays[names[0]].tolist()
    elif lists and not names and len({len(arrays[name]) for name in lists}) == 1:
        words, names = np.stack([arrays[name] for name in lists], axis=1).tolist(), lists
    whole = all(type(word) is int and word >= 0 for row in words for word in row)
    return (words, names) if whole and any(word > 1 for row in words for word in row) else ([], [])


def _check_settings(value: dict[str, Any], known: Iterable[str]) -> None:
    for name in value.keys() - known:
        check_setting(name, value[name])


def _depth(value: Any) -> int:
    """Return how many lists stand within each other at the start of a value."""
    return 1 + (_depth(value[0]) if len(value) else 0) if isinstance(value, list) else 0


def _arrays_in(value: dict[str, Any]) -> dict[str, Array]:
    """The values that are arrays of numbers."""
    return {name: array for name, item in value.items() if (array := as_array(item)) is not None}


def _arrays(parts: list[Any]) -> list[Array] | None:
    """Three arrays of numbers, of two or three dimensions each; None where one is none."""
    found = [array for part in parts if (array := as_array(part)) is not None and array.ndim in (2, 3)]
    return found if len(parts) == len(found) == 3 else None


def _by_products(value: list[Any]) -> list[Any] | None:
    """The stacked factors of a list of products, each an object with u, v and w or a list of three."""
    parts = _parts_of_products(value)
    return _arrays([[part[slot] for part in parts] for slot in range(3)]) if parts else None


def _parts_of_products(value: list[Any]) -> list[list[Any]]:
    """The three parts of each product of a list, objects with u, v and w or lists of three; none of other lists."""
    if isinstance(value[0], dict):
        names = factor_names(value[0])
        if not names or not all(isinstance(item, dict) and set(value[0]) == set(item) for item in value):
            return []
        for item in value:
            _check_settings(item, names)
        return [[item[name] for name in names] for item in value]
    return value if all(isinstance(item, list) and len(item) == 3 for item in value) else []
