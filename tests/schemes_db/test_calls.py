"""Calls of tables: wrong ones are refused with their reasons and nothing of a file is run; others have a value."""

import json
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.schemes_db.composition import best_composition, build

from ..refusal import has_value, refuses_as_said, values, wrong_calls
from ..reports import reading_of
from .archives import Evil, archive, header, json_with, maple, npy, npz_with, pickled, sample, zipped

pytestmark = pytest.mark.usefixtures("elsewhere")


def proven(scheme):
    """A scheme, which is proven first."""
    lcma.certify(scheme, ("exact", "randomized"))
    return scheme


def composed(shape):
    """A composition of schemes of Strassen and Laderman, of the rank that was promised."""
    part = best_composition(shape, {(2, 2, 2): (7, "strassen"), (3, 3, 3): (23, "laderman")})
    scheme = build(part, shape, lambda name: lcma.resolve(name)[0])
    assert scheme.rank == part.rank
    assert part.lines[0].startswith("x".join(map(str, sorted(shape))))
    return proven(scheme)


def rows(name):
    """The rows of the grid of C of a target, by letters."""
    return ["".join(".FLU"[kind] for kind in row) for row in lcma.parse_target(name).c]


def masked(content):
    """The rows of C of 2x2x2 or 2x2x3 with this mask, a text or an array, from a file."""
    if isinstance(content, str):
        Path("mask").write_text(content, encoding="utf-8", newline="")
    else:
        np.save("mask", content)
    file = "mask" if isinstance(content, str) else "mask.npy"
    return rows(f"2x2x{lcma.parse_target(f'mask:{file}').n}:mask({file})")


FILES = Evil, archive, header, json_with, maple, npy, npz_with, pickled, sample, zipped
NAMES = {one.__name__: one for one in (*FILES, composed, masked, proven, rows)} | {"json": json, "read": reading_of}
"""Names that the calls of both tables may use, beside those of their modules."""


@wrong_calls(__file__)
def test_a_wrong_call_is_refused_in_one_line(modules, call, error):
    refuses_as_said(modules, call, error, **NAMES)
    assert not Path("pickled-and-run").exists()


@values(__file__)
def test_a_call_has_its_value(modules, call, wanted):
    has_value(modules, call, wanted, **NAMES)
