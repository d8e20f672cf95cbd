"""The text of the module that executes a linear map on one dtype."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

from ...errors import PlanError
from ...schemes_db.program import Coefficient, Terms
from ..dtypes import dtype_of
from .host import host
from .maps import LinearMap
from .schedule import schedule

SPARE_REGISTERS = 4
"""Registers reserved for the partial sums of the current step."""


@cache
def _runtime() -> str:
    return Path(__file__).with_name("runtime.py").read_text(encoding="utf-8")


def module_text(linear: LinearMap, dtype: str) -> str:
    """Return a self-contained module with one compiled function, `rows`.

    The shared part is included as text, so that the hash of the text covers the emitter too.

    Raises:
        PlanError: a coefficient is a fraction and the dtype is of integers.
    """
    kind, machine = dtype_of(dtype), host()
    lines = []
    for step in schedule(linear, machine.registers - SPARE_REGISTERS):
        if step.what == "load":
            lines.append(f"v{step.value} = load({step.value})")
        elif step.what == "make":
            lines.append(f"v{step.value} = s.lin({_terms(linear.lins[step.value - linear.sources], dtype)})")
        else:
            terms = linear.results[step.value]
            single = len(terms) == 1 and terms[0][0] == 1
            total = f"v{terms[0][1]}" if single else f"s.lin({_terms(terms, dtype)})"
            lines.append(f"store({step.value}, {total})")
    targets = len(linear.results)
    return (
        f"{_runtime()}\n\n"
        f"def body(s, load, store):\n"
        f'    """{linear.sources} sources, {targets} results, {linear.additions} additions, {dtype}."""\n'
        + "".join(f"    {line}\n" for line in lines)
        + f"\n\nfrom lcma.jit import njit  # noqa: E402\n\n"
        f"SIZE = {kind.numpy.itemsize}\n"
        f"PARTS = {kind.parts}\n"
        f"VECTOR_BYTES = {machine.vector_bytes}\n"
        f"sweep = straight_line({kind.component!r}, {linear.sources}, {targets}, VECTOR_BYTES, body)\n"
        f"rows = njit(nogil=True)(rows)\n"
    )


def _terms(terms: Terms, dtype: str) -> str:
    return ", ".join(f"({_coefficient(coefficient, dtype)}, v{src})" for coefficient, src in terms)


def _coefficient(value: Coefficient, dtype: str) -> str:
    if value == int(value):
        return repr(int(value))
    if dtype_of(dtype).exact:
        raise PlanError(f"coefficient {value} is not an integer: an {dtype} product needs a scheme over Z")
    assert isinstance(value, Fraction)  # a coefficient that is no integer is a Fraction
    return repr(float(value))
