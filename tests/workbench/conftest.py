"""Fixtures of the command: a site of many kinds of schemes, and headless Chromium."""

import fcntl
import json
import os
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lcma
from lcma.schemes_db import Provenance, Scheme, parse_ring, parse_target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.catalog import Catalog
from lcma.verify import certify
from lcma.workbench.bench import contest

from . import chromium

HOSTILE = "<script>alert(1)</script>\"'&</title><img src=x onerror=alert(2)>\u202e\x01 --> {{ 7 * 7 }}"


def certified(catalog, scheme, **provenance):
    scheme = scheme.replace(provenance=Provenance(**provenance)) if provenance else scheme
    catalog.add(scheme, certify(scheme))
    return scheme


def renamed(catalog, scheme, name):
    """Give a row a name that `add` would refuse, as some other program may."""
    document = json.loads(catalog._found(scheme.digest)[1])
    values = (name, json.dumps({**document, "name": name}), scheme.digest)
    catalog._connection.execute("UPDATE schemes SET name = ?, document = ? WHERE digest = ?", values)


def fraction():
    """The classical 2x2x2 scheme with a11 b11 made of -1/2 (2 a11) b11 + 2 a11 b11: rank 9 over Q."""
    classical = naive(parse_target("2x2x2"))
    u, v, w = (np.concatenate([factor.dense[:1], factor.dense]) for factor in classical.factors)
    assert u[0, 0, 0] == v[0, 0, 0] == 1
    u[0] *= 2
    w *= 2
    w[0] //= -2
    w[1] *= 2
    return Scheme.from_arrays(classical.target, u, v, w, parse_ring("Q"), denominators=(1, 1, 2), name="fractional")


@pytest.fixture(autouse=True)
def _nothing_is_measured(flat_rates, monkeypatch):
    """Plans rest on the same figures everywhere; contests do not collect the garbage of all tests before them."""
    monkeypatch.setattr(contest, "gc", SimpleNamespace(collect=int))


@pytest.fixture
def stored(tmp_path):
    """stored(family, matrix): a factored matrix in k.npz and k.safetensors, inputs in both layouts, the folder."""

    def store(family, matrix):
        for suffix in ("npz", "safetensors"):
            family.save(tmp_path / f"k.{suffix}", matrix)
        x = np.random.default_rng(0).standard_normal((50, 24)).astype(np.float32)
        np.save(tmp_path / "first.npy", x)
        np.save(tmp_path / "last.npy", np.ascontiguousarray(x.T))
        return matrix, x, tmp_path

    return store


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of a site of all kinds of schemes, and what its build returned; one worker builds it for all."""
    pytest.importorskip("jinja2")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "built"
        if not done.exists():
            done.write_bytes(pickle.dumps(built_in(folder)))
        return folder, pickle.loads(done.read_bytes())


def built_in(folder):
    """Build a site of the shipped schemes, a hostile one, a huge one, one over Z2, a family and measurements.

    Schemes of more than 400 nonzeros are in our own format alone, as those beyond the limit of a site.
    """
    from lcma.workbench.site import build

    with Catalog.open(folder / "catalog.db") as catalog:
        strassen = lcma.resolve("strassen", catalog)[0]
        origin = {"kind": "import", "source": HOSTILE * 50, "remark": HOSTILE * 50, "relation": HOSTILE}
        renamed(catalog, certified(catalog, naive(parse_target("2x3x4")), **origin), HOSTILE)
        renamed(catalog, certified(catalog, naive(parse_target("12x12x12"))), "x" * 5000)
        certified(catalog, Scheme(strassen.target, *strassen.reduced_mod(2), parse_ring("Z2"), "mod 2"))
        certified(catalog, fraction(), kind="composition", parents=(strassen.digest, "f" * 64), relation="a split")
        squared = lcma.resolve("strassen*strassen", catalog)[0]
        certified(catalog, squared, kind="composition", parents=(strassen.digest,), relation="tensor product")
        masked = lcma.resolve("strassen*eca-stage1", catalog)[0]
        certified(catalog, masked.replace(name="masked"))
        for number in range(100):
            catalog.measure(strassen.digest, HOSTILE, number / 7, "x", "<b>host", {"dtype": "f", "size": [2, 3, 4]})
        rows = folder / "rows"
        rows.mkdir()
        shutil.copy(Path(__file__).with_name("site_rows.jsonl"), rows / "causal-cpu.jsonl")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "EVERY_FORMAT_LIMIT", 400)
            return build.build_site(folder / "out", catalog, results=rows)


@pytest.fixture
def few_pages(monkeypatch):
    """Sites prove the user's schemes, and have pages of the catalogue's first six and maps of few formats: a tenth."""
    pytest.importorskip("jinja2")
    from lcma.workbench.scheme_record import SchemeRecord
    from lcma.workbench.site import build, heat

    listing, prove = build.listing, SchemeRecord.prove
    monkeypatch.setattr(SchemeRecord, "prove", lambda row: prove(row) if row.entry.origin == "user" else None)
    monkeypatch.setattr(heat, "SIZES", {})
    monkeypatch.setattr(heat, "FEWER_SIZES", range(2, 5))
    monkeypatch.setattr(build, "listing", lambda *arguments, **keywords: listing(*arguments, **keywords)[:6])


@pytest.fixture
def keep():
    """Certify a scheme and add it to a catalogue; keywords are its provenance."""
    return certified


@pytest.fixture
def fractional():
    """A scheme over Q whose coefficients are not all 1 and -1."""
    return fraction()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Headless Chromium; the test is skipped where it is not installed."""
    if not chromium.CHROMIUM:
        pytest.skip("chromium is not installed: apt-get install chromium")
    profile = tmp_path_factory.mktemp("chromium")
    browser = chromium.Browser(profile)
    yield browser
    browser.close()
    shutil.rmtree(profile, ignore_errors=True)
