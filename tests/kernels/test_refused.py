"""What products refuse in one line: rows of refused.toml, removed strategies, numbers that conversions would lose."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.kernels import Request, decision_for, executor_for, kronecker, unregister_strategy
from lcma.kernels.block_low_rank import LowRank
from lcma.kernels.factored import factored_request
from lcma.kernels.plans.families import REMOVED, check_not_removed
from lcma.kernels.precision import fields_of
from lcma.kernels.request import structures_of
from lcma.kernels.ring import exact_ring
from lcma.schemes_db import Q
from lcma.schemes_db.factor import Factor
from lcma.schemes_db.symmetry import Triangle

from ..refusal import read_beside, refuses, refuses_with, value_of
from .cases import arguments, call, each
from .plugin import Plugin

TABLE = read_beside(__file__, "refused.toml")
PLANS, MASKS = TABLE.pop("plans"), TABLE.pop("masked")
CALLS = [(error, text, message) for error, calls in TABLE.items() for text, message in calls.items()]


def planned(device, words):
    """Plan a request: sizes, or a structure and a batch, an arithmetic, its fields, and a scheme and a strategy."""
    given, fields = arguments(words)
    by = {"scheme": fields.pop("scheme", "auto"), "levels": None, "strategy": fields.pop("strategy", None)}
    if "ring" in fields:
        fields["ring"] = exact_ring(fields["ring"])
    if isinstance(given[0], int):
        *sizes, name = given
        request = Request(*sizes, **{**fields_of(name), **fields}, device=device)
    else:
        request = factored_request(*given, **fields, device=device)
    return decision_for(request, **by)


@pytest.mark.parametrize(("error", "text", "message"), CALLS, ids=[text for _, text, _ in CALLS])
def test_a_wrong_call_is_refused(error, text, message):
    refuses_with(getattr(lcma.errors, error), message, call(text))


@pytest.mark.parametrize("name", MASKS)
def test_a_masked_operand_is_refused_with_the_call_that_fills_it(name):
    filled = rf"({name}|np\.ma\.stack\({name}\))\.filled\(0\)"
    for text in MASKS[name]:
        refuses(f"^{name} has a mask, which would be lost; fill it first: {filled}$", call(text))


@pytest.mark.parametrize(("request_", "message"), PLANS.items(), ids=PLANS)
def test_a_wrong_request_is_refused(request_, message):
    device, *words = request_.split()
    refuses_with(lcma.PlanError, message, planned, device, words)


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
    message = f"^strategy {name} was removed: .*; use {REMOVED[device, family, name]}$"
    refuses(message, decision_for, request, strategy=name)


def test_the_documentation_has_a_row_for_each():
    page = Path(__file__).parents[2] / "docs" / "benchmarks" / "removed.md"
    rows = [line.split("|")[1:5] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    found = {
        (place, kind.strip(), what.strip(" `"))
        for what, kind, places, figure in rows
        for place in places.strip().split(", ")
        if re.search("[0-9]", figure)
    }
    assert found >= REMOVED.keys()


def test_attention_and_registered_strategies_of_a_removed_name(registered):
    q = np.ones((4, 3))
    for scheme in (None, "strassen"):
        message = "strategy halving was removed: .*; use strips"
        refuses(message, lcma.causal_qk, q, q, strategy="halving", scheme=scheme)

    request = requests_of("cuda")["dense"]
    mine = registered(Plugin(np.matmul, device="cuda", name="scheme"))
    check_not_removed("scheme:fused", request)
    unregister_strategy(mine)
    refuses("was removed", check_not_removed, "scheme:fused", request)


SIZE = 6
PLAIN = np.arange(36.0).reshape(SIZE, SIZE)
MASKED = np.ma.masked_array(PLAIN, mask=np.eye(SIZE, dtype=bool))


def test_masked_operands_are_refused_with_the_call_that_fills_them():
    """Those of calls: refused.toml."""
    prepared = lcma.Prepared(PLAIN, SIZE)
    for name, product in (
        ("a", partial(executor_for(Request.of(PLAIN, PLAIN)).run, MASKED, PLAIN)),
        ("b", partial(executor_for(Request.of(PLAIN, PLAIN)).run, PLAIN, MASKED)),
        ("a", lambda: MASKED @ prepared),
        ("a", lambda: lcma.matmul(MASKED, prepared)),
        ("x", partial(kronecker.dft(SIZE).apply, MASKED.astype("complex64"))),
        ("a", partial(lcma.matmul, [np.ma.masked_array([1.0, 2.0]), [3.0, 4.0]], PLAIN[:2])),
        ("a", partial(lcma.matmul, [[1.0, np.ma.masked]], PLAIN[:2])),
    ):
        filled = rf"({name}|np\.ma\.stack\({name}\))\.filled\(0\)$"
        refuses(rf"^{name} has a mask, which would be lost; fill it first: {filled}", product)


def test_masked_tensors_are_refused():
    torch = pytest.importorskip("torch")
    from torch.masked import masked_tensor

    with pytest.warns(UserWarning, match="prototype"):
        masked = masked_tensor(torch.ones(2, 4, 4), torch.ones(2, 4, 4) > 0)
    plain = torch.ones(2, 4, 4)
    calls = {
        "a": partial(lcma.matmul, masked, plain),
        "b": partial(lcma.matmul, plain, masked, "strassen"),
        "k": partial(lcma.causal_qk, plain, masked),
        "query": partial(lcma.causal_attention, masked, plain, plain),
    }
    for name, product in calls.items():
        refuses(rf"^{name} has a mask, .*: {name}\.to_tensor\(0\)$", product)


def one(value):
    return np.array([[[value]]])


@each("value", __file__, "coefficients")
@pytest.mark.parametrize("place", range(3))
def test_coefficients_that_int64_does_not_hold_are_refused(value, place):
    arrays = [one(1), one(1), one(1)]
    arrays[place] = value_of("numpy", value)
    refuses_with(lcma.SchemeFormatError, ".", lcma.Scheme.from_arrays, lcma.parse_target("1x1x1"), *arrays)


def test_uint64_coefficients_and_common_denominators_are_kept():
    u, v, w = (factor.dense for factor in lcma.resolve("naive:2x2x2")[0].factors)
    scheme = lcma.Scheme.from_arrays(lcma.parse_target("2x2x2"), *(x.astype(np.uint64) for x in (u, v, w)))
    assert scheme == lcma.resolve("naive:2x2x2")[0]
    largest = lcma.Scheme.from_arrays(lcma.parse_target("1x1x1"), one(np.uint64((1 << 62) - 1)), one(1), one(1))
    assert largest.coefficients[-1] == (1 << 62) - 1
    first, second = Factor.from_dense(one(3), (1 << 61) - 1), Factor.from_dense(one(5), 1 << 61)
    both = first.stacked(second)
    assert both.large
    assert [value for r in range(2) for _, value in both.coefficients(r)] == [
        value for factor in (first, second) for _, value in factor.coefficients(0)
    ]


@pytest.mark.parametrize("denominator", [0, -2, 1.0, 1.5, 1 << 62, 1 << 63, np.uint64(1 << 63), "2", None])
def test_denominators_are_whole_numbers_that_fit(denominator):
    scheme = partial(lcma.Scheme.from_arrays, lcma.parse_target("1x1x1"), one(1), one(1), one(1), Q)
    message = r"denominators must be whole numbers from 1 to 2\^62"
    refuses_with(lcma.SchemeFormatError, message, scheme, denominators=(1, denominator, 1))
