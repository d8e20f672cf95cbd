"""The figures and texts of a scheme's page, with the rows of `lcma bench` that name it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...schemes_db import Certificate, Provenance, Scheme, costs
from ..bench.journal import Row
from ..figures.canvas import rows_of
from ..output import figure, ratio, readers
from ..scheme_record import SchemeRecord

MAX_TEXT = 1_000
MAX_MEASUREMENTS = 60


@dataclass(frozen=True)
class Fact:
    """A figure with its name and, where it needs one, an explanation."""

    name: str
    value: str
    note: str = ""


def shown(text: object, limit: int = MAX_TEXT) -> str:
    """A text fit to be shown: of bounded length, without control characters."""
    cut = str(text)
    cut = cut if len(cut) <= limit else cut[: limit - 1] + "…"
    return "".join(ch if ch.isprintable() or ch in "\n " else "\ufffd" for ch in cut)


def costs_of(row: SchemeRecord) -> list[Fact]:
    """The costs of a scheme."""
    entry, known, scheme = row.entry, row.known, row.scheme
    recursive, exponent = costs.recursive_cost(scheme), costs.exponent(scheme)
    split = f" = {known.full} full + {known.half} half" if known and known.half else ""
    parts = " + ".join(f"{count:,}" for count in costs.nonzeros(scheme))
    facts: tuple[tuple[str, str | None, str], ...] = (
        ("Rank", f"{entry.rank:,}", "products of blocks"),
        ("Best known rank", f"{known.rank:,}{split}" if known else None, known.source if known else ""),
        ("Products", f"{entry.full_products} full + {entry.half_products} half" if entry.half_products else None, ""),
        ("One level", ratio(costs.one_level_cost(scheme)), "multiplications over the classical dense"),
        ("Recursive", None if recursive is None else ratio(recursive), "halves recurse, full products are classical"),
        ("Exponent ω", figure(exponent, ".6f"), "3 log R / log mkn"),
        ("Additions", f"{entry.additions:,}", "every sum on its own"),
        ("Additions, shared", figure(entry.additions_cse, ","), "common sums computed once"),
        ("Nonzeros", f"{entry.nonzeros:,}", f"{parts} in U, V, W"),
        ("Growth factor", f"{entry.growth:.6g}", "error growth of one level"),
    )
    return [Fact(name, value, note) for name, value, note in facts if value]


def coefficients_of(scheme: Scheme) -> str:
    """The distinct coefficients, at most a dozen of them."""
    values = [str(value).replace("-", "\u2212") for value in scheme.coefficients]
    return shown(", ".join(values[:12]) + (", …" if len(values) > 12 else ""), 300)


def proofs_of(certificate: Certificate) -> list[Fact]:
    """Return the proven facts, by method."""
    return [Fact(proof.method, shown(proof.evidence)) for proof in certificate.proofs[:20]]


def provenance_of(provenance: Provenance) -> list[Fact]:
    """Return the origin of the scheme in words; the parents are shown elsewhere."""
    said = {title: read(provenance) for title, read in readers("provenance").items()}
    return [Fact(title, shown(value)) for title, value in said.items() if value not in (None, "")]


def origin_of(provenance: Provenance) -> tuple[str, str]:
    """Return who published the scheme, or which run of ours found it: a heading and a text."""
    if provenance.source and provenance.kind != "search":
        return "Published" if provenance.kind == "paper" else "Source", shown(provenance.source)
    steps = dict.fromkeys(" ".join([step.do, step.value("target")]).strip() for step in provenance.history)
    text = provenance.command or ", ".join(steps) or provenance.relation or "nothing was recorded"
    return "Our own search" if provenance.kind == "search" else "Origin", shown(text)


@dataclass(frozen=True)
class Measured:
    """One measured figure."""

    what: str
    value: str
    setting: str
    machine: str
    taken: str


def measured(row: Mapping[str, object]) -> Measured:
    """A row of the catalogue's measurements in words."""
    detail = row["detail"] if isinstance(row["detail"], dict) else {}
    size = detail.get("size")
    setting = [" x ".join(map(str, size))] if isinstance(size, list) else []
    setting += [str(detail[key]) for key in ("dtype", "device") if key in detail]
    return Measured(
        shown(row["what"], 120),
        f"{row['value']:.4g} {shown(row['unit'], 20)}",
        shown(", ".join(setting), 60),
        shown(row["machine"], 60),
        shown(row["taken"], 40),
    )


Benchmarks = dict[str, list[Measured]]
"""Measurements by the name of a scheme."""


def benchmarks(results: Path) -> Benchmarks:
    """The newest rows of every file of a folder of results, by the names that they hold.

    Raises:
        SchemeFormatError: a file holds what is not a row.
    """
    found: Benchmarks = {}
    for path in sorted(results.glob("*.jsonl")):
        for key, row in rows_of(results, path.stem).items():
            for name, one in _measured(key, row):
                found.setdefault(name, []).append(one)
    return found


def _measured(key: str, row: Row) -> Iterator[tuple[str, Measured]]:
    """Milliseconds of the contenders of a row, beside those of its baseline; or the error of the scheme it is of."""
    figures = row.get("figures") or {}
    times = figures.get("ms")
    what = f"{row['suite']}: {key}"
    if isinstance(times, dict):
        baseline = figures.get("baseline")
        beside = f"{baseline}: {times[baseline]:.4g} ms" if baseline in times else ""
        for name, milliseconds in times.items():
            yield name, _figure(what, f"{milliseconds:.4g} ms", "" if name == baseline else beside, row)
    elif "error" in figures and "classical_error" in figures:
        name, _, setting = key.partition(" ")
        value, beside = f"{figures['error']:.3g} error", f"classical: {figures['classical_error']:.3g}"
        yield name, _figure(f"{row['suite']}: levels and dtype {setting}", value, beside, row)


def _figure(what: str, value: str, beside: str, row: Row) -> Measured:
    machine, on_gpu = row.get("machine") or {}, (row.get("options") or {}).get("device") == "cuda"
    hardware = machine.get("accelerator" if on_gpu else "processor") or ""
    taken = row.get("date", "")[:10]
    return Measured(shown(what, 120), value, shown(beside, 60), shown(hardware, 60), shown(taken))
