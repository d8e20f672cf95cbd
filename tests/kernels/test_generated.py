"""Generated kernels against their plain twins, the folder that stores them, and the proof of what executors run."""

import dataclasses
import hashlib
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import lcma
from lcma.kernels.causal.candidates import scheme_program
from lcma.kernels.codegen import certified as gate
from lcma.kernels.codegen import maps, native
from lcma.kernels.codegen.maps import LinearMap, maps_of, pieces
from lcma.kernels.codegen.modules import load
from lcma.kernels.codegen.naive import apply_map
from lcma.kernels.codegen.rows import rows_code, rows_kernel
from lcma.kernels.cpu.mapping import blocks_at
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.flatten import flatten
from lcma.schemes_db.formats import lcma_json
from lcma.schemes_db.symmetry import Triangle

from ..refusal import refuses, refuses_with

MAP = LinearMap(
    3, (((1, 0), (-1, 2)), ((-1, 3), (3, 1))), (((1, 4), (1, 0)), ((-1, 1),), ((1, 3),), ((-2, 0), (-1, 4)))
)


def run_rows(linear, sources, target, streaming=0, shapes=None):
    """The compiled map on the blocks sources (S, h, w), into target (T, h, lead)."""
    dtype = sources.dtype
    _, height, width = sources.shape
    spare = np.zeros((2, width), dtype)
    blocks = *sources, *target
    addresses, steps = [block.ctypes.data for block in blocks], [block.strides[0] for block in blocks]
    table = blocks_at(addresses, steps, shapes or (1, height, width))
    spares = (row.ctypes.data for row in spare)
    rows_kernel(linear, dtype.name)(table.ctypes.data, *spares, width, bool(streaming), 0, height)
    assert not spare[0].any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("width", [1, 7, 16, 37, 64])
@pytest.mark.parametrize("streaming", [0, 1])
def test_rows_equal_the_plain_twin(draw, dtype, width, streaming):
    sources = draw((3, 5, width), dtype)
    raw = np.zeros((4, 5, 64 + 8), dtype)
    target = raw[:, :, :64]
    run_rows(MAP, sources, target, streaming)
    for actual, expected in zip(target, apply_map(MAP, sources), strict=True):
        np.testing.assert_allclose(actual[:, :width], expected, rtol=1e-5, atol=1e-5)
        assert not actual[:, width:].any()
    assert not raw[:, :, 64:].any()


def test_blocks_cut_short_read_zeros_and_triangles_hide_their_other_half():
    sources = np.ones((3, 6, 20), np.float32)
    target = np.full((4, 6, 20), 7, np.float32)
    cut = [(1, 6, 20), (1, 4, 13), (1, 6, 0), (1, 5, 20), (1, 6, 9), (1, 6, 20), (1, 6, 20)]
    run_rows(MAP, sources, target, shapes=cut)
    kept = sources.copy()
    kept[1, 4:], kept[1, :, 13:], kept[2] = 0, 0, 0
    expected = apply_map(MAP, kept)
    np.testing.assert_array_equal(target[0, :5], expected[0][:5])
    np.testing.assert_array_equal(target[1, :, :9], expected[1][:, :9])
    np.testing.assert_array_equal(target[3], expected[3])
    assert (target[0, 5:] == 7).all()
    assert (target[1, :, 9:] == 7).all()
    rng = np.random.default_rng(1)
    sources = rng.standard_normal((3, 19, 19))
    kept = sources.copy()
    kept[0], kept[1] = np.tril(sources[0]), np.triu(sources[1])
    sources[0][np.triu_indices(19, 1)] = np.nan
    sources[1][np.tril_indices(19, -1)] = np.nan
    target = np.full((4, 19, 19), np.nan)
    cut = [(kind, 19, 19) for kind in (2, 3, 1, 1, 2, 3, 1)]
    run_rows(MAP, sources, target, shapes=cut)
    expected = apply_map(MAP, kept)
    expected[1], expected[2] = np.tril(expected[1]), np.triu(expected[2])
    np.testing.assert_allclose(target, expected, atol=1e-12)


def test_fractions_are_for_floats_only():
    """Products with fractions: test_matmul.py."""
    half = LinearMap(1, (), (((Fraction(1, 2), 0),),))
    refuses("int64 product needs a scheme over Z", rows_kernel, half, "int64")


def test_large_maps_are_cut_into_pieces(monkeypatch, strassen):
    monkeypatch.setattr(maps, "MAX_TARGETS", 3)
    whole = maps_of(lcma.program_of(strassen)).left
    blocks = np.random.default_rng(2).integers(-9, 9, (4, 3, 3))
    parts = pieces(whole)
    assert [len(part.results) for part in parts] == [2, 2, 3]
    expected = apply_map(whole, blocks)
    for part in parts:
        for place, actual in zip(part.results, apply_map(part.map, blocks[list(part.sources)]), strict=True):
            np.testing.assert_array_equal(actual, expected[place])


def test_flattened_levels_compute_the_nested_product(strassen, classical):
    """Halves need a program on their grid: test_torch_causal.py."""
    outer, inner = lcma.program_of(strassen), lcma.program_of(classical("1x2x3"))
    flat = flatten(outer, inner)
    assert flat.target.shape == (2, 4, 6)
    assert flat.rank == 42
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 9, (4, 8)), rng.integers(-9, 9, (8, 12))
    np.testing.assert_array_equal(lcma.evaluate(flat, a, b), a @ b)


