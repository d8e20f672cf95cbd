"""Compression of a model's dense weights: the structure of each layer, its factors, and their errors.

Needs no torch; `lcma.compress_` and `lcma compress` share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..arguments import INTEGER, NUMBER, need
from ..errors import PlanError, RankError, unknown_name
from ..schemes_db.display import line
from .arrays import Matrix
from .factored import factored_request, product_dtype
from .plans.decisions import decision_for
from .request import Request
from .structured.approximation import factorize
from .structured.block_low_rank import Blast, BlockLowRank, LowRank, Monarch
from .structured.chain import FactorChain, KroneckerSparse
from .structured.constructions import pairs
from .structured.decomposition import STEPS, Decomposition, decompose, is_pair, least_error
from .structured.pattern import chain_reason, parse_patterns

KINDS = ("low-rank", "monarch", "blast", "kronecker")

DENSE = "dense"
"""The configuration text of a layer that is not compressed."""

ALIGNED, ALIGNED_FROM = 16, 128
"""From ALIGNED_FROM on ranks that a budget gives are multiples of ALIGNED: rows of whole 32 bytes in half precision,
which tensor cores read several times as fast."""

OnEvent = Callable[[str], None]


@dataclass(frozen=True)
class CompressConfig:
    """The structure of compressed layers: a kind, and a rank or the budget, a fraction of the dense parameters.

    `rank` is that of W for low-rank and BLAST, of every block for Monarch, and replaces `budget`, whose ranks from 128
    on are multiples of 16. `blocks` is b1 = b2 of Monarch and BLAST; `steps` are those of BLAST's descent, which ends
    earlier once ten of them lower the error by less than the part `tolerance` of it. `patterns`, such as
    "(1,64,64,64)(64,64,64,1)", is a chainable list for the kind kronecker; without it the pair within the budget with
    the least error is taken.

    Raises:
        PlanError: there is no such kind, a number is out of range, or the list is not chainable.
    """

    kind: str
    budget: float = 0.5
    blocks: int = 16
    steps: int = STEPS
    rank: int | None = None
    patterns: str | None = None
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        need(str, kind=self.kind)
        need(NUMBER, budget=self.budget, tolerance=self.tolerance)
        need(INTEGER, blocks=self.blocks, steps=self.steps)
        need(INTEGER | None, rank=self.rank)
        need(str | None, patterns=self.patterns)
        if self.kind not in KINDS:
            raise unknown_name("kind", self.kind, KINDS)
        if not 0 < self.budget < 1:
            raise PlanError(f"budget is a part of the dense parameters, between 0 and 1, not {self.budget}")
        if self.blocks < 1 or self.steps < 1 or (self.rank is not None and self.rank < 1):
            raise PlanError(f"blocks, steps and rank must be at least 1, not {self.blocks}, {self.steps}, {self.rank}")
        if not 0 <= self.tolerance < 1:
            raise PlanError(f"tolerance is a part of the error, at least 0 and below 1, not {self.tolerance}")
        if self.kind == "kronecker" and self.rank is not None:
            raise PlanError("kronecker takes a budget or patterns, and no rank")
        if self.patterns is not None:
            if self.kind != "kronecker":
                raise PlanError(f"patterns are of the kind kronecker, not of {self.kind}")
            if reason := chain_reason(KroneckerSparse(parse_patterns(self.patterns)).patterns):
                raise PlanError(f"{reason}; weights are factorized by chainable lists")

    @classmethod
    def parse(cls, text: str) -> CompressConfig | None:
        """Parse a configuration "KIND[:OPTION=VALUE]..." or patterns; None for "dense".

        Options are budget, rank, blocks, steps and tolerance.

        Raises:
            PlanError: the text is none of these.
        """
        if text == DENSE:
            return None
        if text.startswith("("):
            return cls("kronecker", patterns=text)
        kind, *options = text.split(":")
        found = cls(kind)
        for option in options:
            name, _, value = option.partition("=")
            if name not in ("budget", "rank", "blocks", "steps", "tolerance"):
                known = "budget=, rank=, blocks=, steps= or tolerance="
                raise PlanError(f"{option!r} is no option of {kind}; write {known}")
            read: Callable[[str], Any] = {"budget": float, "tolerance": float}.get(name, int)
            try:
                found = replace(found, **{name: read(value)})
            except ValueError:
                raise PlanError(f"{option!r} must be a number") from None
        return found

    def structures(self, rows: int, cols: int) -> tuple[FactorChain, ...]:
        """Return the candidate structures for a weight, of which the best is used: one, or all kronecker pairs.

        Raises:
            RankError: the rank exceeds that of a weight or a block.
            PlanError: blocks do not divide a side, patterns are of another size, or the budget is below rank one.
        """
        if self.kind != "kronecker":
            return (self._block_low_rank(rows, cols),)
        if self.patterns is None:
            if some := tuple(pairs(rows, cols, self.budget * rows * cols)):
                return some
            pair = f"pair of Kronecker-sparse factors of {rows} x {cols}"
            raise PlanError(f"no {pair} has a density of at most {self.budget:g}")
        found = KroneckerSparse(parse_patterns(self.patterns))
        if (found.rows, found.cols) != (rows, cols):
            raise PlanError(f"the patterns are of {found.rows} x {found.cols}, and the weight is {rows} x {cols}")
        return (found,)

    def _block_low_rank(self, rows: int, cols: int) -> BlockLowRank:
        most, b = self.budget * rows * cols, self.blocks
        if self.kind != "low-rank" and (cols % b or rows % b):
            raise PlanError(f"blocks = {b} must divide the {cols} inputs and the {rows} outputs")
        bound = min(rows, cols) // (b if self.kind == "monarch" else 1)
        rank = self.rank
        if rank is None:
            extra = b * b if self.kind == "blast" else 0
            rank = min(bound, int(most // ((b if self.kind == "monarch" else 1) * (rows + cols) + extra)))
            if self.kind != "monarch" and rank >= ALIGNED_FROM:
                rank -= rank % ALIGNED
            if rank < 1:
                raise PlanError(f"a budget of {self.budget} is below rank one of {rows} x {cols}")
        elif rank > bound:
            of = "a block of a weight" if self.kind == "monarch" else "a weight"
            raise RankError(f"rank {rank} exceeds {bound}, the largest of {of} of {rows} x {cols}; lower it")
        if self.kind == "low-rank":
            return LowRank(rows, cols, rank)
        return Monarch(rows, cols, b, b, rank) if self.kind == "monarch" else Blast(rows, cols, b, b, rank)


Configs = CompressConfig | Mapping[str, CompressConfig | None]
"""One configuration for all layers, or by patterns of names (the first match applies; None: no compression)."""


def config_for(name: str, configs: Configs) -> CompressConfig | None:
    """Return the configuration of a layer; None if it is not compressed."""
    if isinstance(configs, CompressConfig):
        return configs
    return next((config for pattern, config in configs.items() if fnmatchcase(name, pattern)), None)


@dataclass(frozen=True)
class LayerReport:
    """The result of a linear layer: bytes of its weight, relative errors, speeds, or the reason why it remained dense.

    `error` is that of the weight, `output_error` that of W X for a calibration batch. `predicted` and `measured` are
    seconds of the dense product over those of the structured one. None: unknown. `at_rows` has pairs of a number of
    inputs and the dense layer's measured seconds over the structured one's, of eager calls.
    """

    name: str
    structure: str
    bytes_before: int
    bytes_after: int
    error: float
    skipped: str | None = None
    output_error: float | None = None
    predicted: float | None = None
    measured: float | None = None
    at_rows: tuple[tuple[int, float], ...] = ()

    def __repr__(self) -> str:
        became = f"{self.structure}, {self.bytes_before} to {self.bytes_after} bytes, error {self.error:.2g}"
        became += "".join(f", {ratio:.2f}x at {rows} rows" for rows, ratio in self.at_rows)
        return line(f"layer {self.name}: {self.skipped or became}")


def compress_weight(
    weight: Any,
    structures: tuple[FactorChain, ...],
    steps: int = STEPS,
    on_event: OnEvent = lambda _: None,
    tolerance: float = 0.0,
) -> Decomposition:
    """Compute the most accurate factors of these structures for a weight (rows, cols), a numpy array or torch tensor.

    Those of a tensor are computed on its device, but for Kronecker-sparse lists that are no pair as Monarch's. Several
    structures are such pairs, of which only the one of the least error is factorized. `tolerance` is that of BLAST's
    descent, see `decompose`.

    Raises:
        PlanError: the weight has another size, or contains NaN or infinity.
    """
    if len(structures) > 1:
        errors = []
        for place, one in enumerate(structures, 1):
            on_event(f"error of {place} of {len(structures)}: {one.name}")
            errors.append(least_error(weight, one))
        structures = (structures[int(np.argmin(errors))],)

    def tell(step: int, error: float) -> None:
        on_event(f"step {step}, error {error:.2e}")

    (structure,) = structures
    on_event(structure.name)
    if isinstance(structure, Blast) or is_pair(structure):
        return decompose(weight, structure, steps, on_step=tell, tolerance=tolerance)
    nearest = factorize(weight if isinstance(weight, np.ndarray) else weight.cpu().numpy(), structure.patterns)
    return Decomposition(structure, nearest.matrix.factors, nearest.error)


def output_error(weight: Matrix, structure: FactorChain, factors: tuple[Matrix, ...], inputs: Matrix) -> float:
    """Return |X W'^T - X W^T| / |X W^T| in the Frobenius norm for inputs X (n, cols), in float64."""
    wide = inputs.astype(np.float64).T
    truth = weight.astype(np.float64) @ wide
    norm = float(np.linalg.norm(truth))
    error = float(np.linalg.norm(structure.multiply_wide(factors, wide) - truth))
    return error / norm if norm else error


def predicted_speed(structure: FactorChain, batch: int, dtype: str, device: str) -> float | None:
    """Return predicted seconds of the vendor's product X W^T over those of the structured one, for X (batch, cols)."""
    dtype = product_dtype(dtype, device)
    dense = Request(batch, structure.cols, structure.rows, dtype, device=device)
    theirs = decision_for(dense, strategy="vendor").plan.seconds
    ours = decision_for(factored_request(structure, batch, dtype, device=device)).seconds
    return None if not theirs or not ours else theirs / ours
