"""A certificate is a record, never a pass: executors prove what they run."""

import dataclasses
import json

import numpy as np
import pytest

import lcma
from lcma.errors import VerificationError
from lcma.kernels.codegen import certified as gate
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.formats import lcma_json
from lcma.verify import certify
from lcma.workbench.cli import main

from ..refusal import refuses_with


@pytest.fixture(autouse=True)
def nothing_is_proven_yet(monkeypatch):
    monkeypatch.setattr(gate, "_proven", set())


@pytest.fixture
def own(strassen):
    """Strassen's scheme in another basis: the shipped one is in the catalogue already."""
    return change_of_basis(strassen, [[1, 1], [0, 1]], np.eye(2, dtype=int), [[1, 0], [1, 1]])


@pytest.fixture
def wrong(strassen):
    """Strassen's scheme with one wrong sign."""
    w = strassen.w.dense.copy()
    w[0, 0, 0] *= -1
    return lcma.Scheme.from_arrays(strassen.target, strassen.u.dense, strassen.v.dense, w)


@pytest.fixture
def forged(strassen, wrong):
    """A certificate of the wrong scheme that fits it in every field."""
    return dataclasses.replace(certify(strassen), digest=wrong.digest)


def test_a_forged_pair_is_refused_and_so_is_the_bare_scheme_afterwards(wrong, forged):
    a = np.ones((4, 4))
    for scheme in ((wrong, forged), wrong, [(wrong, forged)]):
        refuses_with(VerificationError, "equations fail", lcma.matmul, a, a, scheme=scheme)


def test_a_changed_row_of_the_catalogue_is_refused(home, own, wrong, forged, tmp_path, capsys):
    a = np.arange(16.0).reshape(4, 4)
    np.save(tmp_path / "a.npy", a)
    command = ["run", "mine", str(tmp_path / "a.npy"), str(tmp_path / "a.npy"), "--out", str(tmp_path / "c.npy")]
    with Catalog.open() as catalog:
        catalog.add(own.replace(name="mine"), certify(own))
    assert np.allclose(lcma.matmul(a, a, scheme="mine"), a @ a)
    assert main(command) == 0
    (tmp_path / "c.npy").unlink()
    with Catalog.open() as catalog:
        document = lcma_json.render(wrong.replace(name="mine"), forged)
        values = (wrong.digest, document, own.digest)
        catalog._connection.execute("UPDATE schemes SET digest = ?, document = ? WHERE digest = ?", values)
    assert lcma.resolve("mine")[1].digest == wrong.digest
    refuses_with(VerificationError, "equations fail", lcma.matmul, a, a, scheme="mine")
    capsys.readouterr()
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert not (tmp_path / "c.npy").exists()


def test_a_row_whose_coefficients_alone_were_changed_is_called_damaged(home, own):
    with Catalog.open() as catalog:
        catalog.add(own.replace(name="mine"), certify(own))
        document = json.loads(catalog._found("mine")[1])
        block = next(iter(document["products"][0]["u"]))
        document["products"][0]["u"][block] = 5
        catalog._connection.execute(
            "UPDATE schemes SET document = ? WHERE digest = ?", (json.dumps(document), own.digest)
        )
    refuses_with(lcma.LcmaError, "is damaged", lcma.matmul, np.ones((4, 4)), np.ones((4, 4)), scheme="mine")


def test_a_scheme_is_proven_once_a_process_whatever_it_came_with(strassen, monkeypatch):
    proven = []

    def counting(scheme):
        proven.append(scheme.digest)
        return certify(scheme)

    monkeypatch.setattr(lcma.verify, "certify", counting)
    certificate = certify(strassen)
    for scheme in ((strassen, certificate), strassen, (strassen, None), "strassen"):
        gate.certified(scheme)
    assert proven == [strassen.digest]
