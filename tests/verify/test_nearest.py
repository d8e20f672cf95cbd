"""The one wrong coefficient of a scheme is found, whatever its factor and ring."""

import numpy as np
import pytest

import lcma
from lcma.schemes_db import Q
from lcma.schemes_db.scheme import Scheme
from lcma.verify.nearest import nearest

from .faults_of_schemes import changed


@pytest.mark.parametrize("seed", range(8))
def test_one_changed_coefficient_is_named(seed):
    rng = np.random.default_rng(seed)
    scheme = lcma.resolve(("strassen", "laderman", "eca-stage2")[seed % 3])[0]
    slot = int(rng.integers(3))
    at = [tuple(map(int, place)) for place in np.argwhere(scheme.factors[slot].dense)]
    r, i, j = at[rng.integers(len(at))]
    old = int(scheme.factors[slot].dense[r, i, j])
    found = nearest(changed(scheme, slot, r, i * scheme.factors[slot].cols + j, 2))
    block = f"{'abc'[slot]}{i + 1}{j + 1}"
    assert found == f"one coefficient from right: product {r + 1}, {block} should be {old}, not {old + 2}"


def test_over_z2_and_q_and_where_two_are_wrong(strassen):
    residues = changed(strassen.over_z2(), 1, 3, 0, 1)
    assert nearest(residues) == "one coefficient from right: product 4, b11 should be 1, not 0"
    halves = Scheme.from_arrays(strassen.target, *(f.dense for f in strassen.factors), Q, denominators=(2, 1, 1))
    assert nearest(halves) == ""
    assert nearest(changed(changed(strassen, 0, 0, 0, 1), 2, 6, 0, 1)) == ""
    assert nearest(strassen) == ""
