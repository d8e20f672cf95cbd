"""Our own .npz: the arrays of each factor as they are kept in memory, compressed; for large sparse schemes.

`lcma_scheme` (the version, 1), `target`, `ring`, `name`, `origin` (provenance and certificate as JSON),
and for x in u, v, w: `x_indptr`, `x_indices`, `x_values` and `x_denominator`. The third factor is by C.
"""

from __future__ import annotations

import json

import numpy as np

from ...errors import SchemeFormatError
from ..certificate import Certificate
from ..factor import COEFFICIENT_LIMIT, Factor
from ..scheme import MAX_RANK, Scheme
from .archive import Archive, is_archive_of
from .lcma_json import checked_head, reading_of_own
from .reading import Reading, Wanted
from .strict_json import loads


def sniff(raw: bytes) -> bool:
    """Return whether this is a zip archive with our marker."""
    return is_archive_of(raw, "lcma_scheme")


def parse(raw: bytes, wanted: Wanted) -> list[Reading]:
    """Read one scheme; an override of target or ring is refused unless it agrees.

    Raises:
        SchemeFormatError: an array is missing, of the wrong kind, or does not fit the others.
    """
    archive = Archive(raw)
    version = int(archive.integers("lcma_scheme", (0,)))
    own_target, own_ring = checked_head(version, archive.text("target"), archive.text("ring"), wanted)
    m, k, n = own_target.shape
    grids = {"u": (m, k), "v": (k, n), "w": (m, n)}
    u, v, w = (_factor(archive, key, *grid) for key, grid in grids.items())
    origin = loads(archive.text("origin"))
    if not isinstance(origin, dict) or set(origin) - {"provenance", "certificate"}:
        raise SchemeFormatError("origin must be an object with provenance and certificate")
    return [reading_of_own("lcma-npz", (own_target, u, v, w, own_ring), archive.text("name"), origin)]


def _factor(archive: Archive, key: str, rows: int, cols: int) -> Factor:
    """The factor of four arrays; its nonzeros must be sorted, in the grid, and none of them 0."""
    indptr, indices = (archive.integers(f"{key}_{part}").astype(np.int64) for part in ("indptr", "indices"))
    stored = archive.integers(f"{key}_values", (1, 2))
    denominator = int(archive.integers(f"{key}_denominator", (0,)))
    if (stored.ndim == 2 and stored.shape[1] != 2) or len(stored) != len(indices):
        raise SchemeFormatError(f"{key}_values must be one number, or two, for each of {key}_indices")
    if not 2 <= len(indptr) <= MAX_RANK + 1 or indptr[0] != 0 or indptr[-1] != len(indices):
        raise SchemeFormatError(f"{key}_indptr must lead from 0 to {len(indices)}, one item more than products")
    if (np.diff(indptr) < 0).any() or (len(indices) and not 0 <= indices.min() <= indices.max() < rows * cols):
        raise SchemeFormatError(f"{key}_indptr falls, or {key}_indices leave the {rows} x {cols} grid")
    if stored.size and max(int(stored.max()), -int(stored.min())) >= COEFFICIENT_LIMIT:
        raise SchemeFormatError(f"{key} has a coefficient beyond +-2^62")
    if not 1 <= denominator < COEFFICIENT_LIMIT:
        raise SchemeFormatError(f"{key}_denominator must be 1 to 2^62, not {denominator}")
    product = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    order = product * (rows * cols) + indices
    if (np.diff(order) <= 0).any():
        raise SchemeFormatError(f"{key}_indices must increase within each product")
    return Factor.from_triplets(len(indptr) - 1, rows, cols, product, indices, stored.astype(np.int64), denominator)


def render(scheme: Scheme, certificate: Certificate | None = None) -> bytes:
    """The scheme in this format; the same scheme always gives the same bytes."""
    import io

    origin: dict[str, object] = {}
    if provenance := scheme.provenance.to_json():
        origin["provenance"] = provenance
    if certificate is not None:
        origin["certificate"] = certificate.to_json()
    arrays: dict[str, np.ndarray] = {
        "lcma_scheme": np.array(1),
        "target": np.array(scheme.target.name),
        "ring": np.array(scheme.ring.name),
        "name": np.array(scheme.name),
        "origin": np.array(json.dumps(origin)),
    }
    for key, factor in zip("uvw", scheme.factors, strict=True):
        arrays[f"{key}_indptr"], arrays[f"{key}_indices"] = factor.indptr, factor.indices
        arrays[f"{key}_values"], arrays[f"{key}_denominator"] = factor.values, np.array(factor.denominator)
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # mypy takes them for allow_pickle, too
    return stream.getvalue()