@pytest.mark.parametrize(("side", "upper"), [(side, upper) for side in ("out", "left", "right") for upper in (0, 1)])
def test_flattened_halves_are_proven_for_the_finer_triangle(side, upper):
    outer = scheme_program(lcma.resolve("eca-stage1")[0], Triangle(side, bool(upper)))
    halves = {kind: scheme_program(lcma.resolve("2x2x2-tri-left-r6")[0], Triangle(kind.side, kind.of_upper))
              for kind in {op.kind for op in outer.products if op.kind.half}}  # fmt: skip
    flat = flatten(outer, lcma.program_of(lcma.resolve("strassen")[0]), halves)
    assert flat.target == lcma.parse_target(f"8x8x8:tri-{side}{':upper' * upper}")
    assert sum(op.kind.half for op in flat.products) == 4 * 10
    assert flat.rank == 24 * 7 + 10 * 6
    proof = lcma.check_program(flat)
    assert proof.wrong == 0
    assert (proof.proof.full, proof.proof.half) == (24 * 7 + 10 * 2, 4 * 10)


def test_code_on_the_disk_is_compiled_once_by_many_threads_and_written_anew(home, monkeypatch):
    text = "VALUE = 41 + 1\n"
    path = home / "cache" / "kernels" / hashlib.sha256(text.encode()).hexdigest()[:24] / "kernel.py"
    path.parent.mkdir(parents=True)
    path.write_text("this is not python")
    assert load(text).VALUE == 42
    assert path.read_text() == text
    texts = []
    compiling = native._compile
    monkeypatch.setattr(native, "_compile", lambda text: texts.append(text) or compiling(text))
    code = rows_code(MAP, "float32")
    assert rows_code(MAP, "float32") == code
    assert len(texts) == 1
    (path,) = (home / "cache" / "kernels").rglob("rows.o")
    for damaged in (b"", path.read_bytes()[:-8], b"x" + path.read_bytes()[1:]):
        path.write_bytes(damaged)
        assert rows_code(MAP, "float32") == code
    assert len(texts) == 4
    rows_code(MAP, "float64")
    assert len(texts) == 5
    texts.clear()
    linear = LinearMap(2, (), (((5, 0), (-7, 1)),))
    with ThreadPoolExecutor(16) as threads:
        kernels = [threads.submit(rows_kernel, linear, "float32") for _ in range(16)]
        assert len({id(kernel.result()) for kernel in kernels}) == 1
    assert len(texts) == 1


SCRIPT = """
import sys, numpy as np
import lcma.kernels, lcma.kernels.request
assert not {"numba", "torch", "llvmlite", "ortools", "sympy"} & set(sys.modules), sorted(sys.modules)
from lcma.kernels import matmul
a = np.arange(25, dtype=np.float64).reshape(5, 5)
np.testing.assert_allclose(matmul(a, a, "naive:2x2x1"), a @ a)
assert "numba" not in sys.modules  # importing it takes longer than compiling these sums
"""


@pytest.mark.parametrize("damage", ["none", "corrupt", "blocked"])
def test_a_new_process_runs_whatever_the_cache_holds(home, new_process, damage):
    """Also: importing kernels loads nothing heavy."""
    if damage == "corrupt":
        new_process(SCRIPT)
        compiled = list((home / "cache" / "kernels").rglob("rows.o"))
        assert compiled
        for path in compiled:
            path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    if damage == "blocked":
        (home / "cache").write_text("a file where a folder should be")
    new_process(SCRIPT)


@pytest.fixture(autouse=True)
def nothing_is_proven_yet(monkeypatch):
    monkeypatch.setattr(gate, "_proven", set())


@pytest.fixture
def forged(strassen):
    """Strassen's scheme with one wrong sign, and a certificate that fits it in every field."""
    w = strassen.w.dense.copy()
    w[0, 0, 0] *= -1
    wrong = lcma.Scheme.from_arrays(strassen.target, strassen.u.dense, strassen.v.dense, w)
    return wrong, dataclasses.replace(lcma.certify(strassen), digest=wrong.digest)


def test_a_forged_pair_is_refused_and_so_is_the_bare_scheme_afterwards(forged):
    a = np.ones((4, 4))
    for scheme in (forged, forged[0], [forged]):
        refuses_with(lcma.VerificationError, "equations fail", lcma.matmul, a, a, scheme=scheme)


def test_a_changed_row_of_the_catalogue_is_refused(home, strassen, forged, tmp_path, run):
    wrong, certificate = forged
    # In another basis: the shipped one is in the catalogue already.
    own = change_of_basis(strassen, [[1, 1], [0, 1]], np.eye(2, dtype=int), [[1, 0], [1, 1]])
    a = np.arange(16.0).reshape(4, 4)
    np.save(tmp_path / "a.npy", a)
    with lcma.Catalog.open() as catalog:
        catalog.add(own.replace(name="mine"), lcma.certify(own))
    assert np.allclose(lcma.matmul(a, a, scheme="mine"), a @ a)
    with lcma.Catalog.open() as catalog:
        document = lcma_json.render(wrong.replace(name="mine"), certificate)
        values = (wrong.digest, document, own.digest)
        catalog._connection.execute("UPDATE schemes SET digest = ?, document = ? WHERE digest = ?", values)
    assert lcma.resolve("mine")[1].digest == wrong.digest
    refuses_with(lcma.VerificationError, "equations fail", lcma.matmul, a, a, scheme="mine")
    run.refused(1, "", "run", "mine", *[tmp_path / "a.npy"] * 2, "--out", tmp_path / "c.npy")
    assert not (tmp_path / "c.npy").exists()


def test_a_scheme_is_proven_once_a_process_whatever_it_came_with(strassen, monkeypatch):
    proven, certificate = [], lcma.certify(strassen)
    monkeypatch.setattr(lcma.verify, "certify", lambda scheme: proven.append(scheme.digest) or certificate)
    for scheme in ((strassen, certificate), strassen, (strassen, None), "strassen"):
        gate.certified(scheme)
    assert proven == [strassen.digest]
