"""Strategies for dense products on the CPU: the library's product, and levels of a scheme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..cpu.blas import NUMPY, Backend, backend_of, backends, library_for
from ..cpu.cost_model import CpuCostModel
from ..cpu.executor import Core
from ..cpu.leaf import Leaf
from ..cpu.level import Level, core_of
from ..cpu.partition import CpuMethod
from ..cpu.strategy import CpuStrategy, basic_reason, priced
from ..dtypes import dtype_of
from ..identity import IdentityKey
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Operand, Proposal, Source, Stage
from ..request import INT8, Layout, Request
from .arrangements import GivenProgram, SchemeStrategy, is_classical
from .chains import (
    LOOP,
    METHODS,
    TASKS,
    Chain,
    DepthCosts,
    LevelCosts,
    chain_stages,
    cost_table,
    level_costs,
    smallest,
)
from .pool import SchemePool, pool_for
from .scheme_costs import SchemeCosts, compute_bound

FAMILY = "dense"

NUMPY_FLOATS = ("float32", "float64", "complex64", "complex128")
"""Dtypes that numpy multiplies by its BLAS."""

KEPT = 8
"""Number of chains proposed per depth and method."""


@dataclass(frozen=True)
class CpuVendor(CpuStrategy):
    """The library's own product: the baseline. A parameter names the library; by default the profile selects it."""

    name: str = "vendor"
    family: str = FAMILY
    baseline: bool = True

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal]:
        """See `Strategy.propose`: the default, then every library of this process by its name."""
        loaded = () if request.dtype == INT8 else backends()
        able = [one for one in loaded if one.loaded and one.supports(request.dtype)]
        named = [(("library", one.name),) for one in able]
        return [Proposal(0.0, Candidate(FAMILY, self.name, None, parameters)) for parameters in ((), *named)]

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        if is_classical(source.program):
            yield Candidate(FAMILY, self.name)

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        return basic_reason(None, request)

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Core:
        return Leaf(request.shape, request.dtype, _library(candidate, request, machine))

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`: numpy's product is numpy's own call, which also allocates the result."""
        plain = request.dtype in NUMPY_FLOATS and Layout.SCATTERED not in request.layouts and not request.is_empty
        if plain and _library(candidate, request, machine) is NUMPY:
            return NumpyProduct(request)
        return super().build(candidate, request, machine)


@dataclass(frozen=True)
class NumpyProduct:
    """numpy's own product. See `Executor`."""

    request: Request
    workspace: int = 0
    threads: int = 0
    """It follows BLAS's own limit."""

    def again(self, a: Operand, b: Operand) -> Operand:
        """Compute C = A B of operands like those of a run, without its checks."""
        return np.matmul(a, b)

    def run(self, a: Operand, b: Operand, out: Operand | None = None) -> Operand:
        """Compute C = A B in `out`, or in a new array.

        Raises:
            PlanError: the arrays do not match the request.
        """
        self.request.check(a, b, out)
        return np.matmul(a, b, out=out)


def _library(candidate: Candidate, request: Request, machine: Machine) -> Backend:
    """Return the library that a candidate names, else the one that is fastest by the profile."""
    named = dict(candidate.parameters).get("library")
    return library_for(request, machine.profile) if named is None else backend_of(request.dtype, str(named))


@dataclass(frozen=True)
class CpuScheme(SchemeStrategy, CpuStrategy):
    """Levels of a scheme by generated sums and the library's products. The method is a parameter.

    - batched: all sums of a level, then its products one by one on all threads. Fastest on one
      thread; needs the memory of all sums and products of a level, and that of one product below.
    - tasks: the same, but each product is computed by one thread alone; products beyond a multiple of
      the threads are shared by all. Sums below the first level overlap with products of other threads.
    - loop: one product of the first level after the other, in buffers of one block each. The least memory of all;
      slower than the others if those fit.
    """

    name: str = "scheme"
    family: str = FAMILY
    methods = METHODS

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`: the best chains of every depth and method within the limits."""
        if request.dtype == INT8:
            return "int8 is multiplied by the schemes that are named"
        bound = compute_bound(machine.profile, request.dtype, *request.shape)
        if bound is None:
            return "nothing was measured for this machine: run lcma doctor --profile"
        if not bound.holds:
            return f"memory-bound ({bound}): no scheme can gain"
        assert isinstance(machine.costs, CpuCostModel)
        pool = pool_for(machine)
        found: list[Proposal] = []
        for depth in cost_table(request, machine.costs, pool.costs):
            found += self._proposals(request, pool, depth)
        return found

    def _proposals(self, request: Request, pool: SchemePool, depth: DepthCosts) -> list[Proposal]:
        """Return the best chains of one depth by every method, within the limits."""
        chains, fit, sources = depth.chains, depth.chains.fit, dict[int, Chain]()
        if request.max_error is not None:
            unit, growth = dtype_of(request.dtype).unit, pool.costs.growth[chains.levels].prod(axis=0)
            fit = fit & (unit * growth * chains.sizes[1] ** 2 / max(request.k, 1) <= request.max_error)
        found = []
        for method, seconds, workspace in depth.methods:
            allowed = fit if workspace is None else fit & (workspace <= request.max_workspace)
            ranked = smallest(np.where(allowed, seconds, np.inf), KEPT)
            ranked = ranked[allowed[ranked]]
            bounds = request.items * BOUND * seconds[ranked]
            for i, bound in zip(ranked.tolist(), bounds.tolist(), strict=True):
                if i not in sources:
                    places = chains.chain(i)
                    sources[i] = Chain(tuple(pool.entries[place] for place in places), pool, places)
                found.append(Proposal(bound, self.candidate(sources[i], method)))
        return found

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        program = candidate.own_program
        if is_classical(program):
            return "a single product is the vendor's"
        if reason := basic_reason(program, request):
            return reason
        how, method = _method(candidate, request, machine), candidate.method
        if method == TASKS and machine.threads == 1:
            return "there is one thread: the same as batched"
        if method == TASKS and (not machine.blas_limited or how.blas is not NUMPY):
            return "the library of the products has no thread limit that could be set for each task"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        assert isinstance(machine.costs, CpuCostModel)
        assert isinstance(candidate.source, Chain | GivenProgram)
        known = request.dtype != INT8 and machine.costs.knows(request.dtype)
        if known and (levels := _levels(candidate.source, request.dtype)) is not None:
            labels = [
                f"{m:.0f}x{k:.0f}x{n:.0f}:{rank:.0f}"
                for (m, k, n), rank in zip(levels.grid.T, levels.rank, strict=True)
            ]
            if isinstance(candidate.source, Chain):
                labels = [level.label for level in candidate.source.levels]
            return chain_stages(levels, labels, request, machine.costs, candidate.method)
        prepared = request.static == "B" and candidate.method != LOOP
        stages = self.core(candidate, request, machine).stages(request.items, prepared)
        return priced(stages, request.dtype, machine, "tasks" if candidate.method == TASKS else "whole")

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Core:
        unlimited = request
        if request.max_error is not None or request.max_workspace is not None:
            unlimited = replace(request, max_error=None, max_workspace=None)
        return _core(IdentityKey(candidate.own_program), unlimited, _method(candidate, request, machine))


BOUND = 1 - 1e-9
"""Factor of the lower bound: the cost table's seconds are the price, up to the order of summing the stages."""


def _levels(source: Chain | GivenProgram, dtype: str) -> LevelCosts | None:
    """Return the costs of the levels, outermost first; None if they are not those of schemes."""
    if isinstance(source, Chain) and source.pool is not None:
        return level_costs(source.pool.costs, dtype).at(list(source.places))
    return None if source.costs is None else level_costs(SchemeCosts.stacked(source.costs), dtype)


def _method(candidate: Candidate, request: Request, machine: Machine) -> CpuMethod:
    return CpuMethod(candidate.method == TASKS, candidate.method == LOOP, _library(candidate, request, machine))


@lru_cache(maxsize=64)
def _core(program: IdentityKey, request: Request, method: CpuMethod) -> Level:
    """Return the core, which predicting, sizing and building share."""
    return core_of(program.held, request, method)


STRATEGIES = CpuVendor(), CpuScheme()
