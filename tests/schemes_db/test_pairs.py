"""Structured pairs of the literature: their targets, and files that number stored entries."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.errors import TargetError
from lcma.schemes_db.formats import render
from lcma.schemes_db.formats.layouts import named_target
from lcma.schemes_db.pairs import LETTERS, all_pairs, fits
from lcma.schemes_db.ring import Z2
from lcma.schemes_db.target import Target
from lcma.verify.report import judge

from ..reports import proven, reading_of
from .archives import npy

PUBLISHED = Path(__file__).parent / "published"
STRUCTURED = sorted((PUBLISHED / "structured").iterdir())


def matrix(letter, values, rows, cols):
    """A matrix of a structure from a general one."""
    full = values[:rows, :cols]
    if letter == "g":
        return full
    upper = np.triu(full)
    strict = np.triu(full, 1)
    return {"u": upper, "l": upper.T, "s": upper + strict.T, "k": strict - strict.T, "w": upper - strict.T}[letter]


@pytest.mark.parametrize(
    "pair", [pair for pair in all_pairs() if pair.omitted in ("", "c")], ids=lambda pair: pair.name
)
def test_a_target_computes_the_product_of_its_structured_matrices(pair):
    shape = (3, 3, 3) if pair.left != "g" else (3, 2, 3) if pair.gram else (2, 3, 3)
    m, k, n = shape
    target = Target.of_pair(pair, shape)
    rng = np.random.default_rng(1)
    a = matrix(pair.left, rng.integers(-9, 9, (4, 4)), m, k)
    b = a.T if pair.gram else matrix(pair.right, rng.integers(-9, 9, (4, 4)), k, n)
    stored_b = a if pair.gram and target.entries is not None else b
    c = np.zeros(m * n, dtype=int)
    for (p, q, s), value in zip(target.terms.tolist(), target.term_values.tolist(), strict=True):
        c[s] += value * a.ravel()[p] * stored_b.ravel()[q]
    wanted = target.kind_arrays[2].ravel() != 0
    assert (c == (a @ b).ravel())[wanted].all()
    assert not c[~wanted].any()
    assert target.block_recursive == (not {"s", "k", "w"} & set(pair.name[:2]))


def test_every_pair_has_a_name_that_reads_back():
    for shape in ((2, 2, 2), (3, 3, 3), (2, 3, 2), (2, 2, 3), (1, 2, 3)):
        size = "x".join(map(str, shape))
        for pair in all_pairs():
            if not fits(pair, shape):
                with pytest.raises(TargetError, match="must be square"):
                    lcma.parse_target(f"{size}:{pair.name}")
                continue
            try:
                target = lcma.parse_target(f"{size}:{pair.name}")
            except TargetError:
                continue  # a skew matrix of one entry, or no output left
            assert lcma.parse_target(target.name) == target
            if pair.scalars_only:
                assert re.fullmatch(rf"{size}:[{LETTERS}][{LETTERS}t][abc]?", target.name)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] if place % 3 else []) for place, path in enumerate(STRUCTURED)],
    ids=lambda path: path.name,
)
def test_structured_files_are_proven_by_their_name_and_without(path, tmp_path):
    target = named_target(path.stem)
    rank = int(re.search(r"rank(\d+)", path.name).group(1))
    anonymous = tmp_path / f"x{path.suffix}"
    shutil.copy(path, anonymous)
    for file in (path, anonymous):
        report = proven(file)
        assert report.scheme.rank == rank
        assert not report.over_z2_only
        if file is path:
            assert report.scheme.target == target
            assert reading_of(render(report.scheme, "lcma-json")).scheme.digest == report.scheme.digest


@pytest.mark.parametrize("path", STRUCTURED[::2], ids=lambda path: path.name)
def test_one_changed_number_of_a_structured_file_fails(path):
    table = np.load(path)
    rng = np.random.default_rng(2)
    for at in rng.choice(table.size // 2, 5, replace=False):
        wrong = table.copy()
        wrong[0, 2 * at] += 1
        reading = reading_of(npy(wrong), target=named_target(path.stem))
        assert not judge(reading, "wrong", ring=reading.scheme.ring).ok


def test_residues_of_stored_entries_are_read():
    # Three words a product mod 2, bit j for entry j: the naive scheme of a symmetric 2 x 2 matrix times a general one.
    words = []
    for i in range(2):
        for l in range(2):
            for j in range(2):
                words += [1 << (i + l), 1 << (2 * l + j), 1 << (2 * i + j)]
    proven(npy(np.array([words], dtype=np.uint64)), target=lcma.parse_target("2x2x2:sg"), ring=Z2)
