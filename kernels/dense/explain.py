"""The terms of a decision, for people and scripts."""

from __future__ import annotations

from typing import Any

from ..planning.profile import Profile
from .auto import Decision
from .options import chain_rows


def terms(decision: Decision, profile: Profile) -> list[dict[str, Any]]:
    """Every row of Table II for the chosen way, and for the plain product: arithmetic, bytes, intensity, seconds."""
    named = [("GEMM", decision.plain)]
    if decision.chosen.chain:
        named.append((decision.chosen.label(decision.choices), decision.chosen))
    return [
        {
            "way": name,
            "level": level,
            "stage": row.stage,
            "flops": float(row.flops),
            "bytes": float(row.bytes),
            "intensity": float(row.intensity) if row.bytes else 0.0,
            "seconds": float(row.seconds),
        }
        for name, option in named
        for level, row in chain_rows(option, decision.request, profile, decision.choices)
    ]
