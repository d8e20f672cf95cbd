"""Strategies that were removed are refused with their replacement, and the documentation has the figure of each."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.errors import PlanError
from lcma.kernels import Request, decision_for, unregister_strategy
from lcma.kernels.block_low_rank import LowRank
from lcma.kernels.dense.cpu import CpuVendor
from lcma.kernels.factored import factored_request
from lcma.kernels.plans.removed import REMOVED, check_not_removed
from lcma.kernels.request import structures_of
from lcma.kernels.ring import exact_ring
from lcma.schemes_db.symmetry import Triangle

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "removed.md"


def requests_of(device):
    dense = Request(64, 64, 64, "float32", device=device)
    return {
        "dense": dense,
        "exact": replace(dense, dtype="int64", ring=exact_ring("GF(7)")),
        "causal": Request(64, 64, 64, "float32", device=device, structures=structures_of(Triangle("left", False))),
        "structured": factored_request(LowRank(32, 32, 4), 8, "float32", device=device),
    }


@pytest.mark.parametrize(("device", "family", "name"), REMOVED)
def test_a_removed_name_is_refused_with_its_replacement(device, family, name):
    request = requests_of(device)[family]
    assert request.family == family
    with pytest.raises(PlanError, match=f"^strategy {name} was removed: .*; use {REMOVED[device, family, name]}$"):
        decision_for(request, strategy=name)


@pytest.mark.parametrize(("device", "family", "name"), REMOVED)
def test_the_documentation_has_a_row_for_each(device, family, name):
    rows = [line.split("|")[1:5] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    found = {
        (place, kind.strip(), what.strip(" `")): figure
        for what, kind, places, figure in rows
        for place in places.strip().split(", ")
    }
    assert any(char.isdigit() for char in found[device, family, name])


def test_the_products_of_attention_refuse_it_too():
    q = np.ones((4, 3))
    for scheme in (None, "strassen"):
        with pytest.raises(PlanError, match=r"strategy halving was removed: .*; use strips"):
            lcma.causal_qk(q, q, strategy="halving", scheme=scheme)


def test_a_registered_strategy_of_a_removed_name_is_accepted(registered):
    @dataclass(frozen=True)
    class Mine(CpuVendor):
        name: str = "scheme"
        device: str = "cuda"
        baseline: bool = False

    request = requests_of("cuda")["dense"]
    mine = registered(Mine())
    check_not_removed("scheme:fused", request)
    unregister_strategy(mine)
    with pytest.raises(PlanError, match="was removed"):
        check_not_removed("scheme:fused", request)
