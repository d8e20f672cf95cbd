"""Suite "exact": its rows, and the peers' programs by a stand-in that speaks as they do."""

import sys

import numpy as np
import pytest

from lcma.errors import PlanError, VerificationError
from lcma.kernels import BitMatrix
from lcma.kernels.exact.naive import naive_bits
from lcma.workbench.bench import exact_peers
from lcma.workbench.bench.exact_peers import FFLAS, FLINT, M4RI, Peer, compiled
from lcma.workbench.bench.suites import exact

from ..refusal import refuses

STAND_IN = """
import sys
import numpy as np
a, b, m, k, n, modulus, wrong = sys.argv[1:8]
m, k, n, modulus = int(m), int(k), int(n), int(modulus)
left, right = np.fromfile(a, np.int64).reshape(m, k), np.fromfile(b, np.int64).reshape(k, n)
print("ready", flush=True)
for line in sys.stdin:
    if line == "multiply\\n":
        c = left @ right % modulus + (wrong == "wrong")
        print("0.25", flush=True)
    else:
        c.tofile(line.strip().split(" ", 1)[1])
        print("done", flush=True)
"""


def stand_in(a, b, variant=""):
    sizes = len(a), len(b), b.shape[1]
    return Peer([sys.executable, "-c", STAND_IN], a, b, sizes, 101, variant)


def operands():
    rng = np.random.default_rng(0)
    return rng.integers(0, 101, (3, 5)), rng.integers(0, 101, (5, 4))


def test_a_peer_multiplies_on_request():
    a, b = operands()
    with stand_in(a, b) as peer:
        assert peer.multiply() == 0.25
        assert peer.multiply() == 0.25
        assert (peer.product() == a @ b % 101).all()


def test_a_peer_that_ends_is_told():
    a, b = operands()
    refuses("ended with status 3", Peer, [sys.executable, "-c", "raise SystemExit(3)"], a, b, (3, 5, 4), 101)
    code = "print('ready', flush=True); input(); print('soon', flush=True)"
    with Peer([sys.executable, "-c", code], a, b, (3, 5, 4), 101) as peer:
        refuses("'soon' in place of seconds", peer.multiply)
        refuses("ended with status", peer.multiply)


def test_a_library_that_is_not_there_gets_one_line(home, monkeypatch):
    monkeypatch.setattr(exact_peers.shutil, "which", lambda name: None)
    absent = M4RI._replace(links="-lm4ri-of-a-test")
    refuses(r"^M4RI is left out: no compiler is named cc; apt install libm4ri-dev g\+\+$", compiled, absent)


@pytest.mark.parametrize("library", [M4RI, FLINT])  # FFLAS-FFPACK's takes long to compile; its rows are checked
def test_real_programs_give_the_product(library, home):
    try:
        program = compiled.__wrapped__(library)
    except PlanError as error:
        pytest.skip(str(error))
    if library == M4RI:
        a, b = BitMatrix.random(70, 130, seed=1), BitMatrix.random(130, 65, seed=2)
        with Peer([str(program)], a.words, b.words, (70, 130, 65), 2) as peer:
            assert peer.multiply() >= 0
            assert (peer.product() == naive_bits(a, b).words).all()
        return
    a, b = operands()
    with Peer([str(program)], a, b, (3, 5, 4), 101) as peer:
        assert peer.multiply() >= 0
        assert (peer.product() == a @ b % 101).all()


def test_a_row_is_figures_of_both(monkeypatch):
    monkeypatch.setattr(exact, "compiled", lambda library: "program")
    monkeypatch.setattr(exact, "Peer", lambda command, a, b, sizes, modulus, variant: stand_in(a, b, variant))
    figures = exact._over_library(FFLAS, 24, "GF(101)", 2, 0, lambda text: None)
    assert set(figures["ms"]) == {"FFLAS-FFPACK double", "FFLAS-FFPACK float", "ours"}
    assert figures["ms"][figures["baseline"]] == 250
    assert figures["ratio"] == pytest.approx(250 / figures["ms"]["ours"])


def test_a_wrong_product_ends_the_row(monkeypatch):
    monkeypatch.setattr(exact, "compiled", lambda library: "program")
    monkeypatch.setattr(exact, "Peer", lambda command, a, b, sizes, modulus, variant: stand_in(a, b, "wrong"))
    with pytest.raises(VerificationError, match="nothing was timed"):
        exact._over_library(FLINT, 24, "GF(101)", 2, 0, lambda text: None)


def test_small_rows_run():
    leaf = exact._over_leaf(256, "GF(2)", 2, 0, lambda text: None)
    assert leaf["same_call"]
    assert leaf["ratio"] == 1.0
    assert exact._two_threads(256, "GF(2)", 2, 0, lambda text: None)["ratio"] > 0
    integers = exact._integers(192, 31, 2, 0, lambda text: None)
    assert integers["out_dtype"] == "int128"
    assert integers["over_numpy"] > 0
    assert integers["ratio"] == pytest.approx(1 / integers["time_over_float64"])
