"""Wisdom: measured times of the best candidates by request class, stored beside the profile they belong to.

As in FFTW, measurements on the machine take precedence over predictions. A request class is the
family, dtype, layouts, structures, static operand, shared operand and ring of a request, and on a GPU the
bytes, up to 16, that rows are multiples of; a record applies to the requests of its class with its m, k, n and number
of matrices.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import PlanError
from ...home import exclusive, home, write_atomic
from ..request import Request, class_request
from .cache import plan_cache

Parameters = tuple[tuple[str, str | int], ...]
"""Sorted pairs of a name and a value, such as (("method", "tasks"),)."""

CandidateKey = tuple[str, str, str, Parameters]
"""Family, strategy, source and parameters by which a candidate is found again."""

PART = 0.995
"""The fraction of the baseline's measured time that a candidate must stay below."""

MOST_RECORDS = 4096
"""A file with more records is rejected as damaged."""

LEAST, LONGEST = 1e-9, 1e9
"""Bounds of the seconds of a product: what is beyond was not measured, and ratios of it overflow."""

FORMAT = 1

SEGMENT = 16
"""Bytes: a GPU's vendor products are several times as slow if rows are no multiples of them."""


@dataclass(frozen=True)
class TimedCandidate:
    """One candidate of a record: measured median seconds, and predicted seconds (None: none)."""

    family: str
    strategy: str
    source: str
    parameters: Parameters
    seconds: float
    predicted: float | None

    @property
    def key(self) -> CandidateKey:
        return self.family, self.strategy, self.source, self.parameters


@dataclass(frozen=True)
class WisdomRecord:
    """The measurements of one request: its class, (m, k, n, matrices), the date, and the candidates."""

    group: str
    sizes: tuple[int, int, int, int]
    when: str
    entries: tuple[TimedCandidate, ...]

    @classmethod
    def of(cls, request: Request, timed: Iterable[tuple[CandidateKey, float, float | None]]) -> WisdomRecord:
        """Return the record, of today, of candidates for a request with their measured and their predicted seconds."""
        entries = tuple(TimedCandidate(*key, seconds, predicted) for key, seconds, predicted in timed)
        return cls(class_of(request), sizes_of(request), datetime.date.today().isoformat(), entries)

    def seconds(self, candidate: CandidateKey) -> float:
        """Return the measured seconds of a candidate; NaN if it was not measured."""
        return next((one.seconds for one in self.entries if one.key == candidate), math.nan)


@dataclass(frozen=True)
class Wisdom:
    """All records of one machine."""

    records: tuple[WisdomRecord, ...] = ()

    def record(self, request: Request) -> WisdomRecord | None:
        """Return the record of a request's class and sizes."""
        wanted = class_of(request), sizes_of(request)
        return next((one for one in self.records if (one.group, one.sizes) == wanted), None)

    def with_record(self, record: WisdomRecord) -> Wisdom:
        """Return this wisdom with a record that replaces the one of the same request."""
        others = [one for one in self.records if (one.group, one.sizes) != (record.group, record.sizes)]
        return Wisdom((*others, record)[-MOST_RECORDS:])


def class_of(request: Request) -> str:
    """Return the class of a request as text."""
    layouts = "".join(layout.value[0] for layout in request.layouts)
    what = " x ".join(structure.name for structure in request.structures)
    static, shared = request.static or "-", "gram" if request.shared else "-"
    alone = "one b" if request.items_b == 1 < request.items else "-"
    over = "" if request.ring is None else f", over {request.ring}"
    if request.out_dtype is not None:
        over += f" into {request.out_dtype}"
    if request.max_extra_bytes:  # operands were prepared, and what was measured without the dense matrix says nothing
        extra = getattr(request.structures[0], "extra_elements", 0) * request.itemsize
        over += ", may be dense" if extra <= request.max_extra_bytes else ", prepared"
    text = f"{request.device} {request.arithmetic} {layouts} {what}, static {static}, {shared}, {alone}{over}"
    if request.device == "cpu":
        return text
    rows = math.gcd(request.k * request.itemsize, request.n * request.itemsize, SEGMENT)
    return text if rows == SEGMENT else f"{text}, rows of {rows} bytes"


def sizes_of(request: Request) -> tuple[int, int, int, int]:
    """Return m, k, n and the number of matrices, of the request whose plan is used for this one."""
    return *class_request(request).shape, request.items


def _path(name: str) -> Path:
    return home() / "profiles" / f"wisdom-{name}.json"


def stored_wisdom(profile: str) -> Wisdom | None:
    """Return the wisdom stored for a profile; None if there is none or the file is damaged."""
    path = _path(profile)
    with contextlib.suppress(OSError):
        return _read(path, path.stat().st_mtime_ns)
    return None


def wisdom_stamp() -> object:
    """Return a value that changes when any wisdom file does."""
    with contextlib.suppress(OSError):
        folder = home() / "profiles"
        return folder.stat().st_mtime_ns, tuple(sorted((p.name, p.stat().st_mtime_ns) for p in folder.glob("*.json")))
    return None


plan_cache.watch(wisdom_stamp)


def keep_record(profile: str, record: WisdomRecord, drop_plans: bool = True) -> Path:
    """Store a record atomically, and drop the plans that it may change, unless the caller replaces them.

    Raises:
        OSError: the folder cannot be written.
    """
    path = _path(profile)
    with exclusive(path.with_suffix(".lock")):  # so that no process loses another's record
        _write(path, profile, record)
    _read.cache_clear()
    if drop_plans:
        plan_cache.clear()
    else:
        plan_cache.accept()
    return path


def _write(path: Path, profile: str, record: WisdomRecord) -> None:
    wisdom = (stored_wisdom(profile) or Wisdom()).with_record(record)
    data = {
        "format": FORMAT,
        "profile": profile,
        "records": [
            {
                "class": one.group,
                "sizes": list(one.sizes),
                "when": one.when,
                "candidates": [{**asdict(entry), "parameters": dict(entry.parameters)} for entry in one.entries],
            }
            for one in wisdom.records
        ],
    }
    write_atomic(path, json.dumps(data, indent=1))


@lru_cache(maxsize=8)
def _read(path: Path, stamp: int) -> Wisdom | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT or len(data["records"]) > MOST_RECORDS:
            return None
        return Wisdom(tuple(_record(one) for one in data["records"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, PlanError):
        return None


def _record(data: Mapping[str, Any]) -> WisdomRecord:
    m, k, n, items = (int(size) for size in data["sizes"])
    if min(m, k, n, items) < 1 or max(m, k, n, items) >= 1 << 62:
        raise ValueError("sizes must be positive, and are below 2^62")
    return WisdomRecord(str(data["class"]), (m, k, n, items), str(data["when"]), tuple(map(_entry, data["candidates"])))


def _entry(data: Mapping[str, Any]) -> TimedCandidate:
    seconds, predicted = (None if data[key] is None else float(data[key]) for key in ("seconds", "predicted"))
    if seconds is None or not all(LEAST <= value <= LONGEST for value in (seconds, predicted) if value is not None):
        raise ValueError(f"seconds must be numbers from {LEAST} to {LONGEST}")
    parameters = tuple(sorted((str(k), v if isinstance(v, int) else str(v)) for k, v in data["parameters"].items()))
    return TimedCandidate(
        str(data["family"]), str(data["strategy"]), str(data["source"]), parameters, seconds, predicted
    )
