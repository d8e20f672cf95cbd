"""Numbers that a conversion would lose: masks of masked arrays, and integers that int64 does not hold."""

from functools import partial

import numpy as np
import pytest

import lcma
from lcma.errors import SchemeFormatError
from lcma.kernels import kronecker
from lcma.kernels.plans.decisions import executor_for
from lcma.kernels.request import Request
from lcma.schemes_db import Q
from lcma.schemes_db.factor import Factor

from ..refusal import refuses

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


BIG = {
    "2^63 as uint64": one(np.uint64(1 << 63)),
    "2^64 - 1 as uint64": one(np.uint64((1 << 64) - 1)),
    "2^62 as uint64": one(np.uint64(1 << 62)),
    "2^62": one(1 << 62),
    "-2^62": one(-(1 << 62)),
    "-2^63": one(-(1 << 63)),
    "2^63 in a list": [[[1 << 63]]],
    "2^70": one(1 << 70),
    "a Python integer": np.array([[[1]]], object),
    "2^53 as a float": one(2.0**53),
    "a float": one(1.0),
    "a bool": one(True),
    "masked": np.ma.masked_array(one(1), mask=one(True)),
}


@pytest.mark.parametrize("what", BIG)
@pytest.mark.parametrize("place", range(3))
def test_coefficients_that_int64_does_not_hold_are_refused(what, place):
    target = lcma.parse_target("1x1x1")
    arrays = [one(1), one(1), one(1)]
    arrays[place] = BIG[what]
    with pytest.raises(SchemeFormatError):
        lcma.Scheme.from_arrays(target, *arrays)


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
    with pytest.raises(SchemeFormatError, match=r"denominators must be whole numbers from 1 to 2\^62"):
        lcma.Scheme.from_arrays(lcma.parse_target("1x1x1"), one(1), one(1), one(1), Q, denominators=(1, denominator, 1))
