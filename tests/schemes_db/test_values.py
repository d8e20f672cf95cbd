"""What calls of this folder's functions give."""

from pathlib import Path

import numpy as np

import lcma
from lcma.schemes_db.composition import best_composition, build
from lcma.schemes_db.formats import parse_bytes

from ..refusal import has_value, values
from .archives import archive, maple, sample


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


def read(text, **options):
    """What a text or bytes hold."""
    (reading,) = parse_bytes(text.encode() if isinstance(text, str) else text, **options)
    return reading


@values(__file__)
def test_a_call_gives_what_the_table_says(modules, call, wanted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {one.__name__: one for one in (archive, composed, maple, masked, proven, read, rows, sample)}
    has_value(modules, call, wanted, **names)
