"""The names by which a candidate is found again: in strategies, and in what was measured."""

from __future__ import annotations

Parameters = tuple[tuple[str, str | int], ...]
"""Sorted pairs of a name and a value, such as (("method", "tasks"),)."""

CandidateKey = tuple[str, str, str, Parameters]
"""Family, strategy, source and parameters of a candidate."""
