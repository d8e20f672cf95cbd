"""The planners' choice for one recorded request: the only file here that knows the planners' own interface.

Everything that a planner takes from the machine, from the catalogue or from the user's folders comes from
the request's row and from the files of this folder.
"""

from __future__ import annotations

import atexit
import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from lcma.errors import PlanError
from lcma.kernels import machine, memory
from lcma.kernels.causal import choose as causal
from lcma.kernels.causal import cuda as causal_cuda
from lcma.kernels.cpu import batch, blas
from lcma.kernels.decide import auto
from lcma.kernels.decide.candidates import Choices, choices
from lcma.kernels.gpu import choose as gpu
from lcma.kernels.gpu import spread
from lcma.kernels.profile import Profile
from lcma.kernels.request import Layout, Request
from lcma.kernels.workspace import shared_pool
from lcma.schemes_db import Scheme
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.schemes_db.symmetry import Triangle

HERE = Path(__file__).parent
Row = dict[str, Any]

_HOME = TemporaryDirectory(prefix="lcma-golden-")
"""In place of the user's folders: nobody else's programs, profiles and measurements are read."""
atexit.register(_HOME.cleanup)

DIGITS = 9
"""Of recorded seconds: more than libraries of elementary functions agree on."""

LIMITS = {"error can reach": "max_error", "of workspace": "max_workspace", "entries up to": "max_abs"}
"""What a refusal says, and the limit that it names."""


def chosen(row: Row) -> Row:
    """What is planned for a request.

    `strategy` is vendor, scheme, strips, halving or kernel; `method` how levels are run; `levels` has format
    and rank of the schemes of every level, outermost first, several where they are flattened into one level
    ("FULL | HALF" where half products have their own scheme), and `schemes` their names. `seconds` is the
    price by which the plan was ranked, `plan_seconds` that which the plan states, `vendor_seconds` the price
    of the vendor's whole product, `ratio` how many times as fast as that the plan is; None: not known. Where
    nothing can run, `refused` is the limit and `message` the reason.
    """
    with _machine(row):
        try:
            if row["triangle"] is None:
                return _on_gpu(row) if row["device"] == "cuda" else _on_cpu(row)
            return _triangular_on_gpu(row) if row["device"] == "cuda" else _triangular_on_cpu(row)
        except PlanError as error:
            refused = next((limit for words, limit in LIMITS.items() if words in str(error)), "other")
            return {"refused": refused, "message": str(error)}


def considered() -> dict[str, list[str]]:
    """The names of the schemes that planners consider of a fresh catalogue, by use, in their order."""
    names = {shipped(name).scheme.digest: name for name in shipped_names()}
    with patch.dict("os.environ", LCMA_HOME=_HOME.name):
        general = dict.fromkeys(names[turn.source] for choice in choices().entries for turn in choice.turns)
    named = (causal_cuda.SCHEME, causal_cuda.SPLIT)
    return {"general": list(general), "triangular": list(dict.fromkeys([*causal.steady_names(), *named]))}


@lru_cache(maxsize=1)
def frozen() -> dict[str, tuple[Scheme, ...]]:
    """The schemes of schemes.json by use.

    Raises:
        LookupError: one is not shipped any more as it was.
    """
    listed = json.loads((HERE / "schemes.json").read_text(encoding="utf-8"))
    for row in (*listed["general"], *listed["triangular"]):
        if row["name"] not in shipped_names() or shipped(row["name"]).scheme.digest != row["digest"]:
            raise LookupError(f"{row['name']} is not shipped any more as schemes.json has it; ship it again")
    return {use: tuple(shipped(row["name"]).scheme for row in rows) for use, rows in listed.items()}


@contextmanager
def _machine(row: Row) -> Iterator[None]:
    """The machine, the schemes and the user's folders of a row, for the time of a with block."""
    profile = _profile(row["profile"])
    names = tuple(scheme.name for scheme in frozen()["triangular"])
    with ExitStack() as stack:
        stack.enter_context(patch.object(spread, "KEPT", 1 << 16))  # else most programs are flattened several times
        stack.enter_context(patch.dict("os.environ", LCMA_HOME=_HOME.name))
        if row["device"] == "cpu":
            stack.enter_context(patch.dict("os.environ", LCMA_NUM_THREADS=str(row["threads"])))
            stack.enter_context(patch.object(shared_pool, "keep", row["pool_bytes"]))
        for module, name, value in (
            (auto, "free_bytes", row["free_bytes"]),
            (memory, "free_bytes", row["free_bytes"]),
            (auto, "spin_seconds", row["spin_seconds"]),
            (machine, "machine_profile", profile),
            (batch, "blas_is_limited", True),
            (blas, "_has_torch", True),
            (causal, "steady_names", names),
            (causal, "remembered", {}),
            (gpu, "choices", _choices()),
        ):
            stack.enter_context(patch.object(module, name, lambda *_, value=value: value))
        yield


