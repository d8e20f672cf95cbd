"""The plans of 400 requests are the recorded ones, or listed differences: see golden/README.md."""

import json

import pytest

from lcma.schemes_db.algebra import tensor
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.shipped import shipped
from lcma.verify import certify

from .golden import differences
from .golden.chosen import chosen

ROWS = differences.load("requests.json")


def test_every_request_and_every_listed_difference_is_whole():
    assert len(ROWS) == len({row["id"] for row in ROWS}) == 400
    listed = differences.load("differences.json")
    names = [entry["request"] for entry in listed]
    assert len(names) == len(set(names))
    assert set(names) <= {row["id"] for row in ROWS}
    for entry in listed:
        assert all((entry["now"], entry["reason"].strip(), entry["command"].strip())), entry
    assert set(differences.load("plans.json")) == {row["id"] for row in ROWS}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("triangular", [False, True])
def test_plans_are_the_recorded_ones(device, triangular):
    if device == "cuda" and triangular:
        pytest.importorskip("torch")
    asked = [row for row in ROWS if (row["device"], row["triangle"] is not None) == (device, triangular)]
    assert len(asked) >= 40
    present = {row["id"]: chosen(row) for row in asked}
    found = differences.complaints(asked, differences.load("plans.json"), present, differences.load("differences.json"))
    assert not found, "\n".join([f"{len(found)} plans are not those that were recorded", *found])


def test_a_difference_is_noticed_unless_it_is_listed_and_a_stale_one_too():
    row, old = ROWS[0], differences.load("plans.json")[ROWS[0]["id"]]
    slower = old | {"seconds": old["seconds"] * (1 + 1e-5)}
    other = old | {"strategy": "vendor", "method": None, "levels": [], "schemes": []}
    refused = {"refused": "max_error", "message": "its error can reach 1"}

    def of(new, *listed):
        return differences.complaints([row], {row["id"]: old}, {row["id"]: new}, list(listed))

    assert of(old) == of(old | {"seconds": old["seconds"] * (1 + 1e-9)}) == []
    for new in (slower, other, refused):
        entry = {"request": row["id"], "now": differences.difference(old, new)}
        assert of(new, entry) == []
        (text,) = of(new)
        assert row["id"] in text
        assert str(old["ratio"]) in text
        (text,) = of(old, entry)
        assert "is listed as different, and is not" in text
    (text,) = of(other, {"request": row["id"], "now": differences.difference(old, slower)})
    assert "in another way" in text


@pytest.mark.slow
def test_plans_depend_on_nothing_of_the_machine(home, strassen, new_process):
    """Another home, with a scheme of the user's own in it; another number of threads; BLAS for another processor."""
    pytest.importorskip("torch")
    scheme = tensor(strassen, shipped("2x3x3-r15").scheme)  # would change 38 plans, were it considered
    with Catalog.open() as catalog:
        catalog.add(scheme, certify(scheme))
    machine = {"LCMA_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "3", "OPENBLAS_THREAD_TIMEOUT": "4"}
    code = "from lcma.tests.kernels.golden.chosen import plans; print(plans())"
    made = json.loads(new_process(code, OPENBLAS_CORETYPE="Haswell", **machine))
    assert not differences.complaints(ROWS, differences.load("plans.json"), made, differences.load("differences.json"))
