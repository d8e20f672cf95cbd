"""Machine profiles: measured rates of products, sums and memory; their folder, and their lookup by name."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LcmaError, SchemeFormatError, unknown_name
from ...home import home, write_atomic
from ..identity import memoize_on_instance
from .cache import plan_cache

ESTIMATED = "estimated"
"""The source of figures that were derived from what the machine reports of itself."""

LARGEST = 10**18
"""Largest figure of a profile: a rate, a size or bytes; beyond it, estimates overflow and no machine of ours is."""

LONGEST = 3600
"""Largest overhead of a call, in seconds."""

SOURCES = ("measured", "published", ESTIMATED, "unmeasured")


@dataclass(frozen=True)
class GemmRate:
    """Flops per second of m x k x n products of the vendor's library.

    `mode` is "whole" (one product by all threads) or "tasks" (one product per thread at once, the
    sum of their rates); `backend` names the library.
    """

    dtype: str
    m: int
    k: int
    n: int
    rate: float
    mode: str = "whole"
    backend: str = ""


HELD_BACK = 0.97
"""Lower bound of a product's rate, as a fraction of that of any measured product no larger in any size."""

PREFERENCE = 1.05
"""Rate ratio by which another library must exceed the first one measured to be chosen instead."""


NEAREST = 1e-6
"""Least squared distance of a size to a measured one: there, the rate is the measured one."""

AT_ONCE = 6 << 10
"""Number of distances computed at once: below 128 KB of temporaries, for more of which malloc takes fresh pages."""


