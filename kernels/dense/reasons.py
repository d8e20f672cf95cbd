"""Reasons why strategies of dense products cannot run a request."""

from __future__ import annotations

from ...schemes_db.program import Program
from ..request import Request


def is_classical(program: Program) -> bool:
    """Return whether a program is one product, the classical 1x1x1."""
    return program.target.shape == (1, 1, 1) and program.target.is_general and program.rank == 1


def reason_against_single(request: Request, subject: str) -> str | None:
    """Return the reason why a request is not for one product of plain matrices, or None; `subject` ends with a verb."""
    if not request.is_dense:
        return "the operands are structured"
    if request.batch:
        return f"{subject} of one product, not of a batch"
    return "the product is empty" if 0 in request.shape else None
