"""The text of the module that works a linear map on one dtype."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

from ...errors import PlanError
from ...schemes_db.program import Coefficient, Terms
from .maps import LinearMap

DTYPES = {"float32": 4, "float64": 8, "int64": 8}


@cache
def _runtime() -> str:
    return Path(__file__).with_name("runtime.py").read_text(encoding="utf-8")


def module_text(linear: LinearMap, dtype: str) -> str:
    """A self-contained module with one compiled function, `rows`.

    The shared part stands in it as text, so that the hash of the text covers the emitter too.

    Raises:
        PlanError: a coefficient is a fraction and the dtype holds integers only.
    """
    lines = []
    for i, terms in enumerate(linear.lins):
        lines.append(f"    v{linear.sources + i} = s.lin({_terms(terms, dtype)})")
    results = []
    for terms in linear.results:
        single = len(terms) == 1 and terms[0][0] == 1
        results.append(f"v{terms[0][1]}" if single else f"s.lin({_terms(terms, dtype)})")
    sources = "".join(f"v{i}, " for i in range(linear.sources))
    listing = "".join(f"        {result},\n" for result in results)
    return (
        f"{_runtime()}\n\n"
        f"def body(s, blocks):\n"
        f'    """{linear.sources} sources, {len(linear.results)} results, {linear.additions} additions, {dtype}."""\n'
        f"    {sources}= blocks\n" + "".join(line + "\n" for line in lines) + f"    return [\n{listing}    ]\n\n\n"
        f"from lcma.jit import njit  # noqa: E402\n\n"
        f"SIZE = {DTYPES[dtype]}\n"
        f"sweep = straight_line({dtype!r}, {linear.sources}, {len(linear.results)}, body)\n"
        f"rows = njit(nogil=True)(rows)\n"
    )


def _terms(terms: Terms, dtype: str) -> str:
    return ", ".join(f"({_coefficient(coefficient, dtype)}, v{src})" for coefficient, src in terms)


def _coefficient(value: Coefficient, dtype: str) -> str:
    if value == int(value):
        return repr(int(value))
    if dtype == "int64":
        raise PlanError(f"coefficient {value} is not an integer: an int64 product needs a scheme over Z")
    assert isinstance(value, Fraction)  # what is not an integer is a Fraction
    return repr(float(value))