@lru_cache(maxsize=8)
def _profile(name: str) -> Profile:
    path = HERE / "profiles" / f"{name.removeprefix('golden-')}.json"
    return Profile.from_json(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _choices() -> Choices:
    return Choices.of(frozen()["general"])


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Names by digest, of general schemes in all orders of their sizes."""
    names = {scheme.digest: scheme.name for several in frozen().values() for scheme in several}
    return names | {turn.digest: names[turn.source] for choice in _choices().entries for turn in choice.turns}


def _request(row: Row) -> Request:
    return Request(
        row["m"],
        row["k"],
        row["n"],
        row["dtype"],
        np.broadcast_shapes(row["batch_a"], row["batch_b"]),
        row["device"],
        tuple(map(Layout, row["layouts"])),
        row["static"],
        max_error=row["max_error"],
        max_workspace=row["max_workspace"],
        largest=row["max_abs"],
    )


def _on_cpu(row: Row) -> Row:
    decision = auto.decide(_request(row), _profile(row["profile"]), row["threads"], _choices())
    levels = [_choices().entries[i].turns for i in decision.chosen.chain]
    strategy = ("scheme", decision.plan.candidate.strategy) if levels else ("vendor", None)
    found = _record(strategy, [[(turn.scheme,) for turn in level] for level in levels], decision.plan.workspace)
    return found | _prices(decision.chosen.seconds, decision.plan.seconds, decision.plain.seconds)


def _on_gpu(row: Row) -> Row:
    request, profile = _request(row), _profile(row["profile"])
    plan, schemes = gpu.choose(request, profile)
    strategy = ("scheme", plan.candidate.strategy.removeprefix("gpu-")) if schemes else ("vendor", None)
    # All levels are worked as one.
    found = _record(strategy, [[(scheme,) for scheme in schemes]] if schemes else [], plan.workspace)
    return found | _prices(plan.seconds, plan.seconds, gpu.vendor_plan(request, profile).seconds)


def _triangular_on_cpu(row: Row) -> Row:
    request, profile = _request(row), _profile(row["profile"])
    plan = causal.choose(request, Triangle(**row["triangle"]), profile=profile)
    if plan.candidate.strategy == "joined":
        found = _record(("scheme", "grouped"), [[(_named(plan.candidate.label),)]], plan.workspace)
    else:
        way, _, dense = plan.candidate.label.partition(":")
        found = _record((way, None), [[(_named(dense),)]] if dense else [], plan.workspace)
    return found | _prices(causal.predicted(plan), plan.seconds, auto.plain_plan(request, profile).seconds)


def _triangular_on_gpu(row: Row) -> Row:
    import torch

    sizes, triangle = (row["m"], row["k"], row["n"]), Triangle(row["triangle"]["side"], row["triangle"]["upper"])
    if triangle.side == "right":  # worked as the left one of the transposed product
        sizes, triangle = sizes[::-1], Triangle("left", not triangle.upper)
    a = torch.empty(0, dtype=getattr(torch, {"tf32": "float32"}.get(row["dtype"], row["dtype"])))
    items = math.prod(np.broadcast_shapes(row["batch_a"], row["batch_b"]))
    with patch.object(torch.backends.cuda, "matmul", SimpleNamespace(allow_tf32=row["dtype"] == "tf32")):
        way = causal_cuda.default_way(a, sizes, triangle, items)
    unknown = _prices(None, None, None)
    if way in ("strips", "kernel"):
        return _record((way, None), [], None) | unknown
    name, _, below = way.partition("/")
    level = [(_named(name),), (_named(below), _named(causal_cuda.SPLIT))] if below else [(_named(name),)]
    return _record(("scheme", "batched"), [level], None) | unknown


def _named(name: str) -> Scheme:
    return next(scheme for several in frozen().values() for scheme in several if scheme.name == name)


def _record(strategy: tuple[str, str | None], levels: list[list[tuple[Scheme, ...]]], workspace: int | None) -> Row:
    """The record of a plan, without its prices: of every part of a level the schemes for full and half products."""
    return {
        "strategy": strategy[0],
        "method": strategy[1],
        "levels": [[" | ".join(f"{x.target}:{x.rank}" for x in part) for part in level] for level in levels],
        "schemes": [[" | ".join(_names()[x.digest] for x in part) for part in level] for level in levels],
        "workspace": workspace,
    }


def _prices(seconds: float | None, plan_seconds: float | None, vendor_seconds: float | None) -> Row:
    known = seconds is not None and vendor_seconds is not None and seconds > 0
    return {
        "seconds": _rounded(seconds),
        "plan_seconds": _rounded(plan_seconds),
        "vendor_seconds": _rounded(vendor_seconds),
        "ratio": _rounded(vendor_seconds / seconds) if known else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(f"{value:.{DIGITS}g}")