class RateTable:
    """Measured rates, interpolated by the mean of logarithms weighted by proximity in log m, log k, log n."""

    def __init__(self, rows: Sequence[GemmRate]) -> None:
        best: dict[tuple[int, int, int], float] = {}
        for row in rows:
            size = row.m, row.k, row.n
            best[size] = max(best.get(size, 0.0), row.rate)
        places = np.log(np.array(list(best), dtype=float))
        rates = np.array(list(best.values()))
        # A product larger in every size is hardly slower per flop: if it was measured so, it was disturbed.
        holds = (places[:, None, :] >= places[None, :, :]).all(axis=2)
        self._sizes = tuple(best)
        self._rates = np.log(np.maximum(rates, HELD_BACK * np.where(holds, rates[None, :], 0).max(axis=1)))
        # |p - x|^2 = -2 p x + |x|^2 + |p|^2 as one product with (x, |x|^2, 1).
        squares, ones = (places * places).sum(axis=1), np.ones(len(places))
        self._distance = np.column_stack([-2.0 * places, ones, squares + NEAREST])

    def at(self, m: Any, k: Any, n: Any) -> Any:
        """Return flops per second for sizes, numbers or arrays of them."""
        return self._between([self._rates], m, k, n)[0]

    def both(self, other: RateTable, m: Any, k: Any, n: Any) -> tuple[Any, Any]:
        """Return the rates of this table and of another; if both have the same sizes the weights are computed once."""
        if self._sizes != other._sizes:
            return self.at(m, k, n), other.at(m, k, n)
        mine, theirs = self._between([self._rates, other._rates], m, k, n)
        return mine, theirs

    def _between(self, rates: list[Any], m: Any, k: Any, n: Any) -> Any:
        """Interpolate logarithms of rates, several by measured size, for the sizes of products."""
        shape = np.broadcast(m, k, n).shape
        columns = [np.asarray(size) for size in (m, k, n)]
        columns = [(x if x.shape == shape else np.broadcast_to(x, shape)).ravel() for x in columns]
        found = np.empty((len(rates), *shape))
        flat, values = found.reshape(len(rates), -1), np.array([*rates, np.ones(len(self._rates))])
        step = max(1, AT_ONCE // len(self._rates))
        for start in range(0, flat.shape[1], step):
            # The requested sizes, which are many, are on the contiguous axis; the measured ones are few.
            part = slice(start, start + step)
            wanted = np.ones((5, len(columns[0][part])))
            logs = wanted[:3]
            logs[0], logs[1], logs[2] = (column[part] for column in columns)
            np.log(np.maximum(logs, 1.0, out=logs), out=logs)
            np.einsum("ij,ij->j", logs, logs, out=wanted[3])
            distances = self._distance @ wanted
            weights = np.sqrt(distances)
            weights *= distances
            sums = values @ np.divide(1.0, weights, out=weights)
            np.divide(sums[:-1], sums[-1], out=flat[:, part])
        return np.exp(found, out=found)


@dataclass(frozen=True)
class Profile:
    """The measured figures of one machine. Unknown ones are None, and no prediction uses them.

    `combine_rate` and `bandwidth` are bytes per second, of the generated sums and of a plain copy
    (read and written bytes counted); `add_rate` is additions per second, if sums can be bound by them; `caches` are
    bytes, nearest first; `call_overhead` is seconds; `notes` gives the source of published figures.
    """

    id: str
    hardware: str
    versions: tuple[tuple[str, str], ...] = ()
    gemm: tuple[GemmRate, ...] = ()
    combine_rate: float | None = None
    bandwidth: float | None = None
    caches: tuple[int, ...] = ()
    call_overhead: float | None = None
    source: str = "unmeasured"
    add_rate: float | None = None
    notes: str = ""

    def gemm_rate(self, dtype: str, m: int, k: int, n: int, mode: str = "whole") -> float | None:
        """Return flops per second of the fastest library, interpolated; None if nothing was measured."""
        table = self.rates(dtype, mode)
        return None if table is None else float(table.at(m, k, n))

    @memoize_on_instance
    def rates(self, dtype: str, mode: str = "whole") -> RateTable | None:
        """Return the measured rates of a dtype; those of whole products if the mode was not measured."""
        rows = [row for row in self.gemm if row.dtype == dtype and row.mode == mode]
        if not rows and mode != "whole":
            return self.rates(dtype)
        return RateTable(rows) if rows else None

    def backend(self, dtype: str, m: int, k: int, n: int) -> str:
        """Return the library that was fastest at the measured size nearest to this one; "" if none was measured."""
        known = self._fastest(dtype)
        if len(set(known.values())) < 2:
            return next(iter(known.values()), "")
        measured, wanted = (np.log(np.maximum(sizes, 1)) for sizes in (list(known), (m, k, n)))
        return list(known.values())[((measured - wanted) ** 2).sum(axis=1).argmin()]

    @memoize_on_instance
    def _fastest(self, dtype: str) -> dict[tuple[int, int, int], str]:
        """Return the library to use for whole products of a dtype, by measured size."""
        found: dict[tuple[int, int, int], list[GemmRate]] = {}
        for row in self.gemm:
            if (row.dtype, row.mode) == (dtype, "whole"):
                found.setdefault((row.m, row.k, row.n), []).append(row)

        def fastest(rows: list[GemmRate]) -> str:
            first, *others = rows
            best = max(others, key=lambda row: row.rate, default=first)
            return best.backend if best.rate > PREFERENCE * first.rate else first.backend

        return {size: fastest(rows) for size, rows in found.items()}

    def _check(self) -> None:
        """Raise ValueError or TypeError if a figure is no number that a machine may have."""
        figures = {"bandwidth": self.bandwidth, "combine_rate": self.combine_rate, "add_rate": self.add_rate}
        known = [(name, value) for name, value in figures.items() if value is not None]
        known += [("cache", size) for size in self.caches]
        for row in self.gemm:
            known += [(f"{name} of a rate", value) for name, value in zip("mkn", (row.m, row.k, row.n), strict=True)]
            known.append((f"rate of {row.dtype} {row.m}x{row.k}x{row.n}", row.rate))
        for name, value in known:
            if not (_is_number(value) and 1 <= value <= LARGEST):
                raise ValueError(f"{name} must be a number from 1 to {LARGEST:.0e}, not {value!r}")
        overhead = self.call_overhead
        if overhead is not None and not (_is_number(overhead) and 0 <= overhead <= LONGEST):
            raise ValueError(f"call_overhead must be a number of seconds from 0 to {LONGEST}, not {overhead!r}")
        if not all(isinstance(text, str) for text in (self.id, self.hardware, self.source, self.notes)):
            raise TypeError("id, hardware, source and notes must be texts")
        if not all(isinstance(text, str) for row in self.gemm for text in (row.dtype, row.mode, row.backend)):
            raise TypeError("dtype, mode and backend of a rate must be texts")
        if not all(isinstance(text, str) for pair in self.versions for text in pair):
            raise TypeError("versions must be pairs of texts")

    def to_json(self) -> str:
        """Return the profile as JSON text."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Parse the output of `to_json`.

        Raises:
            SchemeFormatError: the text is not a profile.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            fields["gemm"] = tuple(GemmRate(**row) for row in fields["gemm"])
            fields["versions"] = tuple((name, version) for name, version in fields["versions"])
            fields["caches"] = tuple(fields["caches"])
            profile = cls(**fields)
            profile._check()
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise SchemeFormatError(f"not a machine profile: {error}") from error
        if profile.source not in SOURCES:
            raise SchemeFormatError(f"profile source must be one of {', '.join(SOURCES)}, not {profile.source!r}")
        return profile


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def profiles_folder() -> Path:
    """Return the folder of measured profiles and wisdom; deleting it costs a new measurement."""
    return home() / "profiles"


def stored_profile(name: str) -> Profile | None:
    """Return the stored profile of this name; None if it is missing or damaged (measuring rewrites it)."""
    path = profiles_folder() / f"{name}.json"
    with contextlib.suppress(OSError):
        return _stored(path, path.stat().st_mtime_ns)
    return None


@lru_cache(maxsize=16)
def _stored(path: Path, stamp: int) -> Profile | None:
    try:
        return read_profile(path)
    except (LcmaError, OSError):
        return None


def read_profile(path: Path) -> Profile:
    """Read the profile in a file.

    Raises:
        SchemeFormatError: the file is no profile.
        OSError: it cannot be read.
    """
    try:
        return Profile.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise SchemeFormatError("not a machine profile: not a text", path) from None
    except SchemeFormatError as error:
        raise error.located(path) from None


def keep_profile(profile: Profile) -> Path:
    """Write a profile atomically, for `stored_profile` to find; plans based on another one are dropped.

    Raises:
        OSError: the folder cannot be written.
    """
    path = profiles_folder() / f"{profile.id}.json"
    write_atomic(path, profile.to_json())
    forget_profiles()
    return path


def forget_profiles() -> None:
    """Drop cached profiles and plans."""
    _stored.cache_clear()
    plan_cache.clear()


@lru_cache(maxsize=1)
def published() -> dict[str, Profile]:
    """Return the profiles shipped with the package, by name: machines of papers, and one NVIDIA H200."""
    folder = files("lcma.kernels.planning") / "data" / "machines"
    profiles = [Profile.from_json(entry.read_text(encoding="utf-8")) for entry in folder.iterdir()]
    return {profile.id: profile for profile in sorted(profiles, key=lambda profile: profile.id)}


def find_profile(name: str) -> Profile:
    """Return a published machine by its name, or the profile in a file.

    Raises:
        PlanError: there is no such machine and no such file.
        SchemeFormatError: the file is no profile.
    """
    if name in published():
        return published()[name]
    try:
        return read_profile(Path(name))
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            raise SchemeFormatError(f"can't be read: {error.strerror or error}", name) from None
        raise unknown_name("profile", name, [*published(), "a file"]) from None
