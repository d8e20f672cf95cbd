"""The planners' choice for one recorded request: the only file here that knows the planners' own interface.

Everything that a planner takes from the machine, from the catalogue or from the user's folders comes from
the request's row and from the files of this folder.

`python tests/kernels/golden/chosen.py WHAT [FILE]` writes WHAT: the `plans`, for new requests only (a plan that has
changed is listed in differences.json), or the `schemes` that they are made of, only to let new ones into the recorded
plans: a shipped scheme that is not listed changes none.
"""

import atexit
import json
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from lcma.errors import PlanError
from lcma.kernels import Layout, Machine, Pool, Profile, Request, strategies
from lcma.kernels.causal.candidates import HALVES, TriangularSource, stable_scheme_names
from lcma.kernels.causal.cuda import SCHEME
from lcma.kernels.cpu import blas
from lcma.kernels.cpu.cost_model import CpuCostModel
from lcma.kernels.cuda import flat_program
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.dense.pool import SchemePool, scheme_pool
from lcma.kernels.planning.planner import Decision, decide
from lcma.kernels.precision import fields_of
from lcma.kernels.request import structures_of
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
    """The plan chosen for a request, as it is recorded.

    `strategy` is vendor, scheme, strips or kernel; `method` how levels are run; `levels` has format
    and rank of the schemes of every level, outermost first, several where they are flattened into one level
    ("FULL | HALF" where half products have their own scheme), and `schemes` their names. `seconds` is the
    price by which the plan was ranked, `plan_seconds` that which the plan states, `vendor_seconds` the price
    of the vendor's whole product, `ratio` how many times as fast as that the plan is; None: not known. Where
    nothing can run, `refused` is the limit and `message` the reason.
    """
    with _environment():
        try:
            return _decided(row)
        except PlanError as error:
            refused = next((limit for words, limit in LIMITS.items() if words in str(error)), "other")
            return {"refused": refused, "message": str(error)}


def plans() -> str:
    """The plan chosen for every request by its id, as JSON, a line each."""
    rows = json.loads((HERE / "requests.json").read_text(encoding="utf-8"))
    return "{\n" + ",\n".join(f"{json.dumps(row['id'])}: {json.dumps(chosen(row))}" for row in rows) + "\n}\n"


def schemes() -> str:
    """Name, target, rank and digest of what planners consider of a fresh catalogue, by use, as JSON, a line each."""
    names = {shipped(name).scheme.digest: name for name in shipped_names()}
    with patch.dict("os.environ", LCMA_HOME=_HOME.name):
        general = dict.fromkeys(names[one.source] for level in scheme_pool().entries for one in level.factors)
    parts = []
    for use, known in (("general", general), ("triangular", dict.fromkeys([*stable_scheme_names(), SCHEME, HALVES]))):
        found = [(name, shipped(name).scheme) for name in known]
        rows = [{"name": x, "target": one.target.name, "rank": one.rank, "digest": one.digest} for x, one in found]
        parts.append(f' "{use}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


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
def _environment() -> Iterator[None]:
    """Folders of our own, and torch as if it were installed, for the time of a with block."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(flat_program, "KEPT", 1 << 16))  # else programs are flattened several times
        stack.enter_context(patch.dict("os.environ", LCMA_HOME=_HOME.name))
        stack.enter_context(patch.object(blas, "_has_torch", lambda: True))
        yield


def _machine(row: Row) -> Machine:
    profile = _profile(row["profile"])
    triangular = tuple(scheme.name for scheme in frozen()["triangular"])
    if row["device"] == "cuda":
        return Machine("cuda", profile, CudaCostModel(profile), schemes=_pool(), triangular=triangular)
    spin = row["spin_seconds"] if profile.source == "measured" else 0.0
    facts = {"kept_bytes": row["pool_bytes"], "free_bytes": lambda: row["free_bytes"], "pool": Pool()}
    facts |= {"schemes": _pool(), "triangular": triangular}
    return Machine("cpu", profile, CpuCostModel(profile, row["threads"], spin), row["threads"], **facts)


@lru_cache(maxsize=8)
def _profile(name: str) -> Profile:
    path = HERE / "profiles" / f"{name.removeprefix('golden-')}.json"
    return Profile.from_json(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _pool() -> SchemePool:
    return SchemePool.of(frozen()["general"])


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Names by digest, of general schemes in all orders of their sizes."""
    names = {scheme.digest: scheme.name for several in frozen().values() for scheme in several}
    return names | {one.digest: names[one.source] for level in _pool().entries for one in level.factors}


def _request(row: Row) -> Request:
    triangle = None if row["triangle"] is None else Triangle(**row["triangle"])
    structured = {} if triangle is None else {"structures": structures_of(triangle)}
    same = ("m", "k", "n", "device", "static", "max_error", "max_workspace", "max_abs")
    fields = {name: row[name] for name in same} | {name: tuple(row[name]) for name in ("batch_a", "batch_b")}
    return Request(**fields, layouts=tuple(map(Layout, row["layouts"])), **fields_of(row["dtype"]), **structured)


def _decided(row: Row) -> Row:
    request, machine = _request(row), _machine(row)
    decision = decide(request, machine, strategies(request.device))
    candidate = decision.plan.candidate
    on_cpu, method = request.device == "cpu", candidate.method or None
    if candidate.strategy == "scheme" and on_cpu and method == "batched":
        method = "batch"  # as it was called when the plans were recorded
    found = {
        "strategy": candidate.strategy,
        "method": method,
        "levels": [[" | ".join(f"{x.target}:{x.rank}" for x in part) for part in level] for level in _levels(decision)],
        "schemes": [[" | ".join(_names()[x.digest] for x in part) for part in level] for level in _levels(decision)],
        "workspace": decision.plan.workspace,
    }
    if row["triangle"] is not None and not on_cpu:
        return found | {"workspace": None} | _prices(None, None)
    vendor = decision.baseline.seconds
    if row["triangle"] is not None:
        flat = Request(request.m, request.k, request.n, request.dtype, request.batch_a, request.batch_b)
        stages = strategies("cpu")["dense", "vendor"].predict(candidate, flat, machine)
        vendor = sum(stage.seconds for stage in stages) if all(s.seconds is not None for s in stages) else None
    return found | _prices(decision.plan.seconds, vendor)


def _levels(decision: Decision) -> list[list[tuple[Scheme, ...]]]:
    """By level, outermost first, what is flattened into it, of each the schemes for full and half products."""
    source = decision.plan.candidate.source
    if source is None:
        return []
    if isinstance(source, TriangularSource):
        name, _, below = source.name.partition("/")
        return [[(_named(name),), (_named(below), _named(HALVES))]] if below else [[(_named(name),)]]
    levels = [[(one.scheme,) for one in level.factors] for level in source.levels]
    # On a GPU all levels are executed as one.
    return [[part for level in levels for part in level]] if decision.request.device == "cuda" else levels


def _named(name: str) -> Scheme:
    return next(scheme for several in frozen().values() for scheme in several if scheme.name == name)


def _prices(seconds: float | None, vendor_seconds: float | None) -> Row:
    known = seconds is not None and vendor_seconds is not None and seconds > 0
    return {
        "seconds": _rounded(seconds),
        "plan_seconds": _rounded(seconds),
        "vendor_seconds": _rounded(vendor_seconds),
        "ratio": _rounded(vendor_seconds / seconds) if known else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(f"{value:.{DIGITS}g}")


if __name__ == "__main__":
    what, *path = sys.argv[1:]
    Path(*path or [HERE / f"{what}.json"]).write_text({"plans": plans, "schemes": schemes}[what](), encoding="utf-8")
